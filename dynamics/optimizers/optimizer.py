"""Steps of a gradient, and their limit at small learning rates.

Each option is implemented twice, side by side: `ascend` for SGD, `velocity` for the flow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import numpy as np

from dynamics._model.weights import Weights
from dynamics.optimizers.table import RULES, UpdateRule
from dynamics.support import checks, raised
from dynamics.support.frozen import changed
from dynamics.support.origins import described

OPTIMIZERS = tuple(RULES)
DECAYS = ("constant", "cosine", "linear")
MOMENTUM = 0.9
BETAS = (0.9, 0.999)
EPSILON = 1e-8
# Added to the norm, as PyTorch's clip_grad_norm_ does.
CLIP_FLOOR = 1e-6


@dataclass(frozen=True)
class Schedule:
    """A factor of the learning rates over time: a linear warm-up, then a decay.

    With w = ``warm_up``, S = ``steps`` and a = ``floor`` the factor is ``t / w`` for t < w, and for w <= t <= S, with
    ``x = (t - w) / (S - w)``: one ("constant"), ``a + (1 - a) (1 + cos(pi x)) / 2`` ("cosine"), or
    ``1 - (1 - a) x`` ("linear"); a after S. Step k of SGD, from 0, has the factor of t = k: the schedules of optax
    (`warmup_cosine_decay_schedule`, `linear_schedule`).

    Parameters
    ----------
    warm_up : float
        Steps until the learning rates have their full size.
    decay : "constant", "cosine" or "linear"
    steps : float, optional
        The step at which the decay ends. Default: the end of the run.
    floor : float
        In [0, 1]: the factor at the end of the decay.

    Raises
    ------
    ValueError
        If an argument is invalid.
    """

    warm_up: float = 0.0
    decay: str = "constant"
    steps: float | None = None
    floor: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "warm_up", checks.non_negative("warm_up", self.warm_up))
        checks.one_of("decay", self.decay, DECAYS)
        floor = checks.non_negative("floor", self.floor)
        if floor > 1:
            raise checks.reject("floor", "be at most 1", self.floor)
        object.__setattr__(self, "floor", floor)
        if self.decay == "constant":
            for name, default in (("steps", None), ("floor", 0.0)):
                if getattr(self, name) != default:
                    raise checks.reject(name, "be left out without a decay", getattr(self, name))
        elif self.steps is not None:
            object.__setattr__(self, "steps", checks.positive("steps", self.steps))
            self._check_order()

    def _check_order(self) -> None:
        if self.steps is not None and self.steps <= self.warm_up:
            raise checks.reject("warm_up", f"be below the {self.steps:g} steps of the schedule", self.warm_up)

    def over(self, steps: float) -> Schedule:
        """The same schedule; ``steps`` is the end of its decay if it has none."""
        steps = checks.positive("steps", steps)
        if self.decay == "constant" or self.steps is not None:
            return self
        whole = changed(self, steps=steps)
        whole._check_order()
        return whole

    def __call__(self, t: float) -> float:
        """The factor at time t, in SGD steps."""
        t = checks.non_negative("t", t)
        if t < self.warm_up:
            return t / self.warm_up
        if self.decay == "constant":
            return 1.0
        x = min(1.0, (t - self.warm_up) / (self._end - self.warm_up))
        fall = 0.5 * (1 + math.cos(math.pi * x)) if self.decay == "cosine" else 1 - x
        return self.floor + (1 - self.floor) * fall

    def clock(self, t: float) -> float:
        r"""The integral of the factor from 0 to t.

        If all learning rates follow one schedule, a gradient flow is at time t where the flow with constant rates is at
        time ``clock(t)``. So a closed form for constant rates holds with ``clock(t)`` in the place of t.
        """
        t = checks.non_negative("t", t)
        rise = min(t, self.warm_up)
        area = 0.5 * rise * rise / self.warm_up if self.warm_up > 0 else 0.0
        rest = t - rise
        if self.decay == "constant":
            return area + rest
        span = self._end - self.warm_up
        x = min(1.0, rest / span)
        fall = 0.5 * (x + math.sin(math.pi * x) / math.pi) if self.decay == "cosine" else x - 0.5 * x * x
        return area + self.floor * rest + (1 - self.floor) * span * fall

    @property
    def _end(self) -> float:
        if self.steps is None:
            raise checks.reject("steps", f"be given for the decay {self.decay!r} outside a run", None)
        return self.steps


def _betas(name: str, value: object) -> tuple[float, ...]:
    betas = checks.listed(name, value, "be two numbers")
    if len(betas) != 2:
        raise checks.reject(name, "be two numbers", checks.brief(value))
    return tuple(checks.below(name, beta, 1) for beta in betas)


def _schedule(name: str, value: object) -> object:
    if not callable(value):
        raise checks.reject(name, "be a Schedule or a function of the step", checks.brief(value))
    return value


_OPTIONS: dict[str, checks.Check] = {
    "momentum": partial(checks.below, bound=1),
    "weight_decay": checks.optional(checks.non_negative),
    "decoupled": checks.optional(checks.flag),
    "schedule": checks.optional(_schedule),
    "clip": checks.optional(checks.positive),
    "betas": _betas,
    "epsilon": checks.positive,
}


@dataclass(frozen=True)
class Optimizer:
    """How `sgd` makes a step of a gradient, and which flow `gradient_flow` integrates.

    Let g be the gradient of J on the batch, all weights together. In this order:

    1. ``clip``: g <- g min(1, clip / (||g||_2 + 1e-6)), as in PyTorch's ``clip_grad_norm_``.
    2. ``weight_decay``, coupled: g <- g - lambda W.
    3. "sgd": v <- momentum v + g, direction v; "sign": direction sign(v); "adam" (Kingma and Ba 2015) and "adamw":
       direction m^ / (sqrt(v^) + epsilon), with bias correction.
    4. With ``eta(k) = eta schedule(k)``, ``weight_decay``, decoupled ("adamw", or ``decoupled``): W <- (1 - eta(k)
       lambda) W; then W <- W + eta(k) direction.

    The flow, where t counts steps, is dW/dt = eta(t) (d - lambda W), with the second term only if the decay is
    decoupled. Let g be the clipped and decayed vector field. Without momentum d = g; with momentum d = v, where dv/dt =
    g - (1 - momentum) v from v = 0; for "sign" d = sign(v), with a solution in the usual sense until an entry of v
    stays at zero; for "adam" and "adamw" d = g / (\\|g\\| + epsilon), their limit for constant betas. To first order in
    eta and after the first 1/(1 - momentum) steps, momentum is a factor 1/(1 - momentum) of the learning rates:
    `Solver(momentum="first order")`.

    Parameters
    ----------
    name : "sgd", "adam", "adamw" or "sign"
    momentum : float
        In [0, 1); not used by "adam" and "adamw".
    weight_decay : float, optional
        lambda >= 0, of all weights that are trained. Default: 0, but 0.01 for "adamw", as in PyTorch.
    decoupled : bool, optional
        Whether the decay is a factor of the weights, outside momentum (Loshchilov and Hutter 2019). Default: for
        "adamw" only.
    schedule : Schedule or callable, optional
        A factor of all learning rates at a step from 0, or a time: a `Schedule`, or any function of a number. Default:
        one.
    clip : float, optional
        Largest norm of the gradient of all weights that are trained. A column of Y counts once for each next token that
        shares it. Default: none.
    betas : pair of floats
        For "adam" and "adamw".
    epsilon : float
        For "adam" and "adamw".

    Raises
    ------
    ValueError
        If an argument is invalid, or does not belong to this optimizer.
    """

    name: str = "sgd"
    momentum: float = MOMENTUM
    weight_decay: float | None = None
    decoupled: bool | None = None
    schedule: Schedule | Callable[[float], float] | None = None
    clip: float | None = None
    betas: tuple[float, float] = BETAS
    epsilon: float = EPSILON

    def __init_subclass__(cls, **more: Any) -> None:
        # Overrides in a subclass would never be called: steps, flows and compiled code are in the table.
        raise TypeError("`Optimizer` has no rule to override: another one is an entry of dynamics/optimizers/table.py")

    def __post_init__(self) -> None:
        checks.one_of("optimizer", self.name, RULES)
        values, rule = checks.each(_OPTIONS, vars(self)), self.rule
        if values["weight_decay"] is None:
            values["weight_decay"] = rule.decay
        if values["decoupled"] is None:
            values["decoupled"] = rule.decoupled
        if rule.moments and values["decoupled"] != rule.decoupled:
            usual = "be left out for 'adam', and for 'adamw', which is its decoupled form"
            raise checks.reject("decoupled", usual, values["decoupled"])
        if self.decoupled and values["weight_decay"] == 0 and not rule.decoupled:
            raise checks.reject("decoupled", "be left out without weight decay", self.decoupled)
        for name, default in (("betas", BETAS), ("epsilon", EPSILON)):
            if not rule.moments and values[name] != default:
                raise checks.reject(name, f"be left out for {self.name!r}", values[name])
        vars(self).update(values)

    @property
    def rule(self) -> UpdateRule:
        """Its entry in the table."""
        return RULES[self.name]

    @cached_property
    def plain(self) -> bool:
        """True if the optimizer has no further options and the kernels have its steps."""
        return self.rule.kernel is not None and not self._options and self.schedule is None

    @property
    def _options(self) -> dict[str, Any]:
        """Options that differ from the defaults of the rule, without the schedule."""
        rule = self.rule
        usual: dict[str, Any] = {"weight_decay": rule.decay, "decoupled": rule.decoupled, "clip": None}
        usual |= {"betas": BETAS, "epsilon": EPSILON}
        return {name: getattr(self, name) for name, default in usual.items() if getattr(self, name) != default}

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters for a record; `Optimizer.of` inverts this, except for a schedule that is a function."""
        record: dict[str, Any] = {"momentum": self.momentum, "optimizer": self.name} | self._options
        if "betas" in record:
            record["betas"] = list(record["betas"])
        if isinstance(self.schedule, Schedule):
            record["schedule"] = {option.name: getattr(self.schedule, option.name) for option in fields(Schedule)}
        elif self.schedule is not None:
            record["schedule"] = described(self.schedule)
        return record

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Optimizer:
        """The optimizer of a run from the parameters that its trajectory records.

        Raises
        ------
        ValueError
            If its schedule was a function: only the name of the function is recorded.
        """
        checks.instance("parameters", parameters, Mapping)
        options = {option.name: parameters[option.name] for option in fields(cls) if option.name in parameters}
        schedule = parameters.get("schedule")
        if isinstance(schedule, str):
            raise checks.reject("schedule", "be a Schedule to be made again from what is recorded", repr(schedule))
        if schedule is not None:
            known = [option.name for option in fields(Schedule)]
            given = checks.instance("schedule", schedule, Mapping)
            options["schedule"] = Schedule(**{checks.one_of("schedule", name, known): given[name] for name in given})
        return cls(**options | {"name": parameters.get("optimizer", "sgd")})

    def over(self, steps: float) -> Optimizer:
        """The same optimizer; ``steps`` is the end of its schedule's decay if that has none."""
        steps = checks.positive("steps", steps)
        return changed(self, schedule=self.schedule.over(steps)) if isinstance(self.schedule, Schedule) else self

    def factor(self, t: float) -> float:
        """The factor of the learning rates at step or time t."""
        t = checks.non_negative("t", t)
        if self.schedule is None:
            return 1.0
        try:
            answer = self.schedule(t)
        except Exception as error:
            raised.note(error, f"the schedule {described(self.schedule)} at step {t:g}")
            raise
        value = checks.real("schedule", answer, rule=f"return a finite number at step {t:g}")
        if value < 0:
            raise checks.reject("schedule", f"return no negative number at step {t:g}", value)
        return value


def as_optimizer(optimizer: str | Optimizer, momentum: float, *needs: str) -> Optimizer:
    """The arguments ``optimizer`` and ``momentum`` of `sgd` as one; ``needs`` are those of `function_of`."""
    if not isinstance(optimizer, Optimizer):
        optimizer, momentum = Optimizer(optimizer, momentum), MOMENTUM
    for need in needs:
        function_of(optimizer, need)
    if momentum not in (MOMENTUM, optimizer.momentum):
        raise checks.reject("momentum", "be left out beside an Optimizer, which has its own", momentum)
    return optimizer


def _shrink(
    optimizer: Optimizer, slopes: Sequence[np.ndarray], rates: Sequence[float], multiplicity: np.ndarray | None
) -> float:
    """The factor by which clipping scales the gradient of the trained weights, as in PyTorch."""
    if optimizer.clip is None:
        return 1.0
    total = 0.0
    for k, (slope, rate) in enumerate(zip(slopes, rates, strict=True)):
        if slope.size and rate > 0:
            total += float((slope**2 @ multiplicity).sum() if k == 1 and multiplicity is not None else (slope**2).sum())
    return min(1.0, optimizer.clip / (math.sqrt(total) + CLIP_FLOOR))


def ascend(
    optimizer: Optimizer,
    weights: Sequence[np.ndarray],
    slopes: Sequence[np.ndarray],
    moments: tuple[Sequence[np.ndarray], Sequence[np.ndarray]],
    *,
    rates: Sequence[float],
    multiplicity: np.ndarray | None,
    step: int,
) -> None:
    """Take step number ``step``, from 0: changes weights and velocity or moments in place.

    ``slopes`` is the gradient of J with respect to each array; of ``moments`` the first is the velocity of an optimizer
    without moments, whose second is not used. ``multiplicity`` is the number of next tokens that share
    each column of Y, the second array; None if the arrays are not those of a layer.
    """
    shrink, factor = _shrink(optimizer, slopes, rates, multiplicity), optimizer.factor(step)
    decay = optimizer.weight_decay or 0.0
    direction = function_of(optimizer, "direction")
    for array, slope, m, v, rate in zip(weights, slopes, *moments, rates, strict=True):
        if not array.size:
            continue
        eta = float(rate) * factor
        gradient = shrink * slope
        if decay and not optimizer.decoupled:
            gradient -= decay * array
        change = direction(optimizer, gradient, m, v, step)
        if optimizer.decoupled:
            array *= 1 - eta * decay
        array += eta * change


def function_of(optimizer: Optimizer, name: str) -> Callable[..., np.ndarray]:
    """The "direction" of an optimizer's steps, or its "flow", their limit at small learning rates.

    Raises
    ------
    ValueError
        If its entry in the table lacks it.
    """
    function: Callable[..., np.ndarray] | None = getattr(optimizer.rule, name)
    if function is None:
        known = [other for other, rule in RULES.items() if getattr(rule, name) is not None]
        raise checks.lacks("optimizer", {"direction": "a step", "flow": "a flow"}[name], optimizer.name, known)
    return function


def velocity(
    optimizer: Optimizer,
    weights: Weights,
    slopes: Weights,
    momenta: Weights | None,
    *,
    rates: Sequence[float],
    multiplicity: np.ndarray,
    t: float,
) -> tuple[Weights, Weights | None]:
    """The rates of change of weights and momenta in the flow of `ascend`.

    Without ``momenta``, momentum multiplies the direction by 1/(1 - momentum) if the rule ``gathers``.
    """
    shrink, factor = _shrink(optimizer, slopes, rates, multiplicity), optimizer.factor(t)
    decay, flow = optimizer.weight_decay or 0.0, function_of(optimizer, "flow")
    moved, pushed = [], []
    for k, (array, slope, rate) in enumerate(zip(weights, slopes, rates, strict=True)):
        gradient = shrink * slope
        if decay and not optimizer.decoupled:
            gradient -= decay * array
        direction = gradient
        if momenta is not None:
            direction = momenta[k]
            pushed.append(gradient - (1 - optimizer.momentum) * direction)
        elif optimizer.rule.gathers and optimizer.momentum > 0:
            direction = gradient / (1 - optimizer.momentum)
        direction = flow(optimizer, direction)
        if optimizer.decoupled:
            direction = direction - decay * array
        moved.append(rate * factor * direction)
    return Weights(*moved), Weights(*pushed) if momenta is not None else None
