"""Numbers that the register quotes of closed forms and of small examples: ``python -m yzflow.values write``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq

from dynamics import SequenceClasses, gradient_flow
from dynamics.support import distributions
from theory.scan_and_snap import attention, bounds, centred, decoder, residual
from theory.scan_and_snap.proofs import concentration, lemma8_9, theorem4
from theory.values import Study


def _time(margin: np.ndarray, m: int) -> np.ndarray:
    """eta_Y t/K of a margin x = M h, by (45)."""
    return (np.expm1(margin) + (m - 1) * margin) / m


def lag(m: int, eta_y: float, powers: list[int]) -> dict[str, Any]:
    """Number of steps by which the flow of Remark 2 lags behind h* after 10^p steps."""
    steps = 10 ** np.asarray(powers)
    margin = m * decoder.h_steps(int(steps.max()), vocab_size=m, eta_y=eta_y)[steps]
    return {"lags": _time(margin, m) / eta_y - steps}


def no_crossings() -> dict[str, Any]:
    """The M below a hundred at which exp(x) and (M - 1) x do not cross (Lemma 8)."""
    return {"sizes": [m for m in range(2, 100) if math.isnan(bounds.crossings(m)[0])]}


def first_crossing(m: int, exponent: float) -> dict[str, Any]:
    """omega_0 of Lemma 8 at M = m over the printed order, 1/(M^a ln M)."""
    margin = bounds.crossings(m)[0]
    excess = 1 + math.log(margin) / math.log(m)
    return {"ratio": excess * m**exponent * math.log(m)}


def printed_order(exponent: float) -> dict[str, Any]:
    """log2 of the M from which on the printed order of omega_0, 1/(M^a ln M), is above its leading term."""

    def above(log: float) -> float:
        return math.log(lemma8_9.lower_excess(2**log)) + math.log(log * math.log(2)) + exponent * log * math.log(2)

    return {"log2": round(brentq(above, 2, 1000), 9)}


def late_constant(m: float, accuracy: float) -> dict[str, Any]:
    """The least constant of Lemma 9 for t >= 2 K ln M/eta_Y and all M, in balls; whether M = m needs it."""
    ranges = distributions.bring(distributions.RANGES, "`late_constant`")
    found, one = ranges.late_constant(accuracy), ranges.late_ratio(m)
    low, high = float(found.lower()), float(found.upper())
    ends = {"above": math.floor(1e4 * low) / 1e4, "below": math.ceil(1e4 * high) / 1e4}
    return {**ends, "attained": float(one.lower()) >= ends["above"]}


def visits(delta: float) -> dict[str, Any]:
    """The N at which the second < of (58) fails, and its relative violation at N = 1."""

    def excess(n: int) -> float:
        first = n * math.log(2 / delta)
        return (math.sqrt(first / 2) + 1) / math.sqrt(first) - 1

    return {"fails": [n for n in range(1, 1000) if excess(n) >= 0], "by": excess(1)}


def _margin(time: float, m: float) -> float:
    """x = M h at eta_Y s = time, by (45), for any M within the range of floats."""
    return brentq(lambda x: (math.expm1(x) + (m - 1) * x) / m - time, 0, 2 * math.log(m) + time)


def residual_gap(m: float, n: int, k: int, eta_y: float, delta: float) -> dict[str, Any]:
    """sigma' of (62) for N_n = Nbar - Delta, its printed bound, and ln M."""
    mean, gap = math.ceil(n / k), math.ceil(math.sqrt(n * math.log(1 / delta)))
    low, high = (m - 1 + math.exp(_margin(eta_y * visits, m)) for visits in (mean - gap, mean))
    sigma, bound = high / low - 1, eta_y * gap / 3
    return {"mean": mean, "gap": gap, "sigma": sigma, "bound": bound, "ratio": sigma / bound, "log": math.log(m)}


def residual_gap_fails() -> dict[str, Any]:
    """eta_Y Delta from which on sigma' below Nbar can exceed its bound, M large."""
    # ln G against eta_Y s where M is large, with u = x - ln M, up to constants.
    u = np.linspace(-30, 10, 20_001)
    time, log = u + np.exp(u), np.log1p(np.exp(u))

    def excess(gap: float) -> float:
        return float(np.expm1(np.interp(time + gap, time, log) - log)[time + gap < time[-1]].max()) - gap / 3

    return {"from": brentq(excess, 1, 5)}


def rounded(k: int) -> dict[str, Any]:
    """Largest delta for which Lemma 12 is proved with Nbar rounded, and the least K at which it is above 1."""
    return {
        "share": float(concentration.rounded_delta(k)),
        "from": next(k for k in range(2, 100) if concentration.rounded_delta(k) > 1),
    }


def _xi(overlaps: dict[tuple[int, int], float], m: int) -> dict[str, Any]:
    """Eigenvalues of E and xi_n/gamma of classes with these overlaps, counted from 1."""
    k = max(max(pair) for pair in overlaps)
    gram = np.eye(k)
    for (one, other), overlap in overlaps.items():
        gram[one - 1, other - 1] = gram[other - 1, one - 1] = overlap
    moduli = np.abs(np.linalg.eigvalsh(gram - np.eye(k)))
    xi = bounds.xi_over_gamma(gram, m)
    return {"k": k, "least": float(moduli.min()), "most": float(moduli.max()), "xi": float(xi[0])}


def star(m: int, weak: float, strong: float) -> dict[str, Any]:
    """A star of overlaps: class 2 with class 1 and with two others."""
    return _xi({(1, 2): weak, (2, 3): strong, (2, 4): strong}, m)


def lower_half(m: int, first: float, second: float, third: float, last: float) -> dict[str, Any]:
    """Overlaps of four classes with the lower half of Assumption 2 alone."""
    return _xi({(1, 2): first, (1, 3): second, (1, 4): second, (2, 3): third, (2, 4): third, (3, 4): last}, m)


def without_m(sizes: list[int]) -> dict[str, Any]:
    """Constant that Theorem 1(b), as printed without M in the logarithm, needs where its late stage begins."""
    taus = [2 * bounds.crossings(m)[1] for m in sizes]
    gammas = [float(decoder.gamma(t, vocab_size=m, n_classes=1, eta_y=1.0)) for m, t in zip(sizes, taus, strict=True)]
    return {"constants": [gamma * tau / math.log(tau) for gamma, tau in zip(gammas, taus, strict=True)]}


def slowdown(k: int, m: int, rho: float) -> dict[str, Any]:
    """s of the full flow, and the value of (43) for it."""
    return {"s": attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho), "printed": 1 - rho}


def _one_common(k: int, m: int, rho: float) -> SequenceClasses:
    """Classes with overlap rho, one common token and five distinct tokens each, as in the audit's settings."""
    distinct = np.array([1.0, 0.8, 0.6, 0.4, 0.2])
    common = float(np.sqrt(rho / (1 - rho) * (distinct**2).sum()))
    return SequenceClasses.single_common_token(k, m, common=common, distinct=distinct)


def class_factor(k: int, m: int, rho: float, eta_y: float, eta_z: float, t: float) -> dict[str, Any]:
    """(10) and (12) as printed against the modified flow: the common token's speed, and the dominant token's growth."""
    classes = _one_common(k, m, rho)
    times = np.concatenate([[0.0], np.geomspace(0.01, t, 400)])
    flow = gradient_flow(classes, eta_y=eta_y, eta_z=eta_z, t_end=t, times=times, decoder="modified").dataset
    shares = flow["attention"].values
    features = shares / np.linalg.norm(shares, axis=2, keepdims=True)
    law: dict[str, Any] = {"vocab_size": m, "n_classes": k, "eta_y": eta_y}
    xi = decoder.gamma(times, **law)[:, None] * bounds.xi_over_gamma(features @ features.transpose(0, 2, 1), m)
    printed = -eta_z * ((1 - features[-1, :, 0] ** 2) * xi[-1]).sum()
    top = int(classes.distinct_tokens(0)[0])
    chi = 2 * float(flow["z"].values[-1, 0, top])
    exponent = eta_z * float(np.trapezoid(xi[:, 0], times))
    moved = float(flow["z_velocity"].values[-1, 0, 0])
    return {
        "speed": moved,
        "printed": float(printed),
        "times": float(printed) / moved,
        "log_chi": chi,
        "least": 2 * float(features[0, 0, top]) ** 2 * exponent,
        "most": 2 * exponent,
    }


def lower_limit(k: int, m: int, rho: float, eta_y: float, eta_z: float, t: float) -> dict[str, Any]:
    """B as (14) prints it, at the start and at a time, against the common token's fall in the modified flow."""
    law: dict[str, Any] = {"vocab_size": m, "n_classes": k, "eta_y": eta_y, "eta_z": eta_z}
    start, late = (float(attention.printed_growth_exponent(one, **law, c0=1 / (k * rho**2))) for one in (0.0, t))
    flow = gradient_flow(_one_common(k, m, rho), eta_y=eta_y, eta_z=eta_z, t_end=t, n_times=2, decoder="modified")
    return {"start": start, "late": late, "fall": -float(flow.final.Z[0, 0])}


def local_tokens(queries: int, each: int, m: int, common: float, shared: float) -> dict[str, Any]:
    """Section 7: the share above which a locally distinct token loses, and its speed in units of gamma eta_Z/K."""
    features, query = residual.local_classes(queries, each, common, shared, every=False)
    speed = residual.speed(features, query, m)[0]
    return {
        "k": queries * each,
        "edge": residual.one_local_share(queries, each),
        "every": residual.local_share(queries, each),
        "speed": float(speed[queries]),
    }


def branches(sizes: list[int]) -> dict[str, Any]:
    """Relative excess of 4 Gamma by the branches of (14), at their ends t0' and t0."""
    found = []
    for m in sizes:
        tau = math.log(m)
        early, late = (m * float(decoder.h(time, vocab_size=m, eta_y=1)) for time in (tau, 2 * tau))
        found.append([(tau / early) ** 2 - 1, (math.log(2 * m * tau) / late) ** 2 - 1])
    return {"errors": found}


def faster_decoder(k: int, m: int, eta_y: float) -> dict[str, Any]:
    """The time up to which B grows with eta_Y at fixed eta_Z (insight (b)), and t0' and t0."""
    x = brentq(lambda x: float(theorem4.decoder_rate_sign(m, x)), 2, 100)
    scanning = decoder.scanning_time(vocab_size=m, n_classes=k, eta_y=eta_y)
    snapping = decoder.snapping_time(vocab_size=m, n_classes=k, eta_y=eta_y)
    return {"until": k * float(_time(np.asarray(x), m)) / eta_y, "scanning": scanning, "snapping": snapping}


def rare_token(m: int) -> dict[str, Any]:
    """The share, times M, below which LayerNorm's rare distinct token loses attention, and its classes."""

    def push(rare: float) -> float:
        first, second = centred.with_a_rare_token(m, rare)
        return centred.distinct_push(m, second[-1], first @ second - 1 / m, second @ second - 1 / m)

    shares = centred.with_a_rare_token(m, 0.0)
    return {
        "common": shares[:, 0].tolist(),
        "others": int((shares[1, 1:] > 0).sum()),
        "border": brentq(push, 0.0, 10.0),
    }


STUDIES = (
    Study("lag", lag, {"m": 1000, "eta_y": 0.9, "powers": [3, 4, 5, 6]}),
    Study("no_crossings", no_crossings),
    Study("first_crossing", first_crossing, {"m": 100, "exponent": 0.99}),
    Study("printed_order", printed_order, {"exponent": 0.99}),
    Study("late_constant", late_constant, {"m": 1.6e8, "accuracy": 5e-5}),
    Study("visits", visits, {"delta": 0.05}),
    Study("residual_gap", residual_gap, {"m": 1e100, "n": 4798, "k": 2, "eta_y": 0.1, "delta": 0.053}),
    Study("residual_gap_fails", residual_gap_fails),
    Study("rounded", rounded, {"k": 2}),
    Study("star", star, {"m": 10, "weak": 1 / 1000, "strong": 3 / 5}),
    Study(
        "lower_half",
        lower_half,
        {"m": 1000, "first": 0.35184, "second": 0.28356, "third": 0.806225734519, "last": 0.3},
    ),
    Study("without_m", without_m, {"sizes": [1000, 100_000]}),
    Study("slowdown", slowdown, {"k": 10, "m": 1000, "rho": 0.011}),
    Study("class_factor", class_factor, {"k": 4, "m": 8000, "rho": 0.075, "eta_y": 1.0, "eta_z": 1e-3, "t": 150.0}),
    Study("lower_limit", lower_limit, {"k": 10, "m": 1000, "rho": 0.009, "eta_y": 1.0, "eta_z": 1e-3, "t": 300.0}),
    Study("local_tokens", local_tokens, {"queries": 2, "each": 2, "m": 1000, "common": 0.2, "shared": 0.2}),
    Study("branches", branches, {"sizes": [1000, 100]}),
    Study("faster_decoder", faster_decoder, {"k": 10, "m": 1000, "eta_y": 1.0}),
    Study("rare_token", rare_token, {"m": 1000}),
)
