"""The numba kernels of the layer: attention, decoder, loss, gradient, steps.

They stand in one file because numba's cache of a caller is not invalidated when a callee in another file changes.

Bags come as a `Batch`, in groups that share query, next token and tokens, so that the products of a group are matrix
products. ``multiplicity[c]`` next tokens share column c of Y. An empty V (no rows) stands for the identity.
Gradients are those of the objective J (ascent directions), summed over the bags with their weights.

``error_model="numpy"`` lets a division by zero give inf or nan, which the callers report; reassociation lets the
compiler use vector instructions for sums; no other fast-math flag is on, so nan and inf keep their meaning.
Loops over entries stand where an expression of arrays would do, because numba compiles them several times faster; the
same holds of `numpy.arange` and its like, which bring a dozen functions with them.
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic

from dynamics._model.batch import Batch
from dynamics._model.weights import Weights
from dynamics.support.compiled import IN_PYTHON, kernel

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}}

# Multiplications in one matrix product. OpenBLAS uses one thread up to 2^18 of them: runs side by side then do not
# compete, and their bits do not depend on the number of threads.
_TOGETHER = 2**18
# Steps without a gradient after which Adam moves no more: its first moment fell by 0.9^400 = 5e-19, its second by 0.67.
_FORGOTTEN = 400


@intrinsic
def _read_only_compiled(_, array):
    """The same array, not to be written to, so that a kernel compiles once whether its caller may write or not."""

    def codegen(context, builder, signature, arguments):
        return impl_ret_borrowed(context, builder, signature.return_type, arguments[0])

    return array.copy(readonly=True)(array), codegen


_read_only: Any = (lambda array: array) if IN_PYTHON else _read_only_compiled


@intrinsic
def _borrowed_compiled(_, array):
    """The same array without a share in its memory, of whose parts no references are counted.

    Counting them took up to a seventh of a step. Somebody else must hold the array meanwhile, as a caller does.
    """

    def codegen(context, builder, signature, arguments):
        view = context.make_array(signature.return_type)(context, builder, arguments[0])
        view.meminfo = ir.Constant(view.meminfo.type, None)
        view.parent = ir.Constant(view.parent.type, None)
        return view._getvalue()

    return array(array), codegen


_borrowed: Any = (lambda array: array) if IN_PYTHON else _borrowed_compiled


@intrinsic
def _matrix_compiled(_, buffer, rows, columns):
    """The start of a buffer as a matrix, `_borrowed`: of a local buffer, for use where that is used again later."""
    if buffer.layout != "C":
        raise TypingError("a matrix must be the start of a contiguous buffer")
    kind = types.Array(buffer.dtype, 2, "C", readonly=not buffer.mutable)

    def codegen(context, builder, signature, arguments):
        # Imported with numba's implementations, which loading a compiled kernel goes without.
        from numba.np.arrayobj import populate_array

        source = context.make_array(signature.args[0])(context, builder, arguments[0])
        view = context.make_array(kind)(context, builder)
        shape = arguments[1:]
        strides = [builder.mul(shape[1], source.itemsize), source.itemsize]
        populate_array(view, source.data, shape, strides, source.itemsize, None)
        return view._getvalue()

    return kind(buffer, types.intp, types.intp), codegen


def _matrix_in_python(buffer, rows, columns):
    return buffer.ravel()[: rows * columns].reshape(rows, columns)


_matrix: Any = _matrix_in_python if IN_PYTHON else _matrix_compiled


def _in_order(builder, bits):
    """Bits of a floating-point number as an integer that is larger where the number is, and back."""
    width = bits.type.width
    sign = builder.ashr(bits, ir.Constant(bits.type, width - 1))
    return builder.xor(bits, builder.and_(sign, ir.Constant(bits.type, 2 ** (width - 1) - 1)))


@intrinsic
def _rank_compiled(_, number):
    """An integer that is larger where the number is."""
    kind = types.int32 if number.bitwidth == 32 else types.int64

    def codegen(context, builder, signature, arguments):
        return _in_order(builder, builder.bitcast(arguments[0], context.get_value_type(kind)))

    return kind(number), codegen


@intrinsic
def _number_compiled(_, rank):
    """The number of a rank."""
    kind = types.float32 if rank.bitwidth == 32 else types.float64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(_in_order(builder, arguments[0]), context.get_value_type(kind))

    return kind(rank), codegen


_rank: Any = (lambda number: number) if IN_PYTHON else _rank_compiled
_number: Any = (lambda rank: rank) if IN_PYTHON else _number_compiled


@kernel(inner=True, **_OPTIONS)
def _largest(u, top):
    """Largest entry of each row: of ranks, since compilers make no vector instructions of a maximum that heeds nan."""
    for b in range(u.shape[0]):
        highest = _rank(u[b, 0])
        for c in range(1, u.shape[1]):
            rank = _rank(u[b, c])
            highest = rank if rank > highest else highest
        top[b] = _number(highest)


@intrinsic
def _float_of_bits_compiled(_, bits):
    """The float32 whose bits are those of an int32."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), codegen


_float_of_bits: Any = (lambda bits: bits.view(np.float32)) if IN_PYTHON else _float_of_bits_compiled


@intrinsic
def _double_of_bits_compiled(_, bits):
    """The float64 whose bits are those of an int64."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


_double_of_bits: Any = (lambda bits: bits.view(np.float64)) if IN_PYTHON else _double_of_bits_compiled


@kernel(inner=True, **_OPTIONS)
def _exponentials(u, top, out):
    """exp(u - top) into ``out``, for u <= top, an entry for each row.

    In single precision numba calls the C library once an entry. The polynomial of Cephes' expf (S. Moshier) on
    [-ln(2)/2, ln(2)/2], scaled by a power of two made of its bits, becomes vector instructions, exact to 9e-8.
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
            out[b, c] = y * _float_of_bits((np.int32(n) + np.int32(127)) << np.int32(23))


@kernel(inner=True, **_OPTIONS)
def _quick_exponentials(u, top, out):
    """As `_exponentials` in double precision by vector instructions, exact to 3e-16; the library's are to 1.3e-16.

    The fraction of Cephes' exp on [-ln(2)/2, ln(2)/2], scaled by a power of two made of its bits. Where other bits of
    known runs would be a loss, they stay those of the library.
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
            out[b, c] = y * _double_of_bits((np.int64(np.int32(n)) + np.int64(1023)) << np.int64(52))


@kernel(inner=True, **_OPTIONS)
def _weigh_alone(token, count, logits, c):
    """N_l exp(z_l - top) of one bag into ``c``, relative to its own largest logit and with sum one."""
    top, total = c.dtype.type(-np.inf), c.dtype.type(0)
    for i in range(token.size):
        if count[i] > 0:
            top = max(top, logits[token[i]])
    for i in range(token.size):
        c[i] = count[i] * np.exp(logits[token[i]] - top) if count[i] > 0 else c.dtype.type(0)
        total += c[i]
    for i in range(token.size):
        c[i] /= total


@kernel(inner=True, **_OPTIONS)
def _weigh(token, count, logits, c, e, top):
    """N_l exp(z_l) of the bags of a group into the rows of ``c``, each up to a factor; ``e`` and ``top`` are a row."""
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
        # The tokens of a bag may lie far below the largest logit, whose own count is zero; or counts may be huge.
        if not low < total < high:
            _weigh_alone(token, count[b], logits, c[b])


@kernel(inner=True, **_OPTIONS)
def _square_of_other_norms(c, kind, width):
    """What c is divided by without a value matrix, squared: see `_feature`."""
    total = square = c.dtype.type(0)
    for i in range(c.size):
        total += c[i]
    if kind == 2:
        return total * total
    mean = total / c.dtype.type(width)
    for i in range(c.size):
        square += (c[i] - mean) * (c[i] - mean)
    return square + c.dtype.type(width - c.size) * mean * mean


@kernel(inner=True, **_OPTIONS)
def _feature(token, c, V, center, floor, kind, width, f, norm):
    """LN(V^T c) of the rows of c into ``f`` (aligned with ``token`` where V is the identity), norms into ``norm``.

    ``LN(x) = P x / max(||P x||, floor)``, where P takes off the mean if ``center``; both need V. Rows of c may have any
    sum: V is applied to c / sum, and without V, LN takes the factor off. Below the floor, ``norm`` is -floor.
    With the ``kind`` of a `Rule` 1, f is c / ||P c|| over ``width`` tokens, so that Y^T P f is what P Y makes of it;
    with 2, V^T c itself.
    """
    for b in range(c.shape[0]):
        total = mean = square = f.dtype.type(0)
        if V.shape[0] == 0:
            for i in range(token.size):
                f[b, i] = c[b, i]
                square += c[b, i] * c[b, i]
            if kind > 0:
                square = _square_of_other_norms(c[b], kind, width)
        else:
            f[b] = 0
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
        scale = max(norm[b], floor)
        if norm[b] < floor:
            norm[b] = -floor
        if kind == 2 and V.shape[0] > 0:
            scale, norm[b] = f.dtype.type(1), f.dtype.type(-1)
        elif kind == 1 and scale == 0:
            f[b] = 0
        if scale > 0:
            for k in range(f.shape[1]):
                f[b, k] *= f.dtype.type(1) / scale


@kernel(inner=True, **_OPTIONS)
def _decode(rows, f, Y, block, u):
    """Decoder logits Y^T f of the rows of f into the rows of ``u``; f[., i] belongs to row rows[i] of Y.

    ``block`` has these rows side by side unless f has one row, where four rows at a time spare loads and stores.
    """
    if f.shape[0] > 1:
        np.dot(f, block, u)
        return
    u[0, :] = 0
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
    """`_join_query` the other way: in ``u`` and ``r`` what f is to see; adds the gradient of the query's row of Y."""
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

    ``weight`` holds the weights of the loss and of the regulariser; in ``r`` and ``u`` their gradients are added up.
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
            a[b, i] = a.dtype.type(0) if x < 0 else x  # which keeps nan


@kernel(inner=True, **_OPTIONS)
def _rectify_back(a, weight, da, dH):
    """Gradient before the rectifier from that after it, in place; adds the gradient of the bias."""
    for b in range(a.shape[0]):
        for i in range(a.shape[1]):
            da[b, i] = da[b, i] if a[b, i] > 0 else da.dtype.type(0)
            dH[dH.shape[0] - 1, i] += weight[b] * da[b, i]


@kernel(inner=True, **_OPTIONS)
def _back(rows, v, Y, block, g):
    """g = v Y^T on the rows of the feature: `_decode` the other way."""
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
def _pull_back(token, c, f, norm, g, V, center, kind, weight, dz, dV, h):
    """Add the gradient with respect to the logits z of a query, and V, given g, the gradients at the features f.

    Without V this is Lemma 1 in bag form, z' = f * (g - f (f . g)). Where LN subtracts the mean over all tokens, of
    which dz has as many, the second f is P c / ||P c||; and it is 1 without LN. ``h`` is a workspace.
    """
    for i in range(token.size):
        h[i] = 0
    for b in range(f.shape[0]):
        inner = mean_g = f.dtype.type(0)
        for k in range(f.shape[1]):
            inner += f[b, k] * g[b, k]
        if norm[b] < 0:
            inner = f.dtype.type(0)
        scale = f.dtype.type(weight[b])
        if V.shape[0] == 0 and kind > 0:
            along, shift = f.dtype.type(kind == 1), f.dtype.type(1)
            if kind == 1:
                shift = -f[b].sum() / f.dtype.type(dz.size)
            for i in range(token.size):
                h[i] += scale * f[b, i] * (g[b, i] - (along * f[b, i] + shift) * inner)
        elif V.shape[0] == 0:
            for i in range(token.size):
                h[i] += scale * f[b, i] * (g[b, i] - f[b, i] * inner)
        elif norm[b] != 0:
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
            # The softmax's part; above the floor LN makes it zero, and round-off would move the row sums of Z.
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
def _first(n):
    """The integers below n."""
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = i
    return out


@intrinsic
def _underflow_compiled(_, to_zero):
    """Choose whether numbers below the normal ones are zero in this thread; returns what was chosen before.

    Where softmax saturates, all of a gradient may lie there in single precision, and processors take a hundred cycles
    for each operation on such a number. Those that are not x86 go on as they are.
    """

    def codegen(context, builder, signature, arguments):
        if not _X86:
            return arguments[0]
        word, mask = ir.IntType(32), ir.Constant(ir.IntType(32), 0x8040)  # results, and operands
        place = cgutils.alloca_once(builder, word)
        pointer = builder.bitcast(place, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type])
        store, load = (
            cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
            for name in ("stmxcsr", "ldmxcsr")
        )
        builder.call(store, [pointer])
        before = builder.load(place)
        others = builder.and_(before, builder.not_(mask))
        builder.store(builder.select(arguments[0], builder.or_(before, mask), others), place)
        builder.call(load, [pointer])
        return builder.icmp_unsigned("!=", builder.and_(before, mask), ir.Constant(word, 0))

    return types.boolean(types.boolean), codegen


_X86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")
_underflow: Any = (lambda to_zero: to_zero) if IN_PYTHON else _underflow_compiled


@kernel(**_OPTIONS)
def loss_and_gradient(batch, groups, weights, rule, slopes, residual, gradient):
    """Loss -J of a weighted batch, and the gradient of J added into ``slopes``: Lemma 1, and its extensions.

    The cost is (non-zeros of the bags) x (columns of Y), whatever the vocabulary.

    Of the `Batch` the first ``groups`` groups count; ``weights`` and ``slopes`` are `Weights`, ``rule`` is a `Rule`.
    Where ``residual`` has rows it receives each bag's r = target - alpha, and the decoder's gradient is left to the
    caller.
    """
    query, target, soft, weight = _borrowed(batch[0]), _borrowed(batch[1]), _borrowed(batch[2]), _borrowed(batch[3])
    size, indptr, token, count = _borrowed(batch[4]), _borrowed(batch[5]), _borrowed(batch[6]), _borrowed(batch[7])
    Z, Y, V, H = _borrowed(weights.Z), _borrowed(weights.Y), _borrowed(weights.V), _borrowed(weights.hidden)
    dZ, dY, dV, dH = _borrowed(slopes.Z), _borrowed(slopes.Y), _borrowed(slopes.V), _borrowed(slopes.hidden)
    residual = _borrowed(residual)
    center, floor, kind, square, contrast = rule.center, rule.floor, rule.kind, rule.squared, rule.contrasted
    columns, units, last = Y.shape[1], H.shape[1], Y.shape[0] - Z.shape[0]  # the last rows of Y may be the queries'
    longest = most = 0
    for group in range(groups):
        longest, most = max(longest, indptr[group + 1] - indptr[group]), max(most, size[group])
    width = V.shape[1] if V.shape[0] > 0 else longest
    if not contrast:  # whose pairs are compared with each other
        most = max(1, min(most, _TOGETHER // max(1, width * max(columns, units), units * columns)))
    all_rows, all_units = _first(width), _first(units)
    c_buffer, norms, tops = np.empty(most * longest, Z.dtype), np.empty(most, Z.dtype), np.empty(most, Z.dtype)
    line = np.empty(longest, Z.dtype)
    f_buffer, g_buffer = np.empty(most * width, Z.dtype), np.empty(most * width, Z.dtype)
    a_buffer, da_buffer = np.empty(most * units, Z.dtype), np.empty(most * units, Z.dtype)
    u_buffer, r_buffer = np.empty(most * columns, Z.dtype), np.empty(most * columns, Z.dtype)
    first, d_first = (H, dH) if units > 0 else (Y, dY)  # what the features meet first
    blocks = width if most > 1 else 0
    block_buffer = np.empty(blocks * first.shape[1], Z.dtype)
    product_buffer = np.empty(blocks * first.shape[1], Z.dtype)
    blocks = units if most > 1 else 0
    units_buffer, units_product = np.empty(blocks * columns, Z.dtype), np.empty(blocks * columns, Z.dtype)
    masses = rule.multiplicity.astype(Z.dtype)
    keep, alike = residual.shape[0] > 0, np.empty(2, Z.dtype)
    alike[0] = alike[1] = 1
    if most > 1 and units > 0:
        _gather(all_units, Y, _matrix(units_buffer, blocks, columns))
    loss, bag, entry = 0.0, 0, 0
    for group in range(groups):
        every_row, every_unit = _borrowed(_read_only(all_rows)), _borrowed(_read_only(all_units))
        mass, norm, top, ones = _borrowed(masses), _borrowed(norms), _borrowed(tops), _borrowed(alike)
        block_of_units, product_of_units = (
            _matrix(units_buffer, blocks, columns),
            _matrix(units_product, blocks, columns),
        )
        tokens = token[indptr[group] : indptr[group + 1]]
        rows = every_row if V.shape[0] > 0 else tokens
        block = _matrix(block_buffer, rows.size if most > 1 else 0, first.shape[1])
        product = _matrix(product_buffer, rows.size if most > 1 else 0, first.shape[1])
        soft_row = soft[group] if soft.shape[0] > 0 else mass[:0]
        if size[group] > 1 and most > 1:
            _gather(rows, first, block)
        end = bag + size[group]
        while bag < end:
            n = min(most, end - bag)
            c = _matrix(c_buffer, n, tokens.size)
            f, g = _matrix(f_buffer, n, rows.size), _matrix(g_buffer, n, rows.size)
            a, da = _matrix(a_buffer, n, units), _matrix(da_buffer, n, units)
            u = _matrix(u_buffer, n, columns)
            r = _matrix(r_buffer, n, columns)
            if keep:
                r = _matrix(residual[bag:], n, columns)
            shares = weight[bag : bag + n]
            to_zero = _underflow(False)
            e = _matrix(line, 1, tokens.size)
            _weigh(tokens, _matrix(count[entry:], n, tokens.size), Z[query[group]], c, e, top)
            _feature(tokens, c, V, center, floor, kind, Z.shape[1], f, norm)
            if units > 0:
                _decode(rows, f, H, block, a)
                _rectify(H, a)
                _decode(every_unit, a, Y, block_of_units, u)
            else:
                _decode(rows, f, Y, block, u)
            if rule.residual:
                _join_query(Y[last + query[group]], u)
            difference = u[0] - u[n - 1] if contrast else mass[:0]
            rated = u[:1] if contrast else u  # bags with a loss of their own
            labels = (target[group], soft_row, shares, mass)
            loss += _square_residual(rated, *labels, r) if square else _residual(rated, *labels, r, top)
            if contrast:
                loss += _contrast(difference, shares, mass, u, r)
                shares = ones
            _underflow(to_zero)
            if gradient:
                if rule.residual:
                    _part_query(u, r, shares, dY[last + query[group]], keep)
                if units > 0:
                    _back(every_unit, u, Y, block_of_units, da)
                    _rectify_back(a, shares, da, dH)
                    _back(rows, da, H, block, g)
                else:
                    _back(rows, u, Y, block, g)
                _pull_back(tokens, c, f, norm, g, V, center, kind, shares, dZ[query[group]], dV, e[0])
                if not keep:
                    if units > 0:
                        _add_outer(every_unit, a, shares, r, product_of_units, dY)
                    _add_outer(rows, f, shares, da if units > 0 else r, product, d_first)
            bag += n
            entry += n * tokens.size
    return loss


@kernel(**_OPTIONS)
def loss_and_factors(batch, Z, Y, rule, earlier, dZ, dY, kept):
    """As `loss_and_gradient` of bags alone in their groups and a plain layer, with dY in factors where it can be.

    The row of a token that only bag n has is f r_n^T in dY. Such rows of Y lack the slopes of ``earlier`` stages, times
    what is given with these: that much is added to their products. ``kept`` are factors (stages, entries of the bags)
    and residuals (bags, stages, columns), and ``stage``, of which they are written; a factor has the weight of its bag
    and is zero for other tokens, where ``row`` says which row of ``dY`` the gradient is added into, and otherwise -1.
    """
    query, target, soft, weight, _, indptr, token, count = batch
    stages, steps = _read_only(earlier[0]), earlier[1]
    factors, residuals, row, stage = kept
    longest, loss = 0, 0.0
    for bag in range(query.size):
        longest = max(longest, indptr[bag + 1] - indptr[bag])
    c_buffer, f_buffer, g_buffer, line = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    mass = rule.multiplicity.astype(np.float64)
    u, more = np.empty((1, mass.size)), np.empty((1, mass.size))
    q, norm, nothing = np.empty((1, stages.size)), np.empty(1), np.empty((0, 0))
    V, top = _read_only(nothing), np.empty(1)
    for bag in range(query.size):
        lo, hi = indptr[bag], indptr[bag + 1]
        tokens, shares, n = token[lo:hi], weight[bag : bag + 1], hi - lo
        c, f, g, e = _matrix(c_buffer, 1, n), _matrix(f_buffer, 1, n), _matrix(g_buffer, 1, n), _matrix(line, 1, n)
        before, r = _read_only(residuals[bag]), residuals[bag, stage : stage + 1]
        _weigh(tokens, _matrix(count[lo:hi], 1, n), Z[query[bag]], c, e, top)
        _feature(tokens, c, V, rule.center, rule.floor, rule.kind, Z.shape[1], f, norm)
        for j in range(stages.size):
            q[0, j] = 0
            for i in range(n):
                q[0, j] += steps[j] * f[0, i] * factors[stages[j], lo + i]
        _decode(tokens, f, Y, nothing, u)
        _decode(stages, q, before, nothing, more)
        u += more
        _largest(u, top)
        _quick_exponentials(u, top, r)
        soft_row = soft[bag] if soft.shape[0] > 0 else mass[:0]
        loss += _cross_entropy(u, top, target[bag], soft_row, shares, mass, r)
        _back(tokens, u, Y, nothing, g)
        _back(stages, u, before, nothing, q)
        for j in range(stages.size):
            for i in range(n):
                g[0, i] += steps[j] * q[0, j] * factors[stages[j], lo + i]
        _pull_back(tokens, c, f, norm, g, V, rule.center, rule.kind, shares, dZ[query[bag]], nothing, e[0])
        for i in range(n):
            own = weight[bag] * f[0, i]
            if row[lo + i] < 0:
                factors[stage, lo + i] = own
                continue
            slope, other = dY[row[lo + i]], r[0]
            for k in range(mass.size):
                slope[k] += own * other[k]
    return loss


@kernel(**_OPTIONS)
def attention(query, indptr, token, count, Z, c):
    """Attention of every bag, c_l = N_l exp(z_l) / sum, into ``c``, aligned with ``token``."""
    longest = 0
    for b in range(query.size):
        longest = max(longest, indptr[b + 1] - indptr[b])
    line, tops = np.empty(longest, c.dtype), np.empty(1, c.dtype)
    for b in range(query.size):
        lo, hi, total = indptr[b], indptr[b + 1], c.dtype.type(0)
        e, top = _matrix(line, 1, hi - lo), _borrowed(tops)
        _weigh(token[lo:hi], count[lo:hi].reshape(1, -1), Z[query[b]], c[lo:hi].reshape(1, -1), e, top)
        for i in range(lo, hi):
            total += c[i]
        for i in range(lo, hi):
            c[i] /= total


@kernel(**_OPTIONS)
def ascend(parameter, slope, first, second, rate, adam, step):
    """One step of gradient ascent along the velocity ``first``, or of Adam with its usual constants."""
    if not adam:
        for i in range(parameter.size):
            parameter[i] += rate * first[i]
        return
    # Weights of the new: formed as 1 - 0.999 in single precision, the second would be off by 1e-5.
    new1, new2 = parameter.dtype.type(0.1), parameter.dtype.type(0.001)
    small = parameter.dtype.type(1e-8)
    scale1 = parameter.dtype.type(1 / (1 - 0.9**step))
    scale2 = parameter.dtype.type(1 / (1 - 0.999**step))
    for i in range(parameter.size):
        first[i] += new1 * (slope[i] - first[i])
        second[i] += new2 * (slope[i] * slope[i] - second[i])
        parameter[i] += rate * (first[i] * scale1) / (np.sqrt(second[i] * scale2) + small)


@kernel(inner=True, **_OPTIONS)
def _catch_up(parameter, slope, first, second, rate, momentum, adam, missed, step):
    """The last ``missed`` steps until ``step`` of a row that had no gradient in them."""
    if not adam:
        decay = momentum ** parameter.dtype.type(missed)
        path = rate * momentum * (1 - decay) / (1 - momentum)
        parameter += path * first
        first *= decay
        return
    slope[:] = 0
    whole = min(missed, _FORGOTTEN)
    for k in range(whole):
        ascend(parameter, slope, first, second, rate, adam, step - missed + k + 1)
    first *= parameter.dtype.type(0.9 ** (missed - whole))
    second *= parameter.dtype.type(0.999 ** (missed - whole))


@kernel(inner=True, **_OPTIONS)
def _touch(index, now, rows, last, parameter, slope, first, second, rate, momentum, adam):
    """Make the rows of ``index`` ready for the gradient of step ``now``, and list them once each; their number."""
    n = 0
    for row in index:
        if last[row] == now:
            continue
        if 0 < last[row] < now - 1:
            missed = now - 1 - last[row]
            own = (parameter[row], slope[row], first[row], second[row])
            _catch_up(*own, rate, momentum, adam, missed, now - 1)
        last[row] = now
        rows[n] = row
        n += 1
        before = parameter.dtype.type(0) if adam else momentum
        for i in range(slope.shape[1]):
            slope[row, i] *= before
    return n


@kernel(inner=True, **_OPTIONS)
def _lent(weights):
    """The same weights, `_borrowed`."""
    Z, Y, V, hidden = _borrowed(weights.Z), _borrowed(weights.Y), _borrowed(weights.V), _borrowed(weights.hidden)
    return Weights(Z, Y, V, hidden, _borrowed(weights.keys), _borrowed(weights.queries), _borrowed(weights.values))


@kernel(inner=True, **_OPTIONS)
def _in_rows(weights, last):
    """Z as so many rows as ``last`` has, which are its rows or its entries, and the others as they are."""
    n = last[0].size
    return weights.Z.reshape(n, weights.Z.size // max(1, n)), weights.Y, weights.V, weights.hidden


@kernel(nogil=True, **_OPTIONS)
def catch_up(weights, memory, update, now):
    """Bring every row to step ``now``, as if it had taken every step."""
    x, slopes, last = _in_rows(weights, memory.last), _in_rows(memory.slopes, memory.last), memory.last
    first, second = _in_rows(memory.first, last), _in_rows(memory.second, last)
    for k in range(4):
        for row in range(last[k].size):
            if 0 < last[k][row] < now:
                own = (x[k][row], slopes[k][row], first[k][row], second[k][row])
                _catch_up(*own, update.rates[k], update.momentum, update.adam, now - last[k][row], now)
                last[k][row] = now


@kernel(nogil=True, **_OPTIONS)
def sgd_steps(batches, groups, weights, rule, memory, update, done, losses):
    """Take ``losses.size`` steps from step ``done``; returns how many gave a finite loss, and stops at the first other.

    ``batches`` is a `Batch` of arrays with a row for every step, of which the first ``groups`` groups count; a single
    row serves every step. Of ``weights`` the first four move, as the ``update`` says, with what ``memory`` holds of
    earlier steps. A step touches only the rows of its queries and tokens, or the entries of Z: ``memory.last`` has for
    each the step that it was brought to, and `catch_up` brings all to the same.
    """
    before = _underflow(True)
    finite = _sgd_steps(batches, groups, weights, rule, memory, update, done, losses)
    _underflow(before)
    return finite


@kernel(inner=True, **_OPTIONS)
def _sgd_steps(batches, groups, weights, rule, memory, update, done, losses):
    """`sgd_steps`, where what underflows is zero in gradients and weights."""
    query, target, soft, weight = (
        _borrowed(batches[0]), _borrowed(batches[1]), _borrowed(batches[2]), _borrowed(batches[3]),
    )  # fmt: skip
    size, indptr, token, count = (
        _borrowed(batches[4]), _borrowed(batches[5]), _borrowed(batches[6]), _borrowed(batches[7]),
    )  # fmt: skip
    weights, slopes = _lent(weights), _lent(memory.slopes)
    first, second = _lent(memory.first), _lent(memory.second)
    Z, Y, V, H = weights.Z, weights.Y, weights.V, weights.hidden
    rates, momentum, adam, last = update.rates, update.momentum, update.adam, memory.last
    last = (_borrowed(last[0]), _borrowed(last[1]), _borrowed(last[2]), _borrowed(last[3]))
    own = (_in_rows(weights, last), _in_rows(slopes, last), _in_rows(first, last), _in_rows(second, last))
    # As `gradient_flow` passes them.
    keys, queries, values = _read_only(weights.keys), _read_only(weights.queries), _read_only(weights.values)
    seen = Weights(_read_only(Z), _read_only(Y), _read_only(V), _read_only(H), keys, queries, values)
    nothing, always = np.empty((0, 0), Z.dtype), losses.size > 0  # a literal True would be a type of its own
    columns = rule.multiplicity.size
    while rule.multiplicity[columns - 1] == 0:
        columns -= 1
    every, cells = np.arange(max(Y.shape[0], V.shape[0], H.shape[0])), np.empty(token.shape[1], np.int64)
    rows = (np.empty_like(cells), np.empty_like(every), np.empty_like(every), np.empty_like(every))
    touched = np.zeros(4, np.int64)
    for step in range(losses.size):
        s, now = min(step, query.shape[0] - 1), done + step + 1
        tokens, n = token[s][: indptr[s][groups[s]]], groups[s]
        for g in range(groups[s] if last[0].size > Z.shape[0] else 0):
            n = indptr[s, g + 1]
            cells[indptr[s, g] : n] = query[s, g] * Z.shape[1] + token[s, indptr[s, g] : n]
        of_z = cells[:n] if last[0].size > Z.shape[0] else query[s][:n]
        of_y = tokens if V.shape[0] + H.shape[0] == 0 and not rule.residual else every[: Y.shape[0]]
        for k in range(4):
            index = (of_z, of_y, tokens[: tokens.size * min(1, V.shape[0])], every[: H.shape[0]])[k]
            arrays = (own[0][k], own[1][k], own[2][k], own[3][k])
            touched[k] = _touch(index, now, rows[k], last[k], *arrays, rates[k], momentum, adam)
        for row in rows[1][: touched[1]]:
            for c in range(columns, Y.shape[1]):  # columns of multiplicity 0: larger, they could starve the softmax
                Y[row, c] = Y[row, 0]
        batch = Batch(
            _read_only(query[s]), _read_only(target[s]), _read_only(soft[s]), _read_only(weight[s]),
            _read_only(size[s]), _read_only(indptr[s]), _read_only(token[s]), _read_only(count[s]),
        )  # fmt: skip
        losses[step] = loss_and_gradient(batch, groups[s], seen, rule, slopes, nothing, always)
        if not np.isfinite(losses[step]):
            return step
        for k in range(4):
            x, g, m, v = own[0][k], own[1][k], own[2][k], own[3][k]
            if touched[k] == last[k].size:
                ascend(x.ravel(), g.ravel(), m.ravel(), v.ravel(), rates[k], adam, now)
                continue
            for row in rows[k][: touched[k]]:
                ascend(x[row], g[row], m[row], v[row], rates[k], adam, now)
    return losses.size
