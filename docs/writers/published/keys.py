"""Keys of a page: what stands before each mark, the block that names the numbers, and numbers that have no key.

What stands before a mark ends with what its key says, as a whole number or word. The block is the page's last lines; in
a module they are comments:

    <!-- numbers
    time: scan_and_snap.inside.transition_time .0f
    assert: scan_and_snap.inside.rises: the logit rises
    typed: 2 16 (the paper's setting)
    -->
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

from dynamics.support import checks
from published.premises import holds
from yzflow.values.marks import CODE, MARK, SMALL, as_text, bare

__all__ = ["NUMBER", "Page"]

Find: TypeAlias = Callable[[str], Any]
Problem: TypeAlias = tuple[int, str, str]  # line, key, what is wrong

# A sign belongs to a number, but after a letter, a digit or a mark.
_DIGITS = r"(?:(?<!-->)[-+\N{MINUS SIGN}])?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?%?"
NUMBER = re.compile(rf"(?<![\w.])(?:{_DIGITS}(?:x|m?s|[kMG]B)?|(?<!:)\.\d+%?)(?!\w)")
_WHOLE = r"(?<![\w.])(?<!\d,)"
_GOES_ON = re.compile(r"[\w%]|[.,]\d")
_TABLE = re.compile(r"[^\n]*\n[^\n]*\n(?P<body>(?:\|[^\n]*(?:\n|\Z))*)")  # a head, its rule, the rows
_HIDDEN = re.compile(
    rf"(?ms){CODE}|<!--.*?-->|\$\$.*?\$\$|\$[^$\n]+\$|\]\([^)\s]*\)|\]\[[^\]]*\]"
    r"|^\[[^\]]+\]: .*?$|^\([\w-]+\)=$|^:[\w-]+:.*?$|</?[A-Za-z][^>\n]*>"
)
# Numbers that are no results: of headings and items of lists, of what is cited, of formulas; versions; zero and one.
_KINDS = re.compile(
    r"(?m)^(?:#+ \d+|[ \t]*\d)\. "
    r"|\((?:\d+(?:\s*(?:,|to|and|-)\s*\d+)*)\)"
    r"|(?:Theorem|Lemma|Corollar(?:y|ie)|Remark|Assumption|[Ff]igure|[Ss]ection|[Ff]inding|Table|Equation|equation|Question|question"
    r"|Proposition|Definition|[Pp]art|panel|level)(?P<several>s)? \(?\d+(?:\.\d+)*(?:\s?\([a-z]\))*\)?"
    r"(?(several)(?:(?:,| and| to|, and)\s\(?\d+(?:\.\d+)*\)?(?:\s?\([a-z]\))*)*)"
    r"|Figs?\. \d+|arXiv \d{4}\.\d{4,5}|Python \d\.\d+|\d-layer|\b[1-3]D\b"
    r"|\^\(?-?\d*\.?\d+\)?|(?<![\w.])\d+\^(?=[a-zA-Z])|(?<![\w.])\d/\d(?![\w.])"
    r"|(?<![\w.,])[01](?![\w%]|[.,]\d)"
)


# A premise, and after a colon the words that it holds.
_ASSERT = re.compile(r"""(?P<premise>(?:"[^"]*"|'[^']*'|[^:])*)(?:: (?P<words>.*))?""")
_CURE = "python -m yzflow.values write, or type the word"
_KEY = "give it a key, or a `typed:` in the block"


class _Entry(NamedTuple):
    """A line of the block: a key's name and form, a premise, or numbers that are typed."""

    line: int
    key: str
    text: str

    @property
    def form(self) -> tuple[str, str]:
        name, _, how = self.text.partition(" ")
        return name, how.strip()


class _Value(NamedTuple):
    """The text before a mark or below that of a table, if there is any, and the one that should be there."""

    line: int
    key: str
    span: tuple[int, int] | None
    there: str
    expected: str
    rows: bool

    @property
    def right(self) -> bool:
        return self.span is not None and self.there.split() == self.expected.split()


class Page:
    """A text with its marks and its block.

    Parameters
    ----------
    text : str
        A page in Markdown, or a module.
    module : bool
        True for a module, whose strings that readers see are its prose.
    """

    def __init__(self, text: str, *, module: bool = False) -> None:
        self.text, self.module = text, module
        matches = [match for match in MARK.finditer(text) if not (match["fence"] or match["tick"])]
        self._marks = [match for match in matches if match["block"] is None]
        self._problems = [
            (self._line(match.start()), "mark", "it is no whole mark, table or block: see docs/howto/values.md")
            for match in re.finditer(r"<!--\s*(?:=|v |/|table|numbers)", MARK.sub(_blank, text))
        ]
        self._entries: list[_Entry] = []
        for block in (match for match in matches if match["block"] is not None):
            for line, written in enumerate(block["block"].splitlines(), self._line(block.start("block"))):
                key, _, rest = written.removeprefix("# ").partition(":")
                if not re.fullmatch(r"[\w.-]+", key) or not rest.strip():
                    self._problems.append((line, key, f"a line is `key: name form`, but got {written!r}"))
                self._entries.append(_Entry(line, key, rest.strip()))
        self._keys: dict[str, _Entry] = {}
        for entry in self._entries:
            if entry.key in self._keys:
                self._problems.append((entry.line, entry.key, "the key stands twice in the block: leave one"))
            if entry.key not in ("assert", "typed"):
                self._keys[entry.key] = entry

    def _line(self, start: int) -> int:
        return self.text.count("\n", 0, start) + 1

    def _value(self, mark: re.Match[str], find: Find) -> _Value:
        """The text at a mark, and the one that should be there.

        Raises
        ------
        ValueError
            If the key has no line, or its number is not stored or cannot be written so.
        """
        key = mark["key"] or mark["rows"]
        if mark["rows"]:
            rows = checks.listed("table", find(key), f"be of a list of rows, as {key} is not")
            expected = "".join(f"{as_text(row, mark['row'])}\n" for row in rows)
            table = _TABLE.match(self.text, mark.end())
            assert table is not None  # the mark is followed by one
            span: tuple[int, int] | None = table.span("body")
        else:
            if key not in self._keys:
                raise checks.reject("key", "stand in the block at the page's foot", key)
            name, how = self._keys[key].form
            expected = as_text(find(name), how)
            shape = _shape(expected, how)
            start = max(0, mark.start() - 2 * len(shape))
            before = re.compile(rf"{_WHOLE}(?:{shape})\Z").search(self.text, start, mark.start())
            span = before.span() if before and not _GOES_ON.match(self.text, mark.end()) else None
        there = self.text[slice(*span)] if span else self.text[max(0, mark.start() - len(expected) - 10) : mark.start()]
        line = self._line(span[0] if span and mark["rows"] else mark.start())
        return _Value(line, key, span, there, expected, bool(mark["rows"]))

    def check(self, find: Find) -> list[Problem]:
        """All faults: values, keys, premises, and numbers without a key."""
        problems = list(self._problems)
        for mark in self._marks:
            try:
                value = self._value(mark, find)
            except ValueError as error:
                problems.append((self._line(mark.start()), mark["key"] or mark["rows"], str(error)))
                continue
            if value.rows:
                problems += _check_rows(value)
            elif not value.right:
                name = self._keys[value.key].form[0]
                problem = f"the text has {value.there!r}, and {name} is {value.expected!r}: {_CURE}"
                problems.append((value.line, value.key, problem))
        for key in set(self._keys) - {mark["key"] for mark in self._marks}:
            problems.append((self._keys[key].line, key, "no mark has the key: delete its line"))
        shown = " ".join(re.sub(r'"\s*\n\s*[rf]*"', "", bare(self.text)).split())
        for entry in self._entries:
            if entry.key != "assert":
                continue
            try:
                if problem := _premise(entry.text, shown, find):
                    problems.append((entry.line, "assert", problem))
            except ValueError as error:
                problems.append((entry.line, "assert", str(error)))
        return sorted([*problems, *self.unkeyed(find)])

    def written(self, find: Find) -> str:
        """The text with the stored digits before each mark, and the stored rows of each table.

        Raises
        ------
        ValueError
            If a key has no number, or a word has to change, which a person types.
        """
        text = self.text
        for value in (self._value(mark, find) for mark in reversed(self._marks)):
            if value.span is None:
                rule = f"stand after {value.expected!r}, whose words a person types"
                raise checks.reject(value.key, rule, repr(value.there))
            if not value.right:
                text = text[: value.span[0]] + value.expected + text[value.span[1] :]
        return text

    def unkeyed(self, find: Find) -> list[Problem]:
        """Numbers that are in no mark, of no kind and not typed on purpose; and typed ones that stand nowhere."""
        text, problems, typed, seen = self.text, list[Problem](), dict[str, int](), set[str]()
        for mark in reversed(self._marks):
            with suppress(ValueError):  # `check` says so
                if span := self._value(mark, find).span:
                    text = text[: span[0]] + re.sub(r"[^\n]", "\0", text[slice(*span)]) + text[span[1] :]
        for entry in (entry for entry in self._entries if entry.key == "typed"):
            numbers = entry.text.partition("(")[0].split()
            if not re.fullmatch(r"[^(]+\(.+\)", entry.text) or not all(map(NUMBER.fullmatch, numbers)):
                problems.append((entry.line, "typed", f"a line is `typed: numbers (reason)`, but got {entry.text!r}"))
            typed |= dict.fromkeys(numbers, entry.line)
        for first, piece in _source(text) if self.module else [(1, text)]:
            prose = _KINDS.sub(_blank, _HIDDEN.sub(_blank, piece))
            for number in NUMBER.finditer(prose):
                seen.add(number[0])
                if number[0] not in typed:
                    line = first + prose.count("\n", 0, number.start())
                    context = " ".join(prose[max(0, number.start() - 40) : number.end() + 30].replace("\0", "").split())
                    problems.append((line, number[0], f"a number without a key, in {context!r}: {_KEY}"))
        for unseen in typed.keys() - seen:
            problems.append((typed[unseen], unseen, "typed, and stands nowhere without a key: delete it"))
        return problems


def _premise(text: str, shown: str, find: Find) -> str:
    """Problem of a premise and its words, which stand once in a page; empty if there is none."""
    said = _ASSERT.fullmatch(text)
    if not said:
        return f"a line is `assert: premise: words`, but got {text!r}"
    if not holds(said["premise"], find):
        return f"{said['premise']} is false: read the sentence that it holds"
    times = shown.count(said["words"]) if said["words"] else 1
    if times == 0:
        return f"{said['words']!r} stands nowhere: read the sentence, or delete the line"
    return f"{said['words']!r} stands {times} times: say more of the words" if times > 1 else ""


def _check_rows(value: _Value) -> Iterator[Problem]:
    there, wanted = value.there.splitlines(), value.expected.splitlines()
    if len(there) != len(wanted):
        yield value.line, value.key, f"the table has {len(there)} rows, and {len(wanted)} are stored: {_CURE}"
    for line, (row, stored) in enumerate(zip(there, wanted, strict=False), value.line):
        if row.split() != stored.split():
            yield line, value.key, f"the text has {row}, and stored is {stored}: {_CURE}"


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _shape(expected: str, how: str) -> str:
    """Pattern of texts that have other numbers in place of those in ``expected``, and the same words."""
    if how == "words":  # not the end of another, as in twenty-three; two<!--=a-->-three<!--=b--> is a range
        return rf"(?<!\w-)(?:{'|'.join(SMALL)})"
    pieces = re.split(f"({_DIGITS})", " ".join(expected.split()))
    return "".join(_DIGITS if i % 2 else re.escape(piece).replace(r"\ ", r"\s+") for i, piece in enumerate(pieces))


def _is_prose(text: str) -> bool:
    # A formula is LaTeX as a whole; what has no space is a name or a file.
    return bool(re.search(r"\d", text)) and " " in text.strip() and "\\" not in _HIDDEN.sub("", text)


def _source(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of strings that readers see: of more than a word, captions and the help of commands."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(ast.parse(text.replace("\0", "_"))):  # a docstring comes after what it describes
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                skipped.add(first.value)
                seen = {
                    ast.unparse(named).split("(")[0].split(".")[-1] for named in getattr(node, "decorator_list", ())
                }
                if seen & {"styled", "command", "group"} and isinstance(first.value.value, str):
                    yield first.lineno, first.value.value.split("\n\n    Param")[0]
        elif isinstance(node, ast.Constant) and node not in skipped and _is_prose(str(node.value)):
            yield node.lineno, str(node.value)
