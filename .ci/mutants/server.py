"""A pytest plugin that has collected the tests once, and runs some of them in a fork for each mutant.

A mutant is put into a fork by giving functions other code: every function of the file that is alive gets the code that
it has in the changed tree, whoever holds a reference to it, so that nothing is imported again. Under numba, kernels of
that file are compiled anew, without a cache.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
import types
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from operators import Mutant, mutated

MEMORY = 8 << 30


class OutOfTime(BaseException):
    """A test took longer than it may; not an Exception, which tests may expect."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection():
    """The examples of property tests as conftest sets them, but no shrinking: nobody reads what fails."""
    from hypothesis import Phase, settings

    given = settings.get_profile("yzflow")
    settings.register_profile("mutants", given, phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False)
    settings.load_profile("mutants")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """In place of running the tests: answer what the caller asks for, a line of JSON each."""
    task = json.loads(Path(os.environ["MUTANTS_TASK"]).read_text())
    units = _units(session.items)
    for file in task["files"]:
        module = file.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
        importlib.import_module(module)
    gc.collect()
    alive = _alive(task["files"])
    gc.freeze()  # a collection in a fork would copy all pages that it looks at
    with open(task["results"], "a", buffering=1, encoding="utf-8") as results:
        if task["mode"] == "reach":
            _reach(units, task, results)
        else:
            _run(units, task, alive, results)
    return True


def _units(items):
    """Items by test function with all its parameters, or by document, whose examples share names."""
    units: dict[str, list] = {}
    for item in items:
        name = item.nodeid.split("[")[0] if hasattr(item, "function") and "line:" not in item.nodeid else str(item.path)
        if name.startswith("/"):
            name = os.path.relpath(name, os.getcwd())
        units.setdefault(name, []).append(item)
    return units


def _reach(units, task, results):
    """A fork a file, as its tests share fixtures and loaded kernels; where one dies, the rest get a fork each."""
    left = {name: items for name, items in units.items() if name not in set(task["done"])}
    done, together = len(units) - len(left), True
    while left:
        first = next(iter(left)).split("::")[0]
        some = {name: items for name, items in left.items() if name.split("::")[0] == first}
        some = some if together else dict([next(iter(some.items()))])
        limits = {"cpu": (3 * task["cpu"] + 2) * len(some) + 20, "wall": (20 * task["cpu"] + 10) * len(some) + 100}
        answers = _fork(lambda tell, some=some: _traced(some, task, tell), **limits)
        together = len(answers) > len(some)  # the last line says how the fork ended
        for name, answer in zip(some, answers[:-1] or [{"unit": next(iter(some)), **answers[-1]}], strict=False):
            results.write(json.dumps(answer) + "\n")
            left.pop(name)
            done += 1
        _progress(done, len(units), first)
    if task["whole"]:
        results.write(json.dumps({"complete": True}) + "\n")


def _traced(units, task, tell):
    import coverage

    root = os.getcwd()
    tracer = coverage.Coverage(
        data_file=None, config_file=False, include=[os.path.join(root, f) for f in task["files"]]
    )
    for name, items in units.items():
        start = time.process_time()
        tracer.start()
        try:
            failed = _tests(items, task["cpu"])
        finally:
            tracer.stop()
        data = tracer.get_data()
        lines = {os.path.relpath(file, root): sorted(data.lines(file) or []) for file in data.measured_files()}
        lines = {file: some for file, some in lines.items() if some}
        tracer.erase()
        tell({"unit": name, "failed": failed, "lines": lines, "cpu": round(time.process_time() - start, 2)})


def _run(units, task, alive, results):
    for number, entry in enumerate(task["mutants"]):
        mutant, tests = Mutant(**entry["mutant"]), entry["tests"]
        start = time.monotonic()
        items = [item for name in tests for item in units.get(name, [])]

        def work(tell, mutant=mutant, items=items):
            tell(_put(mutant, alive) or {"failed": _tests(items)})

        # Where the tests together took so much CPU time, a mutant that takes three times of it hangs.
        *told, end = _fork(work, cpu=3 * entry["cpu"] + 20, wall=30 * entry["cpu"] + 200)
        answer = end | told[0] if told else end
        status = answer.get("status") or ("killed" if answer.get("failed") else "survived")
        record = {
            "mutant": mutant.name, "status": status, "by": answer.get("failed"), "tests": len(tests),
            "seconds": round(time.monotonic() - start, 1), "cpu": answer["cpu"],
        }  # fmt: skip
        results.write(json.dumps(record) + "\n")
        _progress(number + 1, len(task["mutants"]), f"{status} {mutant.file}:{mutant.line}")


def _alive(files):
    """All functions of these files that anybody holds, and numba's dispatchers of them."""
    from numba.core.dispatcher import Dispatcher

    found = {os.path.join(os.getcwd(), file): [] for file in files}
    for each in gc.get_objects():
        function = each.py_func if isinstance(each, Dispatcher) else each
        if type(function) is types.FunctionType and function.__code__.co_filename in found:
            found[function.__code__.co_filename].append(each)
    return found


def _put(mutant, alive):
    """Give the functions of the file their changed code; what went wrong, or nothing."""
    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    file = os.path.join(os.getcwd(), mutant.file)
    try:
        code = compile(mutated(Path.cwd(), mutant), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return {"status": "invalid", "failed": str(error)}
    new = {(each.co_qualname, each.co_firstlineno): each for each in _codes(code)}
    changed = 0
    for each in alive[file]:
        if isinstance(each, Dispatcher):
            each._cache = NullCache()
            continue
        other = new.get((each.__code__.co_qualname, each.__code__.co_firstlineno))
        if other is not None and other != each.__code__:
            try:
                each.__code__ = other
            except ValueError as error:  # another number of free variables
                return {"status": "unsupported", "failed": str(error)}
            changed += 1
    return None if changed else {"status": "unsupported", "failed": "no living function has this code"}


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _tests(items, cpu=None):
    """The first test that fails, or nothing; at most so much CPU time for all."""

    stopped = []

    def stop(number, frame):
        stopped.append(True)
        raise OutOfTime

    if cpu:
        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, cpu)
    try:
        for item, other in zip(items, [*items[1:], None], strict=True):
            reports = runtestprotocol(item, nextitem=other, log=False)
            if stopped:
                break
            if any(report.failed for report in reports):
                return item.nodeid
    except OutOfTime:
        pass
    finally:
        if cpu:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return "out of time" if stopped else None


def _fork(work, *, cpu, wall):
    """What ``work`` tells in a process of its own, with limits; last how that ended, and its CPU time."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            os.close(receive)
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu), int(cpu) + 2))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            nowhere = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nowhere, number)
            with os.fdopen(send, "w", buffering=1) as stream:
                work(lambda answer: stream.write(json.dumps(answer) + "\n"))
            code = 0
        finally:
            os._exit(code)
    os.close(send)
    parts, deadline = [], time.monotonic() + wall
    with os.fdopen(receive, "rb") as stream:
        while True:
            ready, _, _ = select.select([stream], [], [], max(0, deadline - time.monotonic()))
            part = os.read(stream.fileno(), 1 << 16) if ready else b""
            if not part:
                break
            parts.append(part)
    told = [json.loads(line) for line in b"".join(parts).split(b"\n")[:-1]]
    if not ready:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    with contextlib.suppress(ProcessLookupError):  # what a test left behind
        os.killpg(child, signal.SIGKILL)
    hung = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
    end = {"status": "timeout" if hung else "crash", "failed": f"status {status}"} if status else {"status": None}
    return [*told, end | {"cpu": round(usage.ru_utime + usage.ru_stime, 2)}]


def _progress(done, total, what):
    sys.__stderr__.write(f"{done}/{total} {what}\n")
    sys.__stderr__.flush()
