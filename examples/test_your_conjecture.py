"""A property test of your own conjecture against the simulator.

    python -m pytest examples/test_your_conjecture.py

The conjecture here: under the full gradient flow, the more frequent of two distinct tokens of a class stays ahead.
Replace it by yours; hypothesis looks for the smallest counter-example. The stronger conjecture that its lead never
shrinks, which Theorem 3 says of the theory flow, is false here: add ``and (gain.diff("time") > -1e-7).all()``.

The second test asks inside the assumptions of a theorem, up to their borders: `yzflow.fuzz` draws the settings.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

import yzflow as yz
from dynamics import SequenceClasses, gradient_flow


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(2, 5), st.integers(0, 50), st.floats(0.05, 2.0), st.floats(1.1, 4.0), st.floats(0.1, 3.0))
def test_the_more_frequent_token_stays_ahead(n_classes, unseen, common, advantage, eta_z):
    classes = SequenceClasses.single_common_token(n_classes, n_classes + unseen, common=common, distinct=[advantage, 1])
    flow = gradient_flow(classes, eta_y=1.0, eta_z=eta_z, t_end=200.0, n_times=50)
    first, second = classes.distinct_tokens(0)
    gain = flow.relative_gain(0, first, second)
    assert (gain > 0).all()


def leaders_stay(flow):
    """Whether the distinct token that has most attention at first does so at all times, in every class."""
    own = flow.dataset["attention"].where(flow.dataset["distinct"])
    return bool((own.argmax("token") == own.isel(time=0).argmax("token")).all())


def test_leaders_stay_inside_the_assumptions_of_theorem_3():
    report = yz.fuzz(leaders_stay, like="Scan and Snap: Theorem 3", level="full flow", examples=20)
    assert report.passed, report.text
