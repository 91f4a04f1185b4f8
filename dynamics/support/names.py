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
    given = checks.listed(name, value, f"be a sequence of names of {of}")
    for index, one in enumerate(given):
        if not isinstance(one, str):
            raise checks.reject(name, "hold text", f"{checks.brief(one)} at index {index}")
        if not is_name(one):
            rule = f"hold text of at most {_LONGEST} characters that files can keep"
            raise checks.reject(name, rule, f"{checks.brief(one)} at index {index}")
    if not least <= len(given) <= most:
        numbers = f"{least}" if least == most else f"{least} to {most}"
        raise checks.reject(name, f"hold {numbers} names, one for each of the {of}", len(given))
    seen: dict[str, int] = {}
    for index, one in enumerate(given):
        if one and one in seen:
            raise checks.reject(name, "hold each name once", f"{one!r} at {seen[one]} and {index}")
        seen[one] = index
    return tuple(str(one) for one in given)


def columns_of(table: object) -> list | None:
    """The names of the columns of a table, as of pandas; None if the object is no table."""
    found = getattr(table, "columns", getattr(table, "column_names", None))
    return None if found is None or callable(found) else list(found)


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
    own = names[number] if names is not None and 0 <= number < len(names) else ""
    return readable(own) if own else str(number)


def readable(name: str) -> str:
    """A name in printable characters: blanks alone are put in quotes, and other characters are escaped."""
    if name.isprintable():
        return name if name.strip() else repr(name)
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in name)


def filled(names: Sequence[str], size: int) -> np.ndarray:
    """Names as an array, with empty ones at its end up to ``size`` if they are fewer."""
    out = np.full(max(size, len(names)), "", dtype=object)
    out[: len(names)] = names
    return out


def joined(name: str, parts: Sequence[Sequence[str] | None]) -> tuple[str, ...] | None:
    """The names of several data sets, which may not differ for the same number; None if no data set has names."""
    found: list[str] = []
    for part in parts:
        found += [""] * (len(part or ()) - len(found))
        for index, one in enumerate(part or ()):
            if one and found[index] not in ("", one):
                alike = f"have the same {name.replace('_', ' ')}"
                raise checks.reject("parts", alike, f"{found[index]!r} and {one!r} for {index}")
            found[index] = found[index] or one
    return tuple(found) if any(part is not None for part in parts) else None


def given(labels: object, names: Sequence[str] | None, size: int) -> list[str] | None:
    """Names to show: ``labels``, a sequence from number 0 on or a mapping by number or name, in place of ``names``."""
    if labels is None:
        return None if names is None else list(names)
    own = [""] * size
    own[: len(names or ())] = names or ()
    if isinstance(labels, Mapping):
        where = {one: index for index, one in enumerate(own) if one}
        for key, label in labels.items():
            index = where.get(key, -1) if isinstance(key, str) else checks.integer("labels", key, minimum=0)
            if not 0 <= index < size:
                near = {name: (name,) for name in where} if isinstance(key, str) else {}
                as_these = f", as {checks.nearest(key, near)} are" if near else ""
                rule = f"have names of the data or numbers below {size} for keys{as_these}"
                raise checks.reject("labels", rule, checks.brief(key))
            own[index] = checks.instance("labels", label, str, rule="hold text")
        return own
    listed = checks.listed("labels", labels, "be a sequence of text, or a mapping from numbers or names to text")
    if len(listed) > size:
        raise checks.reject("labels", f"hold at most {size} labels", len(listed))
    own[: len(listed)] = [checks.instance("labels", one, str, rule="hold text") for one in listed]
    return own
