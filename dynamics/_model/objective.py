"""The objective of training."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dynamics._model.weights import LayerLike, Weights
from dynamics.bags import Bags
from dynamics.support import checks, raised
from dynamics.support.origins import described


class Criterion(NamedTuple):
    """A loss: its flag for the kernels, its label and its units for plots."""

    squared: bool
    label: str
    units: str


CRITERIA = {
    "cross-entropy": Criterion(False, "cross-entropy", "nats"),
    "squared": Criterion(True, "squared loss", "1"),
}
NORMALISATIONS = ("unit", "layer", None)
_AnyKind = TypeVar("_AnyKind", bound=LayerLike)
# Weights -> name of a weight -> the array to add to the gradient of J.
Term = Callable[[Weights], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Objective:
    """The objective of `gradient_flow` and `sgd`, with options of the layer.

    Parameters
    ----------
    criterion : "cross-entropy" or "squared"
        Nats (2), or ``sum_c (u_c - target_c)^2`` of the logits u (Wen et al. 2023, (5)).
    contrast : Bags, optional
        Insertions for the regulariser ``contrast_weight E ||u(x) - u(x + insertion)||^2 / M`` (Wen et al. 2023, (22)),
        whose weights are their probabilities: in `sgd` each bag of a batch has one insertion.
        `DyckLanguage.nested_pairs` makes insertions.
    contrast_weight : float
    label_smoothing : float
        eps in [0, 1): training minimises the loss with the targets ``(1 - eps) e_n + eps / M``. The recorded ``loss``
        has the targets of the data, the recorded ``batch_loss`` the smoothed ones.
    temperature : float
        tau > 0: attention is ``N_l exp(z_l / tau)``. Equivalent to learning rates of Z that are smaller by tau^2, and a
        Z that is smaller by tau: Z(eta_Z, tau) = tau Z(eta_Z / tau^2, 1).
    normalisation : "unit", "layer" or None
        LN of the attended vector v. "unit": ``v / ||v||_2``, as in the paper. "layer": the mean over all entries is
        subtracted first, as in the usual LayerNorm up to the factor sqrt(d), which is a factor of eta_Y; without a
        value matrix the entries are the tokens of the layer. None: v itself.
    terms : functions of the weights
        Each function is given the weights, with the attributes Z, Y, .. of `Layer`, and returns a mapping from some of
        these names to arrays. The arrays are added to the gradient of J, in each step of `sgd` and in the flow. See
        docs/howto/change_an_assumption.md.

    Temperature and normalisation belong to the layer; the start `Layer` may have them instead.

    Raises
    ------
    ValueError
        If an argument is invalid.
    """

    criterion: str = "cross-entropy"
    contrast: Bags | None = None
    contrast_weight: float = 0.0
    label_smoothing: float = 0.0
    temperature: float = 1.0
    normalisation: str | None = "unit"
    terms: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        checks.one_of("criterion", self.criterion, CRITERIA)
        weight = checks.non_negative("contrast_weight", self.contrast_weight)
        if self.contrast is None:
            if weight > 0:
                raise checks.reject("contrast_weight", "be 0 without `contrast`", weight)
        elif not isinstance(self.contrast, Bags):
            raise checks.reject("contrast", "be Bags, one an insertion", type(self.contrast).__name__)
        put(self, "contrast_weight", weight)
        put(self, "label_smoothing", checks.below("label_smoothing", self.label_smoothing, 1))
        put(self, "temperature", checks.positive("temperature", self.temperature))
        checked_normalisation(self.normalisation)
        terms = checks.listed("terms", self.terms, "be functions of the weights")
        put(self, "terms", tuple(checks.function("terms", term) for term in terms))

    @property
    def squared(self) -> bool:
        """True for the squared loss; the kernels know the criterion by this flag."""
        return CRITERIA[self.criterion].squared

    @property
    def plain(self) -> bool:
        """True for the cross-entropy alone, without contrast, label smoothing and terms."""
        return self.criterion == "cross-entropy" and self.contrast is None and not (self.label_smoothing or self.terms)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters for a record; `Objective.of` inverts this, except for insertions and terms."""
        record: dict[str, Any] = {"criterion": self.criterion, "contrast_weight": self.contrast_weight}
        for name, usual in (("label_smoothing", 0.0), ("temperature", 1.0), ("normalisation", "unit")):
            if getattr(self, name) != usual:
                record[name] = getattr(self, name)
        if self.terms:
            record["terms"] = [described(term) for term in self.terms]
        return record

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Objective:
        """The objective of a run from the parameters that its trajectory records.

        Raises
        ------
        ValueError
            If it had insertions or terms, which are not recorded.
        """
        checks.instance("parameters", parameters, Mapping)
        if parameters.get("terms") or parameters.get("contrast_weight"):
            name = "terms" if parameters.get("terms") else "contrast_weight"
            raise checks.reject(name, "be left out to be made again from what is recorded", parameters[name])
        names = ("criterion", "label_smoothing", "temperature", "normalisation")
        return cls(**{name: parameters[name] for name in names if name in parameters})


def checked_normalisation(value: object) -> None:
    """Raise ``ValueError`` unless the argument ``normalisation`` is known."""
    if value is not None:
        checks.one_of("normalisation", value, [name for name in NORMALISATIONS if name])


_bare = functools.cache(Objective)
PLAIN = _bare("cross-entropy")


def bare(criterion: object) -> Objective:
    """The objective that is a criterion and nothing else."""
    return _bare(checks.one_of("criterion", criterion, CRITERIA))


def placed(
    objective: Objective, layer: _AnyKind, bags: Bags, query_tokens: Sequence[Any] | np.ndarray | None, name: str
) -> _AnyKind:
    """The start layer, an argument of this name, as an objective wants it, with a place for all that is in the data.

    ``query_tokens`` are those of named data, each with a row of Z.

    Raises
    ------
    ValueError
        If the layer is of another size, or cannot be what the objective says.
    """
    layer = shaped(objective, layer)
    layer.check_fits(bags, name="data")
    queries, tokens = layer.Z.shape
    if query_tokens is not None and len(query_tokens) != queries:
        raise checks.reject(name, f"have {len(query_tokens)} rows of Z, one a query token", queries)
    if objective.contrast is not None and objective.contrast.n_tokens > tokens:
        raise checks.reject("contrast", f"have at most the {tokens} tokens of the layer", objective.contrast.n_tokens)
    return layer


def shaped(objective: Objective, layer: _AnyKind) -> _AnyKind:
    """A start layer with the temperature and normalisation of an objective.

    Raises
    ------
    ValueError
        If the layer has another temperature or normalisation, or cannot have these.
    """
    changes: dict[str, Any] = {}
    for name, usual in (("temperature", 1.0), ("normalisation", "unit")):
        kept, asked = getattr(layer, name), getattr(objective, name)
        if asked not in (usual, kept):
            if kept != usual:
                raise checks.reject(name, f"be {kept!r}, that of the start, or left out", repr(asked))
            changes[name] = asked
    return replace(layer, **changes) if changes else layer


def add_terms(objective: Objective, weights: Weights, slopes: Weights) -> None:
    """Add the terms of an objective to the gradient of J at ``weights``."""
    for term in objective.terms:
        try:
            added = term(weights)
        except Exception as error:
            raised.note(error, f"the term {described(term)}")
            raise
        if not isinstance(added, Mapping):
            raise checks.reject("terms", "return a mapping from names of weights to arrays", checks.brief(added))
        for name, array in added.items():
            if name not in Weights._fields or not getattr(weights, name).size:
                present = ", ".join(key for key, weight in weights._asdict().items() if weight.size)
                raise checks.reject("terms", f"return names among {present}", repr(name))
            slope, array = getattr(slopes, name), np.asarray(array)
            if array.shape != slope.shape:
                raise checks.reject("terms", f"return an array of shape {slope.shape} for {name}", array.shape)
            slope += array
