"""Marks in text: where a published number stands, which one it is and how it is written.

``<!--v room.study.number .2f-->0.36<!--/-->`` is invisible where Markdown is shown. After the name stands how the
number is written: a format of Python, ``?falls:rises`` for true and false, ``.3f+/-`` for a mean and a half, or a piece
of text with the study's numbers in braces. ``<!--table room.study.rows | {K} | {s:.3f} |-->`` on a line of its own,
with the table in the next lines, writes one row for each entry of a list.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dynamics.support import checks

__all__ = ["Mark", "as_text", "bare", "filled", "marks", "misplaced"]

# Code is read first: what stands in it is shown, and no mark.
CODE = r"^(?P<fence>`{3,}|:{3,}\{code|~{3,}).*?^(?P=fence)[`~:]*$|(?P<tick>`+)(?!`).*?(?<!`)(?P=tick)(?!`)"
_MARK = re.compile(
    rf"(?ms){CODE}"
    r"|<!--v\s+(?P<name>[\w.-]+)(?:\s+(?P<how>(?:(?!-->).)+?))?\s*-->(?P<text>(?:(?!<!--).)*)<!--/-->"
    r"|^<!--table\s+(?P<rows>[\w.-]+)\s+(?P<row>(?:(?!-->).)+?)\s*-->\n(?=\|[^\n]*\n\|[-:| ]+\|\n)"
)
# After a table's mark come the head, whose cells may have marks, its rule, and the rows.
_TABLE = re.compile(r"[^\n]*\n[^\n]*\n(?P<body>(?:\|[^\n]*\n)*)")
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


@dataclass(frozen=True)
class Mark:
    """A place in a text that quotes a number.

    Attributes
    ----------
    name : str
        Of the number, or of the mapping whose numbers the text has.
    how : str
        How it is written.
    text : str
        What stands there.
    start, end : int
        Where, in the whole text.
    rows : bool
        Whether it is the rows of a table.
    """

    name: str
    how: str
    text: str
    start: int
    end: int
    rows: bool = False

    def expected(self, find: Callable[[str], Any]) -> str:
        """Text that should stand there.

        Raises
        ------
        ValueError
            If there is no such number, or it cannot be written so.
        """
        number = find(self.name)
        if not self.rows:
            return as_text(number, self.how)
        if not isinstance(number, list):
            raise checks.reject("table", "be of a list of rows", self.name)
        return "".join(f"{as_text(row, self.how)}\n" for row in number)

    def differs(self, expected: str) -> bool:
        """Whether more than the breaks of lines is different."""
        return self.text.split() != expected.split()


def marks(text: str) -> list[Mark]:
    """The marks of a text, in their order."""
    found = []
    for match in _MARK.finditer(text):
        if match["name"]:
            found.append(Mark(match["name"], match["how"] or "", match["text"], *match.span("text")))
        elif match["rows"]:
            table = _TABLE.match(text, match.end())
            assert table is not None  # the mark is followed by one
            found.append(Mark(match["rows"], match["row"], table["body"], *table.span("body"), rows=True))
    return found


def misplaced(text: str) -> list[tuple[int, str]]:
    """Line and reason of each mark that would not be read as one: broken, or where Markdown takes it as a block."""
    found = []
    shown = _MARK.sub(
        lambda match: re.sub(r"[^\n]", " ", match[0]) if match["fence"] or match["tick"] else match[0], text
    )
    left = _MARK.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for number, (line, rest) in enumerate(zip(shown.split("\n"), left.split("\n"), strict=True), 1):
        if re.search(r"<!--(v|table|/)", rest):
            found.append((number, "a mark without its end, or a table that does not follow at once"))
        elif re.match(r"[ >]*((?:[-*+]|\d+\.) +)?<!--(v\s|v$|/)", line):
            found.append((number, "a mark may not begin a line, which Markdown takes as HTML: move a word"))
        elif line.startswith("|") and any("|" in comment for comment in re.findall(r"<!--(.*?)-->", line)):
            found.append((number, "a mark with | splits the cell of a table"))
        if re.search(r"<!--(?:(?!-->).)*--(?:-|(?!>))", line):
            found.append((number, "a mark has no --, nor - at its end: leave a space"))
    for match in _MARK.finditer(text):
        if match["name"] and (block := re.search(r"\n[ >]*(\n|[-+*] |1[.)] |[#|>`~])", match[0])):
            where = match.start() + block.end() - len(block[1])
            found.append(
                (
                    text.count("\n", 0, where) + 1,
                    "a line inside a mark begins as a list, a table or another block: move a word",
                )
            )
    return sorted(found)


def as_text(number: Any, how: str = "") -> str:
    """``number`` as text.

    Parameters
    ----------
    how : str
        Empty for integers and words; ``?yes:no`` for true and false; ``words`` for small integers; a format of Python,
        which may end in ``g%`` (per cent to so many digits) or in ``+/-`` (a mapping of ``mean`` and ``half``); or text
        with ``{name:how}`` for a mapping, ``{0:how}`` for a list.

    Raises
    ------
    ValueError
        If the number cannot be written so.
    """
    if "{" in how:
        return "".join(
            text + ("" if name is None else as_text(_part(number, name), spec or ""))
            for text, name, spec, _ in _parsed(how)
        )
    if how.startswith("?") or isinstance(number, bool):
        words = how[1:].split(":")
        if not isinstance(number, bool) or len(words) != 2:
            raise checks.reject("how", "be ?yes:no for true or false, and for nothing else", f"{how!r} for {number!r}")
        return words[not number]
    if how == "words":
        return _SMALL[checks.integer("number", number, minimum=0, maximum=len(_SMALL) - 1)]
    if isinstance(number, float) and not how:
        raise checks.reject("how", "say how many digits a number has", f"none for {number!r}")
    try:
        if how.endswith("+/-"):
            return f"{as_text(number['mean'], how[:-3])} +- {as_text(number['half'], how[:-3].replace('+', ''))}"
        if how.endswith("g%"):
            return f"{format(100 * number, how[:-1])}%"
        # 1e-3 and not 1e-03; and no minus before what is nothing in so many digits.
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


def filled(text: str, find: Callable[[str], Any]) -> str:
    """``text`` with what each mark should have.

    Raises
    ------
    ValueError
        If a number is not there, or cannot be written so.
    """
    for mark in sorted(marks(text), key=lambda mark: -mark.start):
        expected = mark.expected(find)
        if mark.differs(expected):
            text = text[: mark.start] + expected + text[mark.end :]
    return text


def bare(text: str) -> str:
    """``text`` without its marks, as a reader sees it; code stays as it is."""

    def shown(match: re.Match[str]) -> str:
        return match["text"] if match["name"] else "" if match["rows"] else match[0]

    return _MARK.sub(shown, text)
