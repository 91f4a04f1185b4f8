"""One sentence for a reader: what happened in training comes first, and no word of it hides a failure."""

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import yzflow as yz
from dynamics.support import rounded
from theory.scan_and_snap import measures
from theory.statements import Assumption, Check
from theory.trust import Label, Trust
from yzflow.audits import audit
from yzflow.audits.case import OwnCase
from yzflow.audits.check import StatementVerdict
from yzflow.audits.find_statement import find
from yzflow.audits.headlines import MOST, headline, own_headline, sentence
from yzflow.audits.outcomes import COLUMNS, Absent, Column, Outcome, Part, four_columns
from yzflow.audits.own_training import measure, own_case
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row, amount, describe
from yzflow.papers.scan_and_snap import phase_transition

CLASSES = yz.SequenceClasses([[0.4, 0.4, 0.2, 0, 0], [0.4, 0, 0, 0.4, 0.2]], query=[0, 0], vocab_size=100)
APART = yz.SequenceClasses([[0.5, 0.3, 0.2, 0, 0, 0], [0, 0, 0, 0.5, 0.3, 0.2]], [0, 0], vocab_size=20)
SINGLE = yz.SequenceClasses([[0.5, 0.5, 0], [0.5, 0, 0.5]], [0, 0], vocab_size=4)


def own(number, data, **given):
    """The verdict at a reader's data, without the proof."""
    statement = find(f"Scan and Snap: {number}")
    case = own_case(statement, level=given.pop("level", None), data=data, **{"t_end": 20.0, **given})
    rows, case, absent, _ = measure(statement, case, seed=0)
    proved = {statement.id: (Label(Trust.PROVED),)}
    return StatementVerdict(statement, AuditReport(rows, (statement,), proved), True, 0, case, absent)


def outcome(verdict, name):
    return next(column for column in verdict.columns if column.name == name).outcome


OUTCOMES = [one for one in Outcome if one not in (Outcome.NOT_RUN, Outcome.NOT_EXAMINED)]


@st.composite
def parts(draw):
    found = draw(st.sampled_from(OUTCOMES))
    sized = found in (Outcome.FAILS, Outcome.HOLDS, Outcome.REFUTED) and draw(st.booleans())
    size = draw(st.floats(0, 1e12)) if sized else None
    return Part(
        draw(st.text("abcde ", min_size=1, max_size=90)).strip() or "a",
        found,
        size,
        share=size is not None and size <= 1 and draw(st.booleans()),
        beyond=draw(st.booleans()),
        unmet=("an assumption " * draw(st.integers(1, 9)), 0.3) if found is Outcome.NOT_MET else None,
        stopped=draw(st.floats(0, 1e9)) if found is Outcome.STOPPED else None,
    )


@given(
    st.lists(st.lists(parts(), max_size=6), min_size=4, max_size=4), st.text("xyz, ", max_size=200), st.integers(0, 14)
)
def test_a_headline_is_one_sentence_of_160_characters_that_hides_no_failure_in_training(found, training, broken):
    columns = [Column(name, tuple(own)) for name, own in zip(COLUMNS, found, strict=True)]
    failed = [column for column in columns[2:] if column.outcome in (Outcome.FAILS, Outcome.REFUTED)]
    for said in (headline(columns), own_headline(columns, training=training, broken=broken, of=14)):
        assert len(said) <= MOST and said.endswith(".") and "\n" not in said
        assert not failed or "failed" in said or "was found false" in said
    stopped = [column for column in columns[2:] if column.outcome is Outcome.STOPPED]
    assert not stopped or "training stopped at t = " in own_headline(columns)


def test_what_stopped_is_said_and_the_theory_is_not_what_happened():
    """Adam, whose full flow comes to no end: all that was proved is the theory."""
    columns = [
        Column("as printed", (Part("it", Outcome.NOT_RUN),)),
        Column("theory", (Part("the proof", Outcome.HOLDS),)),
        Column("true gradient", (Part("signs", Outcome.STOPPED, stopped=2838.08), Part("rates", Outcome.STOPPED))),
        Column("SGD", (Part("the signs", Outcome.FAILS, 1.0, share=True),)),
    ]
    said = own_headline(columns, training="adam", broken=6, of=12)
    assert said == (
        "In your full flow (adam) training stopped at t = 2,838; in your SGD the signs failed, in all places; "
        "6 of 12 assumptions broken."
    )
    assert columns[2].words == "stopped (at t = 2,838)"
    assert "in the theory" not in said.lower()


@pytest.mark.slow
def test_a_flow_that_stops_says_when_and_how_to_go_on():
    data = yz.SequenceClasses.single_common_token(4, 60, common=0.3, distinct=[1.0, 0.5])
    verdict = own("Theorem 2(a)", data, eta_y=0.01, eta_z=0.001, optimizer="adam", t_end=None)
    facts = json.loads(verdict.json())
    # Where steps get too short is in the last bits of each, which another processor rounds otherwise.
    (part, *_) = facts["columns"]["true gradient"]["parts"]
    stopped = part["stopped"]
    assert 1000 < stopped < 10_000
    assert verdict.headline.startswith(f"In your full flow (adam) training stopped at t = {stopped:,.4g};")
    assert "in your SGD it failed" in verdict.headline and "theory" not in verdict.headline
    cure = f"{stopped / 2:.4g}"
    assert f"The full flow stopped at t = {stopped:,.4g}: try t_end={cure}, or smaller rates." in verdict.next
    assert facts["columns"]["true gradient"]["outcome"] == "stopped" and facts["headline"] == verdict.headline
    assert facts["next"] == verdict.next
    # The cure is one.
    again = own("Theorem 2(a)", data, eta_y=0.01, eta_z=0.001, optimizer="adam", t_end=float(cure), level="full flow")
    assert outcome(again, "true gradient") in (Outcome.HOLDS, Outcome.FAILS) and again.next.startswith("Leave out")


def test_what_was_not_run_is_said_with_how_to_run_it():
    verdict = own("Corollary 2", CLASSES, level="full flow")
    assert "; SGD was not run;" in verdict.headline and verdict.next == "Leave out `level` to run SGD, too."
    verdict = own("Corollary 2", CLASSES, level="theory flow")
    assert verdict.headline.startswith("Your training was not run; in the theory it held and is proved")
    assert verdict.next == "Leave out `level` to run full flow and SGD, too."
    assert own("Corollary 2", CLASSES).next == ""


def test_steps_that_fail_beside_a_flow_that_holds_are_said():
    verdict = own("Theorem 2(b)", CLASSES, t_end=30.0)
    assert outcome(verdict, "true gradient") is Outcome.HOLDS and outcome(verdict, "SGD") is Outcome.FAILS
    assert verdict.headline.startswith(
        "In your full flow it held; in your SGD the sign of the common token's change fail"
    )


def test_an_identity_with_nothing_to_compare_never_held():
    """One distinct token in a class: (11) has no other that it could gain on."""
    verdict = own("Theorem 3", SINGLE, t_end=10.0)
    parts = {part.says: part.outcome for column in verdict.columns[2:] for part in column.parts}
    assert parts["the identity (11)"] is Outcome.NOTHING and outcome(verdict, "SGD") is Outcome.NOTHING
    assert "in your SGD there was nothing to compare" in verdict.headline
    assert "(11) held" not in verdict.outcome and "(11) held" not in verdict.headline


@pytest.mark.parametrize("number", ["Theorem 2(a)", "Lemma 4", "Theorem 3"])
@pytest.mark.parametrize("level", ["theory flow", "modified flow", "full flow"])
def test_velocities_that_are_zero_within_rounding_are_no_failure(number, level):
    """Classes without a common token: nothing moves, and the sign of a rounding error is none."""
    verdict = own(number, APART, level=level)
    assert all(row.check.endswith("identity (11)") for row in verdict.rows)
    assert "fail" not in verdict.headline


def test_adam_makes_no_signs_of_rounding():
    """It divides gradients by their size, and so rounding by epsilon: here all entries of Y are alike."""
    alike = yz.SequenceClasses([[1 / 3] * 3 + [0] * 3, [0] * 3 + [1 / 3] * 3], [0, 0], vocab_size=20)
    verdict = own("Theorem 2(a)", alike, level="full flow", optimizer="adam", eta_y=0.01, eta_z=0.01, t_end=3.0)
    assert verdict.headline.startswith("In your full flow (adam) there was nothing to compare")
    verdict = own("Corollary 2", CLASSES, level="full flow", optimizer="adam", eta_y=0.01, eta_z=0.01, t_end=10.0)
    assert len(verdict.rows) == 2


def test_a_token_that_never_moves_has_no_sign_beside_one_that_does():
    """Half of the tokens are of a query whose classes have nothing in common."""
    shares = np.zeros((4, 10))
    shares[:2, :5] = CLASSES.probabilities.toarray()
    shares[2, 5:7], shares[3, 7:9] = (0.6, 0.4), (0.7, 0.3)
    data = yz.SequenceClasses(shares, [0, 0, 1, 1], vocab_size=50)
    runs = audit.Simulations(own_case(find("Theorem 2(a)"), level=None, data=data, t_end=20.0).setting, seed=0)
    for level in ("theory flow", "modified flow", "full flow"):
        assert measures.theorem2_distinct_velocity(runs, level) == 0.5
        assert measures.theorem2_distinct(runs, level) == 0.5


@given(st.floats(0.5, 2), st.integers(1, 6))
def test_a_margin_that_fails_is_never_rounded_to_one_that_holds(margin, digits):
    assert (float(rounded.margin(margin, digits)) >= 1) == (margin >= 1)


@given(st.floats(0.5, 2))
def test_a_condition_that_fails_is_not_missed_by_a_factor_of_one(margin):
    assert margin >= 1 or float(phase_transition._factor(margin)) > 1


@given(st.floats(0, 0.9999), st.floats(0, 1))
def test_an_error_is_never_rounded_across_its_tolerance(tolerance, error):
    assume(error == tolerance or abs(error - tolerance) > 1e-14)
    said = amount(error, tolerance).removesuffix("%")
    assert (float(said.replace(",", "")) <= 100 * tolerance) == (error <= tolerance)
    words = describe(error, tolerance)
    assert words.startswith("misses") == (error > tolerance)


@given(st.floats(0, 1))
def test_a_share_that_is_not_all_is_not_said_to_be_all(share):
    by = Part("signs", Outcome.FAILS, share, share=True).by
    assert (by == "in all places") == (share == 1) and (share == 1 or float(by.split()[3]) < 1)


def test_large_errors_are_written_out():
    assert [amount(error) for error in (9.9996, 12.3, 3.8e5)] == ["1,000%", "12 times", "380,000 times"]


@pytest.mark.parametrize("margin", [0.9996, 0.99999, 1 - 1e-9])
def test_margins_in_all_texts_stay_below_one(margin):
    verdict = own("Corollary 2", CLASSES, level="theory flow")
    case = OwnCase(verdict.own.setting, verdict.own.levels, margins={"something": margin})
    verdict = StatementVerdict(verdict.statement, verdict.report, True, 0, case)
    assert "something (margin 0.99" in verdict.place and "something (margin 0.99" in verdict.text()
    assert any("(0.99" in line for line in verdict.text(verbose=True).splitlines())


MET, UNMET = {"it is so": 1.5}, {"it is so": 1.5, "right at every length: a tenth": 0.0056}


def check_of(name, *, suffices=None):
    return Check(name, ("full flow", "SGD"), lambda runs, level: 0.0, says=f"the {name}", suffices=suffices)


def row(asked, margins, error=0.0, level="full flow"):
    inside = all(margin >= 1 for margin in margins.values())
    label = Label(Trust.MEASURED, {"error": error})
    return Row("Scan and Snap: X", asked.name, level, "one", inside, margins, error, None, 0.05, False, label)


def statement_of(*asked):
    from theory.statements import Statement

    return Statement("Scan and Snap", "X", "X", "X.", "x", checks=asked)


def test_a_hypothesis_that_nothing_met_is_not_met_whatever_holds_beyond_it():
    core, limit = check_of("pair"), check_of("limit", suffices=(Assumption("so", lambda setting: 1.0),))
    rows = [row(core, UNMET, 0.5), row(limit, MET)]
    _, _, trained, steps = columns = four_columns(statement_of(core, limit), rows, ())
    assert trained.outcome is Outcome.NOT_MET and trained.words == "not met (margin 0.0056)"
    assert trained.as_dict()["outcome"] == "not met"
    assert trained.as_dict()["parts"][0]["unmet"] == ["right at every length: a tenth", 0.0056]
    assert steps.outcome is Outcome.NOT_RUN
    wanted = (
        "Under the true gradient its hypothesis was not met (right at every length: margin 0.0056); the limit held."
    )
    assert headline(columns) == wanted and sentence([trained]) == wanted
    # At a reader's own setting what happened there is said.
    assert four_columns(statement_of(core, limit), rows, (), everywhere=True)[2].outcome is Outcome.FAILS
    # A part that is met decides, and one that is not is named.
    _, _, trained, _ = four_columns(
        statement_of(core, check_of("other")), [row(core, UNMET), row(check_of("other"), MET)], ()
    )
    assert trained.outcome is Outcome.HOLDS and headline([trained]).endswith("the other held; the pair: not met.")
    # Beyond the hypothesis a failure is one.
    rows = [row(core, UNMET), row(limit, MET, 0.5)]
    assert four_columns(statement_of(core, limit), rows, ())[2].outcome is Outcome.FAILS


def test_a_conjecture_is_not_refuted_by_nothing():
    from dataclasses import replace

    core = check_of("construction")
    conjecture = replace(statement_of(core), conjecture=True, refuted="for M = O(N)")
    printed = four_columns(conjecture, [row(core, UNMET)], ())[0]
    assert printed.outcome is Outcome.NOT_MET and "refuted" not in sentence([printed])


def test_a_simulation_that_came_to_no_end_is_tried_once():
    calls = []

    def simulate(level, *, seed):
        calls.append(level)
        raise ValueError("`optimizer` must be another")

    runs = audit.Simulations(SimpleNamespace(simulate=simulate), seed=0)
    for _ in range(3):
        with pytest.raises(ValueError, match="another") as told:
            runs.trajectory("full flow")
        assert runs.refused(told.value) and not runs.refused(ValueError("`optimizer` must be another"))
    assert calls == ["full flow"]


def test_levels_that_refuse_are_told_from_data_that_have_nothing():
    verdict = own("Corollary 2", SINGLE, optimizer=yz.Optimizer("sgd", momentum=0.5), t_end=5.0)
    kinds = {(one.level, one.outcome) for one in verdict.absent}
    assert ("theory flow", Outcome.NOT_RUN) in kinds and "Not run: theory flow: `momentum` must be 0.0" in verdict.next
    verdict = own("Corollary 2", APART, t_end=5.0)
    assert {one.outcome for one in verdict.absent if one.check} == {
        Outcome.NOTHING
    } and "Not run" not in verdict.outcome
    assert all(isinstance(one, Absent) and one.why for one in verdict.absent)
    assert list(itertools.chain(*[column.parts for column in verdict.columns]))
