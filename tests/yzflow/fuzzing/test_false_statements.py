"""Fifty false statements fall to the fuzzer within a stated number of examples, one by one."""

import pytest
from false_statements import FALSE, MOST


def test_there_are_fifty():
    assert len(FALSE) >= 50


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if one.level == "closed form" else pytest.mark.slow) for name, one in FALSE.items()],
)
def test_a_false_statement_falls(name):
    assert FALSE[name].examples(seed=0) is not None, f"not within {MOST} examples"
