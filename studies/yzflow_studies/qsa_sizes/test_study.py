"""Measures of attention by another route, the perceptron's gradient, verdicts, and what the figure draws."""

import math

import numpy as np
import pytest
import xarray as xr
from figure_rules import drawn
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks

from yzflow_studies.qsa_sizes import runs, study


def test_measures_of_a_construction_and_of_even_attention():
    """Random keys with certificates, at the scale of an error eps; and scores that are all equal."""
    n, q, m, eps = 30, 3, 200, 1e-3
    keys = averaging.random_keys(n, m, rng=np.random.default_rng(0))
    sets = tasks.random_subsets(n, q, size=20, rng=1)
    queries = np.array([averaging.certificate(keys, y).query for y in sets])
    found = runs.measured(averaging.temperature(n_tokens=n, q=q, error=eps) * queries, keys, sets)
    assert found["found"] == 1 and found["distance"] <= found["largest_distance"] <= eps
    assert runs.certified(keys, sets) == 1 and runs.certified(keys[:, :3], sets) == 0
    even = runs.measured(0 * queries, keys, sets)
    assert even["found"] == 0 and even["distance"] == pytest.approx(2 * (n - q) / n)
    wrong = runs.measured(-queries, keys, sets)
    assert wrong["found"] == 0 and wrong["distance"] > even["distance"]


def test_one_member_below_another_token_is_not_found():
    key, sets = np.eye(4), np.array([[0, 1]])
    for score, share in ((2.0, 1.0), (0.5, 0.0)):
        assert runs.measured(np.array([[3.0, score, 1.0, 0.0]]), key, sets)["found"] == share


def test_recorded_steps():
    times = runs.recorded(5000)
    assert times[0] == 0 and times[-1] == 5000 and (np.diff(times) > 0).all() and not (times % 25).any()
    with pytest.raises(ValueError, match="`steps` must be a multiple of 25, but got 30"):
        runs.recorded(30)
    with pytest.raises(ValueError, match="`query` must be one of"):
        runs.trained("cubic", 9, 2, dimension=3, steps=25)


@pytest.mark.slow
def test_a_linear_query_learns_from_n_less_one_on():
    """N = 12, q = 3: 11 dimensions are enough and 9 are not, by finding 18."""
    ends = {
        m: runs.trained("linear", 12, 3, dimension=m, steps=1500, seed=1).isel(time=-1)["largest_distance"].item()
        for m in (9, 11)
    }
    assert ends[11] < 0.1 < 0.3 < ends[9]


@pytest.mark.slow
def test_the_perceptron_s_loss_is_that_of_drawn_vectors_and_falls():
    from yzflow_studies.qsa_sizes import perceptron

    n, q, m, d = 9, 2, 4, 3
    rng = np.random.default_rng(0)
    weights = perceptron.start(n, m, 16, rng)
    sets = tasks.random_subsets(n, q, size=5, rng=rng)
    scores = perceptron.query(weights, sets, np) @ weights["key"].T
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    z = rng.standard_normal((200_000, n, d))
    z *= rng.random((len(z), n, 1)) ** (1 / d) / np.linalg.norm(z, axis=-1, keepdims=True)  # uniform in the ball
    errors = [
        np.square(np.einsum("l,bld->bd", a, z) - z[:, y].mean(axis=1)).sum(axis=1)
        for a, y in zip(shares, sets, strict=True)
    ]
    error = 5 * np.std(errors) / math.sqrt(len(z))  # a false alarm once in 10^6
    assert float(perceptron.loss(weights, sets, d)) == pytest.approx(np.mean(errors), abs=error)
    run = runs.trained("perceptron", n, q, dimension=6, steps=300, seed=2)["distance"]
    assert run[-1] < 0.5 * run[0]


def synthetic(large, small, sizes=study.SIZES):
    """Runs with these distances at the end of m = N - 1 and of every other m, of units of these N and q."""
    found = {}
    for name, cell in study.CELLS.items():
        n, _ = study.SIZES[cell.size]
        end = np.array([small if m == n - 1 else large for m in cell.dimensions])
        end = end * (0.8 if cell.query == "perceptron" else 1)
        values = end[:, None, None] * np.array([2.0, 1.0]) * (1 + 0.01 * np.arange(3)[:, None])
        names = ("dimension", "seed", "time")
        found[name] = xr.Dataset(
            {"distance": (names, values), "largest_distance": (names, values)},
            {"dimension": list(cell.dimensions), "seed": range(3), "time": [25.0, float(cell.steps)]},
            dict(zip(("n_tokens", "subset_size"), sizes[cell.size], strict=True)),
        )
    return found


def test_the_curves_and_the_title_are_of_the_sizes_that_are_drawn():
    left = study.qsa_sizes(synthetic(0.3, 0.02, {"small": (60, 5), "large": (90, 7)})).axes[0]
    assert left.get_title() == "N = 60, q = 5"
    upright = [line.get_xdata()[0] for line in left.get_lines() if list(line.get_ydata()) == [0, 1]]
    np.testing.assert_allclose(upright, [5 * math.log(60), 10 * math.log(60), 59])


def test_verdicts_follow_the_data():
    assert set(study.judged(synthetic(0.3, 0.02)).values()) == {"supported", "refuted"}
    assert study.judged(synthetic(0.3, 0.02))["H5"] == "refuted"
    assert {"H1", "H2", "H3", "H6", "H7"} == {
        name for name, said in study.judged(synthetic(0.02, 0.3)).items() if said == "refuted"
    }


def test_steps_needed_are_those_after_which_it_stays_below():
    run = xr.DataArray([1.0, 0.05, 0.2, 0.09, 0.01], dims="time", coords={"time": [0, 25, 50, 75, 100]})
    assert study.steps_needed(run) == 75 and math.isinf(study.steps_needed(run, 1e-3))
    assert study.steps_needed(run, 2.0) == 0


def test_the_figure_draws_each_seed_and_claims_the_verdicts():
    data = synthetic(0.3, 0.02)
    figure, claims = drawn(study.FIGURES[0], data)
    assert "H1, N = 100, q = 8: a linear query of m = N - 1 learns, on every set: supported." in claims
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    np.testing.assert_allclose(
        lines["linear, 5,000 steps"].get_ydata(),
        data["linear"]["distance"].isel(time=-1).transpose("dimension", "seed").values.ravel(),
    )
    right = {line.get_label(): line.get_ydata() for line in figure.axes[1].get_lines()}
    np.testing.assert_allclose(
        right["linear, m = 99"], data["linear"]["distance"].sel(dimension=99).mean("seed").isel(time=slice(1, None))
    )
