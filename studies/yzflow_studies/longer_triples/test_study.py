"""The construction of many frequencies, three equal tokens by counting, starts and stages, verdicts and the figure."""

import itertools
import math

import numpy as np
import pytest
import xarray as xr
from figure_rules import drawn
from hypothesis import given
from hypothesis import strategies as st
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks

from yzflow_studies.learning_match import runs as finding31
from yzflow_studies.longer_triples import runs, study


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_three_equal_by_counting(row):
    assert runs.three_equal(row).tolist() == [row.count(one) > 2 for one in row]


@pytest.mark.parametrize("n", [8, 32, 64])
def test_half_of_the_tokens_have_two_equal_others(n):
    """The binomial chance is near 1/2; the share in 20,000 inputs is within six standard errors of it."""
    modulus = runs.equal_modulus(n)
    chance = 1 - (1 - 1 / modulus) ** (n - 1) - (n - 1) / modulus * (1 - 1 / modulus) ** (n - 2)
    assert abs(chance - 0.5) < 0.12
    share = runs.three_equal(np.random.default_rng(n).integers(modulus, size=(20_000, n))).mean(axis=1)
    assert share.mean() == pytest.approx(chance, abs=6 * share.std() / math.sqrt(share.size))


@pytest.mark.parametrize(("n", "modulus", "count"), [(3, 7, 1), (3, 7, 3), (4, 5, 2)])
def test_many_frequencies_decide_every_small_input(n, modulus, count):
    unit = runs.many_frequencies(n, modulus, count, np.random.default_rng(0))
    x = tasks.all_match(n, modulus)
    assert np.abs(unit(x) - tasks.match3(x, modulus)).max() <= finding31.ERROR + 1e-9
    assert unit.unit.embedding_dim == 3 * count + 1


def test_frequencies_have_the_gap_by_a_loop():
    frequencies, gap = runs.chosen_frequencies(53, 4, np.random.default_rng(1))
    largest = max(sum(math.cos(2 * math.pi * k * s / 53) for k in frequencies) / 4 for s in range(1, 53))
    assert gap == pytest.approx(1 - largest) and len(set(frequencies.tolist())) == 4
    one = averaging.match3_tensor(n_tokens=32, modulus=739, error=0.01).scale
    many = runs.many_frequencies(32, 739, 10, np.random.default_rng(0))
    assert many.scale < 1e-3 * one
    x = tasks.random_match(32, 739, size=3, rng=2, order=3)
    assert np.abs(many(x) - tasks.match3(x, 739)).max() <= finding31.ERROR + 1e-9
    with pytest.raises(ValueError, match="`count` must be at most 3, but got 4"):
        runs.chosen_frequencies(7, 4, np.random.default_rng(0))


def test_noise_is_measured_in_root_mean_squares():
    rng = np.random.default_rng(0)
    tables = {name: scale * rng.standard_normal((1, 200, 50)) for name, scale in (("query", 3), ("key", 1))}
    weights = {**tables, "second_key": tables["key"], "value": np.ones(3)}
    moved = runs.moved(weights, 0.1, rng)
    for name in ("query", "key", "second_key"):
        ratio = (moved[name] - weights[name]).std() / weights[name].std()
        assert ratio == pytest.approx(0.1, abs=0.1 * 5 / math.sqrt(2 * 10_000))  # a false alarm once in 10^6
    assert moved["value"] is weights["value"]


def test_inputs_of_the_curriculum_have_a_triple():
    inputs = runs.Planted(4, 739, np.random.default_rng(0))
    assert tasks.match3(inputs.training(50), 739).any(axis=1).all()


@pytest.mark.slow
def test_starts_and_stages():
    """The construction itself solves the task, noise of its own size does not; a curriculum changes the start."""
    options = {"dimension": 7, "steps": 25, "learning_rate": 1e-4, "seed": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "FREQUENCIES", 2)
        patch.setattr(runs, "CURRICULUM", ((5, 25),))
        ends = [
            runs.trained("third order", "triples", 6, start="frequencies", distance=d, **options)["accuracy"][0].item()
            for d in (0.0, 2.0)
        ]
        assert ends[0] == 1 and ends[1] < 0.9
        starts = [
            runs.trained("third order", "triples", 6, curriculum=given, **options)["loss"][0].item()
            for given in (False, True)
        ]
        assert starts[0] != starts[1]


@pytest.mark.slow
def test_three_equal_are_learnt_by_one_layer():
    run = runs.trained("one layer", "three equal", 6, dimension=8, steps=500, learning_rate=0.01, seed=2)
    assert (run["loss"] / run["constant_loss"])[-1] < 0.1 and run["with_match"][-1] > 0.95


def synthetic(loss, area):
    """Runs that all end at this loss over the constant's and this area."""
    found = {}
    for name, cell in {**study.CELLS, **study.LATER}.items():
        varied = {key: list(value) for key, value in cell.items() if isinstance(value, tuple)}
        shape = (*map(len, varied.values()), 2, 3)
        names = (*varied, "seed", "time")
        values = {"loss": loss, "constant_loss": 1.0, "triple_area": area}
        ramp = np.array([1.0, 1.0, 1.0]) if loss == 1 else np.geomspace(1, loss, 3) / loss
        arrays = {key: np.broadcast_to(value * (ramp if key == "loss" else 1), shape) for key, value in values.items()}
        found[name] = xr.Dataset(
            {key: (names, array) for key, array in arrays.items()},
            {**varied, "seed": [0, 1], "time": [0.0, 100.0, 200.0]},
        )
    return found


def test_verdicts_follow_the_data():
    lost, learnt = study.judged(synthetic(1.0, 0.5)), study.judged(synthetic(0.01, 0.99))
    assert {name for name, said in lost.items() if said == "supported"} == {"T1", "T2", "T3", "T5", "T6"}
    assert {name for name, said in learnt.items() if said == "supported"} == {"T4", "E1"}
    mixed = synthetic(1.0, 0.5)
    area = mixed["one layer, ten times"]["triple_area"]
    mixed["one layer, ten times"]["triple_area"] = area.where(area["seed"] == 0, 0.9)
    assert study.judged(mixed)["T1"] == "open"


def test_the_figure_draws_each_seed_and_claims_the_verdicts():
    data = synthetic(0.01, 0.9)
    figure, claims = drawn(study.FIGURES[0], data)
    assert "T4, ten frequencies are kept from a tenth off: supported." in claims and "T1, one layer" in claims
    left = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert left["ten frequencies, m = 31"].get_xdata().tolist() == [0.1, 0.1, 0.3, 0.3, 1.0, 1.0, 2.0, 2.0]
    right = {line.get_label(): line.get_ydata() for line in figure.axes[1].get_lines()}
    np.testing.assert_allclose(right["three equal"], [0.1, 0.01])


def test_bad_arguments_are_named():
    for key, value, message in (
        ("kind", "two layers", "`kind` must be one of"),
        ("task", "four", "`task` must be one of"),
        ("start", "warm", "`start` must be one of"),
    ):
        given = {"kind": "one layer", "task": "pairs", "start": "random"} | {key: value}
        with pytest.raises(ValueError, match=message):
            runs.trained(
                given["kind"], given["task"], 6, dimension=2, steps=25, learning_rate=0.1, start=given["start"]
            )
    assert len(list(itertools.chain(study.CELLS, study.LATER))) == len({*study.CELLS, *study.LATER})
