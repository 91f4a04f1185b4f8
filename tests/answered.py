"""Every kind of saved file that questions are answered from: how one is asked, what then computes, and other questions.

A question is a function of a folder and of keywords, which returns its answer in a form that can be compared. What is
kept is only read, and answers nothing, for the kinds in `READ_ALONE`.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
import sweep_tasks
import xarray as xr
from beside import beside
from driving import quietly
from saved_kinds import parts

import yzflow as yz
from dynamics import SequenceClasses
from dynamics.fields.table import SYSTEMS
from theory import statements
from yzflow.audits import survival
from yzflow.papers.scan_and_snap import survival as rows
from yzflow.sweeps import cache

READ_ALONE = {
    "yzflow-run-1": "loaded, and run again by `rerun`, which compares",
    "yzflow-bags-2": "data",
    "yzflow-flow-ensemble-1": "loaded; the folder of an ensemble is what is gone on with",
    "yzflow-noise-1": "loaded",
    "yzflow-runs-1": "a copy of a store's runs",
    "yzflow-sweep-1": "loaded; its store is what is gone on with",
    "yzflow-survival-1": "loaded; its store is what is gone on with",
}


class Question(NamedTuple):
    """A question and others that differ in one thing.

    Attributes
    ----------
    ask : callable
        (folder, keywords) -> the answer.
    work : str
        "module:name" of what is called where something is computed, and not where all of it is kept.
    others : mapping
        What differs -> its keywords.
    versions : bool
        Whether what is kept is of one version of yzflow: a certificate is verified by the version that reads it, and a
        task of one's own has a version of its own.
    slow : bool
    """

    ask: Callable[..., Any]
    work: str
    others: Mapping[str, Mapping[str, Any]]
    versions: bool = True
    slow: bool = False


# Data, and others of equal sizes. Classes of one's own are told apart by what they hold.


class MyBags(yz.Bags):
    """Bags of a class of one's own, which changes nothing."""


class MyClasses(SequenceClasses):
    """Classes of one's own."""


class Mixed(SequenceClasses):
    """Classes with another population than theirs, of which the module says how much."""

    share = 0.5

    def population(self):
        bags = super().population()
        return dataclasses.replace(bags, weight=np.array([self.share, 1 - self.share]))


class OtherMixed(Mixed):
    """The same code with another share."""

    share = 0.3


def bags(common, kind=yz.Bags):
    return kind.from_dense([0, 0], [0, 1], [[common, 1, 0], [common, 0, 1]], [0.5, 0.5], vocab_size=8)


def classes(common, kind=SequenceClasses):
    return kind([[common, 1 - common, 0], [common, 0, 1 - common]], [0, 0], vocab_size=8)


OTHER_DATA = {
    "content": {"data": bags(0.6)},
    "content of a class of one's own": {"data": bags(0.7, MyBags)},
    "content of classes": {"data": classes(0.6)},
    "content of one's own classes": {"data": classes(0.7, MyClasses)},
    "population of one's own": {"data": classes(0.5, Mixed)},
    "another population of one's own": {"data": classes(0.5, OtherMixed)},
}
OTHER_CLASSES = {what: {"classes": one["data"]} for what, one in OTHER_DATA.items() if "class of" not in what} | {
    "content": {"classes": classes(0.65)}
}


# Chunks


def ensemble(folder, **changes):
    given = {"n_classes": 2, "vocab_size": 5, "eta_y": xr.DataArray([1.0, 2.0], dims="rate"), "eta_z": 1.0}
    options = {"t_end": 1.0, "times": [0.5, 1.0]} | {name: value for name, value in changes.items() if name != "given"}
    return parts(yz.gradient_flow_ensemble(given | changes.get("given", {}), **options, path=folder / "map").load())


# Stores


def swept(folder, **changes):
    given = {"a": [1], "seeds": [0]} | changes
    return parts(quietly(sweep_tasks.plain, {"a": given["a"]}, store=folder, seeds=given["seeds"]))


@functools.wraps(yz.gradient_flow)
def slowed(*arguments, **options):
    """Another function under the name of one of ours."""
    return yz.gradient_flow(*arguments, **options | {"eta_z": options["eta_z"] / 2})


def trajectory(folder, **changes):
    given = {"classes": classes(0.5), "eta_y": 1.0, "eta_z": 0.5, "t_end": 1.0, "n_times": 3} | changes
    simulate = given.pop("simulate", yz.gradient_flow)
    made = cache.trajectory(simulate, given.pop("classes"), store=folder, **given)
    return parts(made.dataset.drop_attrs())


def mixed_with(other):
    """A direction with a number that it is bound to."""
    return lambda layer, bags: {"Z": layer.gradient(bags).Z, "Y": layer.gradient(bags).Y - other * layer.Y}


def trajectory_of_field(folder, **changes):
    name = "kept answers"
    patched = dict(SYSTEMS)
    try:
        yz.register_field(yz.Field(name, changes.pop("gradient", mixed_with(0.1))))
        return trajectory(folder, decoder=name, **changes)
    finally:
        SYSTEMS.clear()
        SYSTEMS.update(patched)


def table(folder, **changes):
    options = {name: changes.pop(name) for name in ("seed",) if name in changes}
    setting = {"data": bags(0.5), "eta_y": 1.0, "eta_z": 0.05, "t_end": 5.0} | changes
    levels = {"full flow": rows.ROOM.levels["full flow"]}
    room = dataclasses.replace(rows.ROOM, levels=levels, draws=lambda quick: 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survival, "_rooms", lambda: {rows.PAPER: room})
        patch.setattr(survival, "_all", lambda room, of_all=survival._all: of_all(room)[:2])
        names = [one.statement.id for one in survival._all(room)]
        found = survival.survival(names, ["plain"], settings=[setting], store=folder, **options)
    return parts(found.drop_vars("setting").drop_attrs())


def campaign(folder, **changes):
    given = {"level": "theory flow", "examples": 1, "seed": 3} | changes
    tolerance = given.pop("tolerance", None)
    name = "Scan and Snap: Corollary 2"
    statement = statements.REGISTER[name]
    if tolerance is not None:
        changed = tuple(dataclasses.replace(check, tolerance=tolerance) for check in statement.checks)
        statement = dataclasses.replace(statement, checks=changed)
    with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setitem(statements.REGISTER, name, statement)
        return repr(yz.fuzz(name, **given, store=folder, executor=pool))


# Kinds that questions are answered from. The folder of an ensemble has no kind, as it is no file.
ANSWERED: dict[str, dict[str, Question]] = {
    "yzflow-sweep-run-1": {
        "sweep": Question(
            swept, "yzflow.sweeps.runs:run", {"an option": {"a": [2]}, "a seed": {"seeds": [1]}}, versions=False
        ),
        "survival": Question(
            table,
            "yzflow.audits.survival:measured_by",
            OTHER_DATA | {"a rate": {"eta_z": 0.1}, "an end": {"t_end": 6.0}, "a seed": {"seed": 1}},
            slow=True,
        ),
        "survival of one's own": Question(
            lambda folder, **changes: table(folder, **{"data": bags(0.5, MyBags)} | changes),
            "yzflow.audits.survival:measured_by",
            OTHER_DATA,
        ),
        "fuzz": Question(
            campaign,
            "yzflow.fuzzing.blocks:draw_block",
            {"a seed": {"seed": 4}, "a tolerance": {"tolerance": 0.5}, "more": {"examples": 2}},
            slow=True,
        ),
    },
    "yzflow-trajectory-1": {
        "figure": Question(
            trajectory,
            "dynamics.flow:_integrate",
            OTHER_CLASSES
            | {"a rate": {"eta_z": 0.4}, "a decoder": {"decoder": "modified"}}
            | {"code of its name": {"simulate": slowed}},
        ),
        "figure of a field": Question(
            trajectory_of_field, "dynamics.flow:_integrate", {"code": {"gradient": mixed_with(0.2)}}
        ),
    },
    "": {
        "ensemble": Question(
            ensemble,
            "dynamics._engine.chunks:Kept.put",
            {
                "content": {"given": {"eta_y": xr.DataArray([1.0, 3.0], dims="rate")}},
                "an option": {"atol": 1e-8},
                "a decoder": {"decoder": "modified"},
                "an end": {"t_end": 1.5},
                "times": {"times": [0.6, 1.0]},
                "records": {"record": ["z"]},
            },
        )
    },
}


def all_questions() -> tuple[dict[str, dict[str, Question]], dict[str, str]]:
    """`ANSWERED` and `READ_ALONE` with those that stand beside the tests of other distributions."""
    answered, read_alone = dict(ANSWERED), dict(READ_ALONE)
    for module in beside("answered"):
        answered |= module.ANSWERED
        read_alone |= getattr(module, "READ_ALONE", {})
    return answered, read_alone
