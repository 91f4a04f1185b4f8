"""Trajectories from the records of a simulator: all states, or the observables alone of a large run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dynamics import observables
from dynamics._model.objective import CRITERIA, Objective, bare
from dynamics._model.problem import Problem
from dynamics._model.weights import Weights
from dynamics.bags import Bags
from dynamics.layer import Layer, States, attention
from dynamics.support import names
from dynamics.support.checks import read_only, read_only_views
from dynamics.support.limits import current
from dynamics.support.provenance import provenance
from dynamics.trajectory import EMBEDDING, FORMAT, Trajectory

# Bytes of a `LargeRecord` at each time: the heads of two arrays, three numbers, and five pointers in lists.
_OBJECTS = 2 * 112 + 3 * 32 + 5 * 8
_ATTENTION = {"long_name": "expected attention", "units": "1"}
_Z = {"long_name": "attention logit", "units": "1"}
_Y = {"long_name": "decoder logit", "units": "1"}
_DISTINCT = {"long_name": "distinct to the next token"}


def assemble(
    bags: Bags,
    times: Sequence[float] | np.ndarray,
    states: States,
    loss: np.ndarray | None = None,
    *,
    kind: str,
    parameters: Mapping,
    query_tokens: np.ndarray | None = None,
    extra: Mapping[str, tuple] | None = None,
    attributes: Mapping[str, str] | None = None,
) -> Trajectory:
    """A trajectory from recorded states.

    Parameters
    ----------
    bags : Bags
        Bags on which loss and attention are measured.
    times : (n,) float
    states : States
        States at these times.
    loss : (n,) float, optional
        The expected loss there, if it is known.
    kind : str
        The simulator, for the attributes.
    parameters : mapping
        Its arguments, JSON-serialisable.
    query_tokens : (queries,) int, optional
        Token id of each row of Z.
    extra : mapping, optional
        More variables, name -> (dimensions, array, attributes).
    attributes : mapping, optional
        More attributes of the dataset.
    """
    first, weights = states
    support = bags._once(observables.Support, first.Z.shape[1])
    logits = weights.Z if first.temperature == 1 else weights.Z / first.temperature
    if loss is None:
        # In the precision of the run, which the start need not have.
        objective = bare(parameters.get("criterion", "cross-entropy"))
        problem = Problem(bags, first, objective, weights.Z.dtype)
        loss = np.array([problem.loss(Weights(*own)) for own in zip(*weights, strict=True)])
    rows_of_y = "unit" if first.hidden is not None else "token" if first.V is None else "value"
    if first.residual:
        rows_of_y = "token_or_query"
    variables: dict[str, tuple] = {
        "attention": (("time", "next_token", "token"), support.dense(support.over_time(logits)), _ATTENTION),
        "z": (("time", "query", "token"), weights.Z, _Z),
        "y": (("time", rows_of_y, "column"), weights.Y, _Y),
        "distinct": (("next_token", "token"), support.dense(support.distinct), _DISTINCT),
        **(extra or {}),
    }
    if first.V is not None:
        variables["v"] = (("time", "token", "value"), weights.V, {"long_name": "value matrix", "units": "1"})
    if first.hidden is not None:
        named = {"long_name": "hidden layer, biases last", "units": "1"}
        variables["hidden"] = (("time", "input", "unit"), weights.hidden, named)
    if first.embedding is not None:
        variables["embedding"] = (("token", "embedding_dimension"), first.embedding.vectors)
        rows = {"keys": "attention_dimension", "queries": "attention_dimension", "values": "value"}
        for name, part in zip(EMBEDDING[1:], rows, strict=True):
            if getattr(first.embedding, part) is not None:
                variables[name] = (("time", rows[part], "embedding_dimension"), getattr(weights, part))
    return _labelled(support, times, loss, first, variables, kind, parameters, query_tokens, attributes)


def _labelled(
    support: observables.Support,
    times: Sequence[float] | np.ndarray,
    loss: np.ndarray,
    layer: Layer,
    variables: dict[str, tuple],
    kind: str,
    parameters: Mapping,
    query_tokens: np.ndarray | None,
    attributes: Mapping[str, str] | None,
    coordinates: Mapping[str, tuple] | None = None,
) -> Trajectory:
    """A trajectory of these variables, with the variables and coordinates that all trajectories have."""
    if query_tokens is None:
        query_tokens = np.arange(layer.Z.shape[0])
    query = support.queries()
    _, name, units = CRITERIA[parameters.get("criterion", "cross-entropy")]
    variables |= {
        "loss": (("time",), loss, {"long_name": f"expected {name}", "units": units}),
        "multiplicity": (("column",), layer.multiplicity, {"long_name": "next tokens that share the column"}),
        "query_of": (
            ("next_token",),
            np.where(query < 0, -1, np.asarray(query_tokens)[query]),
            {"long_name": "query token"},
        ),
    }
    coordinates = {
        "time": (("time",), np.asarray(times, dtype=np.float64), {"long_name": "time", "units": "SGD steps"}),
        "query": (("query",), query_tokens),
        "token": (("token",), np.arange(support.n_tokens)),
        "next_token": (("next_token",), support.present.copy()),
        **(coordinates or {}),
    }
    for names_of, axis in names.AXES.items():
        known = getattr(support.bags, names_of)
        if known is not None:
            numbers = support.present if axis == "next_token" else np.arange(len(coordinates[axis][1]))
            whole = names.filled(known, int(numbers.max()) + 1)
            coordinates[f"{axis}_name"] = (
                (axis,),
                whole[numbers],
                {"long_name": f"name of the {axis.replace('_', ' ')}"},
            )
    own: dict[str, Any] = {"center": int(layer.center), "floor": layer.floor}
    if layer.residual:
        own["residual"] = 1
    if layer.temperature != 1:
        own["temperature"] = layer.temperature
    if layer.normalisation != ("layer" if layer.center else "unit"):
        own["normalisation"] = layer.normalisation or "none"
    own = provenance(kind, parameters, FORMAT) | own | dict(attributes or {})
    return Trajectory._recorded(variables, coordinates, own)


def is_large(bags: Bags, layer: Layer, times: int) -> bool:
    """True if the tables of a run with so many recorded states are too large to be kept whole.

    Only a layer of Z and Y has a smaller form.
    """
    if not layer.plain:
        return False
    entries = layer.Z.size + layer.Y.size + bags.n_targets * layer.Z.shape[1]
    return 8 * times * entries > current().tables


def size_of_large(bags: Bags, n_tokens: int, times: int) -> int:
    """Bytes of the records of a run that `is_large`: attention and logits, copied once, and Python's objects."""
    return times * (32 * bags._once(observables.Support, n_tokens).token.size + _OBJECTS)


class LargeRecord:
    """The records of a run that `is_large`: loss, and attention and logits of the pairs that occur together.

    Parameters
    ----------
    bags : Bags
        Bags on which loss and attention are measured.
    layer : Layer
        Only its kind and its precision are used, not its weights.
    objective : Objective
        Only its criterion is used: a regulariser is no part of the expected loss.
    """

    def __init__(self, bags: Bags, layer: Layer, objective: Objective, dtype: DTypeLike = np.float64) -> None:
        self.bags, self.layer = bags, layer
        self.problem = Problem(bags, layer, bare(objective.criterion), dtype)
        self.support = bags._once(observables.Support, layer.Z.shape[1])
        self.queries = self.support.queries()
        self.times: list[float] = []
        self.loss: list[float] = []
        self.attention: list[np.ndarray] = []
        self.z: list[np.ndarray] = []

    def expected_loss(self, weights: Weights) -> float:
        """The loss at ``weights``."""
        return self.problem.loss(Weights(*read_only_views(weights)))

    def add(self, time: float, Z: np.ndarray, loss: float) -> None:
        """Measure attention at the logits ``Z``."""
        Z = Z.view()
        self.times.append(time)
        self.loss.append(loss)
        self.attention.append(self.support.attention(attention(self.bags, Z)))
        query = self.queries[self.support.row]
        self.z.append(np.where(query < 0, np.nan, Z[query, self.support.token]))

    def trajectory(
        self,
        Z: np.ndarray,
        Y: np.ndarray | None,
        *,
        kind: str,
        parameters: Mapping,
        query_tokens: np.ndarray | None = None,
        extra: Mapping[str, tuple] | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> Trajectory:
        """A trajectory of the records, with Z and Y as the last state; Y is None where it was never formed."""
        support = self.support
        variables = {
            "attention": (("time", "entry"), np.stack(self.attention), _ATTENTION),
            "z": (("time", "entry"), np.stack(self.z), _Z),
            "distinct": (("entry",), support.distinct, _DISTINCT),
            "z_final": (("query", "token"), read_only(Z), _Z),
            **(extra or {}),
        }
        if Y is not None:
            variables["y_final"] = (("token", "column"), read_only(Y), _Y)
        coordinates = {
            "entry_next_token": (("entry",), support.present[support.row]),
            "entry_token": (("entry",), support.token),
        }
        loss = np.array(self.loss)
        common = (kind, parameters, query_tokens, attributes)
        return _labelled(support, self.times, loss, self.layer, variables, *common, coordinates)
