"""The reduced flow in Theorem 4's setting for many members side by side: derivatives, losses and decoder logits.

As in `_engine.lanes`, a state has z of the common and of D distinct tokens, and the decoder logits a, b, p, q, r. A row
holds one entry for each lane. The general kernels of `_model` would allocate arrays in each call, so they are not used;
tests compare both at random states, for all three decoders.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics._model import small
from dynamics._model.small import exp
from dynamics.backend import lanes as rows_of_lanes
from dynamics.backend.compiled import kernel
from dynamics.backend.lanes import LANES, filled, larger, load, sqrt, store, where

_OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "uses": (rows_of_lanes, small)}


@kernel(inner=True, **_OPTIONS)
def _attend(y, count, f):
    """Write f of a class, common token first, from the logits at the start of ``y``; returns 1 - rho, rho = f_0^2."""
    top = load(y, 0)
    for i in range(1, count.shape[0]):
        top = larger(load(y, i), top)
    square = rest = filled(0.0)
    for i in range(count.shape[0]):
        c = load(count, i) * exp(load(y, i) - top)
        square = square + c * c
        store(f, i, c)
    scale = 1.0 / sqrt(square)
    for i in range(count.shape[0]):
        fi = load(f, i) * scale
        if i > 0:
            rest = rest + fi * fi
        store(f, i, fi)
    return rest


@kernel(inner=True, **_OPTIONS)
def _inverted(rho, rest, K, own, other, alike):
    """The inverse of F^T F times a column with entry ``own`` at its class and ``other`` at the K - 1 others.

    F^T F = (1 - rho) I + rho 1 1^T is inverted by the formula of Sherman and Morrison. The column becomes
    (own - mu) / (1 - rho), (other - mu) / (1 - rho), mu = rho (own + (K - 1) other) / (1 + (K - 1) rho). A column with
    all entries ``alike`` becomes alike / (1 + (K - 1) rho). ``rest`` is 1 - rho, passed in to avoid cancellation.
    """
    spread = 1.0 + (K - 1.0) * rho
    mu = rho * (own + (K - 1.0) * other) / spread
    return (own - mu) / rest, (other - mu) / rest, alike / spread


@kernel(inner=True, **_OPTIONS)
def _reduced_field(y, setting, count, f, dy):
    """Derivative of the reduced decoder: (10) with Theorem 1, and h by (44)."""
    K, M, eta_y, eta_z = load(setting, 0), load(setting, 1), load(setting, 2), load(setting, 3)
    width = count.shape[0]
    rest, x = _attend(y, count, f), load(y, width)
    f0 = load(f, 0)
    # If a trial step overshoots, 1 / inf is the right limit.
    total = M - 1.0 + exp(x)
    error = (M - 1.0) / total
    own, other, _ = _inverted(f0 * f0, rest, K, x * error, 0.0 - x * error / (M - 1.0), x)
    g = f0 * (own + (K - 1.0) * other)
    inner = f0 * g + rest * own
    store(dy, 0, eta_z * f0 * (g - f0 * inner))
    for i in range(1, width):
        fi = load(f, i)
        store(dy, i, eta_z / K * fi * (fi * own - fi * inner))
    store(dy, width, M * eta_y / K / total)


@kernel(inner=True, **_OPTIONS)
def _outcomes(y, count, f, setting):
    """Residuals of a class after `_attend`, and terms of its loss.

    Residuals are at its own next token, at another one and at an unseen one, if there are any. Terms of the loss are
    the
    sum of exp(u - top) over the other tokens, the same for its own token, and its u below the top."""
    K, unseen = load(setting, 0), load(setting, 1) - load(setting, 0)
    D = count.shape[0] - 1
    a, p, q, b, r = D + 1, D + 1, 2 * D + 1, 3 * D + 2, 3 * D + 2  # entry i of p, q, r is at index p + i, i from 1
    f0 = load(f, 0)
    u_own = f0 * load(y, a)
    u_other, u_rest = u_own, f0 * load(y, b)
    for i in range(1, D + 1):
        fi = load(f, i)
        u_own = u_own + fi * load(y, p + i)
        u_other = u_other + fi * load(y, q + i)
        u_rest = u_rest + fi * load(y, r + i)
    top = larger(u_own, u_other)
    top = larger(where(unseen, u_rest, top), top)
    e_own, e_other = exp(u_own - top), exp(u_other - top)
    e_rest = where(unseen, exp(u_rest - top), 0.0)
    others = (K - 1.0) * e_other + unseen * e_rest
    scale = 1.0 / (others + e_own)
    return others * scale, 0.0 - e_other * scale, 0.0 - e_rest * scale, others, e_own, top - u_own


@kernel(inner=True, **_OPTIONS)
def field(kind, y, setting, count, f, dy):
    """Write derivatives of states into ``dy``, by Lemma 1, Lemma 3 or (10) with Theorem 1, and features into ``f``.

    If no next token is unseen, the logits b and r stay zero.
    """
    if kind.reduced:
        _reduced_field(y, setting, count, f, dy)
        return
    K, unseen = load(setting, 0), load(setting, 1) - load(setting, 0)
    D = count.shape[0] - 1
    a, p, q, b, r = D + 1, D + 1, 2 * D + 1, 3 * D + 2, 3 * D + 2
    rest = _attend(y, count, f)
    own, other, alike, _, _, _ = _outcomes(y, count, f, setting)
    # g_n = Y r_n at the tokens of class n, and f_n . g_n.
    others, unseens, f0 = (K - 1.0) * other, unseen * alike, load(f, 0)
    first = f0 * ((own + others) * load(y, a) + unseens * load(y, b))
    inner = first
    for i in range(1, D + 1):
        g = load(f, i) * (own * load(y, p + i) + others * load(y, q + i) + unseens * load(y, r + i))
        inner = inner + g
        store(dy, i, g)
    rate = load(setting, 3)
    store(dy, 0, rate * (first - f0 * f0 * inner))
    rate = rate / K
    for i in range(1, D + 1):
        fi = load(f, i)
        store(dy, i, rate * (load(dy, i) - fi * fi * inner))
    if kind.inverts:
        own, other, alike = _inverted(f0 * f0, rest, K, own, other, alike)
    rate = load(setting, 2) / K
    store(dy, a, rate * f0 * (own + (K - 1.0) * other))
    store(dy, b, rate * f0 * K * alike)
    own, other, alike = rate * own, rate * other, rate * alike
    for i in range(1, D + 1):
        fi = load(f, i)
        store(dy, p + i, fi * own)
        store(dy, q + i, fi * other)
        store(dy, r + i, fi * alike)


@kernel(inner=True, **_OPTIONS)
def losses_of(kind, y, setting, count, f, out):
    """Write the losses at states into ``out``, after a call of `field`."""
    if kind.reduced:
        for l in range(LANES):
            out[0, l] = np.log1p((setting[1, l] - 1.0) * np.exp(-y[count.shape[0], l]))
        return
    _, _, _, others, own, below = _outcomes(y, count, f, setting)
    store(out, 0, others)
    store(out, 1, own)
    store(out, 2, below)
    for l in range(LANES):
        more, e = out[0, l], out[1, l]
        out[0, l] = np.log1p(more / e) if e > more else out[2, l] + np.log(more + e)


@kernel(**_OPTIONS)
def numbers_of(kind, width, K, M):
    """Size of a state: z, then x = M h for the reduced decoder, else a, p, q and, with unseen next tokens, r, b."""
    return width + 1 if kind.reduced else (4 * width - 1 if M > K else 3 * width - 1)


@kernel(inner=True, **_OPTIONS)
def decoded(kind, l, y, setting, f, out):
    """Write the decoder logits a, p, q, r, b of lane l into ``out``; entries without next tokens stay."""
    width, K, M = f.shape[0], setting[0, l], setting[1, l]
    D = width - 1
    p, q, r, b = 0, D, 2 * D, 3 * D + 1
    if kind.reduced:
        # Y = F (I - E') [x_n (e_n - 1/M)]_n (Theorem 5), with the inverse of `_inverted`.
        x, rho, free = y[width, l], f[0, l] * f[0, l], 0.0
        for i in range(1, width):
            free += f[i, l] * f[i, l]
        spread = 1.0 + (K - 1.0) * rho
        s, d = x - x / M, -x / M
        mu = rho * (s + (K - 1.0) * d) / spread
        own, other = (s - mu) / free, (d - mu) / free
        out[0] = f[0, l] * (own + (K - 1.0) * other)
        for i in range(1, width):
            out[p + i], out[q + i] = f[i, l] * own, f[i, l] * other
        if M > K:
            out[b] = f[0, l] * K * d / spread
            for i in range(1, width):
                out[r + i] = f[i, l] * d / spread
        return
    out[0] = y[width, l]
    for i in range(1, width):
        out[p + i], out[q + i] = y[D + 1 + i, l], y[2 * D + 1 + i, l]
    if M > K:
        out[b] = y[3 * D + 2, l]
        for i in range(1, width):
            out[r + i] = y[3 * D + 2 + i, l]
