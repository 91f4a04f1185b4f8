"""The browser of the tests sees what a page asks for and what goes wrong in it."""

BODY = """<h1>here</h1><img src='data:image/gif;base64,R0lGODlhAQABAAAAACw=' alt=''>"""
WRONG = {
    "<img src='https://example.org/x.png' alt=''>": "request to https://example.org/x.png",
    "<link rel=stylesheet href='http://example.org/x.css'>": "request to http://example.org/x.css",
    "<script>fetch('https://example.org/x').catch(() => 0)</script>": "request to https://example.org/x",
    "<script>console.error('bad')</script>": "console: bad",
    "<script>null.x</script>": "script: ",
}


def test_what_goes_wrong_is_seen_and_nothing_else(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><title>page</title>{BODY}")
    assert browser(path).inner_text("h1") == "here"
    assert not browser.problems
    path.write_text(f"<!doctype html><title>page</title>{BODY}{''.join(WRONG)}")
    browser(path).wait_for_timeout(50)
    for says in WRONG.values():
        assert any(problem.startswith(says) for problem in browser.problems), says
    browser.problems.clear()
