"""Predictions of each theory, against closed forms, enumerations and trainings that it is about."""

import json
import math

import numpy as np
import pytest
import watched_layers as layers
import xarray as xr
from yzflow_watch import rivals, turns
from yzflow_watch.claimed import CLAIMED
from yzflow_watch.recording import Recording
from yzflow_watch.scan_and_snap.rivals import FiniteSequences, FirstStep

import yzflow as yz
from theory.scan_and_snap.early import initial_drift


def recorded(shares, *, entropy=(1.0, 1.0), steps=None, length=60, optimizer="SGD", vocabulary=50):
    """A recording of one head with no gains yet and these shares and entropies."""
    shares, entropy = np.asarray(shares, dtype=float), np.asarray(entropy, dtype=float)
    of = layers.watched(layers.Trained(layers.classes_inside(vocab_size=50)), length=20, steps=0)
    data, steps = of.recording.dataset, range(len(entropy)) if steps is None else steps
    sizes = {"step": len(entropy), "layer": 1, "head": 1, "next_token": len(shares), "token": shares.shape[1]}
    arrays = {name: (one.dims, np.zeros([sizes[axis] for axis in one.dims])) for name, one in data.data_vars.items()}
    arrays["entropy"] = (data["entropy"].dims, entropy[:, None, None])
    coordinates = {
        "step": list(steps), "next_token": range(len(shares)), "token": range(shares.shape[1]),
        "share": (("next_token", "token"), shares), "query": ("next_token", np.zeros(len(shares), int)),
    }  # fmt: skip
    facts = of.recording.facts | {
        "length": length, "vocabulary": vocabulary, "optimizer": {"name": optimizer, "lr": 0.1}, "batch": 8.0
    }  # fmt: skip
    return Recording(xr.Dataset(arrays, coordinates, {**data.attrs, "facts": json.dumps(facts)}))


def one_common(n_classes, common, distinct):
    """Shares of classes with one common token, first, and distinct ones of their own."""
    shares = np.zeros((n_classes, 1 + n_classes * len(distinct)))
    shares[:, 0] = common
    for n in range(n_classes):
        shares[n, 1 + n * len(distinct) : 1 + (n + 1) * len(distinct)] = distinct
    return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("vocabulary", [4, 60])
@pytest.mark.parametrize("common", [0.1, 0.3, 0.6, 1.5])
@pytest.mark.parametrize("distinct", [(1.0,), (1.0, 0.5), (1.0, 0.9, 0.8)])
def test_signs_after_adams_first_step_are_those_of_the_closed_form(vocabulary, common, distinct):
    """The brackets 1 - f_l (D + c f_0) and c - f_0 (D + c f_0), c = (M - K)/(M - 1): another route than gradients."""
    shares = one_common(4, common, distinct)
    said = FirstStep().predict(recorded(shares, optimizer="Adam", vocabulary=vocabulary))["rises"].values[0, 0, 0]
    f = shares[0] / np.linalg.norm(shares[0])
    c = (vocabulary - 4) / (vocabulary - 1)
    mean = f[1:].sum() + c * f[0]
    brackets = np.array([c - f[0] * mean, *(1 - f[1 : 1 + len(distinct)] * mean)])
    slopes = brackets * f[: 1 + len(distinct)] * np.array([1, *[1 / 4] * len(distinct)])
    sure = np.abs(slopes) > 0.1 * np.abs(slopes).max() + 1e-9
    found = said[: 1 + len(distinct)]
    if (brackets > 0).any() and (brackets < 0).any():
        np.testing.assert_allclose(found[sure], np.where(slopes > 0, 0.9, 0.1)[sure], rtol=1e-12)
        expected = 0.5 + 0.4 * np.clip(slopes / (0.1 * np.abs(slopes).max()), -1, 1)
        np.testing.assert_allclose(found, expected, atol=1e-3)  # Y after the step is small, not nothing
    else:
        assert (found == 0.5).all()


@pytest.mark.parametrize("name", ["SGD", "RMSprop"])
def test_adams_rule_is_silent_under_other_optimizers(name):
    recording = recorded(one_common(4, 0.3, (1.0, 0.5)), optimizer=name)
    assert not FirstStep().predict(recording).data_vars


def test_adams_rule_foresees_a_training_by_adam_and_theorem_2_does_not():
    """Adam by hand, on expected gradients of the layer."""
    model = layers.Trained(yz.SequenceClasses(one_common(4, 0.3, (1.0, 0.5)), [0] * 4, vocab_size=60))
    tokens = layers.draw(model.classes, 24, 400, np.random.default_rng(0))
    looks = {"attention": layers.attention, "logits": layers.logits, "optimizer": yz.Optimizer("adam")}
    recorder = yz.watch(model, tokens, **looks)
    bags = model.classes.population()
    moments = {name: [0.0, 0.0] for name in ("Y", "Z")}
    for k in range(1, 41):
        slopes = yz.Layer(model.layer.Z, model.layer.Y).gradient(bags)
        moved = {}
        for name, eta in (("Y", 0.01), ("Z", 0.001)):
            slope, own = np.asarray(getattr(slopes, name)), moments[name]
            own[0], own[1] = 0.9 * own[0] + 0.1 * slope, 0.999 * own[1] + 0.001 * slope**2
            step = own[0] / (1 - 0.9**k) / (np.sqrt(own[1] / (1 - 0.999**k)) + 1e-12)
            moved[name] = np.asarray(getattr(model.layer, name)) + eta * step
        model.layer = yz.Layer(moved["Z"], moved["Y"])
        recorder.step()
    scores = recorder.report(now=4).scores
    assert scores["Adam's first step"]["rises"] < 0.03
    assert scores["Scan and Snap"]["rises"] > 0.5


@pytest.mark.parametrize("length", [8, 40])
def test_finite_sequences_have_the_signs_of_all_of_them(length):
    """All sequences of two classes that share a token, by `initial_drift`, which is exact at any T."""
    shares = np.array([[0.3, 0.5, 0.2, 0, 0], [0.3, 0, 0, 0.6, 0.1]])
    classes = yz.SequenceClasses(shares, [0, 0], vocab_size=50)
    moves = initial_drift(classes.all_sequences(length=length)).toarray()[0]
    moves = moves - (shares * moves).sum(axis=1, keepdims=True)
    found = FiniteSequences().predict(recorded(shares, length=length))["rises"].values[0, 0]
    assert ((found > 0.5) == (moves > 0))[shares > 0].all()
    # Theorem 2 has the common token fall and each distinct one gain.
    limit = FiniteSequences().predict(recorded(shares, length=10**9))["rises"].values[0, 0]
    assert ((limit > 0.5) == [False, True, True, True, True])[shares > 0].all()
    assert ((found > 0.5) != (limit > 0.5))[shares > 0].any()


def test_rare_tokens_lose_in_short_sequences_and_gain_in_long_ones():
    shares = one_common(3, 0.6, (1.0, 0.8, 0.6, 0.4, 0.1))
    short, long = (
        FiniteSequences().predict(recorded(shares, length=one))["rises"].values[0, 0, 0] for one in (30, 10**7)
    )
    assert short[:2] == pytest.approx([0.1, 0.9]) and long[:2] == pytest.approx([0.1, 0.9])
    assert short[5] == pytest.approx(0.1) and long[5] == pytest.approx(0.9)


@pytest.mark.slow
def test_finite_sequences_foresee_sgd_on_short_ones():
    model = layers.Trained(layers.classes_inside(vocab_size=50), rates=(0.3, 0.3), length=61)
    recorder = layers.watched(model, length=60, steps=40, training={"batch_size": 1024})
    scores = recorder.report(now=9).scores
    assert scores["finite sequences"]["rises"] < 0.1
    assert scores["Scan and Snap"]["rises"] > 0.2


@pytest.mark.parametrize(("entropy", "dilutes"), [((3, 2.5, 2, 1.5), False), ((1, 1.2, 2, 3), True)])
def test_focus_and_dilution_go_by_the_heading(entropy, dilutes):
    recording = recorded(one_common(3, 0.6, (1.0, 0.1)), entropy=entropy)
    found = CLAIMED[0].predict(recording)
    assert float(found["rises"][0, 0, 0, 1]) == pytest.approx(0.1 if dilutes else 0.9)
    assert float(found["rises"][0, 0, 0, 2]) == pytest.approx(0.9 if dilutes else 0.1)
    assert float(found["sparser"][0, 0]) == pytest.approx(0.1 if dilutes else 0.9)
    assert bool(found["leads"].isnull().all()) == dilutes


# Turns


def test_a_turn_by_hand():
    steps = [0, 1, 2, 4, 8, 16, 32]
    recording = recorded(one_common(2, 0.6, (1.0,)), entropy=(3, 2.9, 2.8, 2.0, 1.0, 1.1, 1.3), steps=steps)
    # From step 4 the least is at 8; a tenth of the range, 0.2, is taken back by 32 and not by 16.
    assert turns.turned(recording, 4)[0, 0].tolist()[:3] == [0, 0, 1]
    assert np.isnan(turns.turned(recording, 4)[0, 0, 3:]).all()
    assert turns.heading(recording.until(4)) == -1 and turns.heading(recording) == 1
    assert np.isnan(turns.turned(recording, 32)).all()


def test_no_heading_where_entropy_stands_still():
    recording = recorded(one_common(2, 0.6, (1.0,)), entropy=(3, 1, 1, 1.001, 1.0005), steps=[0, 1, 2, 4, 8])
    assert turns.heading(recording) == 0
    assert np.isnan(turns.turned(recording, 8)).all()
    assert (turns.heading(recorded(one_common(2, 0.6, (1.0,)), entropy=(3,))) == 0).all()


def test_odds_of_a_turn():
    recording = recorded(one_common(2, 0.6, (1.0,)), entropy=(3, 2), steps=[0, 5])
    odds = turns.odds_of_turn(np.array([40.0, np.inf, np.nan]), recording)
    assert odds[0, 2] == pytest.approx(0.5) and (np.diff(odds[0]) > 0).all()  # 8 times 5
    assert odds[0, 3] == pytest.approx(0.1 + 0.8 / (1 + math.exp(-1)))
    assert odds[1] == pytest.approx([0.1] * 6) and np.isnan(odds[2]).all()


def test_turn_of_a_foreseen_entropy():
    times = np.array([1.0, 2, 4, 8])
    falls, rises, both = np.array([4.0, 3, 2, 1]), np.array([1.0, 2, 3, 4]), np.array([4.0, 1, 2, 3])
    down, still = np.array(-1.0), np.array(0.0)
    assert turns.turn_of(times, falls, down) == np.inf
    assert turns.turn_of(times, rises, down) == 1
    assert turns.turn_of(times, both, down) == 2
    assert np.isnan(turns.turn_of(times, both, still))


def test_the_flow_of_the_paper_has_no_turn_and_a_rise_is_to_end():
    falling, rising = (
        recorded(one_common(3, 0.6, (1.0, 0.5)), entropy=one, steps=[0, 1, 2, 4])
        for one in ((3, 2.9, 2.5, 2), (1, 2, 2.5, 3))
    )
    theory = next(one for one in yz.papers()["scan_and_snap"].rivals if one.name == "Scan and Snap")
    assert theory.predict(falling)["turns"].values[0, 0] == pytest.approx([0.1] * 6)
    assert (theory.predict(rising)["turns"].values[0, 0] > 0.6).all()


def test_a_turn_is_scored_by_its_ranks():
    steps = [0, 1, 2, 4, 8, 16, 32]
    recording = recorded(one_common(2, 0.6, (1.0,)), entropy=(3, 2.9, 2.8, 2.0, 1.0, 1.1, 1.3), steps=steps)
    happened = rivals.outcome(recording, 4)
    never = rivals.NULLS[0].predict(recording.until(4))
    assert rivals.score(never, happened)["turns"] == pytest.approx((0.01 + 0.01 + 0.81) / 3)
    uniform = rivals.NULLS[2].predict(recording.until(4))
    assert rivals.score(uniform, happened)["turns"] == pytest.approx((0.1**2 + 0.26**2 + 0.58**2) / 3)
    assert "rises" not in rivals.score(never, happened)  # no gain has changed


def test_odds_of_a_sum():
    found = rivals.odds(np.array([1.0, 0.05, -0.2, 0.0, 0.0]), np.array([1.0, 1.0, 2.0, 1.0, 0.0]))
    assert found == pytest.approx([0.9, 0.7, 0.1, 0.5, 0.5])


def test_who_knows_nothing_has_the_score_of_that():
    """n present tokens of which one leads: (1 - 1/n)^2 + (n - 1)/n^2 = 1 - 1/n; a quarter for each sign."""
    shares = one_common(2, 0.5, (1.0, 0.5))
    of = recorded(shares)
    even = next(one for one in rivals.NULLS if one.name == "anything is as likely")
    said = rivals.foreseen(even, of)
    first = np.argmax(shares, axis=1)[:, None] == np.arange(shares.shape[1])
    came = rivals.said(of, rises=shares > 0.2, leads=first.astype(float))
    assert rivals.score(said[["rises", "leads"]], came) == pytest.approx({"rises": 0.25, "leads": 1 - 1 / 3})
