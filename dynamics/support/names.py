"""Names of tokens, next tokens and queries: optional labels that no number depends on.

A name is text. The empty name means that a token has none, and is shown by its number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from dynamics.support import checks

_LONGEST = 200
_NO_NAME = re.compile("[\0\ud800-\udfff]")
# Keyword arguments of data -> the axis of a trajectory that they name.
AXES = {"token_names": "token", "class_names": "next_token", "query_names": "query"}


def checked(name: str, value: object, *, of: str, least: int, most: int | None = None) -> tuple[str, ...] | None:
    """Names as a tuple, from ``least`` to ``most`` of them (default: ``least``), no two alike; None stays None."""
    if value is None:
        return None
    most = least if most is None else most
    entries = checks.listed(name, value, f"be a sequence of names of {of}")
    for index, entry in enumerate(entries):
        if not isinstance(entry, str):
            raise checks.reject(name, "hold text", f"{checks.brief(entry)} at index {index}")
        if not is_name(entry):
            rule = f"hold text of at most {_LONGEST} characters that files can keep"
            raise checks.reject(name, rule, f"{checks.brief(entry)} at index {index}")
    if not least <= len(entries) <= most:
        numbers = f"{least}" if least == most else f"{least} to {most}"
        raise checks.reject(name, f"hold {numbers} names, one for each of the {of}", len(entries))
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if entry and entry in seen:
            raise checks.reject(name, "hold each name once", f"{entry!r} at {seen[entry]} and {index}")
        seen[entry] = index
    return tuple(str(entry) for entry in entries)


def columns_of(table: object) -> list | None:
    """The names of the columns of a table, as of pandas; None if the object is no table."""
    columns = getattr(table, "columns", getattr(table, "column_names", None))
    return None if columns is None or callable(columns) else list(columns)


def of_table(table: object) -> tuple[list[str] | None, list[str] | None]:
    """The names of the rows and of the columns of a table; None for an axis with labels that are not words."""
    columns, index = columns_of(table), getattr(table, "index", None)
    if columns is None:
        return None, None
    both = [] if index is None or callable(index) else list(index), columns
    rows, heads = (axis if axis and all(isinstance(name, str) for name in axis) else None for axis in both)
    return rows, heads


def is_name(text: str) -> bool:
    """True for text that files keep: short, without NUL (where HDF5 ends text) and without halves of a character.

    Names are short, since all names from a file take the space of the longest.
    """
    return len(text) <= _LONGEST and _NO_NAME.search(text) is None


def shown(names: Sequence[str] | None, number: int) -> str:
    """The name of a token in one line, or its number where it has none."""
    text = names[number] if names is not None and 0 <= number < len(names) else ""
    return readable(text) if text else str(number)


def readable(name: str) -> str:
    """A name in printable characters: blanks alone are put in quotes, and other characters are escaped."""
    if name.isprintable():
        return name if name.strip() else repr(name)
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in name)


def filled(names: Sequence[str], size: int) -> np.ndarray:
    """Names as an array, with empty ones at its end up to ``size`` if they are fewer."""
    out = np.full(max(size, len(names)), "", dtype=object)
    out[: len(names)] = names
    return out


def joined(name: str, parts: Sequence[Sequence[str] | None]) -> tuple[str, ...] | None:
    """The names of several data sets, which may not differ for the same number; None if no data set has names."""
    whole: list[str] = []
    for part in parts:
        whole += [""] * (len(part or ()) - len(whole))
        for index, text in enumerate(part or ()):
            if text and whole[index] not in ("", text):
                alike = f"have the same {name.replace('_', ' ')}"
                raise checks.reject("parts", alike, f"{whole[index]!r} and {text!r} for {index}")
            whole[index] = whole[index] or text
    return tuple(whole) if any(part is not None for part in parts) else None


def given(labels: object, names: Sequence[str] | None, size: int) -> list[str] | None:
    """Names to show: ``labels``, a sequence from number 0 on or a mapping by number or name, in place of ``names``."""
    if labels is None:
        return None if names is None else list(names)
    texts = [""] * size
    texts[: len(names or ())] = names or ()
    if isinstance(labels, Mapping):
        where = {text: index for index, text in enumerate(texts) if text}
        for key, label in labels.items():
            index = where.get(key, -1) if isinstance(key, str) else checks.integer("labels", key, minimum=0)
            if not 0 <= index < size:
                near = {name: (name,) for name in where} if isinstance(key, str) else {}
                as_these = f", as {checks.nearest(key, near)} are" if near else ""
                rule = f"have names of the data or numbers below {size} for keys{as_these}"
                raise checks.reject("labels", rule, checks.brief(key))
            texts[index] = checks.instance("labels", label, str, rule="hold text")
        return texts
    listed = checks.listed("labels", labels, "be a sequence of text, or a mapping from numbers or names to text")
    if len(listed) > size:
        raise checks.reject("labels", f"hold at most {size} labels", len(listed))
    texts[: len(listed)] = [checks.instance("labels", text, str, rule="hold text") for text in listed]
    return texts
