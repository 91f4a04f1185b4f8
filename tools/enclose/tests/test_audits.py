"""The audit in balls: labels, reports and certificates; what is not proved is never called true."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from yzflow_enclose import Enclosure, enclose_flow, keeping, march
from yzflow_enclose.evidence import FlowsInBalls
from yzflow_enclose.keeping import kept
from yzflow_enclose.verifier import verify

import yzflow
from dynamics import SequenceClasses
from theory import papers, statements
from theory.trust import Trust
from yzflow import cli
from yzflow.audits import audit
from yzflow.audits.enclosing import Decided, Enclose
from yzflow.papers.scan_and_snap.settings import Setting

# rho = 0.16: outside Theorem 4's assumptions, and inside those of zero sums and Remark 1, which have none.
CLASSES = SequenceClasses.single_common_token(2, 50, common=0.5, distinct=(1.0, 0.6))
NUMBERS = ("Scan and Snap: Lemma 1, zero sums", "Scan and Snap: Remark 1", "Scan and Snap: Theorem 3")


def run(monkeypatch, enclose, only=NUMBERS, classes=CLASSES, t_end=3.0):
    task = Setting("small", classes, 1.0, 0.05, t_end)
    monkeypatch.setattr(audit, "settings", lambda paper, quick: [task])
    return yzflow.audit(list(only), quick=True, enclose=enclose)


@pytest.mark.slow
def test_what_is_decided_stands_in_the_certificates(monkeypatch, tmp_path):
    """The signs of Theorem 2 and the lead of Theorem 3, as formulas with the verdict of their row."""
    numbers = ("Scan and Snap: Theorem 2(a)", "Scan and Snap: Theorem 2(b)")
    report = run(monkeypatch, Enclose(4.0, folder=tmp_path), only=numbers)
    for path in tmp_path.iterdir():
        flow = Enclosure.load(path)
        rows = [row for row in report.table if row.level.removesuffix(" flow") == flow.claim["decoder"]]
        verdicts = {row.decided.value for row in rows if "with z' " in row.check}
        assert verdicts and verdicts <= {predicate.verdict for predicate in flow.predicates}
        lines = verify.check(str(path))
        assert any(
            "rate(z(0, 0)) < 0" in line and line.startswith("true for every t with 0 < t <= 4.0") for line in lines
        )


def of(report, level, check=""):
    return [row for row in report.table if row.level == level and check in row.check]


@pytest.mark.slow
def test_rows_are_enclosed_and_certificates_kept(monkeypatch, tmp_path):
    report = run(monkeypatch, Enclose(4.0, folder=tmp_path / "store"))
    assert report.passed
    for level in ("theory flow", "modified flow", "full flow"):
        for row in of(report, level):
            assert row.decided.value is bool(row.error <= row.tolerance), row
            assert row.label.trust is Trust.ENCLOSED and row.label.scope["every t up to"] == row.decided.reached
    assert all(row.decided is None and row.label.trust is Trust.MEASURED for row in of(report, "SGD"))
    for early in of(report, "full flow", "early ratio"):
        assert early.decided.until == early.decided.reached == 0.01
    (full,) = of(report, "full flow", "row sums")
    assert full.decided.words == "true for all t <= 4" and "every t up to 4" in str(full.label)
    (certificates,) = [sorted((tmp_path / "store").iterdir())]
    assert len(certificates) == 3
    for path in certificates:
        assert any(line.startswith("from t = 0 to 4.0, of 4.0, ") for line in verify.check(str(path)))
    assert {flow.level for flow in report.enclosed} == {"theory flow", "modified flow", "full flow"}
    assert report.decided() in report.text()
    data = json.loads(report.json())
    assert len(data["enclosed"]) == 3 and {row["decided"]["outcome"] for row in data["rows"] if "decided" in row} == {
        "true",
        "false",
    }
    report.to_html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert "true for all t &lt;= 4" in page and ">in balls</th>" in page
    # Without balls nothing of it is there.
    plain = run(monkeypatch, None, only=NUMBERS[:1])
    assert "in balls" not in plain.text() and "enclosed" not in json.loads(plain.json())
    assert all(row.label.trust is Trust.MEASURED for row in plain.table)


def test_the_summary_of_enclosed_rows_is_the_earliest_and_the_weakest(monkeypatch):
    tasks = [Setting(str(end), CLASSES, 1.0, 0.05, end) for end in (1.0, 2.0)]
    monkeypatch.setattr(audit, "settings", lambda paper, quick: tasks)
    report = yzflow.audit([NUMBERS[0]], quick=True, enclose=Enclose(2.5))
    (statement,) = report.statements
    label = next(label for label in report.labels(statement) if label.scope.get("level") == "full flow")
    assert label.trust is Trust.ENCLOSED and label.scope["settings"] == ("1.0", "2.0")
    assert label.scope["every t up to"] == 2.5
    table = [
        row
        if row.setting == "1.0"
        else dataclasses.replace(row, label=statement.measured(statement.checks[0], error=0.0, setting="2.0"))
        for row in report.table
    ]
    mixed = dataclasses.replace(report, table=table)
    label = next(label for label in mixed.labels(statement) if "level" not in label.scope and "settings" in label.scope)
    assert label.trust is Trust.MEASURED and label.scope["settings"] == ("1.0", "2.0")


@pytest.mark.parametrize("steps", [2, 12])
def test_what_takes_too_long_is_open_and_stays_measured(steps, monkeypatch):
    ticks = itertools.count()  # a second for each step
    monkeypatch.setattr(march.time, "monotonic", lambda: float(next(ticks)))
    report = run(monkeypatch, Enclose(1e4, max_seconds=steps), only=NUMBERS[:1])
    monkeypatch.undo()
    (row,) = of(report, "full flow")
    reached = row.decided.reached
    assert row.decided.value is None and 0 < reached < 1e4
    assert "seconds were over" in row.decided.words and row.decided.words.startswith("open")
    assert "true for all t <= 1e" not in report.text() and "0 true for all" in report.decided()
    # The run that was measured ends at t = 3.
    assert (reached >= 3.0) is (steps == 12)
    assert row.label.trust is (Trust.ENCLOSED if reached >= 3.0 else Trust.MEASURED)
    assert row.label.scope.get("every t up to", reached) == reached


def test_a_flow_without_a_step_is_not_enclosed(monkeypatch):
    none = run(monkeypatch, Enclose(1e4, max_seconds=1e-9), only=NUMBERS[:1])
    (row,) = of(none, "full flow")
    assert row.decided.value is None and row.decided.reached == 0.0 and row.label.trust is Trust.MEASURED
    assert "not enclosed: 1e-09 seconds were over" in none.text()


def test_nothing_is_said_of_times_that_a_paper_does_not_enclose():
    def short(*arguments, t_end, **limits):
        return papers.named("Scan and Snap").enclosing.enclose(*arguments, t_end=min(t_end, 2.0), **limits)

    check = statements.REGISTER[NUMBERS[0]].checks[0]
    enclosing = dataclasses.replace(papers.named("Scan and Snap").enclosing, enclose=short)
    flows = FlowsInBalls(Setting("small", CLASSES, 1.0, 0.05, 3.0), enclosing, Enclose(1e4))
    assert flows.decide(check, "full flow").words == "true for all t <= 2"


def test_too_many_variables_are_said(monkeypatch):
    rng = np.random.default_rng(0)
    table = rng.uniform(0.1, 1, (4, 40))
    classes = SequenceClasses(table / table.sum(axis=1, keepdims=True), [0] * 4, vocab_size=50)
    report = run(monkeypatch, Enclose(1.0), only=NUMBERS[:1], classes=classes)
    (row,) = of(report, "full flow")
    assert row.decided.value is None and "200 variables" in row.decided.words
    assert "not enclosed: `data` must have at most 200 variables" in report.text()


def test_a_row_that_balls_refute_alarms_although_its_error_is_small(monkeypatch):
    register = dict(statements.REGISTER)
    right = register[NUMBERS[0]]
    late = dataclasses.replace(right.checks[0], claim=lambda flows, level, tolerance: lambda at: at.time <= 1.5)
    register[NUMBERS[0]] = dataclasses.replace(right, checks=(late,))
    monkeypatch.setattr(statements, "REGISTER", register)
    report = run(monkeypatch, Enclose(2.0), only=NUMBERS[:1], t_end=2.0)
    (row,) = of(report, "full flow")
    assert row.error < 1e-8 and row.refuted and row.alarming and not report.passed
    assert row.label.failures and "<- should hold" in report.text()
    assert 1.4 < row.decided.reached <= 1.5 < row.decided.times[1]
    # The same after the end of what was measured is no alarm, and the label ends there.
    report = run(monkeypatch, Enclose(2.0), only=NUMBERS[:1], t_end=1.0)
    (row,) = of(report, "full flow")
    assert not row.refuted and not row.alarming and 1.4 < row.label.scope["every t up to"] <= 1.5


def test_words_of_what_is_decided():
    assert Decided(True, 10.0, 10.0, None, "").words == "true for all t <= 10"
    assert Decided(False, 10.0, 3.0, (3.0, 3.5), "").words == "false at t = 3.5, true for all t <= 3"
    assert Decided(False, 10.0, 0.0, (0.0, 0.5), "").words == "false at t = 0.5"
    assert Decided(None, 10.0, 3.0, (3.0, 10.0), "why").words == "open (why), true for all t <= 3"
    assert not Decided(None, 10.0, 3.0, (3.0, 10.0), "why").covers(4.0)
    assert Decided(None, 10.0, 3.0, (3.0, 10.0), "why").covers(2.0)
    with pytest.raises(ValueError, match="`until` must be positive"):
        Enclose(until=0.0)


ASKED = {"eta_y": 1.0, "eta_z": 0.5, "t_end": 1.0, "decoder": "theory", "bits": 50}


def test_certificates_are_used_again_and_only_for_the_same_question(tmp_path, monkeypatch):
    made = kept(tmp_path, CLASSES, **ASKED)
    (path,) = tmp_path.iterdir()
    with monkeypatch.context() as context:
        context.setattr(keeping, "enclose_flow", None)
        again = kept(tmp_path, CLASSES, **ASKED)
    assert [step.radius for step in again.steps] == [step.radius for step in made.steps]
    for change in ({"eta_z": 0.25}, {"t_end": 2.0}, {"decoder": "full"}, {"bits": 60}, {"max_seconds": 100.0}):
        kept(tmp_path, CLASSES, **{**ASKED, **change})
    kept(tmp_path, SequenceClasses.single_common_token(2, 51, common=0.5, distinct=(1.0, 0.6)), **ASKED)
    assert len(list(tmp_path.iterdir())) == 7
    # A damaged one, and one whose radii are too small under a seal of its own, are made again.
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.warns(UserWarning, match="is damaged .*: set aside as .*, the flow is enclosed again"):
        assert kept(tmp_path, CLASSES, **ASKED).verify()
    steps = [dataclasses.replace(step, radius=step.radius / 1e6) for step in made.steps]
    Enclosure(made._reading, steps, t_end=1.0, bits=50, reason="").save(path)
    assert not Enclosure.load(path).verify()
    assert kept(tmp_path, CLASSES, **ASKED).steps[0].radius == made.steps[0].radius
    assert Enclosure.load(path).verify()


def test_decisions_up_to_a_time_go_no_further():
    flow = enclose_flow(CLASSES, eta_y=1.0, eta_z=0.5, t_end=3.0, decoder="theory", bits=50)
    assert flow.holds(lambda at: at.time <= 2.0) is False
    assert flow.holds(lambda at: at.time < 2.01, until=2.0) is True
    assert flow.holds(lambda at: at.time < 1.99, until=2.0) is False
    assert flow.holds(lambda at: at.time < 3.01, until=9.0) is True
    # Between where it is proved and where it is false lies the truth.
    found = flow.decide(lambda at: at.time < 1.7)
    assert found.reached < 1.7 <= found.times[0] == found.times[1] < found.reached + 0.02
    assert flow.holds(lambda at: at.time < 1.7, until=found.reached) is True
    short = Enclosure(flow._reading, flow.steps[:1], t_end=3.0, bits=50, reason="cut")
    assert short.holds(lambda at: at.time >= 0.0, until=short.t_reached) is True
    assert short.holds(lambda at: at.time >= 0.0) is None


@pytest.mark.slow
def test_command_line(tmp_path):
    arguments = [
        "audit",
        "--quick",
        "--only",
        "Scan and Snap: Lemma 6",
        "--enclose",
        "--until",
        "5",
        "--out",
        str(tmp_path),
    ]
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 0, result.output
    assert "decided in balls" in result.stdout and "true for all t <= 5 (" not in result.stdout
    assert len(list((tmp_path / "certificates").iterdir())) == len(audit.settings("Scan and Snap", quick=True))
    assert "true for all t <= 5 (" in CliRunner().invoke(cli.main, [*arguments, "--verbose"]).stdout
    result = CliRunner().invoke(
        cli.main, ["audit", "--only", "Scan and Snap: Lemma 6", "--quick", "--enclose", "--until", "-1"]
    )
    assert result.exit_code == 2 and "`until` must be positive" in result.output
