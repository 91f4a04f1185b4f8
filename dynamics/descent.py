"""Stochastic gradient descent on the reparameterised matrices: discrete steps on finite sequences."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np

from dynamics._engine.sgd import together
from dynamics._engine.sgd.run import DTYPES, Outcome, SgdRun, checked, spawn
from dynamics._model.feed import Source, source_of
from dynamics._model.objective import Objective
from dynamics.bags import Bags, Data
from dynamics.layer import Layer
from dynamics.optimizers.optimizer import MOMENTUM, OPTIMIZERS, Optimizer, Schedule
from dynamics.support import checks
from dynamics.support.calls import Call
from dynamics.support.errors import DivergenceError
from dynamics.support.limits import carried
from dynamics.support.progress import Progress
from dynamics.trajectory import Trajectory

__all__ = [
    "ARGUMENTS",
    "DTYPES",
    "MOMENTUM",
    "OPTIMIZERS",
    "DivergenceError",
    "Optimizer",
    "Outcome",
    "Schedule",
    "complete",
    "sgd",
    "sgd_many",
    "spawn",
]


def sgd(
    data: Data,
    *,
    eta_y: float,
    eta_z: float,
    steps: int,
    batch_size: int | None = 128,
    length: int | None = 128,
    momentum: float = MOMENTUM,
    optimizer: str | Optimizer = "sgd",
    init: str | Layer = "zero",
    seed: int | np.random.SeedSequence = 0,
    record_every: int = 1,
    dtype: str = "float64",
    progress: bool = False,
    eta_v: float | None = None,
    position_bias: float | Sequence[float] = 0.0,
    eta_hidden: float | None = None,
    objective: Objective | None = None,
    evaluate: Bags | None = None,
    decoder: str = "full",
    replacement: bool = True,
) -> Trajectory:
    r"""Train the layer by mini-batch gradient steps on the objective J of (2).

    Each step draws ``batch_size`` sequences: a class by its weight, then ``length - 1`` independent contextual tokens
    from its probabilities (Tian et al. 2023, arXiv 2305.16380, Section 3.2); or, from a finite data set of bags,
    ``batch_size`` of them by their weights. The gradient is that of
    Lemma 1 (3), averaged over the batch, by the kernel that `gradient_flow` uses. The `Optimizer`
    makes a step of it.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
        Bags are the sequences themselves; a population gives the probabilities that sequences are drawn from.
    eta_y, eta_z : float
        Learning rates per step. 0 freezes Y, or Z, at its start.
    steps : int
        Number of steps.
    batch_size : int or None
        Bags a step; None takes all of ``data`` at each step, without drawing.
    length : int or None
        T of each sequence, query included. None is the limit T -> infinity, each bag of the population as it is. Bags
        given as ``data`` are used as they are and must not be longer.
    momentum : float
        In [0, 1); not used by "adam" and "adamw", and left out beside an `Optimizer`, which has its own.
    optimizer : "sgd", "adam", "adamw", "sign" or Optimizer
        An `Optimizer` has weight decay, a schedule of the learning rates, and clipping besides. With these, and with
        "adamw" and "sign", a step costs at least (rows of Z and Y) x (columns), whatever its batch.
    init : "zero", "uniform" or Layer
        "zero": Y = Z = 0, with one column of Y for all next tokens that never occur. "uniform": every entry of Z and Y
        uniform in +-1/sqrt(M).
    seed : int or numpy.random.SeedSequence
        Same seed, same result, whatever runs beside it, on processors of the same kind.
    record_every : int
        Steps between recorded states; the first and the last state always are.
    dtype : "float64" or "float32"
        Precision of the state and the gradient.
    progress : bool
        Show progress on standard error.
    eta_v : float, optional
        Learning rate of the value matrix, if ``init`` has one; 0 keeps it fixed. Default: ``eta_y``.
    position_bias : float or sequence of float
        Slope b >= 0 of a linear bias (Section 7 of the paper): the token at distance j = 0, 1, .. before the last
        contextual one has b j subtracted from its attention logit. Of T - 1 numbers b_j, the j-th is subtracted.
    eta_hidden : float, optional
        Learning rate of the hidden layer, if ``init`` has one; 0 keeps it fixed. Default: ``eta_y``.
    objective : Objective, optional
        What is descended on: criterion, label smoothing, terms; and temperature and normalisation of the layer.
        Default: the cross-entropy (2).
    evaluate : Bags, optional
        What ``loss`` and ``attention`` are measured on at each record. Default: the whole population or data, which
        takes long where these are large.
    decoder : "full", "modified", or the name of a `Field` with a step
        The decoder's gradient. "full": that of Lemma 1 (3). "modified": that of Lemma 3 (26), which Theorems 1 and 5
        are about: f_n - F E' e_n in the place of f_n for each bag n of the batch, with E' = I - (F^T F)^{-1} and F the
        features of all classes, so that only row n of W = F^T Y moves while F stands still. It takes the bags of the
        population as they are (``length=None``) and costs a system of K equations a step. Batches are those of "full",
        seed by seed.
    replacement : bool
        Whether each sequence's class is drawn by the weights, independently of all others; or, where the weights are
        equal, in epochs, each class once in each, in random order. A batch may lie in several epochs.

    Returns
    -------
    Trajectory
        ``time`` counts steps; ``loss`` and ``attention`` are those of the population, ``batch_loss(step)`` is the loss
        of each mini-batch before its step. With the modified decoder, ``visits(time, bag)`` is what the shares of each
        bag in the batches add up to: the paper's N_n where a batch is one bag.

    The mean of a step differs from that of infinitely long sequences by O(1/T), and its covariance falls as
    1/``batch_size``: `gradient_noise` has both, and `stochastic_flow` the stochastic differential equation with them.

    A step costs (tokens of its sequences) x (columns of Y), and memory is taken for rows of Z and Y when they
    first occur. From 16 MiB a matrix on, recording changes results within round-off. Ctrl-C is heard between steps, of
    which one at a cost of 10^10 takes some seconds.

    Raises
    ------
    ValueError
        If an argument is invalid.
    DivergenceError
        If the loss stops being finite; it keeps what was recorded.
    """
    arguments = {name: value for name, value in locals().items() if name not in ("data", "progress")}
    run = SgdRun(data, **arguments)
    with Progress(str(run.parameters["optimizer"]), enabled=progress) as report:
        trajectory = run.go(report).trajectory()
    trajectory.call = Call("sgd", {"data": data, **arguments})
    return trajectory


def sgd_many(
    runs: Iterable[tuple[Data, dict]],
    *,
    observe: Callable[[Outcome], object] | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> list:
    """Many runs of `sgd` at once, in threads of this process.

    Neighbours with the modified decoder that differ in ``seed`` alone take their steps side by side, which is faster.

    Parameters
    ----------
    runs : iterable of (data, arguments)
        ``arguments`` are the keyword arguments of `sgd`, ``seed`` among them. Results do not depend on ``threads`` or
        on what else is in the list.
    observe : callable, optional
        What to keep of a run's `Outcome`. Default: the `Outcome`.
    threads : int, optional
        As many as fit in memory. Default: the number of cores.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    list
        One result a run, in order.

    Raises
    ------
    ValueError
        Before the first run, if an argument is unknown or invalid.
    DivergenceError
        If a loss stops being finite.
    """
    threads = os.cpu_count() or 1 if threads is None else checks.threads("threads", threads)
    if observe is not None:
        checks.function("observe", observe)
    prepared = []
    for run in checks.listed("runs", runs, "be pairs of data and arguments of `sgd`"):
        if not (isinstance(run, (tuple, list)) and len(run) == 2 and isinstance(run[1], Mapping)):
            raise checks.reject("runs", "be pairs of data and arguments of `sgd`", checks.brief(run))
        data, arguments = run
        arguments = complete({"record_every": arguments.get("steps", 1), **arguments}, name="runs")
        prepared.append((source_of(data), arguments))

    def some(tasks: Sequence[tuple[Source, dict]]) -> list:
        outcomes = (run.outcome() for run in together.go(tasks))
        return [outcome if observe is None else observe(outcome) for outcome in outcomes]

    results: list = []
    groups = list(together.groups(prepared))
    # One thread is this one: to start another takes as long as a hundredth of a short run, and waits for it.
    several = min(threads, len(groups)) > 1
    with Progress("sgd", enabled=progress) as report, ThreadPoolExecutor(threads) if several else nullcontext() as pool:
        try:
            for found in map(some, groups) if pool is None else pool.map(carried(some), groups):
                results += found
                report.update(len(results) / len(prepared), f"run {len(results)} of {len(prepared)}")
        except BaseException:
            if pool is not None:
                pool.shutdown(cancel_futures=True)
            raise
    return results


_REQUIRED = ("eta_y", "eta_z", "steps")
_DEFAULTS = {name: value for name, value in (sgd.__kwdefaults__ or {}).items() if name != "progress"}
ARGUMENTS = (*_REQUIRED, *_DEFAULTS)


def complete(arguments: Mapping[str, object], *, name: str = "arguments") -> dict[str, Any]:
    """Keyword arguments of `sgd`, checked as far as they are numbers or words, with the defaults filled in.

    Raises
    ------
    ValueError
        If one is unknown, missing or invalid; ``name`` is what the message calls them.
    """
    for argument in arguments:
        if argument not in ARGUMENTS:
            raise checks.reject(name, f"have arguments of `sgd` ({', '.join(ARGUMENTS)})", repr(argument))
    for argument in _REQUIRED:
        if argument not in arguments:
            raise checks.reject(name, f"have the arguments {', '.join(_REQUIRED)}", f"none called {argument!r}")
    whole = _DEFAULTS | dict(arguments)
    found = whole | {name: value for name, value in checked(whole)[0].items() if name in whole}
    if isinstance(whole["optimizer"], Optimizer):
        found |= {name: whole[name] for name in ("optimizer", "momentum")}
    return found
