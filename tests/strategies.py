"""Random valid settings for property tests.

Hypothesis draws the sizes, the structure and a scale; the numbers come from a seeded generator, since generic numbers
find more than the round ones hypothesis prefers.
"""

import numpy as np
from hypothesis import strategies as st

from dynamics import Bags, Layer, SequenceClasses

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
    from yzflow_bounded_dyck import DyckLanguage  # of another distribution, which tests of the core do without

    q = draw(st.sampled_from([1e-9, 0.1, 0.5, 0.8, 1 - 1e-9]))
    return DyckLanguage(draw(st.integers(1, max_types)), draw(st.integers(1, max_depth)), q)


class Population:
    """Bags as the population that sequences are drawn from, and not as the sequences themselves."""

    def __init__(self, bags):
        self._bags = bags

    def population(self):
        return self._bags


def generic_layer(data, *, value=False, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    n_values = 3 if value else data.n_tokens
    return Layer(
        scale * rng.normal(size=(data.n_queries, data.n_tokens)),
        scale * rng.normal(size=(n_values, data.vocab_size)),
        rng.normal(size=(data.n_tokens, n_values)) if value else None,
    )
