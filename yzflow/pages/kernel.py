"""Section of a statement's page for theorems that a proof kernel has checked."""

from __future__ import annotations

from html import escape

from theory.kernel import Theorem, definitions
from theory.statements import Statement
from yzflow.audits import formulas


def section(statement: Statement) -> str:
    """The section: checked theorems, and clauses that no theorem covers completely."""
    theorems = [theorem for theorem in statement.checked if theorem.kind != "erratum"]
    if not theorems:
        return ""
    items = "".join(item(statement, theorem) for theorem in theorems)
    whole = {theorem.clause for theorem in theorems if theorem.kind == "clause"}
    open_ = [clause.name or "the whole" for clause in statement.clauses if clause.name not in whole]
    rest = (
        f"<p><strong>Not checked</strong> by a kernel, or not all of it: {formulas.readable('; '.join(open_))}.</p>"
        if open_
        else ""
    )
    return (
        "<div id='kernel'><h3>Checked by a kernel</h3><p>The kernel of Coq, a proof assistant, has checked proofs"
        " of these theorems, under the hypotheses that stand with them. The formula on the right is set by a program"
        " from what Coq was asked; names in upright letters are defined below it. No kernel checks that this is"
        f" what the paper means, and that a simulation fulfils the hypotheses.</p>{rest}<ul>{items}</ul></div>"
    )


def item(statement: Statement, theorem: Theorem, before: str = "") -> str:
    """A theorem as an item of a list: its words, its formula beside the printed one, and its folded Coq text."""
    axioms = ", ".join(theorem.axioms) or "none"
    rests = "\n\n".join(definitions()[name] for name in theorem.uses)
    defined = f"<p>Definitions, those first that others rest on:</p><pre>{escape(rests)}</pre>" if rests else ""
    return (
        f"<li>{before}<strong>{theorem.name}</strong>: {formulas.readable(theorem.words)}{beside(statement, theorem)}"
        f"<details><summary>As Coq has it, with the definitions</summary><pre>{escape(theorem.coq)}</pre>{defined}"
        f"<p>Source: <code>formal/{theorem.file}</code>. Axioms: {axioms}.</p></details></li>"
    )


def beside(statement: Statement, theorem: Theorem) -> str:
    """The printed formula and the clause's formula beside the checked one."""
    clause = next(
        (
            part_of_statement.formula
            for part_of_statement in statement.clauses
            if part_of_statement.name == theorem.clause and part_of_statement.name and part_of_statement.formula
        ),
        None,
    )
    left = _formula("Printed", statement.printed)
    if clause:
        left += _formula(f"Part: {theorem.clause}", clause)
    elif statement.corrected and theorem.kind != "erratum":
        left += _formula("Corrected", statement.corrected)
    return f"<div class='beside'><div>{left}</div>{_formula('Checked by the kernel', theorem.latex)}</div>"


def _formula(caption: str, formula: str) -> str:
    shown = formulas.as_html(formulas.parts(formula))
    return f"<div class='formula'><span class='soft'>{formulas.readable(caption)}</span>{shown}</div>"
