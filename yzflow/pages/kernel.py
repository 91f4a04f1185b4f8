"""The theorems on a statement that a kernel has checked, as a section of its page."""

from __future__ import annotations

from html import escape

from theory.kernel import Theorem
from theory.statements import Statement
from yzflow.audits import formulas


def section(statement: Statement) -> str:
    """The theorems on the statement that a kernel has checked, and which clauses none of them is all of."""
    found = [one for one in statement.checked if one.kind != "erratum"]
    if not found:
        return ""
    items = "".join(item(one) for one in found)
    whole = {one.clause for one in found if one.kind == "clause"}
    open_ = [clause.name or "the whole" for clause in statement.clauses if clause.name not in whole]
    rest = f" It has not checked all of: {formulas.readable('; '.join(open_))}." if open_ else ""
    return (
        "<section id='kernel'><h2>Checked by a kernel</h2><p>The kernel of Coq, a proof assistant, has checked proofs"
        " of these theorems. They stand here in words; below each is folded what Coq was asked. No kernel checks that"
        f" this is what the paper means, and that a simulation fulfils the hypotheses.{rest}</p>"
        f"<ul>{items}</ul></section>"
    )


def item(one: Theorem, before: str = "") -> str:
    """A theorem as an item of a list, with what Coq was asked folded."""
    axioms = ", ".join(one.axioms) or "none"
    return (
        f"<li>{before}<strong>{one.name}</strong>: {formulas.readable(one.words)}"
        f"<details><summary>As Coq has it</summary><pre>{escape(one.coq)}</pre>"
        f"<p>Source: <code>formal/{one.file}</code>. Axioms: {axioms}.</p></details></li>"
    )
