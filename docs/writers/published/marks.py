"""Marks in text: which there are, what should stand in each, and those that would not be read as one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynamics.support import checks
from yzflow.values.marks import MARK, as_text

__all__ = ["Mark", "filled", "marks", "misplaced"]

# After a table's mark come the head, whose cells may have marks, its rule, and the rows.
_TABLE = re.compile(r"[^\n]*\n[^\n]*\n(?P<body>(?:\|[^\n]*\n)*)")


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
    for match in MARK.finditer(text):
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
    shown = MARK.sub(
        lambda match: re.sub(r"[^\n]", " ", match[0]) if match["fence"] or match["tick"] else match[0], text
    )
    left = MARK.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for number, (line, rest) in enumerate(zip(shown.split("\n"), left.split("\n"), strict=True), 1):
        if re.search(r"<!--(v|table|/)", rest):
            found.append((number, "a mark without its end, or a table that does not follow at once"))
        elif re.match(r"[ >]*((?:[-*+]|\d+\.) +)?<!--(v\s|v$|/)", line):
            found.append((number, "a mark may not begin a line, which Markdown takes as HTML: move a word"))
        elif line.startswith("|") and any("|" in comment for comment in re.findall(r"<!--(.*?)-->", line)):
            found.append((number, "a mark with | splits the cell of a table"))
        if re.search(r"<!--(?:(?!-->).)*--(?:-|(?!>))", line):
            found.append((number, "a mark has no --, nor - at its end: leave a space"))
    for match in MARK.finditer(text):
        if match["name"] and (block := re.search(r"\n[ >]*(\n|[-+*] |1[.)] |[#|>`~])", match[0])):
            where = match.start() + block.end() - len(block[1])
            found.append(
                (
                    text.count("\n", 0, where) + 1,
                    "a line inside a mark begins as a list, a table or another block: move a word",
                )
            )
    return sorted(found)


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
