"""Sweeps as processes of their own: killed, interrupted, out of space, two at once; then the result is as it should."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sweep_tasks
import xarray as xr
from driving import Commands, quietly, told, until

pytestmark = pytest.mark.slow

GRID = {"a": [1, 2, 3], "sleep": [0.01]}
SEEDS = 140
CONFIG = f"""
task = "sweep_tasks:arrays"
seeds = {SEEDS}
store = "store"
out = "out.nc"
[grid]
a = [1, 2, 3]
sleep = [0.01]
"""


@pytest.fixture(scope="module")
def commands():
    running = Commands()
    yield running
    running.close()


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    with ThreadPoolExecutor(8) as pool:
        return quietly(sweep_tasks.arrays, GRID, store=tmp_path_factory.mktemp("whole"), seeds=SEEDS, executor=pool)


def count(folder):
    return len(list((folder / "store").glob("[0-9a-f]*.npz")))


@pytest.mark.parametrize("moment", ["workers start", "runs come"])
def test_ctrl_c_exits_130_and_says_how_to_resume(tmp_path, config, commands, moment):
    """In one line: the workers are left out of it, also before they have read their first line of Python."""
    number = commands.start(["sweep", str(config), "--task", "sweep_tasks:arrays", "--workers", "2"], tmp_path)
    if moment == "workers start":
        until((tmp_path / "store" / "yzflow-store.json").exists)
        time.sleep(0.15)
    else:
        until(lambda: count(tmp_path) > 0)
    os.killpg(number, signal.SIGINT)
    assert commands.wait(number) == 130
    (message,) = told((tmp_path / "stderr").read_text())
    assert message == "interrupted: what is done is in store; the same command goes on from there"
    assert count(tmp_path) < 3 * SEEDS and not (tmp_path / "out.nc").exists()


def test_workers_die_with_their_parent(tmp_path, commands):
    (tmp_path / "pids").mkdir()
    (tmp_path / "sweep.toml").write_text(
        f'task = "sweep_tasks:leaves_its_pid"\n[grid]\na = [1, 2]\nfolder = ["{tmp_path / "pids"}"]\n'
    )
    number = commands.start(["sweep", "sweep.toml", "--task", "sweep_tasks:leaves_its_pid", "--workers", "2"], tmp_path)
    until(lambda: len(os.listdir(tmp_path / "pids")) == 2)
    os.kill(number, signal.SIGKILL)
    commands.wait(number)
    for pid in map(int, os.listdir(tmp_path / "pids")):
        # The number may live on as a zombie that nobody collects, or be gone.
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())


def test_a_full_disk_ends_in_one_line_and_a_resumable_store(tmp_path, config, commands, uninterrupted):
    command = ["sweep", str(config), "--task", "sweep_tasks:arrays", "--workers", "1"]
    assert commands.wait(commands.start(command, tmp_path, limit=600)) == 1
    lines = told((tmp_path / "stderr").read_text())
    assert len(lines) == 1 and lines[0].startswith(
        "Error: cannot write into the store store: File too large. The 0 runs"
    )
    kept = {path.name for path in (tmp_path / "store").iterdir() if not path.match("code-*.json")}
    assert kept == {"yzflow-store.json"}
    assert commands.wait(commands.start([*command, "--seeds", "3"], tmp_path)) == 0
    assert xr.load_dataset(tmp_path / "out.nc").equals(uninterrupted.sel(seed=[0, 1, 2]))


def test_two_commands_on_one_store_at_once(tmp_path, config, commands, uninterrupted):
    command = ["sweep", str(config), "--task", "sweep_tasks:arrays", "--workers", "1", "--seeds", "40"]
    numbers = [commands.start([*command, "--out", f"{name}.nc"], tmp_path) for name in "ab"]
    assert [commands.wait(number) for number in numbers] == [0, 0]
    for name in "ab":
        assert xr.load_dataset(tmp_path / f"{name}.nc").equals(uninterrupted.sel(seed=range(40)))
    assert count(tmp_path) == 3 * 40
