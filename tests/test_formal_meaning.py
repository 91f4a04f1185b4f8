"""The theorems that the kernel checked, written in Python by hand and evaluated against the functions of `theory`.

Each test is named after its theorem, and computes both sides of it at random points as the source writes them. A slip
in a definition of the sources, which no kernel sees, shows here.
"""

import json
import math

import numpy as np
import pytest

from dynamics import DyckLanguage
from dynamics.data.averaging import match2, match3
from formal import checking
from theory.bounded_dyck import balance
from theory.scan_and_snap import bounds, decoder
from theory.scan_and_snap.attention import Rates, growth_bounds, relative_gain
from theory.sparse_averaging import matching, protocols

SEEDS = range(5)


def task(rng):
    """M, K, eta_Y and the decoder of `theory` that has them."""
    m = int(rng.integers(20, 3000))
    k = int(rng.integers(2, 20))
    eta = float(rng.uniform(0.1, 2))
    return m, k, eta, decoder.Decoder(m, k, eta)


def gram(rng, k, strength):
    """Gram matrix of features of norm one with entries >= 0."""
    F = np.eye(k) + strength * rng.random((k, k)) * (rng.random((k, k)) < 0.5)
    F /= np.linalg.norm(F, axis=0)
    return F.T @ F


@pytest.mark.parametrize("seed", SEEDS)
def test_lemma6_closed_form(seed):
    rng = np.random.default_rng(seed)
    m, _, eta, found = task(rng)
    t = rng.uniform(0, 500, 20)
    h = found.h(t)
    np.testing.assert_allclose(np.exp(m * h) + (m - 1) * (m * h), m * eta * t + 1, rtol=1e-12)
    rate = eta / (m - 1 + np.exp(m * h))  # `rate` of Growth.v
    slope = (found.h(t + 1e-4) - found.h(t)) / 1e-4
    np.testing.assert_allclose(slope, rate, rtol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_lemma7_bound_and_lemma7_lag(seed):
    m, _, eta, found = task(np.random.default_rng(seed))
    s = np.arange(400)
    steps, h = found.h_steps(399), found.h(s)
    assert ((steps - h >= -1e-15) & (steps - h <= eta / m)).all()
    early = s <= math.log(m) / eta
    assert (steps[early] <= found.h(s[early] + 0.5) + 1e-15).all()


def test_remark2_is_false():
    # For c = 3 and s_1 = 500 there is such an s below 2000.
    found, s = decoder.Decoder(20, 1, 0.9), np.arange(2001)
    late = s > 500
    assert (found.h(s[late] + 3.0) < found.h_steps(2000)[late]).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_lemma5(seed):
    rng = np.random.default_rng(seed)
    m, n, eta = int(rng.integers(2, 40)), 1, float(rng.uniform(0.1, 2))
    zeta = m / (m - 1) * (np.arange(m) == n) - 1 / (m - 1)
    row, steps = np.zeros(m), decoder.Decoder(m, 1, eta).h_steps(30)
    for h in steps:
        np.testing.assert_allclose(row, (m - 1) * h * zeta, rtol=1e-12, atol=1e-14)
        residual = (np.arange(m) == n) - np.exp(row) / np.exp(row).sum()
        np.testing.assert_allclose(residual, (m - 1) / (m - 1 + np.exp(m * h)) * zeta, rtol=1e-10, atol=1e-14)
        row = row + eta * residual


@pytest.mark.parametrize("seed", SEEDS)
def test_peak_of_gamma_and_its_brackets(seed):
    m, k, eta, found = task(np.random.default_rng(seed))
    peak = found.transition_time
    x = m * found.h(peak / k)  # u*
    assert (x - 1) * math.exp(x - 1) == pytest.approx((m - 1) / math.e, rel=1e-9)
    assert peak == pytest.approx(k * (math.exp(x) + (m - 1) * x - 1) / (m * eta), rel=1e-12)
    assert found.peak_gamma == pytest.approx((m - 1) / m * (x - 1), rel=1e-12)
    t = peak * np.array([0.01, 0.3, 0.9, 1.1, 3, 100])
    h = found.h(t / k)
    np.testing.assert_allclose(found.gamma(t), (m - 1) ** 2 * h / (m - 1 + np.exp(m * h)), rtol=1e-12)
    assert (found.gamma(t) < found.peak_gamma).all()
    assert peak <= found.scanning_time < found.snapping_time  # M >= 19
    few = decoder.Decoder(18, min(k, 18), eta)
    assert few.scanning_time < few.transition_time < few.snapping_time


@pytest.mark.parametrize("seed", SEEDS)
def test_theorem1_and_theorem1a_sharp(seed):
    rng = np.random.default_rng(seed)
    k, m = 6, 200
    G = gram(rng, k, 0.1)
    u = bounds.inner_coefficients(k, m)
    assert u[0, 0] == pytest.approx(m / (m - 1)) and u[1, 0] == pytest.approx(-m / (m - 1) ** 2)
    beta = -np.linalg.inv(G) @ u  # column n has beta_nn'
    xi = [sum(beta[a, n] * G[n, a] for a in range(k) if a != n) for n in range(k)]
    np.testing.assert_allclose(xi, bounds.xi_over_gamma(G, m), rtol=1e-9)
    largest = np.abs(np.linalg.eigvalsh(G - np.eye(k))).max()
    assert largest < 1 / math.sqrt(k - 2)
    assert (np.array(xi) > 0).all()


@pytest.mark.parametrize("k", [4, 5, 9])
def test_bound_of_theorem1a_is_sharp(k):
    m, root = 1000, 1 / math.sqrt(k - 2)
    s = min(1.05**2, (1 + k - 2) / 2)  # lambda is 5% above the root
    r = math.sqrt((1 + s) / 2)
    e, w = min((s - 1) / (2 * (k - 2)), (r - 1) / (2 * (m - 1))), r / (k - 2)
    G = np.eye(k)
    G[0, 1:] = G[1:, 0] = [e] + [w] * (k - 2)
    assert root < np.linalg.norm(G - np.eye(k), 2) <= 1.05 * root
    assert bounds.xi_over_gamma(G, m)[1] < 0


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_overlaps(seed):
    rng = np.random.default_rng(seed)
    m, k, rho = int(rng.integers(2, 500)), int(rng.integers(2, 20)), float(rng.uniform(0.01, 0.99))
    beta = m * (1 + (m - 1) * rho) / ((m - 1) ** 2 * (1 - rho) * (1 + (k - 1) * rho))
    G = (1 - rho) * np.eye(k) + rho
    np.testing.assert_allclose(bounds.xi_over_gamma(G, m), (k - 1) * rho * beta, rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_equation_128_theorem4_exponent_and_equation_124_as_printed_is_false(seed):
    rng = np.random.default_rng(seed)
    m, k, eta, found = task(rng)
    eta_z, c0, t = float(rng.uniform(0.01, 1)), float(rng.uniform(0.1, 50)), rng.uniform(1, 300, 9)
    rates = Rates(m, k, eta, eta_z)
    total = eta_z * k * (m - 1) ** 2 * found.h(t / k) ** 2 / (2 * eta)
    np.testing.assert_allclose(rates.gamma_integral(t, eta_z=eta_z), total, rtol=1e-12)
    exponent = rates.growth_exponent(t, c0=c0)
    np.testing.assert_allclose(np.exp(4 * exponent), 1 + 4 * total / c0, rtol=1e-10)
    gap = rates.printed_growth_exponent(t, c0=c0) - exponent
    np.testing.assert_allclose(gap, math.log(c0) / 4, rtol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_theorem3_relative_gain_and_theorem3_bounds(seed):
    # The flow of Gain.v by small steps: four distinct tokens, q = 1, B = t, and a fifth one that falls.
    rng = np.random.default_rng(seed)
    p = np.sort(rng.uniform(0.1, 1, 5))[::-1]
    z, steps, end = np.zeros(5), 20_000, 1.5

    def share(z):
        return p * np.exp(z) / np.linalg.norm(p * np.exp(z))

    start = share(z)
    for _ in range(steps):
        middle = share(z + end / steps / 2 * np.append(share(z)[:4] ** 2, -0.3))
        z = z + end / steps * np.append(middle[:4] ** 2, -0.3)
    chi = np.exp(2 * z)
    np.testing.assert_allclose(
        relative_gain(share(z)[0], share(z)[1:4]), relative_gain(start[0], start[1:4]) * chi[0], rtol=1e-6
    )
    low, high = growth_bounds(end, start[0])
    assert low <= chi[0] <= high
    assert share(z)[0] >= start[0]


def test_lemma11_as_printed_is_false():
    m, eta, gap = 1000, 0.5, 18
    inverse = m - 1 + np.exp(m * decoder.Decoder(m, 4, eta).h(np.array([25.0, 25.0 - gap])))
    assert inverse[0] / inverse[1] - 1 > eta * gap / 3


@pytest.mark.parametrize("seed", SEEDS)
def test_balance_of_values(seed):
    language = DyckLanguage(2, 3)
    layer = balance.balanced_layer(language, rng=seed)
    opens, closes = (states.ravel() for states in balance.pairs(language))
    for o, c in zip(opens, closes, strict=True):
        difference = layer.Z[:, o] - layer.Z[:, c]
        np.testing.assert_allclose(difference, difference[0], atol=1e-9)  # (11)
        np.testing.assert_allclose(layer.V[c], -np.exp(difference[0]) * layer.V[o], rtol=1e-9)
    sizes = np.abs(balance.contributions(layer, language)).max()
    assert np.abs(balance.insertions(layer, language)).max() < 1e-12 * sizes


@pytest.mark.parametrize("seed", SEEDS)
def test_match2_errors_and_match3_errors(seed):
    rng = np.random.default_rng(seed)
    n, m, eta = int(rng.integers(2, 9)), int(rng.integers(2, 30)), float(rng.uniform(0.01, 0.4))
    x, o = rng.integers(0, m, n), (1 - eta) / eta
    turn = np.cos(2 * np.pi * np.arange(3 * m) / m)  # of Match.v
    c = (math.log(n) + 2 * math.log(o)) / (1 - math.cos(2 * math.pi / m))
    pair = np.exp(c * (turn[x[:, None] + x] - 1)).sum(axis=1)
    out = pair / (pair + math.exp(c * (1 - math.log(o) / c) - c))
    unit = matching.match2(n_tokens=n, modulus=m, error=eta)
    np.testing.assert_allclose(out, unit(x), atol=1e-9)
    assert (np.abs(out - match2(x, m)) <= eta + 1e-12).all()
    g = min(1, 1 - math.cos(2 * math.pi / m))
    c = (math.log(n**2 + 2 * n) + 2 * math.log(o)) / g
    triple = np.exp(c * (turn[x[:, None, None] + x[:, None] + x] - 1)).sum(axis=(1, 2))
    zeros = 2 * n * math.exp(-c) + (1 - 2 / ((n + 2) * o)) / o
    out, unit = triple / (triple + zeros), matching.match3_tensor(n_tokens=n, modulus=m, error=eta)
    np.testing.assert_allclose(out, unit(x), atol=1e-9)
    assert (np.abs(out - match3(x, m)) <= eta + 1e-12).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_disjointness_has_full_rank_and_intersection_lacks_rank(n):
    matrix = protocols.disjointness_matrix(n)
    assert protocols.exact_rank(matrix) == 2**n
    assert protocols.exact_rank(1 - matrix) < 2**n


@pytest.mark.parametrize("seed", SEEDS)
def test_linear_query_rank(seed):
    rng = np.random.default_rng(seed)
    n, q, kappa = 9, 4, rng.normal()
    delta, shifts = rng.uniform(0.1, 2, n), rng.normal(size=n)
    A = np.diag(delta) + shifts[:, None] + (kappa - delta) / q  # `form`, row j and column i
    assert np.linalg.matrix_rank(A) >= n - 1
    y = rng.permutation(n)[:q]
    score = A[y].sum(axis=0)
    np.testing.assert_allclose(score[y], score[y[0]])
    off = np.setdiff1d(np.arange(n), y)
    np.testing.assert_allclose(score[y[0]] - score[off], delta[off])


def test_tests_are_named_after_theorems():
    names = {row["theorem"] for row in json.loads(checking.TABLE.read_text())}
    own = [name for name in globals() if name.startswith("test_") and name != "test_tests_are_named_after_theorems"]
    assert all(any(theorem in name for theorem in names) for name in own)
