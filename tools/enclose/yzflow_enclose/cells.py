"""Cells of settings: bounds of the flow for *every* setting in a box of them, at every time.

A cell has a range of eta_Z and one of the common token's weight; s1 and s2 run over them, from -1 to 1. A step has for
each variable a polynomial p(t, s) in time and in both. Its defect p' - f(p, s) has two parts: the terms up to degree n
in s, each a series in time with a remainder, and the terms beyond degree n, bounded by jets (`yzflow_enclose.jets`).
The logarithmic norm of the Jacobian is bounded over the tube around all p(t, s) at once. The bound comes from a jet of
the Jacobian in t and s, so that the dependence on s is not counted as an uncertainty of the state. As in
`yzflow_enclose.stepping`, these bound the distance of the solution to p(t, s), here for every s.

Signs of sums of velocities are decided. Velocities are derivatives of the polynomials, and so polynomials in t and s,
up to a bound of their error.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from typing import Any

import numpy as np
from flint import arb, arb_poly

from dynamics.support import checks
from yzflow_enclose import certificate
from yzflow_enclose.cell import BITS, ORDER, Cell, CellStep
from yzflow_enclose.cell_bounds import GOAL, Bounds
from yzflow_enclose.certified import Certified, environment, error_bounds
from yzflow_enclose.claims import CELL, CELL_FORMAT, HIGHEST_DEGREE, cell_words, check
from yzflow_enclose.signs import Sign, Watch
from yzflow_enclose.stepping import above, precision

# The largest radius of a tube: beyond, velocities are unknown.
_LOST = 0.03


@dataclass(repr=False)
class CellEnclosure(Certified):
    """Steps of a cell, the signs that they decide, and the reason for their end; from `decide_cell` or `load`.

    A loaded enclosure is a claim of the file's author: it verifies itself before it answers anything.

    Attributes
    ----------
    cell : Cell
    degree : int
        Total degree in the two parameters.
    steps : list of CellStep
    reason : str
        Why it ends; empty if it reached ``t_end``.
    t_end : float
        The last time that was asked for.
    decided : dict of tuple to Sign
        Decided signs, by the coefficients c of each sum of velocities; use `signs`, which verifies them.
    environment : mapping
        Versions, processor and code of its making.
    fault : str
        Why the last `verify` returned False.
    """

    cell: Cell
    degree: int
    steps: list[CellStep] = default(default_factory=list)
    reason: str = ""
    t_end: float = 0.0
    decided: dict[tuple[float, ...], Sign] = default(default_factory=dict)
    environment: Mapping[str, str] = default(default_factory=dict)

    def __repr__(self) -> str:
        short = f" ({self.reason})" if self.reason else ""
        short += "" if self._trusted else ", not yet verified"
        return f"<CellEnclosure: {self.cell}, {len(self.steps)} steps to t = {self.t_reached:g}{short}>"

    @property
    def t_reached(self) -> float:
        return self.steps[-1].end if self.steps else 0.0

    def sign(self, claim: Sequence[float], t_end: float) -> Sign:
        """Sign of sum_i c_i dz_i/dt up to ``t_end``, from the steps; see `decide_cell`."""
        self._believe()
        return self._seen(claim).sign(t_end)

    def _seen(self, claim: Sequence[float], until: float | None = None) -> Watch:
        with precision(BITS):
            watch = Watch(Bounds(self.cell, self.degree), np.asarray(claim, float), until)
            for step in self.steps:
                watch.see(step)
        return watch

    @property
    def signs(self) -> dict[tuple[float, ...], Sign]:
        """Decided signs by the coefficients of each sum."""
        self._believe()
        return dict(self.decided)

    def verify(self) -> bool:
        """True if every bound, computed again from the polynomials, is within the claim, and every sign is right.

        ``python -m yzflow_enclose.verifier FILE`` does the same with independent code.
        """
        return self._judged(self._check_steps() or self._check_signs() or self._check_claim())

    def _check_steps(self) -> str:
        with precision(BITS):
            bounds = Bounds(self.cell, self.degree)
            state, error, now = bounds.zero, arb(0), 0.0
            for k, step in enumerate(self.steps):
                if step.start != now or not step.end > step.start:
                    return f"step {k} does not start where the last one ended, or does not end after it"
                for closer in (False, True):
                    delta = bounds.defect(step.polynomials, step.length, closer=closer)
                    found = bounds.step(step.polynomials, step.length, state, error, delta, arb(step.radius))
                    if found is not None and found.speed <= step.speed:
                        break
                if found is None:
                    return f"the error of step {k} is not within its radius"
                if not found.speed <= step.speed:
                    return f"the error of the velocity in step {k} is larger than it says"
                state, error, now = found.state, found.error, step.end
        return ""

    def _check_signs(self) -> str:
        for number, (row, sign) in enumerate(self.decided.items()):
            watch, at = self._seen(row, sign.reached), sign.time
            good = watch.reached >= sign.reached
            if at is not None:
                with precision(BITS):
                    good = good and any(one.start < at <= one.end and watch.is_negative(one, at) for one in self.steps)
            if not good:
                return f"sum {number} has another sign than it says"
        return ""

    def _check_claim(self) -> str:
        if self._claimed is None:
            return ""
        close = all(bound <= said for bound, said in zip(self._errors(), self._claimed["errors"], strict=True))
        return "" if close else "an error is larger than the claim says"

    def _errors(self) -> list[float]:
        with precision(BITS):
            return error_bounds((step.radius for step in self.steps), self._weights())

    def _weights(self) -> np.ndarray:
        with precision(BITS):
            return Bounds(self.cell, self.degree).weights

    @property
    def claim(self) -> dict[str, Any]:
        """The claim of its certificate, in plain content.

        Raises
        ------
        ValueError
            If it proves nothing.
        """
        self._believe()
        if not self.steps:
            raise ValueError(f"an enclosure without steps proves nothing, but {self.reason}")
        return {
            "format": CELL_FORMAT,
            **self.cell.claim(),
            "degree": self.degree,
            "t_end": self.t_end,
            "t_reached": self.t_reached,
            "errors": self._errors(),
            "predicates": [
                {"coefficients": list(row), "verdict": sign.value, "until": sign.reached}
                | ({"time": sign.time} if sign.value is False else {})
                for row, sign in self.decided.items()
            ],
        }

    @property
    def words(self) -> str:
        """Its claim in lines of plain words; ``print(found.words)``."""
        return "\n".join(cell_words(self.claim, self.cell.everywhere().names()))

    def arrays(self) -> dict[str, np.ndarray]:
        """The steps and the norm, as a certificate holds them."""
        names = ("start", "end", "radius", "speed", "limbs")
        return {name: np.array([getattr(step, name) for step in self.steps]) for name in names} | {
            "weights": self._weights()
        }

    def save(self, path: str | os.PathLike) -> None:
        """Write a certificate, a sealed archive: its `claim`, and the steps that prove it; completely or not at all.

        Raises
        ------
        ValueError
            If there is no step.
        OSError
            If the folder does not exist or cannot be written.
        """
        claim = check(self.claim, (CELL,))  # or it could not be read again
        certificate.write(path, claim, {"reason": self.reason, "environment": dict(self.environment)}, self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike, *, trust: bool = False) -> CellEnclosure:
        """Read a file of `save`. The enclosure is verified when it is first asked for anything.

        Parameters
        ----------
        path : path-like
        trust : bool
            Believe the file's author, and do not verify.

        Raises
        ------
        ValueError
            If a byte is not as it was written, the claim is none of `save`, or the file is something else.
        FileNotFoundError
            If there is no such file.
        """
        trust = checks.flag("trust", trust)
        claim, notes, arrays = certificate.read(path, kinds=(CELL,))
        if arrays["limbs"].shape[3:] != (ORDER + 1, 2):
            raise checks.reject("path", f"hold polynomials of degree {ORDER} in time", arrays["limbs"].shape)
        cell = Cell.of(claim)
        columns = (arrays[key].tolist() for key in ("start", "end"))
        rows = zip(*columns, arrays["limbs"], arrays["radius"].tolist(), arrays["speed"].tolist(), strict=True)
        signs = {
            tuple(made["coefficients"]): Sign(made["verdict"], made["until"], made.get("time"))
            for made in claim["predicates"]
        }
        steps = [CellStep.of(*row) for row in rows]
        found = cls(cell, claim["degree"], steps, t_end=claim["t_end"], decided=signs, **notes)
        if not np.array_equal(arrays["weights"], found._weights()):
            raise checks.reject("path", "hold the norm of its cell", checks.brief(arrays["weights"]))
        found._claimed, found._trusted = claim, trust
        return found


def decide_cell(
    cell: Cell,
    claims: Sequence[Sequence[float]],
    *,
    t_end: float,
    degree: int = 6,
    max_seconds: float | None = None,
) -> tuple[list[Sign], CellEnclosure]:
    r"""Decide whether sums of velocities are positive at every setting of a cell and every time 0 < t <= t_end.

    Parameters
    ----------
    cell : Cell
    claims : sequence of sequences of float
        For each sum, the coefficients c of sum_i c_i dz_i/dt, over the common token and then the distinct ones.
    t_end : float
        Last time, SGD steps.
    degree : int
        Degree of the polynomials in the parameters.
    max_seconds : float, optional

    Returns
    -------
    list of Sign, CellEnclosure
        The enclosure ends when every claim is decided, at ``t_end``, or before, with a reason.

    Raises
    ------
    ValueError
        If an argument is invalid.
    """
    t_end = checks.positive("t_end", t_end)
    degree = checks.integer("degree", degree, minimum=1, maximum=HIGHEST_DEGREE)
    rows = [checks.finite_array("claims", claim, ndim=1) for claim in claims]
    if any(row.shape != (1 + len(cell.distinct),) for row in rows):
        raise checks.reject("claims", "have a coefficient for each logit of a class", [row.shape for row in rows])
    began = time.monotonic()
    found = CellEnclosure(cell, degree, t_end=t_end, environment=environment())
    with precision(BITS):
        bounds = Bounds(cell, degree)
        watched = [Watch(bounds, row) for row in rows]
        state, error, now = bounds.zero, arb(0), 0.0
        shrink = 1.0
        while now < t_end and not found.reason and not all(watch.done for watch in watched):
            made = _stepped(bounds, state, error, now, t_end, shrink)
            if made is None:
                found.reason = "no step is short enough for its error to stay within its tube"
            elif made[0].radius > _LOST:
                found.reason = f"the radius grew to {made[0].radius:.1e}"
            elif max_seconds is not None and time.monotonic() - began > max_seconds:
                found.reason = f"{max_seconds:g} seconds were over"
            else:
                step, state, error, shrink = made
                found.steps.append(step)
                now = step.end
                for watch in watched:
                    watch.see(step)
        signs = [watch.sign(t_end) for watch in watched]
    found.decided = {tuple(row.tolist()): sign for row, sign in zip(rows, signs, strict=True)}
    return signs, found


def _stepped(
    bounds: Bounds, state: list[list[arb]], error: arb, now: float, t_end: float, shrink: float
) -> tuple[CellStep, list[list[arb]], arb, float] | None:
    """A step as long as its truncation error and its tube allow; None if no step is short enough."""
    series = bounds.series(state)
    polynomials = [[arb_poly(c) for c in row] for row in series]
    guess = _first_guess(series, bounds.weights)
    length = guess * shrink
    for _ in range(40):
        end = t_end if now + length >= t_end * (1 - 1e-12) else now + length
        if not end > now:
            return None
        span = arb(end) - arb(now)
        in_time = bounds.defect_in_time(polynomials, span)
        missed = above(in_time * span)
        if missed > 4 * GOAL:
            length = (end - now) * min(0.9, max(0.3, (GOAL / missed) ** (1 / (ORDER + 1))))
        elif made := bounds.step(polynomials, span, state, error, bounds.total(in_time, polynomials, span), None):
            step = CellStep(now, end, polynomials, above(made.radius), above(made.speed))
            return step, made.state, made.error, min(1.0, 1.1 * (end - now) / guess)
        else:
            length = (end - now) / 2
            if length < 1e-3 * now:
                return None
    return None


def _first_guess(series: list[list[list[arb]]], weights: np.ndarray) -> float:
    """The time at which the last terms of the series reach the goal of the truncation error."""
    shortest = 1e6
    for k in (ORDER - 1, ORDER):
        sizes = [w * sum(abs(float(c[k])) for c in row) for row, w in zip(series, weights, strict=True)]
        size = math.hypot(*sizes)
        if size > 0:
            shortest = min(shortest, (GOAL / size) ** (1 / k))
    return shortest
