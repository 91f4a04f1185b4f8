"""Ordinary transformers on Dyck: what is measured of them, and captions that say what their data show."""

import numpy as np
import pytest
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from yzflow_studies.ordinary_dyck import deep as deep_dyck
from yzflow_studies.ordinary_dyck import study

FIGURES = {entry.name: entry for entry in study.FIGURES}


@pytest.mark.slow
def test_dyck_experiment_measures_what_it_says(tmp_path, monkeypatch):
    deep = pytest.importorskip("yzflow_deep", reason="yzflow-deep is not installed")
    monkeypatch.setitem(deep_dyck.LENGTHS, "400-500", (40, 50))  # long ones take a minute to compile
    language = DyckLanguage(2, 2)
    size = {"steps": 4, "seeds": 3, "batch_size": 8, "n_test": 40, "store": tmp_path}
    runs = deep_dyck.trained(language, contrast_weight=0.1, **size)
    model = deep.model_at(runs.expand_dims("learning_rate"), seed=1)
    for name, span in deep_dyck.LENGTHS.items():
        prefixes = deep_dyck.open_prefixes(language, span, n=40)
        some = prefixes if span[1] < 100 else prefixes[:2]
        assert all(span[0] <= prefix.size <= span[1] and language.stack(prefix).size for prefix in prefixes)
        right = []
        for prefix in some[:8]:
            padded = np.append(language.n_brackets, prefix)
            logits = np.asarray(model(np.pad(padded, (0, span[1] + 1 - padded.size))))[prefix.size]
            right.append(logits[1::2].argmax() == language.stack(prefix)[-1])
        assert deep_dyck.closes_right(model, language, some[:8]).tolist() == right
        every = deep_dyck.closes_right(model, language, prefixes)
        assert float(runs["accuracy"].sel(seed=1, length=name)) == every.mean()
        hard = [one for one, prefix in zip(every, prefixes, strict=True) if language.brackets[prefix[-1]] in ")]"]
        assert 0 < len(hard) < len(prefixes)
        assert float(runs["accuracy_after_closing"].sel(seed=1, length=name)) == np.mean(hard)
    assert runs["attention"].sizes["row"] == dyck.probe_prefix(language).size + 1
    assert FIGURES["deep_dyck_attention"]({"none": runs}).axes
    three = FIGURES["deep_dyck_attention"]({"none": runs.isel(layer=[0, 1, 1])})
    assert three.get_suptitle().startswith("Last layer of 3-layer transformers")
    [checkpoint] = tmp_path.iterdir()
    written = checkpoint.read_bytes()
    table = study.table(rows=((2, 2, 2),), contrast_weight=0.1, **size)
    lengths = study.lengths(language=language, weights=(0.1,), kinds=("word",), **size)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [written]  # trained once
    np.testing.assert_array_equal(lengths["accuracy"].values.ravel(), runs["accuracy"].values.ravel())
    maps = runs["attention"].isel(probe=0, head=0, layer=1)
    for name, time in (("start", 0), ("variation", -1)):
        one, two, three = maps.isel(time=time).values.astype(float)
        pairs = [np.sum((a - b) ** 2) for a, b in ((one, two), (one, three), (two, three))]
        assert float(table[name].sel(layer=2).item()) == pytest.approx(np.mean(pairs), rel=1e-5)
    assert np.isnan(table["variation"].sel(layer=3)).all()
    assert FIGURES["deep_dyck_variation"](table).axes and FIGURES["deep_dyck_length"](lengths).axes
    assert FIGURES["deep_dyck_length"](lengths.assign_attrs(n_layers=3)).get_suptitle().startswith("3-layer")
    of_6 = deep_dyck.trained(language, norm="mixture", contrast_weight=0.1, **size)
    assert deep.model_at(of_6.expand_dims("learning_rate"), seed=1).architecture.norm == "mixture"
    assert len(list(tmp_path.iterdir())) == 2  # a run of its own


def test_accuracies_are_the_least_and_the_largest_of_all_layers():
    def run(*accuracy):
        return xr.Dataset(
            {"accuracy": (("seed", "length"), [[one, 0.1] for one in accuracy])},
            {"length": ["below 28", "400-500"], "time": [0, 20, 40]},
        )

    caption = FIGURES["deep_dyck_attention"].caption({"none": run(0.75, 0.5), "linear": run(0.934, 0.9)})
    assert "50% to 93% of short closing brackets are right after 40 steps." in caption


@pytest.mark.parametrize("sign", [1, -1])
def test_the_effect_of_the_regulariser_is_that_of_the_same_seeds(sign):
    without = np.array([0.3, 0.5, 0.7])
    change = sign * np.array([0.1, 0.2, 0.3])
    accuracy = np.zeros((1, 2, 3, 2))
    accuracy[0, 0, :, 1], accuracy[0, 1, :, 1] = without, without + change
    accuracy[..., 0] = 0.9
    runs = xr.Dataset(
        {"accuracy": (("kind", "contrast_weight", "seed", "length"), accuracy)},
        {"kind": ["word"], "contrast_weight": [0.0, 0.1], "length": ["below 28", "400-500"]},
    )
    half = 4.302652730 * 0.1 / np.sqrt(3)  # Student's t, two degrees of freedom
    expected = f"On prefixes of 400-500 brackets it changes accuracy by {sign * 0.2:+.3f} +- {half:.3f} (word, weight"
    assert expected in FIGURES["deep_dyck_length"].caption(runs)


def test_the_caption_counts_layers_above_random_rows():
    found = xr.Dataset(
        {
            "variation": (("setting", "layer"), [[9.0, 3.5, np.nan], [1.0, 9.0, 2.0]]),
            "standard_error": (("setting", "layer"), np.full((2, 3), 1.0)),
            "half": (("setting", "layer"), np.full((2, 3), 3.2)),
            "random": ("setting", [3.0, 4.0]),
        },
        {"layer": [1, 2, 3]},
    )
    caption = FIGURES["deep_dyck_variation"].caption(found)
    assert "Of 3 layers above the first 2 vary more than random rows, 1 throughout a 95%" in caption
