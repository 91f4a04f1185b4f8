"""The built-in papers: each has a room with an object `yzflow.Paper` and the modules that it refers to.

Entry points of the group ``yzflow.papers`` name them, as for the papers of other distributions.
"""

from __future__ import annotations

import sys
from types import ModuleType

from yzflow.paper import Paper, papers


class _Papers(ModuleType):
    """This package as a callable: a call runs the function `yzflow.papers`, which has the same name."""

    def __call__(self) -> dict[str, Paper]:
        return papers()


sys.modules[__name__].__class__ = _Papers
