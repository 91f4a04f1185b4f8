"""Words of figures on how runs were trained and on what, read off from the runs."""

from __future__ import annotations

import json
from typing import Any

import xarray as xr

from dynamics import Optimizer, SequenceClasses, Trajectory
from dynamics.support import checks
from yzflow.papers.scan_and_snap.equal import begins_on
from yzflow.papers.scan_and_snap.phase_transition import recorded_sizes

_ROUNDING = 1e-6  # of shares that were recorded
_NAMES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "sign": "sign descent"}
_WITH_MOMENTUM = ("sgd", "sign")


def rule(parameters: dict[str, Any]) -> str:
    """The optimizer in words, as "SGD with momentum 0.9"."""
    name = parameters.get("optimizer") or "sgd"
    words = _NAMES.get(name, name)
    momentum = parameters.get("momentum", 0.0)
    said = [f"momentum {momentum:g}"] if name in _WITH_MOMENTUM and momentum else []
    said += (
        [f"weight decay {decay:g}"] if (decay := parameters.get("weight_decay", Optimizer(name).weight_decay)) else []
    )
    said += (
        [f"{schedule} decay of the rates"] if (schedule := parameters.get("schedule", "constant")) != "constant" else []
    )
    return f"{words} with {' and '.join(said)}" if said else words


def of_run(run: Trajectory) -> str:
    """How a trajectory was trained, in words."""
    if run.dataset.attrs.get("simulator") == "gradient_flow":
        return f"gradient flow of {rule(run.parameters)}"
    return rule(run.parameters)


def step_of(run: Trajectory) -> str:
    """Unit of time, in words."""
    if run.dataset.attrs.get("simulator") == "gradient_flow":
        return "time (SGD steps)"
    name = run.parameters.get("optimizer") or "sgd"
    return "SGD step" if name == "sgd" else f"step of {_NAMES.get(name, name)}"


def data_of(run: Trajectory) -> str:
    """The data of a trajectory in words: Syn-Small, or its sizes."""
    if begins_on(run, SequenceClasses.syn_small(), _ROUNDING):
        return "Syn-Small"
    own = recorded_sizes(run)
    return f"{own['n_classes']} next tokens of {own['vocab_size']:,}"


def common_of(run: Trajectory) -> str:
    """The tokens that occur with several next tokens, in words."""
    occurs = run.dataset["attention"].isel(time=0).values > 0
    tokens = run.dataset["token"].values[occurs.sum(axis=0) > 1]
    if not len(tokens):
        return "distinct tokens"
    if tokens[-1] - tokens[0] + 1 != len(tokens):
        return f"{len(tokens)} common and the distinct tokens"
    ends = f"{tokens[0]}-{tokens[-1]}" if len(tokens) > 1 else f"{tokens[0]}"
    return f"common ({ends}) and distinct tokens"


def of_sweep(runs: xr.Dataset) -> str:
    """How the runs of a sweep of the task syn_medium were trained, in words: data, rule and number of steps.

    Raises
    ------
    ValueError
        If the runs do not say so, or differ in more than a figure of them shows.
    """
    checks.instance("runs", runs, xr.Dataset)
    task, configuration = (runs.attrs.get(name) for name in ("task", "configuration"))
    if task != "syn_medium" or configuration is None:
        how = "be of the sweep 'syn_medium' and have its attributes, as `yzflow.sweep` returns it"
        raise checks.reject("runs", how, checks.brief(task))
    others = sorted(set(map(str, runs.dims)) - {"n_queries", "eta_z", "ratio", "seed", "threshold"})
    if others:
        raise checks.reject("runs", f"have one {others[0]}: draw others in a figure of their own", list(runs.dims))
    made = json.loads(configuration)
    kept = made["fixed"] | {name: values[0] for name, values in made["grid"].items() if len(values) == 1}
    kept |= {str(name): value.item() for name, value in runs.coords.items() if value.ndim == 0}
    if "steps" not in kept:
        raise checks.reject("runs", "have the number of steps as a coordinate", "none")
    plain = {"batch_size": 128, "length": 128, "init": "uniform", "criterion": "cross-entropy"}
    changed = [f"{name} = {kept[name]}" for name, value in plain.items() if kept.get(name, value) != value]
    words = f"Syn-Medium after {kept['steps']} steps of {rule(kept)}"
    return f"{words} ({', '.join(changed)})" if changed else words
