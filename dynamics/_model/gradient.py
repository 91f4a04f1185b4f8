"""Loss and gradient of a layer (numba): a kernel for each kind of layer and objective, of the parts in `kernels`.

A kernel has the parts of its kind alone: with the parts of all kinds, a first run took a sixth longer. It compiles once
for each precision: for all bags, and for flows and SGD alike.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from dynamics._model import kernels
from dynamics._model.kernels import first_integers, larger
from dynamics._model.weights import Rule, Weights
from dynamics.backend import intrinsics
from dynamics.backend.compiled import kernel
from dynamics.backend.intrinsics import as_read_only, borrowed, matrix, underflow

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "uses": (intrinsics, kernels)}


class Parts(NamedTuple):
    """Parts of a layer and an objective beside Z, Y and the cross-entropy: a value matrix, and others as in `Rule`."""

    values: bool = False
    hidden: bool = False
    squared: bool = False
    contrasted: bool = False
    residual: bool = False


def kernel_of(weights: Weights, rule: Rule) -> Any:
    """The kernel for this kind of layer: (batch, groups, weights, rule, slopes, residual, gradient) -> loss.

    It returns the loss -J of a weighted batch, and where ``gradient`` is true adds the gradient of J into ``slopes``:
    Lemma 1, and its extensions. The cost is (non-zeros of the bags) x (columns of Y), whatever the vocabulary.

    Only the first ``groups`` groups of the `Batch` count; ``weights`` and ``slopes`` are `Weights`. Where ``residual``
    has rows it receives each bag's r = target - alpha, and the decoder's gradient is left to the caller. Other kernels
    can call its `address`.
    """
    values, hidden = weights.V.shape[0] > 0, weights.hidden.shape[1] > 0
    return made(Parts(values, hidden, bool(rule.squared), bool(rule.contrasted), bool(rule.residual)))


@functools.cache
def made(parts: Parts) -> Any:
    """The kernel with these parts alone: numba drops branches on constants of an enclosing function."""
    values, hidden, squared, contrasted, joins = parts

    def loss_and_gradient(batch, groups, weights, rule, slopes, residual, gradient):
        query, target, soft, weight = borrowed(batch[0]), borrowed(batch[1]), borrowed(batch[2]), borrowed(batch[3])
        size, indptr, token, count = borrowed(batch[4]), borrowed(batch[5]), borrowed(batch[6]), borrowed(batch[7])
        Z, Y, V, H = borrowed(weights.Z), borrowed(weights.Y), borrowed(weights.V), borrowed(weights.hidden)
        dZ, dY, dV, dH = borrowed(slopes.Z), borrowed(slopes.Y), borrowed(slopes.V), borrowed(slopes.hidden)
        residual = borrowed(residual)
        center, floor, means, normalised = rule.center, rule.floor, rule.means, rule.normalised
        columns, units, last = Y.shape[1], H.shape[1], Y.shape[0] - Z.shape[0]  # the last rows of Y may be the queries'
        longest = most = 0
        for group in range(groups):
            longest, most = larger(longest, indptr[group + 1] - indptr[group]), larger(most, size[group])
        width = V.shape[1] if values else longest
        if not contrasted:  # a contrasted pair stays together
            room = kernels._TOGETHER // larger(1, larger(width * larger(columns, units), units * columns))
            most = larger(1, most if most < room else room)
        if values:
            all_rows = first_integers(width)
        c_buffer, norms, tops = np.empty(most * longest, Z.dtype), np.empty(most, Z.dtype), np.empty(most, Z.dtype)
        line = np.empty(longest, Z.dtype)
        f_buffer, g_buffer = np.empty(most * width, Z.dtype), np.empty(most * width, Z.dtype)
        u_buffer, r_buffer = np.empty(most * columns, Z.dtype), np.empty(most * columns, Z.dtype)
        first, d_first = (H, dH) if hidden else (Y, dY)  # the first factor of the features
        blocks = width if most > 1 else 0
        block_buffer = np.empty(blocks * first.shape[1], Z.dtype)
        product_buffer = np.empty(blocks * first.shape[1], Z.dtype)
        masses = rule.multiplicity.astype(Z.dtype)
        keep = residual.shape[0] > 0
        if hidden:
            blocks, all_units = units if most > 1 else 0, first_integers(units)
            a_buffer, da_buffer = np.empty(most * units, Z.dtype), np.empty(most * units, Z.dtype)
            units_buffer, units_product = np.empty(blocks * columns, Z.dtype), np.empty(blocks * columns, Z.dtype)
            if most > 1:
                kernels._gather(all_units, Y, matrix(units_buffer, blocks, columns))
        if contrasted:
            alike = np.empty(2, Z.dtype)
            alike[0] = alike[1] = 1
        loss, bag, entry = 0.0, 0, 0
        for group in range(groups):
            mass, norm, top = borrowed(masses), borrowed(norms), borrowed(tops)
            if hidden:
                every_unit, block_of_units = borrowed(as_read_only(all_units)), matrix(units_buffer, blocks, columns)
                product_of_units = matrix(units_product, blocks, columns)
            tokens = token[indptr[group] : indptr[group + 1]]
            rows = borrowed(as_read_only(all_rows)) if values else tokens
            block = matrix(block_buffer, rows.size if most > 1 else 0, first.shape[1])
            product = matrix(product_buffer, rows.size if most > 1 else 0, first.shape[1])
            soft_row = soft[group] if soft.shape[0] > 0 else mass[:0]
            if size[group] > 1 and most > 1:
                kernels._gather(rows, first, block)
            end = bag + size[group]
            while bag < end:
                n = most if most < end - bag else end - bag
                c = matrix(c_buffer, n, tokens.size)
                f, g = matrix(f_buffer, n, rows.size), matrix(g_buffer, n, rows.size)
                u, r = matrix(u_buffer, n, columns), matrix(r_buffer, n, columns)
                if keep:
                    r = matrix(residual[bag:], n, columns)
                shares = weight[bag : bag + n]
                to_zero = underflow(False)
                e = matrix(line, 1, tokens.size)
                kernels._weigh(tokens, matrix(count[entry:], n, tokens.size), Z[query[group]], c, e, top)
                if values:
                    kernels._feature_of_values(tokens, c, V, center, floor, normalised, f, norm)
                else:
                    kernels._feature(c, floor, means, normalised, Z.shape[1], f, norm)
                if hidden:
                    a, da = matrix(a_buffer, n, units), matrix(da_buffer, n, units)
                    kernels._decode(rows, f, H, block, a)
                    kernels._rectify(H, a)
                    kernels._decode(every_unit, a, Y, block_of_units, u)
                else:
                    kernels._decode(rows, f, Y, block, u)
                if joins:
                    kernels._join_query(Y[last + query[group]], u)
                if contrasted:
                    difference = u[0] - u[n - 1]
                rated = u[:1] if contrasted else u  # bags with a loss of their own
                own = target[group]
                if squared:
                    loss += kernels._square_residual(rated, own, soft_row, shares, mass, r)
                else:
                    loss += kernels._residual(rated, own, soft_row, shares, mass, r, top)
                if contrasted:
                    loss += kernels._contrast(difference, shares, mass, u, r)
                    shares = borrowed(alike)
                underflow(to_zero)
                if gradient:
                    if joins:
                        kernels._part_query(u, r, shares, dY[last + query[group]], keep)
                    if hidden:
                        kernels._back(every_unit, u, Y, block_of_units, da)
                        kernels._rectify_back(a, shares, da, dH)
                        kernels._back(rows, da, H, block, g)
                    else:
                        kernels._back(rows, u, Y, block, g)
                    dz = dZ[query[group]]
                    if values:
                        kernels._pull_back_values(tokens, c, f, norm, g, V, center, shares, dz, dV, e[0])
                    else:
                        kernels._pull_back(tokens, f, norm, g, means, normalised, shares, dz, e[0])
                    if not keep:
                        if hidden:
                            kernels._add_outer(every_unit, a, shares, r, product_of_units, dY)
                        kernels._add_outer(rows, f, shares, da if hidden else r, product, d_first)
                bag += n
                entry += n * tokens.size
        return loss

    name = "_".join(["loss_and_gradient", *(name for name, has in parts._asdict().items() if has)])
    # Kernels with the same name would load each other's machine code from numba's cache.
    loss_and_gradient.__name__ = loss_and_gradient.__qualname__ = name
    return kernel(**_OPTIONS)(loss_and_gradient)


# The kernel for a layer of Z and Y with the cross-entropy, for callers that have no other kind.
plain = made(Parts())
