"""Numbers of another kind are refused at every door in words that say the cure; tables keep names."""

import cures
import numpy as np
import pytest

from dynamics import Bags, SequenceClasses, TextCorpus, gradient_flow, sgd
from theory.scan_and_snap import finite_sequences

ROWS = [[0.5, 0.5], [0.2, 0.8]]
CLASSES = SequenceClasses(ROWS, [0, 0])
CORPUS = TextCorpus(["a b c"])
FLOW = {"eta_y": 1.0, "eta_z": 0.5}


# Name of a door -> what takes ids of tokens there.
OF_IDS = {
    "query of classes": lambda ids: SequenceClasses(ROWS, ids),
    "query of bags": lambda ids: Bags.from_dense(ids, [0, 1], ROWS),
    "target of bags": lambda ids: Bags.from_dense([0, 0], ids, ROWS),
    "decode": CORPUS.decode,
}
# Name of a door -> what takes probabilities, and what these are.
OF_SHARES = {
    "probabilities": (lambda rows: SequenceClasses(rows, [0, 0]), np.array(ROWS)),
    "class_weights": (lambda p: SequenceClasses(ROWS, [0, 0], class_weights=p), np.array([0.5, 0.5])),
    "weight": (lambda p: Bags.from_dense([0, 0], [0, 1], ROWS, p), np.array([0.5, 0.5])),
    "target": (lambda rows: Bags.from_dense([0, 0], rows, ROWS), np.array(ROWS)),
    "probabilities of one class": (finite_sequences.finite_length_drift, np.array([0.25, 0.75])),
}
# Name of an argument -> what takes a whole number there.
OF_NUMBERS = {
    "vocab_size": lambda n: SequenceClasses(ROWS, [0, 0], vocab_size=n),
    "steps": lambda n: sgd(CLASSES, **FLOW, steps=n),
    "n_times": lambda n: gradient_flow(CLASSES, **FLOW, t_end=2.0, n_times=n),
    "length": lambda n: CORPUS.windows(n),
}


@pytest.mark.parametrize("door", OF_IDS.values(), ids=OF_IDS)
def test_whole_floats_for_ids(door):
    cures.check_ids(door)


@pytest.mark.parametrize("door", OF_IDS.values(), ids=OF_IDS)
def test_labels_that_are_left_out(door):
    cures.check_labels(door)


@pytest.mark.parametrize(("door", "shares"), OF_SHARES.values(), ids=OF_SHARES)
def test_frequencies_for_probabilities(door, shares):
    cures.check_shares(door, shares)


@pytest.mark.parametrize("call", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_whole_floats_for_a_number(call):
    cures.check_number(call)


def test_a_table_keeps_its_names():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([[0.5, 0.5, 0], [0.5, 0, 0.5]], columns=["the", "stray", "loyal"], index=["cat", "dog"])
    classes = SequenceClasses(table, [0, 0])
    assert classes.token_names == ("the", "stray", "loyal") and classes.class_names == ("cat", "dog")
    assert classes.probabilities.toarray().tolist() == table.values.tolist()
    own = SequenceClasses(table, [0, 0], token_names=["x", "y", "z"], class_names=["1", "2"])
    assert own.token_names == ("x", "y", "z") and own.class_names == ("1", "2")
    numbered = SequenceClasses(table.reset_index(drop=True), [0, 0])
    assert numbered.class_names is None and numbered.token_names == classes.token_names
    assert SequenceClasses(table.to_numpy(), [0, 0]).token_names is None
    assert Bags.from_dense([0, 0], [0, 1], table).token_names == ("the", "stray", "loyal")
    flow = gradient_flow(classes, **FLOW, t_end=1.0)
    assert flow.named["attention"].sel(next_token="dog", token="loyal").dims == ("time",)


def test_a_table_with_a_column_of_words_is_refused_in_one_line():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"next": ["cat", "dog"], "a": [0.5, 0.5], "b": [0.5, 0.5]})
    assert "\n" not in cures.refusal(lambda rows: SequenceClasses(rows, [0, 0]), table)
