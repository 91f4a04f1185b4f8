"""Pages in a headless Chromium that may ask nothing of a network and may report no error."""

import glob
import shutil
from contextlib import contextmanager

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def executable(playwright) -> str | None:
    """Path of the system's Chromium, or else of Playwright's own, or None."""
    found = [path for path in map(shutil.which, _NAMES) if path]
    return (found + glob.glob(playwright.chromium.executable_path) + [None])[0]


@pytest.fixture(scope="session")
def chromium():
    """The browser of this worker's tests; skips where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'yzflow[test]'")
    with sync_api.sync_playwright() as playwright:
        path = executable(playwright)
        if path is None:
            pytest.skip(f"needs a browser: none of {', '.join(_NAMES)} is on the PATH, nor Playwright's own")
        instance = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield instance
        instance.close()


@pytest.fixture
def browser(chromium):
    """A function that opens a file in a new window and gives Playwright's page.

    ``browser(path, width=1280, height=800, color_scheme="light")``; further keywords go to Playwright's
    ``new_context``. Every request that is not to file:, data: or blob: is refused. At its end the test fails if there
    was one, or an error on the console or in a script; ``browser.problems`` lists them so far.
    """
    with _windows(chromium) as open_file:
        yield open_file


@pytest.fixture(scope="module")
def shared_browser(chromium):
    """`browser` for all tests of a module, where a page takes long to load; the last test fails for all."""
    with _windows(chromium) as open_file:
        yield open_file


@contextmanager
def _windows(chromium):
    contexts, problems = [], []

    def guard(route):
        url = route.request.url
        if url.split(":", 1)[0] in ("file", "data", "blob"):
            route.continue_()
        else:
            problems.append(f"request to {url}")
            route.abort()

    def watch(page):
        page.on("console", lambda message: message.type == "error" and problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"script: {error}"))
        page.on("websocket", lambda socket: problems.append(f"web socket to {socket.url}"))

    def open_file(path, *, width=1280, height=800, color_scheme="light", **options):
        viewport = {"width": width, "height": height}
        context = chromium.new_context(viewport=viewport, color_scheme=color_scheme, service_workers="block", **options)
        contexts.append(context)
        context.route("**/*", guard)
        context.on("page", watch)
        page = context.new_page()
        page.goto(path if "://" in str(path) else path.resolve().as_uri())
        return page

    open_file.problems = problems
    yield open_file
    for context in contexts:
        context.close()
    assert not problems, problems
