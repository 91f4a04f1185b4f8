"""Numbers in pages, captions, the register and the help that are in no mark and have no reason to be typed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from dynamics.support import checks
from published.marks import marks
from published.pages import pages, reasons, sources
from yzflow.values.marks import CODE

__all__ = ["Place", "unmarked"]

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?(?![\w])")
_HIDDEN = re.compile(
    rf"(?ms){CODE}|<!--.*?-->|\$\$.*?\$\$|\$[^$\n]+\$|\]\([^)\s]*\)|\]\[[^\]]*\]"
    r"|^\[[^\]]+\]: .*?$|^\([\w-]+\)=$|^:[\w-]+:.*?$|</?[A-Za-z][^>\n]*>"
)


@dataclass(frozen=True)
class Place:
    """A number that nobody computes, and where it is."""

    file: str
    line: int
    number: str
    context: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.number}: {self.context}"


def unmarked(root: Path, files: Sequence[str] = ()) -> list[Place]:
    """The numbers of these files, by default of all pages and of the sources that readers see, that lack a reason.

    Raises
    ------
    ValueError
        If a file is none of these, or the text of a place in the file of reasons stands nowhere.
    """
    known = reasons(root)
    found = {str(path.relative_to(root)): path for path in [*pages(root), *sources(root)]}
    for file in files:
        checks.one_of("files", file, found)
    made = [entry["file"] for entry in known.get("made", ())]
    places = []
    for file in files or found:
        if any(fnmatch(file, pattern) for pattern in made):
            continue
        kinds = [re.compile(kind["pattern"], re.M) for kind in known["kind"] if fnmatch(file, kind.get("file", "*"))]
        text = found[file].read_text(encoding="utf-8")
        own = [place["text"] for place in known.get("place", ()) if place["file"] == file]
        pieces = list(_page(text)) if file.endswith(".md") else list(_source(text))
        for piece_line, piece in pieces:
            for pattern in [*map(_words, own), *kinds]:
                piece = pattern.sub(_blank, piece)
            for match in _NUMBER.finditer(piece):
                line = piece_line + piece.count("\n", 0, match.start())
                context = " ".join(piece[max(0, match.start() - 40) : match.end() + 30].split())
                places.append(Place(file, line, match[0].strip(","), context))
        for words in own:
            if not any(_words(words).search(piece) for _, piece in pieces):
                raise checks.reject("place", f"have a text that stands in {file}", repr(words))
    return places


def _words(text: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, text.split())))


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _page(text: str) -> Iterator[tuple[int, str]]:
    """A page without its marks, its code, its formulas and the targets of its links."""
    for mark in reversed(marks(text)):
        text = text[: mark.start] + re.sub(r"[^\n]", " ", mark.text) + text[mark.end :]
    yield 1, _HIDDEN.sub(_blank, text)


def _is_prose(text: str) -> bool:
    # A formula is LaTeX as a whole; what has no space is a name or a file.
    return " " in text.strip() and "\\" not in _HIDDEN.sub("", text)


def _source(text: str) -> Iterator[tuple[int, str]]:
    """Text of a module that readers see: constants of more than a word, captions and the help of commands."""
    tree = ast.parse(text)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or not node.body:
            continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            skipped.add(first.value)
            seen = {ast.unparse(one).split("(")[0].split(".")[-1] for one in getattr(node, "decorator_list", ())}
            if seen & {"styled", "command", "group"}:
                yield from (
                    (first.lineno + line - 1, piece)
                    for line, piece in _page(first.value.value.split("\n\n    Param")[0])
                )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            text = node.value
            yield from ((node.lineno + line - 1, piece) for line, piece in _page(text) if _is_prose(text))
