"""Late attention for K < M: flows enclosed until they are trapped, random settings, and the law against the flow.

Derivation: `theory.scan_and_snap.proofs.late_exponent`. Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import yzflow as yz
from theory.scan_and_snap.late_attention import LateAttention, random_settings
from theory.scan_and_snap.proofs import late_exponent
from yzflow.papers.scan_and_snap.late import final_exponent, late_flow

# Between the first and the last of these sigma the survey looks.
_FIRST, _LAST, _LOOKS = 1e-3, 100.0, 400


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
        w = np.exp(state["log_w"])
        ratio = np.exp((state["B"] + w * state["C"]) / np.sqrt(1 + w * w))
        scale = (flow.n_classes - 1) * ratio + flow.vocab_size - flow.n_classes
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
