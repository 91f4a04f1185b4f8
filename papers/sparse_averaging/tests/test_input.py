"""Inputs and units in numbers of other kinds: handled or refused, and changes that must not matter."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEEDS
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import (
    AttentionUnit,
    FixedPoint,
    MultiHeadLayer,
    TensorAttentionUnit,
    Transformer,
)
from yzflow_sparse_averaging.trained.linear_query import LinearQueryUnit

WIDTHS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
INTEGERS = st.sampled_from(WIDTHS)


@pytest.mark.parametrize("width", WIDTHS)
def test_fixed_point_numbers_in_any_width(width):
    numbers = FixedPoint(width(8), width(3))
    assert numbers.step == 0.125
    assert numbers.round([0.3]) == [0.25]


def test_integers_beyond_int64_are_shown_as_they_are():
    with pytest.raises(ValueError, match=r"`x` must .* 18446744073709551615"):
        tasks.match2(np.array([2**64 - 1], dtype=np.uint64), 5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tasks.match2(np.ma.array([1, 2], mask=[True, False]), 5),
        lambda: FixedPoint(4, 1).round(np.ma.array([0.5, 0.5], mask=[True, False])),
    ],
)
def test_masked_entries_are_refused(call):
    with pytest.raises(ValueError, match=r"`\w+` must .*mask"):
        call()


def units():
    unit, same = AttentionUnit(np.eye(2), np.eye(2), np.eye(2)), (np.asarray, np.asarray)
    layer = MultiHeadLayer([unit])
    linear = LinearQueryUnit(np.ones((3, 2)), np.ones((3, 2)), np.eye(2))
    found = [linear, unit, TensorAttentionUnit(np.asarray, same, same, embedding_dim=2), layer, Transformer([layer])]
    return [pytest.param(thing, id=type(thing).__name__) for thing in found]


@pytest.mark.parametrize("thing", units())
def test_nothing_of_a_unit_can_be_set(thing):
    for name in [*vars(thing), "new"]:
        with pytest.raises(AttributeError):
            setattr(thing, name, None)
        with pytest.raises(AttributeError):
            delattr(thing, name)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_copies_are_as_read_only_as_the_original(way):
    unit = LinearQueryUnit(np.ones((3, 2)), np.ones((3, 2)), np.eye(2))
    made = way(unit)
    assert type(made) is type(unit) and any(isinstance(value, np.ndarray) for value in vars(made).values())
    for name, value in vars(made).items():
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable, name
            np.testing.assert_array_equal(value, getattr(unit, name))
    with pytest.raises(AttributeError):
        made.new = 1


@given(st.integers(2, 100), st.integers(1, 12), INTEGERS, SEEDS)
def test_matching_in_any_width_and_order(modulus, n_tokens, whole, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(modulus, size=(2, n_tokens))
    order = rng.permutation(n_tokens)
    for match in (tasks.match2, tasks.match3):
        expected = match(x, modulus)
        np.testing.assert_array_equal(match(x.astype(whole), modulus), expected)
        np.testing.assert_array_equal(match(x[:, order], modulus), expected[:, order])
