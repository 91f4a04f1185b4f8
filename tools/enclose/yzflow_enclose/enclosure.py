"""Enclosures of flows: balls that hold them at every time, proved in ball arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from dynamics.support import checks, display
from dynamics.support.origins import Code
from yzflow_enclose import certificate, claims, recorded
from yzflow_enclose.certified import Certified, error_bounds
from yzflow_enclose.crossings import Crossing, locate
from yzflow_enclose.decisions import RECORDED, Decision, decide
from yzflow_enclose.flows import FlowReading
from yzflow_enclose.formulas import Predicate, check_says, replayed, written
from yzflow_enclose.march import check_steps
from yzflow_enclose.populations import OfPopulation
from yzflow_enclose.quantities import Claim, Quantity, every
from yzflow_enclose.stepping import GUARD, Step, precision
from yzflow_enclose.stored import StoredFlow

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from dynamics.support.display import Labels, Style


class Enclosure(Certified):
    """A flow in balls, from `enclose`, `enclose_flow` or `load`.

    A loaded enclosure is a claim of the file's author: it verifies itself before it answers anything. For your own flow
    this imports the flow's code.

    Attributes
    ----------
    t_end, t_reached : float
        The last time that was asked for, and the last time for which it holds.
    reason : str
        Why it ends before ``t_end``; empty if it does not.
    bits : int
    steps : tuple of Step
        A polynomial and a radius each.
    environment : mapping
        Versions, processor and code of its making.
    predicates : tuple of Predicate
        Predicates that `record` decided, or that its file has.
    path : Path or None
        Its file, if `kept` made it.
    fault : str
        Why the last `verify` returned False.
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
        self._reading = checks.instance("reading", reading, (OfPopulation, FlowReading, StoredFlow))
        self.steps = tuple(checks.listed("steps", steps, "be a sequence of Steps"))
        for step in self.steps:
            checks.instance("steps", step, Step, rule="hold Steps")
        self.t_end, self.bits = checks.positive("t_end", t_end), checks.integer("bits", bits, minimum=1)
        self.reason = checks.instance("reason", reason, str)
        self.environment = checks.mapping("environment", environment)
        self.predicates: tuple[Predicate, ...] = ()
        self.path: Path | None = None
        self._tube: Any = None
        self._proofs: dict[bool, Any] = {}  # tubes for deciding and for recording the predicates of a certificate

    @property
    def t_reached(self) -> float:
        return self.steps[-1].end if self.steps else 0.0

    @property
    def complete(self) -> bool:
        """True if it holds until ``t_end``."""
        return self.t_reached >= self.t_end

    @property
    def variables(self) -> int:
        """Number of variables of the reduced flow."""
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
                raise checks.reject("name", "be left out for a population's flow", checks.brief(name))
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
        times[-1] = self.t_reached  # rounding may have passed it
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
        self._ready()
        with self.computing():
            return self._moment(float(start), float(end))

    def _moment(self, start: float, end: float) -> Any:
        reading = self.opened()
        if self._tube is None:
            self._tube = reading.tube(self.steps)
        return reading.moment(self._tube, start, end)

    def _proved(self, start: float, end: float, *, wider: bool = False) -> Any:
        """The moment for deciding a predicate of a certificate; with ``wider``, a larger radius, for recording it."""
        reading = self.opened()
        if wider not in self._proofs:
            tube = reading.jets if isinstance(reading, OfPopulation) else reading.tube
            self._proofs[wider] = tube(recorded.widened(self.steps) if wider else self.steps)
        return reading.moment(self._proofs[wider], start, end)

    def _ready(self) -> Any:
        """The reading of the flow; if it is from a file, every bound is computed again first."""
        self._believe()
        return self.opened()

    def opened(self, flow: Any = None) -> Any:
        """The reading of the flow, without verifying its file; for ``flow`` see `verify`."""
        if isinstance(self._reading, StoredFlow):
            self._reading = self._reading.open(flow)
        elif flow is not None:
            raise checks.reject("flow", "be left out, as the enclosure has its flow", checks.brief(flow))
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
            The states of a flow by name, with ``time`` before their dimensions; for a population
            ``z(time, query, token)``, ``attention(time, next_token, token)`` and ``loss(time)``, as in a trajectory.
            Each has a radius, such as ``z_radius``, and the flow is proved to be within it.
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
        """Decide a claim for all times 0 < t <= ``t_end``, from the first on.

        If the answer is False or None, the claim is proved up to the time ``reached``.

        Parameters
        ----------
        predicate : callable
            From a `Moment`, or a `FlowMoment`, to a `Claim` (a comparison of quantities), or to an array of claims that
            must all hold.
        until : float, optional
            A last time before ``t_end``.

        Returns
        -------
        Decision
            True only if it is proved for every time, and the enclosure is complete; False with times at which it fails.
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
        """True if a claim is true at every time 0 < t <= ``t_end``; None if that stays open. See `decide`."""
        return self.decide(predicate, until=until).value

    def record(self, predicate: Callable[[Any], Any] | Predicate, *, until: float | None = None) -> Decision:
        """Decide a claim, and write it into the certificate if it is true, or false.

        A file of the enclosure then holds the claim as a formula with its verdict, and both checkers decide it again.
        So it is decided with a wider tube: a claim that `decide` can only just decide stays open.

        Parameters
        ----------
        predicate : callable
            As for `decide`, but written down: of quantities, numbers, arithmetic, ``exp``, ``log``, ``sqrt``, rates and
            comparisons only. Or a `Predicate`.
        until : float, optional
            A last time before ``t_end``. Default: ``t_reached``.

        Raises
        ------
        ValueError
            If the predicate looks at bounds, or computes by other means, or has no value at the end of a step.
        """
        last = self.t_reached if until is None else min(checks.positive("until", until), self.t_reached)
        reading = self._ready()
        if isinstance(predicate, Predicate):
            says = predicate.says
        else:
            says = written(checks.function("predicate", predicate), reading.recorder())
        rates = 1 if isinstance(reading, OfPopulation) else None
        check_says(says, len(reading.variable_names()), name="predicate", rates=rates)
        with self.computing():
            found = decide(lambda a, b: replayed(says, self._proved(a, b, wider=True)), self.steps, last, RECORDED)
            if found.value is not None:
                made = Predicate(says, last, None if found.value else found.times)
                made = recorded.with_margin(made, self.steps, self._proved)
                others = (one for one in self.predicates if (one.says, one.until) != (says, last))
                self.predicates = (*others, made)
        return found

    def crossing(
        self, function: Callable[[Any], Quantity], *, between: tuple[float, float], rising: bool | None = None
    ) -> Crossing:
        """Enclose the only time in a bracket at which a function of the flow is zero.

        The proof: on both sides of a short span the function has opposite signs at every time, and on the span its
        derivative in time has one sign.

        Parameters
        ----------
        function : callable
            From the moment to a quantity, such as ``lambda at: at.state["x"][0] - 1``. For a flow of named states it
            may be a ``rate``, whose zero is a turning point.
        between : (float, float)
            The bracket (a, b] of times, within [0, t_reached].
        rising : bool, optional
            Ask for a zero at which the function rises (True) or falls (False); any other zero is refused.

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

        ``yzflow verify FILE`` does the same with code of its own, for a population. Your own flow is made again from
        its class and ``config()`` where you handed it over in this process, or an installed distribution offers it by
        an entry point in the group "yzflow.flows"; `fault` and `changed` then say why not, and what has changed since.

        Parameters
        ----------
        flow : object or class, optional
            The flow that a file is of, or its class: what a file names is not imported at its word.

        Raises
        ------
        ValueError
            If the code of the flow is not here, or it is another flow.
        """
        reading = self.opened(flow)
        fault = check_steps(reading.field, self.steps, self.bits, reading.start)
        if not fault and isinstance(reading, FlowReading):
            fault = str(reading.differs(self.steps) or "")
        if not fault and self._claimed is not None:
            fault = self._check_claim(self._claimed)
        return self._judged(fault)

    def _check_claim(self, claim: Mapping[str, Any]) -> str:
        """Why steps that hold do not prove the claim of a file; nothing if they do."""
        with self.computing():
            if any(bound > said for bound, said in zip(self._errors(), claim["errors"], strict=True)):
                return "an error is larger than the claim says"
            faults = ((n, recorded.fault(made, self.steps, self._proved)) for n, made in enumerate(self.predicates))
            return next((f"predicate {n} {fault}" for n, fault in faults if fault), "")

    def _errors(self) -> list[float]:
        return error_bounds((step.radius for step in self.steps), self.opened().arrays()["weights"])

    @property
    def claim(self) -> dict[str, Any]:
        """The claim of its certificate, in plain content: of which flow and population, how far, and how closely.

        Raises
        ------
        ValueError
            If it proves nothing.
        """
        reading = self._ready()
        if not self.steps:
            raise ValueError(f"an enclosure without steps proves nothing, but {self.reason}")
        with self.computing():
            errors = self._errors()
        return {
            "format": claims.FORMAT,
            **reading.claim(),
            "t_end": self.t_end,
            "t_reached": self.t_reached,
            "bits": self.bits,
            "errors": errors,
            "predicates": [predicate.plain() for predicate in self.predicates],
        }

    @property
    def code(self) -> Code | None:
        """Whose code a flow of your own was made by, as the file says; None for a population."""
        return getattr(self._reading, "code", None)

    @property
    def changed(self) -> tuple[str, ...]:
        """Parts of your flow's code that are not as they were when the file was written; none for a population."""
        pairs = sorted(self.code.factors().items()) if self.code else []
        return tuple(f"{name}: {then or 'none'} then, {now or 'none'} now" for name, (then, now) in pairs)

    @property
    def words(self) -> str:
        """Its claim in lines of plain words; ``print(flow.words)``."""
        return "\n".join(claims.words(self.claim, self.opened().variable_names()))

    def save(self, path: str | os.PathLike) -> None:
        """Write a certificate, a sealed archive: its `claim`, and the steps that prove it; completely or not at all.

        Of your own flow it holds names, its ``config()`` and hashes, and no code.

        Raises
        ------
        ValueError
            If there is no step, or the flow is your own and has no ``config()``.
        OSError
            If the folder does not exist or cannot be written.
        """
        claim, arrays = self.claim, self.arrays()
        if claim["kind"] == FlowReading.kind:
            StoredFlow(claim, arrays).open()  # or it could not be read again
        certificate.write(path, claim, {"reason": self.reason, "environment": self.environment}, arrays)

    def arrays(self) -> dict[str, np.ndarray]:
        """The steps, the norm, and the start of a flow of your own, as a certificate holds them."""
        return {
            "start": np.array([step.start for step in self.steps]),
            "end": np.array([step.end for step in self.steps]),
            "radius": np.array([step.radius for step in self.steps]),
            "pieces": np.array([step.pieces for step in self.steps]),
            "limbs": np.array([step.limbs for step in self.steps]),
            **self._reading.arrays(),
        }

    @classmethod
    def load(cls, path: str | os.PathLike, *, trust: bool = False) -> Enclosure:
        """Read what `save` wrote. It is verified when it is first asked for anything.

        Parameters
        ----------
        path : path-like
        trust : bool
            Believe whoever made the file, and do not verify.

        Raises
        ------
        ValueError
            If a byte is not as it was written, the claim is none that `save` writes, or it is something else.
        FileNotFoundError
            If there is none.
        """
        trust = checks.flag("trust", trust)
        claim, notes, arrays = certificate.read(path)
        reading: OfPopulation | StoredFlow
        if claim["kind"] == FlowReading.kind:
            reading = StoredFlow(claim, arrays)
        else:
            reading = OfPopulation.stored(claim, arrays, os.fspath(path))
        columns = (arrays[key].tolist() for key in ("start", "end", "radius", "pieces"))
        rows = zip(*columns, arrays["limbs"], strict=True)
        steps = [Step(start, end, limbs, radius, pieces) for start, end, radius, pieces, limbs in rows]
        found = cls(reading, steps, t_end=claim["t_end"], bits=claim["bits"], **notes)
        found.predicates = tuple(map(Predicate.of, claim["predicates"]))
        found._claimed, found._trusted = claim, trust
        return found
