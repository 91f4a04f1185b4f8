"""Training on words and on prefixes beside runs by hand, and what is said and drawn of the runs."""

from functools import partial

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from yzflow_studies.words_and_prefixes import study, values, words
from yzflow_studies.words_and_prefixes.ranks import rank_correlation
from yzflow_studies.words_and_prefixes.tasks import DYCK_WORDS

FIGURES = {entry.name: entry for entry in study.FIGURES}


LANGUAGE = DyckLanguage(2, 3)


SMALL = {"steps": 5, "n_train": 300, "n_test": 400, "max_depth": 3}


def test_a_cell_is_the_experiment_on_its_own_data(tmp_path):
    """Cell by cell the numbers of `training.trained` on words and on prefixes, and those of the trained layers."""
    runs = study.trained(seeds=[1, 2], contrast_weight=[0.0, 2.0], store=tmp_path, **SMALL)
    assert dict(runs["violation"].sizes) == {"kind": 2, "contrast_weight": 2, "seed": 2}
    layers = []
    for kind in words.KINDS:
        samples = words.data(LANGUAGE, kind, n_train=300, n_test=400)
        ours = dyck.trained(
            scale=[0.1], contrast_weight=[0.0, 2.0], seeds=[1, 2], steps=5, language=LANGUAGE, samples=samples,
            also=lambda layer: layers.append(layer) or {"number": len(layers)}, threads=1,
        )  # fmt: skip
        for name in ("accuracy", "predicted", "violation", "residual", "loss"):
            one = ours[name].isel(embedding=0, scale=0, eta=0).drop_vars(["embedding", "scale", "eta"])
            np.testing.assert_array_equal(runs[name].sel(kind=kind).transpose(*one.dims), one)
    np.testing.assert_array_equal(ours["number"].values.ravel(), [5, 6, 7, 8])
    effects = [words.pair_effect(words.answers_of_layer(layer, LANGUAGE), LANGUAGE) for layer in layers]
    np.testing.assert_allclose(runs["pair_effect"].values.ravel(), effects, rtol=1e-12)
    assert not np.array_equal(runs["loss"].sel(kind="word"), runs["loss"].sel(kind="prefix"))


def test_a_data_seed_draws_other_words_and_the_first_one_leaves_runs_what_they_were(tmp_path):
    """Stores that were kept before there was a data seed hold the runs of the data seed 0."""
    settings = {"kind": "word", "data_seed": 0}
    assert DYCK_WORDS.identity(settings, 1) == DYCK_WORDS.identity({"kind": "word"}, 1)
    assert "data_seed" not in DYCK_WORDS.identity(settings, 1)["configuration"]
    options = {"kinds": ["word"], "contrast_weight": [0.0], "seeds": [1], "store": tmp_path, **SMALL}
    first, other = (study.trained(data_seed=number, **options) for number in (0, 3))
    xr.testing.assert_equal(first, study.trained(**options))
    samples = words.data(LANGUAGE, "word", n_train=300, n_test=400, seed=3)
    ours = dyck.trained(scale=[0.1], seeds=[1], steps=5, language=LANGUAGE, samples=samples, threads=1)
    assert float(other["loss"].squeeze()) == float(ours["loss"].squeeze()) != float(first["loss"].squeeze())


@pytest.mark.slow
def test_a_standard_transformer_is_measured_by_its_answers(tmp_path, monkeypatch):
    deep = pytest.importorskip("yzflow_deep")
    from yzflow_studies.ordinary_dyck import deep as transformers

    for lengths in (dyck.LENGTHS, transformers.LENGTHS):
        monkeypatch.setitem(lengths, words.LONG, (40, 50))  # long ones take a minute to compile
    runs = study.trained(
        "standard", kinds=["word"], contrast_weight=[0.0], seeds=[3], store=tmp_path, steps=2, batch_size=4,
        n_closing=8, max_depth=2,
    )  # fmt: skip
    language = DyckLanguage(2, 2)
    same = transformers.trained(language, seeds=[3], steps=2, batch_size=4, n_test=20)
    model = deep.model_at(same.expand_dims("learning_rate"), seed=3)

    def answers(prefixes):
        return np.array([np.asarray(model(np.append(language.n_brackets, one)))[-1, 1::2] for one in prefixes])

    assert runs["pair_effect"].item() == pytest.approx(words.pair_effect(answers, language), rel=1e-3)
    below = runs["accuracy"].sel(length="below 28").squeeze(drop=True)
    drawn_ones = transformers.open_prefixes(language, (1, 27), n=10_000)
    closing = [prefix for prefix in drawn_ones if prefix[-1] % 2]
    assert float(below.sel(query="close")) == transformers.closes_right(model, language, closing[:8]).mean()
    share = len(closing) / len(drawn_ones)
    mixed = (1 - share) * below.sel(query="open") + share * below.sel(query="close")
    assert float(below.sel(query="all")) == pytest.approx(float(mixed))
    assert "violation" not in runs and study.imbalance(runs).equals(runs["pair_effect"])


def _made_up(sign=-1.0, seeds=12):
    """Runs whose violation orders words by ``sign`` and prefixes not, and whose regulariser adds 0.1 on words."""
    rng = np.random.default_rng(1)
    dims, shape = ("kind", "contrast_weight", "seed"), (2, 2, seeds)
    long = 0.6 + 0.02 * rng.normal(size=shape)
    long[0, 1] += 0.1
    violation = np.exp(np.where(np.arange(2)[:, None, None] == 0, sign * 10 * long, rng.normal(size=shape)))
    accuracy = np.ones((*shape, 2, 3))
    accuracy[..., 1, 1] = long
    coordinates = {
        "kind": ["word", "prefix"],
        "contrast_weight": [0.0, 1.0],
        "seed": np.arange(seeds),
        "length": ["below 28", words.LONG],
        "query": list(dyck.QUERIES),
    }
    variables = {
        "accuracy": ((*dims, "length", "query"), accuracy),
        "predicted": ((*dims, "length", "query"), accuracy - 0.01),
        "violation": (dims, violation),
        "pair_effect": (dims, violation),
        "behind_mean_word": (dims, long),
    }
    return xr.Dataset(variables, coordinates, {"architecture": "minimal"})


def test_claims_are_made_from_the_runs():
    said = study.claims(_made_up())
    on_words, on_prefixes = said.split("Trained on prefixes")
    assert "negative at weight 0 and 1" in on_words and "no interval excludes zero" in on_prefixes
    assert "at weight 1 helps: +0.095 +-" in on_words and "neither helps nor harms" in on_prefixes
    assert "mean prefix is off by 0.010 on average and 0.010 at most" in on_words
    assert "positive at weight 0 and 1" in study.claims(_made_up(sign=1.0))
    cells = {(cell.kind, cell.weight): cell for cell in study.summary(_made_up())}
    assert cells["word", 1.0].violation_rank.value == -1 and cells["word", 1.0].drift_rank.value == 1
    assert cells["word", 0.0].gain == (0, 0) and cells["word", 0.0].short == (1, 0)


def test_a_replication_has_an_interval_over_draws_of_data(monkeypatch):
    """A made-up order on the first draw, and none on the others."""
    rng = np.random.default_rng(4)
    draws = {number: _made_up(sign=-1.0) if number == 0 else _made_up() for number in range(3)}
    for number in (1, 2):
        draws[number]["violation"] = draws[number]["violation"].copy(data=rng.random((2, 2, 12)))
    monkeypatch.setattr(
        values,
        "trained",
        lambda first, last, weights, data_seed, **_: draws[data_seed].isel(kind=[0], contrast_weight=[0]),
    )
    for name in ("bootstrap_limits", "permutation_p"):
        monkeypatch.setattr(values, name, partial(getattr(values, name), resamples=200))
    found = values.replicated([[0, 0, 11], [1, 0, 11], [2, 0, 11]])
    ranks = [row["rank"]["value"] for row in found["rows"]]
    for row in found["rows"]:
        some = draws[row["data_seed"]].sel(kind="word", contrast_weight=0)
        assert row["rank"]["value"] == rank_correlation(some["violation"], study.long_accuracy(some)).value
    limits = scipy.stats.t.interval(0.95, 2, np.mean(ranks), scipy.stats.sem(ranks))
    record = found["replicated"]
    np.testing.assert_allclose([record["mean"] - record["half"], record["mean"] + record["half"]], limits)
    assert ranks[0] == -1 and record["data_seeds"] == [0, 1, 2] and record["seeds"] == 36
    assert found["others"] == 2 and found["drift"]["mean"] == 1


@pytest.mark.parametrize("name", ["dyck_words", "deep_dyck_words"])
def test_figures_show_the_runs_side_by_side(name):
    runs = _made_up()
    if name == "deep_dyck_words":
        runs = runs.drop_vars(["violation", "predicted"]).assign_attrs(architecture="standard")
    figure = FIGURES[name](runs)
    figure.draw_without_rendering()
    top, bottom = np.reshape(figure.axes, (2, 2))
    measured = study.long_accuracy(runs)
    for row, shown in ((top, study.imbalance(runs)), (bottom, study.from_drift(runs))):
        for axes, kind in zip(row, words.KINDS, strict=True):
            at = {"kind": kind, "contrast_weight": 1.0}
            expected = np.column_stack([shown.sel(at), measured.sel(at)])
            np.testing.assert_allclose(axes.collections[1].get_offsets(), expected)
            assert axes.get_xlabel() and str(rank_correlation(shown.sel(at), measured.sel(at))) in axes.get_title()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: study.trained("thin"), "`architecture` must be one of 'minimal', 'standard'"),
        (lambda: study.trained("standard", scale=1.0), "`scale` must be left out for the standard architecture"),
        (lambda: study.trained(n_closing=3), "`n_closing` must be left out for the minimal architecture"),
        (lambda: study.trained(kinds=["text"]), "`kind` must be one of 'word', 'prefix'"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
