"""Numba kernels: attention, and the parts of loss and gradient that `gradient` puts together.

`factored` has the gradient for large flows, `dynamics.backend.intrinsics` additions to numba's language.

Bags come as a `Batch`, in groups that share query, next token and tokens, so that the products of a group are matrix
products. ``multiplicity[c]`` next tokens share column c of Y. An empty V (no rows) stands for the identity.
Gradients are those of the objective J (ascent directions), summed over the bags with their weights.

``error_model="numpy"`` lets a division by zero give inf or nan, which the callers report; reassociation lets the
compiler use vector instructions for sums; no other fast-math flag is on, so nan and inf keep their meaning. Loops over
entries replace expressions of arrays, because numba compiles loops several times faster; `numpy.arange` and the like
are avoided, since each brings a dozen functions with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.backend import intrinsics
from dynamics.backend.compiled import kernel
from dynamics.backend.intrinsics import borrowed, float32_of_bits, matrix, number_of, rank_of

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "uses": (intrinsics,)}

# Multiplications in one matrix product. OpenBLAS uses one thread up to 2^18 of them: runs side by side then do not
# compete, and their bits do not depend on the number of threads.
_TOGETHER = 2**18


@kernel(inner=True, **_OPTIONS)
def _largest(u, top):
    """Largest entry of each row, by integer ranks: compilers do not vectorise a maximum that handles nan."""
    for b in range(u.shape[0]):
        highest = rank_of(u[b, 0])
        for c in range(1, u.shape[1]):
            rank = rank_of(u[b, c])
            highest = rank if rank > highest else highest
        top[b] = number_of(highest)


@kernel(inner=True, **_OPTIONS)
def _exponentials(u, top, out):
    """exp(u - top) into ``out``, for u <= top; ``top`` has an entry for each row.

    In single precision numba would call the C library for each entry. The polynomial of Cephes' expf (S. Moshier) on
    [-ln(2)/2, ln(2)/2], times a power of two made of its bits, becomes vector instructions, exact to 9e-8.
    """
    if u.itemsize == 8:
        for b in range(u.shape[0]):
            for c in range(u.shape[1]):
                out[b, c] = np.exp(u[b, c] - top[b])
        return
    for b in range(u.shape[0]):
        highest = top[b]
        for c in range(u.shape[1]):
            x = np.float32(u[b, c] - highest)
            x = np.float32(-87.0) if x < np.float32(-87.0) else x
            n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
            x = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
            y = np.float32(1.9875691500e-4)
            y = y * x + np.float32(1.3981999507e-3)
            y = y * x + np.float32(8.3334519073e-3)
            y = y * x + np.float32(4.1665795894e-2)
            y = y * x + np.float32(1.6666665459e-1)
            y = y * x + np.float32(5.0000001201e-1)
            y = y * x * x + x + np.float32(1.0)
            out[b, c] = y * float32_of_bits(np.int32((np.int32(n) + np.int32(127)) << np.int32(23)))


@kernel(inner=True, **_OPTIONS)
def _weigh_alone(token, count, logits, c):
    """N_l exp(z_l - top) of one bag into ``c``, relative to its own largest logit and with sum one."""
    top, total = c.dtype.type(-np.inf), c.dtype.type(0)
    for i in range(token.size):
        if count[i] > 0:
            top = logits[token[i]] if logits[token[i]] > top else top
    for i in range(token.size):
        c[i] = count[i] * np.exp(logits[token[i]] - top) if count[i] > 0 else c.dtype.type(0)
        total += c[i]
    for i in range(token.size):
        c[i] /= total


@kernel(inner=True, **_OPTIONS)
def _weigh(token, count, logits, c, e, top):
    """N_l exp(z_l) of a group's bags into the rows of ``c``, each up to a factor; ``e`` and ``top`` are workspaces."""
    low, high = c.dtype.type(1e-12), c.dtype.type(1e12)
    for i in range(token.size):
        e[0, i] = logits[token[i]]
    _largest(e, top)
    _exponentials(e, top, e)
    for b in range(c.shape[0]):
        total = c.dtype.type(0)
        for i in range(token.size):
            c[b, i] = count[b, i] * e[0, i]
            total += c[b, i]
        # The token of the largest logit may have count zero, and the others lie far below; or counts may be huge.
        if not low < total < high:
            _weigh_alone(token, count[b], logits, c[b])


@kernel(inner=True, **_OPTIONS)
def _square_of_other_norms(c, normalised, width):
    """The squared norm by which `_feature` divides c, for LayerNorm or without normalisation."""
    total = square = c.dtype.type(0)
    for i in range(c.size):
        total += c[i]
    if not normalised:
        return total * total
    mean = total / c.dtype.type(width)
    for i in range(c.size):
        square += (c[i] - mean) * (c[i] - mean)
    return square + c.dtype.type(width - c.size) * mean * mean


@kernel(inner=True, **_OPTIONS)
def _feature(c, floor, means, normalised, width, f, norm):
    """LN(c) of the rows of c without a value matrix into ``f``, aligned with their tokens; norms into ``norm``.

    ``LN(x) = x / max(||x||, floor)``: the factor of each row of c cancels. Below the floor, ``norm`` is -floor. With
    ``means``, f is c / ||P c|| over ``width`` tokens, to be multiplied with P Y. If not ``normalised``, f is c divided
    by its sum.
    """
    for b in range(c.shape[0]):
        square = f.dtype.type(0)
        for i in range(c.shape[1]):
            f[b, i] = c[b, i]
            square += c[b, i] * c[b, i]
        if means or not normalised:
            square = _square_of_other_norms(c[b], normalised, width)
        norm[b] = np.sqrt(square)
        scale = floor if floor > norm[b] else norm[b]
        if norm[b] < floor:
            norm[b] = -floor
        if means and scale == 0:
            for k in range(f.shape[1]):
                f[b, k] = 0
        if scale > 0:
            for k in range(f.shape[1]):
                f[b, k] *= f.dtype.type(1) / scale


@kernel(inner=True, **_OPTIONS)
def _feature_of_values(token, c, V, center, floor, normalised, f, norm):
    """LN(V^T c) of the rows of c into ``f``, norms into ``norm``: V is applied to c / sum.

    ``LN(x) = P x / max(||P x||, floor)``, where P subtracts the mean if ``center``; if not ``normalised``, f is V^T c
    itself. Below the floor, ``norm`` is -floor.
    """
    for b in range(f.shape[0]):
        total = mean = square = f.dtype.type(0)
        for k in range(f.shape[1]):
            f[b, k] = 0
        for i in range(token.size):
            total += c[b, i]
            for k in range(f.shape[1]):
                f[b, k] += c[b, i] * V[token[i], k]
        for k in range(f.shape[1]):
            f[b, k] /= total
            mean += f[b, k] / f.dtype.type(f.shape[1])
        if not center:
            mean = f.dtype.type(0)
        for k in range(f.shape[1]):
            f[b, k] -= mean
            square += f[b, k] * f[b, k]
        norm[b] = np.sqrt(square)
        scale = floor if floor > norm[b] else norm[b]
        if norm[b] < floor:
            norm[b] = -floor
        if not normalised:
            scale, norm[b] = f.dtype.type(1), f.dtype.type(-1)
        if scale > 0:
            for k in range(f.shape[1]):
                f[b, k] *= f.dtype.type(1) / scale


@kernel(inner=True, **_OPTIONS)
def _decode(rows, f, Y, block, u):
    """Decoder logits Y^T f of the rows of f into the rows of ``u``; f[., i] belongs to row rows[i] of Y.

    ``block`` has these rows side by side if f has several rows. With one row of f, four rows of Y at a time save loads
    and stores.
    """
    if f.shape[0] > 1:
        np.dot(f, block, u)
        return
    for c in range(u.shape[1]):
        u[0, c] = 0
    quads = f.shape[1] - f.shape[1] % 4
    for i in range(0, quads, 4):
        row0, row1, row2, row3 = Y[rows[i]], Y[rows[i + 1]], Y[rows[i + 2]], Y[rows[i + 3]]
        f0, f1, f2, f3 = f[0, i], f[0, i + 1], f[0, i + 2], f[0, i + 3]
        for c in range(u.shape[1]):
            u[0, c] += f0 * row0[c] + f1 * row1[c] + f2 * row2[c] + f3 * row3[c]
    for i in range(quads, f.shape[1]):
        row, f0 = Y[rows[i]], f[0, i]
        for c in range(u.shape[1]):
            u[0, c] += f0 * row[c]


@kernel(inner=True, **_OPTIONS)
def _join_query(row, u):
    """Logits of (f + e_query)/sqrt(2) from those of f in ``u`` and the query's row of Y.

    LN(f + e_query), where f has norm one and the query's vector is orthogonal to it: the norm is sqrt(2), always.
    """
    half = u.dtype.type(np.sqrt(0.5))
    for b in range(u.shape[0]):
        for c in range(u.shape[1]):
            u[b, c] = half * (u[b, c] + row[c])


@kernel(inner=True, **_OPTIONS)
def _part_query(u, r, weight, row, keep):
    """Backward pass of `_join_query`: scales ``u`` and ``r`` for f, and adds the gradient of the query's row of Y."""
    half = u.dtype.type(np.sqrt(0.5))
    for b in range(u.shape[0]):
        for c in range(u.shape[1]):
            u[b, c] *= half
            if not keep:
                r[b, c] *= half
                row[c] += weight[b] * r[b, c]


@kernel(inner=True, **_OPTIONS)
def _residual(u, target, soft, weight, mass, r, top):
    """Weighted sum of the cross-entropies of softmax(u); r = (target - alpha) into ``r`` and mass * r into ``u``.

    ``top`` is a workspace.
    """
    # Columns without mass fill up vectors. Products may round them to the largest logit; then every column with mass
    # would underflow. So they get the logit of the last column with mass.
    last = mass.size - 1
    while last > 0 and mass[last] == 0:
        last -= 1
    for b in range(u.shape[0]):
        for c in range(last + 1, mass.size):
            u[b, c] = u[b, last]
    _largest(u, top)
    _exponentials(u, top, r)
    return _cross_entropy(u, top, target, soft, weight, mass, r)


@kernel(inner=True, **_OPTIONS)
def _cross_entropy(u, top, target, soft, weight, mass, r):
    """`_residual` from exp(u - top) in ``r``.

    ``mass`` is the multiplicity of each column. For a hard target 1 - alpha_target is summed from the other columns: as
    a difference it would lose all digits once the target is nearly certain, and the zero-sum invariant with it.
    """
    # Typed constants: a bare 0 or 1 would turn single precision into double.
    zero, one = u.dtype.type(0), u.dtype.type(1)
    objective = 0.0
    for b in range(u.shape[0]):
        if soft.size > 0:
            total = zero
            for c in range(mass.size):
                total += mass[c] * r[b, c]
            scale, log_total = -one / total, np.log(total)
            for c in range(mass.size):
                r[b, c] *= scale
            for c in range(soft.size):
                if soft[c] > 0:
                    objective += weight[b] * (mass[c] * soft[c]) * (u[b, c] - top[b] - log_total)
                    r[b, c] += soft[c]
        else:
            own = r[b, target]
            r[b, target] = zero
            others = (mass[target] - one) * own
            for c in range(mass.size):
                others += mass[c] * r[b, c]
            if own > others:
                objective -= weight[b] * np.log1p(others / own)
            else:
                objective -= weight[b] * (top[b] - u[b, target] + np.log(others + own))
            scale = -one / (others + own)
            for c in range(mass.size):
                r[b, c] *= scale
            r[b, target] = -scale * others
        for c in range(mass.size):
            u[b, c] = mass[c] * r[b, c]
    return -objective


@kernel(**_OPTIONS)
def _square_residual(u, target, soft, weight, mass, r):
    """Like `_residual` for the squared loss sum_c (u_c - target_c)^2 over all next tokens: r = 2 (target - u).

    Not an inner kernel: the compiler would add in another order, and fixed seeds give other last bits.
    """
    loss = 0.0
    for b in range(u.shape[0]):
        for c in range(mass.size):
            r[b, c] = (soft[c] if c < soft.size else u.dtype.type(0)) - u[b, c]
        if soft.size == 0:
            r[b, target] += u.dtype.type(1)
        for c in range(mass.size):
            loss += weight[b] * mass[c] * r[b, c] * r[b, c]
            r[b, c] *= u.dtype.type(2)
            u[b, c] = mass[c] * r[b, c]
    return loss


@kernel(inner=True, **_OPTIONS)
def _contrast(difference, weight, mass, u, r):
    """Regulariser (22) of a pair of bags: the mean over next tokens of the squared difference of their logits.

    ``weight`` holds the weights of the loss and of the regulariser; ``r`` and ``u`` receive the sum of both gradients.
    """
    columns = mass.sum()
    loss = 0.0
    for c in range(mass.size):
        loss += weight[1] * mass[c] * difference[c] * difference[c] / columns
        pull = difference.dtype.type(2) * weight[1] * difference[c] / columns
        r[0, c] = weight[0] * r[0, c] - pull
        r[1, c] = pull
        u[0, c] = mass[c] * r[0, c]
        u[1, c] = mass[c] * r[1, c]
    return loss


@kernel(inner=True, **_OPTIONS)
def _rectify(H, a):
    """a = relu(a + bias), with the bias in the last row of H."""
    for b in range(a.shape[0]):
        for i in range(a.shape[1]):
            x = a[b, i] + H[H.shape[0] - 1, i]
            a[b, i] = a.dtype.type(0) if x < 0 else x  # nan stays nan


@kernel(inner=True, **_OPTIONS)
def _rectify_back(a, weight, da, dH):
    """Backward pass of `_rectify`, in place; adds the gradient of the bias."""
    for b in range(a.shape[0]):
        for i in range(a.shape[1]):
            da[b, i] = da[b, i] if a[b, i] > 0 else da.dtype.type(0)
            dH[dH.shape[0] - 1, i] += weight[b] * da[b, i]


@kernel(inner=True, **_OPTIONS)
def _back(rows, v, Y, block, g):
    """Backward pass of `_decode`: g = v Y^T on the rows of the feature."""
    if v.shape[0] > 1:
        np.dot(v, block.T, g)
        return
    zero, quads = v.dtype.type(0), rows.size - rows.size % 4
    for i in range(0, quads, 4):
        row0, row1, row2, row3 = Y[rows[i]], Y[rows[i + 1]], Y[rows[i + 2]], Y[rows[i + 3]]
        g0 = g1 = g2 = g3 = zero
        for k in range(v.shape[1]):
            g0 += row0[k] * v[0, k]
            g1 += row1[k] * v[0, k]
            g2 += row2[k] * v[0, k]
            g3 += row3[k] * v[0, k]
        g[0, i], g[0, i + 1], g[0, i + 2], g[0, i + 3] = g0, g1, g2, g3
    for i in range(quads, rows.size):
        row, g0 = Y[rows[i]], zero
        for k in range(v.shape[1]):
            g0 += row[k] * v[0, k]
        g[0, i] = g0


@kernel(inner=True, **_OPTIONS)
def _add_outer(rows, f, weight, r, product, dY):
    """dY += sum_b weight_b f_b r_b^T on the rows of the feature; overwrites ``f``."""
    for b in range(f.shape[0]):
        for i in range(rows.size):
            f[b, i] *= weight[b]
    if f.shape[0] > 1:
        np.dot(f.T, r, product)
    for i in range(rows.size):
        row = rows[i]
        if f.shape[0] > 1:
            for k in range(dY.shape[1]):
                dY[row, k] += product[i, k]
        else:
            for k in range(dY.shape[1]):
                dY[row, k] += f[0, i] * r[0, k]


@kernel(inner=True, **_OPTIONS)
def _pull_back(token, f, norm, g, means, normalised, weight, dz, h):
    """Add the gradient with respect to the logits z of a query, given g, the gradients at the features f.

    This is Lemma 1 in bag form, z' = f * (g - f (f . g)). If LN subtracts the mean over all dz.size tokens, the second
    f is P c / ||P c||; without LN it is 1. ``h`` is a workspace.
    """
    for i in range(token.size):
        h[i] = 0
    for b in range(f.shape[0]):
        inner = f.dtype.type(0)
        for k in range(f.shape[1]):
            inner += f[b, k] * g[b, k]
        if norm[b] < 0:
            inner = f.dtype.type(0)
        scale = f.dtype.type(weight[b])
        if means or not normalised:
            along, shift = f.dtype.type(means), f.dtype.type(1)
            if means:
                shift = -f[b].sum() / f.dtype.type(dz.size)
            for i in range(token.size):
                h[i] += scale * f[b, i] * (g[b, i] - (along * f[b, i] + shift) * inner)
        else:
            for i in range(token.size):
                h[i] += scale * f[b, i] * (g[b, i] - f[b, i] * inner)
    for i in range(token.size):
        dz[token[i]] += h[i]


@kernel(inner=True, **_OPTIONS)
def _pull_back_values(token, c, f, norm, g, V, center, weight, dz, dV, h):
    """`_pull_back` of features of values, with the gradient with respect to V."""
    for i in range(token.size):
        h[i] = 0
    for b in range(f.shape[0]):
        inner = mean_g = f.dtype.type(0)
        for k in range(f.shape[1]):
            inner += f[b, k] * g[b, k]
        if norm[b] < 0:
            inner = f.dtype.type(0)
        scale = f.dtype.type(weight[b])
        if norm[b] != 0:
            if center:
                for k in range(f.shape[1]):
                    mean_g += g[b, k] / f.dtype.type(f.shape[1])
            total, mean = c[b].sum(), 0.0
            for i in range(token.size):
                along = 0.0
                share = c[b, i] / total
                for k in range(f.shape[1]):
                    du = (g[b, k] - mean_g - f[b, k] * inner) / abs(norm[b])
                    along += V[token[i], k] * du
                    dV[token[i], k] += scale * share * du
                mean += share * along
                h[i] += scale * share * along
            # The term of softmax's denominator. Above the floor it is zero up to round-off, which would move the row
            # sums of Z.
            for i in range(token.size):
                h[i] -= scale * c[b, i] / total * mean
    for i in range(token.size):
        dz[token[i]] += h[i]


@kernel(inner=True, **_OPTIONS)
def _gather(rows, Y, block):
    """The rows of Y that a group needs, side by side."""
    for i in range(rows.size):
        row = rows[i]
        for k in range(block.shape[1]):
            block[i, k] = Y[row, k]


@kernel(inner=True, **_OPTIONS)
def larger(a, b):
    """The larger of two integers: numba compiles `max` anew for each pair of types, by several functions."""
    return a if a > b else b


@kernel(inner=True, **_OPTIONS)
def first_integers(n):
    """The integers below n."""
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = i
    return out


@kernel(**_OPTIONS)
def attention(query, indptr, token, count, Z, c):
    """Attention of every bag, c_l = N_l exp(z_l) / sum, into ``c``, aligned with ``token``."""
    longest = 0
    for b in range(query.size):
        longest = larger(longest, indptr[b + 1] - indptr[b])
    line, tops = np.empty(longest, c.dtype), np.empty(1, c.dtype)
    for b in range(query.size):
        lo, hi, total = indptr[b], indptr[b + 1], c.dtype.type(0)
        e, top = matrix(line, 1, hi - lo), borrowed(tops)
        _weigh(token[lo:hi], matrix(count[lo:hi], 1, hi - lo), Z[query[b]], matrix(c[lo:hi], 1, hi - lo), e, top)
        for i in range(lo, hi):
            total += c[i]
        for i in range(lo, hi):
            c[i] /= total
