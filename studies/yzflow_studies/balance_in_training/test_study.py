"""Layers along their training, measured by hand at small sizes, the store, and what the figure draws."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from figure_rules import drawn
from yzflow_bounded_dyck import approximate, balance
from yzflow_bounded_dyck import training as dyck

from dynamics import Layer, gradient_flow, sgd
from yzflow_studies.balance_in_training import study

TIMES = (0, 2, 4)
CELLS = {
    "free": study.LayerKind({}, flow_until=4.0),
    "uniform": study.LayerKind({}, uniform=True),
    "type and depth (20)": study.LayerKind({"embedding": "type and depth"}, flow_until=2.0),
}


@pytest.fixture(scope="module")
def samples():
    return dyck.data(n_train=300, n_test=60, lengths=("below 28", study.LONG, study.LONGEST), seed=3)


@pytest.fixture(scope="module")
def settings(samples, tmp_path_factory):
    prefixes = dyck.LANGUAGE.sample(50, max_length=12, rng=1).merge()
    own = {"cells": CELLS, "seeds": [1, 2, 3], "times": TIMES, "samples": samples, "flow_prefixes": prefixes}
    return {**own, "store": tmp_path_factory.mktemp("store")}


@pytest.fixture(scope="module")
def runs(settings):
    return study.followed(**settings)


@pytest.mark.slow
def test_runs_are_those_of_the_simulators(runs, settings):
    """The last layer of SGD and of the flow, by the simulators' own calls, and its measures one by one."""
    start = dyck.start(dyck.LANGUAGE, 2, scale=study.SCALE)
    data = {"SGD": settings["samples"].train, "flow": settings["flow_prefixes"]}
    one = sgd(data["SGD"], eta_y=1.0, eta_z=1.0, steps=4, init=start, seed=2, momentum=0.0).final
    other = gradient_flow(data["flow"], eta_y=1.0, eta_z=1.0, t_end=4.0, init=start).final
    for level, layer, close in (("SGD", one, 1e-9), ("flow", other, 2e-3)):
        last = runs.sel(cell="free", seed=2, level=level, time=4)
        assert float(last["residual"]) == pytest.approx(balance.residual(layer.Z, dyck.LANGUAGE), rel=close)
        assert float(last["violation"]) == pytest.approx(balance.violation(layer, dyck.LANGUAGE), rel=close)
        found = approximate.reach(layer, dyck.LANGUAGE)
        assert float(last["allowed"]) == pytest.approx(np.exp(np.log1p(found.bound).mean()), rel=10 * close)
        assert float(last["ruled_out"]) == np.mean(found.bound < 450 / 2 - 4)


@pytest.mark.slow
def test_both_levels_start_alike_and_uniform_attention_stays(runs):
    first = runs.isel(time=0)
    for name in ("free", "type and depth (20)"):
        np.testing.assert_array_equal(
            first["miss"].sel(cell=name, level="SGD"), first["miss"].sel(cell=name, level="flow")
        )
    uniform = runs.sel(cell="uniform", level="SGD")
    assert (uniform["residual"] == 0).all() and (uniform["miss"] > 0).all()
    np.testing.assert_array_equal(uniform["exposed"], uniform["long"])
    assert runs["miss"].sel(cell="uniform", level="flow").isnull().all()
    assert runs["miss"].sel(cell="type and depth (20)", level="flow").notnull().sum("time").values.tolist() == [2, 2, 2]
    assert (runs["broken"].sum() == 0) and (runs["nearer"].sum() == 0)


@pytest.mark.slow
def test_what_is_in_the_store_is_not_trained_again(runs, settings, monkeypatch):
    monkeypatch.setattr(study, "train", None)
    xr.testing.assert_identical(study.followed(**settings), runs)
    with pytest.raises(TypeError, match="NoneType"):
        study.followed(**{**settings, "seeds": [4]})


def test_a_balanced_layer_is_allowed_any_number_of_pairs(samples):
    """One with the head that tells the deepest bracket, which is right at every length."""
    layer = balance.balanced_layer(dyck.LANGUAGE, 0)
    layer = replace(layer, Y=1e4 * layer.Y / np.abs(layer.Y).max())
    found = study.measured(layer, samples.test)
    assert found["residual"] < 1e-9 and found["miss"] < 1e-12 and found["ruled_out"] == 0
    assert found["broken"] == 0 and found["long"] == found["longest"] == found["short"] == 1
    flat = study.measured(Layer(layer.Z, 0 * layer.Y, layer.V), samples.test)
    assert flat["borne"] == 1 and flat["excess"] > 0.3


@pytest.mark.slow
def test_verdicts_and_the_figure_are_of_the_runs_that_they_are_given(runs):
    found = study.verdicts(runs)
    assert list(found) == [one.name for one in study.HYPOTHESES]
    free = runs.sel(cell="free", level="SGD")
    ratio = np.log(free["allowed"].isel(time=-1) / free["borne"].isel(time=-1))
    assert found["H5"]["mean"] == pytest.approx(float(ratio.mean()))
    change = float((free["residual"].isel(time=-1) - free["residual"].isel(time=0)).mean())
    assert found["H3"]["mean"] == pytest.approx(change)
    figure, claims = drawn(study.FIGURES[0], runs.assign_attrs(length=90))
    assert claims.endswith("The length asked is 90.")
    (grey,) = [line for line in figure.axes[2].get_lines() if list(line.get_xdata()) == [0, 1]]
    assert grey.get_ydata()[0] == 90 // 2 - dyck.LANGUAGE.max_depth
    assert figure.axes[0].get_xticks().tolist() == [10.0]  # the start, and no power beyond the runs
    assert all(f"{one['says']}: {one['verdict']}" in claims for one in found.values())
    for axes, key in zip(figure.axes, ("residual", "miss", "borne", "long"), strict=True):
        line = next(line for line in axes.get_lines() if line.get_label() == "free")
        np.testing.assert_allclose(line.get_ydata(), runs[key].sel(cell="free", level="SGD").mean("seed"))


def test_refusals(samples):
    with pytest.raises(ValueError, match=r"^`level` must be one of 'flow', 'SGD', but got 'theory'"):
        study.train(CELLS["free"], "theory", 0, samples=samples, flow_prefixes=samples.train)
