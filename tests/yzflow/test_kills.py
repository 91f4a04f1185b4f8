"""Long works, killed at any moment and started again: their results are those of an undisturbed run, to the bit."""

import os
import random
import shutil
import signal
import time

import pytest
from driving import LONG, Commands
from long_works import WORKS, names

# Of each kind of work; another number is asked for by YZFLOW_KILLS.
KILLS = int(os.environ.get("YZFLOW_KILLS", 8 if LONG else 1))


@pytest.fixture(scope="module")
def commands():
    running = Commands()
    running.load("long_works")
    yield running
    running.close()


# A sweep is killed in `sweeps/test_killed.py`; the table and the campaign are kept in its store.
SHORT = [name for name in WORKS if name not in ("sweep", "survival", "fuzz")]


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS if KILLS > 1 else SHORT)
def test_kills_at_any_moment_change_nothing(tmp_path, commands, name):
    work, rng, kills = WORKS[name], random.Random(name), 0

    def begin(folder):
        folder.mkdir()
        (folder / "sweep.toml").write_text(work.reads)
        return folder

    def finish(folder):
        status = commands.wait(commands.start(work.start, folder))
        assert status == 0, (folder / "stderr").read_text()

    whole, killed = begin(tmp_path / "whole"), begin(tmp_path / "killed")
    began = time.monotonic()
    finish(whole)
    lasts, made = time.monotonic() - began, work.made(whole)
    while kills < KILLS:
        number = commands.start(work.start, killed)
        time.sleep(rng.uniform(0, lasts))
        os.killpg(number, signal.SIGKILL)
        status = commands.wait(number)
        if status == -signal.SIGKILL:
            kills += 1
        else:  # it was faster
            assert status == 0 and work.made(killed) == made
            shutil.rmtree(killed)
            begin(killed)
    finish(killed)
    assert work.made(killed) == made
    assert names(killed) == names(whole)
