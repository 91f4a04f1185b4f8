"""Settings of the property tests."""

from hypothesis import HealthCheck, settings

# No deadline: the first example of a run may compile a kernel. Derandomised: a failure is the same everywhere.
settings.register_profile(
    "yzflow",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("yzflow")
