"""Measures of made-up runs whose answers are known, and how far a step with a cut gradient goes."""

import numpy as np
import pytest
import xarray as xr
from figure_rules import drawn

from yzflow_studies.paper_rates import study


@pytest.fixture
def runs():
    """Entropy that falls by 0.1 per unit of rate and of time until time 8, then rises by half; one run diverged."""
    rates, seeds, time = np.array([1.0, 2.0, 4.0]), np.array([1, 2]), np.arange(0, 17)
    fall = np.minimum(time, 8) - 0.5 * np.maximum(time - 8, 0)
    path = 8 - 0.1 * rates[:, None, None] * fall + 0 * seeds[:, None]
    dims = ("learning_rate", "seed", "time", "layer", "head")
    map_of = np.zeros((3, 2, 17, 1, 1, 1, 2, 2))
    map_of[..., 1, 0] = (0.5**time)[None, None, :, None, None, None]
    map_of[..., 1, 1] = 1 - map_of[..., 1, 0]
    return xr.Dataset(
        {
            "entropy": (dims, path[..., None, None] * np.ones(1)),
            "attention": (("learning_rate", "seed", "time", "probe", "layer", "head", "row", "position"), map_of),
            "loss": (("learning_rate", "seed", "time"), np.full((3, 2, 17), 4.0)),
            "diverged": (("learning_rate", "seed"), [[-1, -1], [-1, -1], [-1, 3]]),
            "uniform_entropy": 8.0,
        },
        {"learning_rate": rates, "seed": seeds, "time": time},
    )


def test_slopes_falls_and_rebounds_are_those_of_lines(runs):
    """The last five times are 12 to 16, where the fall is 6 to 4, 5 in the mean; lowest is at 8."""
    slopes = study.slopes(runs).isel(layer=0).values
    np.testing.assert_allclose(slopes[0], -0.1 * 5)
    assert np.isnan(slopes[1])  # a rate has no run left
    rates = runs["learning_rate"].values
    np.testing.assert_allclose(study.drops(runs).isel(seed=0, layer=0), 0.1 * rates * 8 / 8)
    np.testing.assert_allclose(study.rebounds(runs).isel(seed=0, layer=0), 0.1 * rates * 3 / 8)


def test_a_fall_is_measured_from_the_highest_value_before_it(runs):
    up = runs.assign(entropy=runs["entropy"] + xr.where(runs["time"] == 16, 100.0, 0.0))
    np.testing.assert_allclose(study.drops(up).isel(seed=0, layer=0), study.drops(runs).isel(seed=0, layer=0))


def test_equal_paths_are_compared(runs):
    """At path 16 rate 1 is at time 16, rate 2 at 8 and rate 4 at 4: falls of 4, 2 x 8 and 4 x 4 tenths."""
    found = study.same_path(runs).isel(seed=0, layer=0)
    np.testing.assert_allclose(found, [0, -(1.6 - 0.4), -(1.6 - 0.4)], atol=1e-12)


def test_movement_at_the_end_is_a_share_of_the_fastest(runs):
    """Movement halves with each record, so that the mean of the last five is (1 + 2 + .. + 16) / 5 of the last."""
    found = study.last_movement(runs).isel(seed=0, layer=0)
    np.testing.assert_allclose(found, 31 / 5 * 0.5**15)


def test_a_run_trains_below_what_frequencies_give(runs):
    assert study.trains(runs, 4.2).values.tolist() == [[True, True], [True, True], [True, False]]
    assert not study.trains(runs, 4.05).any()


def test_loss_of_frequencies_by_counting():
    tokens = np.random.default_rng(3).choice(5, size=35 * 80, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    train, validation = study.deep_text.split(tokens, length=35)
    counts = [1 + sum(int(t == token) for t in train.targets.ravel()) for token in range(5)]
    expected = -np.mean([np.log(counts[t] / sum(counts)) for t in validation.targets.ravel()])
    np.testing.assert_allclose(study.unigram_loss(tokens), expected)


@pytest.mark.slow
def test_a_cut_step_is_as_long_as_the_rate_times_the_cut(tmp_path):
    """The gradient at the start is longer than the cut, so that the length of a step is known."""
    tokens = study.deep_text.synthetic_text(3000, vocab_size=20)
    options = {"rates": (1.0, 5.0), "seeds": (1,), "width": 8, "records": 1}
    start, after = (study.runs_of(tokens, 1, clip=1e-3, steps=steps, **options)["parameters"] for steps in (1, 2))
    length = np.sqrt(((after - start) ** 2).sum("parameter")).isel(seed=0)
    np.testing.assert_allclose(length, 1e-3 * np.array([1.0, 5.0]), rtol=1e-3)


@pytest.mark.slow
def test_the_figure_says_what_its_runs_do(tmp_path):
    tokens = study.deep_text.synthetic_text(3000, vocab_size=20)
    small = {"rates": (1.0, 5.0), "seeds": (1, 2), "steps": 12, "records": 12, "width": 8}
    one = study.runs_of(tokens, 1, store=tmp_path, **small)
    xr.testing.assert_identical(study.runs_of(tokens, 1, store=tmp_path, **small)["loss"], one["loss"])
    runs = [one, one.isel(layer=[0, 0, 0]).assign_coords(layer=[1, 2, 3])]
    figure, claims = drawn(study.FIGURES[0], runs)
    seeds = [line for line in figure.axes[0].lines if line.get_linewidth() < 1]
    assert len(seeds) == 2 * 2 + 1  # each seed of each rate, and uniform attention
    assert f"{int((runs[0]['diverged'] < 0).sum())} of 4 runs" in claims
