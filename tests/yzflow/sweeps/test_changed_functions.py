"""A function that was changed is not answered with old numbers, and workers run the very function or none."""

import importlib
import multiprocessing
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import yzflow as yz
from yzflow.sweeps import runs
from yzflow.sweeps.store import Store

MODULE = """
import numpy as np
from dynamics import Field
RATE = 0.5

def helper(x):
    return RATE * x

def walk(configuration, seed):
    return {"end": helper(configuration["a"]) + seed}
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two sources of one size within a second

    def load(before="", after="", source=MODULE):
        (tmp_path / "changed_tasks.py").write_text(source.replace(before, after) if before else source)
        sys.modules.pop("changed_tasks", None)
        importlib.invalidate_caches()
        return importlib.import_module("changed_tasks")

    monkeypatch.setattr(runs, "_moved", {})
    yield load
    sys.modules.pop("changed_tasks", None)


def swept(function, values=(1.0,), **more):
    more.setdefault("executor", ThreadPoolExecutor(1))
    runs = yz.sweep(function, {"a": list(values)}, store="store", progress=False, **more)
    return runs["end"].values.ravel().tolist()


def quiet(function, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return swept(function, **more)


@pytest.mark.parametrize(
    ("before", "after", "value", "told"),
    [
        ("RATE = 0.5", "RATE = 0.7", 0.7, r"RATE: 0\.5 then, 0\.7 now"),
        ("RATE * x", "RATE + x", 1.5, "helper: [0-9a-f]{16} then, [0-9a-f]{16} now"),
        ("helper(configuration", "2 * helper(configuration", 1.0, "walk: "),
    ],
)
def test_an_edited_function_is_run_anew_and_says_what_changed(mine, before, after, value, told):
    assert quiet(mine().walk) == quiet(mine().walk) == [0.5]
    with pytest.warns(UserWarning, match=rf"changed_tasks:walk has changed since runs of it in store: {told}"):
        assert swept(mine(before, after).walk) == [value]
    assert quiet(mine(before, after).walk) == [value]
    # The earlier runs answer again, without a word: it is the same question.
    assert quiet(mine().walk) == [0.5] and len(Store("store")) == 2


def test_a_value_that_is_set_at_run_time_counts(mine):
    module = mine()
    assert swept(module.walk) == [0.5]
    module.RATE = 2.0
    with pytest.warns(UserWarning, match=r"RATE: 0\.5 then, 2\.0 now"):
        assert swept(module.walk) == [2.0]


def test_a_store_with_two_functions_tells_their_runs_apart(mine):
    swept(mine().walk)
    assert "code_sha256" not in Store("store").dataset().coords
    with pytest.warns(UserWarning, match="has changed"):
        swept(mine("RATE = 0.5", "RATE = 0.7").walk)
    both = Store("store").dataset()
    assert sorted(both["end"].values.tolist()) == [0.5, 0.7] and len(set(both["code_sha256"].values.tolist())) == 2


@pytest.mark.slow
def test_workers_run_the_very_function_or_none(mine):
    module = mine()
    module.RATE = 2.0  # workers import the module as it stands on disk
    rule = r"`task` must be the same in the worker processes.* changed_tasks:walk \(RATE: 2\.0 here, 0\.5 there\)"
    with pytest.raises(ValueError, match=rule):
        swept(module.walk, executor=None)
    assert len(Store("store")) == 0
    spawned = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    with spawned, pytest.raises(ValueError, match=rule):
        swept(module.walk, executor=spawned)
    module.RATE = 0.5
    assert quiet(module.walk, executor=None) == [0.5]  # what no worker ran is not remembered


def test_what_a_worker_has_compared_it_does_not_compare_for_another(mine, monkeypatch):
    monkeypatch.setattr(runs, "_compared", set())
    module = mine()
    task = runs.Task("t", module.walk)
    here = runs.Here(task, parts=task.content().parts)
    runs.check_same(here)
    module.RATE = 3.0
    runs.check_same(here)  # compared before
    other = runs.Here(task, parts=task.content().parts | {"RATE": "4.0"})
    with pytest.raises(runs.OtherCodeError, match=r"RATE: 4\.0 here, 3\.0 there"):
        runs.check_same(other)


def test_values_that_are_equal_are_one_value(mine):
    module = mine()
    assert quiet(module.walk, values=(1,)) == [0.5]
    code = {"content": "0" * 64}
    base = {"schema": runs.SCHEMA, "task": "t", "version": 1, "seed": 0}
    keys = {runs.key(base | {"configuration": {"a": value, "b": [value]}}) for value in (1, 1.0, True)}
    assert len(keys) == 1
    assert runs.key(base | {"configuration": {"a": 1.5}}) not in keys
    assert runs.key(base | {"configuration": {"a": 1}}) != runs.key(base | {"configuration": {"a": "1"}})
    assert runs.key(base | {"configuration": {"a": 0}}) != runs.key(base | {"configuration": {"a": None}})
    assert runs.key(base | {"configuration": {"a": 1}}) != runs.key(base | {"configuration": {"a": 1}} | code)


def test_a_field_that_a_function_names_is_a_part_of_it(mine):
    def direction(layer, bags):
        slope = layer.gradient(bags)
        return {"Z": scale * slope.Z, "Y": slope.Y}

    scale = 1.0

    def task(configuration, seed):
        return {"end": len("a field of mine")}

    named = runs.Task("t", task)
    before = named.content().parts
    yz.register_field(yz.Field("a field of mine", direction))
    after = named.content().parts
    assert set(after) > set(before)
    scale = 2.0
    assert named.content().parts != after
    unnamed = runs.Task("u", mine().walk)
    assert not any("a field of mine" in name for name in unnamed.content().parts)
    assert any("a field of mine" in name for name in unnamed.content({"a field of mine"}).parts)


def test_what_cannot_be_told_is_said(mine):
    module = mine("return RATE * x", "return RATE * x + 0 * len(OPENED.name)")
    module.OPENED = open("log.txt", "w")  # noqa: SIM115
    try:
        with pytest.warns(
            UserWarning, match=r"changed_tasks:walk reads OPENED: their content cannot be told, so raise"
        ):
            assert swept(module.walk) == [0.5]
    finally:
        module.OPENED.close()


MEMORY = """
MEMO = {}

def walk(configuration, seed):
    for number in range(200):
        MEMO[configuration["a"], seed, number] = number
    return {"end": 1.0 * len(MEMO) - len(MEMO)}
"""


def test_a_memory_that_a_task_fills_makes_no_other_task(mine):
    """Threads fill it while others run; the next sweep of this process asks the same question."""
    module = mine(source=MEMORY)
    values, several = [float(i) for i in range(12)], ThreadPoolExecutor(4)
    assert quiet(module.walk, values=values, executor=several) == [0.0] * 12
    assert module.MEMO
    assert quiet(module.walk, values=values, executor=several) == [0.0] * 12 and len(Store("store")) == 12
    module.MEMO = {"another": 1}
    with pytest.warns(UserWarning, match=r"changed_tasks:walk has changed since runs of it in store: MEMO: "):
        swept(module.walk, values=values)


def test_the_last_function_is_the_one_that_is_compared(mine):
    swept(mine().walk)
    with pytest.warns(UserWarning, match="has changed"):
        swept(mine("RATE = 0.5", "RATE = 0.7").walk)
    quiet(mine().walk, values=(2.0,))  # the first again
    with pytest.warns(UserWarning, match=r"RATE: 0\.5 then, 0\.9 now"):
        swept(mine("RATE = 0.5", "RATE = 0.9").walk)


EDITS = {
    "the function": ("+ seed", "- seed", True),
    "a helper": ("return RATE * x", "return RATE / x", True),
    "a comment": ("RATE = 0.5", "RATE = 0.5  # half", False),
    "another function": ("def helper", "def other():\n    return 1\n\ndef helper", False),
}


@pytest.mark.parametrize(("before", "after", "told"), EDITS.values(), ids=EDITS)
def test_a_module_that_was_written_anew_and_not_reloaded_is_told(mine, tmp_path, before, after, told):
    """As by a notebook's `%%writefile`: all runs are in the store, and no worker compares."""
    walk = mine().walk
    assert quiet(walk) == [0.5]
    (tmp_path / "changed_tasks.py").write_text(MODULE.replace(before, after))
    if not told:
        assert quiet(walk) == [0.5]
        return
    with pytest.warns(
        UserWarning, match=r"changed_tasks:walk runs as it was imported, and .*changed_tasks.py was edit"
    ):
        assert swept(walk) == [0.5]
    reloaded = importlib.reload(sys.modules["changed_tasks"])
    with pytest.warns(UserWarning, match="has changed since runs of it"):
        swept(reloaded.walk)
    assert quiet(reloaded.walk) == swept(reloaded.walk)


def test_a_module_that_is_gone_or_broken_is_no_edit(mine, tmp_path):
    walk = mine().walk
    for source in ("def walk(:", None):
        path = tmp_path / "changed_tasks.py"
        path.unlink() if source is None else path.write_text(source)
        assert quiet(walk) == [0.5]
