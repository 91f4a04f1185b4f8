"""A flow of any data as a member of an ensemble: the systems of `gradient_flow`, integrated by calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from dynamics._engine import lanes as ensemble
from dynamics._engine.dop853 import NOT_FINITE, TOO_SMALL, Called, Dop853, Inside, Polynomial
from dynamics._engine.drive import drive
from dynamics._model.objective import Objective
from dynamics.bags import Bags
from dynamics.fields.system import FlowSetting
from dynamics.fields.table import entry_of, system_for
from dynamics.layer import Layer
from dynamics.observables import Support

_TOO_LONG = "too many evaluations"
# Reason to stop -> reason in the words of a member.
_STATUS = {
    None: ensemble.DONE,
    TOO_SMALL: ensemble.STEP_TOO_SMALL,
    NOT_FINITE: ensemble.NOT_FINITE,
    _TOO_LONG: ensemble.TOO_LONG,
}


@dataclass(frozen=True)
class Entries:
    """Recorded entries of a population: the logits z[query, token] that occur, and attention of next tokens.

    Attributes
    ----------
    query, token : (kinds,) int
    support : Support
        Pairs (next token, token).
    """

    query: np.ndarray
    token: np.ndarray
    support: Support

    @classmethod
    def of(cls, bags: Bags) -> Entries:
        """Pairs of these bags, sorted."""
        pairs: np.ndarray = np.unique(np.stack([bags.query[bags.owner], bags.token]), axis=1)
        return cls(pairs[0], pairs[1], Support(bags))

    def kinds(self) -> list[str]:
        """The logits in words."""
        return [f"query {q}, token {token}" for q, token in zip(self.query, self.token, strict=True)]

    def pairs(self) -> list[str]:
        """The pairs in words."""
        rows = self.support.present[self.support.row]
        return [f"next token {n}, token {token}" for n, token in zip(rows, self.support.token, strict=True)]


@dataclass
class Member:
    """The result of a flow; rows beyond its end are nan."""

    z: np.ndarray
    velocity: np.ndarray
    attention: np.ndarray
    loss: np.ndarray
    peak: np.ndarray
    evaluations: int = 0
    reached: float = 0.0
    status: int = ensemble.DONE

    def results(self) -> dict[str, Any]:
        """Name of an ensemble's variable -> result."""
        return {
            "z": self.z,
            "z_velocity": self.velocity,
            "attention": self.attention,
            "loss": self.loss,
            "fastest_time": self.peak[0],
            "largest_speed": self.peak[1],
            "evaluations": self.evaluations,
            "reached": self.reached,
            "failed": self.status != ensemble.DONE,
            "reason": self.status,
        }


def integrate(
    entries: Entries,
    rates: dict[str, float],
    decoder: str,
    times: np.ndarray,
    end: float,
    rtol: float,
    atol: float,
    *,
    peaks: bool,
) -> Member:
    """Integrate the flow from zeros to ``end``; with ``peaks``, find largest speeds."""
    bags = entries.support.bags
    n, m = entries.query.size, entries.support.token.size
    z, velocity, attention = (np.full((times.size, k), np.nan) for k in (n, n, m))
    found = Member(z, velocity, attention, np.full(times.size, np.nan), np.array([[np.nan], [0.0]]) * np.ones(n))
    setting, entry = FlowSetting(bags, Layer.zeros(bags), None, rates, Objective()), entry_of(decoder)
    try:
        system = system_for(setting, entry, reduce=True)
    except ValueError:
        if not entry.inverts:
            raise
        found.status = ensemble.DEPENDENT
        return found
    where = system.z_places(entries.query, entries.token)

    def bind(state: np.ndarray, out: np.ndarray) -> Callable[[float], None]:
        def evaluate(_: float) -> None:
            found.evaluations += 1
            out[:] = system.derivative(state)

        return evaluate

    def exceeded(steps: Dop853, _: float) -> str | None:
        return _TOO_LONG if found.evaluations > ensemble.MOST_EVALUATIONS else None

    states = np.empty((times.size, system.initial.size))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if not np.isfinite(system.derivative(system.initial)).all():
            found.status = ensemble.NOT_FINITE_AT_START
            return found
        slopes = Called(bind, system.initial.size)
        steps = Dop853(slopes, end, system.initial, rtol=rtol, atol=atol)
        fastest = Fastest(slopes.last, where, found.peak)
        within = fastest.within if peaks else None
        done, reason = drive(steps, times, states, exceeded, within=within, until=end)
        if reason not in _STATUS:
            raise ValueError(reason)  # of a field from outside
        found.reached, found.status = float(steps.s), _STATUS[reason]
        if done:
            layers = [system.layer(state) for state in states[:done]]
            found.z[:done] = [layer.Z[entries.query, entries.token] for layer in layers]
            found.velocity[:done] = system.observe(states[:done]).velocity[:, entries.query, entries.token]
            found.attention[:done] = [entries.support.attention(layer.sparse_attention(bags)) for layer in layers]
            found.loss[:done] = [layer.loss(bags) for layer in layers]
    if reason is None:
        fastest.end()
    return found


class Fastest:
    """Search for the times of largest speeds, and these speeds, in ``peak`` (2, variables), along steps of DOP853.

    Parameters
    ----------
    slope : (n,) array
        The array in which a step leaves the slope at its end.
    where : (variables,) int
    """

    def __init__(self, slope: np.ndarray, where: np.ndarray, peak: np.ndarray) -> None:
        self._slope, self._where, self._peak = slope, where, peak
        self._speed, self._after = np.zeros(where.size), np.abs(slope[where])
        self._last: Inside | None = None

    def within(self, _: float, steps: Dop853) -> None:
        """Update the search by a step."""
        before, speed, self._after = self._speed, self._after, np.abs(self._slope[self._where])
        self._speed, after = speed, self._after
        needed = (speed > 0) & (speed >= before) & (speed >= after) & (speed >= 0.9 * self._peak[1])
        # Search the steps on both sides of the fastest state, so keep a step that speeds up.
        step = steps.interpolant() if needed.any() or (after >= speed).any() else None
        for kind in np.flatnonzero(needed & (self._last is not None)):
            for part in (self._last, step):
                assert part is not None
                peak, terms = self._peak[:, kind], cast(Polynomial, part.within).terms
                share, fastest = ensemble._fastest(np.array([term[self._where[kind]] for term in terms]))
                if fastest / part.size > peak[1]:
                    peak[:] = part.start + share * part.size, fastest / part.size
        self._last = step

    def end(self) -> None:
        """Record variables that are fastest at the end."""
        rising = self._after > self._peak[1]
        self._peak[:, rising] = np.stack([np.full(rising.size, np.nan), self._after])[:, rising]
