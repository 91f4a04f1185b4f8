"""Predicates with numbers of every kind verify, as `record` writes them; a population that does not fit is refused."""

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yzflow_enclose import enclose_flow
from yzflow_enclose.verifier import verify

from dynamics import Limits, SequenceClasses

pytestmark = pytest.mark.usefixtures("same_precision")  # a checker sets it and leaves it so

QUANTITIES = {
    "relative gain": lambda at: at.relative_gain(0, 1, 2),
    "z": lambda at: at.z(0, 1),
    "difference": lambda at: at.z(0, 2) - at.z(0, 1),
    "attention": lambda at: at.attention(0, 0),
    "velocity": lambda at: -at.velocity(0, 1) * -3,
}
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([-1e-3, 0.0, 1e-4, 0.25, -2.5]))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    classes = SequenceClasses.single_common_token(2, 12, common=0.75, distinct=[1.5, 1.0])
    return lambda: enclose_flow(classes, eta_y=1.0, eta_z=4.0, t_end=0.5, bits=36)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(QUANTITIES)), st.sampled_from("<>"), NUMBERS), min_size=1, max_size=4))
def test_predicates_with_any_numbers_verify(made, tmp_path_factory, drawn):
    """Negative whole numbers and negated quantities were "an operation" that the checker did not know."""
    flow = made()
    compare = {"<": operator.lt, ">": operator.gt}
    for name, sign, bound in drawn:
        flow.record(lambda at, name=name, sign=sign, bound=bound: compare[sign](QUANTITIES[name](at), bound))
    path = tmp_path_factory.mktemp("drawn") / "flow.npz"
    flow.save(path)
    assert flow.verify() and verify.check(str(path))


def test_a_population_whose_tables_do_not_fit_is_refused_with_its_size():
    classes = SequenceClasses.single_common_token(30_000, 100_000)
    message = (
        r"`data` must leave at most 1,073,741,824 bytes, .* to list the entries of Z and Y, but got 36,\d[\d,]+ bytes"
    )
    with Limits(memory=2**30), pytest.raises(ValueError, match=message):
        enclose_flow(classes, eta_y=1.0, eta_z=4.0, t_end=2.0, bits=40)
