"""Every public callable of `dynamics` and `theory`, with hostile values in every argument in turn.

A call gives a result, or one of the errors that are documented: ``ValueError`` in our grammar ("`name` must .., but got
.."), and where a simulation really ran, its own error. Nothing else: no error from deep inside, no hang, no memory
beyond a bound. A new public callable fails the test until it has a valid call in `calls` or stands in `RECORDS`.

By default each argument gets a few of the values, chosen by a seeded generator, and `deep.train`, which compiles for
seconds a call, none. The long form takes all of them, and then several at once.
"""

# ruff: noqa: C408
import copy
import importlib
import inspect
import os
import pkgutil
import re
import runpy
from functools import partial
from pathlib import Path
from types import MappingProxyType

import hostile
import numpy as np
import pytest
from driving import LONG
from matplotlib import pyplot
from matplotlib.figure import Figure
from public import public
from yzflow_bounded_dyck import DyckLanguage
from yzflow_sparse_averaging import attention_unit as units
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.trained import linear_query, qsa

import dynamics
import theory
from dynamics import (
    Bags,
    Embedding,
    Field,
    Layer,
    Objective,
    Optimizer,
    Run,
    Schedule,
    SequenceClasses,
    Solver,
    TextCorpus,
    Trajectory,
    data,
    descend,
    extensions,
    flow,
    gradient_flow,
    gradient_flow_ensemble,
    gradient_noise,
    integrate,
    linear_noise,
    observables,
    options,
    register_field,
    sgd,
    sgd_many,
    stochastic_flow,
)
from dynamics.bags import population_of
from dynamics.fields.table import SYSTEMS
from dynamics.support import netcdf
from theory import papers
from theory.papers import built_in

pytestmark = pytest.mark.slow

deep = pytest.importorskip("yzflow_deep")


# Modules whose names are no calls for users: helpers, proofs and checks that take each other's objects.
INNER = re.compile(
    r"\._|\.support|\.version|\.proofs|\.measures|\.statements|\.bounds|\.values|^theory\.(parts|symbolic|trust)"
    r"|\.fields\.|\.optimizers\.|\.kernel$"
    r"|\.layout|\.overlaps|\.visits|\.view|\.coverage|\.residual|\.centred|\.enclosed|\.balls|\.enclosures\.(?!enclosure$)|\.deep\.objective"
)
# Why a constructor, a function or a method has no hostile calls -> which.
EXEMPT = {
    hostile.RECORD: {
        "_engine.sgd.run.Outcome", "data.dyck.State", "noise.GradientNoise",
    },
    hostile.RAISED: {
        "bags.HasPopulation", "flow.IntegrationError",
    },
    hostile.OURS: {
        "deep.model.Block", "descent.complete", "layer.attention",
        "layer.attention_over_time", "layer.in_precision", "layer.moved",
        "layer.optional_rates", "deep.model.reparameterised",
        "papers.code_of", "papers.register",
    },
}  # fmt: skip


# Each folder of tests has its part of both in ``calls.py``, so that a paper comes and goes with its own files.
FOLDER = Path(__file__).parents[1] / "theory"
OF_PAPERS = [one.slug for one in built_in()]
FOLDERS = [runpy.run_path(str(FOLDER / name / "calls.py")) for name in (".", "enclosures", *OF_PAPERS)]
for room in FOLDERS:
    EXEMPT |= {why: EXEMPT.get(why, set()) | names for why, names in room["EXEMPT"].items()}


# Arguments that are functions: what those raise is not ours.
FUNCTIONS = {
    "function",
    "predicate",
    "tokenizer",
    "phi",
    "query",
    "key",
    "value",
    "keys",
    "values",
    "heads",
    "layers",
    "maps",
    "observe",
}


def found_in_modules():
    """Functions and classes of the other modules that a user can import, and their methods that take an argument."""
    found = {}
    for package in (dynamics, theory):
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if INNER.search(info.name):
                continue
            module = importlib.import_module(info.name)
            for name in getattr(module, "__all__", vars(module)):
                thing = getattr(module, name)
                if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__ or not callable(thing):
                    continue
                key = f"{info.name}.{name}".split(".", 1)[1]
                found[key] = thing
                for inner, method in vars(thing).items() if inspect.isclass(thing) else ():
                    method = getattr(method, "__func__", method)
                    if not inspect.isfunction(method) or (inner.startswith("_") and inner != "__call__"):
                        continue
                    if len(inspect.signature(method).parameters) > 1:
                        found[f"{key}.{inner}"] = method
    return found


def calls():
    """A valid call of each: name -> (callable, arguments); made anew, so that no call sees another's objects."""
    rng = partial(np.random.default_rng, 0)
    classes = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)
    bags = classes.population()
    dyck = DyckLanguage(2, 3)
    corpus = TextCorpus(["a b a c a b"])
    layer, embedding = Layer.zeros(bags), Embedding(np.eye(3), np.ones((2, 3)), np.ones((2, 3)))
    rates = {"eta_y": 0.1, "eta_z": 0.1}
    run = gradient_flow(classes, **rates, t_end=1.0, n_times=2)
    noise = gradient_noise(classes, batch_size=2, length=4)
    entropy = {"attention": np.full((2, 1, 2), 0.5), "mask": np.ones((1, 2), dtype=bool), "starts": None}
    z, y = np.full((3, 1), 0.5), np.array([[0, 1], [1, 2], [0, 2]])
    maps = (lambda X: X, lambda X: X, lambda X: X)
    unit = units.AttentionUnit(np.eye(2), np.eye(2), np.eye(2))
    tensor = units.TensorAttentionUnit(maps[0], maps[:2], maps[:2], embedding_dim=2)
    X = np.eye(2)
    linear = linear_query.LinearQueryUnit(np.ones((3, 2)), np.eye(3)[:, :2], np.eye(1))
    optimizer, own = Optimizer("sgd", schedule=Schedule(2.0)), Field("of hostile tests", Layer.gradient)
    support = observables.Support(bags)
    small = {"n_tokens": 4, "subset_size": 2, "embedding_dim": 3, "value_dim": 1, "steps": 2, "batch_size": 1}
    trained = qsa.train_qsa(**small)
    architecture = deep.Architecture(3, width=2, mlp_width=2)
    sequences = deep.Sequences([[0, 1, 2]], [[1, 2, 0]])
    model, plain = deep.Transformer(architecture, 0), Layer(np.eye(3), np.eye(3))
    training = dict(
        start=architecture,
        data=sequences,
        learning_rate=0.1,
        steps=1,
        optimizer="sgd",
        momentum=0.5,
        batch_size=1,
        seeds=1,
        validation=sequences,
        probe=[[0, 1]],
        contrast=None,
        contrast_weight=0.0,
        label_smoothing=0.0,
        record_every=1,
        dtype="float32",
        checkpoint=None,
        progress=False,
    )
    deep_run = deep.train(**training)
    single = {"X": X}
    Path("kept.txt").write_text("a b a c b a", encoding="utf-8")

    def drawn():
        return dict(ax=Figure().subplots(), labels=["x"], style={"lines.linewidth": 2.0})

    found = {
        "bags.Bags": (Bags, dict(query=[0], target=[0], indptr=[0, 1], token=[0], count=[1.0], weight=[1.0],
                                 n_queries=1, n_tokens=1, vocab_size=1, token_names=["a"], class_names=["b"],
                                 query_names=["c"])),
        "bags.Bags.from_dense": (Bags.from_dense, dict(query=[0], target=[0], counts=[[1.0]], weight=[1.0])),
        "bags.Bags.concatenate": (Bags.concatenate, dict(parts=[bags, bags], shares=[1, 1])),
        "bags.Bags.save": (bags.save, dict(path="bags.npz")),
        "bags.Bags.named_like": (bags.named_like, dict(other=bags)),
        "bags.Bags.load": (Bags.load, dict(path="kept.npz")),
        "data.averaging.adversarial_match": (tasks.adversarial_match, dict(n_tokens=3, modulus=7, order=2)),
        "data.averaging.adversarial_subsets": (tasks.adversarial_subsets, dict(keys=np.eye(3), subset_size=1, sign=1)),
        "data.averaging.all_match": (tasks.all_match, dict(n_tokens=2, modulus=3)),
        "data.averaging.all_subsets": (tasks.all_subsets, dict(n_tokens=3, subset_size=2)),
        "data.averaging.attention_error": (tasks.attention_error, dict(attention=np.full((3, 3), 1 / 3), y=y)),
        "data.averaging.worst_values": (tasks.worst_values, dict(attention=np.full((3, 3), 1 / 3), y=y)),
        "data.averaging.match2": (tasks.match2, dict(x=[1, 2], modulus=3)),
        "data.averaging.match3": (tasks.match3, dict(x=[1, 2], modulus=3)),
        "data.averaging.match_tokens": (tasks.match_tokens, dict(x=[1, 2], blank=True)),
        "data.averaging.qsa_tokens": (tasks.qsa_tokens, dict(z=z, y=y)),
        "data.averaging.sparse_average": (tasks.sparse_average, dict(z=z, y=y)),
        "data.averaging.random_match": (tasks.random_match, dict(n_tokens=3, modulus=7, size=2, rng=rng(), order=2,
                                                                 planted=0.5)),
        "data.averaging.random_qsa": (tasks.random_qsa, dict(n_tokens=3, subset_size=2, dim=1, size=1, rng=rng())),
        "data.averaging.random_subsets": (tasks.random_subsets, dict(n_tokens=3, subset_size=2, size=1, rng=rng())),
        "data.dyck.DyckLanguage": (DyckLanguage, dict(n_types=2, max_depth=3, open_probability=0.5)),
        "data.dyck.DyckLanguage.open": (dyck.open, dict(type=0, depth=1)),
        "data.dyck.DyckLanguage.close": (dyck.close, dict(type=0, depth=0)),
        "data.dyck.DyckLanguage.partner": (dyck.partner, dict(state=0)),
        **{f"data.dyck.DyckLanguage.{name}": (getattr(dyck, name), dict(prefix="(["))
           for name in ("encode", "state_sequence", "stack", "next_token", "log_probability")},
        "data.dyck.DyckLanguage.prefixes": (dyck.prefixes, dict(length=2)),
        "data.dyck.DyckLanguage.enumerate": (dyck.enumerate, dict(max_length=2, min_length=1, kind="prefix",
                                                                  positions="last")),
        "data.dyck.DyckLanguage.sample": (dyck.sample, dict(n=2, max_length=4, rng=0, kind="word", min_length=1,
                                                            positions="all")),
        "data.dyck.DyckLanguage.sample_sequences": (dyck.sample_sequences, dict(n=2, max_length=4, rng=0,
                                                                                kind="prefix", min_length=1)),
        "data.dyck.DyckLanguage.bags": (dyck.bags, dict(prefixes=["(", "()"], positions="last", weight=[0.5, 0.5])),
        "data.dyck.DyckLanguage.embedding": (dyck.embedding, dict(kind="one-hot")),
        "data.sequence_classes.SequenceClasses": (SequenceClasses, dict(
            probabilities=[[0.5, 0.5], [0.0, 1.0]], query=[0, 1], vocab_size=3, class_weights=[0.5, 0.5],
            token_names=["a", "b"], class_names=["c", "d"])),
        "data.reading.read_data": (data.read_data, dict(path="kept.txt", length=2, vocab_size=3)),
        "data.sequence_classes.SequenceClasses.syn_medium": (SequenceClasses.syn_medium, dict(n_queries=1)),
        "data.sequence_classes.SequenceClasses.single_common_token": (SequenceClasses.single_common_token, dict(
            n_classes=2, vocab_size=5, common=0.2, distinct=(1.0, 0.5))),
        "data.sequence_classes.SequenceClasses.distinct_tokens": (classes.distinct_tokens, dict(n=0)),
        "data.sequence_classes.SequenceClasses.all_sequences": (classes.all_sequences, dict(length=4)),
        "data.sequence_classes.SequenceClasses.sample": (classes.sample, dict(n=2, length=4, rng=0)),
        "data.text.TextCorpus": (TextCorpus, dict(source=["a b"], vocab_size=None, lowercase=True,
                                                  tokenizer="whitespace", vocabulary=["<unk>", "a"], progress=False)),
        "data.text.TextCorpus.encode": (corpus.encode, dict(text="a b")),
        "data.text.TextCorpus.decode": (corpus.decode, dict(tokens=[0, 1])),
        "data.text.TextCorpus.windows": (corpus.windows, dict(length=2, stride=1, limit=2, rng=rng(), start=0,
                                                              stop=6)),
        "deep.data.Insertions": (deep.Insertions, dict(tokens=[[0, 1]], lengths=[2], weights=[1.0])),
        "deep.data.Sequences": (deep.Sequences, dict(inputs=[[0, 1]], targets=[[1, 0]], mask=np.ones((1, 2), bool))),
        "deep.data.Sequences.from_tokens": (deep.Sequences.from_tokens, dict(tokens=[0, 1, 2], length=2)),
        "deep.data.Sequences.__getitem__": (sequences.__getitem__, dict(rows=[0])),
        "deep.data.dyck_insertions": (deep.dyck_insertions, dict(language=dyck, first_layer="trained")),
        "deep.data.dyck_sequences": (deep.dyck_sequences, dict(language=dyck, prefixes=["()"], first_layer="trained",
                                                               targets="drawn", length=4)),
        "deep.model.Architecture": (deep.Architecture, dict(
            vocab_size=3, n_outputs=3, n_layers=1, n_heads=1, width=2, mlp_width=2, positions="learned", max_length=4,
            norm="before", norm_kind="layer", residual=True, tied=True, values=True, factored=True, attend_self=True,
            train_embedding=True, temperature=1.0)),
        "deep.model.Transformer": (deep.Transformer, dict(architecture=architecture, rng=0, dtype="float32")),
        **{f"deep.model.Transformer.{name}": (getattr(model, name), dict(tokens=[0, 1]))
           for name in ("hidden", "__call__", "attention")},
        "deep.model.Transformer.decode": (model.decode, dict(hidden=model.hidden([0, 1])[0])),
        "deep.model.from_layer": (deep.from_layer, dict(layer=plain, embedding=np.eye(3))),
        "deep.model.to_layer": (deep.to_layer, dict(model=deep.from_layer(plain))),
        "deep.training.load_training": (deep.load_training, dict(path="deep.nc")),
        "deep.training.model_at": (deep.model_at, dict(dataset=deep_run, learning_rate=0.1, seed=0)),
        "deep.training.train": (deep.train, training),
        "descent.sgd": (sgd, dict(
            data=classes, **rates, steps=2, batch_size=2, length=4, momentum=0.9, optimizer="sgd", init="zero", seed=0,
            record_every=1, dtype="float64", progress=False, eta_v=None, position_bias=0.0, eta_hidden=None,
            objective=None, evaluate=None, decoder="full", replacement=True)),
        "_model.objective.Objective": (Objective, dict(
            criterion="squared", contrast=None, contrast_weight=0.0, label_smoothing=0.1, temperature=2.0,
            normalisation="layer", terms=())),
        "optimizers.optimizer.Optimizer": (Optimizer, dict(
            name="adamw", momentum=0.5, weight_decay=0.1, decoupled=True, schedule=Schedule(2.0), clip=1.0,
            betas=(0.9, 0.99), epsilon=1e-6)),
        "optimizers.optimizer.Schedule": (Schedule, dict(warm_up=2.0, decay="cosine", steps=10.0, floor=0.1)),
        "descent.sgd_many": (sgd_many, dict(runs=[(classes, {**rates, "steps": 1})], observe=None, threads=1,
                                            progress=False)),
        "extensions.residual_connection": (extensions.residual_connection, dict(data=classes, inner_norm=True)),
        "extensions.layer_norm": (extensions.layer_norm, dict(data=classes, width=5)),
        "extensions.biased_sequences": (extensions.biased_sequences, dict(
            data=classes, n=3, length=4, position_bias=0.1, rng=0)),
        "ensemble.gradient_flow_ensemble": (gradient_flow_ensemble, dict(
            settings={"n_classes": 3, "vocab_size": 5, "eta_y": 1.0, "eta_z": 1.0}, t_end=1.0, times=[0.5],
            decoder="full", rtol=1e-3, atol=1e-3, record=["z"], fastest=True, threads=1, path=None,
            progress=False)),
        "diffusion.stochastic_flow": (stochastic_flow, dict(
            data=classes, **rates, t_end=1.0, batch_size=2, length=4, decoder="full", scheme="euler-maruyama", dt=1.0,
            order=1, times=[0.5], n_times=2, init=None, seed=0, progress=False, objective=None)),
        "noise.gradient_noise": (gradient_noise, dict(
            data=classes, layer=None, batch_size=2, length=4, decoder="full", objective=None)),
        "noise.linear_noise": (linear_noise, dict(
            data=classes, **rates, steps=[1, 2], decoder="full", finite=True, init=None, objective=None,
            progress=False)),
        "noise.GradientNoise.parts": (noise.parts, dict(vector=noise.mean)),
        "noise.GradientNoise.sample": (noise.sample, dict(n=2, rng=0)),
        "flow.gradient_flow": (gradient_flow, dict(
            data=classes, **rates, t_end=1.0, decoder="full", times=[0.5], n_times=2, init=None, rtol=1e-3, atol=1e-3,
            progress=False, eta_v=None, eta_hidden=None, objective=None, solver=None, optimizer=None)),
        "_engine.solver.Solver": (Solver, dict(method="DOP853", time_scale="linear", reduce="auto",
                                               momentum="first order")),
        "_model.objective.Objective.of": (Objective.of, dict(parameters=Objective(temperature=2.0).parameters)),
        "optimizers.optimizer.Optimizer.of": (Optimizer.of, dict(parameters=optimizer.parameters)),
        "optimizers.optimizer.Optimizer.factor": (optimizer.factor, dict(t=1.0)),
        "optimizers.optimizer.Optimizer.over": (optimizer.over, dict(steps=5)),
        "optimizers.optimizer.Schedule.__call__": (optimizer.schedule, dict(t=1.0)),
        "optimizers.optimizer.Schedule.clock": (optimizer.schedule.clock, dict(t=1.0)),
        "optimizers.optimizer.Schedule.over": (Schedule(decay="linear").over, dict(steps=5)),
        "fields.own.Field": (Field, dict(name="mine", gradient=own.gradient, step=None, inverts=False,
                                         symmetric=False)),
        "fields.table.register_field": (register_field, dict(field=own)),
        "layer.Embedding": (Embedding, dict(vectors=np.eye(3), keys=np.ones((2, 3)), queries=np.ones((2, 3)),
                                            values=np.ones((2, 3)))),
        "layer.Layer": (Layer, dict(Z=np.zeros((3, 3)), Y=np.zeros((3, 2)), V=None, multiplicity=[1, 1], hidden=None,
                                    center=False, floor=0.0, embedding=embedding, residual=False,
                                    temperature=1.0, normalisation="unit")),
        **{f"options.{name}": (getattr(options, name), dict(options={"optimizer": "adamw", "clip": 1.0}))
           for name in ("optimizer_of", "objective_of", "unusual", "flow_options")},
        "layer.Layer.zeros": (Layer.zeros, dict(bags=bags)),
        "layer.Layer.embedded": (Layer.embedded, dict(embedding=embedding, Y=np.zeros((3, 2)))),
        **{f"layer.Layer.{name}": (getattr(layer, name), dict(bags=bags))
           for name in ("attention", "sparse_attention", "features", "logits", "predict")},
        "layer.Layer.check_fits": (layer.check_fits, dict(bags=bags, name="bags")),
        "layer.Layer.loss": (layer.loss, dict(bags=bags, criterion="cross-entropy")),
        "layer.Layer.gradient": (layer.gradient, dict(bags=bags, criterion="cross-entropy")),
        "observables.distinct_mask": (observables.distinct_mask, dict(bags=bags, n_tokens=3)),
        "observables.entropy": (observables.entropy, entropy),
        "observables.recall": (observables.recall, {**entropy, "threshold": [0.1]}),
        "observables.expected_attention": (observables.expected_attention, dict(layer=layer, bags=bags)),
        "observables.Support": (observables.Support, dict(bags=bags, n_tokens=3)),
        "observables.support_of": (observables.support_of, dict(bags=bags, n_tokens=3)),
        "observables.Support.attention": (support.attention, dict(shares=layer.sparse_attention(bags))),
        "observables.Support.dense": (support.dense, dict(values=support.distinct)),
        "observables.Support.over_time": (support.over_time, dict(Z=np.zeros((2, *layer.Z.shape)))),
        "observables.given_next_token": (observables.given_next_token, dict(bags=bags)),
        "trajectory.Trajectory": (Trajectory, dict(dataset=run.dataset, call=run.call, environment=run.environment)),
        "trajectory.Trajectory.attention_entropy": (run.attention_entropy, dict(tokens="distinct")),
        "trajectory.Trajectory.recall": (run.recall, dict(thresholds=[0.1])),
        "trajectory.Trajectory.surviving_tokens": (run.surviving_tokens, dict(next_token=0, threshold=0.1)),
        "trajectory.Trajectory.growth_factor": (run.growth_factor, dict(next_token=0, token=1)),
        "trajectory.Trajectory.relative_gain": (run.relative_gain, dict(next_token=0, token=1, other=0)),
        "trajectory.Trajectory.save": (run.save, dict(path="run.nc")),
        "bags.Bags.plot": (bags.plot, drawn()),
        "data.sequence_classes.SequenceClasses.plot": (classes.plot, drawn()),
        "layer.Layer.plot": (layer.plot, dict(matrix="Z", **drawn())),
        "trajectory.Trajectory.plot": (run.plot, dict(quantity="attention", next_token=None, **drawn())),
        "trajectory.Trajectory.names": (run.names, dict(axis="token")),
        "trajectory.Trajectory.number": (run.number, dict(axis="token", value=1)),
        "trajectory.Trajectory.to_csv": (run.to_csv, dict(path="run.csv")),
        "trajectory.Trajectory.load": (Trajectory.load, dict(path="kept.nc")),
        "units.attention_unit.AttentionUnit": (units.AttentionUnit, dict(Q=X, K=X, V=X, phi=None, scale=1.0,
                                                                         precision=units.Precision())),
        "units.attention_unit.AttentionUnit.from_maps": (units.AttentionUnit.from_maps, dict(
            query=maps[0], key=maps[1], value=maps[2], embedding_dim=2, scale=1.0, precision=None)),
        **{f"units.attention_unit.AttentionUnit.{name}": (getattr(unit, name), single)
           for name in ("queries", "keys", "values", "attention", "__call__")},
        "units.attention_unit.FixedPoint": (units.FixedPoint, dict(bits=4, fraction_bits=2)),
        "units.attention_unit.FixedPoint.covering": (units.FixedPoint.covering, dict(bits=4, bound=2.0)),
        "units.attention_unit.FixedPoint.round": (units.FixedPoint(4, 2).round, dict(values=[0.3])),
        "units.attention_unit.MultiHeadLayer": (units.MultiHeadLayer, dict(heads=[unit])),
        "units.attention_unit.MultiHeadLayer.__call__": (units.MultiHeadLayer([unit]), single),
        "units.attention_unit.Precision": (units.Precision, dict.fromkeys(("query", "key", "value", "output"))),
        "units.attention_unit.Precision.apply": (units.Precision(units.FixedPoint(4, 2)).apply, dict(
            name="query", values=X)),
        "units.attention_unit.TensorAttentionUnit": (units.TensorAttentionUnit, dict(
            query=maps[0], keys=maps[:2], values=maps[:2], embedding_dim=2, scale=1.0, precision=None)),
        **{f"units.attention_unit.TensorAttentionUnit.{name}": (getattr(tensor, name), single)
           for name in ("queries", "keys", "values", "attention")},
        "units.attention_unit.TensorAttentionUnit.__call__": (tensor, single),
        "units.attention_unit.Transformer": (units.Transformer, dict(layers=[units.MultiHeadLayer([unit])],
                                                                     maps=[None, None])),
        "units.attention_unit.Transformer.__call__": (units.Transformer([units.MultiHeadLayer([unit])]), single),
        **{f"units.attention_unit.{f.__name__}": (f, dict(queries=X, keys=X, scale=1.0, precision=None) | more)
           for f, more in ((units.attend, {"values": X}), (units.attention_weights, {}))},
        "units.linear_query.LinearQueryUnit": (linear_query.LinearQueryUnit, dict(query=X, key=X, value=X)),
        "units.linear_query.LinearQueryUnit.random": (
            linear_query.LinearQueryUnit.random, dict(n_tokens=3, value_dim=1, embedding_dim=2, rng=rng())),
        "units.linear_query.LinearQueryUnit.attention": (linear.attention, dict(y=y)),
        "units.linear_query.LinearQueryUnit.loss": (linear.loss, dict(z=z[None], y=y[None])),
        "units.linear_query.LinearQueryUnit.gradient": (linear.gradient, dict(z=z[None], y=y[None])),
        "units.linear_query.LinearQueryUnit.expected_loss": (linear.expected_loss, dict(y=y)),
        "units.qsa.load_training": (qsa.load_training, dict(path="qsa.nc")),
        "units.qsa.train_qsa": (qsa.train_qsa, dict(
            **small, learning_rate=0.1, schedule="cosine", optimizer="adam", momentum=0.9, init="random", seed=0,
            record_every=1, times=(), checkpoint=None, progress=False)),
        "units.qsa.unit_at": (qsa.unit_at, dict(dataset=trained, at=2)),
        "bags.population_of": (population_of, dict(data=classes)),
    }  # fmt: skip
    found |= open_calls()
    for room in FOLDERS:
        found |= room["calls"]()
    run.save("kept.nc")
    bags.save("kept.npz")
    netcdf.save_dataset(trained, "qsa.nc")
    netcdf.save_dataset(deep_run, "deep.nc")
    return found


class Decay:
    """A flow of a state of two numbers."""

    initial = MappingProxyType({"x": np.array([1.0, 2.0])})

    def derivative(self, t, state):
        return {"x": -state["x"]}


def open_calls():
    """Valid calls of what takes flows, fields and papers of others."""
    run = integrate(Decay(), t_end=1.0, n_times=2)
    run.save("run.nc")
    ends = {
        "flow": Decay(),
        "t_end": 1.0,
        "times": [0.0, 1.0],
        "n_times": 2,
        "solver": None,
        "rtol": 1e-6,
        "atol": 1e-9,
    }
    steps = {"flow": Decay(), "rate": 0.1, "steps": 2, "seed": 0, "optimizer": None, "record_every": 1}
    return {
        "open_flow.integrate": (integrate, {**ends, "progress": False}),
        "open_descent.descend": (descend, {**steps, "progress": False}),
        "run.Run": (
            Run,
            {"dataset": run.saved, "call": run.call, "environment": run.environment, "events": run.events},
        ),
        "run.Run.plot": (run.plot, {"name": "x", "ax": None, "labels": ["x"], "style": {"lines.linewidth": 2.0}}),
        "run.Run.save": (run.save, {"path": "run.nc"}),
        "run.Run.load": (Run.load, {"path": "run.nc"}),
        "papers.papers": (papers.papers, {}),
        "papers.built_in": (papers.built_in, {}),
        "papers.left_out": (papers.left_out, {}),
        "papers.named": (papers.named, {"name": "x"}),
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The calls, made in a folder that takes the files of hostile paths too."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("hostile"))
    try:
        yield calls()
    finally:
        SYSTEMS.pop("of hostile tests", None)
        os.chdir(before)
        pyplot.close("all")  # which `plot` without axes leaves open, as notebooks want it


def test_every_public_callable_has_a_valid_call(table):
    stubbed, others = set(public("dynamics", "theory")), set(found_in_modules())
    exempt = set().union(*EXEMPT.values())
    # A method of what is in a stub stands for itself; elsewhere those of a class go with it.
    needed = stubbed | {name for name in others if name.rsplit(".", 1)[0] not in exempt}
    missing = sorted(needed - set(table) - exempt)
    assert missing == [], "without a valid call in `calls`, or a reason in `EXEMPT`"
    assert not exempt & set(table), "both called and exempt"
    assert not EXEMPT[hostile.OURS] & stubbed, "no user's by its reason, and in a stub"
    assert exempt | set(table) <= stubbed | others | {name for name in table if name.endswith("__call__")}, "gone"
    assert not hostile.without(table)
    for name, (function, arguments) in table.items():
        assert hostile.complaint(function, copy.copy(arguments)) is None, name


ROOMS = [
    "_engine", "_model", "optimizers", "bags", "data", "deep", "flow", "ensemble", "descent", "layer", "observables",
    "options", "trajectory", "extensions", "units", "noise", "diffusion",
    "enclosures", "open_flow", "open_descent", "run", "fields", "papers", "parts", "statements",
    "symbolic", *OF_PAPERS,
]  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
def test_hostile_arguments_end_in_a_result_or_our_grammar(table, room, monkeypatch):
    monkeypatch.setattr(flow, "MOST_EVALUATIONS", 2000)
    monkeypatch.setattr("dynamics._engine.open.integration.MOST_EVALUATIONS", 2000)
    monkeypatch.setattr("dynamics._engine.lanes.MOST_EVALUATIONS", 2000)
    for module in ("noise", "diffusion"):
        monkeypatch.setattr(f"dynamics.{module}._MOST_STEPS", 50)
    monkeypatch.setattr(data.averaging, "_MOST_CASES", 2**16)
    found = []
    for name, (function, arguments) in table.items():
        if name.split(".")[0] != room or (name == "deep.training.train" and not LONG):
            continue
        found += hostile.complaints(name, function, arguments, functions=FUNCTIONS)
    assert not found, f"{len(found)} calls:\n" + "\n".join(found)
