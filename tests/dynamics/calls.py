"""Valid calls of the public functions of `dynamics`, and of the table of papers, which the hostile tests vary."""

# ruff: noqa: C408
import re
from pathlib import Path
from types import MappingProxyType

import hostile
import numpy as np
from matplotlib.figure import Figure

from dynamics import (
    Bags,
    Embedding,
    Field,
    Layer,
    Limits,
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
from theory import papers

# Modules whose names are no calls for users: helpers, proofs and checks that take each other's objects.
INNER = re.compile(
    r"\._|\.support|\.backend|\.version|\.proofs|\.measures|\.statements|\.bounds|\.values|^theory\.(parts|symbolic|trust)"
    r"|\.fields\.|\.optimizers\.|\.kernel$"
    r"|\.layout|\.overlaps|\.visits|\.view|\.coverage|\.residual|\.centred|\.enclosed|\.balls|\.enclosures\.(?!enclosure$)"
)
EXEMPT = {
    hostile.RECORD: {"_engine.sgd.run.Outcome", "noise.GradientNoise"},
    hostile.RAISED: {"bags.HasPopulation"},
    hostile.OURS: {
        "descent.complete", "layer.States", "layer.States.of", "layer.States.plain",
        "layer.attention", "layer.in_precision", "layer.moved",
        "layer.optional_rates", "papers.code_of", "papers.forget", "papers.home_of",
        "papers.installed", "papers.joined", "papers.register",
    },
}  # fmt: skip
# Ends of calls that would take long: where each stands -> its value in the tests.
LIMITS = {
    "dynamics._engine.lanes.MOST_EVALUATIONS": 2000,
    "dynamics.noise._MOST_STEPS": 50,
    "dynamics.diffusion._MOST_STEPS": 50,
}
# Arguments that are functions: what those raise is not ours.
FUNCTIONS = {"function", "predicate", "tokenizer", "observe"}


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
        "papers.additions": (papers.additions, {"name": None}),
        "papers.built_in": (papers.built_in, {}),
        "papers.left_out": (papers.left_out, {}),
        "papers.named": (papers.named, {"name": "x"}),
    }


RATES = {"eta_y": 0.1, "eta_z": 0.1}


def two_classes():
    return SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)


def drawn():
    return dict(ax=Figure().subplots(), labels=["x"], style={"lines.linewidth": 2.0})


def data_calls(classes):
    """Valid calls of data and extensions."""
    bags, corpus, rng = classes.population(), TextCorpus(["a b a c a b"]), np.random.default_rng(0)
    Path("kept.txt").write_text("a b a c b a", encoding="utf-8")
    bags.save("kept.npz")
    return {
        "bags.Bags": (Bags, dict(query=[0], target=[0], indptr=[0, 1], token=[0], count=[1.0], weight=[1.0],
                                 n_queries=1, n_tokens=1, vocab_size=1, token_names=["a"], class_names=["b"],
                                 query_names=["c"])),
        "bags.Bags.from_dense": (Bags.from_dense, dict(query=[0], target=[0], counts=[[1.0]], weight=[1.0])),
        "bags.Bags.concatenate": (Bags.concatenate, dict(parts=[bags, bags], shares=[1, 1])),
        "bags.Bags.save": (bags.save, dict(path="bags.npz")),
        "bags.Bags.named_like": (bags.named_like, dict(other=bags)),
        "bags.Bags.load": (Bags.load, dict(path="kept.npz")),
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
        "data.text.TextCorpus.windows": (corpus.windows, dict(length=2, stride=1, limit=2, rng=rng, start=0,
                                                              stop=6)),
        "extensions.residual_connection": (extensions.residual_connection, dict(data=classes, inner_norm=True)),
        "extensions.layer_norm": (extensions.layer_norm, dict(data=classes, width=5)),
        "extensions.biased_sequences": (extensions.biased_sequences, dict(
            data=classes, n=3, length=4, position_bias=0.1, rng=0)),
        "bags.Bags.plot": (bags.plot, drawn()),
        "data.sequence_classes.SequenceClasses.plot": (classes.plot, drawn()),
        "bags.population_of": (population_of, dict(data=classes)),
    }  # fmt: skip


def simulator_calls(classes):
    """Valid calls of the simulators."""
    noise = gradient_noise(classes, batch_size=2, length=4)
    return {
        "descent.sgd": (sgd, dict(
            data=classes, **RATES, steps=2, batch_size=2, length=4, momentum=0.9, optimizer="sgd", init="zero", seed=0,
            record_every=1, dtype="float64", progress=False, eta_v=None, position_bias=0.0, eta_hidden=None,
            objective=None, evaluate=None, decoder="full", replacement=True)),
        "descent.sgd_many": (sgd_many, dict(runs=[(classes, {**RATES, "steps": 1})], observe=None, threads=1,
                                            progress=False)),
        "ensemble.gradient_flow_ensemble": (gradient_flow_ensemble, dict(
            settings={"n_classes": 3, "vocab_size": 5, "eta_y": 1.0, "eta_z": 1.0}, t_end=1.0, times=[0.5],
            decoder="full", rtol=1e-3, atol=1e-3, record=["z"], fastest=True, threads=1, path=None,
            progress=False)),
        "diffusion.stochastic_flow": (stochastic_flow, dict(
            data=classes, **RATES, t_end=1.0, batch_size=2, length=4, decoder="full", scheme="euler-maruyama", dt=1.0,
            order=1, times=[0.5], n_times=2, init=None, seed=0, progress=False, objective=None)),
        "noise.gradient_noise": (gradient_noise, dict(
            data=classes, layer=None, batch_size=2, length=4, decoder="full", objective=None)),
        "noise.linear_noise": (linear_noise, dict(
            data=classes, **RATES, steps=[1, 2], decoder="full", finite=True, init=None, objective=None,
            progress=False)),
        "noise.GradientNoise.parts": (noise.parts, dict(vector=noise.mean)),
        "noise.GradientNoise.sample": (noise.sample, dict(n=2, rng=0)),
        "flow.gradient_flow": (gradient_flow, dict(
            data=classes, **RATES, t_end=1.0, decoder="full", times=[0.5], n_times=2, init=None, rtol=1e-3, atol=1e-3,
            progress=False, eta_v=None, eta_hidden=None, objective=None, solver=None, optimizer=None)),
    }  # fmt: skip


def option_calls():
    """Valid calls of options, fields and limits."""
    optimizer, own = Optimizer("sgd", schedule=Schedule(2.0)), Field("of hostile tests", Layer.gradient)
    return {
        "_model.objective.Objective": (Objective, dict(
            criterion="squared", contrast=None, contrast_weight=0.0, label_smoothing=0.1, temperature=2.0,
            normalisation="layer", terms=())),
        "optimizers.optimizer.Optimizer": (Optimizer, dict(
            name="adamw", momentum=0.5, weight_decay=0.1, decoupled=True, schedule=Schedule(2.0), clip=1.0,
            betas=(0.9, 0.99), epsilon=1e-6)),
        "optimizers.optimizer.Schedule": (Schedule, dict(warm_up=2.0, decay="cosine", steps=10.0, floor=0.1)),
        "_engine.steps.Solver": (Solver, dict(method="DOP853", time_scale="linear", reduce="auto",
                                               momentum="first order")),
        "_model.objective.Objective.of": (Objective.of, dict(parameters=Objective(temperature=2.0).parameters)),
        "optimizers.optimizer.Optimizer.of": (Optimizer.of, dict(parameters=optimizer.parameters)),
        "optimizers.optimizer.Optimizer.factor": (optimizer.factor, dict(t=1.0)),
        "optimizers.optimizer.Optimizer.over": (optimizer.over, dict(steps=5)),
        "optimizers.optimizer.Schedule.__call__": (optimizer.schedule, dict(t=1.0)),
        "optimizers.optimizer.Schedule.clock": (optimizer.schedule.clock, dict(t=1.0)),
        "optimizers.optimizer.Schedule.over": (Schedule(decay="linear").over, dict(steps=5)),
        "fields.own.Field": (Field, dict(name="mine", gradient=own.gradient, step=None, inverts=False)),
        "fields.table.register_field": (register_field, dict(field=own)),
        **{f"options.{name}": (getattr(options, name), dict(options={"optimizer": "adamw", "clip": 1.0}))
           for name in ("optimizer_of", "objective_of", "unusual", "flow_options")},
        "support.limits.Limits": (Limits, dict(memory=2**40, tables=2, data=3, evaluations=4, runs=5, work=6, numbers=7,
                                               members=8, seconds_between_lines=9.0, seconds_between_saves=10.0)),
    }  # fmt: skip


def layer_calls(bags):
    """Valid calls of layers and of what is observed of them."""
    layer, embedding = Layer.zeros(bags), Embedding(np.eye(3), np.ones((2, 3)), np.ones((2, 3)))
    entropy = {"attention": np.full((2, 1, 2), 0.5), "mask": np.ones((1, 2), dtype=bool), "starts": None}
    support = observables.Support(bags)
    return {
        "layer.Embedding": (Embedding, dict(vectors=np.eye(3), keys=np.ones((2, 3)), queries=np.ones((2, 3)),
                                            values=np.ones((2, 3)))),
        "layer.Layer": (Layer, dict(Z=np.zeros((3, 3)), Y=np.zeros((3, 2)), V=None, multiplicity=[1, 1], hidden=None,
                                    center=False, floor=0.0, embedding=embedding, residual=False,
                                    temperature=1.0, normalisation="unit")),
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
        "observables.Support.attention": (support.attention, dict(shares=layer.sparse_attention(bags))),
        "observables.Support.dense": (support.dense, dict(values=support.distinct)),
        "observables.Support.over_time": (support.over_time, dict(Z=np.zeros((2, *layer.Z.shape)))),
        "observables.given_next_token": (observables.given_next_token, dict(bags=bags)),
        "layer.Layer.plot": (layer.plot, dict(matrix="Z", **drawn())),
    }  # fmt: skip


def trajectory_calls(classes):
    """Valid calls of a trajectory."""
    run = gradient_flow(classes, **RATES, t_end=1.0, n_times=2)
    run.save("kept.nc")
    return {
        "trajectory.Trajectory": (Trajectory, dict(dataset=run.dataset, call=run.call, environment=run.environment)),
        "trajectory.Trajectory.attention_entropy": (run.attention_entropy, dict(tokens="distinct")),
        "trajectory.Trajectory.recall": (run.recall, dict(thresholds=[0.1])),
        "trajectory.Trajectory.surviving_tokens": (run.surviving_tokens, dict(next_token=0, threshold=0.1)),
        "trajectory.Trajectory.growth_factor": (run.growth_factor, dict(next_token=0, token=1)),
        "trajectory.Trajectory.relative_gain": (run.relative_gain, dict(next_token=0, token=1, other=0)),
        "trajectory.Trajectory.save": (run.save, dict(path="run.nc")),
        "trajectory.Trajectory.plot": (run.plot, dict(quantity="attention", next_token=None, **drawn())),
        "trajectory.Trajectory.names": (run.names, dict(axis="token")),
        "trajectory.Trajectory.number": (run.number, dict(axis="token", value=1)),
        "trajectory.Trajectory.to_csv": (run.to_csv, dict(path="run.csv")),
        "trajectory.Trajectory.load": (Trajectory.load, dict(path="kept.nc")),
    }  # fmt: skip


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    classes = two_classes()
    made = open_calls() | data_calls(classes) | simulator_calls(classes) | option_calls()
    return made | layer_calls(classes.population()) | trajectory_calls(classes)
