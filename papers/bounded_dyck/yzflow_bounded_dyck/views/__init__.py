"""Plots with sliders on the pages of bounded Dyck: features and errors over the number of inserted pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from yzflow.pages.live import Start, Views
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.settings import PAPER

SEED = 2
_SIZES = [(k, depth) for k in (2, 3) for depth in (2, 3, 4)]

_PAIRS = {
    "k": 2,
    "D": 3,
    "level": 1,
    "scale": 0.5,
    "off": 0.3,
    "factor": 1.0,
    "live": 1.0,
    "floor": 0.0,
    "end": 10000.0,
}
_LAW = (
    Start("A pair that adds a little", "Logits are 0.3 off balance for the inserted pair.", _PAIRS),
    Start(
        "A floor in LN",
        "Behind a floor the normaliser of softmax counts, and (13) is missed.",
        _PAIRS | {"off": 0.0, "floor": 0.3},
    ),
)
_NEEDED = (
    Start("A hundredth off balance", "It takes hundreds of pairs until the layer forgets.", _PAIRS | {"off": 0.01}),
    Start("Balanced", "The right layer, at any length.", _PAIRS | {"off": 0.0}),
    Start(
        "Far off balance, without values",
        "The pair's values vanish: what its logits are does not matter.",
        _PAIRS | {"level": 3, "off": 1.0, "live": 0.0},
    ),
)
_SILENT = (
    Start("Values of a tenth", "Small values make forgetting slower, and do not prevent it.", _PAIRS | {"live": 0.1}),
    *_NEEDED[:0:-1],
)
_VALUES = (
    Start(
        "Values a tenth off",
        "V of the closing bracket is 1.1 times what (14) asks for.",
        _PAIRS | {"factor": 1.1, "off": 0.0},
    ),
    Start(
        "Two wrongs at one query",
        "Logits and values are off, and cancel at this query alone: no other query has this logit.",
        _PAIRS | {"factor": 1.221, "off": 0.2},
    ),
)
_EXACT = (
    Start("A hundredth off balance", "Right on short texts, and wrong on long ones.", _PAIRS | {"off": 0.01}),
    Start("Balanced", "Exact at any length.", _PAIRS | {"off": 0.0}),
    Start(
        "A floor in LN",
        "Balanced, and wrong on long texts: the normaliser of softmax grows, and the sum sinks below the floor.",
        _PAIRS | {"off": 0.0, "floor": 0.1},
    ),
)
_BOUND = (
    Start(
        "Where nothing is given away",
        "Opposite stacks, and a pair orthogonal to both.",
        {"added": 0.05, "angle": 180, "tilt": 0, "end": 10000.0},
    ),
    Start(
        "Stacks at a right angle",
        "The bound is above what the pair adds.",
        {"added": 0.05, "angle": 90, "tilt": 0, "end": 10000.0},
    ),
)
_LINKED = {"D": 3, "scale": 0.5, "link": 0.3, "turn": 60, "end": 10000.0}
_LINK = (
    Start("A residual link", "The layer is balanced, and forgets all the same.", _LINKED),
    Start("A link along the ones", "LN takes the mean off, and with it this link.", _LINKED | {"turn": 0}),
)


def collect(view: str, start: Start) -> dict[str, Any]:
    """Balanced layers with logits of standard deviation one, by types and depth: Z, and ln |V| of each bracket."""
    layers = {}
    for k, depth in _SIZES:
        layer = balance.balanced_layer(DyckLanguage(k, depth), rng=SEED, decoder=False)
        sizes = np.abs(np.asarray(layer.V)).max(axis=1)[:-1]
        layers[f"{k},{depth}"] = {"Z": np.asarray(layer.Z).tolist(), "logs": np.log(sizes).tolist()}
    return {"runs": {"seed": SEED, "layers": {} if view == "bound" else layers}}


VIEWS = Views(
    paper=PAPER,
    scripts=((__name__, "balance.js"), (__name__, "views.js")),
    views={
        "Equation 13": "insertion",
        "Theorem 1, necessity": "needed",
        "Silent pairs": "silent",
        "Theorem 1, sufficiency": "exact",
        "Appendix C.7": "link",
        "Balance of values": "values",
        "Corollary 1": "uniform",
        "Theorem 2": "bound",
    },
    starts={
        None: _NEEDED,
        "insertion": _LAW,
        "silent": _SILENT,
        "exact": _EXACT,
        "uniform": tuple(Start(one.name, one.text, one.setting | {"scale": 0.0}) for one in _EXACT),
        "link": _LINK,
        "values": _VALUES,
        "bound": _BOUND,
    },
    collect=collect,
)

# <!-- numbers
# typed: 0.3 1.1 (its own setting, which stands beside it)
# -->
