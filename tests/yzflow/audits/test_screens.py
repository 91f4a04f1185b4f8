"""First screens of all statements at drawn results: one sentence, plain words, nothing cut, on one screen."""

import html
import re
import shlex
from dataclasses import replace
from unittest import mock

import click
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from theory import statements
from theory.statements import SHARPER, Source
from theory.trust import Label, Trust
from yzflow import cli
from yzflow.audits import formulas
from yzflow.audits import report as audit_page
from yzflow.audits.case import OwnCase
from yzflow.audits.check import StatementVerdict
from yzflow.audits.headlines import MOST
from yzflow.audits.outcomes import Absent, Column, Outcome, Part
from yzflow.audits.report import AuditReport
from yzflow.audits.screen import _short
from yzflow.audits.verdicts import Row
from yzflow.pages import statement as single

STATEMENTS = list(statements.REGISTER.values())
WORDS_OF_OURS = re.compile(
    r"(?<!`)\b(register|levels?|clauses?|weakest part|inside \d+ assumptions|nothing$)\b| \.\.", re.M
)
ERRORS = st.one_of(st.sampled_from([0.0, 1e-12, 1e-9, 0.02, float("nan"), float("inf")]), st.floats(0, 1e12))


class Setting:
    name = "your own: K = 12, M = 100,000, eta_Y = 0.0125, eta_Z = 0.0003125, T = 128"


@st.composite
def verdicts(draw, expected=False):
    """A statement with results at two settings, or at a reader's own, where some simulations may not have run."""
    statement = draw(st.sampled_from(STATEMENTS))
    own = draw(st.booleans())
    rows, absent, least = [], [], {}
    for check in statement.checks:
        for level in check.levels:
            if own and draw(st.integers(0, 3)) == 0:
                kind = draw(st.sampled_from([Outcome.STOPPED, Outcome.NOTHING, Outcome.NOT_RUN]))
                time = draw(st.floats(0.01, 1e6)) if kind is Outcome.STOPPED else None
                why = "`optimizer` must be 'sgd' for decoder='theory', but got 'adamw'"
                absent.append(Absent(check.name, level, kind, why, time))
                continue
            for setting in [Setting.name] if own else ["inside: K = 3, M = 2000, rho = 0.15", "outside: K = 4, M = 60"]:
                margins = {one.text: draw(st.floats(0.001, 10)) for one in statement.assumed(check)}
                least |= margins
                inside = all(margin >= 1 for margin in margins.values())
                error = draw(ERRORS)
                second = draw(ERRORS) if check.corrected is not None else None
                asked = expected and level in check.expected and inside
                label = Label(Trust.MEASURED, {"check": check.name, "level": level, "setting": setting, "error": error,
                                               "tolerance": check.tolerance, "assuming": tuple(margins)})  # fmt: skip
                rows.append(Row(statement.id, check.name, level, setting, inside, margins, error, second,
                                check.tolerance, asked, label))  # fmt: skip
    report = AuditReport(rows, (statement,), {})
    levels = tuple(dict.fromkeys(row.level for row in rows))
    case = OwnCase(Setting(), levels, margins=least, beyond=("adamw",) * draw(st.booleans())) if own else None
    return StatementVerdict(statement, report, True, 0, case, tuple(absent))


def own_words(verdict):
    """The screen without what the statement itself says."""
    text = " ".join(verdict.text().split())
    statement = verdict.statement
    said = [statement.title, statement.text, *(erratum.right for erratum in statement.errata)]
    said += [clause.name for clause in statement.clauses] + [check.name for check in statement.checks]
    said += [check.says for check in statement.checks]
    for phrase in sorted(said, key=len, reverse=True):
        text = text.replace(" ".join(phrase.split()), "")
    return text


@settings(max_examples=25, derandomize=True, phases=[Phase.explicit, Phase.generate])
@given(verdicts())
def test_a_first_screen_is_one_sentence_then_plain_words_and_nothing_is_cut(verdict):
    said = verdict.headline
    assert len(said) <= MOST and said.endswith(".") and " .." not in said and "\n" not in said
    lines = verdict.text().splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 100, verdict.text()
    shown = " ".join(verdict.text().split())
    assert shown.split(f"{verdict.statement.title} ", 1)[1].startswith(said)
    assert not WORDS_OF_OURS.search(own_words(verdict)), verdict.text()
    for entry in verdict.absent:
        if entry.time is not None:
            assert f"The {entry.level} stopped at t = {entry.time:,.4g}: try t_end=" in shown
        elif entry.outcome is Outcome.NOT_RUN:
            assert "Not run: " in shown and entry.why in shown


@settings(max_examples=15)
@given(verdicts(expected=True))
def test_a_failure_where_it_should_hold_is_in_the_headline_whole(verdict):
    said = verdict.headline
    assert len(said) <= MOST and " .." not in said
    assert said.startswith("FAILS where it should hold: ") == (not verdict.passed)


@settings(max_examples=10, derandomize=True, phases=[Phase.explicit, Phase.generate])
@given(verdicts(expected=True))
def test_a_page_has_each_reason_why_something_gave_no_number_whatever_else_failed(verdict):
    def plain(markup):
        return html.unescape(re.sub(r"<[^>]*>", "", markup))

    page = plain(single._numbers(verdict) + single._plot(verdict) + single._proof((), verdict))
    told = [entry.why for entry in verdict.absent] + [verdict.place]
    assert all(words in verdict.outcome and plain(formulas.readable(words)) in page for words in told)
    assert "No simulation is asked" not in page or not verdict.statement.checks
    assert ("The symbolic proof was not run." in page) == bool(verdict.statement.proofs)


def test_words_of_a_papers_source_are_no_markup():
    """Words of a paper from outside, which may hold any sign."""
    said = "as in <i>the talk's</i> slides & notes"
    statement = statements.REGISTER["Scan and Snap: Theorem 3"]
    check, level = statement.checks[0], statement.checks[0].expected[0]
    label = statement.measured(check, level=level, setting="here", error=0.1)
    row = Row(statement.id, check.name, level, "here", True, {}, 0.0, 0.1, check.tolerance, True, label)
    report = AuditReport([row], (statement,), {})
    verdict = StatementVerdict(statement, report, True, 0)
    with (
        mock.patch("yzflow.audits.report._plot", return_value=""),
        mock.patch.object(type(statement), "source", Source(said, said)),
    ):
        parts = [single._statement(statement), single._numbers(verdict), single._trust(verdict), single._plot(verdict)]
        parts += [single._sharper(replace(statement, text=f"Holds.{SHARPER}always."))]
        for part in [*parts, audit_page._folded(report, statement)]:
            assert "<i>" not in part and "in <i>the talk's</i> slides & notes" in html.unescape(part), part


@given(st.sampled_from(list(Trust)), st.lists(st.text("ab c", min_size=1), max_size=2), st.sampled_from(["", "(b)"]))
def test_a_ground_in_short_keeps_what_limits_it(trust, prose, clause):
    """A theorem of a kernel has hypotheses, and a proof may have steps in words."""
    scope = {} if trust in (Trust.PROVED, Trust.ARGUED, Trust.NOT_EXAMINED) else {"K": (2, 3)}
    assume(prose or trust not in (Trust.ARGUED, Trust.NOT_EXAMINED))
    said = _short(Label(trust, scope, prose=tuple(prose), clause=clause))
    assert said.startswith(f"{clause}: " * bool(clause))
    assert ("under its hypotheses" in said) == (trust is Trust.KERNEL_CHECKED)
    if trust in (Trust.PROVED, Trust.PROVED_AT_SIZES):
        assert ("some steps in words" in said) == bool(prose)


def test_a_page_names_what_was_not_run_beside_what_was():
    """A reader who asks for one level sees that SGD has no verdict."""
    ran = Column("true gradient", (Part("signs", Outcome.HOLDS, 0.0, settings=("here",)),))
    unrun, unasked = Column("SGD", (Part("signs", Outcome.NOT_RUN),)), Column("theory")
    assert "SGD</span> not run" in single.outcomes([ran, unrun, unasked])
    assert "theory" not in single.outcomes([ran, unrun, unasked]) and single.outcomes([unrun, unasked]) == ""


@settings(max_examples=10)
@given(verdicts())
def test_commands_of_a_page_are_those_of_a_check_that_can_be_run(verdict):
    """Also at a reader's own data, which only `check` takes; what stands for the reader's own is in capitals."""
    text = html.unescape(re.search("<pre><code>(yzflow.*?)</code>", single._again(verdict), re.S)[1])
    for line in text.splitlines():
        name, *arguments = shlex.split(line)[1:]
        blanks = [argument for argument in arguments if argument in ("FILE", "TRAINING")]
        assert blanks == ["FILE", "TRAINING"] * (verdict.own is not None)
        rest = [argument for argument in arguments if argument != "TRAINING"]
        cli.main.get_command(click.Context(cli.main), name).make_context(name, rest)
