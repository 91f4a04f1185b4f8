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
import watched_layers
import xarray as xr
import yzflow_deep as deep
from driving import quietly
from saved_kinds import parts
from yzflow_sparse_averaging.trained.linear_query import LinearQueryUnit
from yzflow_sparse_averaging.trained.qsa import train_qsa

import yzflow as yz
from dynamics import SequenceClasses
from dynamics.fields.table import SYSTEMS
from dynamics.support.canonical import canonical
from theory import statements
from yzflow.audits import survival
from yzflow.papers.scan_and_snap import survival as rows
from yzflow.sweeps import cache

READ_ALONE = {
    "yzflow-trajectory-1": "loaded, and run again by `rerun`, which compares",
    "yzflow-run-1": "loaded, and run again by `rerun`, which compares",
    "yzflow-bags-2": "data",
    "yzflow-flow-ensemble-1": "loaded; the folder of an ensemble is what is gone on with",
    "yzflow-noise-1": "loaded",
    "yzflow-deep-1": "loaded; its checkpoint is what is gone on with",
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


# Checkpoints

QSA = {"n_tokens": 4, "subset_size": 2, "embedding_dim": 3, "value_dim": 2, "steps": 3, "batch_size": 2}
TEXT = np.arange(41) % 5


def unit(seed):
    rng = np.random.default_rng(seed)
    return LinearQueryUnit(*(rng.normal(size=shape) for shape in ((4, 3), (4, 3), (2, 2))))


def trained_qsa(folder, **changes):
    return parts(train_qsa(**QSA | changes, checkpoint=folder / "qsa.nc"))


class MySequences(deep.Sequences):
    """Sequences of a class of one's own."""


def text(tokens, kind=deep.Sequences):
    return kind.from_tokens(tokens, length=8)


def trained_deep(folder, **changes):
    given = {"start": deep.Architecture(5, width=4, mlp_width=4), "data": text(TEXT), "learning_rate": 0.1,
             "steps": 2, "batch_size": 2, "seeds": 1} | changes  # fmt: skip
    return parts(deep.train(given.pop("start"), given.pop("data"), **given, checkpoint=folder / "deep.npz"))


# Chunks


def ensemble(folder, **changes):
    given = {"n_classes": 2, "vocab_size": 5, "eta_y": xr.DataArray([1.0, 2.0], dims="rate"), "eta_z": 1.0}
    options = {"t_end": 1.0, "times": [0.5, 1.0]} | {name: value for name, value in changes.items() if name != "given"}
    return parts(yz.gradient_flow_ensemble(given | changes.get("given", {}), **options, path=folder / "map").load())


# Certificates


def enclosed(folder, **changes):
    given = {"data": bags(0.5), "eta_y": 1.0, "eta_z": 0.5, "t_end": 0.5, "bits": 60} | changes
    flow = pytest.importorskip("yzflow_enclose").kept(folder, given.pop("data"), **given)
    return canonical(flow.claimed), [(name, flow.arrays()[name].tobytes()) for name in sorted(flow.arrays())]


def signs(folder, **changes):
    cell = {"n_classes": 2, "vocab_size": 2, "distinct": (2.0, 1.0), "eta_y": 1.0, "eta_z": (0.2, 0.21),
            "common": (1.4, 1.45)}  # fmt: skip
    given = {"claims": [(0.0, 1.0, -1.0)], "t_end": 0.5, "degree": 1} | changes
    made = {name: given.pop(name, value) for name, value in cell.items()}
    made = pytest.importorskip("yzflow_enclose.cells").Cell(**made)
    return repr(pytest.importorskip("yzflow_enclose.keeping").kept_cell(folder, made, given.pop("claims"), **given))


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


# Recordings

_CLASSES = watched_layers.classes_inside(vocab_size=8)
_TOKENS = watched_layers.draw(_CLASSES, 4, 8, np.random.default_rng(0))


def recorded(folder, **changes):
    model = watched_layers.Trained(_CLASSES)
    looks = {"attention": watched_layers.attention, "logits": watched_layers.logits, "rates": model.rates}
    given = {"tokens": _TOKENS, "optimizer": watched_layers.PLAIN, "batch_size": 100} | changes
    return parts(yz.watch(model, given.pop("tokens"), **looks | given, path=folder / "run.nc").recording.dataset)


# Kinds that questions are answered from. The folder of an ensemble has no kind, as it is no file.
ANSWERED: dict[str, dict[str, Question]] = {
    "yzflow-qsa-training-1": {
        "qsa": Question(
            trained_qsa,
            "yzflow_sparse_averaging.trained.qsa:_Run._step",
            {
                "an option": {"learning_rate": 0.2},
                "a seed": {"seed": 1},
                "a start": {"init": unit(0)},
            },
        ),
        "qsa from a unit": Question(
            lambda folder, **changes: trained_qsa(folder, **{"init": unit(0)} | changes),
            "yzflow_sparse_averaging.trained.qsa:_Run._step",
            {"content of equal sizes": {"init": unit(1)}, "a pool": {"seed": np.random.SeedSequence(0, pool_size=8)}},
        ),
    },
    "yzflow-deep-checkpoint-1": {
        "deep": Question(
            trained_deep,
            "yzflow_deep.training:step_all",
            {
                "an option": {"momentum": 0.5, "optimizer": "sgd"},
                "a rate": {"learning_rate": 0.2},
                "a seed": {"seeds": [1]},
                "content": {"data": text((3 * TEXT) % 5)},
                "content of a class of one's own": {"data": text((2 * TEXT) % 5, MySequences)},
                "a start": {"start": deep.Transformer(deep.Architecture(5, width=4, mlp_width=4), 0)},
            },
            slow=True,
        )
    },
    "yzflow-certificate-2": {
        "certificate": Question(
            enclosed,
            "yzflow_enclose.keeping:enclose_flow",
            OTHER_DATA | {"a rate": {"eta_z": 0.4}, "bits": {"bits": 70}, "a decoder": {"decoder": "modified"}},
            versions=False,
        )
    },
    "yzflow-cell-3": {
        "cell": Question(
            signs,
            "yzflow_enclose.cells:decide_cell",
            {
                "claims": {"claims": [(0.0, 1.0, 2.0)]},
                "a degree": {"degree": 2},
                "an end": {"t_end": 0.4},
                "rates": {"eta_z": (0.3, 0.31)},
                "weights": {"distinct": (3.0, 1.0)},
            },
            versions=False,
        )
    },
    "yzflow-sweep-run-1": {
        "sweep": Question(
            swept, "yzflow.sweeps.runs:run", {"an option": {"a": [2]}, "a seed": {"seeds": [1]}}, versions=False
        ),
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
    "yzflow-recording-1": {
        "recording": Question(
            recorded,
            "yzflow_watch.recorder:Recorder._record",
            {
                "tokens": {"tokens": watched_layers.draw(_CLASSES, 4, 8, np.random.default_rng(1))},
                "fewer next tokens": {"n_classes": 1},
                "fewer tokens": {"n_tokens": 2},
            },
        )
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
