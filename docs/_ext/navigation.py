"""The sidebar's tree of pages, made once for the whole site.

Furo asks Sphinx for the whole tree on each page, and parses it: over half of the time of a build of some hundred pages.
The pages' trees differ in links, which are relative, and in what is marked as the current page and its parents.
"""

import functools
import posixpath
import re
from urllib.parse import urlsplit

from bs4 import BeautifulSoup
from furo.navigation import get_navigation_tree
from sphinx.application import Sphinx

_MARK = "{{{{{}}}}}"  # of a place in the text whose value depends on the page
_SLOT = re.compile(r' (class|checked|href)="\{\{(\w+)\}\}"')
_WHOLE = {"collapse": False, "titles_only": True, "maxdepth": -1, "includehidden": True}


class Tree:
    """The tree as furo makes it.

    Parameters
    ----------
    html : str
        What Sphinx gives for a page.
    page : str
        The address of this page, from the site's root.
    """

    def __init__(self, html: str, page: str) -> None:
        soup = BeautifulSoup(get_navigation_tree(html), "html.parser")
        self._targets: list[
            tuple[str, str, list[str], str]
        ] = []  # slot, address, slots of its parents, that of its item
        self._usual: dict[str, str] = {}  # slot -> what stands there on a page that it has nothing to do with
        names: dict[int, str] = {}
        for number, element in enumerate(soup.find_all(["a", "li", "ul", "input"])):
            known = [name for name in element.get("class", []) if not name.startswith("current")]
            names[id(element)] = slot = f"{'x' if element.name == 'input' else 'c'}{number}"
            if element.name == "input":
                element.attrs.pop("checked", None)
                element["checked"] = _MARK.format(slot)
                self._usual[slot] = ""
            else:
                element["class"] = _MARK.format(slot)
                self._usual[slot] = " ".join(known)
        for link in soup.find_all("a", href=True):
            there = str(link["href"])
            if urlsplit(there).scheme:
                continue
            slot = f"h{len(self._targets)}"
            link["href"] = _MARK.format(slot)
            marked, item = [names[id(link)]], ""
            for element in link.parents:
                if element.name in ("li", "ul"):
                    marked.append(names[id(element)])
                if element.name == "li":
                    item = item or names[id(element)]
                    box = element.find("input", recursive=False)
                    marked += [names[id(box)]] if box is not None else []
            self._targets.append((slot, _joined(page, there), marked, item))
        self._pieces = _SLOT.split(str(soup))

    def of(self, page: str) -> str:
        """The tree for the page of this address."""
        folder = posixpath.dirname(page)
        filled, marked, current = dict(self._usual), set(), ""
        for slot, target, parents, item in self._targets:
            filled[slot] = "#" if target == page else _relative(target, folder)
            if target == page:
                marked.update(parents)
                current = item or current
        for slot in marked:
            filled[slot] = "yes" if slot[0] == "x" else f"{filled[slot]} current".strip()
        if current:
            filled[current] += " current-page"
        pieces = iter(self._pieces)
        found = [next(pieces)]
        for name, slot, rest in zip(pieces, pieces, pieces, strict=True):
            if value := filled[slot]:
                found.append(f' {name}="{"" if slot[0] == "x" else value}"')
            found.append(rest)
        return "".join(found)


def _joined(page: str, link: str) -> str:
    """Where a link of a page leads to, from the site's root."""
    if link.startswith("#"):
        return page if link == "#" else page + link
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


@functools.cache
def _relative(target: str, folder: str) -> str:
    return posixpath.relpath(target, folder or ".")


def _without(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """Before furo: take away what it would make a tree of."""
    if "toctree" in context:
        context["_whole_tree"] = context.pop("toctree")


def _with(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """After furo: give all back, and the tree."""
    if "_whole_tree" not in context:
        return
    context["toctree"] = context.pop("_whole_tree")
    page = app.builder.get_target_uri(pagename)
    if not hasattr(app, "sidebar_tree"):
        app.sidebar_tree = Tree(context["toctree"](**_WHOLE), page)
    context["furo_navigation_tree"] = app.sidebar_tree.of(page)


def setup(app: Sphinx):
    app.connect("html-page-context", _without, priority=400)
    app.connect("html-page-context", _with, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
