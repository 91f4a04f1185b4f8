"""Labels say where values go; what one run gives that nothing can hold is that run's failure and no other's."""

import itertools
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr

import yzflow
from dynamics import Limits, SequenceClasses, sgd
from dynamics.support.netcdf import save_dataset
from yzflow.sweeps import cache
from yzflow.sweeps import sweep as sweeps
from yzflow.sweeps.collect import Collector
from yzflow.sweeps.runs import Labelled, Result, Task, run
from yzflow.sweeps.store import Store

GIVEN = {}  # what `gives` returns or raises for a = 0, 1, ..


def gives(configuration, seed):
    outcome = GIVEN[configuration["a"]]
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome() if callable(outcome) else outcome


def swept(store, outcomes, name="a"):
    GIVEN.clear()
    GIVEN.update(enumerate(outcomes))
    with ThreadPoolExecutor(1) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return yzflow.sweep(gives, {"a": list(GIVEN)}, store=store, executor=pool, progress=False)


def curve(labels, values, dim="x", **attributes):
    return xr.DataArray(values, {dim: list(labels)}, dims=dim, attrs=attributes)


@pytest.mark.parametrize("labels", [[3, 1, 2], ["c", "a", "b"], [0.5, np.nan, -1.0], [True, False]])
def test_values_stand_under_their_labels_in_whatever_order_runs_have_them(tmp_path, labels):
    """Orders that differ, of the same size: by position, all but one run would be wrong."""
    orders = list(itertools.permutations(range(len(labels))))
    found = swept(tmp_path, [{"y": curve([labels[i] for i in order], [10.0 * i for i in order])} for order in orders])
    assert not found["failed"].any() and found.sizes["x"] == len(labels)
    for i, label in enumerate(labels):
        own = found["x"].isnull() if label != label else found["x"] == label
        np.testing.assert_array_equal(found["y"].where(own, drop=True), 10.0 * i)


def test_a_labelled_array_is_kept_as_one_of_xarray(tmp_path):
    plain = Labelled(np.array([1.0, 2]), ("x",), {"units": "nats"}, {"x": Labelled(np.array([7, 8]), ("x",), {"a": 1})})
    same = xr.DataArray([1.0, 2], {"x": ("x", [7, 8], {"a": 1})}, attrs={"units": "nats"})
    number = Labelled(3.0, attrs={"units": "1"}), xr.DataArray(3.0, attrs={"units": "1"})
    kept = [swept(tmp_path / str(i), [{"y": y, "n": number[i]}] * 2) for i, y in enumerate((plain, same))]
    for runs in kept:
        del runs.attrs["content"]  # of what the task reads, which is of another class
    xr.testing.assert_identical(*kept)
    assert kept[0]["x"].attrs == {"a": 1} and kept[0]["y"].attrs == {"units": "nats"}


def test_one_order_that_all_runs_share_stays(tmp_path):
    found = swept(tmp_path, [{"y": curve([3, 1, 2], [0.0, 1, 2])}] * 2)
    assert found["x"].values.tolist() == [3, 1, 2] and found["y"].values.tolist() == [[[0, 1, 2]]] * 1 + [[[0, 1, 2]]]


def test_integers_that_a_common_type_would_round_are_told_apart():
    large = [2**53, 2**53 + 1]
    results = [
        Result({"y": (("x",), np.array([1.0, 2.0]), {})}, {"x": (np.array(large), {})}),
        Result({"y": (("x",), np.array([3.0]), {})}, {"x": (np.array([0.5]), {})}),
    ]
    collector = Collector(2)
    for cell, result in enumerate(results):
        collector.add(cell, result)
    variables, coordinates = collector.variables()
    found = dict(zip(coordinates["x"][0].tolist(), variables["y"][1].T.tolist(), strict=True))
    assert [found[str(label)][0] for label in large] == [1.0, 2.0] and found["0.5"][1] == 3.0


def test_integers_beside_fractions_keep_their_labels(tmp_path):
    values = [2**60, 2**60 + 1, 0.5]
    GIVEN.update((value, {"y": 1.0}) for value in values)
    with ThreadPoolExecutor(1) as pool:
        found = yzflow.sweep(gives, {"a": values}, store=tmp_path, executor=pool, progress=False)
    assert found["a"].values.tolist() == [str(value) for value in values]


class Untellable(Exception):
    def __str__(self):
        raise RuntimeError("no")


class Base(BaseException):
    pass


ODD = {
    "error with NUL": ValueError("a\0b"),
    "error with half a character": ValueError("a\ud800b"),
    "error of a mebibyte": ValueError("x" * 2**20),
    "error that cannot be told": Untellable(),
    "no Exception": Base("b"),
    "end of a generator": GeneratorExit(),
    "Ctrl-C of its own": KeyboardInterrupt(),
    "exit": SystemExit(3),
    "name with NUL": {"y\0": 1.0},
    "name with a slash": {"y/x": 1.0},
    "name with half a character": {"\ud800": 1.0},
    "dot": {".": 1.0},
    "prefix": {"_nc4_non_coord_y": 1.0},
    "several indices": {"y": xr.DataArray(np.arange(4.0), dims="x", coords={"x": [0, 0, 1, 1]})},
    "labels of two levels": lambda: {
        "y": xr.DataArray(np.ones((2, 2)), {"p": [0, 1], "q": [0, 1]}).stack(x=("p", "q"))
    },
    "labels that are equal as words": {"y": xr.DataArray([1.0, 2.0], {"x": np.array(["1", 1], object)}, dims="x")},
    "labels with NUL": {"y": curve(["a\0b", "c"], [1.0, 2.0])},
    "labels that end in NUL": {"y": xr.DataArray([1.0, 2.0], {"x": np.array(["a\0", "a"], object)}, dims="x")},
    "variable named like its dimension": lambda: {"x": xr.DataArray(np.ones((2, 2)), dims=("x", "z"))},
    "variable named like another's": {"x": 1.0, "y": xr.DataArray([1.0], dims="x")},
    "variable named like an array's": {"y": [1.0], "y_0": 2.0},
    "dimension named like the key": {"y": xr.DataArray([1.0], dims="a")},
    "dimension with a slash": {"y": xr.DataArray([1.0], dims="p/q")},
    "dimension that is no word": {"y": xr.DataArray([1.0], dims=[3])},
    "dimension run": {"y": xr.DataArray([1.0], dims="run")},
    "two sizes": {"y": xr.DataArray([1.0], dims="x"), "z": xr.DataArray([1.0, 2.0], dims="x")},
    "labels of one and size of another": {"y": curve([1, 2], [1.0, 2]), "z": xr.DataArray([1.0] * 3, dims="x")},
    "masked": {"y": np.ma.masked_array([1.0, 2.0], [True, False])},
    "attribute of HDF5": {"y": curve([1], [1.0], CLASS="x")},
    "attribute that changes values": {"y": curve([1], [1.0], scale_factor=2.0)},
}


def test_odd_runs_fail_alone(tmp_path):
    """Each by itself, not beside others; the rest is there, the call ends so again, and file, store and sweep agree."""
    plain = {"y": xr.DataArray(7.0, attrs={"units": "m"})}
    outcomes = [plain, *ODD.values(), plain]
    found = swept(tmp_path / "store", outcomes)
    first, *failed, last = found["failed"].values.ravel().tolist()
    assert not (first or last) and [name for name, fell in zip(ODD, failed, strict=True) if not fell] == []
    errors = found["error"].values[1:-1, 0].tolist()
    assert all(len(error) in range(3, 1100) and not error.endswith("in the store") for error in errors), errors
    assert found["y"].values.ravel().tolist() == pytest.approx([7, *[np.nan] * len(ODD), 7], nan_ok=True)
    save_dataset(found, tmp_path / "out.nc")
    xr.testing.assert_identical(sweeps.load_sweep(tmp_path / "out.nc"), found)
    xr.testing.assert_identical(swept(tmp_path / "store", outcomes), found)
    Store(tmp_path / "store").consolidate(tmp_path / "all.nc")


def test_a_key_that_is_the_dimension_of_an_array_fails_its_runs(tmp_path):
    GIVEN[1] = {"v": [1.0, 2.0]}
    task = Task("t", lambda configuration, seed: {"v": [1.0, 2.0]})
    assert run(task, {"v_0": 1}, 0).error.startswith("ValueError: dimensions of `v` must be different words")


def test_attributes_become_what_a_file_can_hold(tmp_path):
    given = {"flag": True, "large": 2**70, "text": "a\0b\ud800", "number": np.int64(3), "none": None, "list": [1, 2]}
    found = swept(tmp_path / "store", [{"y": curve([1], [1.0], **given)}])
    save_dataset(found, tmp_path / "out.nc")
    attributes = sweeps.load_sweep(tmp_path / "out.nc")["y"].attrs
    assert attributes == {
        "flag": "True", "large": str(2**70), "text": "a\\0b\\ud800", "number": 3, "none": "None", "list": "[1, 2]",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "others",
    [
        {"y": [1.0, 2.0]},  # another dimension
        {"y": curve(["a", "b"], [1.0, 2.0])},  # words among numbers
        {"y": xr.DataArray([1.0, 2.0], dims="x")},  # no labels where others have some
        {"x": 1.0},  # a result that is a dimension of others
        {"z": xr.DataArray([1.0], dims="y")},  # a dimension that is a result of others
    ],
)
def test_runs_that_do_not_fit_to_the_more_frequent_are_marked(tmp_path, others):
    found = swept(tmp_path / "store", [others, *[{"y": curve([0.5, 1.5], [1.0, 2.0])}] * 2])
    assert found["failed"].values.ravel().tolist() == [True, False, False]
    assert found["error"].values[0, 0].endswith("; the run is in the store")
    np.testing.assert_array_equal(found["y"].isel(a=1), [[1.0, 2.0]])
    assert "z" not in found and len(Store(tmp_path / "store")) == 3
    save_dataset(found, tmp_path / "out.nc")
    xr.testing.assert_identical(sweeps.load_sweep(tmp_path / "out.nc"), found)
    whole = Store(tmp_path / "store").dataset().sortby("a")
    np.testing.assert_array_equal(whole["failed"], found["failed"].values.ravel())


def test_settings_of_some_runs_and_results_of_others_of_one_name(tmp_path):
    store = Store(tmp_path / "store")
    base = {"schema": 2, "task": "t", "version": 1, "seed": 0}
    store.write(base | {"configuration": {"p": 1}}, Result({"q": ((), np.array(1.0), {})}))
    store.write(base | {"configuration": {"q": 2}}, Result({"y": ((), np.array(2.0), {})}))
    found = store.dataset().sortby("p")
    assert sorted(found["failed"].values.tolist()) == [False, True] and np.nansum(found["y"]) == 2.0
    assert found["error"].values[found["failed"].values].item().startswith("ValueError: `q` must not be the name of")


@pytest.mark.parametrize(
    ("grid", "seeds", "message"),
    [
        ({"a": [1]}, 10**10, "`seeds` must be at most 1000, a file of the store each, but got 10000000000"),
        ({"a": [1]}, range(10**10), "`seeds` must be at most 1000 values, but got more"),
        ({"a": itertools.count()}, 1, "`grid['a']` must be at most 1000 values, but got more"),
        ({"a": range(99), "b": range(99)}, 2, "`grid` must make at most 1000 runs with `seeds`, a file of the"),
    ],
)
def test_runs_are_counted_before_memory_is_taken(tmp_path, grid, seeds, message):
    with Limits(runs=1000), pytest.raises(ValueError) as caught:  # the test need not take 10 million values
        yzflow.sweep(gives, grid, store=tmp_path / "store", seeds=seeds)
    assert str(caught.value).startswith(message) and not (tmp_path / "store").exists()


def test_what_a_task_may_be(tmp_path, monkeypatch):
    (tmp_path / "odd_module.py").write_text("f = 'odd_module:f'\nn = 3\n")
    (tmp_path / "odd_broken.py").write_text("1 / 0\n")
    (tmp_path / "odd_exit.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "odd_syntax.py").write_text("def\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = [
        ".x:y",
        ":",
        ":f",
        "odd_module:",
        "odd_module:f",
        "odd_module:n",
        "odd_broken:f",
        "odd_exit:f",
        "odd_syntax:f",
    ]
    for name in [*names, "a\0:b", "..:f"]:
        with pytest.raises(ValueError, match=r"^`task` must name a function as 'module:function', but got ") as caught:
            yzflow.sweep(name, {"a": [1]}, store=tmp_path / "store")
        assert "\n" not in str(caught.value)
    monkeypatch.setattr(gives, "version", 1.5, raising=False)
    with pytest.raises(ValueError, match=r"`task` must have an integer or a word as its .*, but got 1\.5"):
        yzflow.sweep(gives, {"a": [1]}, store=tmp_path / "store")
    assert not (tmp_path / "store").exists() and "odd_broken" not in sys.modules


def test_a_kept_trajectory_has_the_names_of_its_own_data(tmp_path):
    """Data with other names has the same numbers, and is not the same data."""

    def made(**options):
        data = SequenceClasses([[0.5, 0.5, 0], [0.5, 0, 0.5]], [0, 0], **options)
        return cache.trajectory(sgd, data, store=tmp_path, eta_y=1.0, eta_z=1.0, steps=2, batch_size=4, length=4)

    words = ["the", "a longer word", ""]
    for _ in range(2):  # simulated, and from the store
        bare, named = made(), made(token_names=words, class_names=["cat", "dog"])
        assert bare.names("token") is None
        assert named.names("token") == words and named.names("next_token") == ["cat", "dog"]
        assert named.dataset.drop_vars(["token_name", "next_token_name", "query_name"]).equals(bare.dataset)
        assert made(token_names=["x", "y", "z"]).names("token") == ["x", "y", "z"]
