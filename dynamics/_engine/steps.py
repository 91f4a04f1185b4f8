"""`Solver`, and the steps of each method: DOP853 of `_engine.dop853`, and scipy's integrators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy  # imports its integrators on first use, which takes a third of a second

from dynamics._engine.dop853 import NOT_FINITE, Bind, Called, Dop853, Interpolant, Slopes
from dynamics.support import checks, raised

# "scipy DOP853" takes the same steps as ours, but slowly; it serves to check ours.
METHODS = ("auto", "DOP853", "scipy DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")
TIME_SCALES = ("linear", "log")
REDUCTIONS = ("auto", "none")
MOMENTA = ("second order", "first order")


@dataclass(frozen=True)
class Solver:
    """Options of the integrator in `gradient_flow`; tolerances are arguments of their own.

    Parameters
    ----------
    method : str
        "auto" is DOP853 until it finds the problem stiff, as with a large eta_Z at late times, and then LSODA if the
        state has at most 1000 numbers. "DOP853" takes the steps of `scipy.integrate.DOP853` by code
        of our own, which costs less between evaluations; "scipy DOP853" is scipy's. The others are methods of
        `scipy.integrate.solve_ivp`, by name. The attribute ``method`` of the trajectory says what was done.
    time_scale : "linear" or "log"
        Integrate in t or in log(1 + t). The flow slows down like a logarithm, so that "log" suits a large ``t_end``.
    reduce : "auto" or "none"
        "auto" integrates one variable for each orbit of logits where the population and the start are symmetric: where
        classes are copies of each other but for the names of their tokens, or tokens can be exchanged. The result is
        the same up to the tolerances; the cost does not depend on the number of copies. Not used with a value matrix,
        a hidden layer, an embedding, distributions as targets, another objective, temperature or normalisation, or an
        optimizer; nor with fewer than 48 classes by decoders that invert F^T F, where it gains little or nothing. See
        `dynamics.fields.symmetry`.
    momentum : "second order" or "first order"
        Form of an `Optimizer` with momentum: a velocity with its own equation, or a factor 1/(1 - momentum) of the
        learning rates.

    Raises
    ------
    ValueError
        If an argument is invalid.
    """

    method: str = "auto"
    time_scale: str = "linear"
    reduce: str = "auto"
    momentum: str = "second order"

    def __post_init__(self) -> None:
        checks.one_of("method", self.method, METHODS)
        checks.one_of("time_scale", self.time_scale, TIME_SCALES)
        checks.one_of("reduce", self.reduce, REDUCTIONS)
        checks.one_of("momentum", self.momentum, MOMENTA)


USUAL = Solver()


class FlowSteps(Protocol):
    """An integration on its way.

    Attributes
    ----------
    s : float
        Present value of the variable of integration.
    state : (n,) array
        State at s.
    method : str
        Method of the next step.
    trials : int or None
        Number of tried steps, rejected ones included; None if the method does not report it.
    switched : float or None
        The point at which another method took over.
    """

    switched: float | None

    @property
    def s(self) -> float: ...

    @property
    def state(self) -> np.ndarray: ...

    @property
    def method(self) -> str: ...

    @property
    def trials(self) -> int | None: ...

    def advance(self) -> str | None:
        """Take a step; returns None, or the reason if there is no further step."""

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        """The states at points within the last step: (points, size of the state)."""

    def interpolant(self) -> Interpolant:
        """`interpolate` for several calls before the next step."""


class ScipySteps:
    """The steps of a method of `scipy.integrate`, which reports why it cannot go on.

    `scipy.integrate.solve_ivp` would return no state at all then, and would not notice that LSODA steps on the spot.
    """

    _IDLE = 100
    switched: float | None = None

    def __init__(
        self,
        method: str,
        bind: Bind,
        end: float,
        initial: np.ndarray,
        options: Mapping[str, float],
        *,
        start: float = 0.0,
    ) -> None:
        self.s, self.state, self.method = start, initial, method
        place, out = np.empty_like(initial), np.empty_like(initial)
        evaluate = bind(place, out)

        def right_hand_side(s: float, state: np.ndarray) -> np.ndarray:
            np.copyto(place, state)
            evaluate(s)
            return out.copy()

        name = method.rpartition(" ")[2]  # "scipy DOP853" is DOP853 there
        solver = getattr(scipy.integrate, name, None)
        if not (isinstance(solver, type) and issubclass(solver, scipy.integrate.OdeSolver)):
            raise checks.reject("method", "be one that scipy.integrate has", repr(method))
        self._make = lambda: solver(right_hand_side, start, initial, end, **options)
        self._solver: Any = None

    def advance(self) -> str | None:
        """Take a step; returns None, or the reason if there is no further step."""
        for _ in range(self._IDLE):
            try:
                # The constructors of the implicit methods already form a Jacobian.
                self._solver = self._solver or self._make()
                message = self._solver.step()
            except (ValueError, np.linalg.LinAlgError) as error:  # an implicit method meets nan in its Jacobian
                if raised.is_own(error):
                    raise
                return str(error)
            if self._solver.status == "failed":
                return message or "the step failed"
            if not np.isfinite(self._solver.y).all():  # LSODA steps on with nan
                return NOT_FINITE
            if self._solver.t > self.s:
                self.s, self.state = self._solver.t, self._solver.y
                return None
        return "the step size is too small to advance the time"

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        """The states at points within the last step: (points, size of the state)."""
        return self.interpolant()(s)

    def interpolant(self) -> Interpolant:
        """`interpolate` for several calls before the next step."""
        dense = self._solver.dense_output()
        return lambda s: np.ascontiguousarray(dense(s).T)

    @property
    def trials(self) -> int | None:
        """Number of tried steps of an explicit method; None for others."""
        stages = getattr(self._solver, "n_stages", None)
        return None if stages is None or self.method == "Radau" else int(self._solver.nfev // stages)


def steps_of(
    method: str,
    bind: Bind,
    end: float,
    initial: np.ndarray,
    *,
    rtol: float,
    atol: float,
    start: float = 0.0,
    slopes: Slopes | None = None,
) -> FlowSteps:
    """The integration by a method of `METHODS` from ``start``.

    ``slopes`` are those of DOP853: `Called` ones unless others suit the derivative. "auto" goes on with LSODA where
    that finds the problem stiff. Radau and BDF were tried in its place: at eta_Z = 10,000 eta_Y and ln t = 50 they took
    a hundred times as long.
    """
    tolerances = {"rtol": rtol, "atol": atol}

    def of_scipy(name: str, start: float, state: np.ndarray) -> FlowSteps:
        return ScipySteps(name, bind, end, state, tolerances, start=start)

    if method not in ("auto", "DOP853"):
        return of_scipy(method, start, initial)
    slopes = Called(bind, initial.size) if slopes is None else slopes
    implicit = partial(of_scipy, "LSODA") if method == "auto" else None
    return Dop853(slopes, end, initial, rtol=rtol, atol=atol, start=start, implicit=implicit)
