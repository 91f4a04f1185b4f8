"""Attention that is not known stays so: in the recording, in its measures, and in what is scored."""

import numpy as np
import pytest
import watched_layers as layers
from hypothesis import given
from hypothesis import strategies as st
from yzflow_watch import measures, rivals
from yzflow_watch.recording import Recording

import yzflow as yz

MEASURES = ("attention", "gain", "entropy", "by_token", "moved_by_order")


def on_itself(shares):
    """All attention on the query itself."""
    found = np.zeros_like(shares)
    found[..., -1] = 1.0
    return found


BROKEN = {
    "NaN": (lambda shares: np.full_like(shares, np.nan), "it is NaN"),
    "nothing": (np.zeros_like, "on nothing"),
    "itself": (on_itself, "all of it is on the query itself"),
}


def recorded(change, at=5, steps=12, **options):
    """A training of two heads, the second of which is changed from a step on."""
    model = layers.Trained(layers.classes_inside(vocab_size=50))
    tokens = layers.draw(model.classes, 24, 60, np.random.default_rng(0))
    now = 0

    def attention(model, sequences):
        shares = layers.attention(model, sequences)
        return np.concatenate([shares, change(shares) if now >= at else shares], axis=1)

    looks = {"attention": attention, "logits": layers.logits, "rates": model.rates, "optimizer": layers.PLAIN}
    recorder = yz.watch(model, tokens, **looks, batch_size=100, **options)
    for now in range(1, steps + 1):
        model.step(now)
        recorder.step()
    return recorder


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_known_is_recorded_as_nan_and_told_once(name, tmp_path):
    change, why = BROKEN[name]
    with pytest.warns(UserWarning, match=rf"not known at step 5 in layer 0 head 1 \(from 0 on\), as .*{why}") as told:
        recorder = recorded(change, predict_at=[4, 7])
    assert len(told) == 1
    data = recorder.recording.dataset
    there = data["share"].values > 0
    for measure in MEASURES:
        values = data[measure].values[:, 0]
        late = data["step"].values >= 5
        cells = there if measure in ("attention", "gain") else True
        for known in (values[~late], values[late, 0]):
            assert np.isfinite(known[..., cells]).all(), measure
        assert np.isnan(values[late, 1]).all(), measure
    recorder.save(tmp_path / "run.nc")
    again = Recording.load(tmp_path / "run.nc")  # whose predictions have the past that they were made from
    assert again.dataset.identical(data)
    np.testing.assert_array_equal(np.isnan(again.dataset["entropy"]), np.isnan(data["entropy"]))


def test_a_lead_at_the_end_is_not_scored_where_it_was_not_known_at_the_step():
    recording = recorded(np.array).recording
    data = recording.dataset.copy(deep=True)
    data["gain"][2] = np.nan
    happened = rivals.outcome(Recording(data), int(data["step"][2]))
    assert happened["leads"].isnull().all() and happened["rises"].isnull().all()
    data["gain"][2] = recording.dataset["gain"][2]
    assert rivals.outcome(Recording(data), int(data["step"][2]))["leads"].notnull().any()


def small_probe(rng, n=8, length=7):
    tokens = np.column_stack([rng.integers(0, 4, (n, length)), rng.integers(4, 6, n), rng.integers(0, 2, n)])
    return measures.Probe.of(tokens, n_classes=2, n_tokens=4)


@given(st.integers(0, 10**6), st.integers(0, 7), st.booleans())
def test_measures_of_attention_with_one_sequence_unknown(seed, row, whole):
    """NaN in the class and head of the sequence, and the numbers of before everywhere else."""
    rng = np.random.default_rng(seed)
    probe = small_probe(rng)
    shares = rng.dirichlet(np.ones(8), size=(8, 3))
    broken = shares.copy()
    broken[row, 1] = np.nan if whole else np.eye(8)[-1]
    sound, context = measures.on_context(shares), measures.on_context(broken)
    assert np.isnan(context[row, 1]).all() and np.isnan(context).sum() == 7
    first, second = (measures.token_attention(one, probe) for one in (sound, context))
    of_class = probe.classes == probe.following[row]
    assert np.isnan(second[1, of_class]).all()
    np.testing.assert_array_equal(second[:, ~of_class], first[:, ~of_class])
    assert np.isnan(measures.gains(second, probe.shares)[1, of_class]).all()
    order = probe.orders(8)
    for measure in (
        measures.entropy,
        lambda attention: measures.by_token(attention, probe),
        lambda attention: measures.moved_by_order(attention, attention, order),
    ):
        before, after = measure(sound), measure(context)
        assert np.isnan(after[1])
        np.testing.assert_allclose(after[[0, 2]], before[[0, 2]], atol=1e-5)


def test_gains_of_no_attention_at_all_are_not_known():
    found = measures.gains(np.array([[[0.0, 0.0], [0.5, 0.5]]]), np.full((2, 2), 0.5))
    assert np.isnan(found[0, 0]).all() and found[0, 1].tolist() == [0, 0]
