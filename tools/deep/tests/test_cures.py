"""Numbers of another kind are refused at every door in words that say the cure."""

import cures
import numpy as np
import pytest

jax = pytest.importorskip("jax")
deep = pytest.importorskip("yzflow_deep")

ROWS = [[0.5, 0.5], [0.2, 0.8]]


def insertions(weights):
    return deep.Insertions(np.array([[0, 1], [1, 0]]), np.array([1, 2]), weights)


# Name of a door -> what takes ids of tokens there.
OF_IDS = {
    "tokens": lambda ids: deep.Sequences.from_tokens(np.append(ids, ids), length=2),
    "inputs": lambda ids: deep.Sequences([ids], [[0, 1]]),
    "targets": lambda ids: deep.Sequences([[0, 1]], [ids]),
}


@pytest.mark.parametrize("door", OF_IDS.values(), ids=OF_IDS)
def test_whole_floats_for_ids_and_labels_that_are_left_out(door):
    cures.check_ids(door)
    cures.check_labels(door)


@pytest.mark.parametrize(
    ("door", "shares"),
    [
        (lambda rows: deep.Sequences([[0, 1]], rows[None]), np.array(ROWS)),
        (insertions, np.array([0.5, 0.5])),
    ],
    ids=["targets", "weights"],
)
def test_frequencies_for_probabilities(door, shares):
    cures.check_shares(door, shares)


def test_tokens_beyond_int32_are_refused():
    with pytest.raises(ValueError, match=r"`inputs` must hold indices below 2147483648, but got 2147483649"):
        deep.Sequences([[2**31 + 1]], [[0]])
