"""Published numbers in the text of installed code: ``value("room.study.number")`` is the stored one.

In a clone of the repository ``python -m yzflow.values check`` compares stored numbers with the text, ``.. write``
computes and writes them anew, and ``.. list`` finds numbers without a computation: ``docs/howto/values.md``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from theory.values import find, of_papers

__all__ = ["value"]


@cache
def value(name: str) -> Any:
    """The stored number of this name in an installed room, for text in code.

    Raises
    ------
    ValueError
        If there is no such number.
    """
    here = Path(__file__).parents[1] / "papers"
    return find(name, [*of_papers(), *here.iterdir()])
