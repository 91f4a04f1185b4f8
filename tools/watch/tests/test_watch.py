"""A training that is watched: what its theorems say, and that the future is not known."""

from html import escape

import numpy as np
import pytest
import watched_layers as layers
from yzflow_watch import rivals
from yzflow_watch.recording import Recording
from yzflow_watch.report import WatchReport

import yzflow as yz
from yzflow.audits.formulas import readable

THEOREMS = ("Scan and Snap: Theorem 2(a)", "Scan and Snap: Theorem 3", "Scan and Snap: Lemma 4")


@pytest.fixture(scope="module")
def inside():
    return layers.watched(layers.Trained(layers.classes_inside()))


def test_steps_that_are_recorded_grow_by_a_quarter(inside):
    assert inside.recording.steps.tolist() == [0, 1, 2, 3, 4, 5, 7, 9, 12, 15, 19]


def test_gains_are_those_of_the_layer(inside):
    model, data = inside.model, inside.report().recording.dataset.isel(step=-1, layer=0, head=0)
    z, shares = np.asarray(model.layer.Z)[0], data["share"].values
    known = np.where(shares > 0, z - (shares * z).sum(axis=1, keepdims=True), np.nan)
    # Attention of finite sequences is that of their own frequencies: 1/T, weighted.
    np.testing.assert_allclose(data["gain"].values, known, atol=0.02 * np.nanmax(np.abs(known)))


def test_a_training_inside_the_assumptions_is_said_to_be(inside):
    report = inside.report()
    assert set(THEOREMS) <= set(report.inside)
    assert f"{len(report.inside)} statements, among them Theorem 1, " in report.headline
    assert f"({len(report.inside)} of {len(report.applies)} statements)" in report.headline
    assert "at step 4" in report.headline and "Theorem 3" in report.headline
    # Theorem 4 needs classes that overlap less, which this training has not.
    assert report.applies["Scan and Snap: Theorem 4"].broken


def test_its_predictions_hold_and_the_nulls_do_not(inside):
    scores = inside.report().scores
    assert scores["Scan and Snap"]["rises"] == pytest.approx(0.01)
    assert scores["nothing changes"]["rises"] == 0.25
    assert scores["frequent tokens gain"]["rises"] > 0.25


# Name -> the change of model and of training, and a word of the assumption that the report must name.
BROKEN = {
    "attention is not slow": ({"rates": (1.0, 0.5)}, {}, "Assumption 1(c)"),
    "positions": ({"bias": 0.01}, {}, "query and token"),
    "a start that is not zero": ({"start": 3.0}, {}, "Y(0) = 0"),
    "Adam": ({}, {"optimizer": yz.Optimizer("adam")}, "plain gradient steps"),
    "weight decay": ({}, {"optimizer": yz.Optimizer(momentum=0.0, weight_decay=0.1)}, "weight decay"),
    "short sequences": ({}, {"length": 30}, "Assumption 1(b)"),
    "a part besides": ({}, {"parts": ["LayerNorm"]}, "LayerNorm"),
    "a small vocabulary": ({"classes": layers.classes_inside(vocab_size=50)}, {}, "Assumption 2"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_a_theorem_is_named(name):
    of_model, of_training, word = BROKEN[name]
    given = {"classes": layers.classes_inside()} | of_model
    report = layers.watched(layers.Trained(given.pop("classes"), **given), steps=2, **of_training).report()
    theorem = report.applies["Scan and Snap: Theorem 3"]
    assert not theorem.inside
    assert any(word in text for text in theorem.broken), theorem.broken


def test_only_what_is_changed_is_named_where_it_alone_is():
    report = layers.watched(layers.Trained(layers.classes_inside()), steps=2, parts=["LayerNorm"]).report()
    assert list(report.applies["Scan and Snap: Theorem 3"].broken) == ["no part besides, but there is LayerNorm"]
    assert report.headline.startswith(
        "No theorem here applies at step 1: LayerNorm stands in the way of 33 statements; "
    )
    assert "; without it, " in report.headline and "Theorem 3" in report.headline.partition("without it")[2]


def test_what_is_not_known_is_not_inside():
    recorder = layers.watched(layers.Trained(layers.classes_inside()), steps=2, optimizer=None, rates=None)
    theorem = recorder.report().applies["Scan and Snap: Theorem 3"]
    assert not theorem.inside and not theorem.broken
    assert "plain gradient steps" in theorem.unknown
    assert any("Assumption 1(c)" in text for text in theorem.unknown)


@pytest.mark.parametrize(("counts", "squared"), [((8, 8, 8), 0.0), ((12, 8, 4), 4.0), ((30, 3, 3), 40.5)])
def test_next_tokens_that_are_not_equally_likely_are_named(counts, squared):
    """The margin is 13.8 = -2 ln 0.001, the chance of two degrees of freedom in closed form, over chi-squared."""
    model = layers.Trained(layers.classes_inside())
    tokens = layers.draw(model.classes, 200, 6000, np.random.default_rng(0))
    rows = np.concatenate([np.flatnonzero(tokens[:, -1] == k)[:count] for k, count in enumerate(counts)])
    looks = {"attention": layers.attention, "logits": layers.logits, "rates": model.rates}
    recorder = yz.watch(model, tokens[rows], **looks, optimizer=layers.PLAIN, batch_size=100)
    found = recorder.report().applies["Scan and Snap: Theorem 1"].margins["classes drawn uniformly"]
    assert found == pytest.approx(-2 * np.log(1e-3) / squared if squared else np.inf)


def test_a_prediction_knows_the_past_only(inside):
    data = inside.recording.dataset
    changed = data.copy(deep=True)
    later = changed["step"].values > 5
    changed["attention"].values[later] = changed["attention"].values[later][..., ::-1]
    changed["gain"].values[later] *= -3
    first, second = (WatchReport(Recording(one), now=5) for one in (data, changed))
    for name, found in first.rivals.items():
        assert found.identical(second.rivals[name]), name
    assert first.applies == second.applies
    assert first.scores != second.scores


def test_scores_by_hand(inside):
    recording = inside.recording
    happened = rivals.outcome(recording, 0)
    there = ~np.isnan(happened["rises"])
    sure = happened.copy(deep=True)
    assert rivals.score(sure, happened) == {"rises": 0, "leads": 0, "sparser": 0}
    wrong = happened.assign(rises=1 - happened["rises"])
    assert rivals.score(wrong, happened)["rises"] == 1
    even = happened.assign(rises=(there * 0.5).where(there))
    assert rivals.score(even, happened)["rises"] == 0.25


def test_a_rival_that_says_nonsense_is_refused(inside):
    class Wrong:
        name = "wrong"

        def predict(self, recording):
            return rivals.said(recording, rises=np.array(1.5))

    with pytest.raises(ValueError, match=r"wrong must give probabilities, but rises has 1\.5"):
        rivals.foreseen(Wrong(), inside.recording)


def test_saved_and_read_again(inside, tmp_path):
    text = inside.report().text  # which looks at the last step, too
    inside.save(tmp_path / "run.nc")
    again = Recording.load(tmp_path / "run.nc")
    assert again.dataset.identical(inside.recording.dataset)
    assert WatchReport(again).text == text
    content = (tmp_path / "run.nc").read_bytes()
    (tmp_path / "run.nc").write_bytes(content[:2000] + bytes([content[2000] ^ 1]) + content[2001:])
    with pytest.raises(ValueError, match="be a recording of a training written by yzflow"):
        Recording.load(tmp_path / "run.nc")


def test_the_page_works_offline(inside, tmp_path):
    report = inside.report()
    page = report.page(tmp_path / "report.html").read_text()
    assert readable(report.headline) in page and escape(report.right, quote=False) in page
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page and "prefers-color-scheme: dark" in page  # a statement's page, as others are
    for name, found in report.scores.items():
        assert escape(name) in page and all(f"{value:.3f}" in page for value in found.values())
