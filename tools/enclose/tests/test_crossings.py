"""Times at which something happens, enclosed: what scipy finds lies inside, and no second zero is overlooked."""

import numpy as np
import pytest
from own_flows import Drawn, Linear, entropy
from scipy import integrate, optimize
from yzflow_enclose import enclose, enclose_flow

from dynamics import SequenceClasses


def turning_by_scipy(mu, bracket):
    """The time of the least entropy, by DOP853 and a bounded search."""
    mu = np.array(mu, float)
    run = integrate.solve_ivp(
        lambda t, v: (mu - v) * np.exp(v * v / 2), (0, bracket[1]), np.zeros_like(mu), method="DOP853",
        rtol=1e-13, atol=1e-14, dense_output=True,
    )  # fmt: skip

    def slope(t):
        v = run.sol(t)
        u = v * v / 2
        shares = np.exp(u) / np.exp(u).sum()
        moved = v * (mu - v) * np.exp(u)
        return -(shares * (u - (shares * u).sum()) * moved).sum()

    return optimize.brentq(slope, *bracket, xtol=1e-14)


@pytest.mark.parametrize(
    ("mu", "t_end", "about", "least"),
    [((3, 2.5, 2, 1.5, 1, 0.5), 1.2, 0.68, 0.4774), ((2, 1, 1, 1), 3.0, 1.53, 1.0681)],
)
def test_attention_is_first_sparse_then_dense(mu, t_end, about, least):
    """JoMA, as we state it: the entropy of softmax(v^2/2) falls, turns once, and rises."""
    flow = enclose(Drawn(mu), t_end=t_end, bits=80)
    assert flow.complete

    def slope(at):
        return entropy(at.state["v"]).rate

    found = flow.crossing(slope, between=(0.1, t_end))
    first, last = found.times
    assert found.rising is True and found.width < 1e-6 and found.reason == ""
    expected = turning_by_scipy(mu, (about - 0.1, about + 0.1))
    # Known from scipy to 1e-11 or so.
    assert first - 1e-10 < expected < last + 1e-10
    assert about - 0.01 < first and last < about + 0.01
    bottom = entropy(flow.moment(first, last).state["v"])
    assert abs(float(bottom.ball()) - least) < 1e-4
    assert flow.holds(lambda at: entropy(at.state["v"]) > bottom.lower - 1e-9) is True
    falls = flow.crossing(slope, between=(0.1, t_end), rising=False)
    assert falls.times is None and falls.width is None and "is one where it rises" in falls.reason


def test_without_spread_there_is_no_turning_point():
    flow = enclose(Drawn([0.6, 0.4]), t_end=2.0, bits=60)
    found = flow.crossing(lambda at: entropy(at.state["v"]).rate, between=(0.2, 2.0))
    assert found.times is None and "it has no zero there: it is negative at the end" in found.reason


def test_two_zeros_are_two_and_a_touching_one_is_open():
    flow = enclose(Linear([[0, 1], [-1, 0]], [1, 0]), t_end=6.0, bits=60)  # cos t

    def cosine(at):
        return at.state["x"][0]

    found = flow.crossing(cosine, between=(0.0, 3.0))
    assert found.times[0] <= np.pi / 2 <= found.times[1] and found.width < 1e-14 and found.rising is False
    assert flow.crossing(cosine, between=(3.0, 6.0), rising=True).times is not None
    assert "it has 2 zeros there, in [" in flow.crossing(cosine, between=(0.0, 6.0)).reason
    touching = flow.crossing(lambda at: cosine(at) + 1, between=(2.0, 4.0))
    assert touching.times is None and "is proved" in touching.reason
    near = flow.crossing(lambda at: cosine(at) + 0.9999, between=(2.0, 3.135))
    assert near.times[0] <= np.arccos(-0.9999) <= near.times[1]
    assert "no zero" in flow.crossing(lambda at: cosine(at) + 1.0001, between=(2.0, 4.0)).reason
    assert "its sign at t = " in flow.crossing(lambda at: at.t - 2, between=(1.0, 2.0)).reason


def test_a_population_has_crossings_too():
    classes = SequenceClasses.single_common_token(2, 2, common=1.0, distinct=(2.0, 1.0))
    flow = enclose_flow(classes, eta_y=1.0, eta_z=2.0, t_end=10.0, bits=40)
    found = flow.crossing(lambda at: at.z(0, 0) + 0.1, between=(1.0, 10.0))
    assert found.rising is False and found.width < 1e-9
    before, after = (flow.moment(t).z(0, 0) + 0.1 for t in found.times)
    assert before.lower > 0 > after.upper
