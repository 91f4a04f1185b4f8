"""How data, layers, trajectories and runs show themselves in a notebook, beside the datasets that xarray shows."""

from __future__ import annotations

import csv
import os
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynamics.support import checks, display, names
from dynamics.support.display import COLUMNS, ROWS, Labels, Style, first
from dynamics.support.files import replacing
from dynamics.support.names import shown

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


# The objects that are shown. Their files import this one, which so cannot import them.
Bags: TypeAlias = Any
SequenceClasses: TypeAlias = Any
Layer: TypeAlias = Any
Run: TypeAlias = Any
Trajectory: TypeAlias = Any

QUANTITIES = ("attention", "z", "loss", "entropy")
_UNITS = {"attention": "expected attention", "z": "attention logit", "entropy": "entropy of attention (nats)"}


def classes_html(classes: SequenceClasses) -> str:
    """The corner of P(l|n) that a page has room for, with its common tokens marked."""
    table = classes.probabilities[:ROWS, :COLUMNS].toarray()
    marked = set(classes.common_tokens.tolist())
    tokens = (shown(classes.token_names, j) + " (common)" * (j in marked) for j in range(table.shape[1]))
    lines = [
        [shown(classes.class_names, n), shown(classes.token_names, query), weight, *(share or "" for share in shares)]
        for n, (query, weight, shares) in enumerate(zip(classes.query, classes.class_weights, table, strict=False))
    ]
    cut = (
        first(len(table), classes.n_classes, "next tokens"),
        first(table.shape[1], classes.n_tokens, "tokens"),
    )
    inside = display.table(["next token", "query", "weight", *tokens], lines, rest=", ".join(filter(None, cut)))
    return display.page(repr(classes), {}, inside)


def bags_html(bags: Bags) -> str:
    """The first bags with the counts of their tokens."""
    lines: list[list[object]] = []
    for b in range(min(len(bags), ROWS)):
        start, end = bags.indptr[b : b + 2].tolist()
        kept = slice(start, min(end, start + COLUMNS))
        entries = zip(bags.token[kept].tolist(), bags.count[kept].tolist(), strict=True)
        counts = ", ".join(f"{shown(bags.token_names, token)}: {count:.4g}" for token, count in entries)
        target = shown(bags.class_names, int(bags.target[b] if bags.hard else bags.target[b].argmax()))
        target += "" if bags.hard else " (most likely)"
        query = shown(bags.query_names, int(bags.query[b]))
        lines.append([b, query, target, bags.weight[b], counts + (", .." if end > kept.stop else "")])
    heads, rest = ["bag", "query", "next token", "weight", "token: count"], first(len(lines), len(bags), "bags")
    return display.page(repr(bags), {}, display.table(heads, lines, rest=rest, align="left"))


def layer_html(layer: Layer) -> str:
    """The shape and the size of each part of a layer."""
    parts = {"Z": layer.Z, "Y": layer.Y, "V": layer.V, "hidden": layer.hidden}
    lines = [
        [name, " x ".join(map(str, array.shape)), array.min(), array.max(), np.linalg.norm(array)]
        for name, array in parts.items()
        if array is not None
    ]
    return display.page(repr(layer), {}, display.table(["part", "shape", "smallest", "largest", "norm"], lines))


def plot_trajectory(
    trajectory: Trajectory,
    quantity: str,
    next_token: int | str | None,
    ax: Axes | None,
    labels: Labels | None,
    style: Style | None,
) -> Axes:
    """A quantity over time: the lines that move most, of one next token where it has tokens."""
    checks.one_of("quantity", quantity, QUANTITIES)
    dataset, title = trajectory.dataset, ""
    time = dataset["time"]
    if quantity in ("loss", "entropy") and next_token is not None:
        raise checks.reject("next_token", f"be left out for {quantity}, which has no tokens", next_token)
    if quantity == "loss":
        if labels is not None:
            raise checks.reject("labels", "be left out for loss, which has no tokens", checks.brief(labels))
        label = "{long_name} ({units})".format(**{"long_name": "loss", "units": "nats", **dataset["loss"].attrs})
        return display.lines(time, [(0, "", dataset["loss"].values)], label=label, ax=ax, style=style)
    axis = "next_token" if quantity == "entropy" else "token"
    what, words = axis.replace("_", " "), _names(trajectory, axis)
    words = names.given(labels, words, len(words)) or words
    if quantity == "entropy":
        numbers, table = dataset["next_token"].values, trajectory.attention_entropy("all").values
        kinds = [""] * numbers.size
    else:
        known = dataset["next_token"].values
        next_token = int(known[0]) if next_token is None else trajectory.number("next_token", next_token)
        numbers, distinct, table = trajectory._of(next_token, quantity)
        kinds = [f" ({kind})" for kind in np.where(distinct, "distinct", "common")]
        title = f"next token {display.plain(shown(_names(trajectory, 'next_token'), next_token))}"
    drawn = [
        (int(numbers[i]), f"{what} {display.plain(shown(words, int(numbers[i])))}{kinds[i]}", table[:, i])
        for i in display.moving_most(table)
    ]
    title = ", ".join(filter(None, (title, display.moving(len(drawn), numbers.size, f"{what}s"))))
    return display.lines(time, drawn, label=_UNITS[quantity], title=title, ax=ax, style=style)


def plot_run(run: Run, name: str, ax: Axes | None, labels: Labels | None, style: Style | None) -> Axes:
    """The entries of a variable over time that move most."""
    dataset = run.dataset
    checks.one_of("name", name, [str(known) for known, array in dataset.data_vars.items() if "time" in array.dims])
    array = dataset[name].transpose("time", ...)
    table = array.values.reshape(array.sizes["time"], -1)
    size = table.shape[1]
    words = names.given(labels, None, size) or [""] * size
    drawn = [(i, display.plain(words[i] or _entry(array, i)), table[:, i]) for i in display.moving_most(table)]
    label = display.plain(str(array.attrs.get("long_name", name)))
    label += f" ({array.attrs['units']})" if "units" in array.attrs else ""
    title = display.moving(len(drawn), size, "entries")
    return display.lines(dataset["time"], drawn, label=label, title=title, ax=ax, style=style)


def _entry(array: xr.DataArray, number: int) -> str:
    """An entry of a variable over time in words."""
    places = np.unravel_index(number, array.shape[1:])
    parts = zip(array.dims[1:], places, strict=True)
    return ", ".join(f"{dim} {array[dim].values[place] if dim in array.coords else place}" for dim, place in parts)


def write_csv(trajectory: Trajectory, path: str | os.PathLike) -> None:
    """Write attention and its logits, a row for each time, next token and token."""
    tokens_known, after_known = _names(trajectory, "token"), _names(trajectory, "next_token")
    heads = ["time", "next_token", "next_token_name", "token", "token_name", "distinct", "attention", "z"]
    dataset = trajectory.dataset
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(heads)
        for n, query in zip(dataset["next_token"].values.tolist(), dataset["query_of"].values.tolist(), strict=True):
            tokens, distinct, shares = trajectory._of(n, "attention")
            logits = trajectory._of(n, "z")[2].tolist() if query >= 0 else [[""] * tokens.size] * len(shares)
            entries = [
                (n, after_known[n], token, tokens_known[token], int(kind))
                for token, kind in zip(tokens.tolist(), distinct.tolist(), strict=True)
            ]
            for time, share, logit in zip(dataset["time"].values.tolist(), shares.tolist(), logits, strict=True):
                lines.writerows((time, *who, *values) for who, *values in zip(entries, share, logit, strict=True))


def most_attended(trajectory: Trajectory, next_tokens: int) -> dict[str, tuple[str, float]]:
    """First next tokens -> the token that has most attention at the last time, and how much."""
    words, after = _names(trajectory, "token"), _names(trajectory, "next_token")
    most = {}
    for n in trajectory.dataset["next_token"].values[:next_tokens].tolist():
        tokens, _, shares = trajectory._of(n, "attention")
        best = int(shares[-1].argmax())
        most[shown(after, n)] = shown(words, int(tokens[best])), float(shares[-1, best])
    return most


def _names(trajectory: Trajectory, axis: str) -> list[str]:
    """Names along an axis of a trajectory, by number; "" where there is none."""
    numbers = trajectory.dataset[axis].values
    by_number = np.full(int(numbers.max()) + 1, "", dtype=object)
    by_number[numbers] = trajectory.names(axis) or ""
    return by_number.tolist()
