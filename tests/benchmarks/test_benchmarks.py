"""The framework of `benchmarks`, on rows that nobody measured."""

import dataclasses
import json
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from driving import ROOT, python
from matplotlib.figure import Figure
from numba import njit

import benchmarks
from benchmarks import (
    Disagreement,
    Row,
    Study,
    compare,
    equal_error,
    first_use,
    machine,
    report,
    sgd_profile,
    work_precision,
)
from benchmarks.__main__ import main, names
from dynamics._model import kernels
from dynamics.backend import _plain_views as plain_views
from dynamics.optimizers import kernels as updates

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


def test_slow_functions_run_once_more_only(monkeypatch):
    clock = Clock(monkeypatch)
    row = compare("a task", clock.function(1, 2, 50), "a peer", clock.function(1, 5, 50), tolerance=0.0, budget=6.0)
    assert (row.ours, row.peer) == (2, 5)
    # A first call that was quicker than the rest compiled nothing.
    assert (row.first_ours, row.first_peer) == (0, 0)


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
    assert (cells["first +"], cells["peer's first +"], cells["disagreement"]) == ("2.00", "3.00", "1.0e-09 (< 1e-06)")
    assert cells["of"] == "all"
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


def test_a_processor_has_its_features_beside_its_name():
    facts = machine.describe()
    assert facts["features"].startswith(f"{machine.processor()}: ")
    assert f"{facts['processor']} ({facts['features']}), " in report.place(facts)
    assert report.place({name: value for name, value in facts.items() if name != "features"}).startswith(
        f"{facts['processor']}, "
    )


def test_columns_of_the_printed_table_line_up():
    header, line = report.header(), report.line(LOSS)
    for column, value in (("ours (s)", "2"), ("ratio", "0.25"), ("threads", "2")):
        end = header.index(column) + len(column)
        assert line[:end].split()[-1] == value


def test_the_plot_shows_who_wins():
    (axes,) = report.ratios(ROWS).axes
    assert axes.get_xscale() == "log"
    points = {float(line.get_xdata()[0]): line for line in axes.lines if line.get_marker() in "os"}
    assert points[20.0].get_marker() == "o" and points[0.25].get_marker() == "s"
    assert {text.get_text() for text in axes.texts} == {"20", "0.25"}
    labels = {label.get_text(): place for label, place in zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)}
    assert points[20.0].get_ydata()[0] == labels["a task\nbeside a peer"]
    assert points[0.25].get_ydata()[0] == labels["another task\nbeside a quick peer"]
    assert points[20.0].get_ydata()[0] > points[0.25].get_ydata()[0]  # in the order of the table


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


def test_every_module_is_a_benchmark_or_a_study():
    assert {"flow", "torch_sgd", "work_precision", "sgd_profile"} <= set(names())
    assert not {"machine", "report", "peers"} & set(names())


def of_python(inner):
    """A kernel that Python can call."""

    @njit(error_model="numpy")
    def call(*arguments):
        return inner(*arguments)

    return call


@pytest.mark.slow
def test_the_stages_of_sgd_make_up_a_step(monkeypatch):
    # As the Python that they are written in, which compiles faster; the kernels are compiled.
    for name in ("_attention", "_products", "_exponentials", "_softmax", "_optimiser"):
        stage = getattr(sgd_profile, name)
        monkeypatch.setattr(sgd_profile, name, getattr(stage, "py_func", stage))
    for name, module in (("kernels", kernels), ("updates", updates)):
        used = {name: of_python(one) if hasattr(one, "py_func") else one for name, one in vars(module).items()}
        monkeypatch.setattr(sgd_profile, name, SimpleNamespace(**used))
    monkeypatch.setattr(sgd_profile, "matrix", plain_views.matrix)
    monkeypatch.setattr(sgd_profile, "REPEATS", 1)
    monkeypatch.setattr(sgd_profile, "STEPS", 2)
    found = sgd_profile.profile(1)
    assert set(found["stages"]) == set(sgd_profile.STAGES)
    assert sum(found["stages"].values()) == pytest.approx(found["step"])
    assert found["tokens_drawn"] == 128 * 127
    # Three products, of two operations an entry: 128 bags of 20 kinds of tokens, 33 columns padded to 64.
    assert found["flops"] == 6 * 128 * 20 * 64


def test_the_command_runs_what_it_is_asked_for(tmp_path, monkeypatch, capsys):
    from benchmarks import vocabulary

    monkeypatch.setattr(vocabulary, "run", lambda: [WIN])
    main(["--only", "vocabulary", "--out", str(tmp_path)])
    assert report.line(WIN) in capsys.readouterr().out
    assert json.loads((tmp_path / "benchmarks.json").read_text())["rows"][0]["task"] == "a task"
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])


@pytest.mark.slow
def test_settings_of_the_command_are_not_made_by_an_import():
    program = "import os; before = dict(os.environ); import benchmarks.__main__; assert dict(os.environ) == before"
    python(program)


def test_work_precision_finds_the_quickest_run_that_is_good_enough():
    points = [
        {"method": method, "time_scale": "linear", "rtol": rtol, "seconds": taken, "error": error}
        for method, rtol, taken, error in (
            ("DOP853", 1e-4, 0.1, 1e-3),
            ("DOP853", 1e-8, 0.4, 1e-7),
            ("RK45", 1e-8, 0.2, 1e-6),
            ("LSODA", 1e-8, 0.1, 2e-6),
        )
    ]
    assert work_precision._best(points, 1e-6)["method"] == "RK45"
    assert work_precision._best(points, 1e-9) is None
    (axes,) = work_precision.draw([("a problem", points, 1e-12)]).axes
    (ring,) = (line for line in axes.lines if line.get_label() == "the default")
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (0.4, 1e-7)


def test_references_that_differ_are_none(monkeypatch):
    monkeypatch.setattr(work_precision, "_logits", lambda *_, method, **__: np.array([1.0, 2.0 + (method == "LSODA")]))
    with pytest.raises(Disagreement, match=r"the references at t <= 700 differ by 5\.0e-01"):
        work_precision.reference(0.15, 700.0)


def test_first_uses_are_all_of_what_the_program_knows():
    """The programs compile as Python; the table has the kernels that took long, longest first."""
    for use in first_use.USES.values():
        compile(first_use._PROGRAM.format(use=use), "program", "exec")
    data = {"uses": [{"use": "a use", "seconds": 3.21, "kernels": {"short": 0.1, "one": 1.0, "two": 2.04}}]}
    assert first_use.markdown(data).splitlines()[2] == "| a use | 3.2 | `two` 2.0, `one` 1.0 |"
    (axes,) = first_use.bars(data["uses"]).axes
    assert [patch.get_width() for patch in axes.patches] == [3.21]


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
