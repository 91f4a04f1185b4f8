"""Options of training for JoMA's statements: rows of the survival table.

Flows are approximated by short Euler steps, with a term for every option; SGD draws batches of contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import yzflow as yz
from dynamics import Optimizer, Schedule
from yzflow.audits.options import Correction, Option, Room
from yzflow_joma.flows import JointFlow, SampledFlow
from yzflow_joma.settings import PAPER, RATE, SHORT, JomaSetting, alike, random_contexts, trained_classes

FLOWS = ("full flow, linear", "full flow, exp", "full flow, softmax")
ALL = (*FLOWS, "SGD")
_DECAY, _SLOWER = 0.01, 0.25


class DecoderDecays(JointFlow):
    """A `JointFlow` with weight decay 0.1 on the decoder only."""

    def derivative(self, t: float, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The gradient, and the decay."""
        rates = super().derivative(t, state)
        return rates | {"y": rates["y"] - 0.1 * state["y"]}


class One(SampledFlow):
    """SGD on batches of one context."""

    BATCH = 1


def _train(
    setting: JomaSetting,
    level: str,
    seed: int,
    *,
    flow: type[JointFlow] = JointFlow,
    sampled: type[SampledFlow] = SampledFlow,
    factor: float = 1.0,
    slower: Mapping[str, float] | None = None,
    **more: Any,
) -> yz.Run:
    """One run at a level. ``factor`` multiplies the rate, ``slower`` the rates of some states."""
    rate = factor * (RATE if level == "SGD" else SHORT)
    attention = "softmax" if level == "SGD" else level.removeprefix("full flow, ")
    made = setting.flow(attention, sampled if level == "SGD" else flow)
    rates = rate if slower is None else {name: rate * slower.get(name, 1.0) for name in made.initial}
    steps = round(setting.t_end / rate)
    run = yz.descend(made, rate=rates, steps=steps, seed=seed, record_every=max(1, steps // 60), **more)
    if slower is None:
        return run
    return yz.Run(run.dataset.assign_coords(time=rate * run.dataset["time"]), events=run.events)  # from steps to time


def _row(
    name: str,
    text: str,
    *,
    levels: tuple[str, ...] = ALL,
    changed: Mapping[str, Any] | None = None,
    corrected: Callable[[Any, str], Correction | None] | None = None,
    **training: Any,
) -> Option:
    """An option whose runs train by `_train`; ``changed`` are fields of the setting."""

    def adapted(setting: JomaSetting) -> JomaSetting:
        return replace(setting, **(changed or {}))

    def simulate(setting: JomaSetting, level: str, seed: int) -> yz.Run:
        return _train(adapted(setting), level, seed, **training)

    return Option(name, text, simulate, levels, adapted, corrected)


def _undecayed(setting: JomaSetting, level: str) -> Correction | None:
    """Correction for decay: for linear attention, z^2 - sum v^2 falls like e^{-2 decay t}; None for other kinds."""

    def view(dataset: xr.Dataset) -> xr.Dataset:
        grown = np.exp(_DECAY * dataset["time"])
        return dataset.assign({name: dataset[name] * grown for name in ("z", "v")})

    return Correction(setting, view) if level == FLOWS[0] else None


def _rescaled(setting: JomaSetting, level: str) -> Correction:
    """Correction for a separate rate of z: z is divided by its rate, or by the rate's root for linear attention."""
    power = 0.5 if level == FLOWS[0] else 1.0
    return Correction(setting, lambda dataset: dataset.assign(z=dataset["z"] / _SLOWER**power))


_PLAIN = partial(Optimizer, momentum=0.0)
OPTIONS = (
    _row("plain", "short steps along the gradient, as in the statements"),
    _row("larger start", "a start of size 0.5", changed={"scale": 0.5}),
    _row("ReLU", "rectified units", changed={"activation": "relu"}),
    _row("linear units", "units without an activation", changed={"activation": "linear"}),
    _row("clipping", "gradients of a norm above 0.1 are scaled down to it", optimizer=_PLAIN(clip=0.1)),
    _row(
        "cosine schedule",
        "learning rates that fall to zero as a cosine",
        optimizer=_PLAIN(schedule=Schedule(1.0, "cosine")),
    ),
    _row(
        "weight decay",
        f"weight decay of all weights, {_DECAY}",
        optimizer=_PLAIN(weight_decay=_DECAY),
        corrected=_undecayed,
    ),
    _row("decoder decays", "weight decay of the decoder alone, 0.1", levels=FLOWS, flow=DecoderDecays),
    _row("decoder frozen", "the decoder stays at its start", slower={"y": 0.0}),
    _row("slow attention", f"the rate of z is {_SLOWER} of the others", slower={"z": _SLOWER}, corrected=_rescaled),
    _row("momentum", "heavy ball, 0.9, at the same rates", optimizer=Optimizer(momentum=0.9)),
    _row("long steps", "steps a hundred times as long", levels=FLOWS, factor=100.0),
    _row("sign descent", "steps of the size of the rate, by the gradient's signs", optimizer=_PLAIN("sign")),
    _row("adam", "Adam, betas 0.9 and 0.999, at the same rates", optimizer=Optimizer("adam")),
    _row("batch of one", "one context a step", levels=("SGD",), sampled=One),
)


def _settings(*, quick: bool) -> list[JomaSetting]:
    """Settings of the table. The first is inside the assumption for softmax, the others are outside."""
    chosen = [
        replace(alike("40 contexts alike", 40, 6, 4, seed=4), t_end=20.0),
        replace(trained_classes("softplus"), t_end=40.0),
    ]
    if not quick:
        chosen.append(random_contexts("40 random contexts", 40, 6, 4, seed=0, activation="softplus", t_end=40.0))
    return chosen


def _mirrored(dataset: xr.Dataset) -> xr.Dataset:
    """A run whose logits z move the opposite way from the same start."""
    z = dataset["z"]
    return dataset.assign(z=(2 * z.isel(time=0) - z).transpose(*z.dims))


ROOM = Room(
    PAPER,
    OPTIONS,
    {level: level for level in ALL},
    ("SGD",),
    _settings,
    lambda *, quick: 16 if quick else 24,
    _mirrored,
)
