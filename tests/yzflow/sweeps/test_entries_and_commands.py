"""Entries of a store that cannot be read, files that the command must not touch, modules that it must not run."""

import errno
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

from dynamics import Limits, SequenceClasses, gradient_flow, sgd
from dynamics.support import files
from dynamics.support.netcdf import load_dataset
from yzflow import cli, figures
from yzflow.commands import common
from yzflow.sweeps import cache, config, runs
from yzflow.sweeps.runs import Result
from yzflow.sweeps.store import Store, StoreError
from yzflow.sweeps.sweep import load_sweep

ROOT = Path(__file__).parents[3]
SMALL = 'task = "syn_small"\nseeds = 2\n[grid]\neta_z = [0.5, 1]\nsteps = [3]\n'
IDENTITY = {"schema": runs.SCHEMA, "task": "t", "version": 1, "configuration": {"a": 1}, "seed": 0}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def kept():
    made = Store("store")
    made.write(IDENTITY, Result({"y": ((), np.array(3.0), {})}))
    return made


def yzflow(*arguments):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


# Entries


def a_loop(path):
    path.symlink_to(path.name)


ENTRIES = {
    "folder": (Path.mkdir, "it is no file"),
    "full folder": (lambda path: (path / "below").mkdir(parents=True), "it is no file"),
    "loop": (a_loop, "Too many levels of symbolic links"),
    "pipe": (os.mkfifo, "it is no file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "it is no file"),
}


@pytest.mark.parametrize("what", ENTRIES)
def test_an_entry_that_cannot_be_read_is_set_aside_and_run_again(kept, what):
    """More than once, whatever was set aside before."""
    make, why = ENTRIES[what]
    [key] = kept.keys()
    path = kept.path / f"{key}.npz"
    content = path.read_bytes()
    for times in (1, 2, 3):
        path.unlink()
        make(path)
        with pytest.warns(UserWarning, match=rf"{key}\.npz is damaged \({why}\): set aside as {key}\.npz\.damaged"):
            assert kept.read(key) is None
        assert kept.read(key) is None and len(names(kept.path)) == 1 + times
        kept.write(IDENTITY, Result({"y": ((), np.array(3.0), {})}))
        assert path.read_bytes() == content


def test_an_entry_on_a_bad_disk_is_set_aside_but_not_for_want_of_handles(kept, monkeypatch):
    [key] = kept.keys()

    def fails(number):
        def read(*_):
            raise OSError(number, os.strerror(number))

        return read

    monkeypatch.setattr(files, "read", fails(errno.EMFILE))
    with pytest.raises(StoreError, match=r"^cannot read the store store: Too many open files"):
        kept.read(key)
    monkeypatch.setattr(files, "read", fails(errno.EIO))
    with pytest.warns(UserWarning, match=r"is damaged \(Input/output error\)"):
        assert kept.read(key) is None
    assert names(kept.path) == [f"{key}.npz.damaged", "yzflow-store.json"]


def test_writing_over_what_is_no_file_sets_it_aside(kept):
    [key] = kept.keys()
    (kept.path / f"{key}.npz").unlink()
    (kept.path / f"{key}.npz").mkdir()
    with pytest.warns(UserWarning, match="set aside"):
        kept.write(IDENTITY, Result())
    assert kept.read(key)[1].error == ""


@pytest.mark.parametrize("key", ["../outside", "", "a" * 63, "A" * 64, "a" * 64 + "\n", "../" + "a" * 61, 5, b"a"])
def test_only_keys_of_runs_are_read(kept, key):
    Path("outside.npz").write_text("mine")
    with pytest.raises(ValueError, match=r"^`key` must be the 64 hexadecimal digits of a run, but got "):
        kept.read(key)
    assert key not in kept and Path("outside.npz").read_text() == "mine"


def test_other_files_in_a_store_are_left_alone(kept):
    (kept.path / "notes.npz").write_text("mine")
    (kept.path / f".yzflow-{'0' * 8}-1-{'0' * 12}.npz").write_text("of a process elsewhere")
    again = Store("store")
    assert len(again) == 1 and again.tasks() == {"t": 1} and (kept.path / "notes.npz").read_text() == "mine"
    assert len(names(kept.path)) == 4


@pytest.mark.parametrize("make", [os.mkfifo, a_loop, Path.mkdir])
def test_a_marker_that_cannot_be_read_is_refused_and_left(folder, make):
    (folder / "store").mkdir()
    make(folder / "store" / "yzflow-store.json")
    before = (folder / "store" / "yzflow-store.json").lstat().st_mode
    with pytest.raises(ValueError, match=r"^`store` must be a .*, but got .*store"):
        Store("store")
    assert (folder / "store" / "yzflow-store.json").lstat().st_mode == before


# Trajectories that are kept


@pytest.mark.slow
@pytest.mark.parametrize("simulate", [sgd, gradient_flow])
@Limits(tables=100)
def test_a_large_trajectory_comes_back_as_it_was(simulate):
    """On entries, whose tokens are labels beside those of a dimension."""
    classes = SequenceClasses.single_common_token(3, 10)
    arguments = {"eta_y": 1.0, "eta_z": 1.0} | ({"steps": 3} if simulate is sgd else {"t_end": 2.0, "n_times": 3})
    first, second = (cache.trajectory(simulate, classes, store="store", **arguments) for _ in range(2))
    assert first.dataset["entry_token"].dims == ("entry",) and len(list(Path("store").glob("*.nc"))) == 1
    xr.testing.assert_identical(second.dataset, first.dataset)
    assert set(second.dataset.dims) == set(first.dataset.dims)


# Figures


@pytest.mark.parametrize("stem", ["figs/", "", ".", "..", "figs/..", 5, None, b"figs"])
def test_a_stem_that_names_no_file_is_refused(folder, stem):
    from matplotlib.figure import Figure

    (folder / "figs").mkdir()
    with pytest.raises(ValueError, match=r"^`stem` must be the path of files without their ending, but got "):
        figures.save(Figure(), stem)
    assert names(folder) == ["figs"] and names("figs") == []
    assert figures.save(Figure(), "figs", formats=["png"]) == [Path("figs.png")]  # beside a folder of that name


# The command


def test_the_file_of_a_sweep_is_sealed(folder):
    Path("small.toml").write_text(SMALL)
    assert yzflow("sweep", "small.toml").exit_code == 0
    whole = Path("small.nc").read_bytes()
    found = load_sweep("small.nc")
    assert xr.load_dataset("small.nc").equals(found) and found.attrs["format"] == "yzflow-sweep-1"
    for place in np.linspace(0, len(whole) - 1, 8).astype(int):
        Path("small.nc").write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="its checksum is wrong"):
            load_sweep("small.nc")
    Store("small.store").consolidate("all.nc")
    assert load_dataset("all.nc", "yzflow-runs-1", "runs")["loss"].size == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", ""], "`--out` must be the path of a file or a folder, but got ''"),
        (["--out", "/dev/null"], "`--out` must be a regular file or a new one, but got /dev/null, a device"),
        (["--out", "small.toml"], "`--out` must be another file than CONFIG, but got small.toml"),
        (["--out", "./link.toml"], "`--out` must be another file than CONFIG, but got link.toml"),
        (["--out", "--json"], "`--out` must be the path of a file, but got --json, which reads like an option"),
        (["--dask", "local", "--workers", "0"], "`workers` must be at least 1, but got 0"),
        (["--seeds", str(10**10)], "`seeds` must be at most 10000000, a file of the store each, but got 10000000000"),
    ],
)
def test_bad_options_are_told_before_anything_runs(folder, arguments, message):
    Path("small.toml").write_text(SMALL)
    Path("link.toml").symlink_to("small.toml")
    result = yzflow("sweep", "small.toml", *arguments)
    assert (result.exit_code, result.stderr) == (2, f"Error: {message}\n")
    assert names(folder) == ["link.toml", "small.toml"] and Path("small.toml").read_text() == SMALL


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = 10000000000\n" + SMALL.replace("seeds = 2\n", ""), "`seeds` must be at most 10000000"),
        ("x = " + "[" * 5000 + "]" * 5000 + "\n", "`CONFIG` must be a TOML file of tables that are not so deep"),
        (f"x = {'{a=' * 5000}1{'}' * 5000}\n", "`CONFIG` must be a TOML file of tables that are not so deep"),
        (
            SMALL.replace("0.5", "[" * 80 + "]" * 80),
            "`grid['eta_z']` must hold finite numbers, words, booleans or None",
        ),
        ('out = "small.toml"\n' + SMALL, "`--out` must be another file than CONFIG, but got small.toml"),
        ('out = ""\n' + SMALL, "`out` must be a string, the path of a netCDF file, but got an empty one in small.toml"),
        ('store = ""\n' + SMALL, "`store` must be a string, the path of a folder, but got an empty one in small.toml"),
        (SMALL.replace("syn_small", ".x:y"), "`--task` must be given as --task .x:y to run it, as a file does not"),
        (SMALL.replace("2", "'" + "x" * 500 + "'"), "`seeds` must be an integer or a list of integers, but got 'xxx"),
    ],
)
def test_bad_files_are_told_before_anything_runs(folder, text, message):
    Path("small.toml").write_text(text)
    result = yzflow("sweep", "small.toml")
    assert result.exit_code == 2 and result.stderr.startswith(f"Error: {message}")
    assert len(result.stderr.splitlines()) == 1 and len(result.stderr) < 400 and names(folder) == ["small.toml"]


def test_what_is_no_finite_number_is_null_for_a_machine(capsys):
    common.print_facts(True, {"loss": float("nan"), "entropy": -float("inf"), "runs": 3, "out": "x"}, [])
    assert json.loads(capsys.readouterr().out) == {"loss": None, "entropy": None, "runs": 3, "out": "x"}


SHADOWS = ("bisect", "numpy", "random", "struct", "tempfile", "multiprocessing", "yzflow", "dynamics", "click")


@pytest.mark.slow
def test_modules_of_the_folder_that_libraries_import_are_not_run(folder):
    """Neither by the command nor by its workers; a task of the person is found all the same."""
    for name in SHADOWS:
        Path(f"{name}.py").write_text("raise SystemExit('a module of the folder was run')")
    own = "import os\ndef f(configuration, seed):\n    return {'safe': 'PYTHONSAFEPATH' in os.environ}\n"
    Path("own.py").write_text(own)
    Path("c.toml").write_text('task = "own:f"\n[grid]\nx = [1, 2]\n')
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    # As the console script does, in whose path the present folder is not.
    code = f"import sys; sys.path[:] = [{str(ROOT)!r}, *filter(None, sys.path)]; from yzflow.cli import main; main()"
    command = [sys.executable, "-c", code, "sweep", "c.toml", "--workers", "1", "--task", "own:f"]
    run = subprocess.run(command, env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[0].endswith("runs of own:f, 0 failed") and "was run" not in run.stderr
    assert not load_sweep("c.nc")["safe"].any()  # what a task starts sees nothing of it


def test_the_present_folder_is_looked_into_for_tasks_of_the_person_only(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("small.toml").write_text(SMALL)
    before = list(sys.path)
    assert yzflow("sweep", "small.toml").exit_code == 0 and sys.path == before
    Path("beside_them.py").write_text("def f(configuration, seed):\n    return {'twice': 2 * configuration['x']}\n")
    Path("own.toml").write_text('task = "beside_them:f"\n[grid]\nx = [1, 2]\n')
    assert yzflow("sweep", "own.toml", "--task", "beside_them:f", "--workers", "1").exit_code == 0
    assert sys.path == [*before, str(folder)]
    assert xr.load_dataset("own.nc")["twice"].values.ravel().tolist() == [2, 4]


def test_a_configuration_is_read_as_it_is(folder):
    Path("small.toml").write_text(SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert config.load("small.toml").seeds == 2
