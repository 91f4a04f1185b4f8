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
from dynamics.support.content import changes


def content_of(*functions):
    return content.content_of(*functions).parts


def unseen(*functions):
    return list(content.content_of(*functions).unseen)


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
    changed[-1] = (int(changed[-1]) + 1) % 200
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
        print(json.dumps(content_of(lib_mine.walk).parts))
    """)
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


# Each: the source of a module, whose function `walk` reads what a second source, which differs in one place, changes.
EDITED = {
    "an object with a function": (
        "class Scaled:\n    def __init__(s, func, k): s.func, s.k = func, k\n"
        "    def __call__(s, x): return s.k * s.func(x)\n"
        "S = Scaled(abs, 0.5)\ndef walk(c, s): return S(1)",
        "abs, 0.5",
    ),
    "a partial method": (
        "from functools import partialmethod\nclass A:\n    def f(self, k): return k\n    g = partialmethod(f, 0.5)\n"
        "def walk(c, s): return A().g()",
        "f, 0.5",
    ),
    "a method of a named tuple": (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    a: int = 1\n    def f(self): return 0.5\n"
        "P1 = P()\ndef walk(c, s): return P1.f()",
        "return 0.5",
    ),
    "a subclass of dict": (
        "class D(dict):\n    def __missing__(self, key): return 0.5\nD1 = D()\ndef walk(c, s): return D1[1]",
        "return 0.5",
    ),
    "a default": (
        "from collections import defaultdict\nD = defaultdict(lambda: 0.5)\ndef walk(c, s): return D[1]",
        "lambda: 0.5",
    ),
    "an enumeration": (
        "from enum import IntEnum\nclass E(IntEnum):\n    A = 1\n    def f(self): return 0.5\nX = E.A\n"
        "def walk(c, s): return X.f()",
        "return 0.5",
    ),
    "a subclass of float": (
        "class R(float):\n    def f(self): return 0.5\nX = R(1)\ndef walk(c, s): return X.f()",
        "return 0.5",
    ),
    "attributes of a list": (
        "class L(list): pass\nX = L()\nX.rate = 0.5\ndef walk(c, s): return X.rate",
        "= 0.5",
    ),
    "a subclass of array": (
        "import numpy as np\nclass A(np.ndarray):\n    def f(self): return 0.5\nX = np.zeros(2).view(A)\n"
        "def walk(c, s): return X.f()",
        "return 0.5",
    ),
    "a mask": (
        "import numpy as np\nX = np.ma.array([1.0, 2.0], mask=[0, 0.5 > 0.6])\ndef walk(c, s): return X.sum()",
        "0.5 >",
    ),
    "names of fields": (
        "import numpy as np\nX = np.zeros(2, [('a', 'f8'), ('b', 'f8')] if 0.5 < 0.6 else [('b', 'f8'), ('a', 'f8')])\n"
        "def walk(c, s): return X",
        "0.5 <",
    ),
    "a context manager": (
        "from contextlib import contextmanager\n@contextmanager\ndef cm(): yield 0.5\n"
        "def walk(c, s):\n    with cm() as x: return x",
        "yield 0.5",
    ),
    "a function by its type": (
        "from functools import singledispatch\n@singledispatch\ndef f(x): return 1\n@f.register\n"
        "def _(x: int): return 0.5\n"
        "def walk(c, s): return f(1)",
        "return 0.5",
    ),
    "a method of a mapping": ("look = {'a': 0.5}.get\ndef walk(c, s): return look('a')", "'a': 0.5"),
    "an attribute of a function": ("def walk(c, s): return walk.rate\nwalk.rate = 0.5", "= 0.5"),
    "a value of a class with underscores": (
        "class A:\n    __rates__ = (0.5,)\ndef walk(c, s): return A.__rates__",
        "(0.5",
    ),
    "a second class of one name": (
        "def make(k):\n    class A:\n        rate = k\n    return A\nA, B = make(0.1), make(0.5)\n"
        "def walk(c, s): return A.rate + B.rate",
        "make(0.5)",
    ),
    "a metaclass": (
        "class M(type):\n    @property\n    def rate(cls): return 0.5\nclass A(metaclass=M): pass\n"
        "def walk(c, s): return A.rate",
        "return 0.5",
    ),
}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Sources as modules of somebody's, imported anew."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = set()

    def load(**sources):
        for name, text in sources.items():
            path = tmp_path.joinpath(*name.split("__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            names.add(name.replace("__", "."))
        for name in [known for known in sys.modules if known.partition(".")[0] in {n.partition(".")[0] for n in names}]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module("lib_task")

    yield load
    for name in [known for known in sys.modules if known.partition(".")[0] in {n.partition(".")[0] for n in names}]:
        del sys.modules[name]


@pytest.mark.parametrize("name", EDITED)
def test_an_edit_is_seen(written, name):
    source, place = EDITED[name]
    assert source.count(place) == 1
    first, same = content_of(written(lib_task=source).walk), content_of(written(lib_task=source).walk)
    assert first == same
    edited = source.replace(place, place.replace("0.5", "0.75"))
    assert content_of(written(lib_task=edited).walk) != first
    assert not unseen(written(lib_task=source).walk)


@pytest.mark.parametrize(
    "walk",
    [
        "def walk(c, s):\n    import lib_pk.hh\n    return lib_pk.hh.rate()",
        "def walk(c, s):\n    from lib_pk import hh\n    return hh.rate()",
        "def walk(c, s):\n    from lib_pk.hh import rate\n    return rate()",
        "import lib_pk.hh\nT = {'a': lib_pk.hh}\ndef walk(c, s): return T['a'].rate()",
        "import lib_pk.hh\ndef walk(c, s, h=lib_pk.hh): return h.rate()",
        "import lib_pk.hh\nclass K: lib = lib_pk.hh\ndef walk(c, s): return K.lib.rate()",
        "import lib_pk.hh\ndef walk(c, s): return lib_pk.hh.rate()",
        "import lib_pk.hh\ndef walk(c, s): return getattr(lib_pk, 'hh').rate()",
    ],
)
def test_modules_are_read_wherever_they_are_met(written, walk):
    """In a package without a file of its own; the module need not be imported yet, and is the same once it is."""
    helper = "RATE = 0.5\ndef rate(): return RATE"
    task = written(lib_task=walk, lib_pk__hh=helper)
    first = content_of(task.walk)
    task.walk({}, 0)
    assert content_of(task.walk) == first and not unseen(task.walk)
    assert content_of(written(lib_pk__hh=helper.replace("0.5", "0.7")).walk) != first


def test_a_decorator_reads_the_names_of_its_own_module(written):
    deco = (
        "import functools\nSCALE = 0.5\ndef scaled(f):\n    @functools.wraps(f)\n"
        "    def inner(*a): return SCALE * f(*a)\n"
        "    return inner"
    )
    task = "from lib_deco import scaled\nSCALE = 3\n@scaled\ndef walk(c, s): return SCALE"
    first = content_of(written(lib_task=task, lib_deco=deco).walk)
    assert content_of(written(lib_deco=deco.replace("= 0.5", "= 0.75")).walk) != first
    assert content_of(written(lib_deco=deco, lib_task=task.replace("= 3", "= 4")).walk) != first


def test_two_roots_read_the_names_of_their_own_modules(written):
    other = "RATE = 0.5\ndef step(): return RATE"
    task = "import lib_other\nRATE = 1\ndef walk(): return RATE\nstep = lib_other.step"
    module = written(lib_task=task, lib_other=other)
    first = content_of(module.walk, module.step)
    module = written(lib_other=other.replace("0.5", "0.7"))
    assert content_of(module.walk, module.step) != first


def test_shared_values_take_no_more_time_than_one():
    nested = []
    for _ in range(200):
        nested = [nested, nested][: 2 if len(nested) else 1]

    class Node:
        pass

    nodes = [Node() for _ in range(60)]
    for node in nodes:
        node.others = nodes
    assert content_of(lambda: nodes) == content_of(lambda: nodes)
    assert "nested" in " ".join(unseen(lambda: nested))  # deeper than is looked


@pytest.mark.parametrize(
    "source",
    [
        "from numpy.random import default_rng\ndef walk(c, s): return default_rng(s).normal()",
        "import numpy as np\nRNG = np.random.default_rng(0)\ndef walk(c, s): return RNG.normal()",
        "import pandas as pd\nF = pd.DataFrame({'a': [1, 2]})\ndef walk(c, s): return F['a'].sum()",
        "from scipy import stats\nD = stats.norm(0, 1)\ndef walk(c, s): return D.mean()",
        "import re\nP = re.compile('a')\ndef walk(c, s): return P.match('a')",
        "from numpy import exp\nfrom scipy.special import expit\ndef walk(c, s): return exp(expit(1))",
        "from abc import ABC\nclass A(ABC):\n    def f(self): return 1\nX = A()\ndef walk(c, s): return X.f()",
        "KINDS = {'a': int, 'b': dict}\ndef walk(c, s): return KINDS",
        "import sympy as sp\nX = sp.Symbol('x')\nE = sum((sp.sin(X) + X)**k for k in range(20))\n"
        "def walk(c, s): return E",
        "import xarray as xr\nA = xr.DataArray([1.0, 2.0], dims='x')\ndef walk(c, s): return A.sum()",
        "import threading, logging\nL, G = threading.Lock(), logging.getLogger('a')\ndef walk(c, s):\n"
        "    with L: G.info('a')",
    ],
)
def test_ordinary_values_are_told_and_stay_the_same_when_they_are_used(written, source):
    walk = written(lib_task=source).walk
    first = content_of(walk)
    if "RNG" not in source:
        walk({}, 0)
    assert content_of(walk) == first and not unseen(walk)
    assert content_of(written(lib_task=source).walk) == first
    assert not any("builtins" in name for name in first)


@pytest.mark.parametrize(
    "source",
    [
        "def walk(c, s): return globals()['R']",
        "def walk(c, s): return eval('R')",
        "import sys\ndef walk(c, s): return sys.modules['x'].R",
        "import importlib\ndef walk(c, s): return importlib.import_module('hh').R",
    ],
)
def test_names_that_code_makes_up_are_not_told(written, source):
    assert unseen(written(lib_task=source).walk)


def test_texts_are_not_shown():
    """A text may be a secret, and parts are published with results."""
    secret = "sk-live-1234"
    assert not any(secret in text for text in content_of(lambda: secret).values())


def test_an_array_that_repeats_one_number_is_not_written_out():
    huge = np.broadcast_to(1.0, (10**6, 10**6))
    assert content_of(lambda: huge) == content_of(lambda: huge)
    other = np.broadcast_to(1.5, (10**6, 10**6))
    assert content_of(lambda: huge) != content_of(lambda: other)
