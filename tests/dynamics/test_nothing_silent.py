"""Input that could silently give a wrong result is handled or refused: narrow integers, masks, units, changed data."""

import copy
import pickle

import numpy as np
import pytest

from dynamics import Bags, Embedding, Layer, SequenceClasses, TextCorpus, sgd
from dynamics.support import checks


def classes(**options):
    return SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 1], vocab_size=4, **options)


def test_a_mask_that_hides_nothing_does_not_matter():
    array = checks.finite_array("x", np.ma.array([1.0, 2.0], mask=False))
    assert type(array) is np.ndarray
    np.testing.assert_array_equal(array, [1.0, 2.0])


# Units of counts


@pytest.mark.slow
def test_a_run_in_single_precision_does_not_depend_on_the_unit_of_counts():
    counts = np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 1.0]])
    ends = [
        sgd(Bags.from_dense([0, 0], [0, 1], array), eta_y=1.0, eta_z=1.0, steps=5, batch_size=None, dtype="float32",
            length=None).final.Z
        for array in (counts, 1e39 * counts)
    ]  # fmt: skip
    assert np.abs(ends[0]).max() > 0.01
    np.testing.assert_allclose(*ends, rtol=1e-4)


def test_counts_of_usual_size_stay_as_they_are():
    counts = np.array([[1.0, 2.0**64, 2.0**-60], [2.0**-40, 0, 0]])
    np.testing.assert_array_equal(Bags.from_dense([0, 0], [0, 0], counts).count, [1.0, 2.0**64, 2.0**-60, 2.0**-40])


def test_probabilities_and_shares_whose_sum_overflows():
    large = SequenceClasses.single_common_token(2, 5, common=1.5e308, distinct=[1.5e308, 0.75e308])
    plain = SequenceClasses.single_common_token(2, 5, common=2.0, distinct=[2.0, 1.0])
    np.testing.assert_allclose(large.probabilities.toarray(), plain.probabilities.toarray(), rtol=1e-15)
    part = Bags([0], [0], [0, 1], [0], [1.0])
    np.testing.assert_array_equal(Bags.concatenate([part, part], [1e308, 1e308]).weight, [0.5, 0.5])


def examples():
    bags = Bags([0, 1], [0, 1], [0, 2, 3], [0, 1, 1], [1.0, 2.0, 1.0])
    embedding = Embedding(np.eye(3), np.ones((2, 3)), np.ones((2, 3)))
    found = [
        bags,
        classes(),
        TextCorpus(["the cat and the dog"]),
        embedding,
        Layer.embedded(embedding, np.zeros((3, 2))),
        Layer(np.zeros((2, 2)), np.zeros((3, 2)), np.zeros((2, 3)), hidden=None),
    ]
    return [pytest.param(thing, id=f"{type(thing).__name__}{i}") for i, thing in enumerate(found)]


@pytest.mark.parametrize("thing", examples())
def test_nothing_of_a_data_object_can_be_set(thing):
    for name in [*vars(thing), "new"]:
        with pytest.raises(AttributeError):
            setattr(thing, name, None)
        with pytest.raises(AttributeError):
            delattr(thing, name)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
@pytest.mark.parametrize("thing", examples())
def test_copies_are_as_read_only_as_the_original(thing, way):
    made = way(thing)
    assert type(made) is type(thing)
    arrays = 0
    for name, value in vars(made).items():
        if isinstance(value, np.ndarray):
            arrays += 1
            assert not value.flags.writeable, name
            np.testing.assert_array_equal(value, getattr(thing, name))
    assert arrays or isinstance(thing, SequenceClasses)
    if isinstance(thing, SequenceClasses):
        assert not made.class_weights.flags.writeable
    with pytest.raises(AttributeError):
        made.new = 1


def test_new_entries_of_the_probabilities_stay_outside():
    data = classes()
    shares = data.probabilities
    shares.data = np.full(4, 0.5)
    np.testing.assert_array_equal(data.probabilities.toarray(), [[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]])


def test_a_sparse_matrix_with_foreign_indices_is_refused():
    shares = classes().probabilities
    shares.indices = np.array([0, 7, 0, 2])
    with pytest.raises(ValueError, match=r"`probabilities` must be a sparse matrix whose parts fit"):
        SequenceClasses(shares, [0, 1])
