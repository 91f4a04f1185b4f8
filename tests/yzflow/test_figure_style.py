"""The rules of docs/figure_style.md that code can break: lines, blanks and labels."""

import ast
import inspect

import numpy as np
import pytest
import xarray as xr

from dynamics import SequenceClasses, sgd
from yzflow import figures

BROKEN = {":", "--", "-."}


def functions(module) -> dict[str, ast.FunctionDef]:
    """The functions of a module, by name."""
    return {node.name: node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.FunctionDef)}


def reached(start: str, known: dict[str, ast.FunctionDef]) -> set[str]:
    """What a function calls in its module, and what that calls."""
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
    # What is drawn for some data only is in a sentence of the caption that is made from the data.
    words = (entry.text + (inspect.getsource(entry.claims) if entry.claims else "")).lower()
    return not unnamed or "dash" in words or "dott" in words


@pytest.mark.parametrize("name", figures.entries())
def test_a_broken_line_is_explained(name):
    assert explained(figures.entries()[name])


def test_a_line_without_a_word_is_found():
    lines = ["axes.axvline(1, linestyle='--')", "axes.plot(x, ':', label='bound')", "axes.plot(x, '-')"]
    (draw,) = ast.parse("def draw(axes):\n    " + "\n    ".join(lines)).body
    assert unnamed_lines(draw) == lines[:1]


def test_absent_tokens_are_blank_and_steps_are_of_the_optimiser():
    """Attention that starts at zero is no small attention; a map of Syn-Small has 10 tokens of the other next token."""
    run = sgd(SequenceClasses.syn_small(), eta_y=0.1, eta_z=0.1, steps=2, optimizer="adam", seed=0)
    figure = figures.figure5([(run,)])
    for n, axes in enumerate(figure.axes[:2]):
        blank = np.ma.getmaskarray(axes.images[0].get_array())
        expected = np.zeros(30, dtype=bool)
        expected[20 - 10 * n : 30 - 10 * n] = True
        assert (blank == expected).all()
        assert axes.get_ylabel() == "step of Adam"
    plain = sgd(SequenceClasses.syn_small(), eta_y=0.1, eta_z=0.1, steps=2, seed=0)
    assert figures.figure4([(plain,)]).axes[0].get_ylabel() == "SGD step"


def test_maps_of_text_have_its_words():
    shape, words = (1, 1, 2, 1, 1, 1, 64, 64), np.array([[f"word{i}" for i in range(63)] + ["$5"]])
    dims = ("learning_rate", "seed", "time", "probe", "layer", "head", "row", "position")
    attention = np.broadcast_to(np.tril(np.ones((64, 64))) / np.arange(1, 65)[:, None], shape)
    run = xr.Dataset(
        {"attention": (dims, attention), "probe_tokens": (("probe", "position"), np.arange(64)[None])},
        coords={"time": [0, 100], "layer": [1]},
    )
    for given, expected in ((run, "0"), (run.assign_coords(probe_words=(("probe", "position"), words)), "word0")):
        axes = figures.deep_attention({1: given}).axes[0]
        assert axes.get_xticklabels()[0].get_text() == expected
        assert len(axes.get_yticklabels()) == axes.images[0].get_array().shape[0] == 20
