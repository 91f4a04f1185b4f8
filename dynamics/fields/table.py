"""The table of decoders: the flow of each, whole and reduced, its step of SGD, and which fast paths are its own.

A class lists in ``fast`` the fast paths that match its own derivative. ``fast`` is not inherited: a subclass with a new
derivative must list its own. A part that an entry lacks is done the plain way, which is slower, or refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from dynamics.fields import steps
from dynamics.fields.full import Full, FullOrbits
from dynamics.fields.modified import Modified, ModifiedOrbits
from dynamics.fields.optimized import Optimized
from dynamics.fields.orbits import Orbits, find_orbits
from dynamics.fields.own import Field, installed, whole_of
from dynamics.fields.steps import Step
from dynamics.fields.system import FlowSetting, System
from dynamics.fields.theory import Theory, TheoryOrbits
from dynamics.support import checks
from dynamics.support.errors import NotReducibleError

_Whole = Full | Theory


class LaneField(NamedTuple):
    """Which field the kernels of `dynamics._engine.lanes` integrate, whose cache names this class.

    Attributes
    ----------
    inverts : bool
        Whether F^T F is inverted, as in Lemma 3 (26) and Theorem 1.
    reduced : bool
        Whether the state has x = M h of a class in the place of Y (10, 44).
    """

    inverts: bool
    reduced: bool


@dataclass(frozen=True)
class Entry:
    """The parts of a decoder.

    Attributes
    ----------
    whole : callable
        FlowSetting -> the flow of all logits: the derivative that all else is held to.
    orbits : callable, optional
        (setting, orbits) -> the flow of one logit for each orbit. Default: it is not reduced.
    step : Step, optional
        The direction of a step of SGD. Default: SGD refuses the decoder.
    lanes : LaneField, optional
        Its field in the kernel that integrates ensembles of Theorem 4's setting. Default: its flows are integrated one
        after the other.
    noise : bool
        Whether its ``whole`` is linear in the weights of the bags (`weighed`), which noise of mini-batches needs.
    inverts : bool
        Whether it inverts F^T F, so that classes with the same features have none, nor have finite sequences.
    reduced : bool
        Whether its state has numbers in the place of Y, so that nothing is there that could decay or be clipped.
    field : Field, optional
        The `Field` of a user that the entry was made of.
    """

    whole: Callable[[FlowSetting], _Whole]
    orbits: Callable[[FlowSetting, Orbits], System] | None = None
    step: Step | None = None
    lanes: LaneField | None = None
    noise: bool = False
    inverts: bool = False
    reduced: bool = False
    field: Field | None = None

    @cached_property
    def recorded(self) -> dict[str, Any]:
        """Parameters that a run records of it, beside its name."""
        return {} if self.field is None else {"field": self.field.origin}

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts that are present."""
        has = {name: getattr(self, name) for name in ("orbits", "step", "lanes", "noise")}
        return ("derivative", *(name for name, given in has.items() if given), *getattr(self.whole, "fast", ()))


SYSTEMS: dict[str, Entry] = {
    "full": Entry(Full, FullOrbits, step=steps.FULL, lanes=LaneField(False, False), noise=True),
    "modified": Entry(
        Modified,
        ModifiedOrbits,
        step=steps.MODIFIED,
        lanes=LaneField(True, False),
        noise=True,
        inverts=True,
    ),
    "theory": Entry(Theory, TheoryOrbits, lanes=LaneField(True, True), noise=True, inverts=True, reduced=True),
}

# Parts that an entry may lack, in words.
_NEEDS = {
    "step": "a step of SGD",
    "lanes": "lanes for a mapping of settings (give a sequence of data and rates)",
    "noise": "noise of mini-batches",
}


def entry_of(decoder: object, *needs: str) -> Entry:
    """The entry of the argument ``decoder``: built in, registered, or offered by an installed distribution.

    Parameters
    ----------
    decoder : str
    *needs : "step", "lanes" or "noise"
        Parts that the entry must have.

    Raises
    ------
    ValueError
        If there is none of this name, or it lacks what is needed.
    """
    if isinstance(decoder, str) and decoder not in SYSTEMS:
        found = installed(decoder)
        if found is not None:
            register(found)
    name = checks.one_of("decoder", decoder, SYSTEMS)
    for need in needs:
        if not getattr(SYSTEMS[name], need):
            others = [other for other, entry in SYSTEMS.items() if getattr(entry, need)]
            raise checks.lacks("decoder", _NEEDS[need], name, others)
    return SYSTEMS[name]


def code_of(decoder: object) -> dict[str, str]:
    """The origin of a decoder from outside, which is a part of a run's identity; empty for a built-in decoder."""
    return {name: json.dumps(value, sort_keys=True) for name, value in entry_of(decoder).recorded.items()}


def register(field: Field) -> None:
    """Put a field into the table. It replaces a field of the same name and module.

    Raises
    ------
    ValueError
        If the name is that of a built-in one, or of one of another module.
    """
    known = SYSTEMS.get(field.name)
    if known is not None:
        if known.field is None:
            raise checks.reject("name", "be none of a built-in field", repr(field.name))
        if known.field.module != field.module:
            rule = f"be another than that of a field of the module {known.field.module}"
            raise checks.reject("name", rule, f"{field.name!r} of {field.module}")
    SYSTEMS[field.name] = Entry(
        whole_of(field),
        step=steps.step_of(field),
        inverts=field.inverts,
        field=field,
    )


def system_for(setting: FlowSetting, entry: Entry, *, reduce: bool) -> System:
    """The system to integrate: where it pays, and ``reduce``, one variable for each orbit.

    Raises
    ------
    ValueError
        If the decoder cannot be used on this setting.
    """
    if setting.optimizer is not None:
        return Optimized(entry.whole(setting), setting.optimizer, setting.order, reduced=entry.reduced)
    if reduce and entry.orbits is not None:
        found = find_orbits(setting, inverts=entry.inverts)
        if found is not None:
            try:
                return entry.orbits(setting, found)
            except NotReducibleError:
                pass
    return entry.whole(setting)


def register_field(field: Field) -> None:
    """Make a field known by its name to all that takes a ``decoder``, in this process.

    `gradient_flow` integrates it by every method, `sgd` climbs its ``step``, and `gradient_flow_ensemble` takes it with
    a sequence of data; results are saved with the origin of its code. A call that needs more parts refuses it by name.
    Worker processes of ``yzflow.sweep`` get the fields registered here that are defined at the top level of a module or
    a script.

    Parameters
    ----------
    field : Field
        One of the same name and module is replaced, as when a cell of a notebook runs again.

    Raises
    ------
    ValueError
        If it is no Field, or its name is that of a built-in one or of one of another module.
    """
    register(checks.instance("field", field, Field))


def fields() -> dict[str, tuple[str, ...]]:
    """The parts of each field, by name: the built-in ones, then those that were registered.

    "derivative" have all. "orbits": symmetry reduces it; "step": `sgd` takes it; "lanes": ensembles of Theorem 4's
    setting go side by side; "noise": `stochastic_flow` takes it, and with a step `gradient_noise`; "kernel" and
    "factors": steps of its own for small and for large layers.

    Examples
    --------
    >>> fields()["theory"]
    ('derivative', 'orbits', 'lanes', 'noise')
    """
    return {name: entry.parts for name, entry in SYSTEMS.items()}
