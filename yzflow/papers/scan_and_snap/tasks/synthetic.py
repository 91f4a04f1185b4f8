"""Tasks of Scan and Snap (Tian, Wang, Chen, Du 2023, arXiv 2305.16380): SGD on its data sets, and the gradient flow."""

from __future__ import annotations

from functools import cache

import numpy as np

from dynamics import Layer, SequenceClasses, Solver, gradient_flow, observables, options, sgd_many
from dynamics.descent import ARGUMENTS, complete
from dynamics.fields.table import code_of, entry_of
from dynamics.flow import METHODS
from dynamics.support import checks
from dynamics.support.checks import read_only
from yzflow.sweeps.runs import Labelled, Task

# Figs. 11 and 12 have a window of thresholds around 1/M for each number of query tokens.
WINDOWS = {1: (0.028, 0.038), 3: (0.012, 0.016), 5: (0.0075, 0.0105), 10: (0.0040, 0.0050)}
# Of attention: all of its range, and 25 in each window.
THRESHOLDS = np.unique(
    np.concatenate([np.linspace(0, 0.2, 101), *(np.linspace(*ends, 25) for ends in WINDOWS.values())]).round(10)
)

_RATE = {"units": "1 / SGD step"}
_LABELS = {
    "n_queries": {"long_name": "number of query tokens"},
    "eta_y": {"long_name": "learning rate of the decoder, eta_Y", **_RATE},
    "eta_z": {"long_name": "learning rate of attention, eta_Z", **_RATE},
    "ratio": {"long_name": "eta_Y / eta_Z"},
    "steps": {"long_name": "number of steps", "units": "SGD steps"},
    "t_end": {"long_name": "last time", "units": "SGD steps"},
    "n_classes": {"long_name": "K, next tokens that occur"},
    "vocab_size": {"long_name": "M, next tokens in all"},
    "common": {"long_name": "unnormalised weight of the common token"},
    "seed": {"long_name": "seed of start and samples"},
}
# Left out: the seed is the sweep's; a grid cannot hold a start layer or bags of insertions; only the end is recorded;
# the modified decoder has no finite sequences.
_NO_KEYS = ("seed", "eta_v", "eta_hidden", "objective", "record_every", "decoder")
_OPTIONS = (*options.OF_OPTIMIZER, *options.OF_OBJECTIVE)
_SGD_KEYS = ("ratio", *(name for name in ARGUMENTS if name not in _NO_KEYS), *_OPTIONS)


def _rates(given: dict) -> dict:
    """eta_Y and eta_Z, both 1 by default, from any two of eta_y, eta_z and ratio."""
    if "ratio" in given and "eta_y" in given:
        raise checks.reject("grid", "have one of 'ratio' and 'eta_y'", "both")
    eta_z = checks.positive("eta_z", given.get("eta_z", 1.0))
    eta_y = given["eta_y"] if "eta_y" in given else checks.positive("ratio", given.get("ratio", 1.0)) * eta_z
    return {"eta_y": checks.positive("eta_y", eta_y), "eta_z": eta_z}


def _sgd_arguments(given: dict) -> dict:
    arguments = {name: value for name, value in given.items() if name not in ("ratio", "n_queries", *_OPTIONS)}
    arguments = complete(arguments | _rates(given))
    arguments["init"] = checks.one_of("init", arguments["init"], ("zero", "uniform"))
    rest = {name: value for name, value in arguments.items() if name not in _NO_KEYS}
    if rest["replacement"]:
        del rest["replacement"]  # later options at their defaults must not rename earlier runs
    return rest | {"criterion": options.objective_of(given).criterion} | options.unusual(given)


def _complete_small(given: dict) -> dict:
    return _sgd_arguments({"steps": 100} | given)


def _complete_medium(given: dict) -> dict:
    n_queries = checks.integer("n_queries", given.get("n_queries", 1), minimum=1)
    given = {"steps": 100, "init": "uniform", "dtype": "float32"} | given
    return {"n_queries": n_queries, **_sgd_arguments(given)}


def syn_small(configuration: dict, seed: int) -> dict:
    """SGD on Syn-Small from a zero start, 100 steps by default."""
    return _sgd(_small(), configuration, seed)


def syn_medium(configuration: dict, seed: int) -> dict:
    """SGD on Syn-Medium from a start uniform in +-1/sqrt(M), in single precision, 100 steps by default."""
    arguments = {name: value for name, value in configuration.items() if name != "n_queries"}
    return _sgd(_medium(configuration["n_queries"]), arguments, seed)


@cache
def _small() -> SequenceClasses:
    return SequenceClasses.syn_small()


@cache
def _medium(n_queries: int) -> SequenceClasses:
    return SequenceClasses.syn_medium(n_queries)


@cache
def _support(classes: SequenceClasses) -> observables.Support:
    """The pairs (next token, token) of the data: the same in every run."""
    return observables.Support(classes.population())


@cache
def _distinct(classes: SequenceClasses) -> np.ndarray:
    """Which tokens are distinct: the same in every run."""
    support = _support(classes)
    return read_only(support.dense(support.distinct))


_NATS = {"units": "nats"}
_THRESHOLDS = Labelled(THRESHOLDS, ("threshold",), {"long_name": "threshold on attention", "units": "1"})
_ABOVE = "share of distinct tokens with {} above the threshold, mean over next tokens"
# Of each variable of a result.
_ATTRIBUTES = {
    "entropy": {"long_name": "entropy of attention on distinct tokens, mean over next tokens", **_NATS},
    "loss": {"long_name": "expected cross-entropy at the end", **_NATS},
    "batch_loss": {"long_name": "loss of the last mini-batch", **_NATS},
    "recall": {"long_name": _ABOVE.format("attention"), "units": "1"},
    "softmax_recall": {"long_name": _ABOVE.format("softmax of the row of Z"), "units": "1"},
}


def _sgd(classes: SequenceClasses, arguments: dict, seed: int) -> dict:
    """Measures of attention at the end of a run."""
    rest = {name: value for name, value in arguments.items() if name not in _OPTIONS}
    rest |= {"objective": options.objective_of(arguments), "optimizer": options.optimizer_of(arguments), "seed": seed}
    del rest["momentum"]
    [outcome] = sgd_many([(classes, rest)], threads=1)
    bags, end = outcome.bags, outcome.layer
    layer = Layer(end.Z.astype(np.float64), end.Y.astype(np.float64), None, end.multiplicity)
    attention = (_support(classes).conditional @ layer.sparse_attention(bags)).toarray()
    mask = _distinct(classes)
    shares = np.stack([attention, _softmax_of_rows(layer.Z, classes)])
    recall, softmax_recall = observables.recall(shares, mask, THRESHOLDS).mean(axis=1)
    measured = {
        "entropy": observables.entropy(attention, mask).mean(),
        "loss": layer.loss(bags),
        "batch_loss": float(outcome.batch_loss[-1]),
        "recall": recall,
        "softmax_recall": softmax_recall,
    }
    found = {}
    for name, values in measured.items():
        coords = {"threshold": _THRESHOLDS} if np.ndim(values) else {}
        found[name] = Labelled(values, tuple(coords), _ATTRIBUTES[name], coords)
    return found


def _softmax_of_rows(Z: np.ndarray, classes: SequenceClasses) -> np.ndarray:
    """Softmax of the row of Z that each next token reads, over all M tokens: (K, tokens).

    Tokens that are not contextual have no logit here; it would stay at its start, at 0 or near it.
    """
    weights = np.exp(Z)
    shares = weights / (weights.sum(axis=1, keepdims=True) + classes.vocab_size - Z.shape[1])
    return shares[np.searchsorted(classes.query_tokens, classes.query)]


def _decoder(value: object) -> str:
    entry_of(value)
    return str(value)


# A flow is one of plain steps unless it is told otherwise.
_PLAIN = {"optimizer": "sgd", "momentum": 0.0}
_FLOW = {
    "n_classes": (10, lambda name, value: checks.integer(name, value, minimum=2)),
    "vocab_size": (1000, lambda name, value: checks.integer(name, value, minimum=2)),
    "common": (0.15, checks.positive),
    "t_end": (700.0, checks.positive),
    "decoder": ("full", lambda name, value: _decoder(value)),
    "n_times": (50, lambda name, value: checks.integer(name, value, minimum=2)),
    "time_scale": ("linear", lambda name, value: checks.one_of(name, value, ("linear", "log"))),
    "rtol": (1e-8, checks.positive),
    "atol": (1e-10, checks.positive),
    "method": ("DOP853", lambda name, value: checks.one_of(name, value, METHODS)),
}


def _complete_flow(given: dict) -> dict:
    rest = {name: check(name, given.get(name, default)) for name, (default, check) in _FLOW.items()}
    asked = _PLAIN | given
    own = {name: asked[name] for name, usual in _PLAIN.items() if asked[name] != usual} | options.unusual(asked)
    return _rates(given) | rest | own | code_of(rest["decoder"])


def flow(configuration: dict, seed: int) -> dict:
    """Gradient flow with one common token (Theorem 4's setting); without chance, so that the seed does nothing."""
    arguments = dict(configuration)
    if arguments.pop("field", None) != code_of(arguments["decoder"]).get("field"):
        raise checks.reject("decoder", "have the code that it had when the sweep began", repr(arguments["decoder"]))
    n_classes, vocab_size, common = (arguments.pop(name) for name in ("n_classes", "vocab_size", "common"))
    classes = SequenceClasses.single_common_token(n_classes, vocab_size, common=common)
    solver = Solver(method=arguments.pop("method"), time_scale=arguments.pop("time_scale"))
    asked = {name: arguments.pop(name) for name in (*_PLAIN, *_OPTIONS) if name in arguments}
    run = gradient_flow(classes, solver=solver, **options.flow_options(asked), **arguments)
    logits = run.dataset["z"].isel(query=0, drop=True)
    logit = {"units": "1"}
    return {
        "loss": run.dataset["loss"],
        "entropy": run.attention_entropy().mean("next_token", keep_attrs=True),
        "common_logit": logits.sel(token=0, drop=True).assign_attrs(long_name="logit of the common token", **logit),
        "distinct_logit": logits.sel(token=1, drop=True).assign_attrs(
            long_name="logit of the most frequent distinct token of next token 0", **logit
        ),
    }


TASKS = (
    Task("syn_small", syn_small, version=2, keys=_SGD_KEYS, complete=_complete_small, threads=True, labels=_LABELS),
    Task(
        "syn_medium",
        syn_medium,
        version=2,
        keys=("n_queries", *_SGD_KEYS),
        complete=_complete_medium,
        threads=True,
        labels=_LABELS,
    ),
    Task(
        "flow",
        flow,
        keys=("eta_y", "eta_z", "ratio", *_FLOW, *_PLAIN, *_OPTIONS),
        complete=_complete_flow,
        labels=_LABELS,
    ),
)
