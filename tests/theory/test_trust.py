"""Labels of verdicts, which cannot be had without their scope, and engines that know no paper."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

import yzflow
from theory import statements
from theory.papers import built_in, papers
from theory.scan_and_snap.proofs import lemma5
from theory.statements import Assumption, Check, Clause, Statement
from theory.symbolic import Derivation, part
from theory.trust import Label, Trust, sized, weakest
from yzflow.audits import verdicts
from yzflow.audits.check import StatementVerdict
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row, Verdict

ROOT = Path(__file__).parents[2]
BARE = re.compile(r"\bproved\b(?! (for all sizes|at \S.* = \d|at \S+ = \())", re.IGNORECASE)
X = sp.Symbol("x", positive=True)


def square(claimed, **more):
    """The area under y = x by integration, against a claim."""
    return Derivation("Triangle", {"area": sp.integrate(X, (X, 0, X)) - claimed}, **more)


def test_a_false_claim_has_a_failing_label():
    right, wrong = square(X**2 / 2, sizes={}), square(X**2, sizes={})
    assert right.label.holds and right.label.trust is Trust.PROVED
    assert not wrong.label.holds and wrong.label.failures == ("area",)
    assert str(wrong.label) == "FAILS: area"
    assert weakest([right.label, wrong.label]) is wrong.label


def test_a_proof_of_another_statement_counts_for_none():
    """Whatever vanishes under the name of another theorem says nothing of this one."""
    lemma = papers()["scan_and_snap"].statements[0]
    assert lemma.number == "Lemma 1" and lemma.proved(lemma.clauses[0]).holds
    other = dataclasses.replace(lemma, prove=lambda: square(X**2 / 2, sizes={}), clauses=())
    with pytest.raises(ValueError, match=r"`prove` must derive a Derivation of Lemma 1, .* but got 'Triangle'"):
        other.trust  # noqa: B018
    verdict = yzflow.check(other)
    assert not verdict.passed and "a Derivation of Lemma 1" in verdict.outcome
    mine = dataclasses.replace(lemma, prove=lambda: square(X**2 / 2, sizes={}, proves=("Lemma 1",)), clauses=())
    assert yzflow.check(mine).passed


@pytest.mark.parametrize("text", ["Lemmas 1, 3 to 5", "Lemmas 1 and 3 to 5", "Lemmas 3 to 5 and 1"])
def test_a_range_in_a_list_names_what_lies_in_it_and_nothing_between(text):
    proof = Derivation(text, {"x": X})
    assert [n for n in range(8) if proof.is_of(f"Lemma {n}")] == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("number", "named"),
    [("Lemma 8", True), ("Lemma 9", True), ("Lemma 11", False), ("Lemma 1", False), ("Theorem 1(b)", True),
     ("Theorem 12", False), ("Late attention", True), ("Lemma 80", False)],
)  # fmt: skip
def test_the_statements_that_a_proof_names(number, named):
    assert square(X, sizes={}, proves=("Late attention",)).is_of(number) is (number == "Late attention")
    proof = Derivation("Lemmas 8 to 10, and Theorem 1", {"x": X}, proves=("Late attention",))
    assert proof.is_of(number) is named


@pytest.mark.parametrize("value", [0, 0.0, None, "0", True])
def test_a_number_of_python_is_no_expression(value):
    with pytest.raises(ValueError, match="`vanishing` must hold an expression for 'x'"):
        Derivation("Lemma 1", {"x": value}, sizes={})


def test_a_false_claim_of_a_paper_fails_where_it_is_false():
    assert lemma5.derive().label.holds
    # Without the -1 the recursion is that of another layer.
    label = lemma5.derive(step=lambda m, h, eta: h + eta / (m + sp.exp(m * h))).label
    assert "step at n" in label.failures and not label.holds


def test_a_proof_says_for_which_sizes_or_has_no_label():
    with pytest.raises(ValueError, match="`sizes` must name those that Triangle was written out at, or be empty"):
        square(X**2 / 2).label  # noqa: B018
    label = square(X**2 / 2, sizes={"K": (2, 3), "(N, q)": ((4, 3), (5, 3))}, prose=("induction",)).label
    assert label.trust is Trust.PROVED_AT_SIZES
    assert str(label) == "proved at K = 2, 3 and (N, q) = (4, 3), (5, 3) (in words: induction)"


def test_the_summary_is_the_weakest_needed_part():
    proof, sizes = Label(Trust.PROVED), Label(Trust.PROVED_AT_SIZES, {"K": (3,)})
    measured = Label(Trust.MEASURED, {"error": 0.1}, needed=False)
    argued = Label(Trust.ARGUED, prose=("a limit",))
    assert list(Trust) == sorted(Trust) and Trust.PROVED < Trust.PROVED_AT_SIZES < Trust.MEASURED < Trust.ARGUED
    assert weakest([proof, sizes]) is sizes
    assert weakest([sizes, measured, proof]) is sizes
    assert weakest([proof, dataclasses.replace(measured, needed=True)]).trust is Trust.MEASURED
    assert weakest([argued, measured, proof]) is argued
    assert weakest([proof, dataclasses.replace(measured, failures=("bound",))]).failures == ("bound",)
    assert weakest([]).trust is weakest([measured]).trust is Trust.NOT_EXAMINED


def at_sizes(prove=lambda: square(X**2 / 2, sizes={"K": (3,)}, proves=("Theorem 1",)), **more):
    more = {
        "assumptions": (Assumption("K >= 2", lambda setting: 1.5),),
        "checks": (Check("area", ("closed form",), lambda runs, level: 0.01, expected=("closed form",)),),
        **more,
    }
    return Statement("A paper", "Theorem 1", "Areas", "Half.", "x^2/2", prove=prove, **more)


def row(statement, printed=0.01, corrected=None, *, inside=True, setting="one", **scope):
    check = statement.checks[0]
    error = printed if corrected is None else corrected
    label = statement.measured(
        check, failures=() if error <= check.tolerance else ("area",), level="closed form", setting=setting,
        error=error, **scope,
    )  # fmt: skip
    expected = inside and "closed form" in check.expected
    return Row(
        statement.id, "area", "closed form", setting, inside, {"K >= 2": 1.5}, printed, corrected, 0.05, expected, label
    )


def test_a_statement_has_a_label_for_each_part():
    statement = at_sizes(argued=("a limit",), not_examined=("the case K = 2: nobody looked",))
    assert [label.trust for label in statement.trust] == [
        Trust.PROVED_AT_SIZES, Trust.MEASURED, Trust.ARGUED, Trust.NOT_EXAMINED,
    ]  # fmt: skip
    proof, measured, *_ = statement.trust
    assert proof.scope == {"K": (3,)} and proof.needed
    expected = {"check": "area", "tolerance": 0.05, "level": ("closed form",), "assuming": ("K >= 2",)}
    assert measured.scope == expected and not measured.needed
    assert at_sizes(prove=None).trust[0].needed
    assert weakest(statement.trust).trust is Trust.NOT_EXAMINED


def triangle(*, area=lambda x: x**2 / 2, slope=lambda x: x):
    """Two claims of one derivation: the area by integration, and its slope."""
    found = {"area": sp.integrate(X, (X, 0, X)) - area(X), "slope: K = 3": sp.diff(X**2 / 2, X) - slope(X)}
    more = {"steps": ("one", "two"), "sizes": {"K": (3,)}, "prose": ("a limit",), "proves": ("Theorem 2",)}
    return Derivation("Triangle", found, **more)


def of_clauses(prove=triangle, **more):
    check = Check("area", ("closed form",), lambda runs, level: 0.01, expected=("closed form",))
    clauses = (
        Clause("area", "x^2/2", prove=part(prove, "area"), checks=(check,)),
        Clause("slope", "x", prove=part(prove, "slope", sizes={"K": (3,)}, prose=("a limit",))),
        Clause("height", "x", argued=("by looking",), assumptions=(Assumption("x > 0", lambda setting: 1.0),)),
    )
    return Statement("A paper", "Theorem 2", "Areas", "Half.", "x^2/2", clauses=clauses, **more)


def test_each_clause_has_its_own_label_and_the_whole_the_weakest():
    statement = of_clauses()
    assert [(label.clause, label.trust) for label in statement.trust] == [
        ("area", Trust.PROVED), ("area", Trust.MEASURED), ("slope", Trust.PROVED_AT_SIZES), ("height", Trust.ARGUED),
    ]  # fmt: skip
    assert str(statement.trust[0]) == "area: proved for all sizes"
    assert str(statement.trust[2]) == "slope: proved at K = 3 (in words: a limit)"
    assert weakest(statement.trust).trust is Trust.ARGUED and weakest(statement.trust[:3]).clause == "slope"
    assert statement.prove is None and statement.proofs == (triangle,)
    report = AuditReport([row(statement, 0.02)], (statement,), {statement.id: statement.trust[:1]})
    assert [label.trust for _, label in report.summaries(statement)] == [
        Trust.PROVED, Trust.NOT_EXAMINED, Trust.ARGUED,
    ]  # fmt: skip
    assert "which have 3 parts, 0 have a symbolic proof for all sizes of every part" in report.counted()
    assert "1 one of some parts, and 0 none" in report.counted()
    trust = json.loads(report.json())["trust"][statement.id]
    assert trust["clauses"]["area"]["trust"] == "PROVED" and trust["summary"]["clause"] == "slope"
    text = StatementVerdict(statement, report, True, 0).text()
    assert "slope" in text and "argued in words only" in text


def test_a_clause_that_is_wrong_fails_alone():
    statement = of_clauses(lambda: triangle(slope=lambda x: 2 * x))
    failing = [label.clause for label in statement.trust if not label.holds]
    assert failing == ["slope"] and weakest(statement.trust).clause == "slope"
    # A part takes the claims of the whole.
    assert part(triangle, "area")(area=lambda x: x**2).failures() == ["area"]
    assert part(triangle, "area")(slope=lambda x: x**2).failures() == []


def test_a_weak_clause_is_not_hidden_by_a_check_beside_a_proof_of_another():
    measured = Label(Trust.MEASURED, {"error": 0.1}, needed=False, clause="slope")
    assert weakest([Label(Trust.PROVED, clause="area"), measured]).trust is Trust.NOT_EXAMINED
    assert weakest([Label(Trust.PROVED, clause="slope"), measured]).trust is Trust.PROVED


def test_clauses_that_say_nothing_or_two_things_are_refused():
    with pytest.raises(ValueError, match="`Clause` must have a proof, checks, an argument or a reason, but 'area'"):
        Clause("area", "x^2/2")
    two = (Clause("area", argued=("so",)), Clause("area", argued=("so",)))
    with pytest.raises(ValueError, match="`clauses` must have a name each, unlike the others', but A paper: Theorem 2"):
        Statement("A paper", "Theorem 2", "Areas", "Half.", "x", clauses=two)
    with pytest.raises(ValueError, match="`prove` must be a clause's"):
        Statement("A paper", "Theorem 2", "Areas", "Half.", "x", clauses=two[:1], prove=triangle)
    with pytest.raises(ValueError, match="`argued` must be the clauses'"):
        Statement("A paper", "Theorem 2", "Areas", "Half.", "x", clauses=two[:1], argued=("else",))
    with pytest.raises(ValueError, match="`names` must begin those of expressions, but Triangle has no 'volume'"):
        part(triangle, "volume")()


def test_what_a_clause_assumes_holds_for_its_checks_only():
    strong = Assumption("K >= 9", lambda setting: 0.5)
    check = Check("area", ("closed form",), lambda runs, level: 0.01, expected=("closed form",))
    other = dataclasses.replace(check, name="slope")
    clauses = (Clause("area", checks=(check,), assumptions=(strong,)), Clause("slope", checks=(other,)))
    statement = Statement("A paper", "Theorem 2", "Areas", "Half.", "x", clauses=clauses)
    assert statement.checks == (check, other)
    assert statement.margins(None, check) == {"K >= 9": 0.5} and statement.margins(None, other) == {}
    assert statement.measured(check).scope["assuming"] == ("K >= 9",)
    assert dataclasses.replace(statement, title="Others").checks == (check, other)


def test_reports_never_say_proved_without_sizes(tmp_path):
    statement = at_sizes()
    report = AuditReport([row(statement)], (statement,), {statement.id: (statement.prove().label,)})
    report.to_html(tmp_path / "audit.html")
    for text in (report.text(), report.json(), (tmp_path / "audit.html").read_text()):
        assert "proved at K = 3" in text
        assert not BARE.search(text), BARE.search(text)
    assert BARE.search("proved.") and BARE.search("Theorem 1   proved\n") and not BARE.search("proved at K = 2, 3")


def test_a_failure_is_the_summary_even_beside_a_proof():
    statement = at_sizes()
    report = AuditReport([row(statement, 0.2)], (statement,), {statement.id: (statement.prove().label,)})
    assert report.summary(statement).failures == ("area",) and not report.passed
    assert "FAILS: area" in report.text() and "<- should hold" in report.text()
    # Settings outside its assumptions say nothing against it.
    fine = AuditReport([row(statement, 0.2, inside=False)], (statement,), {statement.id: (statement.prove().label,)})
    assert fine.summary(statement).trust is Trust.PROVED_AT_SIZES and fine.passed


def test_a_correction_that_is_wrong_is_an_alarm_although_the_printed_form_holds():
    statement = at_sizes(corrected="x^2")
    assert row(statement, 0.01, 0.3).verdict is Verdict.WITHIN and row(statement, 0.01, 0.3).alarming
    assert not row(statement, 0.3, 0.01).alarming


@pytest.mark.parametrize(
    ("error", "tolerance", "expected"),
    [
        (0.5, 0.05, "misses by 50%"),
        (0.956, 0.05, "misses by 95.6%"),
        (12.0, 0.05, "misses by 12 times"),
        (float("nan"), 0.05, "misses by an undefined amount"),
        (float("inf"), 0.05, "misses by an amount where zero is expected"),
        (0.004, 0.05, "within 0.4%"),
        (1e-9, 0.05, "exact"),
        (1e-9, 0.0, "misses by 1e-07%"),
        (0.0, 0.0, "exact"),
        (None, 0.0, "-"),
    ],
)
def test_what_a_form_does_in_words(error, tolerance, expected):
    assert verdicts.describe(error, tolerance) == expected


def test_the_audit_puts_scope_on_every_row():
    report = yzflow.audit(["Bounded Dyck: Equation 13"], quick=True, seed=7)
    assert {one.level: one.label.scope.get("seeds") for one in report.table} == {"full flow": None, "SGD": (7,)}
    for one in report.table:
        scope = one.label.scope
        assert scope["error"] == (one.printed if one.corrected is None else one.corrected)
        assert scope["level"] == one.level and scope["setting"] == one.setting and scope["tolerance"] > 0
    rests = json.loads(report.json())["trust"]["Bounded Dyck: Equation 13"]
    measured = [label["scope"] for label in rests["labels"] if label["trust"] == "MEASURED"]
    assert measured and all(scope["settings"] and scope["level"] for scope in measured)


def test_labels_of_the_register_are_those_of_its_proofs():
    statement = statements.REGISTER["Scan and Snap: Transition time"]
    assert str(statement.trust[-1]) == str(papers()["scan_and_snap"].proofs["transition"]().label)
    assert not BARE.search(str(statement.trust[0]))


def test_levels_are_those_of_the_paper():
    paper = built_in()[0]
    odd = Check("error", ("another level",), lambda runs, level: 0.0)
    wrong = dataclasses.replace(paper.statements[0], checks=(odd,))
    with pytest.raises(
        ValueError, match=rf"`levels` must be of {re.escape(', '.join(paper.levels))}, but .* has another level"
    ):
        dataclasses.replace(paper, statements=(wrong,))
    # An assumption at a level that is not there would never be broken.
    never = Assumption("never", lambda setting: 0.0, ("another level",))
    check = Check("error", paper.levels[:1], lambda runs, level: 0.0, assumptions=(never,))
    with pytest.raises(ValueError, match=r"`levels` must be of .* has another level"):
        dataclasses.replace(paper, statements=(dataclasses.replace(wrong, checks=(check,), clauses=()),))


def test_what_is_expected_is_asked():
    """A check that should hold where it is not asked would never fail."""
    with pytest.raises(ValueError, match="`expected` must be one of 'full flow', but got 'theory flow'"):
        Check("error", ("full flow",), lambda runs, level: 0.0, expected=("theory flow",))


def test_engines_name_no_paper():
    papers = {statement.paper for statement in statements.REGISTER.values()}
    names = papers | {one.slug for one in built_in()} | {"arxiv", "theory flow", "modified flow"}
    engines = [
        *(ROOT / "theory" / "symbolic").glob("*.py"),
        *(ROOT / "yzflow" / "audits").glob("*.py"),
        ROOT / "theory" / "statements.py",
        ROOT / "theory" / "trust.py",
        ROOT / "theory" / "papers.py",
        ROOT / "yzflow" / "paper.py",
        ROOT / "yzflow" / "audits" / "plots.py",
        ROOT / "yzflow" / "papers" / "__init__.py",
    ]
    assert len(engines) >= 12
    found = {(path.name, name) for path in engines for name in names if name.lower() in path.read_text().lower()}
    assert not found


def test_an_assumption_says_nothing_at_levels_that_it_is_not_about():
    drawn = Assumption("T -> infinity: T >= 100", lambda setting: 0.5, levels=("SGD",))
    check = Check("area", ("closed form", "SGD"), lambda runs, level: 0.01, expected=("closed form",))
    statement = Statement("A paper", "Theorem 2", "Areas", "Half.", "x", assumptions=(drawn,), checks=(check,))
    assert statement.margins(None, check, "closed form") == {}
    assert statement.margins(None, check, "SGD") == statement.margins(None, check) == {drawn.text: 0.5}
    assert drawn.printed == "T -> infinity"


def test_what_suffices_stands_in_place_of_all_assumptions():
    strong, weak = Assumption("K >= 9", lambda setting: 0.5), Assumption("K >= 2", lambda setting: 2.0)
    check = Check("area", ("closed form",), lambda runs, level: 0.01, suffices=(weak,))
    bold = dataclasses.replace(check, name="slope", suffices=())
    statement = Statement("A paper", "Theorem 2", "Areas", "Half.", "x", assumptions=(strong,), checks=(check, bold))
    assert statement.margins(None, check) == {"K >= 2": 2.0} and statement.margins(None, bold) == {}
    assert statement.assumes == {"Assumes": ("K >= 9",), "area, only": ("K >= 2",), "slope, only": ()}
    with pytest.raises(ValueError, match="`suffices` must be all that a check assumes, but 'area' has assumptions"):
        dataclasses.replace(check, assumptions=(strong,))


@given(
    st.floats(0, 1e3) | st.floats(0, 3e-8) | st.floats(0.99, 1.01), st.sampled_from([1.4e-9, 1e-8, 0.02, 1.0, 0.996])
)
def test_an_error_in_words_is_on_its_side_of_the_tolerance(error, tolerance):
    """Also where both have the same first digits."""
    for size in (error, error * tolerance):
        said = sized(size, tolerance)
        number = float(said.rpartition(" ")[2])
        if "below" in said:
            assert size < number and size <= tolerance
        else:
            assert (number <= tolerance) == (size <= tolerance) and number == pytest.approx(size, rel=0.06)


def test_an_error_that_is_no_number_is_said_to_be_none():
    assert sized(float("nan"), 1e-9) == "error nan" and sized(float("inf")) == "error inf"
