"""Complete words beside prefixes: the data, what stands in for violation and drift, intervals, and what is said."""

import itertools

import driving
import numpy as np
import pytest
import strategies
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import yzflow
from dynamics import DyckLanguage
from theory import balance
from yzflow import figures
from yzflow.papers.bounded_dyck import training as dyck
from yzflow.papers.bounded_dyck import words
from yzflow.papers.bounded_dyck.figures import words as drawn
from yzflow.papers.bounded_dyck.ranks import rank_correlation

LANGUAGE = DyckLanguage(2, 3)
SMALL = {"steps": 5, "n_train": 300, "n_test": 400, "max_depth": 3}


@given(strategies.dyck_languages(max_types=3, max_depth=4), st.sampled_from(words.KINDS), strategies.SEEDS)
def test_each_bracket_is_asked_for_behind_what_stands_before_it(language, kind, seed):
    sequences = language.sample_sequences(5, min_length=2, max_length=9, kind=kind, rng=seed)
    found = words.drawn_bags(language, sequences)
    before = language.bags([sequence[:n] for sequence in sequences for n in range(sequence.size)])
    np.testing.assert_array_equal(found.target, np.concatenate(sequences))
    for name in ("query", "indptr", "token", "count"):
        np.testing.assert_array_equal(getattr(found, name), getattr(before, name))
    assert (before.target[np.arange(len(found)), found.target] > 0).all()


def test_words_close_what_they_open_and_prefixes_do_not():
    """Drawn targets of words are half closing ones; exact targets of the same words are not."""
    samples = {
        (kind, targets): words.data(LANGUAGE, kind, targets=targets, n_train=500, n_test=10).train
        for kind, targets in itertools.product(words.KINDS, words.TARGETS)
    }
    closing = {key: bags.target % 2 if bags.hard else bags.target[:, 1::2].sum(axis=1) for key, bags in samples.items()}
    assert closing["word", "drawn"].mean() == 0.5
    assert closing["prefix", "drawn"].mean() < 0.5
    # A bag more a sequence, its end, after which a word's exact law opens a bracket.
    assert len(samples["word", "exact"]) == len(samples["word", "drawn"]) + 500
    last = words.data(LANGUAGE, "word", positions="last", targets="exact", n_train=500, n_test=10).train
    assert len(last) == 500 and (last.target[:, 1::2] == 0).all()


def _marked(slope):
    """Answers that know the last unmatched type, and move by ``slope`` for each bracket more."""

    def answers(prefixes):
        right = np.array([LANGUAGE.stack(prefix)[-1] for prefix in prefixes])
        sizes = np.array([prefix.size for prefix in prefixes])
        return np.eye(2)[right] + slope * np.outer(sizes, [1.0, 0.0]) + sizes[:, None]

    return answers


@pytest.mark.parametrize("slope", [0.0, 0.1, -0.3])
def test_the_effect_of_a_pair_by_hand(slope):
    """A pair moves the centred logits by 2 |slope| / sqrt 2, another answer by sqrt 2."""
    assert words.pair_effect(_marked(slope), LANGUAGE) == pytest.approx(abs(slope), rel=1e-12, abs=1e-15)
    assert np.isnan(words.pair_effect(_marked(slope), DyckLanguage(1, 3)))


def test_every_pair_is_inserted_where_it_can_be():
    """Behind a prefix of depth d + 1, inside, pairs of the levels 1 to d + 2 fit, up to D."""
    added = set()

    def answers(prefixes):
        for prefix in prefixes:
            stack, states = LANGUAGE.stack(prefix), list(LANGUAGE.state_sequence(prefix))
            for state in LANGUAGE.state_sequence([*(2 * stack), 2 * (prefix[-1] // 2), prefix[-1]]):
                states.remove(state)
            added.add((stack.size, prefix[-1], *sorted(states)))
        return _marked(0.0)(prefixes)

    assert words.pair_effect(answers, LANGUAGE) == 0
    expected = {
        (depth, 2 * j + 1, *pair)
        for depth, j in itertools.product((1, 2), range(2))
        for pair in [(), *((LANGUAGE.open(i, l), LANGUAGE.close(i, l - 1)) for i in range(2) for l in (1, 2, 3))]
    }
    assert added == expected


def test_a_pair_has_no_effect_where_the_layer_is_balanced():
    layer = balance.balanced_layer(LANGUAGE, 0)
    answers = words.answers_of_layer(layer, LANGUAGE)
    assert words.pair_effect(answers, LANGUAGE) < 1e-12
    assert words.behind_mean_word(answers, LANGUAGE, range(400, 501)) == 1
    uneven = dyck.Layer(layer.Z + 0.5 * np.random.default_rng(0).normal(size=layer.Z.shape), layer.Y, layer.V)
    assert words.pair_effect(words.answers_of_layer(uneven, LANGUAGE), LANGUAGE) > 0.01


@given(strategies.dyck_languages(max_types=3, max_depth=4), st.integers(30, 200))
def test_the_mean_word_has_the_mean_pairs(language, length):
    word = words.mean_word(language, length)
    assert language.stack(word).size == 0
    states = language.state_sequence(word)[1:]
    opens, _ = balance.pairs(language)
    counts = np.array([[(states == state).sum() for state in row] for row in opens])
    expected = np.rint(language.n_types * balance.matched_pairs(language, length))
    held = np.cumprod(expected > 0)  # behind a level without pairs there are none
    np.testing.assert_array_equal(counts.sum(axis=0), expected * held)
    assert np.ptp(counts, axis=0).max() <= 1


@given(strategies.SEEDS)
def test_accuracy_behind_the_mean_word_by_another_route(seed):
    """Sums (12) of the word's states, by the law of all prefixes of one length in place of the chain of depths."""
    length = 8
    layer = dyck.start(LANGUAGE, seed, width=6)
    u = balance.contributions(layer, LANGUAGE)
    before = LANGUAGE.state_sequence(words.mean_word(LANGUAGE, length))
    law = LANGUAGE.enumerate(min_length=length, max_length=length)
    right = total = 0.0
    for j, depth in itertools.product(range(2), range(1, 3)):
        query = LANGUAGE.close(j, depth)
        chance = law.weight[law.query == query].sum()
        for stack in itertools.product(range(2), repeat=depth):
            states = [*LANGUAGE.open(np.array(stack), np.arange(1, depth + 1)), LANGUAGE.open(j, depth + 1), query]
            logits = u[query][[*before, *states]].sum(axis=0) @ layer.Y[:, 1::2]
            right += chance / 2**depth * (logits.argmax() == stack[-1])
        total += chance
    found = words.behind_mean_word(words.answers_of_layer(layer, LANGUAGE), LANGUAGE, [length])
    assert found == pytest.approx(right / total, rel=1e-12)


def test_a_cell_is_the_experiment_on_its_own_data(tmp_path):
    """Cell by cell the numbers of `training.trained` on words and on prefixes, and those of the trained layers."""
    runs = words.trained(seeds=[1, 2], contrast_weight=[0.0, 2.0], store=tmp_path, **SMALL)
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


@pytest.mark.slow
def test_a_standard_transformer_is_measured_by_its_answers(tmp_path, monkeypatch):
    deep = pytest.importorskip("dynamics.deep")
    from yzflow.papers.bounded_dyck import deep as transformers

    for lengths in (dyck.LENGTHS, transformers.LENGTHS):
        monkeypatch.setitem(lengths, words.LONG, (40, 50))  # long ones take a minute to compile
    runs = words.trained(
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
    assert "violation" not in runs and words.imbalance(runs).equals(runs["pair_effect"])


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
    said = drawn.claims(_made_up())
    on_words, on_prefixes = said.split("Trained on prefixes")
    assert "negative at weight 0 and 1" in on_words and "no interval excludes zero" in on_prefixes
    assert "at weight 1 helps: +0.095 +-" in on_words and "neither helps nor harms" in on_prefixes
    assert "mean prefix is off by 0.010 on average and 0.010 at most" in on_words
    assert "positive at weight 0 and 1" in drawn.claims(_made_up(sign=1.0))
    cells = {(cell.kind, cell.weight): cell for cell in words.summary(_made_up())}
    assert cells["word", 1.0].violation_rank.value == -1 and cells["word", 1.0].drift_rank.value == 1
    assert cells["word", 0.0].gain == (0, 0) and cells["word", 0.0].short == (1, 0)


@pytest.mark.parametrize("name", ["dyck_words", "deep_dyck_words"])
def test_figures_show_the_runs_side_by_side(name):
    runs = _made_up()
    if name == "deep_dyck_words":
        runs = runs.drop_vars(["violation", "predicted"]).assign_attrs(architecture="standard")
    figure = getattr(figures, name)(runs)
    figure.draw_without_rendering()
    top, bottom = np.reshape(figure.axes, (2, 2))
    measured = words.long_accuracy(runs)
    for row, values in ((top, words.imbalance(runs)), (bottom, words.from_drift(runs))):
        for axes, kind in zip(row, words.KINDS, strict=True):
            at = {"kind": kind, "contrast_weight": 1.0}
            expected = np.column_stack([values.sel(at), measured.sel(at)])
            np.testing.assert_allclose(axes.collections[1].get_offsets(), expected)
            assert axes.get_xlabel() and str(rank_correlation(values.sel(at), measured.sel(at))) in axes.get_title()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: words.data(LANGUAGE, "sentence"), "`kind` must be one of 'word', 'prefix'"),
        (lambda: words.data(LANGUAGE, "word", positions="last"), "`targets` must be 'exact' for the last position"),
        (lambda: words.trained("thin"), "`architecture` must be one of 'minimal', 'standard'"),
        (lambda: words.trained("standard", scale=1.0), "`scale` must be left out for the standard architecture"),
        (lambda: words.trained(n_closing=3), "`n_closing` must be left out for the minimal architecture"),
        (lambda: words.trained(kinds=["text"]), "`kind` must be one of 'word', 'prefix'"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
def test_the_example_trains_on_words_and_does_it_once(tmp_path, capsys):
    arguments = ["--kind", "word", "--quick", "--out", str(tmp_path)]
    example = driving.example("dyck_balance")
    assert example.main(arguments) == 0
    first = capsys.readouterr().out
    runs = xr.load_dataset(tmp_path / "dyck_words.nc")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    assert dict(runs["violation"].sizes) == {"kind": 1, "contrast_weight": 3, "seed": 4}
    assert str(words.summary(runs)[0].violation_rank) in first and drawn.claims(runs) in first
    assert {"dyck_words.png", "dyck_words.pdf", "captions.txt"} <= {path.name for path in tmp_path.iterdir()}
    assert example.main(arguments) == 0
    assert capsys.readouterr().out == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()} == kept
    with pytest.raises(SystemExit):
        example.main(["--kind", "word", "--seeds", "3", "--out", str(tmp_path)])
    assert "`--seeds` must be at least 4, but got 3" in capsys.readouterr().err


def test_the_sweep_is_found_by_its_name(tmp_path):
    grid = {name: [value] for name, value in SMALL.items()}
    runs = yzflow.sweep("dyck_words", {"kind": ["word"], **grid}, store=tmp_path, progress=False)
    assert not runs["failed"].any()
