"""Match2 with one unit of dimension 3, Match3 with one tensor unit of dimension 4, and Match3 of neighbours.

Source: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896, pairs and triples. Token x sits at the angle
``theta = 2 pi x / M`` on a circle, where sums that vanish mod M have cosine one, and all others at most cos(2 pi/M).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from dynamics.support import checks
from yzflow_sparse_averaging.attention_unit import (
    AttentionUnit,
    MultiHeadLayer,
    Precision,
    TensorAttentionUnit,
    Transformer,
)
from yzflow_sparse_averaging.instances import BLANK, match_tokens
from yzflow_sparse_averaging.parts import Head, Layers, Layout, Part

# Rounding moves a score, which is a sum of products of cosines, and the blank's by at most this together (float64).
_SCORE_ROUNDING = {2: 8 * 2.0**-53, 3: 16 * 2.0**-53}
# Layers and token of `match3_bigram`.
BIGRAM_LAYERS = (Layers("copy", 1, 1, 2, 1), Layers("find", 1, 1, 3, 1))
BIGRAM_TOKEN = Layout(tuple(Part(name, 1) for name in ("x", "position", "next", "output")))


@dataclass(frozen=True)
class MatchUnit:
    """A unit that decides Match2 or Match3 for up to N tokens, with the parameters of its error bound.

    Attributes
    ----------
    unit : AttentionUnit or TensorAttentionUnit
        Works on the tokens of `yzflow_sparse_averaging.instances.match_tokens`, the blank token last.
    order : int
        2 for pairs, 3 for triples.
    n_tokens, modulus : int
        The largest N without the blank token, and M.
    error : float
        eta, the largest |output - Match(X)_i|; at least 1/2 means that the unit fails.
    scale : float
        c.
    blank_score : float
        s_0, the score of the blank token (or pair) before the scale.
    """

    unit: AttentionUnit | TensorAttentionUnit
    order: int
    n_tokens: int
    modulus: int
    error: float
    scale: float
    blank_score: float

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """Outputs for integers ``x`` in [0, M), shape (.., n) with n <= N: within ``error`` of 0 or 1."""
        tokens = match_tokens(x)
        if tokens.shape[-2] - 1 > self.n_tokens:
            raise checks.reject("x", f"hold at most {self.n_tokens} tokens", tokens.shape[-2] - 1)
        if tokens.max() >= self.modulus:
            raise checks.reject("x", f"hold residues below the modulus {self.modulus}", int(tokens.max()))
        return self.unit(tokens)[..., :-1, 0]


def angle_gap(modulus: int) -> float:
    """1 - cos(2 pi/M) = 2 sin(pi/M)^2: least gap between the scores of a match and of a sum that is not 0 mod M."""
    return 2 * math.sin(math.pi / checks.integer("modulus", modulus, minimum=2)) ** 2


def match2(*, n_tokens: int, modulus: int, error: float | None = None, scale: float | None = None) -> MatchUnit:
    r"""Match2(X)_i = 1{exists j: x_i + x_j = 0 mod M} by one unit with m = 3 and a blank token.

    Q = c (cos theta, sin theta, 1), K = (cos theta, -sin theta, 0), the blank's K = (0, 0, s_0), V = 1, the blank's 0.
    With L = ln((1 - eta)/eta), c = (ln N + 2L)/(1 - cos(2 pi/M)) and s_0 = 1 - L/c the largest error is exactly eta.
    L is enlarged by a bound on the scores' rounding errors in float64, so that eta holds for the computed outputs.

    Parameters
    ----------
    n_tokens : int
        The largest N.
    modulus : int
        M >= 2.
    error : float
        eta, in (0, 1/2).
    scale : float
        c in place of ``error``: the smallest eta that it allows is in the result, 1/2 or more where c is too small.

    Raises
    ------
    ValueError
        If neither or both of ``error`` and ``scale`` are given, one is out of range, or M is beyond what float64 can
        tell apart (about 5 10^7).

    Examples
    --------
    >>> unit = match2(n_tokens=4, modulus=11, error=0.01)
    >>> unit([1, 2, 9, 5]).round(2)
    array([0.  , 0.99, 0.99, 0.  ])
    """
    return _match(2, n_tokens, modulus, error, scale)


def match3_tensor(*, n_tokens: int, modulus: int, error: float | None = None, scale: float | None = None) -> MatchUnit:
    r"""Match3(X)_i = 1{exists j1, j2: x_i + x_j1 + x_j2 = 0 mod M} by one third-order tensor unit with m = 4.

    cos(A + B + C) = 4/3 sum_{k<3} cos(A - 2 pi k/3) cos(B - 2 pi k/3) cos(C - 2 pi k/3) are three coordinates, the
    fourth is the blank pair's. Pairs of the blank and a token score 0 and have the value 0. As `match2` with N^2 + 2N
    in place of N, and with a gap of at most 1 in place of 1 - cos(2 pi/M), for the mixed pairs.

    Parameters and errors: see `match2`.

    Examples
    --------
    >>> unit = match3_tensor(n_tokens=4, modulus=11, error=0.01)
    >>> unit([1, 2, 8, 5]).round(2)
    array([1.  , 0.99, 0.99, 0.99])
    """
    return _match(3, n_tokens, modulus, error, scale)


def _match(order: int, n_tokens: int, modulus: int, error: float | None, scale: float | None) -> MatchUnit:
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    gap = angle_gap(modulus)
    if (error is None) == (scale is None):
        raise checks.reject("error", "be given, or `scale` in its place", "both" if scale is not None else "neither")
    others = n_tokens
    if order == 3:
        others, gap = n_tokens * (n_tokens + 2), min(gap, 1.0)
    rounding = _SCORE_ROUNDING[order]
    if gap < 16 * rounding:
        raise checks.reject("modulus", "leave a gap between scores that float64 resolves", modulus)
    if scale is None:
        error = checks.positive("error", error)
        if error >= 0.5:
            raise checks.reject("error", "be below 1/2", error)
        log_odds = math.log((1 - error) / error)
        scale = (math.log(others) + 2 * log_odds) / (gap - 2 * rounding)
    else:
        scale = checks.positive("scale", scale)
        log_odds = (scale * (gap - 2 * rounding) - math.log(others)) / 2
        error = float(expit(-log_odds))
    blank = log_odds + rounding * scale
    if order == 3 and log_odds > 0:
        # Beside the blank pair, 2N mixed pairs take from a match; the blank pair gives way by as much.
        blank -= math.log1p(-2 / (n_tokens + 2) * math.exp(-log_odds))
    score = 1 - blank / scale
    unit = (_pair_unit if order == 2 else _triple_unit)(modulus, score, scale)
    return MatchUnit(unit, order, n_tokens, modulus, error, scale, score)


def _angle(residue: np.ndarray, modulus: int) -> np.ndarray:
    """2 pi x/M in [-pi, pi], where float64 is most precise."""
    return 2 * np.pi / modulus * ((residue + modulus // 2) % modulus - modulus // 2)


def _pair_queries(residue: np.ndarray, modulus: int) -> np.ndarray:
    angle = _angle(residue, modulus)
    return np.stack([np.cos(angle), np.sin(angle)], -1)


def _pair_keys(residue: np.ndarray, modulus: int) -> np.ndarray:
    return _pair_queries(residue, modulus) * [1.0, -1.0]


def _with_blank(columns: np.ndarray, blank: np.ndarray, score: float) -> np.ndarray:
    """Key columns of tokens, zero for the blank, and the blank's score as a last column."""
    return np.concatenate([np.where(blank[..., None], 0.0, columns), np.where(blank, score, 0.0)[..., None]], -1)


def _pair_unit(modulus: int, score: float, scale: float) -> AttentionUnit:
    def query(X):
        columns = _pair_queries(X[..., 0], modulus)
        return np.concatenate([columns, np.ones_like(columns[..., :1])], -1)

    def key(X):
        return _with_blank(_pair_keys(X[..., 0], modulus), X[..., 0] == BLANK, score)

    return AttentionUnit.from_maps(query, key, _is_token, embedding_dim=3, scale=scale)


def _triple_unit(modulus: int, score: float, scale: float) -> TensorAttentionUnit:
    shifts = 2 * np.pi * np.arange(3) / 3

    def shifted(X):
        return np.cos(_angle(X[..., :1], modulus) - shifts)

    def query(X):
        columns = 4 / 3 * shifted(X)
        return np.concatenate([columns, np.ones_like(columns[..., :1])], -1)

    def key(blank_score: float) -> Callable:
        return lambda X: _with_blank(shifted(X), X[..., 0] == BLANK, blank_score)

    return TensorAttentionUnit(query, (key(score), key(1.0)), (_is_token, _is_token), embedding_dim=4, scale=scale)


def _is_token(X: np.ndarray) -> np.ndarray:
    return (X != BLANK).astype(float)


@dataclass(frozen=True)
class MatchTransformer:
    """A transformer that decides a form of Match3 exactly, and its size.

    Attributes
    ----------
    transformer : yzflow_sparse_averaging.attention_unit.Transformer
        Works on the tokens that ``tokens`` makes, with one number a token out.
    n_tokens, modulus : int
        N (exactly) and M.
    tokens : callable
        Integers (.., N) to the transformer's tokens.
    layout : yzflow_sparse_averaging.parts.Layout
        The parts of its tokens.
    """

    transformer: Transformer
    n_tokens: int
    modulus: int
    tokens: Callable
    layout: Layout

    @property
    def depth(self) -> int:
        """D."""
        return self.transformer.depth

    @property
    def heads(self) -> int:
        """H, of the layer with most."""
        return max(len(layer.heads) for layer in self.transformer.layers)

    @property
    def embedding_dim(self) -> int:
        """m: the largest width of a head's queries, keys and values."""
        return max(max(head.embedding_dim, head.value_dim) for layer in self.transformer.layers for head in layer.heads)

    @property
    def width(self) -> int:
        """Numbers of a token."""
        return self.layout.width

    @property
    def bits(self) -> int:
        """p: the longest number of a token, of scaled queries, keys, values and outputs, all of them rounded to that.

        Raises
        ------
        ValueError
            If some are not rounded.
        """
        numbers = [part.numbers for part in self.layout.parts]
        for head in (head for layer in self.transformer.layers for head in layer.heads):
            held = head.precision or Precision()
            numbers += [held.query, held.key, held.value, held.output]
        if None in numbers:
            raise checks.reject("model", "round all its numbers", "some that are not rounded")
        return max(one.bits for one in numbers if one is not None)

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """Whether each of the integers ``x`` in [0, M), shape (.., N), has a match: (.., N) of bool."""
        x = checks.finite_array("x", x)
        if x.ndim == 0 or x.shape[-1] != self.n_tokens:
            raise checks.reject("x", f"hold {self.n_tokens} tokens", f"shape {x.shape}")
        if (x != np.rint(x)).any() or x.min() < 0 or x.max() >= self.modulus:
            raise checks.reject("x", f"hold integers in [0, {self.modulus})", "others")
        return self.transformer(self.tokens(x))[..., : self.n_tokens, 0] > 0.5


def match3_histogram(*, n_tokens: int, modulus: int) -> MatchTransformer:
    """Match3 by one layer of one head with m = M: attention gathers the histogram, and the output map decides.

    For M of about N its mH meets the lower bound Omega(N / log N) for one layer, up to the logarithm.
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    modulus = checks.integer("modulus", modulus, minimum=2)

    token = Layout((Part("x", 1), Part("shares", modulus)))

    def nothing(X):
        return np.zeros((*X.shape[:-1], 1))

    def decide(X):
        return _sum_of_three(X[..., 0], token.read(X, "shares") > 0.5 / n_tokens)

    unit = Head.into(
        "shares",
        token,
        Layers("histogram", 1, 1, 1, modulus),
        query=nothing,
        key=nothing,
        value=lambda X: _one_hot(X[..., 0], modulus),
    )
    transformer = Transformer([MultiHeadLayer([unit])], [None, decide])
    return MatchTransformer(
        transformer, n_tokens, modulus, lambda x: token.placed("x", np.asarray(x, dtype=np.float64)[..., None]), token
    )


def match3_bigram(*, n_tokens: int, modulus: int) -> MatchTransformer:
    """Match3 for neighbours, 1{exists j: x_i + x_j + x_{j+1} = 0 mod M}: D = 2, H = 1, m = 3.

    Layer 1 (m = 2) attends to the next position on a circle of N + 1 positions and copies its token, which the map
    between the layers rounds to an integer; layer 2 is `match2` with x_j + x_{j+1} in the keys. The last token has no
    next one: its next is the blank, and its key in layer 2 is out of the way.

    A token is (x, position, next, output).
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    pair = match2(n_tokens=n_tokens, modulus=modulus, error=0.1)
    matching = _pair_unit(modulus, pair.blank_score, pair.scale)
    ring = n_tokens + 1
    # The N other positions weigh less than 1/(4 (M + 1)) together, so that the copy is within 1/4 of an integer.
    copy_scale = math.log(4 * ring * (modulus + 1)) / angle_gap(ring)

    token, (copying, finding) = BIGRAM_TOKEN, BIGRAM_LAYERS

    def tokens(x):
        bare = match_tokens(np.asarray(x, dtype=np.int64))
        out = token.placed("x", bare)
        token.read(out, "position")[...] = _positions(bare)
        return out

    copy = Head.into(
        "next",
        token,
        copying,
        query=lambda X: _pair_queries(X[..., 1] + 1, ring),
        key=lambda X: _pair_queries(X[..., 1], ring),
        value=lambda X: X[..., :1],
        scale=copy_scale,
    )

    def key(X):
        token, following = X[..., 0], X[..., 2]
        columns = _with_blank(_pair_keys(token + following, modulus), token == BLANK, pair.blank_score)
        return np.where(((token != BLANK) & (following == BLANK))[..., None], [0.0, 0.0, -1.0], columns)

    find = Head.into(
        "output",
        token,
        finding,
        query=lambda X: matching.queries(X[..., :1]),
        key=key,
        value=lambda X: _is_token(X[..., :1]),
        scale=pair.scale,
    )

    def rounded(X):
        return np.concatenate([X[..., :2], np.rint(X[..., 2:3]), X[..., 3:]], -1)

    layers = [MultiHeadLayer([copy]), MultiHeadLayer([find])]
    transformer = Transformer(layers, [None, rounded, lambda X: X[..., 3:]])
    return MatchTransformer(transformer, n_tokens, modulus, tokens, token)


def _positions(bare: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.arange(bare.shape[-2], dtype=float)[:, None], bare.shape)


def _one_hot(x: np.ndarray, modulus: int) -> np.ndarray:
    """One-hot vector of the residue x, in M columns; zeros for the blank."""
    return (x[..., None] == np.arange(modulus)).astype(float)


def _sum_of_three(x: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Whether x + r + s = 0 mod M for two residues that are ``present``: (.., N, 1) of 0 and 1 from (.., N, M)."""
    modulus = present.shape[-1]
    residue = np.where(x == BLANK, 0, x).astype(np.int64)[..., None]
    found = np.zeros(residue.shape, bool)
    for second in range(modulus):
        third = (-residue - second) % modulus
        found |= present[..., second, None] & np.take_along_axis(present, third, -1)
    return found.astype(float)
