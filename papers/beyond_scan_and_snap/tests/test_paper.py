"""Our statements stand in the paper's register; their proofs hold, and each refutes its mistakes."""

import functools
import inspect
import json
import math
from pathlib import Path

import pytest
import sympy as sp
from proving import Proofs
from scipy.special import lambertw
from yzflow_beyond_scan_and_snap import PAPER
from yzflow_beyond_scan_and_snap.proofs import transition

import yzflow as yz
from theory.papers import papers
from theory.scan_and_snap import decoder
from theory.statements import REGISTER
from theory.symbolic import part, whole

PROOFS = Proofs(PAPER, Path(__file__).parent)


def test_the_register_of_the_paper_has_them_after_its_own_and_marks_them():
    statements = papers()["scan_and_snap"].statements
    assert statements[-len(PAPER.statements) :] == PAPER.statements
    for one in statements:
        assert one.own == any(one is ours for ours in PAPER.statements)
        assert REGISTER[f"Scan and Snap: {one.number}"] is one


def test_it_is_no_paper_by_itself():
    assert PAPER.slug not in papers() and PAPER.name not in {paper.name for paper in papers().values()}


@pytest.mark.parametrize("name", PROOFS.modules)
def test_derivation_holds(name):
    PROOFS.check_holds(name)


@pytest.mark.parametrize("mistake", PROOFS.chosen())
def test_a_wrong_claim_fails(mistake):
    PROOFS.check_refutes(mistake)


def test_every_module_has_a_mistake():
    PROOFS.check_all_have_mistakes()


def test_an_inequality_says_no_less_than_it_should():
    """M = 3, H_n(n) = -1/6: delta = (1 - 3/6)/3, and (1 - delta)^2/(M - 1) - delta (1 - delta)."""
    PROOFS.check_says("true_gradient", "late: xi_n > 0 at the largest delta", {"m": 1, "h": 1}, sp.Rational(5, 24))


@pytest.mark.parametrize(
    ("m", "k", "eta"),
    [(2, 2, 0.7), (5, 3, 1.3), (50, 10, 0.2), (1000, 7, 5.0)],
)
def test_transition_formulas_are_those_of_theory(m, k, eta):
    w = float(lambertw((m - 1) / math.e).real)
    time = float(transition.peak_time(m, k, eta, transition.peak_margin(w)))
    assert time == pytest.approx(decoder.transition_time(vocab_size=m, n_classes=k, eta_y=eta), rel=1e-12)
    assert float(transition.peak(m, w)) == pytest.approx(decoder.peak_gamma(vocab_size=m), rel=1e-12)


@pytest.mark.parametrize(
    ("number", "clause", "claims"),
    [
        ("Late attention", "frozen features", {"ratio": lambda m, rho: 1 + m * rho}),
        ("Late attention", "K < M, a trap in which the logit falls for ever", {"least_reach": lambda: sp.Integer(1)}),
        ("Closed forms under options", "temperature", {"cooled_rate": lambda eta, tau: eta / tau}),
        ("Closed forms under options", "momentum, a constant gradient", {"momentum_clock": lambda t, mu: t}),
    ],
)
def test_a_wrong_claim_turns_its_clause_red_and_no_other(number, clause, claims):
    once = functools.cache(functools.cache)  # each proof derives once for all its parts
    failing = {
        each.name
        for each in REGISTER[f"Scan and Snap: {number}"].clauses
        if each.prove is not None and set(claims) <= set(inspect.signature(whole(each.prove)).parameters)
        if part(once(whole(each.prove)), *each.prove.names)(**claims).failures()
    }
    assert failing == {clause}


def test_a_statement_with_an_argued_clause_is_not_called_proved():
    by_name = {clause.name: clause for clause in REGISTER["Scan and Snap: Late attention"].clauses}
    assert by_name["K < M, the next orders"].prove is None and by_name["K < M, the next orders"].argued
    assert by_name["K < M, from starts in between"].prove is None and by_name["K < M, from starts in between"].checks
    law = by_name["K < M, where the logit falls from some time on"]
    assert r"\text{ for } t > t_1:" in law.formula and law.prove().claim.scope == {} and law.prove().prose
    assert by_name["K = M"].prove().claim.scope == {} and not by_name["K = M"].argued


@pytest.mark.slow
def test_an_audit_says_whose_code_made_it():
    """That of the paper's own statements alone names no code besides the core's."""
    ours = yz.audit(["Scan and Snap: Transition time"], quick=True).environment()
    assert set(json.loads(ours["code"])) == {"yzflow_beyond_scan_and_snap"}
    assert "code" not in yz.audit(["Scan and Snap: Lemma 6"], quick=True).environment()
