"""Entropy and movement of attention by hand; what the figures of transformers on text show."""

import numpy as np
import pytest
import xarray as xr
import yzflow_deep as deep
from driving import python

from yzflow_studies.ordinary_transformers import study

V, LENGTH = 6, 8


@pytest.fixture(scope="module")
def run():
    text = deep.Sequences.from_tokens(np.random.default_rng(0).integers(V, size=20 * LENGTH + 1), length=LENGTH)
    options = {"learning_rate": 0.1, "steps": 30, "record_every": 10, "batch_size": 4, "seeds": [0, 5]}
    return deep.train(deep.Architecture(V, width=4, mlp_width=8), text, **options)


def test_synthetic_text_is_heavy_tailed_and_reproducible():
    text = study.synthetic_text(50_000, vocab_size=100, n_topics=3, rng=1)
    assert np.array_equal(text, study.synthetic_text(50_000, vocab_size=100, n_topics=3, rng=1))
    share = np.sort(np.bincount(text, minlength=100))[::-1] / text.size
    assert share[0] > 5 * share[50] > 0
    train, validation = study.split(text, length=50, n_validation=10)
    assert len(validation) == 10 and len(train) + len(validation) == 999


def test_final_entropy_and_movement_by_hand():
    entropy = np.array([[[1.0, 2.0], [1.0, 4.0], [9.0, 9.0]]])[..., None, None]  # rate, seed, time, layer, head
    attention = np.zeros((1, 3, 2, 1, 1, 1, 2, 2))
    attention[..., 0, 0] = 1
    attention[:, :, 0, ..., 1, :] = [0.5, 0.5]
    attention[:, :, 1, ..., 1, :] = [0.8, 0.2]
    axes = ("learning_rate", "seed", "time", "probe", "layer", "head", "row", "position")
    runs = xr.Dataset(
        {
            "entropy": (("learning_rate", "seed", "time", "layer", "head"), entropy),
            "attention": (axes, attention),
            "diverged": (("learning_rate", "seed"), [[-1, -1, 7]]),
        },
        {"time": [0.0, 50.0]},
    )
    end = study.final_entropy(runs)
    assert end["mean"].item() == 3 and end["n"].item() == 2
    assert end["standard_error"].item() == pytest.approx(1.0)
    moved = study.movement(runs)
    assert moved["time"].values.tolist() == [25.0]
    np.testing.assert_allclose(moved.values, 100 / 50 * 0.3)


@pytest.mark.parametrize(
    "line, flat_from",
    [
        ([5.0, 3, 2.09, 2, 2.05, 2.01], 20),
        ([5.0, 3, 2.09, 2, 2.05, 1.98], np.nan),  # 30 of 50 steps are too few to tell
        ([5.0, 3, 2.01, 2.5, 3.1, 3.05], 20),  # it may rise
        ([5.0, 3, 2.09, 2.3, 2.35, 2.21], np.nan),  # a fall after a rise, above where it was
        ([2.0, 2, 2, 2, 2, 2], 0),
        ([5.0, 3, 2, 2, 2, np.nan], np.nan),
    ],
)
def test_entropy_is_flat_from_where_it_falls_no_more_if_that_is_seen_for_as_long_again(line, flat_from):
    entropy = np.array(line)[None, None, :, None, None] + [-1, 1]
    axes = ("learning_rate", "seed", "time", "layer", "head")
    runs = xr.Dataset({"entropy": (axes, entropy), "uniform_entropy": 5.0}, {"time": 10.0 * np.arange(6)})
    assert study.flattened(runs, tolerance=0.02).values.ravel() == pytest.approx([flat_from], nan_ok=True)


def test_figures_of_text_are_drawn_from_a_run(run):
    entropy = study.deep_entropy(run)
    assert {axes.get_ylabel() for axes in entropy.axes} >= {"entropy of attention (nats)"}
    assert study.deep_attention({1: run}).axes
    assert {axes.get_ylabel() for axes in study.deep_text_flattening(run).axes} >= {"validation loss (nats)"}


def test_maps_of_text_have_its_words():
    shape, words = (1, 1, 2, 1, 1, 1, 64, 64), np.array([[f"word{i}" for i in range(63)] + ["$5"]])
    dims = ("learning_rate", "seed", "time", "probe", "layer", "head", "row", "position")
    attention = np.broadcast_to(np.tril(np.ones((64, 64))) / np.arange(1, 65)[:, None], shape)
    run = xr.Dataset(
        {"attention": (dims, attention), "probe_tokens": (("probe", "position"), np.arange(64)[None])},
        coords={"time": [0, 100], "layer": [1]},
    )
    for given, expected in ((run, "0"), (run.assign_coords(probe_words=(("probe", "position"), words)), "word0")):
        axes = study.deep_attention({1: given}).axes[0]
        assert axes.get_xticklabels()[0].get_text() == expected
        assert len(axes.get_yticklabels()) == axes.images[0].get_array().shape[0] == 20


def test_without_transformers_the_message_names_their_distribution():
    python(
        "import sys\n"
        "sys.modules['yzflow_deep'] = None\n"
        "from yzflow_studies.ordinary_transformers.study import FIGURES\n"
        "try:\n"
        "    FIGURES[0](quick=True)\n"
        "except ImportError as error:\n"
        "    assert 'comes with yzflow-deep: pip install -e tools/deep' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
