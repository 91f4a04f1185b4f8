"""Tasks of sweeps by name: tasks of papers and studies, and functions of modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

from dynamics.support import checks, distributions
from dynamics.support.content import module_of
from yzflow import parts, studies
from yzflow.sweeps.runs import Task, told


@parts.of_papers
def named() -> dict[str, Task]:
    """Name -> task, of all papers."""
    return parts.collected("tasks")


# Name -> task, for functions that a person passed in this process.
_handed: dict[str, Task] = {}


def of_a_file(name: str) -> Task:
    """The task that a file names, installed or passed in this process. Nothing is imported.

    Raises
    ------
    ValueError
        If there is no such task, since a file does not decide which code runs.
    """
    known = _installed(name)
    if name in known:
        return known[name]
    if name not in _handed:
        rule = (
            "be handed over by the person who calls, as a file does not decide what runs: task=FUNCTION, or "
            f"--task MODULE:FUNCTION on the command line{distributions.more(name)}"
        )
        raise checks.reject("task", rule, f"{checks.brief(name)} in the file")
    return _handed[name]


def resolve(task: str | Callable | Task) -> Task:
    """The task for a name or a function of a module, from a person.

    Raises
    ------
    ValueError
        If there is no such task, or other processes could not find the function.
    """
    if isinstance(task, Task):
        _handed[task.name] = task
        return task
    if isinstance(task, str):
        if ":" in task:
            value = imported("task", task)
            if not isinstance(value, Task) and not callable(value):
                rule = "name a function as 'module:function'"
                raise checks.reject("task", rule, f"{checks.brief(task)}, a {type(value).__name__}")
            return resolve(value)
        known = _installed(task)
        if task not in known:
            near = checks.nearest(task, {name: (name,) for name in known})
            rule = f"be a function as 'module:function' or one of {len(known)} names, such as {near}"
            raise checks.reject("task", rule + distributions.more(task), checks.brief(task))
        return known[task]
    module, name = getattr(task, "__module__", None), getattr(task, "__qualname__", None)
    if not callable(task) or getattr(sys.modules.get(module or ""), name or "", None) is not task:
        shown = f"{module}.{name}" if name else checks.brief(task)
        rule = "be the name of a task or a function at the top level of a module, made by `def`"
        raise checks.reject("task", rule, shown)
    version = getattr(task, "version", 1)
    if type(version) not in (int, str):
        raise checks.reject("task", "have an integer or a word as its attribute `version`", repr(version))
    made = Task(f"{module_of(task)}:{name}", task, version=version)
    _handed[made.name] = made
    return made


def _installed(name: str) -> dict[str, Task]:
    """The tasks of papers, and of studies if the name is not among them: a look into studies takes longer."""
    known = named()
    return known if name in known else known | studies.tasks()


def imported(argument: str, path: str) -> object:
    """The object at "module:name". The path must come from a person, never from a file."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # a foreign module can raise anything
        plain = isinstance(error, (ImportError, AttributeError, ValueError, TypeError))
        why = " ".join(str(error).split()) if plain else told(error)
        what = "a function as 'module:function'" if argument.endswith("task") else "a class as 'module:class'"
        raise checks.reject(argument, f"name {what}", f"{path!r} ({why})") from error
