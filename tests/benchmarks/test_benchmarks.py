"""The framework of `benchmarks`, on rows that nobody measured."""

import dataclasses
import functools
import json
import math
import sys

import numpy as np
import pytest
from driving import ROOT
from matplotlib.figure import Figure

import benchmarks
from benchmarks import (
    Disagreement,
    Row,
    Study,
    compare,
    equal_error,
    machine,
    paths,
    report,
)
from benchmarks.__main__ import main
from dynamics import SequenceClasses

WIN = Row("a task", 0.5, "a peer", 10.0, 1e-9, 1e-6, first_ours=2.0, first_peer=3.0, result="all")
LOSS = Row("another task", 2.0, "a quick peer", 0.5, 0.0, 0.0, threads=2)
ROWS = [("one", WIN), ("two", LOSS)]


def test_the_ratio_says_how_much_longer_the_peer_takes():
    assert WIN.ratio == 20.0
    assert LOSS.ratio == 0.25


@pytest.mark.parametrize("disagreement", [1.1e-6, math.inf, math.nan])
def test_no_row_without_agreement(disagreement):
    with pytest.raises(Disagreement, match=r"a task: ours and a peer disagree by .*, more than 1e-06"):
        Row("a task", 0.5, "a peer", 10.0, disagreement, 1e-6)
    assert Row("a task", 0.5, "a peer", 10.0, 1e-6, 1e-6).disagreement == 1e-6


def test_agreement_is_checked_before_anything_is_timed():
    calls = []

    def ours():
        calls.append("ours")
        return np.array([1.0, 2.0])

    def peer():
        calls.append("peer")
        return np.array([1.0, 2.1])

    with pytest.raises(Disagreement, match=r"disagree by 4\.8e-02"):
        compare("a task", ours, "a peer", peer, tolerance=0.04, runs=3)
    assert calls == ["ours", "peer"]
    calls.clear()
    row = compare("a task", ours, "a peer", peer, tolerance=0.05, runs=3, budget=math.inf)
    assert calls == ["ours", "peer"] * 4
    assert row.disagreement == pytest.approx(0.1 / 2.1)


class Clock:
    """A clock that the functions move, in place of the real one."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(benchmarks.time, "perf_counter", lambda: self.now)

    def function(self, *durations):
        """A function whose calls take these times, the last one for ever."""
        left = list(durations)

        def call():
            self.now += left.pop(0) if len(left) > 1 else left[0]
            return 1.0

        return call


def test_times_are_medians_and_the_first_call_stands_apart(monkeypatch):
    clock = Clock(monkeypatch)
    row = compare(
        "a task",
        clock.function(7, 1, 3, 2),
        "a peer",
        clock.function(20, 8, 8, 90, 8),
        tolerance=0.0,
        runs=3,
        budget=1e9,
    )
    assert (row.ours, row.peer, row.first_ours, row.first_peer) == (2, 8, 5, 12)


def test_table_json_and_plot_of_the_same_rows(tmp_path):
    report.write(tmp_path, ROWS, {"a_study": Study("| a | table |", Figure(), {"number": 3})})
    found = json.loads((tmp_path / "benchmarks.json").read_text())
    first, second = found["rows"]
    assert (first["benchmark"], first["task"], first["ratio"], first["tolerance"]) == ("one", "a task", 20.0, 1e-6)
    assert (second["benchmark"], second["threads"], second["ratio"]) == ("two", 2, 0.25)
    assert found["machine"]["numpy"] == np.__version__
    text = (tmp_path / "benchmarks.md").read_text().splitlines()
    columns = [cell.strip() for cell in text[0].strip("|").split("|")]
    cells = dict(zip(columns, (cell.strip() for cell in text[2].strip("|").split("|")), strict=True))
    assert cells["task"] == "a task"
    assert (cells["ours (s)"], cells["peer"], cells["peer (s)"], cells["ratio"]) == ("0.5", "a peer", "10", "20")
    assert cells["disagreement"] == "1.0e-09 (< 1e-06)" and "first +" not in cells
    assert (first["first_ours"], first["first_peer"], first["result"]) == (2.0, 3.0, "all")
    assert json.loads((tmp_path / "a_study.json").read_text())["number"] == 3
    assert (tmp_path / "a_study.md").read_text() == "| a | table |\n"
    for name in ("benchmarks.png", "a_study.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"


def test_rows_of_other_benchmarks_are_kept_with_what_they_were_measured_on(tmp_path, monkeypatch):
    report.write(tmp_path, ROWS, {})
    before = json.loads((tmp_path / "benchmarks.json").read_text())
    for row in before["rows"]:
        del row["measured_on"]  # as in tables that were made before it was there
    (tmp_path / "benchmarks.json").write_text(json.dumps(before))
    elsewhere = machine.describe() | {"processor": "another processor"}
    monkeypatch.setattr(machine, "describe", lambda: elsewhere)
    (name, row), (other, _) = ROWS
    again = dataclasses.replace(row, peer=40.0)
    report.write(tmp_path, [(name, again)], {})
    found = json.loads((tmp_path / "benchmarks.json").read_text())["rows"]
    assert [(one["benchmark"], one["peer"]) for one in found] == [(name, 40.0), (other, before["rows"][1]["peer"])]
    assert ["another processor" in one["measured_on"] for one in found] == [True, False]
    text = (tmp_path / "benchmarks.md").read_text()
    assert f"Measured on ({name}): another processor" in text and f"Measured on ({other}): " in text


def on(monkeypatch, processor):
    facts = machine.describe() | {"processor": processor}
    monkeypatch.setattr(machine, "describe", lambda: facts)


def test_a_ratio_is_a_range_over_the_processors_that_measured_it(tmp_path, monkeypatch):
    """Of each processor the last one; a peer that is missing on a processor keeps its row."""
    (name, row), other = ROWS
    missing = dataclasses.replace(row, peer_name="a peer that is not everywhere")
    for processor, peer in (("one", 10.0), ("two", 40.0), ("three", 1.0), ("two", 30.0)):
        on(monkeypatch, processor)
        rows = [(name, dataclasses.replace(row, peer=peer)), other]
        report.write(tmp_path, rows + [(name, missing)] * (processor == "one"), {})
    found = report.known(tmp_path)
    by_peer = {one["peer_name"]: one for one in found}
    mine = by_peer["a peer"]
    assert mine["ratio"] == 60.0
    assert {(one["on"].split()[0], one["ratio"]) for one in mine["elsewhere"]} == {("one", 20.0), ("three", 2.0)}
    assert by_peer["a peer that is not everywhere"]["measured_on"].startswith("one")
    cells = (tmp_path / "benchmarks.md").read_text()
    assert "2 to 60 (3)" in cells
    assert "The ranges also have ratios of: one (" in cells and "three (" in cells


def test_rows_that_left_their_range_are_named(tmp_path, monkeypatch, capsys):
    """A quarter beyond its ends is inside; a row that the table lacks is told apart."""
    (name, row), _ = ROWS
    for processor, peer in (("one", 10.0), ("two", 40.0)):
        on(monkeypatch, processor)
        report.write(tmp_path, [(name, dataclasses.replace(row, peer=peer))], {})

    def told(ratio, **changes):
        return report.compared([dataclasses.replace(row, peer=ratio * row.ours, **changes)], report.known(tmp_path))

    for ratio in (16.1, 20.0, 50.0, 80.0, 99.0):
        assert told(ratio) == "0 of 1 rows left their range by more than a quarter."
    for ratio in (15.9, 101.0):
        head, line = told(ratio).splitlines()
        assert head == "1 of 1 rows left their range by more than a quarter:"
        assert line == f"a task, beside a peer: {ratio:.3g}, and the table has 20 to 80"
    assert told(1.0, task="a new task").splitlines()[1] == "Not in the table: a new task, beside a peer"
    from benchmarks import vocabulary

    monkeypatch.setattr(vocabulary, "run", lambda: [dataclasses.replace(row, peer=1.0)])
    main(["--only", "vocabulary", "--against", str(tmp_path)])
    assert "a task, beside a peer: 2, and the table has 20 to 80" in capsys.readouterr().out
    assert report.known(tmp_path / "nowhere") == []


def test_a_peer_that_is_not_installed_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "diffrax", None)
    monkeypatch.delitem(sys.modules, "benchmarks.peers.diffrax_flow", raising=False)
    assert benchmarks.optional_peer("diffrax_flow") is None
    assert "peer diffrax_flow: left out, since diffrax is not installed" in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError):
        benchmarks.optional_peer("misspelt")


def test_the_machine_is_described_without_its_name():
    facts = machine.describe()
    assert {"processor", "cores", "python", "numpy", "torch"} <= set(facts)
    assert machine.platform.node() not in facts.values()


def test_one_core_holds_within_and_all_are_back_after():
    before = machine.cores()
    with machine.one_core():
        one = machine.cores()
        assert len(one) == 1 or not hasattr(machine.os, "sched_setaffinity")
        with machine.all_cores():
            assert machine.cores() == before
        assert machine.cores() == one
    assert machine.cores() == before


FOLDER = ROOT / "docs" / "benchmarks"


def test_the_published_ratios_are_those_of_the_published_times():
    rows = json.loads((FOLDER / "benchmarks.json").read_text())["rows"]
    assert all(row["ratio"] == pytest.approx(row["peer"] / row["ours"]) for row in rows)


def test_the_command_runs_what_it_is_asked_for(tmp_path, monkeypatch, capsys):
    from benchmarks import vocabulary

    monkeypatch.setattr(vocabulary, "run", lambda: [WIN])
    main(["--only", "vocabulary", "--out", str(tmp_path)])
    assert report.line(WIN) in capsys.readouterr().out
    assert json.loads((tmp_path / "benchmarks.json").read_text())["rows"][0]["task"] == "a task"
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])


def test_times_at_equal_error_are_read_off_between_tolerances():
    """Time t = error^(-1/8), a line on logarithmic axes, at errors between the points and beyond both ends."""
    points = [{"tolerance": e, "milliseconds": e ** (-1 / 8), "error": 3 * e} for e in (1e-4, 1e-6, 1e-8)]
    for error in (3e-5, 1e-6, 7e-8):
        assert equal_error.time_to(points, error) == pytest.approx((error / 3) ** (-1 / 8), rel=1e-12)
    assert equal_error.time_to(points, 1e-3) == points[0]["milliseconds"]
    assert equal_error.time_to(points, 1e-9) == math.inf


def test_a_tighter_tolerance_that_is_quicker_counts():
    """Where rejected steps make loose tolerances slow, nobody would ask for them."""
    points = [{"milliseconds": 2.0, "error": 1e-3}, {"milliseconds": 1.0, "error": 1e-5}]
    assert equal_error.time_to(points, 1e-3) == 1.0
    slow = [{"milliseconds": 3.0, "error": 1e-4}, {"milliseconds": 12.0, "error": 1e-6}]
    (row, *_) = equal_error.compared({equal_error.OURS: points, "a peer": slow})
    assert row["error"] == 1e-5
    assert row["ratios"] == {"a peer": pytest.approx(6.0)}


@pytest.mark.parametrize("path", paths.CHOICES)
def test_a_path_that_is_left_out_changes_rounding_alone(path):
    """A name that moved would end the row with an AttributeError, which only a run of the benchmarks shows."""
    classes = SequenceClasses.single_common_token(3, 20)
    call = functools.partial(paths._ends, classes, 20.0, solver=paths.UNREDUCED)
    np.testing.assert_allclose(paths.without(path, call)(), call(), rtol=0, atol=1e-9)
