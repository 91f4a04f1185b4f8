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
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dynamics.support import checks
from published.premises import holds
from yzflow.values.marks import CODE, MARK, SMALL, as_text, bare

__all__ = ["NUMBER", "Page"]

Find: TypeAlias = Callable[[str], Any]
Problem: TypeAlias = tuple[int, str, str]  # line, key, what is wrong

# A sign belongs to a number, but after a letter, a digit or a mark.
_DIGITS = r"(?:(?<!-->)[-+])?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?%?"
NUMBER = re.compile(rf"(?<![\w.]){_DIGITS}(?!\w)")
_WHOLE = r"(?:(?<=-->[-+])|(?<!\W[-+]))(?<![\w.])(?<!\d,)"
_HIDDEN = re.compile(
    rf"(?ms){CODE}|<!--.*?-->|\$\$.*?\$\$|\$[^$\n]+\$|\]\([^)\s]*\)|\]\[[^\]]*\]"
    r"|^\[[^\]]+\]: .*?$|^\([\w-]+\)=$|^:[\w-]+:.*?$|</?[A-Za-z][^>\n]*>"
)
# Numbers that are no results: of headings and items of lists, of what is cited, of formulas; versions; zero and one.
_KINDS = re.compile(
    r"(?m)^(?:#+ |\s*)\d+\. "
    r"|\((?:\d+(?:\s*(?:,|to|and|-)\s*\d+)*)\)"
    r"|(?:Theorem|Lemma|Corollar(?:y|ie)|Remark|Assumption|[Ff]igure|[Ss]ection|[Ff]inding|Table|[Ee]quation|[Qq]uestion"
    r"|Proposition|Definition|[Pp]art|panel|level)s? \(?\d+(?:\.\d+)*(?:\s?\([a-z]\))*\)?"
    r"(?:(?:,| and| to|, and)\s\(?\d+(?:\.\d+)*\)?(?:\s?\([a-z]\))*)*"
    r"|Figs?\. \d+|arXiv \d{4}\.\d{4,5}|Python \d\.\d+|\d-layer|\b[1-3]D\b"
    r"|\^\(?-?\d+\)?|(?<![\w.])\d+\^(?=[a-zA-Z])|(?<![\w.])\d/\d(?![\w.])"
    r"|(?<![\w.,])[01](?![\w%]|[.,]\d)"
)


@dataclass(frozen=True)
class _Entry:
    """A line of the block: a key's number and form, a premise, or numbers that are typed."""

    line: int
    key: str
    text: str


@dataclass
class Page:
    """A text with its marks and its block.

    Attributes
    ----------
    text : str
        A page in Markdown, or a module.
    module : bool
        True for a module, whose strings that readers see are its prose.
    """

    text: str
    module: bool = False
    _entries: list[_Entry] = field(default_factory=list)
    _problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._marks = [match for match in MARK.finditer(self.text) if not (match["fence"] or match["tick"])]
        rest = MARK.sub(_blank, self.text)
        for match in re.finditer(r"<!--(?:=|v |/|table| numbers)", rest):
            self._fault(match.start(), "mark", "it is no whole mark, table or block: see docs/howto/values.md")
        for block in (match for match in self._marks if match["block"] is not None):
            first = self._line(block.start("block"))
            for line, entry in enumerate(block["block"].splitlines(), first):
                key, colon, text = entry.removeprefix("# ").partition(":")
                if not re.fullmatch(r"[\w.-]+", key) or not colon or not text.strip():
                    self._problems.append((line, key, f"a line is `key: name form`, but got {entry!r}"))
                else:
                    self._entries.append(_Entry(line, key, text.strip()))
        self._keys: dict[str, _Entry] = {}
        for entry in self._of():
            if entry.key in self._keys:
                self._problems.append((entry.line, entry.key, "the key stands twice in the block: leave one"))
            self._keys[entry.key] = entry

    def _line(self, start: int) -> int:
        return self.text.count("\n", 0, start) + 1

    def _fault(self, start: int, key: str, problem: str) -> None:
        self._problems.append((self._line(start), key, problem))

    def _of(self, kind: str = "") -> list[_Entry]:
        kinds = ("assert", "typed")
        return [entry for entry in self._entries if (entry.key == kind if kind else entry.key not in kinds)]

    def _expected(self, match: re.Match[str], find: Find) -> str:
        """Text that should stand before a mark, or the rows after the mark of a table."""
        if match["rows"]:
            rows = find(match["rows"])
            if not isinstance(rows, list):
                raise checks.reject("table", "be of a list of rows", match["rows"])
            return "".join(f"{as_text(row, match['row'])}\n" for row in rows)
        if match["key"] not in self._keys:
            raise checks.reject("key", "stand in the block at the page's foot", match["key"])
        name, how = self._form(match["key"])
        return as_text(find(name), how)

    def _form(self, key: str) -> tuple[str, str]:
        name, _, how = self._keys[key].text.partition(" ")
        return name, how.strip()

    def _before(self, match: re.Match[str], pattern: str) -> tuple[int, int] | None:
        """Start and end of the text directly before a mark that is a pattern as a whole."""
        start = max(0, match.start() - 2 * len(pattern) - 40)
        before = re.compile(rf"{_WHOLE}(?:{pattern})\Z").search(self.text, start, match.start())
        ends = not re.compile(r"[\w%]|[.,]\d").match(self.text, match.end())
        return before.span() if before and ends else None

    def _rows(self, match: re.Match[str]) -> tuple[int, int]:
        table = re.compile(r"[^\n]*\n[^\n]*\n(?P<body>(?:\|[^\n]*\n)*)").match(self.text, match.end())
        assert table is not None  # the mark is followed by one
        return table.span("body")

    def check(self, find: Find) -> list[Problem]:
        """What is wrong: values, keys, premises, and numbers without a key."""
        problems = list(self._problems)
        for match in (match for match in self._marks if match["key"] or match["rows"]):
            line, key = self._line(match.start()), match["key"] or match["rows"]
            try:
                expected = self._expected(match, find)
            except ValueError as error:
                problems.append((line, key, str(error)))
                continue
            if match["rows"]:
                problems += self._check_rows(match, expected)
            elif not self._before(match, _literal(expected)):
                before = self.text[max(0, match.start() - len(expected) - 10) : match.start()]
                problems.append(
                    (line, key, f"the text has {before!r}, and {self._form(key)[0]} is {expected!r}: {_CURE}")
                )
        used = {match["key"] for match in self._marks}
        problems += [
            (entry.line, key, "no mark has the key: delete its line")
            for key, entry in self._keys.items()
            if key not in used
        ]
        shown = " ".join(re.sub(r'"\s*\n\s*[rf]*"', "", bare(self.text)).split())
        for entry in self._of("assert"):
            premise, words = _ASSERT.fullmatch(entry.text).groups("")  # type: ignore[union-attr]  # it takes any text
            try:
                if not holds(premise, find):
                    problems.append((entry.line, "assert", f"{premise} is false: read the sentence that it holds"))
                elif words not in shown:
                    problems.append(
                        (entry.line, "assert", f"{words!r} stands nowhere: read the sentence, or delete this")
                    )
            except ValueError as error:
                problems.append((entry.line, "assert", str(error)))
        return sorted([*problems, *self.unkeyed(find)])

    def _check_rows(self, match: re.Match[str], expected: str) -> Iterator[Problem]:
        start, end = self._rows(match)
        there, wanted, line = self.text[start:end].splitlines(), expected.splitlines(), self._line(start)
        if len(there) != len(wanted):
            yield line, match["rows"], f"the table has {len(there)} rows, and {len(wanted)} are stored: {_CURE}"
        for i, pair in enumerate(zip(there, wanted, strict=False)):
            if pair[0].split() != pair[1].split():
                yield line + i, match["rows"], f"the text has {pair[0]}, and stored is {pair[1]}: {_CURE}"

    def written(self, find: Find) -> str:
        """The text with the stored digits before each mark, and the stored rows of each table.

        Raises
        ------
        ValueError
            If a key has no number, or a word has to change, which a person types.
        """
        text = self.text
        for match in reversed([match for match in self._marks if match["key"] or match["rows"]]):
            expected = self._expected(match, find)
            if match["rows"]:
                span: tuple[int, int] | None = self._rows(match)
            elif self._before(match, _literal(expected)):
                continue
            else:
                span = self._before(match, _shape(expected, self._form(match["key"])[1]))
            if span is None:
                rule = f"stand after {expected!r}, whose words a person types"
                raise checks.reject(match["key"], rule, repr(self.text[max(0, match.start() - 30) : match.start()]))
            if text[span[0] : span[1]].split() != expected.split():
                text = text[: span[0]] + expected + text[span[1] :]
        return text

    def unkeyed(self, find: Find) -> list[Problem]:
        """Numbers that are in no mark, of no kind and not typed on purpose; and typed ones that stand nowhere."""
        text, problems = self.text, list[Problem]()
        for match in reversed([match for match in self._marks if match["key"] or match["rows"]]):
            try:
                span = (
                    self._rows(match) if match["rows"] else self._before(match, _shape(self._expected(match, find), ""))
                )
            except ValueError:
                continue  # `check` says so
            if span:
                text = text[: span[0]] + re.sub(r"[^\n]", "\0", text[span[0] : span[1]]) + text[span[1] :]
        typed: dict[str, int] = {}
        for entry in self._of("typed"):
            numbers, bracket, _ = entry.text.partition("(")
            bad = [number for number in numbers.split() if not NUMBER.fullmatch(number)]
            if bad or not bracket or not entry.text.endswith(")"):
                problems.append((entry.line, "typed", f"a line is `typed: numbers (reason)`, but got {entry.text!r}"))
            typed |= {number: entry.line for number in numbers.split() if number not in typed}
        seen = set()
        for first, piece in _source(text) if self.module else [(1, text)]:
            prose = _KINDS.sub(_blank, _HIDDEN.sub(_blank, piece))
            for number in NUMBER.finditer(prose):
                seen.add(number[0])
                if number[0] not in typed:
                    line = first + prose.count("\n", 0, number.start())
                    context = " ".join(prose[max(0, number.start() - 40) : number.end() + 30].replace("\0", "").split())
                    problems.append((line, number[0], f"a number without a key, in {context!r}: {_KEY}"))
        return problems + [
            (line, number, "typed, and stands nowhere without a key: delete it")
            for number, line in typed.items()
            if number not in seen
        ]


# A premise, and after a colon the words that it holds.
_ASSERT = re.compile(r"""((?:"[^"]*"|'[^']*'|[^:])*)(?:: (.*))?""")
_CURE = "python -m yzflow.values write, or type the word"
_KEY = "give it a key, or a `typed:` in the block"


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _literal(expected: str) -> str:
    return r"\s+".join(map(re.escape, expected.split()))


def _shape(expected: str, how: str) -> str:
    """Pattern of texts that have other numbers in place of those in ``expected``, and the same words."""
    if how == "words":
        return "|".join(SMALL)
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
