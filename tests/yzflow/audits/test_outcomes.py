"""The verdict in four columns: what it is made of, and that its sentence says what the rows say."""

import dataclasses
from dataclasses import replace

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from ours import OURS

from theory import layout
from theory.statements import Check, Clause, Remark, Statement
from theory.symbolic import Derivation
from theory.trust import Label, Trust
from yzflow.audits.headlines import headline, sentence
from yzflow.audits.outcomes import COLUMNS, Column, Outcome, Part, four_columns
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row
from yzflow.paper import papers

PAPER = "Scan and Snap"
LEVELS = ("theory flow", "modified flow", "full flow", "SGD")


def check(name="bounds", **more):
    expected = {"expected": ("theory flow",), **more}
    return Check(name, LEVELS, lambda runs, level: 0.0, lambda runs, level: 0.0, says=f"the {name}", **expected)


def statement(*found, **more):
    given = {"corrected": "y", "prove": lambda: Derivation("", {"": sympy.Integer(0)}, sizes={}), **more}
    return Statement(PAPER, "Theorem 0", "Growth", "It grows.", "x", checks=found, **given)


def row(own, level="theory flow", printed=0.0, corrected=0.0, *, setting="one", inside=True, refuted=False):
    label = Label(Trust.MEASURED, {"error": corrected})
    expected = inside and level in own.expected
    return Row(
        f"{PAPER}: Theorem 0", own.name, level, setting, inside, {}, printed, corrected, own.tolerance, expected, label,
        refuted=refuted,
    )  # fmt: skip


PROOF = (Label(Trust.PROVED),)


def outcomes(columns):
    return [column.outcome for column in columns]


def test_each_column_has_its_own_levels_and_form():
    own = check()
    rows = [row(own, printed=0.5), row(own, "modified flow", corrected=0.9), row(own, "full flow", corrected=0.7)]
    columns = four_columns(statement(own), rows, PROOF)
    assert [column.name for column in columns] == list(COLUMNS)
    # The modified flow is not where it should hold, and SGD was not run.
    assert outcomes(columns) == [Outcome.FAILS, Outcome.HOLDS, Outcome.FAILS, Outcome.NOT_RUN]
    assert [column.words for column in columns] == [
        "fails by up to 50%", "holds", "fails by up to 70%", "not run",
    ]  # fmt: skip
    words = sentence(columns)
    assert words.startswith("As printed it failed, by up to 50%. In the theory it held and is proved. ")
    assert words.endswith("Under the true gradient it failed, by up to 70%.")
    assert columns[2].as_dict()["parts"][0]["settings"] == ["one"]


def test_the_headline_is_that_of_the_true_gradient_or_else_of_the_theory():
    own = check()
    rows = [row(own, printed=0.5), row(own, "full flow", corrected=0.7)]
    columns = four_columns(statement(own), rows, PROOF)
    assert headline(columns) == "Under the true gradient it failed, by up to 70%."
    assert headline(columns[:2]) == "In the theory it held and is proved."
    assert headline(four_columns(statement(own), [], ())) == "Nothing was run for this."
    many = tuple(Part(f"part {n}", Outcome.FAILS, n / 10) for n in range(4))
    words = headline([Column("SGD", many)])
    assert words == "In SGD part 3 failed, by up to 30%; part 2 failed, by up to 20%; 2 more failed."


def test_a_part_that_holds_does_not_hide_one_that_fails():
    signs, bounds = check("signs", reversible=True, tolerance=0.0), check()
    rows = [row(signs, "full flow"), row(bounds, "full flow", corrected=0.999, setting="two")]
    column = four_columns(statement(signs, bounds), rows, PROOF)[2]
    assert column.outcome is Outcome.FAILS and column.size.settings == ("two",)
    assert sentence([column]) == "Under the true gradient the signs held; the bounds failed, by up to 99.9%."
    # A share of places is no relative error.
    rows = [row(signs, "full flow", corrected=0.25), row(bounds, "full flow")]
    column = four_columns(statement(signs, bounds), rows, PROOF)[2]
    assert column.words == "fails in up to 0.25 of all places"


def test_the_worst_setting_inside_decides_and_none_outside_does():
    own = check()
    rows = [row(own), row(own, corrected=0.3, inside=False), row(own, corrected=0.01, setting="two")]
    asked = statement(own)
    report = AuditReport(rows, (asked,), {asked.id: PROOF})
    assert report.columns(asked)[1].outcome is Outcome.HOLDS
    assert report.columns(asked, everywhere=True)[1].words == "fails by up to 30%"
    worse = [*rows, row(own, corrected=float("nan"), setting="three")]
    column = four_columns(asked, worse, PROOF)[1]
    assert column.words == "fails by an undefined amount"
    endless = [*rows, row(own, corrected=float("inf"), setting="three")]
    assert four_columns(asked, endless, PROOF)[1].words == "fails by an amount where zero is expected"


def test_what_balls_refute_is_refuted_although_the_sample_holds():
    own = check()
    column = four_columns(statement(own), [row(own, corrected=0.01, refuted=True)], PROOF)[1]
    assert column.outcome is Outcome.REFUTED
    assert "failed" not in sentence([column]) and "was found false in balls" in sentence([column])


def test_a_proof_that_fails_fails_the_theory_beside_checks_that_hold():
    own = check()
    broken = (dataclasses.replace(PROOF[0], failures=("area",)),)
    columns = four_columns(statement(own), [row(own)], broken)
    assert columns[1].outcome is Outcome.FAILS and "the proof failed" in sentence(columns)


def test_what_was_not_run_says_so():
    own = check()
    columns = four_columns(statement(own), [], ())
    assert set(outcomes(columns)) == {Outcome.NOT_RUN} and sentence(columns) == "Nothing was run for this."
    bare = four_columns(statement(corrected=None, prove=None, argued=("so",)), [], ())
    assert set(outcomes(bare)) == {Outcome.NOT_EXAMINED}
    assert sentence(bare) == "No simulation and no proof is asked about this statement."


def test_what_is_ours_has_nothing_printed():
    ours = dataclasses.replace(statement(check()), title="Growth (not in the paper)")
    column = four_columns(ours, [row(check(), printed=0.9)], PROOF)[0]
    assert column.outcome is Outcome.NOT_EXAMINED and column.reason.startswith("it is ours")


def test_a_conjecture_is_refuted_only_by_what_was_run():
    own = check()
    conjecture = statement(own, conjecture=True, refuted="for M = O(N)")
    column = four_columns(conjecture, [row(own)], PROOF)[0]
    assert column.words == "refuted here, for M = O(N)"
    assert sentence([column]) == "As printed it is refuted here, for M = O(N)."
    # Never that the conjecture held: what is measured and proved is what refutes it.
    columns = four_columns(conjecture, [row(own)], PROOF)
    assert headline(columns) == sentence([column]) and columns[1].words == "what refutes it holds"
    assert sentence(columns) == f"{sentence([column])} In the theory what refutes it held and is proved."
    assert four_columns(conjecture, [], ())[0].words == "not run"
    # A construction that gives wrong outputs refutes nothing.
    assert four_columns(conjecture, [row(own, corrected=0.9)], PROOF)[0].outcome is Outcome.FAILS


def test_every_level_of_every_paper_is_in_one_column():
    for paper in papers().values():
        levels = layout.columns(paper.name)
        assert list(levels) == list(COLUMNS)[1:], paper
        assert sorted(level for own in levels.values() for level in own) == sorted(paper.levels)
    pytest.importorskip("yzflow_enclose", reason="a replaced paper has all of its parts")
    paper = next(one for one in papers().values() if one.name == PAPER)
    with pytest.raises(ValueError, match="`columns` must have each of `levels` once"):
        replace(paper, columns={"theory": ("theory flow",), "true gradient": (), "SGD": ()})


def test_words_of_a_column_without_parts():
    assert Column("SGD").words == "not examined"
    assert Column("SGD", (Part("x", Outcome.HOLDS), Part("y", Outcome.NOT_RUN))).outcome is Outcome.HOLDS


def test_a_proof_of_some_clauses_is_not_called_one_of_all():
    own, prove = check(), lambda: Derivation("", {"": sympy.Integer(0)}, sizes={})
    clauses = (Clause("first", "x", prove=prove, checks=(own,)), Clause("second", "y", argued=("so",)))
    some = Statement(PAPER, "Theorem 0", "Growth", "It grows.", "x", corrected="y", clauses=clauses)
    proof = (Label(Trust.PROVED, clause="first"),)
    assert headline(four_columns(some, [row(own)], proof)).endswith("it held and is proved in 1 of 2 parts.")
    both = (*proof, Label(Trust.PROVED, clause="second"))
    assert headline(four_columns(some, [row(own)], both)).endswith("it held and is proved.")


@given(st.lists(st.booleans(), min_size=2, max_size=2), st.integers(1, 60))
def test_a_proof_at_sizes_is_never_called_one_of_all(fixed, many):
    """In a sentence with its sizes; in a headline at least with words that there are some."""
    own, prove = check(), lambda: Derivation("", {"": sympy.Integer(0)}, sizes={})
    clauses = (Clause("first", "x", prove=prove, checks=(own,)), Clause("second", "y", prove=prove))
    some = Statement(PAPER, "Theorem 0", "Growth", "It grows.", "x", corrected="y", clauses=clauses)
    sizes = {"K": tuple(range(2, 2 + many))}
    proofs = tuple(
        Label(Trust.PROVED_AT_SIZES if known else Trust.PROVED, sizes if known else {}, clause=clause.name)
        for known, clause in zip(fixed, clauses, strict=True)
    )
    columns = four_columns(some, [row(own)], proofs)
    at = ", ".join(map(str, sizes["K"]))
    only = "" if all(fixed) else ", some parts only"
    for said in (sentence(columns), headline(columns)):
        if not any(fixed):
            assert said.endswith("it held and is proved.")
        else:
            whole = said.endswith(f"it held and is proved{only} at K = {at}.")
            assert whole or (said.endswith(f"it held and has a proof{only} at fixed sizes.") and many > 20)


def missed_as_printed(one):
    """The column of what is printed, were every printed form that has a corrected one missed, and that one right."""
    checks = [check for check in one.checks if check.corrected is not None and check.suffices is None]
    rows = [row(check, level, printed=1.0 + check.tolerance) for check in checks for level in check.expected]
    return four_columns(one, rows, PROOF)[0]


@pytest.mark.parametrize("one", [one for one in OURS.values() if one.errata], ids=lambda one: one.id)
def test_what_is_printed_fails_only_where_the_errata_have_an_error(one):
    column = missed_as_printed(one)
    missed = [part for part in column.parts if part.outcome in (Outcome.FAILS, Outcome.DIFFERS)]
    remarked = {check.says or check.name for check in one.checks if check.remarked}
    accused = any(not isinstance(erratum, Remark) for erratum in one.errata)
    for part in missed:
        assert part.outcome is (Outcome.FAILS if accused and part.says not in remarked else Outcome.DIFFERS)
    if missed and not accused:
        assert column.words.startswith("differs") and column.words.endswith("(a remark)")
        assert "fail" not in sentence([column])
        assert "differed" in sentence([column]) and "a remark" in sentence([column])
    assert not remarked or (accused and any(isinstance(erratum, Remark) for erratum in one.errata))


def test_a_form_without_an_erratum_or_a_right_one_is_not_excused():
    own = check()
    rows = [row(own, printed=0.5)]
    assert outcomes(four_columns(statement(own), rows, PROOF))[0] is Outcome.FAILS
    remarked = statement(own, errata=("A constant.",))
    assert outcomes(four_columns(remarked, rows, PROOF))[0] is Outcome.DIFFERS
    assert outcomes(four_columns(remarked, [row(own, printed=0.5, corrected=0.5)], PROOF))[0] is Outcome.FAILS


def test_a_factor_in_a_constant_is_no_failure_beside_one():
    column = missed_as_printed(OURS["Scan and Snap: Section 7, residual connection"])
    by_outcome = {part.outcome: part.says for part in column.parts if part.outcome is not Outcome.NOT_RUN}
    assert by_outcome == {
        Outcome.DIFFERS: "beta within a query, 200 random sets",
        Outcome.FAILS: "locally distinct tokens that do not gain",
    }
    assert column.words.startswith("fails")


def test_a_failure_is_named_before_what_only_differs():
    parts = (Part("the size", Outcome.DIFFERS, 3.0), Part("the sign", Outcome.FAILS, 0.1))
    assert sentence([Column("as printed", parts)]).startswith(
        "As printed the sign failed, by up to 10%; the size differed,"
    )
    assert Column("as printed", parts).words == "fails by up to 10%"
    steps = Column("SGD", parts[1:])
    assert "In SGD it failed" in f"In {headline([Column('theory', parts[:1]), steps]).partition('; in ')[2]}"


def test_what_held_and_was_not_run_elsewhere_says_where():
    """On the screen, on pages and in JSON."""
    held, unrun = Part("the sign", Outcome.HOLDS, 0.0), Part("the bound", Outcome.NOT_RUN)
    column = Column("true gradient", (held, unrun))
    assert headline([column]) == "Under the true gradient it held where it was run (1 of 2 parts)."
    assert sentence([column]) == headline([column])
    assert column.as_dict()["words"] == column.under == "holds where it was run (1 of 2 parts)"
    whole = Column("true gradient", (held, replace(unrun, outcome=Outcome.HOLDS, size=0.0)))
    assert (headline([whole]), whole.words) == ("Under the true gradient it held.", "holds")
    missed = [replace(held, says=f"sign {n}") for n in range(3)] + [replace(held, outcome=Outcome.FAILS, size=0.5)]
    assert sentence([Column("SGD", (*missed, unrun))]).endswith("; what else was run held.")
    assert sentence([Column("SGD", tuple(missed))]).endswith("; the rest held.")
