"""Every writer x every target that cannot or must not be replaced, each in a process of its own.

No process ends by a signal; what is said is one line that names no temporary file; what stood there stands there, and
nothing beside it. The matrix is whole: there is no longer run of it.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from driving import told
from writers_in_children import HAZARDS

HERE = Path(__file__).parents[2]
# A folder is made, and a file that is no training is refused.
OTHERWISE = {("qsa", "missing folder"): True, ("qsa", "mode"): False, ("qsa", "link"): False}


@pytest.fixture(scope="module")
def outcomes():
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    try:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MPLBACKEND": "agg"}
        command = [sys.executable, HERE / "writers_in_children.py", folder]
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines() if line.startswith('{"writer"')]
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")
def test_targets_are_written_whole_or_left_alone(outcomes):
    writers = {outcome["writer"] for outcome in outcomes}
    assert len(writers) >= 10 and len(outcomes) == len(writers) * len(HAZARDS)
    wrong = []
    for outcome in outcomes:
        writer, hazard = outcome["writer"], outcome["hazard"]
        succeeds = OTHERWISE.get((writer, hazard), HAZARDS[hazard][2])
        said = told(outcome["said"])
        if succeeds:
            modes = outcome["modes"]
            [last] = [mode for name, mode in modes.items() if name == "target" or len(modes) == 1]
            right = outcome["status"] == 0 and not outcome["same"] and last[0] == stat.S_IFREG
            right &= hazard not in ("mode", "link") or last[1] == 0o600
            right &= hazard != "link" or [mode[0] for mode in modes.values()] == [stat.S_IFLNK, stat.S_IFREG]
        else:
            right = outcome["status"] in (1, 2, 3) and outcome["same"] and len(said) == 1
            right &= not any(".yzflow-" in line for line in said)
            right &= "yzflow" not in writer or said[0].startswith("Error: ")
        if not right:
            wrong.append(outcome)
    assert not wrong
