"""The gradient flow of a symmetric population, with one variable for each orbit of entries of Z and Y.

Let L be the map that copies each variable to the entries of its orbit. By `dynamics._flow.symmetry` the flow stays in
the image of L, so that the reduced system is the full one at one entry of each orbit. One copy of each kind of
components sees: its own next tokens; the hubs; and the next tokens of all other copies, where those that correspond to
each other have equal logits, and so are one column of Y with a multiplicity. It is a small layer of its own, a *frame*,
for which the kernels of the full flow give loss and gradient. A group of s twins acts as one token with count sqrt(s)
times that of a twin, decoder logits sqrt(s) times theirs, and an attention logit that moves 1/s as fast as its gradient
says: norm and products of features are then those of the whole group.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from dynamics._flow.stages import Frame, frame_of
from dynamics._flow.symmetry import Symmetry, symmetry_of
from dynamics._flow.systems import Observed, Setting, copied
from dynamics._model import decoder_kernels as reduced
from dynamics._model.modified import Features, feature_values
from dynamics._model.weights import Weights
from dynamics.bags import Bags
from dynamics.layer import Layer, Problem
from dynamics.support.checks import read_only
from dynamics.trajectory import States

_NONE = (read_only(np.empty((0, 0))),) * 5
_NO_SLOPES = (np.empty((0, 0)),) * 5
# How many times smaller the reduced system has to be.
_WORTH = 2


class NotReducibleError(Exception):
    """The start lacks the symmetry of the population, or is one that the plain system refuses and says why."""


def find_orbits(setting: Setting, *, inverts: bool) -> Orbits | None:
    """The orbits of a setting, or None where there is no symmetry that pays.

    ``inverts`` says whether the decoder inverts F^T F, whose cost may be what has to pay.
    """
    bags, layer = setting.bags, setting.start
    if not layer.plain or not setting.objective.plain:
        return None
    symmetry = symmetry_of(bags)
    if symmetry is None or _WORTH * symmetry.variables > layer.Z.size + layer.Y.size:
        return None
    if inverts:
        pseudo = sum(kind.bags.shape[1] for kind in symmetry.kinds)
        if _WORTH * sum((kind.bags.shape[1] + pseudo) ** 3 for kind in symmetry.kinds) > len(bags) ** 3:
            return None
    return Orbits(symmetry, layer)


class _Frame:
    """One copy of a kind: its bags, on its own tokens and then the hubs, and where its logits are among the variables.

    ``z`` (queries, tokens) and ``y`` (tokens, columns) hold indices of variables; ``place`` has the column of the frame
    for each class of next tokens that it sees as those of other copies or of hubs. ``own`` tokens and columns come
    first.
    """

    def __init__(self, orbits: Orbits, k: int) -> None:
        symmetry, kind = orbits.symmetry, orbits.symmetry.kinds[k]
        self.copies = kind.copies
        bags, tokens, columns, queries = (m[0] for m in (kind.bags, kind.tokens, kind.columns, kind.queries))
        self.own = tokens.size
        local = [np.concatenate(pair) for pair in ((tokens, symmetry.tokens), (queries, symmetry.queries))]
        source = symmetry.bags
        part = source._take(bags, np.full(bags.size, 1 / bags.size))
        token = _positions(local[0], source.n_tokens)[part.token]
        order = np.lexsort((token, part.owner))
        self.weight = source.weight[bags]
        self.share = self.weight.sum()
        classes = np.concatenate([columns, symmetry.columns])
        self.bags = Bags(
            _positions(local[1], source.n_queries)[part.query],
            _positions(classes, source.n_targets)[part.target],
            part.indptr,
            token[order],
            (part.count * np.sqrt(orbits.twin_size[part.token]))[order],
            self.weight / self.share if self.share > 0 else None,
            n_queries=local[1].size,
            n_tokens=local[0].size,
            vocab_size=int(orbits.vocab_size),
        )
        # Columns: its own, the hubs and what never occurs, then those of other copies.
        lo, hi = orbits.column_start[k], orbits.column_start[k + 1]
        inner = orbits.column_start[-1]
        shared = np.arange(inner, orbits.multiplicity.size)
        others = orbits.multiplicity[:inner].copy()
        others[lo:hi] -= 1
        other = np.flatnonzero(others > 0)
        rows = orbits.rows(k)
        y_own = orbits.own[k]
        y_own = np.concatenate([y_own, orbits.cross[orbits.hub_rows, lo:hi]])
        y = np.concatenate([y_own, orbits.cross[rows][:, np.concatenate([shared, other])]], axis=1)
        self.y = np.ascontiguousarray(y)  # what is taken by these indices has their order in memory
        self.multiplicity = np.concatenate([np.ones(hi - lo, int), orbits.multiplicity[shared], others[other]])
        self.place = np.full(orbits.multiplicity.size, -1)
        self.place[np.concatenate([shared, other])] = np.arange(hi - lo, self.multiplicity.size)
        self.z = orbits.z[k]
        # How many copies contribute to the derivative of a variable in the same way.
        self.z_copies = np.ones(self.z.shape)
        self.z_copies[queries.size :, self.own :] = self.copies
        self.y_copies = np.ones(self.y.shape)
        factor = np.full(self.multiplicity.size, self.copies)
        factor[: hi - lo] = 1
        if self.copies > 1:
            factor[self.place[lo:hi]] = self.copies - 1
        self.y_copies[self.own :] = factor
        like = Layer(np.zeros(self.z.shape), np.zeros(self.y.shape), None, self.multiplicity)
        self.problem = Problem(self.bags, like)


def _positions(members: np.ndarray, size: int) -> np.ndarray:
    out = np.full(size, -1)
    out[members] = np.arange(members.size)
    return out


class Orbits:
    """The variables of the reduced system and the entries of Z and Y that each stands for."""

    def __init__(self, symmetry: Symmetry, layer: Layer) -> None:
        kinds = symmetry.kinds
        self.symmetry, self.start = symmetry, layer
        self.vocab_size = layer.vocab_size
        self.twin_size = np.bincount(symmetry.twins[symmetry.twins >= 0], minlength=symmetry.bags.n_tokens)
        seen = np.zeros(layer.multiplicity.size, dtype=bool)
        seen[symmetry.bags.target] = True
        self.unseen = np.flatnonzero(~seen)
        self.column_start = np.cumsum([0, *(kind.columns.shape[1] for kind in kinds)])
        self.row_start = np.cumsum([0, *(kind.tokens.shape[1] for kind in kinds)])
        copies = np.repeat([kind.copies for kind in kinds], np.diff(self.column_start))
        rest = [layer.multiplicity[self.unseen].sum()] if self.unseen.size else []
        self.multiplicity = np.concatenate([copies, np.ones(symmetry.columns.size), rest]).astype(np.int64)
        self.hub_rows = np.arange(self.row_start[-1], self.row_start[-1] + symmetry.tokens.size)
        self._number_variables()
        self.frames = [_Frame(self, k) for k in range(len(kinds))]

    def told(self, variables: int) -> str:
        """What is reduced to so many variables, in words."""
        kinds = [kind for kind in self.symmetry.kinds if kind.copies > 1]
        copies = ", ".join(f"{k.copies} copies of {k.bags.shape[1]} bags" for k in kinds) or "interchangeable tokens"
        whole = self.start.Z.size + self.start.Y.size
        return f"{copies}: {variables} variables in place of {whole} logits"

    def rows(self, k: int) -> np.ndarray:
        """The tokens of a frame in the numbering of tokens of all kinds, hubs last."""
        return np.concatenate([np.arange(self.row_start[k], self.row_start[k + 1]), self.hub_rows])

    def _number_variables(self) -> None:
        """Variables of Z, then of Y: tokens against next tokens of other copies, and of the same copy."""
        symmetry = self.symmetry
        count = 0
        self.z: list[np.ndarray] = []
        hubs = (symmetry.queries.size, symmetry.tokens.size)
        shared = np.arange(hubs[0] * hubs[1]).reshape(hubs)
        count += shared.size
        for kind in symmetry.kinds:
            shape = (kind.queries.shape[1] + hubs[0], kind.tokens.shape[1] + hubs[1])
            fresh = np.ones(shape, dtype=bool)
            fresh[kind.queries.shape[1] :, kind.tokens.shape[1] :] = False
            index = np.empty(shape, dtype=np.int64)
            index[fresh] = count + np.arange(np.count_nonzero(fresh))
            index[~fresh] = shared.ravel()
            self.z.append(index)
            count += int(np.count_nonzero(fresh))
        self.n_logits = count
        shape = (self.hub_rows.size + self.row_start[-1], self.multiplicity.size)
        self.cross = count + np.arange(shape[0] * shape[1]).reshape(shape)
        count += self.cross.size
        self.own: list[np.ndarray] = []
        for k, kind in enumerate(symmetry.kinds):
            if kind.copies == 1:
                lo, hi = self.column_start[k : k + 2]
                self.own.append(self.cross[self.row_start[k] : self.row_start[k + 1], lo:hi])
                continue
            shape = (kind.tokens.shape[1], kind.columns.shape[1])
            self.own.append(count + np.arange(shape[0] * shape[1]).reshape(shape))
            count += self.own[-1].size
        self.size = count

    def y_index(self) -> np.ndarray:
        """The variable of each entry of Y, -1 for entries that never move."""
        symmetry = self.symmetry
        row = np.full(symmetry.bags.n_tokens, -1)
        row[symmetry.tokens] = self.hub_rows
        column = np.full(self.start.multiplicity.size, -1)
        inner = self.column_start[-1]
        column[symmetry.columns] = inner + np.arange(symmetry.columns.size)
        column[self.unseen] = self.multiplicity.size - 1
        for k, kind in enumerate(symmetry.kinds):
            row[kind.tokens] = np.arange(self.row_start[k], self.row_start[k + 1])
            column[kind.columns] = np.arange(self.column_start[k], self.column_start[k + 1])
        y = self.cross[np.ix_(row, column)]
        for k, kind in enumerate(symmetry.kinds):
            y[kind.tokens[:, :, None], kind.columns[:, None, :]] = self.own[k]
        return np.where((symmetry.twins < 0)[:, None], -1, y[symmetry.twins])

    def z_index(self) -> np.ndarray:
        """The variable of each entry of Z, -1 for entries that never move."""
        symmetry = self.symmetry
        z = np.full((self.start.Z.shape[0], symmetry.bags.n_tokens), -1)
        z[np.ix_(symmetry.queries, symmetry.tokens)] = self.z[0][
            self.z[0].shape[0] - symmetry.queries.size :, self.z[0].shape[1] - symmetry.tokens.size :
        ]
        for k, kind in enumerate(symmetry.kinds):
            queries, tokens = (
                np.concatenate([own, np.broadcast_to(hubs, (kind.copies, hubs.size))], axis=1)
                for own, hubs in ((kind.queries, symmetry.queries), (kind.tokens, symmetry.tokens))
            )
            z[queries[:, :, None], tokens[:, None, :]] = self.z[k]
        return np.where(symmetry.twins < 0, -1, z[:, symmetry.twins])

    def y_twins(self) -> np.ndarray:
        """How many interchangeable tokens each variable of Y is the logit of, 1 for those of Z."""
        size = np.ones(self.size)
        rows = [self.twin_size[kind.tokens[0]] for kind in self.symmetry.kinds]
        size[self.cross] = np.concatenate([*rows, self.twin_size[self.symmetry.tokens]])[:, None]
        for own, twins in zip(self.own, rows, strict=True):
            size[own] = twins[:, None]
        return size

    def accumulate(self, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """A vector over the variables from pairs of indices and contributions."""
        indices, values = zip(*((index.ravel(), value.ravel()) for index, value in parts), strict=True)
        return np.bincount(np.concatenate(indices), weights=np.concatenate(values), minlength=self.size)


class _Quotient:
    """The features as a map between what is equal over copies, seen from one copy (or from none: ``k`` is None).

    In the basis of normalised indicators of orbits of bags and of tokens, under the renamings that leave that copy as
    it is, F is again sparse, and F^T F, its inverse, and their products with symmetric vectors are those of the whole.
    """

    def __init__(self, orbits: Orbits, k: int | None) -> None:
        frames = orbits.frames
        parts = [] if k is None else [(k, 1, True)]
        parts += [(j, frame.copies - (j == k), False) for j, frame in enumerate(frames) if frame.copies > (j == k)]
        self.orbits, self.k, self.parts = orbits, k, parts
        n_hubs, base = orbits.hub_rows.size, orbits.hub_rows.size
        token, scale, lengths, sizes, self.spans = [], [], [], [np.ones(n_hubs)], []
        for j, copies, _ in parts:
            frame = frames[j]
            hub = frame.bags.token >= frame.own
            token.append(np.where(hub, frame.bags.token - frame.own, base + frame.bags.token))
            scale.append(np.where(hub, np.sqrt(copies), 1.0))
            lengths.append(np.diff(frame.bags.indptr))
            sizes.append(np.full(frame.own, copies))
            self.spans.append((base, base + frame.own))
            base += frame.own
        self.token, self.scale = read_only(np.concatenate(token)), np.concatenate(scale)
        self.indptr = read_only(np.concatenate([[0], np.cumsum(np.concatenate(lengths))]))
        self.token_size = np.concatenate(sizes)
        self.bag_size = np.concatenate([np.full(len(frames[j].bags), copies) for j, copies, _ in parts])

    def features(self, values: Sequence[np.ndarray]) -> Features:
        """From the features of each frame."""
        own = np.concatenate([values[j] for j, _, _ in self.parts]) * self.scale
        return Features(self.indptr, self.token, own, self.token_size.size)

    def combine(self, features: Features, right: np.ndarray) -> np.ndarray:
        """F (I - E') ``right``, for one row of ``right`` a bag, with a row for each token: hubs, then the parts."""
        out = np.zeros((self.token_size.size, right.shape[1]))
        features.combine(right * np.sqrt(self.bag_size)[:, None], out)
        return out / np.sqrt(self.token_size)[:, None]

    def columns(self, right: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (indices of variables, F (I - E') right) for the columns of this copy, or of the hubs.

        ``right[j]`` (bags, columns of the frame) belongs to frame j.
        """
        orbits, k = self.orbits, self.k
        inner = orbits.column_start[-1]
        if k is None:
            classes = np.arange(inner, orbits.multiplicity.size)
        else:
            classes = np.arange(orbits.column_start[k], orbits.column_start[k + 1])
        rows = [
            right[j][:, : classes.size] if own else right[j][:, orbits.frames[j].place[classes]]
            for j, _, own in self.parts
        ]
        index = [orbits.cross[np.ix_(orbits.hub_rows, classes)]]
        for j, _, own in self.parts:
            span = np.arange(orbits.row_start[j], orbits.row_start[j + 1])
            index.append(orbits.own[j] if own else orbits.cross[np.ix_(span, classes)])
        return np.concatenate(index), np.concatenate(rows)


class FullOrbits:
    """As `Full`; the state has the variables of Z, then those of Y."""

    fast = ("kernel",)
    # Attention and loss of a state are found without the whole Y.
    compact = True

    def __init__(self, setting: Setting, orbits: Orbits) -> None:
        self.setting, self.orbits = setting, orbits
        self.eta_y, self.eta_z = setting.rates["eta_y"], setting.rates["eta_z"]
        self.z_index = orbits.z_index()
        size = np.where(orbits.symmetry.twins >= 0, orbits.twin_size[orbits.symmetry.twins], 1)
        self.twin_scale = np.sqrt(size)[:, None]
        variables = np.zeros(orbits.size)
        # A start of zeros has any symmetry, and the index of a large Y is not needed for it.
        moved = () if setting.init is None else ((self.z_index, orbits.start.Z), (self.y_index, orbits.start.Y))
        for index, array in moved:
            variables[index[index >= 0]] = array[index >= 0]
            if (variables[index] != array)[index >= 0].any():
                raise NotReducibleError
        # Twins: Y as the kernels want it, and the rate of Z.
        scale = np.sqrt(orbits.y_twins())
        self.rate = np.full(orbits.size, self.eta_y)
        self.rate[: orbits.n_logits] = self.eta_z
        where = self.z_index >= 0
        self.rate[self.z_index[where]] /= np.broadcast_to(size, self.z_index.shape)[where]
        self.initial = variables * scale

    @property
    def reduction(self) -> str:
        """What was reduced to what, in words."""
        return self.orbits.told(self.initial.size)

    def frame_weights(self, frame: _Frame, state: np.ndarray) -> Weights:
        """The weights of a frame at a state."""
        return Weights(read_only(state[frame.z]), read_only(state[frame.y]), *_NONE)

    def frame(self) -> Frame | None:
        """The derivative in the form of the kernel that takes whole steps, of a single kind, where that pays."""
        if len(self.orbits.frames) > 1:
            return None
        frame = self.orbits.frames[0]
        parts = ((frame.z, frame.z_copies), (frame.y, frame.y_copies))
        variable, factor = (np.concatenate([own.ravel() for own in of]) for of in zip(*parts, strict=True))

        def views(entries: np.ndarray) -> Weights:
            none = _NO_SLOPES if entries.flags.writeable else _NONE
            Z, Y = entries[: frame.z.size].reshape(frame.z.shape), entries[frame.z.size :].reshape(frame.y.shape)
            return Weights(Z, Y, *none)

        return frame_of(frame.problem, views, variable, factor * frame.share, self.rate)

    def bound(self, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """A function that writes the derivative at what ``state`` then holds into ``out``, and returns the loss."""
        frames = self.orbits.frames
        index = np.concatenate([part.ravel() for frame in frames for part in (frame.z, frame.y)])
        copies = np.concatenate([part.ravel() for frame in frames for part in (frame.z_copies, frame.y_copies)])
        share = np.repeat([frame.share for frame in frames], [frame.z.size + frame.y.size for frame in frames])
        entries, slopes = np.empty(index.size), np.empty(index.size)
        parts, at = [], 0
        for frame in frames:
            cuts = (at, at + frame.z.size, at + frame.z.size + frame.y.size)
            cut = [slice(*ends) for ends in itertools.pairwise(cuts)]
            z, y, dz, dy = (
                array[own].reshape(like.shape)
                for array in (read_only(entries.view()), slopes)
                for own, like in zip(cut, (frame.z, frame.y), strict=True)
            )
            own = (Weights(z, y, *_NONE), Weights(dz, dy, *_NO_SLOPES))
            parts.append((frame.copies * frame.share, frame.problem.loss_and_gradient, own))
            at = cuts[-1]

        # In small flows every call of NumPy counts, and most factors are one.
        factors = [factor for factor in (copies, share) if (factor != 1).any()]
        each_once = np.array_equal(np.bincount(index, minlength=self.orbits.size), np.ones(self.orbits.size))
        place = np.argsort(index) if each_once else None
        take, rate, size = state.take, self.rate, self.orbits.size

        def evaluate() -> float:
            take(index, None, entries, "clip")
            slopes.fill(0.0)
            loss = 0.0
            for part, loss_and_gradient, own in parts:
                loss += part * loss_and_gradient(*own)
            for factor in factors:
                np.multiply(slopes, factor, slopes)
            if place is None:
                np.multiply(np.bincount(index, slopes, size), rate, out)
            else:
                np.multiply(slopes.take(place, None, out, "clip"), rate, out)
            return loss

        return evaluate

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """The rate of change of each variable."""
        out = np.empty_like(state)
        self.bound(state, out)()
        return out

    @cached_property
    def y_index(self) -> np.ndarray:
        """The variable of each entry of Y, -1 for entries that never move."""
        return self.orbits.y_index()

    def _lift(self, index: np.ndarray, variables: np.ndarray, start: np.ndarray | float) -> np.ndarray:
        return np.where(index >= 0, variables[index], start)

    def logits(self, state: np.ndarray) -> np.ndarray:
        """Z at a state."""
        return self._lift(self.z_index, state, self.orbits.start.Z)

    def z_places(self, query: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Where in a state the logits z[query, token] are."""
        return self.z_index[query, token]

    def variables(self, state: np.ndarray) -> np.ndarray:
        """The variables of Z and Y at a state."""
        return state

    def loss(self, state: np.ndarray) -> float:
        """The expected loss at a state, from one copy of each kind."""
        variables, frames = self.variables(state), self.orbits.frames
        return sum(f.copies * f.share * f.problem.loss(self.frame_weights(f, variables)) for f in frames)

    def layer(self, state: np.ndarray) -> Layer:
        """The layer at a state."""
        start = self.orbits.start
        Y = self._lift(self.y_index, self.variables(state), start.Y * self.twin_scale) / self.twin_scale
        return Layer(self.logits(state), Y, None, start.multiplicity)

    def observe(self, states: np.ndarray) -> Observed:
        """What is recorded of states, with the loss where it was found on the way."""
        start, size = self.orbits.start, states.shape[1]
        Z = np.where(self.z_index >= 0, states[:, self.z_index], start.Z)
        variables = np.stack([self.variables(state) for state in states])
        Y = np.where(self.y_index >= 0, variables[:, self.y_index], start.Y * self.twin_scale) / self.twin_scale
        state, out = np.empty(size), np.empty(size)
        evaluate, slopes, loss = self.bound(state, out), np.empty(states.shape), np.empty(len(states))
        for i, found in enumerate(states):
            state[:] = found
            loss[i] = evaluate()
            slopes[i] = out
        velocity = np.where(self.z_index >= 0, slopes[:, self.z_index], 0.0)
        none = (np.empty((len(states), 0, 0)),) * 5
        return Observed(States.of(start, Weights(Z, Y, *none)), velocity, None if np.isnan(loss).all() else loss)

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """Nothing beside what every simulator records."""
        return {}


class ModifiedOrbits(FullOrbits):
    """As FullOrbits, with the decoder gradient of Lemma 3."""

    def __init__(self, setting: Setting, orbits: Orbits) -> None:
        super().__init__(setting, orbits)
        self.quotients = [_Quotient(orbits, k) for k in range(len(orbits.frames))]
        if orbits.multiplicity.size > orbits.column_start[-1]:
            self.quotients.append(_Quotient(orbits, None))
        values = self.feature_values(self.initial)
        if min(np.linalg.eigvalsh(q.features(values).gram)[0] for q in self.quotients) < 1e-12:
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


class TheoryOrbits(ModifiedOrbits):
    """As `Theory`; the state has the variables of Z, then x_n = M h_n of the bags of one copy of each kind."""

    def __init__(self, setting: Setting, orbits: Orbits) -> None:
        super().__init__(setting, orbits)
        bags, h = setting.bags, setting.recorded_h()
        kinds = orbits.symmetry.kinds
        self.bag_start = orbits.n_logits + np.cumsum([0, *(kind.bags.shape[1] for kind in kinds)])
        self.bag_index = np.empty(len(bags), dtype=np.int64)
        for kind, lo, hi in zip(kinds, self.bag_start[:-1], self.bag_start[1:], strict=True):
            self.bag_index[kind.bags] = np.arange(lo, hi)
        state = np.zeros(self.bag_start[-1])
        state[: orbits.n_logits] = self.initial[: orbits.n_logits]
        if h is not None:
            scaled = h * orbits.vocab_size
            if scaled.size != len(bags):
                raise NotReducibleError  # the plain system says what is wrong
            state[self.bag_index] = scaled
            if (state[self.bag_index] != scaled).any():
                raise NotReducibleError
        elif (orbits.start.Y != 0).any():
            raise NotReducibleError
        self.initial = state
        # Next tokens of other copies get labels of their own.
        self.labels = []
        for quotient in self.quotients:
            labels, fresh = [], orbits.multiplicity.size
            for j, _, own in quotient.parts:
                target = orbits.frames[j].bags.target
                n_own = orbits.own[j].shape[1]
                labels.append(np.where(target >= n_own, n_own - 1 - target, target + (0 if own else fresh)))
                fresh += n_own
            self.labels.append(read_only(np.concatenate(labels)))

    def x(self, state: np.ndarray) -> list[np.ndarray]:
        """x of the bags of one copy of each kind."""
        return [state[lo:hi] for lo, hi in zip(self.bag_start[:-1], self.bag_start[1:], strict=True)]

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """The rate of change of each variable of Z, and of each x."""
        orbits, x = self.orbits, self.x(state)
        values, vocab_size = self.feature_values(state), float(orbits.vocab_size)
        out = np.zeros_like(state)
        parts = []
        for frame, quotient, labels, own_values, lo, hi in zip(
            orbits.frames, self.quotients, self.labels, values, self.bag_start[:-1], self.bag_start[1:], strict=False
        ):
            n = hi - lo
            pseudo = read_only(np.concatenate([x[j] for j, _, _ in quotient.parts]))
            inner = np.empty((pseudo.size, pseudo.size))
            reduced.theory_decoder(pseudo, labels, vocab_size, inner)
            found = quotient.combine(quotient.features(values), np.ascontiguousarray(inner[:, :n]))
            hubs = orbits.hub_rows.size
            first, last = quotient.spans[0]
            backpropagated = np.concatenate([found[first:last], found[:hubs]])
            dZ = np.zeros(frame.z.shape)
            bags = frame.bags
            reduced.pull_back(
                bags.query, read_only(frame.weight), bags.indptr, bags.token, own_values, backpropagated, dZ
            )
            parts.append((frame.z, dZ * frame.z_copies))
            with np.errstate(over="ignore"):
                out[lo:hi] = frame.weight * vocab_size * self.eta_y / (vocab_size - 1 + np.exp(state[lo:hi]))
        out[: orbits.n_logits] = (orbits.accumulate(parts) * self.rate)[: orbits.n_logits]
        return out

    def variables(self, state: np.ndarray) -> np.ndarray:
        """The variables at a state, with Y = F (I - E') [x_n (e_n - 1/M)]_n (Theorem 5)."""
        right = []
        for frame, x in zip(self.orbits.frames, self.x(state), strict=True):
            W = np.repeat(-x[:, None] / self.orbits.vocab_size, frame.multiplicity.size, axis=1)
            W[np.arange(x.size), frame.bags.target] += x
            right.append(W)
        variables = self.orbits.accumulate(self.decode(state, right))
        variables[: self.orbits.n_logits] = state[: self.orbits.n_logits]
        return variables

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """h of each class over time."""
        h = states[:, self.bag_index] / self.orbits.vocab_size
        return {"h": (("time", "bag"), h, {"long_name": "h of each class (44)", "units": "1"})}
