"""Rules of docs/figure_style.md that code can break, for the figures of papers and for those of studies."""

import ast
import functools
import inspect

import matplotlib
import numpy as np
import yzflow_studies

from yzflow import studies
from yzflow.figures import Entry, entries

BROKEN = {":", "--", "-."}


@functools.cache
def of_papers_and_studies() -> dict[str, Entry]:
    """Name -> figure."""
    rooms = studies.rooms_of(yzflow_studies).values()
    return entries() | {entry.name: entry for room in rooms for entry in room.figures}


def functions(module) -> dict[str, ast.FunctionDef]:
    """The functions of a module, by name."""
    return {node.name: node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.FunctionDef)}


def reached(start: str, known: dict[str, ast.FunctionDef]) -> set[str]:
    """The functions of its module that a function calls, directly or through others."""
    found, todo = set(), [start]
    while todo:
        name = todo.pop()
        if name in known and name not in found:
            found.add(name)
            todo += [node.id for node in ast.walk(known[name]) if isinstance(node, ast.Name)]
    return found


def unnamed_lines(function: ast.FunctionDef) -> list[str]:
    """Calls that draw a dashed or dotted line without a name for the legend."""
    lines = []
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        styles = [*call.args, *(keywords[name] for name in ("linestyle", "linestyles") if name in keywords)]
        broken = [one for one in styles if isinstance(one, ast.Constant) and one.value in BROKEN]
        if broken and "label" not in keywords and isinstance(call.func, ast.Attribute):
            lines.append(ast.unparse(call))
    return lines


def explained(entry) -> bool:
    """Whether the caption says what is dashed or dotted wherever the legend does not."""
    module = inspect.getmodule(inspect.unwrap(entry.draw))
    known = functions(module)
    names = reached(entry.draw.__name__, known)
    unnamed = [line for name in names for line in unnamed_lines(known[name])]
    # Parts drawn for some data only are in a sentence of the caption that is made from the data.
    words = (entry.text + (inspect.getsource(entry.claims) if entry.claims else "")).lower()
    return not unnamed or "dash" in words or "dott" in words


def has_its_own_place(entry) -> bool:
    """Whether its module makes a Figure, which would not go where it is asked to."""
    module = inspect.getmodule(inspect.unwrap(entry.draw))
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Call)]
    return any(isinstance(call.func, ast.Name) and call.func.id == "Figure" for call in calls)


def drawn(entry, data):
    """A figure of data, laid out, whose axes all have labels, and the sentences under it."""
    figure = entry.draw(data)
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_xlabel() or axes.get_label() == "<colorbar>"
        assert axes.get_ylabel()
    return figure, entry.claims(data)


def shows(entry, data, values) -> None:
    """Fails unless the figure labels its axes, has these values as heights and leaves the caller's style alone."""
    before = dict(matplotlib.rcParams)
    figure = entry(data)
    assert dict(matplotlib.rcParams) == before
    figure.draw_without_rendering()
    assert all(axes.get_xlabel() for axes in figure.axes) and figure.axes[0].get_ylabel()
    shown = {float(y) for axes in figure.axes for line in axes.get_lines() for y in np.atleast_1d(line.get_ydata())}
    assert shown >= {float(value) for value in np.ravel(values) if value == value}


def labelled(entry, data=None) -> None:
    """Fails unless the figure labels every axis, leaves the caller's style alone and has a caption of sentences."""
    before = dict(matplotlib.rcParams)
    figure = entry(data)
    assert dict(matplotlib.rcParams) == before
    figure.draw_without_rendering()
    for axes in figure.axes:
        bottom_row = axes.get_subplotspec() is None or axes.get_subplotspec().is_last_row()
        assert axes.get_xlabel() or not bottom_row or axes.get_label() == "<colorbar>"
    assert entry.text.endswith(".")
