"""How property tests are run, those of the packages and those of the studies; loaded by being imported."""

from driving import LONG
from hypothesis import HealthCheck, settings

# No deadline: the first example of a run may compile a kernel. Derandomised: a failure is the same everywhere. The long
# form draws other examples each time, and prints how to see one again.
settings.register_profile(
    "yzflow",
    deadline=None,
    derandomize=not LONG,
    database=None,
    max_examples=1000 if LONG else 12,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("yzflow")
