"""Settings of the property tests, those of `tests`; marks what is tested here, which CI runs beside the slow tests."""

from pathlib import Path

import pytest
from property_tests import settings  # noqa: F401, loaded

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.study)
