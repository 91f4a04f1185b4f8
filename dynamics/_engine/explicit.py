"""The slopes of DOP853 that suit a system."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynamics._engine.factors import Factored, factors_of
from dynamics._engine.slopes import Bind, Called, InKernel, Slopes
from dynamics._model.frames import Frame
from dynamics.fields.system import System, has


def slopes_for(
    system: System,
    frame: Frame | None,
    bind: Bind,
    speed: Callable[[np.ndarray], np.ndarray],
    watch: Callable[[float, int], None],
) -> Slopes:
    """Slopes of small systems in a kernel, of large ones as factors, or by calls.

    ``frame`` is that of the system; for ``speed`` and ``watch`` see `InKernel`.
    """
    if frame is not None:
        return InKernel(frame, speed, watch, system.initial.size)
    factors = factors_of(system) if has(system, "factors") else None
    return Called(bind, system.initial.size) if factors is None else Factored(factors, bind, system.initial.size)
