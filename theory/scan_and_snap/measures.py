"""Numerical checks of Scan and Snap: the distance of each formula from simulations.

Every function takes runs and a level and returns a relative error, or for an inequality its relative violation. Checks
without simulations are in `theory.scan_and_snap.bounds`.
"""

from __future__ import annotations

import numpy as np
import scipy  # imports its submodules on first use

from dynamics.support import checks
from theory.scan_and_snap import attention, decoder
from theory.scan_and_snap.bounds import decoder_arguments, inner_coefficients, sizes, xi_over_gamma
from theory.scan_and_snap.changed import Law
from theory.statements import Runs


def _law(runs: Runs) -> Law:
    """The closed forms for a run: the setting's `changed.Law`, by default the paper's."""
    law = getattr(runs.setting, "law", None)
    return Law(decoder.Decoder(**decoder_arguments(runs))) if law is None else law


def _times(runs: Runs, level: str) -> np.ndarray:
    """Times after the start."""
    return runs.trajectory(level).dataset["time"].values[1:]


def _query_rows(runs: Runs) -> np.ndarray:
    """The row of Z that each class reads, psi(n)."""
    classes = runs.setting.classes
    return np.searchsorted(classes.query_tokens, classes.query)


def _pairs(runs: Runs, level: str, common: bool) -> tuple[np.ndarray, np.ndarray]:
    """Row of Z and token: the distinct tokens of each class, or the common tokens of each query; ValueError if none."""
    data = runs.trajectory(level).dataset
    occurs, distinct = data["attention"].values[0] > 0, data["distinct"].values
    n, token = np.nonzero(occurs & ~distinct if common else occurs & distinct)
    if not n.size:
        kind = "common" if common else "distinct"
        raise checks.reject("data", f"have {kind} tokens, of which {kind} tokens' statements speak", "none")
    rows, tokens = np.unique(np.stack([_query_rows(runs)[n], token]), axis=1)
    return rows, tokens


def _features(runs: Runs, level: str) -> np.ndarray:
    """F at each time after the start: (times, classes, tokens)."""
    shares = runs.trajectory(level).dataset["attention"].values[1:]
    return shares / np.linalg.norm(shares, axis=2, keepdims=True)


def _backpropagated(runs: Runs, level: str) -> np.ndarray:
    """g_n of Theorem 1 by its formula, at the features of the run: (times, classes, tokens)."""
    times = _times(runs, level)
    features = _features(runs, level)
    counts = sizes(runs)
    inner = inner_coefficients(counts["n_classes"], counts["vocab_size"])
    gram = features @ features.transpose(0, 2, 1)
    gamma = _law(runs).decoder.gamma(times)
    # Column n of (I - E') u, with I - E' = (F^T F)^{-1}.
    coefficients = np.linalg.solve(gram, np.broadcast_to(inner, gram.shape))
    return gamma[:, None, None] * (coefficients.transpose(0, 2, 1) @ features)


def _h(runs: Runs, level: str) -> np.ndarray:
    """h(t/K) in closed form, at each time after the start."""
    counts = sizes(runs)
    times = runs.trajectory(level).dataset["time"].values[1:] / counts["n_classes"]
    return _law(runs).decoder.h(times)


def lemma6_flow(runs: Runs, level: str) -> float:
    """The closed form of h against the h that the theory flow integrates."""
    integrated = runs.trajectory(level).dataset["h"].values[1:, 0]
    return float(np.abs(integrated / _h(runs, level) - 1).max())


def theorem1(runs: Runs, level: str) -> float:
    """g_n = Y (e_n - alpha_n) of the run against (9)."""
    data = runs.trajectory(level).dataset
    features, Y, mass = _features(runs, level), data["y"].values[1:], data["multiplicity"].values
    logits = features @ Y
    alpha = np.exp(logits - logits.max(axis=2, keepdims=True))
    alpha /= (alpha * mass).sum(axis=2, keepdims=True)
    smoothing = _law(runs).label_smoothing
    residual = (1 - smoothing) * np.eye(*alpha.shape[1:])[None] + smoothing / mass.sum() - alpha
    found = (residual * mass) @ Y.transpose(0, 2, 1)
    expected = _backpropagated(runs, level)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _velocity(runs: Runs, level: str) -> np.ndarray:
    """dz_m/dt by (10), a sum over the classes of query m, with the class probability 1/K: (times, queries, tokens)."""
    features, g = _features(runs, level), _backpropagated(runs, level)
    along = (features * g).sum(axis=2, keepdims=True)
    pulls = runs.setting.eta_z / features.shape[1] * features * (g - features * along)
    rows = _query_rows(runs)
    return np.stack([pulls[:, rows == row].sum(axis=1) for row in range(rows.max() + 1)], axis=1)


def _velocity_error(runs: Runs, level: str, factor: float) -> float:
    found = runs.trajectory(level).dataset["z_velocity"].values[1:]
    expected = factor * _velocity(runs, level)
    return _relative(found, expected, _rounding(runs, level))


# Rounding error of velocities of Z, relative to eta_Z times the largest entry of Y. True velocities are far larger:
# 1e-11 at an overlap of 1e-6.
_ROUNDING = 1e-14


def _rounding(runs: Runs, level: str) -> np.ndarray:
    """Bound on the velocities of Z that are only rounding errors, at each time after the start.

    An optimizer that divides by the size of a gradient magnifies these errors.
    """
    Y = np.abs(runs.trajectory(level).dataset["y"].values).max(axis=(1, 2))
    gradient = _ROUNDING * np.maximum.accumulate(Y)[1:]
    optimizer = getattr(runs.setting, "optimizer", None)
    if optimizer is not None and optimizer.rule.moments:
        gradient = gradient / (gradient + optimizer.epsilon)
    return runs.setting.eta_z * gradient


def _moving(moved: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """Entries of an array over time that exceed rounding at some time."""
    return (np.abs(moved.T) > rounding).any(axis=-1).T


def _relative(found: np.ndarray, expected: np.ndarray, rounding: np.ndarray) -> float:
    """Largest error of velocities over the largest expected velocity; nan if both arrays are only rounding."""
    if not (_moving(found, rounding).any() or _moving(expected, rounding).any()):
        return np.nan
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _without_sign(moved: np.ndarray, sign: int, rounding: np.ndarray) -> float:
    """Share of (time, entry) without the expected sign; nan if nothing moves.

    An entry that never exceeds rounding has no sign.
    """
    moving = _moving(moved, rounding)
    return float(1 - ((sign * moved > 0) & moving).mean()) if moving.any() else np.nan


def lemma4(runs: Runs, level: str) -> float:
    """The velocity of the logits against (10), as printed: without the class probability."""
    return _velocity_error(runs, level, runs.setting.classes.n_classes)


def lemma4_corrected(runs: Runs, level: str) -> float:
    """The velocity of the logits against (10) with the class probability 1/K."""
    return _velocity_error(runs, level, 1.0)


def _displacement(runs: Runs, level: str, common: bool) -> np.ndarray:
    """z(t) - z(0) of the common tokens of each query, or of the distinct tokens of each class: (times, pairs)."""
    z = runs.trajectory(level).dataset["z"].values
    rows, tokens = _pairs(runs, level, common)
    return z[1:, rows, tokens] - z[:1, rows, tokens]


def _share_displaced(runs: Runs, level: str, common: bool, sign: int) -> float:
    """Share of (time, token) whose logit has not moved in the direction of ``sign``."""
    rounding = _rounding(runs, level) * _times(runs, level)
    return _without_sign(_displacement(runs, level, common), sign, rounding)


def theorem2_distinct(runs: Runs, level: str) -> float:
    """Share of (time, distinct token) whose logit has not risen."""
    return _share_displaced(runs, level, common=False, sign=1)


def theorem2_common(runs: Runs, level: str) -> float:
    """Share of (time, common token) whose logit has not fallen."""
    return _share_displaced(runs, level, common=True, sign=-1)


def _still(runs: Runs, level: str, common: bool, sign: int) -> float:
    """Share of (time after the start, token) whose velocity has the wrong sign."""
    velocity = runs.trajectory(level).dataset["z_velocity"].values[1:]
    rows, tokens = _pairs(runs, level, common)
    return _without_sign(velocity[:, rows, tokens], sign, _rounding(runs, level))


def theorem2_distinct_velocity(runs: Runs, level: str) -> float:
    """Share of (time, distinct token) with z' <= 0."""
    return _still(runs, level, common=False, sign=1)


def theorem2_common_velocity(runs: Runs, level: str) -> float:
    """Share of (time, common token) with z' >= 0."""
    return _still(runs, level, common=True, sign=-1)


def _distinct_rate_error(runs: Runs, level: str, weight: float) -> float:
    """z' of the distinct tokens of each class against weight f^2 xi_n, xi_n by (9)."""
    features = _features(runs, level)
    xi = xi_over_gamma(features @ features.transpose(0, 2, 1), runs.setting.classes.vocab_size)
    gamma = _law(runs).decoder.gamma(_times(runs, level))
    expected = weight * runs.setting.eta_z * features**2 * (gamma[:, None] * xi)[:, :, None]
    data = runs.trajectory(level).dataset
    found = data["z_velocity"].values[1:][:, _query_rows(runs)]  # each class reads the row of its query
    distinct = data["distinct"].values
    _dominant(runs)  # some class has distinct tokens
    return _relative(found[:, distinct], expected[:, distinct], _rounding(runs, level))


def theorem2_rate_printed(runs: Runs, level: str) -> float:
    """(98) as printed, without the class probability."""
    return _distinct_rate_error(runs, level, 1.0)


def theorem2_rate_corrected(runs: Runs, level: str) -> float:
    """(98) with the class probability 1/K."""
    return _distinct_rate_error(runs, level, 1 / runs.setting.classes.n_classes)


def theorem3_identity(runs: Runs, level: str) -> float:
    """r_{l/l'}(t) = r_{l/l'}(0) chi_l(t) for the most frequent distinct token l of each class and each other l'."""
    data = runs.trajectory(level).dataset
    z, shares = data["z"].values[:, _query_rows(runs)], data["attention"].values
    errors = []
    for n in _dominant(runs)[0]:
        top, *others = _by_frequency(runs, n)
        growth = np.exp(2 * (z[:, n, top] - z[0, n, top]))
        gain = (shares[:, n, [top]] / shares[:, n, others]) ** 2 - 1
        gain = gain[:, np.abs(gain[0]) > _TIE]
        errors.append(np.abs(gain / (gain[0] * growth[:, None]) - 1).ravel())
    misses = np.concatenate(errors)
    if not misses.size:
        raise checks.reject(
            "data", "have two distinct tokens of unequal shares in a class, for (11) to compare", "none"
        )
    return float(misses.max())


_TIE = 1e-7  # a smaller relative gain has fewer than eight digits left after rounding


def _by_frequency(runs: Runs, n: int) -> list[int]:
    """The distinct tokens of class n, the most frequent one first."""
    classes = runs.setting.classes
    tokens = classes.distinct_tokens(n)
    return tokens[np.argsort(-classes.probabilities[[n]].toarray()[0, tokens], kind="stable")].tolist()


def _dominant(runs: Runs) -> tuple[list[int], list[int]]:
    """The classes with distinct tokens, and the most frequent distinct token of each; ValueError if there are none."""
    tokens = {n: _by_frequency(runs, n) for n in range(runs.setting.classes.n_classes)}
    top = {n: ranked[0] for n, ranked in tokens.items() if ranked}
    if not top:
        raise checks.reject("data", "have distinct tokens, of which distinct tokens' statements speak", "none")
    return list(top), list(top.values())


def theorem3_monotony(runs: Runs, level: str) -> float:
    """Share of (time, pair of distinct tokens of class 0) at which the initial leader's lead shrinks.

    Differences below 1e-9 of the largest velocity at that time count as rounding.
    """
    data, distinct = runs.trajectory(level).dataset, runs.setting.classes.distinct_tokens(0)
    velocity = data["z_velocity"].values[1:, _query_rows(runs)[0]]
    leading = np.argsort(-data["attention"].values[0, 0, distinct], kind="stable")
    speeds = velocity[:, distinct[leading]]
    if speeds.shape[1] < 2:
        raise checks.reject("data", "have two distinct tokens in class 0, for one to lead", speeds.shape[1])
    first, second = np.triu_indices(speeds.shape[1], 1)
    still = _rounding(runs, level)
    if not _moving(speeds, still).any():
        return np.nan
    rounding = np.maximum(1e-9 * np.abs(velocity).max(axis=1), still)[:, None]
    return float((speeds[:, first] - speeds[:, second] < -rounding).mean())


def _exponent(runs: Runs, level: str) -> np.ndarray:
    """B_n = (eta_Z/K) int xi_n, with xi_n by (9) at the features of the run and gamma in closed form: (times, K)."""
    data = runs.trajectory(level).dataset
    shares = data["attention"].values
    features = shares / np.linalg.norm(shares, axis=2, keepdims=True)
    counts = sizes(runs)
    xi = xi_over_gamma(features @ features.transpose(0, 2, 1), counts["vocab_size"])
    # Integrate over Gamma, eta_Z gamma dt = dGamma: the integrand then changes as slowly as the features.
    law, times = _law(runs), data["time"].values
    total = law.decoder.gamma_integral(times, eta_z=runs.setting.eta_z)
    # Each moment's gain decays exponentially afterwards; without decay the factors are one.
    kept = np.exp(law.decay * times)[:, None]
    return scipy.interpolate.PchipInterpolator(total, xi / counts["n_classes"] * kept).antiderivative()(total) / kept


def _bounds_error(runs: Runs, level: str, weight: float) -> float:
    """(12) for the dominant token of each class, as relative violation of ln chi; B_n is weight times `_exponent`."""
    classes, top = _dominant(runs)
    data = runs.trajectory(level).dataset
    shares = data["attention"].values[0]
    first = (shares / np.linalg.norm(shares, axis=1, keepdims=True))[classes, top]
    exponent = weight * _exponent(runs, level)[:, classes]
    z = data["z"].values[:, _query_rows(runs)[classes], top]
    moved = 2 * (z - z[0])
    # Where exp(2 B_n) still tells B_n to five digits.
    seen = exponent > 1e-10
    if not seen.any():
        raise checks.reject(
            "t_end", "be so late that attention moves: B_n above 1e-10", f"B_n up to {exponent.max():.1g}"
        )
    first = np.broadcast_to(first, seen.shape)[seen]
    lower, upper = attention.growth_bounds(exponent[seen], first)
    return _outside(np.log(lower), moved[seen], np.log(upper))


def theorem3_bounds_printed(runs: Runs, level: str) -> float:
    """(12) as printed, without the class probability in B_n."""
    return _bounds_error(runs, level, runs.setting.classes.n_classes)


def theorem3_bounds(runs: Runs, level: str) -> float:
    """(12) with B_n = (eta_Z/K) int xi_n, where xi_n comes from (9) and not from the measured velocities."""
    return _bounds_error(runs, level, 1.0)


def theorem3_dominant(runs: Runs, level: str) -> float:
    """Share of (time after the start, class) at which f of the dominant distinct token does not grow.

    d ln f_l/dt = zdot_l - sum over l' of f_l'^2 zdot_l', as f has norm one.
    """
    features = _features(runs, level)
    velocity = runs.trajectory(level).dataset["z_velocity"].values[1:][:, _query_rows(runs)]
    mean = (features**2 * velocity).sum(axis=2)
    classes, top = _dominant(runs)
    return _without_sign(velocity[:, classes, top] - mean[:, classes], 1, _rounding(runs, level))


def _outside(lower: np.ndarray, value: np.ndarray, upper: np.ndarray) -> float:
    """Largest excess of positive values beyond their bounds, relative to the bound."""
    return float(max((1 - value / lower).max(), (value / upper - 1).max(), 0.0))


def _fall(runs: Runs, level: str, exponent) -> float:
    """Relative error of -z of the common token against an exponent B over time."""
    times = _times(runs, level)
    fall = -_displacement(runs, level, common=True)
    if not _moving(fall, _rounding(runs, level) * times).any():
        return np.nan
    rho, classes = runs.setting.overlap, runs.setting.classes.n_classes
    predicted = exponent(times, rho, classes)
    return float(np.abs(fall / predicted[:, None] - 1).max())


def theorem4_printed(runs: Runs, level: str) -> float:
    """(14), with C_0 = rho_0^4 / (K P_c^4)."""
    rates = {**decoder_arguments(runs), "eta_z": runs.setting.eta_z}
    return _fall(runs, level, lambda t, rho, k: attention.printed_growth_exponent(t, **rates, c0=1 / (k * rho**2)))


def theorem4_corrected(runs: Runs, level: str) -> float:
    """B with B(0) = 0 and C_0 = rho_0^4 / ((K - 1) P_c^4)."""
    law, rates = getattr(runs.setting, "law", None), {"eta_z": runs.setting.eta_z}

    def exponent(t: np.ndarray, rho: float, k: int) -> np.ndarray:
        c0 = attention.speed_constant(n_classes=k, overlap=rho)
        if law is not None:
            return law.exponent(t, **rates, c0=c0)
        return attention.growth_exponent(t, **decoder_arguments(runs), **rates, c0=c0)

    return _fall(runs, level, exponent)


def theorem4_start(runs: Runs, level: str) -> float:
    """The common token's fall at the first recorded time against B with the constant that is exact at the start."""
    c0 = attention.speed_constant(**sizes(runs), overlap=runs.setting.overlap)
    if level == "full flow":
        c0 /= attention.full_flow_slowdown(**sizes(runs), overlap=runs.setting.overlap)
    rates = {**decoder_arguments(runs), "eta_z": runs.setting.eta_z}
    expected = attention.growth_exponent(_times(runs, level)[0], **rates, c0=c0)
    return float(np.abs(-_displacement(runs, level, common=True)[0] / expected - 1).max())


def _early_slowdown(runs: Runs) -> float:
    """The ratio of the full and the modified flow's logits at the first recorded time."""
    full, modified = (float(_displacement(runs, flow, True)[0, 0]) for flow in ("full flow", "modified flow"))
    if abs(modified) <= (_rounding(runs, "modified flow") * _times(runs, "modified flow"))[0]:
        raise checks.reject("data", "have a common token whose logit moves", modified)
    return full / modified


def remark1_printed(runs: Runs, level: str) -> float:
    """The full flow's slow-down against 1 - rho."""
    return abs(_early_slowdown(runs) / (1 - runs.setting.overlap) - 1)


def remark1_corrected(runs: Runs, level: str) -> float:
    """The full flow's slow-down against s."""
    slowdown = attention.full_flow_slowdown(**sizes(runs), overlap=runs.setting.overlap)
    return abs(_early_slowdown(runs) / slowdown - 1)


def zero_sums(runs: Runs, level: str) -> float:
    """Largest change of a row sum of Y or Z since the start, relative to the matrix's largest entry.

    For Z the scale is at least a millionth of eta_Z t max |Y|, since velocities of Z are rounded relative to Y: Y's
    component along f_n cancels, and early in the full flow only 1/M of Y remains.
    """
    run = runs.trajectory(level)
    sums, data = run.row_sums(), run.dataset
    y, z = (float(np.abs(data[name]).max()) for name in ("y", "z"))
    largest = {"y": y, "z": max(z, 1e-6 * runs.setting.eta_z * float(data["time"].values[-1]) * y)}
    return float(max(np.abs(sums[name] - sums[name][0]).max() / scale for name, scale in largest.items()))


def theorem5(runs: Runs, level: str) -> float:
    """Y against F (I - E') W with the rows w_n = (M - 1) h(t/K) zeta_n, at the features of the run."""
    data = runs.trajectory(level).dataset
    features, found = _features(runs, level), data["y"].values[1:]
    counts = sizes(runs)
    scaled = counts["vocab_size"] * _h(runs, level)
    rows = np.eye(counts["n_classes"], found.shape[2]) - 1 / counts["vocab_size"]
    gram = features @ features.transpose(0, 2, 1)
    weights = np.linalg.solve(gram, scaled[:, None, None] * rows)
    expected = features.transpose(0, 2, 1) @ weights
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def corollary1(runs: Runs, level: str) -> float:
    """The loss against ln(1 + (M - 1) exp(-M h(t/K))), which falls like K / (eta_Y t)."""
    data = runs.trajectory(level).dataset
    counts = sizes(runs)
    scaled = counts["vocab_size"] * _h(runs, level)
    expected = np.log1p((counts["vocab_size"] - 1) * np.exp(-scaled))
    return float(np.abs(data["loss"].values[1:] / expected - 1).max())


def lemma18(runs: Runs, level: str) -> float:
    """Excess over delta of the share of samples in which a token's frequency leaves Hoeffding's interval."""
    delta, length, n = 0.05, 256, 4000
    classes = runs.setting.classes
    bags = classes.sample(n, length=length, rng=0)
    counts = np.zeros((n, classes.n_tokens))
    counts[bags.owner, bags.token] = bags.count
    expected = classes.probabilities.toarray()[bags.target]
    radius = np.sqrt(np.log(2 / delta) / (2 * (length - 1)))
    outside = (np.abs(counts / (length - 1) - expected) > radius).mean(axis=0)
    return float(max(outside.max() - delta, 0.0))
