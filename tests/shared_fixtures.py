"""Browsers, settings of the property tests, and Ctrl-C as a terminal would send it, for all folders of tests."""

import signal

import pytest
from driving import browser, chromium, shared_browser  # noqa: F401, fixtures
from property_tests import settings  # noqa: F401, loaded


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    """Mark tests that need a browser as slow."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


# A shell starts background jobs with Ctrl-C ignored, which Python and its children inherit: the tests that send one
# would wait for nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
