"""The browser of the tests sees what a page asks for and what goes wrong in it."""

import pytest


@pytest.fixture
def page_of(tmp_path):
    def write(body):
        path = tmp_path / "page.html"
        path.write_text(f"<!doctype html><title>page</title>{body}")
        return path

    return write


def test_a_page_that_asks_for_nothing_has_no_problem(browser, page_of):
    page = browser(page_of("<h1>here</h1><img src='data:image/gif;base64,R0lGODlhAQABAAAAACw=' alt=''>"))
    assert page.inner_text("h1") == "here"
    assert not browser.problems


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("<img src='https://example.org/x.png' alt=''>", "request to https://example.org/x.png"),
        ("<link rel=stylesheet href='http://example.org/x.css'>", "request to http://example.org/x.css"),
        ("<script>fetch('https://example.org/x').catch(() => 0)</script>", "request to https://example.org/x"),
        ("<script>console.error('bad')</script>", "console: bad"),
        ("<script>null.x</script>", "script: "),
    ],
)
def test_what_goes_wrong_is_seen(browser, page_of, body, says):
    page = browser(page_of(body))
    page.wait_for_timeout(50)
    assert any(problem.startswith(says) for problem in browser.problems)
    browser.problems.clear()
