"""Galleries of attention maps: where a stack-like map looks, jackknife numbers, what is drawn and claimed."""

import numpy as np
import pytest
import xarray as xr
from figure_rules import labelled
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from yzflow_studies.dyck_embeddings.study import random_variation, variation
from yzflow_studies.dyck_galleries import study
from yzflow_studies.precise_dyck import study as interventions

LANGUAGE = DyckLanguage(2, 4)
FIGURES = {entry.name: entry for entry in study.FIGURES}


def maps(seeds, rows, rng):
    """Random causal maps: (seeds, rows, rows)."""
    found = np.zeros((seeds, rows, rows))
    for row in range(rows):
        found[:, row, : row + 1] = rng.dirichlet(np.ones(row + 1), size=seeds)
    return found


def heads(share, lost, rng):
    """As `study.heads` returns it, from shares and costs of (seed, layer, head)."""
    share, dims = np.asarray(share), ("seed", "layer", "head")
    attention = maps(share.size, 17, rng).reshape(*share.shape, 17, 17)
    data = {"stack_share": (dims, share), "attention": ((*dims, "row", "position"), attention)}
    data["lost"] = ((*dims, "way"), np.repeat(np.asarray(lost)[..., None], 3, axis=-1))
    data["accuracy"] = ("seed", np.full(len(share), 0.99))
    ways = {"way": list(interventions.WAYS), "seed": 7 + np.arange(len(share)), "layer": 1 + np.arange(share.shape[1])}
    return xr.Dataset(data, ways)


def standards(rng, positions=study.POSITIONS, seeds=4):
    data = {
        "attention": (
            ("positions", "seed", "row", "position"),
            np.stack([maps(seeds, 17, rng) for _ in positions]),
        ),
        "longer": (
            ("positions", "seed", "longer_row", "longer_position"),
            np.stack([maps(seeds, 27, rng) for _ in positions]),
        ),
        "accuracy": (("positions", "seed"), np.full((len(positions), seeds), 0.9)),
    }
    return xr.Dataset(data, {"positions": list(positions), "seed": np.arange(seeds)})


def test_the_last_unmatched_bracket_by_hand():
    # ( [ ] ( ) ) [ : positions 1 to 7
    assert study.last_unmatched([0, 2, 3, 0, 1, 1, 2]) == [(1, 1), (2, 2), (3, 1), (4, 4), (5, 1), (7, 7)]
    for prefix in LANGUAGE.sample_sequences(20, max_length=30, rng=0):
        cells = dict(study.last_unmatched(prefix))
        for row in range(1, prefix.size + 1):
            stack = LANGUAGE.stack(prefix[:row])
            assert (row in cells) == (stack.size > 0)
            if stack.size:
                assert prefix[cells[row] - 1] == 2 * stack[-1] and cells[row] <= row


def test_the_longer_prefix_is_one_of_the_language_and_no_longer_than_those_of_training():
    prefix = study.longer_prefix(LANGUAGE)
    LANGUAGE.encode(prefix)
    assert dyck.probe_prefix(LANGUAGE).size < prefix.size < dyck.LENGTHS["below 28"][1]


def test_pseudo_values_have_the_mean_and_the_error_of_the_jackknife():
    some = xr.DataArray(maps(6, 9, np.random.default_rng(0)), dims=("seed", "row", "position"))
    found, values, unit = variation(some), study.pseudo_values(some), random_variation(9)
    assert values.mean() * unit == pytest.approx(float(found["mean"]))
    assert values.std(ddof=1) / np.sqrt(6) * unit == pytest.approx(float(found["standard_error"]))


def test_verdicts_follow_what_was_made(monkeypatch):
    """Standard maps that are one-hot and differ, layers that are all alike: H3 and H4 hold, H5 does not."""
    rng = np.random.default_rng(1)
    some = standards(rng, seeds=8)
    far = np.zeros((2, 8, 17, 17))
    for seed in range(8):
        far[:, seed, np.arange(17), rng.integers(np.arange(1, 18))] = 1
    some["attention"] = some["attention"].copy(data=far)
    alike = maps(1, 17, rng)[0] + np.zeros((3, 8, 17, 17))
    behind = xr.Dataset(
        {"attention": (("embedding", "seed", "row", "position"), alike)},
        {"embedding": list(dyck.EMBEDDINGS), "seed": np.arange(8)},
    )
    idle, used = heads([[[0.9, 0.1]]], [[[0.0, 0.3]]], rng), heads([[[0.9, 0.1]]], [[[0.3, 0.0]]], rng)
    found = study.verdicts(some, behind, idle)
    assert found == {"H1": "found", "H2": "not found", "H3": "supported", "H4": "supported", "H5": "refuted"}
    assert [study.verdicts(some, behind, used)[name] for name in ("H1", "H2")] == ["not found", "found"]


def test_the_example_has_the_most_stack_like_idle_map_and_titles_say_which_are_used():
    share = [[[0.9, 0.2]], [[0.4, 0.1]], [[0.6, 0.3]]]
    lost = [[[0.3, 0.0]], [[0.002, 0.2]], [[0.0, 0.2]]]
    found = heads(share, lost, np.random.default_rng(2))
    labelled(FIGURES["dyck_misleading_maps"], found)
    figure = FIGURES["dyck_misleading_maps"].draw(found)
    assert "seed 9" in figure.get_suptitle() and ", idle" in figure.axes[0].get_title()
    figure = FIGURES["dyck_mixed_maps"].draw(found)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert [title.split("\n")[1] for title in titles[:3]] == [
        "stack 0.90, costs 0.300, used",
        "stack 0.60, costs 0.000, idle",
        "stack 0.40, costs 0.002",
    ]
    assert "of these 1 are idle, at a cost below 0.01, and 1 matter" in FIGURES["dyck_mixed_maps"].claims(found)


def test_maps_of_prefixes_are_those_of_the_data_with_boxes_at_the_stack():
    rng = np.random.default_rng(3)
    some = standards(rng)
    for name, rows in (("dyck_prefix_maps", 17), ("dyck_longer_maps", 27)):
        figure = FIGURES[name].draw(some)
        shown = figure.axes[5].get_images()[0].get_array()
        wanted = some["attention" if rows == 17 else "longer"].sel(positions="linear", seed=1).values
        np.testing.assert_allclose(shown[np.tri(rows, dtype=bool)], wanted[np.tri(rows, dtype=bool)])
        prefix = dyck.probe_prefix(LANGUAGE) if rows == 17 else study.longer_prefix(LANGUAGE)
        assert len(figure.axes[5].patches) == len(study.last_unmatched(prefix))
    first, own = study.places(some["attention"].sel(positions="none"))
    hand = some["attention"].sel(positions="none", seed=2).values
    assert first[2] == pytest.approx(np.mean([hand[row, 0] for row in range(1, 17)]))
    assert own[2] == pytest.approx(np.mean([hand[row, row] for row in range(1, 17)]))
    assert "With linear positions maps vary" in FIGURES["dyck_prefix_maps"].claims(some)


def test_figures_4_to_9_of_the_paper_have_one_gallery_each():
    numbers = [number for entry in study.FIGURES for number in entry.numbers]
    assert numbers == [4, 5, 6, 7, 8, 9] and all(entry.compute for entry in study.FIGURES)


@pytest.mark.slow
def test_runs_are_those_of_the_models_and_are_kept(tmp_path, monkeypatch):
    deep = pytest.importorskip("yzflow_deep", reason="yzflow-deep is not installed")
    monkeypatch.setitem(study.deep.LENGTHS, "400-500", (40, 50))  # long ones take a minute to compile
    some = study.standard(positions=["none"], seeds=[1], steps=3, store=tmp_path)
    runs = study.deep.trained(LANGUAGE, kind="prefix", steps=3, seeds=[1])
    model = deep.model_at(runs.expand_dims("learning_rate"), seed=1)
    wanted = model.attention(np.append(4, study.longer_prefix(LANGUAGE)))[1, 0]
    np.testing.assert_allclose(some["longer"].squeeze(), wanted, atol=1e-6)
    np.testing.assert_allclose(
        some["attention"].squeeze(), runs["attention"].isel(seed=0, time=-1, probe=0, layer=1, head=0), atol=1e-6
    )
    monkeypatch.setattr("yzflow.sweeps.sweep._run", None)  # nothing is trained again
    xr.testing.assert_equal(study.standard(positions=["none"], seeds=[1], steps=3, store=tmp_path), some)


def broken(configuration, seed):
    raise ValueError("no such thing")


def test_a_run_that_fails_is_no_figure(tmp_path):
    with pytest.raises(RuntimeError, match=r"a run of broken failed: .*no such thing"), pytest.warns(UserWarning):
        study.swept(study.Task("broken", broken, keys=("a",), threads=True), {"a": [1]}, [0], tmp_path, False)
