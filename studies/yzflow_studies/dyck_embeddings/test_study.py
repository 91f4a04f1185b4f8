"""Embeddings, training and attention between seeds: the measures of both."""

import itertools

import numpy as np
import pytest
import scipy.stats
import strategies
import xarray as xr
from figure_rules import labelled
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from yzflow_studies.dyck_embeddings import study

FIGURES = {entry.name: entry for entry in study.FIGURES}


@pytest.fixture(scope="module")
def architectures():
    samples = dyck.data(n_test=300)
    return dyck.trained(embedding=dyck.ARCHITECTURES, scale=(0.1, 1.0), seeds=4, steps=400, samples=samples)


def least_mean(values, rate=1e-2):
    """Lower confidence limit of a mean over seeds."""
    n = len(values)
    return np.mean(values) + scipy.stats.t.ppf(rate, n - 1) * np.std(values, ddof=1) / np.sqrt(n)


@pytest.mark.slow
def test_d_embeddings_of_low_joint_rank_train_worse(architectures):
    ranks = {kind: np.linalg.matrix_rank(dyck.LANGUAGE.embedding(kind)[:-1]) for kind in dyck.EMBEDDINGS}
    assert ranks == {"one-hot": 16, "type and depth": 8, "type and angle": 6}
    losses = architectures["loss"].isel(eta=0, contrast_weight=0).mean("scale")
    for kind in dyck.EMBEDDINGS[1:]:
        assert least_mean((losses.sel(embedding=kind) - losses.sel(embedding="one-hot")).values) > 0


@pytest.mark.slow
def test_e_variation_comes_from_the_start_only_where_z_is_free(architectures):
    """Free Z keeps a small start small. With embeddings training itself drives seeds apart: the claim does not hold."""
    before, after = (
        study.variation(architectures[name])["mean"].isel(eta=0, contrast_weight=0)
        for name in ("start_attention", "attention")
    )
    random = study.random_variation(architectures.sizes["row"])
    free = after.sel(embedding=dyck.FREE)
    assert free.sel(scale=0.1) < 0.1 * random and free.sel(scale=1.0) > 20 * free.sel(scale=0.1)
    for kind in dyck.EMBEDDINGS:
        assert before.sel(embedding=kind, scale=0.1) < 0.1
        assert after.sel(embedding=kind, scale=0.1) > 20 * before.sel(embedding=kind, scale=0.1)
        assert after.sel(embedding=kind, scale=0.1) > 10 * free.sel(scale=0.1)


def test_the_share_on_the_stack_by_hand():
    """k = D = 2, ``([])[()]``: the closing queries of depth 1 are rows 3 and 7 with START first."""
    language = DyckLanguage(2, 2)
    assert "".join(language.brackets[b] for b in dyck.probe_prefix(language)) == "([])[()]"
    maps = np.tile(np.arange(9.0) / 100, (9, 1))
    maps[3, 1], maps[7, 5] = 0.6, 0.2
    # Row 3 sees the bracket at 1; row 7 those at 1 and 5. Both count 1 and 5 in any map.
    found = study.stack_share(xr.DataArray(maps, dims=("row", "position")), language)
    assert float(found) == pytest.approx((0.6 + 0.05 + 0.01 + 0.2) / 2, rel=1e-12)


def test_random_rows_vary_as_they_should():
    """20,000 pairs of maps of five rows, within five standard errors (6e-7)."""
    rng = np.random.default_rng(0)
    total = np.zeros(20_000)
    for n in range(1, 6):
        one, other = rng.dirichlet(np.ones(n), (2, total.size))
        total += ((one - other) ** 2).sum(axis=1)
    assert study.random_variation(5) == pytest.approx(total.mean(), abs=5 * total.std() / np.sqrt(total.size))
    assert study.random_variation(1) == 0 and study.random_variation(2) == pytest.approx(1 / 3)


@given(st.integers(3, 6), st.integers(1, 3), strategies.SEEDS)
def test_variation_is_the_mean_over_pairs_and_its_error_the_jackknife(n, rows, seed):
    maps = np.random.default_rng(seed).normal(size=(2, n, rows, rows))

    def mean(some):
        return np.mean([((one - other) ** 2).sum() for one, other in itertools.combinations(some, 2)])

    found = study.variation(xr.DataArray(maps, dims=("scale", "seed", "row", "position"), coords={"scale": [1, 2]}))
    for k in range(2):
        without = [mean(np.delete(maps[k], left, axis=0)) for left in range(n)]
        error = np.sqrt((n - 1) * np.var(without))
        assert float(found["mean"][k]) == pytest.approx(mean(maps[k]), rel=1e-9)
        assert float(found["standard_error"][k]) == pytest.approx(error, rel=1e-6)
        assert float(found["half"][k]) == pytest.approx(error * scipy.stats.t.ppf(0.975, n - 1), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_figures_label_every_axis_and_leave_the_callers_style_alone(name, architectures):
    data = {"dyck_attention": architectures.sel(embedding=list(dyck.EMBEDDINGS)), "dyck_variation": architectures}
    labelled(FIGURES[name], data[name])


@pytest.mark.slow
def test_figures_show_the_runs_that_they_are_given(architectures):
    after = FIGURES["dyck_variation"](architectures).axes[1]
    found = study.variation(architectures["attention"])["mean"]
    expected = found.squeeze(drop=True).sel(embedding="one-hot")
    np.testing.assert_allclose(after.containers[1].lines[0].get_ydata(orig=False), expected)
    assert after.get_ylim()[0] == 0 and after.get_ylim()[1] > found.max()
    shown = FIGURES["dyck_attention"](architectures.sel(embedding=["type and angle"])).axes[0].images[0].get_array()
    cell = architectures["attention"].sel(embedding="type and angle").isel(scale=0, eta=0, contrast_weight=0, seed=0)
    np.testing.assert_allclose(np.ma.filled(shown, 0), cell)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="`rows` must be at least 1, but got 0"):
        study.random_variation(0)
    with pytest.raises(ValueError, match="`attention` must have at least three seeds, but got 2"):
        study.variation(xr.DataArray(np.zeros((2, 1, 1)), dims=("seed", "row", "position")))
