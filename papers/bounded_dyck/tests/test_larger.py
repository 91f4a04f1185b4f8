"""Wider and deeper Transformers have the outputs of the given one, and what breaks that."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage, larger, transformers
from yzflow_bounded_dyck.networks import ReluNetwork

LANGUAGE = DyckLanguage(2, 3)


@given(st.integers(1, 6), st.integers(0, 5), st.sampled_from([0.0, 0.7]), st.integers(0, 2**32 - 1))
def test_LN_behind_the_isometry_is_the_isometry_behind_LN(width, more, floor, seed):
    Q = larger.isometry(width, width + more, seed)
    rows = np.random.default_rng(seed).normal(size=(4, width))
    np.testing.assert_allclose(Q @ Q.T, np.eye(width), atol=1e-12)
    if width > 1:  # else LN of one number is rounding, divided by its own size
        np.testing.assert_allclose(
            transformers.layer_norm(rows @ Q, floor), transformers.layer_norm(rows, floor) @ Q, atol=1e-9
        )


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_one_layer_is_exact_on_dyck_and_stays_so(k, depth, seed):
    """Against the law of Definition 1, by hand, bracket by bracket."""
    language = DyckLanguage(k, depth)
    exact = larger.balanced_transformer(language, seed)
    wide, Q = larger.wider(exact, exact.width + seed % 5, seed, attention=2, units=3)
    deep = larger.deeper(exact, 2, seed, at=seed % 2)
    both, turn = larger.wider(deep, exact.width + seed % 5, seed + 1, attention=2, units=3)
    (prefix,) = language.sample_sequences(1, min_length=1, max_length=200, rng=seed)
    tokens, q = larger.encoded(language, prefix), language.open_probability
    expected, stack = [], []
    for bracket in [None, *prefix]:
        if bracket is not None:
            stack = [*stack, bracket // 2] if bracket % 2 == 0 else stack[:-1]
        opens = 1.0 if not stack else 0.0 if len(stack) == depth else q
        row = np.zeros(2 * k)
        row[::2] = opens / k
        if stack:
            row[2 * stack[-1] + 1] = 1 - opens
        expected.append(row)
    for found in (exact(tokens), wide(tokens @ Q) @ Q.T, both(tokens @ turn) @ turn.T):
        np.testing.assert_allclose(found[:, : 2 * k], expected, atol=1e-7)
        assert np.abs(found[:, 2 * k :]).max() < 1e-7
    np.testing.assert_array_equal(deep(tokens), exact(tokens))


def test_attention_of_new_layers_is_not_that_of_the_old_and_does_not_matter():
    exact = larger.balanced_transformer(LANGUAGE, 0)
    tokens = larger.encoded(LANGUAGE, [0, 2, 3, 0])
    one, other = larger.deeper(exact, 1, 1), larger.deeper(exact, 1, 2)
    maps = [some.layers[-1].attention(exact(tokens)) for some in (one, other)]
    assert np.abs(maps[0] - maps[1]).max() > 0.1
    np.testing.assert_array_equal(one(tokens), other(tokens))


def test_wider_layers_attend_alike_and_their_free_weights_are_not_zero():
    given = transformers.random_transformer(4, 3, [5], 1, 0, floor=0.3)
    wide, Q = larger.wider(given, 9, 1, attention=2, units=3)
    tokens = np.random.default_rng(2).normal(size=(6, 4))
    np.testing.assert_allclose(wide.layers[0].attention(tokens @ Q), given.layers[0].attention(tokens), atol=1e-12)
    assert wide.layers[0].key.shape == (5, 9) and len(wide.layers[0].network.weights[0]) == 8
    outside = np.random.default_rng(3).normal(size=(6, 9)) @ (np.eye(9) - Q.T @ Q)
    assert np.abs(outside @ wide.layers[0].value.T).max() > 0.1
    plain = Q.T @ given.layers[0].value @ Q
    assert np.abs(wide.layers[0].value - plain).max() > 0.1


def test_a_layer_hands_on_behind_a_link_of_weight_one_alone():
    tokens = np.random.default_rng(0).normal(size=(5, 4))
    layer = larger.identity_layer(4, 1)
    for floor in (0.0, 0.5):
        np.testing.assert_array_equal(layer(tokens, floor), tokens)
        for weight in (0.0, 0.5):
            assert np.abs(replace(layer, residual=weight)(tokens, floor) - tokens).max() > 0.1
    halved = ReluNetwork(
        tuple(weight[:4] if number == 0 else weight[:, :4] for number, weight in enumerate(layer.network.weights))
    )
    assert np.abs(replace(layer, network=halved)(tokens, 0.5) - tokens).max() > 0.1


@pytest.mark.slow
def test_a_GPT_hands_on_too_unless_LN_stands_on_the_residual_stream():
    deep = pytest.importorskip("yzflow_deep", reason="yzflow-deep is not installed")
    import equinox as eqx

    tokens = np.array([0, 3, 1, 2, 4])
    for norm, same in (("before", True), ("after", False)):
        narrow, more = (
            deep.Transformer(deep.Architecture(5, width=8, n_layers=n, norm=norm), rng) for n, rng in ((1, 0), (2, 1))
        )
        silent = eqx.tree_at(
            lambda b: (b.value, b.down),
            more.blocks[1],
            (0 * more.blocks[1].value, tuple(0 * w for w in more.blocks[1].down)),
        )
        parts = (narrow.embedding, (narrow.blocks[0], silent), narrow.last_norm)
        built = eqx.tree_at(lambda m: (m.embedding, m.blocks, m.last_norm), more, parts)
        gap = np.abs(np.asarray(built(tokens)) - np.asarray(narrow(tokens))).max()
        assert (gap == 0) == same


def test_refusals():
    exact = larger.balanced_transformer(LANGUAGE, 0)
    with pytest.raises(ValueError, match=r"^`wider` must be at least"):
        larger.wider(exact, exact.width - 1, 0)
    with pytest.raises(ValueError, match=r"^`at` must be at most 1, but got 2"):
        larger.deeper(exact, 1, 0, at=2)
