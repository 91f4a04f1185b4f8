"""A flow of any data as a member of an ensemble: the systems of `gradient_flow`, integrated by scipy's DOP853."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # which imports its integrators when they are first used

from dynamics._engine import lanes as ensemble
from dynamics._model.objective import Objective
from dynamics.bags import Bags
from dynamics.fields.system import Setting
from dynamics.fields.table import entry_of, system_for
from dynamics.layer import Layer
from dynamics.observables import Support


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
    """The result of a flow; rows that were not reached are nan."""

    z: np.ndarray
    velocity: np.ndarray
    attention: np.ndarray
    loss: np.ndarray
    peak: np.ndarray
    evaluations: int = 0
    reached: float = 0.0
    status: int = ensemble.DONE

    def results(self) -> dict[str, Any]:
        """By the names of an ensemble's variables."""
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
    """Integrate the flow from zeros to ``end``; largest speeds are looked for if ``peaks``."""
    bags = entries.support.bags
    n, m = entries.query.size, entries.support.token.size
    z, velocity, attention = (np.full((times.size, k), np.nan) for k in (n, n, m))
    found = Member(z, velocity, attention, np.full(times.size, np.nan), np.array([[np.nan], [0.0]]) * np.ones(n))
    setting = Setting(bags, Layer.zeros(bags), None, rates, Objective())
    try:
        system = system_for(setting, decoder, reduce=True)
    except ValueError:
        if not entry_of(decoder).inverts:
            raise
        found.status = ensemble.DEPENDENT
        return found
    where = system.z_places(entries.query, entries.token)

    def right_hand_side(_: float, state: np.ndarray) -> np.ndarray:
        found.evaluations += 1
        return system.derivative(state)

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if not np.isfinite(system.derivative(system.initial)).all():
            found.status = ensemble.NOT_FINITE_AT_START
            return found
        solver = scipy.integrate.DOP853(right_hand_side, 0.0, system.initial, end, rtol=rtol, atol=atol)
        recorded, after = 0, np.abs(solver.f[where])
        speed, last = np.zeros(n), None
        step: Any = None
        while solver.status == "running":
            before, speed = speed, after
            message = solver.step()
            found.reached = float(solver.t)
            if message:
                found.status = ensemble.STEP_TOO_SMALL
            elif not np.isfinite(solver.y).all():
                found.status = ensemble.NOT_FINITE
            elif found.evaluations > ensemble.MOST_EVALUATIONS:
                found.status = ensemble.TOO_LONG
            if found.status != ensemble.DONE:
                return found
            after = np.abs(solver.f[where])
            due = recorded < times.size and times[recorded] <= solver.t
            needed = (speed > 0) & (speed >= before) & (speed >= after) & (speed >= 0.9 * found.peak[1]) & peaks
            # A peak is looked for in the steps on both sides of the fastest state: one that speeds up is kept.
            step = solver.dense_output() if due or needed.any() or (peaks and (after >= speed).any()) else None
            for kind in np.flatnonzero(needed & (last is not None)):
                for part in (last, step):
                    _fastest(part, where[kind], found.peak[:, kind])
            while recorded < times.size and times[recorded] <= solver.t:
                state = np.ascontiguousarray(step(times[recorded]))
                layer = system.layer(state)
                found.z[recorded] = layer.Z[entries.query, entries.token]
                found.velocity[recorded] = system.observe(state[None]).velocity[0][entries.query, entries.token]
                found.attention[recorded] = entries.support.attention(layer.sparse_attention(bags))
                found.loss[recorded] = layer.loss(bags)
                recorded += 1
            last = step
    rising = after > found.peak[1]
    found.peak[:, rising] = np.stack([np.full(n, np.nan), after])[:, rising]
    return found


def _fastest(step: Any, variable: int, peak: np.ndarray) -> None:
    """Put in ``peak`` where a variable moves fastest in a step of DOP853, and how fast, if that is faster."""
    place, speed = ensemble._fastest(np.ascontiguousarray(step.F[:, variable]))
    if speed / step.h > peak[1]:
        peak[:] = step.t_old + place * step.h, speed / step.h
