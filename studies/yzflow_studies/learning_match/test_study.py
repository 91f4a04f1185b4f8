"""Learning Match2 and Match3: models against the units of `dynamics`, measures, bounds, the task, figures."""

import math
import re

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import AttentionUnit, TensorAttentionUnit

import yzflow
from yzflow_studies.learning_match import cells, models, small_units, study
from yzflow_studies.learning_match import runs as experiment
from yzflow_studies.learning_match import tasks as tasks_of_sweeps

FIGURES = {entry.name: entry for entry in study.FIGURES}

Model = models.Model


def predicted(model, weights, x):
    return np.asarray(models.predictor(model)(weights, np.asarray(x, np.int32)), dtype=float)


@pytest.mark.parametrize("order", [2, 3])
def test_half_of_the_tokens_have_a_match(order):
    for n in (8, 16, 64):
        modulus = experiment.balanced_modulus(order, n)
        assert all(modulus % k for k in range(2, modulus))
        # Chances of a token other than 0, of numbers of sums that are taken to be independent.
        sums = n - 1 if order == 2 else 2 * (n - 1) + (n - 1) * (n - 2) / 2
        assert 1 - (1 - 1 / modulus) ** sums == pytest.approx(0.5, abs=0.05)
    x = np.random.default_rng(0).integers(modulus, size=(200, 64))
    assert experiment.matches(x, modulus, order).mean() == pytest.approx(0.5, abs=0.06)


@given(st.integers(2, 20), st.integers(1, 7), st.data())
def test_matches_with_one_other_token(modulus, n, data):
    x = np.array(data.draw(st.lists(st.integers(0, modulus - 1), min_size=n, max_size=n)))
    found = experiment.pair_matches(x, modulus)
    for i in range(n):
        some = any(
            (x[i] + x[j] + x[k]) % modulus == 0
            for j in range(n)
            for k in range(n)
            if len({i, j, k}) < 3  # the token and one other at most
        )
        assert found[i] == some
    assert not (found & ~tasks.match3(x, modulus)).any()


@given(st.integers(4, 15), st.integers(0, 5), st.integers(0, 2**16))
def test_hard_inputs_are_those_of_the_protocol(n, more, seed):
    modulus = 2 * ((n - 1) // 2) + 3 + more
    x, both = experiment.hard_inputs(n, modulus, size=6, rng=np.random.default_rng(seed))
    np.testing.assert_array_equal(tasks.match3(x, modulus)[:, 0], both)
    assert both.sum() == 3 and (x[:, 0] == modulus - 1).all()


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=30))
def test_area_counts_pairs(rows):
    score, target = np.array([a for a, _ in rows], float), np.array([b for _, b in rows])
    pairs = [(a, b) for a in score[target] for b in score[~target]]
    found = experiment.area(score, target)
    if pairs:
        assert found == pytest.approx(np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs]))
    else:
        assert math.isnan(found)


def test_baselines_are_what_their_guesses_lose():
    rng = np.random.default_rng(1)
    modulus, x = 47, rng.integers(47, size=(300, 8))
    target, pairs = tasks.match3(x, modulus), experiment.pair_matches(x, modulus)
    rate, rest = target.mean(), target[~pairs].mean()
    constant = experiment.measured(np.full(x.shape, np.log(rate / (1 - rate))), x, modulus, 3)
    assert constant["loss"] == pytest.approx(constant["constant_loss"], rel=1e-12)
    assert constant["balanced_accuracy"] == 0.5 and constant["area"] == constant["triple_area"] == 0.5
    known = experiment.measured(np.where(pairs, 40.0, np.log(rest / (1 - rest))), x, modulus, 3)
    assert known["loss"] == pytest.approx(known["pair_loss"], rel=1e-9)
    assert known["pair_loss"] < 0.8 * known["constant_loss"] and known["triple_area"] == 0.5
    right = experiment.measured(np.where(target, 9.0, -9.0), x, modulus, 3)
    assert right["accuracy"] == right["balanced_accuracy"] == right["area"] == right["triple_area"] == 1
    assert right["loss"] == pytest.approx(math.log1p(math.exp(-9)))
    wrong = experiment.measured(np.where(target, -9.0, 9.0), x, modulus, 3)
    assert wrong["accuracy"] == wrong["area"] == 0
    # Of Match2 nothing but pairs is asked.
    pairs_only = experiment.measured(np.zeros(x.shape), x, modulus, 2)
    assert pairs_only["pair_loss"] == pairs_only["constant_loss"]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "heads"), [("one layer", 2), ("third order", 1)])
def test_models_are_the_units_of_the_laboratory(kind, heads):
    """The same tables in a unit of `dynamics`, in float64, before the same last map."""
    model, rng = Model(kind, 5, 7, 3, heads), np.random.default_rng(2)
    weights, x = models.start(model, rng), rng.integers(7, size=(4, 5))
    rows = tasks.match_tokens(x)[..., 0].astype(int)

    def table(name, head=0):
        return lambda X: weights[name][head].astype(float)[X[..., 0].astype(int)]

    tokens = rows[..., None].astype(float)  # the blank is -1, the last row of a table
    if kind == "third order":
        unit = TensorAttentionUnit(
            table("query"), (table("key"), table("second_key")), (table("value"), table("second_value")),
            embedding_dim=3,
        )  # fmt: skip
        found = unit(tokens)[:, :-1]
    else:
        units = [
            AttentionUnit.from_maps(*(table(name, head) for name in ("query", "key", "value")), embedding_dim=3)
            for head in range(heads)
        ]
        found = np.concatenate([unit(tokens)[:, :-1] for unit in units], axis=-1)
    stream = np.concatenate([found, weights["token"][x]], axis=-1)
    last = weights["last"]
    hidden = np.maximum(stream @ last["in"] + last["bias"], 0) @ last["out"]
    expected = stream @ last["linear"] + last["constant"] + hidden[..., 0]
    np.testing.assert_allclose(predicted(model, weights, x), expected, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
def test_only_positions_tell_tokens_of_two_layers_apart():
    order = np.array([3, 0, 4, 1, 2])
    x = np.random.default_rng(3).integers(7, size=(4, 5))
    for positions in (False, True):
        model = Model("two layers", 5, 7, 4, 2, positions)
        weights = models.start(model, np.random.default_rng(4))
        same = np.allclose(predicted(model, weights, x[:, order]), predicted(model, weights, x)[:, order], atol=1e-4)
        assert same is not positions
        # A layer without values adds nothing that depends on other tokens.
        for layer in weights["layers"]:
            layer["value"] = np.zeros_like(layer["value"])
        other = x.copy()
        other[:, 1:] = (other[:, 1:] + 1) % 7
        np.testing.assert_allclose(predicted(model, weights, other)[:, 0], predicted(model, weights, x)[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "model", "make"),
    [
        (2, Model("one layer", 6, 11, 5, 2), averaging.match2),
        (3, Model("third order", 6, 11, 6, 1), averaging.match3_tensor),
    ],
)
def test_a_start_at_the_construction_is_the_construction(order, model, make):
    unit = make(n_tokens=6, modulus=11, error=0.02)
    weights = models.at_construction(model, unit, np.random.default_rng(0))
    x = tasks.random_match(6, 11, size=50, rng=1, order=order, planted=0.5)
    logits = predicted(model, weights, x)
    # Affine in the unit's output, with ln((1 - eta)/eta) on either side.
    slope = 2 * np.log(0.98 / 0.02) / 0.96
    np.testing.assert_allclose(logits, slope * (unit(x) - 0.5), atol=2e-3)
    assert (np.where(experiment.matches(x, 11, order), logits, -logits) >= np.log(49) - 2e-3).all()


def test_a_construction_must_fit():
    rng = np.random.default_rng(0)
    unit = averaging.match2(n_tokens=6, modulus=11, error=0.02)
    with pytest.raises(ValueError, match="`unit` must be one of the kind 'two layers'"):
        models.at_construction(Model("two layers", 6, 11, 4, 1), unit, rng)
    for model in (Model("one layer", 6, 13, 3, 1), Model("one layer", 7, 11, 3, 1), Model("one layer", 6, 11, 2, 1)):
        with pytest.raises(ValueError, match="`unit` must fit into"):
            models.at_construction(model, unit, rng)


def test_training_sees_no_input_of_the_test():
    inputs = experiment.Inputs(5, 7, np.random.default_rng(0))
    tested = {tuple(row) for row in inputs.test.tolist()}
    drawn = {tuple(row) for row in inputs.training(20_000).tolist()}
    # 7^5 inputs, of which 20,000 draws meet seven in ten: the test's would be among them.
    assert len(drawn) > 0.6 * 7**5 and not drawn & tested


@pytest.mark.slow
def test_pairs_are_learnt_and_a_construction_stays():
    """Match2 at N = 6, M = 7: Adam finds it from a random start, and keeps it from the construction."""
    run = experiment.trained("one layer", 2, 6, dimension=8, heads=1, steps=500, seed=3)
    share = (run["loss"] / run["constant_loss"]).values
    assert share[0] > 0.9 and share[-1] < 0.05 and run["area"][-1] > 0.99
    assert run.attrs["modulus"] == 7 and run["time"][-1] == 500 and np.isnan(run["hard_area"]).all()
    kept = experiment.trained("one layer", 2, 6, dimension=3, init="construction", steps=50, seed=3)
    assert kept["loss"].max() < 0.012 and kept["accuracy"].min() == 1


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"kind": ["three layers"]}, "`kind` must be one of 'one layer'"),
        ({"order": [4]}, "`order` must be"),
        ({"n_tokens": [4]}, "`n_tokens` must be at least 5, but got 4"),
        ({"learning_rate": [-0.1]}, "`learning_rate` must be positive, but got -0.1"),
        ({"layers": [2]}, "`grid` must"),
    ],
)
def test_a_grid_is_checked_before_it_runs(grid, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        yzflow.sweep(tasks_of_sweeps.MATCH_LEARNING, grid, store=tmp_path / "runs", progress=False)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="`steps` must be a multiple of 25, but got 30"):
        experiment.trained("one layer", 2, 6, dimension=2, steps=30)
    with pytest.raises(ValueError, match="`heads` must be 1 for the third-order unit, but got 2"):
        Model("third order", 6, 7, 2, 2)
    with pytest.raises(ValueError, match="`positions` must be False for 'one layer', but got True"):
        Model("one layer", 6, 7, 2, 2, True)
    with pytest.raises(ValueError, match="`cells` must be one of"):
        cells.learning(cells=("Match4",))


def test_messages_of_small_units_are_counted():
    for n, size, bits in ((3, 1, 1), (2, 2, 1), (2, 1, 2)):
        values = np.array(list(np.ndindex(*(2**bits,) * size)))
        sums = {tuple(np.zeros(size, int))}
        for _ in range(n):
            sums = {tuple(np.add(one, value)) for one in sums for value in values}
        assert len(sums) == small_units.messages(n, size, bits)
    assert small_units.least_errors(6, 1, 1) == 64 - 7 and small_units.least_errors(6, 3, 1) == 0


def test_inputs_of_small_units_are_those_of_the_protocol():
    x, target, modulus = small_units.inputs(3)
    assert x.shape == (64, 7) and modulus == 9
    np.testing.assert_array_equal(tasks.match3(x, modulus)[:, 0], target)
    assert target.sum() == 64 - 27


@pytest.mark.slow
def test_a_unit_of_too_few_bits_errs_and_a_larger_one_learns():
    found = small_units.small_units(value_dimensions=(1, 6), n=3, steps=1000, seeds=2)
    assert found["bound"].values.tolist() == [4, 0]
    assert (found["fewest"] >= found["bound"]).all() and (found["fewest"] <= found["errors"]).all()
    assert int(found["fewest"].sel(value_dimension=6).min()) == 0


def synthetic(level):
    """Runs whose loss is this share of the constant's and whose triples are ranked right with chance 1 - level/2."""
    cells = ["Match2, one layer", "Match3, one layer", "Match3, from the construction"]
    shape = (len(cells), 2, 3, 2)
    rng = np.random.default_rng(0)
    loss = np.broadcast_to(np.array([0.01, level, 0.002])[:, None, None, None] * 0.69, shape).copy()
    loss *= 1 + 0.01 * rng.standard_normal(shape)
    names = ("cell", "n_tokens", "seed", "time")
    return xr.Dataset(
        {
            "loss": (names, loss),
            "constant_loss": (names, np.full(shape, 0.69)),
            "pair_loss": (names, np.full(shape, 0.48)),
            "triple_area": (names, np.full(shape, 1 - level / 2)),
        },
        {"cell": cells, "n_tokens": [8, 64], "seed": [0, 1, 2], "time": [0.0, 50.0]},
        {"steps": 50},
    )


def test_the_caption_follows_the_data():
    entry = FIGURES["match_learning"]
    poor, good = entry.claims(synthetic(0.7)), entry.claims(synthetic(0.02))
    assert "Not learnt in these steps: Match3, one layer, m = 16, H = 3 (N = 8, 64)" in poor
    assert "Not learnt in these steps: none." in good and "0.990 +- 0.000" in good and "0.650 +- 0.000" in poor
    # (16 + 1) numbers of three heads at 24 bits against n = 31: computed, not said.
    assert "does not exclude the one layer for Match3 at these N: it can send (m + 1) H p = 1224 bits" in poor
    assert "31 are needed" in poor
    kept = "at a construction: {0} (Match3, from the construction, N = 8), {0} (Match3, from the construction, N = 64)."
    assert kept.format("0.002") in poor
    lost = synthetic(0.7)
    lost["loss"][2] = 0.5 * lost["constant_loss"][2]
    assert "at a construction: 0.500 (Match3, from the construction, N = 8)" in entry.claims(lost)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(cells.CELLS, "Match3, one layer", cells.TrainedUnit("one layer", 3, 1))
        patch.setattr("yzflow_studies.learning_match.study._SINGLE_BITS", 8)
        assert "The lower bound excludes the one layer" in entry.claims(synthetic(0.7))


@pytest.mark.slow
def test_figures_show_their_data():
    data = synthetic(0.7)
    figure = FIGURES["match_learning"](data)
    figure.draw_without_rendering()
    left, right = figure.axes[:2]
    drawn = {line.get_label(): np.asarray(line.get_ydata(), float) for line in left.get_lines()}
    np.testing.assert_allclose(drawn["Match3, pairs known"], [0.48 / 0.69] * 2)
    centres = [np.asarray(bars.lines[0].get_ydata(), float) for bars in left.containers]
    expected = (data["loss"] / data["constant_loss"]).isel(time=-1).mean("seed").values
    np.testing.assert_allclose(centres, expected)
    assert len(right.containers) == 2 and right.get_ylabel()
    runs = small_units.small_units(value_dimensions=(1, 2), n=2, steps=20, seeds=2)
    axes = FIGURES["match_small_units"](runs).axes[0]
    bound = next(line for line in axes.get_lines() if line.get_label() == "no unit has fewer")
    np.testing.assert_array_equal(bound.get_ydata(), [1, 0])
    said = FIGURES["match_small_units"].claims(runs)
    best = int(runs["fewest"].sel(value_dimension=1).min())
    assert re.search(rf"Excluded: d' = 1, at least 1 errors; the best run had {best}\.", said)
