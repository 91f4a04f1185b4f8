"""Limits hold in their block, in the threads and processes that a call starts there, and nowhere else."""

import threading
from dataclasses import asdict, fields

import pytest
import sweep_tasks
from driving import quietly
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Limits, SequenceClasses, sgd_many
from dynamics.support import checks
from dynamics.support.limits import current

CLASSES = SequenceClasses.syn_small()
SGD = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, "length": 4}
NAMES = [field.name for field in fields(Limits)]
GIVEN = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, st.integers(1, 10**12)))


@given(st.lists(GIVEN, min_size=1, max_size=4), st.booleans())
def test_the_innermost_block_counts_and_an_error_ends_it_too(blocks, fails):
    def inside(left):
        if not left:
            if fails:
                raise ArithmeticError
            return
        with Limits(**left[0]) as own:
            assert current() is own and asdict(own) == asdict(Limits()) | left[0]
            assert checks.memory() == left[0].get("memory", machine)
            try:
                inside(left[1:])
            finally:
                assert current() is own and checks.memory() == left[0].get("memory", machine)

    machine = checks.memory()
    try:
        inside(blocks)
    except ArithmeticError:
        assert fails
    assert current() == Limits() and checks.memory() == machine


def test_a_function_that_they_decorate_runs_under_them():
    decorated = Limits(tables=5)(lambda depth: [current().tables, *(decorated(depth - 1) if depth else ())])
    assert decorated(2) == [5, 5, 5] and current() == Limits()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [-1, "many", float("nan"), True])
def test_what_is_no_limit_is_refused(name, value):
    with pytest.raises(ValueError, match=rf"^`{name}` must be .*, but got "):
        Limits(**{name: value})


def test_a_thread_of_another_s_has_its_own():
    """Two blocks at once, of which the first ends first."""
    entered, left, found = threading.Event(), threading.Event(), []

    def other():
        found.append(current())
        with Limits(memory=7):
            entered.set()
            left.wait(60)
            found.append((current().memory, checks.memory()))

    thread = threading.Thread(target=other)
    with Limits(memory=5):
        thread.start()
        assert entered.wait(60) and (current().memory, checks.memory()) == (5, 5)
    left.set()
    thread.join()
    assert found == [Limits(), (7, 7)] and current() == Limits()


def test_runs_of_sgd_in_threads_have_those_of_their_call():
    runs = [(CLASSES, SGD | {"steps": steps}) for steps in (1, 2, 3)]
    with Limits(tables=5):
        seen = sgd_many(runs, observe=lambda _: (threading.get_ident(), current().tables), threads=2)
    assert {tables for _, tables in seen} == {5} and threading.get_ident() not in {ident for ident, _ in seen}


@pytest.mark.slow
def test_workers_of_a_sweep_have_those_of_their_call(tmp_path):
    with Limits(tables=5):
        found = quietly(sweep_tasks.limited, {"a": [1, 2, 3]}, store=tmp_path, workers=2)
    assert found["tables"].values.ravel().tolist() == [5, 5, 5]
