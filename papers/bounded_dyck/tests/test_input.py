"""Languages and prefixes in numbers of other kinds: handled or refused, and changes that must not matter."""

import copy
import pickle

import cures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEEDS, dyck_languages
from yzflow_bounded_dyck import DyckLanguage

WIDTHS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
INTEGERS = st.sampled_from(WIDTHS)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_depth_of_zero_is_refused_in_any_width(width):
    with pytest.raises(ValueError, match=r"`depth` must be from 1 to 3, but got 0"):
        DyckLanguage(2, 3).open(0, width(0))


def test_cures_are_said():
    cures.check_ids(DyckLanguage(2, 3).state_sequence)
    cures.check_labels(DyckLanguage(2, 3).state_sequence)
    cures.check_number(lambda n: DyckLanguage(n, 3))


@given(dyck_languages(max_depth=4), INTEGERS, SEEDS)
def test_brackets_in_any_width(language, whole, seed):
    sequences = language.sample_sequences(3, max_length=6, rng=seed)
    plain, narrow = (language.bags([sequence.astype(t) for sequence in sequences]) for t in (np.int64, whole))
    np.testing.assert_array_equal(narrow.token, plain.token)
    np.testing.assert_array_equal(narrow.target, plain.target)


@given(st.integers(1, 100), st.integers(1, 100), INTEGERS)
def test_states_are_counted_in_any_width(n_types, max_depth, whole):
    language = DyckLanguage(n_types, max_depth)
    types, depths = np.arange(n_types, dtype=whole)[:, None], np.arange(1, max_depth + 1, dtype=whole)
    opens = np.arange(n_types * max_depth).reshape(n_types, max_depth)
    np.testing.assert_array_equal(language.open(types, depths), opens)
    np.testing.assert_array_equal(language.close(types, depths - whole(1)), opens + opens.size)


@given(dyck_languages(max_types=3, max_depth=3), SEEDS)
def test_types_of_brackets_are_alike(language, seed):
    """Another naming of the types permutes the distribution of the next bracket."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(language.n_types)
    (sequence,) = language.sample_sequences(1, max_length=8, rng=rng)
    renamed = 2 * names[sequence // 2] + sequence % 2
    columns = (2 * names[:, None] + [0, 1]).ravel()
    close(language.next_token(renamed)[columns], language.next_token(sequence))
    close(language.log_probability(renamed), language.log_probability(sequence))
    made = pickle.loads(pickle.dumps(language))
    close(made.next_token(sequence), DyckLanguage(*vars(language).values()).next_token(sequence))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_nothing_of_a_language_or_of_its_copy_can_be_set(way):
    language = DyckLanguage(2, 3)
    for thing in (language, way(language)):
        assert type(thing) is DyckLanguage and vars(thing) == vars(language)
        for name in [*vars(thing), "new"]:
            with pytest.raises(AttributeError):
                setattr(thing, name, None)
            with pytest.raises(AttributeError):
                delattr(thing, name)
