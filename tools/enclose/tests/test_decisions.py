"""Claims for all times, of which it is known where they hold: what is decided is so."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yzflow_enclose.decisions import decide
from yzflow_enclose.quantities import Claim

STEPS = [SimpleNamespace(start=a, end=b) for a, b in ((0.0, 0.5), (0.5, 1.25), (1.25, 2.0))]
WINDOWS = st.lists(st.tuples(st.floats(0, 2), st.floats(1e-3, 0.5)), max_size=3)


def holding(windows):
    """A claim that is false in closed windows, and true at all other times."""

    def claim(start, end):
        if any(first <= start and end <= last for first, last in windows):
            return Claim(False)
        return Claim(None if any(first <= end and start <= last for first, last in windows) else True)

    return claim


@settings(max_examples=80)
@given(WINDOWS, st.sampled_from([0.3, 0.5, 1.0, 1.9, 2.0]))
def test_a_claim_is_true_at_all_times_or_false_at_some(drawn, last):
    windows = [(first, first + length) for first, length in drawn]
    found = decide(holding(windows), STEPS, last)
    begin = min((max(first, 0) for first, _ in windows), default=np.inf)
    if found.value is True:
        assert begin > last and found.times is None
    elif found.value is False:
        assert any(first <= found.times[0] and found.times[1] <= end for first, end in windows)
        assert found.times[0] <= found.times[1] <= last
    assert begin <= last or found.value is True
    assert found.reached <= min(begin, last)


@pytest.mark.parametrize("begin", [0.1, 0.7, 1.9])
def test_a_time_from_which_on_a_claim_is_false_is_found_closely(begin):
    found = decide(holding([(begin, 9.0)]), STEPS, 2.0)
    assert found.value is False and found.reached < begin <= found.times[1] < found.reached + 1e-3
    assert decide(holding([(begin, 9.0)]), STEPS, begin - 1e-3).value is True
    assert decide(holding([]), STEPS, 2.5).value is None and decide(holding([]), [], 1.0).reached == 0
    assert decide(lambda start, end: Claim(None), STEPS, 2.0).value is None
