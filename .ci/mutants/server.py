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
from operators import Mutant, module_of, mutated

# Of address space, for a fork: where it was measured, tests of the theory reach 1.4 GiB (exact integers of 4096 keys),
# those of the simulators 1.6 (threads), and hostile tests grant each call 4 GiB above what the process has. A lower
# bound would make their `setrlimit` fail, and every mutant that they reach seem noticed.
MEMORY = 6 << 30
OUT_OF_TIME = "out of time"


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
    everything = {item.nodeid: [item] for item in session.items} | units
    for name, items in units.items():
        if "::" in name:
            everything.setdefault(name.split("::")[0], []).extend(items)
    for file in task["files"]:
        importlib.import_module(module_of(file))
    gc.collect()
    alive = _alive(task["files"])
    gc.freeze()  # a collection in a fork would copy all pages that it looks at
    with open(task["results"], "a", buffering=1, encoding="utf-8") as results:
        if task["mode"] == "reach":
            _reach(units, task, results)
        else:
            _run(everything, task, alive, results)
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


def _single(items):
    """Each of several items by its own name."""
    return {item.nodeid: [item] for item in items} if len(items) > 1 and "[" in items[0].nodeid else {}


def _reach(units, task, results):
    """A fork a file, as its tests share fixtures and loaded kernels; where a test is stopped, the next have another.

    A test with parameters that was stopped is traced again for each of them.
    """
    known = {name for name in task["done"] if name in units}
    for name in task["stopped"]:
        units = units | _single(units.get(name, []))
    left = {name: items for name, items in units.items() if name not in set(task["done"])}
    done = len(known)
    while left:
        first = next(iter(left)).split("::")[0]
        some = {name: items for name, items in left.items() if name.split("::")[0] == first}
        limits = {"cpu": (3 * task["cpu"] + 2) * len(some) + 20, "wall": 20 * task["cpu"] + 60}
        *answers, end = _fork(lambda tell, some=some: _traced(some, task, tell), **limits)
        if len(answers) < len(some) and (not answers or answers[-1]["failed"] != OUT_OF_TIME):
            # It died, or hung without using time: nothing is known of its lines.
            answers.append({"unit": list(some)[len(answers)], **end})
        for answer in answers:
            results.write(json.dumps(answer) + "\n")
            items = left.pop(answer["unit"])
            done += 1
            if answer["failed"] == OUT_OF_TIME:
                left |= _single(items)
        _progress(done, done + len(left), first)
    if task["whole"]:
        results.write(json.dumps({"complete": True}) + "\n")


def _traced(units, task, tell):
    import coverage

    root, tracing = os.getcwd(), os.path.dirname(coverage.__file__)
    tracer = coverage.Coverage(
        data_file=None, config_file=False, include=[os.path.join(root, f) for f in task["files"]]
    )
    tracer.set_option("run:disable_warnings", ["no-data-collected"])  # warnings are errors here

    def seen(failed):
        tracer.stop()
        data = tracer.get_data()
        lines = {os.path.relpath(file, root): sorted(data.lines(file) or []) for file in data.measured_files()}
        lines = {file: some for file, some in lines.items() if some}
        tell({"unit": test, "failed": failed, "lines": lines, "cpu": round(time.process_time() - start, 2)})

    def stop(number, frame):
        while frame is not None:
            if frame.f_code.co_filename.startswith(tracing):  # it may hold a lock that `seen` takes: a little later
                signal.setitimer(signal.ITIMER_PROF, 0.01)
                return
            frame = frame.f_back
        # Ends the process: what is raised in the middle of a test may be caught, or wreck those that come after.
        try:
            seen(OUT_OF_TIME)
        finally:
            os._exit(0)

    signal.signal(signal.SIGPROF, stop)
    for name, items in units.items():
        test, start = name, time.process_time()
        tracer.start()
        signal.setitimer(signal.ITIMER_PROF, task["cpu"])
        failed = _tests(items)
        signal.setitimer(signal.ITIMER_PROF, 0)
        seen(failed)
        tracer.erase()


def _run(units, task, alive, results):
    passes: dict[str, bool] = {}  # of tests that failed with a change: whether they pass without one, here
    for number, entry in enumerate(task["mutants"]):
        mutant, tests = Mutant(**entry["mutant"]), entry["tests"]
        start = time.monotonic()
        items = [item for name in tests for item in units.get(name, [])]

        # Where the tests together took so much CPU time, a mutant that takes three times of it hangs.
        limits = {"cpu": 3 * entry["cpu"] + 20, "wall": 30 * entry["cpu"] + 200}
        while True:

            def work(tell, mutant=mutant, items=items):
                tell(_put(mutant, alive) or {"failed": _tests(items)})

            *told, end = _fork(work, **limits)
            answer = end | told[0] if told else end
            failing = [item for item in items if item.nodeid == answer.get("failed")]
            if not failing or _passes(failing, passes, limits):
                break
            # Slow tests were not traced to their end: some look at compiled kernels, and fail here without any change.
            items = [item for item in items if item not in failing]
        status = answer.get("status") or ("killed" if answer.get("failed") else "survived")
        record = {
            "mutant": mutant.name, "status": status, "by": answer.get("failed"), "tests": len(tests),
            "seconds": round(time.monotonic() - start, 1), "cpu": answer["cpu"],
        }  # fmt: skip
        results.write(json.dumps(record) + "\n")
        _progress(number + 1, len(task["mutants"]), f"{status} {mutant.file}:{mutant.line}")


def _passes(failing, known, limits):
    """Whether a test passes without a change."""
    name = failing[0].nodeid
    if name not in known:
        told = _fork(lambda tell: tell({"failed": _tests(failing)}), **limits)
        known[name] = told[0].get("failed") is None
    return known[name]


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


def _tests(items):
    """The first test that fails, or nothing."""
    for item, other in zip(items, [*items[1:], None], strict=True):
        if any(report.failed for report in runtestprotocol(item, nextitem=other, log=False)):
            return item.nodeid
    return None


def _fork(work, *, cpu, wall):
    """Messages of ``work`` in a process of its own, with limits; last how that ended, and its CPU time.

    ``cpu`` is for all of it, ``wall`` from one answer to the next: a thread that waits for another that was not forked
    with it uses no CPU time.
    """
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
    parts, deadline, ended = [], time.monotonic() + wall, False
    with os.fdopen(receive, "rb") as stream:
        while time.monotonic() < deadline:
            if select.select([stream], [], [], 1)[0]:
                part = os.read(stream.fileno(), 1 << 16)
                if not part:
                    break
                parts.append(part)
                deadline = time.monotonic() + wall
            elif ended:  # and only what a test left behind still holds the pipe
                break
            else:
                ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        else:
            os.killpg(child, signal.SIGKILL)
    told = [json.loads(line) for line in b"".join(parts).split(b"\n")[:-1]]
    _, status, usage = os.wait4(child, 0)
    with contextlib.suppress(ProcessLookupError):  # what a test left behind
        os.killpg(child, signal.SIGKILL)
    hung = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
    end = {"status": "timeout" if hung else "crash", "failed": f"status {status}"} if status else {"status": None}
    return [*told, end | {"cpu": round(usage.ru_utime + usage.ru_stime, 2)}]


def _progress(done, total, what):
    sys.__stderr__.write(f"{done}/{total} {what}\n")
    sys.__stderr__.flush()
