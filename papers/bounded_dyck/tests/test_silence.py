"""Layers with pairs whose values are zero: right at every length for the sets of the rule, and for no other."""

import itertools

import numpy as np
import pytest
from yzflow_bounded_dyck import DyckLanguage, balance, silence

from dynamics import Layer


@pytest.mark.parametrize("n_types", [2, 3])
def test_a_silent_level_leaves_the_layer_exact_at_every_length(n_types):
    language = DyckLanguage(n_types, 2)
    layer = silence.silent_layer(language, [(kind, 2) for kind in range(n_types)], 0)
    assert balance.residual(layer.Z, language) > 1
    head = silence.memory_head(layer, language)
    for bags in (language.enumerate(min_length=0, max_length=6), language.sample(50, max_length=2000, rng=0)):
        assert np.abs(head(layer.features(bags)) - bags.target).max() < 1e-9


def test_two_silent_types_of_one_level_look_alike():
    language = DyckLanguage(3, 3)
    for pair in itertools.combinations(range(3), 2):
        layer = silence.silent_layer(language, [(kind, 2) for kind in pair], 0)
        with pytest.raises(ValueError, match="`layer` must tell apart"):
            silence.memory_head(layer, language)
    with pytest.raises(ValueError, match="`silent` must hold types and levels"):
        silence.silent_layer(language, [(0, 4)])


def written_layer(language, silent):
    """The proof's layer by hand: START and the brackets that are not silent in axes of their own, a weight a query."""
    k, depth = language.n_types, language.max_depth
    pairs = [(i, level) for i in range(k) for level in range(1, depth + 1) if (i, level) not in silent]
    V = np.zeros((language.n_states, len(pairs) + 1))
    V[language.start, -1] = 1
    for axis, (kind, level) in enumerate(pairs):
        V[language.open(kind, level), axis] = 1
        V[language.close(kind, level - 1), axis] = -1
    Z = np.tile(np.linspace(-1, 1, language.n_states)[:, None], (1, language.n_states))
    Z[:, language.start] = 0
    return Layer(Z, np.zeros((V.shape[1], language.n_brackets)), V)


@pytest.mark.parametrize(("k", "depth"), [(2, 1), (2, 3), (3, 3), (2, 5), (4, 2)])
def test_the_layer_of_the_proof_is_right_exactly_for_the_sets_of_the_rule(k, depth):
    """Random sets of pairs of languages beyond those of the check, and two prefixes that refute each other set."""
    language, rng = DyckLanguage(k, depth), np.random.default_rng(k + 10 * depth)
    bags = language.sample(40, max_length=300, rng=rng)
    seen = set()
    for _ in range(60):
        pairs = [(i, level) for i in range(k) for level in range(1, depth + 1)]
        chosen = [pair for pair in pairs if rng.random() < rng.choice([0.1, 0.3])]
        layer = written_layer(language, chosen)
        seen.add(fits := silence.may_be_silent(language, chosen))
        if fits:
            head = silence.memory_head(layer, language)
            assert np.abs(head(layer.features(bags)) - bags.target).max() < 1e-8
            continue
        at_one = [kind for kind, level in chosen if level == 1]
        if at_one:
            prefixes = [[], [2 * at_one[0]]]
        else:
            level = next(one for one in range(2, depth) if sum(own == one for _, own in chosen) > 1)
            first, second = [kind for kind, own in chosen if own == level][:2]
            prefixes = [[0] * (level - 1) + [2 * kind, 0, 1] for kind in (first, second)]
        told = language.bags(prefixes)
        features = layer.features(told)
        np.testing.assert_allclose(features[0], features[1], atol=1e-12)
        assert np.abs(told.target[0] - told.target[1]).max() > 0.1
    assert seen == {True, False}
