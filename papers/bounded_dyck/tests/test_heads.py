"""Several heads and a link before LN, against softmax over words that are written out, and cases by hand."""

import itertools

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage, balance, gpt, heads, measures_of_heads

from dynamics import Layer

LANGUAGE = DyckLanguage(2, 3)


def written_out(found, language, word, link=None):
    """LN of the sum of all heads after a word, token by token, with softmax as one writes it down."""
    states = language.state_sequence(word)
    total = np.zeros(found[0].V.shape[1]) if link is None else np.array(link[states[-1]])
    for one in found:
        weights = np.exp([one.Z[states[-1], s] for s in states])
        total += sum(weight * one.V[s] for weight, s in zip(weights / weights.sum(), states, strict=True))
    return total / np.linalg.norm(total)


def random_heads(rng, language, n=2, width=4, **parts):
    states, Y = language.n_states, np.zeros((width, language.n_brackets))
    return [Layer(rng.normal(size=(states, states)), Y, rng.normal(size=(states, width)), **parts) for _ in range(n)]


@given(strategies.SEEDS, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_features_are_those_of_words_written_out(seed, k, depth, n_heads):
    language, rng = DyckLanguage(k, depth), np.random.default_rng(seed)
    found = random_heads(rng, language, n_heads)
    words = language.sample_sequences(4, min_length=1, max_length=12, rng=seed)
    link = rng.normal(size=found[0].V.shape)
    for joined in (None, link):
        rows = heads.features(found, language.bags(words), link=joined)
        expected = [written_out(found, language, word, joined) for word in words]
        np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-9)


@given(strategies.SEEDS)
def test_words_with_many_pairs_come_to_what_is_left(seed):
    """One pair of type 0 and two of type 1, many times, before a pair on an open bracket: random heads with a link."""
    rng = np.random.default_rng(seed)
    found = random_heads(rng, LANGUAGE, 3)
    link = rng.normal(size=found[0].V.shape)
    query, shares = LANGUAGE.close(0, 1), np.array([[[1, 0, 0], [2, 0, 0]]])
    limit = heads.left_of_pairs(found, LANGUAGE, shares, link=link)[0, query]
    off = []
    for n in (200, 400):
        word = [0, 1, 2, 3, 2, 3] * n + [2, 0, 1]
        off.append(np.linalg.norm(written_out(found, LANGUAGE, word, link) - limit / np.linalg.norm(limit)))
    assert off[1] < 0.1 * max(1, 1 / np.linalg.norm(limit) ** 2)
    assert off[0] / off[1] == pytest.approx(2, rel=0.3)  # it falls like 1 / n


@given(strategies.SEEDS, st.integers(2, 3), st.integers(2, 3))
def test_one_head_leaves_delta_over_zeta(seed, k, depth):
    language = DyckLanguage(k, depth)
    (one,) = random_heads(np.random.default_rng(seed), language, 1)
    opens, closes = balance.pairs(language)
    weights = np.exp(one.Z)
    added = balance.insertions(one, language)
    expected = added / (weights[:, opens] + weights[:, closes])[..., None]
    left = heads.left_of_pairs([one], language)
    np.testing.assert_allclose(
        left.reshape(k, depth, language.n_states, -1), np.moveaxis(expected, 0, 2), rtol=0, atol=1e-9
    )


@given(strategies.SEEDS, st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_heads_with_constants_that_cancel_are_exact_together(seed, n_heads, k, depth):
    language = DyckLanguage(k, depth, 0.3)
    found = heads.shifted_heads(language, n_heads, seed)
    network = heads.stack_head(found, language)
    bags = language.sample(20, max_length=80, rng=seed)
    assert np.abs(network(heads.features(found, bags)) - bags.target).max() < 1e-9
    constants, spread = heads.own_constants(found, LANGUAGE) if (k, depth) == (2, 3) else (np.zeros(1), np.zeros(1))
    assert spread.max() < 1e-9 and np.abs(constants.sum(axis=0)).max() < 1e-9


@given(strategies.SEEDS)
def test_the_least_coordinate_is_no_larger_than_what_stacks_have(seed):
    """The network's first layer is at 2 / s; no unmatched bracket's feature is below s."""
    found = heads.shifted_heads(LANGUAGE, 3, seed)
    least = 2 / heads.stack_head(found, LANGUAGE).weights[0].max()
    bags = LANGUAGE.sample(200, max_length=60, rng=seed)
    rows = heads.features(found, bags)[:, :-1]
    assert rows[rows > 1e-9].min() >= least


def test_opposite_heads_say_nothing_and_are_not_balanced():
    one, other = heads.opposite_heads(LANGUAGE, 7, 0)
    bags = LANGUAGE.sample(50, max_length=60, rng=0)
    np.testing.assert_allclose(one.attention(bags) @ one.V + other.attention(bags) @ other.V, 0, atol=1e-12)
    assert balance.residual(one.Z, LANGUAGE) > 1
    assert np.linalg.norm(balance.insertions(one, LANGUAGE), axis=-1).min() > 0.1


def test_the_families_tell_mixtures_from_single_kinds():
    rows = measures_of_heads.families()
    assert len(rows) == 18
    assert sum(row["right"] for row in rows) == 10
    # Two heads that cancel for each kind alone, in each language: wrong, and only a mixture shows it.
    hidden = [row for row in rows if row["nothing left alone"] and not row["nothing left"]]
    assert len(hidden) == 2 and not any(row["right"] for row in hidden)


def test_a_mixture_by_hand():
    """Two kinds with values 1 and -1 on an axis; masses 2 and 2 in a head, 2 and 6 in another of opposite values."""
    language = DyckLanguage(2, 2)
    opens, closes = (states[:, 0] for states in balance.pairs(language))
    V, states = np.zeros((language.n_states, 2)), language.n_states
    V[opens, 0] = V[closes, 0] = [1, -1]
    Z = np.zeros((states, states))
    other = Z.copy()
    other[:, [opens[1], closes[1]]] = np.log(3)
    Y = np.zeros((2, language.n_brackets))
    found = [Layer(Z, Y, V), Layer(other, Y, -V)]
    shares = np.zeros((3, 2, 2))
    shares[:, :, 0] = [[1, 0], [0, 1], [1, 1]]
    left = heads.left_of_pairs(found, language, shares)[:, language.close(0, 1)]
    # (2 - 2) / (2 + 2) - (2 - 6) / (2 + 6) = 1/2
    np.testing.assert_allclose(left, [[0, 0], [0, 0], [0.5, 0]], atol=1e-12)


@given(strategies.SEEDS, st.booleans())
def test_a_link_is_a_shift_of_the_values(seed, center):
    rng = np.random.default_rng(seed)
    (one,) = random_heads(rng, LANGUAGE, 1, center=center)
    bags = LANGUAGE.sample(20, max_length=30, rng=seed)
    link = rng.normal(size=one.V.shape)
    found = heads.features([one], bags, link=link)
    for query in np.unique(bags.query):
        chosen = bags.query == query
        moved = Layer(one.Z, one.Y, one.V + link[query], center=center)
        np.testing.assert_allclose(found[chosen], moved.features(bags)[chosen], rtol=0, atol=1e-9)


@pytest.mark.parametrize("language", [LANGUAGE, DyckLanguage(3, 3)])
@pytest.mark.parametrize("center", [False, True])
def test_the_rate_behind_a_link_is_that_of_distances(language, center):
    plain = balance.balanced_layer(language, 3)
    layer = Layer(plain.Z, plain.Y, plain.V, center=center)
    vectors = np.random.default_rng(0).normal(size=plain.V.shape)
    n = 10**6
    found = n * gpt.distances(layer, language, n, queries=vectors)
    np.testing.assert_allclose(found, gpt.linked_rate(layer, language, vectors), rtol=1e-4)


@given(strategies.SEEDS, st.integers(2, 3), st.integers(2, 3))
def test_a_layer_on_a_line_forgets_no_stack(seed, k, depth):
    """Behind 1 and 300 pairs of every kind features are the same, and those of two last types are not."""
    language = DyckLanguage(k, depth)
    layer, link = gpt.layer_on_a_line(language, seed)
    assert np.abs(heads.left_of_pairs([layer], language, link=link)[:, balance.queries(language).ravel()]).max() < 1e-12
    nest = [bracket for i in range(k) for bracket in [2 * i] * depth + [2 * i + 1] * depth]
    for j in range(k):
        ends = [[2 * last, 2 * j, 2 * j + 1] for last in range(k)]
        near, far = (
            heads.features([layer], language.bags([nest * n + end for end in ends]), link=link) for n in (1, 300)
        )
        np.testing.assert_allclose(near, far, atol=1e-9)
        assert np.abs(far[0] - far[1]).max() > 1e-6
    moved = link.copy()
    moved[language.close(0, 1), 1] += 0.3  # off the line
    assert np.abs(heads.left_of_pairs([layer], language, link=moved)[:, language.close(0, 1)]).max() > 0.1


def test_a_link_along_the_ones_has_no_rate():
    plain = balance.balanced_layer(LANGUAGE, 3)
    layer = Layer(plain.Z, plain.Y, plain.V, center=True)
    with pytest.raises(ValueError, match="`queries` must not be zero behind LN's projection"):
        gpt.linked_rate(layer, LANGUAGE, np.ones(plain.V.shape))
    with pytest.raises(ValueError, match="`queries` must not be zero behind LN's projection"):
        gpt.linked_rate(layer, LANGUAGE, np.full(plain.V.shape, 0.1))  # whose mean is not 0.1 in float64


def test_a_temperature_is_that_of_other_logits():
    found = heads.shifted_heads(LANGUAGE, 2, 0)
    warm = [Layer(2 * one.Z, one.Y, one.V, temperature=2.0) for one in found]
    bags = LANGUAGE.sample(20, max_length=60, rng=0)
    assert np.abs(heads.stack_head(warm, LANGUAGE)(heads.features(warm, bags)) - bags.target).max() < 1e-9
    plain = balance.balanced_layer(LANGUAGE, 0)
    other, vectors = Layer(2 * plain.Z, plain.Y, plain.V, temperature=2.0), np.full(plain.V.shape, 0.3)
    np.testing.assert_allclose(gpt.distances(other, LANGUAGE, 9), gpt.distances(plain, LANGUAGE, 9), atol=1e-12)
    rates = [gpt.linked_rate(one, LANGUAGE, vectors) for one in (other, plain)]
    np.testing.assert_allclose(*rates, rtol=1e-9)
    sums, same = gpt.gathered(other, LANGUAGE, 3), gpt.gathered(plain, LANGUAGE, 3)
    for query in same:
        np.testing.assert_allclose(sums[query], same[query], rtol=1e-9)
    np.testing.assert_allclose(gpt.closed_form(other, LANGUAGE), gpt.closed_form(plain, LANGUAGE), rtol=1e-9)


@given(strategies.SEEDS)
def test_the_mean_that_ln_takes_off_is_no_part_of_a_head(seed):
    """Heads that are exact without `center` have values of mean zero here, and each state another multiple of ones."""
    rng, found = np.random.default_rng(seed), []
    for one in heads.shifted_heads(LANGUAGE, 2, rng):
        ones = rng.normal(size=(LANGUAGE.n_states, 1)) - one.V.mean(axis=1, keepdims=True)
        found.append(Layer(one.Z, one.Y, one.V + ones, center=True))
    constants, spread = heads.own_constants(found, LANGUAGE)
    assert np.abs(heads.left_of_pairs(found, LANGUAGE)[:, balance.queries(LANGUAGE).ravel()]).max() < 1e-9
    assert spread.max() < 1e-9 and np.abs(constants.sum(axis=0)).max() < 1e-9
    with pytest.raises(ValueError, match="`heads` must leave `center` out"):
        heads.stack_head(found, LANGUAGE)


def test_masses_that_rounding_loses_are_refused_and_a_large_start_is_not():
    one, _ = heads.opposite_heads(LANGUAGE, 3, 0)
    far, loud = 2000 * one.Z, one.Z.copy()
    loud[:, LANGUAGE.start] = 2000
    for call in (heads.left_of_pairs, heads.own_constants):
        with pytest.raises(ValueError, match="`heads` must have logits that leave each pair a mass"):
            call([Layer(far, one.Y, one.V)], LANGUAGE)
    expected = heads.left_of_pairs([one], LANGUAGE)
    np.testing.assert_allclose(heads.left_of_pairs([Layer(loud, one.Y, one.V)], LANGUAGE), expected, rtol=1e-9)


def test_arguments_that_do_not_fit_are_named():
    two, layer = heads.shifted_heads(LANGUAGE, 2, 0), balance.balanced_layer(LANGUAGE, 0)
    bags = LANGUAGE.sample(2, max_length=4, rng=0)
    with pytest.raises(ValueError, match="`heads` must hold a layer or more"):
        heads.features([], bags)
    with pytest.raises(ValueError, match="`heads` must have values of the shape"):
        heads.features([*two, *heads.opposite_heads(LANGUAGE, 2, 0)], bags)
    with pytest.raises(ValueError, match="`heads` must have values V"):
        heads.features([Layer(layer.Z, np.zeros((13, 4)))], bags)
    with pytest.raises(ValueError, match="`link` must have the shape"):
        heads.features(two, bags, link=np.ones((2, 2)))
    with pytest.raises(ValueError, match="`numbers` must be rows of 2 x 3 shares"):
        heads.left_of_pairs(two, LANGUAGE, np.zeros((1, 2, 3)))
    with pytest.raises(ValueError, match="`heads` must have constants that sum to zero"):
        heads.stack_head(two[:1], LANGUAGE)
    with pytest.raises(ValueError, match="`heads` must have 13 states"):
        heads.left_of_pairs([balance.balanced_layer(DyckLanguage(2, 2), 0)], LANGUAGE)


def test_types_of_all_pairs_of_heads_may_differ_in_their_own_difference():
    """(11) holds in each head with differences of its own."""
    found = heads.shifted_heads(LANGUAGE, 3, 0)
    opens, closes = balance.pairs(LANGUAGE)
    differences = [(one.Z[:, opens] - one.Z[:, closes])[0] for one in found]
    for one, other in itertools.combinations(differences, 2):
        assert np.abs(one - other).max() > 0.1
    assert max(balance.residual(one.Z, LANGUAGE) for one in found) < 1e-9
