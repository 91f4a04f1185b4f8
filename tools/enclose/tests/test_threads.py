"""Threads that enclose take turns: same bits, sound proofs, and the arithmetic's own settings as they were."""

import ast
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from driving import python
from flint import ctx
from own_flows import Drawn, Linear, Logistic
from yzflow_enclose import enclose, enclose_flow, manifests
from yzflow_enclose.stepping import precision

import theory
from dynamics import SequenceClasses

ROOT = Path(theory.__file__).resolve().parents[1]


def proofs():
    classes = SequenceClasses.single_common_token(2, 3)
    return [
        lambda: enclose(Logistic(), t_end=1.0, bits=40),
        lambda: enclose(Drawn([1.0, 2.0]), t_end=0.5, bits=90),
        lambda: enclose(Linear([[0.0, 1.0], [-2.0, 0.0]], [1.0, 0.0]), t_end=0.5, bits=60),
        lambda: enclose_flow(classes, eta_y=1.0, eta_z=0.5, t_end=3.0, decoder="theory", bits=40),
    ]


def told(made):
    """All that a proof says, to the bit, and what is asked of it."""
    middle = made.moment(made.steps[0].end / 4, made.steps[0].end / 2)
    with made.computing():
        variable = middle._variables[0]
        asked = [(variable * variable + 1).log().rate.ball().str(80), made.at([0.25, 0.5]).to_dict()]
    return [*(array.tobytes() for array in made.arrays().values()), str(asked), made.verify()]


@pytest.fixture
def turned():
    """Threads change after each few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_prove_what_one_thread_proves(turned):
    before = ctx.prec, ctx.cap
    alone = [told(make()) for make in proofs()]
    with ThreadPoolExecutor(4) as pool:
        beside = list(pool.map(lambda make: told(make()), proofs() * 2))
    assert beside == alone * 2 and all(told[-1] is True for told in alone)
    assert (ctx.prec, ctx.cap) == before


def test_quantities_of_threads_keep_all_their_terms(turned):
    """Outside a proof, too, where a shorter series would be another function."""
    at = enclose(Logistic(), t_end=1.0, bits=40).moment(0.25, 0.5)
    before = ctx.prec, ctx.cap
    stop = threading.Event()

    def other():
        while not stop.is_set():
            with precision(80, cap=1):
                pass

    thread = threading.Thread(target=other)
    thread.start()
    try:
        lengths = {(x * x + x).exp()._wide.prec for x in [at.state["x"].item()] * 500}
    finally:
        stop.set()
        thread.join()
    assert lengths == {7} and (ctx.prec, ctx.cap) == before


def test_precision_is_put_back_whatever_happens():
    before = ctx.prec, ctx.cap
    with pytest.raises(ZeroDivisionError), precision(200, cap=3):
        ctx.prec, ctx.cap = 99, 44
        with precision(cap=5):
            assert (ctx.prec, ctx.cap) == (99, 5)
        assert (ctx.prec, ctx.cap) == (99, 44)
        raise ZeroDivisionError
    with pytest.raises(ValueError, match=r"prec must be|precision"), precision(0):
        pass
    assert (ctx.prec, ctx.cap) == before
    made = enclose(Logistic(), t_end=1.0, bits=40)
    assert made.moment(0.5).state["x"].item().exp().rate.ball() > 0
    assert (ctx.prec, ctx.cap) == before


def test_other_threads_wait():
    entered = threading.Event()

    def other():
        with precision(80):
            entered.set()

    thread = threading.Thread(target=other)
    with precision(60):
        thread.start()
        assert not entered.wait(0.05) and ctx.prec == 60
    assert entered.wait(10)
    thread.join()


FORKING = """
import os, threading
from yzflow_enclose.stepping import precision

held, done = threading.Event(), threading.Event()

def holds():
    with precision(60):
        held.set()
        done.wait(10)

thread = threading.Thread(target=holds)
thread.start()
held.wait(10)
child = os.fork()
if not child:
    threading.Timer(5, os._exit, [1]).start()
    with precision(50):
        os._exit(0)
done.set()
thread.join()
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_does_not_wait_for_a_thread_that_it_lacks():
    """In a process of its own: others here, such as jax, warn of every fork."""
    assert python(FORKING) == "0\n"


def test_a_manifest_leaves_the_precision_as_it_was(tmp_path):
    before = ctx.prec, ctx.cap
    classes = SequenceClasses.single_common_token(2, 3)
    enclose_flow(classes, eta_y=1.0, eta_z=0.5, t_end=1.0, decoder="theory", bits=40).save(tmp_path / "one.npz")
    manifests.write(tmp_path)
    assert all(finding.good for finding in manifests.check(tmp_path / "manifest.json"))
    assert (ctx.prec, ctx.cap) == before


def sets(node):
    """Whether a part of the source sets a precision or length of flint's."""
    if isinstance(node, ast.Attribute) and "ctx" in ast.unparse(node.value):
        stored = isinstance(node.ctx, ast.Store) and node.attr in ("prec", "cap", "dps")
        return stored or node.attr in ("workprec", "workdps", "extraprec", "extradps")
    return False


def test_one_place_sets_the_precision():
    """But for the small checkers, which take nothing from the rest."""
    folders = ("dynamics", "theory", "yzflow", "studies/yzflow_studies", "papers", "tools", "benchmarks")
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
    kept = [file for file in files if not file.name.startswith(("verify", "test_", "conftest"))]
    texts = {file.relative_to(ROOT).as_posix(): file.read_text() for file in kept}
    found = [name for name, text in texts.items() if "flint" in text and any(map(sets, ast.walk(ast.parse(text))))]
    assert found == ["tools/enclose/yzflow_enclose/stepping.py"]
