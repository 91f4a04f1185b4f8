"""The content of a function: equal where it does the same, and another where anything that it reads has changed."""

import functools
import importlib
import json
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from driving import ROOT
from hypothesis import given
from hypothesis import strategies as st

from dynamics.support import content
from dynamics.support.content import changes, content_of, unseen

HELPERS = """
import numpy as np
SCALE = 2.0
TABLE = {"a": [1, 2], "b": np.arange(3)}

def doubled(x):
    return SCALE * x

class Rule:
    factor = 3
    def __call__(self, x):
        return doubled(x) * self.factor
"""

MINE = """
import functools
import lib_helpers
from lib_helpers import Rule, doubled
RATE = 0.5
UNREAD = 1
WORDS = frozenset({"alpha", "beta", "gamma", "delta"})

def lower(x):
    return RATE * x

def made(weight):
    def inner(x, power=2):
        return weight * lower(x) ** power
    return inner

def walk(configuration, seed):
    'A walk.'
    if configuration.get("kind") in {"alpha", "beta", "gamma"}:
        return lower(1.0) + lib_helpers.TABLE["a"][0]
    return doubled(seed) + Rule()(seed) + len(WORDS)

inner = made(3.0)

@functools.lru_cache
def cached(x):
    return lower(x)
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Modules of somebody's, as they stand in two files; called with texts to replace, they are imported anew."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two sources of one size within a second

    def load(**replaced):
        texts = {"lib_helpers": HELPERS, "lib_mine": MINE}
        for name, pairs in replaced.items():
            for before, after in pairs:
                assert texts[name].count(before) == 1
                texts[name] = texts[name].replace(before, after)
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("lib_mine")

    yield load
    for name in ("lib_helpers", "lib_mine"):
        sys.modules.pop(name, None)


def test_the_same_source_has_the_same_content(mine):
    assert content_of(mine().walk) == content_of(mine().walk)
    moved = mine(lib_mine=[("def lower(x):", "# a remark\n\n\ndef lower(x):"), ("'A walk.'", "'Another text.'")])
    assert content_of(moved.walk) == content_of(mine().walk)
    other = mine(lib_mine=[("UNREAD = 1", "UNREAD = 2")])
    assert content_of(other.walk) == content_of(mine().walk)


@pytest.mark.parametrize(
    ("module", "before", "after", "part"),
    [
        ("lib_mine", "RATE = 0.5", "RATE = 0.7", "RATE"),
        ("lib_mine", "RATE * x", "RATE + x", "lower"),
        ("lib_mine", "lower(1.0) +", "lower(1.0) -", "walk"),
        ("lib_mine", '"delta"}', '"eta"}', "WORDS"),
        ("lib_helpers", "SCALE = 2.0", "SCALE = 2", "lib_helpers:SCALE"),
        ("lib_helpers", "SCALE * x", "SCALE * x + 0.0", "lib_helpers:doubled"),
        ("lib_helpers", "[1, 2]", "[2, 2]", "lib_helpers:TABLE"),
        ("lib_helpers", "np.arange(3)", "np.arange(3) + 1", "lib_helpers:TABLE"),
        ("lib_helpers", "factor = 3", "factor = 4", "lib_helpers:Rule.factor"),
        ("lib_helpers", "* self.factor", "/ self.factor", "lib_helpers:Rule.__call__"),
    ],
)
def test_what_changed_is_named(mine, module, before, after, part):
    then = content_of(mine().walk)
    now = content_of(mine(**{module: [(before, after)]}).walk)
    assert list(changes(then, now)) == [part]


def test_values_are_those_of_now_and_not_of_the_file(mine):
    module = mine()
    then = content_of(module.walk)
    module.RATE = 0.25
    assert changes(then, content_of(module.walk)) == {"RATE": ("0.5", "0.25")}
    module.lib_helpers.SCALE = 1.5
    assert set(changes(then, content_of(module.walk))) == {"RATE", "lib_helpers:SCALE"}


def test_closures_defaults_and_wrappers_are_read(mine):
    module = mine()
    assert changes(content_of(module.made(3.0)), content_of(module.inner)) == {}
    [name] = changes(content_of(module.made(3.0)), content_of(module.made(3.5)))
    assert name.endswith("inner.weight")
    power = mine(lib_mine=[("power=2", "power=3")])
    assert [*changes(content_of(module.inner), content_of(power.inner))] == ["default made.<locals>.inner.power"]
    assert content_of(module.cached)["RATE"] == content_of(functools.partial(module.lower, 1.0))["RATE"] == "0.5"
    assert content_of(functools.partial(module.lower, 1.0)) != content_of(functools.partial(module.lower, 2.0))


def test_the_walk_ends_at_what_is_installed_and_at_itself():
    def loop(x):
        return loop(x) if x else np.linalg.norm(x)

    parts = content_of(loop)
    assert not any("numpy" in name for name in parts)
    assert parts == content_of(loop)


LOCK, STREAM = threading.Lock(), sys.stderr


def test_what_cannot_be_told_is_named():
    def writes(x):
        with LOCK:
            STREAM.write(str(x))

    def reads(x):
        with LOCK:
            return x

    assert unseen(writes) == ["STREAM"] and unseen(reads) == []


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=80)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(plain, plain)
def test_two_values_have_one_content_only_if_they_are_the_same(first, second):
    def of(value):
        return content_of(lambda: value)

    assert of(first) == of(first)
    assert (of(first) == of(second)) == (repr(first) == repr(second))


@given(st.lists(st.integers(0, 255), min_size=1, max_size=20), st.sampled_from(["u1", "i2", "f4", "f8"]))
def test_arrays_are_told_by_every_number_and_their_type(numbers, dtype):
    array = np.array(numbers, dtype=dtype)
    changed = array.copy()
    changed[-1] = (changed[-1] + 1) % 200
    same = content_of(lambda: array) == content_of(lambda: changed)
    assert same == np.array_equal(array, changed)


def test_other_processes_see_the_same_content(mine, tmp_path):
    """Sets of words have another order in each process: their hashes are seeded anew."""
    module = mine()
    program = textwrap.dedent(f"""
        import json, sys
        sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]
        import lib_mine
        from dynamics.support.content import content_of
        print(json.dumps(content_of(lib_mine.walk)))
    """)
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert content_of(module.walk) == json.loads(done.stdout)


def test_a_script_is_called_by_its_file_wherever_it_runs(tmp_path):
    program = "from dynamics.support.content import module_of\ndef f(): pass\nprint(module_of(f))\n"
    (tmp_path / "a_script.py").write_text(program)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "a_script.py")],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    assert done.stdout.strip() == "a_script"
    assert content.module_of(functools.partial(test_what_changed_is_named)) == __name__
