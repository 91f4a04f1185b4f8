"""Enclosures of the gradient flow: balls that hold it at every time, proved in ball arithmetic."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from dynamics.bags import Bags
from dynamics.support import checks, display, provenance
from dynamics.support.names import AXES, filled, given, shown
from dynamics.support.progress import Progress
from theory.enclosures import certificate
from theory.enclosures.fields import DECODERS
from theory.enclosures.march import check_steps, march
from theory.enclosures.moments import Moment, Tube
from theory.enclosures.quantities import Claim, midpoint_and_radius
from theory.enclosures.reading import Population, Reading, bags_arrays, bags_from, read
from theory.enclosures.stepping import GUARD, Step, precision

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynamics.support.display import Labels, Style

# Parts of a step that a predicate is first tried on, and how often a part is halved before the claim is left open.
_PARTS = 2
_DEPTH = 14
# How often the time between where a claim is proved and where it is false is cut.
_SHARPER = 12


@dataclass(frozen=True)
class Decision:
    """What `Enclosure.decide` found.

    Attributes
    ----------
    value : bool or None
        True: at every time. False: not at the times of ``times``. None: open at ``times``.
    times : (float, float) or None
        A span of time, or twice one time.
    parts : int
        Spans and times on which the predicate was evaluated.
    reached : float
        The claim is proved for every t with 0 < t <= ``reached``.
    """

    value: bool | None
    times: tuple[float, float] | None
    parts: int
    reached: float


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
    progress = checks.flag("progress", progress)
    rates = {"eta_y": checks.positive("eta_y", eta_y), "eta_z": checks.positive("eta_z", eta_z)}
    decoder = checks.one_of("decoder", decoder, DECODERS)
    t_end = checks.positive("t_end", t_end)
    bits = checks.integer("bits", bits, minimum=30)
    if bits > 400:
        raise checks.reject("bits", "be at most 400", bits)
    max_steps = checks.integer("max_steps", max_steps, minimum=1)
    if max_seconds is not None:
        max_seconds = checks.positive("max_seconds", max_seconds)
    reading = read(data, decoder=decoder, **rates)
    with Progress(f"enclosing the flow ({decoder})", enabled=progress) as report:
        found = march(
            reading.field,
            t_end,
            bits,
            max_steps,
            max_seconds,
            lambda t: report.update(t / t_end, f"at t = {t:.4g} of {t_end:g}"),
        )
    return Enclosure(
        reading, found.steps, t_end=t_end, bits=bits, reason=found.reason, environment=provenance.environment()
    )


class Enclosure:
    """A flow in balls, from `enclose_flow` or `load`.

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
    """

    def __init__(
        self,
        reading: Reading,
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
        self._tube = Tube(reading.field, self.steps)

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
        return self._reading.field.size

    def __repr__(self) -> str:
        short = "" if self.complete else f" of {self.t_end:g} ({self.reason})"
        return (
            f"<Enclosure: {self._reading.settings['decoder']} flow, {self.variables} variables, {len(self.steps)} "
            f"steps to t = {self.t_reached:g}{short}>"
        )

    def _repr_html_(self) -> str:
        settings = {name: value for name, value in self._reading.settings.items() if np.ndim(value) == 0}
        short = "as far as was asked for" if self.complete else f"of {self.t_end:g}, since {self.reason}"
        facts = {
            "flow": f"{self._reading.settings['decoder']}, {self.variables} variables",
            "holds for": f"every t from 0 to {self.t_reached:g}, {short}",
            "steps": f"{len(self.steps):,}",
            "bits": self.bits,
            "largest radius of a step": max((step.radius for step in self.steps), default=0.0),
        }
        inner = display.table(["name", "value"], list(settings.items())[: display.ROWS], align="left")
        return display.page("Enclosure", facts, display.folded("settings", inner))

    def plot(
        self,
        *,
        next_token: int | None = None,
        n_times: int = 60,
        ax: Axes | None = None,
        labels: Labels | None = None,
        style: Style | None = None,
    ) -> Axes:
        """Draw attention on the tokens of one next token with its radius as a band, at times in equal ratios.

        The title has the largest radius at these times: mostly the band is thinner than any line. At most ten tokens
        are drawn, those of the largest attention at the end.

        Parameters
        ----------
        next_token : int, optional
            Default: the first.
        n_times : int
            At least 2, from t_reached / 1000 to t_reached.
        ax : matplotlib Axes, optional
            Default: new ones, of a figure of pyplot's.
        labels : sequence or mapping, optional
            Text for tokens in the place of their names or numbers: from token 0 on, or by number or name.
        style : str or mapping, optional
            A style of matplotlib, such as "ggplot", or settings of it.

        Returns
        -------
        matplotlib Axes
        """
        n_times = checks.integer("n_times", n_times, minimum=2)
        known = self._reading.next_tokens.tolist()
        if next_token is None:
            next_token = known[0]
        elif checks.integer("next_token", next_token, minimum=0) not in known:
            raise checks.reject("next_token", "be a next token of the data", next_token)
        if not self.steps:
            raise ValueError(f"`plot` needs an enclosure that holds for some time, but {self.reason}")
        times = np.geomspace(self.t_reached / 1000, self.t_reached, n_times)
        times[-1] = self.t_reached  # which rounding may have passed
        found = []
        for time in times.tolist():
            moment = self.moment(time)
            with self.computing():
                shares = moment.shares(next_token)
                found.append([midpoint_and_radius(share.ball()) for share in shares.values()])
        middle, radius = np.moveaxis(np.array(found), 2, 0)
        kept = np.sort(np.argsort(-middle[-1], kind="stable")[: display.LINES])
        bags = self._reading.bags
        words = given(labels, bags.token_names, bags.n_tokens)
        after = display.plain(shown(bags.class_names, next_token))
        with display.styled(style):
            ax = display.axes(ax)
            for i in kept.tolist():
                word = display.plain(shown(words, list(shares)[i]))
                (line,) = ax.plot(times, middle[:, i], label=f"token {word}")
                low, high = middle[:, i] - radius[:, i], middle[:, i] + radius[:, i]
                ax.fill_between(times, low, high, color=line.get_color(), alpha=0.3)
            rest = f", {kept.size} of {middle.shape[1]} tokens" if kept.size < middle.shape[1] else ""
            ax.set(xscale="log", xlabel="time (SGD steps)", ylabel="expected attention")
            ax.set_title(f"next token {after}{rest}: radius at most {radius.max():.1e}")
            ax.legend()
        return ax

    def moment(self, start: float, end: float | None = None) -> Moment:
        """The flow at a time, or on a span (start, end] within a step."""
        start = checks.real("start", start)
        end = start if end is None else checks.real("end", end)
        if end < start:
            raise checks.reject("end", f"not be before start, {start:g}", end)
        self._check_times(np.array([start, end]))
        with precision(self.bits + GUARD):
            return Moment(self._reading, self._tube, float(start), float(end))

    def at(self, t: float | Sequence[float] | np.ndarray) -> xr.Dataset:
        """The flow at times, with radii.

        Parameters
        ----------
        t : float or (n,) array
            From 0 to ``t_reached``.

        Returns
        -------
        xarray.Dataset
            ``z(time, query, token)``, ``attention(time, next_token, token)`` and ``loss(time)``, as in a trajectory,
            and ``z_radius``, ``attention_radius``, ``loss_radius``: the flow is within them, for certain.
        """
        times = checks.finite_array("t", np.atleast_1d(checks.array("t", t)), ndim=1)
        self._check_times(times)
        reading = self._reading
        names = reading.next_tokens
        shape = reading.z_index.shape
        values = {
            "z": np.zeros((2, times.size, *shape)),
            "attention": np.zeros((2, times.size, names.size, shape[1])),
            "loss": np.zeros((2, times.size)),
        }
        for i, time in enumerate(times.tolist()):
            moment = self.moment(time)
            with precision(self.bits + GUARD):
                values["loss"][:, i] = midpoint_and_radius(moment.loss.ball())
                variables = {
                    place: midpoint_and_radius(moment.variable(place).ball())
                    for place in np.unique(reading.z_index).tolist()
                }
                for row, column in np.ndindex(shape):
                    values["z"][:, i, row, column] = variables[int(reading.z_index[row, column])]
                for n, name in enumerate(names.tolist()):
                    for token, share in moment.shares(name).items():
                        values["attention"][:, i, n, token] = midpoint_and_radius(share.ball())
        dims = {"z": ("query", "token"), "attention": ("next_token", "token"), "loss": ()}
        data = {}
        for name, (middle, radius) in values.items():
            data[name] = (("time", *dims[name]), middle)
            data[f"{name}_radius"] = (("time", *dims[name]), radius)
        coords: dict[str, Any] = {"time": times, "query": reading.query_tokens, "token": np.arange(shape[1])}
        coords["next_token"] = names
        for kind, axis in AXES.items():
            own = getattr(reading.bags, kind)
            if own is not None:
                numbers = names if axis == "next_token" else np.arange(len(coords[axis]))
                coords[f"{axis}_name"] = (axis, filled(own, int(numbers.max()) + 1)[numbers])
        return xr.Dataset(data, coords, {"kind": "enclosure", "bits": self.bits, **_plain(reading.settings)})

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

    def decide(self, predicate: Callable[[Moment], Claim], *, until: float | None = None) -> Decision:
        """Decide a claim for all times 0 < t <= ``t_end``.

        Times are gone through from the first to the last, so that the answer False or None has a time ``reached`` up
        to which the claim is proved.

        Parameters
        ----------
        predicate : callable
            From a `Moment` to a `Claim`, which a comparison of quantities gives.
        until : float, optional
            A last time before ``t_end``.

        Returns
        -------
        Decision
            True only if it is proved for every time, and the enclosure is complete; False with times where it fails.
        """
        checks.function("predicate", predicate)
        last = self.t_end if until is None else min(checks.positive("until", until), self.t_end)
        parts = 0
        with precision(self.bits + GUARD):
            for step in self.steps:
                if step.start >= last:
                    break
                stop = min(step.end, last)
                edges = np.linspace(step.start, stop, _PARTS + 1).tolist()
                edges[-1] = stop
                waiting = [(a, b, 0) for a, b in itertools.pairwise(edges)][::-1]
                while waiting:
                    start, end, depth = waiting.pop()
                    parts += 1
                    claim = self._claim(predicate, start, end)
                    if claim.value is True:
                        continue
                    if claim.value is False:
                        return Decision(False, (start, end), parts, start)
                    parts += 1
                    if self._claim(predicate, end, end).value is False:
                        return self._sharpened(predicate, start, end, parts)
                    middle = start + (end - start) / 2
                    if depth == _DEPTH or not start < middle < end:
                        return Decision(None, (start, end), parts, start)
                    waiting += [(middle, end, depth + 1), (start, middle, depth + 1)]
        if self.t_reached < last:
            return Decision(None, (self.t_reached, last), parts, self.t_reached)
        return Decision(True, None, parts, last)

    def _sharpened(self, predicate: Callable[[Moment], Claim], start: float, end: float, parts: int) -> Decision:
        """That a claim, proved until ``start``, is false at ``end``; with both moved towards each other."""
        for _ in range(_SHARPER):
            for share in (0.5, 0.25, 0.125):  # a short span may be decided where a long one is not
                middle = start + (end - start) * share
                parts += 2
                if not start < middle < end:
                    continue
                if self._claim(predicate, middle, middle).value is False:
                    end = middle
                    break
                if self._claim(predicate, start, middle).value is True:
                    start = middle
                    break
            else:
                break
        return Decision(False, (end, end), parts, start)

    def _claim(self, predicate: Callable[[Moment], Claim], start: float, end: float) -> Claim:
        claim = predicate(Moment(self._reading, self._tube, start, end))
        if not isinstance(claim, Claim):
            raise checks.reject("predicate", "return a Claim, as comparisons of quantities are", repr(claim))
        return claim

    def holds(self, predicate: Callable[[Moment], Claim], *, until: float | None = None) -> bool | None:
        """Whether a claim is true at every time 0 < t <= ``t_end``; None if that stays open. See `decide`."""
        return self.decide(predicate, until=until).value

    def verify(self) -> bool:
        """Recompute every bound from the stored polynomials, and compare it with the stored radii.

        ``python -m yzflow.verify FILE`` does the same with code of its own.
        """
        return check_steps(self._reading.field, self.steps, self.bits) == ""

    def save(self, path: str | os.PathLike) -> None:
        """Write to an npz file with a SHA-256, completely or not at all.

        Raises
        ------
        OSError
            If the folder does not exist or cannot be written.
        """
        settings = {
            **self._reading.settings,
            "t_end": self.t_end,
            "bits": self.bits,
            "reason": self.reason,
            "weights": self._reading.field.weights.tolist(),
            "environment": self.environment,
        }
        certificate.write(path, settings, self.arrays())

    def arrays(self) -> dict[str, np.ndarray]:
        """The steps and the population, as a certificate holds them."""
        return {
            "start": np.array([step.start for step in self.steps]),
            "end": np.array([step.end for step in self.steps]),
            "radius": np.array([step.radius for step in self.steps]),
            "pieces": np.array([step.pieces for step in self.steps]),
            "limbs": np.array([step.limbs for step in self.steps]),
            "query_tokens": self._reading.query_tokens,
            **bags_arrays(self._reading.bags),
        }

    def again(self, *, progress: bool = False) -> Enclosure:
        """The same flow enclosed anew, as far as this one came."""
        data = _Kept(self._reading.bags, self._reading.query_tokens)
        rates = _plain(self._reading.settings)
        most = max(1, len(self.steps))
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
        bags = bags_from(arrays)
        rates = {name: settings[name] for name in ("eta_y", "eta_z", "decoder")}
        reading = read(bags, query_tokens=arrays["query_tokens"], **rates)
        stored = {name: settings.get(name) for name in reading.settings}
        if stored != reading.settings or settings["weights"] != reading.field.weights.tolist():
            raise checks.reject("path", "hold the settings of its own population", os.fspath(path))
        columns = (arrays[name].tolist() for name in ("start", "end", "radius", "pieces"))
        rows = zip(*columns, arrays["limbs"], strict=True)
        steps = [Step(start, end, limbs, radius, pieces) for start, end, radius, pieces, limbs in rows]
        rest = {name: settings[name] for name in ("t_end", "bits", "reason")}
        return cls(reading, steps, **rest, environment=settings.get("environment"))


@dataclass(frozen=True)
class _Kept:
    """The population of a certificate."""

    bags: Bags
    query_tokens: np.ndarray

    def population(self) -> Bags:
        return self.bags


def _plain(settings) -> dict:
    return {name: settings[name] for name in ("decoder", "eta_y", "eta_z")}
