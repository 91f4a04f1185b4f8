"""The table of decoders: the flow of each, whole and reduced, and which fast paths are its own.

A class says which fast paths integrate *its* derivative by ``fast`` in its own body; what it inherits does not count,
since a derivative that overrides another's is another one. What an entry lacks is done the plain way, which is slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from dynamics._flow import orbits, systems
from dynamics._flow.factors import FactoredDop853, factors_of
from dynamics._flow.optimized import Optimized
from dynamics._flow.stages import StagedDop853
from dynamics._flow.steps import Dop853, Explicit
from dynamics._flow.systems import Setting, System

_Whole = systems.Full | systems.Theory


@dataclass(frozen=True)
class Entry:
    """What a decoder has.

    Attributes
    ----------
    whole : callable
        Setting -> the flow of all logits: the derivative that all else is held to.
    orbits : callable, optional
        (setting, orbits) -> the flow of one logit for each orbit. Default: it is not reduced.
    inverts : bool
        Whether it inverts F^T F, so that classes with the same features have none.
    """

    whole: Callable[[Setting], _Whole]
    orbits: Callable[[Setting, orbits.Orbits], System] | None = None
    inverts: bool = False


SYSTEMS: dict[str, Entry] = {
    "full": Entry(systems.Full, orbits.FullOrbits),
    "modified": Entry(systems.Modified, orbits.ModifiedOrbits, inverts=True),
    "theory": Entry(systems.Theory, orbits.TheoryOrbits, inverts=True),
}


def has(system: System, path: str) -> bool:
    """Whether a fast path, "kernel" or "factors", is declared by the very class of a system."""
    return path in vars(type(system)).get("fast", ())


def system_for(setting: Setting, decoder: str, *, reduce: bool) -> System:
    """What to integrate: where it pays, and ``reduce``, one variable for each orbit.

    Raises
    ------
    ValueError
        If the decoder cannot be used on this setting.
    """
    entry = SYSTEMS[decoder]
    if setting.optimizer is not None:
        return Optimized(entry.whole(setting), setting.optimizer, setting.order)
    if reduce and entry.orbits is not None:
        found = orbits.find_orbits(setting, inverts=entry.inverts)
        if found is not None:
            try:
                return entry.orbits(setting, found)
            except orbits.NotReducibleError:
                pass
    return entry.whole(setting)


def explicit_for(
    system: System, speed: Callable[[np.ndarray], np.ndarray], watch: Callable[[float, int], None]
) -> Explicit:
    """The steps of DOP853 that suit a system: small ones in a kernel, large ones with slopes as factors, or plain ones.

    For ``speed`` and ``watch`` see `StagedDop853`.
    """
    frame = cast(systems.Framed, system).frame() if has(system, "kernel") else None
    if frame is not None:
        return partial(StagedDop853, frame, speed, watch)
    factors = factors_of(system) if has(system, "factors") else None
    return Dop853 if factors is None else partial(FactoredDop853, factors)
