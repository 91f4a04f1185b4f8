"""The bench: its file, its populations and models, scores and intervals, blind runs, and the figure."""

import numpy as np
import pytest
import scipy.stats
import watched_layers as layers
import xarray as xr
from driving import python
from figure_rules import drawn
from yzflow_watch import rivals
from yzflow_watch.recording import Recording

import yzflow as yz
from yzflow_studies.which_theory import drawing, study

GIVEN = {
    "classes": 3, "queries": 2, "distinct": 2, "common": 2, "common_share": 0.4, "decay": 0.5, "leak": 0.0,
    "weights": "falling",
}  # fmt: skip


def test_nulls_and_quantities_are_those_of_the_recorder():
    assert tuple(null.name for null in rivals.NULLS) == study.NULLS
    assert tuple(rivals.QUANTITIES) == study.QUANTITIES


def test_without_the_recorder_the_figure_is_listed_and_numbers_name_its_distribution():
    python(
        "import sys\n"
        "sys.modules['yzflow_watch'] = None\n"
        "from yzflow import studies\n"
        "room = studies.find('which_theory')\n"
        "assert room.figures\n"
        "try:\n"
        "    room.studies\n"
        "except ImportError as error:\n"
        "    assert 'comes with yzflow-watch: pip install -e tools/watch' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )


# The file


def test_the_file_is_what_its_seed_draws_and_no_byte_is_another(tmp_path):
    settings = drawing.settings()
    assert drawing.written(drawing.draw()) == drawing.FILE.read_text()
    assert len(settings) == 240 and sum(not one["text"] for one in settings) == 200
    other = tmp_path / "settings.json"
    other.write_text(drawing.FILE.read_text().replace('"steps": 400', '"steps": 401', 1))
    with pytest.raises(ValueError, match="`path` must be the file whose SHA-256 is b177f8549bd5"):
        drawing.settings(other)


# Populations and models


@pytest.fixture
def models():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from yzflow_studies.which_theory import models

    return models


def test_frequencies_of_a_population_by_hand(models):
    """Two common tokens with 0.4 (2/3, 1/3), two of each class's own with 0.6 likewise; a leak mixes classes."""
    found = models.population(GIVEN)
    shares = found.probabilities.toarray()
    np.testing.assert_allclose(shares[1], [0.8 / 3, 0.4 / 3, 0, 0, 0.4, 0.2, 0, 0])
    np.testing.assert_allclose(found.class_weights, [6 / 11, 3 / 11, 2 / 11])
    assert list(found.query) == [0, 1, 0]
    leaked = models.population(GIVEN | {"leak": 0.3}).probabilities.toarray()
    np.testing.assert_allclose(leaked[1], [0.8 / 3, 0.4 / 3, 0.04, 0.02, 0.32, 0.16, 0.04, 0.02])


def test_sequences_have_the_frequencies_and_shuffled_ones_no_connection(models):
    """Chi-squared over 4000 tokens and 3000 sequences: a false alarm once in 1e5 each."""
    source = models.Population(models.population(GIVEN), 9)
    tokens = source.draw(4000, np.random.default_rng(0))
    first, following = tokens[:, 0], tokens[:, -1]
    assert np.array_equal(tokens[:, -2] - source.n_tokens, source.query[following])
    seen = np.bincount(first[following == 0], minlength=8)
    expected = source.shares[0] * seen.sum()
    assert not seen[expected == 0].any()
    assert scipy.stats.chisquare(seen[expected > 0], expected[expected > 0]).pvalue > 1e-5
    apart = models.Population(models.population(GIVEN), 9, shuffled=True).draw(3000, np.random.default_rng(1))
    table = np.zeros((8, 3))
    np.add.at(table, (apart[:, 0], apart[:, -1]), 1)
    assert scipy.stats.chi2_contingency(table).pvalue > 1e-5
    related = np.zeros((8, 3))
    np.add.at(related, (first, following), 1)
    assert scipy.stats.chi2_contingency(related).pvalue < 1e-5  # the test can fail


def test_the_layer_is_the_paper_s(models):
    """Attention and logits beside those of the layer that `yzflow.sgd` trains."""
    import torch

    source = models.Population(models.population(GIVEN | {"vocabulary": 7}), 9)
    model = models.Layer(source, bias=0.3)
    rng = np.random.default_rng(2)
    z, y = rng.normal(size=tuple(model.z.shape)), rng.normal(size=tuple(model.y.shape))
    with torch.no_grad():
        model.z.copy_(torch.as_tensor(z))
        model.y.copy_(torch.as_tensor(y))
    other = layers.Trained(models.population(GIVEN | {"vocabulary": 7}), bias=0.3)
    other.layer = yz.Layer(z, y)
    tokens = source.draw(20, rng)[:, :-1]
    given = torch.as_tensor(tokens)
    found = models.attention_of_layer(model, given).detach().numpy()
    np.testing.assert_allclose(found, layers.attention(other, tokens), atol=1e-6)
    np.testing.assert_allclose(model(given).detach().numpy(), layers.logits(other, tokens), atol=1e-5)


def test_rates_of_embeddings_are_those_with_which_a_step_moves_z(models):
    """A small step along the gradient of one entry of Z moves it by eta_Z, in the mean over entries."""
    import torch

    torch.manual_seed(0)
    source = models.Population(models.population(GIVEN), 9)
    model, moved = models.Layer(source, width=16), []
    for q in range(source.n_queries):
        for token in range(source.n_tokens):
            model.zero_grad()
            model.matrices()[0][q, token].backward()
            moved.append(sum(float((one.grad**2).sum()) for one in (model.query, model.token)))
    assert model.rates(0.5)[1] == pytest.approx(0.5 * np.mean(moved), rel=1e-5)


# Scores


def random_scores(rng, recording):
    """Odds and outcomes of every quantity, with gaps."""
    data = recording.dataset
    sizes = {**data.sizes, "ahead": len(rivals.AHEAD)}
    given = {}
    for name, axes in rivals.QUANTITIES.items():
        values = rng.random([sizes[axis] for axis in axes])
        given[name] = np.where(rng.random(values.shape) < 0.2, np.nan, values)
    return rivals.said(recording, **given)


@pytest.fixture(scope="module")
def recording():
    return layers.watched(layers.Trained(layers.classes_inside(vocab_size=50)), steps=9, length=30).recording


def test_scores_are_those_of_the_report(recording):
    rng = np.random.default_rng(3)
    said, came = random_scores(rng, recording), random_scores(rng, recording)
    arrays = [{str(name): one.values for name, one in of.data_vars.items()} for of in (said, came)]
    wanted = rivals.score(said, came)
    np.testing.assert_allclose(
        study.briers(arrays[0], arrays[0], arrays[1]), [wanted[name] for name in rivals.QUANTITIES]
    )
    less = {name: np.full_like(values, np.nan) for name, values in arrays[0].items()}
    less["rises"].ravel()[:7] = 0.5
    found = study.briers(arrays[0], less, arrays[1])
    square = ((arrays[0]["rises"] - arrays[1]["rises"]) ** 2).ravel()[:7]
    assert found[0] == pytest.approx(np.nanmean(square)) and np.isnan(found[1:]).all()


def test_every_theory_is_scored_on_what_it_speaks_of(recording):
    setting = {"name": "x", "kind": "layer", "text": "", "optimizer": "SGD", "size": "small", "length": 30}
    scores = study.scored([setting], [recording])
    names = scores["theory"].values.tolist()
    assert tuple(names[-len(study.NULLS) :]) == study.NULLS and "JoMA" in names and len(set(names)) == len(names)
    same = scores["beside"].sel(theory="Scan and Snap", rival="Scan and Snap")
    np.testing.assert_array_equal(same.values, scores["brier"].sel(theory="Scan and Snap").values)
    assert scores["brier"].sel(theory="Adam's first step").isnull().all()  # says nothing of SGD
    past = recording.until(int(recording.steps[recording.steps <= 3][-1]))
    wanted = rivals.score(rivals.foreseen(rivals.NULLS[1], past), rivals.outcome(recording, past.steps[-1]))
    found = scores["brier"].sel(theory="frequent tokens gain", now="half")
    assert found.sel(quantity="rises") == pytest.approx(wanted["rises"])
    broken = recording.dataset.copy(deep=True)
    broken["loss"].values[-1] = np.nan
    again = study.scored([setting, setting], [Recording(broken), None])
    assert again["diverged"].values.tolist() == [True, False] and again["trained"].values.tolist() == [True, False]
    assert again["brier"].isnull().all()


def test_differences_by_hand():
    rng = np.random.default_rng(0)
    mine = rng.random(50)
    one = study.difference(mine, np.column_stack([mine + 0.1, mine + 0.3]))
    assert list(one[:3]) == pytest.approx([-0.1] * 3) and one.verdict == "wins"
    # The best null is that of the mean, not of each setting: two that are right in turn give a half.
    even = np.arange(50) % 2.0
    two = study.difference(np.full(50, 0.25), np.column_stack([even, 1 - even]))
    assert two.mean == pytest.approx(-0.25) and two.low == pytest.approx(-0.25)
    gaps = np.where(np.arange(50) < 10, np.nan, mine)
    assert study.difference(gaps, (mine - 0.2)[:, None]).n == 40
    assert study.difference(gaps, (mine - 0.2)[:, None]).verdict == "loses"
    assert study.difference(mine, np.full((50, 1), np.nan)).n == 0


def test_an_interval_holds_a_normal_mean_as_often_as_it_says():
    """Beside Student's interval of 200 normal differences: the same to a tenth of its length."""
    values = np.random.default_rng(5).normal(0.02, 1.0, 200)
    found = study.difference(values, np.zeros((200, 1)))
    half = scipy.stats.t.ppf(0.975, 199) * values.std(ddof=1) / np.sqrt(200)
    np.testing.assert_allclose([found.low, found.high], [values.mean() - half, values.mean() + half], atol=0.1 * half)
    assert found.verdict == "open"


def fake(shift, shuffle=0.0):
    """Scores of one theory and the nulls on 40 settings, half of them inside; the theory is off the null by a shift."""
    rng = np.random.default_rng(1)
    names = ["Scan and Snap", "finite sequences", "Adam's first step", *study.NULLS]
    quantities, sizes = list(rivals.QUANTITIES), (2, 40, len(study.NOWS))
    null = rng.random((*sizes, len(quantities)))
    brier = np.repeat(null[..., None, :], len(names), axis=3)
    brier[0, ..., 0, :] += shift
    brier[1, ..., 0, :] += shuffle
    beside = np.repeat(null[..., None, :], len(study.BESIDE), axis=3)[:, :, :, None] + np.zeros((len(names), 1, 1))
    beside[0, ..., study.BESIDE.index("Scan and Snap"), :] += shift
    whole = {"trained": True, "diverged": False}
    kinds = np.array(["paper's", "layer", "attention", "gpt2"] * 10)
    return xr.Dataset(
        {
            "brier": (("tokens", "setting", "now", "theory", "quantity"), brier),
            "beside": (("tokens", "setting", "now", "theory", "rival", "quantity"), beside),
            "inside": (("tokens", "setting", "now"), np.broadcast_to((kinds == "paper's")[:, None], sizes)),
            **{name: (("tokens", "setting"), np.full(sizes[:2], is_so)) for name, is_so in whole.items()},
        },
        {
            "tokens": list(study.TOKENS), "now": list(study.NOWS), "theory": names, "rival": list(study.BESIDE),
            "quantity": quantities, "kind": ("setting", kinds), "text": ("setting", ["", "sotu"] * 20),
            "optimizer": ("setting", ["SGD", "SGD", "Adam", "Adam"] * 10), "length": ("setting", [16] * 40),
        },
    )  # fmt: skip


@pytest.mark.parametrize(("shift", "verdicts"), [(-0.1, ("supported", "refuted")), (0.1, ("refuted", "supported"))])
def test_verdicts_say_on_which_side_a_theory_is(shift, verdicts):
    scores = fake(shift)
    found = {one.name: study.of_claim(one, scores) for one in study.CLAIMS}
    assert [found[name][1] for name in ("H1", "H4")] == list(verdicts)
    assert found["H1"][0].n == 10 and found["H4"][0].n == 20
    assert found["H1"][0].mean == pytest.approx(shift)
    # H6 is against Scan and Snap, and not against a null.
    assert found["H6"][0].mean == pytest.approx(-shift) and found["H6"][0].n == 10


def test_wins_on_shuffled_tokens_are_found_and_only_there():
    assert study.shuffled_wins(fake(-0.2))["single"] == []
    found = study.shuffled_wins(fake(0.0, -0.2))
    assert found["cells"] == 3 * 3 * 4 and len(found["joint"]) == 12
    assert {cell[0] for cell, _ in found["joint"]} == {"Scan and Snap"}


def test_the_figure_draws_the_differences_and_claims_the_verdicts():
    scores = fake(-0.15)
    figure, claims = drawn(study.FIGURES[0], scores)
    assert "H1, inside its assumptions Scan and Snap foresees who gains better" in claims and "supported" in claims
    bars = figure.axes[0].containers
    assert [one.get_label() for one in bars] == [
        "inside a theorem (10)", "one layer, outside (0)", "transformers (10)", "on texts (20)", "tokens shuffled (40)"
    ]  # fmt: skip
    np.testing.assert_allclose(bars[0].lines[0].get_xdata()[0], -0.15)
    np.testing.assert_allclose(bars[4].lines[0].get_xdata()[0], 0.0, atol=1e-12)


# Runs


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["layer", "gpt2"])
def test_what_is_in_the_store_is_not_trained_again(models, kind, tmp_path, monkeypatch):
    if kind == "gpt2":
        pytest.importorskip("transformers", reason="transformers is not installed")
    setting = next(one for one in drawing.draw(1) if one["kind"] == kind and not one["text"]) | {"steps": 5}
    first = study.recordings([setting], tmp_path)
    monkeypatch.setattr(models, "recorded", None)
    again = study.recordings([setting], tmp_path)
    assert again[0].dataset.identical(first[0].dataset) and first[0].steps[-1] == 5
    with pytest.raises(TypeError, match="NoneType"):
        study.recordings([setting], tmp_path, shuffled=True)


@pytest.mark.slow
def test_the_same_setting_gives_the_same_recording(models):
    setting = next(one for one in drawing.draw(1) if one["text"] == "ferry" and one["kind"] == "attention")
    runs = [models.recorded(setting | {"steps": 5}) for _ in range(2)]
    assert runs[0].dataset.identical(runs[1].dataset)
    assert runs[0].facts["optimizer"]["name"] == setting["optimizer"]


# Blind runs


@pytest.fixture
def blind(models):
    from yzflow_studies.which_theory import blind

    return blind


def test_a_blind_run_breaks_what_it_says_and_nothing_else(blind):
    """On the population itself; what population and rates do not decide is broken by what the training is."""
    seen = set()
    for seed in (1, 2, blind.SEED):
        for run in blind.design(seed):
            outside = [text for text, margin in blind.truth(run).items() if margin < 1]
            words = blind.BREAKS.get(run["broken"], ())
            assert all(any(word in text for word in words) for text in outside), run
            seen |= {run["broken"]} if outside else set()
            assert run["broken"] or not outside
    assert {"fast attention", "short sequences", "a small vocabulary", "strong overlap", "unequal next tokens"} <= seen


@pytest.mark.slow
def test_an_answer_is_right_only_if_it_is_the_truth(blind):
    runs = [one for one in blind.design(3) if one["length"] < 8000]
    whole = next(one for one in runs if not one["broken"])
    recording = blind.recorded(whole)
    assert blind.answer(whole, recording).right
    assert not blind.answer(whole | {"broken": "Adam"}, recording).right
    heavy = blind.recorded(whole | {"momentum": 0.9})
    assert not blind.answer(whole, heavy).right
    found = blind.answer(whole | {"broken": "momentum"}, heavy)
    assert found.right and found.alone
    assert not blind.answer(whole | {"broken": "two heads"}, heavy).right
