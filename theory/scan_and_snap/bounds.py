"""Numerical checks of Scan and Snap without simulations: growth of the decoder, and the stages of gamma.

Every function takes runs and a level, as in `theory.scan_and_snap.measures`, but uses only the sizes and rates of the
setting. Checks on visits and on overlaps of classes are in `visits` and `overlaps`.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # imports its submodules on first use
from scipy.special import lambertw

from theory.scan_and_snap import attention, decoder
from theory.statements import Runs

# Remark 2's late steps begin at _LATE ln M/eta_Y, or at _LATE_STEPS if that is later. More than _MOST_STEPS steps would
# take minutes.
_LATE = 50
_LATE_STEPS = 1_000
_MOST_STEPS = 10**8


def sizes(runs: Runs) -> dict:
    """M and K of the setting, as keyword arguments for `theory.scan_and_snap.decoder`."""
    return {"vocab_size": runs.setting.classes.vocab_size, "n_classes": runs.setting.classes.n_classes}


def decoder_arguments(runs: Runs) -> dict:
    """M, K and eta_Y of the setting, as keyword arguments for `theory.scan_and_snap.decoder`."""
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
    """0 <= h* - h <= eta_Y / M over the steps of a class: half the bound of Lemma 7."""
    gap = _step_gap(runs)
    return float(max((-gap).max(), (gap - 1).max(), 0.0))


def _lag(runs: Runs, n_steps: int) -> np.ndarray:
    """Lag of the flow behind the steps: the time at which h reaches h*(s), minus s, for s = 0 .. n_steps."""
    vocab_size, eta_y = runs.setting.classes.vocab_size, runs.setting.eta_y
    x = vocab_size * decoder.h_steps(n_steps, vocab_size=vocab_size, eta_y=eta_y)
    # By (45), from margin to time.
    return (np.expm1(x) + (vocab_size - 1) * x) / (vocab_size * eta_y) - np.arange(n_steps + 1)


def lemma7_lag(runs: Runs, level: str) -> float:
    """h*(s) <= h(s + 1/2) for s <= ln M / eta_Y, the third clause of (a)."""
    last = int(np.log(runs.setting.classes.vocab_size) / runs.setting.eta_y)
    return float(max((_lag(runs, last) / 0.5 - 1).max(), 0.0))


def _late_lags(runs: Runs) -> tuple[float, float, float]:
    """The lag at two late steps, a decade or two apart, and the growth of ln(eta_Y s)/2 between them.

    Remark 2 concerns the steps after the first stage, which ends at ln M/eta_Y. The lag grows like ln(eta_Y s)/2 once
    eta_Y s is far above ln M: exp(x) is then far above (M - 1) x.
    """
    vocab_size, eta_y = runs.setting.classes.vocab_size, runs.setting.eta_y
    first = max(_LATE_STEPS, math.ceil(_LATE * math.log(vocab_size) / eta_y))
    last = max(100 * _LATE_STEPS, 10 * first)
    if last > _MOST_STEPS:
        raise ValueError(
            f"`eta_y` must be at least {10 * _LATE * math.log(vocab_size) / _MOST_STEPS:.2g} for {_MOST_STEPS:.0e} "
            f"steps to be late at M = {vocab_size}, but got {eta_y:g}"
        )
    lag = _lag(runs, last)
    return float(lag[first]), float(lag[last]), 0.5 * math.log(last / first)


def remark2_printed(runs: Runs, level: str) -> float:
    """Relative growth of the lag over late steps: 0 if the lag were bounded by a constant, as printed."""
    first, last, _ = _late_lags(runs)
    return last / first - 1


def remark2_corrected(runs: Runs, level: str) -> float:
    """Relative error of the lag's growth against the growth of ln(eta_Y s)/2."""
    first, last, grown = _late_lags(runs)
    return abs((last - first) / grown - 1)


def crossings(vocab_size: int) -> tuple[float, float]:
    """The two margins x = M h with exp(x) = (M - 1) x, by Lambert's W; nan for M < 4, where none exists."""
    if vocab_size < 4:
        return np.nan, np.nan
    lower, upper = (float(-lambertw(-1 / (vocab_size - 1), branch).real) for branch in (0, -1))
    return lower, upper


def lemma8(runs: Runs, level: str) -> float:
    """Share of margins x = M h, around both crossings, at which exp(x) is on the wrong side of (M - 1) x."""
    vocab_size = runs.setting.classes.vocab_size
    low, high = crossings(vocab_size)
    if np.isnan(low):
        return 1.0
    x = np.geomspace(1e-3 * low, 10 * high, 1000)
    inside = (x >= low) & (x <= high)
    wrong = np.where(inside, x - np.log((vocab_size - 1) * x) > 0, x - np.log((vocab_size - 1) * x) <= 0)
    return float(wrong.mean())


def _sizes_around(runs: Runs) -> np.ndarray:
    """The setting's M and others from 4 to 1e15, for claims about every M."""
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
    """Violation of omega_0 <= 2/(M^0.99 ln M) for M >= 100: the printed order with the constant 2."""
    sizes = _sizes_around(runs)
    return float(max((_lower_excess(runs) * sizes**-0.01)[sizes >= 100].max() / 2 - 1, 0.0))


def lemma8_lower_corrected(runs: Runs, level: str) -> float:
    """omega_0 against 2/(M ln M) for M >= 100."""
    return float(np.abs(_lower_excess(runs)[_sizes_around(runs) >= 100] / 2 - 1).max())


def remark3(runs: Runs, level: str) -> float:
    """Violation of: h(1) is past the first crossing if eta_Y >> M^-0.99, tested from eta_Y = 1.2 M^-0.99 on."""
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

    Both constants are proved. `yzflow_enclose.scan_and_snap.ranges.late_constant` computes the least constant if the
    second stage begins at t = 2 K ln M / eta_Y.
    """
    arguments = decoder_arguments(runs)
    first = np.geomspace(1e-6, decoder.scanning_time(**arguments), 100)
    steps = runs.setting.eta_y / arguments["n_classes"]
    early = decoder.gamma(first, **arguments) / (steps * first)
    return float(max(early.max() - 1, _late_constant(runs) / 2 - 1, 0.0))


def _late_constant(runs: Runs) -> float:
    """Least C with gamma <= C K ln(M eta_Y t / K) / (eta_Y t) in the second stage."""
    arguments, second = decoder_arguments(runs), _late_times(runs)
    tau = runs.setting.eta_y / arguments["n_classes"] * second
    return float((decoder.gamma(second, **arguments) * tau / np.log(arguments["vocab_size"] * tau)).max())


def theorem1b_printed(runs: Runs, level: str) -> float:
    """(b) as printed, without M in the logarithm: growth of the least constant from M to M^2."""
    arguments = decoder_arguments(runs)
    constants = []
    for vocab_size in (arguments["vocab_size"], arguments["vocab_size"] ** 2):
        tau = 2 * crossings(vocab_size)[1] * np.geomspace(1, 1e9, 100)
        gamma = decoder.gamma(tau, vocab_size=vocab_size, n_classes=1, eta_y=1.0)
        constants.append(float((gamma * tau / np.log(tau)).max()))
    return constants[1] / constants[0] - 1


def theorem1b_corrected(runs: Runs, level: str) -> float:
    """(b) with M, as in Lemma 9."""
    return max(_late_constant(runs) / 2 - 1, 0.0)


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
        integral = scipy.integrate.quad(
            lambda t: float(decoder.gamma(t, **arguments)), 0, end, epsrel=1e-11, limit=200
        )[0]
        claim = 4 * decoder.gamma_integral(end, **arguments, eta_z=eta_z) if exact else scale * margin(end) ** 2
        errors.append(abs(claim / (4 * eta_z * integral) - 1))
    return float(max(errors))


def branches_printed(runs: Runs, level: str) -> float:
    """4 Gamma by the two branches of (14), at the end of each."""
    return _branch_error(runs, exact=False)


def branches_corrected(runs: Runs, level: str) -> float:
    """4 Gamma by (128), at the ends of the two branches of (14)."""
    return _branch_error(runs, exact=True)


def _exponents(runs: Runs, times: np.ndarray, faster: float, ratio: float) -> np.ndarray:
    """B with C_0 = 1, after multiplying eta_Y by ``faster`` and nu = eta_Y/eta_Z by ``ratio``."""
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
