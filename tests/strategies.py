"""Random valid settings for property tests, and the definitions of the papers in plain NumPy to check against.

Hypothesis draws the sizes, the structure and a scale; the numbers come from a seeded generator, since generic numbers
find more than the round ones hypothesis prefers. The definitions work on explicit dense counts and matrices, class by
class, and accept complex numbers, so that derivatives follow from a complex step.
"""

import numpy as np
from hypothesis import strategies as st

from dynamics import Bags, DyckLanguage, Layer, SequenceClasses
from dynamics._sgd import sampling

SEEDS = st.integers(0, 2**32 - 1)
LOGIT_SCALES = st.sampled_from([0.0, 0.3, 3.0, 30.0])


@st.composite
def bags(draw, *, soft=None, max_bags=6):
    """Bags of several queries, with hard or soft targets, some of weight zero, some tokens and next tokens unseen."""
    n = draw(st.integers(1, max_bags))
    n_tokens, n_targets, n_queries = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    unseen_tokens, unseen_targets = draw(st.integers(0, 2)), draw(st.integers(0, 5))
    soft = draw(st.booleans()) if soft is None else soft
    whole, weighted = draw(st.booleans()), draw(st.booleans())
    rng = np.random.default_rng(draw(SEEDS))
    counts = rng.integers(1, 9, (n, n_tokens)) if whole else rng.exponential(size=(n, n_tokens)) + 1e-3
    counts = counts * (rng.random((n, n_tokens)) < 0.6)
    counts[np.arange(n), rng.integers(n_tokens, size=n)] += 1
    weight = rng.dirichlet(np.ones(n)) if weighted else None
    if weighted and n > 1:
        weight[1] += weight[0]
        weight[0] = 0
    target = rng.dirichlet(np.ones(n_targets), n) if soft else rng.integers(n_targets, size=n)
    return Bags.from_dense(
        rng.integers(n_queries, size=n),
        target,
        np.pad(counts, ((0, 0), (0, unseen_tokens))),
        weight,
        n_queries=n_queries,
        vocab_size=n_targets + unseen_targets,
    )


@st.composite
def layers(draw, data, *, value=False, compressed=True):
    """A layer that fits the bags ``data``: with a value matrix or not, unseen next tokens in one column or not."""
    n_values = draw(st.integers(1, 4)) if value else data.n_tokens
    columns = np.ones(data.vocab_size, dtype=int)
    rest = data.vocab_size - data.n_targets
    if compressed and rest:
        columns = np.append(columns[: data.n_targets], rest)
    scale = draw(LOGIT_SCALES)
    rng = np.random.default_rng(draw(SEEDS))
    return Layer(
        scale * rng.normal(size=(data.n_queries, data.n_tokens)),
        scale * rng.normal(size=(n_values, columns.size)),
        rng.normal(size=(data.n_tokens, n_values)) if value else None,
        columns,
    )


@st.composite
def sequence_classes(draw, *, uniform=None, max_unseen=20):
    """Two to four classes with up to three common tokens and one or two distinct ones each.

    A distinct token in every class makes the features independent, as the modified and the theory decoder need.
    """
    n_classes, n_common, n_distinct = draw(st.integers(2, 4)), draw(st.integers(0, 3)), draw(st.integers(1, 2))
    n_queries, unseen = draw(st.integers(1, n_classes)), draw(st.integers(0, max_unseen))
    uniform = draw(st.booleans()) if uniform is None else uniform
    rng = np.random.default_rng(draw(SEEDS))
    table = np.zeros((n_classes, n_common + n_classes * n_distinct))
    table[:, :n_common] = rng.uniform(0.1, 1, (n_classes, n_common)) * (rng.random((n_classes, n_common)) < 0.8)
    for n in range(n_classes):
        own = n_common + n * n_distinct
        table[n, own : own + n_distinct] = rng.uniform(0.5, 1.5, n_distinct)
    return SequenceClasses(
        table / table.sum(axis=1, keepdims=True),
        rng.integers(n_queries, size=n_classes),
        vocab_size=n_classes + unseen,
        class_weights=None if uniform else rng.dirichlet(np.full(n_classes, 5.0)),
    )


@st.composite
def dyck_languages(draw, *, max_types=4, max_depth=5):
    """Languages down to one type and depth one, with q down to 1e-9 and up to 1 - 1e-9."""
    q = draw(st.sampled_from([1e-9, 0.1, 0.5, 0.8, 1 - 1e-9]))
    return DyckLanguage(draw(st.integers(1, max_types)), draw(st.integers(1, max_depth)), q)


class Population:
    """Bags as the population that sequences are drawn from, and not as the sequences themselves."""

    def __init__(self, bags):
        self._bags = bags

    def population(self):
        return self._bags


def dense_counts(data):
    """The counts of the bags as a dense (bags, tokens) array."""
    counts = np.zeros((len(data), data.n_tokens))
    for b in range(len(data)):
        for i in range(data.indptr[b], data.indptr[b + 1]):
            counts[b, data.token[i]] = data.count[i]
    return counts


def dense_targets(data):
    """The next-token distributions of the bags over all M next tokens."""
    targets = np.zeros((len(data), data.vocab_size))
    for b in range(len(data)):
        if data.hard:
            targets[b, data.target[b]] = 1
        else:
            targets[b, : data.target.shape[1]] = data.target[b]
    return targets


def attend(counts, logits):
    """Attention c = N exp(z) / sum of one bag."""
    c = counts * np.exp(np.where(counts > 0, logits - logits[counts > 0].real.max(), 0))
    return c / c.sum()


def normalise(v):
    """LN(v) = v / ||v||_2, without the complex modulus, so that it stays differentiable in the complex sense."""
    return v / np.sqrt((v * v).sum())


def log_softmax(u):
    u = u - u.real.max()
    return u - np.log(np.exp(u).sum())


def loss(data, Z, Y, V=None):
    """-J by (2), for Y with a column for each of the M next tokens."""
    total = 0
    for b, (counts, target) in enumerate(zip(dense_counts(data), dense_targets(data), strict=True)):
        c = attend(counts, Z[data.query[b]])
        f = normalise(c if V is None else V.T @ c)
        total = total - data.weight[b] * (target @ log_softmax(Y.T @ f))
    return total


def features(data, Z):
    """F = [f_1 .. f_K], (tokens, bags)."""
    return np.array(
        [normalise(attend(counts, Z[q])) for counts, q in zip(dense_counts(data), data.query, strict=True)]
    ).T


def residuals(data, F, Y):
    """The columns e_n - alpha_n, (M, bags)."""
    alpha = np.exp(np.array([log_softmax(u) for u in (Y.T @ F).T])).T
    return dense_targets(data).T - alpha


def pull_back(data, Z, F, G):
    """dZ/dt per unit of eta_Z: Lemma 1 (3) with matrices, for the backpropagated gradients G = [g_1 .. g_K]."""
    out = np.zeros_like(Z)
    for n, counts in enumerate(dense_counts(data)):
        b = attend(counts, Z[data.query[n]])
        projection = np.eye(b.size) - np.outer(F[:, n], F[:, n])
        out[data.query[n]] += data.weight[n] * (np.diag(b) @ projection @ G[:, n]) / np.linalg.norm(b)
    return out


def full_flow(data, Z, Y):
    """(dZ/dt per eta_Z, dY/dt per eta_Y) by Lemma 1 (3)."""
    F = features(data, Z)
    R = residuals(data, F, Y)
    return pull_back(data, Z, F, Y @ R), F @ np.diag(data.weight) @ R.T


def modified_flow(data, Z, Y):
    """(dZ/dt per eta_Z, dY/dt per eta_Y) with the decoder gradient (f_n - F E' e_n)(e_n - alpha_n)^T of Lemma 3."""
    F = features(data, Z)
    R = residuals(data, F, Y)
    n = len(data)
    E = np.linalg.inv(np.linalg.inv(F.T @ F)) - np.eye(n)
    correction = np.eye(n) - np.linalg.inv(np.eye(n) + E)
    dY = sum(data.weight[k] * np.outer(F[:, k] - F @ correction[:, k], R[:, k]) for k in range(n))
    return pull_back(data, Z, F, Y @ R), dY


def xi(data, Z, h):
    """(xi_n, gamma beta_{nn'}) of Theorem 1 for K equally likely classes that all have decoder growth h."""
    F = features(data, Z)
    K, M = len(data), data.vocab_size
    gamma = (M - 1) ** 2 * h / (M - 1 + np.exp(M * h))
    U = np.full((K, K), -M / (M - 1) ** 2)
    np.fill_diagonal(U, M / (M - 1))
    beta = -(np.linalg.inv(F.T @ F) @ U).T
    np.fill_diagonal(beta, 0)
    return gamma * (beta * (F.T @ F)).sum(axis=1), gamma * beta


def theory_flow(data, Z, h):
    """(dZ/dt per eta_Z, dh/dt per eta_Y) by (10), with gamma and beta of Theorem 1 and p_n = 1/K."""
    F = features(data, Z)
    K, M = len(data), data.vocab_size
    weighted_beta = xi(data, Z, h)[1]
    dZ = np.zeros_like(Z)
    for n in range(K):
        inner = (np.outer(F[:, n], F[:, n]) - np.eye(len(F))) @ F @ weighted_beta[n]
        dZ[data.query[n]] += F[:, n] * inner / K
    return dZ, 1 / (K * (M - 1 + np.exp(M * h)))


def scaled_difference(actual, expected):
    """Largest difference, in units of the largest expected entry; of 0.001 where all are smaller, or only round-off."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    return np.abs(actual - expected).max() / max(1e-3, np.abs(expected).max())


def draw_batch(run):
    """The groups of the next mini-batch of a run of SGD: query, target, tokens, counts (bags, tokens) and weights."""
    groups = np.zeros(1, dtype=np.int64)
    tables = (run.source.bag_tables, run.source.token_tables, run.position_weight, run.insertions)
    sampling.draw_batches(run.random, run.data, *tables, run.workspace, run.batches, groups)
    query, target, soft, weight, size, indptr, token, count = (array[0] for array in run.batches)
    bag = entry = 0
    found = []
    for g in range(groups[0]):
        tokens = token[indptr[g] : indptr[g + 1]].copy()
        shape = (size[g], tokens.size)
        found.append(
            {
                "query": query[g],
                "target": soft[g].copy() if soft.shape[1] else target[g],
                "token": tokens,
                "count": count[entry : entry + size[g] * tokens.size].reshape(shape).copy(),
                "weight": weight[bag : bag + size[g]].copy(),
            }
        )
        bag += size[g]
        entry += size[g] * tokens.size
    return found
