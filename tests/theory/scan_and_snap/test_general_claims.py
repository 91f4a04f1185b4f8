"""Claims of the proofs for all sizes against the layer's gradient and the theory flow at some."""

import functools

import numpy as np
import pytest
import sympy as sp

from dynamics import Bags, Layer, SequenceClasses, gradient_flow
from theory import decoder
from theory.scan_and_snap import bounds
from theory.scan_and_snap.proofs import corollary2, lemma1, lemma4, slowdown, theorem1, theorem2
from theory.symbolic.indexed import entries, index, value_at

TOKENS, NEXT, QUERIES, BAGS = 5, 5, 2, 3


def of(array):
    """The entries of an array as a function of indices from 1."""
    return lambda *place: array[tuple(one - 1 for one in place)]


def test_lemma_1_is_the_gradient_of_the_layer():
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 4, size=(BAGS, TOKENS)) + np.eye(BAGS, TOKENS)
    bags = Bags.from_dense([0, 1, 0], [2, 4, 1], counts, [0.5, 0.2, 0.3], vocab_size=NEXT, n_queries=QUERIES)
    layer = Layer(Z=rng.normal(size=(QUERIES, TOKENS)), Y=rng.normal(size=(TOKENS, NEXT)))
    slopes = layer.gradient(bags)
    features = layer.features(bags)
    residual = np.eye(NEXT)[bags.target] - layer.predict(bags)
    f, g, r = entries("f"), entries("g"), entries("r")
    j, k = index("j", lemma1.M), index("k", lemma1.M)
    by_y = lemma1.decoder_rate(f.__getitem__, r.__getitem__, j, k)
    by_z = lemma1.bag_rate(f.__getitem__, g.__getitem__, j)
    found_y, found_z = np.zeros((TOKENS, NEXT)), np.zeros((QUERIES, TOKENS))
    for bag, weight in enumerate(bags.weight):
        given = {"f": of(features[bag]), "r": of(residual[bag]), "g": of(layer.Y @ residual[bag])}
        for token in range(TOKENS):
            at = {j: token + 1}
            found_z[bags.query[bag], token] += weight * value_at(by_z, {"M": TOKENS}, at=at, given=given)
            for column in range(NEXT):
                here = {**at, k: column + 1}
                found_y[token, column] += weight * value_at(by_y, {"M": TOKENS}, at=here, given=given)
    np.testing.assert_allclose(found_y, slopes.Y, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found_z, slopes.Z, rtol=1e-11, atol=1e-14)


@functools.cache
def theory_flow():
    """Three classes of which two share a query, unequal overlaps; one token is common to all, each has others."""
    probabilities = np.zeros((3, 6))
    probabilities[:, 0] = 0.4, 0.5, 0.2
    probabilities[0, 1:3] = 0.4, 0.2
    probabilities[1, 3] = 0.5
    probabilities[2, 4:6] = 0.3, 0.5
    classes = SequenceClasses(probabilities, [0, 1, 0], vocab_size=9)
    rates = {"eta_y": 1.0, "eta_z": 0.2, "t_end": 8.0, "times": [0.0, 8.0], "rtol": 1e-12, "atol": 1e-15}
    data = gradient_flow(classes, decoder="theory", **rates).dataset.isel(time=1)
    shares = data["attention"].values
    features = (shares / np.linalg.norm(shares, axis=1, keepdims=True)).T
    gram = features.T @ features
    beta = -np.linalg.solve(gram, bounds.inner_coefficients(3, 9)).T
    gamma = decoder.gamma(8.0, vocab_size=9, n_classes=3, eta_y=1.0)
    return features, gram, beta, gamma, data["z_velocity"].values / 0.2


def test_lemma_4_is_the_velocity_of_the_theory_flow():
    features, gram, beta, gamma, velocity = theory_flow()
    f, b, overlap = entries("f"), entries("b"), entries("G")
    m, token = index("m", lemma4.M), index("l", lemma4.M)
    rate = lemma4.rate(
        lambda n: f[token, n],
        lambda n, o: overlap[n, o],
        lambda n, o: b[n, o],
        sp.Symbol("gamma"),
        lambda n: sp.Rational(1, 3),
        lambda n: sp.KroneckerDelta(lemma4.QUERY(n), m),
    )
    given = {"f": of(features), "G": of(gram), "b": of(beta), "gamma": lambda: gamma, "psi": lambda n: [1, 2, 1][n - 1]}
    sizes = {"K": 3, "M": 6}
    found = [
        [float(value_at(rate, sizes, at={m: query, token: one}, given=given)) for one in range(1, 7)]
        for query in (1, 2)
    ]
    np.testing.assert_allclose(found, velocity, rtol=1e-7, atol=1e-10)


def test_theorem_2_is_the_velocity_of_the_theory_flow():
    features, gram, beta, gamma, velocity = theory_flow()
    xi = gamma * (beta * gram * (1 - np.eye(3))).sum(axis=1)
    for n, query, tokens in ((0, 0, (1, 2)), (1, 1, (3,)), (2, 0, (4, 5))):
        for token in tokens:
            found = float(theorem2.distinct_rate(sp.Rational(1, 3), features[token, n], xi[n]))
            assert found == pytest.approx(velocity[query, token], rel=1e-7)
    common = [float(theorem2.common_rate(sp.Rational(1, 3), features[0, n], xi[n])) for n in range(3)]
    assert common[0] + common[2] == pytest.approx(velocity[0, 0], rel=1e-7)
    assert common[1] == pytest.approx(velocity[1, 0], rel=1e-7)


def test_corollary_2_is_the_velocity_of_the_theory_flow():
    n_classes, vocab_size = 4, 20
    probabilities = np.zeros((n_classes, 2 + 2 * n_classes))
    probabilities[:, :2] = 0.25, 0.1
    for n in range(n_classes):
        probabilities[n, 2 + 2 * n : 4 + 2 * n] = 0.4, 0.25
    classes = SequenceClasses(probabilities, [0] * n_classes, vocab_size=vocab_size)
    rates = {"eta_y": 1.0, "eta_z": 0.3, "t_end": 9.0, "times": [0.0, 9.0], "rtol": 1e-12, "atol": 1e-15}
    data = gradient_flow(classes, decoder="theory", **rates).dataset.isel(time=1)
    shares = data["attention"].values
    features = shares / np.linalg.norm(shares, axis=1, keepdims=True)
    rho = features[0] @ features[1]
    gamma = decoder.gamma(9.0, vocab_size=vocab_size, n_classes=n_classes, eta_y=1.0)
    speed = gamma * theorem1.beta(vocab_size, n_classes, rho)
    velocity = data["z_velocity"].values[0] / 0.3
    for token in range(2):
        found = corollary2.common_rate(features[0, token], rho, speed, n_classes)
        assert float(found) == pytest.approx(velocity[token], rel=1e-7) and velocity[token] < 0
    for n in range(n_classes):
        for token in (2 + 2 * n, 3 + 2 * n):
            found = corollary2.distinct_rate(features[n, token], rho, speed, n_classes)
            assert float(found) == pytest.approx(velocity[token], rel=1e-7)


def test_the_two_late_margins_move_as_softmax_moves_them():
    """With three numbers a, b, c in V the margins of the logits G V are two, and their rates those of the proof."""
    k, m, rho, a, b, c = 3, 8, 0.3, 2.0, -0.4, -0.7
    gram = (1 - rho) * np.eye(k) + rho
    V = np.full((k, m), c)
    V[:, :k] = b + (a - b) * np.eye(k)

    def margins(weights):
        logits = gram @ weights
        return np.array([logits[0, 0] - logits[0, 1], logits[0, 0] - logits[0, -1]])

    logits = gram @ V
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    u, w = margins(V)
    u_rate, w_rate = margins(np.eye(k, m) - shares)
    below = 1 + (k - 1) * np.exp(-u) + (m - k) * np.exp(-w)
    kappa = (1 + (m - 1) * rho) / (1 - rho)
    assert w_rate - u_rate == pytest.approx(-(1 - rho) / below * np.exp(-w) * (np.exp(w - u) - kappa), rel=1e-12)
    found = float(slowdown.late_rate(m, k, rho, np.exp(w - u))) / below
    assert np.exp(u) * u_rate == pytest.approx(found, rel=1e-12)
