"""Every public callable of `dynamics` and `theory`, with hostile values in every argument in turn.

By default each argument gets a few of the values, chosen by a seeded generator. The long form takes all of them, and
then several at once.
"""

import pytest
from driving import ROOT
from hostile import Table

from dynamics.fields.table import SYSTEMS

pytestmark = pytest.mark.slow

# Each folder of tests has its part in ``calls.py``, so that a paper comes and goes with its own files.
FILES = [ROOT / "tests" / "dynamics" / "calls.py", *sorted((ROOT / "tests" / "theory").rglob("calls.py"))]
TABLE = Table(["dynamics", "theory"], *FILES)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    yield from TABLE.made(tmp_path_factory.mktemp("hostile"))
    SYSTEMS.pop("of hostile tests", None)


ROOMS = [
    "_engine", "_model", "optimizers", "bags", "data", "flow", "ensemble", "descent", "layer", "observables",
    "options", "trajectory", "extensions", "noise", "diffusion", "support",
    "open_flow", "open_descent", "run", "fields", "papers", "parts", "statements",
    "symbolic", "scan_and_snap",
]  # fmt: skip


def test_every_public_callable_has_a_valid_call(table):
    TABLE.check_complete(table)
    assert {name.split(".")[0] for name in table} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_hostile_arguments_end_in_a_result_or_our_grammar(table, room):
    TABLE.check({name: call for name, call in table.items() if name.split(".")[0] == room})
