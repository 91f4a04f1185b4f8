"""Bad input and bad files: one clear error each, with the argument's name, the rule and the value."""

import os
import re
import stat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Bags, SequenceClasses, gradient_flow
from dynamics.support import checks, files
from dynamics.support.files import replacing


def refuses(name, value=None):
    """Expects the grammar of `dynamics.support.checks` for the argument ``name``, with ``value`` in the message."""
    shown = "" if value is None else ".*" + re.escape(str(value))
    return pytest.raises(ValueError, match=rf"(?s)^`{name}` must .*, but got {shown}")


CLASSES = SequenceClasses.single_common_token(3, 20)
# Of numpy's times the spans are integers to `isinstance`, and both become integers by `item`.
TIMES = [np.timedelta64(5), np.timedelta64(5, "ns"), np.datetime64(5, "ns")]


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize(
    "check",
    [
        lambda value: checks.real("a", value),
        lambda value: checks.integer("a", value, minimum=0),
        lambda value: checks.flag("a", value),
        lambda value: checks.generator("a", value),
        lambda value: checks.finite_array("a", value),
        lambda value: checks.integer_array("a", value),
        lambda value: checks.index_array("a", [value]),
    ],
)
def test_times_are_no_numbers(check, time):
    for value in (time, np.array(time)):
        with refuses("a"):
            check(value)


@pytest.mark.parametrize("time", TIMES)
def test_times_stay_what_they_are_in_plain_types(time):
    assert checks.plain_types(time) is time
    assert checks.plain_types(np.array([time])).dtype.kind in "mM"
    assert checks.plain_types(np.float32(0.5)) == 0.5 and checks.plain_types(np.arange(2)) == [0, 1]


@pytest.mark.parametrize("value", [10**5000, -(10**5000)], ids=["above", "below"])
def test_integers_that_python_does_not_write_are_refused_in_words(value):
    for check in (checks.real, checks.positive, checks.flag):
        with refuses("a"):
            check("a", value)
    with refuses("a", "an integer of thousands of digits"):
        checks.integer("a", value, minimum=0)


def test_t_end_lies_after_the_start():
    trajectory = gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=5.0, n_times=2)
    with refuses("t_end", "5.0"):
        gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=5.0, init=trajectory)
    with refuses("times", "4.0"):
        gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=6.0, times=[4.0, 6.0], init=trajectory)


@pytest.mark.slow
def test_theory_continues_only_with_an_h_for_each_bag():
    """Bags.concatenate([..]) of fewer classes fits the layer, but not the state of the theory flow."""
    trajectory = gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=1.0, n_times=2, decoder="theory")
    population = CLASSES.population()
    fewer = Bags(
        population.query[:2], population.target[:2], population.indptr[:3], population.token[:12], population.count[:12]
    )
    with refuses("init", "3"):
        gradient_flow(fewer, eta_y=1.0, eta_z=1.0, t_end=2.0, decoder="theory", init=trajectory)


BAG = {"query": [0, 1], "target": [0, 1], "indptr": [0, 2, 3], "token": [0, 2, 1], "count": [1.0, 2.0, 1.0]}


# The checks themselves


@given(st.integers(-5, 5), st.integers(-5, 5))
def test_integer_keeps_its_minimum(value, minimum):
    if value < minimum:
        with refuses("n", value):
            checks.integer("n", value, minimum=minimum)
    else:
        assert checks.integer("n", np.int32(value), minimum=minimum) == value


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-10, 10))
def test_real_keeps_finite_numbers(value):
    for number in (value, np.float64(value), np.array(value)):
        assert checks.real("x", number) == value
    if value < 0:
        with refuses("x", value):
            checks.non_negative("x", value)
    else:
        assert checks.non_negative("x", value) == value


def test_checks_copy():
    array = np.zeros(3)
    assert not np.shares_memory(checks.finite_array("x", array), array)
    index = np.arange(3)
    assert not np.shares_memory(checks.index_array("x", index), index)


# Files


def test_load_names_a_missing_file_of_bags(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        Bags.load(tmp_path / "nothing.npz")


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "bags.npz"
    Bags(**BAG).save(path)
    return path


@pytest.mark.parametrize("content", [b"", b"query,target\n0,1\n", bytes(range(256)), b"PK\x03\x04 not a zip"])
def test_load_refuses_what_are_no_bags(content, saved):
    saved.write_bytes(content)
    with pytest.raises(ValueError, match=r"^`path` must be a file of bags written by yzflow, .*bags\.npz"):
        Bags.load(saved)


def test_load_refuses_other_arrays(saved):
    np.savez(saved, query=[0])
    with refuses("path", "bags.npz"):
        Bags.load(saved)
    with open(saved, "wb") as file:
        np.save(file, np.zeros(3))
    with refuses("path", "bags.npz"):
        Bags.load(saved)


@pytest.mark.parametrize("existing", [None, "precious"])
def test_replacing_leaves_no_trace_of_a_failure(tmp_path, existing):
    path = tmp_path / "result.txt"
    if existing:
        path.write_text(existing)
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".txt"
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert [entry.name for entry in tmp_path.iterdir()] == (["result.txt"] if existing else [])
    if existing:
        assert path.read_text() == existing


def test_replacing_replaces_with_the_permissions_of_a_new_file(tmp_path):
    path, other = tmp_path / "result.txt", tmp_path / "other.txt"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    other.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(os.stat(path).st_mode) == stat.S_IMODE(os.stat(other).st_mode)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(("path", "inside"), [(".", ""), ("./", ""), ("..", ".."), ("sub/", "sub"), ("a/../b", "b")])
def test_the_folder_that_one_is_in_is_a_folder(tmp_path, monkeypatch, path, inside):
    monkeypatch.chdir(tmp_path)
    assert files.absolute("store", path, folder=True) == (tmp_path / inside).resolve()
    for bad in (None, 3, "", "a\0b", b"sub"):
        with pytest.raises(ValueError, match=r"`store` must be the path of a folder, but got "):
            files.absolute("store", bad, folder=True)
