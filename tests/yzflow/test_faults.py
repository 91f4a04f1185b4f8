"""Faults of the world around a program: clocks that jump, folders that change, memory that runs out.

Folders that cannot be written are in `sweeps/test_writers.py`.
"""

import json
import os
import random
import subprocess
import sys
import time

import numpy as np
import pytest
import sweep_tasks
import xarray as xr
from balls import enclose_flow
from driving import assert_same_bits, quietly
from saved import CLASSES, RATES
from saved_kinds import IDENTITY

import yzflow as yz
from dynamics.support import files
from yzflow.audits.enclosing import Enclose
from yzflow.papers.scan_and_snap.settings import settings
from yzflow.sweeps.runs import Result, key
from yzflow.sweeps.store import Store

QSA = {"n_tokens": 4, "subset_size": 2, "embedding_dim": 3, "value_dim": 2, "steps": 30, "batch_size": 2}


def train_qsa(*arguments, **options):
    """Skips a test where the training is not installed."""
    return pytest.importorskip("yzflow_sparse_averaging.trained.qsa").train_qsa(*arguments, **options)


def program(text, folder, *arguments):
    """A new interpreter that runs a program in a folder."""
    paths = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# Clocks


@pytest.fixture
def jumps(monkeypatch):
    """The clock of the day goes back and forth by years; the other one is no clock of the day."""
    rng = random.Random(7)
    monkeypatch.setattr(time, "time", lambda: rng.choice([0.0, 1e9, 4e9]) + rng.random())


def test_a_clock_that_jumps_changes_no_result(tmp_path, jumps, capsys):
    given = {"a": [1, 2], "sleep": [0.0]}
    first = quietly(sweep_tasks.arrays, given, store=tmp_path / "a", seeds=3)
    assert_same_bits(quietly(sweep_tasks.arrays, given, store=tmp_path / "a", seeds=3), first)
    assert len(Store(tmp_path / "a")) == 6
    flow = enclose_flow(CLASSES, **RATES, t_end=1.0, max_seconds=1e3)
    assert flow.t_reached == 1.0
    trained = train_qsa(**QSA, checkpoint=tmp_path / "qsa.nc", progress=True)
    assert_same_bits(train_qsa(**QSA, checkpoint=tmp_path / "qsa.nc"), trained)
    told = capsys.readouterr().err
    assert "100% step 30 of 30" in told and "-" not in told.replace("qSA", "")


def test_a_clock_that_jumps_ends_no_file_of_a_process_that_lives(tmp_path, monkeypatch):
    """Neither another writer in the folder, nor one that opens the store, takes it for left over."""
    store = Store(tmp_path)
    with files.replacing(tmp_path / f"{'0' * 64}.npz") as temporary:
        temporary.write_bytes(b"half")
        monkeypatch.setattr(time, "time", lambda: 1e10)
        files.write(tmp_path / "other", b"whole")
        Store(tmp_path)
        store.write(IDENTITY, Result({"y": ((), np.array(1.0), {})}))
        assert temporary.exists()
    assert (tmp_path / f"{'0' * 64}.npz").read_bytes() == b"half"


# A working directory that changes


@pytest.mark.slow
def test_files_go_where_they_were_asked_for_wherever_the_program_goes(tmp_path, monkeypatch):
    """Relative paths mean what they meant at the start of the work, not at its end."""
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    store = None

    def moves(configuration, seed):
        monkeypatch.chdir(tmp_path / "elsewhere")
        return {"y": 1.0}

    moves.__module__, moves.__qualname__ = "sweep_tasks", "arrays"
    monkeypatch.setattr(sweep_tasks, "arrays", moves)
    monkeypatch.chdir(tmp_path / "here")
    store = Store("store")
    quietly(moves, {"a": [1, 2]}, store=store, seeds=2)
    assert len(store) == 4 and len(Store(tmp_path / "here" / "store")) == 4

    def going(text, change=monkeypatch.chdir):
        def update(self, done, note=""):
            change(tmp_path / "elsewhere")

        monkeypatch.setattr(text, update)

    going("dynamics.support.progress.Progress.update")
    monkeypatch.chdir(tmp_path / "here")
    train_qsa(**QSA, checkpoint="qsa.nc")
    monkeypatch.chdir(tmp_path / "here")
    rate = xr.DataArray([0.5, 1.0], dims="rate")
    given = {"n_classes": 3, "vocab_size": 20, "eta_y": rate, "eta_z": 0.5}
    mapped = yz.gradient_flow_ensemble(given, t_end=1.0, path="map")
    assert np.isfinite(mapped["loss"].values).all()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("yzflow.audits.audit.settings", lambda paper, quick: settings(quick=True)[:1])
    yz.audit(["Scan and Snap: Lemma 6"], quick=True, enclose=Enclose(until=0.1, folder="certificates"))
    assert sorted(os.listdir(tmp_path / "here")) == ["certificates", "map", "qsa.nc", "store"]
    assert os.listdir(tmp_path / "elsewhere") == [] and list((tmp_path / "here" / "certificates").glob("*.npz"))


# Memory


SHORT_OF_MEMORY = """
import json, os, resource, sys
import numpy as np
from pathlib import Path
import h5netcdf, h5py, xarray
from click.testing import CliRunner
from dynamics import Bags, Trajectory
from yzflow import cli, reruns
from yzflow.sweeps.store import Store

def command(path):
    ended = CliRunner().invoke(cli.main, ["rerun", path])
    if ended.output.startswith("Error: out of memory") and ended.exit_code == 1 and ended.output.count("\\n") == 1:
        raise MemoryError
    if ended.exit_code != 2:  # the file holds no call
        raise ended.exception or AssertionError(ended.output)

def used():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

small = Path("small")
Bags.load(small / "bags.npz"), Trajectory.load(small / "run.nc"), Store(small / "store").read(sys.argv[1])
command("small/other.nc")
large = Bags.load("bags.npz")
large.save("warm.npz")
what = {
    "bags": lambda: Bags.load("bags.npz"),
    "save": lambda: large.save("saved.npz"),
    "trajectory": lambda: Trajectory.load("run.nc"),
    "command": lambda: command("run.nc"),
    "entry": lambda: Store("store").read(sys.argv[1]),
}
# Freed memory stays with the process, and would be used under the limit: another process for each.
for name, act in what.items():
    for room in (1, 6, 2000):
        if os.fork() == 0:
            resource.setrlimit(resource.RLIMIT_AS, (used() + room * 2**20, resource.RLIM_INFINITY))
            try:
                found = "None" if act() is None and name == "entry" else "done"
            except MemoryError:
                found = "MemoryError"
            except BaseException as error:
                found = f"{type(error).__name__}: {error}"
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            print(json.dumps([name, room, found]), flush=True)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.wait()[1])
        if status:
            print(json.dumps([name, room, f"exit {status}"]), flush=True)
"""


@pytest.mark.slow
def test_want_of_memory_is_no_damage(tmp_path):
    """It is said as what it is: nothing that is sound is set aside, and no half of a file is left."""
    n = 600_000
    rng = np.random.default_rng(0)
    large = yz.Bags([0], [0], [0, n], np.arange(n), rng.random(n) + 0.5)
    small = yz.Bags([0], [0], [0, 1], [0], [1.0])
    run = yz.gradient_flow(CLASSES, **RATES, t_end=1.0)
    wide = run.dataset.assign(more=(("time", "wide"), rng.random((run.dataset.sizes["time"], 20_000))))
    for folder, bags, one, size in ((tmp_path, large, yz.Trajectory(wide), n), (tmp_path / "small", small, run, 2)):
        folder.mkdir(exist_ok=True)
        bags.save(folder / "bags.npz")
        one.save(folder / "run.nc")
        yz.Trajectory(one.dataset).save(folder / "other.nc")
        Store(folder / "store").write(IDENTITY, Result({"y": (("a",), np.zeros(2 * size), {})}))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    running = program(SHORT_OF_MEMORY, tmp_path, key(IDENTITY))
    out, err = running.communicate()
    assert running.returncode == 0, err
    found = [json.loads(line) for line in out.splitlines()]
    assert len(found) == 15
    assert {how for _, _, how in found} == {"MemoryError", "done"}, (found, err)
    assert all(how == ("done" if room == 2000 else "MemoryError") for _, room, how in found if room in (1, 2000))
    written = {tmp_path / "warm.npz", tmp_path / "saved.npz"}
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert set(after) - set(before) <= written and all(after[path] == content for path, content in before.items())
    if tmp_path / "saved.npz" in after:
        assert after[tmp_path / "saved.npz"] == before[tmp_path / "bags.npz"]
