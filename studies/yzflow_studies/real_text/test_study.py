"""The Y/Z layer on real text: measures against plain counting, runs that start again, the example from end to end."""

from pathlib import Path

import driving
import numpy as np
import pytest

import yzflow
from dynamics import Layer, TextCorpus
from theory.scan_and_snap.token_estimates import COMMON, DISTINCT, UNDECIDED
from yzflow_studies.real_text import measures as real_text
from yzflow_studies.real_text.study import FIGURES
from yzflow_studies.real_text.tasks import REAL_TEXT, record_times

ENTRIES = {entry.name: entry for entry in FIGURES}

TEXT = Path(__file__).with_name("small_text.txt")
SMALL = {"text": [str(TEXT)], "vocab_size": [60], "length": [6], "steps": [30], "n_times": [4], "windows": [300]}


@pytest.fixture(scope="module")
def data():
    corpus = TextCorpus(TEXT, tokenizer="words", vocab_size=60)
    return real_text.RealText.of(corpus, length=6, windows=300, lift=1.5)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    grid = SMALL | {"next_tokens": ["natural", "equal"], "eta_y": [2.0], "eta_z": [1.0, 10.0]}
    return yzflow.sweep(REAL_TEXT, grid, store=tmp_path_factory.mktemp("text") / "runs", seeds=2, progress=False)


def test_held_out_windows_are_of_the_rest_and_do_not_overlap(data):
    n = len(data.corpus)
    assert n > len(TEXT.read_text().split())
    cut = int(0.9 * n)
    assert len(data.train) == 300
    assert len(data.held_out) == len(range(cut, n - 6, 7))
    assert data.held_out.query[0] == data.corpus.tokens[cut + 5]
    assert data.estimates.trials.max() <= len(range(0, cut - 6, 7))


def test_measures_are_those_of_the_definition(data):
    rng = np.random.default_rng(0)
    bags = data.held_out
    layer = Layer(rng.normal(size=(60, 60)), np.zeros((60, 60)))
    dense, start = layer.attention(bags), Layer.zeros(bags).attention(bags)
    found = data.measure(layer)
    entropies = [-sum(c * np.log(c) for c in row if c > 0) for row in dense]
    assert found["entropy"] == pytest.approx(np.mean(entropies))
    sums = {kind: [0.0, 0.0] for kind in (DISTINCT, UNDECIDED, COMMON)}
    gains = []
    for b in range(len(bags)):
        entries = slice(bags.indptr[b], bags.indptr[b + 1])
        logit = {DISTINCT: [], COMMON: [], UNDECIDED: []}
        for token, count in zip(bags.token[entries], bags.count[entries], strict=True):
            kind = int(data.estimates.kind(token, bags.target[b], lift=1.5))
            sums[kind][0] += dense[b, token]
            sums[kind][1] += start[b, token]
            logit[kind] += [layer.Z[bags.query[b], token]] * int(count)
        if logit[DISTINCT] and logit[COMMON]:
            gains.append(2 * (np.mean(logit[DISTINCT]) - np.mean(logit[COMMON])))
    for name, kind in real_text.GROUPS.items():
        expected = sums[kind][0] / sums[kind][1] if sums[kind][1] else np.nan
        assert found[f"gain_{name}"] == pytest.approx(expected, nan_ok=True)
    assert found["relative_gain"] == pytest.approx(np.mean(gains) if gains else np.nan, nan_ok=True)
    untrained = data.measure(Layer.zeros(bags))
    assert untrained["gain_common"] == pytest.approx(1)
    assert sums[COMMON][1] > 0


def test_relative_gain_is_that_of_theorem_3(data):
    """A gain of exp(2 a) - 1 of all distinct tokens over all common ones, for every next token."""
    kind = np.where(np.arange(len(data.kind)) % 2, DISTINCT, COMMON)
    changed = real_text.RealText(data.corpus, data.train, data.held_out, data.estimates, kind)
    found = changed.measure(Layer.zeros(data.held_out))
    assert found["relative_gain"] == 0
    bags = data.held_out
    Z = np.random.default_rng(3).normal(size=(60, 60))
    attention = Layer(Z, np.zeros((60, 60))).attention(bags)
    gains = []
    for b in range(len(bags)):
        at = np.arange(bags.indptr[b], bags.indptr[b + 1])
        # ln(c_l/c_l') - ln(N_l/N_l'), over all pairs of occurrences
        logs = np.log(attention[b, bags.token[at]] / bags.count[at])
        means = [np.average(logs[kind[at] == k], weights=bags.count[at][kind[at] == k]) for k in (DISTINCT, COMMON)]
        gains.append(2 * (means[0] - means[1]))
    assert changed.measure(Layer(Z, np.zeros((60, 60))))["relative_gain"] == pytest.approx(np.mean(gains))


def test_weighting_makes_next_tokens_equally_likely(data):
    train, held_out = data.weighted("equal")
    for bags in (train, held_out):
        shares = np.bincount(bags.target, weights=bags.weight)
        assert shares[shares > 0] == pytest.approx(1 / np.count_nonzero(shares))
    assert data.weighted("natural") == (data.train, data.held_out)


def test_drift_of_groups_is_a_mean_over_windows(data):
    bags = data.held_out
    curvature = real_text.initial_drift(data.train).toarray()
    moves, shares, kinds = [], [], []
    for b in range(len(bags)):
        entries = slice(bags.indptr[b], bags.indptr[b + 1])
        moves += curvature[bags.query[b], bags.token[entries]].tolist()
        shares += (bags.count[entries] / 5).tolist()
        kinds += data.kind[entries].tolist()
    moves, shares, kinds = map(np.array, (moves, shares, kinds))
    common = kinds == COMMON
    expected = (moves * shares)[common].sum() / shares[common].sum() / ((abs(moves) * shares).sum() / shares.sum())
    assert data.drift("natural")["common"] == pytest.approx(expected)


def test_times_of_record():
    assert record_times(1600, 9).tolist() == [0, 10, 21, 43, 88, 182, 375, 775, 1600]
    assert record_times(5, 4).tolist() == [0, 5]
    assert record_times(30, 2).tolist() == [0, 30]


def test_training_learns_and_records(runs):
    assert not runs["failed"].any()
    assert runs["loss"].isel(time=0).values == pytest.approx(np.log(60), abs=1e-5)
    assert runs["batch_loss"].isel(time=0).values == pytest.approx(np.log(60), abs=1e-5)
    assert (runs["loss"].sel(next_tokens="natural").isel(time=-1) < np.log(60) - 0.2).all()
    assert runs["gain_common"].isel(time=0).values == pytest.approx(1)
    assert not np.nan_to_num(runs["relative_gain"].isel(time=0).values).any()
    ends = runs["entropy"].isel(time=-1)
    assert np.unique(ends).size == ends.size
    # A larger rate of attention moves it further from where it was.
    moved = abs(runs["entropy"] - runs["entropy"].isel(time=0)).isel(time=-1).mean("seed")
    assert (moved.sel(eta_z=10.0) > moved.sel(eta_z=1.0)).all()


def test_a_run_depends_on_the_content_of_the_text(tmp_path):
    path = tmp_path / "text"
    path.write_text("a b c a b c a c b " * 20)
    grid = SMALL | {"text": [str(path)], "vocab_size": [4]}
    first = yzflow.sweep(REAL_TEXT, grid, store=tmp_path / "runs", progress=False)
    again = yzflow.sweep(REAL_TEXT, grid, store=tmp_path / "runs", progress=False)
    assert len(list((tmp_path / "runs").glob("*.npz"))) == 1
    assert first["loss"].equals(again["loss"])
    path.write_text("c b a a b c a c b " * 20)
    other = yzflow.sweep(REAL_TEXT, grid, store=tmp_path / "runs", progress=False)
    assert len(list((tmp_path / "runs").glob("*.npz"))) == 2
    assert not first["loss"].equals(other["loss"])
    with pytest.raises(ValueError, match="has changed since this work was planned"):
        real_text.load(str(path), "0", tokenizer="words", vocab_size=4, length=6, windows=9, lift=1.5)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"text": ["nowhere.txt"]}, "`text` must be the path of a text, but got 'nowhere.txt', where there is no file"),
        ({"vocab_size": [1]}, "`vocab_size` must be at least 2, but got 1"),
        ({"next_tokens": ["all"]}, "`next_tokens` must be one of 'natural', 'equal', but got 'all'"),
        ({"momentum": [0.9]}, "`grid` must have keys of the task 'real_text'"),
    ],
)
def test_refused_before_anything_runs(tmp_path, grid, message):
    with pytest.raises(ValueError) as refused:
        yzflow.sweep(REAL_TEXT, SMALL | grid, store=tmp_path / "runs", progress=False)
    assert str(refused.value).startswith(message)
    with pytest.raises(ValueError, match="`text` must be the path of a text, but got None"):
        yzflow.sweep(REAL_TEXT, {"steps": [5]}, store=tmp_path / "runs", progress=False)


def test_figures_show_the_runs(runs):
    fate = ENTRIES["real_text_fate"](runs.sel(eta_z=1.0).squeeze(drop=True))
    natural = runs.sel(next_tokens="natural", eta_z=1.0).squeeze(drop=True)
    lines = {line.get_label(): line for line in fate.axes[0].get_lines()}
    assert lines["common"].get_ydata() == pytest.approx(natural["gain_common"].mean("seed").values)
    assert lines["common"].get_xdata().tolist() == runs["time"].values.tolist()
    assert fate.axes[2].get_lines()[0].get_ydata() == pytest.approx(natural["loss"].mean("seed").values)
    rates = runs.sel(next_tokens="natural").squeeze(["text", "vocab_size", "length", "steps", "n_times", "windows"])
    entropy = ENTRIES["real_text_entropy"](rates)
    drawn = entropy.axes[0].containers[0].lines[0].get_ydata()
    assert drawn == pytest.approx(rates["entropy"].isel(time=-1, eta_y=0).mean("seed").values)


def test_the_example_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    example = driving.example("real_text")
    arguments = ["--text", str(TEXT), "--vocab", "40", "--length", "6", "--quick", "--out", str(tmp_path)]
    assert example.main(arguments) == 0
    table = capsys.readouterr().out
    assert "next tokens equal" in table
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*.npz")}
    assert len(kept) == 8
    assert (tmp_path / "fate.png").exists()
    assert (tmp_path / "entropy.pdf").exists()
    lost = sorted(kept)[0]
    lost.unlink()
    monkeypatch.setattr(example.figures, "save", lambda *_: None)  # drawing is slow, and they are there
    assert example.main(arguments) == 0
    assert capsys.readouterr().out == table
    assert lost.exists()
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items() if path != lost)


@pytest.mark.parametrize("arguments", [["--text", "nowhere"], ["--text", str(TEXT), "--vocab", "1"]])
def test_the_example_refuses(tmp_path, monkeypatch, capsys, arguments):
    example = driving.example("real_text")
    with pytest.raises(SystemExit) as ended:
        example.main([*arguments, "--out", str(tmp_path)])
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_markup_is_taken_out(monkeypatch):
    texts = driving.example("public_texts")
    markup = (
        "== Early life ==\n'''Ada''' was a [[mathematics|mathematician]]<ref name=a>{{cite|x}}</ref> of "
        "[[London]].{{cn|{{date}}}}\n{| class=x\n| cell\n|}\n* one&nbsp;item [[File:a.png|thumb|a [[b]]]]<!-- no -->"
    )
    assert " ".join(texts.plain(markup).split()) == "Early life Ada was a mathematician of London. one item"


def test_a_package_that_is_not_there_is_named(monkeypatch):
    texts = driving.example("public_texts")
    with pytest.raises(ValueError, match="the package no-such-package is not installed: pip install no-such-package"):
        texts.files("no-such-package", "*.txt")
    with pytest.raises(ValueError, match=r"the package numpy .* has no files \*\.nothing"):
        texts.files("numpy", "*.nothing")
