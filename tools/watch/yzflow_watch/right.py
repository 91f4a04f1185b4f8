"""Who was right: the predictions of each theory, the outcomes, and whether differences are more than chance.

An answer is 1 for a right prediction, 0 for a wrong one, and in between if the theory took no side; NaN without a
prediction or an outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import xarray as xr
from scipy.stats import binomtest

from yzflow_watch.in_the_way import joined
from yzflow_watch.recording import Recording
from yzflow_watch.rivals import present

__all__ = [
    "LEVEL",
    "WORDS",
    "ahead",
    "answers",
    "by_group",
    "came",
    "foreseen_words",
    "left_out",
    "rows",
    "who_was_right",
]

LEVEL = 0.01  # significance level: a smaller probability is called more than chance
_OPEN = "takes no side"
WORDS = {
    "rises": "Who gains attention",
    "leads": "Which token gains most",
    "sparser": "Which heads get sparser",
    "turns": "Whose entropy turns",
}


def answers(prediction: xr.Dataset, happened: xr.Dataset, name: str) -> np.ndarray:
    """Answers of a prediction to a quantity, one for each case: a token, or for ``leads`` a next token.

    If several tokens lead with equal odds, each gets an equal share.
    """
    said, true = prediction[name].values, happened[name].values
    if name == "leads":
        here = ~np.isnan(said) & ~np.isnan(true)
        best = here & (said == np.where(here, said, -np.inf).max(axis=-1, keepdims=True))
        number = best.sum(axis=-1)
        return np.where(number > 0, (best & (true == 1)).sum(axis=-1) / np.maximum(number, 1), np.nan)
    found = np.where(said == 0.5, 0.5, (said > 0.5) == (true == 1))
    return np.where(np.isnan(said) | np.isnan(true), np.nan, found)


def _sides(prediction: xr.Dataset, happened: xr.Dataset, name: str) -> np.ndarray:
    """Predicted sides in cases with an outcome: 1 for yes, 0 for no, 1/2 for neither; NaN elsewhere."""
    said = np.where(np.isnan(happened[name].values), np.nan, prediction[name].values)
    return np.where(np.isnan(said), np.nan, 0.5 + 0.5 * np.sign(said - 0.5))


def foreseen_words(prediction: xr.Dataset, happened: xr.Dataset, name: str) -> str:
    """A theory's prediction of a quantity, in words."""
    if name == "leads":
        there = prediction[name].values[~np.isnan(answers(prediction, happened, name))]
        sure = int(((there == np.nanmax(there, axis=-1, keepdims=True)).sum(axis=-1) == 1).sum())
        return f"a token for {sure:,} of {len(there):,}" if sure else _OPEN
    sides = _sides(prediction, happened, name)
    sides = _last(sides) if name == "turns" else sides
    yes, no, even = (int((sides == side).sum()) for side in (1, 0, 0.5))
    if not yes + no:
        return _OPEN
    open_ones = f", {even:,} open" if even else ""
    return f"{yes:,} gain, {no:,} lose{open_ones}" if name == "rises" else f"{yes} of {yes + no + even}{open_ones}"


def _last(values: np.ndarray) -> np.ndarray:
    """The last known value of each head over multiples of the step; NaN without any."""
    flat = values.reshape(-1, values.shape[-1])
    known = [row[~np.isnan(row)] for row in flat]
    return np.array([row[-1] if row.size else np.nan for row in known])


def came(happened: xr.Dataset, name: str) -> str:
    """Outcome of a quantity, in words; "" if nothing came."""
    true = happened[name].values
    if name == "leads":
        n = int((true == 1).sum())
        return f"in {n:,} cases, one for each next token and head, there is one at the end" if n else ""
    ends = _last(true) if name == "turns" else true
    yes, n = int((ends == 1).sum()), int(np.isfinite(ends).sum())
    if not n:
        return ""
    if name == "rises":
        return f"of {n:,} signs, one for each token, next token and head, {yes:,} came out as gains"
    when = ", each asked before several multiples of the step" if name == "turns" else ""
    return f"{yes} of {n} heads did{when}"


def rows(
    said: Mapping[str, xr.Dataset], happened: xr.Dataset, scores: Mapping[str, Mapping[str, float]], name: str
) -> list[list[str]]:
    """Theory, prediction, right cases, and Brier score, for each theory that predicts a quantity."""
    found = []
    for theory, score in scores.items():
        if name in score:
            given, words = answers(said[theory], happened, name), foreseen_words(said[theory], happened, name)
            known = given[~np.isnan(given)]
            right = "-" if words == _OPEN else f"{_right(known):,} of {known.size:,}"
            found.append([theory, words, right, f"{score[name]:.3f}"])
    return found


def _right(known: np.ndarray) -> int:
    return int((known == 1).sum())


def left_out(recording: Recording, now: int) -> int:
    """Number of tokens that are not scored, since their attention is NaN at the step or at the end."""
    ends = recording.dataset["gain"].sel(step=[now, int(recording.steps[-1])]).values
    return int((np.isnan(ends).any(axis=0) & present(recording)).sum())


def by_group(given: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Mean answer over the tokens of each head and query, which move together: one axis, NaN without any."""
    of = [given[:, :, query == one].reshape(*given.shape[:2], -1) for one in np.unique(query)]
    known = np.stack([np.isfinite(values).sum(axis=-1) for values in of])
    total = np.stack([np.nansum(values, axis=-1) for values in of])
    return np.where(known > 0, total / np.maximum(known, 1), np.nan).ravel()


def ahead(mine: np.ndarray, other: np.ndarray) -> bool:
    """True if answers are better than others by more than chance, in a sign test of unequal answers."""
    known = ~np.isnan(mine) & ~np.isnan(other)
    more, less = int((mine > other)[known].sum()), int((mine < other)[known].sum())
    return more > less and binomtest(more, more + less).pvalue <= LEVEL


def who_was_right(
    said: Mapping[str, xr.Dataset], happened: xr.Dataset, nulls: Collection[str], query: np.ndarray
) -> tuple[str, str]:
    """Two sentences about who gains attention: how many signs each theory predicted, and whether that is chance.

    Tokens of one head and query move together, and so do next tokens with the same query. So answers are averaged over
    each head and query. A theory is ahead of another by more than chance if it wins so many of these means that a fair
    coin would do so at most once in a hundred times (`LEVEL`).

    Parameters
    ----------
    said : mapping
        Theory -> its predictions.
    happened : xarray.Dataset
        The result of `yzflow_watch.rivals.outcome`.
    nulls : collection of str
    query : (K,) array
        Query of each next token.
    """
    name = "rises"
    given = {theory: answers(of, happened, name) for theory, of in said.items() if name in of}
    given = {theory: found for theory, found in given.items() if not np.isnan(found).all()}
    theories, rest = [one for one in given if one not in nulls], [one for one in given if one in nulls]
    if not theories:
        return "", ""
    best = max(rest, key=lambda one: np.nanmean(given[one]), default="")
    grouped = {theory: by_group(found, query) for theory, found in given.items()}
    return _counts(given, theories, best), _compared(grouped, theories, rest)


def _counts(given: Mapping[str, np.ndarray], theories: Sequence[str], null: str) -> str:
    """How many of how many signs each theory predicted, the best first, equal ones together, and the best null."""
    right = {one: (_right(given[one]), int(np.isfinite(given[one]).sum())) for one in given}
    said: list[str] = []
    first = 0
    for count, n in sorted({right[one] for one in theories}, key=lambda pair: (-pair[0] / pair[1], -pair[1])):
        equal = [one for one in theories if right[one] == (count, n)]
        of = f" of {n:,} signs" if not said else "" if n == first else f" of {n:,}"
        first = first or n
        each = " each" if len(equal) > 1 else ""
        said.append(f"{', '.join(equal)}{'' if said else ' foresaw'} {count:,}{of}{each}")
    if null:
        known = given[null][np.isfinite(given[null])]
        of = "" if known.size == first else f" of {known.size:,}"
        number = f"{known.size / 2:,g}{of} by even odds" if (known == 0.5).all() else f"{_right(known):,}{of}"
        said.append(f"the best null ({null}) {number}")
    return "; ".join(said)


def _compared(given: Mapping[str, np.ndarray], theories: Sequence[str], nulls: Sequence[str]) -> str:
    """The theories that are ahead of every null, and of the others, by more than chance."""
    groups = max(int(np.isfinite(found).sum()) for found in given.values())
    if 2.0 ** (1 - groups) > LEVEL:
        return f"Heads and queries whose tokens move together are too few ({groups}) to tell this from chance"
    better = [one for one in theories if all(ahead(given[one], given[null]) for null in nulls)]
    if not better:
        worse = theories and any(all(ahead(given[null], given[one]) for one in theories) for null in nulls)
        if worse:
            return "A null was right more often than every theory"
        return "No theory is ahead of the nulls by more than chance"
    first = [one for one in better if not any(ahead(given[other], given[one]) for other in better)]
    verb = "is" if len(first) == 1 else "are"
    others = [one for one in theories if one not in first]
    beaten = others and all(ahead(given[one], given[other]) for one in first for other in others)
    between = "; between them the difference is within chance" if len(first) > 1 else ""
    and_others = " and of the other theories" if beaten else ""
    return f"{joined(first)} {verb} ahead of the nulls{and_others} by more than chance{between}"
