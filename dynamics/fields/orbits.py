"""The gradient flow of a symmetric population, with one variable for each orbit of entries of Z and Y.

Let L be the map that copies each variable to the entries of its orbit. By `dynamics.fields.symmetry` the flow stays in
the image of L, so that the reduced system is the full one at one entry of each orbit. One copy of each kind of
components sees: its own next tokens; the hubs; and the next tokens of all other copies, where those that correspond to
each other have equal logits, and so are one column of Y with a multiplicity. It is a small layer of its own, a *frame*,
for which the kernels of the full flow give loss and gradient. A group of s twins acts as one token with count sqrt(s)
times that of a twin, decoder logits sqrt(s) times theirs, and an attention logit that moves 1/s as fast as its gradient
says: norm and products of features are then those of the whole group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from dynamics._model.problem import Problem
from dynamics.bags import Bags
from dynamics.fields.features import Features
from dynamics.fields.symmetry import Symmetry, symmetry_of
from dynamics.fields.system import FlowSetting
from dynamics.layer import Layer
from dynamics.support.checks import read_only

# How many times smaller the reduced system has to be.
_WORTH = 2
# Below so many classes F^T F is inverted whole: kinds cost more calls than they save numbers up to some forty classes.
_FEWEST_INVERTED = 48


def find_orbits(setting: FlowSetting, *, inverts: bool) -> Orbits | None:
    """The orbits of a setting, or None where there is no symmetry that pays.

    ``inverts`` says whether the decoder inverts F^T F, whose cost may be what has to pay.
    """
    bags, layer = setting.bags, setting.start
    if not layer.plain or not setting.objective.plain:
        return None
    if layer.Z.shape != (bags.n_queries, bags.n_tokens):  # a token beyond those of the bags has no orbit
        return None
    symmetry = symmetry_of(bags)
    if symmetry is None or _WORTH * symmetry.variables > layer.Z.size + layer.Y.size:
        return None
    if inverts:
        if len(bags) < _FEWEST_INVERTED:
            return None
        pseudo = sum(kind.bags.shape[1] for kind in symmetry.kinds)
        if _WORTH * sum((kind.bags.shape[1] + pseudo) ** 3 for kind in symmetry.kinds) > len(bags) ** 3:
            return None
    orbits: Orbits = bags._once(_from_zeros) if setting.init is None else Orbits(symmetry, layer)
    return orbits


def _from_zeros(bags: Bags) -> Orbits:
    symmetry = symmetry_of(bags)
    assert symmetry is not None
    return Orbits(symmetry, Layer.zeros(bags))


class KindFrame:
    """One copy of a kind: its bags, on its own tokens and then the hubs, and where its logits are among the variables.

    ``z`` (queries, tokens) and ``y`` (tokens, columns) hold indices of variables. ``place[c]`` is the column of the
    frame for next-token class c of another copy or of a hub. ``own`` tokens and columns come first.
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
        self.frames = [KindFrame(self, k) for k in range(len(kinds))]

    def told(self, variables: int) -> str:
        """The reduction to so many variables, in words."""
        alike = [frame for frame in self.frames if frame.copies > 1]
        copies = ", ".join(f"{frame.copies} copies of {frame.weight.size} bags" for frame in alike)
        whole = self.start.Z.size + self.start.Y.size
        return f"{copies or 'interchangeable tokens'}: {variables} variables in place of {whole} logits"

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

    @cached_property
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

    @cached_property
    def z_index(self) -> np.ndarray:
        """The variable of each entry of Z, -1 for entries that never move."""
        symmetry = self.symmetry
        z = np.full((self.start.Z.shape[0], symmetry.bags.n_tokens), -1)
        z[np.ix_(symmetry.queries, symmetry.tokens)] = self.z[0][
            self.z[0].shape[0] - symmetry.queries.size :, self.z[0].shape[1] - symmetry.tokens.size :
        ]
        for k, kind in enumerate(symmetry.kinds):
            queries, tokens = (
                np.concatenate([own, np.broadcast_to(hubs, (len(own), hubs.size))], axis=1)
                for own, hubs in ((kind.queries, symmetry.queries), (kind.tokens, symmetry.tokens))
            )
            z[queries[:, :, None], tokens[:, None, :]] = self.z[k]
        return np.where(symmetry.twins < 0, -1, z[:, symmetry.twins])

    @cached_property
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


class Quotient:
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
