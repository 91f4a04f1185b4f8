"""Enclosing: flows of populations and of readers, followed in ball arithmetic as far as possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamics.bags import Bags
from dynamics.support import checks
from dynamics.support.progress import Progress
from yzflow_enclose.certified import environment
from yzflow_enclose.enclosure import Enclosure
from yzflow_enclose.fields import DECODERS
from yzflow_enclose.flows import FlowReading
from yzflow_enclose.limits import Limits
from yzflow_enclose.march import march
from yzflow_enclose.populations import OfPopulation
from yzflow_enclose.reading import Population, read


def enclose_flow(
    data: Bags | Population,
    *,
    eta_y: float,
    eta_z: float,
    t_end: float,
    decoder: str = "full",
    bits: int = 100,
    max_steps: int = 20_000,
    max_seconds: float | None = None,
    progress: bool = False,
) -> Enclosure:
    r"""Enclose the gradient flow from a zero start: balls that hold it at every time up to ``t_end``.

    The flow is that of `dynamics.gradient_flow`, with the same arguments, and the result is a theorem about it, not a
    measurement: each step has a polynomial p, a bound of its defect p' - f(p), and a bound of the logarithmic norm of
    the Jacobian of f on a tube around p, all in ball arithmetic (Arb, by python-flint). They bound the distance of the
    solution to p at every time.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
        Classes that are copies of each other to the last bit, with common tokens in all of them (Theorem 4's setting,
        Syn-Small), at any K and M; or a population of at most 200 variables. Its numbers are taken as exact binary
        fractions.
    eta_y, eta_z : float
        Learning rates per step, positive.
    t_end : float
        Last time, in SGD steps.
    decoder : "full", "modified" or "theory"
    bits : int
        Relative size of the truncation error of a step is 2^-bits; from 30 to 400.
    max_steps : int
    max_seconds : float, optional
        The time after which it stops short of ``t_end``.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    Enclosure
        If ``complete`` is False, ``t_reached`` and ``reason`` say how far it goes and why. Raises ------ ValueError If
        an argument is invalid, or the population has too many variables.

    Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Sections 3-5 and Appendix D. The method is that of a
    logarithmic norm on a tube (Dahlquist 1958) with Taylor polynomials.

    Examples
    --------
    >>> from dynamics import SequenceClasses
    >>> classes = SequenceClasses.single_common_token(10, 1000)
    >>> flow = enclose_flow(classes, eta_y=1.0, eta_z=0.5, t_end=100.0, decoder="theory", bits=50)
    >>> flow.holds(lambda at: (at.velocity(0, 0) < 0) & (at.velocity(0, 1) > 0))
    True
    """
    rates = {"eta_y": checks.positive("eta_y", eta_y), "eta_z": checks.positive("eta_z", eta_z)}
    decoder = checks.one_of("decoder", decoder, DECODERS)
    limits = Limits.of(t_end, bits, max_steps, max_seconds, progress)
    return _enclosed(OfPopulation(read(data, decoder=decoder, **rates)), limits)


def enclose(
    flow: Any,
    *,
    t_end: float,
    start: Mapping[str, Any] | None = None,
    bits: int = 100,
    max_steps: int = 20_000,
    max_seconds: float | None = None,
    progress: bool = False,
) -> Enclosure:
    r"""Enclose the solution of your own flow: balls that hold it at every time up to ``t_end``, whatever the rounding.

    The flow is :math:`x' = f(t, x)` with ``initial``, a mapping of names to arrays, and a method
    ``derivative(t, state)``, which gives the velocity of each named state: a `dynamics.Flow`. It is written once, in
    numpy: here it gets arrays of power series in balls, on which numpy's ``exp``, ``log``, ``tanh``, sums and ``@``
    work. Further functions are in `yzflow_enclose`: `erf`, `sigmoid`, `softmax` and others. If the derivative is
    compiled, or calls other libraries, the flow needs the same function in numpy, as ``field(t, state)``. The
    derivative is enclosed if balls can compute it, and otherwise the field. The floats of both are compared with the
    enclosed function at drawn times and points along the run and beside it. Floats in either are taken as exact binary
    fractions. A field with a kink, a branch or a table is refused.

    Parameters
    ----------
    flow : object
        With ``initial`` and ``derivative`` or ``field``, or both, if they are the same function.
    t_end : float
        Last time, in the flow's unit; the first is zero.
    start : mapping, optional
        Other values of some states at t = 0: floats, which are exact, or balls (`yzflow_enclose.ball`). With balls, all
        solutions from them are enclosed at once.
    bits : int
        Relative size of the truncation error of a step is 2^-bits; from 30 to 400.
    max_steps : int
    max_seconds : float, optional
        The time after which it stops short of ``t_end``.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    Enclosure
        As far as it goes: if ``complete`` is False, then ``t_reached`` and ``reason`` say how far and why.

    Raises
    ------
    ValueError
        If an argument is invalid; if the flow has no field that balls can compute, or none that is finite at the start;
        or if its field differs between balls and floats, or from its derivative.

    Source: the logarithmic norm on a tube (Dahlquist 1958) with Taylor polynomials.

    Examples
    --------
    >>> import numpy as np
    >>> class Logistic:
    ...     initial = {"x": 0.25}
    ...     def field(self, t, state):
    ...         return {"x": state["x"] * (1 - state["x"])}
    >>> found = enclose(Logistic(), t_end=2.0, bits=60)
    >>> found.holds(lambda at: (at.velocity["x"] > 0) & (at.state["x"] < 0.72))
    True
    """
    limits = Limits.of(t_end, bits, max_steps, max_seconds, progress)
    reading = FlowReading(flow, start, t_end=limits.t_end)
    return _enclosed(reading, limits)


def _enclosed(reading: OfPopulation | FlowReading, limits: Limits) -> Enclosure:
    t_end, bits = limits.t_end, limits.bits
    with Progress(f"enclosing the flow ({reading.name})", enabled=limits.progress) as report:
        found = march(
            reading.field,
            t_end,
            bits,
            limits.max_steps,
            limits.max_seconds,
            lambda t: report.update(t / t_end, f"at t = {t:.4g} of {t_end:g}"),
            reading.start,
        )
    if isinstance(reading, FlowReading) and (error := reading.differs(found.steps)) is not None:
        raise error
    reason = found.reason
    if reason and isinstance(reading, FlowReading):
        reason += reading.pace(found.steps, bits)
    made_by = environment()
    return Enclosure(reading, found.steps, t_end=t_end, bits=bits, reason=reason, environment=made_by)


def enclosed_again(made: Enclosure, *, progress: bool = False) -> Enclosure:
    """The flow of ``made`` enclosed anew as far as that came, with its predicates decided anew."""
    limits = Limits.of(made.t_end, made.bits, max(1, len(made.steps)), None, progress)
    again = _enclosed(made.opened(), limits)
    for predicate in made.predicates:
        again.record(predicate, until=predicate.until)
    return again
