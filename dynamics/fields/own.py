"""A field from outside: its name, its derivative as a function of layer and bags, its flow, and its declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from importlib import metadata
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dynamics._model.objective import Objective, add_terms
from dynamics._model.weights import Weights
from dynamics.bags import Bags
from dynamics.fields.features import SINGULAR
from dynamics.fields.full import Full
from dynamics.fields.system import FlowSetting
from dynamics.layer import Layer, moved
from dynamics.support import checks, content, raised
from dynamics.support.canonical import digest
from dynamics.support.checks import read_only
from dynamics.support.frozen import changed
from dynamics.support.names import is_name
from dynamics.support.origins import FIELDS, code_of, described

if TYPE_CHECKING:
    Direction: TypeAlias = Callable[[Layer, Bags], Layer | Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Field:
    r"""A decoder of one's own: which way the weights move, for `register_field`.

    With d(W) the direction of a layer's weights W on a population, the flow is ``dW/dt = eta d(W)``, with the learning
    rate of each array, per SGD step. For the paper's layer, d of Lemma 1 (3) is ``layer.gradient(bags)``.

    Parameters
    ----------
    name : str
        The name for ``decoder=``.
    gradient : callable
        (layer, bags) -> the direction of ascent of each array of weights before its learning rate: a mapping from "Z",
        "Y" and the other parts that the layer has to arrays of their shapes, or a Layer with them. Column j of Y stands
        for ``layer.multiplicity[j]`` next tokens, and moves as that of one of them.
    step : callable, optional
        The same of a mini-batch, for `sgd`: its sequences as bags or, with ``length=None``, the bags of the population
        with the shares of the draw as weights. Often it is ``gradient`` itself. Default: `sgd` refuses the field.
    inverts : bool
        Whether it inverts F^T F, F the features of the bags: a population where they are linearly dependent is refused,
        and so are finite sequences in `sgd`.

    A field has no fast path of its own: its flow is that of all weights, symmetric or not, and ensembles integrate it
    one flow after the other. The loss that is recorded is that of the layer. An `Objective` may add terms, and change
    temperature and normalisation of the layer, which the direction is given; another criterion, insertions and label
    smoothing are refused.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Examples
    --------
    >>> from dynamics import Field, SequenceClasses, gradient_flow, register_field
    >>> def decayed(layer, bags):
    ...     slope = layer.gradient(bags)
    ...     return {"Z": slope.Z, "Y": slope.Y - 0.01 * layer.Y}
    >>> register_field(Field("decayed", decayed))
    >>> classes = SequenceClasses.single_common_token(3, 20)
    >>> flow = gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=10.0, decoder="decayed")
    >>> flow.parameters["decoder"]
    'decayed'
    """

    name: str
    gradient: Direction
    step: Direction | None = None
    inverts: bool = False

    def __post_init__(self) -> None:
        plain = isinstance(self.name, str) and self.name.strip() == self.name != "" and self.name.isprintable()
        if not plain or not is_name(self.name):
            raise checks.reject("name", "be a word or a few that print", checks.brief(self.name))
        checks.function("gradient", self.gradient)
        if self.step is not None:
            checks.function("step", self.step)
        object.__setattr__(self, "inverts", checks.flag("inverts", self.inverts))

    @property
    def module(self) -> str:
        """The module of the function ``gradient``; a script that runs is called by its file."""
        return content.module_of(self.gradient)

    @cached_property
    def _code(self) -> dict[str, str]:
        return asdict(code_of(self.module))

    @property
    def origin(self) -> dict[str, str]:
        """Whose code it is: what files of its runs record, as the store of a sweep does.

        ``module``, those of `dynamics.support.origins.Code`, and ``functions``: SHA-256 of `content_of` its functions,
        with the helpers and the values of their modules that they read.
        """
        parts = content.content_of(self.gradient, self.step).parts
        return {"module": self.module, **self._code, "functions": digest(parts)}


def check_field(field: Field, bags: Bags, layer: Layer, objective: Objective) -> None:
    """Raise ``ValueError`` for what a field cannot be integrated with."""
    for name, given in (
        ("criterion", objective.criterion != "cross-entropy"),
        ("contrast", objective.contrast is not None),
        ("label_smoothing", objective.label_smoothing > 0),
    ):
        if given:
            rule = f"be left out for decoder={field.name!r}, whose direction does not have it"
            raise checks.reject(name, rule, checks.brief(getattr(objective, name)))
    if field.inverts:
        features = layer.features(bags)
        checks.fits_in_memory("data", 16 * len(bags) ** 2, "invert F^T F")
        smallest = np.linalg.eigvalsh(features @ features.T)[0]
        if smallest < SINGULAR:
            rule = f"have linearly independent features f_n for decoder={field.name!r}, which inverts F^T F"
            raise checks.reject("data", rule, f"a smallest eigenvalue of {smallest:.1e}")


def check_direction(field: Field, what: str, bags: Bags, layer: Layer) -> None:
    """Raise ``ValueError`` if a direction changes from call to call, or ignores the multiplicity of columns.

    It is compared near the start with itself, and with the same layer where one of the next tokens that share a column
    of Y has its own: every entry has to move as before. A ``step`` may draw noise, and is then not compared.
    """
    rng, weights = np.random.default_rng(0), layer.weights
    near = moved(
        layer, Weights(*(array + (0.1 * rng.standard_normal(array.shape)).astype(array.dtype) for array in weights))
    )
    first, again = (_direction(field, what, near, bags) for _ in range(2))
    rounding = 1e-6 if layer.Y.dtype == np.float64 else 1e-3
    of = f"{what} of decoder {field.name!r}"
    if (name := _unlike(first, again, rounding * 1e-3)) is not None:
        if what == "step":
            return
        rule = "return the same numbers for the same layer and bags: noise of mini-batches is that of `sgd`"
        raise checks.reject(of, rule, f"others for {name} at the second call")
    shared = layer.multiplicity > 1
    if not shared.any():
        return
    each = np.repeat(np.arange(shared.size), 1 + shared)
    alone = np.append(each[1:] == each[:-1], False)  # the first of two columns for one: one next token
    split = np.where(alone, 1, layer.multiplicity[each] - shared[each])
    wide = changed(near, Y=read_only(near.Y[:, each]), multiplicity=read_only(split))
    wanted = first._replace(Y=first.Y[:, each])
    if (name := _unlike(wanted, _direction(field, what, wide, bags), rounding)) is not None:
        rule = (
            "move column j of Y as one of the `layer.multiplicity[j]` next tokens that share it, as at `layer.expand()`"
        )
        raise checks.reject(of, rule, f"another direction of {name} where a column is split in two")


def _direction(field: Field, what: str, layer: Layer, bags: Bags) -> Weights:
    slopes = Weights(*(np.zeros_like(array) for array in layer.weights))
    add_direction(field, what, layer, bags, slopes)
    return slopes


def _unlike(first: Weights, second: Weights, rounding: float) -> str | None:
    """The name of the first array whose entries differ by more than this share of the largest; None if none do."""
    for name, one in first._asdict().items():
        gap, largest = abs(getattr(second, name) - one), abs(one).max(initial=0.0)
        if (gap > rounding * largest).any():  # never of NaN, which the integrator reports
            return name
    return None


def add_direction(field: Field, what: str, layer: Layer, bags: Bags, slopes: Weights) -> None:
    """Add the direction ``what`` of a field, "gradient" or "step", at a layer on bags into ``slopes``.

    Raises
    ------
    ValueError
        If it is not an array for each part of the layer, of its shape.
    """
    direction, of = getattr(field, what), f"{what} of decoder {field.name!r}"
    try:
        found = direction(layer, bags)
    except Exception as error:
        raised.note(error, f"the {of}, {described(direction)}")
        raise
    parts = {name: array for name, array in layer.weights._asdict().items() if array.size}
    if isinstance(found, type(layer)):
        found = {name: array for name, array in found.weights._asdict().items() if array.size}
    if not isinstance(found, Mapping) or set(found) != set(parts):
        shown = ", ".join(map(str, found)) if isinstance(found, Mapping) else checks.brief(found)
        raise checks.reject(of, f"return a mapping with an array for each of {', '.join(parts)}", shown)
    for name, array in found.items():
        own = np.asarray(array)
        if own.shape != parts[name].shape or own.dtype.kind not in "iuf":
            rule = f"return numbers of shape {parts[name].shape} for {name}"
            raise checks.reject(of, rule, f"shape {own.shape} of {own.dtype}")
        getattr(slopes, name)[...] += own


def installed(name: str) -> Field | None:
    """The field of this name that an installed distribution offers by the entry point group "yzflow.fields".

    Raises
    ------
    ValueError
        If it cannot be imported, or is none.
    """
    for entry in metadata.entry_points(group=FIELDS, name=name):
        of = f"{name!r} of the distribution {entry.dist.name if entry.dist else entry.value}"
        try:
            found = entry.load()
        except (Exception, SystemExit) as error:  # code of other people can raise anything
            told = f"{of} ({type(error).__name__}: {' '.join(str(error).split())})"
            raise checks.reject("decoder", "be a field that can be imported", told) from error
        if not isinstance(found, Field) or found.name != name:
            raise checks.reject("decoder", "be a Field of this name", f"{checks.brief(found)} for {of}")
        return found
    return None


class Own(Full):
    """As `Full`, along the direction of a `Field`."""

    finds_loss = False

    def __init__(self, field: Field, setting: FlowSetting) -> None:
        super().__init__(setting)
        self.field = field
        check_field(field, setting.bags, setting.start, setting.objective)
        check_direction(field, "gradient", setting.bags, setting.start)

    def gradient(self, weights: Weights, slopes: Weights) -> float:
        """The direction of each weight, added into ``slopes``; nan where a trial step overshot."""
        if not all(np.isfinite(array).all() for array in weights):
            for slope in slopes:
                slope.fill(np.nan)
            return float("nan")
        add_direction(self.field, "gradient", moved(self.like, weights), self.setting.bags, slopes)
        add_terms(self.setting.objective, weights, slopes)
        return float("nan")


def whole_of(field: Field) -> Callable[[FlowSetting], Own]:
    """FlowSetting -> the flow of all weights."""
    return partial(Own, field)
