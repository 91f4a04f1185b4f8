"""How data, layers and trajectories show themselves in a notebook: their HTML, and their plots."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynamics.support import checks, display, names
from dynamics.support.display import COLUMNS, LINES, PICTURE_COLUMNS, PICTURE_ROWS, ROWS, Labels, Style, first
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
    """The corner of P(l|n) that a page has room for, with what the classes are."""
    common = classes.common_tokens
    facts = {
        "next tokens": f"{classes.n_classes:,} that occur, of {classes.vocab_size:,}",
        "contextual tokens": f"{classes.n_tokens:,}, of which {common.size:,} common",
        "queries": f"{len(classes.query_tokens):,}",
    }
    rows, columns = min(classes.n_classes, ROWS), min(classes.n_tokens, COLUMNS)
    table = classes.probabilities[:rows, :columns].toarray()
    marked = set(common[common < columns].tolist())
    words = [shown(classes.token_names, j) for j in range(columns)]
    heads = ["next token", "query", "weight", *(f"{w} (common)" if j in marked else w for j, w in enumerate(words))]
    own = zip(range(rows), classes.query[:rows], classes.class_weights[:rows], table, strict=True)
    lines = [
        [shown(classes.class_names, n), shown(classes.token_names, query), weight, *(share or "" for share in shares)]
        for n, query, weight, shares in own
    ]
    rest = _rest(rows, classes.n_classes, "next tokens", columns, classes.n_tokens)
    return display.page("SequenceClasses: P(l|n)", facts, display.table(heads, lines, rest=rest))


def plot_classes(classes: SequenceClasses, ax: Axes | None, labels: Labels | None, style: Style | None) -> Axes:
    """P(l|n) of the first tokens and next tokens, as a picture."""
    rows, columns = min(classes.n_classes, PICTURE_ROWS), min(classes.n_tokens, PICTURE_COLUMNS)
    shares = classes.probabilities[:rows, :columns].toarray()
    rest = _rest(rows, classes.n_classes, "next tokens", columns, classes.n_tokens)
    ticks = _words(labels, classes.token_names, classes.n_tokens, columns), _words(None, classes.class_names, 0, rows)
    return _matrix(ax, shares, "P(l|n), blank where 0", "token l", "next token n", rest, ticks, style)


def bags_html(bags: Bags) -> str:
    """The first bags with the counts of their tokens."""
    facts = {
        "bags": f"{len(bags):,} with {bags.token.size:,} entries",
        "queries": f"{bags.n_queries:,}",
        "contextual tokens": f"{bags.n_tokens:,}",
        "next tokens": f"{bags.vocab_size:,}" + ("" if bags.hard else ", a distribution for each bag"),
    }
    rows, lines = min(len(bags), ROWS), []
    for b in range(rows):
        start, end = (int(place) for place in bags.indptr[b : b + 2])
        kept = slice(start, min(end, start + COLUMNS))
        entries = zip(bags.token[kept].tolist(), bags.count[kept].tolist(), strict=True)
        words = ", ".join(f"{shown(bags.token_names, token)}: {count:.4g}" for token, count in entries)
        target = shown(bags.class_names, int(bags.target[b] if bags.hard else bags.target[b].argmax()))
        target += "" if bags.hard else " (most likely)"
        lines.append(
            [
                b,
                shown(bags.query_names, int(bags.query[b])),
                target,
                bags.weight[b],
                words + (", .." if end > kept.stop else ""),
            ]
        )
    heads = ["bag", "query", "next token", "weight", "token: count"]
    return display.page("Bags", facts, display.table(heads, lines, rest=first(rows, len(bags), "bags"), align="left"))


def plot_bags(bags: Bags, ax: Axes | None, labels: Labels | None, style: Style | None) -> Axes:
    """Shares of the tokens in the first bags, as a picture."""
    rows, columns = min(len(bags), PICTURE_ROWS), min(bags.n_tokens, PICTURE_COLUMNS)
    shares = np.zeros((rows, columns))
    for b in range(rows):
        own = slice(bags.indptr[b], bags.indptr[b + 1])
        token, count = bags.token[own], bags.count[own]
        shares[b, token[token < columns]] = (count / count.sum())[token < columns]
    rest = _rest(rows, len(bags), "bags", columns, bags.n_tokens)
    ticks = _words(labels, bags.token_names, bags.n_tokens, columns), None
    return _matrix(ax, shares, "share of the bag, blank where 0", "token", "bag", rest, ticks, style)


def layer_html(layer: Layer) -> str:
    """The shape and the size of each part of a layer."""
    parts = {"Z": layer.Z, "Y": layer.Y, "V": layer.V, "hidden": layer.hidden}
    heads = ["part", "shape", "smallest", "largest", "norm"]
    lines = [
        [name, " x ".join(map(str, array.shape)), array.min(), array.max(), np.linalg.norm(array)]
        for name, array in parts.items()
        if array is not None
    ]
    facts = {
        "next tokens": f"{layer.vocab_size:,} in {layer.Y.shape[1]:,} columns of Y",
        "normalisation": layer.normalisation or "none",
        "temperature": layer.temperature,
        "residual connection": "yes" if layer.residual else "no",
        "embedding": "none" if layer.embedding is None else f"{layer.embedding.vectors.shape[1]} dimensions",
    }
    return display.page("Layer", facts, display.table(heads, lines))


def plot_layer(layer: Layer, matrix: str, ax: Axes | None, labels: Labels | None, style: Style | None) -> Axes:
    """The corner of "Z" or "Y" that a picture has room for."""
    checks.one_of("matrix", matrix, ("Z", "Y"))
    whole = getattr(layer, matrix)
    rows, columns = min(len(whole), PICTURE_ROWS), min(whole.shape[1], PICTURE_COLUMNS)
    rows_of_y = "unit" if layer.hidden is not None else "token" if layer.V is None else "value"
    down, across = ("query", "token") if matrix == "Z" else (rows_of_y, "column of Y")
    kind = "attention" if matrix == "Z" else "decoder"
    rest = ", ".join(
        filter(None, (first(rows, len(whole), f"rows of {matrix}"), first(columns, whole.shape[1], "columns")))
    )
    words = _words(labels, None, whole.shape[1], columns)
    with display.styled(style):
        ax = display.axes(ax)
        display.picture(ax, whole[:rows, :columns], label=f"{kind} logit {matrix}", signed=True)
        ax.set(xlabel=across, ylabel=down, title=rest)
        if words is not None:
            display.name_ticks(ax.xaxis, words)
    return ax


def trajectory_html(trajectory: Trajectory) -> str:
    """The call that made a trajectory, its sizes and its loss; arguments and dataset to unfold."""
    dataset = trajectory.dataset
    time, loss, sizes = dataset["time"].values, dataset["loss"].values, dataset.sizes
    facts = {
        "made by": dataset.attrs.get("simulator", "unknown"),
        "times": f"{sizes['time']:,} from {time[0]:g} to {time[-1]:g} SGD steps",
        "sizes": f"{sizes['query']:,} queries, {sizes['token']:,} tokens, {sizes['next_token']:,} next tokens",
        dataset["loss"].attrs.get("long_name", "loss"): f"{loss[0]:.4g} at first, {loss[-1]:.4g} at last",
    }
    own = [[name, value] for name, value in list(trajectory.parameters.items())[: 3 * ROWS]]
    arguments = display.folded("arguments", display.table(["name", "value"], own, align="left"))
    return display.page("Trajectory", facts, arguments, display.folded("dataset", dataset._repr_html_()))


def write_csv(trajectory: Trajectory, path: str | os.PathLike) -> None:
    """Write attention and its logits, a row for each time, next token and token."""
    words = {axis: _of_axis(trajectory, axis) or () for axis in ("token", "next_token")}
    heads = ["time", "next_token", "next_token_name", "token", "token_name", "distinct", "attention", "z"]
    dataset = trajectory.dataset
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(heads)
        for n, query in zip(dataset["next_token"].values.tolist(), dataset["query_of"].values.tolist(), strict=True):
            tokens, distinct, shares = trajectory._of(n, "attention")
            logits = trajectory._of(n, "z")[2].tolist() if query >= 0 else [[""] * tokens.size] * len(shares)
            own = [
                (n, _raw(words["next_token"], n), token, _raw(words["token"], token), int(kind))
                for token, kind in zip(tokens.tolist(), distinct.tolist(), strict=True)
            ]
            for time, share, logit in zip(dataset["time"].values.tolist(), shares.tolist(), logits, strict=True):
                lines.writerows((time, *who, *values) for who, *values in zip(own, share, logit, strict=True))


def _raw(words: Sequence[str], number: int) -> str:
    return words[number] if number < len(words) else ""


def most_attended(trajectory: Trajectory, next_tokens: int) -> dict[str, tuple[str, float]]:
    """First next tokens -> the token that has most attention at the last time, and how much."""
    found = {}
    for n in trajectory.dataset["next_token"].values[:next_tokens].tolist():
        tokens, _, shares = trajectory._of(n, "attention")
        best = int(shares[-1].argmax())
        token = shown(_of_axis(trajectory, "token"), int(tokens[best]))
        found[shown(_of_axis(trajectory, "next_token"), n)] = token, float(shares[-1, best])
    return found


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
    if quantity in ("loss", "entropy") and next_token is not None:
        raise checks.reject("next_token", f"be left out for {quantity}, which has no tokens", next_token)
    if quantity == "loss":
        if labels is not None:
            raise checks.reject("labels", "be left out for loss, which has no tokens", checks.brief(labels))
        lines = {"": dataset["loss"].values}
        label = "{long_name} ({units})".format(**{"long_name": "loss", "units": "nats", **dataset["loss"].attrs})
    else:
        label = _UNITS[quantity]
        if quantity != "entropy":
            known = dataset["next_token"].values
            next_token = int(known[0]) if next_token is None else trajectory.number("next_token", next_token)
            title = f"next token {display.plain(shown(_of_axis(trajectory, 'next_token'), next_token))}"
        lines, whole, what = _lines(trajectory, quantity, next_token, labels)
        if len(lines) < whole:
            title = ", ".join(filter(None, (title, f"the {len(lines)} of {whole:,} {what} that move most")))
    with display.styled(style):
        return _draw(ax, dataset["time"].values, lines, label, title)


def _draw(
    ax: Axes | None,
    time: np.ndarray,
    lines: Mapping[str, np.ndarray],
    label: str,
    title: str,
    unit: str = display.STEPS,
) -> Axes:
    ax = display.axes(ax)
    drawn = display.time_axis(ax, time, unit, lines=lines.values())
    for name, values in lines.items():
        ax.plot(time[drawn], values[drawn], label=name or None)
    ax.set(ylabel=label, title=title)
    if len(lines) > 1:
        ax.legend()
    return ax


def run_html(run: Run) -> str:
    """The call that made a run, its states and its events; arguments and dataset to unfold."""
    dataset, time = run.dataset, run.dataset["time"].values
    sizes = {name: " x ".join(map(str, dataset[name].shape[1:])) or "a number" for name in run.states}
    facts = {
        "made by": dataset.attrs.get("simulator", "unknown"),
        "times": f"{time.size:,} from {time[0]:g} to {time[-1]:g}",
        "states": ", ".join(f"{name} ({size})" for name, size in sizes.items()),
    }
    if run.events:
        facts["events"] = ", ".join(f"{name}: {times.size}" for name, times in run.events.items())
    own = [[name, value] for name, value in list(run.parameters.items())[: 3 * ROWS]]
    arguments = display.folded("arguments", display.table(["name", "value"], own, align="left"))
    return display.page("Run", facts, arguments, display.folded("dataset", dataset._repr_html_()))


def plot_run(run: Run, name: str, ax: Axes | None, labels: Labels | None, style: Style | None) -> Axes:
    """The entries of a variable over time that move most."""
    dataset = run.dataset
    checks.one_of("name", name, [str(one) for one, array in dataset.data_vars.items() if "time" in array.dims])
    array = dataset[name].transpose("time", ...)
    table = array.values.reshape(array.sizes["time"], -1)
    size = table.shape[1]
    own = names.given(labels, None, size)
    moved = np.where(np.isfinite(table), table, 0.0)
    kept = np.sort(np.argsort(-np.ptp(moved, axis=0), kind="stable")[:LINES]).tolist()
    words = {i: own[i] if own and own[i] else _entry(array, i) for i in kept}
    alike = [i for i, word in words.items() if list(words.values()).count(word) > 1]
    words |= {i: f"{words[i]}, {i}" for i in alike}
    title = f"the {len(kept)} of {size:,} entries that move most" if len(kept) < size else ""
    known = array.attrs
    label = display.plain(str(known.get("long_name", name))) + (f" ({known['units']})" if "units" in known else "")
    unit = dataset["time"].attrs.get("units", "")
    lines = {display.plain(words[i]): table[:, i] for i in kept}
    with display.styled(style):
        return _draw(ax, dataset["time"].values, lines, label, title, str(unit))


def _entry(array: xr.DataArray, number: int) -> str:
    """An entry of a variable over time in words."""
    places = np.unravel_index(number, array.shape[1:])
    parts = zip(array.dims[1:], places, strict=True)
    return ", ".join(f"{dim} {array[dim].values[place] if dim in array.coords else place}" for dim, place in parts)


def _lines(
    trajectory: Trajectory, quantity: str, next_token: int | str | None, labels: Labels | None
) -> tuple[dict[str, np.ndarray], int, str]:
    """Label -> values over time of what moves most; of how many; and what they are."""
    dataset = trajectory.dataset
    axis = "next_token" if quantity == "entropy" else "token"
    own = names.given(labels, _of_axis(trajectory, axis), int(dataset[axis].values.max()) + 1)
    if next_token is None:
        table, numbers = trajectory.attention_entropy("all").values, dataset["next_token"].values
        kinds = [""] * numbers.size
    else:
        numbers, distinct, table = trajectory._of(next_token, quantity)
        kinds = [f" ({kind})" for kind in np.where(distinct, "distinct", "common")]
    what = axis.replace("_", " ")
    kept = np.sort(np.argsort(-np.ptp(table, axis=0), kind="stable")[:LINES])
    words = {i: f"{what} {display.plain(shown(own, int(numbers[i])))}{kinds[i]}" for i in kept.tolist()}
    alike = [i for i, word in words.items() if list(words.values()).count(word) > 1]  # of labels, or cut off
    words |= {i: f"{words[i]}, {numbers[i]}" for i in alike}
    return {word: table[:, i] for i, word in words.items()}, numbers.size, f"{what}s"


def _of_axis(trajectory: Trajectory, axis: str) -> list[str] | None:
    """Names along an axis of a trajectory, by number."""
    own = trajectory.names(axis)
    if own is None:
        return None
    numbers = trajectory.dataset[axis].values
    names_by_number = [""] * (int(numbers.max()) + 1)
    for number, name in zip(numbers.tolist(), own, strict=True):
        names_by_number[number] = name
    return names_by_number


def _words(labels: Labels | None, known: Sequence[str] | None, size: int, shown_first: int) -> list[str] | None:
    """Words at the first ticks of an axis, or None for their numbers."""
    own = names.given(labels, known, size)
    return None if own is None else [shown(own, number) for number in range(shown_first)]


def _matrix(
    ax: Axes | None,
    shares: np.ndarray,
    label: str,
    across: str,
    down: str,
    rest: str,
    words: tuple[list[str] | None, list[str] | None],
    style: Style | None,
) -> Axes:
    """A picture of shares, where those that are absent are blank and so told from small ones."""
    with display.styled(style):
        ax = display.axes(ax)
        display.picture(ax, np.where(shares > 0, shares, np.nan), label=label)
        ax.set(xlabel=across, ylabel=down, title=rest)
        for axis, own in zip((ax.xaxis, ax.yaxis), words, strict=True):
            if own is not None:
                display.name_ticks(axis, own)
    return ax


def _rest(rows: int, all_rows: int, what: str, columns: int, all_columns: int) -> str:
    return ", ".join(filter(None, (first(rows, all_rows, what), first(columns, all_columns, "tokens"))))
