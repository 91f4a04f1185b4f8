"""How a flow is integrated."""

from __future__ import annotations

from dataclasses import dataclass

from dynamics.support import checks

# scipy's own DOP853 takes the steps of ours, without what makes these quick: it is there to hold ours to.
METHODS = ("auto", "DOP853", "scipy DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")
TIME_SCALES = ("linear", "log")
REDUCTIONS = ("auto", "none")
MOMENTA = ("second order", "first order")


@dataclass(frozen=True)
class Solver:
    """How `gradient_flow` integrates; its tolerances are arguments of its own.

    Parameters
    ----------
    method : str
        "auto" is DOP853 until that finds the problem stiff, as a large eta_Z makes it at late times, and LSODA from
        there on where the state has at most 1000 numbers. "DOP853" takes the steps of `scipy.integrate.DOP853` by code
        of our own, which costs less between evaluations; "scipy DOP853" is scipy's. The others are methods of
        `scipy.integrate.solve_ivp`, by name. The attribute ``method`` of the trajectory says what was done.
    time_scale : "linear" or "log"
        Integrate in t or in log(1 + t). The flow slows down like a logarithm, so that "log" suits a large ``t_end``.
    reduce : "auto" or "none"
        "auto" integrates one variable for each orbit of logits where the population and the start are symmetric: where
        classes are copies of each other but for the names of their tokens, or tokens can be exchanged. The result is
        the same up to the tolerances; the cost does not depend on the number of copies. Not used with a value matrix,
        a hidden layer, an embedding, distributions as targets, another objective, temperature or normalisation, or an
        optimizer. See `dynamics.fields.symmetry`.
    momentum : "second order" or "first order"
        What an `Optimizer` with momentum is: a velocity with an equation of its own, or a factor 1/(1 - momentum) of
        the learning rates.

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


_USUAL = Solver()


def as_solver(solver: Solver | None) -> Solver:
    """The argument ``solver``, checked; None is the default."""
    if solver is None:
        return _USUAL
    if not isinstance(solver, Solver):
        raise checks.reject("solver", "be a Solver", type(solver).__name__)
    return solver
