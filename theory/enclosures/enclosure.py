"""Enclosures of flows: balls that hold them at every time, proved in ball arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from dynamics.bags import Bags
from dynamics.support import checks, display, provenance
from dynamics.support.origins import Code
from dynamics.support.progress import Progress
from theory.enclosures import certificate
from theory.enclosures.crossings import Crossing, locate
from theory.enclosures.decisions import Decision, decide
from theory.enclosures.fields import DECODERS
from theory.enclosures.flows import FlowReading
from theory.enclosures.march import check_steps, march
from theory.enclosures.populations import OfPopulation
from theory.enclosures.quantities import Claim, Quantity, every
from theory.enclosures.reading import Population, read
from theory.enclosures.stepping import GUARD, Step, precision
from theory.enclosures.stored import FEWEST_BITS, MOST_BITS, StoredFlow, check_steps_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynamics.support.display import Labels, Style


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
        Classes that are copies of each other, with common tokens in all of them (Theorem 4's setting, Syn-Small), at
        any K and M; or a population of at most 200 variables. Its numbers are taken as the exact binary fractions that
        they are; counts of copies that agree to 1e-12 are taken for those of the first class.
    eta_y, eta_z : float
        Learning rates per step, positive.
    t_end : float
        Last time, in SGD steps.
    decoder : "full", "modified" or "theory"
    bits : int
        Relative size of the truncation error of a step is 2^-bits; from 30 to 400.
    max_steps : int
    max_seconds : float, optional
        Where to stop short of ``t_end``.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    Enclosure
        As far as it goes: if ``complete`` is False, then ``t_reached`` and ``reason`` say how far and why.

    Raises
    ------
    ValueError
        If an argument is invalid, or the population has too many variables.

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
    limits = _Limits.of(t_end, bits, max_steps, max_seconds, progress)
    return _enclosed(OfPopulation(read(data, decoder=decoder, **rates)), decoder, limits)


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
    numpy: here it gets arrays of objects that are power series in balls, and numpy's ``exp``, ``log``, ``tanh``, sums
    and ``@`` work on them. What numpy lacks is in `theory.enclosures`: `erf`, `sigmoid`, `softmax` and others. A
    derivative that is compiled, or calls other libraries, needs the same in numpy beside it, as ``field(t, state)``.
    Floats in either are the binary fractions that they are. A field with a kink, a branch or a table is refused.

    Parameters
    ----------
    flow : object
        With ``initial`` and ``derivative`` or ``field``. If it has both, they are compared at two points.
    t_end : float
        Last time, in the flow's unit; the first is zero.
    start : mapping, optional
        Other values of some states at t = 0: floats, which are exact, or balls (`theory.enclosures.ball`): then all
        solutions from these balls are enclosed at once.
    bits : int
        Relative size of the truncation error of a step is 2^-bits; from 30 to 400.
    max_steps : int
    max_seconds : float, optional
        Where to stop short of ``t_end``.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    Enclosure
        As far as it goes: if ``complete`` is False, then ``t_reached`` and ``reason`` say how far and why.

    Raises
    ------
    ValueError
        If an argument is invalid, or the flow has no field that balls can compute, or none that is finite at the start.

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
    limits = _Limits.of(t_end, bits, max_steps, max_seconds, progress)
    reading = FlowReading(flow, start, t_end=limits.t_end)
    return _enclosed(reading, reading.title, limits)


@dataclass(frozen=True)
class _Limits:
    t_end: float
    bits: int
    max_steps: int
    max_seconds: float | None
    progress: bool

    @classmethod
    def of(cls, t_end: float, bits: int, max_steps: int, max_seconds: float | None, progress: bool) -> _Limits:
        progress = checks.flag("progress", progress)
        t_end = checks.positive("t_end", t_end)
        bits = checks.integer("bits", bits, minimum=FEWEST_BITS)
        if bits > MOST_BITS:
            raise checks.reject("bits", f"be at most {MOST_BITS}", bits)
        max_steps = checks.integer("max_steps", max_steps, minimum=1)
        if max_seconds is not None:
            max_seconds = checks.positive("max_seconds", max_seconds)
        return cls(t_end, bits, max_steps, max_seconds, progress)


def _enclosed(reading: OfPopulation | FlowReading, what: str, limits: _Limits) -> Enclosure:
    t_end, bits = limits.t_end, limits.bits
    with Progress(f"enclosing the flow ({what})", enabled=limits.progress) as report:
        found = march(
            reading.field,
            t_end,
            bits,
            limits.max_steps,
            limits.max_seconds,
            lambda t: report.update(t / t_end, f"at t = {t:.4g} of {t_end:g}"),
            reading.start,
        )
    reason = found.reason
    if reason and isinstance(reading, FlowReading):
        reason += reading.pace(found.steps, bits)
    environment = provenance.environment()
    return Enclosure(reading, found.steps, t_end=t_end, bits=bits, reason=reason, environment=environment)


class Enclosure:
    """A flow in balls, from `enclose`, `enclose_flow` or `load`.

    One of your own flow that was loaded imports the flow's code and verifies itself before it answers anything.

    Attributes
    ----------
    t_end, t_reached : float
        How far was asked for, and how far it holds.
    reason : str
        Why it ends before ``t_end``; empty if it does not.
    bits : int
    steps : tuple of Step
        A polynomial and a radius each.
    environment : mapping
        Versions, processor and code that it was made with; empty where a file does not say.
    fault : str
        Why the last `verify` said False.
    """

    def __init__(
        self,
        reading: OfPopulation | FlowReading | StoredFlow,
        steps: Sequence[Step],
        *,
        t_end: float,
        bits: int,
        reason: str,
        environment: Mapping[str, str] | None = None,
    ):
        self._reading = reading
        self.steps = tuple(steps)
        self.t_end, self.bits, self.reason = t_end, bits, reason
        self.environment = dict(environment or {})
        self.fault = ""
        # What is read from a file is a claim about code that is elsewhere, until that was asked.
        self._trusted = not isinstance(reading, StoredFlow)
        self._loaded = not self._trusted
        self._tube: Any = None

    @property
    def t_reached(self) -> float:
        return self.steps[-1].end if self.steps else 0.0

    @property
    def complete(self) -> bool:
        """Whether it holds until ``t_end``."""
        return self.t_reached >= self.t_end

    @property
    def variables(self) -> int:
        """How many numbers the flow was reduced to."""
        return self._reading.variables

    def __repr__(self) -> str:
        short = "" if self.complete else f" of {self.t_end:g} ({self.reason})"
        short += "" if self._trusted else ", not yet verified"
        return (
            f"<Enclosure: {self._reading.title}, {self.variables} variables, {len(self.steps)} "
            f"steps to t = {self.t_reached:g}{short}>"
        )

    def _repr_html_(self) -> str:
        settings = self._reading.facts()
        short = "as far as was asked for" if self.complete else f"of {self.t_end:g}, since {self.reason}"
        facts = {
            "flow": f"{self._reading.name}, {self.variables} variables",
            "holds for": f"every t from 0 to {self.t_reached:g}, {short}",
            "steps": f"{len(self.steps):,}",
            "bits": self.bits,
            "largest radius of a step": max((step.radius for step in self.steps), default=0.0),
        }
        inner = display.table(["name", "value"], list(settings.items())[: display.ROWS], align="left")
        return display.page("Enclosure", facts, display.folded("settings", inner))

    def plot(
        self,
        name: str | None = None,
        *,
        next_token: int | None = None,
        n_times: int = 60,
        ax: Axes | None = None,
        labels: Labels | None = None,
        style: Style | None = None,
    ) -> Axes:
        """Draw a state of a flow, or attention on the tokens of one next token, with its radius as a band.

        The title has the largest radius at these times: mostly the band is thinner than any line. At most ten lines
        are drawn, of the tokens of the largest attention at the end, or the entries that move furthest. Times are in
        equal ratios for a population, equally far apart for a flow of named states.

        Parameters
        ----------
        name : str, optional
            A state of the flow. Default: the first. A population's flow has none.
        next_token : int, optional
            Default: the first of the population. A flow of named states has none.
        n_times : int
            At least 2, up to t_reached.
        ax : matplotlib Axes, optional
            Default: new ones, of a figure of pyplot's.
        labels : sequence or mapping, optional
            Text for tokens in the place of their names or numbers: from token 0 on, or by number or name. For the
            entries of a state: a sequence.
        style : str or mapping, optional
            A style of matplotlib, such as "ggplot", or settings of it.

        Returns
        -------
        matplotlib Axes
        """
        n_times = checks.integer("n_times", n_times, minimum=2)
        reading: Any = self._ready()
        what: Any
        if isinstance(reading, OfPopulation):
            if name is not None:
                raise checks.reject("name", "be left out for a population's flow", repr(name))
            what = reading.next_token(next_token)
        else:
            if next_token is not None:
                raise checks.reject("next_token", "be left out for a flow of named states", next_token)
            what = reading.state_name(name)
        if not self.steps:
            raise ValueError(f"`plot` needs an enclosure that holds for some time, but {self.reason}")
        if isinstance(reading, OfPopulation):
            times = np.geomspace(self.t_reached / 1000, self.t_reached, n_times)
        else:
            times = np.linspace(0.0, self.t_reached, n_times)
        times[-1] = self.t_reached  # which rounding may have passed
        with self.computing():
            drawn = reading.drawing([self.moment(time) for time in times.tolist()], times, what, labels)
        with display.styled(style):
            ax = display.axes(ax)
            drawn(ax)
        return ax

    def moment(self, start: float, end: float | None = None) -> Any:
        """The flow at a time, or on a span (start, end] within a step: a `Moment`, or a `FlowMoment`."""
        start = checks.real("start", start)
        end = start if end is None else checks.real("end", end)
        if end < start:
            raise checks.reject("end", f"not be before start, {start:g}", end)
        self._check_times(np.array([start, end]))
        with precision(self.bits + GUARD):
            return self._moment(float(start), float(end))

    def _moment(self, start: float, end: float) -> Any:
        reading = self._ready()
        if self._tube is None:
            self._tube = reading.tube(self.steps)
        return reading.moment(self._tube, start, end)

    def _ready(self) -> Any:
        """What the flow was read as; of a file, after every bound was computed again."""
        if not self._trusted and not self.verify():
            raise ValueError(f"the enclosure proves nothing: {self.fault}")
        return self._reading

    def at(self, t: float | Sequence[float] | np.ndarray) -> xr.Dataset:
        """The flow at times, with radii.

        Parameters
        ----------
        t : float or (n,) array
            From 0 to ``t_reached``.

        Returns
        -------
        xarray.Dataset
            The states of a flow by name, with ``time`` before their dimensions; of a population
            ``z(time, query, token)``, ``attention(time, next_token, token)`` and ``loss(time)``, as in a trajectory.
            And a radius of each, such as ``z_radius``: the flow is within them, for certain.
        """
        times = checks.finite_array("t", np.atleast_1d(checks.array("t", t)), ndim=1)
        self._check_times(times)
        moments = [self.moment(time) for time in times.tolist()]
        with self.computing():
            found = self._ready().dataset(moments, times)
        found.attrs = {"kind": found.attrs.pop("kind"), "bits": self.bits, **found.attrs}
        return found

    def computing(self) -> AbstractContextManager[None]:
        """The precision at which quantities of its moments are computed outside a predicate."""
        return precision(self.bits + GUARD)

    def _check_times(self, times: np.ndarray) -> None:
        outside = times[(times < 0) | (times > self.t_reached)]
        if outside.size:
            rule = f"lie in [0, {self.t_reached:g}]" + (
                "" if self.complete else f", where it ended since {self.reason}"
            )
            raise checks.reject("t", rule, outside[0])

    def decide(self, predicate: Callable[[Any], Any], *, until: float | None = None) -> Decision:
        """Decide a claim for all times 0 < t <= ``t_end``.

        Times are gone through from the first to the last, so that the answer False or None has a time ``reached`` up
        to which the claim is proved.

        Parameters
        ----------
        predicate : callable
            From a `Moment`, or a `FlowMoment`, to a `Claim`, which a comparison of quantities gives, or to an array of
            claims, all of which are meant.
        until : float, optional
            A last time before ``t_end``.

        Returns
        -------
        Decision
            True only if it is proved for every time, and the enclosure is complete; False with times where it fails.
        """
        checks.function("predicate", predicate)
        last = self.t_end if until is None else min(checks.positive("until", until), self.t_end)
        self._ready()
        with self.computing():
            return decide(lambda start, end: self._claim(predicate, start, end), self.steps, last)

    def _claim(self, predicate: Callable[[Any], Any], start: float, end: float) -> Claim:
        claim = predicate(self._moment(start, end))
        if isinstance(claim, np.ndarray) and all(isinstance(entry, Claim) for entry in claim.flat):
            return every(claim)
        if not isinstance(claim, Claim):
            raise checks.reject("predicate", "return a Claim, as comparisons of quantities are", repr(claim))
        return claim

    def holds(self, predicate: Callable[[Any], Any], *, until: float | None = None) -> bool | None:
        """Whether a claim is true at every time 0 < t <= ``t_end``; None if that stays open. See `decide`."""
        return self.decide(predicate, until=until).value

    def crossing(
        self, function: Callable[[Any], Quantity], *, between: tuple[float, float], rising: bool | None = None
    ) -> Crossing:
        """Enclose the one time in a bracket at which a function of the flow is zero.

        That there is exactly one is proved: on both sides of a short span the function has opposite signs at every
        time, and on the span its derivative in time has one sign.

        Parameters
        ----------
        function : callable
            From the moment to a quantity, such as ``lambda at: at.state["x"][0] - 1``. Of a flow of named states it may
            be a ``rate``, whose zero is a turning point.
        between : (float, float)
            The bracket (a, b] of times, within [0, t_reached].
        rising : bool, optional
            Ask for a zero at which the function rises (True) or falls (False): any other is refused.

        Returns
        -------
        Crossing
            With the span ``times``, or None and the ``reason``.
        """
        checks.function("function", function)
        ends = checks.finite_array("between", checks.array("between", between), ndim=1)
        if ends.size != 2 or not ends[0] < ends[1]:
            raise checks.reject("between", "be two times, the first before the second", checks.brief(between))
        self._check_times(ends)
        self._ready()
        if rising is not None:
            rising = checks.flag("rising", rising)
        edges = sorted({*ends.tolist(), *(step.end for step in self.steps if ends[0] < step.end < ends[1])})

        def value(start: float, end: float) -> Quantity:
            found = function(self._moment(start, end))
            if isinstance(found, np.ndarray) and found.ndim == 0:
                found = found.item()
            if not isinstance(found, Quantity):
                raise checks.reject("function", "return one quantity of the moment", checks.brief(found))
            return found

        with self.computing():
            return locate(value, edges, rising)

    def verify(self, flow: Any = None) -> bool:
        """Recompute every bound from the stored polynomials, and compare it with the stored radii.

        ``python -m yzflow.verify FILE`` does the same with code of its own, for a population. Your own flow is made
        again from its class and ``config()``, which must be imported or installed as a paper; `fault` and `changed`
        then say why not, and what has changed since.

        Parameters
        ----------
        flow : object, optional
            The flow that a file is of, where it cannot be imported, as that of a notebook.

        Raises
        ------
        ValueError
            If the code of the flow is not here, or it is another flow.
        """
        if isinstance(self._reading, StoredFlow):
            self._reading = self._reading.open(flow)
        elif flow is not None:
            raise checks.reject("flow", "be left out, as the enclosure has its flow", checks.brief(flow))
        self.fault = check_steps(self._reading.field, self.steps, self.bits, self._reading.start)
        self._trusted = not self._loaded or self.fault == ""
        return self.fault == ""

    @property
    def code(self) -> Code | None:
        """Whose code a flow of your own was made by, as the file says; None for a population."""
        return getattr(self._reading, "code", None)

    @property
    def changed(self) -> tuple[str, ...]:
        """What of your flow's code is not as it was when the file was written; nothing for a population."""
        pairs = sorted(self.code.factors().items()) if self.code else []
        return tuple(f"{name}: {then or 'none'} then, {now or 'none'} now" for name, (then, now) in pairs)

    def save(self, path: str | os.PathLike) -> None:
        """Write to an npz file with a SHA-256, completely or not at all.

        Of your own flow it holds names, its ``config()`` and hashes, and no code.

        Raises
        ------
        ValueError
            If the flow is your own and has no ``config()``.
        OSError
            If the folder does not exist or cannot be written.
        """
        settings = {
            **self._ready().record(),
            "t_end": self.t_end,
            "bits": self.bits,
            "reason": self.reason,
            "environment": self.environment,
        }
        arrays = self.arrays()
        if settings.get("kind") == FlowReading.kind:
            StoredFlow(settings, arrays).open()  # or it could not be read again
        certificate.write(path, settings, arrays)

    def arrays(self) -> dict[str, np.ndarray]:
        """The steps and the population, or the start, as a certificate holds them."""
        return {
            "start": np.array([step.start for step in self.steps]),
            "end": np.array([step.end for step in self.steps]),
            "radius": np.array([step.radius for step in self.steps]),
            "pieces": np.array([step.pieces for step in self.steps]),
            "limbs": np.array([step.limbs for step in self.steps]),
            **self._reading.arrays(),
        }

    def again(self, *, progress: bool = False) -> Enclosure:
        """The same flow enclosed anew, as far as this one came."""
        most = max(1, len(self.steps))
        if isinstance(self._reading, StoredFlow):
            self._reading = self._reading.open()
        if isinstance(self._reading, FlowReading):
            limits = _Limits.of(self.t_end, self.bits, most, None, progress)
            return _enclosed(self._reading, self._reading.title, limits)
        data = _Kept(self._reading.bags, self._reading.reading.query_tokens)
        rates = self._reading.rates()
        return enclose_flow(data, **rates, t_end=self.t_end, bits=self.bits, max_steps=most, progress=progress)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Enclosure:
        """Read what `save` wrote; `verify` then recomputes it.

        Raises
        ------
        ValueError
            If a byte of the content is not as it was written, or it is something else.
        FileNotFoundError
            If there is none.
        """
        settings, arrays = certificate.read(path)
        name = os.fspath(path)
        reading: OfPopulation | StoredFlow
        if settings.get("kind") == FlowReading.kind:
            reading = StoredFlow(settings, arrays)
            check_steps_of(reading, settings, arrays, name)
        else:
            reading = OfPopulation.stored(settings, arrays, name)
        rest = {key: settings[key] for key in ("t_end", "bits", "reason")}
        columns = (arrays[key].tolist() for key in ("start", "end", "radius", "pieces"))
        rows = zip(*columns, arrays["limbs"], strict=True)
        steps = [Step(start, end, limbs, radius, pieces) for start, end, radius, pieces, limbs in rows]
        return cls(reading, steps, **rest, environment=settings.get("environment"))


@dataclass(frozen=True)
class _Kept:
    """The population of a certificate."""

    bags: Bags
    query_tokens: np.ndarray

    def population(self) -> Bags:
        return self.bags
