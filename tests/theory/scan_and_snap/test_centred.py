"""LayerNorm that subtracts the mean: the speeds by algebra and by the layer's gradient, and where signs turn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Layer, SequenceClasses, gradient_flow
from dynamics.extensions import layer_norm
from theory.scan_and_snap import centred
from yzflow.audits import audit
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

RUNS = audit.Simulations(Setting("inside", single_common_token(2, 1000, 0.3), 1.0, 1e-3, 100.0), seed=0)


@pytest.mark.parametrize("common", [0.02, 0.2])
@pytest.mark.parametrize("margin", [0.01, 2.0, 9.0])
def test_the_speed_is_that_of_the_layer_at_the_decoder_of_theorem_5(common, margin):
    """Z's part of the layer's own gradient at Y = F (I - E') [x (e_n - 1/M)]_n, with gamma of that margin x = M h."""
    m, shares = 60, centred.pair(common, 0.1, np.random.default_rng(3))
    data = SequenceClasses(shares, [0, 0], vocab_size=m)
    bags, start = layer_norm(data)
    unit, _ = centred.features(shares, m)
    Y = unit.T @ np.linalg.solve(unit @ unit.T, margin * (np.eye(2, m) - 1 / m))
    found = Layer(start.Z, Y, start.V, center=True).gradient(bags).Z[0]
    gamma = (m - 1) ** 2 / m * margin / (m - 1 + np.exp(margin))
    np.testing.assert_allclose(found, gamma / 2 * centred.speed(shares, m), atol=1e-12 * np.abs(found).max())


def test_pairs_are_distributions_whose_common_shares_spread_to_both_sides():
    """Uniform within ten percent of 0.3, 400 draws: none of them in an outer fifth on one side has chance 0.8^400."""
    rng = np.random.default_rng(0)
    pairs = np.array([centred.pair(0.3, 0.1, rng) for _ in range(200)])
    np.testing.assert_allclose(pairs.sum(axis=2), 1, rtol=1e-14)
    assert 0.27 <= pairs[..., 0].min() < 0.282 and 0.318 < pairs[..., 0].max() <= 0.33
    # Each class has three tokens of its own.
    np.testing.assert_array_equal(pairs[0] > 0, [[1, 1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 1, 1, 1]])


@given(st.integers(10, 10**5), st.floats(0.02, 0.6), st.integers(0, 1000))
def test_the_common_token_turns_where_the_overlap_does(m, common, seed):
    shares = centred.pair(max(common, 2 / m), 0.0, np.random.default_rng(seed))
    margin = centred.margin(shares, m)
    if abs(margin) > 1e-6:
        assert np.sign(centred.speed(shares, m)[0]) == -np.sign(margin)
    unit, _ = centred.features(shares, m)
    assert np.sign(unit[0] @ unit[1]) == np.sign(shares[0] @ shares[1] - 1 / m) or abs(unit[0] @ unit[1]) < 1e-9


@pytest.mark.parametrize(("common", "sign"), [(0.02, 1), (0.04, -1), (0.4, -1)])
def test_in_the_full_flow_the_common_token_loses_from_a_share_of_1_over_m_on(common, sign):
    """Early beta_nn' is 1/M for all pairs there, and v_l has the sign of -f_l = -(c_l - 1/M); M = 40."""
    shares = np.zeros((2, 3))
    shares[:, 0], shares[0, 1], shares[1, 2] = common, 1 - common, 1 - common
    bags, layer = layer_norm(SequenceClasses(shares, [0, 0], vocab_size=40))
    options = {"eta_y": 1.0, "eta_z": 1e-3, "eta_v": 0.0, "rtol": 1e-10, "atol": 1e-14}
    flow = gradient_flow(bags, init=layer, t_end=300.0, times=[1.0, 10.0, 300.0], **options)
    assert (np.sign(flow.dataset["z_velocity"].values[:, 0, 0]) == sign).all()
    assert (centred.margin(shares, 40) > 0) == (common == 0.4)


def test_false_variants_fail(monkeypatch):
    assert centred.common_corrected(RUNS, "closed form") == 0
    assert centred.common_printed(RUNS, "closed form") == pytest.approx(0.465, abs=0.05)
    right = centred.margin
    monkeypatch.setattr(centred, "margin", lambda shares, m: -right(shares, m))
    assert centred.common_corrected(RUNS, "closed form") == 1
    monkeypatch.setattr(centred, "margin", lambda shares, m: right(shares, m) + 2 / m)
    assert centred.common_corrected(RUNS, "closed form") > 0
