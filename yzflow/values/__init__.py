"""Published numbers in the text of installed code: ``value("room.study.number")`` is the stored one.

In a clone of the repository ``python -m yzflow.values check`` compares numbers with the text that quotes them,
``.. write`` computes anew and writes, ``.. list`` finds numbers that nobody computes: ``docs/howto/values.md``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from theory.values import find, of_papers

__all__ = ["value"]


@cache
def value(name: str) -> Any:
    """The stored number of this name, of the rooms that are installed: for text that code holds.

    Raises
    ------
    ValueError
        If there is no such number.
    """
    here = Path(__file__).parents[1] / "papers"
    return find(name, [*of_papers(), *here.iterdir()])
