r"""Pair effects, violation and reach of any model of bounded Dyck, seen from its outputs alone.

A matched pair never changes what comes next, so that a model which is right at every length answers alike with and
without it (13), (14). `examine` inserts pairs before the last bracket of the prefixes of (16) and draws long prefixes.
The paper's own violation, the mean of S / P (15)-(17), is about vectors before LN that add up (12): a model that does
not show them has outputs only, and S / P is then unknown.

Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429), Sections 3 and 4.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow.intervals import of_share
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck.models import Model

LENGTHS = (4, 8, 16, 32, 64, 128, 256)
_APART = 1e-9  # total variation below which outputs count as equal
_ADDITIVE = 1e-6  # of the largest term: how far sums may be from u + n delta


@dataclass(frozen=True)
class Reach:
    """How far a share of right closing brackets is shown, refuted or open; all by 95% intervals.

    Attributes
    ----------
    share : float
    length : int
        The longest tested length up to which every tested length is shown to have the share; 0 if the first has not.
    refuted : int or None
        The first tested length that is shown to have less.
    everywhere : bool
        True if each tested length is shown, so that the reach is this length or more.
    depths : mapping
        Length -> the largest depth of closing queries up to which each depth is shown; lengths without prefixes of the
        first depth are left out.
    """

    share: float
    length: int
    refuted: int | None
    everywhere: bool
    depths: Mapping[int, int]


@dataclass(frozen=True, eq=False)
class Examination:
    """The findings of `examine`. Unknown numbers are NaN, and ``unknown`` has the reason.

    Queries of the condition are close (j, d), d = 1..D - 1; pairs are (i, l), l = 1..D.

    Attributes
    ----------
    name : str
    language : DyckLanguage
    lengths : (lengths,) int
        Of random prefixes, in brackets.
    asked, right : (lengths,) int
        Prefixes with an unmatched bracket, and those after which the right type of closing bracket is strictly likelier
        than every other. A tie counts as wrong.
    error : (lengths,) float
        Largest distance of the model's distribution from the exact one, in total variation, over all drawn prefixes.
    asked_at, right_at : (lengths, D - 1) int
        The same as ``asked`` and ``right`` for closing queries of each depth: a random word, then a prefix of (16).
    pairs : (counts,) int
        Numbers n of inserted pairs, 0 first.
    change : (counts, k, D, k, D - 1) float
        Over i, l, j, d: largest total variation between outputs with and without n pairs, over the stacks.
    log_change : (counts, k, D, k, D - 1) float
        The same for logits: largest change of a log-probability of a bracket that can come next.
    apart : (counts, k, D, k, D - 1) float
        Least total variation between outputs after stacks whose last types differ; exact ones are 1 - q apart.
    pair_error : float
        Largest distance of the model's distribution from the exact one over the prefixes with inserted pairs.
    violation : float
        Mean of ``change`` of one pair over ``apart`` without: the form of S / P for outputs (ours).
    paper_violation : float
        Mean of S / P, as `balance.violation`, from the sums before LN.
    unknown : mapping
        Name of a quantity -> why it is NaN, or why some of its entries are.
    """

    name: str
    language: DyckLanguage
    lengths: np.ndarray
    asked: np.ndarray
    right: np.ndarray
    error: np.ndarray
    asked_at: np.ndarray
    right_at: np.ndarray
    pairs: np.ndarray
    change: np.ndarray
    log_change: np.ndarray
    apart: np.ndarray
    pair_error: float
    violation: float
    paper_violation: float
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def accuracy(self) -> np.ndarray:
        """Share of right closing brackets by length: (lengths,); NaN where there were none."""
        return _share(self.right, self.asked)

    @property
    def accuracy_at(self) -> np.ndarray:
        """Share of right closing brackets by length and depth: (lengths, D - 1)."""
        return _share(self.right_at, self.asked_at)

    @property
    def least_error(self) -> float:
        r"""Lower bound of the model's largest error, in total variation, from inserted pairs alone.

        The larger of half a ``change`` and ``(1 - q - apart) / 2`` with ``apart`` after the pairs: the statement "Pairs
        in outputs". ``pair_error`` is never below it.
        """
        found = [0.0]
        if np.isfinite(self.change).any():
            found.append(float(np.nanmax(self.change)) / 2)
        if np.isfinite(self.apart).any():
            found.append((1 - self.language.open_probability - float(np.nanmin(self.apart))) / 2)
        return max(found)

    def reach(self, share: float = 0.95) -> Reach:
        """The length and the depth up to which the share of right closing brackets is shown."""
        share = checks.positive("share", share)
        if share >= 1:
            raise checks.reject("share", "be below 1, which no number of prefixes shows", share)
        shown, refuted = _judged(self.right, self.asked, share)
        known = self.asked > 0
        first = int(np.argmin(np.append(shown | ~known, False)))
        reached = self.lengths[:first][known[:first]]
        against = self.lengths[refuted]
        depths = {}
        for length, right, asked in zip(self.lengths, self.right_at, self.asked_at, strict=True):
            if asked.size and asked[0]:
                each, _ = _judged(right, asked, share)
                depths[int(length)] = int(np.argmin(np.append(each, False)))
        return Reach(
            share,
            int(reached[-1]) if reached.size else 0,
            int(against[0]) if against.size else None,
            bool(known.any() and shown[known].all()),
            depths,
        )

    def __str__(self) -> str:
        lines = [f"{self.name} on {self.language!r}", *(_row(name, text) for name, text in self._lines())]
        return "\n".join([*lines, *(_row("unknown", f"{name}: {why}") for name, why in self.unknown.items())])

    def _lines(self) -> list[tuple[str, str]]:
        found = self.reach()
        more = " or more" if found.everywhere else ""
        stop = "" if found.refuted is None else f"; refuted at {found.refuted}"
        if not (found.everywhere or stop):
            stop = "; open beyond: larger `n` decides"
        known, lines = self.asked > 0, []
        if known.any():
            lines.append(("reach", f"{found.length} brackets{more}, {found.share:.0%} of types right{stop}"))
            by = ", ".join(f"{n}: {a:.0%}" for n, a in zip(self.lengths[known], self.accuracy[known], strict=True))
            lines.append(("accuracy", by))
        if found.depths:
            lines.append(("depth", ", ".join(f"{depth} at {length}" for length, depth in found.depths.items())))
        for number, n in enumerate(self.pairs[1:], 1):
            if np.isfinite(self.change[number]).any():
                worst, mean = np.nanmax(self.change[number]), np.nanmean(self.change[number])
                lines.append(("pair effect", f"{n} pairs: {worst:.3g} at most, {mean:.3g} in the mean"))
        if np.isfinite(self.pair_error):
            errors = f"{self.least_error:.3g} or more, by the change of outputs alone; found {self.pair_error:.3g}"
            lines.append(("pair error", errors))
        for name, value in (("violation", self.violation), ("S / P", self.paper_violation)):
            if np.isfinite(value):
                lines.append((name, f"{value:.3g}"))
        return lines


def _row(name: str, text: str) -> str:
    return f"{name:<12} {text}"


def _share(right: np.ndarray, asked: np.ndarray) -> np.ndarray:
    return np.where(asked > 0, right / np.maximum(asked, 1), np.nan)


def _judged(right: np.ndarray, asked: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Where the share is shown, and where less is shown."""
    limits = [of_share(int(r), int(n)) if n else (0.0, 1.0) for r, n in zip(right, asked, strict=True)]
    low, high = np.array(limits).reshape(-1, 2).T
    return low >= share, high < share


def examine(
    model: Model,
    *,
    lengths: ArrayLike = LENGTHS,
    n: int = 200,
    pairs: ArrayLike = (1, 10),
    stacks: int = 16,
    rng: np.random.Generator | int = 0,
) -> Examination:
    """Pair effects, violation and reach of a model.

    Parameters
    ----------
    model : Model
        As `models.of` makes it.
    lengths : sequence of int
        Of random prefixes; those that the model does not read are left out, and named in ``unknown``.
    n : int
        Random prefixes of each length; as many for each depth.
    pairs : sequence of int
        Numbers of pairs to insert.
    stacks : int
        Most stacks w for each closing query; where k^d are more, some are drawn, with each last type.
    rng : numpy.random.Generator or seed

    Raises
    ------
    ValueError
        If an argument breaks one of these rules, or the model's outputs do.

    Examples
    --------
    A model that knows nothing tells no types apart:

    >>> from yzflow_bounded_dyck import models
    >>> language = DyckLanguage(n_types=2, max_depth=3)
    >>> blind = lambda prefixes: np.tile([0.25, 0.25, 0.25, 0.25], (len(prefixes), 1))
    >>> found = examine(models.of(blind, language, kind="probabilities"), lengths=[4, 8])
    >>> found.reach().length, found.least_error, found.violation
    (0, 0.25, nan)
    """
    checks.instance("model", model, Model)
    n, stacks = checks.integer("n", n, minimum=1), checks.integer("stacks", stacks, minimum=1)
    chosen, counts = (np.unique(_counts(name, value)) for name, value in (("lengths", lengths), ("pairs", pairs)))
    generator = checks.generator("rng", rng)
    unknown: dict[str, str] = {}
    drawn = [checks.read_only(array) for array in _random_prefixes(model, chosen, n, generator, unknown)]
    at = [checks.read_only(array) for array in _closing_queries(model, chosen, n, generator)]
    counts = np.append(0, counts)
    queries = _Queries(model, counts, stacks, generator)
    change, log_change, apart = map(checks.read_only, queries.effects(unknown))
    return Examination(
        name=model.name, language=model.language, lengths=checks.read_only(chosen),
        asked=drawn[0], right=drawn[1], error=drawn[2], asked_at=at[0], right_at=at[1],
        pairs=checks.read_only(counts), change=change, log_change=log_change, apart=apart,
        pair_error=queries.error,
        violation=_violation(change, apart, counts, unknown),
        paper_violation=queries.paper_violation(unknown),
        unknown=unknown,
    )  # fmt: skip


def _counts(name: str, value: ArrayLike) -> np.ndarray:
    found = checks.index_array(name, np.atleast_1d(checks.array(name, value)))
    if found.size == 0 or found.min() < 1:
        raise checks.reject(name, "be positive", found.tolist())
    return found


def _types_right(logs: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Whether the closing bracket of the last unmatched type is strictly likelier than every other closing one."""
    closing = logs[:, 1::2].copy()
    own = closing[np.arange(len(last)), last]
    closing[np.arange(len(last)), last] = -np.inf
    right: np.ndarray = own > closing.max(axis=1)
    return right


def _readable(model: Model, length: int) -> bool:
    return model.longest is None or length <= model.longest


def _random_prefixes(model, lengths, n, generator, unknown) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of prefixes that ask for a type and of right ones, and the largest error, by length."""
    language, k = model.language, model.language.n_types
    asked, right, error = np.zeros(lengths.size, int), np.zeros(lengths.size, int), np.full(lengths.size, np.nan)
    for number, length in enumerate(lengths):
        if not _readable(model, int(length)):
            continue
        prefixes = language.sample_sequences(n, min_length=int(length), max_length=int(length), rng=generator)
        logs, target = model.log_distribution(prefixes), language.bags(prefixes).target
        error[number] = np.abs(np.exp(logs) - target).sum(axis=1).max() / 2
        open_ones = target[:, 1::2].max(axis=1) > 0
        if k > 1 and open_ones.any():
            last = target[open_ones, 1::2].argmax(axis=1)
            asked[number], right[number] = open_ones.sum(), _types_right(logs[open_ones], last).sum()
    if too_long := [int(length) for length in lengths if not _readable(model, int(length))]:
        unknown["error" if k == 1 else "reach"] = f"the model reads at most {model.longest} brackets, not {too_long}"
    if k == 1:
        unknown["reach"] = "one type of brackets, so that which one closes is no question"
    elif not asked.any() and "reach" not in unknown:
        unknown["reach"] = "no drawn prefix had an unmatched bracket"
    return asked, right, error


def _closing_queries(model, lengths, n, generator) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of asked and of right closing queries by length and depth, behind a random word."""
    language, k, depths = model.language, model.language.n_types, model.language.max_depth - 1
    asked, right = np.zeros((2, lengths.size, depths), dtype=int)
    for (number, length), d in itertools.product(enumerate(lengths), range(1, depths + 1)):
        before = int(length) - d - 2
        if before < 0 or k == 1 or not _readable(model, int(length)):
            continue
        before -= before % 2  # words have even lengths
        words = language.sample_sequences(n, min_length=before, max_length=before, rng=generator, kind="word")
        stacks, kinds = generator.integers(0, k, (n, d)), generator.integers(0, k, n)
        tails = np.column_stack([2 * stacks, 2 * kinds, 2 * kinds + 1])
        prefixes = [np.append(word, tail) for word, tail in zip(words, tails, strict=True)]
        asked[number, d - 1] = n
        right[number, d - 1] = _types_right(model.log_distribution(prefixes), stacks[:, -1]).sum()
    return asked, right


class _Queries:
    """The prefixes of (16) with inserted pairs, and what the model says after them."""

    def __init__(self, model: Model, counts: np.ndarray, stacks: int, generator: np.random.Generator) -> None:
        self.model, self.counts, self.language = model, counts, model.language
        k, D = self.language.n_types, self.language.max_depth
        self.shape = (counts.size, k, D, k, max(D - 1, 0))
        self.chosen = {(j, d): _stacks(k, d, stacks, generator) for j, d in itertools.product(range(k), range(1, D))}
        self.error = float("nan")
        self.all = all(len(some) == k**d for (_, d), some in self.chosen.items())

    def _prefixes(self, n: int, i: int, level: int, j: int, d: int) -> list[list[int]]:
        """`n` pairs (i, level) before the last bracket of each stack's prefix; deeper levels behind an opened nest."""
        found = []
        for stack in self.chosen[j, d]:
            opens = [2 * int(kind) for kind in stack] + [2 * j]
            at = min(level - 1, d + 1)
            nest = level - 1 - at
            inside = [2 * i] * nest + [2 * i, 2 * i + 1] * n + [2 * i + 1] * nest
            found.append([*opens[:at], *inside, *opens[at:], 2 * j + 1])
        return found

    def _places(self):
        k, D = self.language.n_types, self.language.max_depth
        return itertools.product(range(k), range(D), range(k), range(D - 1))

    def effects(self, unknown: dict[str, str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``change``, ``log_change`` and ``apart`` of `Examination`."""
        change, log_change, apart = (np.full(self.shape, np.nan) for _ in range(3))
        places, before, short = list(self._places()), {}, False
        for number, n in enumerate(self.counts):
            groups = {one: self._prefixes(int(n), one[0], one[1] + 1, one[2], one[3] + 1) for one in places}
            read = {one: rows for one, rows in groups.items() if _readable(self.model, len(rows[0]))}
            short |= len(read) < len(groups)
            if not read:
                continue
            logs = self.model.log_distribution([prefix for rows in read.values() for prefix in rows])
            ends = np.cumsum([len(rows) for rows in read.values()])
            for place, own in zip(read, np.split(logs, ends[:-1]), strict=True):
                if number == 0:
                    before[place] = own, self.language.bags(read[place]).target
                base, target = before[place]  # pairs leave what comes next
                self.error = float(np.fmax(self.error, np.abs(np.exp(own) - target).sum(axis=1).max() / 2))
                with np.errstate(invalid="ignore"):
                    moved = np.where(own == base, 0.0, np.abs(own - base))
                last = self.chosen[place[2], place[3] + 1][:, -1]
                differ = last[:, None] != last
                at = (number, *place)
                change[at] = _variation(own, base).max()
                log_change[at] = moved[target > 0].max()
                if differ.any():
                    apart[at] = _variation(own[:, None], own)[differ].min()
        if self.language.max_depth == 1:
            unknown["pair effects"] = "D = 1, where no closing query has an unmatched bracket"
        elif short:
            unknown["some pair effects"] = f"the model reads at most {self.model.longest} brackets"
        if self.language.n_types == 1:
            unknown["apart"] = "one type, so that no stacks of one depth differ"
        return change, log_change, apart

    def paper_violation(self, unknown: dict[str, str]) -> float:
        """The mean of S / P from the sums before LN; NaN with the reason where it is not known."""
        name, counts = "S / P", self.counts[self.counts > 0]
        if min(self.language.n_types, self.language.max_depth) < 2:
            unknown[name] = "it takes two types and depths"
        elif self.model.sums is None:
            unknown[name] = "the model does not show its sums before LN (12): give `sums`, or ask a `Layer`"
        elif not self.all:
            unknown[name] = "P is a minimum over all k^d stacks: raise `stacks`"
        elif counts.size < 2:
            unknown[name] = "whether sums add up takes two numbers of pairs"
        else:
            ratios = self._ratios(unknown, name)
            if ratios is not None:
                return float(np.mean(ratios))
        return float("nan")

    def _ratios(self, unknown: dict[str, str], name: str) -> list[float] | None:
        ratios = []
        for i, level, j, d in self._places():
            longest = self._prefixes(int(self.counts[-1]), i, level + 1, j, d + 1)
            if not _readable(self.model, len(longest[0])):
                unknown[name] = f"the model reads at most {self.model.longest} brackets"
                return None
            sums = [self.model.sums_before_norm(self._prefixes(int(n), i, level + 1, j, d + 1)) for n in self.counts]
            steps = [(one - sums[0]) / n for n, one in zip(self.counts[1:], sums[1:], strict=True)]
            size = max(np.abs(one).max() for one in sums)
            if max(np.abs(step - steps[0][:1]).max() for step in steps) > _ADDITIVE * size:
                unknown[name] = "what pairs add to the sums is not the same for each pair and stack (12)"
                return None
            least = _second_smallest(self._stack_sums(j, d + 1), self.chosen[j, d + 1][:, -1])
            added = float(np.linalg.norm(steps[0][0]))
            added = 0.0 if added <= 1e-14 * size else added  # rounding
            ratios.append(added / least if least > 0 else np.inf if added > 0 else 0.0)
        return ratios

    def _stack_sums(self, j: int, d: int) -> np.ndarray:
        """Q of (16): no pair is inserted, and no nest opened."""
        return self.model.sums_before_norm(self._prefixes(0, 0, 1, j, d))


def _stacks(k: int, d: int, most: int, generator: np.random.Generator) -> np.ndarray:
    """Stacks of d types, all of them or some: (stacks, d); lower types are shared by each last type."""
    groups = max(1, most // k)
    if k ** (d - 1) <= groups:
        lower = np.indices((k,) * (d - 1)).reshape(d - 1, -1).T if d > 1 else np.empty((1, 0), dtype=int)
    else:
        lower = generator.integers(0, k, (groups, d - 1))
    rows = [np.append(row, last) for row in lower for last in range(k)]
    return np.array(rows, dtype=int)


def _variation(logs: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Total variation between distributions, from their logarithms, over the last axis."""
    found: np.ndarray = np.abs(np.exp(logs) - np.exp(others)).sum(axis=-1) / 2
    return found


def _second_smallest(sums: np.ndarray, last: Sequence[int] | np.ndarray) -> float:
    """P of (17): the least norm among stacks whose last type is not the minimiser's."""
    norms, last = np.linalg.norm(sums, axis=1), np.asarray(last)
    return float(norms[last != last[norms.argmin()]].min())


def _violation(change: np.ndarray, apart: np.ndarray, counts: np.ndarray, unknown: dict[str, str]) -> float:
    """Mean of one pair's change over the distance of stacks without it; unknown where no two stacks differ."""
    if 1 not in counts:
        unknown["violation"] = "it takes one inserted pair: `pairs` with 1"
        return float("nan")
    one, base = change[list(counts).index(1)], apart[0]
    if one.size == 0 or not (np.isfinite(one) & np.isfinite(base)).all():
        unknown["violation"] = "it takes two types and depths, and a model that reads each pair"
        return float("nan")
    if base.min() < _APART:
        unknown["violation"] = "the outputs tell some stacks not apart, so that there is nothing for pairs to hide"
        return float("nan")
    return float((one / base).mean())
