"""Predictions that are written while a training runs: older than what they foresee, and of the past that is there."""

import numpy as np
import pytest
import watched_layers as layers
from yzflow_watch import claimed, rivals
from yzflow_watch.recording import Recording
from yzflow_watch.report import WatchReport

import yzflow as yz
from dynamics.support import netcdf

BIASED = 0.5  # of attention by position, from the step on at which the second training goes another way


def trained(steps, *, other_from=None, **options):
    """A recorder of a training that may go another way from a step on, and counts other batches then."""
    model = layers.Trained(layers.classes_inside(vocab_size=50))
    tokens = layers.draw(model.classes, 24, 200, np.random.default_rng(0))
    looks = {"attention": layers.attention, "logits": layers.logits, "rates": model.rates}
    recorder = yz.watch(model, tokens, **looks, optimizer=layers.PLAIN, batch_size=100, **options)
    for number in range(steps):
        if number == other_from:
            model.bias = BIASED
        model.step(number)
        recorder.step()
    return recorder


@pytest.fixture(scope="module")
def log():
    return trained(20, predict_at="log")


def test_predictions_are_written_after_each_doubling(log):
    assert log.recording.asked.tolist() == [1, 2, 4, 9, 19]
    assert log.recording.steps.tolist() == [0, 1, 2, 3, 4, 5, 7, 9, 12, 15, 19]  # as without predictions
    chosen = trained(12, predict_at=[6, 11])
    assert chosen.recording.asked.tolist() == [6, 11]
    assert {6, 11} <= set(chosen.recording.steps.tolist())


def test_later_training_does_not_change_what_was_stored(log):
    """Two trainings that part after step 4: the same predictions and fingerprint at 4, others later."""
    other = trained(20, predict_at="log", other_from=6).recording
    for step in (1, 2, 4):
        first, second = log.recording.stored(step), other.stored(step)
        assert list(first) == [one.name for one in claimed.known_rivals()]
        assert all(found.identical(second[name]) for name, found in first.items())
        assert log.recording.then(step).fingerprint == other.then(step).fingerprint
    assert log.recording.then(9).fingerprint != other.then(9).fingerprint
    assert WatchReport(log.recording, now=4).scores != WatchReport(other, now=4).scores


def test_what_is_stored_is_what_the_past_foresees(log):
    for step in (1, 4, 9):
        past = log.recording.then(step)
        for one in claimed.known_rivals():
            found, again = log.recording.stored(step)[one.name], rivals.foreseen(one, past)
            for name in again.data_vars:
                if again[name].notnull().any():
                    np.testing.assert_allclose(found[name].values, again[name].values, atol=1e-6)


def test_the_report_says_when_its_predictions_were_made(log):
    report = log.report()
    assert report.now == 4 and "Scan and Snap" in report.stored
    assert "Stored at step 4, before what followed was seen" in report.text
    assert log.recording.then(4).fingerprint[:16] in " ".join(report.text.split())
    afterwards = log.report(now=5)
    assert not afterwards.stored and "Computed afterwards, from what was recorded until step 5;" in afterwards.text


def test_the_report_takes_what_was_stored_and_not_what_would_be_said_now(log):
    changed = log.recording.dataset.copy(deep=True)
    changed["stored_sparser"].loc[{"asked": 4, "rival": "Scan and Snap"}] = 0.0
    report = WatchReport(Recording(changed), now=4)
    assert report.scores["Scan and Snap"]["sparser"] == 1.0
    assert WatchReport(log.recording, now=4).scores["Scan and Snap"]["sparser"] == pytest.approx(0.01)


# Changes that a person might make afterwards, in a file that they seal again.
CHANGES = {
    "a gain": lambda data: data["gain"].values.__setitem__((1, 0, 0, 0, 0), 0.5),
    "the last digit of a loss": lambda data: data["loss"].values.__setitem__(2, np.nextafter(data["loss"][2], 9.0)),
    "a share": lambda data: data["share"].values.__setitem__((0, 0), 0.3),
    "the optimizer": lambda data: data["facts_then"].values.__setitem__(
        2, str(data["facts_then"].values[2]).replace("SGD", "SGE")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_past_that_was_changed_afterwards_is_noticed(log, tmp_path, name):
    path = tmp_path / "run.nc"
    data = log.recording.dataset.copy(deep=True)
    CHANGES[name](data)
    with pytest.raises(ValueError, match="`recording` must have the past from which its predictions were made"):
        WatchReport(Recording(data), now=4)
    netcdf.save_dataset(data, path)
    with pytest.raises(ValueError, match="`path` must hold predictions that were made from the past that it holds"):
        Recording.load(path)


def test_facts_that_came_later_are_not_known_then(log):
    """Batches are counted in the mean: what is known in the end is another number, and the past keeps its own."""
    data = log.recording.dataset.copy(deep=True)
    data.attrs["facts"] = data.attrs["facts"].replace('"batch": 100.0', '"batch": 7.0')
    report = WatchReport(Recording(data), now=4)
    assert report.places["Scan and Snap"].setting.batch_size == 100
    assert Recording(data).facts["batch"] == 7.0
    assert WatchReport(Recording(data), now=5).places["Scan and Snap"].setting.batch_size == 7


def test_a_future_that_was_changed_is_no_matter_of_the_past(log):
    data = log.recording.dataset.copy(deep=True)
    data["loss"].values[-1] = 0.5
    assert WatchReport(Recording(data), now=4).stored


def test_it_goes_on_with_what_was_stored(tmp_path):
    path = tmp_path / "run.nc"
    whole = trained(5, predict_at="log")
    trained(3, predict_at="log", path=path)
    model = layers.Trained(layers.classes_inside(vocab_size=50))
    for number in range(3):
        model.step(number)
    tokens = layers.draw(model.classes, 24, 200, np.random.default_rng(0))
    looks = {"attention": layers.attention, "logits": layers.logits, "rates": model.rates}
    more = yz.watch(model, tokens, **looks, optimizer=layers.PLAIN, batch_size=100, predict_at="log", path=path)
    for number in range(3, 5):
        model.step(number)
        more.step()
    assert more.recording.dataset.identical(whole.recording.dataset)
    looks |= {"path": path}
    two_heads = {"attention": lambda model, sequences: np.repeat(layers.attention(model, sequences), 2, axis=1)}
    wider = {"logits": lambda model, sequences: np.pad(layers.logits(model, sequences), ((0, 0), (0, 1)))}
    for given, other in ((tokens[:10], {}), (tokens, two_heads), (tokens, wider)):
        with pytest.raises(ValueError, match="`path` must hold a recording of the same model on the same tokens"):
            yz.watch(model, given, **looks | other)


def test_a_rival_that_fails_does_not_stop_a_training(monkeypatch):
    class Broken:
        name = "broken"

        def predict(self, recording):
            raise KeyError("gone")

    known = claimed.known_rivals()
    monkeypatch.setattr("yzflow_watch.recorder.known_rivals", lambda: (*known, Broken()))
    with pytest.warns(UserWarning, match="broken foresees nothing at step 1: KeyError"):
        recorder = trained(1, predict_at=[1])
    assert "broken" not in recorder.recording.stored(1)


@pytest.mark.parametrize("given", ["often", [-1], [0.5], 3.5])
def test_bad_steps(given):
    with pytest.raises(ValueError, match="`predict_at` must"):
        trained(0, predict_at=given)
