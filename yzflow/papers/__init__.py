"""The built-in papers, a room each, which is an object `yzflow.Paper` and what that refers to.

Entry points of the group ``yzflow.papers`` name them, as they name those of other distributions.
"""

from __future__ import annotations

import sys
from types import ModuleType

from yzflow.paper import Paper, papers


class _Papers(ModuleType):
    """This package, which has the name of the function `yzflow.papers`, and so is called as that is."""

    def __call__(self) -> dict[str, Paper]:
        return papers()


sys.modules[__name__].__class__ = _Papers
