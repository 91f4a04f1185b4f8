"""Variants of the layer at a small size; the results at full size are in page.md beside this file."""

import numpy as np
import pytest
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from dynamics import sgd
from dynamics.support.netcdf import save_dataset
from yzflow_studies.dyck_embeddings.study import variation
from yzflow_studies.layer_parts import study

FIGURES = {entry.name: entry for entry in study.FIGURES}


LANGUAGE = DyckLanguage(2, 3)


SMALL = {"embeddings": ("one-hot", "type and depth"), "scales": (0.5,), "seeds": 3, "steps": 20, "threads": 1}


@pytest.fixture(scope="module")
def samples():
    return dyck.data(LANGUAGE, n_train=400, n_test=300)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("variants")


@pytest.fixture(scope="module")
def runs(samples, store):
    return study.grid(**SMALL, language=LANGUAGE, samples=samples, store=store)


def test_each_variant_trains_the_layer_that_it_names(runs, samples):
    for variant, (hidden, kind) in {
        "LN": (None, "unit"), "LN, feed-forward": ((33, 128), "unit"), "no LN": (None, None),
        "no LN, feed-forward": ((33, 128), None),
    }.items():  # fmt: skip
        start = dyck.start(LANGUAGE, 1, embedding="type and depth", scale=0.5, **study.VARIANTS[variant])
        assert (None if start.hidden is None else start.hidden.shape) == hidden and start.normalisation == kind
        end = sgd(
            samples.train, eta_y=0.01, eta_z=0.01, steps=20, batch_size=128, optimizer="adam", dtype="float32",
            init=start, seed=1,
        )  # fmt: skip
        one = runs.sel(variant=variant, embedding="type and depth", scale=0.5, seed=1)
        np.testing.assert_allclose(one["attention"], dyck.attention_map(end.final, LANGUAGE), atol=1e-6)
        assert np.isnan(one["violation"]) == (kind is None)
        assert np.isnan(one["predicted"]).all() == (hidden is not None or kind is None)


def test_a_grid_that_is_done_is_not_trained_again(runs, samples, store, monkeypatch):
    monkeypatch.setattr(dyck, "trained", None)
    again = study.grid(**SMALL, language=LANGUAGE, samples=samples, store=store)
    xr.testing.assert_identical(again, runs)
    save_dataset(again, store.parent / "all.nc")
    assert xr.load_dataset(store.parent / "all.nc")["embedding"].values.tolist() == ["one-hot", "type and depth"]
    with pytest.raises(ValueError, match="`variants` must be one of 'LN', 'LN, feed-forward'"):
        study.grid(variants=["RMS"])


def test_another_language_or_other_data_is_not_taken_from_the_store(runs, samples, store, monkeypatch):
    monkeypatch.setattr(dyck, "trained", None)
    for other in ({"language": DyckLanguage(2, 4)}, {"samples": dyck.data(LANGUAGE, n_train=401, n_test=300)}):
        with pytest.raises(TypeError, match="NoneType"):
            study.grid(**{**SMALL, "language": LANGUAGE, "samples": samples, **other}, store=store)


def test_the_summary_is_means_over_seeds(runs):
    found = study.summary(runs)
    one = runs.sel(variant="no LN", embedding="one-hot").isel(scale=0)
    values = one["accuracy"].sel(length="400-500", query="close").values
    cell = found.sel(variant="no LN", embedding="one-hot").isel(scale=0)
    assert float(cell["long"]) == pytest.approx(values.mean())
    assert float(cell["long_error"]) == pytest.approx(values.std(ddof=1) / np.sqrt(3))
    assert float(cell["variation"]) == pytest.approx(float(variation(one["attention"])["mean"]))


def test_figures_show_the_runs_that_they_are_given(runs):
    figure = FIGURES["dyck_architecture"](runs)
    found = study.summary(runs).isel(scale=0)
    for axes, name in zip(figure.axes, ("short", "long", "stack_share", "variation"), strict=True):
        for container, variant in zip(axes.containers, study.VARIANTS, strict=True):
            np.testing.assert_allclose(container.lines[0].get_ydata(orig=False), found[name].sel(variant=variant))
    caption = FIGURES["dyck_architecture"].caption(runs)
    assert f"{float(found['short'].sel(variant='no LN', embedding='type and depth')):.3f}" in caption
    assert "Exponents" in FIGURES["dyck_residual_link"].caption(study.residual_link(LANGUAGE))
    assert len(FIGURES["dyck_residual_link"](study.residual_link(LANGUAGE)).axes) == 2
