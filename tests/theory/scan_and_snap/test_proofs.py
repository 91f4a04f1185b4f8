"""Proofs of Scan and Snap: each holds and refutes its mistakes, and the register and `theory` say what they prove."""

import ast
import functools
import inspect
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from proving import Proofs

from dynamics import SequenceClasses, gradient_flow
from theory import attention, decoder
from theory.papers import papers
from theory.scan_and_snap._register import formulas
from theory.scan_and_snap.proofs import lemma5, lemma6, slowdown, theorem1, theorem3, theorem4
from theory.statements import REGISTER
from theory.symbolic import decide, derived, part, whole
from theory.symbolic.indexed import is_indexed
from yzflow.audits.formulas import as_html, is_latex

# The proofs of the core's own paper; those of other distributions are tested beside them.
PROOFS = Proofs(papers()["scan_and_snap"], Path(__file__).parent)


@pytest.mark.parametrize("name", PROOFS.modules)
def test_derivation_holds(name):
    PROOFS.check_holds(name)


@pytest.mark.parametrize("mistake", PROOFS.chosen())
def test_a_wrong_claim_fails(mistake):
    expression = PROOFS.check_refutes(mistake)
    if not isinstance(expression, tuple):  # with a sign
        assert not is_indexed(expression) or decide._differs_at_sizes(expression), "undecided only, not refuted"


def test_every_module_has_a_mistake():
    PROOFS.check_all_have_mistakes()


# Inequalities that would also hold if they said less, or more: by module and name, values of their symbols, and what is
# left there, by hand. Most are equalities at the edge.
SAID = [
    # M eta - dD/ds with D = M - 1 + y and dD/ds = M eta y/D, at M = 5.
    ("concentration", "(62): D grows by less than M eta_Y a visit", {"m": 4, "eta_Y": 0.5, "y": 3},
     sp.Rational(5, 2) * (1 - sp.Rational(3, 7))),
    # lambda_1 = lambda_i = 1/2: lambda^2/(1 - lambda) = 1/2, and lambda^2/(1 + lambda) = 1/6.
    ("gram", "Lemma 17: lambda_i > 0", {"a": 0, "s": 1, "r": 1}, sp.Rational(1, 3)),
    # d D = M eta_Y; exp(d) = 1 + d + d^2/2 = 5/2 at d = 1, with D = 5: 5 (3/2) - 3/2.
    ("remark2", "D grows by less than M eta_Y (exp(d) - 1)/d", {"m": 4, "d": 1, "c": 0, "x": 0}, 6),
    ("lemma8_9", "gamma <= (M - 1)^2 h/M", {"s": 0, "m": 4}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name", "values", "left"), SAID)
def test_inequalities_say_no_less_than_they_should(module, name, values, left):
    PROOFS.check_says(module, name, values, left)


def test_signs_of_every_part_are_in_the_derivation():
    names = derived(PROOFS.modules["theorem1"]).signed
    assert {"xi > 0 by its terms", "star: above the centre's zero", "xi > 0, K = 3, any overlaps"} <= set(names)


POINTS = [(2, 2, 0.7, 0.3), (5, 3, 1.3, 4.0), (50, 10, 0.2, 700.0), (1000, 7, 5.0, 31.0)]


@pytest.mark.parametrize(("m", "k", "eta", "t"), POINTS)
def test_decoder_formulas_are_those_of_theory(m, k, eta, t):
    h = decoder.h(t / k, vocab_size=m, eta_y=eta)
    assert float(lemma6.implicit(m, sp.Float(h, 30), eta, t / k)) == pytest.approx(0, abs=1e-12 * (m * eta * t / k + m))
    assert float(theorem1.gamma(m, h)) == pytest.approx(
        decoder.gamma(t, vocab_size=m, n_classes=k, eta_y=eta), rel=1e-11
    )
    steps = decoder.h_steps(3, vocab_size=m, eta_y=eta)
    assert [float(lemma5.step(m, value, eta)) for value in steps[:-1]] == pytest.approx(list(steps[1:]), rel=1e-13)
    total = theorem4.accumulated(m, k, eta, 0.4, h)
    expected = decoder.gamma_integral(t, vocab_size=m, n_classes=k, eta_y=eta, eta_z=0.4)
    assert float(total) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("m", "k", "eta", "t"), POINTS)
def test_attention_formulas_are_those_of_theory(m, k, eta, t):
    rho = 0.07
    expected = attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho)
    assert float(slowdown.slowdown(m, k, rho)) == pytest.approx(expected, rel=1e-13)
    c0 = attention.speed_constant(n_classes=k, overlap=rho)
    # rho = P_c^2/rho_0^2.
    assert float(theorem4.speed_constant(k, 1.0, math.sqrt(rho))) == pytest.approx(c0, rel=1e-12)
    exact = attention.speed_constant(n_classes=k, overlap=rho, vocab_size=m)
    assert float(theorem4.start_constant(m, k, rho)) == pytest.approx(exact, rel=1e-12)
    assert float(theorem4.full_start_constant(m, k, rho)) == pytest.approx(exact / expected, rel=1e-12)
    rates = {"vocab_size": m, "n_classes": k, "eta_y": eta, "eta_z": 0.4}
    total = decoder.gamma_integral(t, **rates)
    B = attention.growth_exponent(t, **rates, c0=c0)
    assert float(theorem4.exponent(sp.Float(total), c0)) == pytest.approx(B, rel=1e-9)
    lower, upper = theorem3.bounds(0.3**2, B)
    assert (float(lower), float(upper)) == pytest.approx(attention.growth_bounds(B, 0.3), rel=1e-12)
    p = np.array([0.3, 0.2])
    chi = attention.distinct_growth(B, p)
    grown = attention.relative_gain(p[0] * np.sqrt(chi[0]), p[1] * np.sqrt(chi[1]))
    assert float(theorem3.relative_gain(attention.relative_gain(*p), chi[0])) == pytest.approx(grown, rel=1e-9)


@pytest.mark.parametrize(("k", "m", "rho"), [(5, 50, 0.3), (5, 5, 0.5), (10, 100, 0.02)])
def test_first_correction_of_the_slowdown_is_that_of_the_flows(k, m, rho):
    """Measured as the ratio of the velocities of full and modified flow, with attention that hardly moves."""
    data = SequenceClasses.single_common_token(k, m, common=np.sqrt(rho / (1 - rho)), distinct=[1.0])
    t = np.array([0.01, 0.02])
    options = {"eta_y": 1.0, "eta_z": 1e-6, "t_end": t[-1], "times": t, "rtol": 1e-12, "atol": 1e-20}
    full, modified = (
        gradient_flow(data, decoder=name, **options).dataset["z_velocity"].values[:, 0] for name in ("full", "modified")
    )
    rates = (full / modified / float(slowdown.slowdown(m, k, rho)) - 1) / t[:, None]
    # Extrapolated to t = 0, which leaves an error of order t^2.
    measured = 2 * rates[0] - rates[1]
    np.testing.assert_allclose(measured, float(slowdown.first_correction(m, k, rho, 1.0)), rtol=2e-3)


STATEMENTS = [one for one in REGISTER.values() if one.paper == "Scan and Snap"]
ALL = [(one, clause) for one in STATEMENTS for clause in one.clauses]
CLAUSES = [(one, clause) for one, clause in ALL if clause.prove is not None]


@pytest.mark.parametrize("name", PROOFS.modules)
def test_every_expression_and_argument_of_a_proof_belongs_to_a_clause(name):
    found = derived(PROOFS.modules[name])  # as parts of it do
    expressions, said = set(), set()
    for statement, clause in ALL:
        said |= set(clause.argued)
        if clause.prove is not None and whole(clause.prove) is PROOFS.modules[name]:
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
RIGHT = dict(vars(formulas))
TEXTS = {name: text for name, text in RIGHT.items() if isinstance(text, str) and not name.startswith("_")}

SLOPES = formulas.branch_slopes()


def changed(right):
    """A claim with another factor in each of its formulas."""

    def wrong(*arguments):
        found = right(*arguments)
        return tuple(one * sp.Integer(7) for one in found) if isinstance(found, tuple) else found * sp.Integer(7)

    return wrong


def made_again(module, claim):
    """The names of `formulas`, of which those that come from a claim are made again, as it is now."""
    namespace, made = dict(RIGHT), set()
    for node in SOURCE.body:
        inside = list(ast.walk(node))
        asks = any(isinstance(part, ast.Attribute) and ast.unparse(part) == f"{module}.{claim}" for part in inside)
        if asks or made & {part.id for part in inside if isinstance(part, ast.Name)}:
            exec(compile(ast.Module([node], []), formulas.__file__, "exec"), namespace)
            made |= {part.id for part in inside if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return namespace


@pytest.mark.parametrize("module, claim", CLAIMS)
def test_a_changed_claim_changes_what_is_printed(module, claim, monkeypatch):
    """The formula of a page is the expression that is proved: a mutant of the claim shows."""
    place = getattr(formulas, module)
    right = getattr(place, claim)
    monkeypatch.setattr(place, claim, changed(right))
    found = made_again(module, claim)
    assert any(found[name] != text for name, text in TEXTS.items()) or found["branch_slopes"]() != SLOPES
    # The proof takes the claim as an argument of the same name, or as the default of a function that does.
    if whole(PROOFS.modules.get(module, right)) is not right:
        assert claim in inspect.signature(PROOFS.modules[module]).parameters


def test_every_printed_formula_is_in_the_register():
    said = "\n".join(
        "\n".join(
            (one.text, one.printed, one.corrected or "", *one.errata, *(clause.formula for clause in one.clauses))
        )
        for one in STATEMENTS
    )
    assert {name for name, text in TEXTS.items() if text not in said} == set()


@pytest.mark.slow
def test_formulas_of_clauses_can_be_set():
    for formula in {clause.formula for _, clause in ALL if clause.formula}:
        assert is_latex(formula) and "<code>" not in as_html(formula), formula


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
