"""The table of campaigns: what is in it was asked of what the register says now, and is shown beside the statement."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import yzflow as yz
from theory.statements import REGISTER
from yzflow.audits import campaign_table
from yzflow.cli import main
from yzflow.papers.scan_and_snap.tried import TRIED

COROLLARY = REGISTER["Scan and Snap: Corollary 2"]
SIMULATED = ("theory flow", "modified flow", "full flow", "modified SGD", "SGD")


def test_every_statement_on_flows_and_sgd_was_tried_a_thousand_times_as_it_stands():
    known = {(one.statement, one.level): one for one in TRIED}
    for statement in (one for one in REGISTER.values() if one.paper == "Scan and Snap"):
        levels = dict.fromkeys(level for check in statement.checks for level in check.expected)
        for level in (level for level in levels if level in SIMULATED):
            row = known[statement.id, level]
            assert row.asked == campaign_table.asked(statement, level), f"changed since: {row.statement}, {level}"
            assert row.examples >= 1000 and row.violations == 0 and row.share <= 1


def test_a_changed_statement_was_not_tried():
    assert campaign_table.tried(COROLLARY)
    assert not campaign_table.tried(replace(COROLLARY))  # another object of the same name
    own = campaign_table.asked(COROLLARY, "theory flow")
    looser = tuple(replace(check, tolerance=check.tolerance + 0.1) for check in COROLLARY.checks)
    assert campaign_table.asked(replace(COROLLARY, checks=looser, clauses=()), "theory flow") != own
    assert campaign_table.asked(replace(COROLLARY, assumptions=COROLLARY.assumptions[1:]), "theory flow") != own


def test_words():
    row = replace(TRIED[0], level="theory flow", examples=1000, violations=0, share=0.25)
    assert campaign_table.words([]) == "-"
    assert campaign_table.words([row]) == "1,000 settings, no violations; worst 0.25 of a tolerance"
    two = [row, replace(row, level="full flow", violations=1, share=3.0)]
    assert campaign_table.words(two) == "2,000 settings, 1 violation; worst 3 of a tolerance (full flow)"


def test_check_and_audit_show_it():
    short = REGISTER["Scan and Snap: Lemma 7"]  # whose check takes least
    words = campaign_table.words(campaign_table.tried(short))
    verdict = yz.check(short.id)
    for text in (verdict.text(), verdict.text(verbose=True), verdict.report.text()):
        assert words in text
    (found,) = json.loads(verdict.report.json())["trust"].values()
    assert found["tried"] == [asdict(one) for one in campaign_table.tried(short)]


def test_the_command_writes_rows_in_the_place_of_earlier_ones(tmp_path):
    table = tmp_path / "table.json"
    given = ["fuzz", COROLLARY.id, "Scan and Snap: Lemma 6", "--level", "theory flow", "--table", str(table)]
    for count in ("2", "3"):
        ended = CliRunner().invoke(main, [*given, "--examples", count])
        assert ended.exit_code == 0, ended.output
    rows = campaign_table.load(table)
    assert [(one.statement, one.examples) for one in rows] == [(COROLLARY.id, 3), ("Scan and Snap: Lemma 6", 3)]
    assert all(one.asked == campaign_table.asked(REGISTER[one.statement], one.level) for one in rows)
    ended = CliRunner().invoke(main, [*given, "--json"])
    assert ended.exit_code == 2 and "`--out` and `--json` must go with one statement, but got 2" in ended.output


def test_a_file_that_is_no_table_is_refused(tmp_path):
    path = tmp_path / "table.json"
    row = asdict(TRIED[0])
    for content in ("no table", "[1]", json.dumps([row | {"examples": -1}]), json.dumps([row | {"more": 1}])):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"`path` must be a table of campaigns, but table\.json is not"):
            campaign_table.load(Path(path))
