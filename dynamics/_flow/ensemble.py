"""Many flows of Theorem 4's setting at once: each a handful of numbers, integrated in one compiled loop.

One token common to all K classes, D distinct tokens of each class, one query, equal class probabilities. From a start
of zeros every class is a copy of every other, and so are the next tokens that never occur. What is left
(`_flow.orbits`):

- z of the common token and of the D distinct tokens of a class;
- the common token's decoder logits at a next token that occurs (a) and at one that does not (b);
- a distinct token's at its own next token (p), at that of another class (q), at one that never occurs (r).

The method is scipy's DOP853 line by line (size of steps, norm of the error, interpolant), with its coefficients, so
that a member takes the steps that `gradient_flow` takes. Measured on 200 full flows (K 2 to 50, M 100 to 100,000,
rates over two decades, rtol 1e-8, t = 10,000; processor time of one core): 0.3 ms a flow, against 60 ms in a loop over
`gradient_flow`, 44 ms by scipy on the stacked state of 40 members with the largest norm of any, 11 ms in diffrax under
vmap, and 0.23 ms in heyoka, 0.15 ms in its batches (Taylor series, whose long steps stay stable where a flow is
stiff).

The reduced field has a kernel of its own, and does not call the one of `_model.kernels`: that one takes any batch and
makes its arrays anew in each call. Tests hold the two against each other at random states, for all three decoders.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dynamics.support.checks import read_only
from dynamics.support.compiled import kernel

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}}

DECODERS = ("full", "modified", "theory")
# Evaluations of the derivative after which a member is given up: a second, where a flow takes a thousand.
MOST_EVALUATIONS = 2_000_000

# Why a member stopped.
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
# As in `_model.modified`: the smallest eigenvalue of F^T F, here 1 - rho, of features that count as independent.
_SINGULAR = 1e-12
_STAGES, _EXTENDED, _POWER = 12, 16, 7


class Tableau(NamedTuple):
    """Coefficients of DOP853 (Hairer, Norsett, Wanner), scipy's.

    Attributes
    ----------
    A : (17, 16)
        Stages, with the new state as stage 12, the three more of the interpolant, and a step of Euler's.
    E3, E5 : (13,)
        Error estimates.
    D : (4, 16)
        Interpolant.
    """

    A: np.ndarray
    E3: np.ndarray
    E5: np.ndarray
    D: np.ndarray

    @classmethod
    def of_scipy(cls) -> Tableau:
        from scipy.integrate._ivp import dop853_coefficients as c  # a third of a second: when it is first needed

        A = np.vstack([c.A, np.eye(1, _EXTENDED)])
        A[_STAGES, :_STAGES] = c.B
        return cls(*(read_only(np.ascontiguousarray(part)) for part in (A, c.E3, c.E5, c.D)))


def size_of(decoder: str, n_distinct: int, *, unseen: bool) -> int:
    """Numbers of a state: z, then x = M h for "theory", or a, p, q and, if next tokens are ``unseen``, b, r."""
    if decoder == "theory":
        return 2 + n_distinct
    return 2 + 3 * n_distinct + (1 + n_distinct if unseen else 0)


@kernel(**_OPTIONS)
def _attend(y, count, f):
    """f of a class, common token first, from the logits at the start of ``y``; returns the sum of c over its norm."""
    width = count.size
    top = y[0]
    for i in range(1, width):
        top = max(top, y[i])
    total = square = 0.0
    for i in range(width):
        f[i] = count[i] * np.exp(y[i] - top)
        total += f[i]
        square += f[i] * f[i]
    scale = 1.0 / np.sqrt(square)
    for i in range(width):
        f[i] *= scale
    return total * scale


@kernel(**_OPTIONS)
def _field(decoder, y, member, count, f, dy):
    """The derivative of a state into ``dy``; returns the loss. ``member`` holds K, M, eta_Y, eta_Z.

    Lemma 1, Lemma 3 or (10) with Theorem 1. F^T F = (1 - rho) I + rho 1 1^T, rho = f_0^2, is inverted by the formula of
    Sherman and Morrison: a column with entry s at its own class and d at the K - 1 others becomes (s - mu) / (1 - rho)
    and (d - mu) / (1 - rho), mu = rho (s + (K - 1) d) / (1 + (K - 1) rho).
    """
    K, M, eta_y, eta_z = member[0], member[1], member[2], member[3]
    D = count.size - 1
    _attend(y, count, f)
    rho, rest = f[0] * f[0], 0.0
    for i in range(1, D + 1):
        rest += f[i] * f[i]
    spread = 1.0 + (K - 1.0) * rho
    if decoder == 2:
        x = y[D + 1]
        # 1 / inf is the right limit where a trial step overshoots.
        error = (M - 1.0) / (M - 1.0 + np.exp(x))
        s, d = x * error, -x * error / (M - 1.0)
        mu = rho * (s + (K - 1.0) * d) / spread
        own, other = (s - mu) / rest, (d - mu) / rest
        g = f[0] * (own + (K - 1.0) * other)
        inner = f[0] * g + rest * own
        dy[0] = eta_z * f[0] * (g - f[0] * inner)
        for i in range(1, D + 1):
            dy[i] = eta_z / K * f[i] * (f[i] * own - f[i] * inner)
        dy[D + 1] = M * eta_y / K / (M - 1.0 + np.exp(x))
        return np.log1p((M - 1.0) * np.exp(-x))
    a, p, q, b, r = D + 1, D + 1, 2 * D + 1, 3 * D + 2, 3 * D + 2  # entry i of p, q, r stands at p + i, i from 1
    unseen = M - K
    u_own = u_other = f[0] * y[a]
    u_rest = f[0] * y[b] if unseen > 0 else 0.0
    for i in range(1, D + 1):
        u_own += f[i] * y[p + i]
        u_other += f[i] * y[q + i]
        if unseen > 0:
            u_rest += f[i] * y[r + i]
    top = max(u_own, u_other)
    if unseen > 0:
        top = max(top, u_rest)
    e_own, e_other = np.exp(u_own - top), np.exp(u_other - top)
    e_rest = np.exp(u_rest - top) if unseen > 0 else 0.0
    others = (K - 1.0) * e_other + unseen * e_rest
    scale = 1.0 / (others + e_own)
    loss = np.log1p(others / e_own) if e_own > others else top - u_own + np.log(others + e_own)
    r_own, r_other, r_rest = others * scale, -e_other * scale, -e_rest * scale
    # g_n = Y r_n at the tokens of its own class, and f_n . g_n.
    g = (r_own + (K - 1.0) * r_other) * y[a]
    if unseen > 0:
        g += unseen * r_rest * y[b]
    inner = f[0] * g
    dy[0] = f[0] * g
    for i in range(1, D + 1):
        g = r_own * y[p + i] + (K - 1.0) * r_other * y[q + i]
        if unseen > 0:
            g += unseen * r_rest * y[r + i]
        inner += f[i] * g
        dy[i] = f[i] * g
    dy[0] = eta_z * (dy[0] - rho * inner)
    for i in range(1, D + 1):
        dy[i] = eta_z / K * (dy[i] - f[i] * f[i] * inner)
    own, other, all_alike = r_own, r_other, r_rest
    if decoder == 1:
        mu = rho * (r_own + (K - 1.0) * r_other) / spread
        own, other, all_alike = (r_own - mu) / rest, (r_other - mu) / rest, r_rest / spread
    rate = eta_y / K
    dy[a] = rate * f[0] * (own + (K - 1.0) * other)
    for i in range(1, D + 1):
        dy[p + i] = rate * f[i] * own
        dy[q + i] = rate * f[i] * other
    if unseen > 0:
        dy[b] = rate * f[0] * K * all_alike
        for i in range(1, D + 1):
            dy[r + i] = rate * f[i] * all_alike
    return loss


@kernel(**_OPTIONS)
def _norm(v, scale):
    """Root mean square of v / scale."""
    total = 0.0
    for i in range(v.size):
        total += (v[i] / scale[i]) ** 2
    return np.sqrt(total / v.size)


@kernel(**_OPTIONS)
def _stages(decoder, A, first, last, y, h, member, count, f, y_new, K):
    """The derivatives ``first`` to ``last`` into rows of K, each after a move by h along a mean of those before.

    Returns the loss at the last. All that is needed of the field is asked for here: a second place would double what
    the compiler has to do. Rows 0 (with h = 0) and 16 are those of a state itself and of a step of Euler's.
    """
    loss = 0.0
    for s in range(first, last):
        for i in range(y.size):
            y_new[i] = 0.0
        for j in range(min(s, _EXTENDED)):
            weight = A[s, j]
            if weight != 0.0:
                for i in range(y.size):
                    y_new[i] += weight * K[j, i]
        for i in range(y.size):
            y_new[i] = y[i] + h * y_new[i]
        loss = _field(decoder, y_new, member, count, f, K[s])
    return loss


@kernel(**_OPTIONS)
def _size(v, y, rtol, atol):
    """Root mean square of v in units of the tolerance at y."""
    total = 0.0
    for i in range(v.size):
        total += (v[i] / (atol + abs(y[i]) * rtol)) ** 2
    return np.sqrt(total / v.size)


@kernel(**_OPTIONS)
def _error(tableau, y, y_new, h, K, rtol, atol):
    """The norm of the error of a trial step."""
    fifth = third = 0.0
    for i in range(y.size):
        error5 = error3 = 0.0
        for s in range(_STAGES + 1):
            error5 += tableau.E5[s] * K[s, i]
            error3 += tableau.E3[s] * K[s, i]
        size = atol + max(abs(y[i]), abs(y_new[i])) * rtol
        fifth += (error5 / size) ** 2
        third += (error3 / size) ** 2
    if fifth == 0.0 and third == 0.0:
        return 0.0
    return h * fifth / np.sqrt((fifth + 0.01 * third) * y.size)


@kernel(**_OPTIONS)
def _interpolant(tableau, i, y, y_new, h, K, F):
    """Coefficients of entry i of the state between two steps (7th order)."""
    delta = y_new[i] - y[i]
    F[0] = delta
    F[1] = h * K[0, i] - delta
    F[2] = 2.0 * delta - h * (K[_STAGES, i] + K[0, i])
    for d in range(_POWER - 3):
        total = 0.0
        for s in range(_EXTENDED):
            total += tableau.D[d, s] * K[s, i]
        F[3 + d] = h * total


@kernel(**_OPTIONS)
def _moved(F, x):
    """How far an entry has moved at the share x of a step, and the derivative of that by x."""
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
    """Where in a step an entry moves fastest, as a share of the step, and its derivative there by that share.

    The fastest of nine points, then Newton's method for a zero of the second derivative beside it.
    """
    place, fastest = 0.0, -1.0
    for k in range(9):
        speed = abs(_moved(F, k / 8)[1])
        if speed > fastest:
            place, fastest = k / 8, speed
    x = place
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
        x = min(max(x - d2 / d3, place - 0.125, 0.0), place + 0.125, 1.0)
    speed = abs(_moved(F, x)[1])
    return (x, speed) if speed >= fastest else (place, fastest)


@kernel(**_OPTIONS)
def _decoded(decoder, y, member, f, out):
    """The decoder logits of a state, a, p, q, r, b, into ``out``; those of next tokens that are not there stay."""
    width, K, M = f.size, member[0], member[1]
    D = width - 1
    p, q, r, b = 0, D, 2 * D, 3 * D + 1
    if decoder == 2:
        # Y = F (I - E') [x_n (e_n - 1/M)]_n (Theorem 5), with the inverse of `_field`.
        x, rho, rest = y[width], f[0] * f[0], 0.0
        for i in range(1, width):
            rest += f[i] * f[i]
        spread = 1.0 + (K - 1.0) * rho
        s, d = x - x / M, -x / M
        mu = rho * (s + (K - 1.0) * d) / spread
        own, other = (s - mu) / rest, (d - mu) / rest
        out[0] = f[0] * (own + (K - 1.0) * other)
        for i in range(1, width):
            out[p + i], out[q + i] = f[i] * own, f[i] * other
        if M > K:
            out[b] = f[0] * K * d / spread
            for i in range(1, width):
                out[r + i] = f[i] * d / spread
        return
    out[0] = y[width]
    for i in range(1, width):
        out[p + i], out[q + i] = y[D + 1 + i], y[2 * D + 1 + i]
    if M > K:
        out[b] = y[3 * D + 2]
        for i in range(1, width):
            out[r + i] = y[3 * D + 2 + i]


@kernel(**_OPTIONS)
def _peaks(tableau, taken, ys, hs, starts, Ks, needed, F, peak):
    """Look for the largest speeds of logits in the last two steps, where the state between them is the fastest."""
    now = taken % 2
    for i in range(peak.shape[1]):
        if needed[i] == 0:
            continue
        for side in (1 - now, now):
            start, after = ys[(taken - (side != now)) % 3], ys[(taken + (side == now)) % 3]
            _interpolant(tableau, i, start, after, hs[side], Ks[side], F)
            place, speed = _fastest(F)
            if speed / hs[side] > peak[1, i]:
                peak[0, i], peak[1, i] = starts[side] + place * hs[side], speed / hs[side]


@kernel(**_OPTIONS)
def _member(decoder, tableau, member, count, times, end, rtol, atol, most, stop, n, z, attention, loss, velocity,
            decoded, peak, told):  # fmt: skip
    """Integrate one member from zeros to ``end``; ``told`` receives its evaluations and how far it came.

    ``peak`` receives when each logit moved fastest (nan if at the end) and how fast. Returns why it stopped.
    """
    width, A = count.size, tableau.A
    Ks, ys = np.zeros((2, _EXTENDED + 1, n)), np.zeros((3, n))
    f, work, state, F = np.empty(width), np.empty(n), np.empty(n), np.empty(_POWER)
    hs, starts, extended, needed = np.zeros(2), np.zeros(2), np.zeros(2, np.int64), np.zeros(width, np.int64)
    peak[0], peak[1] = np.nan, 0.0
    told[0], told[1] = 1.0, 0.0
    K, y = Ks[0], ys[0]
    _stages(decoder, A, 0, 1, y, 0.0, member, count, f, work, K)
    if decoder > 0:
        rest = 0.0
        for i in range(1, width):
            rest += f[i] * f[i]
        if not rest >= _SINGULAR:
            return DEPENDENT
    for i in range(n):
        if not np.isfinite(K[0, i]):
            return NOT_FINITE_AT_START
    # The length of the first step as scipy takes it (Hairer, Norsett, Wanner, Sec. II.4).
    d0, d1 = _size(y, y, rtol, atol), _size(K[0], y, rtol, atol)
    h0 = min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, end)
    _stages(decoder, A, _EXTENDED, _EXTENDED + 1, y, h0, member, count, f, work, K)
    for i in range(n):
        work[i] = K[_EXTENDED, i] - K[0, i]
    d2 = _size(work, y, rtol, atol) / h0
    h1 = max(1e-6, h0 * 1e-3) if d1 <= 1e-15 and d2 <= 1e-15 else (0.01 / max(d1, d2)) ** 0.125
    h = min(100 * h0, h1, end)
    told[0] += 1
    t, recorded, taken = 0.0, 0, 0
    while t < end:
        now = taken % 2
        K, y, y_new = Ks[now], ys[taken % 3], ys[(taken + 1) % 3]
        smallest = 10.0 * abs(np.nextafter(t, np.inf) - t)
        h = max(h, smallest)
        rejected, error, t_new = False, 0.0, t
        while True:
            if stop[0] != 0:
                return INTERRUPTED
            if not h >= smallest:
                return STEP_TOO_SMALL
            if told[0] > most:
                return TOO_LONG
            t_new = min(t + h, end)
            h = t_new - t
            _stages(decoder, A, 1, _STAGES + 1, y, h, member, count, f, y_new, K)
            error = _error(tableau, y, y_new, h, K, rtol, atol)
            told[0] += _STAGES
            if error < 1.0:
                break
            factor = 0.9 * error**-0.125
            h *= factor if factor > 0.2 else 0.2  # nan is not
            rejected = True
        for i in range(n):
            if not np.isfinite(y_new[i]):
                return NOT_FINITE
        hs[now], starts[now], extended[now] = h, t, 0
        # Where a logit is faster between this step and the one before than at their ends, one of them has a peak.
        before, any_peak = 1 - now, False
        for i in range(width):
            middle = abs(K[0, i])
            found = taken > 0 and middle >= abs(Ks[before, 0, i]) and middle >= abs(K[_STAGES, i])
            needed[i] = found and middle >= 0.9 * peak[1, i]
            any_peak = any_peak or needed[i] != 0
        due = recorded < times.size and times[recorded] <= t_new
        for side in (before, now):
            if extended[side] == 0 and (any_peak or (due and side == now)):
                start = ys[(taken - (side != now)) % 3]
                _stages(decoder, A, _STAGES + 1, _EXTENDED, start, hs[side], member, count, f, work, Ks[side])
                told[0] += 3
                extended[side] = 1
        if any_peak:
            _peaks(tableau, taken, ys, hs, starts, Ks, needed, F, peak)
        while recorded < times.size and times[recorded] <= t_new:
            for i in range(n):
                _interpolant(tableau, i, y, y_new, h, K, F)
                state[i] = y[i] + _moved(F, (times[recorded] - t) / h)[0]
            loss[recorded] = _stages(decoder, A, _EXTENDED, _EXTENDED + 1, state, 0.0, member, count, f, work, K)
            total = _attend(state, count, f)
            for i in range(width):
                z[recorded, i], attention[recorded, i] = state[i], f[i] / total
                velocity[recorded, i] = K[_EXTENDED, i]
            _decoded(decoder, state, member, f, decoded[recorded])
            recorded += 1
        for i in range(n):
            Ks[before, 0, i] = K[_STAGES, i]
        t = t_new
        told[1] = t
        factor = 10.0 if error == 0.0 else min(10.0, 0.9 * error**-0.125)
        h *= min(1.0, factor) if rejected else factor
        taken += 1
    for i in range(width):
        if abs(K[_STAGES, i]) > peak[1, i]:
            peak[0, i], peak[1, i] = np.nan, abs(K[_STAGES, i])
    return DONE


@kernel(nogil=True, **_OPTIONS)
def integrate(decoder, tableau, members, counts, times, end, rtol, atol, most, stop, z, attention, loss, velocity,
              decoded, peak, told, status):  # fmt: skip
    """`_member` for each row of ``members`` and ``counts``, until ``stop`` is set."""
    D = counts.shape[1] - 1
    for m in range(members.shape[0]):
        n = 2 + D if decoder == 2 else (2 + 3 * D if members[m, 1] <= members[m, 0] else 3 + 4 * D)
        status[m] = _member(
            decoder, tableau, members[m], counts[m], times, end, rtol, atol, most, stop, n,
            z[m], attention[m], loss[m], velocity[m], decoded[m], peak[m], told[m],
        )  # fmt: skip
        if stop[0] != 0:
            return
