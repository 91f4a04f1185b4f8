"""Gates of heads, what a penalty does to them, and what the hypotheses are tested on."""

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from figure_rules import drawn
from yzflow_bounded_dyck import DyckLanguage

from yzflow_studies.precise_dyck import study as interventions
from yzflow_studies.pruned_heads import study

LANGUAGE = DyckLanguage(2, 4)


def model(seed=0):
    deep = pytest.importorskip("yzflow_deep", reason="yzflow-deep is not installed")
    return deep.Transformer(deep.Architecture(5, n_outputs=4, tied=False, n_layers=2, n_heads=2, width=8), seed)


def runs(**parts):
    """Two penalties, three seeds, one layer of two heads: the second head goes at the larger penalty."""
    dims = ("penalty", "seed", "layer", "head")
    left = np.ones((2, 3, 1, 2), dtype=bool)
    left[1, :, 0, 1] = False
    numbers = {
        "left": left,
        "cost": np.tile([0.3, 0.1], (2, 3, 1, 1)),
        "share_before": np.tile([0.2, 0.6], (2, 3, 1, 1)),
        "share_after": np.tile([0.5, 0.7], (2, 3, 1, 1)),
        "kept_place": np.ones((2, 3, 1, 2), dtype=bool),
        "moved": np.zeros((2, 3, 1, 2)),
    }
    by_run = {"before": 1.0, "accuracy": 0.9, "fixed": 0.7, "same": 0.6}
    found = {name: (dims, value) for name, value in (numbers | parts).items()}
    found |= {name: (dims[:2], value + np.zeros((2, 3))) for name, value in by_run.items()}
    return xr.Dataset(found, {"penalty": [0.01, 0.1], "seed": [1, 2, 3]})


@pytest.mark.parametrize("log_alpha", [-3.0, -1.0, 0.0, 2.0])
def test_a_gate_is_open_as_often_as_its_closed_form_says(log_alpha):
    """20,000 draws: a false alarm once in 1e6 (binomial)."""
    pytest.importorskip("jax", reason="yzflow-deep is not installed")
    noise = np.random.default_rng(3).uniform(1e-6, 1 - 1e-6, 20_000).astype(np.float32)
    gates = np.asarray(study.gate_values(np.float32(log_alpha), noise))
    low, high = scipy.stats.binom.interval(1 - 1e-6, noise.size, float(study.open_probability(log_alpha)))
    assert low <= np.sum(gates > 0) <= high and gates.min() >= 0 and gates.max() <= 1
    # Without noise: the middle of the stretched law, open where its sigmoid is above 1/12.
    assert (float(study.gate_values(log_alpha)) > 0) == (log_alpha > -np.log(11))


@pytest.mark.slow
def test_a_closed_gate_removes_its_head_and_an_open_one_nothing():
    given, tokens = model(), np.array([4, 0, 2, 3, 1])
    before = np.asarray(given(tokens))
    np.testing.assert_array_equal(study.gated(given, np.ones((2, 2), dtype=np.float32))(tokens), before)
    one = np.ones((2, 2), dtype=np.float32)
    one[1, 0] = 0
    found = np.asarray(study.gated(given, one)(tokens))
    np.testing.assert_allclose(found, interventions.replaced(given, 1, 0, "removed")(tokens), atol=1e-6)
    assert np.abs(found - before).max() > 1e-3


@pytest.mark.slow
def test_a_large_penalty_closes_all_gates_and_none_leaves_them_open(monkeypatch):
    """Gates move by 0.1 a step at most, from 2 to below -ln 11."""
    monkeypatch.setattr(study, "GATE_ETA", 0.1)
    size = {"steps": 50, "settle": 3, "n_train": 200}
    without, none = study.adapted(model(), LANGUAGE, 10.0, 0, **size)
    assert not none.any() and not np.asarray(without.blocks[0].value).any()
    kept, every = study.adapted(model(), LANGUAGE, 0.0, 0, **size)
    assert every.all() and np.abs(np.asarray(kept.blocks[0].value) - model().blocks[0].value).max() > 1e-3
    again, _ = study.adapted(model(), LANGUAGE, 0.0, 0, **size)
    np.testing.assert_array_equal(again.blocks[1].value, kept.blocks[1].value)
    with pytest.raises(ValueError, match="`penalty` must be non-negative"):
        study.adapted(model(), LANGUAGE, -1.0, 0)


def test_the_nearest_head_is_that_of_the_map_whatever_the_order():
    rng = np.random.default_rng(1)
    before = xr.DataArray(rng.dirichlet(np.ones(5), size=(2, 3, 4)), dims=("layer", "head", "row", "position"))
    orders = np.array([[2, 0, 1], [0, 2, 1]])
    after = xr.concat([before[layer].isel(head=list(order)) for layer, order in enumerate(orders)], "layer") + 1e-4
    np.testing.assert_array_equal(study.nearest(before, after), orders)


def test_hypotheses_are_tested_on_these_numbers():
    place = np.ones((2, 3, 1, 2), dtype=bool)
    place[1, 0, 0, 0] = False  # of the head that is left
    place[1, :, 0, 1] = False  # of one that is not
    found = study.by_seed(runs(kept_place=place))
    np.testing.assert_allclose(found["H1"], 0.2)
    np.testing.assert_allclose(found["H2"], -1.0)
    np.testing.assert_allclose(found["H3"], (0.6 + 0.5) / 2 - 0.4)
    np.testing.assert_allclose(found["H4"], [1, 0, 0])
    gone = runs(left=np.array([True, True, False, False]).reshape(2, 1, 1, 2) & np.ones((2, 3, 1, 2), dtype=bool))
    assert np.isnan(study.by_seed(gone)["H4"]).all()  # one penalty leaves heads: nothing to compare
    np.testing.assert_allclose(study.by_seed(gone)["H3"], 0.6 - 0.4)


def test_the_figure_draws_means_and_claims_the_verdicts():
    rng = np.random.default_rng(0)
    some = runs()
    for name in ("accuracy", "fixed", "same"):
        some[name] = some[name] + 0.01 * rng.random((2, 3))
    some["cost"] = some["cost"] + 0.01 * xr.DataArray(rng.random((2, 3)), dims=("penalty", "seed"))
    some["share_after"] = some["share_after"] + xr.DataArray(0.01 * rng.random(3), dims="seed")
    place = xr.DataArray(rng.random((2, 3, 1, 2)) < 0.5, dims=some["left"].dims)
    some["kept_place"] = place
    figure, claims = drawn(study.FIGURES[0], some)
    assert "H1, at as many heads adapting keeps more" in claims and "supported" in claims
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    np.testing.assert_allclose(lines["the others adapt"].get_ydata(), some["accuracy"].mean("seed"))
    np.testing.assert_allclose(lines["the others adapt"].get_xdata(), [2, 1])
