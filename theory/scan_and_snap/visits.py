"""Numerical checks of Scan and Snap on visits of classes: their number in N steps, and the learned margin.

Every function takes runs and a level, as in `theory.scan_and_snap.bounds`. Probabilities are exact sums of the binomial
law, so that a check raises no false alarm.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import gammaln

from theory.scan_and_snap import decoder
from theory.statements import Runs

_DELTA = 0.05  # one minus the confidence of Lemmas 10 to 12
MUCH_LESS = 10  # the factor that stands for "<<" in (62)
LARGE = 10**15  # vocabulary at which ln M leaves room for large Delta


def _visit_tail(n_steps: int, n_classes: int, outside) -> float:
    """Exact probability that the visits of one class in N steps are ``outside`` (a function of N_n)."""
    visits, p = np.arange(n_steps + 1), 1 / n_classes
    ways = gammaln(n_steps + 1) - gammaln(visits + 1) - gammaln(n_steps - visits + 1)
    return float(np.exp(ways + visits * np.log(p) + (n_steps - visits) * np.log1p(-p))[outside(visits)].sum())


def lemma10(runs: Runs, level: str) -> float:
    """First inequality of (58): excess over delta of the exact probability outside the bound."""
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


def _growths(runs: Runs, vocab_size: int | None = None):
    """Nbar, Delta < Nbar and the margins at Nbar - Delta, Nbar, Nbar + Delta, over a grid in eta_Y times visits."""
    vocab_size, eta_y = vocab_size or runs.setting.classes.vocab_size, runs.setting.eta_y
    mean, share = np.meshgrid(np.geomspace(0.1, 1e3, 200), np.linspace(0.02, 0.98, 49))
    visits = np.stack([mean * (1 - share), mean, mean * (1 + share)]) / eta_y
    x = vocab_size * decoder.h(visits, vocab_size=vocab_size, eta_y=eta_y)
    return visits[1], share * visits[1], x


def lemma11_growth(runs: Runs, level: str) -> float:
    """(61) with the constant 1, for N_n = Nbar +- Delta."""
    mean, gap, (below, at, above) = _growths(runs)
    return float(max((np.maximum(at - below, above - at) / at / (gap / mean)).max() - 1, 0.0))


def _residual_gap(runs: Runs, factor: float, vocab_size: int | None = None, *, most: float = math.inf) -> float:
    """Violation of (62) with sigma' = factor eta_Y Delta, over all Delta with sigma' at most ``most``."""
    _, gap, (below, at, above) = _growths(runs, vocab_size)
    rest = (vocab_size or runs.setting.classes.vocab_size) - 1
    low, middle, high = (rest + np.exp(x) for x in (below, at, above))
    bound = factor * runs.setting.eta_y * gap
    found = np.maximum(middle / low - 1, 1 - middle / high)
    return float(max((found / bound)[bound <= most].max() - 1, 0.0))


def lemma11_printed(runs: Runs, level: str) -> float:
    """(62) with sigma' <= eta_Y Delta/3, if this bound is much less than ln M: at the setting's M and at `LARGE`."""
    sizes = (runs.setting.classes.vocab_size, LARGE)
    return max(_residual_gap(runs, 1 / 3, m, most=math.log(m) / MUCH_LESS) for m in sizes)


def lemma11_corrected(runs: Runs, level: str) -> float:
    """(62) with sigma' <= eta_Y Delta."""
    return _residual_gap(runs, 1.0)


def _visit_excess(runs: Runs, bound) -> float:
    """Excess over delta of K P(|theta_n| > bound), which bounds the probability that any class is outside.

    At the setting's rate, and at a thousandth of it: there h is linear and theta_n largest.
    """
    k = runs.setting.classes.n_classes
    worst = 0.0
    # K divides the first N; for the second, rounding changes N/K most.
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
    """|theta_n| below Bernstein's bound, smaller by a factor of order sqrt K, with probability 1 - delta."""
    return _visit_excess(runs, lambda n, k: _bernstein(n, k, np.log(2 * k / _DELTA)))


def _bernstein(n_steps: int, n_classes: int, logarithm: float) -> float:
    relative = n_classes * logarithm / n_steps
    return relative / 3 + np.sqrt(relative**2 / 9 + 2 * relative * (1 - 1 / n_classes))


def remark4(runs: Runs, level: str) -> float:
    """Excess over delta of the exact probability of |N_n - Nbar| > Delta, for delta up to 1/2."""
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
