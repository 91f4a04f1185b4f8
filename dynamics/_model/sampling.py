"""Numba kernels that draw mini-batches: independent tokens by alias tables, in groups for the layer's kernels."""

from __future__ import annotations

import numpy as np

from dynamics._model.batch import Batch
from dynamics.backend import intrinsics
from dynamics.backend.compiled import kernel
from dynamics.backend.intrinsics import matrix
from dynamics.bags import Bags
from dynamics.support.checks import read_only

# Pairs of tokens are drawn if all alias tables together have at most so many cells, which stay in a processor's cache.
_PAIR_CELLS = 2**16

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_TWO = np.uint64(2)


@kernel(inner=True)
def _alias_table(weight, threshold, choice):
    """Alias table (Walker 1977, Vose 1991) of the probabilities ``weight / weight.sum()``.

    Cell i gives ``choice[2 i]`` below its threshold, in units of 2^-32, and ``choice[2 i + 1]`` above. The array has
    one axis: with two, each look-up would take a product.
    """
    size, total = weight.size, 0.0
    for i in range(size):
        total += weight[i]
    scale, height = size / total, np.empty(size, np.float64)
    for i in range(size):
        height[i] = weight[i] * scale
    pending = np.empty(size, np.int64)  # cells below one from the left, the others from the right
    small, large = 0, size
    for i in range(size):
        choice[2 * i] = choice[2 * i + 1] = i
        if height[i] < 1:
            pending[small] = i
            small += 1
        else:
            large -= 1
            pending[large] = i
    while small > 0 and large < size:
        small -= 1
        low, high = pending[small], pending[large]
        choice[2 * low + 1] = high
        height[high] -= 1 - height[low]
        if height[high] < 1:
            large += 1
            pending[small] = high
            small += 1
    for i in range(size):
        threshold[i] = np.uint64(min(height[i], 1.0) * 4294967296.0 + 0.5)


@kernel()
def _alias_tables(indptr, weight, start, threshold, choice, pairs):
    """Alias tables of all rows; with ``pairs``, of pairs (first, second), packed as first + 2^32 second."""
    for row in range(indptr.size - 1):
        at, n = indptr[row], indptr[row + 1] - indptr[row]
        lo, hi = start[row], start[row + 1]
        whole, total = np.empty(hi - lo, np.float64), 0.0
        for i in range(n):
            total += weight[at + i]
        if not pairs:
            for i in range(n):
                whole[i] = weight[at + i]
        else:
            for i in range(n):
                for j in range(n):
                    whole[i * n + j] = weight[at + i] / total * (weight[at + j] / total)
        _alias_table(whole, threshold[lo:hi], choice[2 * lo : 2 * hi])
        for i in range(2 * lo, 2 * hi if pairs else 2 * lo):
            pair = choice[i]
            choice[i] = pair // np.uint64(n) + ((pair % np.uint64(n)) << _HALF)


def alias_tables(
    indptr: np.ndarray, weight: np.ndarray, *, pairs: bool = False
) -> tuple[bool, np.ndarray, np.ndarray, np.ndarray]:
    """Tables from which `draw_batches` draws, for each CSR row of ``weight``: (pairs, start, threshold, choice).

    With ``pairs``, and unless their tables would be large, one look-up gives two independent tokens.
    """
    size = np.diff(indptr)
    pairs = bool(pairs and (size**2).sum() <= _PAIR_CELLS)
    start = np.concatenate([[0], np.cumsum(size**2 if pairs else size)])
    threshold, choice = np.empty(start[-1], dtype=np.uint64), np.empty(2 * start[-1], dtype=np.uint64)
    indptr, weight = (read_only(array.view()) for array in (indptr, weight))
    _alias_tables(indptr, weight, start, threshold, choice, pairs)
    return (pairs, *(read_only(array) for array in (start, threshold, choice)))


@kernel(inner=True)
def _advance(a, b, c, d):
    """64 random bits by xoshiro256++ (Blackman and Vigna 2019), and its next state.

    numpy's generators, which are called through a function pointer, take several times as long.
    """
    total = a + d
    bits = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
    shifted = b << np.uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << np.uint64(45)) | (d >> np.uint64(19))
    return bits, a, b, c, d


@kernel(inner=True)
def random_bits(state, out):
    """Fill ``out`` with random bits; ``state`` moves on."""
    a, b, c, d = state
    for i in range(out.size):
        out[i], a, b, c, d = _advance(a, b, c, d)
    state[0], state[1], state[2], state[3] = a, b, c, d


@kernel(inner=True)
def _pick(bits, threshold, choice):
    """Draw an entry from an alias table by the lower 32 of ``bits``: its law is exact to 2^-32.

    The product of bits and number of cells has the cell in its upper half, and the position within the cell in its
    lower half. The side of the threshold is looked up without a branch, since no processor can predict it.
    """
    position = (bits & _LOW) * np.uint64(threshold.size)
    cell = position >> _HALF
    return choice[_TWO * cell + np.uint64((position & _LOW) >= threshold[cell])]


@kernel(inner=True)
def _pick_two(bits, threshold, choice, pairs):
    """Two independent tokens, packed as first + 2^32 second."""
    if pairs:
        cell = ((bits & _LOW) * np.uint64(threshold.size)) >> _HALF
        return choice[_TWO * cell + np.uint64((bits >> _HALF) >= threshold[cell])]
    return _pick(bits, threshold, choice) + (_pick(bits >> _HALF, threshold, choice) << _HALF)


@kernel(inner=True)
def _draw_tokens(random, threshold, choice, pairs, position_weight, tallies, count):
    """Draw a token for each position; a row of ``count`` receives the weights of the positions, added up by token.

    Tokens at even and at odd positions are counted apart, so that one store need not wait for the other.
    """
    positions, size = position_weight.size, count.shape[1]
    alike = True  # with equal weights, integers add up faster
    for t in range(positions):
        alike = alike and position_weight[t] == 1
    even, odd = tallies
    a, b, c, d = random
    for row in range(count.shape[0]):
        for i in range(size):
            even[i] = odd[i] = 0
            count[row, i] = 0
        if alike:
            for _ in range(positions // 2):
                bits, a, b, c, d = _advance(a, b, c, d)
                two = _pick_two(bits, threshold, choice, pairs)
                even[two & _LOW] += 1
                odd[two >> _HALF] += 1
            for i in range(size):
                count[row, i] = even[i] + odd[i]
        else:
            for t in range(positions // 2):
                bits, a, b, c, d = _advance(a, b, c, d)
                two = _pick_two(bits, threshold, choice, pairs)
                count[row, two & _LOW] += position_weight[2 * t]
                count[row, two >> _HALF] += position_weight[2 * t + 1]
        if positions % 2 == 1:
            bits, a, b, c, d = _advance(a, b, c, d)
            last = _pick_two(bits, threshold, choice, pairs)
            count[row, last & _LOW] += position_weight[positions - 1]
    random[0], random[1], random[2], random[3] = a, b, c, d


@kernel(inner=True)
def _join(token, count, more_token, more_count, out_token, out_count):
    """Write a bag, and the bag with an insertion, as two rows of counts over the tokens of either.

    Returns the number of these tokens.
    """
    size = token.size
    for i in range(token.size):
        out_token[i] = token[i]
        out_count[i] = count[i]
    for j in range(more_token.size):
        known = False
        for i in range(token.size):
            known = known or token[i] == more_token[j]
        if not known:
            out_token[size] = more_token[j]
            out_count[size] = 0
            size += 1
    for i in range(size):
        out_count[size + i] = out_count[i]
        for j in range(more_token.size):
            if more_token[j] == out_token[i]:
                out_count[size + i] += more_count[j]
    return size


@kernel()
def _contrasted(batch, insertions, strength, joined):
    """Fill the batch ``joined`` with a pair of bags for every bag of ``batch`` and every insertion."""
    query, target, soft, weight, _, indptr, token, count = batch
    i_weight, i_indptr, i_token, i_count = insertions
    j_query, j_target, j_soft, j_weight, j_size, j_indptr, j_token, j_count = joined
    group = entry = 0
    for b in range(query.size):
        own = slice(indptr[b], indptr[b + 1])
        for i in range(i_weight.size):
            more = slice(i_indptr[i], i_indptr[i + 1])
            at = j_indptr[group]
            size = _join(token[own], count[own], i_token[more], i_count[more], j_token[at:], j_count[entry:])
            j_query[group], j_target[group], j_size[group] = query[b], target[b], 2
            for k in range(soft.shape[1]):
                j_soft[group, k] = soft[b, k]
            j_weight[2 * group] = weight[b] * i_weight[i]
            j_weight[2 * group + 1] = strength * weight[b] * i_weight[i]
            group += 1
            entry += 2 * size
            j_indptr[group] = at + size


def contrasted(batch: Batch, insertions: Bags, strength: float) -> Batch:
    """A batch of pairs for the regulariser (22): every bag with every insertion, by the product of their weights."""
    soft, dtype = batch.soft, batch.count.dtype
    pairs = batch.query.size * len(insertions)
    entries = batch.token.size * len(insertions) + insertions.token.size * batch.query.size
    query, target, size = np.zeros((3, pairs), dtype=np.int64)
    joined = Batch(
        query,
        target,
        np.empty((pairs if soft.shape[0] else 0, soft.shape[1]), soft.dtype),
        np.empty(2 * pairs, dtype),
        size,
        np.zeros(pairs + 1, np.int64),
        np.empty(entries, np.int64),
        np.empty(2 * entries, dtype),
    )
    arrays = (insertions.weight, insertions.indptr, insertions.token, insertions.count)
    _contrasted(batch, arrays, strength, joined)
    return Batch(*(read_only(array) for array in joined))


@kernel(inner=True)
def _deal(bits, deck):
    """The next bag of an epoch; all orders of an epoch are equally likely to 2^-32 (Fisher and Yates).

    The last entry of ``deck`` counts the bags that were dealt. Before it stand the dealt bags, then the others.
    """
    size = deck.size - 1
    dealt = deck[size] % size
    left = np.uint64(size - dealt)
    other = dealt + np.int64(((bits & _LOW) * left) >> _HALF)
    card = deck[other]
    deck[other] = deck[dealt]
    deck[dealt] = card
    deck[size] = dealt + 1
    return card


@kernel(inner=True)
def _draw_batch(random, data, bag_tables, token_tables, position_weight, insertions, workspace, batch):
    """Fill a batch; returns the number of its groups."""
    query, target, soft, _, _, indptr, token, count = data
    i_indptr, i_token, i_count, i_threshold, i_choice, strength = insertions
    contrast = i_token.size > 0
    _, _, bag_threshold, bag_choice = bag_tables
    pairs, start, token_threshold, token_choice = token_tables
    drawn, tally, bits, tallies, deck = workspace
    b_query, b_target, b_soft, b_weight, b_size, b_indptr, b_token, b_count = batch
    random_bits(random, bits)
    for b in range(drawn.size):
        drawn[b] = np.int64(_pick(bits[b], bag_threshold, bag_choice)) if deck.size == 0 else _deal(bits[b], deck)
        tally[drawn[b]] += 1
    share = b_weight.dtype.type(1) / b_weight.dtype.type(drawn.size)
    groups = end = entry = 0
    for b in range(drawn.size):
        source = drawn[b]
        times = 1 if contrast else tally[source]
        tally[source] = 0
        if times == 0:
            continue
        lo, hi = indptr[source], indptr[source + 1]
        b_query[groups] = query[source]
        b_target[groups] = target[source]
        for k in range(b_soft.shape[1]):
            b_soft[groups, k] = soft[source, k]
        if contrast:
            random_bits(random, bits[:1])
            more = np.int64(_pick(bits[0], i_threshold, i_choice))
            own, extra = slice(lo, hi), slice(i_indptr[more], i_indptr[more + 1])
            size = _join(token[own], count[own], i_token[extra], i_count[extra], b_token[end:], b_count[entry:])
            b_size[groups] = 2
            b_weight[2 * groups] = share
            b_weight[2 * groups + 1] = share * strength
            end += size
            entry += 2 * size
            groups += 1
            b_indptr[groups] = end
            continue
        for i in range(hi - lo):
            b_token[end + i] = token[lo + i]
        end += hi - lo
        if position_weight.size > 0:
            b_size[groups] = times
            first, after = start[source], start[source + 1]
            threshold, choice = token_threshold[first:after], token_choice[2 * first : 2 * after]
            counts = matrix(b_count[entry:], times, hi - lo)
            _draw_tokens(random, threshold, choice, pairs, position_weight, tallies, counts)
            entry += times * (hi - lo)
        else:
            b_size[groups] = 1
            b_weight[groups] = share * times
            for i in range(hi - lo):
                b_count[entry + i] = count[lo + i]
            entry += hi - lo
        groups += 1
        b_indptr[groups] = end
    return groups


@kernel(nogil=True, uses=(intrinsics,))
def draw_batches(random, data, bag_tables, token_tables, position_weight, insertions, workspace, batches, groups):
    """Fill the first ``groups.size`` of ``batches`` with bags drawn from ``data``, and ``groups`` with their numbers.

    ``data`` is a `Batch` of single bags, ``batches`` the argument of `sgd_steps`. With positions, each bag is a
    sequence with tokens drawn from the counts; the sequences of one class are the bags of a group. Without positions, a
    drawn bag comes once, as it is, weighted by how often it was drawn. ``workspace`` is (a row of drawn classes for
    each step, a zero for each class, random bits, two tallies of tokens, the deck of `_deal` or nothing).
    ``insertions`` are (indptr, token, count, threshold, choice, weight of the regulariser (22)): if there are any, each
    bag comes as a pair, without and with an insertion.
    """
    query, target, soft, weight, size, indptr, token, count = batches
    drawn, tally, bits, tallies, deck = workspace
    for s in range(groups.size):
        batch = Batch(query[s], target[s], soft[s], weight[s], size[s], indptr[s], token[s], count[s])
        own = (drawn[s], tally, bits, tallies, deck)
        groups[s] = _draw_batch(random, data, bag_tables, token_tables, position_weight, insertions, own, batch)
