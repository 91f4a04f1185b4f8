"""The modified field, Lemma 3: its gradient, its flow, whole and by orbits, and its steps of SGD side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dynamics._model.batch import Batch
from dynamics._model.gradient import kernel_of
from dynamics._model.objective import Objective, add_terms
from dynamics._model.weights import Rule, Weights
from dynamics.fields import _kernels as reduced
from dynamics.fields.features import SINGULAR, Features, feature_values, solved
from dynamics.fields.full import Full, FullOrbits
from dynamics.fields.orbits import Orbits, Quotient
from dynamics.fields.system import FlowSetting, copied
from dynamics.layer import Layer
from dynamics.optimizers.table import Update
from dynamics.support import checks
from dynamics.support.checks import read_only, read_only_views
from dynamics.support.errors import NotReducibleError
from dynamics.support.frozen import changed


def gradient(batch: Batch, weights: Weights, rule: Rule, slopes: Weights) -> float:
    """The loss of single bags, with the gradient of J by Z and the modified gradient (26) of Y added into ``slopes``.

    sum_n p_n (f_n - F E' e_n) r_n^T = F (I - E') [p_n r_n]_n, with the weights p_n of the bags: of all classes in the
    flow, the shares of the classes drawn in a step of SGD, where F is that of all classes as well.
    """
    residual = np.empty((batch.query.size, weights.Y.shape[1]), weights.Y.dtype)
    loss: float = kernel_of(weights, rule)(batch, batch.query.size, weights, rule, slopes, residual, True)
    residual *= batch.weight[:, None]
    Features.of(batch, weights.Z, residual=rule.residual).combine(residual, slopes.Y)
    return loss


class ModifiedSteps:
    """Steps of SGD along `gradient` for a layer of Z and Y, in several runs on the same bags side by side.

    A step is two kernels and numpy's solve, in arrays that all of them use: between arrays as small as these, Python
    takes longer than the numbers. The result of a run does not depend on the runs beside it.

    Parameters
    ----------
    data : Batch
        All bags.
    weights : Weights
        The states, which steps change in place: Z and Y with an axis of runs before the others.
    moments : two Weights
        The velocities and arrays that are not used, or Adam's moments, in the same form.
    rule : Rule
    update : Update
    """

    def __init__(
        self, data: Batch, weights: Weights, moments: Sequence[Weights], *, rule: Rule, update: Update
    ) -> None:
        runs, n, dtype = len(weights.Y), data.query.size, weights.Y.dtype
        self._batch, self._rule, self._update = data, rule, update
        self._seen = Weights(*read_only_views(weights))
        self._slopes = Weights(*(np.zeros_like(array) for array in weights))
        self._flat = tuple(
            tuple(array.reshape(-1) for array in arrays)  # of contiguous arrays, which are views
            for arrays in list(zip(weights, self._slopes, *moments, strict=True))[:2]
        )
        self._shares, self._losses = np.empty((runs, n), data.weight.dtype), np.empty(runs)
        self._residual = np.empty((runs, n, weights.Y.shape[2]), dtype)
        self._values = np.empty((runs, data.token.size), dtype)
        self._workspace, self._gram = np.zeros(weights.Z.shape[2]), np.empty((runs, n, n))

    def take(self, shares: np.ndarray, step: int) -> np.ndarray:
        """The step of this number, from one, on bags with these shares; returns the losses. Moves if all are finite.

        ``shares`` has a row for each run, and so have the losses.
        """
        self._shares[:] = shares
        batch, slopes, values, gram, losses = self._batch, self._slopes, self._values, self._gram, self._losses
        own = (self._residual, values, self._workspace, gram, losses)
        reduced.systems(batch, self._shares, self._seen, self._rule, slopes, *own)
        if np.isfinite(losses).all():
            shifts = solved(gram, self._residual)
            reduced.follow_modified(batch, values, shifts, slopes.Y, self._flat, self._update, step)
        return losses


def stacked(runs: Sequence[Weights]) -> Weights:
    """Z and Y of several runs, the axis of runs first, as `ModifiedSteps` takes them; of one run, no copies."""
    one = runs[0]
    if len(runs) == 1:
        return one._replace(Z=one.Z[None], Y=one.Y[None])
    return one._replace(Z=np.stack([each.Z for each in runs]), Y=np.stack([each.Y for each in runs]))


def check_inverse(batch: Batch, layer: Layer, objective: Objective, decoder: str, *, reduced: bool) -> None:
    """Raise ``ValueError`` for what Lemma 3 is not of, and where F^T F has no inverse at the start.

    ``reduced`` is for a decoder of one number a class in the place of Y.
    """
    for name, given in (
        ("criterion", objective.criterion != "cross-entropy"),
        ("contrast", objective.contrast is not None),
        ("label_smoothing", objective.label_smoothing > 0 and reduced),
        ("terms", objective.terms and reduced),
    ):
        if given:
            raise checks.reject(name, f"be left out for decoder={decoder!r}", checks.brief(getattr(objective, name)))
    if layer.normalisation != "unit" and layer.V is None:
        rule = f"be 'unit' for decoder={decoder!r}, which inverts F^T F of unit features"
        raise checks.reject("normalisation", rule, repr(layer.normalisation))
    if layer.temperature != 1 and reduced:
        raise checks.reject("temperature", f"be 1 for decoder={decoder!r}", layer.temperature)
    whole = changed(layer, temperature=1.0)
    if not whole.plain and not (layer.residual and not reduced):
        raise checks.reject("init", f"consist of Z and Y for decoder={decoder!r}", repr(layer))
    # F^T F, a copy that is factorised, and the right-hand sides.
    n = len(batch.query)
    columns = n if reduced else layer.multiplicity.size
    checks.fits_in_memory("data", 8 * n * (2 * n + 2 * columns), "invert F^T F")
    logits = layer.Z if layer.temperature == 1 else layer.Z / layer.temperature
    smallest = np.linalg.eigvalsh(Features.of(batch, read_only(logits), residual=layer.residual).gram)[0]
    if smallest < SINGULAR:
        raise checks.reject(
            "data",
            f"have linearly independent features f_n for decoder={decoder!r}, which inverts F^T F",
            f"a smallest eigenvalue of {smallest:.1e}",
        )


class Modified(Full):
    """As Full, with the decoder gradient of Lemma 3."""

    def __init__(self, setting: FlowSetting) -> None:
        super().__init__(setting)
        check_inverse(self.problem.batch, setting.start, setting.objective, "modified", reduced=False)

    def gradient(self, weights: Weights, slopes: Weights) -> float:
        """The loss, with the gradient of Z, and the decoder's of Lemma 3, added into ``slopes``."""
        problem = self.problem
        within = problem.view.beneath(slopes)
        loss = gradient(problem.batch, problem.view.forward(weights), problem.rule, within)
        problem.view.backward(weights, within, slopes)
        add_terms(self.setting.objective, weights, slopes)
        return loss


class ModifiedOrbits(FullOrbits):
    """As FullOrbits, with the decoder gradient of Lemma 3."""

    def __init__(self, setting: FlowSetting, orbits: Orbits) -> None:
        super().__init__(setting, orbits)
        self.quotients = [Quotient(orbits, k) for k in range(len(orbits.frames))]
        if orbits.multiplicity.size > orbits.column_start[-1]:
            self.quotients.append(Quotient(orbits, None))
        values = self.feature_values(self.initial)
        if min(np.linalg.eigvalsh(q.features(values).gram)[0] for q in self.quotients) < SINGULAR:
            raise NotReducibleError

    def feature_values(self, state: np.ndarray) -> list[np.ndarray]:
        """The entries of the features of each frame."""
        return [feature_values(frame.problem.batch, read_only(state[frame.z])) for frame in self.orbits.frames]

    def bound(self, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """A function that writes the derivative at what ``state`` then holds into ``out``."""
        return copied(self, state, out)

    def decode(self, state: np.ndarray, right: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs (indices of variables of Y, F (I - E') right), ``right`` (bags, columns) for each frame."""
        values = self.feature_values(state)
        for quotient in self.quotients:
            index, rows = quotient.columns(right)
            yield index, quotient.combine(quotient.features(values), rows)

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """The rate of change of each variable."""
        parts, right = [], []
        for frame in self.orbits.frames:
            slopes = frame.problem.zeros()
            residual = np.empty((len(frame.bags), frame.multiplicity.size))
            frame.problem.loss_and_gradient(self.frame_weights(frame, state), slopes, residual)
            parts.append((frame.z, slopes.Z * frame.z_copies * frame.share))
            right.append(frame.weight[:, None] * residual)
        parts.extend(self.decode(state, right))
        return self.orbits.accumulate(parts) * self.rate
