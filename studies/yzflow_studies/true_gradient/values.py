"""Theorem 2(a) under the true decoder gradient with frozen features: its sum over random overlaps."""

import numpy as np

from dynamics import SequenceClasses, gradient_flow
from theory.values import Study
from yzflow_studies.refined import largest
from yzflow_studies.true_gradient import in_balls, nearly_equal
from yzflow_studies.true_gradient import study as gradient


def survey(draws: int, seed: int, ln_t: float) -> dict:
    """xi_n in frozen flows of random Gram matrices, as a share of the sum of the moduli of its terms."""
    found = gradient.survey(draws=draws, seed=seed, last=ln_t)
    return {
        "least": float(found["least"].min()),
        "below": int((found["least"] < 0).sum()),
        "none_below": bool((found["least"] > 0).all()),
        "negative_term": float(found["negative"].mean()),
        "k_low": int(found["n_classes"].min()),
        "k_high": int(found["n_classes"].max()),
        "m_high": int(found["vocab_size"].max()),
    }


def three(draws: int, seed: int, ln_t: float) -> dict:
    """Whether each of three classes gives more to the class that it overlaps more, up to ln t, and the least xi_n."""
    found = gradient.three_classes(draws=draws, seed=seed, last=ln_t)
    return {
        "in_order": bool((found["order"] >= 0).all()),
        "least": float(found["least"].min()),
        "none_below": bool((found["least"] > 0).all()),
        "bound": 1 - 0.05 ** (1 / draws),
    }


def crossing(h_fast: float, back: float, mu: float) -> dict:
    """The weighted sum of H that turns back, after and before the turn: the first would be a counter-example."""
    after, before = gradient.crossing(h_fast=h_fast, back=back, mu=mu)
    return {"after": after, "before": before, "left": h_fast - back, "negative": bool(after < 0 < before)}


def turned(spread: float, pull: float, ln_turned: float, step: float, others: float) -> dict:
    """The least share of xi_n about the turn, in the limit and, by another route, in the flow with a Gram matrix.

    ``five``: beside a fifth class that overlaps with none, for a turn at ``others``.
    """
    s = ln_turned + np.arange(0.0, 5.01, 0.1)
    found = nearly_equal.limit(spread=spread, pull=pull, ln_turned=ln_turned, ln_t=s)
    at = int(np.argmin(found["share"].values))
    rows = nearly_equal.features(spread=spread, pull=pull, ln_turned=ln_turned)
    flow, rough = (nearly_equal.flow(rows, ln_t=[s[at]], step=h) for h in (step, 2 * step))
    own, apart = flow["share"].item(), flow["apart"].values[0]
    wider = nearly_equal.features(spread=spread, pull=pull, ln_turned=others)
    five = nearly_equal.flow(
        [[*row, "0"] for row in wider] + [["0"] * 4 + ["1"]],
        ln_t=others + np.array([2.8, 3.0, 3.2, 3.4]),
        step=4 * step,
    )
    return {
        "limit": float(found["share"][at]),
        "flow": own,
        "rough": abs(rough["share"].item() - own),
        "gap": abs(found["share"].values[at] - own),
        "ln_t": float(s[at]),
        "a": float(apart[1]),
        "b": float(apart[2]),
        "c": float(apart[3]),
        "ratio": float(np.exp(flow["log_alpha"].values[0, 2] - flow["log_alpha"].values[0, 3])),
        "hub": pull * spread**2,
        "near": float(np.sqrt(1 - spread**2)),
        "five": float(five["share"].min()),
        "negative": bool(own < 0 and found["share"][at] < 0 and five["share"].min() < 0),
    }


def balls(spread: float, pull: float, ln_turned: float, ln_t: float) -> dict:
    """Bounds of the share of xi_n and of H_n(b) - H_n(n) in the limit, at one time."""
    found = in_balls.enclosed(spread=spread, pull=pull, ln_turned=ln_turned, ln_t=ln_t)
    low, high = found["share"]
    return {"low": low, "high": high, "b": found["b"][1], "at": ln_t, "negative": high < 0}


def turns(spread: float, pull: float, ln_turned: list[float]) -> dict:
    """The least share of xi_n about the turn, in the limit, for turns at several times; refined over time."""
    rows = []
    for last in ln_turned:

        def below(s: np.ndarray, last: float = last) -> np.ndarray:
            return -nearly_equal.limit(spread=spread, pull=pull, ln_turned=last, ln_t=s)["share"].values

        rows.append({"ln_turned": last, "least": -largest(below, last + np.arange(-5.0, 5.01, 0.1))[0]})
    signs = [row["least"] < 0 for row in rows]
    first = signs.index(True)
    return {"rows": rows, "not_yet": rows[first - 1]["ln_turned"], "from": rows[first]["ln_turned"]}


def moved(probabilities: list[list[float]], token: int, eta_y: float, eta_z: float, times: list[float]) -> dict:
    """Logit and velocity of a distinct token in the full flow of two classes of one query, features moving."""
    classes = SequenceClasses(probabilities, [0, 0], vocab_size=2)
    run = gradient_flow(
        classes, eta_y=eta_y, eta_z=eta_z, t_end=times[-1], times=times, decoder="full", rtol=1e-10, atol=1e-13
    ).dataset
    z, velocity = (run[name].values[:, 0, token] for name in ("z", "z_velocity"))
    return {"z": z, "velocity": velocity, "turns": bool(velocity[0] > 0 > velocity[1]), "loses": bool(z[-1] < 0)}


STUDIES = (
    Study(
        "moved",
        moved,
        {
            "probabilities": [[2 / 3, 1 / 3, 0.0], [0.25, 0.0, 0.75]],
            "token": 1,
            "eta_y": 1.0,
            "eta_z": 0.5,
            "times": [50.0, 100.0, 10_000.0],
        },
        ("outside Assumption 2, M >> K^2",),
    ),
    Study("survey", survey, {"draws": 1000, "seed": 1, "ln_t": 9.0}, ("features stand still",), quick=False),
    Study("three", three, {"draws": 300, "seed": 7, "ln_t": 20.0}, ("features stand still",), quick=False),
    Study("crossing", crossing, {"h_fast": 3.0, "back": 1.5, "mu": 30.0}),
    Study(
        "turned",
        turned,
        {"spread": 0.4, "pull": 0.4, "ln_turned": 50.0, "step": 0.05, "others": 70.0},
        ("features stand still",),
        quick=False,
    ),
    Study(
        "balls",
        balls,
        {"spread": 0.4, "pull": 0.4, "ln_turned": 50.0, "ln_t": 53.1},
        ("features stand still", "the limit of two classes that are nearly the same"),
        quick=False,
    ),
    Study(
        "turns",
        turns,
        {"spread": 0.4, "pull": 0.4, "ln_turned": [25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 60.0, 80.0, 100.0, 200.0]},
        ("features stand still", "the limit of two classes that are nearly the same"),
        quick=False,
    ),
)
