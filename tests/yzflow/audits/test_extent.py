"""How much was run, and what was not: quick against full, refused levels, vacuous statements, each row's own span."""

from dataclasses import dataclass, replace

import pytest

import yzflow as yz
from theory import papers
from theory.statements import Assumption, Check, Statement
from yzflow.audits.enclosing import Decided, EnclosedFlow

LEVELS = ("full flow", "SGD")


@dataclass(frozen=True)
class Setting:
    """A setting of M next tokens; the larger one has no SGD."""

    name: str
    size: int

    def simulate(self, level, *, seed):
        if level == "SGD" and self.size > 10:
            raise ValueError(f"`level` must be one that M = {self.size} has, but got 'SGD'")
        classes = yz.SequenceClasses.single_common_token(3, self.size, common=0.5)
        return yz.gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=1.0, n_times=3)


def ends(runs, level):
    """The first row follows the run, and fails at the larger setting in the flow."""
    runs.trajectory(level)
    return float(runs.setting.size > 10 and level == "full flow")


def breaks(runs, level):
    raise ZeroDivisionError("a slip of the measure")


def statement(number, measure=ends, *, margin=2.0, tolerance=2.0):
    check = Check("the end", LEVELS, measure, tolerance=tolerance, expected=LEVELS)
    return Statement("Mine", number, "An end", "It ends.", "t = 1", checks=(check,),
                     assumptions=(Assumption("M > 1", lambda setting: margin),))  # fmt: skip


def sizes(*, quick):
    return [Setting("small", 10)] if quick else [Setting("small", 10), Setting("large", 20)]


@pytest.fixture
def paper():
    found = yz.Paper(
        "Mine", "mine", "us", levels=LEVELS, settings=sizes,
        statements=(
            statement("Lemma 1"), statement("Lemma 2", tolerance=0.5), statement("Lemma 3", margin=0.5),
            statement("Lemma 4", breaks),
        ),
        columns={"true gradient": LEVELS[:1], "SGD": LEVELS[1:]},
    )  # fmt: skip
    yz.register(found)
    yield found
    papers.forget()


def test_check_and_audit_say_how_much_was_run(paper):
    """The failure is at the setting that only the full audit runs: both say so."""
    held, audit = yz.check("Mine: Lemma 2"), yz.audit(["Mine: Lemma 2"])
    assert held.passed and not audit.passed
    assert "  run:            1 of 2 settings (quick; --full runs all)" in held.text().splitlines()
    assert "Run: all 2 settings." in audit.failures() and "Run: all 2 settings." in audit.text()
    assert "1 of 2 settings (quick" in held.markdown() and held.as_dict()["run"] in held.markdown()
    whole = yz.check("Mine: Lemma 2", quick=False)
    assert not whole.passed and "  run:            all 2 settings" in whole.text().splitlines()


def test_a_setting_that_refuses_a_level_is_a_row_and_the_rest_goes_on(paper, tmp_path):
    audit = yz.audit(["Mine: Lemma 1", "Mine: Lemma 3"])
    assert audit.passed and len(audit.table) == 6
    why = "`level` must be one that M = 20 has, but got 'SGD'"
    line = f"Not measured: Mine: Lemma 1, the end in the SGD at large: {why}"
    assert line in audit.failures() and line in audit.text()
    audit.to_html(tmp_path / "audit.html")
    assert "Not measured: Mine: Lemma 1" in (tmp_path / "audit.html").read_text()
    assert '"setting": "large"' in audit.json()
    whole = yz.check("Mine: Lemma 1", quick=False)
    assert "Not run: SGD at large: `level` must be one that M = 20 has, but got 'SGD'." in whole.outcome
    assert "Not run: SGD at large" in whole.text()
    assert {column.name: column.outcome.value for column in whole.columns}["SGD"] == "holds"


def test_an_error_of_a_measure_names_statement_and_setting(paper):
    with pytest.raises(ZeroDivisionError) as caught:
        yz.audit(["Mine: Lemma 4"])
    told = ["in Mine: Lemma 4, 'the end' in the full flow at small"]
    assert getattr(caught.value, "__notes__", told) == told


def test_a_statement_that_no_setting_is_inside_of_is_said_to_be_vacuous(paper):
    verdict = yz.check("Mine: Lemma 3", quick=False)
    said = "Vacuous here: its assumptions hold at none of the 2 settings that were run."
    assert verdict.headline == said and verdict.outcome.startswith(said) and said in verdict.text()
    assert f"Mine: Lemma 3: {said}" in yz.audit(["Mine: Lemma 3"]).failures()
    assert not yz.audit(["Mine: Lemma 1"]).vacuous(paper.statements[0])
    nowhere = yz.Paper("Mine", "mine", "us", levels=LEVELS, statements=paper.statements[:1], settings=lambda quick: [])
    yz.register(nowhere)
    assert yz.check("Mine: Lemma 1").headline.startswith("Vacuous here: ")


def test_each_row_that_balls_decide_has_its_own_span(paper):
    """Asked to t = 10,000, a flow that ends at 40 is decided to 40."""
    audit = yz.audit(["Mine: Lemma 1"])
    proved = [Decided(True, end, end, None, "") for end in (40.0, 25.0)]
    spans = [*proved, Decided(None, 1e4, 3.0, None, "wide")]
    rows = [replace(row, decided=decided) for row, decided in zip(audit.table, spans, strict=True)]
    flows = {(row.setting, row.level) for row in rows}
    enclosed = tuple(EnclosedFlow(setting, level, 1, 1, 40.0, "") for setting, level in flows)
    said = replace(audit, table=rows, enclosed=enclosed).decided()
    assert "2 true for all t up to the end of their own flow, from 25 to 40" in said and "10000" not in said
    one = replace(audit, table=rows[:1], enclosed=enclosed).decided()
    assert "1 true for all t up to 40, " in one
