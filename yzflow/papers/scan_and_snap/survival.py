"""Survival of the statements of Scan and Snap under changes of an assumption: the table's rows, and its settings.

A new option is a row of `ROOM` here, with its term in the step and in the flow (`ascend` and ``velocity`` of
`dynamics.optimizers.optimizer`, or `Objective`). A flow has the option if small steps have a limit. "Steps" follow the
expected gradient, T -> infinity, without random draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dynamics import Objective, Optimizer, Schedule, SequenceClasses, Trajectory, gradient_flow, sgd
from dynamics.extensions import residual_connection
from theory.scan_and_snap import changed
from yzflow.audits.options import Correction, Option, Room
from yzflow.papers.scan_and_snap.settings import PAPER, Setting, single_common_token, two_common_tokens

FLOWS = ("theory flow", "modified flow", "full flow")
STEPS = ("modified steps", "full steps")
ALL = (*FLOWS, *STEPS, "SGD")
# The theory flow has one number per class as its decoder: it takes a schedule and refuses options that act on Y.
BEYOND = ALL[1:]
# Lemma 3 inverts F^T F of unit features.
WITHOUT_LEMMA3 = ("full flow", "full steps", "SGD")
# If the layer's features are not the attention over its norm, Theorem 1's back-propagated gradient does not apply, and
# Remark 1 has no modified flow for a comparison.
OTHER_FEATURES = ("Theorem 1", "Theorem 5", "Remark 1")
_RECORDS = 120
_PLAIN = Optimizer(momentum=0.0)


def _train(
    setting: Setting,
    level: str,
    seed: int,
    *,
    optimizer: Optimizer = _PLAIN,
    objective: Objective | None = None,
    residual: bool = False,
    **draws: Any,
) -> Trajectory:
    """One run of a setting at a level; ``draws`` are arguments of `sgd` at the level SGD."""
    rates: dict[str, Any] = {"eta_y": setting.eta_y, "eta_z": setting.eta_z, "objective": objective}
    if residual:
        rates["init"] = residual_connection(setting.classes)[1]
    elif setting.start is not None:
        rates["init"] = setting.start
    if level in FLOWS:
        rates |= {} if optimizer == _PLAIN else {"optimizer": optimizer}
        decoder = level.removesuffix(" flow")
        return gradient_flow(setting.classes, **rates, decoder=decoder, **setting.of_flows)
    steps = int(setting.t_end)
    rates["optimizer"] = optimizer
    if isinstance(optimizer.schedule, Schedule):  # the additional step below is not to stretch it
        rates["optimizer"] = optimizer.over(steps)
    rates.setdefault("init", "zero")
    if level == "SGD":
        sizes = {**setting.of_batches, "record_every": max(1, steps // 50)} | draws
        return sgd(setting.classes, **rates, steps=steps, seed=seed, **sizes)
    decoder = level.removesuffix(" steps")
    run = sgd(setting.classes, **rates, steps=steps + 1, batch_size=None, length=None, decoder=decoder)
    return Trajectory(_with_velocity(run.dataset))


def _with_velocity(dataset: xr.Dataset) -> xr.Dataset:
    """Recorded steps, each with the next step as its ``z_velocity``.

    Steps before the first move of Z are left out: from a zero start Z stands still until Y has moved.
    """
    z = dataset["z"]
    steps = z.diff("time", label="lower")
    first = int(np.argmax((z != z[0]).any(["query", "token"]).values))
    last = dataset.sizes["time"] - 2
    kept = np.unique(np.concatenate([[0], np.geomspace(max(first, 1), last, _RECORDS).round().astype(int)]))
    kept_of = dataset.drop_vars("batch_loss", errors="ignore").isel(time=kept)
    return kept_of.assign(z_velocity=(z.dims, steps.values[kept]))


def _adapted(setting: Setting, *, rate: float, longer: float, classes: Callable | None) -> Setting:
    chosen = setting.classes if classes is None else classes(setting.classes)
    eta_y, eta_z = setting.eta_y * rate, setting.eta_z * rate
    return replace(setting, classes=chosen, eta_y=eta_y, eta_z=eta_z, t_end=setting.t_end * longer)


def _row(
    name: str,
    text: str,
    *,
    levels: tuple[str, ...] = BEYOND,
    rate: float = 1.0,
    longer: float = 1.0,
    classes: Callable[[SequenceClasses], SequenceClasses] | None = None,
    corrected: Callable[[Any, str], Correction] | None = None,
    meaningless: tuple[str, ...] = (),
    **training: Any,
) -> Option:
    """A row for an option: ``training`` is for `_train`; ``rate`` and ``longer`` multiply rates and steps."""
    adapted = partial(_adapted, rate=rate, longer=longer, classes=classes)

    def simulate(setting: Setting, level: str, seed: int) -> Trajectory:
        return _train(adapted(setting), level, seed, **training)

    return Option(name, text, simulate, levels, adapted, corrected, meaningless)


# The closed forms


def _decayed(setting: Setting, level: str, *, weight_decay: float) -> Correction:
    grown = changed.Decayed(setting.classes.vocab_size, setting.classes.n_classes, setting.eta_y, weight_decay)
    decay = setting.eta_z * weight_decay
    law = changed.Law(grown, decay)
    return Correction(replace(setting, law=law), lambda dataset: changed.without_decay(dataset, decay))


def _smoothed(setting: Setting, level: str, *, label_smoothing: float) -> Correction:
    grown = changed.Smoothed(setting.classes.vocab_size, setting.classes.n_classes, setting.eta_y, label_smoothing)
    return Correction(replace(setting, law=changed.Law(grown)))


def _cooled(setting: Setting, level: str, *, temperature: float) -> Correction:
    scaled = replace(setting, eta_z=setting.eta_z / temperature**2)
    return Correction(scaled, lambda dataset: changed.cooled(dataset, temperature))


def _scheduled(setting: Setting, level: str, *, schedule: Schedule) -> Correction:
    whole = schedule.over(setting.t_end if level in FLOWS else int(setting.t_end))

    def view(dataset: xr.Dataset) -> xr.Dataset:
        times = dataset["time"].values
        speed = np.array([whole(t) for t in times])
        if level in FLOWS:
            return changed.on_clock(dataset, np.array([whole.clock(t) for t in times]), speed)
        passed = np.cumsum([0.0, *(whole(k) for k in range(int(times[-1])))])
        return changed.on_clock(dataset, passed[times.astype(int)], speed)

    return Correction(setting, view)


def _pushed(setting: Setting, level: str, *, momentum: float) -> Correction:
    def view(dataset: xr.Dataset) -> xr.Dataset:
        clock = changed.momentum_clock(dataset["time"].values, momentum=momentum, steps=level not in FLOWS)
        return changed.on_clock(dataset, *clock)

    return Correction(setting, view)


def _unequal(classes: SequenceClasses) -> SequenceClasses:
    """The same with class weights like 1/(n + 1)^2."""
    weights = 1.0 / np.arange(1, classes.n_classes + 1) ** 2
    probabilities, vocab_size = classes.probabilities, classes.vocab_size
    return SequenceClasses(
        probabilities,
        classes.query,
        vocab_size=vocab_size,
        class_weights=weights / weights.sum(),
        token_names=classes.token_names,
        class_names=classes.class_names,
    )


_WARM_UP, _COSINE = Schedule(20.0), Schedule(5.0, "cosine")
# Adam and sign descent move every entry by a rate a step: rates smaller by a hundred, for six times as many steps.
_SIGNS: Mapping[str, Any] = {"rate": 0.01, "longer": 6.0}

OPTIONS = (
    _row("plain", "plain steps on the cross-entropy, as in the theorems", levels=ALL),
    _row(
        "coupled weight decay",
        "weight decay of Y and Z, 0.01, in the gradient",
        optimizer=Optimizer(momentum=0.0, weight_decay=0.01),
        corrected=partial(_decayed, weight_decay=0.01),
    ),
    _row(
        "decoupled weight decay",
        "weight decay of Y and Z, 0.01, beside the gradient: the same steps as the coupled one without momentum",
        optimizer=Optimizer(momentum=0.0, weight_decay=0.01, decoupled=True),
        corrected=partial(_decayed, weight_decay=0.01),
    ),
    _row(
        "warm-up",
        "learning rates that rise for 20 steps",
        levels=ALL,
        optimizer=Optimizer(momentum=0.0, schedule=_WARM_UP),
        corrected=partial(_scheduled, schedule=_WARM_UP),
    ),
    _row(
        "cosine schedule",
        "learning rates that rise for 5 steps and fall to zero as a cosine, at the end of the run",
        levels=ALL,
        optimizer=Optimizer(momentum=0.0, schedule=_COSINE),
        corrected=partial(_scheduled, schedule=_COSINE),
    ),
    _row(
        "momentum",
        "heavy ball, 0.9, at the same learning rates",
        optimizer=Optimizer(momentum=0.9),
        corrected=partial(_pushed, momentum=0.9),
    ),
    _row("clipping", "gradients of a norm above 0.1 are scaled down to it",
         optimizer=Optimizer(momentum=0.0, clip=0.1)),
    _row(
        "label smoothing",
        "targets 0.9 e_n + 0.1/M",
        objective=Objective(label_smoothing=0.1),
        corrected=partial(_smoothed, label_smoothing=0.1),
    ),
    _row(
        "temperature",
        "attention of temperature 2",
        objective=Objective(temperature=2.0),
        corrected=partial(_cooled, temperature=2.0),
    ),
    _row(
        "no normalisation",
        "what attention gathers is not normalised",
        levels=WITHOUT_LEMMA3,
        objective=Objective(normalisation=None),
        meaningless=OTHER_FEATURES,
    ),
    _row(
        "LayerNorm with mean",
        "LayerNorm that subtracts the mean over the contextual tokens first",
        levels=WITHOUT_LEMMA3,
        objective=Objective(normalisation="layer"),
        meaningless=OTHER_FEATURES,
    ),
    _row("sign descent", "steps of the size of the rate, by the gradient's signs; rates / 100, steps x 6",
         optimizer=Optimizer("sign", momentum=0.0), **_SIGNS),
    _row("adam", "Adam, betas 0.9 and 0.999; rates / 100, steps x 6", optimizer=Optimizer("adam"), **_SIGNS),
    _row("adamw", "AdamW, betas 0.9 and 0.999, weight decay 0.01; rates / 100, steps x 6",
         optimizer=Optimizer("adamw"), **_SIGNS),
    _row("batch of one", "one sequence a step", levels=("SGD",), batch_size=1),
    _row("short sequences", "16 tokens a sequence", levels=("SGD",), length=16),
    _row("modified decoder", "batches with the decoder gradient of Lemma 3, T -> infinity", levels=("SGD",),
         length=None, decoder="modified"),
    _row("unequal classes", "class weights like 1/(n + 1)^2", levels=ALL, classes=_unequal),
    _row("without replacement", "classes drawn in epochs", levels=("SGD",), replacement=False),
    _row("position bias", "attention falls by exp(-0.1) a position", levels=("SGD",), position_bias=0.1),
    _row(
        "residual connection",
        "the query's vector is added, after an inner LN",
        levels=WITHOUT_LEMMA3,
        residual=True,
        meaningless=OTHER_FEATURES,
    ),
)  # fmt: skip


def settings(*, quick: bool) -> list[Setting]:
    """One setting inside every assumption of the statements, and others outside of some."""
    adam = SequenceClasses.single_common_token(4, 60, common=0.3, distinct=[1.0, 0.5])
    chosen = [
        Setting("inside: K = 3, M = 50,000, rho = 0.03", single_common_token(3, 50_000, 0.03), 1.0, 1e-3, 150.0),
        Setting("outside: K = 4, M = 60, eta_Z = 0.1", adam, 1.0, 0.1, 100.0),
    ]
    if not quick:
        chosen += [
            Setting("inside: K = 2, M = 1000, rho = 0.3", single_common_token(2, 1000, 0.3), 1.0, 1e-3, 100.0),
            Setting("inside: two common tokens, K = 3, M = 2000", two_common_tokens(3, 2000, 0.15), 1.0, 1e-3, 100.0),
            Setting("outside: the paper's, K = 10, M = 1000", single_common_token(10, 1000, 0.009), 1.0, 0.5, 300.0),
        ]
    return chosen


def _draws(*, quick: bool) -> int:
    return 16 if quick else 24


def _mirrored(dataset: xr.Dataset) -> xr.Dataset:
    """Trajectory whose attention logits move in the opposite direction, from the same start."""
    z = dataset["z"]
    other = {"z": 2 * z.isel(time=0) - z}
    if "z_velocity" in dataset:
        other["z_velocity"] = -dataset["z_velocity"]
    return dataset.assign({name: array.transpose(*dataset[name].dims) for name, array in other.items()})


ROOM = Room(
    PAPER,
    OPTIONS,
    {level: level.replace("steps", "flow") for level in ALL},
    ("SGD",),
    settings,
    _draws,
    _mirrored,
    {"Lemma 18": "it is about sequences as they are drawn"},
)
