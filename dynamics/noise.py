"""Noise of mini-batches: the covariance of a step's gradient in closed form, and its sum over a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import lazy_loader
import numpy as np
from numpy.typing import ArrayLike

from dynamics._engine.noise.field import DrawnField
from dynamics._engine.noise.linear import fluctuations
from dynamics._model.feed import Sampling, source_of
from dynamics._model.objective import PLAIN, Objective, placed
from dynamics._model.weights import RATES, Weights
from dynamics.bags import Bags, Data, population_of
from dynamics.fields.system import FlowSetting
from dynamics.fields.table import entry_of
from dynamics.layer import Layer, optional_rates
from dynamics.support import checks, names
from dynamics.support.checks import read_only
from dynamics.support.progress import Progress
from dynamics.support.provenance import provenance

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

__all__ = ["GradientNoise", "gradient_noise", "linear_noise"]

_FORMAT = "yzflow-noise-1"
# Steps that are followed at most: hours for a small layer.
_MOST_STEPS = 1_000_000


def drawn(data: Data, batch_size: int | None, length: int | None) -> tuple[Bags, int, dict[str, int | None]]:
    """The bags that sequences are drawn from, how many contextual tokens each gets, and the arguments, checked.

    With 0 contextual tokens bags are taken as they are.
    """
    bags = population_of(data)
    sampling = Sampling(batch_size, length)
    sizes = {"batch_size": sampling.batch_size, "length": sampling.length}
    return bags, source_of(data).positions(sampling), sizes


@dataclass(frozen=True, eq=False)
class GradientNoise:
    r"""Mean and covariance of the gradient of J on a mini-batch, to leading order in 1/T.

    Arrays have an entry for each weight, one array of weights after the other: `parts` splits them.

    Attributes
    ----------
    mean : (weights,) array
        The expected gradient.
    between : (weights, bags) array
        Share of the draw of classes in the covariance of one sequence, ``between @ between.T``.
    within : (weights, entries) array
        The same of the draw of tokens, a column for each token of each class; none where bags are taken as they are.
    batch_size : int or None
        Sequences of a batch; None is the whole population, where nothing is random.
    shapes : dict
        The shape of each array of weights.
    """

    mean: np.ndarray
    between: np.ndarray
    within: np.ndarray
    batch_size: int | None
    shapes: dict[str, tuple[int, ...]]

    @property
    def factor(self) -> np.ndarray:
        """B with ``covariance = B B^T``: (weights, columns)."""
        if self.batch_size is None:
            return np.zeros((self.mean.size, 0))
        return np.concatenate([self.between, self.within], axis=1) / np.sqrt(self.batch_size)

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of the gradient of a batch: (weights, weights)."""
        checks.fits_in_memory("data", 16 * self.mean.size**2, "form a covariance; `factor` is smaller")
        factor = self.factor
        return factor @ factor.T

    @property
    def variance(self) -> np.ndarray:
        """The diagonal of the covariance: (weights,)."""
        return (self.factor**2).sum(axis=1)

    def parts(self, vector: ArrayLike) -> dict[str, np.ndarray]:
        """The arrays Z, Y, .. of a vector with an entry for each weight."""
        given = checks.finite_array("vector", vector, ndim=1)
        if given.size != self.mean.size:
            raise checks.reject("vector", f"have an entry for each of {self.mean.size} weights", given.size)
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])[:-1]
        pieces = np.split(given, ends)
        return {name: own.reshape(self.shapes[name]) for name, own in zip(self.shapes, pieces, strict=True)}

    def sample(self, n: int, *, rng: np.random.Generator | int) -> np.ndarray:
        """Gradients of the normal law with this mean and covariance: (n, weights), without forming the covariance."""
        n, factor = checks.integer("n", n, minimum=1), self.factor
        checks.fits_in_memory("n", 8 * n * (self.mean.size + factor.shape[1]), "draw gradients")
        return self.mean + checks.generator("rng", rng).standard_normal((n, factor.shape[1])) @ factor.T


def gradient_noise(
    data: Data,
    layer: Layer | None = None,
    *,
    batch_size: int | None = 128,
    length: int | None = 128,
    decoder: str = "full",
    objective: Objective | None = None,
) -> GradientNoise:
    r"""Mean and covariance of the gradient that one step of `sgd` takes, in closed form.

    A sequence is a class n of probability p_n, and T - 1 tokens whose counts are multinomial given the class. With
    g_n(N) the gradient (Lemma 1 (3)) at counts N, which is not linear in them, and D_l = d/d ln N_l at the limit
    N = P(.|n), the covariance of one sequence is

    ``Cov_n(m_n) + 1/(T - 1) sum_n p_n sum_l (D_l g_n)(D_l g_n)^T / P(l|n)``,
    ``m_n = g_n + 1/(2 (T - 1)) sum_l (D_l^2 - D_l) g_n / P(l|n)``,

    and that of a batch 1/b of it. The first part, between classes, does not fall with T; m_n, the mean given the class,
    and the second part, within classes, are of first order in 1/T: what is left out is of second, and small where
    (T - 1) P(l|n) is large for the tokens that matter. Bags that are drawn as they are have the first part alone, and
    nothing is left out: `SequenceClasses.all_sequences` makes such bags of all sequences of a small T.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
    layer : Layer, optional
        Where. Default: Y = Z = 0.
    batch_size : int or None
        b; None takes all of ``data`` at each step, as in `sgd`, so that nothing is random.
    length : int or None
        T, query included; None takes bags as they are.
    decoder : "full" or "modified"
        As in `sgd`; "modified", whose features are those of T -> infinity, takes ``length=None``. Its vector Y is
        the direction of Lemma 3 (26), which is no gradient.
    objective : Objective, optional

    Returns
    -------
    GradientNoise

    The derivatives are differences of sixth order, of a relative error of about 1e-10. Draws are with replacement, as
    by default in `sgd`. Cost: six gradients for each token of each class, and as many for each token of the mean.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Source of the model: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 3.2 and Lemma 1.
    """
    entry_of(decoder, "noise", "step")
    bags, positions, sizes = drawn(data, batch_size, length)
    start = Layer.zeros(bags) if layer is None else checks.instance("layer", layer, Layer)
    objective = checks.or_usual("objective", objective, PLAIN)
    start = placed(objective, start, bags, getattr(data, "query_tokens", None), "layer")
    setting = FlowSetting(bags, start, start, dict.fromkeys(RATES, 1.0), objective)
    field = DrawnField(setting, decoder, positions)
    checks.fits_in_memory("data", 16 * field.size * (field.bags + field.count.size), "hold the factors")
    state = field.system.initial
    between, within = field.factors(state)
    return GradientNoise(
        read_only(field.drift(state)),
        read_only(between),
        read_only(within / np.sqrt(max(1, positions))),
        sizes["batch_size"],
        {name: array.shape for name, array in zip(Weights._fields, start.weights, strict=True) if array.size},
    )


def linear_noise(
    data: Data,
    *,
    eta_y: float,
    eta_z: float,
    steps: ArrayLike,
    decoder: str = "full",
    finite: bool = True,
    init: Layer | None = None,
    objective: Objective | None = None,
    progress: bool = False,
) -> xr.Dataset:
    r"""How far mini-batches carry the attention logits from the path of the expected gradient.

    Along x_(k+1) = x_k + a(x_k), the steps of the expected gradient for T -> infinity with A = Da, a deviation follows
    dx_(k+1) = (1 + A) dx_k + noise, with the covariance of `gradient_noise`. To first order in 1/b and in 1/T, for
    batches of b sequences of length T,

    ``E z = z + shift/(T - 1)``, ``Cov z = (between + within/(T - 1))/b``,

    where noise in Y that reaches Z through the gradient is included: one call serves all b and T.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
    eta_y, eta_z : float
        Learning rates per step, without momentum. 0 freezes Y, or Z.
    steps : sequence of int
        After how many steps, increasing.
    decoder : "full" or "modified"
    finite : bool
        Whether sequences are finite: without, and for "modified" in any case, and where ``data`` are Bags, ``shift``
        and ``within`` are zero.
    init : Layer, optional
        Default: Y = Z = 0.
    objective : Objective, optional
    progress : bool
        Show progress on standard error.

    Returns
    -------
    xarray.Dataset
        ``z(time, logit)``, ``shift(time, logit)``, ``between`` and ``within(time, logit, other)``; the coordinates
        ``query`` and ``token`` say which logit is which. Memory: three times (weights)^2; a step costs twice as many
        gradients as there are weights, and the product of matrices of that size.

    Raises
    ------
    ValueError
        If an argument is invalid.
    """
    whole = entry_of(decoder, "noise", "step").inverts
    draws = checks.flag("finite", finite) and hasattr(data, "population") and not whole
    # The length is a factor of the result.
    bags, positions, _ = drawn(data, 1, 2 if draws else None)
    limit = np.inf if positions else 0
    start = Layer.zeros(bags) if init is None else checks.instance("init", init, Layer)
    objective = checks.or_usual("objective", objective, PLAIN)
    start = placed(objective, start, bags, getattr(data, "query_tokens", None), "init")
    rates = {"eta_y": checks.rate("eta_y", eta_y), "eta_z": checks.rate("eta_z", eta_z)}
    rates |= optional_rates(start, rates["eta_y"], None, None)
    if start.embedding is not None:
        raise checks.reject("init", "have logits of its own, without an embedding", repr(start))
    times = checks.index_array("steps", steps)
    if times.size == 0 or (np.diff(times) <= 0).any():
        raise checks.reject("steps", "be integers that increase", checks.brief(steps))
    if times[-1] > _MOST_STEPS:
        raise checks.reject("steps", f"be at most {_MOST_STEPS:,}", times[-1])
    field = DrawnField(FlowSetting(bags, start, start, rates, objective), decoder, limit)
    entries = start.Z.size
    checks.fits_in_memory("data", 8 * (5 * field.size**2 + 2 * times.size * entries**2), "hold covariances")
    with Progress("small fluctuations", enabled=progress) as report:
        found = fluctuations(field, times, entries, report)
    if not all(np.isfinite(part).all() for part in found):
        raise checks.reject("eta_y", "keep the path finite, together with `eta_z`", rates["eta_y"])
    query, token = np.divmod(np.arange(entries), start.Z.shape[1])
    query_tokens = getattr(data, "query_tokens", None)
    pair = ("time", "logit", "other")
    return xr.Dataset(
        {
            "z": (("time", "logit"), found.states[:, :entries], {"long_name": "attention logit", "units": "1"}),
            "shift": (("time", "logit"), found.shift, {"long_name": "(T - 1) times what finite sequences add"}),
            "between": (pair, found.between, {"long_name": "b times the covariance by the draw of classes"}),
            "within": (pair, found.within, {"long_name": "b (T - 1) times that by the draw of tokens"}),
        },
        {
            "time": (("time",), times.astype(np.float64), {"long_name": "time", "units": "SGD steps"}),
            "query": (("logit",), query if query_tokens is None else np.asarray(query_tokens)[query]),
            "token": (("logit",), token),
            **{
                f"{axis}_name": (("logit",), names.filled(own, number.max() + 1)[number])
                for axis, own, number in (("token", bags.token_names, token), ("query", bags.query_names, query))
                if own is not None
            },
        },
        provenance("linear_noise", {**rates, "decoder": decoder, **objective.parameters}, _FORMAT),
    )
