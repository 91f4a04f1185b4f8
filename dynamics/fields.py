"""Fields of one's own: decoders from outside, beside the built-in ones.

A field is registered by the module that defines it, so that whoever imports that module has it. An installed
distribution offers one under its name by the entry point group ``yzflow.fields``, and nobody has to import anything.
"""

from __future__ import annotations

from dynamics._flow.registry import SYSTEMS, register
from dynamics._model.own import Field
from dynamics.support import checks

__all__ = ["Field", "fields", "register_field"]


def register_field(field: Field) -> None:
    """Make a field known by its name to all that takes a ``decoder``, in this process.

    `gradient_flow` integrates it by every method, `sgd` climbs its ``step``, and `gradient_flow_ensemble` takes it with
    a sequence of data; results are saved with where it came from. What needs more refuses it by name. Worker processes
    of ``yzflow.sweep`` get what is registered here, if it is defined at the top level of a module or a script.

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
    """What each field has, by name: the built-in ones, then those that were registered.

    "derivative" have all. "orbits": symmetry reduces it; "step": `sgd` takes it; "lanes": ensembles of Theorem 4's
    setting go side by side; "noise": `stochastic_flow` takes it, and with a step `gradient_noise`; "kernel" and
    "factors": steps of its own for small and for large layers.

    Examples
    --------
    >>> fields()["theory"]
    ('derivative', 'orbits', 'lanes', 'noise')
    """
    return {name: entry.parts for name, entry in SYSTEMS.items()}
