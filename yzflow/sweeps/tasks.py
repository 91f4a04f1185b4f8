"""The tasks of sweeps that have a name: those of all papers and of studies, and functions of a module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from dynamics.support import checks
from yzflow import parts, studies
from yzflow.sweeps.runs import Task, told


@parts.of_papers
def named() -> dict[str, Task]:
    """Name -> task, of all papers."""
    return parts.collected("tasks")


def resolve(task: str | Callable | Task) -> Task:
    """The task that a name or a function of a module stands for.

    Raises
    ------
    ValueError
        If there is no such task, or other processes could not find the function.
    """
    if isinstance(task, Task):
        return task
    if isinstance(task, str):
        if ":" in task:
            found = _import(task)
            if not isinstance(found, Task) and not callable(found):
                rule = "name a function as 'module:function'"
                raise checks.reject("task", rule, f"{checks.brief(task)}, a {type(found).__name__}")
            return resolve(found)
        known = named()
        if task not in known:  # to look into the studies takes longer
            known = known | studies.tasks()
        if task not in known:
            near = checks.nearest(task, {name: (name,) for name in known})
            rule = f"be a function as 'module:function' or one of {len(known)} names, such as {near}"
            raise checks.reject("task", rule, checks.brief(task))
        return known[task]
    module, name = getattr(task, "__module__", None), getattr(task, "__qualname__", None)
    if not callable(task) or getattr(sys.modules.get(module or ""), name or "", None) is not task:
        shown = f"{module}.{name}" if name else checks.brief(task)
        raise checks.reject("task", "be the name of a task or a function at the top level of a module", shown)
    if module == "__main__":
        # The same function, whether its file is run or imported.
        main = sys.modules["__main__"]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec else Path(file).stem if file else module
    version = getattr(task, "version", 1)
    if type(version) not in (int, str):
        raise checks.reject("task", "have an integer or a word as its attribute `version`", repr(version))
    return Task(f"{module}:{name}", task, version=version)


def _import(path: str) -> object:
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # a module of other people can raise anything
        plain = isinstance(error, (ImportError, AttributeError, ValueError, TypeError))
        why = " ".join(str(error).split()) if plain else told(error)
        raise checks.reject("task", "name a function as 'module:function'", f"{path!r} ({why})") from error
