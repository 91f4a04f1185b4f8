"""Training on sparse averaging, and its figures: measured values and what is drawn."""

import json
from pathlib import Path

import numpy as np
import pytest

from yzflow_studies.linear_query import study

FIGURES = {entry.name: entry for entry in study.FIGURES}


@pytest.fixture(scope="module")
def training():
    """The first 2000 of the 40000 steps of the talk's pictures."""
    return study.training(steps=2000)


@pytest.mark.slow
def test_the_figures_of_the_pictures(training):
    """Mean L1 distance 1.71, 0.325, 0.051, 0.0097 at 0, 100, 1000, 40000 steps (measured by a prototype).

    Five seeds here: 1.693 +- 0.012, 0.327 +- 0.020, 0.0461 +- 0.0011, 0.00958 +- 0.00005 (standard deviations). The
    prototype's d' and law of z are not known; they move the value at 1000 (0.051 for d' = 5).
    """
    published = json.loads(Path(study.__file__).with_name("values.json").read_text())["dimension8"]
    assert published["setting"]["times"] == [0, 100, 1000, study.STEPS]
    distance = np.append(training["distance"].sel(time=[0, 100, 1000]), published["values"]["distance"][-1])
    measured, relative = np.array([1.71, 0.325, 0.051, 0.0097]), np.array([0.03, 0.18, 0.15, 0.03])
    assert (np.abs(distance - measured) < relative * measured).all()


def test_training_needs_an_embedding_of_dimension_n_minus_1():
    """N = 8, q = 3, two seeds each: below m = 7 some set stays far off; from there on all are near."""
    errors = study.by_embedding_dim(embedding_dim=(6, 7), n_tokens=8, seeds=2, steps=3000)
    assert (errors["largest_distance"].sel(embedding_dim=6) > 0.5).all()
    assert (errors["largest_distance"].sel(embedding_dim=7) < 0.03).all()


@pytest.mark.slow
def test_figures_show_the_runs_that_they_are_given(training):
    figure = FIGURES["qsa_training"](training)
    figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.images]
    for axes, time in zip(panels[:3], (0, 1000, 2000), strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), training["attention"].sel(time=time))
    target = panels[3].images[0].get_array()
    np.testing.assert_allclose(target.sum(axis=1), 1)
    assert [np.flatnonzero(row).tolist() for row in target] == training["sets"].values.tolist()
    curve = next(axes for axes in figure.axes if axes.get_xlabel().startswith("time"))
    np.testing.assert_array_equal(curve.get_lines()[0].get_ydata(), training["distance"])
    errors = study.by_embedding_dim(embedding_dim=(3, 4), n_tokens=5, seeds=2, steps=20)
    axes = FIGURES["qsa_embedding_dim"](errors).axes[0]
    marks = next(line for line in axes.get_lines() if line.get_label().startswith("mean"))
    np.testing.assert_array_equal(marks.get_ydata(), errors["distance"].values.ravel())
    assert axes.get_xlabel() and axes.get_ylabel() and axes.get_title()
