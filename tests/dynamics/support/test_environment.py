"""Where numba cannot keep its kernels, numba is off, docstrings or standard error are missing; what records name."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from driving import ROOT
from numba.core.registry import cpu_target

from dynamics import Limits, SequenceClasses, TextCorpus, gradient_flow, gradient_flow_ensemble, sgd
from dynamics.support.progress import Progress
from dynamics.support.provenance import machine
from yzflow import figures

KERNEL = """
from dynamics.backend.compiled import kernel
@kernel()
def double(x):
    return 2 * x
@kernel()
def twice(x):
    return double(double(x))
print(twice(3.0))
"""


def child(folder, program, *options, **variables):
    """A program in a file, whose kernels numba would keep in ``folder/cache``."""
    script = folder / "program.py"
    if not script.exists():  # numba takes a file of another time for another program
        script.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run([sys.executable, *options, script], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        # As on a read-only installation without a home.
        ("import numba.core.caching as c; c.CacheImpl._locator_classes = []", "no locator available"),
        # As on a full disk: no file may grow to more than ten bytes.
        pytest.param(
            "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))",
            "File too large",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_kernels_run_where_numba_can_keep_none_and_it_is_told_once(tmp_path, first, reason):
    kept = tmp_path / "cache"
    ended = child(tmp_path, first + KERNEL, NUMBA_CACHE_DIR=str(kept))
    assert ended.returncode == 0 and ended.stdout == "12.0\n", ended.stderr
    assert ended.stderr.count("numba cannot keep compiled kernels on disk") == 1
    assert reason in ended.stderr and "set NUMBA_CACHE_DIR" in ended.stderr
    assert not [path for path in kept.rglob("*") if path.is_file()]


INNER = """
def hits(f):
    return sum(f.stats.cache_hits.values()) if hasattr(f, "stats") else None
@kernel(inner=True)
def half(x):
    return x / 2
@kernel()
def quarter(x):
    return half(half(x))
print(quarter(16.0), *(hits(f) for f in (double, twice, quarter)))
print(half(3.0))
"""


def test_kernels_are_kept_where_they_can_be_and_inner_ones_are_parts_that_refuse_python(tmp_path):
    """Python is refused after a kernel has it compiled, and where it was not compiled at all, as from the cache."""
    for hits in ("0 0 0", "0 1 1"):
        ended = child(tmp_path, KERNEL + INNER, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        assert ended.stdout == f"12.0\n4.0 {hits}\n"
        refusal, told = "TypeError: half is an inner kernel: only kernels can call it\n", ended.stderr
        assert told.startswith("Traceback") and told.endswith(refusal), told
    kept = [path.name for path in (tmp_path / "cache").rglob("*.nbi")]
    assert sorted(name.split("-")[0] for name in kept) == ["program.double", "program.quarter", "program.twice"]
    plain = child(tmp_path, KERNEL + INNER, NUMBA_DISABLE_JIT="1")
    assert plain.stdout == "12.0\n4.0 None None None\n1.5\n", plain.stderr


def results():
    """A little of everything that is compiled."""
    classes = SequenceClasses.single_common_token(3, 5)
    rates = {"eta_y": 1.0, "eta_z": 0.5}
    found = {}
    for decoder in ("full", "modified", "theory"):
        run = gradient_flow(classes, t_end=3.0, n_times=4, decoder=decoder, **rates)
        found[decoder] = run.dataset["z"].values[-1]
    for dtype, optimizer in (("float64", "sgd"), ("float64", "adam"), ("float32", "sgd")):
        options = {"dtype": dtype, "optimizer": optimizer, "batch_size": 4, "length": 6}
        found[f"{dtype} {optimizer}"] = sgd(classes, steps=5, **options, **rates).dataset["loss"].values
    members = {"n_classes": [3, 2], "vocab_size": [20, 50], **rates}
    found["ensemble"] = gradient_flow_ensemble(members, t_end=3.0, rtol=1e-3, atol=1e-5)["z"].values
    windows = TextCorpus(["a b c a b d", "a c"]).windows(3)
    found["text"] = np.concatenate([windows.token, windows.count])
    return {name: np.asarray(array, dtype=float).ravel().tolist() for name, array in found.items()}


@pytest.mark.slow
def test_without_compilation_the_results_are_the_same_but_for_rounding(tmp_path):
    folders = [str(Path(__file__).parent), str(ROOT / "tests")]
    program = f"import sys, warnings; sys.path += {folders}; warnings.simplefilter('error', RuntimeWarning)\n"
    program += "import json, test_environment\nprint(json.dumps(test_environment.results()))"
    ended = child(tmp_path, program, NUMBA_DISABLE_JIT="1")
    assert ended.returncode == 0, ended.stderr
    plain, compiled = json.loads(ended.stdout), results()
    assert list(plain) == list(compiled)
    for name, values in compiled.items():
        tolerance = 1e-6 if "float32" in name else 1e-12
        np.testing.assert_allclose(plain[name], values, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.slow
def test_captions_are_there_without_docstrings(tmp_path):
    texts = "{name: entry.text for name, entry in figures.entries().items()}"
    bare = child(tmp_path, f"import json\nfrom yzflow import figures\nprint(json.dumps({texts}))", "-OO")
    assert bare.returncode == 0, bare.stderr
    assert json.loads(bare.stdout) == {name: entry.text for name, entry in figures.entries().items()}


def test_progress_is_silent_without_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with Progress("work") as report:
        report.update(0.5, "half")
    run = sgd(SequenceClasses.single_common_token(2, 3), eta_y=1.0, eta_z=1.0, steps=2, progress=True)
    assert run.dataset.sizes["step"] == 2


def test_progress_still_reports_where_there_is_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", lines := io.StringIO())
    with Limits(seconds_between_lines=0), Progress("work") as report:
        report.update(0.5, "half")
    assert lines.getvalue().startswith("work: 50% half")


def test_time_left_does_not_extrapolate_what_happens_once(monkeypatch):
    """100 s of compilation, then a tenth every 6 s, and 3 s a tenth from half on: by the pace of the last seconds."""
    now = [0.0]
    monkeypatch.setattr("dynamics.support.progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", lines := io.StringIO())
    with Progress("work") as report:
        now[0] = 100.0
        for tenth in range(10):
            report.update(tenth / 10)
            now[0] += 6.0 if tenth < 5 else 3.0
    first, second, *others = lines.getvalue().splitlines()
    left = [float(line.split("about ")[1].split(" s left")[0]) for line in others]
    assert first == "work: 0% , 100 s" and second == "work: 10% , 106 s"  # one pace is no pace
    assert left[:4] == [48, 42, 36, 30] and left == sorted(left, reverse=True) and 2 <= left[-1] <= 5


def test_time_left_is_said_once_two_paces_agree_and_does_not_jump(monkeypatch):
    """A tenth in 10, 10, 30, 30, 13, 13 s: slower steps hold it where it was, and the first line is there at once."""
    now = [0.0]
    monkeypatch.setattr("dynamics.support.progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", lines := io.StringIO())
    with Progress("work") as report:
        for tenth, seconds in enumerate((10, 10, 30, 30, 13, 13, 0)):
            report.update(tenth / 10, "Theorem 3")
            now[0] += seconds
    told = lines.getvalue().splitlines()
    assert told[0] == "work: 0% Theorem 3, 0 s" and len(told) == 7
    assert [line.partition("about ")[2] for line in told] == [
        "",
        "",
        "80 s left",
        "80 s left",
        "80 s left",
        "74 s left",
        "57 s left",
    ]


def test_records_name_the_processor_that_numba_compiles_for():
    assert machine()["cpu"] == cpu_target.target_context.codegen().magic_tuple()[1]
    run = sgd(SequenceClasses.single_common_token(2, 3), eta_y=1.0, eta_z=1.0, steps=1)
    assert {name: run.dataset.attrs[name] for name in ("platform", "cpu")} == machine()
