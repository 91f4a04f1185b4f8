"""The numba kernel of loss and gradient for large flows whose slopes are kept as factors: see `_engine.factors`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics._model import kernels
from dynamics.backend import intrinsics
from dynamics.backend.compiled import kernel
from dynamics.backend.intrinsics import as_read_only, float64_of_bits, matrix

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "uses": (intrinsics, kernels)}


@kernel(inner=True, **_OPTIONS)
def exponentials(u, top, out):
    """exp(u - top) in double precision by vector instructions, exact to 3e-16; the C library is exact to 1.3e-16.

    The rational approximation of Cephes' exp on [-ln(2)/2, ln(2)/2], times a power of two made of its bits. `kernels`
    keeps the library, so that fixed seeds keep their bits.
    """
    for b in range(u.shape[0]):
        highest = top[b]
        for c in range(u.shape[1]):
            x = u[b, c] - highest
            x = -708.0 if x < -708.0 else x
            n = np.floor(x * 1.4426950408889634 + 0.5)
            x = x - n * 6.93145751953125e-1 - n * 1.42860682030941723212e-6
            square = x * x
            p = (1.26177193074810590878e-4 * square + 3.02994407707441961300e-2) * square + 1.0
            q = (3.00198505138664455042e-6 * square + 2.52448340349684104192e-3) * square + 2.27265548208155028766e-1
            y = 1.0 + 2.0 * x * p / (q * square + 2.0 - x * p)
            out[b, c] = y * float64_of_bits((np.int64(np.int32(n)) + np.int64(1023)) << np.int64(52))


@kernel(**_OPTIONS)
def loss_and_factors(batch, Z, Y, rule, earlier, dZ, dY, kept):
    """`loss_and_gradient` for single bags as groups and a plain layer, with dY in factors where possible.

    If only bag n has a token, the token's row of dY is f r_n^T. Such rows of Y lack the slopes of earlier stages:
    ``earlier`` has the numbers of these stages and their factors, and the lacking terms are added to the products with
    Y. ``kept`` is (factors, residuals, row, stage): factors (stages, entries of the bags), which include the weight of
    the bag, and residuals (bags, stages, columns); both are written at ``stage``. ``row`` is -1 for an entry with a
    factor. Any other entry has factor zero, and its gradient is added into that row of ``dY``.
    """
    query, target, soft, weight, _, indptr, token, count = batch
    stages, steps = as_read_only(earlier[0]), earlier[1]
    factors, residuals, row, stage = kept
    longest, loss = 0, 0.0
    for bag in range(query.size):
        longest = max(longest, indptr[bag + 1] - indptr[bag])
    c_buffer, f_buffer, g_buffer, line = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    mass = rule.multiplicity.astype(np.float64)
    u, more = np.empty((1, mass.size)), np.empty((1, mass.size))
    q, norm, nothing = np.empty((1, stages.size)), np.empty(1), np.empty((0, 0))
    top, kind = np.empty(1), (rule.means, rule.normalised)
    for bag in range(query.size):
        lo, hi = indptr[bag], indptr[bag + 1]
        tokens, shares, n = token[lo:hi], weight[bag : bag + 1], hi - lo
        c, f, g, e = matrix(c_buffer, 1, n), matrix(f_buffer, 1, n), matrix(g_buffer, 1, n), matrix(line, 1, n)
        before, r = as_read_only(residuals[bag]), residuals[bag, stage : stage + 1]
        kernels._weigh(tokens, matrix(count[lo:hi], 1, n), Z[query[bag]], c, e, top)
        kernels._feature(c, rule.floor, *kind, Z.shape[1], f, norm)
        for j in range(stages.size):
            q[0, j] = 0
            for i in range(n):
                q[0, j] += steps[j] * f[0, i] * factors[stages[j], lo + i]
        kernels._decode(tokens, f, Y, nothing, u)
        kernels._decode(stages, q, before, nothing, more)
        u += more
        kernels._largest(u, top)
        exponentials(u, top, r)
        soft_row = soft[bag] if soft.shape[0] > 0 else mass[:0]
        loss += kernels._cross_entropy(u, top, target[bag], soft_row, shares, mass, r)
        kernels._back(tokens, u, Y, nothing, g)
        kernels._back(stages, u, before, nothing, q)
        for j in range(stages.size):
            for i in range(n):
                g[0, i] += steps[j] * q[0, j] * factors[stages[j], lo + i]
        kernels._pull_back(tokens, f, norm, g, *kind, shares, dZ[query[bag]], e[0])
        for i in range(n):
            own = weight[bag] * f[0, i]
            if row[lo + i] < 0:
                factors[stage, lo + i] = own
                continue
            slope, other = dY[row[lo + i]], r[0]
            for k in range(mass.size):
                slope[k] += own * other[k]
    return loss
