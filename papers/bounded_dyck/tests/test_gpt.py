"""A residual link around attention: sums and distances against words that are really written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage, balance, gpt

from dynamics import Layer

LANGUAGE = DyckLanguage(2, 3)


def layers(*, noise=0.0, center=True, language=LANGUAGE):
    plain = balance.balanced_layer(language, 3)
    Z = plain.Z + noise * np.random.default_rng(4).normal(size=plain.Z.shape)
    return Layer(Z, plain.Y, plain.V, center=center)


def written_out(language, stack, query_type, n):
    """n times every word i i .. i of depth D, then the stack, then a pair."""
    depth = language.max_depth
    nested = [bracket for i in range(language.n_types) for bracket in [2 * i] * depth + [2 * i + 1] * depth]
    return nested * n + [2 * i for i in stack] + [2 * query_type, 2 * query_type + 1]


@pytest.mark.parametrize("language", [LANGUAGE, DyckLanguage(3, 3)])
def test_gathered_is_what_attention_gathers_on_words(language):
    layer = layers(noise=0.5, language=language)
    n = 3
    found = gpt.gathered(layer, language, n)
    assert set(found) == {(j, d) for j in range(language.n_types) for d in range(1, language.max_depth)}
    for (j, _), rows in found.items():
        for stack in np.ndindex(rows.shape[:-1]):
            shares = layer.attention(language.bags([written_out(language, stack, j, n)]))
            expected = shares @ (layer.V - layer.V.mean(axis=1, keepdims=True))
            np.testing.assert_allclose(rows[stack], expected[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("center", [False, True])
def test_distances_without_a_link_are_those_of_the_layers_features(center):
    layer, n = layers(noise=0.5, center=center), 2
    expected = []
    for j in range(2):
        for d in (1, 2):
            for below in np.ndindex((2,) * (d - 1)):
                pair = [written_out(LANGUAGE, (*below, last), j, n) for last in (0, 1)]
                one, other = layer.features(LANGUAGE.bags(pair))
                expected.append(np.linalg.norm(one - other))
    np.testing.assert_allclose(np.sort(gpt.distances(layer, LANGUAGE, n)), np.sort(expected), rtol=0, atol=1e-12)


def test_a_residual_link_joins_before_the_norm():
    layer, n = layers(noise=0.5), 2
    vectors = np.random.default_rng(5).normal(size=np.shape(layer.V))
    expected = []
    for j in range(2):
        for d in (1, 2):
            for below in np.ndindex((2,) * (d - 1)):
                bags = LANGUAGE.bags([written_out(LANGUAGE, (*below, last), j, n) for last in (0, 1)])
                x = layer.attention(bags) @ layer.V + vectors[bags.query]
                x -= x.mean(axis=1, keepdims=True)
                one, other = x / np.linalg.norm(x, axis=1, keepdims=True)
                expected.append(np.linalg.norm(one - other))
    found = gpt.distances(layer, LANGUAGE, n, queries=vectors)
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=0, atol=1e-12)


def test_balance_keeps_stacks_apart_only_where_the_link_is_projected_off():
    """The slope between n = 1000 and 10,000: 0 for balanced layers without a link or along the ones, else -1."""
    rng = np.random.default_rng(6)
    shape = np.shape(layers().V)
    links = {
        "none": None,
        "any": rng.normal(size=shape),
        "ones": np.outer(rng.normal(size=shape[0]), np.ones(shape[1])),
    }
    for noise in (0.0, 0.3):
        for name, link in links.items():
            ends = [gpt.distances(layers(noise=noise), LANGUAGE, n, queries=link).max() for n in (1000, 10_000)]
            slope = np.log10(ends[1] / ends[0])
            assert slope == pytest.approx(0 if noise == 0 and name != "any" else -1, abs=0.02), (noise, name)


def test_the_limit_of_what_attention_gathers():
    layer, n = layers(), 10**6
    gaps = [
        np.linalg.norm(rows[..., 0, :] - rows[..., 1, :], axis=-1) for rows in gpt.gathered(layer, LANGUAGE, n).values()
    ]
    gaps = n * np.concatenate([gap.ravel() for gap in gaps])
    np.testing.assert_allclose([gaps.min(), gaps.max()], gpt.closed_form(layer, LANGUAGE), rtol=1e-4)


def mean_loss(a, b):
    """Mean cross-entropy of two logit vectors, the first of which must name the first of two types."""
    return (np.logaddexp(0, a[1] - a[0]) + np.logaddexp(0, b[0] - b[1])) / 2


@given(st.floats(0, 2), st.floats(0.1, 100), st.integers(0, 2**32 - 1))
def test_no_head_is_below_the_least_loss_and_a_linear_one_attains_it(distance, lipschitz, seed):
    rng = np.random.default_rng(seed)
    least = gpt.least_loss(distance, lipschitz)
    centre, step = rng.normal(size=(2, 2)) * [[3.0], [1.0]]
    step *= lipschitz * distance * rng.random() / np.linalg.norm(step)
    assert mean_loss(centre + step / 2, centre - step / 2) >= least - 1e-12
    best = lipschitz * distance * np.array([0.5, -0.5]) / np.sqrt(2)
    assert mean_loss(best, -best) == pytest.approx(least, rel=1e-9, abs=1e-12)


def test_queries_have_a_row_a_state():
    with pytest.raises(ValueError, match="`queries` must have a row for each of the 13 states, and 7 columns"):
        gpt.distances(layers(), LANGUAGE, 1, queries=np.ones((3, 7)))


def test_one_type_has_nothing_to_tell_apart():
    one = DyckLanguage(1, 3)
    assert gpt.distances(layers(language=one), one, 1).size == 0
    with pytest.raises(ValueError, match="`language` must have at least two types and depths"):
        gpt.closed_form(layers(language=one), one)


def test_layernorm_without_values_takes_a_link_along_the_ones_off():
    """Values are the identity there, and the mean is over all states."""
    layer = Layer(layers().Z, np.zeros((13, 4)), normalisation="layer")
    ones = np.full((13, 13), 0.7)
    np.testing.assert_allclose(
        gpt.distances(layer, LANGUAGE, 4, queries=ones), gpt.distances(layer, LANGUAGE, 4), atol=1e-12
    )
    with pytest.raises(ValueError, match="`queries` must not be zero behind LN's projection"):
        gpt.linked_rate(layer, LANGUAGE, ones)
