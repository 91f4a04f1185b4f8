"""Open questions about Scan and Snap: closed forms against the simulators, exact cases, other routes to a number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Layer, SequenceClasses, Solver, gradient_flow
from theory.scan_and_snap.proofs import late_full_flow
from theory.scan_and_snap.proofs.slowdown import late_ratio
from yzflow.papers.scan_and_snap.open_questions import gradient, late, original, spurious

FIVE = {"n_classes": 10, "vocab_size": 1000, "common": 0.4, "n_distinct": 5}


@pytest.mark.parametrize("decoder", ["full", "theory"])
def test_the_reduced_flow_in_log_time_is_the_simulator_s(decoder):
    classes = SequenceClasses.single_common_token(10, 1000, common=0.4, distinct=[0.12] * 5)
    s = np.array([0.0, 2.5, 5.0, 8.0])
    flow = gradient_flow(
        classes, eta_y=1.0, eta_z=0.5, t_end=np.exp(8.0), times=np.exp(s), decoder=decoder, rtol=1e-10, atol=1e-13,
        solver=Solver(time_scale="log"),
    )  # fmt: skip
    z = flow.dataset["z"].values[:, 0, 0]
    found = late.late_flow(s, **FIVE)["z"] if decoder == "full" else late.theory_logit(s, **FIVE)
    np.testing.assert_allclose(found, z, rtol=1e-7)


def test_k_equal_m_stays_on_its_orbit_and_has_exponent_one():
    # The integral of motion of the proof, which knows nothing of the integrator.
    s = np.geomspace(1, 2000, 30)
    flow = late.late_flow(s, n_classes=4, vocab_size=4, n_distinct=1, eta_y=1.0, eta_z=0.5, rtol=1e-9)
    w, gain = flow["ratio"].values, 1 + 1 / 4
    # A^2 from the orbit; ln t = u + O(1) with u = d A.
    A = np.sqrt(((1 / w**2 - 2 * np.log(w)) - (1 / w[0] ** 2 - 2 * np.log(w[0]))) / (3 * gain * 0.5))
    margin = A / np.sqrt(1 + w**2)
    late_part = s > 100
    rest = margin[late_part] - s[late_part]
    assert np.ptp(rest) < 0.05 * abs(rest).max() + 0.3
    assert flow["exponent"].values[-1] == pytest.approx(1, abs=2e-3)


def test_attention_never_freezes_and_the_exponent_goes_to_its_limit():
    s = np.array([20.0, 200.0, 2000.0])
    for k, m in ((5, 20), (2, 10)):
        exponent = late.late_flow(s, n_classes=k, vocab_size=m, n_distinct=1, rtol=1e-7)["exponent"].values
        limit = late.final_exponent(n_classes=k, vocab_size=m)
        excess = exponent - limit
        assert (excess > 0).all() and (np.diff(excess) < 0).all()
        assert excess[-1] < 0.25 * limit
    # In the paper's setting the slope -1/2 of Theorem 4's late form is passed through, not kept.
    exponent = late.late_flow([8.0, 100.0, 1000.0], **FIVE, rtol=1e-7)["exponent"].values
    assert 0.4 < exponent[0] < 0.5 and exponent[1] == pytest.approx(0.302, abs=0.005) and exponent[2] < 0.18


def test_the_slow_exponent_predicts_the_flow_s():
    flow = late.late_flow([100.0, 1000.0], n_classes=5, vocab_size=20, n_distinct=1, rtol=1e-7)
    predicted, ratio = late.slow_exponent(flow["ratio"].values, n_classes=5, vocab_size=20)
    gap = predicted / flow["exponent"].values - 1
    assert abs(gap[0]) < 0.09 and abs(gap[1]) < 0.03
    np.testing.assert_allclose(ratio[1], flow["p_over_q"].values[1], rtol=0.01)
    # Far down it is the limit that the proof solves for.
    far, one = late.slow_exponent([1e-4], n_classes=5, vocab_size=20)
    assert far[0] == pytest.approx(float(late_full_flow.exponent(20, 5)), rel=1e-4) and one[0] == pytest.approx(
        1, abs=1e-4
    )


def test_theory_flow_ends_with_exponent_one():
    s = np.array([1e5, 1e5 * 1.01])
    z = late.theory_logit(s, n_classes=5, vocab_size=20, n_distinct=1)
    assert -(1 + 1 / 5) * (z[1] - z[0]) / np.log(1.01) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("k", "m", "rho"), [(5, 60, 0.967), (4, 4, 0.3), (3, 30, 0.2)])
def test_frozen_speeds_run_from_s_to_s_inf(k, m, rho):
    speeds = late.frozen_speeds([-11.0, 20_000.0], n_classes=k, vocab_size=m, overlap=rho)
    slowdown = (1 - rho) * (1 + (k - 1) * rho) / (1 + (m - 1) * rho)
    assert speeds[0] == pytest.approx(slowdown, rel=1e-3)
    assert speeds[1] == pytest.approx(float(late_ratio(m, k, rho)), rel=5e-3)


def test_where_the_full_flow_overtakes():
    found = late.overtaking(n_classes=10, vocab_sizes=[20, 100], overlaps=[0.01, 0.3], last=100.0)
    assert np.isfinite(found.values).all()
    assert (np.diff(found.values, axis=0) > 0).all() and (np.diff(found.values, axis=1) < 0).all()
    assert np.isinf(late.overtaking(n_classes=10, vocab_sizes=[1000], overlaps=[0.01], last=100.0).values).all()


@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from(gradient.KINDS), st.integers(0, 40))
@settings(max_examples=15, deadline=None)
def test_early_xi_needs_no_assumption(seed, k, kind, others):
    G = gradient.random_overlaps(np.random.default_rng(seed), k, kind)
    s = np.array([-5.0, -4.0])
    flow = gradient.frozen_flow(G, vocab_size=k + others, ln_t=s)
    first = gradient.early_xi(G, vocab_size=k + others) * np.exp(s)[:, None]
    gap = flow["xi"].values - first
    # The next term is of order t: at a time e times earlier the relative gap is e times smaller.
    assert (np.abs(gap) <= 3 * np.exp(s)[:, None] * k * first + 1e-9).all()
    moves = first[1] > 1e-6
    assert (flow["xi"].values[:, moves] > 0).all()
    terms = flow["term"].values[1]
    np.testing.assert_allclose(terms, G * (1 - np.eye(k)) / (k + others) * np.exp(s[1]), rtol=0.3, atol=1e-9)


def test_xi_is_the_velocity_of_distinct_tokens():
    # With the layer's own gradient at Y = F V: dJ/dz_l = f_nl^2 xi_n/K for a token distinct to class n.
    classes = SequenceClasses.single_common_token(3, 7, common=0.8, distinct=[1.0, 0.5])
    bags, s = classes.population(), np.array([1.3])
    G = classes.overlap()
    found = gradient.frozen_flow(G, vocab_size=7, ln_t=s)
    P = classes.probabilities.toarray()
    F = P / np.linalg.norm(P, axis=1, keepdims=True)
    # V by many small steps, another route than the integrator's.
    V, steps = np.zeros((3, 7)), 20_000
    for _ in range(steps):
        L = G @ V
        a = np.exp(L) / np.exp(L).sum(axis=1, keepdims=True)
        V += np.exp(s[0]) / steps * (np.eye(3, 7) - a)
    slope = Layer(np.zeros((1, F.shape[1])), np.ascontiguousarray(F.T @ V)).gradient(bags).Z[0]
    for n in range(3):
        own = classes.distinct_tokens(n)
        np.testing.assert_allclose(slope[own], F[n, own] ** 2 * found["xi"].values[0, n] / 3, rtol=1e-3)


def test_equal_overlaps_and_two_classes_obey_theorem_2_at_all_times():
    s = np.linspace(-5, 12, 40)
    for k, m, rho in ((2, 2, 0.9), (2, 30, 0.1), (5, 5, 0.5), (6, 100, 0.99)):
        flow = gradient.frozen_flow(np.full((k, k), rho) + (1 - rho) * np.eye(k), vocab_size=m, ln_t=s)
        assert (flow["xi"].values > 0).all() and (flow["share"].values > 0.999).all()


def test_xi_is_positive_where_single_terms_are_not():
    found = gradient.survey(draws=16, seed=5)
    assert (found["least"] > 0).all()
    assert found["negative"].any()


def test_orders_that_cross_do_not_decide():
    after, before = gradient.crossing()
    assert after < 0 < before
    assert gradient.crossing(back=0.0)[0] == pytest.approx(before)


def test_spurious_tokens_are_counted_right():
    # All data sets of two classes with two contextual tokens each, over three tokens: exact enumeration.
    p = np.array([0.5, 0.3, 0.2])
    number = share = 0.0
    for a in np.ndindex(3, 3):
        for b in np.ndindex(3, 3):
            chance = p[list(a)].prod() * p[list(b)].prod()
            alone = set(a) ^ set(b)
            number += chance * len(alone)
            share += chance * sum(token not in b for token in a) / 2
    options = {"tokens_per_class": 2, "n_classes": 2}
    assert spurious.expected_number(p, **options) == pytest.approx(number, rel=1e-12)
    assert spurious.expected_share(p, **options) == pytest.approx(share, rel=1e-12)


def test_large_data_sets_suppress_spurious_tokens():
    found = spurious.suppression(tokens_per_class=(100, 1000), seeds=3, t_end=100.0)
    # Six standard deviations of a count of rare tokens: a false alarm below 1e-6.
    expected = found["expected_number"].values
    assert (np.abs(found["number"].mean("seed") - expected) < 6 * np.sqrt(expected / 3)).all()
    assert (found["risen"] == 1).all()
    assert (found["end"] > found["start"]).all()
    np.testing.assert_allclose(found["end"].mean("seed"), found["expected_end"], rtol=0.35)
    assert float(found["end"].sel(tokens_per_class=1000).mean() / found["end"].sel(tokens_per_class=100).mean()) < 0.1


@given(st.floats(0.2, 2), st.floats(0, 2), st.floats(0, 2), st.floats(0.2, 2), st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_kernels_of_the_original_parameters(kappa, v, q, k, seed):
    # Traces of the kernels, by finite differences in no formula: random gradients in place of the layer's.
    rng = np.random.default_rng(seed)
    scales = {"embedding": kappa, "value": v, "query": q, "key": k}
    first = original.start(rng, tokens=9, width=9, **scales)
    G_Y, G_Z = rng.normal(size=(2, 9, 9))
    rate = original.velocity(first, G_Y, G_Z, 0.3)
    step = 1e-5
    ahead, back = (original.Parameters(*(X + sign * step * dX for X, dX in zip(first, rate, strict=True))).logits()
                   for sign in (1, -1))  # fmt: skip
    for found, plus, minus in zip(original.moved(first, rate), ahead, back, strict=True):
        np.testing.assert_allclose(found, (plus - minus) / (2 * step), rtol=1e-5, atol=1e-5)
    # Gradient flow: <G, velocity of the logits> is eta^-1 |velocity of the parameters|^2.
    dY, dZ = original.moved(first, rate)
    assert (dY * G_Y).sum() + (dZ * G_Z).sum() == pytest.approx(sum((dX**2).sum() for dX in rate) / 0.3, rel=1e-9)


def test_induced_rates_are_exact_without_values_and_queries():
    rng = np.random.default_rng(0)
    first = original.start(rng, tokens=8, width=8, embedding=1.3, value=0.0, query=0.0, key=0.7)
    G_Y, G_Z = rng.normal(size=(2, 8, 8))
    eta_y, eta_z = original.induced_rates(eta=0.2, width=8, embedding=1.3, value=0.0, query=0.0, key=0.7)
    dY, dZ = original.moved(first, original.velocity(first, G_Y, G_Z, 0.2))
    np.testing.assert_allclose(dY, eta_y * G_Y, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dZ, eta_z * G_Z, rtol=1e-10, atol=1e-12)


def test_induced_rates_in_the_mean():
    # Symmetric gradients of one matrix at a time, where the square of a rotation, of mean I/d, adds 1/d of the term
    # that it is in: 300 starts; six standard errors, false alarm below 1e-8.
    for which in (0, 1):
        found = []
        for seed in range(300):
            rng = np.random.default_rng([seed, which])
            first = original.start(rng, tokens=6, width=6, embedding=1.1, value=0.8, query=0.9, key=1.2)
            G = [np.zeros((6, 6)), np.zeros((6, 6))]
            G[which] = rng.normal(size=(6, 6))
            G[which] += G[which].T
            moved = original.moved(first, original.velocity(first, *G, 1.0))[which]
            found.append((moved * G[which]).sum() / (G[which] ** 2).sum())
        claim = original.induced_rates(eta=1.0, width=6, embedding=1.1, value=0.8, query=0.9, key=1.2)[which]
        more = (2 * (1.1 * 0.8) ** 2, 2 * (1.1 * 0.9 * 1.2) ** 2 / 6)[which] / 6
        assert abs(np.mean(found) - claim - more) < 6 * np.std(found) / np.sqrt(300)
        assert np.std(found) / np.sqrt(300) < 0.03 * claim


def test_norms_of_the_original_parameters_are_conserved_and_rates_drift():
    classes = SequenceClasses.single_common_token(3, 7, common=0.5, distinct=[0.3, 0.2])
    bags, rng = classes.population(), np.random.default_rng(1)
    first = original.start(rng, tokens=7, width=7, value=0.3, query=0.4, key=0.8)
    states, loss = original.simulate(bags, first, eta=0.1, times=[0.0, 40.0, 80.0], rtol=1e-9)
    for state in states:
        np.testing.assert_allclose(original.conserved(state), original.conserved(first), atol=1e-7)
    assert (np.diff(loss) < 0).all()


def test_one_rate_follows_the_induced_rates_at_first_and_leaves_them():
    found = original.against_induced(t_end=60.0, n_times=7)
    assert found["eta_y"].values[0] == pytest.approx(found.attrs["predicted_eta_y"], rel=1e-12)
    assert found.attrs["predicted_eta_y"] / found.attrs["predicted_eta_z"] == pytest.approx(13)
    start = found["loss"].values[0] - found["loss"].values[1]
    simple = found["loss_induced"].values[0] - found["loss_induced"].values[1]
    assert start == pytest.approx(simple, rel=0.25)
    assert found["eta_y"].values[-1] > 5 * found.attrs["predicted_eta_y"]


def test_refusals():
    with pytest.raises(ValueError, match="`vocab_size` must be above 5, but got 5"):
        late.slow_exponent([0.1], n_classes=5, vocab_size=5)
    with pytest.raises(ValueError, match="`overlap` must have no negative entry"):
        gradient.frozen_flow([[1, -0.1], [-0.1, 1]], vocab_size=3, ln_t=[0.0])
    with pytest.raises(ValueError, match=r"`width` must be 5, the number of tokens, .* but got 4"):
        original.start(np.random.default_rng(0), tokens=5, width=4)
    with pytest.raises(ValueError, match="`common` must be between 0 and 1, both excluded"):
        spurious.expected_number([0.0, 0.5], tokens_per_class=3, n_classes=2)
