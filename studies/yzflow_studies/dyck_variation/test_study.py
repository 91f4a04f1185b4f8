"""Variation and its error by leaving seeds out, the baseline of shuffled rows, and verdicts on made-up maps."""

import itertools

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from figure_rules import drawn
from yzflow_bounded_dyck import DyckLanguage

from yzflow_studies.dyck_embeddings.study import random_variation
from yzflow_studies.dyck_variation import study

NAMES = [study.BASE.name, *(setting.name for setting in study.TRAINED)]
ROWS = 5


def causal(rng, seeds, sharp=1.0):
    """Causal attention maps with Dirichlet rows: (seeds, rows, positions)."""
    found = np.zeros((seeds, ROWS, ROWS))
    for row in range(ROWS):
        found[:, row, : row + 1] = rng.dirichlet(np.full(row + 1, sharp), size=seeds)
    return found


@pytest.fixture(scope="module")
def runs():
    """Made-up runs: near even rows everywhere, much sharper ones at the base and with 2000 steps."""
    rng = np.random.default_rng(5)
    cells = []
    for number, name in enumerate(NAMES):
        sharp = 0.01 if name in (study.BASE.name, "2000 steps") else 4.0
        seeds = np.arange(12) + 20 * number
        second = [causal(rng, 12, sharp) for _ in range(2)]
        attention = np.stack([np.stack([causal(rng, 12), second[probe]], axis=1) for probe in range(2)], axis=1)
        cells.append(
            xr.Dataset(
                {
                    "attention": (("seed", "time", "probe", "layer", "row", "position"), attention[:, None]),
                    "accuracy": (("seed", "closing"), np.ones((12, 2))),
                },
                {"seed": seeds, "time": ["end"], "layer": [1, 2], "closing": ["all", "after closing"]},
            )
        )
    return xr.concat(cells, "setting", join="outer").assign_coords(setting=NAMES)


def test_own_baseline_is_the_mean_over_all_shuffles_of_the_rows():
    maps = causal(np.random.default_rng(3), 2)
    expected = 0.0
    for row in range(ROWS):
        one, other = (maps[seed, row, : row + 1] for seed in range(2))
        expected += np.mean(
            [np.sum((one - other[list(order)]) ** 2) for order in itertools.permutations(range(row + 1))]
        )
    np.testing.assert_allclose(study.own_random(maps)[0, 1], expected, rtol=1e-12)


def test_trained_factors_are_tested_as_by_welch(runs, monkeypatch):
    """With means of independent numbers in the place of variations, p and interval are SciPy's."""
    rng = np.random.default_rng(6)
    values = {name: rng.normal(size=12) for name in NAMES}
    numbers = iter([values[study.BASE.name], *(values[name] for name in NAMES[1:])])

    def of_numbers(_):
        some = next(numbers)
        return some.mean(), some.std(ddof=1) / np.sqrt(12)

    monkeypatch.setattr(study, "attention_variation", of_numbers)
    for row in study.effects(runs)[: len(study.TRAINED)]:
        one, base = values[row["factor"]], values[study.BASE.name]
        found = scipy.stats.ttest_ind(one, base, equal_var=False)
        limits = found.confidence_interval(0.95)
        np.testing.assert_allclose(row["effect"]["p"], found.pvalue)
        effect = row["effect"]
        np.testing.assert_allclose([effect["mean"] - effect["half"], effect["mean"] + effect["half"]], limits)


def test_verdicts_on_maps_whose_answer_is_known(runs):
    rows = {row["factor"]: row for row in study.effects(runs)}
    assert list(rows) == list(study.FACTORS)
    for setting in study.TRAINED:
        same = setting.name == "2000 steps"
        assert rows[setting.name]["verdict"] == ("open" if same else "closes")
        assert same or 0.9 < rows[setting.name]["share"] < 2.0
    assert rows["mean of both layers"]["effect"]["mean"] < 0 and rows["word of pure nests"]["verdict"] == "open"
    first, second = (study.maps(runs, study.BASE.name, layer=layer) for layer in (1, 2))
    mean = np.mean([study.attention_variation(some)[0] for some in (first, second)])
    np.testing.assert_allclose(rows["mean of both layers"]["variation"]["mean"], mean)


def test_a_rise_widens_and_a_fall_that_stays_high_lessens(runs):
    swapped = runs.assign_coords(setting=["width 64", study.BASE.name, *NAMES[2:]]).sel(setting=NAMES)
    assert study.effects(swapped)[0]["verdict"] == "widens"
    halved = runs.copy(deep=True)
    rng = np.random.default_rng(8)
    cell = halved["attention"].sel(setting="width 64", layer=2)
    cell[{"seed": slice(12, 24), "probe": 0, "time": 0}] = causal(rng, 12, 0.15)
    halved["attention"].loc[{"setting": "width 64", "layer": 2}] = cell
    assert study.effects(halved)[0]["verdict"] == "lessens"


def test_sharp_random_rows_have_the_variation_of_their_own_shuffles(runs):
    """Random rows of any sharpness are as far apart as shuffled ones: a 95% interval, at a fixed seed."""
    found = study.sharpness(runs, study.BASE.name)
    assert abs(found["mean"]) < found["half"] and found["own"] > 1.5 * random_variation(ROWS)
    np.testing.assert_allclose(found["variation"] - found["own"], found["mean"])


def test_both_probes_hold_every_bracket_at_every_depth():
    language = DyckLanguage(2, 4)
    probes = study.probes(language)
    assert (probes[:, 0] == language.n_brackets).all() and (probes[0] != probes[1]).any()
    for probe in probes:
        states = language.state_sequence(probe[1:])
        assert np.array_equal(np.sort(states), np.arange(language.n_states))
    assert [int(x) for x in probes[1, 1:9]] == [0] * 4 + [1] * 4


def test_the_figure_draws_variations_and_claims_the_verdicts(runs):
    figure, claims = drawn(study.FIGURES[0], runs)
    rows = study.effects(runs)
    assert all(f"{row['factor']}: " in claims and f"({row['verdict']})" in claims for row in rows)
    shown = figure.axes[0].containers[0][0].get_xdata(orig=False)
    np.testing.assert_allclose(shown[1:], [row["variation"]["mean"] for row in rows])
    np.testing.assert_allclose(
        figure.axes[1].containers[0][0].get_xdata(orig=False), [row["effect"]["mean"] for row in rows]
    )


@pytest.mark.slow
def test_a_start_at_gpt2_s_scale_and_runs_that_go_on(tmp_path):
    pytest.importorskip("jax", reason="yzflow-deep is not installed")
    import yzflow_deep as deep

    language = DyckLanguage(2, 3)
    shape = study.architecture(study.VariationSetting("x", width=64), language)
    start, usual = study.scaled_start(shape, 0.02, 3), deep.Transformer(shape, 3)
    for name in ("query", "value", "output"):
        np.testing.assert_allclose(np.std(getattr(start.blocks[1], name)), 0.02, rtol=0.05)
    np.testing.assert_allclose(np.std(start.blocks[0].down[0]), 0.02, rtol=0.05)
    np.testing.assert_array_equal(start.embedding, usual.embedding)
    few = study.VariationSetting("few", steps=6, n_train=200, scale=0.02)
    size = {"language": language, "n_test": 30, "batch_size": 4, "store": tmp_path}
    one = study.trained(few, [1, 2], **size)
    assert len(list(tmp_path.glob("few-6-*.npz"))) == 2
    xr.testing.assert_identical(study.trained(few, [1, 2], **size), one)
    assert float(abs(one["attention"].sel(time="end") - one["attention"].sel(time="start")).max()) > 0
