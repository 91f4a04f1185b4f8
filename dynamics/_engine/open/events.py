"""Location of zeros of functions of the state within the steps of a flow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from dynamics._engine.dop853 import Interpolant
from dynamics._engine.drive import Clock
from dynamics._engine.open.protocol import Flow
from dynamics._engine.open.states import NamedStates, RaisedError, check_name
from dynamics._engine.steps import FlowSteps
from dynamics.support import checks

KINDS = ("record", "stop", "kink")
# Points of a step at which signs are compared; a pair of zeros between two points is missed.
_POINTS = 9
# Number of latest steps whose starts are remembered.
_STEPS = 32
_EPS = float(np.finfo(np.float64).eps)


class EventKind(NamedTuple):
    """The effect of a zero, and its direction: 1 for rising numbers only, -1 for falling ones, 0 for both."""

    what: str
    direction: int


class Cut(NamedTuple):
    """A zero that ends a step.

    Attributes
    ----------
    number : int
        Index of the function.
    s : float
        The zero.
    sign : int
        The sign beyond it.
    left, right : (n,) array
        States on both sides of it.
    state : (n,) array
        The state at the zero.
    start : float
        Start of an earlier step, since steps just before a kink may have had stages beyond it.
    first : (n,) array
        The state there.
    """

    number: int
    s: float
    sign: int
    left: np.ndarray
    right: np.ndarray
    state: np.ndarray
    start: float
    first: np.ndarray


class Watch:
    """The events of a flow, followed through its steps.

    Attributes
    ----------
    names : tuple of str
    kinds : list of EventKind
    times : list of lists
        Times of the zeros of each event.
    side : (events,) int
        The last nonzero sign of each event.
    cut : Cut or None
        The zero that ended the last step.
    asleep : int or None
        An event to ignore: the surface along which the flow slides.
    exits : callable, optional
        (s, state) -> further numbers; a step ends when one of them is no longer positive.
    """

    def __init__(self, flow: Flow, states: NamedStates, clock: Clock, times: np.ndarray) -> None:
        self._events, self._states, self._clock = getattr(flow, "events", None), states, clock
        self._outputs = clock.variable(times)
        first = self._numbers(0.0, states.initial)
        self.names = tuple(check_name("events", name) for name in first)
        self.kinds = self._kinds(getattr(flow, "kinds", {}))
        self.times: list[list[float]] = [[] for _ in self.names]
        self.side = np.zeros(len(self.names), dtype=int)
        self.cut: Cut | None = None
        self._starts: deque[tuple[float, np.ndarray]] = deque(maxlen=_STEPS)
        self.asleep: int | None = None
        self.exits: Callable[[float, np.ndarray], np.ndarray] | None = None
        self.start(0.0, states.initial)

    def _numbers(self, s: float, state: np.ndarray) -> Mapping[str, float]:
        try:
            numbers = self._events(float(self._clock.time(s)), self._states.split(state))  # type: ignore[misc]
        except Exception as error:
            raise RaisedError from error
        return checks.instance("events", numbers, Mapping, rule="return a mapping of names to numbers")

    def _kinds(self, given: object) -> list[EventKind]:
        rule = "be a mapping of names of events to 'record', 'stop' or 'kink'"
        kinds = checks.instance("kinds", given, Mapping, rule=rule)
        for name in kinds:
            checks.one_of("kinds", name, self.names)
        found = []
        for name in self.names:
            words = str(kinds.get(name, "record")).split()
            what = checks.one_of("kinds", words[0] if words else "", KINDS)
            signs = {"+": 1, "-": -1}
            if len(words) > 2 or (len(words) == 2 and (words[1] not in signs or what == "kink")):
                rule = "have kinds with no more than a sign, as 'stop -', and kinks without"
                raise checks.reject("kinds", rule, repr(kinds[name]))
            found.append(EventKind(what, signs[words[1]] if len(words) == 2 else 0))
        return found

    def value(self, number: int, s: float, state: np.ndarray) -> float:
        """One of the numbers at a state."""
        if number >= len(self.names):
            return float(self.exits(s, state)[number - len(self.names)])  # type: ignore[misc]
        return float(self._numbers(s, state)[self.names[number]])

    def values(self, s: float, state: np.ndarray) -> np.ndarray:
        """All numbers at a state, exits last."""
        numbers = self._numbers(s, state)
        if set(numbers) != set(self.names):
            raise checks.reject("events", f"return {', '.join(self.names)} at all times", checks.brief(list(numbers)))
        found = np.empty(len(self.names))
        for i, name in enumerate(self.names):
            number = numbers[name]
            if np.ndim(number) or np.isnan(number):
                where = f"{checks.brief(number)} at t = {self._clock.time(s):g}"
                raise checks.reject("events", f"return a number for {name!r}", where)
            found[i] = number
        return found if self.exits is None else np.append(found, self.exits(s, state))

    def start(self, s: float, state: np.ndarray) -> None:
        """At the start of an integration, take the signs of events that have none yet."""
        self._starts.clear()
        now = np.sign(self.values(s, state)).astype(int)
        n = len(self.names)
        self.side = np.concatenate([np.where(self.side[:n] == 0, now[:n], self.side[:n]), np.ones(now.size - n, int)])

    def within(self, start: float, steps: FlowSteps) -> float | None:
        """Record the zeros in a step; returns the zero that ends it, or None."""
        inside, end = steps.interpolant(), steps.s
        first, last = np.searchsorted(self._outputs, [start, end])
        places = np.union1d(np.linspace(start, end, _POINTS + 1)[:-1], self._outputs[first:last])
        places = np.append(places[(places >= start) & (places < end)], end)
        states, side = inside(places), self.side.copy()
        self._starts.append((start, states[0]))
        since, zeros = np.full(side.size, start), []
        for s_next, state in zip(places[1:].tolist(), states[1:], strict=True):
            signs = np.sign(self.values(s_next, state)).astype(int)
            for i in np.flatnonzero(signs):
                if i == self.asleep:
                    continue
                if side[i] not in (0, signs[i]):
                    zero = self._zero(i, float(since[i]), s_next, inside)
                    zeros.append((zero, int(i), int(signs[i]), float(since[i]), s_next))
                side[i], since[i] = signs[i], s_next
            self.side[self.side == 0] = side[self.side == 0]
        for s, i, sign, before, after in sorted(zeros):
            what, direction = self.kinds[i] if i < len(self.names) else EventKind("exit", 0)
            if direction in (0, sign) and what != "exit":
                self.times[i].append(float(self._clock.time(s)))
            if what == "record" or direction not in (0, sign):
                self.side[i] = sign
                continue
            left, right, state = inside(np.array([before, after, s]))
            self.cut = Cut(i, s, sign, left, right, state, *self._starts[0])
            return s
        self.cut = None
        return None

    def _zero(self, number: int, left: float, right: float, inside: Interpolant) -> float:
        """The zero of a number between two values of s."""
        from scipy import optimize  # the import takes a tenth of a second, so only flows with events do it

        def at(s: float) -> float:
            return self.value(number, s, inside(np.array([s]))[0])

        first = at(left)
        # The sign changed at the start of the integration.
        if first == 0 or np.sign(first) == np.sign(at(right)):
            return left
        return float(optimize.brentq(at, left, right, xtol=4 * _EPS * max(1.0, abs(right)), rtol=4 * _EPS))
