"""The sidebar's tree of pages, made once for the whole site.

Furo asks Sphinx for the whole tree on each page, and parses it: over half of the time of a build of some hundred pages.
The pages' trees differ in links, which are relative, and in what is marked as the current page and its parents.
"""

import functools
import posixpath
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, Tag
from furo.navigation import get_navigation_tree
from sphinx.application import Sphinx

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
        self._soup = BeautifulSoup(get_navigation_tree(html), "html.parser")
        self._links: list[tuple[Tag, str]] = []
        for link in self._soup.find_all("a", href=True):
            there = str(link["href"])
            if not urlsplit(there).scheme:
                self._links.append((link, _joined(page, there)))
        for element in self._soup.find_all(True):
            known = [name for name in element.get("class", []) if not name.startswith("current")]
            _set(element, known)
            if element.name == "input":
                element.attrs.pop("checked", None)

    def of(self, page: str) -> str:
        """The tree for the page of this address."""
        marked: list[tuple[Tag, list[str]]] = []
        last = None
        for link, target in self._links:
            link["href"] = "#" if target == page else _relative(target, posixpath.dirname(page))
            if target != page:
                continue
            last = next((one for one in link.parents if one.name == "li"), last)
            for element in (link, *link.parents):
                if element.name not in ("a", "li", "ul") or any(element is one for one, _ in marked):
                    continue
                marked.append((element, list(element.get("class", []))))
                _set(element, [*marked[-1][1], "current"])
                box = element.find("input", recursive=False) if element.name == "li" else None
                if box is not None:
                    box["checked"] = ""
        if last is not None:
            last["class"] = [*last["class"], "current-page"]
        html = str(self._soup)
        for element, known in marked:
            _set(element, known)
            box = element.find("input", recursive=False) if element.name == "li" else None
            if box is not None:
                del box["checked"]
        return html


def _set(element: Tag, names: list[str]) -> None:
    if names:
        element["class"] = names
    else:
        element.attrs.pop("class", None)


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
