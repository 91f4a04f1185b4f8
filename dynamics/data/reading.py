"""Data from a file: classes as a table or as JSON, bags that were saved, or a text."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.bags import Bags
from dynamics.data.sequence_classes import SequenceClasses
from dynamics.data.text import TextCorpus
from dynamics.support import checks, names

_HEAD = ("next_token", "query")
_KEYS = ("probabilities", "counts", "query", "vocab_size", "class_weights", "token_names", "class_names")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
TEXTS = (".txt", ".tokens", ".md")


def read_data(
    path: str | os.PathLike, *, length: int | None = None, vocab_size: int | None = None
) -> SequenceClasses | Bags:
    """Read training data from a file; its ending says what kind of data it holds.

    ``.csv`` and ``.tsv`` hold a table with a line for each class. The columns are ``next_token`` and ``query`` (names),
    then ``weight``, which may be left out, then a column for each contextual token, headed by the token's name. Cells
    are counts or probabilities; an empty cell is 0. Each line, and the weights, are scaled to sum to one. A query that
    heads no column is a token that is never contextual.

    ``.json`` holds an object with the arguments of `SequenceClasses` as keys; only ``probabilities`` and ``query`` are
    required. ``counts`` may replace ``probabilities`` and are scaled to sum to one; queries may be names.

    ``.npz`` holds bags that `Bags.save` wrote. ``.txt``, ``.tokens`` and ``.md`` hold a text; all its windows are
    taken.

    Parameters
    ----------
    path : path-like
    length : int, optional
        T, the length of the windows of a text: required for a text, refused for any other file.
    vocab_size : int, optional
        M, the number of next tokens, in place of the file's own; for a text, the size of its vocabulary.

    Raises
    ------
    ValueError
        If the file holds something else; the message says where.
    FileNotFoundError
        If there is no such file.
    """
    if (columns := names.columns_of(path)) is not None:
        rule = "be the path of a file; a table in memory goes to SequenceClasses"
        raise checks.reject("path", rule, f"{type(path).__name__} with {checks.brief(columns)}")
    file = checks.path("path", path)
    kind = file.suffix.lower()
    if kind in TEXTS:
        if length is None:
            raise checks.reject("length", "be given for a text, whose windows are of so many tokens", length)
        with _named(file):
            return TextCorpus(file, vocab_size=vocab_size).windows(length)
    if length is not None:
        raise checks.reject("length", "be left out but for a text", length)
    with _named(file):
        if kind in _DELIMITERS:
            return _table(file, _DELIMITERS[kind], vocab_size)
        if kind == ".json":
            return _json(file, vocab_size)
    if kind == ".npz":
        if vocab_size is not None:
            raise checks.reject("vocab_size", "be left out for bags, which have it", vocab_size)
        return Bags.load(file)
    endings = ", ".join((*_DELIMITERS, ".json", ".npz", *TEXTS))
    raise checks.reject("path", f"end in one of {endings}", repr(os.fspath(path)))


def _refused(file: Path, rule: str, got: object) -> ValueError:
    return checks.reject(os.fspath(file), rule, got)


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Add the file's name to errors about its content."""
    try:
        yield
    except ValueError as error:
        if os.fspath(file) in str(error):
            raise
        raise ValueError(f"{error}, in {os.fspath(file)!r}") from None


def _text(file: Path, what: str) -> str:
    rule = f"be {what} in UTF-8, as which it can be saved anew"
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(file, rule, f"{error.reason} at position {error.start}") from None
    if "\0" in text:
        raise _refused(file, rule, f"NUL at position {text.index(chr(0))}, as in UTF-16")
    return text


def _lines(file: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that hold something, with their numbers."""
    reader = csv.reader(io.StringIO(_text(file, "a table")), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise _refused(file, "be a table", f"{error} in line {reader.line_num}") from None


def _misread(file: Path, head: list[str], delimiter: str) -> ValueError:
    """The error for a table that begins with other heads, with its cure."""
    begins = delimiter.join(head[:3])
    endings = {mark: ending for ending, mark in _DELIMITERS.items() if mark != delimiter}
    other = next((mark for mark in (*endings, ";") if mark in begins), None)
    if other is not None:
        cure = f": name it {endings[other]}" if other in endings else ": save it with commas, and points in numbers"
    elif tuple(head[1:3]) == _HEAD:
        cure = ": leave out the column before these, as table.to_csv(.., index=False) does"
    elif {re.sub(r"\W+", "_", name.lower()) for name in head} >= set(_HEAD):
        cure = ": in this order and spelling"
    else:
        cure = ""
    return _refused(file, f"begin with a line of heads, {_HEAD[0]} and {_HEAD[1]} first", f"{begins!r}{cure}")


def _table(file: Path, delimiter: str, vocab_size: int | None) -> SequenceClasses:
    lines = list(_lines(file, delimiter))
    head = lines[0][1] if lines else []
    if tuple(head[:2]) != _HEAD:
        raise _misread(file, head, delimiter)
    first = 3 if head[2:3] == ["weight"] else 2
    token_names, class_names, queries, weights, table = head[first:], [], [], [], []
    for number, row in lines[1:]:
        if len(row) != len(head):
            raise _refused(file, f"have {len(head)} cells in each line", f"{len(row)} in line {number}")
        class_names.append(row[0])
        queries.append(row[1])
        cells = [_number(file, cell, number, name) for cell, name in zip(row[2:], head[2:], strict=True)]
        table.append(cells[first - 2 :])
        weights.append(cells[0] if first == 3 else 1.0)
    if "" in token_names or "" in queries:
        raise _refused(file, "name each query and each column", "an empty name")
    size = len(token_names)
    further = [query for query in dict.fromkeys(queries) if query not in set(token_names)]
    return SequenceClasses(
        _scaled(table, size),
        _numbers(queries, [*token_names, *further]),
        vocab_size=max(len(table), size + len(further)) if vocab_size is None else vocab_size,
        class_weights=_scaled([weights], len(weights))[0],
        token_names=[*token_names, *further],
        class_names=class_names,
    )


def _number(file: Path, cell: str, line: int, name: str) -> float:
    try:
        value = float(cell or 0) if "_" not in cell else np.nan  # Python reads 1_000
    except ValueError:
        value = np.nan
    if not 0 <= value < np.inf:
        cure = ": write 1000 and 0.5, with a point and no other marks" if any(map(str.isdigit, cell)) else ""
        raise _refused(file, "hold numbers from zero up", f"{cell!r} in line {line}, column {name!r}{cure}")
    return value


def _scaled(rows: Sequence[Sequence[float]], size: int) -> np.ndarray:
    """Scale each row to sum to one; a row of zeros stays, and a later check refuses it and says where it is."""
    table = np.array(rows, dtype=np.float64).reshape(len(rows), size)
    largest = table.max(axis=1, keepdims=True, initial=0.0)
    table /= np.where(largest > 0, largest, 1.0)  # the sum of large entries might overflow
    total = table.sum(axis=1, keepdims=True)
    return table / np.where(total > 0, total, 1.0)


def _numbers(queries: Sequence[Any], known: Sequence[str]) -> list[Any]:
    """Replace names among the queries by the numbers of the tokens."""
    where = {name: number for number, name in enumerate(known) if name}
    for query in queries:
        if isinstance(query, str) and query not in where:
            near = f", as {checks.nearest(query, {name: (name,) for name in where})} are" if where else ""
            raise checks.reject("query", f"be in `token_names`{near}", repr(query))
    return [where[query] if isinstance(query, str) else query for query in queries]


def _json(file: Path, vocab_size: int | None) -> SequenceClasses:
    try:
        entries = json.loads(_text(file, "JSON"))
    except json.JSONDecodeError as error:
        raise _refused(file, "be JSON", f"{error.msg} in line {error.lineno}") from None
    except RecursionError:
        raise _refused(file, "be JSON", "too many brackets within each other") from None
    if not isinstance(entries, dict):
        raise _refused(file, "hold an object of JSON", type(entries).__name__)
    for key in entries:
        if key not in _KEYS:
            raise _refused(file, f"have keys such as {checks.nearest(key, {k: (k,) for k in _KEYS})}", repr(key))
    if ("probabilities" in entries) == ("counts" in entries) or "query" not in entries:
        raise _refused(file, "hold `query`, and either `probabilities` or `counts`", repr(sorted(entries)))
    if "counts" in entries:
        counts = checks.non_negative_array("counts", entries.pop("counts"), ndim=2)
        entries["probabilities"] = _scaled(counts, counts.shape[1])
    queries = checks.listed("query", entries.pop("query"), "be a list of numbers or names of tokens")
    tokens = names.checked("token_names", entries.get("token_names"), of="tokens", least=0, most=2**31)
    if vocab_size is not None:
        entries["vocab_size"] = vocab_size
    return SequenceClasses(entries.pop("probabilities"), _numbers(queries, tokens or ()), **entries)
