"""Complete words beside prefixes: the data, what stands in for violation and drift, and the task of sweeps."""

import itertools

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck import training as dyck

import yzflow
import yzflow_studies
from yzflow import studies
from yzflow_studies.words_and_prefixes import words
from yzflow_studies.words_and_prefixes.tasks import DYCK_WORDS

LANGUAGE = DyckLanguage(2, 3)


SMALL = {"steps": 5, "n_train": 300, "n_test": 400, "max_depth": 3}


@given(strategies.dyck_languages(max_types=3, max_depth=4), st.sampled_from(words.KINDS), strategies.SEEDS)
def test_each_bracket_is_asked_for_behind_what_stands_before_it(language, kind, seed):
    sequences = language.sample_sequences(5, min_length=2, max_length=9, kind=kind, rng=seed)
    found = words.drawn_bags(language, sequences)
    before = language.bags([sequence[:n] for sequence in sequences for n in range(sequence.size)])
    np.testing.assert_array_equal(found.target, np.concatenate(sequences))
    for name in ("query", "indptr", "token", "count"):
        np.testing.assert_array_equal(getattr(found, name), getattr(before, name))
    assert (before.target[np.arange(len(found)), found.target] > 0).all()


def test_words_close_what_they_open_and_prefixes_do_not():
    """Drawn targets of words are half closing ones; exact targets of the same words are not."""
    samples = {
        (kind, targets): words.data(LANGUAGE, kind, targets=targets, n_train=500, n_test=10).train
        for kind, targets in itertools.product(words.KINDS, words.TARGETS)
    }
    closing = {key: bags.target % 2 if bags.hard else bags.target[:, 1::2].sum(axis=1) for key, bags in samples.items()}
    assert closing["word", "drawn"].mean() == 0.5
    assert closing["prefix", "drawn"].mean() < 0.5
    # A bag more a sequence, its end, after which a word's exact law opens a bracket.
    assert len(samples["word", "exact"]) == len(samples["word", "drawn"]) + 500
    last = words.data(LANGUAGE, "word", positions="last", targets="exact", n_train=500, n_test=10).train
    assert len(last) == 500 and (last.target[:, 1::2] == 0).all()


def _marked(slope):
    """Answers that know the last unmatched type, and move by ``slope`` for each bracket more."""

    def answers(prefixes):
        right = np.array([LANGUAGE.stack(prefix)[-1] for prefix in prefixes])
        sizes = np.array([prefix.size for prefix in prefixes])
        return np.eye(2)[right] + slope * np.outer(sizes, [1.0, 0.0]) + sizes[:, None]

    return answers


@pytest.mark.parametrize("slope", [0.0, 0.1, -0.3])
def test_the_effect_of_a_pair_by_hand(slope):
    """A pair moves the centred logits by 2 |slope| / sqrt 2, another answer by sqrt 2."""
    assert words.pair_effect(_marked(slope), LANGUAGE) == pytest.approx(abs(slope), rel=1e-12, abs=1e-15)
    assert np.isnan(words.pair_effect(_marked(slope), DyckLanguage(1, 3)))


def test_every_pair_is_inserted_where_it_can_be():
    """Behind a prefix of depth d + 1, inside, pairs of the levels 1 to d + 2 fit, up to D."""
    added = set()

    def answers(prefixes):
        for prefix in prefixes:
            stack, states = LANGUAGE.stack(prefix), list(LANGUAGE.state_sequence(prefix))
            for state in LANGUAGE.state_sequence([*(2 * stack), 2 * (prefix[-1] // 2), prefix[-1]]):
                states.remove(state)
            added.add((stack.size, prefix[-1], *sorted(states)))
        return _marked(0.0)(prefixes)

    assert words.pair_effect(answers, LANGUAGE) == 0
    expected = {
        (depth, 2 * j + 1, *pair)
        for depth, j in itertools.product((1, 2), range(2))
        for pair in [(), *((LANGUAGE.open(i, l), LANGUAGE.close(i, l - 1)) for i in range(2) for l in (1, 2, 3))]
    }
    assert added == expected


def test_a_pair_has_no_effect_where_the_layer_is_balanced():
    layer = balance.balanced_layer(LANGUAGE, 0)
    answers = words.answers_of_layer(layer, LANGUAGE)
    assert words.pair_effect(answers, LANGUAGE) < 1e-12
    assert words.behind_mean_word(answers, LANGUAGE, range(400, 501)) == 1
    uneven = dyck.Layer(layer.Z + 0.5 * np.random.default_rng(0).normal(size=layer.Z.shape), layer.Y, layer.V)
    assert words.pair_effect(words.answers_of_layer(uneven, LANGUAGE), LANGUAGE) > 0.01


@given(strategies.dyck_languages(max_types=3, max_depth=4), st.integers(30, 200))
def test_the_mean_word_has_the_mean_pairs(language, length):
    word = words.mean_word(language, length)
    assert language.stack(word).size == 0
    states = language.state_sequence(word)[1:]
    opens, _ = balance.pairs(language)
    counts = np.array([[(states == state).sum() for state in row] for row in opens])
    expected = np.rint(language.n_types * balance.matched_pairs(language, length))
    held = np.cumprod(expected > 0)  # behind a level without pairs there are none
    np.testing.assert_array_equal(counts.sum(axis=0), expected * held)
    assert np.ptp(counts, axis=0).max() <= 1


@given(strategies.SEEDS)
def test_accuracy_behind_the_mean_word_by_another_route(seed):
    """Sums (12) of the word's states, by the law of all prefixes of one length in place of the chain of depths."""
    length = 8
    layer = dyck.start(LANGUAGE, seed, width=6)
    u = balance.contributions(layer, LANGUAGE)
    before = LANGUAGE.state_sequence(words.mean_word(LANGUAGE, length))
    law = LANGUAGE.enumerate(min_length=length, max_length=length)
    right = total = 0.0
    for j, depth in itertools.product(range(2), range(1, 3)):
        query = LANGUAGE.close(j, depth)
        chance = law.weight[law.query == query].sum()
        for stack in itertools.product(range(2), repeat=depth):
            states = [*LANGUAGE.open(np.array(stack), np.arange(1, depth + 1)), LANGUAGE.open(j, depth + 1), query]
            logits = u[query][[*before, *states]].sum(axis=0) @ layer.Y[:, 1::2]
            right += chance / 2**depth * (logits.argmax() == stack[-1])
        total += chance
    found = words.behind_mean_word(words.answers_of_layer(layer, LANGUAGE), LANGUAGE, [length])
    assert found == pytest.approx(right / total, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: words.data(LANGUAGE, "sentence"), "`kind` must be one of 'word', 'prefix'"),
        (lambda: words.data(LANGUAGE, "word", positions="last"), "`targets` must be 'exact' for the last position"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_sweep_is_found_by_its_name(tmp_path):
    assert studies.rooms_of(yzflow_studies)["words_and_prefixes"].tasks == (DYCK_WORDS,)
    grid = {name: [value] for name, value in SMALL.items()}
    runs = yzflow.sweep(DYCK_WORDS, {"kind": ["word"], **grid}, store=tmp_path, progress=False)
    assert not runs["failed"].any()
