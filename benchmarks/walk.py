"""``python -m benchmarks.walk``: how far a reader walks from a call to the numerics, within `dynamics`.

Of a warm call and its dataset: calls of functions with a name, the functions among them, their files, and the moves
from one file to another, as functions are entered and left. A comprehension is a part of the function that has it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import dynamics
from dynamics import SequenceClasses, gradient_flow, sgd

_ROOT = str(Path(dynamics.__file__).parent) + os.sep

_WITHIN = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")


class Walk(NamedTuple):
    """Counts of one call."""

    calls: int
    functions: int
    files: int
    moves: int


def walk(call: Callable[[], object]) -> tuple[Walk, dict[str, set[str]]]:
    """The counts of a call, which is made twice before; and the functions of each file."""
    entered: list[tuple[str, str]] = []
    stack: list[str] = []
    moves = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal moves
        code = frame.f_code
        if not code.co_filename.startswith(_ROOT) or code.co_name in _WITHIN:
            return
        if event == "call":
            moves += bool(stack) and stack[-1] != code.co_filename
            stack.append(code.co_filename)
            entered.append((code.co_filename, f"{code.co_qualname}:{code.co_firstlineno}"))
        elif event == "return":
            left = stack.pop()
            moves += bool(stack) and stack[-1] != left

    for _ in range(2):
        call()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    functions = set(entered)
    files: dict[str, set[str]] = {}
    for file, name in functions:
        files.setdefault(file.removeprefix(_ROOT), set()).add(name)
    return Walk(len(entered), len(functions), len(files), moves), files


def calls() -> dict[str, Callable[[], object]]:
    """The calls that are counted, small and plain."""
    classes, rates = SequenceClasses.single_common_token(3, 12), {"eta_y": 1.0, "eta_z": 0.5}
    return {
        "gradient_flow": lambda: gradient_flow(classes, **rates, t_end=10.0, n_times=5).dataset,
        "sgd": lambda: sgd(classes, **rates, steps=20, record_every=20).dataset,
    }


def main() -> None:
    print(f"{'call':<16}" + "".join(f"{name:>11}" for name in Walk._fields))
    found = {name: walk(call) for name, call in calls().items()}
    for name, (counts, _) in found.items():
        print(f"{name:<16}" + "".join(f"{number:>11,}" for number in counts))
    if "--files" in sys.argv:
        for name, (_, files) in found.items():
            print(f"\n{name}")
            for file in sorted(files):
                print(f"  {file}: {', '.join(sorted(files[file]))}")


if __name__ == "__main__":
    main()
