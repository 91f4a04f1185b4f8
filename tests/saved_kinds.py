"""A small saved file of every kind in `dynamics.support.sealed.kinds`, and what a reader has of it."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import saved
import xarray as xr
from beside import beside
from own_flows import Logistic

import yzflow as yz
from dynamics import linear_noise
from dynamics.support import archive, netcdf, sealed
from yzflow.audits import survival
from yzflow.sweeps.runs import Result, key
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import load_sweep

IDENTITY = {"schema": 2, "task": "t", "version": 1, "configuration": {"a": 1}, "seed": 0}


class File(NamedTuple):
    """How a file is made, and read: to what can be compared, or with an error."""

    name: str
    make: callable
    read: callable


class Crossing(Logistic):
    """With an event, and one that does not happen."""

    def events(self, t, state):
        return {"half": state["x"] - 0.5, "double": state["x"] - 2.0}


def parts(dataset):
    """All that a dataset holds, comparable."""
    held = {
        name: (one.dims, one.dtype, one.values.tolist(), repr(one.attrs)) for name, one in dataset.variables.items()
    }
    return repr((held, dataset.attrs))


def plain(kind):
    """A file that `load_dataset` alone reads."""
    return lambda path: parts(netcdf.load_dataset(path, kind, sealed.kinds()[kind]))


def archived(kind):
    """An archive that `archive.load` alone reads."""

    def read(path):
        header, arrays = archive.load(path, kind, sealed.kinds()[kind])
        return repr((header, {name: array.tolist() for name, array in arrays.items()}))

    return read


def _trajectory(path):
    found = yz.Trajectory.load(path)
    return parts(found.dataset) + repr((found, found.parameters, found.environment))


def _run(path):
    found = yz.Run.load(path)
    return parts(found.saved) + repr((found, found.parameters, found.environment))


def _bags(path):
    found = yz.Bags.load(path)
    return repr(({name: array.tolist() for name, array in found.arrays.items()}, found.sizes, found.names))


def _entry(path):
    """A run that is not there any more was set aside; its warning says why."""
    found = Store(path.parent).read(path.stem)
    if found is None:
        raise ValueError("`store` must hold the run, but got a damaged one")
    return repr(found)


def _store_entry(path):
    store = Store(path.parent)
    store.write(IDENTITY, Result({"y": (("a",), np.arange(3.0), {"units": "1"})}, {"a": (np.arange(3), {})}))


def _open_run(path):
    yz.integrate(Crossing(), t_end=3.0, times=[0.0, 3.0]).save(path)


def _ensemble(path):
    given = {"n_classes": 2, "vocab_size": 5, "eta_y": xr.DataArray([1.0, 2.0], dims="rate"), "eta_z": 1.0}
    netcdf.save_dataset(yz.gradient_flow_ensemble(given, t_end=1.0), path)


def _noise(path):
    netcdf.save_dataset(linear_noise(saved.CLASSES, **saved.RATES, steps=[0, 2]), path)


def _survival(path):
    setting = {"data": saved.CLASSES, **saved.RATES, "t_end": 5.0}
    found = yz.survival(["Theorem 2(b)"], ["batch of one"], settings=[setting], quick=True, seed=2)
    netcdf.save_dataset(found, path)


FILES = {
    "yzflow-trajectory-1": File("run.nc", lambda path: saved.trajectory(path, seed=3), _trajectory),
    "yzflow-run-1": File("open.nc", _open_run, _run),
    "yzflow-bags-2": File("bags.npz", lambda path: saved.CLASSES.population().save(path), _bags),
    "yzflow-flow-ensemble-1": File("ensemble.nc", _ensemble, plain("yzflow-flow-ensemble-1")),
    "yzflow-noise-1": File("noise.nc", _noise, plain("yzflow-noise-1")),
    "yzflow-sweep-run-1": File(f"{key(IDENTITY)}.npz", _store_entry, _entry),
    "yzflow-runs-1": File(
        "runs.nc", lambda path: Store(path.parent / "runs").consolidate(path), plain("yzflow-runs-1")
    ),
    "yzflow-sweep-1": File("sweep.nc", saved.sweep, lambda path: parts(load_sweep(path))),
    "yzflow-survival-1": File("survival.nc", _survival, lambda path: parts(survival.load(path))),
}


def all_files() -> dict[str, File]:
    """Files of the core, and those that stand beside the tests of other distributions."""
    return FILES | {kind: file for module in beside("saved_kinds") for kind, file in module.FILES.items()}


def make_all(folder: Path, files: dict[str, File]) -> dict[str, Path]:
    """A file of each kind, each in a folder of its own."""
    made = {}
    for number, (kind, file) in enumerate(files.items()):
        own = folder / str(number)
        own.mkdir()
        if kind == "yzflow-runs-1":
            _store_entry(own / "runs" / "x")
        file.make(own / file.name)
        made[kind] = own / file.name
    return made


def places(node, path=()):
    """Every place of JSON."""
    yield path
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, part in inner:
        yield from places(part, (*path, name))


def changed(node, place, value):
    """JSON with another value at a place; without it, if the value is `...`."""
    if not place:
        return value
    node = json.loads(json.dumps(node))
    inner = node
    for name in place[:-1]:
        inner = inner[name]
    if value is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return node
