"""For all folders of tests: browsers, settings of property tests, flint's precision, Ctrl-C as a terminal sends it."""

import signal

import pytest
from driving import ROOT, browser, chromium, shared_browser  # noqa: F401, fixtures
from property_tests import settings  # noqa: F401, loaded


@pytest.fixture
def same_precision():
    """Flint's precision after a test as it was before."""
    from flint import ctx

    before = ctx.prec, ctx.cap
    yield
    ctx.prec, ctx.cap = before


@pytest.fixture(scope="module")
def few_classes_reduced():
    """Flows that invert F^T F are reduced by symmetry however few their classes: few go whole, which is faster."""
    from dynamics.fields import orbits

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orbits, "_FEWEST_INVERTED", 0)
        yield


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    """Mark tests that need a browser as slow, and what stands in `tools`, so that CI runs both in one call."""
    for item in items:
        if item.path.is_relative_to(ROOT / "tools"):
            item.add_marker(pytest.mark.tool)
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


# A shell starts background jobs with Ctrl-C ignored, which Python and its children inherit: the tests that send one
# would wait for nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
