r"""Layers whose values vanish on some pairs of brackets: where the balance condition (11) is needed, and where not.

Theorem 1 of Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429) calls (11) necessary if no bracket's value vanishes
after the projection of LN. Without that hypothesis, a layer that is right at every length still adds nothing with a
matched pair (14). So both values of a pair vanish, or neither does, and (11) is needed for the others only.

Which pairs can be silent in a layer without a residual link that is right at every length? All of level D, for no query
of the condition has an unmatched bracket there; of each level from 2 to D - 1 one type at most, for two could not be
told apart after a closing bracket; none of level 1, for its stack of one would look like the empty one. That holds for
every k >= 2 and D (`yzflow_bounded_dyck.proofs.silence`).
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterable

import numpy as np

from dynamics import Layer
from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.networks import ReluNetwork

_CLOSEST = 1e-9  # 1 - cosine of features that count as different


def silent_layer(
    language: DyckLanguage, silent: Iterable[tuple[int, int]], rng: np.random.Generator | int | None = None
) -> Layer:
    """A `balanced_layer` with the values of some pairs set to zero, and their attention logits drawn anew.

    Parameters
    ----------
    language : DyckLanguage
    silent : iterable of (type, level)
        The pairs (i, l), with types from 0 and levels from 1.
    rng : numpy.random.Generator or seed, optional
        Default: fresh randomness.

    Returns
    -------
    Layer
        It has (14) for every query, and (11) for the other pairs only.

    Examples
    --------
    Far from (11), and exact at any length:

    >>> language = DyckLanguage(n_types=2, max_depth=2)
    >>> layer = silent_layer(language, [(0, 2), (1, 2)], rng=0)
    >>> bool(balance.residual(layer.Z, language) > 1)
    True
    >>> bags = language.sample(100, max_length=500, rng=1)
    >>> errors = memory_head(layer, language)(layer.features(bags)) - bags.target
    >>> bool(np.abs(errors).max() < 1e-10)
    True
    """
    generator = checks.generator("rng", rng)
    layer = balance.balanced_layer(language, generator)
    Z, V = np.array(layer.Z), np.array(layer.V)
    for kind, level in _pairs(language, silent):
        for state in (language.open(kind, level), language.close(kind, level - 1)):
            V[state] = 0
            Z[:, state] = generator.normal(size=language.n_states)
    return Layer(Z, layer.Y, V)


def _pairs(language: DyckLanguage, silent: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The argument ``silent``, checked: types and levels of pairs of brackets."""
    checks.instance("language", language, DyckLanguage)
    rule, pairs = "hold types and levels of the language", []
    for pair in checks.listed("silent", silent, rule):
        given = pair if isinstance(pair, (tuple, list)) and len(pair) == 2 else ()
        if not given or not all(checks.is_number(number, numbers.Integral) for number in given):
            raise checks.reject("silent", rule, checks.brief(pair))
        kind, level = given
        if not (0 <= kind < language.n_types and 1 <= level <= language.max_depth):
            raise checks.reject("silent", rule, (kind, level))
        pairs.append((int(kind), int(level)))
    return pairs


def may_be_silent(language: DyckLanguage, silent: Iterable[tuple[int, int]]) -> bool:
    """Whether a layer without a residual link can be right at every length with the values of these pairs zero."""
    levels = [level for _, level in set(_pairs(language, silent))]
    return 1 not in levels and all(levels.count(level) == 1 for level in levels if level < language.max_depth)


def stacks(language: DyckLanguage) -> list[list[int]]:
    """The shortest prefixes for every query and every stack of unmatched brackets that it can have."""
    kinds = range(checks.instance("language", language, DyckLanguage).n_types)
    found: list[list[int]] = [[]]
    for depth in range(1, language.max_depth + 1):
        for types in itertools.product(kinds, repeat=depth):
            opened = [2 * kind for kind in types]
            found.append(opened)
            found += [[*opened[:-1], 2 * kind, 2 * kind + 1] for kind in kinds] if types[-1] == 0 else []
    return found


def memory_head(layer: Layer, language: DyckLanguage) -> ReluNetwork:
    """The network that knows every feature of a layer for which matched pairs add nothing: two layers of weights.

    Features have norm one, so that ``relu(1 - (1 - f . f_a) / gap)`` is 1 at the feature f_a and 0 at all others, where
    gap is the smallest 1 - f_a . f_b.

    Raises
    ------
    ValueError
        If two prefixes with other continuations have the same features, or there are more than 4000 features.
    """
    checks.instance("layer", layer, Layer)
    prefixes = stacks(language)
    checks.integer("language", len(prefixes), minimum=1, maximum=4000)
    bags = language.bags(prefixes)
    features, targets = layer.features(bags), bags.target
    # Equal features with one continuation, such as those of empty stacks, are one.
    apart = 1 - features @ features.T
    kept = [a for a in range(len(features)) if not (apart[a, :a] < _CLOSEST).any()]
    same = apart < _CLOSEST
    if (np.abs(targets[:, None] - targets)[same].max(axis=-1) > 1e-12).any():
        raise checks.reject("layer", "tell apart all prefixes that go on differently", "equal features")
    known, gaps = features[kept], apart[np.ix_(kept, kept)] + 2 * np.eye(len(kept))
    gap = gaps.min()
    return ReluNetwork((known / gap, targets[kept].T), (np.full(len(kept), 1 - 1 / gap), np.zeros(targets.shape[1])))
