"""Clauses of the register against its proofs: nothing proved is lost, and one source gives formula and proof."""

import ast
import functools
import importlib
import inspect
from collections import defaultdict

import pytest
import sympy as sp

from theory.scan_and_snap._register import formulas
from theory.statements import REGISTER
from theory.symbolic import derivations, derived, part, whole
from yzflow.audits.formulas import as_html, is_latex

STATEMENTS = [one for one in REGISTER.values() if one.paper == "Scan and Snap"]
ALL = [(one, clause) for one in STATEMENTS for clause in one.clauses]
CLAUSES = [(one, clause) for one, clause in ALL if clause.prove is not None]
PROOFS = derivations("theory.scan_and_snap.proofs")


@pytest.mark.parametrize("name", PROOFS)
def test_every_expression_and_argument_of_a_proof_belongs_to_a_clause(name):
    found = derived(PROOFS[name])  # as parts of it do
    expressions, said = set(), set()
    for statement, clause in ALL:
        said |= set(clause.argued)
        if clause.prove is not None and whole(clause.prove) is PROOFS[name]:
            own = clause.prove()
            expressions |= {*own.vanishing, *own.signed}
            said |= set(own.prose)
            # A part says what it argues in the words of the proof.
            assert set(own.prose) <= set(found.prose), (statement.id, clause.name)
    assert expressions == {*found.vanishing, *found.signed}
    assert said >= set(found.prose)


def test_a_part_is_no_whole_that_proves_other_statements():
    """A proof of several statements is given to each by its part."""
    users = defaultdict(set)
    for one, clause in CLAUSES:
        users[whole(clause.prove)].add(one.id)
    for one, clause in CLAUSES:
        assert len(users[whole(clause.prove)]) == 1 or clause.prove is not whole(clause.prove), one.id


def test_a_statement_with_an_argued_clause_is_not_called_proved():
    by_name = {clause.name: clause for clause in REGISTER["Scan and Snap: Late attention"].clauses}
    assert by_name["K < M, the next orders"].prove is None and by_name["K < M, the next orders"].argued
    assert by_name["K < M, from starts in between"].prove is None and by_name["K < M, from starts in between"].checks
    law = by_name["K < M, where the logit falls from some time on"]
    assert r"\text{ for } t > t_1:" in law.formula and law.prove().claim.scope == {} and law.prove().prose
    assert by_name["K = M"].prove().claim.scope == {} and not by_name["K = M"].argued


SOURCE = ast.parse(inspect.getsource(formulas))
NAMES = {alias.asname or alias.name for node in SOURCE.body if isinstance(node, ast.ImportFrom) for alias in node.names}
MODULES = {name for name in NAMES if inspect.ismodule(getattr(formulas, name))} - {"decoder", "bounds", "sp"}
CLAIMS = sorted(
    {
        (node.value.id, node.attr)
        for node in ast.walk(SOURCE)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in MODULES
        if inspect.isfunction(getattr(getattr(formulas, node.value.id), node.attr))
    }
)
TEXTS = {name: text for name, text in vars(formulas).items() if isinstance(text, str) and not name.startswith("_")}

SLOPES = formulas.branch_slopes()


def changed(right):
    """A claim with another factor in each of its formulas."""

    def wrong(*arguments):
        found = right(*arguments)
        return tuple(one * sp.Integer(7) for one in found) if isinstance(found, tuple) else found * sp.Integer(7)

    return wrong


@pytest.mark.parametrize("module, claim", CLAIMS)
def test_a_changed_claim_changes_what_is_printed(module, claim, monkeypatch):
    """The formula of a page is the expression that is proved: a mutant of the claim shows."""
    place = getattr(formulas, module)
    right = getattr(place, claim)
    monkeypatch.setattr(place, claim, changed(right))
    specification = importlib.util.spec_from_file_location("formulas_of_a_mutant", formulas.__file__)
    mutant = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(mutant)
    texts = {**TEXTS, "branch_slopes": SLOPES}
    found = {**vars(mutant), "branch_slopes": mutant.branch_slopes()}
    assert any(found[name] != text for name, text in texts.items())
    # The proof takes the claim as an argument of the same name, or as the default of a function that does.
    if whole(PROOFS.get(module, right)) is not right:
        assert claim in inspect.signature(PROOFS[module]).parameters


def test_every_printed_formula_is_in_the_register():
    said = "\n".join(
        "\n".join(
            (one.text, one.printed, one.corrected or "", *one.errata, *(clause.formula for clause in one.clauses))
        )
        for one in STATEMENTS
    )
    assert {name for name, text in TEXTS.items() if text not in said} == set()


@pytest.mark.parametrize(("one", "clause"), [(one, clause) for one, clause in ALL if clause.formula])
def test_formulas_of_clauses_can_be_set(one, clause):
    assert is_latex(clause.formula), (one.id, clause.name)
    assert "<code>" not in as_html(clause.formula) and "{{" not in clause.formula and "$" not in clause.formula
    assert clause.formula.count("{") == clause.formula.count("}")


def test_a_wrong_claim_turns_its_clause_red_and_no_other():
    for number, clause, claims in (
        ("Lemma 8", "omega_0", {"lower_excess": lambda m: 1 / (m * sp.log(m))}),
        ("Lemma 8", "omega_1 and c'", {"crossing_range": lambda: (sp.Integer(1), sp.Integer(2))}),
        ("Theorem 4", "C_0 to leading order", {"speed_constant": lambda k, n, p: n**4 / k / p**4}),
        ("Theorem 4", "C_0 that is exact at the start", {"start_constant": lambda m, k, r: 1 / ((k - 1) * r**2)}),
        ("Theorem 3", "(12), the bounds of its growth", {"exponent_rate": lambda p, xi: xi}),
    ):
        statement = REGISTER[f"Scan and Snap: {number}"]
        once = functools.cache(functools.cache)  # each proof derives once for all its parts
        failing = {
            each.name
            for each in statement.clauses
            if each.prove is not None and set(claims) <= set(inspect.signature(whole(each.prove)).parameters)
            if part(once(whole(each.prove)), *each.prove.names)(**claims).failures()
        }
        assert failing == {clause}, number
