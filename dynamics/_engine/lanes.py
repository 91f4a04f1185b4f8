"""Many small flows in Theorem 4's setting at once, sixteen side by side in one loop.

The setting: one token common to all K classes, D distinct tokens of each class, one query, equal class probabilities.
From a start of zeros, all classes are copies of each other, as are all next tokens that never occur. So a state has few
numbers (`fields.orbits`):

- z of the common token and of the D distinct tokens of a class;
- the common token's decoder logits at a next token that occurs (a) and at one that does not (b);
- a distinct token's at its own next token (p), at that of another class (q), at one that never occurs (r).

The method is DOP853 with scipy's step sizes, error norm and interpolant, so a member takes the steps of `gradient_flow`
where that is reduced and not stiff. `LANES` members go side by side, each with its own time, step and error. Numbers of
all lanes form a row, and one field computes with rows (`_engine.lane_field`, `backend.lanes`). When a member ends, its
lane takes the next. Steps with outputs, or with a possible largest speed, are collected until there is one for each
lane. The results of a member do not depend on the other members.

Measured on 2000 full flows (K 2 to 50, M 100 to 100,000, rates over two decades, rtol 1e-8, t = 10,000; processor time
of one core): 0.10 ms a flow, 3.5 times less than one after the other by the same scheme. docs/benchmarks.md has the
others: a loop over `gradient_flow`, scipy on stacked states, diffrax under vmap, heyoka's Taylor series.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics._engine import lane_field, tableau
from dynamics._engine.lane_field import decoded, field, losses_of, numbers_of
from dynamics._engine.lane_records import Asked, Lanes, State
from dynamics._engine.tableau import EXTENDED, STAGES
from dynamics.backend import lanes as rows_of_lanes
from dynamics.backend.compiled import kernel
from dynamics.backend.lanes import LANES, absolute, filled, larger, load, store, where

_OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "uses": (rows_of_lanes, tableau, lane_field)}

# Give a member up after this many evaluations: they take a second, and a usual flow needs a thousand.
MOST_EVALUATIONS = 2_000_000

# Reasons why a member stopped.
(DONE, NOT_FINITE_AT_START, STEP_TOO_SMALL, NOT_FINITE, TOO_LONG, DEPENDENT, INTERRUPTED) = range(7)
REASONS = {
    DONE: "",
    NOT_FINITE_AT_START: "the derivative is not finite at the start",
    STEP_TOO_SMALL: "the step size is too small to advance the time",
    NOT_FINITE: "the state is no longer finite",
    TOO_LONG: f"more than {MOST_EVALUATIONS:,} evaluations of the derivative",
    DEPENDENT: "the features f_n are linearly dependent, and the decoder inverts F^T F",
    INTERRUPTED: "interrupted",
}
# As in `fields.modified`: features count as independent if 1 - rho, the smallest eigenvalue of F^T F, is above this.
_SINGULAR = 1e-12
# Rows of `records.Combinations`.
_EULER, _FIFTH, _THIRD, _INTERPOLANT = 16, 17, 18, 19
_POWER = 7
# Slopes for the interpolant of a step.
_KEPT = (0, 5, 6, 7, 8, 9, 10, 11, 12)


@kernel(inner=True, **_OPTIONS)
def _lanes(size, kinds):
    """Empty lanes, all zeros."""
    slopes = np.zeros((EXTENDED + 1, size, LANES))
    y, new = np.zeros((size, LANES)), np.zeros((size, LANES))
    return Lanes(np.ones((4, LANES)), np.ones((kinds, LANES)), y, new, slopes, np.zeros(LANES), np.zeros(LANES))


@kernel(inner=True, **_OPTIONS)
def _combined(means, k, slopes, i):
    """Weighted mean k of the slopes of the state's number i."""
    size, stages, weights = slopes.shape[1], means.slopes[k], means.weights[k]
    total = filled(0.0)
    for j in range(means.terms[k]):
        total = total + weights[j] * load(slopes, stages[j] * size + i)
    return total


@kernel(inner=True, **_OPTIONS)
def _stages(kind, means, first, last, lanes, f):
    """Compute the derivatives ``first`` to ``last``, each after a move by h along a mean of earlier ones.

    Only this function calls the field: a second call would double the time of compilation. Row 0 (with h = 0) is the
    derivative of the state itself, row 16 belongs to an Euler step.
    """
    h = load(lanes.h, 0)
    for k in range(first, last):
        for i in range(lanes.y.shape[0]):
            store(lanes.new, i, load(lanes.y, i) + h * _combined(means, k, lanes.slopes, i))
        field(kind, lanes.new, lanes.setting, lanes.count, f, lanes.slopes[k])


@kernel(inner=True, **_OPTIONS)
def _errors(kind, means, lanes, rtol, atol, out):
    """Write the error of each trial step, in units of the tolerance, into row 0 of ``out``.

    Row 1 is zero, or nan if the new state is not finite.
    """
    y, slopes = lanes.y, lanes.slopes
    fifths, thirds = np.int64(_FIFTH), np.int64(_THIRD)  # variables, since numba compiles anew for each literal
    fifth = third = strange = filled(0.0)
    for i in range(y.shape[0]):
        new = load(lanes.new, i)
        size = atol + rtol * larger(absolute(new), absolute(load(y, i)))
        e5, e3 = _combined(means, fifths, slopes, i) / size, _combined(means, thirds, slopes, i) / size
        fifth, third = fifth + e5 * e5, third + e3 * e3
        strange = strange + 0.0 * new
    store(out, 0, fifth)
    store(out, 1, third)
    for l in range(LANES):
        both = out[0, l] + 0.01 * out[1, l]
        n = numbers_of(kind, lanes.count.shape[0], lanes.setting[0, l], lanes.setting[1, l])
        out[0, l] = 0.0 if both == 0.0 else lanes.h[l] * out[0, l] / np.sqrt(both * n)
    store(out, 1, strange)


@kernel(inner=True, **_OPTIONS)
def _interpolants(means, steps, end, F):
    """Coefficients of the interpolants of steps (7th order): numbers of the state by powers."""
    h, slopes = load(steps.h, 0), steps.slopes
    size = end.shape[0]
    for i in range(size):
        delta = load(end, i) - load(steps.y, i)
        before, after = h * load(slopes, i), h * load(slopes, STAGES * size + i)
        store(F, i * _POWER, delta)
        store(F, i * _POWER + 1, before - delta)
        store(F, i * _POWER + 2, 2.0 * delta - (after + before))
        for d in range(3, _POWER):
            store(F, i * _POWER + d, h * _combined(means, _INTERPOLANT + d - 3, slopes, i))


@kernel(inner=True, **_OPTIONS)
def _moved(F, x):
    """Displacement of an entry at the share x of a step, and its derivative by x."""
    value = slope = 0.0
    for d in range(_POWER):
        value += F[_POWER - 1 - d]
        if d % 2 == 0:
            slope = slope * x + value
            value *= x
        else:
            slope = slope * (1.0 - x) - value
            value *= 1.0 - x
    return value, slope


@kernel(**_OPTIONS)
def _fastest(F):
    """Share of a step at which an entry moves fastest, and its derivative there by the share.

    The search takes the fastest of nine points, then Newton's method for a zero of the second derivative nearby.
    """
    best, fastest = 0.0, -1.0
    for k in range(9):
        speed = abs(_moved(F, k / 8)[1])
        if speed > fastest:
            best, fastest = k / 8, speed
    x = best
    for _ in range(5):
        # Derivatives of `_moved`: the value, and the first to third by x.
        d0 = d1 = d2 = d3 = 0.0
        for d in range(_POWER):
            d0 += F[_POWER - 1 - d]
            sign, factor = (1.0, x) if d % 2 == 0 else (-1.0, 1.0 - x)
            d3 = d3 * factor + 3.0 * sign * d2
            d2 = d2 * factor + 2.0 * sign * d1
            d1 = d1 * factor + sign * d0
            d0 *= factor
        if d3 == 0.0:
            break
        x = min(max(x - d2 / d3, best - 0.125, 0.0), best + 0.125, 1.0)
    speed = abs(_moved(F, x)[1])
    return (x, speed) if speed >= fastest else (best, fastest)


@kernel(inner=True, **_OPTIONS)
def _answer(kind, means, asked, times, f, F, term, losses, out):
    """Find the largest speeds in the collected steps, record outputs in them, and empty the collection."""
    steps, width = asked.steps, asked.needed.shape[0]
    filled = asked.filled[0]
    _stages(kind, means, np.int64(STAGES + 1), np.int64(EXTENDED), steps, f)
    _interpolants(means, steps, asked.end, F)
    most = 0
    for slot in range(filled):
        m, h = asked.who[slot], steps.h[slot]
        most = max(most, asked.last[slot] - asked.first[slot])
        for i in range(width):
            if asked.needed[i, slot] != 0:
                for d in range(_POWER):
                    term[d] = F[i, d, slot]
                share, speed = _fastest(term)
                if speed / h > out.peak[m, 1, i]:
                    out.peak[m, 0, i], out.peak[m, 1, i] = steps.t[slot] + share * h, speed / h
    for k in range(most):
        for i in range(steps.y.shape[0]):
            for slot in range(filled):
                if asked.first[slot] + k < asked.last[slot]:
                    for d in range(_POWER):
                        term[d] = F[i, d, slot]
                    x = (times[asked.first[slot] + k] - steps.t[slot]) / steps.h[slot]
                    steps.new[i, slot] = steps.y[i, slot] + _moved(term, x)[0]
        field(kind, steps.new, steps.setting, steps.count, f, steps.slopes[EXTENDED])
        losses_of(kind, steps.new, steps.setting, steps.count, f, losses)
        for slot in range(filled):
            at, m = asked.first[slot] + k, asked.who[slot]
            if at < asked.last[slot]:
                total = 0.0
                for i in range(width):
                    total += f[i, slot]
                for i in range(width):
                    out.z[m, at, i], out.attention[m, at, i] = steps.new[i, slot], f[i, slot] / total
                    out.velocity[m, at, i] = steps.slopes[EXTENDED, i, slot]
                out.loss[m, at] = losses[0, slot]
                decoded(kind, slot, steps.new, steps.setting, f, out.decoded[m, at])
    asked.filled[0] = 0


@kernel(inner=True, **_OPTIONS)
def _ask(l, run, before, state, asked, out):
    """Collect steps of lanes from l on while there is room; returns the next lane.

    Collected are steps with outputs, and both neighbours of a state where a logit may be fastest.
    """
    steps, size = asked.steps, run.y.shape[0]
    while l < LANES and asked.filled[0] <= LANES - 2:
        for side in range(2):
            if state.accepted[l] > 0.0 and (state.sought[l] > 0 or (side == 1 and state.due[l] > state.recorded[l])):
                slot = asked.filled[0]
                asked.filled[0] += 1
                asked.who[slot], asked.first[slot] = state.who[l], state.recorded[l]
                asked.last[slot] = state.due[l] if side == 1 else state.recorded[l]
                steps.t[slot] = run.t[l] if side == 1 else before.t[l]
                steps.h[slot] = run.h[l] if side == 1 else before.h[l]
                for i in range(run.count.shape[0]):
                    asked.needed[i, slot], steps.count[i, slot] = state.needed[i, l], run.count[i, l]
                for c in range(4):
                    steps.setting[c, slot] = run.setting[c, l]
                for i in range(size):
                    steps.y[i, slot] = run.y[i, l] if side == 1 else before.y[i, l]
                    asked.end[i, slot] = run.new[i, l] if side == 1 else run.y[i, l]
                slopes = run.slopes if side == 1 else before.slopes
                for k in _KEPT:
                    for i in range(size):
                        steps.slopes[k, i, slot] = slopes[k, i, l]
                out.told[state.who[l], 0] += EXTENDED - STAGES - 1
        l += 1
    return l


@kernel(inner=True, **_OPTIONS)
def _begin(kind, means, members, counts, end, atol, run, f, first, slopes, out):
    """The derivative at zero of every member, and the length of its first step by scipy's rule.

    Source: Hairer, Norsett, Wanner, Sec. II.4, for a zero state.
    """
    n, width = counts.shape
    size = run.y.shape[0]
    h0 = min(1e-6, end)
    for start in range(0, n, LANES):
        for l in range(LANES):
            m = min(start + l, n - 1)
            run.h[l] = h0
            for c in range(4):
                run.setting[c, l] = members[m, c]
            for i in range(width):
                run.count[i, l] = counts[m, i]
        # Derivatives at zero and after an Euler step.
        for k in range(0, _EULER + 1, _EULER):
            _stages(kind, means, k, k + 1, run, f)
        for l in range(min(LANES, n - start)):
            free = 0.0
            for i in range(1, width):
                free += f[i, l] * f[i, l]
            if kind.inverts and not free >= _SINGULAR:
                out.status[start + l] = DEPENDENT
        for l in range(min(LANES, n - start)):
            m = start + l
            out.peak[m, 0], out.peak[m, 1] = np.nan, 0.0
            out.told[m, 0], out.told[m, 1] = 2.0, 0.0
            there = numbers_of(kind, width, members[m, 0], members[m, 1])
            d1 = d2 = 0.0
            for i in range(size):
                slopes[m, i] = run.slopes[0, i, l]
                d1 += (run.slopes[0, i, l] / atol) ** 2
                d2 += ((run.slopes[_EULER, i, l] - run.slopes[0, i, l]) / atol) ** 2
            d1, d2 = np.sqrt(d1 / there), np.sqrt(d2 / there) / h0
            h1 = max(1e-6, h0 * 1e-3) if d1 <= 1e-15 and d2 <= 1e-15 else (0.01 / max(d1, d2)) ** 0.125
            first[m] = min(100 * h0, h1, end)
            for i in range(size):
                if out.status[m] == INTERRUPTED and not np.isfinite(slopes[m, i]):
                    out.status[m] = NOT_FINITE_AT_START
    for l in range(LANES):
        run.h[l] = 0.0


@kernel(inner=True, **_OPTIONS)
def _take(l, m, members, counts, first, slopes, run, state):
    """Start member m in lane l."""
    state.who[l], state.taken[l], state.recorded[l], state.rejected[l] = m, 0, 0, 0
    run.t[l], run.h[l] = 0.0, first[m]
    for c in range(4):
        run.setting[c, l] = members[m, c]
    for i in range(counts.shape[1]):
        run.count[i, l], state.fastest[i, l] = counts[m, i], 0.0
    for i in range(run.y.shape[0]):
        run.y[i, l], run.slopes[0, i, l] = 0.0, slopes[m, i]


@kernel(inner=True, **_OPTIONS)
def _shift(run, before, accepted):
    """For lanes with an accepted step, keep it as the previous step and start from its end."""
    size, yes = run.y.shape[0], load(accepted, 0)
    for i in range(size):
        for k in _KEPT:
            j = k * size + i
            store(before.slopes, j, where(yes, load(run.slopes, j), load(before.slopes, j)))
        y = load(run.y, i)
        store(before.y, i, where(yes, y, load(before.y, i)))
        store(run.y, i, where(yes, load(run.new, i), y))
        store(run.slopes, i, where(yes, load(run.slopes, STAGES * size + i), load(run.slopes, i)))


@kernel(inner=True, **_OPTIONS)
def _fill(members, counts, order, end, most, first, slopes, run, state, out):
    """Give members to empty lanes, and a trial length to all; returns the number of lanes with a member."""
    live = 0
    for l in range(LANES):
        while True:
            if state.who[l] < 0:
                while state.next[0] < order.size and out.status[order[state.next[0]]] != INTERRUPTED:
                    state.next[0] += 1
                if state.next[0] == order.size:
                    run.h[l] = 0.0
                    break
                _take(l, order[state.next[0]], members, counts, first, slopes, run, state)
                state.next[0] += 1
            m, t = state.who[l], run.t[l]
            smallest = 10.0 * abs(np.nextafter(t, np.inf) - t)
            h = run.h[l] if state.rejected[l] != 0 else max(run.h[l], smallest)
            if h >= smallest and out.told[m, 0] <= most:
                state.t_new[l] = min(t + h, end)
                run.h[l] = state.t_new[l] - t
                live += 1
                break
            out.status[m], state.who[l] = TOO_LONG if h >= smallest else STEP_TOO_SMALL, -1
    return live


@kernel(inner=True, **_OPTIONS)
def _judge(told, times, peaks, run, before, state, out):
    """Accept or reject the trial step of each lane; note due outputs, and logits that may be fastest in it."""
    for l in range(LANES):
        state.accepted[l], m, error = 0.0, state.who[l], told[0, l]
        if m < 0:
            continue
        out.told[m, 0] += STAGES
        if not error < 1.0:
            factor = 0.9 * error**-0.125
            run.h[l] *= factor if factor > 0.2 else 0.2  # nan gives 0.2
            state.rejected[l] = 1
            continue
        if told[1, l] != 0.0:
            out.status[m], state.who[l] = NOT_FINITE, -1
            continue
        state.accepted[l], state.due[l], state.sought[l] = 1.0, state.recorded[l], 0
        while state.due[l] < times.size and times[state.due[l]] <= state.t_new[l]:
            state.due[l] += 1
        # If a logit is faster between two steps than at their outer ends, one of the two contains its peak.
        for i in range(run.count.shape[0] if peaks else 0):
            middle = abs(run.slopes[0, i, l])
            state.fastest[i, l] = max(state.fastest[i, l], middle)
            peak = state.taken[l] > 0 and middle >= abs(before.slopes[0, i, l])
            peak = peak and middle >= abs(run.slopes[STAGES, i, l]) and middle >= 0.9 * state.fastest[i, l]
            state.needed[i, l] = peak
            state.sought[l] += peak


@kernel(inner=True, **_OPTIONS)
def _go_on(told, end, run, before, state, out, final):
    """For lanes with an accepted step, start the next step or end the member."""
    for l in range(LANES):
        if state.accepted[l] == 0.0:
            continue
        m, h, error = state.who[l], run.h[l], told[0, l]
        before.t[l], before.h[l] = run.t[l], h
        run.t[l] = out.told[m, 1] = state.t_new[l]
        factor = 10.0 if error == 0.0 else min(10.0, 0.9 * error**-0.125)
        run.h[l] = h * (min(1.0, factor) if state.rejected[l] != 0 else factor)
        state.taken[l], state.rejected[l], state.recorded[l] = state.taken[l] + 1, 0, state.due[l]
        if run.t[l] >= end:
            out.status[m], state.who[l] = DONE, -1
            for i in range(final.shape[1]):
                final[m, i] = abs(run.slopes[0, i, l])


@kernel(nogil=True, **_OPTIONS)
def integrate(kind, means, members, counts, order, times, peaks, end, rtol, atol, most, stop, out):
    """Integrate members from zeros to ``end``, or until ``stop`` is set.

    ``members`` has rows of K, M, eta_Y, eta_Z; ``counts`` has their counts. Each lane has its own steps, and takes the
    next member in ``order`` when its own ends. Without ``peaks``, no largest speeds are sought.
    """
    n, width = counts.shape
    size = numbers_of(kind, width, 0.0, 1.0)
    run, before = _lanes(size, width), _lanes(size, width)
    none, one = np.zeros(LANES, np.int64), np.zeros(1, np.int64)
    asked = Asked(_lanes(size, width), np.zeros((size, LANES)), none.copy(), none.copy(), none.copy(),
                  np.zeros((width, LANES), np.int64), one.copy())  # fmt: skip
    state = State(none - 1, none.copy(), none.copy(), none.copy(), none.copy(), none.copy(), np.zeros(LANES),
                  np.zeros(LANES), np.zeros((width, LANES)), np.zeros((width, LANES), np.int64), one)  # fmt: skip
    f, told, losses = np.zeros((width, LANES)), np.zeros((2, LANES)), np.zeros((3, LANES))
    F, term = np.zeros((size, _POWER, LANES)), np.zeros(_POWER)
    first, slopes, final = np.zeros(n), np.zeros((n, size)), np.zeros((n, width))
    _begin(kind, means, members, counts, end, atol, run, f, first, slopes, out)
    live = 1
    while live > 0 and stop[0] == 0:
        live = _fill(members, counts, order, end, most, first, slopes, run, state, out)
        if live > 0:
            _stages(kind, means, np.int64(1), np.int64(STAGES + 1), run, f)
            _errors(kind, means, run, rtol, atol, told)
        _judge(told, times, peaks, run, before, state, out)
        l = 0
        while l < LANES:
            l = _ask(l, run, before, state, asked, out)
            if asked.filled[0] > (LANES - 2 if live > 0 else 0):
                _answer(kind, means, asked, times, f, F, term, losses, out)
        _shift(run, before, state.accepted)
        _go_on(told, end, run, before, state, out, final)
    for m in range(n):
        for i in range(width):
            if out.status[m] == DONE and final[m, i] > out.peak[m, 1, i]:
                out.peak[m, 0, i], out.peak[m, 1, i] = np.nan, final[m, i]
