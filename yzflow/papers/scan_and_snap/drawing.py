"""Settings of Scan and Snap drawn inside the assumptions of its statements, up to their borders."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dynamics import SequenceClasses
from theory.scan_and_snap import tokens
from theory.scan_and_snap._register import assumptions as of
from yzflow.papers.scan_and_snap.settings import Setting

if TYPE_CHECKING:
    from theory.statements import Assumption
    from yzflow.fuzzing.choosing import Choose

_MOST_CLASSES = 12
_MOST_DISTINCT = 5
_LARGEST_VOCABULARY = 10**8
_LEAST_OVERLAP = 3e-3
_LONG, _LONGEST = 2**12, 2**20


def draw(choose: Choose, *, level: str, assumed: tuple[Assumption, ...], outside: Assumption | None = None) -> Setting:
    """A random setting, chosen to be inside the assumptions as far as possible; the caller rejects most others.

    Overlaps come first, then a vocabulary that Assumption 2 allows for them, then rates, then the lengths of training
    and of sequences.
    """
    alike = any(one in assumed for one in of.SYMMETRIC)
    classes = _classes(choose, assumed=assumed, outside=outside, alike=alike)
    size = classes.vocab_size
    lowest = of.MUCH * size**-0.99 if of.FAST_ENOUGH in assumed else 0.01
    eta_y = choose.real("eta_y", min(lowest, 1.0), 10.0 if outside is of.SLOW_ENOUGH else 1.0, log=True)
    vocabulary = of.FAST_FOR_VOCABULARY in assumed and level in of.FAST_FOR_VOCABULARY.levels
    enough = of.FASTER * (of.slower_by(size) * (1 + 1e-9) if vocabulary else 1.0)
    slower = (1.0, of.FASTER) if outside is of.FAST_DECODER else (enough, 1e5)
    eta_z = eta_y / choose.real("eta_y / eta_z", *slower, log=True)
    k = classes.n_classes
    batch_size = 1 if level == of.DRAWN else choose.one_of("batch size", (64, 128, 1))
    least = of.MUCH * k**2 / batch_size if level in (*of.BATCHES, of.DRAWN) else 1.0
    longer = 3 if level in (*of.BATCHES, of.DRAWN) else 30  # steps take time
    t_end = math.ceil(choose.real("t_end", max(least, 10.0), max(least, 10.0) * longer, log=True))
    return Setting(
        f"K = {k}, M = {size:,}, eta_Y = {eta_y:.3g}, eta_Z = {eta_z:.3g}, t = {t_end}",
        classes,
        eta_y,
        eta_z,
        float(t_end),
        batch_size=batch_size,
        length=choose.one_of("length", (None, 256, _LONGEST if of.LONG_SEQUENCES in assumed else _LONG)),
    )


def _classes(
    choose: Choose, *, assumed: tuple[Assumption, ...], outside: Assumption | None, alike: bool
) -> SequenceClasses:
    """Classes of several queries that share one token or two and have distinct tokens."""
    k = choose.integer("K", 2, _MOST_CLASSES)
    equal = alike or of.EQUAL_OVERLAPS in assumed or of.ONE_SHARE in assumed
    n_common = choose.integer("common tokens", 1, 1 if of.ONE_COMMON in assumed and outside is not of.ONE_COMMON else 2)
    single = of.ONE_QUERY in assumed and outside is not of.ONE_QUERY
    n_queries = 1 if single else choose.integer("queries", 1, max(1, k // 2))
    # f_n . f_n' below 1/(K (K - 1)) is the second part of Assumption 2 for equal overlaps.
    top = min(0.9, (3.0 if outside is of.UPPER else 1.0) / (k * (k - 1)))
    # Below, Assumption 2 asks for vocabularies beyond `_LARGEST_VOCABULARY`.
    overlap = choose.real("overlap of the border", min(1.0, max(0.02, _LEAST_OVERLAP / top)), 1.0, log=True) * top
    commons = _commons(choose, k, n_common, overlap, equal=equal)
    rows = []
    own = None
    for n in range(k):
        if own is None or not alike:
            count = choose.integer(f"distinct tokens {n}", 1, _MOST_DISTINCT)
            falls = choose.real(f"each next distinct token {n}", 0.2, 0.99) if count > 1 else 1.0
            own = falls ** np.arange(count)
        rows.append((commons[n], own / np.linalg.norm(own)))
    table = np.zeros((k, n_common + sum(len(mine) for _, mine in rows)))
    at = n_common
    for n, (common, mine) in enumerate(rows):
        table[n, :n_common] = common
        table[n, at : at + len(mine)] = math.sqrt(1 - common @ common) * mine
        at += len(mine)
    table /= table.sum(axis=1, keepdims=True)
    return SequenceClasses(
        table, np.arange(k) * n_queries // k, vocab_size=_vocabulary(choose, table, assumed=assumed, outside=outside)
    )


def _commons(choose: Choose, k: int, n_common: int, overlap: float, *, equal: bool) -> np.ndarray:
    """Entries of the unit vectors f_n at the common tokens, of overlaps up to ``overlap``: (K, common tokens).

    A second common token may be frequent in class 0 and rare elsewhere, so that it is almost distinct to class 0.
    """
    alone = (
        n_common == 2 and not equal and choose.one_of("second common token", ("of all", "of class 0")) == "of class 0"
    )
    found = np.zeros((k, n_common))
    frequent = choose.real("second common token 0", 0.02, 0.8, log=True) if alone else 0.0
    for n in range(k):
        weaker = 1.0 if equal else choose.real(f"share of common tokens {n}", 0.6, 1.0)
        if alone:
            rare = min(overlap / 2 / frequent, math.sqrt(overlap / 2))
            share = 1.0 if n == 0 else choose.real(f"second common token {n}", 1e-3, 1.0, log=True)
            found[n] = math.sqrt(overlap / 2) * weaker, frequent if n == 0 else rare * share
            continue
        parts = np.ones(n_common)
        if n_common == 2:
            parts[1] = (
                choose.real(f"second common token {n}", 0.1, 1.0) if n == 0 or not equal else found[0, 1] / found[0, 0]
            )
        found[n] = math.sqrt(overlap) * weaker * parts / np.linalg.norm(parts)
    return found


def _vocabulary(
    choose: Choose, table: np.ndarray, *, assumed: tuple[Assumption, ...], outside: Assumption | None
) -> int:
    """M from the least that Assumption 2, Remark 3 and (13) allow."""
    k = len(table)
    features = table / np.linalg.norm(table, axis=1, keepdims=True)
    least = k
    if of.MANY_TOKENS in assumed:
        least = max(least, of.MUCH * k**2)
    if of.LARGE_VOCABULARY in assumed:
        least = max(least, of.MANY)
    if of.LOWER in assumed:
        # |lambda_i(E)| >= 6/sqrt(M): the margin grows like sqrt(M).
        margin = tokens.weak_correlation(features @ features.T, vocab_size=least).lower_margin
        least = max(least, math.ceil(least / margin**2 * (1 + 1e-9))) if margin > 0 else _LARGEST_VOCABULARY
    if outside in (of.MANY_TOKENS, of.LARGE_VOCABULARY, of.LOWER):
        return choose.integer("M", k, max(k, least - 1), log=True)
    least = min(least, _LARGEST_VOCABULARY)
    return choose.integer("M", least, min(_LARGEST_VOCABULARY, 100 * least), log=True)
