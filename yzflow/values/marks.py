"""Marks in text: each says by a key which published number stands before it.

``38<!--=time-->`` is 38 where Markdown is shown, since its mark is a comment. The block ``<!-- numbers .. -->`` at the
foot of the page says which number has the key ``time``. ``<!--table room.study.rows | {K} | {s:.3f} |-->`` on a line of
its own, with the table in the next lines, writes one row for each entry of a list.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

from dynamics.support import checks

__all__ = ["CODE", "MARK", "SMALL", "as_text", "bare"]

# Code is matched first, so that a mark in code is shown as it is; between ticks it ends with the paragraph.
CODE = (
    r"^ *(?P<fence>`{3,}|:{3,}\{code|~{3,}).*?^ *(?P=fence)[`~:]*$"
    r"|(?P<tick>`+)(?!`)(?:(?!\n\n).)*?(?<!`)(?P=tick)(?!`)"
)
# The block of a module stands in comments.
MARK = re.compile(
    rf"(?ms){CODE}"
    r"|<!--=(?P<key>[\w.-]+)-->"
    r"|\n*^(?P<hash>#\ )?<!--\ numbers\n(?P<block>(?:(?!-->).)*)^(?(hash)#\ )-->\s*\Z"
    r"|^<!--table\s+(?P<rows>[\w.-]+)\s+(?P<row>(?:(?!-->).)+?)\s*-->\n(?=\|[^\n]*\n\|[-:| ]+\|\n)"
)
SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def as_text(number: Any, how: str = "") -> str:
    """``number`` as text.

    Parameters
    ----------
    how : str
        Empty for integers and words; ``words`` for small integers; a format of Python, which may end in ``g%`` (per
        cent to so many digits) or in ``+/-`` (a mapping of ``mean`` and ``half``); or, for the row of a table, text
        with ``{name:how}`` for a mapping, ``{0:how}`` for a list.

    Raises
    ------
    ValueError
        If the number cannot be written in this form.
    """
    if "{" in how:
        return "".join(
            text + ("" if name is None else as_text(_part(number, name), spec or ""))
            for text, name, spec, _ in _parsed(how)
        )
    if isinstance(number, bool):
        raise checks.reject("how", "write a number; what is true or false is a word with an assert", repr(number))
    if how == "words":
        return SMALL[checks.integer("number", number, minimum=0, maximum=len(SMALL) - 1)]
    if isinstance(number, float) and not how:
        raise checks.reject("how", "say how many digits a number has", f"none for {number!r}")
    try:
        if how.endswith("+/-"):
            return f"{as_text(number['mean'], how[:-3])} +- {as_text(number['half'], how[:-3].replace('+', ''))}"
        if how.endswith("g%"):
            return f"{format(100 * number, how[:-1])}%"
        # 1e-3 and not 1e-03; and no minus before a number that is rounded to zero.
        text = re.sub(r"e([+-])0*(\d)", lambda match: "e" + match[1].strip("+") + match[2], format(number, how))
        return re.sub(r"^-(?=0(\.0*)?%?$)", "", text)
    except (TypeError, KeyError, ValueError) as error:
        raise checks.reject("how", "be a format for this number", f"{how!r} for {checks.brief(number)}") from error


def _parsed(how: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(string.Formatter().parse(how))
    except ValueError as error:
        raise checks.reject("how", "have braces in pairs", repr(how)) from error


def _part(number: Any, name: str) -> Any:
    """Look up a name with dots in a mapping, or in a list."""
    for key in name.split("."):
        if isinstance(number, Mapping) and key in number:
            number = number[key]
        elif isinstance(number, list) and key.isdecimal() and int(key) < len(number):
            number = number[int(key)]
        else:
            raise checks.reject("how", "name numbers that are there", repr(name))
    return number


def bare(text: str) -> str:
    """``text`` without its marks, as a reader sees it; code stays as it is."""

    def shown(match: re.Match[str]) -> str:
        if match["fence"] or match["tick"]:
            return match[0]
        return "\n" if match["block"] is not None else ""

    return MARK.sub(shown, text)
