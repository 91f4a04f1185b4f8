"""The derivative of a small state in one kernel, and loss and gradient of a small plain layer (numba).

The latter has rows of numbers that become vector instructions.

A kernel of `_model.gradient` takes any batch, makes its arrays anew in each call, and asks the C library for one
exponential at a time: at ten classes that is three times the arithmetic. Here the caller owns the arrays, all
exponentials of a batch are taken together, and the loss is computed on request only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dynamics._model.batch import Batch
from dynamics._model.problem import Problem
from dynamics._model.weights import Rule, Weights
from dynamics.backend import lanes
from dynamics.backend.compiled import address, call, kernel
from dynamics.backend.lanes import (
    LANES,
    filled,
    floor,
    highest,
    larger,
    load_at,
    power_of_two,
    store_at,
    total,
    where,
)
from dynamics.support.checks import read_only, read_only_views
from dynamics.support.limits import current

# The kernel of a frame is used up to so many variables, and multiplications of an evaluation. Above, arithmetic
# outweighs the calls between the stages of a step, and Ctrl-C would wait for a step.
_VARIABLES, _WORK = 2**14, 2**18

_OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "uses": (lanes,)}
_SUMS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "uses": (lanes,)}


class Small(NamedTuple):
    """The arguments of `plain_gradient`: bags, weights and workspaces.

    Attributes
    ----------
    query, target, indptr, token : int arrays
    weight, count : arrays
        Those of a `Batch` with single bags as groups, and with next tokens.
    mass : (rows of `LANES`,)
        The multiplicity of each column of Y, then zeros.
    rivals : (bags, rows of `LANES`)
        ``mass`` without the next token of each bag.
    width, columns : int
        Columns of Z and of Y.
    entries : (Z.size + Y.size + LANES,)
        Z, then Y, then room for a row.
    slopes : as ``entries``
        Receives the gradients.
    start : int
        Index of the first entry of Y in ``entries``.
    shares : (entries of the bags, then room for a row,)
    logits : (bags, rows of `LANES`)
    line : (rows of `LANES`,)
    asked : (1,) bool
        True to compute the loss.
    """

    query: np.ndarray
    target: np.ndarray
    indptr: np.ndarray
    token: np.ndarray
    weight: np.ndarray
    count: np.ndarray  # hides a method of tuples
    mass: np.ndarray
    rivals: np.ndarray
    width: int
    columns: int
    entries: np.ndarray
    slopes: np.ndarray
    start: int
    shares: np.ndarray
    logits: np.ndarray
    line: np.ndarray
    asked: np.ndarray


def small_of(batch: Batch, rule: Rule, like: Weights) -> Small | None:
    """The arguments of `plain_gradient` for single bags as groups, with new workspaces; None for any other layer."""
    usual = not (rule.squared or rule.contrasted or rule.residual or rule.means) and rule.normalised
    if not usual or like.V.size or like.hidden.size or batch.soft.shape[0] or batch.count.dtype != np.float64:
        return None
    multiplicity, shape = rule.multiplicity, like.Z.shape
    columns, start = multiplicity.size, like.Z.size
    wide = -(-columns // LANES) * LANES
    mass, size = np.zeros(wide), start + shape[1] * columns + LANES
    mass[:columns] = multiplicity
    rivals = np.tile(mass, (batch.query.size, 1))
    rivals[np.arange(batch.query.size), batch.target] -= 1
    mass, rivals = read_only_views((mass, rivals.ravel()))
    return Small(
        batch.query,
        batch.target,
        batch.indptr,
        batch.token,
        batch.weight,
        batch.count,
        mass,
        rivals,
        shape[1],
        columns,
        np.zeros(size),
        np.zeros(size),
        start,
        np.zeros(batch.token.size + LANES),
        np.zeros(batch.query.size * wide),
        np.zeros(wide),
        np.zeros(1, np.bool_),
    )


@kernel(inner=True, **_OPTIONS)
def exp(x):
    """exp(x) within two units in the last place; for x below -707 or above 707, exp of that bound.

    The C library takes one number at a time. This is Taylor's polynomial of degree 13 on [-ln(2)/2, ln(2)/2], times a
    power of two.
    """
    x = larger(-707.0, x)
    x = where(x - 707.0, 707.0, x)
    k = floor(x * 1.4426950408889634 + 0.5)
    x = (x - k * 0.693145751953125) - k * 1.42860682030941723212e-6
    p = x * 1.6059043836821613e-10 + 2.08767569878681e-09
    p = p * x + 2.505210838544172e-08
    p = p * x + 2.755731922398589e-07
    p = p * x + 2.7557319223985893e-06
    p = p * x + 2.48015873015873e-05
    p = p * x + 0.0001984126984126984
    p = p * x + 0.001388888888888889
    p = p * x + 0.008333333333333333
    p = p * x + 0.041666666666666664
    p = p * x + 0.16666666666666666
    p = p * x + 0.5
    p = p * x + 1.0
    return (p * x + 1.0) * power_of_two(k)


@kernel(inner=True, **_OPTIONS)
def _attend(query, indptr, token, count, width, entries, shares):
    """The features f of all bags into ``shares``."""
    for b in range(query.size):
        z, top = query[b] * width, -np.inf
        for i in range(indptr[b], indptr[b + 1]):
            x = entries[z + token[i]]
            top = x if x > top else top
        for i in range(indptr[b], indptr[b + 1]):
            shares[i] = entries[z + token[i]] - top
    for i in range(0, token.size, LANES):
        store_at(shares, i, exp(load_at(shares, i)))
    for b in range(query.size):
        sum_, square = 0.0, 0.0
        for i in range(indptr[b], indptr[b + 1]):
            shares[i] *= count[i]
            sum_ += shares[i]
            square += shares[i] * shares[i]
        # The token of the largest logit may have next to no count, or counts may be huge.
        if not 1e-12 < sum_ < 1e12:
            square = 0.0
            for i in range(indptr[b], indptr[b + 1]):
                shares[i] /= sum_
                square += shares[i] * shares[i]
        scale = 1.0 / np.sqrt(square)
        for i in range(indptr[b], indptr[b + 1]):
            shares[i] *= scale


@kernel(inner=True, **_OPTIONS)
def _decode(indptr, token, mass, columns, start, entries, shares, logits):
    """Decoder logits of all bags, less the largest logit of each bag.

    A row may reach beyond the columns of Y into its next row; such entries have mass zero and are left out.
    """
    wide = mass.size
    for b in range(indptr.size - 1):
        top = -np.inf
        for c in range(0, wide, LANES):
            u = filled(0.0)
            for i in range(indptr[b], indptr[b + 1]):
                u = u + shares[i] * load_at(entries, start + token[i] * columns + c)
            u = where(load_at(mass, c), u, filled(-1e300))
            best = highest(u)
            top = best if best > top else top
            store_at(logits, b * wide + c, u)
        for c in range(0, wide, LANES):
            store_at(logits, b * wide + c, load_at(logits, b * wide + c) - top)


@kernel(**_OPTIONS)
def plain_gradient(small):
    """`gradient.loss_and_gradient` of a plain layer and the cross-entropy (Lemma 1); the loss is 0 unless ``asked``.

    The weights are in ``entries``, and the gradients are added into ``slopes``.
    """
    query, target, indptr, token, weight = small.query, small.target, small.indptr, small.token, small.weight
    mass, rivals, width, columns, start = small.mass, small.rivals, small.width, small.columns, small.start
    entries, slopes, shares, logits, line = small.entries, small.slopes, small.shares, small.logits, small.line
    _attend(query, indptr, token, small.count, width, entries, shares)
    _decode(indptr, token, mass, columns, start, entries, shares, logits)
    wide, loss, asked = mass.size, 0.0, small.asked[0]
    for b in range(query.size):
        at, own = b * wide, b * wide + target[b]
        below, rest = logits[own], filled(0.0)
        for c in range(0, wide, LANES):
            e = exp(load_at(logits, at + c))
            store_at(logits, at + c, e)
            rest = rest + load_at(rivals, at + c) * e
        # 1 - alpha of the target is a sum over its rivals: as a difference it would lose its digits.
        others, certain = total(rest), logits[own]
        if asked:
            loss += weight[b] * (np.log1p(others / certain) if certain > others else np.log(others + certain) - below)
        scale = 1.0 / (others + certain)
        for c in range(0, wide, LANES):
            m = load_at(mass, c)
            r = where(m - load_at(rivals, at + c), others * scale, 0.0 - load_at(logits, at + c) * scale)
            r = where(m, r, 0.0)
            store_at(logits, at + c, r)
            store_at(line, c, m * r)
        inner, z = 0.0, query[b] * width
        for i in range(indptr[b], indptr[b + 1]):
            place, f, along = start + token[i] * columns, weight[b] * shares[i], filled(0.0)
            for c in range(0, wide, LANES):
                along = along + load_at(entries, place + c) * load_at(line, c)
                store_at(slopes, place + c, load_at(slopes, place + c) + f * load_at(logits, at + c))
            g = total(along)
            inner += shares[i] * g
            slopes[z + token[i]] += f * g
        for i in range(indptr[b], indptr[b + 1]):
            slopes[z + token[i]] -= weight[b] * shares[i] * shares[i] * inner
    return loss


class Frame(NamedTuple):
    """A layer whose weights are variables of a state, as arrays for `derive`.

    Attributes
    ----------
    direct : bool
        Whether the weights are the variables, one after the other: then ``variable`` and ``factor`` have no entries.
    variable : (entries,) int
        The variable of each entry of the weights.
    factor : (entries,)
        Factor of the gradient at an entry; the products are then added up for each variable.
    rate : (variables,)
        Factor of the sum of each variable.
    entries, slopes : (entries or more,)
        The weights at which the gradient is taken, and its array; ``arguments`` has these arrays, or views of them.
    asked : (1,) bool
        True to compute the loss, too; a kernel that has it for free always does.
    gradient : int
        The `address` of a kernel of loss and gradient.
    arguments : tuple
        All arguments of that kernel.
    """

    direct: bool
    variable: np.ndarray
    factor: np.ndarray
    rate: np.ndarray
    entries: np.ndarray
    slopes: np.ndarray
    asked: np.ndarray
    gradient: int
    arguments: tuple


def frame_of(
    problem: Problem, views: Callable[[np.ndarray], Weights], variable: np.ndarray, factor: np.ndarray, rate: np.ndarray
) -> Frame | None:
    """The frame of a problem; None if its gradient needs more than one call of the kernel, or a long one.

    ``views`` makes weights of an array, with its entries one after the other.
    """
    if rate.size > _VARIABLES or problem.work > _WORK:
        return None
    entries, slopes, asked = np.zeros(variable.size), np.zeros(variable.size), np.zeros(1, np.bool_)
    arguments = problem.alone(views(read_only(entries.view())), views(slopes))
    if arguments is None:
        return None
    own = small_of(problem.batch, problem.rule, arguments[2])
    if own is not None:
        entries, slopes, asked, gradient, arguments = own.entries, own.slopes, own.asked, plain_gradient, (own,)
    else:
        gradient = problem.kernel
    direct = np.array_equal(variable, np.arange(rate.size)) and bool((factor == 1).all())
    if direct:
        variable, factor = variable[:0], factor[:0]
    variable, factor, rate = read_only_views((variable.copy(), factor.copy(), rate.copy()))
    where = address(gradient, arguments)
    return Frame(direct, variable, factor, rate, entries, slopes, asked, where, arguments)


@kernel(inner=True, **_SUMS)
def derive(frame, at, speed, out):
    """``speed`` times the derivative at ``at`` into ``out``; returns the loss if it was asked for."""
    n, variable, rate, slopes = at.size, frame.variable, frame.rate, frame.slopes
    if frame.direct:
        for i in range(n):
            frame.entries[i] = at[i]
    for i in range(variable.size):
        frame.entries[i] = at[variable[i]]
    for i in range(slopes.size):
        slopes[i] = 0
    loss = call(frame.gradient, frame.arguments)
    if frame.direct:
        for i in range(n):
            out[i] = slopes[i] * (rate[i] * speed)
        return loss
    for i in range(n):
        out[i] = 0
    for i in range(variable.size):
        out[variable[i]] += frame.factor[i] * slopes[i]
    for i in range(n):
        out[i] *= rate[i] * speed
    return loss


@kernel(nogil=True, **_SUMS)
def look(frame, states, losses, slopes):
    """Losses and derivatives at some states (states, variables)."""
    frame.asked[0] = True
    for k in range(states.shape[0]):
        losses[k] = derive(frame, states[k], 1.0, slopes[k])
    frame.asked[0] = False


def looked(frame: Frame, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loss and derivative of a frame at each of several states."""
    losses, slopes = np.empty(len(states)), np.empty(states.shape)
    states = read_only(np.ascontiguousarray(states).view())
    size = max(1, current().work // _WORK)
    for lo in range(0, len(states), size):
        rows = slice(lo, lo + size)
        look(frame, states[rows], losses[rows], slopes[rows])
    return losses, slopes
