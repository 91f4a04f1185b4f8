"""Measures: errors of JoMA's statements on runs."""

from __future__ import annotations

import numpy as np
import xarray as xr

import yzflow as yz
from theory.statements import Runs
from yzflow_joma import formulas
from yzflow_joma.flows import JointFlow, ReducedFlow, entropy


def _drift(kept: np.ndarray, changed: np.ndarray) -> float:
    """Largest change of a conserved quantity over time, relative to the largest change of z."""
    largest = np.linalg.norm(changed - changed[0], axis=1).max()
    return float(np.linalg.norm(kept - kept[0], axis=1).max() / largest) if largest > 0 else 0.0


def invariant(runs: Runs, level: str) -> float:
    """Drift of z^2 - sum v^2 (linear attention) or z - sum v^2/2 (exp and softmax), over the change of z."""
    data = runs.trajectory(level).dataset
    z, squares = data["z"].values, (data["v"].values ** 2).sum(axis=1)
    if level.endswith("linear"):
        return _drift(z**2 - squares, z**2)
    return _drift(z - squares / 2, z)


def softmax_invariant(runs: Runs, level: str) -> float:
    """Drift of z - sum (v^2 - ||v||^2 bbar)/2, over the change of z; bbar is the mean attention at the start."""
    run = runs.trajectory(level)
    flow = runs.setting.flow("softmax")
    return with_mean(run.dataset, mean_attention(flow, run.dataset["z"].values[0]))


def with_mean(data: xr.Dataset, mean: np.ndarray) -> float:
    """Drift of z - sum (v^2 - ||v||^2 bbar)/2 for a given bbar."""
    z, v2 = data["z"].values, data["v"].values ** 2
    return _drift(z - (v2.sum(axis=1) - v2.sum(axis=(1, 2))[:, None] * mean) / 2, z)


def mean_attention(flow: JointFlow, z: np.ndarray) -> np.ndarray:
    """bbar: attention at logits z, averaged over contexts."""
    return flow.gathered({"z": z}).mean(axis=0)


def factorisation(flow: JointFlow) -> float:
    """Relative distance of E[g_k h'_k b b^T] from E[g_k h'_k b] bbar^T at the start, over all units."""
    state = {name: np.asarray(value) for name, value in flow.initial.items()}
    b, _, _, g = flow.signals(state)
    moments = np.einsum("ik,ij,il->kjl", g, b, b) / len(b)
    product = (g.T @ b / len(b))[:, :, None] * b.mean(axis=0)
    return float(np.linalg.norm(moments - product) / np.linalg.norm(moments))


def drift_rate(runs: Runs, level: str) -> float:
    """Rate of the quantity of `with_mean` by the gradient, against -E[(b - bbar) sum_k g_k h'_k v_k . b].

    The largest error over recorded times, relative to the logits' own rate; bbar is the mean attention at the start.
    """
    data, flow = runs.trajectory(level).dataset, runs.setting.flow("softmax")
    mean, worst = mean_attention(flow, data["z"].values[0]), 0.0
    for time in range(data.sizes["time"]):
        state = {name: data[name].values[time] for name in ("z", "v", "q", "y")}
        rates = flow.derivative(0.0, state)
        turn = state["v"] * rates["v"]
        rate = rates["z"] - turn.sum(axis=0) + turn.sum() * mean
        b, _, _, g = flow.signals(state)
        expected = -((b - mean) * (g * (b @ state["v"].T)).sum(axis=1)[:, None]).mean(axis=0)
        worst = max(worst, float(np.abs(rate - expected).max() / max(np.abs(rates["z"]).max(), 1e-300)))
    return worst


# Two sizes and zeros: too many zeros for a rise in the end, few enough for a rise before.
SPARSE_AGAIN = (2.5, 2.0, *[0.0] * 15)


def sparse_again(runs: Runs, level: str) -> float:
    """Zero if the entropy of `SPARSE_AGAIN` falls, rises and falls again; one if not."""
    times = np.concatenate([[0.0], np.geomspace(0.05, 2.0, 400)])  # later changes are rounding
    run = yz.integrate(ReducedFlow(SPARSE_AGAIN), t_end=2.0, times=times, rtol=1e-11, atol=1e-13)
    signs = np.sign(np.diff(run.dataset["entropy"].values))
    changes = signs[np.flatnonzero(np.diff(signs)) + 1].tolist()
    return float(signs[0] != -1 or changes != [1, -1])


# Three entries, two of them near each other, none zero.
THREE_TURNS = (3.14, 3.12, 0.1)


def three_turns(runs: Runs, level: str) -> float:
    """Zero if the rate of the entropy of `THREE_TURNS` has the signs -, +, -, +; one if not."""
    times = np.concatenate([[0.0], np.linspace(0.05, 1.0, 2000)])
    run = yz.integrate(ReducedFlow(THREE_TURNS), t_end=1.0, times=times, rtol=1e-11, atol=1e-13)
    mu = np.array(THREE_TURNS)
    signs = np.sign([formulas.entropy_rate(v, mu) for v in run.dataset["v"].values[1:]])
    return float(signs[0] != -1 or signs[np.flatnonzero(np.diff(signs)) + 1].tolist() != [1, -1, 1])


def rising(runs: Runs, level: str) -> float:
    """Share of times at which the sign of the entropy's rate differs from the sign by R(t).

    For the setting's mu beside 0, 1, 5 and 20 zeros. Times with a rate below 1e-5 of the largest are left out, since
    the late rate is an error of the integrator.
    """
    data, mu, wrong = runs.trajectory(level).dataset, np.array(runs.setting.mu), []
    t, v = data["time"].values[1:], data["v"].values[1:]
    several = formulas.rising_zeros(mu, t)
    for zeros in (0, 1, 5, 20):
        beside = np.zeros(zeros)
        rate = np.array([formulas.entropy_rate(np.append(row, beside), np.append(mu, beside)) for row in v])
        seen = (np.abs(rate) > 1e-5 * np.abs(rate).max()) & (np.abs(several - zeros) > 1e-6 * (1 + zeros))
        wrong.append(np.mean((rate > 0)[seen] != (zeros + np.sum(mu == 0) < several)[seen]))
    return float(max(wrong))


def level_speeds(runs: Runs, level: str) -> float:
    """Share of pairs of the setting's entries whose speeds of v^2/2 do not cross once, at `formulas.level_time`."""
    data, mu = runs.trajectory(level).dataset, np.abs(runs.setting.mu)
    t, v = data["time"].values[1:], np.abs(data["v"].values[1:])
    speed = v * (mu - v) * np.exp(v**2 / 2)
    wrong = []
    for low in range(len(mu)):
        for high in np.flatnonzero((mu > mu[low]) & (mu[low] > 0)):
            when = formulas.level_time(mu[low], mu[high])
            seen = (np.abs(t / when - 1) > 1e-3) & (speed[:, low] > 1e-3)  # late speeds are errors of the integrator
            wrong.append(bool(np.any((speed[:, high] > speed[:, low])[seen] != (t < when)[seen])))
    return float(np.mean(wrong)) if wrong else 0.0


def linear_form(runs: Runs, level: str) -> float:
    """Largest relative error of sqrt(pi/2) erf(v/sqrt 2) against Delta t."""
    data = runs.trajectory(level).dataset.isel(time=slice(1, None))
    times = formulas.linear_time(data["v"].values, runs.setting.delta)
    return float(np.abs(times / data["time"].values[:, None] - 1).max())


def nonlinear_form(runs: Runs, level: str) -> float:
    """Largest relative error of the integral against t, while 1 - v/mu is above 1e-6."""
    data = runs.trajectory(level).dataset
    errors = [0.0]
    for i, mu in enumerate(runs.setting.mu):
        for t, v in zip(data["time"].values[1::8], data["v"].values[1::8, i], strict=True):
            if 1 - v / mu > 1e-6:
                errors.append(abs(formulas.nonlinear_time(v, mu) / t - 1))
    return float(max(errors))


def late_form(runs: Runs, level: str) -> float:
    """Largest error of ln(1/delta) against e^{mu^2/2} (t - tau), at the first time with delta below 1e-4."""
    data = runs.trajectory(level).dataset
    errors = [0.0]
    for i, mu in enumerate(runs.setting.mu):
        delta = 1 - data["v"].values[:, i] / mu
        near = np.flatnonzero(delta < 1e-4)
        # Far below 1e-4, delta is an error of the integrator.
        if near.size and delta[near[0]] > 1e-8:
            t = data["time"].values[near[0]]
            expected = np.exp(mu * mu / 2) * (t - formulas.delay(mu))
            errors.append(abs(-np.log(delta[near[0]]) / expected - 1))
    return float(max(errors))


def turning(runs: Runs, level: str) -> float:
    """Zero if the entropy falls first and has risen in the end, above its least value; one if not."""
    entropies = runs.trajectory(level).dataset["entropy"].values
    least = int(entropies.argmin())
    falls = entropies[least] < entropies[0] - 1e-6
    rises = entropies[-1] > entropies[least] + 1e-6
    return 0.0 if falls and rises and 0 < least < len(entropies) - 1 else 1.0


def rise(runs: Runs, level: str) -> float:
    """Share of its fall that the entropy has regained at the last time; one if it never fell."""
    entropies = runs.trajectory(level).dataset["entropy"].values
    fall = entropies[0] - entropies.min()
    return float((entropies[-1] - entropies.min()) / fall) if fall > 0 else 1.0


def turning_rate(runs: Runs, level: str) -> float:
    """Error of the formula for dH/dt: its integral by trapezoids, against the recorded entropy."""
    data = runs.trajectory(level).dataset
    mu, v, t = np.array(runs.setting.mu), data["v"].values, data["time"].values
    rate = np.array([formulas.entropy_rate(row, mu) for row in v])
    steps = np.diff(t) * (rate[1:] + rate[:-1]) / 2
    whole = data["entropy"].values
    return float(np.abs(np.cumsum(steps) - (whole[1:] - whole[0])).max() / np.ptp(whole))


def end_entropy(runs: Runs, level: str) -> float:
    """Relative error of the entropy at the last time against the entropy of softmax(mu^2/2)."""
    last = float(runs.trajectory(level).dataset["entropy"].values[-1])
    return abs(last / entropy(np.array(runs.setting.mu) ** 2 / 2) - 1)
