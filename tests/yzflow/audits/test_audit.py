"""The register and the audit: complete, and alarmed by injected mistakes."""

import dataclasses
import json
import re
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import sympy
from click.testing import CliRunner
from driving import ROOT

import yzflow
from dynamics._model import kernels
from theory import attention, decoder, statements
from theory.papers import built_in
from theory.statements import Clause, Statement
from theory.symbolic import Derivation
from theory.trust import Label, Trust
from theory.values import find
from yzflow import cli
from yzflow.audits import audit, verdicts
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row, Verdict
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token
from yzflow.values.marks import bare


@pytest.fixture(scope="module")
def report():
    return yzflow.audit(built_in(), quick=True)


@pytest.mark.slow
def test_every_proof_holds_and_no_statement_that_should_hold_fails(report):
    assert [name for name, wrong in report.proofs.items() if wrong] == []
    assert [row for row in report.table if row.alarming] == []
    assert report.passed
    assert len(report.proofs) >= 15


@pytest.mark.slow
def test_every_statement_is_proved_or_measured_inside_its_assumptions(report):
    for statement in report.statements:
        inside = [row for row in report.table if row.statement == statement.id and row.expected]
        assert statement.proofs or inside, statement.id
        assert not statement.checks or inside, statement.id


@pytest.mark.slow
def test_the_full_flow_is_where_theorem_1_stops(report):
    cells = {row.level: row for row in report.table if row.statement == "Scan and Snap: Theorem 1" and row.inside}
    assert cells["theory flow"].verdict is Verdict.EXACT
    assert cells["modified flow"].verdict is Verdict.WITHIN
    assert cells["full flow"].verdict is Verdict.FAILS


@pytest.mark.slow
def test_printed_and_corrected_forms_are_told_apart(report):
    # Lemma 4 is K times too large as printed: a relative error of 1 - 1/K.
    classes = {setting.name: setting.classes.n_classes for setting in audit.settings("Scan and Snap", quick=True)}
    rows = [
        row for row in report.table if row.statement.endswith("Lemma 4") and row.inside and row.level == "theory flow"
    ]
    assert {classes[row.setting] for row in rows} >= {2, 3, 4}
    for row in rows:
        assert row.printed == pytest.approx(1 - 1 / classes[row.setting], abs=1e-6)
        assert row.corrected < 1e-6
        assert row.verdict is Verdict.CORRECTED


@pytest.mark.parametrize(
    ("printed", "corrected", "tolerance", "expected"),
    [
        (1e-12, None, 0.05, Verdict.EXACT),
        (0.02, None, 0.05, Verdict.WITHIN),
        (0.05, None, 0.05, Verdict.WITHIN),
        (0.2, None, 0.05, Verdict.FAILS),
        (0.2, 0.01, 0.05, Verdict.CORRECTED),
        (0.2, 1e-12, 0.05, Verdict.CORRECTED),
        (0.2, 0.1, 0.05, Verdict.FAILS),
        (0.01, 0.2, 0.05, Verdict.WITHIN),
        (np.nan, None, 0.05, Verdict.FAILS),
        (np.nan, 0.01, 0.05, Verdict.CORRECTED),
        (np.nan, np.nan, 0.05, Verdict.FAILS),
        (np.inf, None, 0.05, Verdict.FAILS),
        (1e-9, None, 0.0, Verdict.FAILS),
        (0.0, None, 0.0, Verdict.EXACT),
    ],
)
def test_verdicts(printed, corrected, tolerance, expected):
    assert verdicts.verdict(printed, corrected, tolerance) is expected


def test_every_paper_with_checks_has_settings():
    papers = {statement.paper for statement in statements.REGISTER.values() if statement.checks}
    for quick in (True, False):
        tasks = {paper: audit.settings(paper, quick=quick) for paper in papers}
        assert papers <= set(tasks) and all(tasks.values())
        assert len({setting.name for settings in tasks.values() for setting in settings}) == sum(
            map(len, tasks.values())
        )


def test_a_mistake_in_the_proof_fails_the_audit(monkeypatch):
    from dataclasses import replace

    from yzflow_beyond_scan_and_snap.proofs import transition

    register = dict(statements.REGISTER)
    name = "Scan and Snap: Transition time"
    register[name] = replace(register[name], prove=lambda: transition.derive(peak=lambda m, w: w))
    monkeypatch.setattr(statements, "REGISTER", register)
    report = yzflow.audit(["Transition time"], quick=True)
    assert report.proofs[name] and not report.passed


def failing_when_decided():
    return Derivation("it", {"it": object()}, sizes={})


@pytest.mark.parametrize("proof", [lambda: {}["no"], lambda: None, failing_when_decided])
def test_a_proof_that_ends_in_an_error_fails_and_the_others_are_decided(monkeypatch, proof):
    name, other = "Scan and Snap: Transition time", "Scan and Snap: Lemma 1"
    broken = dataclasses.replace(statements.REGISTER[name], prove=proof)
    monkeypatch.setitem(statements.REGISTER, name, broken)
    report = yzflow.audit([name, other], quick=True)
    assert not report.passed and report.proofs[other] == []
    (failure,) = report.proofs[name]
    assert failure.startswith("the proof: ") and "\n" not in failure and failure in report.text()
    json.loads(report.json())
    assert not yzflow.check(name).passed


def test_no_simulation_uses_a_closed_form(monkeypatch):
    # The flows and SGD run, at a small setting, with every formula of theory gone.
    def gone(*arguments, **options):
        raise AssertionError("a simulator called a closed form")

    for module in (decoder, attention):
        for name in vars(module):
            if callable(getattr(module, name)) and not name.startswith("_") and name != "checks":
                monkeypatch.setattr(module, name, gone)
    runs = audit.Simulations(Setting("small", single_common_token(3, 50, 0.3), 1.0, 0.01, 20.0, length=32), seed=0)
    for level in ("theory flow", "modified flow", "full flow", "SGD"):
        assert np.isfinite(runs.trajectory(level).dataset["z"]).all()
    assert "theory" not in kernels.__dict__


def test_proofs_are_decided_once_and_each_clause_has_its_own():
    derived = []

    def proof(name, expression):
        def prove():
            derived.append(name)
            return Derivation(name, {name: sympy.Integer(expression)}, sizes={}, proves=("Lemma 1",))

        return prove

    right, wrong = proof("right", 0), proof("wrong", 1)
    proofs = {"first": right, "second": None, "third": wrong, "fourth": right}
    clauses = tuple(Clause(name, prove=prove, argued=("in words",)) for name, prove in proofs.items())
    statement = Statement("A paper", "Lemma 1", "", "", "", clauses=clauses)
    for _ in range(2):
        found = {label.clause: label.failures for label in audit.prove(statement)}
        assert found == {"first": (), "third": ("wrong",), "fourth": ()}
    assert derived == ["right", "wrong"]


@pytest.mark.slow
def test_json_and_html_hold_every_row(report, tmp_path):
    report.to_json(tmp_path / "audit.json")
    data = json.loads((tmp_path / "audit.json").read_text())
    assert data["passed"] is True and len(data["rows"]) == len(report.table)
    # A picture takes a second: those of every twelfth statement.
    some = report.statements[::12]
    table = [row for row in report.table if row.statement in {one.id for one in some}]
    report = dataclasses.replace(report, statements=some, table=table)
    report.to_html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert page.count("<tr role='row'") == len(report.table) + sum(bool(s.checks) for s in report.statements)
    # Self-contained: nothing is fetched.
    assert not re.search(r"src\s*=\s*'(?!data:)|href\s*=|url\(|@import", page)
    assert page.count("<img ") == sum(bool(s.checks) for s in report.statements)
    for statement in report.statements:
        assert f"{statement.id}. " in page


@pytest.mark.slow
def test_the_page_of_the_audit_is_a_few_screens_and_is_filtered(browser, tmp_path):
    lemma = statements.REGISTER["Scan and Snap: Lemma 8"]
    register = (lemma, *[one for one in statements.REGISTER.values() if one is not lemma][::12])
    AuditReport([], register, {}).to_html(tmp_path / "audit.html")
    page = browser(tmp_path / "audit.html")
    rows = page.locator("details")
    assert rows.count() == len(register) and page.evaluate("document.body.scrollHeight") < 400 + 60 * len(register)
    page.fill("#filter input", "lemma 8")
    shown = [text for text in page.locator("summary:visible").all_inner_texts() if text]
    assert 0 < len(shown) < len(register) / 2 and any("Scan and Snap: Lemma 8" in text for text in shown)
    assert page.inner_text("#filter [role=status]") == f"{len(shown)} of {len(register)}"
    page.click("summary:visible")
    assert page.locator("details[open]").count() == 1


@pytest.mark.slow
def test_the_page_of_the_audit_counts_what_is_proved_as_the_register_has_it(report):
    # The page quotes what is stored.
    stored = find("register.counts", [ROOT / "studies" / "yzflow_studies" / "register"])
    assert report.counts().items() <= stored.items()
    assert report.counted() in " ".join(bare((ROOT / "docs" / "audit.md").read_text(encoding="utf-8")).split())


@pytest.mark.slow
def test_command_line_audit(tmp_path, monkeypatch):
    arguments = ["audit", "--quick", "--only", "Scan and Snap: Lemma 7", "--json", "--out", str(tmp_path)]
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["passed"] is True
    assert {path.name for path in tmp_path.iterdir()} == {"audit.json", "audit.html"}
    monkeypatch.setattr(decoder, "h_steps", lambda n, **a: np.zeros(n + 1))
    result = CliRunner().invoke(cli.main, ["audit", "--quick", "--only", "Scan and Snap: Lemma 7"])
    assert result.exit_code == 1
    *failing, run = result.stdout.partition("What should hold and does not:\n")[2].splitlines()
    assert (
        run.startswith("Run: ")
        and failing
        and all("Lemma 7" in line and "misses by" in line and " in " in line for line in failing)
    )
    assert len(CliRunner().invoke(cli.main, [*arguments[:4], "--verbose"]).stdout.splitlines()) > len(failing) + 4
    both = CliRunner().invoke(cli.main, [*arguments[:5], "--verbose"])
    assert both.exit_code == 2 and "`--verbose` must be left out beside --json" in both.stderr


@pytest.mark.parametrize("found", [-1e-9, None, True, "0", [0.0], np.zeros(1), 1j])
def test_a_measure_is_one_number_that_is_not_negative(found):
    """A signed error would be within every tolerance, however far off."""
    check = statements.Check("of ours", ("flow",), lambda runs, level: found, tolerance=0.1)
    runs = SimpleNamespace(setting=SimpleNamespace(name="one"))
    of = SimpleNamespace(margins=lambda *_: {})
    with pytest.raises(ValueError, match="`measure of 'of ours'` must return one number, zero or more, but got "):
        audit.measure(of, check, "flow", runs, None)


@pytest.mark.parametrize("number", ["Theorem 3", "Lemma 4", "Theorem 4"])
def test_a_line_of_the_audit_names_a_proof_that_fails_beside_simulations_that_hold(number, tmp_path):
    """In its folded line, which would else begin with what held."""
    statement = statements.REGISTER[f"Scan and Snap: {number}"]
    failed = Label(Trust.NOT_EXAMINED, prose=("an error",), failures=("step <2>",), clause=statement.clauses[0].name)
    check, where, margins = statement.checks[0], "a setting", {"rates": float("nan")}
    rows = [
        Row(
            *(statement.id, check.name, level, where, False, margins, 0.0, None, check.tolerance, False),
            statement.measured(check, level=level, setting=where, error=0.0),
        )
        for level in check.levels
    ]
    report = AuditReport(rows, (statement,), {statement.id: (failed,)})
    with mock.patch("yzflow.audits.report._plot", return_value=""):
        report.to_html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    (line,) = re.findall(r"<summary class=bad>(.*?)</summary>", page)
    assert "FAILS where it should hold: the proof&#x27;s step &lt;2&gt;." in line
    assert page.count("broken: rates<") == len(rows)
