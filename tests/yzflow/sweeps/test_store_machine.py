"""A machine that does to a store and its sweeps whatever can be done."""

import itertools
import os
import shutil
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from driving import LONG
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import yzflow
from dynamics.support import archive, netcdf
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import load_sweep

# Configuration -> what the task does. It stands in an installed module, which no store looks into: the function is the
# same, and the world is another.
OUTCOMES = pytest.outcomes_of_a_sweep = {}
SETTINGS = ["u", "v", "w"]
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where flushing to disk costs nothing


def task(configuration, seed):
    outcome = pytest.outcomes_of_a_sweep[configuration["a"]]
    if isinstance(outcome, BaseException):
        raise outcome
    return {name: made.array(number(configuration["a"], seed)) for name, made in outcome.items()}


def number(setting, seed):
    """A sign in the results beside their outcome, so that runs are told apart."""
    return 20 * seed + 7 * SETTINGS.index(setting)


class Made:
    """A result, up to the number of its run."""

    def __init__(self, dims, labels, dtype, attributes, offset):
        self.dims, self.labels, self.dtype, self.attributes, self.offset = dims, labels, dtype, attributes, offset

    def __repr__(self):
        return f"Made({self.dims}, {self.labels}, {self.dtype}, {self.attributes}, {self.offset})"

    def values(self, number):
        shape = [len(labels) for labels in self.labels]
        return (np.arange(np.prod(shape, dtype=int)).reshape(shape) + self.offset + number).astype(self.dtype)

    def array(self, number):
        coordinates = {dim: own for dim, own in zip(self.dims, self.labels, strict=True) if not isinstance(own, range)}
        return xr.DataArray(self.values(number), coordinates, dims=self.dims, attrs=self.attributes)


# Few names, so that they meet; and, now and then, any text.
NAMES = (
    st.sampled_from(["y", "y", "y", "z"])
    | st.sampled_from(["x", "x_0", "é b", "failed", "run", "a"])
    | st.text(max_size=3)
)
DIMENSIONS = st.sampled_from(["x", "x", "t"]) | NAMES
LABELS = st.one_of(
    st.integers(0, 3).map(range),
    st.lists(st.integers(-2, 3) | st.sampled_from([2**53, 2**53 + 1, 2**63 - 1]), max_size=3, unique=True),
    st.lists(st.sampled_from([0.5, -0.0, 1.0, np.nan, np.inf]), max_size=3, unique=True),
    st.lists(st.sampled_from([0.0, 1, "1", "p", True]) | st.text(max_size=2), max_size=3),
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["long_name", "units", "CLASS"]) | st.text(max_size=3),
    st.sampled_from(["m", "", True, None, 2**70, 1.5, np.nan, "\0"]) | st.text(max_size=3),
    max_size=2,
)


@st.composite
def made(draw):
    dims = draw(st.lists(DIMENSIONS, max_size=2, unique=True))
    dtype = draw(st.sampled_from(["f8", "f8", "f4", "i8", "u1", "?"]))
    return Made(dims, [draw(LABELS) for _ in dims], dtype, draw(ATTRIBUTES), draw(st.integers(0, 9)))


ERRORS = st.builds(
    lambda kind, text: kind(text),
    st.sampled_from([ValueError, KeyError, SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError]),
    st.text(max_size=5) | st.sampled_from(["\0", "\ud800", "two\nlines"]),
)
POOLS = st.sampled_from([[0, 1, 2, 3], [0.5, -1.0, np.nan, np.inf], ["p", "q", "1", "\u00e9"], [2**53, 2**53 + 1, 2]])


@st.composite
def sound(draw):
    """Results as most tasks give them: some variables over some labelled dimensions."""
    labels = {dim: draw(POOLS.flatmap(st.permutations)) for dim in ("x", "t")}
    dims = st.sampled_from([("x",), ("x", "t"), ("t",), ()])
    over = draw(st.dictionaries(st.sampled_from(["y", "z"]), dims, min_size=1))
    dtypes = st.sampled_from(["f8", "f4", "i8"])
    return Sound(
        (name, Made(dims, [labels[dim] for dim in dims], draw(dtypes), {"units": "m"}, draw(st.integers(0, 9))))
        for name, dims in over.items()
    )


class Sound(dict):
    """Results that can be kept, whatever others are."""


ODD = st.dictionaries(NAMES, made(), min_size=1, max_size=3)
TWICE = st.sampled_from([[0, 1, 0], ["p", "p"]]).map(lambda labels: {"y": Made(["x"], [labels], "f8", {}, 0)})
RESULTS = st.sampled_from([ERRORS, ODD, TWICE, sound()]).flatmap(lambda kind: kind)


@st.composite
def rearranged(draw, outcome):
    """The same with labels in another order, and some left out."""
    if isinstance(outcome, BaseException):
        return outcome
    seen = {}
    for own in outcome.values():
        for dim, labels in zip(own.dims, own.labels, strict=True):
            if dim not in seen:
                order = draw(st.permutations(list(labels)))
                seen[dim] = labels if isinstance(labels, range) else order[draw(st.integers(0, 1)) :]
    return type(outcome)(
        (name, Made(own.dims, [seen[dim] for dim in own.dims], own.dtype, own.attributes, own.offset + 3))
        for name, own in outcome.items()
    )


def a_loop(path):
    path.unlink()
    path.symlink_to(path)


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def another(path):
    """Another run of the store under this name."""
    others = [other for other in sorted(path.parent.glob("?*.npz")) if other != path and other.is_file()]
    path.write_bytes(others[0].read_bytes() if others else b"")


def other_values(path):
    """A well-formed file with the seal of the one that was there."""
    content = path.read_bytes()
    header, arrays = archive.decode(content)
    for name in arrays:
        if not name.startswith("labels/"):
            arrays[name] = arrays[name] + arrays[name].dtype.type(1)
    path.write_bytes(archive.encode(header, arrays)[:-64] + content[-64:])


FAULTS = {
    "other values": other_values,
    "another": another,
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "short": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "flipped": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 4]) + path.read_bytes()[1:]),
    "loop": a_loop,
    "folder": a_folder,
    "pipe": a_pipe,
}


class Sweeps(RuleBasedStateMachine):
    @initialize(first=sound(), data=st.data())
    def start(self, first, data):
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        OUTCOMES.clear()
        OUTCOMES.update((setting, data.draw(rearranged(first))) for setting in SETTINGS)
        self.kept = {}  # (setting, seed) -> what the run in the store was made of
        self.fresh = itertools.count(3)  # seeds of which nothing is in the store

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def sweep(self, values, seeds):
        with ThreadPoolExecutor(1) as pool, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            options = {"store": self.folder / "store", "seeds": seeds, "executor": pool, "progress": False}
            return yzflow.sweep(task, {"a": values}, **options)

    @rule(setting=st.sampled_from(SETTINGS), outcome=RESULTS, then=sound())
    def change(self, setting, outcome, then):
        """Another result, beside those of the other settings; and one that works, in place of what failed."""
        seeds = [next(self.fresh)]
        for OUTCOMES[setting] in (outcome, then):
            self.run(SETTINGS, seeds)

    @rule(setting=st.sampled_from(SETTINGS), other=st.sampled_from(SETTINGS), data=st.data())
    def rearrange(self, setting, other, data):
        OUTCOMES[setting] = data.draw(rearranged(OUTCOMES[other]))

    @precondition(lambda self: self.kept)
    @rule(faults=st.permutations(sorted(FAULTS)))
    def damage(self, faults):
        """Every run in the store, each in another way, and all are run again."""
        store = Store(self.folder / "store")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            runs = {key: found[0] for key in store.keys() if (found := store.read(key))}  # noqa: SIM118
        for key, fault in zip(runs, itertools.cycle(faults), strict=False):
            FAULTS[fault](store.path / f"{key}.npz")
            self.kept.pop((runs[key]["configuration"]["a"], runs[key]["seed"]), None)
        self.run(SETTINGS, sorted({identity["seed"] for identity in runs.values()}))

    @rule(
        values=st.sampled_from([SETTINGS, SETTINGS[::-1], SETTINGS[:2], SETTINGS[2:]]),
        seeds=st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True),
    )
    def sweep_some(self, values, seeds):
        self.run(values, seeds)

    def run(self, values, seeds):
        """Results of a sweep, again and as a file, and of the store are those that the runs were made of."""
        found = self.sweep(values, seeds)
        for setting, seed in itertools.product(values, seeds):
            outcome = self.kept.get((setting, seed), OUTCOMES[setting])
            if self.agrees(found.sel(a=setting, seed=seed), outcome, number(setting, seed)):
                self.kept[setting, seed] = outcome
        xr.testing.assert_identical(self.sweep(values, seeds), found)  # the same call ends in the same
        path = self.folder / "out.nc"
        netcdf.save_dataset(found, path)
        xr.testing.assert_identical(load_sweep(path), found)
        store = Store(self.folder / "store")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of entries that were damaged since
            store.consolidate(path)
        whole = netcdf.load_dataset(path, "yzflow-runs-1", "runs")
        for place in range(whole.sizes["run"]):
            one = whole.isel(run=place)
            key = (one["a"].item(), one["seed"].item())
            self.agrees(one, self.kept.get(key, OUTCOMES[key[0]]), number(*key))
        assert {path.name for path in self.folder.iterdir()} == {"store", "out.nc"}

    @staticmethod
    def agrees(found, outcome, number):
        """Whether a run was stored; what it gave stands under its labels, or it is marked as failed."""
        error = found["error"].item()
        if found["failed"].item():
            assert error
            stored = error.endswith("; the run is in the store")
            assert stored or not isinstance(outcome, Sound)  # what failed once is tried again
            assert not isinstance(outcome, BaseException) or error.startswith(type(outcome).__name__)
            return stored
        assert not isinstance(outcome, BaseException) and found["error"].item() == ""
        for name, own in outcome.items():
            places = []
            for dim, labels in zip(own.dims, own.labels, strict=True):
                known = found[dim].values.tolist() if dim in found.coords else list(range(found.sizes[dim]))
                where = [[i for i, other in enumerate(known) if same(label, other)] for label in labels]
                assert all(len(one) == 1 for one in where), (dim, labels, known)
                places.append([i for [i] in where])
            values = found[name].transpose(*own.dims).values
            np.testing.assert_array_equal(values[np.ix_(*places)], own.values(number))
            assert np.isnan(values.astype(float)).sum() == values.size - own.values(number).size
        return True


def same(label, other):
    """Numbers by value; of a mixture that cannot be numbers, the text."""
    return label == other or (label != label and other != other) or str(label) == other


Sweeps.TestCase.settings = settings(
    max_examples=1000 if LONG else 5,
    stateful_step_count=8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestSweeps = Sweeps.TestCase
TestSweeps.pytestmark = pytest.mark.slow
