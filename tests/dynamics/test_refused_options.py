"""Bad options of training: each is refused by its name, the rule and the value."""

import dataclasses

import numpy as np
import pytest
from hostile import refused

from dynamics import Bags, Layer, Objective, Optimizer, Schedule, SequenceClasses, gradient_flow, sgd

CLASSES = SequenceClasses.single_common_token(3, 6, common=0.5)
UNEVEN = SequenceClasses(np.eye(2), [0, 0], class_weights=[0.9, 0.1])
RATES = {"eta_y": 1.0, "eta_z": 1.0}
TRAJECTORY = gradient_flow(CLASSES, **RATES, t_end=1.0, n_times=2)
HOT = dataclasses.replace(Layer.zeros(CLASSES.population()), temperature=3.0)


def steps(**options):
    return {"optimizer": Optimizer(**options)}


def loss(**options):
    return {"objective": Objective(**options)}


def theory(**options):
    return {"decoder": "theory"} | options


CALLS = {
    "an optimizer": (Optimizer, {}),
    "a schedule": (Schedule, {}),
    "a schedule without an end": (Schedule(decay="cosine"), {"t": 3}),
    "an objective": (Objective, {}),
    "a layer": (Layer, {"Z": [[0.0]], "Y": [[0.0]]}),
    "steps": (sgd, {"data": CLASSES, **RATES, "steps": 5, "length": None}),
    "a flow": (gradient_flow, {"data": CLASSES, **RATES, "t_end": 5.0}),
}
OF_BOTH = [
    ("warm_up", ..., "below the 5 steps of the schedule", "9", steps(schedule=Schedule(9, "cosine"))),
    ("schedule", ..., "return a finite number at step 0", "'high'", steps(schedule=lambda step: "high")),
    ("terms", ..., "return a mapping from names of weights to arrays", "3", loss(terms=(lambda weights: 3,))),
    ("terms", ..., "return names among Z, Y", "'V'", loss(terms=(lambda weights: {"V": 0},))),
    ("terms", ..., "return an array of shape (1, 16) for Z", "(1,)", loss(terms=(lambda weights: {"Z": [1.0]},))),
    ("temperature", ..., "3.0, that of the start, or left out", "2.0", loss(temperature=2.0) | {"init": HOT}),
    ("normalisation", ..., "'unit' for decoder='modified', which inverts F^T F of unit features", "None",
     loss(normalisation=None) | {"decoder": "modified"}),
]  # fmt: skip
REFUSED = {
    "an optimizer": [
        *(("optimizer", ..., "one of 'sgd', 'adam', 'adamw', 'sign'", repr(bad), {"name": bad})
          for bad in ("rmsprop", "cubes")),
        ("weight_decay", -0.1, "non-negative"),
        ("weight_decay", np.nan, "a non-negative finite number"),
        ("decoupled", True, "left out without weight decay"),
        ("decoupled", False, "left out for 'adam', and for 'adamw'", None, {"name": "adamw"}),
        ("decoupled", True, "left out for 'adam'", None, {"name": "adam", "weight_decay": 0.1}),
        ("schedule", 0.5, "a Schedule or a function of the step"),
        ("clip", 0.0, "positive"),
        ("betas", (0.9, 0.99), "left out for 'sgd'", "(0.9, 0.99)"),
        ("epsilon", 0.1, "left out for 'sgd'"),
        ("betas", (0.9,), "two numbers", "(0.9,)", {"name": "adam"}),
        ("betas", (0.9, 1.0), "below 1", "1.0", {"name": "adam"}),
        ("epsilon", 0.0, "positive", None, {"name": "adam"}),
    ],
    "a schedule": [
        ("warm_up", -1, "non-negative"),
        ("decay", "step", "one of 'constant', 'cosine', 'linear'"),
        ("floor", 0.1, "left out without a decay"),
        ("steps", 10, "left out without a decay"),
        ("floor", 2.0, "at most 1", None, {"decay": "linear"}),
        ("warm_up", 20, "below the 10 steps of the schedule", None, {"decay": "linear", "steps": 10}),
    ],
    "a schedule without an end": [("steps", ..., "given for the decay 'cosine' outside a run", "None")],
    "an objective": [
        ("contrast", [1], "Bags", "list"),
        ("contrast_weight", 0.5, "0 without"),
        ("contrast_weight", -1, "non-negative", None, {"contrast": Bags([0], [0], [0, 1], [0], [1.0])}),
        ("label_smoothing", 1.0, "below 1"),
        ("label_smoothing", -0.1, "non-negative"),
        ("temperature", 0.0, "positive"),
        ("temperature", np.inf, "a positive finite number"),
        ("normalisation", "batch", "one of 'unit', 'layer'"),
        ("terms", (3,), "a function", "3"),
        ("terms", 7, "functions of the weights"),
    ],
    "a layer": [
        ("temperature", 0, "positive"),
        ("normalisation", None, "'unit' with a residual connection", None, {"Y": [[0.0], [0.0]], "residual": True}),
        ("center", True, "left out without normalisation", None, {"V": [[1.0]], "normalisation": None}),
    ],
    "steps": [
        *OF_BOTH,
        ("schedule", ..., "return no negative number at step 2", "-1.0", steps(schedule=lambda step: 1.0 - step)),
        ("replacement", False, "left out when batch_size is None, which draws nothing", None, {"batch_size": None}),
        ("replacement", False, "True where weights differ", "weights from", {"data": UNEVEN}),
    ],
    "a flow": [
        *OF_BOTH,
        ("optimizer", "adamw", "an Optimizer"),
        ("init", TRAJECTORY, "a Layer with momentum, for a trajectory has no velocities", "", steps()),
        ("clip", ..., "None for decoder='theory'", "1.0", theory(**steps(momentum=0.0, clip=1.0))),
        ("optimizer", ..., "'sgd' for decoder='theory'", "'adam'", theory(**steps(name="adam"))),
        ("momentum", ..., "0.0 for decoder='theory'", "0.9", theory(**steps())),
        ("weight_decay", ..., "0.0 for decoder='theory'", "0.1", theory(**steps(momentum=0.0, weight_decay=0.1))),
        ("label_smoothing", ..., "left out for decoder='theory'", "0.1", theory(**loss(label_smoothing=0.1))),
        ("temperature", ..., "1 for decoder='theory'", "2.0", theory(**loss(temperature=2.0))),
        ("normalisation", ..., "'unit' for decoder='theory', which inverts F^T F of unit features", "'layer'",
         theory(**loss(normalisation="layer"))),
        ("terms", ..., "left out for decoder='theory'", "", theory(**loss(terms=(lambda weights: {},)))),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_option_is_refused_by_its_name_the_rule_and_the_value(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(*CALLS[name], REFUSED[name])
