"""Numerical checks of Scan and Snap that need no simulation: growth of the decoder, visits of classes, overlaps.

Every function takes runs and a level, like those of `theory.scan_and_snap.measures`, and looks at the sizes, rates and
overlaps of the setting only. Probabilities are exact sums of the binomial law, so that a check raises no false alarm.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln, lambertw

from theory.scan_and_snap import attention, decoder
from theory.statements import Runs


def sizes(runs: Runs) -> dict:
    """M and K of the setting, by the names that `theory.scan_and_snap.decoder` has for them."""
    return {"vocab_size": runs.setting.classes.vocab_size, "n_classes": runs.setting.classes.n_classes}


def decoder_arguments(runs: Runs) -> dict:
    """The same with eta_Y."""
    return {**sizes(runs), "eta_y": runs.setting.eta_y}


def lemma6(runs: Runs, level: str) -> float:
    """(45) at log-spaced times."""
    vocab_size, eta_y = runs.setting.classes.vocab_size, runs.setting.eta_y
    times = np.geomspace(1e-3, runs.setting.t_end, 50)
    x = vocab_size * decoder.h(times, vocab_size=vocab_size, eta_y=eta_y)
    scaled = vocab_size * eta_y * times
    return float(np.abs((np.expm1(x) + (vocab_size - 1) * x) / scaled - 1).max())


def _step_gap(runs: Runs) -> np.ndarray:
    """h* - h after each step of a class, in units of eta_Y / M."""
    vocab_size, eta_y = runs.setting.classes.vocab_size, runs.setting.eta_y
    n_steps = int(np.ceil(runs.setting.t_end))
    discrete = decoder.h_steps(n_steps, vocab_size=vocab_size, eta_y=eta_y)
    gap = discrete - decoder.h(np.arange(n_steps + 1.0), vocab_size=vocab_size, eta_y=eta_y)
    return gap * vocab_size / eta_y


def lemma7(runs: Runs, level: str) -> float:
    """0 <= h* - h <= 2 eta_Y / M over the steps of a class."""
    gap = _step_gap(runs)
    return float(max((-gap).max(), (gap - 2).max(), 0.0) / 2)


def lemma7_half(runs: Runs, level: str) -> float:
    """The same with half the bound."""
    gap = _step_gap(runs)
    return float(max((-gap).max(), (gap - 1).max(), 0.0))


def _lag(runs: Runs, n_steps: int) -> np.ndarray:
    """Time that h needs to reach h*(s), less s, for s = 0 .. n_steps."""
    vocab_size, eta_y = runs.setting.classes.vocab_size, runs.setting.eta_y
    x = vocab_size * decoder.h_steps(n_steps, vocab_size=vocab_size, eta_y=eta_y)
    # (45) gives the time of a margin.
    return (np.expm1(x) + (vocab_size - 1) * x) / (vocab_size * eta_y) - np.arange(n_steps + 1)


def lemma7_lag(runs: Runs, level: str) -> float:
    """h*(s) <= h(s + 1/2) for s <= ln M / eta_Y, the third clause of (a)."""
    last = int(np.log(runs.setting.classes.vocab_size) / runs.setting.eta_y)
    return float(max((_lag(runs, last) / 0.5 - 1).max(), 0.0))


# Decades of steps over which the lag of Remark 2 is followed.


_LAG_STEPS = (1_000, 100_000)


def remark2_printed(runs: Runs, level: str) -> float:
    """How much the lag still grows, relative to itself: 0 if some constant were enough."""
    lag = _lag(runs, _LAG_STEPS[1])
    return float(lag[_LAG_STEPS[1]] / lag[_LAG_STEPS[0]] - 1)


def remark2_corrected(runs: Runs, level: str) -> float:
    """Growth of the lag against that of ln(eta_Y s)/2."""
    lag = _lag(runs, _LAG_STEPS[1])
    grown = lag[_LAG_STEPS[1]] - lag[_LAG_STEPS[0]]
    return float(abs(grown / (0.5 * np.log(_LAG_STEPS[1] / _LAG_STEPS[0])) - 1))


def crossings(vocab_size: int) -> tuple[float, float]:
    """The two margins x = M h at which exp(x) = (M - 1) x, by Lambert's W; nan for M < 4, where there is none."""
    if vocab_size < 4:
        return np.nan, np.nan
    lower, upper = (float(-lambertw(-1 / (vocab_size - 1), branch).real) for branch in (0, -1))
    return lower, upper


def lemma8(runs: Runs, level: str) -> float:
    """Share of margins x = M h from far below to far above the crossings where exp(x) is on the wrong side."""
    vocab_size = runs.setting.classes.vocab_size
    low, high = crossings(vocab_size)
    if np.isnan(low):
        return 1.0
    x = np.geomspace(1e-3 * low, 10 * high, 1000)
    inside = (x >= low) & (x <= high)
    wrong = np.where(inside, x - np.log((vocab_size - 1) * x) > 0, x - np.log((vocab_size - 1) * x) <= 0)
    return float(wrong.mean())


def _sizes_around(runs: Runs) -> np.ndarray:
    """The setting's M, and others from 4 to 1e15: what is said for every M."""
    return np.unique([runs.setting.classes.vocab_size, *range(4, 200), *np.geomspace(200, 1e15, 100).astype(int)])


def lemma8_upper(runs: Runs, level: str) -> float:
    """Share of M with c' = M^omega_1/ln M outside (1/2, 2)."""
    upper = np.array([crossings(int(m))[1] for m in _sizes_around(runs)])
    log_m = np.log(_sizes_around(runs))
    constant = np.exp(upper - log_m) / log_m
    return float(((constant <= 0.5) | (constant >= 2)).mean())


def _lower_excess(runs: Runs) -> np.ndarray:
    """omega_0 M ln M: M^omega_0 = M x = x + exp(x) at the lower crossing."""
    lower = np.array([crossings(int(m))[0] for m in _sizes_around(runs)])
    return np.log1p(lower + np.expm1(lower)) * _sizes_around(runs)


def lemma8_lower_printed(runs: Runs, level: str) -> float:
    """omega_0 <= 1/(M^0.99 ln M), the order as printed with the constant 1: by how much it fails."""
    return float(max((_lower_excess(runs) * _sizes_around(runs) ** -0.01).max() - 1, 0.0))


def lemma8_lower_corrected(runs: Runs, level: str) -> float:
    """omega_0 against 2/(M ln M) for M >= 100."""
    return float(np.abs(_lower_excess(runs)[_sizes_around(runs) >= 100] / 2 - 1).max())


def remark3(runs: Runs, level: str) -> float:
    """h(1) is past the first crossing where eta_Y >> M^-0.99; relative violation at 1.2 M^-0.99 and above."""
    vocab_size = runs.setting.classes.vocab_size
    rates = np.geomspace(1.2 * vocab_size**-0.99, 1, 20)
    margins = np.array([vocab_size * decoder.h(1.0, vocab_size=vocab_size, eta_y=rate) for rate in rates])
    return float(max(1 - margins.min() / crossings(vocab_size)[0], 0.0))


def _late_times(runs: Runs) -> np.ndarray:
    """The stage t >= 2 (1 + omega_1) K ln M / eta_Y: the upper crossing is at the margin (1 + omega_1) ln M."""
    first = 2 * crossings(runs.setting.classes.vocab_size)[1] * runs.setting.classes.n_classes / runs.setting.eta_y
    return first * np.geomspace(1, 1e9, 100)


def gamma_stages(runs: Runs, level: str) -> float:
    """gamma <= eta_Y t / K for t <= t0', and gamma <= 2 K ln(M eta_Y t / K) / (eta_Y t) in the second stage.

    Both constants are proved. With t >= 2 K ln M / eta_Y in the second stage the least constant is that of
    `theory.scan_and_snap.ranges.late_constant`.
    """
    arguments = decoder_arguments(runs)
    first = np.geomspace(1e-6, decoder.scanning_time(**arguments), 100)
    steps = runs.setting.eta_y / arguments["n_classes"]
    early = decoder.gamma(first, **arguments) / (steps * first)
    return float(max(early.max() - 1, _late_constant(runs, arguments["vocab_size"]) / 2 - 1, 0.0))


def _late_constant(runs: Runs, factor: float) -> float:
    """Least C with gamma <= C K ln(factor eta_Y t / K) / (eta_Y t) in the second stage."""
    arguments, second = decoder_arguments(runs), _late_times(runs)
    tau = runs.setting.eta_y / arguments["n_classes"] * second
    return float((decoder.gamma(second, **arguments) * tau / np.log(factor * tau)).max())


def theorem1b_printed(runs: Runs, level: str) -> float:
    """(b) as printed: the logarithm without M, with the constant that is enough with M."""
    return max(_late_constant(runs, 1.0) / 2 - 1, 0.0)


def theorem1b_corrected(runs: Runs, level: str) -> float:
    """(b) with M, as in Lemma 9."""
    return max(_late_constant(runs, runs.setting.classes.vocab_size) / 2 - 1, 0.0)


def _sharp_bound(n_classes: int) -> float:
    """|lambda_1(E)| below this makes every xi_n positive, whatever M."""
    return 1 / np.sqrt(max(n_classes - 2, 1))


def theorem1a(runs: Runs, level: str) -> float:
    """Share of classes with xi_n <= 0 among overlaps with |lambda_1(E)| just below 1/sqrt(K - 2): stars and random."""
    rng = np.random.default_rng(0)
    found = []
    for n_classes in (3, 4, 5, 8):
        star = np.zeros((n_classes, n_classes))
        star[1, 2:] = star[2:, 1] = 1
        touch = np.zeros_like(star)
        touch[0, 1] = touch[1, 0] = 1e-6
        draws = [np.triu(rng.random(star.shape) ** power * (rng.random(star.shape) < 0.6), 1) for power in (0.2, 1, 20)]
        for pattern in (star, *(draw + draw.T for draw in draws)):
            largest = np.abs(np.linalg.eigvalsh(pattern)).max()
            overlap = pattern * (0.999 * _sharp_bound(n_classes) / largest) + (touch if pattern is star else 0)
            for vocab_size in (n_classes + 1, 10 * n_classes, 10**6):
                xi = xi_over_gamma(np.eye(n_classes) + overlap, vocab_size)
                found.append(xi[overlap.sum(axis=1) > 1e-9] <= 0)
    return float(np.concatenate(found).mean())


def theorem1a_here(runs: Runs, level: str) -> float:
    """Share of the setting's classes with xi_n <= 0, at the overlaps of the start."""
    return float((xi_over_gamma(runs.setting.classes.overlap(), runs.setting.classes.vocab_size) <= 0).mean())


def inner_coefficients(n_classes: int, vocab_size: int) -> np.ndarray:
    """Columns u_n of Theorem 1: q_1 on the diagonal and q_0 elsewhere."""
    inner = np.full((n_classes, n_classes), -vocab_size / (vocab_size - 1) ** 2)
    np.fill_diagonal(inner, vocab_size / (vocab_size - 1))
    return inner


def xi_over_gamma(gram: np.ndarray, vocab_size: int) -> np.ndarray:
    """xi_n/gamma = sum over n' != n of beta_nn' f_n.f_n' by (9), for Gram matrices (.., K, K)."""
    inner = np.broadcast_to(inner_coefficients(gram.shape[-1], vocab_size), gram.shape)
    beta = -np.linalg.solve(gram, inner)
    off = gram * (1 - np.eye(gram.shape[-1]))
    return (beta * off).sum(axis=-2)


def _signal_printed(theta, correction, n, other, q_1, q_0) -> float:
    rest = sum((1 + theta[k]) * correction[k, other] for k in range(len(theta)) if k != n)
    return q_1 * (1 + theta[n]) * correction[n, other] + q_0 * ((1 + theta[other]) + rest)


def _signal_corrected(theta, correction, n, other, q_1, q_0) -> float:
    return _signal_printed(theta, correction, n, other, q_1, q_0) - 2 * q_0 * (1 + theta[other])


def _signal_error(runs: Runs, formula) -> float:
    """beta_nn' by a formula against -((I - E')(I + Theta) u_n)_n', for random theta."""
    vocab_size, n_classes = runs.setting.classes.vocab_size, runs.setting.classes.n_classes
    inverse = np.linalg.inv(runs.setting.classes.overlap())
    inner = inner_coefficients(n_classes, vocab_size)
    theta = 0.1 * np.random.default_rng(0).standard_normal(n_classes)
    exact = -inverse @ ((1 + theta)[:, None] * inner)
    pairs = [(n, other) for n in range(n_classes) for other in range(n_classes) if n != other]
    errors = [
        formula(theta, np.eye(n_classes) - inverse, n, other, inner[0, 0], inner[0, 1]) - exact[other, n]
        for n, other in pairs
    ]
    return float(np.abs(errors).max() / max(abs(exact[other, n]) for n, other in pairs))


def signal_printed(runs: Runs, level: str) -> float:
    """(88) as printed."""
    return _signal_error(runs, _signal_printed)


def signal_corrected(runs: Runs, level: str) -> float:
    """(88) with the sign of (1 + theta_n') put right."""
    return _signal_error(runs, _signal_corrected)


def _branch_error(runs: Runs, exact: bool) -> float:
    """Gamma at t0' and t0, by the branches of (14) or in closed form, against the integral of gamma."""
    arguments, eta_z = decoder_arguments(runs), runs.setting.eta_z
    m, k, eta_y = arguments["vocab_size"], arguments["n_classes"], arguments["eta_y"]
    scale = 2 * (m - 1) ** 2 / m**2 * k * eta_z / eta_y
    errors = []
    for end, margin in (
        (decoder.scanning_time(**arguments), lambda t: eta_y * t / k),
        (decoder.snapping_time(**arguments), lambda t: np.log(m * eta_y * t / k)),
    ):
        integral = quad(lambda t: float(decoder.gamma(t, **arguments)), 0, end, epsrel=1e-11, limit=200)[0]
        claim = 4 * decoder.gamma_integral(end, **arguments, eta_z=eta_z) if exact else scale * margin(end) ** 2
        errors.append(abs(claim / (4 * eta_z * integral) - 1))
    return float(max(errors))


def branches_printed(runs: Runs, level: str) -> float:
    """4 Gamma by the two branches of (14), at the end of each."""
    return _branch_error(runs, exact=False)


def branches_corrected(runs: Runs, level: str) -> float:
    """4 Gamma by (128), there."""
    return _branch_error(runs, exact=True)


def _exponents(runs: Runs, times: np.ndarray, faster: float, ratio: float) -> np.ndarray:
    """B with C_0 = 1 for eta_Y times ``faster`` and nu = eta_Y/eta_Z times ``ratio``."""
    arguments = decoder_arguments(runs)
    arguments["eta_y"] *= faster
    eta_z = runs.setting.eta_z * faster / ratio
    return attention.growth_exponent(times, **arguments, eta_z=eta_z, c0=1.0)


def insight_a(runs: Runs, level: str) -> float:
    """At fixed nu: B(t0) is the same for all rates (relative error), and B at one time grows with them (1 if not)."""
    t0 = decoder.snapping_time(**decoder_arguments(runs))
    base = _exponents(runs, np.array([t0]), 1.0, 1.0)[0]
    worst = 0.0
    for faster in (0.1, 0.5, 3.0):
        worst = max(worst, abs(_exponents(runs, np.array([t0 / faster]), faster, 1.0)[0] / base - 1))
    times = t0 * np.geomspace(1e-3, 1e3, 50)
    grows = _exponents(runs, times, 1.1, 1.0) > _exponents(runs, times, 1.0, 1.0)
    return float(worst if worst > 1e-12 else 0.0) if grows.all() else 1.0


def insight_b(runs: Runs, level: str) -> float:
    """Share of times from the upper crossing on at which B does not fall with eta_Y at fixed eta_Z."""
    times = _late_times(runs)
    falls = _exponents(runs, times, 1.01, 1.01) < _exponents(runs, times, 1.0, 1.0)
    return float((~falls).mean())


_DELTA = 0.05  # one minus the confidence of Lemmas 10 to 12


def _visit_tail(n_steps: int, n_classes: int, outside) -> float:
    """Exact probability that the visits of one class in N steps are ``outside`` (a function of N_n)."""
    visits, p = np.arange(n_steps + 1), 1 / n_classes
    ways = gammaln(n_steps + 1) - gammaln(visits + 1) - gammaln(n_steps - visits + 1)
    return float(np.exp(ways + visits * np.log(p) + (n_steps - visits) * np.log1p(-p))[outside(visits)].sum())


def lemma10(runs: Runs, level: str) -> float:
    """First inequality of (58): by how much the exact probability outside exceeds delta."""
    n_classes = runs.setting.classes.n_classes
    worst = 0.0
    for n_steps in (1, 3, 10, 100, 1000, 10_000):
        mean, radius = np.ceil(n_steps / n_classes), np.sqrt(n_steps / 2 * np.log(2 / _DELTA)) + 1
        worst = max(worst, _visit_tail(n_steps, n_classes, lambda n, c=mean, r=radius: np.abs(n - c) > r) - _DELTA)
    return worst


def _second_inequality(first: float) -> float:
    """Largest excess of sqrt(a/2) + 1 over sqrt(a), relative, for a = N ln(2/delta) >= first."""
    a = first * np.geomspace(1, 1e6, 1000)
    return float(max(((np.sqrt(a / 2) + 1) / np.sqrt(a) - 1).max(), 0.0))


def lemma10_printed(runs: Runs, level: str) -> float:
    """Second inequality of (58) from N = 1 on."""
    return _second_inequality(np.log(2 / _DELTA))


def lemma10_corrected(runs: Runs, level: str) -> float:
    """Second inequality of (58) for N ln(2/delta) > 6 + 4 sqrt 2."""
    return _second_inequality((6 + 4 * np.sqrt(2)) * (1 + 1e-9))


def _growths(runs: Runs):
    """Nbar, Delta < Nbar and the margins at Nbar - Delta, Nbar, Nbar + Delta, over a grid in eta_Y times visits."""
    vocab_size, eta_y = runs.setting.classes.vocab_size, runs.setting.eta_y
    mean, share = np.meshgrid(np.geomspace(0.1, 1e3, 200), np.linspace(0.02, 0.98, 49))
    visits = np.stack([mean * (1 - share), mean, mean * (1 + share)]) / eta_y
    x = vocab_size * decoder.h(visits, vocab_size=vocab_size, eta_y=eta_y)
    return visits[1], share * visits[1], x


def lemma11_growth(runs: Runs, level: str) -> float:
    """(61) with the constant 1, for N_n = Nbar +- Delta."""
    mean, gap, (below, at, above) = _growths(runs)
    return float(max((np.maximum(at - below, above - at) / at / (gap / mean)).max() - 1, 0.0))


def _residual_gap(runs: Runs, factor: float) -> float:
    """(62) with sigma' = factor eta_Y Delta."""
    _, gap, (below, at, above) = _growths(runs)
    rest = runs.setting.classes.vocab_size - 1
    low, middle, high = (rest + np.exp(x) for x in (below, at, above))
    found = np.maximum(middle / low - 1, 1 - middle / high)
    return float(max((found / (factor * runs.setting.eta_y * gap)).max() - 1, 0.0))


def lemma11_printed(runs: Runs, level: str) -> float:
    """(62) with sigma' <= eta_Y Delta/3."""
    return _residual_gap(runs, 1 / 3)


def lemma11_corrected(runs: Runs, level: str) -> float:
    """(62) with sigma' <= eta_Y Delta."""
    return _residual_gap(runs, 1.0)


def _visit_excess(runs: Runs, bound) -> float:
    """By how much P(|theta_n| > bound for some n), at most K times that of one class, exceeds delta.

    For the rate of the setting and a thousandth of it, where h is linear and theta_n largest.
    """
    k = runs.setting.classes.n_classes
    worst = 0.0
    # N that K divides, and N for which N/K is rounded up most.
    steps = [size + rest for size in (4 * k**2, 40 * k**2, 400 * k**2) for rest in (0, 1)]
    for n_steps, slower in itertools.product(steps, (1, 1000)):
        arguments = {"vocab_size": runs.setting.classes.vocab_size, "eta_y": runs.setting.eta_y / slower}
        h = decoder.h(np.arange(n_steps + 1.0), **arguments)
        mean = float(decoder.h(-(-n_steps // k), **arguments))
        theta = np.abs(h / mean - 1)
        outside = theta > bound(n_steps, k)
        worst = max(worst, k * _visit_tail(n_steps, k, lambda n, o=outside: o[n]) - _DELTA)
    return worst


def lemma12(runs: Runs, level: str) -> float:
    """|theta_n| <= (K/sqrt N) sqrt(ln(K/delta)) for all n, with probability 1 - delta."""
    return _visit_excess(runs, lambda n, k: k / np.sqrt(n) * np.sqrt(np.log(k / _DELTA)))


def lemma12_sharp(runs: Runs, level: str) -> float:
    """The same with Bernstein's bound, smaller by a factor of order sqrt K."""
    return _visit_excess(runs, lambda n, k: _bernstein(n, k, np.log(2 * k / _DELTA)))


def _bernstein(n_steps: int, n_classes: int, logarithm: float) -> float:
    relative = n_classes * logarithm / n_steps
    return relative / 3 + np.sqrt(relative**2 / 9 + 2 * relative * (1 - 1 / n_classes))


def remark4(runs: Runs, level: str) -> float:
    """By how much the exact probability of |N_n - Nbar| > Delta exceeds delta, for delta up to 1/2."""
    k, worst = runs.setting.classes.n_classes, 0.0
    for n_steps, delta in itertools.product((1, 3, 10, 100, 1000, 10_001), (0.01, 0.05, 0.5)):
        mean, gap = -(-n_steps // k), np.ceil(np.sqrt(n_steps * np.log(1 / delta)))
        worst = max(worst, _visit_tail(n_steps, k, lambda n, c=mean, g=gap: np.abs(n - c) > g) - delta)
    return worst


def corollary1_sigma(runs: Runs, level: str) -> float:
    """|sigma| <= eta_Y |N_n - Nbar|, and sigma > -1."""
    return _residual_gap(runs, 1.0)


def corollary1_steps(runs: Runs, level: str) -> float:
    """||e_n - alpha_n||/eps - 1 after (K/eta_Y)(1/eps + ln(M/eps)) steps, classes in turn."""
    m, eta_y = runs.setting.classes.vocab_size, runs.setting.eta_y
    eps = np.geomspace(1e-6, 0.9, 50)
    visits = (1 / eps + np.log(m / eps)) / eta_y
    x = m * decoder.h(visits, vocab_size=m, eta_y=eta_y)
    norm = np.sqrt(m * (m - 1)) / (m - 1 + np.exp(x))
    return float(max((norm / eps - 1).max(), 0.0))


def _random_overlaps(runs: Runs) -> Iterator[np.ndarray]:
    """E of 200 random sets of linearly independent features with entries >= 0."""
    rng = np.random.default_rng(0)
    k = runs.setting.classes.n_classes
    for _ in range(200):
        features = rng.random((3 * k, k)) ** rng.choice([1, 5, 20])
        features /= np.linalg.norm(features, axis=0)
        overlap = features.T @ features - np.eye(k)
        np.fill_diagonal(overlap, 0)
        yield overlap


def _overlaps(runs: Runs) -> list[np.ndarray]:
    """E of the setting, and the random ones, scaled to |lambda_1(E)| below 1."""
    rng = np.random.default_rng(1)
    found = [runs.setting.classes.overlap() - np.eye(runs.setting.classes.n_classes)]
    for overlap in _random_overlaps(runs):
        found.append(overlap * rng.uniform(0.01, 0.95) / np.abs(np.linalg.eigvalsh(overlap)).max())
    return [overlap for overlap in found if np.abs(np.linalg.eigvalsh(overlap)).max() < 1]


def _worst_overlap(runs: Runs, ratio) -> float:
    """Largest relative violation of found/bound <= 1; ``ratio(E, E', |lambda_1|)`` is the quotient."""
    worst = 0.0
    for overlap in _overlaps(runs):
        correction = np.eye(len(overlap)) - np.linalg.inv(np.eye(len(overlap)) + overlap)
        worst = max(worst, ratio(overlap, correction, np.abs(np.linalg.eigvalsh(overlap)).max()) - 1)
    return float(worst)


def lemma13(runs: Runs, level: str) -> float:
    """max |E_ij| <= |lambda_1|."""
    return _worst_overlap(runs, lambda e, c, top: np.abs(e).max() / top)


def _eigenvalue_error(overlaps: Iterable[np.ndarray]) -> float:
    """Relative to the largest eigenvalue of E', if that is above one."""
    errors = []
    for overlap in overlaps:
        correction = np.eye(len(overlap)) - np.linalg.inv(np.eye(len(overlap)) + overlap)
        values = np.linalg.eigvalsh(overlap)
        expected = np.sort(values / (1 + values))
        error = np.abs(np.linalg.eigvalsh(correction) - expected).max()
        errors.append(error / max(np.abs(expected).max(), 1.0))
    return float(max(errors))


def lemma14(runs: Runs, level: str) -> float:
    """Eigenvalues of E' against lambda/(1 + lambda)."""
    return _eigenvalue_error(_overlaps(runs))


def lemma14_any(runs: Runs, level: str) -> float:
    """The same for any |lambda_1|."""
    return _eigenvalue_error(_random_overlaps(runs))


def lemma15(runs: Runs, level: str) -> float:
    """max |lambda_i(E')| <= |lambda_1|/(1 - |lambda_1|)."""
    return _worst_overlap(runs, lambda e, c, top: np.abs(np.linalg.eigvalsh(c)).max() / (top / (1 - top)))


def _diagonal_share(overlaps: Iterable[np.ndarray]) -> float:
    signs = []
    for overlap in overlaps:
        correction = np.eye(len(overlap)) - np.linalg.inv(np.eye(len(overlap)) + overlap)
        signs.append(np.diag(correction)[overlap.max(axis=1) > 1e-6] >= 0)
    return float(np.concatenate(signs).mean())


def lemma16(runs: Runs, level: str) -> float:
    """Share of diagonal entries of E' that are not negative, where the class overlaps with another."""
    return _diagonal_share(_overlaps(runs))


def lemma16_any(runs: Runs, level: str) -> float:
    """The same for any |lambda_1|."""
    return _diagonal_share(_random_overlaps(runs))


def lemma17(runs: Runs, level: str) -> float:
    """max |E'_nn' - E_nn'| <= |lambda_1|^2/(1 - |lambda_1|)."""
    return _worst_overlap(runs, lambda e, c, top: np.abs(c - e).max() / (top**2 / (1 - top)))


def lemma17_sharp(runs: Runs, level: str) -> float:
    """The same with |lambda_1|^2/(1 - |lambda_1|^2), for entries that are not negative."""
    return _worst_overlap(runs, lambda e, c, top: np.abs(c - e).max() / (top**2 / (1 - top**2)))
