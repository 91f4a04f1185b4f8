"""The theorems on Scan and Snap that the kernel checked, written in Python by hand, against the functions of `theory`.

Each test computes both sides of its theorems at random points as the source writes them. A slip in a definition of the
sources, which no kernel sees, shows here.
"""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
from meaning import SEEDS, evaluates, features, gram

from dynamics import Bags, Layer, SequenceClasses
from theory.scan_and_snap import bounds, decoder, overlaps
from theory.scan_and_snap.attention import Rates, growth_bounds, relative_gain


def task(rng):
    """M, K, eta_Y and the decoder of `theory` that has them."""
    m = int(rng.integers(20, 3000))
    k = int(rng.integers(2, 20))
    eta = float(rng.uniform(0.1, 2))
    return m, k, eta, decoder.Decoder(m, k, eta)


@evaluates("lemma6_closed_form", "lemma6_existence")
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


@evaluates("lemma7_bound", "lemma7_lag")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_lead_of_the_steps(seed):
    m, _, eta, found = task(np.random.default_rng(seed))
    s = np.arange(400)
    steps, h = found.h_steps(399), found.h(s)
    assert ((steps - h >= -1e-15) & (steps - h <= eta / m)).all()
    early = s <= math.log(m) / eta
    assert (steps[early] <= found.h(s[early] + 0.5) + 1e-15).all()


@evaluates("remark2_is_false")
def test_remark2_is_false():
    # For c = 3 and s_1 = 500 there is such an s below 2000.
    found, s = decoder.Decoder(20, 1, 0.9), np.arange(2001)
    late = s > 500
    assert (found.h(s[late] + 3.0) < found.h_steps(2000)[late]).any()


@evaluates("lemma5")
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


@evaluates(
    "peak_of_gamma",
    "peak_before_first_bracket",
    "peak_behind_first_bracket_for_few_tokens",
    "peak_before_second_bracket",
)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_peak_of_gamma(seed):
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


@evaluates("theorem1a_sharp")
@pytest.mark.parametrize("seed", SEEDS)
def test_xi_of_theorem1a(seed):
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


@evaluates("bound_of_theorem1a_is_sharp")
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


@evaluates("equal_overlaps")
@pytest.mark.parametrize("seed", SEEDS)
def test_equal_overlaps(seed):
    rng = np.random.default_rng(seed)
    m, k, rho = int(rng.integers(2, 500)), int(rng.integers(2, 20)), float(rng.uniform(0.01, 0.99))
    beta = m * (1 + (m - 1) * rho) / ((m - 1) ** 2 * (1 - rho) * (1 + (k - 1) * rho))
    G = (1 - rho) * np.eye(k) + rho
    np.testing.assert_allclose(bounds.xi_over_gamma(G, m), (k - 1) * rho * beta, rtol=1e-9)


@evaluates("equation_128", "theorem4_exponent", "equation_124_as_printed_is_false")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_exponent_of_theorem4(seed):
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


@evaluates("theorem3_relative_gain", "theorem3_bounds", "theorem3_dominant_attention")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_flow_of_theorem3(seed):
    # The flow of Gain.v by small steps: four distinct tokens, q = 1, B = t, and a fifth one that falls.
    rng = np.random.default_rng(seed)
    p = np.sort(rng.uniform(0.1, 1, 5))[::-1]
    z, steps, end = np.zeros(5), 4000, 1.5

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


@evaluates("lemma11_as_printed_is_false")
def test_lemma11_as_printed_is_false():
    m, eta, k, n_steps = 10**100, 0.1, 2, 4798
    mean, gap = n_steps // k, math.floor(math.sqrt(n_steps * math.log(1 / 0.05)))
    assert (mean, gap) == (2399, 119)
    # All that the lemma calls much smaller is by a factor of ten or more.
    assert n_steps >= 10 * k**2 and mean >= 10 * gap and math.log(m) >= 10 * eta * gap / 3
    x = [  # M h by (45), over M
        scipy.optimize.brentq(lambda x, s=s: math.exp(x) / m + x - eta * s, 0, eta * s, xtol=1e-12)
        for s in (mean, mean - gap)
    ]
    late, early = (1 + math.exp(one) / m for one in x)
    assert late / early - 1 == pytest.approx(1.73 * eta * gap / 3, rel=1e-3)


@evaluates("lemma6_uniqueness")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_solution_is_the_same(seed):
    m, _, eta, found = task(np.random.default_rng(seed))
    t = np.linspace(0, 100, 9)
    other = scipy.integrate.solve_ivp(
        lambda t, h: eta / (m - 1 + np.exp(m * h)), (0, 100), [0.0], t_eval=t, rtol=1e-11, atol=1e-15
    )
    np.testing.assert_allclose(other.y[0], found.h(t), rtol=1e-7, atol=1e-15)


@evaluates("lemma7b")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_lead_of_the_steps_vanishes(seed):
    m, _, eta, found = task(np.random.default_rng(seed))
    s = np.array([10**3, 10**4, 10**5])
    gap = m * (found.h_steps(s[-1])[s] - found.h(s))
    late = s > 10 * math.log(m) / eta
    assert late[-1] and (gap[late] > 0).all() and gap[-1] < 1e-3
    # The proof's rate is 1/sqrt(s), the true one about ln(s)/s.
    assert (np.diff(gap[late]) < 0).all()


@evaluates("peak_margin_exists_once")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_peak_margin(seed):
    m, *_ = task(np.random.default_rng(seed))
    margins = np.linspace(1, 2 + math.log(m), 10_000)
    left = (margins - 1) * np.exp(margins - 1) - (m - 1) / math.e
    assert (np.diff(left > 0)).sum() == 1  # it changes its sign once
    u = 1 + scipy.special.lambertw((m - 1) / math.e).real
    assert margins[np.argmax(left > 0) - 1] <= u <= margins[np.argmax(left > 0)]


def sequence(rng, m, length):
    """X as one-hot rows, the query and the next token, Y and Z."""
    x = rng.integers(0, m, length)
    return np.eye(m)[x], int(rng.integers(m)), int(rng.integers(m)), rng.normal(size=(m, m)), rng.normal(size=(m, m))


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


@evaluates("lemma1", "zero_sums")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_gradients_of_lemma1(seed):
    rng = np.random.default_rng(seed)
    m, length = int(rng.integers(2, 7)), int(rng.integers(1, 12))
    X, query, following, Y, Z = sequence(rng, m, length)

    def objective(Y, Z):
        v = X.T @ softmax(X @ Z[query])
        return np.log(softmax(Y.T @ (v / np.linalg.norm(v)))[following])

    b = softmax(X @ Z[query])
    v = X.T @ b
    f, size = v / np.linalg.norm(v), np.linalg.norm(v)
    residual = np.eye(m)[following] - softmax(Y.T @ f)
    G_Y = np.outer(f, residual)
    perp = np.eye(m) - np.outer(v, v) / (v @ v)
    G_Z = np.outer(np.eye(m)[query], residual @ Y.T @ (perp / size) @ X.T @ np.diag(b) @ X)
    D, d, s = rng.normal(size=(m, m)), rng.normal(size=(m, m)), 1e-5
    slope = (objective(Y + s * D, Z + s * d) - objective(Y - s * D, Z - s * d)) / (2 * s)
    assert slope == pytest.approx((G_Y * D).sum() + (G_Z * d).sum(), rel=1e-5, abs=1e-8)
    counts = X.sum(axis=0, keepdims=True)
    own = Layer(Z, Y).gradient(Bags.from_dense([query], np.eye(m)[[following]], counts))
    np.testing.assert_allclose(own.Y, G_Y, atol=1e-12)
    np.testing.assert_allclose(own.Z, G_Z, atol=1e-12)
    np.testing.assert_allclose(G_Y.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(G_Z.sum(axis=1), 0, atol=1e-12)


@evaluates("lemma3_step")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_step_of_lemma3(seed):
    rng = np.random.default_rng(seed)
    m, k, n, eta = 9, 4, int(rng.integers(4)), float(rng.uniform(0.1, 2))
    F, r = features(rng, m, k, 0.5), rng.normal(size=m)
    correction = np.eye(k) - np.linalg.inv(F.T @ F)  # E'
    step = eta * np.outer(F[:, n] - F @ correction[:, n], r)
    np.testing.assert_allclose(F.T @ step, eta * np.outer(np.eye(k)[n], r), atol=1e-12)


def signals(rng, m, k):
    """Features, beta and iota of Theorem 1, and the signals Y r_n that it says."""
    F = features(rng, m, k, 0.3)
    inverse, u = np.linalg.inv(F.T @ F), bounds.inner_coefficients(k, m)
    beta, iota = -(inverse @ u).T, np.diag(inverse @ u)  # beta[n, n']
    h = float(rng.uniform(0.01, 0.3))
    gamma = (m - 1) ** 2 * h / (m - 1 + math.exp(m * h))
    zeta = m / (m - 1) * (np.eye(k, m) - 1 / m)
    Y = F @ inverse @ ((m - 1) * h * zeta)
    sent = ((m - 1) / (m - 1 + math.exp(m * h)) * zeta) @ Y.T  # row n is Y r_n
    return F, inverse, beta, iota, gamma, zeta, h, Y, sent


@evaluates("theorem1")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_signal_of_theorem1(seed):
    rng = np.random.default_rng(seed)
    F, _, beta, iota, gamma, *_, sent = signals(rng, 12, 5)
    others = beta * (1 - np.eye(5))
    np.testing.assert_allclose(sent, gamma * (iota[:, None] * F.T - others @ F.T), atol=1e-12)


@evaluates("equations_86_to_88", "equation_88_as_printed_is_false")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_signal_under_other_visits(seed):
    rng = np.random.default_rng(seed)
    m, k = 12, 4
    F, inverse, _, _, gamma, zeta, h, *_ = signals(rng, m, k)
    theta, sigma = rng.uniform(-0.3, 0.3, k), float(rng.uniform(-0.3, 0.3))
    correction, u = np.eye(k) - inverse, bounds.inner_coefficients(k, m)
    Y = F @ inverse @ ((m - 1) * h * (1 + theta)[:, None] * zeta)
    sent = (1 + sigma) * ((m - 1) / (m - 1 + math.exp(m * h)) * zeta) @ Y.T
    for formula, right in ((overlaps._signal_corrected, True), (overlaps._signal_printed, False)):
        for n in range(k):
            others = [c for c in range(k) if c != n]
            beta = [(1 + sigma) * formula(theta, correction, n, c, u[0, 0], u[0, 1]) for c in others]
            rest = sum((1 + theta[c]) * correction[c, n] for c in others)
            iota = (1 + sigma) * (u[0, 0] * (1 + theta[n]) * (1 - correction[n, n]) - u[0, 1] * rest)
            found = gamma * (iota * F[:, n] - F[:, others] @ beta)
            assert np.allclose(sent[n], found, atol=1e-10) is right


def equation10(eta, gamma, psi, beta, F, m):
    """(10) at query m, for all tokens."""
    k = F.shape[1]
    found = np.zeros(len(F))
    for n in range(k):
        if psi[n] == m:
            pulls = [beta[n, c] * (F[:, n] * (F[:, n] @ F[:, c]) - F[:, c]) for c in range(k) if c != n]
            found += gamma / k * F[:, n] * sum(pulls)
    return eta * found


@evaluates("lemma4")
@pytest.mark.parametrize("seed", SEEDS)
def test_equation10_is_the_expected_gradient(seed):
    # At Y of Theorem 1 the residual of a class is exactly that of h, so that `dynamics` has the same gradient.
    rng = np.random.default_rng(seed)
    m, k = 8, 4
    P = np.eye(k, m) + 0.3 * rng.random((k, m))
    P /= P.sum(axis=1, keepdims=True)
    F = (P / np.linalg.norm(P, axis=1, keepdims=True)).T
    psi = rng.integers(0, 2, k)
    inverse, u = np.linalg.inv(F.T @ F), bounds.inner_coefficients(k, m)
    beta, h, eta = -(inverse @ u).T, 0.1, float(rng.uniform(0.1, 2))
    gamma = (m - 1) ** 2 * h / (m - 1 + math.exp(m * h))
    Y = F @ inverse @ ((m - 1) * h * m / (m - 1) * (np.eye(k, m) - 1 / m))
    classes = SequenceClasses(P, psi, vocab_size=m)
    slopes = eta * Layer(np.zeros((len(classes.query_tokens), m)), Y).gradient(classes.population()).Z
    for row, query in enumerate(classes.query_tokens):
        np.testing.assert_allclose(slopes[row], equation10(eta, gamma, psi, beta, F, query), atol=1e-12)


@evaluates("theorem2a", "theorem2b")
@pytest.mark.parametrize("seed", SEEDS)
def test_signs_of_theorem2(seed):
    rng = np.random.default_rng(seed)
    m, k, eta = 9, 4, float(rng.uniform(0.1, 2))
    # Token 0 is common, the others are distinct to one class.
    F = np.zeros((m, k))
    F[0] = rng.uniform(0.05, 0.2, k)
    F[np.arange(1, m), np.arange(m - 1) % k] = rng.uniform(0.5, 1, m - 1)
    F /= np.linalg.norm(F, axis=0)
    psi, G = rng.integers(0, 2, k), F.T @ F
    beta, gamma = -(np.linalg.inv(G) @ bounds.inner_coefficients(k, m)).T, float(rng.uniform(0.1, 2))
    xi = gamma * bounds.xi_over_gamma(G, m)
    assert (xi > 0).all()
    for query in set(psi):
        moved = equation10(eta, gamma, psi, beta, F, query)
        own = [n for n in range(k) if psi[n] == query]
        for token in range(1, m):
            n = (token - 1) % k
            if n in own:
                assert moved[token] == pytest.approx(eta / k * F[token, n] ** 2 * xi[n]) and moved[token] > 0
        fall = -eta / k * sum((1 - F[0, n] ** 2) * xi[n] for n in own)
        assert moved[0] == pytest.approx(fall) and moved[0] < 0


@evaluates("corollary2")
@pytest.mark.parametrize("seed", SEEDS)
def test_common_tokens_of_corollary2_fall(seed):
    rng = np.random.default_rng(seed)
    k, shared, own = int(rng.integers(2, 6)), 3, 2
    m = shared + k * own
    c = np.zeros((m, k))
    c[:shared] = rng.uniform(0.05, 1, shared)[:, None]
    weights = rng.uniform(0.1, 1, own)
    for n in range(k):
        c[shared + n * own : shared + (n + 1) * own, n] = weights  # squares of one sum in all classes
    F = c / np.linalg.norm(c, axis=0)
    beta = -(np.linalg.inv(F.T @ F) @ bounds.inner_coefficients(k, m)).T
    moved = equation10(1.0, float(rng.uniform(0.1, 2)), np.zeros(k, int), beta, F, 0)
    assert (moved[:shared] < 0).all()


@evaluates("theorem1a")
@pytest.mark.parametrize("seed", SEEDS)
def test_xi_under_assumption_2(seed):
    rng = np.random.default_rng(seed)
    k, m = 4, 20_000
    drawn = 0
    while drawn < 20:
        G = gram(rng, k, 0.4)
        eigenvalues = np.linalg.eigvalsh(G - np.eye(k))
        if np.abs(eigenvalues).max() < 1 / k and np.abs(eigenvalues).min() >= 6 / math.sqrt(m):
            drawn += 1
            assert (bounds.xi_over_gamma(G, m) > 0).all()


@evaluates("remark1_step_needs_all_tokens")
def test_zeta_adds_up_to_zero_over_all_tokens_only():
    for m in range(2, 8):
        zeta = m / (m - 1) * (np.eye(m) - 1 / m)
        assert [k for k in range(1, m + 1) if np.allclose(zeta[:k].sum(axis=0), 0)] == [m]


@evaluates("theorem1b_early", "theorem1b_late")
@pytest.mark.parametrize("seed", SEEDS)
def test_stages_of_gamma(seed):
    m, k, eta, found = task(np.random.default_rng(seed))
    t = np.geomspace(1e-3, 1e5, 200)
    gamma, x, tau = found.gamma(t), m * found.h(t / k), eta * t / k
    share = ((m - 1) / m) ** 2
    assert (gamma <= share * tau * (1 + 1e-12)).all()
    late = ((m - 1) * x >= 1) & ((m - 1) * x <= np.exp(x))
    assert late.any() and (gamma <= 2 * share * np.log(m * tau) / tau)[late].all()


@evaluates("lemma11_corrected", "lemma11_growth", "lemma11_late")
@pytest.mark.parametrize("seed", SEEDS)
def test_growth_and_residual_under_other_visits(seed):
    rng = np.random.default_rng(seed)
    m, _, eta, found = task(rng)
    s, t = rng.uniform(0, 300, (2, 200))
    h = found.h(np.stack([s, t]))
    G = 1 / (m - 1 + np.exp(m * h))
    gap = eta * np.abs(s - t)
    assert (np.abs(G[0] - G[1]) <= G[1] * gap * (1 + 1e-9)).all()
    assert (np.abs(np.log(G[0] / G[1])) <= m * gap / (4 * (m - 1)) * (1 + 1e-9) + 1e-15).all()
    assert (np.abs(h[0] - h[1]) <= h[1] * np.abs(s - t) / t * (1 + 1e-9)).all()
    x = m * h[0]
    elasticity = s * m * eta * np.exp(x) / (m - 1 + np.exp(x)) ** 2  # of `is_derive_ln_G`
    by_step = -s * (np.log(m - 1 + np.exp(m * found.h(s + 1e-4))) - np.log(m - 1 + np.exp(x))) / 1e-4
    np.testing.assert_allclose(-by_step, elasticity, rtol=2e-3, atol=1e-6)
    assert (elasticity[(m - 1) * x <= np.exp(x)] <= 2).all()


@evaluates("lemma10_as_printed_is_false")
def test_the_second_inequality_of_lemma10():
    x = np.linspace(0, 30, 3001)
    holds = np.sqrt(x / 2) + 1 < np.sqrt(x)
    assert not holds[x <= 11.6].any() and holds[x >= 11.7].all()


@evaluates("lemma8_needs_four_tokens")
def test_few_tokens_have_no_crossing():
    x = np.linspace(-5, 5, 2001)
    assert [m for m in (2, 3, 4) if ((m - 1) * x < np.exp(x)).all()] == [2, 3]
    low, high = bounds.crossings(4)
    np.testing.assert_allclose([math.exp(low) - 3 * low, math.exp(high) - 3 * high], 0, atol=1e-9)
