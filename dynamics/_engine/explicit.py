"""The steps of DOP853 that suit a system."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dynamics._engine.factors import FactoredDop853, factors_of
from dynamics._engine.stages import StagedDop853
from dynamics._engine.steps import Dop853, Explicit
from dynamics._model.frames import Frame
from dynamics.fields.system import System, has


def explicit_for(
    system: System,
    frame: Frame | None,
    speed: Callable[[np.ndarray], np.ndarray],
    watch: Callable[[float, int], None],
) -> Explicit:
    """The steps of DOP853 that suit a system: small ones in a kernel, large ones with slopes as factors, or plain ones.

    ``frame`` is that of the system; for ``speed`` and ``watch`` see `StagedDop853`.
    """
    if frame is not None:
        return partial(StagedDop853, frame, speed, watch)
    factors = factors_of(system) if has(system, "factors") else None
    return Dop853 if factors is None else partial(FactoredDop853, factors)
