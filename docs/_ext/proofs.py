"""Directives that put the register's statements and the proofs' steps on a page, as they stand in the code.

``{proofs} PAPER NAME ..`` gives the derivations of these names in a paper's ``proofs``, by the paper's slug, each after
the statements that rest on it; ``{statements} PAPER`` lists the statements of a paper that have no such proof. The
steps are those in the call of ``Derivation`` that also holds the expressions which the tests prove; it is read and not
run, since running all proofs takes a minute.
"""

import ast
import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import sympy
from sphinx.util.docutils import SphinxDirective

from theory import papers
from theory.statements import REGISTER, Statement
from theory.symbolic import Derivation
from yzflow.audits import formulas
from yzflow.pages import live
from yzflow.pages.statement import slug

LONG = 160  # characters of LaTeX that fill a line, about


def module_of(paper: str, name: str) -> ModuleType:
    """The module of a proof, in whichever distribution its paper stands."""
    known = papers.papers()
    if paper not in known or name not in known[paper].proofs:
        raise ValueError(f"no paper {paper!r} with a proof {name!r}")
    return importlib.import_module(proving(known[paper].proofs[name]))


def proving(prove: Callable) -> str:
    """The name of the module of a function that proves, which may have some of its arguments already."""
    return getattr(prove, "func", prove).__module__


def derivation(paper: str, name: str) -> Derivation:
    """The derivation in a paper's proof ``name`` without its expressions, and without running it."""
    module = module_of(paper, name)
    source = ast.parse(inspect.getsource(module))
    calls = [node for node in ast.walk(source) if isinstance(node, ast.Call) and _called(node) == "Derivation"]
    if len(calls) != 1:
        raise ValueError(f"module {name} must make one Derivation, but makes {len(calls)}")
    wanted = ("statement", "steps", "scope", "sizes", "prose")
    # Sizes may be those that the function has as defaults.
    known = {**vars(module), **{key: one.default for key, one in inspect.signature(module.derive).parameters.items()}}
    found = {}
    for word in (word for word in calls[0].keywords if word.arg in wanted):
        found[word.arg] = eval(compile(ast.Expression(word.value), str(module.__file__), "eval"), known)
    return Derivation(vanishing={"not derived here": sympy.Integer(0)}, **found)


def _called(node: ast.Call) -> str | None:
    return node.func.id if isinstance(node.func, ast.Name) else None


def proof_page(paper: str, name: str) -> list[str]:
    """The statements that rest on the proof in the module ``name``, and its derivation, as Markdown."""
    found = derivation(paper, name)
    module = module_of(paper, name).__name__
    lines = [line for one in REGISTER.values() if proved_in(one) == module for line in statement_page(one)]
    lines += [f"**Proof: {found.statement}** (`{module}`)", ""]
    lines += [f"{number}. {step}" for number, step in enumerate(found.steps, 1)]
    words = f" In words: {'; '.join(found.prose)}." if found.prose else ""
    label = str(dataclasses.replace(found.claim, prose=()))
    return [*lines, "", f"*{label[0].upper()}{label[1:]}.* In detail: {found.scope}.{words}", ""]


def proved_in(statement: Statement) -> str | None:
    """The module of a statement's proof, of the first one if its clauses have several, if it has one."""
    return next(map(proving, statement.proofs), None)


def statement_page(statement: Statement) -> list[str]:
    """A statement of the register with its formulas, as Markdown."""
    lines = [f"**{statement.number}. {statement.title}.** {statement.text}", ""]
    for name, formula in statement.forms:
        lines += [f"{name}:", "", *display(formula), ""]
    more = "sliders, numbers and verdict" if live.views(statement) else "numbers and verdict"
    address = f"../statements/{slug(statement)}.html"
    return [*lines, f'<a href="{address}">The page of {statement.number}: {more}</a>', ""]


def display(formula: str) -> list[str]:
    """A formula as lines of Markdown; a long one has a line for each part between wide spaces, to fit the page."""
    parts = re.split(r"\\q?quad\b\s*", formula)
    if len(parts) == 1 or len(formula) < LONG or r"\\" in formula or not formulas.is_latex(formula):
        return formulas.as_markdown(formula)
    return ["$$", r"\begin{gathered}", *(rf"{part.strip()} \\[1ex]" for part in parts), r"\end{gathered}", "$$"]


def statements_page(paper: str) -> list[str]:
    """The statements of ``paper`` in the register that have no proof, as Markdown."""
    of_paper = [one for one in REGISTER.values() if one.paper == paper]
    if not of_paper:
        raise ValueError(f"no paper {paper!r} in the register")
    without = [line for one in of_paper if not one.proofs for line in statement_page(one)]
    return without or ["None: each of them stands above, before its proof."]


class _Generated(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        try:
            lines = self.lines()
        except (OSError, ValueError) as error:
            raise self.error(str(error)) from error
        return self.parse_text_to_nodes("\n".join(lines)) if lines else []

    def note(self, path: Path):
        self.env.note_dependency(str(path))


class Proofs(_Generated):
    def lines(self):
        paper, *names = self.arguments[0].split()
        for name in names:
            self.note(Path(module_of(paper, name).__file__))
        return [line for name in names for line in proof_page(paper, name)]


class Statements(_Generated):
    def lines(self):
        return statements_page(self.arguments[0])


def setup(app):
    app.add_directive("proofs", Proofs)
    app.add_directive("statements", Statements)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
