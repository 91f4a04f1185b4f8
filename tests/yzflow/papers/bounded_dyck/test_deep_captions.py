"""Captions of the figures of ordinary transformers say what their data show."""

import numpy as np
import pytest
import xarray as xr

from yzflow.figures.registry import entries


def test_accuracies_are_the_least_and_the_largest_of_all_layers():
    def run(*accuracy):
        return xr.Dataset(
            {"accuracy": (("seed", "length"), [[one, 0.1] for one in accuracy])},
            {"length": ["below 28", "400-500"], "time": [0, 20, 40]},
        )

    caption = entries()["deep_dyck_attention"].caption({"none": run(0.75, 0.5), "linear": run(0.934, 0.9)})
    assert "50% to 93% of short closing brackets are right after 40 steps." in caption


@pytest.mark.parametrize("sign", [1, -1])
def test_the_effect_of_the_regulariser_is_that_of_the_same_seeds(sign):
    without = np.array([0.3, 0.5, 0.7])
    change = sign * np.array([0.1, 0.2, 0.3])
    accuracy = np.zeros((1, 2, 3, 2))
    accuracy[0, 0, :, 1], accuracy[0, 1, :, 1] = without, without + change
    accuracy[..., 0] = 0.9
    runs = xr.Dataset(
        {"accuracy": (("kind", "contrast_weight", "seed", "length"), accuracy)},
        {"kind": ["word"], "contrast_weight": [0.0, 0.1], "length": ["below 28", "400-500"]},
    )
    half = 4.302652730 * 0.1 / np.sqrt(3)  # Student's t, two degrees of freedom
    expected = f"On prefixes of 400-500 brackets it changes accuracy by {sign * 0.2:+.3f} +- {half:.3f} (word, weight"
    assert expected in entries()["deep_dyck_length"].caption(runs)
