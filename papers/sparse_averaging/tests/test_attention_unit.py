"""Attention units, layers, transformers and tensor units against their definitions, symmetries and exact cases."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_sparse_averaging.attention_unit import (
    AttentionUnit,
    FixedPoint,
    MultiHeadLayer,
    Precision,
    TensorAttentionUnit,
    Transformer,
    attend,
    attention_weights,
)

from dynamics import Limits

sizes = st.integers(1, 5)
scales = st.sampled_from([1e-3, 1.0, 30.0])


def matrices(rng, d, m, width):
    return rng.normal(size=(d, m)), rng.normal(size=(d, m)), rng.normal(size=(d, width))


def unit_by_definition(X, Q, K, V, phi, scale):
    rows = [phi(x) for x in X]
    attention = [reference.softmax(np.array([scale * (x @ Q) @ (other @ K) for other in rows])) for x in rows]
    return np.array([sum(a * (x @ V) for a, x in zip(row, rows, strict=True)) for row in attention])


def tensor_by_definition(X, Q, K, V, scale):
    """Maps X Q; X K and X K^2 (entries squared) as keys; X V and sin(X V) as values."""
    out = []
    for x in X:
        scores = np.array([[scale * ((x @ Q) * (j @ K) * (k @ K) ** 2).sum() for k in X] for j in X])
        weights = reference.softmax(scores)
        pairs = ((weights[j, k], X[j] @ V, np.sin(X[k] @ V)) for j in range(len(X)) for k in range(len(X)))
        out.append(sum(a * v * w for a, v, w in pairs))
    return np.array(out)


def tensor_unit(Q, K, V, **options):
    keys = (lambda X: X @ K, lambda X: (X @ K) ** 2)
    values = (lambda X: X @ V, lambda X: np.sin(X @ V))
    return TensorAttentionUnit(lambda X: X @ Q, keys, values, embedding_dim=Q.shape[1], **options)


def wave(X):
    """An element-wise map that changes the number of entries."""
    return np.concatenate([np.sin(X), X[..., :1] ** 2], axis=-1)


# The definitions


@given(sizes, sizes, sizes, sizes, scales, strategies.SEEDS)
def test_unit_is_its_definition_on_each_sequence_of_a_batch(n_tokens, d, m, width, scale, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2, 3, n_tokens, d))
    Q, K, V = matrices(rng, d + 1, m, width)
    unit = AttentionUnit(Q, K, V, phi=wave, scale=scale)
    expected = [[unit_by_definition(x, Q, K, V, wave, scale) for x in row] for row in X]
    np.testing.assert_allclose(unit(X), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(unit.attention(X) @ unit.values(X), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(unit.attention(X).sum(axis=-1), 1, rtol=1e-14)


@given(sizes, sizes, sizes, sizes, scales, strategies.SEEDS)
def test_tensor_unit_is_its_definition(n_tokens, d, m, width, scale, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2, n_tokens, d))
    Q, K, V = matrices(rng, d, m, width)
    expected = [tensor_by_definition(x, Q, K, V, scale) for x in X]
    unit = tensor_unit(Q, K, V, scale=scale)
    np.testing.assert_allclose(unit(X), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(unit.attention(X).sum(axis=(-1, -2)), 1, rtol=1e-14)


@given(sizes, sizes, sizes, strategies.SEEDS)
def test_tensor_unit_with_a_constant_second_key_is_a_unit(n_tokens, d, m, seed):
    """Scores that do not depend on the second token: each gets 1/N of the attention of an ordinary unit."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_tokens, d))
    Q, K, V = matrices(rng, d, m, 3)
    ordinary = AttentionUnit(Q, K, V)

    def constant(X):
        return np.ones((*X.shape[:-1], m))

    unit = TensorAttentionUnit(
        lambda X: X @ Q, (lambda X: X @ K, constant), (lambda X: X @ V, lambda X: X @ V), embedding_dim=m
    )
    expected = np.repeat(ordinary.attention(X)[:, :, None], n_tokens, axis=2) / n_tokens
    np.testing.assert_allclose(unit.attention(X), expected, rtol=1e-12)
    np.testing.assert_allclose(unit(X), ordinary(X) * (X @ V).mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(unit.queries(X), X @ Q)
    np.testing.assert_array_equal(unit.keys(X), [X @ K, constant(X)])
    np.testing.assert_array_equal(unit.values(X), [X @ V, X @ V])


def test_layer_adds_its_heads_to_its_input_and_transformer_alternates_maps_and_layers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 2))
    heads = [AttentionUnit(*matrices(rng, 3, 2, 3), scale=scale) for scale in (0.5, 2.0)]
    layer = MultiHeadLayer(heads)
    state = wave(X)
    np.testing.assert_allclose(layer(state), state + heads[0](state) + heads[1](state), rtol=1e-14)
    second = MultiHeadLayer(heads[:1])
    network = Transformer([layer, second], [wave, None, np.tanh])
    state = layer(wave(X))
    np.testing.assert_allclose(network(X), np.tanh(state + heads[0](state)), rtol=1e-14)
    assert network.depth == 2
    np.testing.assert_array_equal(Transformer([second])(wave(X)), second(wave(X)))


def test_maps_of_a_unit_are_a_phi_that_concatenates_them_and_matrices_that_select():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 2))
    unit = AttentionUnit.from_maps(np.sin, np.cos, lambda X: X[..., :1], embedding_dim=2, scale=3.0)
    blocks = np.eye(5)
    same = AttentionUnit(
        blocks[:, :2],
        blocks[:, 2:4],
        blocks[:, 4:],
        phi=lambda X: np.concatenate([np.sin(X), np.cos(X), X[..., :1]], axis=-1),
        scale=3.0,
    )
    np.testing.assert_allclose(unit(X), same(X), rtol=1e-14)
    assert unit.embedding_dim == same.embedding_dim == 2


# Symmetries


@given(st.integers(1, 5), strategies.SEEDS)
def test_a_token_alone_gets_its_own_value(d, seed):
    rng = np.random.default_rng(seed)
    Q, K, V = matrices(rng, d, 2, 3)
    X = rng.normal(size=(7, 1, d))
    np.testing.assert_allclose(AttentionUnit(Q, K, V, scale=1e200)(X), X @ V, rtol=1e-13)
    np.testing.assert_allclose(tensor_unit(Q, K, V)(X), (X @ V) * np.sin(X @ V), rtol=1e-13)


def test_attention_is_formed_in_blocks_of_queries_with_the_same_result():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2, 7, 3))
    Q, K, V = matrices(rng, 3, 4, 2)
    whole = [unit(X) for unit in (AttentionUnit(Q, K, V), tensor_unit(Q, K, V))]
    with Limits(numbers=2 * 7 * 3):
        parts = [unit(X) for unit in (AttentionUnit(Q, K, V), tensor_unit(Q, K, V))]
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-14)


# Huge scales and exact integers


@given(st.integers(1, 6), st.sampled_from([1e10, 1e100, 1e300]), strategies.SEEDS)
def test_at_a_huge_scale_the_largest_scores_share_the_attention(n_keys, scale, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, size=n_keys).astype(float)
    attention = attention_weights([[1.0]], scores[:, None], scale=scale)[0]
    best = scores == scores.max()
    np.testing.assert_array_equal(attention, best / best.sum())


def exact_softmax(queries, keys, scale):
    """With 400 digits."""
    with mpmath.workdps(400):
        rows = []
        for query in queries:
            scores = [sum(a * b for a, b in zip(query, key, strict=True)) for key in keys]
            top = max(scores)
            weights = [
                mpmath.exp(mpmath.mpf(scale) * mpmath.mpf((s - top).numerator) / (s - top).denominator) for s in scores
            ]
            total = sum(weights)
            rows.append([float(w / total) for w in weights])
    return np.array(rows)


@given(
    st.integers(1, 4), st.integers(1, 3), st.sampled_from([3, 24, 27, 60, 300, 700]), st.booleans(), strategies.SEEDS
)
def test_integers_of_any_size_give_exact_attention(n_keys, m, bits, fractions, seed):
    """At a scale of the order of 1/score, with keys that differ by a few units, where float64 sees none."""
    rng = np.random.default_rng(seed)
    queries = [[int(v) for v in rng.integers(-9, 10, m)] for _ in range(2)]
    keys = [[2**bits + int(v) for v in rng.integers(-3, 4, m)] for _ in range(n_keys)]
    if fractions:
        queries = [[Fraction(v, 7) for v in row] for row in queries]
    ours = attention_weights(np.array(queries, dtype=object), np.array(keys, dtype=object), scale=0.3)
    np.testing.assert_allclose(ours, exact_softmax(queries, keys, 0.3), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("bits", [20, 25, 26, 27, 30, 31, 40, 61])
def test_integer_arrays_do_not_overflow_and_do_not_lose_a_unit(bits):
    """Scores of up to 124 bits that differ by one, whatever they round to in float64 or wrap to in int64."""
    large = 2**bits
    queries, keys = np.array([[large + 1, large]]), np.array([[large, large], [large - 1, large + 1], [-large, large]])
    np.testing.assert_allclose(
        attention_weights(queries, keys, scale=0.5), [[1 / (1 + np.exp(-0.5)), 1 / (1 + np.exp(0.5)), 0]], rtol=1e-14
    )


def test_integers_beyond_float64_are_scores_but_not_values():
    huge = 10**400
    queries, keys = np.array([[huge]], dtype=object), np.array([[huge], [huge - 1], [-huge]], dtype=object)
    np.testing.assert_array_equal(attention_weights(queries, keys), [[1, 0, 0]])
    tiny = attention_weights(np.array([[1]]), np.array([[huge], [huge * 2]], dtype=object), scale=1e-300)
    np.testing.assert_array_equal(tiny, [[0, 1]])
    with pytest.raises(ValueError, match="`values` must be in the range of float64, but got a larger integer"):
        attend(queries, keys, keys)
    # Exact beside floating point is taken as floating point.
    with pytest.raises(ValueError, match="`keys` must be in the range of float64"):
        attention_weights([[1.0]], keys)


def test_a_unit_whose_maps_return_integers_is_exact():
    """Powers up to the 40th of tokens 1..50, in a score that has its top at two of them: float64 does not tell."""
    tokens = np.arange(1, 51, dtype=np.float64)[:, None]

    def powers(X):
        return np.array([[int(t) ** k for k in range(1, 41)] for t in X[:, 0]], dtype=object)

    # (t - 3)^2 (t - 40)^2 times the square of 18 more roots: the score is its negative without the constant.
    roots = [3, 40, *range(6, 24)]
    coefficients = [1]
    for root in [root for root in roots for _ in range(2)]:
        coefficients = [a - root * b for a, b in zip([0, *coefficients], [*coefficients, 0], strict=True)]
    query = [-c for c in coefficients[1:]]

    def same_query(X):
        return np.array([query] * len(X), dtype=object)

    unit = AttentionUnit.from_maps(same_query, powers, lambda X: X, embedding_dim=40, scale=50.0)
    expected = np.isin(tokens[:, 0], roots) / len(roots)
    np.testing.assert_array_equal(unit.attention(tokens)[0], expected)
    np.testing.assert_allclose(unit(tokens), np.full((50, 1), np.mean(roots)))
    floats = attention_weights(same_query(tokens).astype(float), powers(tokens).astype(float), scale=50.0)
    assert np.abs(floats[0] - expected).sum() > 0.5


# Rounding


@given(st.integers(1, 8), st.integers(-5, 12))
def test_fixed_point_numbers_are_the_2_to_the_p_multiples_of_the_step(bits, fraction_bits):
    numbers = FixedPoint(bits, fraction_bits)
    fine = np.arange(-(2 ** (bits + 2)), 2 ** (bits + 2)) / 4 * 2.0**-fraction_bits
    rounded = numbers.round(fine)
    assert np.unique(rounded).size == 2**bits
    expected = [
        min(max(round(Fraction(x) * Fraction(2) ** fraction_bits), -(2 ** (bits - 1))), 2 ** (bits - 1) - 1)
        for x in fine
    ]
    np.testing.assert_array_equal(rounded, np.array(expected) * numbers.step)
    np.testing.assert_array_equal(numbers.round(rounded), rounded)


@given(st.integers(1, 53), st.one_of(st.floats(1e-30, 1e30), st.integers(-40, 40).map(lambda e: 2.0**e)))
def test_covering_is_the_finest_format_that_reaches_the_bound(bits, bound):
    numbers = FixedPoint.covering(bits, bound)
    lowest = -(2.0 ** (bits - 1)) * numbers.step
    assert -2 * bound < lowest <= -bound
    assert numbers.round(np.array([[-bound]])) >= lowest
    assert abs(float(numbers.round(-bound)) + bound) <= numbers.step / 2


def test_values_out_of_range_go_to_the_ends():
    np.testing.assert_array_equal(FixedPoint(3, 1).round([1e300, 1.75, -1e300, -2.0]), [1.5, 1.5, -2, -2])
    np.testing.assert_array_equal(FixedPoint(3, 900).round([1e300, -1e300]), np.array([3, -4]) * 2.0**-900)


@given(st.integers(2, 12), strategies.SEEDS)
def test_precision_rounds_scaled_queries_keys_values_and_output(bits, seed):
    rng = np.random.default_rng(seed)
    queries, keys, values = rng.normal(size=(3, 5, 4))
    numbers = FixedPoint(bits, bits - 3)
    outer = FixedPoint(bits, bits - 2)
    expected = {
        "query": attend(numbers.round(7.3 * queries), keys, values),
        "key": attend(queries, numbers.round(keys), values, scale=7.3),
        "value": attend(queries, keys, numbers.round(values), scale=7.3),
        "output": numbers.round(attend(queries, keys, values, scale=7.3)),
    }
    for name, what in expected.items():
        ours = attend(queries, keys, values, scale=7.3, precision=Precision(**{name: numbers}))
        np.testing.assert_array_equal(ours, what)
    everything = Precision(numbers, outer, numbers, outer)
    both = attend(queries, keys, values, scale=7.3, precision=everything)
    rounded = attend(numbers.round(7.3 * queries), outer.round(keys), numbers.round(values))
    np.testing.assert_array_equal(both, outer.round(rounded))


def test_precision_of_the_tensor_unit_rounds_both_keys_and_both_values():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4, 2))
    Q, K, V = matrices(rng, 2, 3, 2)
    query, key, value, output = (FixedPoint(6, f) for f in (1, 2, 3, 4))
    ours = tensor_unit(Q, K, V, scale=1.7, precision=Precision(query, key, value, output))(X)
    maps = TensorAttentionUnit(
        lambda X: query.round(1.7 * (X @ Q)),
        (lambda X: key.round(X @ K), lambda X: key.round((X @ K) ** 2)),
        (lambda X: value.round(X @ V), lambda X: value.round(np.sin(X @ V))),
        embedding_dim=3,
    )
    np.testing.assert_array_equal(ours, output.round(maps(X)))
    assert np.abs(ours - tensor_unit(Q, K, V, scale=1.7)(X)).max() > 1e-3


# Bad input

UNIT = AttentionUnit(np.eye(2), np.eye(2), np.eye(2))
BAD = [
    (
        lambda: UNIT([1.0, 2.0]),
        r"`X` must have the axes \(.., token, number\), none of them empty, but got shape \(2,\)",
    ),
    (lambda: UNIT(np.ones((0, 2))), "`X` must have the axes"),
    (lambda: UNIT([[1.0, np.nan]]), r"`X` must hold finite numbers, but got nan at index \(0, 1\)"),
    (lambda: UNIT(np.ones((3, 3))), "`X` must have 2 numbers a token, but got 3"),
    (lambda: AttentionUnit(np.eye(2), np.eye(3), np.eye(2)), r"`K` must have shape \(2, 2\), but got shape \(3, 3\)"),
    (lambda: AttentionUnit(np.eye(2), np.eye(2), np.eye(3)), r"`V` must have shape \(2, 3\), but got shape \(3, 3\)"),
    (lambda: AttentionUnit(np.eye(2), np.eye(2), np.ones((2, 0))), "`V` must have at least one row and one column"),
    (lambda: AttentionUnit(np.eye(2), np.eye(2), np.eye(2), scale=0), "`scale` must be positive, but got 0"),
    (
        lambda: AttentionUnit(np.eye(2), np.eye(2), np.eye(2), phi=lambda X: X[:1])(np.ones((3, 2))),
        r"`phi` must return an array of shape \(3, 2\), but got",
    ),
    (
        lambda: AttentionUnit.from_maps(np.sin, np.sin, np.sin, embedding_dim=3)(np.ones((3, 2))),
        r"`query` must return an array of shape \(3, 3\), but got shape \(3, 2\)",
    ),
    (lambda: AttentionUnit.from_maps(np.sin, np.sin, np.sin, embedding_dim=0), "`embedding_dim` must be at least 1"),
    (
        lambda: TensorAttentionUnit(np.sin, (np.sin,), (np.sin, np.sin), embedding_dim=1),
        "`keys` must be two maps, but got 1",
    ),
    (lambda: MultiHeadLayer([]), "`heads` must hold at least one unit, but got none"),
    (
        lambda: MultiHeadLayer([UNIT, lambda X: X[..., :1]])(np.ones((3, 2))),
        r"`heads` must give 2 numbers a token, as many as come in, but got shape \(3, 1\) of head 1",
    ),
    (lambda: Transformer([MultiHeadLayer([UNIT])], [None]), "`maps` must hold 2 maps, one more than layers, but got 1"),
    (
        lambda: attention_weights(np.ones((2, 2)), np.ones((2, 3))),
        "`keys` must have 2 columns, as the queries have",
    ),
    (lambda: attention_weights([[0.5]], [["a"]]), "`keys` must be an array of numbers"),
    (lambda: attention_weights([[0.5]], [[1.0], [1.0, 2.0]]), "`keys` must be an array of numbers"),
    (
        lambda: attention_weights([[1]], np.array([[1], [0.5]], dtype=object)),
        "`keys` must hold numbers, integers or fractions if not floating, but got 0.5",
    ),
    (
        lambda: attention_weights([[1]], [[2]], precision=Precision()),
        "`precision` must be None for exact queries and keys",
    ),
    (lambda: attend([[1.0]], [[1.0]], [[1.0], [2.0]]), "`values` must have 1 rows, one a key"),
    (
        lambda: attention_weights([[1e200]], [[1e200]]),
        "`queries` must have products with the keys in the range of float64",
    ),
    (
        lambda: attention_weights([[1e200]], [[1.0]], scale=1e200, precision=Precision(query=FixedPoint(8, 0))),
        "`scale` must leave the scaled queries in the range of float64, but got 1e",
    ),
    (lambda: FixedPoint(0, 1), "`bits` must be at least 1, but got 0"),
    (lambda: FixedPoint(54, 1), "`bits` must be at most 53, but got 54"),
    (lambda: FixedPoint(5, 901), "`fraction_bits` must be at most 900"),
    (lambda: FixedPoint.covering(5, 0.0), "`bound` must be positive, but got 0.0"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
