"""The store: every change of a file is noticed, nothing of others is touched, writing is all or nothing."""

import errno
import hashlib
import json
import os
import threading
import time
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dynamics.support import files
from yzflow.sweeps import runs, store
from yzflow.sweeps.runs import Result
from yzflow.sweeps.store import Store, StoreError


def identity(**changes):
    return {"schema": 1, "task": "t", "version": 1, "configuration": {"a": 1}, "seed": 0} | changes


def result():
    curve = np.array([0.1, -0.0, np.nan, np.inf])
    variables = {"curve": (("time",), curve, {"units": "nats"}), "n": ((), np.array(3, dtype=np.int32), {})}
    return Result(variables, {"time": (np.arange(4.0), {"units": "s"})}, attributes={"platform": "here"})


def assert_same(one, other):
    assert (one.error, one.traceback, one.attributes) == (other.error, other.traceback, other.attributes)
    assert list(one.variables) == list(other.variables) and list(one.coordinates) == list(other.coordinates)
    for name, (dims, array, attributes) in one.variables.items():
        assert (dims, array.dtype, array.shape, attributes) == (
            other.variables[name][0],
            other.variables[name][1].dtype,
            other.variables[name][1].shape,
            other.variables[name][2],
        )
        assert array.tobytes() == other.variables[name][1].tobytes()
    for dim, (labels, attributes) in one.coordinates.items():
        assert labels.tobytes() == other.coordinates[dim][0].tobytes() and attributes == other.coordinates[dim][1]


@pytest.fixture
def kept(tmp_path):
    made = Store(tmp_path / "store")
    made.write(identity(), result())
    return made


@pytest.fixture
def file(kept):
    [path] = kept.path.glob("*.npz")
    return path


def test_a_run_comes_back_as_it_was(kept):
    own, found = kept.read(runs.key(identity()))
    assert own == identity()
    assert_same(found, result())
    assert len(kept) == 1 and kept.keys() == [runs.key(identity())] and runs.key(identity()) in kept
    assert kept.read("0" * 64) is None


def test_an_error_comes_back(kept):
    failed = Result(error="ValueError: no", traceback="Traceback ..\n", attributes={"platform": "there"})
    kept.write(identity(seed=1), failed)
    assert_same(kept.read(runs.key(identity(seed=1)))[1], failed)


def test_numpy_opens_a_file_and_its_name_is_the_hash_of_its_identity(kept, file):
    with np.load(file) as opened:
        np.testing.assert_array_equal(opened["n"], 3)
        header = json.loads(opened["run.json"])
    assert header["identity"] == identity()
    # By hand: the canonical JSON of the identity, sorted and without spaces.
    text = b'{"configuration":{"a":1},"schema":1,"seed":0,"task":"t","version":1}'
    assert file.stem == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"task": "u"}, {"version": 2}, {"configuration": {"a": 1.5}}, {"configuration": {"b": 1}}]
)
def test_keys_tell_runs_apart(change):
    assert runs.key(identity(**change)) != runs.key(identity())


def test_the_same_run_gives_the_same_bytes(kept, file):
    before = file.read_bytes()
    time.sleep(0.01)
    kept.write(dict(reversed(identity().items())), result())
    assert file.read_bytes() == before


def test_every_truncated_file_and_every_addition_is_noticed():
    whole = store._encode(identity(), result())
    for content in [*(whole[:size] for size in range(len(whole))), whole + b"\0", b"\0" + whole, whole + whole]:
        with pytest.raises(ValueError, match="checksum"):
            store._decode(content)


@given(
    hnp.arrays(st.sampled_from(["f8", "f4", "i8", "u1", "?"]), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)),
    st.data(),
)
def test_any_array_comes_back_and_any_wrong_byte_is_noticed(array, data):
    whole = store._encode(identity(), Result({"x": (tuple("abc"[: array.ndim]), array, {})}))
    found = store._decode(whole)[1].variables["x"][1]
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    wrong = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
    with pytest.raises(ValueError, match="checksum"):
        store._decode(whole[:place] + bytes([wrong]) + whole[place + 1 :])


@pytest.mark.parametrize("damage", [lambda whole: whole[:-7], lambda whole: whole[:300] + b"x" + whole[301:], bytes])
def test_a_damaged_file_is_reported_and_set_aside(kept, file, damage):
    damaged = damage(file.read_bytes()) if damage is not bytes else b""
    file.write_bytes(damaged)
    with pytest.warns(UserWarning, match=rf"{file.name} is damaged .*set aside as {file.name}\.damaged"):
        assert kept.read(file.stem) is None
    assert not file.exists() and file.with_suffix(".npz.damaged").read_bytes() == damaged
    assert len(kept) == 0
    kept.write(identity(), result())
    assert_same(kept.read(file.stem)[1], result())


def test_a_file_under_the_name_of_another_run_is_damaged(kept, file):
    other = runs.key(identity(seed=1))
    file.rename(file.with_name(f"{other}.npz"))
    with pytest.warns(UserWarning, match="holds another run"):
        assert kept.read(other) is None


# Folders that are stores


def test_a_store_is_opened_again_and_made_in_a_new_or_empty_folder(kept, tmp_path):
    assert len(Store(kept.path)) == 1
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "new" / "below", str(tmp_path / "text")):
        assert len(Store(path)) == 0
    marker = json.loads((tmp_path / "text" / "yzflow-store.json").read_text())
    assert marker == {"project": "yzflow", "schema": 3}


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('{"project": "yzflow", "schema": 4}', "of yzflow, schema 4$"),
        ('{"project": "yzflow", "schema": 2}', "of yzflow, schema 2, whose runs do not say which code they were made"),
        ('{"project": "other", "schema": 1}', "of other, schema 1"),
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"project": "yzflow"}', "cannot be read"),
    ],
)
def test_a_store_of_others_is_refused_and_left_alone(tmp_path, marker, message):
    (tmp_path / "yzflow-store.json").write_text(marker)
    with pytest.raises(ValueError, match=rf"^`store` must be a store of yzflow.*but got {tmp_path}, .*{message}"):
        Store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["yzflow-store.json"]
    assert (tmp_path / "yzflow-store.json").read_text() == marker


@pytest.mark.parametrize("name", ["thesis.tex", ".git", "0" * 64 + ".npz"])
def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=r"`store` must be a store, or a new or empty folder, but got .* other files"):
        Store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_is_no_store(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(ValueError, match="`store` must be a folder that can be written, but got"):
        Store(path)
    assert path.read_text() == "mine"


def test_a_killed_process_leaves_temporary_files_that_go_after_an_hour(kept, file):
    old, new = (kept.path / f".{file.stem}-{part}.npz" for part in ("00", "11"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 3700,) * 2)
    assert Store(kept.path).keys() == [file.stem]
    assert not old.exists() and new.exists()


def test_half_a_marker_of_a_killed_process_is_no_hindrance(tmp_path):
    (tmp_path / ".yzflow-store-0123.json").write_text('{"proj')
    assert len(Store(tmp_path)) == 0


def test_many_threads_open_and_write_one_new_store(tmp_path):
    problems = []

    def use():
        try:
            own = Store(tmp_path / "store")
            for seed in range(20):
                own.write(identity(seed=seed), result())
                assert_same(own.read(runs.key(identity(seed=seed)))[1], result())
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(Store(tmp_path / "store")) == 20
    assert not list((tmp_path / "store").glob(".*"))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_no_trace(kept, monkeypatch, call):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, call, full)
    before = sorted(path.name for path in kept.path.iterdir())
    with pytest.raises(StoreError, match=r"^cannot write into the store .*No space left on device\. The 1 runs"):
        kept.write(identity(seed=1), result())
    monkeypatch.undo()
    assert sorted(path.name for path in kept.path.iterdir()) == before
    kept.write(identity(seed=1), result())
    assert len(kept) == 2


# Consolidation


def test_consolidation_holds_every_run_with_its_configuration(tmp_path):
    kept = Store(tmp_path / "store")
    for seed, size in ((0, 2), (1, 3)):
        value = np.arange(size) + 10.0 * seed
        kept.write(
            identity(seed=seed, configuration={"a": seed, "b": None if seed else "x"}),
            Result({"x": (("time",), value, {"units": "m"})}, {"time": (np.arange(size) * 2, {})}),
        )
    kept.write(identity(seed=2), Result(error="ValueError: no"))
    kept.write(identity(task="other"), Result({"y": ((), np.array(1.0), {})}))
    assert kept.tasks() == {"other": 1, "t": 3}
    kept.consolidate(tmp_path / "all.nc", task="t")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = xr.load_dataset(tmp_path / "all.nc").sortby("seed")
    np.testing.assert_array_equal(found["x"], [[0, 1, np.nan], [10, 11, 12], [np.nan] * 3])
    np.testing.assert_array_equal(found["time"], [0, 2, 4])
    assert found["x"].attrs["units"] == "m"
    np.testing.assert_array_equal(found["failed"], [False, False, True])
    assert list(found["error"].values) == ["", "", "ValueError: no"]
    assert list(found["b"].values) == ["x", "None", "None"] and list(found["a"].values) == [0, 1, 1]
    with pytest.raises(
        ValueError, match=r"`task` must name one of the tasks in the store \('other', 't'\), but got No"
    ):
        kept.dataset()
    with pytest.raises(ValueError, match=r"`task` must .* but got 'none'"):
        kept.dataset("none")
    assert kept.dataset("other")["y"].values.tolist() == [1.0]
