"""The theorems on a statement that a kernel has checked, as a section of its page."""

from __future__ import annotations

from html import escape

from theory.kernel import Theorem, definitions
from theory.statements import Statement
from yzflow.audits import formulas


def section(statement: Statement) -> str:
    """The theorems on the statement that a kernel has checked, and which clauses none of them is all of."""
    found = [one for one in statement.checked if one.kind != "erratum"]
    if not found:
        return ""
    items = "".join(item(statement, one) for one in found)
    whole = {one.clause for one in found if one.kind == "clause"}
    open_ = [clause.name or "the whole" for clause in statement.clauses if clause.name not in whole]
    rest = (
        f"<p><strong>Not checked</strong> by a kernel, or not all of it: {formulas.readable('; '.join(open_))}.</p>"
        if open_
        else ""
    )
    return (
        "<section id='kernel'><h2>Checked by a kernel</h2><p>The kernel of Coq, a proof assistant, has checked proofs"
        " of these theorems, under the hypotheses that stand with them. The formula on the right is set by a program"
        " from what Coq was asked; names in upright letters are defined below it. No kernel checks that this is"
        f" what the paper means, and that a simulation fulfils the hypotheses.</p>{rest}<ul>{items}</ul></section>"
    )


def item(statement: Statement, one: Theorem, before: str = "") -> str:
    """A theorem as an item of a list: in words, its formula beside the printed one, and folded what Coq was asked."""
    axioms = ", ".join(one.axioms) or "none"
    rests = "\n\n".join(definitions()[name] for name in one.uses)
    defined = f"<p>Definitions, those first that others rest on:</p><pre>{escape(rests)}</pre>" if rests else ""
    return (
        f"<li>{before}<strong>{one.name}</strong>: {formulas.readable(one.words)}{beside(statement, one)}"
        f"<details><summary>As Coq has it, with the definitions</summary><pre>{escape(one.coq)}</pre>{defined}"
        f"<p>Source: <code>formal/{one.file}</code>. Axioms: {axioms}.</p></details></li>"
    )


def beside(statement: Statement, one: Theorem) -> str:
    """The printed formula, and the clause's, beside that which the kernel has checked."""
    clause = next(
        (own.formula for own in statement.clauses if own.name == one.clause and own.name and own.formula), None
    )
    left = _formula("Printed", statement.printed)
    if clause:
        left += _formula(f"Clause: {one.clause}", clause)
    elif statement.corrected and one.kind != "erratum":
        left += _formula("Corrected", statement.corrected)
    return f"<div class='beside'><div>{left}</div>{_formula('Checked by the kernel', one.latex)}</div>"


def _formula(caption: str, formula: str) -> str:
    shown = formulas.as_html(formulas.parts(formula))
    return f"<div class='formula'><span class='soft'>{formulas.readable(caption)}</span>{shown}</div>"
