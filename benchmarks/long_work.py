"""Long work: processor time of each statement's check, of the whole audit and of the main job, in new processes.

Everything is compiled and on disk before, as on a machine where yzflow was used. Kernels that a first run compiles are
in `benchmarks.first_use`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks import Study
from yzflow.figures import style
from yzflow.listing import statements

_ROOT = Path(__file__).parents[1]
_YZFLOW = (sys.executable, "-c", "from yzflow.cli import main; main()")
MAIN_JOB, AUDIT = "the main job, `examples/phase_transition.py`", "the audit of all statements, `yzflow audit --quick`"
# Checks in the table and in the figure: those that take longest.
_SHOWN, _DRAWN = 5, 20


def seconds(command: Sequence[str], folder: str | Path) -> float:
    """Processor time of a command and all its processes, run in a folder.

    Raises
    ------
    RuntimeError
        If it cannot be run.
    """
    before = _children()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: a statement does not hold somewhere
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(names: Sequence[str]) -> dict[str, Any]:
    """Processor time of the main job, of the quick audit of these statements, and of the check of each."""
    audit = [*_YZFLOW, "audit", "--quick", *(word for name in names for word in ("--only", name))]
    main_job = [sys.executable, str(_ROOT / "examples" / "phase_transition.py")]
    with tempfile.TemporaryDirectory() as folder:
        for command in (main_job, audit):  # which compiles what the rest calls
            seconds(command, folder)
        work = {MAIN_JOB: seconds(main_job, folder), AUDIT: seconds(audit, folder)}
        checks = {name: seconds([*_YZFLOW, "check", name], folder) for name in names}
    return {"work": work, "checks": checks}


def markdown(data: Mapping[str, Any]) -> str:
    """The table: each piece of work, the checks that take longest, and the middle one."""
    checks = sorted(data["checks"].items(), key=lambda pair: -pair[1])
    rows = list(data["work"].items())
    rows += [(f'`yzflow check "{name}"`', taken) for name, taken in checks[:_SHOWN]]
    rows.append((f"the middle one of {len(checks)} checks", checks[len(checks) // 2][1]))
    rows.append((f'the quickest, `yzflow check "{checks[-1][0]}"`', checks[-1][1]))
    return "\n".join(["| work | processor time (s) |", "| --- | --- |", *(f"| {name} | {s:.1f} |" for name, s in rows)])


@style.styled
def draw(checks: Mapping[str, float]) -> Figure:
    """Processor time of the checks that take longest, and of the quickest."""
    ordered = sorted(checks.items(), key=lambda pair: pair[1])
    ordered = [ordered[0], *ordered[-_DRAWN:]]
    figure = Figure(figsize=(7.5, 0.8 + 0.2 * len(ordered)))
    axes = figure.subplots()
    axes.barh(range(len(ordered)), [taken for _, taken in ordered], color=style.BLUE)
    axes.set_yticks(range(len(ordered)), [name for name, _ in ordered], fontsize=8)
    axes.set_ylim(-0.7, len(ordered) - 0.3)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("processor time of a check in a new process (s)")
    return figure


def study() -> Study:
    """All statements of the register, the audit and the main job."""
    data = measure([one["name"] for one in statements()])
    return Study(markdown(data), draw(data["checks"]), data)
