"""Plots with sliders on the pages of Scan and Snap's statements, in Theorem 4's setting with equal overlaps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from dynamics import SequenceClasses, gradient_flow
from theory.scan_and_snap import decoder
from theory.scan_and_snap.bounds import xi_over_gamma
from yzflow.pages.live import Start, Views
from yzflow.papers.scan_and_snap.panel.data import by_length
from yzflow.papers.scan_and_snap.settings import PAPER

DISTINCT = (1.0, 0.8, 0.6, 0.4, 0.2)
SEEDS = 8
WITH_SGD = ("exponent", "distinct", "common", "growth", "loss")

_PANEL = "yzflow.papers.scan_and_snap.panel"
_SCRIPTS = (
    *((_PANEL, name) for name in ("formulas.py", "mathematics.js", "levels.js")),
    *((__name__, name) for name in ("shared.js", "attention.js", "decoder.js", "limits.js")),
)
_FIRST = {"etaY": 1.0, "etaZ": 0.5, "K": 10, "M": 1000, "rho": 0.05, "end": 2000.0}
_WORDS = f"K = {_FIRST['K']}, M = {_FIRST['M']} and the rates of its Fig. 3."
_STARTS = (
    Start("The paper's sizes and rates", _WORDS, _FIRST),
    Start(
        "Inside Theorem 4's assumptions",
        "Attention learns a hundred times slower than the decoder, and overlaps are weak.",
        _FIRST | {"etaZ": 0.01, "rho": 0.009},
    ),
    Start(
        "Inside Assumption 2",
        "Two classes and a large vocabulary: overlaps weak, but not too weak.",
        _FIRST | {"K": 2, "M": 10000, "etaZ": 0.01, "rho": 0.1},
    ),
    Start(
        "Every next token occurs, K = M",
        "Here the paper's simplified decoder is close to the true one.",
        _FIRST | {"M": 10, "etaZ": 0.02, "rho": 0.05},
    ),
)
_VISITS = (
    Start("A vocabulary of 50", "As in the paper's Fig. 8, left.", {"etaY": 1.0, "M": 50, "end": 1000}),
    Start("A vocabulary of 1000", "As in the paper's Fig. 8, right.", {"etaY": 1.0, "M": 1000, "end": 1000}),
    Start("Long after", "Twenty thousand visits of one class.", {"etaY": 0.9, "M": 20, "end": 20000}),
)
_STARS = (
    Start(
        "A class beside a star",
        "Class 1 touches class 2, and class 2 overlaps with all others.",
        {"K": 4, "M": 100, "touch": 0.0001},
    ),
    Start("Ten classes", "The more classes, the less it takes to fail.", {"K": 10, "M": 100, "touch": 0.0001}),
    Start(
        "Overlaps that are not tiny",
        "What class 1 has with the centre itself keeps the sum positive.",
        {"K": 4, "M": 100, "touch": 0.02},
    ),
)
_RATES = tuple(
    Start(name, text, {key: value for key, value in _FIRST.items() if key != "rho"} | {"factor": 3.0} | more)
    for name, text, more in (
        ("The paper's sizes and rates", _WORDS, {}),
        (
            "A slow attention",
            "The late form begins later, with a ratio of rates of 1000.",
            {"etaZ": 0.001, "end": 100000.0},
        ),
    )
)


def collect(view: str, start: Start) -> dict[str, Any]:
    """SGD's runs at a view's first setting, by the length T of sequences, for views with bands of runs."""
    if view not in WITH_SGD:
        return {"runs": None}
    setting = start.setting | {"common": common_of(start.setting["rho"]), "distinct": DISTINCT}
    runs = by_length(setting, seeds=SEEDS)
    return {"runs": runs, "told": {length: run["told"] for length, run in runs.items()}}


def common_of(overlap: float) -> float:
    """The unnormalised probability of the common token at which classes have the overlap rho."""
    return math.sqrt(overlap / (1 - overlap) * sum(p * p for p in DISTINCT))


def integral_of_xi(classes: SequenceClasses, times: np.ndarray, *, eta_y: float, eta_z: float) -> np.ndarray:
    """int_0^t xi_n of Theorem 3, with xi_n by (9) along the theory flow, for exchangeable classes.

    Parameters
    ----------
    classes : SequenceClasses
    times : (N,) float
        Positive and rising, SGD steps.
    eta_y, eta_z : float
        Learning rates per step.

    Returns
    -------
    (N,) float
    """
    fine = np.interp(np.arange(16 * len(times) - 15) / 16, np.arange(len(times)), np.log(times))
    fine = np.concatenate([[0.0], np.geomspace(1e-3 * times[0], times[0], 60)[:-1], np.exp(fine)])
    run = gradient_flow(
        classes, eta_y=eta_y, eta_z=eta_z, t_end=fine[-1], times=fine, decoder="theory", rtol=1e-10, atol=1e-14
    )
    shares = run.dataset["attention"].to_numpy()
    f = shares / np.linalg.norm(shares, axis=2, keepdims=True)
    ratio = xi_over_gamma(f @ f.transpose(0, 2, 1), classes.vocab_size)[:, 0]
    # Integrate over Gamma, gamma dt = dGamma/eta_Z: the integrand then changes as slowly as the features.
    sizes = {"vocab_size": classes.vocab_size, "n_classes": classes.n_classes}
    total = decoder.gamma_integral(fine, **sizes, eta_y=eta_y, eta_z=1.0)
    return CubicSpline(total, ratio).antiderivative()(total)[-16 * len(times) + 15 :: 16]


VIEWS = Views(
    paper=PAPER,
    scripts=_SCRIPTS,
    views={
        "Lemma 6": "margin",
        "Lemma 7": "steps",
        "Remark 2": "lag",
        "Lemma 9": "stages",
        "Theorem 1": "pull",
        "Theorem 1(a)": "star",
        "Theorem 1(b)": "stages",
        "Theorem 5": "decoded",
        "Corollary 1": "loss",
        "Remark 1": "slowdown",
        "Lemma 4": "speed",
        "Theorem 2(a)": "distinct",
        "Theorem 2(b)": "common",
        "Corollary 2": "commons",
        "Theorem 3": "growth",
        "Theorem 4": "exponent",
        "Theorem 4, branches": "branches",
        "Equations 131 to 133": "rates",
    },
    starts={None: _STARTS, "steps": _VISITS, "lag": _VISITS, "star": _STARS, "rates": _RATES},
    collect=collect,
)

# <!-- numbers
# typed: 50 1000 (its own setting, which stands beside it)
# typed: 2 (number of a statement, figure, section or finding)
# -->
