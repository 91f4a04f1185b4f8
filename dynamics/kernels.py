"""Every numba kernel of the project.

They stand in one file because numba's on-disk cache of a caller is not invalidated when a callee in
another file changes.

Conventions. A batch of bags is given in CSR form: bag b has the tokens ``token[indptr[b]:indptr[b + 1]]``
with counts (or probabilities) ``count[...]``, the query row ``query[b]``, the weight ``weight[b]`` and either
the next token ``target[b]`` or, where ``soft`` has rows, the distribution ``soft[b]`` over next tokens.
``multiplicity[c]`` next tokens share column c of Y. An empty V (no rows) stands for the identity.
Gradients are those of the objective J (ascent directions), summed over the bags with their weights.

``error_model="numpy"`` lets a division by zero give inf or nan, which the callers report, and
reassociation lets the compiler use vector instructions for sums; no other fast-math flag is on, so
nan and inf keep their meaning.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_OPTIONS = {"cache": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}


@njit(**_OPTIONS)
def _largest(u):
    """Largest entry; four running maxima, since compilers do not break up the chain of one."""
    top0 = top1 = top2 = top3 = u[0]
    quads = u.size - u.size % 4
    for c in range(0, quads, 4):
        top0 = max(top0, u[c])
        top1 = max(top1, u[c + 1])
        top2 = max(top2, u[c + 2])
        top3 = max(top3, u[c + 3])
    for c in range(quads, u.size):
        top0 = max(top0, u[c])
    return max(max(top0, top1), max(top2, top3))


@njit(**_OPTIONS)
def _exponentials(u, top, out, bits):
    """exp(u - top) into ``out``, for u <= top; ``bits`` is an int32 buffer, no smaller.

    In single precision numba calls the C library once an entry, which dominates SGD at a full vocabulary. The
    polynomial of Cephes' expf (S. Moshier) on [-ln(2)/2, ln(2)/2], scaled by powers of two put together from their
    bits, becomes vector instructions; its relative error is below 9e-8.
    """
    if u.itemsize == 8:
        for c in range(u.size):
            out[c] = np.exp(u[c] - top)
        return
    for c in range(u.size):
        x = np.float32(u[c] - top)
        x = max(x, np.float32(-87.0)) if x == x else x
        n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
        x = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
        y = np.float32(1.9875691500e-4)
        y = y * x + np.float32(1.3981999507e-3)
        y = y * x + np.float32(8.3334519073e-3)
        y = y * x + np.float32(4.1665795894e-2)
        y = y * x + np.float32(1.6666665459e-1)
        y = y * x + np.float32(5.0000001201e-1)
        out[c] = y * x * x + x + np.float32(1.0)
        bits[c] = (np.int32(n) + np.int32(127)) << np.int32(23)
    powers = bits[: u.size].view(np.float32)
    for c in range(u.size):
        out[c] *= powers[c]


@njit(**_OPTIONS)
def _attend(token, count, logits, c, bits):
    """Attention of one bag, c_l = N_l exp(z_l) / sum, into ``c``; ``bits`` is a buffer for `_exponentials`."""
    for i in range(token.size):
        c[i] = logits[token[i]]
    _exponentials(c, _largest(c), c, bits)
    total = c.dtype.type(0)
    for i in range(token.size):
        c[i] *= count[i]
        total += c[i]
    scale = c.dtype.type(1) / total
    for i in range(token.size):
        c[i] *= scale


@njit(**_OPTIONS)
def _feature(token, c, V, f):
    """LN(V^T c) into ``f`` (aligned with ``token`` where V is the identity); returns the norm before LN."""
    if V.shape[0] == 0:
        for i in range(token.size):  # numba takes seconds to compile the assignment of a slice
            f[i] = c[i]
    else:
        f[:] = 0.0
        for i in range(token.size):
            for k in range(f.size):
                f[k] += c[i] * V[token[i], k]
    size = token.size if V.shape[0] == 0 else f.size
    square = f.dtype.type(0)
    for k in range(size):
        square += f[k] * f[k]
    norm = np.sqrt(square)
    if norm > 0:
        scale = f.dtype.type(1) / norm
        for k in range(size):
            f[k] *= scale
    return norm


@njit(**_OPTIONS)
def _decode(rows, f, Y, u):
    """Decoder logits Y^T f into ``u``, four rows at a time to spare loads and stores; f[i] belongs to row rows[i]."""
    u[:] = 0
    quads = f.size - f.size % 4
    for i in range(0, quads, 4):
        row0, row1, row2, row3 = Y[rows[i]], Y[rows[i + 1]], Y[rows[i + 2]], Y[rows[i + 3]]
        f0, f1, f2, f3 = f[i], f[i + 1], f[i + 2], f[i + 3]
        for c in range(u.size):
            u[c] += f0 * row0[c] + f1 * row1[c] + f2 * row2[c] + f3 * row3[c]
    for i in range(quads, f.size):
        row = Y[rows[i]]
        scale = f[i]
        for c in range(u.size):
            u[c] += scale * row[c]


@njit(**_OPTIONS)
def _residual(u, target, soft, mass, r, bits):
    """Cross-entropy of softmax(u) into the return value, and r = (target - alpha) into ``r``.

    ``mass`` is the multiplicity of each column. For a hard target the entry 1 - alpha_target is summed from the other
    columns: formed as a difference it would lose all digits once the target is nearly certain, and the zero-sum
    invariant with it.
    """
    # Typed constants: a bare 0 or 1 would turn single precision into double.
    zero, one = u.dtype.type(0), u.dtype.type(1)
    top = _largest(u)
    _exponentials(u, top, r, bits)
    if soft.size > 0:
        total = zero
        for c in range(u.size):
            total += mass[c] * r[c]
        loss = zero
        log_total = np.log(total)
        for c in range(u.size):
            r[c] = -r[c] / total
        for c in range(soft.size):
            if soft[c] > 0:
                loss -= soft[c] * (u[c] - top - log_total)
                r[c] += soft[c]
        return loss
    own = r[target]
    r[target] = zero
    others = (mass[target] - one) * own
    for c in range(u.size):
        others += mass[c] * r[c]
    scale = -one / (others + own)
    for c in range(u.size):
        r[c] *= scale
    r[target] = -scale * others
    return np.log1p(others / own) if own > others else top - u[target] + np.log(others + own)


@njit(**_OPTIONS)
def _back(rows, f, Y, v, g):
    """g = Y v on the rows of the feature, four at a time."""
    zero = v.dtype.type(0)
    quads = f.size - f.size % 4
    for i in range(0, quads, 4):
        row0, row1, row2, row3 = Y[rows[i]], Y[rows[i + 1]], Y[rows[i + 2]], Y[rows[i + 3]]
        g0, g1, g2, g3 = zero, zero, zero, zero
        for k in range(v.size):
            g0 += row0[k] * v[k]
            g1 += row1[k] * v[k]
            g2 += row2[k] * v[k]
            g3 += row3[k] * v[k]
        g[i], g[i + 1], g[i + 2], g[i + 3] = g0, g1, g2, g3
    for i in range(quads, f.size):
        row = Y[rows[i]]
        total = zero
        for k in range(v.size):
            total += row[k] * v[k]
        g[i] = total


@njit(**_OPTIONS)
def _add_outer(rows, f, weight, r, dY):
    """dY += weight f r^T on the rows of the feature."""
    for i in range(f.size):
        row = dY[rows[i]]
        scale = weight * f[i]
        for k in range(r.size):
            row[k] += scale * r[k]


@njit(**_OPTIONS)
def _softmax(u, multiplicity):
    """Replace the logits ``u`` by the probability of one next token of each column."""
    top = -np.inf
    for c in range(u.size):
        top = max(top, u[c])
    total = 0.0
    for c in range(u.size):
        u[c] = np.exp(u[c] - top)
        total += multiplicity[c] * u[c]
    for c in range(u.size):
        u[c] /= total


@njit(**_OPTIONS)
def _pull_back(token, c, f, norm, g, V, weight, dz, dV):
    """Add one bag's gradient with respect to its logits z (and V) given g, the gradient at the feature f.

    Without V this is Lemma 1 in bag form, z' = f * (g - f (f . g)).
    """
    inner = f.dtype.type(0)
    for k in range(f.size):
        inner += f[k] * g[k]
    if V.shape[0] == 0:
        scale = f.dtype.type(weight)
        for i in range(token.size):
            dz[token[i]] += scale * f[i] * (g[i] - f[i] * inner)
        return
    if norm == 0.0:
        return
    mean = 0.0
    for i in range(token.size):
        along = 0.0
        for k in range(f.size):
            du = (g[k] - f[k] * inner) / norm
            along += V[token[i], k] * du
            dV[token[i], k] += weight * c[i] * du
        mean += c[i] * along
        dz[token[i]] += weight * c[i] * along
    # LN makes `mean` zero; taking off what round-off leaves of it keeps the rows of Z summing as they did.
    for i in range(token.size):
        dz[token[i]] -= weight * c[i] * mean


@njit(**_OPTIONS)
def loss_and_gradient(
    query, target, soft, weight, indptr, token, count, Z, Y, V, multiplicity, dZ, dY, dV, residual, gradient
):
    """Loss -J of a weighted batch, and the gradient of J of Lemma 1 added into ``dZ``, ``dY`` and ``dV``.

    The cost is (non-zeros of the bags) x (columns of Y), whatever the vocabulary. Where ``residual`` has rows it
    receives each bag's r = target - alpha, and the decoder's gradient is left to the caller.
    """
    longest = 0
    for b in range(query.size):
        longest = max(longest, indptr[b + 1] - indptr[b])
    dense_feature = V.shape[0] > 0
    width = V.shape[1] if dense_feature else longest
    every_row = np.arange(width)
    c_buffer = np.empty(longest, Z.dtype)
    f_buffer = np.empty(width, Z.dtype)
    g_buffer = np.empty(width, Z.dtype)
    u = np.empty(Y.shape[1], Z.dtype)
    r = np.empty(Y.shape[1], Z.dtype)
    bits = np.empty(max(longest, Y.shape[1]), np.int32)
    mass = multiplicity.astype(Z.dtype)
    loss = 0.0
    for b in range(query.size):
        tokens = token[indptr[b] : indptr[b + 1]]
        rows = every_row if dense_feature else tokens
        c, f, g = c_buffer[: tokens.size], f_buffer[: rows.size], g_buffer[: rows.size]
        _attend(tokens, count[indptr[b] : indptr[b + 1]], Z[query[b]], c, bits)
        norm = _feature(tokens, c, V, f)
        _decode(rows, f, Y, u)
        soft_row = soft[b] if soft.shape[0] > 0 else u[:0]
        loss += weight[b] * _residual(u, target[b], soft_row, mass, r, bits)
        if not gradient:
            continue
        keep = residual.shape[0] > 0
        if keep:
            for k in range(r.size):
                residual[b, k] = r[k]
        for k in range(r.size):
            u[k] = mass[k] * r[k]
        _back(rows, f, Y, u, g)
        if not keep:
            _add_outer(rows, f, Z.dtype.type(weight[b]), r, dY)
        _pull_back(tokens, c, f, norm, g, V, weight[b], dZ[query[b]], dV)
    return loss


@njit(**_OPTIONS)
def attention(query, indptr, token, count, Z, c):
    """Attention of every bag into ``c``, aligned with ``token``."""
    for b in range(query.size):
        lo, hi = indptr[b], indptr[b + 1]
        _attend(token[lo:hi], count[lo:hi], Z[query[b]], c[lo:hi], np.empty(hi - lo, np.int32))


@njit(**_OPTIONS)
def predictions(query, indptr, token, count, Z, Y, V, multiplicity, features, alpha):
    """LN features of every bag into the rows of ``features``, next-token probabilities into ``alpha``."""
    every_row = np.arange(Y.shape[0])
    for b in range(query.size):
        tokens = token[indptr[b] : indptr[b + 1]]
        rows = every_row if V.shape[0] > 0 else tokens
        c = np.empty(tokens.size, Z.dtype)
        f = np.empty(rows.size, Z.dtype)
        _attend(tokens, count[indptr[b] : indptr[b + 1]], Z[query[b]], c, np.empty(tokens.size, np.int32))
        _feature(tokens, c, V, f)
        _decode(rows, f, Y, alpha[b])
        for i in range(f.size):
            features[b, rows[i]] = f[i]
        _softmax(alpha[b], multiplicity)


@njit(**_OPTIONS)
def sparse_features(query, indptr, token, count, Z, f):
    """f_n = c~_n / ||c~_n||_2 of every bag into ``f``, aligned with ``token`` (Lemma 2, (6))."""
    identity = np.empty((0, 0), Z.dtype)
    for b in range(query.size):
        lo, hi = indptr[b], indptr[b + 1]
        c = np.empty(hi - lo, Z.dtype)
        _attend(token[lo:hi], count[lo:hi], Z[query[b]], c, np.empty(hi - lo, np.int32))
        _feature(token[lo:hi], c, identity, f[lo:hi])


@njit(**_OPTIONS)
def gram(indptr, token, f, workspace, G):
    """G = F^T F for the columns f_n in CSR form; ``workspace`` has an entry for every token, all zero."""
    bags = indptr.size - 1
    for b in range(bags):
        for i in range(indptr[b], indptr[b + 1]):
            workspace[token[i]] = f[i]
        for other in range(b, bags):
            total = 0.0
            for i in range(indptr[other], indptr[other + 1]):
                total += f[i] * workspace[token[i]]
            G[b, other] = total
            G[other, b] = total
        for i in range(indptr[b], indptr[b + 1]):
            workspace[token[i]] = 0.0


@njit(**_OPTIONS)
def add_outer(indptr, token, f, X, out):
    """out += F X for the columns f_n in CSR form and X with a row for each bag."""
    for b in range(indptr.size - 1):
        for i in range(indptr[b], indptr[b + 1]):
            for k in range(X.shape[1]):
                out[token[i], k] += f[i] * X[b, k]


@njit(**_OPTIONS)
def theory_decoder(x, target, vocab_size, inner):
    """inner[n', n] = w_n' . (e_n - alpha_n) of Theorem 1 before (I - E'), from x_n = M h_n.

    With w_n = (M - 1) h_n zeta_n and e_n - alpha_n = (M - 1) / (M - 1 + exp(x_n)) zeta_n (31)-(32); zeta_n . zeta_n'
    is q_1 = M / (M - 1) for equal and q_0 = -M / (M - 1)^2 for different next tokens.
    """
    rest = vocab_size - 1.0
    same = vocab_size / rest
    different = -vocab_size / rest**2
    for n in range(x.size):
        error = rest / (rest + np.exp(x[n]))
        for other in range(x.size):
            product = same if target[other] == target[n] else different
            inner[other, n] = rest * x[other] / vocab_size * error * product


@njit(**_OPTIONS)
def theory_pull_back(query, weight, indptr, token, f, YR, dZ):
    """Add the attention dynamics (10) into ``dZ``: column n of ``YR`` (tokens x bags) is g_n = gamma F (I - E') u_n."""
    identity = np.empty((0, 0), f.dtype)
    for b in range(query.size):
        lo, hi = indptr[b], indptr[b + 1]
        tokens = token[lo:hi]
        g = np.empty(hi - lo, f.dtype)
        for i in range(hi - lo):
            g[i] = YR[tokens[i], b]
        _pull_back(tokens, f[lo:hi], f[lo:hi], 1.0, g, identity, weight[b], dZ[query[b]], identity)


@njit(**_OPTIONS)
def alias_tables(indptr, weight, threshold, choice):
    """Alias table (Walker 1977, Vose 1991) of each CSR row of ``weight``.

    A cell i of a row goes to ``choice[i, 0]`` below the threshold, in units of 2^-32, and to ``choice[i, 1]`` above.
    """
    for row in range(indptr.size - 1):
        lo, size = indptr[row], indptr[row + 1] - indptr[row]
        total = 0.0
        for i in range(size):
            total += weight[lo + i]
        height = np.empty(size)
        pending = np.empty(size, np.int64)  # cells below one from the left, the others from the right
        small, large = 0, size
        for i in range(size):
            height[i] = weight[lo + i] / total * size
            choice[lo + i, 0] = i
            choice[lo + i, 1] = i
            if height[i] < 1:
                pending[small] = i
                small += 1
            else:
                large -= 1
                pending[large] = i
        while small > 0 and large < size:
            small -= 1
            low, high = pending[small], pending[large]
            choice[lo + low, 1] = high
            height[high] -= 1 - height[low]
            if height[high] < 1:
                large += 1
                pending[small] = high
                small += 1
        for i in range(size):
            threshold[lo + i] = np.uint64(min(height[i], 1.0) * 4294967296.0 + 0.5)


@njit(**_OPTIONS)
def random_bits(state, out):
    """Fill ``out`` with 64-bit random numbers by xoshiro256++ (Blackman and Vigna 2019); ``state`` moves on.

    Not numpy's generators: a call of theirs through a function pointer takes several times as long.
    """
    a, b, c, d = state[0], state[1], state[2], state[3]
    for i in range(out.size):
        total = a + d
        out[i] = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
        shifted = b << np.uint64(17)
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = (d << np.uint64(45)) | (d >> np.uint64(19))
    state[0], state[1], state[2], state[3] = a, b, c, d


@njit(inline="always", **_OPTIONS)
def _pick(bits, threshold, choice):
    """Index drawn from an alias table with the lower 32 of ``bits``: the law is exact to 2^-32.

    The product with the number of cells has the cell in its upper half and the position within it in the lower. The
    side is looked up, not branched on: no processor can predict it.
    """
    position = (bits & np.uint64(0xFFFFFFFF)) * np.uint64(threshold.size)
    cell = position >> np.uint64(32)
    return choice[cell, np.uint64((position & np.uint64(0xFFFFFFFF)) >= threshold[cell])]


@njit(**_OPTIONS)
def _draw_tokens(bits, threshold, choice, position_weight, even, odd):
    """Add each position's weight to a token drawn for it: two tokens from each entry of ``bits``.

    They are counted apart, in ``even`` and ``odd``, so that one store need not wait for the other.
    """
    positions = position_weight.size
    one = even.dtype.type(1)
    if position_weight[positions - 1] == 1:  # weights fall from one, so that all are one
        for t in range(positions // 2):
            even[_pick(bits[t], threshold, choice)] += one
            odd[_pick(bits[t] >> np.uint64(32), threshold, choice)] += one
    else:
        for t in range(positions // 2):
            even[_pick(bits[t], threshold, choice)] += position_weight[2 * t]
            odd[_pick(bits[t] >> np.uint64(32), threshold, choice)] += position_weight[2 * t + 1]
    if positions % 2 == 1:
        even[_pick(bits[positions // 2], threshold, choice)] += position_weight[positions - 1]


@njit(**_OPTIONS)
def _draw_batch(random, data, tables, position_weight, batch):
    """Fill ``batch`` with bags drawn from ``data``; with positions, each bag is a sequence drawn from its counts."""
    query, target, soft, indptr, token, count = data
    bag_threshold, bag_choice, token_threshold, token_choice = tables
    b_query, b_target, b_soft, b_indptr, b_token, b_count, workspace = batch
    positions = position_weight.size
    bits = np.empty(1 + (positions + 1) // 2, np.uint64)
    end = 0
    for b in range(b_query.size):
        random_bits(random, bits)
        source = _pick(bits[0], bag_threshold, bag_choice)
        b_query[b] = query[source]
        b_target[b] = target[source]
        for k in range(b_soft.shape[1]):
            b_soft[b, k] = soft[source, k]
        lo, hi = indptr[source], indptr[source + 1]
        if positions > 0:
            even, odd = workspace[0, : hi - lo], workspace[1, : hi - lo]
            even[:] = 0
            odd[:] = 0
            _draw_tokens(bits[1:], token_threshold[lo:hi], token_choice[lo:hi], position_weight, even, odd)
        for i in range(hi - lo):
            drawn = even[i] + odd[i] if positions > 0 else count[lo + i]
            # Written always and kept if drawn: a branch here would be guessed wrong for every second rare token.
            b_token[end] = token[lo + i]
            b_count[end] = drawn
            end += 1 if drawn > 0 else 0
        b_indptr[b + 1] = end


@njit(**_OPTIONS)
def ascend(parameter, gradient, first, second, rate, momentum, adam, step):
    """One step of gradient ascent with momentum, or of Adam with its usual constants."""
    if not adam:
        for i in range(parameter.size):
            first[i] = momentum * first[i] + gradient[i]
            parameter[i] += rate * first[i]
        return
    # Weights of the new: formed as 1 - 0.999 in single precision, the second would be off by 1e-5.
    new1, new2 = parameter.dtype.type(0.1), parameter.dtype.type(0.001)
    small = parameter.dtype.type(1e-8)
    scale1 = parameter.dtype.type(1 / (1 - 0.9**step))
    scale2 = parameter.dtype.type(1 / (1 - 0.999**step))
    for i in range(parameter.size):
        first[i] += new1 * (gradient[i] - first[i])
        second[i] += new2 * (gradient[i] * gradient[i] - second[i])
        parameter[i] += rate * (first[i] * scale1) / (np.sqrt(second[i] * scale2) + small)


@njit(nogil=True, **_OPTIONS)
def sgd_steps(
    random,
    data,
    tables,
    position_weight,
    batch,
    weight,
    state,
    gradient,
    first,
    second,
    rates,
    momentum,
    adam,
    done,
    losses,
):
    """Take ``losses.size`` steps from step ``done``; returns how many gave a finite loss, and stops at the first other.

    ``state`` is (Z, Y, V, multiplicity); ``gradient``, ``first`` and ``second`` (velocity or moments) match its arrays.
    ``batch`` holds buffers if bags are to be drawn from ``data``; with an empty ``tables[0]`` it is the whole data.
    """
    Z, Y, V, multiplicity = state
    dZ, dY, dV = gradient
    nothing = np.empty((0, 0), Z.dtype)
    query, target, soft, indptr, token, count, _ = batch
    flat_state = (Z.ravel(), Y.ravel(), V.ravel())
    flat_gradient = (dZ.ravel(), dY.ravel(), dV.ravel())
    columns = multiplicity.size
    while multiplicity[columns - 1] == 0:
        columns -= 1
    for step in range(losses.size):
        # Columns of multiplicity 0 are padding; with the largest logit among them the softmax could underflow.
        for row in range(Y.shape[0]):
            for k in range(columns, multiplicity.size):
                Y[row, k] = Y[row, 0]
        if tables[0].size > 0:
            _draw_batch(random, data, tables, position_weight, batch)
        dZ[:] = 0
        dY[:] = 0
        dV[:] = 0
        losses[step] = loss_and_gradient(
            query, target, soft, weight, indptr, token, count, Z, Y, V, multiplicity, dZ, dY, dV, nothing, True
        )
        if not np.isfinite(losses[step]):
            return step
        for k in range(3):
            ascend(flat_state[k], flat_gradient[k], first[k], second[k], rates[k], momentum, adam, done + step + 1)
    return losses.size
