"""Options of training under flat names, one number or word each, for command lines and grids of sweeps.

`Optimizer`, `Schedule` and `Objective` explain the options; the functions below build these objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamics._model.objective import NORMALISATIONS, Objective
from dynamics.optimizers.optimizer import EPSILON, MOMENTUM, OPTIMIZERS, Optimizer, Schedule
from dynamics.support import checks

# Name -> default, beside "optimizer" and "momentum", which are arguments of `sgd`.
OF_OPTIMIZER: dict[str, Any] = {
    "weight_decay": None,
    "decoupled": None,
    "clip": None,
    "warm_up": 0.0,
    "schedule": "constant",
    "epsilon": EPSILON,
}
OF_OBJECTIVE: dict[str, Any] = {
    "criterion": "cross-entropy",
    "label_smoothing": 0.0,
    "temperature": 1.0,
    "normalisation": "unit",
}


def optimizer_of(options: Mapping[str, Any]) -> Optimizer:
    """The optimizer of these options, by default heavy ball as in `sgd`; other keys are ignored.

    ``schedule`` is the decay of a `Schedule` that ends with the run: "constant", "cosine" or "linear".
    """
    checks.instance("options", options, Mapping)
    values = {name: options.get(name, default) for name, default in OF_OPTIMIZER.items()}
    warm_up, decay = values.pop("warm_up"), values.pop("schedule")
    scheduled = warm_up != OF_OPTIMIZER["warm_up"] or decay != OF_OPTIMIZER["schedule"]
    return Optimizer(
        options.get("optimizer", OPTIMIZERS[0]),
        options.get("momentum", MOMENTUM),
        schedule=_schedule(warm_up, decay) if scheduled else None,
        **values,
    )


def _schedule(warm_up: Any, decay: Any) -> Schedule:
    try:
        return Schedule(warm_up, decay)
    except ValueError as error:  # with the option's name
        raise ValueError(str(error).replace("`decay`", "`schedule`")) from None


def objective_of(options: Mapping[str, Any]) -> Objective:
    """The objective of these options; other keys are ignored. ``normalisation`` may be "none"."""
    checks.instance("options", options, Mapping)
    values = {name: options.get(name, default) for name, default in OF_OBJECTIVE.items()}
    words = [name or "none" for name in NORMALISATIONS]
    if values["normalisation"] is not None:
        kind = checks.one_of("normalisation", values["normalisation"], words)
        values["normalisation"] = None if kind == "none" else kind
    return Objective(**values)


def unusual(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that differ from the defaults, checked."""
    optimizer, objective = optimizer_of(options), objective_of(options)
    values = {name: options[name] for name in (*OF_OPTIMIZER, *OF_OBJECTIVE) if name in options}
    for name in values:
        for value in (optimizer, objective):
            if name != "schedule" and hasattr(value, name):
                values[name] = getattr(value, name)
        if name == "warm_up" and isinstance(optimizer.schedule, Schedule):
            values[name] = optimizer.schedule.warm_up
    if "normalisation" in values:
        values["normalisation"] = objective.normalisation or "none"
    plain = Optimizer(optimizer.name, optimizer.momentum)
    usual = OF_OPTIMIZER | OF_OBJECTIVE | {"weight_decay": plain.weight_decay, "decoupled": plain.decoupled}
    return {name: value for name, value in values.items() if value != usual[name]}


def flow_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments ``objective`` and ``optimizer`` of `gradient_flow`; plain steps without momentum by default."""
    checks.instance("options", options, Mapping)
    optimizer = optimizer_of({"momentum": 0.0} | dict(options))
    plain = optimizer == Optimizer(OPTIMIZERS[0], 0.0)
    return {"objective": objective_of(options), "optimizer": None if plain else optimizer}
