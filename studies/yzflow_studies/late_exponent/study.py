"""Late attention for K < M: flows enclosed until they are trapped, random settings, and the law against the flow.

Derivation: `yzflow_beyond_scan_and_snap.proofs.late_exponent`. Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from yzflow_beyond_scan_and_snap.late import final_exponent, late_flow
from yzflow_beyond_scan_and_snap.late_attention import LateAttention, random_settings
from yzflow_beyond_scan_and_snap.proofs import late_exponent

import yzflow as yz
from dynamics import IntegrationError

# Between the first and the last of these sigma the survey looks.
_FIRST, _LAST, _LOOKS = 1e-3, 100.0, 400
# A rise is one whose N is below this much of its scale: no rounding.
_SEEN = 1e-6


def enclosed(flow: LateAttention, *, t_end: float, bits: int, ln_t: Sequence[float], eta_y: float) -> dict[str, Any]:
    """The flow in balls from a zero decoder to sigma = t_end: whether the logit falls at every time and is trapped.

    Returns
    -------
    dict
        ``falls``: decided for all 0 < sigma <= t_end; ``trapped``: all five conditions hold at t_end, for certain;
        ``least``, by how much, over its scale, the tightest of them; ``ln_t``: a lower bound at t_end; ``exponents``:
        for each given ln t that is reached a pair of bounds of -d ln w/d ln ln t there.

    Raises
    ------
    RuntimeError
        If the enclosure ends before, or ln t is reached at no enclosed sigma.
    """
    enclosure = yz.enclose(flow, t_end=t_end, bits=bits)
    if not enclosure.complete:
        raise RuntimeError(f"the enclosure ended at sigma = {enclosure.t_reached:g}: {enclosure.reason}")
    with enclosure.computing():
        end = enclosure.moment(t_end)
        lower = {name: _number(value).lower for name, value in flow.conditions(end.state).items()}
        last = _number(flow.ln_t(end.state, eta_y=eta_y)).lower
    exponents = []
    for wanted in ln_t:
        if wanted > last:
            exponents.append((math.nan, math.nan))
            continue
        late = enclosure.crossing(_later(flow, wanted, eta_y), between=(0.1, t_end))
        if late.times is None:
            raise RuntimeError(f"ln t = {wanted:g} was not located: {late.reason}")
        with enclosure.computing():
            found = _number(flow.exponent(enclosure.moment(*late.times), eta_y=eta_y))
            exponents.append((found.lower, found.upper))
    return {
        "falls": enclosure.holds(lambda at: at.velocity["log_w"] < 0) is True,
        "trapped": all(value > 0 for value in lower.values()),
        "tightest": min(lower, key=lower.__getitem__),
        "ln_t": last,
        "exponents": exponents,
    }


def rise(flow: LateAttention, *, sigmas: Sequence[float], t_end: float, bits: int, eta_y: float) -> dict[str, Any]:
    """The flow in balls from a zero decoder at given sigma, and whether it is trapped at t_end.

    Returns
    -------
    dict
        ``signs``: of N, which is that with which the logit falls, 0 where the balls do not say; ``pull``, N's bounds;
        ``ln_t`` at each sigma; ``trapped`` and ``trapped_at``, a lower bound of ln t, at t_end.

    Raises
    ------
    RuntimeError
        If the enclosure ends before.
    """
    enclosure = yz.enclose(flow, t_end=t_end, bits=bits)
    if not enclosure.complete:
        raise RuntimeError(f"the enclosure ended at sigma = {enclosure.t_reached:g}: {enclosure.reason}")
    with enclosure.computing():
        states = [enclosure.moment(sigma).state for sigma in sigmas]
        pull = [_number(flow.conditions(state)["the logit falls"]) for state in states]
        ln_t = [_number(flow.ln_t(state, eta_y=eta_y)).lower for state in states]
        end = enclosure.moment(t_end).state
        trapped = all(_number(value).lower > 0 for value in flow.conditions(end).values())
        trapped_at = _number(flow.ln_t(end, eta_y=eta_y)).lower
        bounds = [(value.lower, value.upper) for value in pull]
    return {
        "signs": [int(low > 0) - int(high < 0) for low, high in bounds],
        "pull": bounds,
        "ln_t": ln_t,
        "trapped": trapped,
        "trapped_at": trapped_at,
    }


def rising_from(
    sizes: tuple[int, int], *, ratios: Sequence[float], speeds: Sequence[float], rtol: float
) -> dict[str, float]:
    """The first of increasing w(0) from which the logit rises at some a, of those that ``speeds`` are a M/3 of.

    Returns
    -------
    dict
        ``last``, the largest w(0) before it, nan if none; ``first``, nan if it rises from none; ``speed``, the a M/3
        at which it rises most there; ``failed``, runs that the integrator gave up, of ``runs``.
    """
    k, m = sizes
    last, failed, runs = math.nan, 0, 0
    for ratio in ratios:
        least = {}
        for speed in speeds:
            runs += 1
            try:
                least[speed] = _least(LateAttention(n_classes=k, vocab_size=m, ratio=ratio, speed=3 * speed / m), rtol)
            except IntegrationError:
                failed += 1
        worst = min(least, key=least.__getitem__)
        if least[worst] < -_SEEN:
            return {"last": last, "first": ratio, "speed": worst, "failed": failed, "runs": runs}
        last = ratio
    return {"last": last, "first": math.nan, "speed": math.nan, "failed": failed, "runs": runs}


def _least(flow: LateAttention, rtol: float) -> float:
    """The least N over (K - 1) kappa + M - K, at some thousands of sigma."""
    end = max(40.0, 4.0 * flow.vocab_size)
    times = np.unique(np.concatenate([np.geomspace(0.01, end, 1500), np.linspace(0.01, 40.0, 1500)]))
    found = yz.integrate(flow, t_end=end, times=times, rtol=rtol, atol=1e-14).dataset
    state = {name: found[name].values for name in flow.initial}
    return float((flow.conditions(state)["the logit falls"] / _scale(flow, state)[0]).min())


def _scale(flow: LateAttention, state: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(K - 1) kappa + M - K, and kappa."""
    w = np.exp(state["log_w"])
    kappa = np.exp((state["B"] + w * state["C"]) / np.sqrt(1 + w * w))
    return (flow.n_classes - 1) * kappa + flow.vocab_size - flow.n_classes, kappa


def _later(flow: LateAttention, ln_t: float, eta_y: float) -> Callable[[Any], Any]:
    """By how much a moment is later than a given ln t."""
    return lambda at: flow.ln_t(at.state, eta_y=eta_y) - ln_t


def _number(value: Any) -> Any:
    return np.asarray(value)[()]


def survey(flows: Iterable[LateAttention], *, rtol: float) -> dict[str, np.ndarray]:
    """For each flow the least N over its scale, the least kappa, and the first sigma at which the five conditions hold.

    Of the scale (K - 1) kappa + M - K, at 400 values of sigma from 0.001 to 100, spaced evenly in the logarithm.
    """
    times = np.geomspace(_FIRST, _LAST, _LOOKS)
    least, kappa, entered = [], [], []
    for flow in flows:
        found = yz.integrate(flow, t_end=_LAST, times=times, rtol=rtol, atol=1e-14).dataset
        state = {name: found[name].values for name in flow.initial}
        conditions = flow.conditions(state)
        scale, ratio = _scale(flow, state)
        inside = np.all([value >= 0 for value in conditions.values()], axis=0)
        least.append((conditions["the logit falls"] / scale).min())
        kappa.append(ratio.min())
        entered.append(times[inside.argmax()] if inside.any() else np.inf)
    return {"least": np.array(least), "kappa": np.array(kappa), "entered": np.array(entered)}


def surveyed(number: int, seed: int, rtol: float) -> dict[str, np.ndarray]:
    """`survey` of random settings."""
    return survey(random_settings(number, seed), rtol=rtol)


def law(sizes: tuple[int, int], ln_t: Sequence[float], **rates: float) -> dict[str, np.ndarray]:
    """w (ln t)^alpha and -d ln w/d ln ln t of `late_flow`, with one distinct token a class, and what next orders say.

    The next orders are in ln A; ln t = d A + ln kappa + ln(K/(eta_Y M)) + .. adds alpha w^2 - ln(K/(eta_Y M))/ln t
    of alpha, to the same order.
    """
    k, m = sizes
    flow = late_flow(ln_t, n_classes=k, vocab_size=m, n_distinct=1, rtol=1e-10, **rates)
    s, w = flow["ln_t"].values, flow["ratio"].values
    alpha = final_exponent(n_classes=k, vocab_size=m)
    speed = flow.attrs["gain"] * flow.attrs["eta_z"] * k / (flow.attrs["eta_y"] * m)
    d = 1 / np.sqrt(1 + w * w)
    slack = 1 / (speed * (w * s) ** 2)
    along = np.array([float(late_exponent.next_exponent(m, k, y, e)) for y, e in zip(w * w, slack, strict=True)])
    clock = 1 + alpha * w * w - np.log(k / (flow.attrs["eta_y"] * m)) / s
    return {
        "scaled": w * s**alpha,
        "exponent": flow["exponent"].values,
        "predicted": along / clock,
        "limit": np.full(s.shape, alpha),
        "d": d,
    }
