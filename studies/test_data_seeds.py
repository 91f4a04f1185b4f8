"""A data seed beside the seed of a start, wherever a study trains on data that are drawn once for all starts."""

import importlib
import inspect

import numpy as np
import pytest
from yzflow_bounded_dyck import DyckLanguage, tasks, training

TRAINERS = (
    ("yzflow_bounded_dyck.training", "trained"),
    ("yzflow_studies.dyck_balance.values", "lengths"),
    ("yzflow_studies.dyck_embeddings.values", "table"),
    ("yzflow_studies.dyck_galleries.study", "heads"),
    ("yzflow_studies.dyck_galleries.study", "minimal"),
    ("yzflow_studies.dyck_galleries.study", "standard"),
    ("yzflow_studies.dyck_variation.study", "trained"),
    ("yzflow_studies.layer_parts.study", "grid"),
    ("yzflow_studies.ordinary_dyck.deep", "trained"),
    ("yzflow_studies.precise_dyck.precise", "trained"),
    ("yzflow_studies.pruned_heads.study", "adapted"),
    ("yzflow_studies.pruned_heads.study", "pruned"),
    ("yzflow_studies.uniform_attention.study", "trained"),
)
LANGUAGE = DyckLanguage(2, 2)
(DYCK,) = tasks.TASKS


@pytest.mark.parametrize(("module", "name"), TRAINERS)
def test_what_trains_on_drawn_data_takes_a_data_seed(module, name):
    """Its default leaves the data what they were."""
    parameters = inspect.signature(getattr(importlib.import_module(module), name)).parameters
    assert isinstance(parameters["data_seed"].default, int)


def test_another_data_seed_trains_on_other_data_from_the_same_start():
    options = {"seeds": [1], "steps": 3, "language": LANGUAGE, "threads": 1}
    first, other = (training.trained(data_seed=number, **options) for number in (0, 5))
    by_hand = training.trained(samples=training.data(LANGUAGE, seed=5), **options)
    np.testing.assert_array_equal(other["attention"], by_hand["attention"])
    np.testing.assert_array_equal(other["start_attention"], first["start_attention"])
    assert not np.array_equal(other["attention"], first["attention"])
    with pytest.raises(ValueError, match=r"^`data_seed` must be left out where `samples` are given, but got 5"):
        training.trained(samples=training.data(LANGUAGE), data_seed=5, **options)
    with pytest.raises(ValueError, match=r"^`data_seed` must be at least 0, but got -1"):
        training.trained(data_seed=-1, **options)


def test_runs_that_were_stored_before_there_was_a_data_seed_keep_their_identity():
    assert "data_seed" not in DYCK.identity({}, 1)["configuration"]
    assert DYCK.identity({"data_seed": 0}, 1) == DYCK.identity({}, 1)
    assert DYCK.identity({"data_seed": 2}, 1) != DYCK.identity({}, 1)
    small = {"n_train": 100, "n_test": 50, "steps": 2, "max_depth": 2}
    first, other = (DYCK.run(DYCK.complete({**small, "data_seed": number}), 1) for number in (0, 2))
    assert not np.array_equal(first["loss"], other["loss"])
