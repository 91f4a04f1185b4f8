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
def _attend(token, count, logits, c):
    """Attention of one bag, c_l = N_l exp(z_l) / sum, into ``c``."""
    top = -np.inf
    for i in range(token.size):
        top = max(top, logits[token[i]])
    total = 0.0
    for i in range(token.size):
        c[i] = count[i] * np.exp(logits[token[i]] - top)
        total += c[i]
    for i in range(token.size):
        c[i] /= total


@njit(**_OPTIONS)
def _feature(token, c, V, f):
    """LN(V^T c) into ``f`` (aligned with ``token`` where V is the identity); returns the norm before LN."""
    if V.shape[0] == 0:
        f[: token.size] = c
    else:
        f[:] = 0.0
        for i in range(token.size):
            for k in range(f.size):
                f[k] += c[i] * V[token[i], k]
    size = token.size if V.shape[0] == 0 else f.size
    square = 0.0
    for k in range(size):
        square += f[k] * f[k]
    norm = np.sqrt(square)
    if norm > 0.0:
        for k in range(size):
            f[k] /= norm
    return norm


@njit(**_OPTIONS)
def _decode(token, f, Y, dense_feature, u):
    """Decoder logits Y^T f into ``u``."""
    u[:] = 0.0
    for i in range(f.size):
        row = i if dense_feature else token[i]
        for c in range(u.size):
            u[c] += f[i] * Y[row, c]


@njit(**_OPTIONS)
def _residual(u, target, soft, multiplicity, r):
    """Cross-entropy of softmax(u) into the return value, and r = (target - alpha) into ``r``.

    For a hard target the entry 1 - alpha_target is summed from the other columns: formed as a difference it would
    lose all digits once the target is nearly certain, and the zero-sum invariant with it.
    """
    top = -np.inf
    for c in range(u.size):
        top = max(top, u[c])
    total = 0.0
    others = 0.0
    for c in range(u.size):
        r[c] = np.exp(u[c] - top)
        mass = multiplicity[c] * r[c]
        total += mass
        if c == target:
            others += mass - r[c]
        else:
            others += mass
    if soft.size > 0:
        loss = 0.0
        log_total = np.log(total)
        for c in range(u.size):
            r[c] = -r[c] / total
        for c in range(soft.size):
            if soft[c] > 0.0:
                loss -= soft[c] * (u[c] - top - log_total)
                r[c] += soft[c]
        return loss
    own = r[target]
    for c in range(u.size):
        r[c] = -r[c] / total
    r[target] = others / total
    return np.log1p(others / own) if own > others else top - u[target] + np.log(total)


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
    inner = 0.0
    for k in range(f.size):
        inner += f[k] * g[k]
    if V.shape[0] == 0:
        for i in range(token.size):
            dz[token[i]] += weight * f[i] * (g[i] - f[i] * inner)
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
    c_buffer = np.empty(longest, Z.dtype)
    f_buffer = np.empty(width, Z.dtype)
    g_buffer = np.empty(width, Z.dtype)
    u = np.empty(Y.shape[1], Z.dtype)
    r = np.empty(Y.shape[1], Z.dtype)
    loss = 0.0
    for b in range(query.size):
        tokens = token[indptr[b] : indptr[b + 1]]
        c = c_buffer[: tokens.size]
        f = f_buffer if dense_feature else f_buffer[: tokens.size]
        g = g_buffer[: f.size]
        _attend(tokens, count[indptr[b] : indptr[b + 1]], Z[query[b]], c)
        norm = _feature(tokens, c, V, f)
        _decode(tokens, f, Y, dense_feature, u)
        soft_row = soft[b] if soft.shape[0] > 0 else u[:0]
        loss += weight[b] * _residual(u, target[b], soft_row, multiplicity, r)
        if not gradient:
            continue
        keep = residual.shape[0] > 0
        if keep:
            residual[b] = r
        for i in range(f.size):
            row = i if dense_feature else tokens[i]
            along = 0.0
            for k in range(r.size):
                along += Y[row, k] * multiplicity[k] * r[k]
            g[i] = along
            if not keep:
                for k in range(r.size):
                    dY[row, k] += weight[b] * f[i] * r[k]
        _pull_back(tokens, c, f, norm, g, V, weight[b], dZ[query[b]], dV)
    return loss


@njit(**_OPTIONS)
def attention(query, indptr, token, count, Z, c):
    """Attention of every bag into ``c``, aligned with ``token``."""
    for b in range(query.size):
        lo, hi = indptr[b], indptr[b + 1]
        _attend(token[lo:hi], count[lo:hi], Z[query[b]], c[lo:hi])


@njit(**_OPTIONS)
def predictions(query, indptr, token, count, Z, Y, V, multiplicity, features, alpha):
    """LN features of every bag into the rows of ``features``, next-token probabilities into ``alpha``."""
    dense_feature = V.shape[0] > 0
    nothing = np.empty(0, Z.dtype)
    for b in range(query.size):
        tokens = token[indptr[b] : indptr[b + 1]]
        c = np.empty(tokens.size, Z.dtype)
        f = np.empty(V.shape[1] if dense_feature else tokens.size, Z.dtype)
        _attend(tokens, count[indptr[b] : indptr[b + 1]], Z[query[b]], c)
        _feature(tokens, c, V, f)
        _decode(tokens, f, Y, dense_feature, alpha[b])
        for i in range(f.size):
            features[b, i if dense_feature else tokens[i]] = f[i]
        _softmax(alpha[b], multiplicity)


@njit(**_OPTIONS)
def sparse_features(query, indptr, token, count, Z, f):
    """f_n = c~_n / ||c~_n||_2 of every bag into ``f``, aligned with ``token`` (Lemma 2, (6))."""
    identity = np.empty((0, 0), Z.dtype)
    for b in range(query.size):
        lo, hi = indptr[b], indptr[b + 1]
        c = np.empty(hi - lo, Z.dtype)
        _attend(token[lo:hi], count[lo:hi], Z[query[b]], c)
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
