"""A reader's classes as the panel shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dynamics import SequenceClasses
from dynamics.support import checks, names
from yzflow.pages.explorer.registry import Preset

# Sizes of a table on a screen, and the range of its numbers.
LIMITS = {"classes": 8, "tokens": 12, "vocabulary": 1_000_000, "largest": 1e9, "letters": 200}
INSTEAD = "`yz.gradient_flow` and `yzflow flow --data FILE` take any size"
TRAINING: dict[str, Any] = {"etaY": 1.0, "etaZ": 0.5, "end": 700.0, "level": "full", "shown": "0"}

_MOST_COUNTED = 1000  # ratios of larger whole numbers are shown as shares


def collect(progress: bool = False) -> dict[str, Any]:
    """The limits of the table; everything else is computed in the page."""
    return {"limits": LIMITS}


def setting(classes: SequenceClasses) -> dict[str, Any]:
    """Classes as a table: tokens, then for each class its name, its query, its weight and how often tokens occur."""
    queries = [int(query) for query in classes.query]
    tokens = _named(classes.token_names, max([classes.n_tokens, *(query + 1 for query in queries)]), "token")
    own = _named(classes.class_names, classes.n_classes, "next token")
    weights = _ratios(classes.class_weights)
    shares = classes.probabilities.toarray()
    rows = [[own[n], tokens[query], weights[n], *_ratios(shares[n])] for n, query in enumerate(queries)]
    return {"tokens": tokens[: classes.n_tokens], "rows": rows, "M": classes.vocab_size, **TRAINING}


def opened(data: Any, name: str) -> Preset:
    """The preset from a file of classes.

    Raises
    ------
    ValueError
        If the file has no classes, or more than the page's table holds.
    """
    if not isinstance(data, SequenceClasses):
        rule = f"hold classes (.csv, .tsv or .json) for the explorer's table ({INSTEAD})"
        raise checks.reject("data", rule, f"{type(data).__name__} in {name}")
    for what, size, most in (
        ("classes", data.n_classes, LIMITS["classes"]),
        ("tokens", data.n_tokens, LIMITS["tokens"]),
        ("next tokens in all", data.vocab_size, LIMITS["vocabulary"]),
    ):
        if size > most:
            raise checks.reject("data", f"hold at most {most} {what} for the explorer's table ({INSTEAD})", size)
    return Preset(
        f"Your data: {name}",
        f"The table holds the classes of {name}, in small whole numbers where its ratios have them. The flow starts "
        "from zero, and its rates and length are yours to choose.",
        "Which tokens lose attention in each class, and which gain? Guess from the table before you look.",
        "The sentence below the plot says it for the class that is shown; choose one class after the other.",
        setting(data),
    )


def _ratios(shares: np.ndarray) -> list[float]:
    """The smallest whole numbers in the ratios of shares, or the shares themselves where such numbers are large."""
    least = shares[shares > 0].min()
    for scale in range(1, _MOST_COUNTED + 1):
        counts = shares / least * scale
        whole = counts.round()
        if counts.max() <= _MOST_COUNTED and np.abs(counts - whole).max() < 1e-9 * _MOST_COUNTED:
            return whole.astype(int).tolist()
    return shares.tolist()


def _named(given: Iterable[str] | None, size: int, kind: str) -> list[str]:
    """Legible and distinct names, with numbers in the place of missing names."""
    found: list[str] = []
    own = list(given or ())
    for number in range(size):
        name = names.readable(own[number]) if number < len(own) and own[number] else f"{kind} {number}"
        while name in found:
            name += "\N{PRIME}"
        found.append(name)
    return found
