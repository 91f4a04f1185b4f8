"""How data, layers and trajectories show themselves in a notebook: their HTML, and their plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynamics.support import checks, display
from dynamics.support.display import COLUMNS, LINES, PICTURE_COLUMNS, PICTURE_ROWS, ROWS, first

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynamics.bags import Bags
    from dynamics.data.sequence_classes import SequenceClasses
    from dynamics.layer import Layer
    from dynamics.trajectory import Trajectory

QUANTITIES = ("attention", "z", "loss", "entropy")
_UNITS = {"attention": "expected attention", "z": "attention logit", "entropy": "entropy of attention (nats)"}


def classes_html(classes: SequenceClasses) -> str:
    common = classes.common_tokens
    facts = {
        "next tokens": f"{classes.n_classes:,} that occur, of {classes.vocab_size:,}",
        "contextual tokens": f"{classes.n_tokens:,}, of which {common.size:,} common",
        "queries": f"{len(classes.query_tokens):,}",
    }
    rows, columns = min(classes.n_classes, ROWS), min(classes.n_tokens, COLUMNS)
    table = classes.probabilities[:rows, :columns].toarray()
    marked = set(common[common < columns].tolist())
    heads = ["next token", "query", "weight", *(f"{j} (common)" if j in marked else j for j in range(columns))]
    own = zip(range(rows), classes.query[:rows], classes.class_weights[:rows], table, strict=True)
    lines = [[n, query, weight, *(share or "" for share in shares)] for n, query, weight, shares in own]
    rest = _rest(rows, classes.n_classes, "next tokens", columns, classes.n_tokens)
    return display.page("SequenceClasses: P(l|n)", facts, display.table(heads, lines, rest=rest))


def plot_classes(classes: SequenceClasses, ax: Axes | None) -> Axes:
    rows, columns = min(classes.n_classes, PICTURE_ROWS), min(classes.n_tokens, PICTURE_COLUMNS)
    shares = classes.probabilities[:rows, :columns].toarray()
    rest = _rest(rows, classes.n_classes, "next tokens", columns, classes.n_tokens)
    return _matrix(ax, shares, "P(l|n), blank where 0", "token l", "next token n", rest)


def bags_html(bags: Bags) -> str:
    facts = {
        "bags": f"{len(bags):,} with {bags.token.size:,} entries",
        "queries": f"{bags.n_queries:,}",
        "contextual tokens": f"{bags.n_tokens:,}",
        "next tokens": f"{bags.vocab_size:,}" + ("" if bags.hard else ", a distribution for each bag"),
    }
    rows, lines = min(len(bags), ROWS), []
    for b in range(rows):
        start, end = (int(place) for place in bags.indptr[b : b + 2])
        shown = slice(start, min(end, start + COLUMNS))
        entries = zip(bags.token[shown].tolist(), bags.count[shown].tolist(), strict=True)
        words = ", ".join(f"{token}: {count:.4g}" for token, count in entries)
        target = bags.target[b] if bags.hard else f"{int(bags.target[b].argmax())} (most likely)"
        lines.append([b, bags.query[b], target, bags.weight[b], words + (", .." if end > shown.stop else "")])
    heads = ["bag", "query", "next token", "weight", "token: count"]
    return display.page("Bags", facts, display.table(heads, lines, rest=first(rows, len(bags), "bags"), align="left"))


def plot_bags(bags: Bags, ax: Axes | None) -> Axes:
    rows, columns = min(len(bags), PICTURE_ROWS), min(bags.n_tokens, PICTURE_COLUMNS)
    shares = np.zeros((rows, columns))
    for b in range(rows):
        own = slice(bags.indptr[b], bags.indptr[b + 1])
        token, count = bags.token[own], bags.count[own]
        shares[b, token[token < columns]] = (count / count.sum())[token < columns]
    rest = _rest(rows, len(bags), "bags", columns, bags.n_tokens)
    return _matrix(ax, shares, "share of the bag, blank where 0", "token", "bag", rest)


def layer_html(layer: Layer) -> str:
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


def plot_layer(layer: Layer, matrix: str, ax: Axes | None) -> Axes:
    checks.one_of("matrix", matrix, ("Z", "Y"))
    whole = getattr(layer, matrix)
    rows, columns = min(len(whole), PICTURE_ROWS), min(whole.shape[1], PICTURE_COLUMNS)
    rows_of_y = "unit" if layer.hidden is not None else "token" if layer.V is None else "value"
    down, across = ("query", "token") if matrix == "Z" else (rows_of_y, "column of Y")
    kind = "attention" if matrix == "Z" else "decoder"
    rest = ", ".join(
        filter(None, (first(rows, len(whole), f"rows of {matrix}"), first(columns, whole.shape[1], "columns")))
    )
    ax = display.axes(ax)
    display.picture(ax, whole[:rows, :columns], label=f"{kind} logit {matrix}", signed=True)
    ax.set(xlabel=across, ylabel=down, title=rest)
    return ax


def trajectory_html(trajectory: Trajectory) -> str:
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


def plot_trajectory(trajectory: Trajectory, quantity: str, next_token: int | None, ax: Axes | None) -> Axes:
    checks.one_of("quantity", quantity, QUANTITIES)
    dataset, title = trajectory.dataset, ""
    if quantity in ("loss", "entropy") and next_token is not None:
        raise checks.reject("next_token", f"be left out for {quantity}, which has no tokens", next_token)
    if quantity == "loss":
        lines = {"": dataset["loss"].values}
        label = "{long_name} ({units})".format(**{"long_name": "loss", "units": "nats", **dataset["loss"].attrs})
    else:
        label = _UNITS[quantity]
        lines, whole, what = _lines(trajectory, quantity, next_token)
        if next_token is None and quantity != "entropy":
            next_token = int(dataset["next_token"].values[0])
        title = "" if quantity == "entropy" else f"next token {next_token}"
        if len(lines) < whole:
            title = ", ".join(filter(None, (title, f"the {len(lines)} of {whole:,} {what} that move most")))
    ax, time = display.axes(ax), dataset["time"].values
    drawn = display.time_axis(ax, time)
    for name, values in lines.items():
        ax.plot(time[drawn], values[drawn], label=name or None)
    ax.set(ylabel=label, title=title)
    if len(lines) > 1:
        ax.legend()
    return ax


def _lines(trajectory: Trajectory, quantity: str, next_token: int | None) -> tuple[dict[str, np.ndarray], int, str]:
    """Name -> values over time of what moves most; of how many; and what they are."""
    dataset = trajectory.dataset
    if quantity == "entropy":
        table = trajectory.attention_entropy("all").values
        names = [f"next token {n}" for n in dataset["next_token"].values]
        what = "next tokens"
    else:
        first_one = int(dataset["next_token"].values[0])
        tokens, distinct, table = trajectory._of(first_one if next_token is None else next_token, quantity)
        words = np.where(distinct, "distinct", "common")
        names = [f"token {token} ({word})" for token, word in zip(tokens, words, strict=True)]
        what = "tokens"
    moved = np.ptp(table, axis=0)
    kept = np.sort(np.argsort(-moved, kind="stable")[:LINES])
    return {names[i]: table[:, i] for i in kept}, len(names), what


def _matrix(ax: Axes | None, shares: np.ndarray, label: str, across: str, down: str, rest: str) -> Axes:
    """A picture of shares, where those that are absent are blank and so told from small ones."""
    ax = display.axes(ax)
    display.picture(ax, np.where(shares > 0, shares, np.nan), label=label)
    ax.set(xlabel=across, ylabel=down, title=rest)
    return ax


def _rest(rows: int, all_rows: int, what: str, columns: int, all_columns: int) -> str:
    return ", ".join(filter(None, (first(rows, all_rows, what), first(columns, all_columns, "tokens"))))
