"""Measured sizes of random keys and of their rounded queries, and the figures."""

import math

import numpy as np
import pytest
import xarray as xr
from figure_rules import shows
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks

from yzflow_studies.random_keys import study

FIGURES = {entry.name: entry for entry in study.FIGURES}


@pytest.fixture(scope="module")
def dimensions():
    return study.smallest_dimensions(n_tokens=(24, 48), subset_sizes=(1, 2, 8), n_sets=12)


@pytest.mark.slow
def test_smallest_dimensions_leave_out_sets_beyond_a_quarter(dimensions):
    m = dimensions["dimension"]
    assert np.isnan(m.sel(n_tokens=24, q=8)).all()
    filled = m.sel(q=[1, 2])
    assert (filled.sel(certificate="exclusion") <= filled.sel(certificate="minimum norm")).all()
    assert (m.sel(n_tokens=48, q=8) > m.sel(n_tokens=48, q=2)).all()


def test_rounding_errors_fall_by_half_a_bit():
    data = study.rounding_errors(n_tokens=256, subset_sizes=(4,))
    error = data["error"].sel(q=4)
    assert float(error.sel(bits=int(data["sufficient"].sel(q=4)))) <= 1e-3 < float(error.sel(bits=4))
    # The first p from which on eps holds, by the search of `theory`, on the same keys.
    keys = averaging.random_keys(256, math.ceil(12 * 4 * math.log(256)), rng=np.random.default_rng(0))
    subset = tasks.adversarial_subsets(keys, 4)[0]
    query = averaging.certificate(keys, subset).query
    tau = averaging.temperature(n_tokens=256, q=4, error=5e-4)
    needed = averaging.smallest_bits(keys, query, subset, tau=tau, error=1e-3)
    assert float(error.sel(bits=needed)) <= 1e-3 < float(error.sel(bits=needed - 1))
    # From 8 to 20 bits by 2^12, within what one query's luck with rounding makes of it.
    assert -14.5 < np.log2(float(error.sel(bits=20) / error.sel(bits=8))) < -9.5


def test_the_caption_of_dimensions_follows_the_data():
    """Twice q ln N, and 8 q^2 ln(N/q) with a factor that falls from 1.5 to 1, with sets that are too large left out."""
    n, q = xr.DataArray([64, 256], dims="n_tokens"), xr.DataArray([1, 4, 32], dims="q")
    q = q.assign_coords(q=q)
    factor = xr.DataArray([1.5, 1.25, 1.0], dims="q")
    rules = {"exclusion": 2 * q * np.log(n) * xr.ones_like(factor), "minimum norm": factor * 8 * q**2 * np.log(n / q)}
    m = xr.concat(list(rules.values()), "certificate").assign_coords(certificate=list(rules), n_tokens=n)
    m = xr.concat([m, 0.1 * m], "sets").assign_coords(sets=["adversarial", "random"])
    data = m.where(4 * q <= n).to_dataset(name="dimension")
    text = FIGURES["qsa_smallest_dimension"].claims(data)
    assert text.startswith("Pinned, it is at most 2.0 q ln N.")
    assert "1.00 to 1.50 times 8 q^2 ln(N/q)" in text and "1.00 at the largest q and 1.50 at the smallest" in text


@pytest.mark.slow
def test_figures_label_their_axes_and_show_their_data(dimensions):
    shows(FIGURES["qsa_smallest_dimension"], dimensions, dimensions["dimension"])
    rounded = study.rounding_errors(n_tokens=64, subset_sizes=(2, 4), bits=8)
    shows(FIGURES["qsa_precision"], rounded, rounded["error"])
