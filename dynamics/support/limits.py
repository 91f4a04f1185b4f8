"""Limits of memory, time and work: those of a `with` block, or the usual ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any

from dynamics.support import checks

_SECONDS = ("seconds_between_lines", "seconds_between_saves")


@dataclass(frozen=True, kw_only=True)
class Limits(ContextDecorator):
    """Limits that hold in a ``with`` block, or in the function that they decorate.

    They hold in its thread, and in the threads and processes that a call of yzflow starts. A limit that is not given is
    the usual one, in a block inside another, too. ``work``, ``numbers`` and ``members`` divide work into pieces: they
    change its pace, and of results at most the last digits.

    Attributes
    ----------
    memory : int, optional
        Bytes that a call may take: one that foresees more is refused. Default: those of the machine.
    tables : int
        Bytes of the tables of a trajectory: a larger one keeps observables in place of its states.
    data : int
        Bytes of an argument in a saved result: of a larger one it has the SHA-256.
    evaluations : int
        Evaluations of the derivative, after which a flow is given up: an hour or more.
    runs : int
        Runs of a sweep.
    work : int
        Multiplications in a call of the kernels, which Ctrl-C does not end.
    numbers : int
        Numbers in a temporary array.
    members : int
        Flows of an ensemble that are integrated together. A folder is continued with as many as it began with.
    seconds_between_lines, seconds_between_saves : float
        Time between two lines of progress, and between two files from which a training can go on.

    Examples
    --------
    >>> from dynamics import Limits, SequenceClasses, gradient_flow
    >>> with Limits(tables=1):
    ...     flow = gradient_flow(SequenceClasses.syn_small(), eta_y=1.0, eta_z=0.5, t_end=10.0)
    >>> "z" in flow.dataset.dims
    False
    """

    memory: int | None = None
    tables: int = 2**30
    data: int = 2**26
    evaluations: int = 10_000_000
    runs: int = 10_000_000
    work: int = 2**28
    numbers: int = 2**22
    members: int = 4096
    seconds_between_lines: float = 5.0
    seconds_between_saves: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name in _SECONDS:
                object.__setattr__(self, name, checks.non_negative(name, value))
            elif value is not None or field.default is not None:
                object.__setattr__(self, name, checks.integer(name, value, minimum=1))

    def __enter__(self) -> Limits:
        _entered.set((*_entered.get(), self))
        checks.MEMORY.set(self.memory)
        return self

    def __exit__(self, *exception: object) -> None:
        _entered.set(_entered.get()[:-1])
        checks.MEMORY.set(current().memory)


_entered: ContextVar[tuple[Limits, ...]] = ContextVar("limits", default=(Limits(),))


def current() -> Limits:
    """The limits that hold here."""
    return _entered.get()[-1]


def carried(function: Callable) -> Callable:
    """A function that runs under the limits of here in another thread, too."""
    limits = current()

    def under(*arguments: Any) -> Any:
        with limits:
            return function(*arguments)

    return under
