"""Unknown is not absent: what nobody named, saw or measured neither holds nor breaks an assumption."""

import json
import math

import numpy as np
import pytest
import watched_layers as layers
from hypothesis import given
from hypothesis import strategies as st
from yzflow_watch import kinds_of_models, rivals
from yzflow_watch.adapters import Adapter, of_functions
from yzflow_watch.claimed import known_rivals
from yzflow_watch.recording import Recording
from yzflow_watch.report import WatchReport
from yzflow_watch.scan_and_snap.watched import OTHER_PARTS, place

import yzflow as yz
from yzflow.audits import places

NUMBERS = st.one_of(st.floats(0.01, 100), st.just(math.nan))


@pytest.fixture(scope="module")
def inside():
    return layers.watched(layers.Trained(layers.classes_inside(vocab_size=50)), length=200, steps=3).recording


def changed(recording, *, facts=None, **arrays):
    """The recording with other facts, None for one that is missing, and with arrays that a function has changed."""
    data = recording.dataset.copy(deep=True)
    known = {name: value for name, value in (recording.facts | (facts or {})).items() if value != "missing"}
    for name, change in arrays.items():
        change(data[name].values)
    return Recording(data.assign_attrs(facts=json.dumps(known)))


def own(**options):
    model = layers.Trained(layers.classes_inside(vocab_size=50))
    tokens = layers.draw(model.classes, 8, 20, np.random.default_rng(0))
    return yz.watch(model, tokens, attention=layers.attention, logits=layers.logits, **options).recording


@pytest.mark.parametrize("model", ["LlamaForCausalLM", "GPT2LMHeadModel"])
def test_functions_of_a_reader_make_the_parts_of_any_model_unknown(model):
    """A Llama was said to be inside, as if it had no part beside what the two functions show."""
    trained = layers.Trained(layers.classes_inside(vocab_size=50))
    named = type(model, (layers.Trained,), {})
    trained.__class__ = named
    tokens = layers.draw(trained.classes, 8, 20, np.random.default_rng(0))
    recording = yz.watch(trained, tokens, attention=layers.attention, logits=layers.logits).recording
    assert math.isnan(place(recording).margins[OTHER_PARTS])
    report = WatchReport(recording)
    assert not report.inside and all(one.unknown for one in report.applies.values())
    assert "Lemma 8" not in report.headline or "if what is not known holds" in report.headline


def test_a_kind_of_model_that_declares_nothing_leaves_it_open(monkeypatch):
    """A toy entry of the table is looked at by its own function; what it does not declare is not known."""
    trained = layers.Trained(layers.classes_inside(vocab_size=50))
    tokens = layers.draw(trained.classes, 8, 20, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"`model` must be .* or come with `attention` and `logits`, but got Trained"):
        yz.watch(trained, tokens)
    known = of_functions(layers.attention, layers.logits, ())
    toy = Adapter("a toy", lambda model: isinstance(model, layers.Trained), known.look)
    monkeypatch.setattr(kinds_of_models, "ADAPTERS", (*kinds_of_models.ADAPTERS, toy))
    recording = yz.watch(trained, tokens).recording
    assert recording.facts["parts_known"] is False and math.isnan(place(recording).margins[OTHER_PARTS])
    assert not WatchReport(recording).inside


@pytest.mark.parametrize(("given", "known"), [({}, False), ({"parts": ()}, True), ({"parts": ["gates"]}, True)])
def test_parts_that_nobody_named_are_not_known(given, known):
    recording = own(**given)
    assert recording.facts["parts_known"] is known
    found = place(recording).margins
    assert (OTHER_PARTS in found) is not known
    assert known or math.isnan(found[OTHER_PARTS])


def test_a_recording_of_before_does_not_know_its_parts(inside):
    assert OTHER_PARTS not in place(inside).margins
    assert math.isnan(place(changed(inside, facts={"parts_known": "missing"})).margins[OTHER_PARTS])


def test_a_verdict_is_open_where_a_part_is_not_known(inside):
    found = WatchReport(changed(inside, facts={"parts_known": False})).applies
    assert all(one.unknown and not one.inside for one in found.values())
    assert all(OTHER_PARTS in one.unknown for one in found.values())


def nothing(values):
    values[...] = np.nan


def last_nan(values):
    values[-1] = np.nan


# Quantity that is not known -> the change, and a word of each assumption that is then not known either.
UNKNOWN = {
    "the optimizer": ({"facts": {"optimizer": None}}, ["plain gradient steps"]),
    "the momentum": ({"facts": {"optimizer": {"name": "SGD", "momentum": math.nan}}}, ["plain gradient steps"]),
    "the batch": ({"facts": {"batch": math.nan}}, ["t >> K^2"]),
    "a rate": ({"eta_z": last_nan}, ["Assumption 1(c)"]),
    "attention": ({"by_token": last_nan}, ["by query and token"]),
    "another order": ({"moved_by_order": last_nan}, ["Assumption 1(a)"]),
    "logits at the start": ({"spread": nothing}, ["Y(0) = 0"]),
    "attention at the start": ({"gain": nothing}, ["Z(0) = 0"]),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_neither_holds_nor_is_broken(inside, name):
    change, words = UNKNOWN[name]
    report = WatchReport(changed(inside, **change), now=3)
    for word in words:
        known = [margin for one in report.applies.values() for text, margin in one.margins.items() if word in text]
        assert known and all(math.isnan(margin) for margin in known), known


def test_one_head_of_two_that_is_not_known_leaves_it_open(inside):
    data = inside.dataset.isel(head=[0, 0]).copy(deep=True)
    for name in ("moved_by_order", "by_token", "eta_y"):
        data[name].values[-1, :, 1] = np.nan
    found = WatchReport(Recording(data), now=3).applies["Scan and Snap: Theorem 1"].margins
    for word in ("Assumption 1(a)", "by query and token", "Assumption 1(c)"):
        assert all(math.isnan(margin) for text, margin in found.items() if word in text), word


@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_the_least_of_margins_has_three_values(margins):
    """By Kleene's logic: false if one is false, else unknown if one is unknown."""
    found = places.least(margins)
    if any(one < 1 for one in margins):
        assert found == min(one for one in margins if not math.isnan(one))
    else:
        assert math.isnan(found) if any(map(math.isnan, margins)) else found == min(margins)


@pytest.mark.parametrize(
    ("optimizer", "plain"),
    [
        (None, None), ({}, None), ({"name": "SGD"}, True), ({"name": "SGD", "momentum": 0.0}, True),
        ({"name": "SGD", "momentum": 0.9}, False), ({"name": "SGD", "weight_decay": math.nan}, None),
        ({"name": "SGD", "momentum": 0.9, "weight_decay": math.nan}, False), ({"name": "AdamW"}, False),
    ],
)  # fmt: skip
def test_plain_steps(optimizer, plain):
    assert places.plain_steps(optimizer) is plain


def test_what_stands_in_the_way_is_said_in_one_word():
    assert places.obstacle(places.but("no part besides", "there is a residual link")) == "a residual link"
    assert places.obstacle(places.but("one head", "there are 2 heads")) == "2 heads"
    assert places.obstacle(places.but("plain gradient steps", "it is AdamW")) == "AdamW"
    assert places.obstacle("Assumption 1(c), eta_Y >> eta_Z: eta_Y >= 100 eta_Z") == ""


class TestModules:
    """Modules of PyTorch: what `modules()` shows is not all that there may be."""

    @pytest.fixture
    def linked(self):
        torch = pytest.importorskip("torch")

        class Linked(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = torch.nn.Embedding(12, 8)
                self.attention = torch.nn.MultiheadAttention(8, 1, batch_first=True)
                self.decoder = torch.nn.Linear(8, 12)

            def forward(self, tokens):
                x = self.embedding(tokens)
                return self.decoder(x + self.attention(x, x, x, need_weights=False)[0])  # a link by hand

        torch.manual_seed(0)
        return Linked()

    def test_a_residual_link_by_hand_is_not_known_to_be_absent(self, linked):
        tokens = np.random.default_rng(0).integers(0, 12, (20, 9))
        assert math.isnan(place(yz.watch(linked, tokens).recording).margins[OTHER_PARTS])
        named = place(yz.watch(linked, tokens, parts=["a residual link"]).recording).margins
        assert OTHER_PARTS not in named and named["no part besides, but there is a residual link"] == 0
        assert OTHER_PARTS not in place(yz.watch(linked, tokens, parts=()).recording).margins


# Attention that is no number


def without_a_head(recording, *, steps=slice(None)):
    """Two heads, of which the second has no number at some steps."""
    data = recording.dataset.isel(head=[0, 0]).copy(deep=True)
    for name in ("attention", "gain", "entropy", "by_token", "moved_by_order"):
        data[name].values[steps, :, 1] = np.nan
    return Recording(data)


@pytest.fixture(scope="module")
def longer():
    return layers.watched(layers.Trained(layers.classes_inside(vocab_size=50)), length=60, steps=12).recording


@pytest.mark.parametrize("steps", [slice(None), slice(-1, None), slice(3, 4)])
def test_no_rival_fails_where_a_head_is_no_number(longer, steps):
    recording = without_a_head(longer, steps=steps)
    for one in known_rivals():
        found = rivals.foreseen(one, recording)
        for name, values in found.data_vars.items():
            other = rivals.foreseen(one, longer)[name].values[:, 0]
            np.testing.assert_array_equal(values.values[:, 0], other)  # the head that is seen is foreseen as before
            if steps != slice(3, 4):
                assert np.isnan(values.values[:, 1]).all(), (one.name, name)


@pytest.mark.parametrize("last", [False, True])
def test_nothing_comes_of_what_is_no_number(longer, last):
    """Also for turns, which need every entropy before: a number at both ends is not enough."""
    recording = without_a_head(longer, steps=slice(-1, None) if last else slice(5, 6))
    happened, whole = rivals.outcome(recording, 2), rivals.outcome(longer, 2)
    for name in rivals.QUANTITIES:
        values, other = happened[name].values, whole[name].values[:, 0]
        np.testing.assert_array_equal(values[:, 0], other)
        if last and name != "turns":
            assert np.isnan(values[:, 1]).all(), name
    sooner = np.array(rivals.AHEAD) * 2 < (12 if last else int(longer.steps[5]))
    np.testing.assert_array_equal(happened["turns"].values[0, 1][sooner], whole["turns"].values[0, 0][sooner])
    assert np.isnan(happened["turns"].values[0, 1][~sooner]).all()


def test_scores_leave_out_what_is_no_number(longer):
    now = 4
    both, alone = (
        rivals.score(rivals.foreseen(rivals.NULLS[1], of.until(now)), rivals.outcome(of, now))
        for of in (without_a_head(longer, steps=slice(-1, None)), longer)
    )
    assert both == pytest.approx(alone)
