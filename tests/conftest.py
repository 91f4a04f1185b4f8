"""Settings of the property tests, and Ctrl-C as a terminal would send it."""

import signal

import pytest
from driving import LONG, browser, chromium, shared_browser  # noqa: F401, fixtures
from hypothesis import HealthCheck, settings

# No deadline: the first example of a run may compile a kernel. Derandomised: a failure is the same everywhere. The long
# form draws other examples each time, and prints how to see one again.
settings.register_profile(
    "yzflow",
    deadline=None,
    derandomize=not LONG,
    database=None,
    max_examples=1000 if LONG else 25,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("yzflow")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    """What needs a browser is slow."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


# A shell starts background jobs with Ctrl-C ignored, which Python and its children inherit: the tests that send one
# would wait for nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
