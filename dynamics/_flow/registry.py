"""The flows that there are, by decoder, whole and reduced."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dynamics._flow import orbits, systems
from dynamics._flow.factors import FactoredDop853, factors_of
from dynamics._flow.optimized import Optimized
from dynamics._flow.stages import StagedDop853
from dynamics._flow.steps import Dop853, Explicit
from dynamics._flow.systems import Setting, System

# Decoder -> the flow of all logits, and that of one for each orbit.
_Whole = systems.Full | systems.Theory
SYSTEMS: dict[str, tuple[Callable[[Setting], _Whole], Callable[[Setting, orbits.Orbits], System]]] = {
    "full": (systems.Full, orbits.FullOrbits),
    "modified": (systems.Modified, orbits.ModifiedOrbits),
    "theory": (systems.Theory, orbits.TheoryOrbits),
}


def system_for(setting: Setting, decoder: str, *, reduce: bool) -> System:
    """What to integrate: where it pays, and ``reduce``, one variable for each orbit.

    Raises
    ------
    ValueError
        If the decoder cannot be used on this setting.
    """
    whole, reduced = SYSTEMS[decoder]
    if setting.optimizer is not None:
        return Optimized(whole(setting), setting.optimizer, setting.order)
    found = orbits.find_orbits(setting, inverts=decoder != "full") if reduce else None
    if found is not None:
        try:
            return reduced(setting, found)
        except orbits.NotReducibleError:
            pass
    return whole(setting)


def explicit_for(
    system: System, speed: Callable[[np.ndarray], np.ndarray], watch: Callable[[float, int], None]
) -> Explicit:
    """The steps of DOP853 that suit a system: small ones in a kernel, large ones with slopes as factors, or plain ones.

    For ``speed`` and ``watch`` see `StagedDop853`.
    """
    frame = system.frame()
    if frame is not None:
        return partial(StagedDop853, frame, speed, watch)
    factors = factors_of(system)
    return Dop853 if factors is None else partial(FactoredDop853, factors)
