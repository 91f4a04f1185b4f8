"""LayerNorm that subtracts the mean: the speeds by algebra and by the layer's gradient, and where signs turn."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Layer, SequenceClasses, extensions, gradient_flow
from theory.scan_and_snap import centred, tokens
from theory.scan_and_snap.proofs import layer_norm
from yzflow.audits import audit
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

RUNS = audit.Simulations(Setting("inside", single_common_token(2, 1000, 0.3), 1.0, 1e-3, 100.0), seed=0)


def features(shares, width):
    """P c_n/||P c_n|| in rows of ``width`` entries."""
    wide = np.zeros((len(shares), width))
    wide[:, : shares.shape[1]] = shares
    wide -= wide.mean(axis=1, keepdims=True)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def by_the_layer(shares, m, margin):
    """Z's part of the layer's own gradient at Y = F (I - E') [x (e_n - 1/M)]_n, per unit of gamma/K at x = M h."""
    k = len(shares)
    bags, start = extensions.layer_norm(SequenceClasses(shares, [0] * k, vocab_size=m))
    unit = features(shares, m)
    Y = unit.T @ np.linalg.solve(unit @ unit.T, margin * (np.eye(k, m) - 1 / m))
    gamma = (m - 1) ** 2 / m * margin / (m - 1 + np.exp(margin))
    return Layer(start.Z, Y, start.V, center=True).gradient(bags).Z[0] * k / gamma


@pytest.mark.parametrize("common", [0.02, 0.2])
@pytest.mark.parametrize("margin", [0.01, 2.0, 9.0])
def test_the_speed_is_that_of_the_layer_at_the_decoder_of_theorem_5(common, margin):
    rng = np.random.default_rng(3)
    for shares in (centred.pair(common, 0.1, rng), centred.several(rng, 60)):
        found = by_the_layer(shares, 60, margin)
        np.testing.assert_allclose(found, centred.speed(shares, 60), atol=1e-12 * np.abs(found).max())


@given(st.integers(50, 10**4), st.integers(0, 10**6))
def test_the_proved_terms_add_up_to_the_speed(m, seed):
    """Sums of beta_nn' times what the proof has for a pair of classes, at the common token and at distinct ones."""
    shares = centred.several(np.random.default_rng(seed), m)
    k, gram = len(shares), shares @ shares.T - 1 / m
    squared, beta, found = np.diag(gram), centred.signals(shares, m), centred.speed(shares, m)
    p, common = shares[:, 0], 0.0
    for n in range(k):
        spread = squared[n] - (p[n] - 1 / m) ** 2 * m / (m - 1)
        pulls = sum(beta[n, o] * layer_norm.common_pull(m, p[n], p[o], spread) / squared[o] ** 0.5 for o in range(k))
        common -= p[n] / squared[n] ** 1.5 * pulls
        for token in np.flatnonzero(shares[n, 1:]) + 1:
            pushes = sum(
                beta[n, o] * centred.distinct_push(m, shares[n, token], gram[n, o], squared[n]) / squared[o] ** 0.5
                for o in range(k)
            )
            expected = shares[n, token] / (m * squared[n] ** 1.5) * pushes
            assert abs(expected - found[token]) <= 1e-6 * np.abs(found).max()
    assert abs(common - found[0]) <= 1e-6 * np.abs(found).max()


def test_a_rare_distinct_token_loses_attention_inside_assumption_2():
    """K = 2, M = 1000, in rational numbers; then in the layer's gradient, and early in the full flow."""
    m, rare = 1000, Fraction(1, 20_000)
    first, second = Fraction(36, 100), Fraction(1, 5)
    others = (1 - second - rare) / 30
    kappa = first * second - Fraction(1, m)
    squared = second**2 + 30 * others**2 + rare**2 - Fraction(1, m)
    assert kappa > 0  # beta_12 > 0 then
    assert centred.distinct_push(m, rare, kappa, squared) < 0 < centred.distinct_push(m, 10 * rare, kappa, squared)
    for share, sign in ((0.05, -1), (0.5, 1)):
        shares = centred.with_a_rare_token(m, share)
        unit = features(shares, m)
        assert tokens.weak_correlation(unit @ unit.T, vocab_size=m).holds
        assert (centred.signals(shares, m)[[0, 1], [1, 0]] > 0).all()
        assert np.sign(by_the_layer(shares, m, 2.0)[-1]) == sign
        bags, layer = extensions.layer_norm(SequenceClasses(shares, [0, 0], vocab_size=m))
        options = {"eta_y": 1.0, "eta_z": 1e-3, "eta_v": 0.0, "rtol": 1e-10, "atol": 1e-16}
        flow = gradient_flow(bags, init=layer, t_end=100.0, times=[1.0, 100.0], **options)
        assert (np.sign(flow.dataset["z"].values[:, 0, -1]) == sign).all()


def test_equal_classes_below_1_over_m_lose_where_beta_is_negative():
    """Three regimes of the common share: it loses, gains, and loses again, at 1/M and at the border."""
    m, k = 400, 4
    signs = []
    for common in (0.5 / m, 2 / m, 0.3):
        shares = np.zeros((k, 1 + 2 * k))
        shares[:, 0] = common
        for n in range(k):
            shares[n, 1 + 2 * n : 3 + 2 * n] = (1 - common) / 2
        squared = float(shares[0] @ shares[0])
        positive = centred.border(m, common, squared) > 0
        assert positive == (centred.signals(shares, m)[0, 1] > 0) and (not positive or common > 2 / (m + 1))
        signs.append(np.sign(centred.speed(shares, m)[0]))
    assert signs == [-1, 1, -1]


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
    unit = features(shares, m)
    assert np.sign(unit[0] @ unit[1]) == np.sign(shares[0] @ shares[1] - 1 / m) or abs(unit[0] @ unit[1]) < 1e-9


@pytest.mark.parametrize(("common", "sign"), [(0.02, 1), (0.04, -1), (0.4, -1)])
def test_in_the_full_flow_the_common_token_loses_from_a_share_of_1_over_m_on(common, sign):
    """Early beta_nn' is 1/M for all pairs there, and v_l has the sign of -f_l = -(c_l - 1/M); M = 40."""
    shares = np.zeros((2, 3))
    shares[:, 0], shares[0, 1], shares[1, 2] = common, 1 - common, 1 - common
    bags, layer = extensions.layer_norm(SequenceClasses(shares, [0, 0], vocab_size=40))
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
    assert centred.distinct_corrected(RUNS, "closed form") == 0 < centred.distinct_printed(RUNS, "closed form")
    monkeypatch.setattr(centred, "distinct_push", lambda m, c, k, s: s + m * c * k)
    assert centred.distinct_corrected(RUNS, "closed form") > 0
    assert centred.common_several(RUNS, "closed form") == 0
    monkeypatch.setattr(centred, "signals", lambda shares, m: np.ones((len(shares), len(shares))))
    assert centred.common_several(RUNS, "closed form") > 0
