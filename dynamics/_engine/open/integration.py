"""Integration of an open flow: steps, events and kinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dynamics._engine.dop853 import Called, Dop853
from dynamics._engine.drive import Clock, Guard, drive, taken
from dynamics._engine.open.events import Cut, Watch
from dynamics._engine.open.kinks import Sides, Slide, begins, rate, sides_of
from dynamics._engine.open.protocol import Flow
from dynamics._engine.open.records import recorded
from dynamics._engine.open.states import NamedStates
from dynamics._engine.steps import steps_of
from dynamics.run import Run
from dynamics.support.errors import IntegrationError
from dynamics.support.progress import Progress

# This many kinks within this share of the run count as an endless sequence.
_KINKS, _DENSE = 200, 1e-6
# Relative distance below which a message calls a state "on" a kink.
_AT_ONCE = 1e-5
# Number of approaches to a kink, share of the remaining way in each, and number of chords.
_APPROACHES, _NEARLY, _CHORDS = 4, 0.999, 3


class Integration:
    """An integration in progress.

    Parameters
    ----------
    flow : Flow
    states : NamedStates
    clock : Clock
    times : (n,) array
        Output times.
    parameters : mapping
        Parameters of the run, for its record.
    report : Progress
    """

    def __init__(
        self, flow: Flow, states: NamedStates, clock: Clock, times: np.ndarray, parameters: Mapping, report: Progress
    ) -> None:
        self.flow, self.states, self.clock, self.times = flow, states, clock, times
        self.parameters, self.report = parameters, report
        self.guard = Guard(clock, report, self.slope, states.component)
        self.end = self.guard.end
        self.watch = Watch(flow, states, clock, times) if getattr(flow, "events", None) is not None else None
        self.rows = np.empty((len(times), states.initial.size))
        self.done, self.method = 0, ""
        self.slide: Slide | None = None
        # For each kink: number of crossings, and times of sliding.
        self.crossed: dict[int, int] = {}
        self.slid: list[tuple[int, float, float]] = []
        self.kinks: list[float] = []
        self.ended = ""
        state, out = np.empty_like(states.initial), np.empty_like(states.initial)
        self._state, self._out, self._evaluate = state, out, self.bind(state, out)

    def bind(self, state: np.ndarray, out: np.ndarray) -> Callable[[float], None]:
        """The derivative by the variable of integration, in the form for `steps_of`."""
        return self.guard.timed(self.states.bound(self.flow.derivative, state, out), out)

    def field(self, s: float, state: np.ndarray) -> np.ndarray:
        """The derivative at a state, as a new array."""
        np.copyto(self._state, state)
        self._evaluate(s)
        return self._out.copy()

    def along(self, state: np.ndarray, out: np.ndarray) -> Callable[[float], None]:
        """`bind` for the flow along a surface."""
        slide = self.slide
        assert slide is not None

        def at(s: float) -> None:
            out[:] = slide.derivative(s, state)

        return at

    def slope(self, s: float, state: np.ndarray) -> np.ndarray:
        """The derivative of the present flow, along a surface or free."""
        return self.field(s, state) if self.slide is None else self.slide.derivative(s, state)

    def run(self) -> Run:
        """Integrate to the end.

        Raises
        ------
        IntegrationError
            If there is no further step before it.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._go()
        last = float(self.times[self.done - 1])
        found = self.flow.derivative(last, self.states.split(self.rows[self.done - 1]))
        self.states.check_derivative(found, last)
        return self.recorded()

    def _go(self) -> None:
        grid = np.clip(self.clock.variable(self.times), 0.0, self.end)
        s, state, watch = 0.0, self.states.initial, self.watch
        if watch is not None:
            state = self._begun(watch, state)
        how = {name: self.parameters[name] for name in ("rtol", "atol")}
        until = -np.inf if watch is None else self.end
        while True:
            bind = self.bind if self.slide is None else self.along
            steps = steps_of(self.parameters["method"], bind, self.end, state, **how, start=s)
            within = None if watch is None else watch.within
            self.done, reason = drive(
                steps, grid, self.rows, self.guard.exceeded, within=within, until=until, done=self.done
            )
            self.method = taken(steps, self.clock)
            if reason:
                raise self.failure(reason, steps.s, steps.state)
            if watch is None or watch.cut is None:
                break
            if watch.cut.number < len(watch.names) and watch.kinds[watch.cut.number].what == "stop":
                self._stop(watch, watch.cut.s)
                break
            state = self._beyond(watch)
            s = watch.cut.s
            self.kinks.append(s)
            if len(self.kinks) > _KINKS and s - self.kinks[-_KINKS] < _DENSE * self.end:
                raise self.failure(self._without_progress(watch, s, state), s, state)
            if self.end - s <= 1e-14 * self.end:  # no room for a step
                self.rows[self.done :], self.done = state, len(grid)
                break

    def _without_progress(self, watch: Watch, s: float, state: np.ndarray) -> str:
        """Message that names the kink with endless crossings, and other kinks at the state."""
        assert watch.cut is not None
        number = watch.cut.number if watch.cut.number < len(watch.names) else self.slid[-1][0]
        near = _AT_ONCE * (1 + np.abs(state).max())
        others = [
            repr(name)
            for other, (name, kind) in enumerate(zip(watch.names, watch.kinds, strict=True))
            if other != number and kind.what == "kink" and abs(watch.value(other, s, state)) < near
        ]
        beside = (
            f"; it meets {' and '.join(others)} there too, and does not slide along two kinks at once" if others else ""
        )
        return f"kink {watch.names[number]!r} is met {_KINKS} times in a row without progress{beside}"

    def _begun(self, watch: Watch, state: np.ndarray) -> np.ndarray:
        """The initial state, moved beside a kink if it is on one."""
        for number, kind in enumerate(watch.kinds):
            if kind.what != "kink" or watch.side[number] != 0 or self.slide is not None:
                continue

            def surface(s: float, at: np.ndarray, number: int = number) -> float:
                return watch.value(number, s, at)

            what, where = begins(0.0, state, self.field, surface, self.end)
            if what == "slides":
                self._slide_along(watch, Slide(number, 1, where, self.field, surface, 0.0, self.end))
                watch.times[number].append(0.0)
            elif what == "goes":
                state = where
        watch.start(0.0, state)
        return state

    def _slide_along(self, watch: Watch, slide: Slide | None) -> None:
        self.slide = slide
        watch.asleep, watch.exits = (None, None) if slide is None else (slide.number, slide.exits)

    def _beyond(self, watch: Watch) -> np.ndarray:
        """The state after a cut; sets the flow along the surface or beyond it."""
        cut, slide = watch.cut, self.slide
        assert cut is not None
        if cut.number >= len(watch.names):
            assert slide is not None
            # Exit 0 is the number of the side before: if it reached zero, the flow leaves to that side.
            state = self._leave(watch, slide, cut.s, cut.state, -1 if cut.number == len(watch.names) else 1)
        else:
            number = cut.number
            field = self.field if slide is None else slide.derivative

            def surface(s: float, state: np.ndarray) -> float:
                return watch.value(number, s, state)

            if slide is None:
                cut = watch.cut = self._approached(cut, surface)
                watch.times[number][-1] = float(self.clock.time(cut.s))
            sides = sides_of(cut, field, surface, self.end)
            state = self._met(watch, sides, field, surface)
        watch.start(cut.s, state)
        return state

    def _approached(self, cut: Cut, surface: Callable) -> Cut:
        """The zero of a cut, located again by steps that end before it: the first step had stages on both sides."""
        s, state, end, best = cut.start, cut.first, cut.s, cut
        how = {name: self.parameters[name] for name in ("rtol", "atol")}
        for _ in range(_APPROACHES):
            target = s + _NEARLY * (end - s)
            if not s < target < end:
                break
            steps = Dop853(Called(self.bind, state.size), target, state, **how, start=s)
            while steps.s < target:
                if steps.advance():
                    return best
            s, state = target, steps.state.copy()
            number, slope = surface(s, state), self.field(s, state)
            towards = rate(surface, s, state, slope, self.end)
            left = -number / towards if towards else np.nan
            if np.sign(number) != -cut.sign or not 0 < left < cut.s - cut.start:
                break
            # The last part by a parabola, whose slope changes at its rate over an equally long time before.
            bend = (slope - self.field(s - left, state - left * slope)) / left
            for _ in range(_CHORDS):
                left -= surface(s + left, state + left * slope + left**2 / 2 * bend) / towards
            if not 0 < left < cut.s - cut.start:
                break
            end = s + left
            best = cut._replace(s=end, state=state + left * slope + left**2 / 2 * bend)
        return best

    def _met(self, watch: Watch, sides: Sides, field: Callable, surface: Callable) -> np.ndarray:
        cut, slide = watch.cut, self.slide
        assert cut is not None
        if sides.crosses or not sides.slides:
            if sides.crosses:
                self.crossed[cut.number] = self.crossed.get(cut.number, 0) + 1
                watch.side[cut.number] = cut.sign
            state = sides.beyond if sides.crosses else sides.before
            if slide is None:
                return state
            a, b = slide.sides(cut.s, state).rate
            if a > 0 > b:
                return state
            return self._leave(watch, slide, cut.s, state, 1 if b >= 0 else -1)
        if slide is not None:
            names = f"{watch.names[slide.number]!r} and {watch.names[cut.number]!r}"
            raise self.failure(f"it would slide along two kinks at once, {names}, which is not done", cut.s, cut.state)
        before, beyond = sides.field
        self._slide_along(watch, Slide(cut.number, cut.sign, before - beyond, field, surface, cut.s, self.end))
        return cut.state

    def _leave(self, watch: Watch, slide: Slide, s: float, state: np.ndarray, side: int) -> np.ndarray:
        """A state beside the surface along which the flow has slid."""
        self.slid.append((slide.number, slide.start, s))
        watch.side[slide.number] = side * slide.sign
        self._slide_along(watch, None)
        return slide.beside(s, state, side)

    def _stop(self, watch: Watch, s: float) -> None:
        """End the run at an event, and record its state last."""
        assert watch.cut is not None
        time = float(self.clock.time(s))
        kept, rows = self.times[: self.done], self.rows[: self.done]
        if kept.size == 0 or time > kept[-1]:
            kept, rows = np.append(kept, time), np.vstack([rows, watch.cut.state])
        self.times, self.rows, self.done = kept, rows, len(kept)
        self.ended = f"stopped at event {watch.names[watch.cut.number]!r}, t = {time:.10g}"

    def failure(self, reason: str, s: float, state: np.ndarray) -> IntegrationError:
        """The error for a run without a further step."""
        time, largest = float(self.clock.time(s)), int(np.argmax(np.abs(state)))
        tries = "an earlier t_end, Solver(time_scale='log'), a larger rtol and atol, or Solver(method='Radau')"
        if "stall" in reason:
            tries = (
                "declare where the derivative jumps or bends as an event of the kind 'kink', a smooth function in its "
                "place, or Solver(method='LSODA') if nothing jumps"
            )
        elif not self._finite_beyond(time, state):
            reason, tries = "the derivative is not finite beyond", "an earlier t_end"
        elif "kink" in reason:
            tries = "a smooth function in the place of one with a kink, or an earlier t_end"
        return IntegrationError(
            f"the flow stopped after t = {time:g} of {self.clock.end:g}, where the largest entry is "
            f"{self.states.component(largest)} = {state[largest]:.3g}: {reason.rstrip('.')}. Try, in this order: "
            f"{tries}",
            time,
            None,
            None,
            self.states.split(state.copy()),
            self.recorded() if self.done else None,
        )

    def _finite_beyond(self, time: float, state: np.ndarray) -> bool:
        """True if the derivative is finite a moment later."""
        with np.errstate(all="ignore"):
            found = self.flow.derivative(time + 1e-9 * max(time, 1.0), self.states.split(state.copy()))
        return all(np.isfinite(np.asarray(part, dtype=np.float64)).all() for part in found.values())

    def notes(self) -> list[str]:
        """Notes on kinks, and on the end of the run."""
        found = []
        names = () if self.watch is None else self.watch.names
        still = [] if self.slide is None else [(self.slide.number, self.slide.start, None)]
        for number, name in enumerate(names):
            times = self.crossed.get(number, 0)
            if times:
                found.append(f"kink {name!r}: crossed {times} {'time' if times == 1 else 'times'}")
            for which, start, end in [*self.slid, *still]:
                if which == number:
                    until = "the end" if end is None else f"t = {self.clock.time(end):.10g}"
                    found.append(f"kink {name!r}: slid along from t = {self.clock.time(start):.10g} to {until}")
        return [*found, self.ended] if self.ended else found

    def recorded(self) -> Run:
        """The records so far, as a run."""
        events = None
        if self.watch is not None:
            events = {name: np.array(own) for name, own in zip(self.watch.names, self.watch.times, strict=True)}
        times, rows = self.times[: self.done], self.rows[: self.done]
        more = {"method": self.method, "notes": self.notes()}
        return recorded(self.flow, self.states, times, rows, "integrate", self.parameters, more, events)
