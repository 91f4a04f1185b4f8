"""Long works that go on where they stopped: how each is started in a folder, and what it has made there."""

import importlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from saved_kinds import parts

import yzflow as yz
from dynamics import Limits, gradient_flow_ensemble
from dynamics.support import files
from dynamics.support.distributions import installed
from yzflow.audits import audit, survival  # noqa: F401  # before a process forks, and not in each
from yzflow.fuzzing import blocks

SWEEP = """
task = "sweep_tasks:arrays"
seeds = 20
store = "store"
out = "out.nc"
[grid]
a = [1, 2, 3]
sleep = [0.01]
"""


def flows():
    """Many flows in a folder, in chunks of two."""
    given = {"n_classes": 3, "vocab_size": 20, "eta_z": 0.5}
    rates = xr.DataArray(np.geomspace(0.5, 2.0, 20), dims="rate")
    with Limits(members=2):
        made = gradient_flow_ensemble(given | {"eta_y": rates}, t_end=200.0, path="map", threads=2)
    made.to_netcdf("done.nc")


def recording():
    """A training that starts over, and its recorder, which goes on."""
    import watched_layers

    model = watched_layers.Trained(watched_layers.classes_inside(vocab_size=50))
    tokens = watched_layers.draw(model.classes, 24, 200, np.random.default_rng(0))
    looks = {"attention": watched_layers.attention, "logits": watched_layers.logits, "rates": model.rates}
    path = Path("run.nc")
    recorded = int(_recorded(path).steps[-1]) if path.exists() else 0
    for number in range(recorded):
        model.step(number)
    given = {"optimizer": watched_layers.PLAIN, "batch_size": 100, "predict_at": "log", "every": 2, "path": path}
    recorder = yz.watch(model, tokens, **looks, **given)
    for number in range(recorded, 14):
        model.step(number)
        recorder.step()


def campaign():
    """A campaign in small blocks."""
    blocks.BLOCK = 2
    with ThreadPoolExecutor(1) as pool:
        report = yz.fuzz(
            "Scan and Snap: Corollary 2", level="theory flow", examples=8, seed=1, store="kept", executor=pool
        )
    report.to_json("fuzz.json")


def _recorded(path):
    return importlib.import_module("yzflow_watch.recording").Recording.load(path)


class Work(NamedTuple):
    """A long work.

    Attributes
    ----------
    start : list of str or str
        Arguments of the command ``yzflow``, or "module:function".
    made : callable
        What it has made in its folder, comparable.
    reads : str
        Text of the file ``sweep.toml``.
    """

    start: list[str] | str
    made: Callable[[Path], object]
    reads: str = ""


def _dataset(name):
    return lambda folder: parts(xr.load_dataset(folder / name))


def _audit(folder):
    found = json.loads((folder / "audit" / "audit.json").read_text())
    kept = sorted((folder / "audit" / "certificates").iterdir())
    return json.dumps(found), {file.name: file.read_bytes() for file in kept if not files.is_temporary(file.name)}


WORKS = {
    "sweep": Work(["sweep", "sweep.toml", "--task", "sweep_tasks:arrays", "--workers", "2"], _dataset("out.nc"), SWEEP),
    "audit": Work(
        ["audit", "--only", "Scan and Snap: Lemma 6", "--quick", "--enclose", "--until", "1", "--max-seconds", "1e4",
         "--out", "audit"],
        _audit,
    ),
    "survival": Work(
        ["survival", "--statements", "Theorem 2(b)", "--options", "plain", "--quick", "--out", "table.nc"],
        _dataset("table.nc"),
    ),
    "fuzz": Work("long_works:campaign", lambda folder: (folder / "fuzz.json").read_bytes()),
    "ensemble": Work("long_works:flows", _dataset("done.nc")),
}  # fmt: skip
if installed("yzflow_watch"):
    WORKS["recording"] = Work("long_works:recording", lambda folder: parts(_recorded(folder / "run.nc").dataset))


def names(folder):
    """Names of all files that are no temporary ones, by their places in the folder."""
    found = (Path(root) / name for root, _, inside in os.walk(folder) for name in inside)
    plain = (path for path in found if not files.is_temporary(path.name))
    return {path.relative_to(folder).as_posix() for path in plain if path.name not in ("stdout", "stderr")}
