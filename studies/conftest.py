"""Settings of the property tests, those of `tests`."""

from property_tests import settings  # noqa: F401, loaded
