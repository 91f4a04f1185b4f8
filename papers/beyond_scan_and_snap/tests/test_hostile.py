"""Every public callable of this distribution, with hostile values in every argument in turn."""

from pathlib import Path

import pytest
from hostile import Table

TABLE = Table(["yzflow_beyond_scan_and_snap"], Path(__file__).with_name("calls.py"))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    yield from TABLE.made(tmp_path_factory.mktemp("hostile"))


def test_every_public_callable_has_a_valid_call(table):
    TABLE.check_complete(table)


def test_hostile_arguments_end_in_a_result_or_our_grammar(table):
    TABLE.check(table)
