"""Scores of places in recordings, and recordings of before, which do not have them."""

import hashlib

import numpy as np
import pytest
import watched_layers as layers
from yzflow_watch import measures
from yzflow_watch.recording import Recording

from dynamics.support import netcdf


@pytest.fixture(scope="module")
def recorder():
    return layers.watched(layers.Trained(layers.classes_inside(vocab_size=50)), length=30, steps=5, predict_at=[1])


def old(recording):
    """The same recording as it was written before there were scores of places, with the fingerprints of then."""
    data = recording.dataset.drop_vars(measures.PLACES)
    first = data.isel(step=data["step"].values <= 1)
    digest = hashlib.sha256(str(data["facts_then"].values[0]).encode())
    for name in sorted(
        one for one in first.variables if "asked" not in first[one].dims and one not in ("rival", "ahead")
    ):
        values = first[name].values
        digest.update(f"{name}{values.shape}".encode())
        digest.update(np.ascontiguousarray(values, "<f8" if values.dtype.kind == "f" else "<i8").tobytes())
    return data.assign(past=("asked", [digest.hexdigest()]))


def test_scores_are_those_of_the_last_query(recorder):
    data, probe = recorder.recording.dataset, recorder._probe
    seen = layers.attention(recorder.model, probe.tokens)
    for name, value in measures.attention_by_place(seen, probe.tokens, probe.real).items():
        assert data[name].dims == ("step", "layer", "head")
        np.testing.assert_allclose(data[name].values[-1, 0], value)
    assert data["first_position"].values[0, 0, 0] == pytest.approx(1 / 30)  # uniform on the context of 30
    assert recorder.recording.facts["uniform"] == {
        "previous_token": 1 / 31, "prefix_match": None, "first_position": 1 / 31
    }  # fmt: skip


def test_a_recording_of_before_is_read_with_no_scores(recorder, tmp_path):
    netcdf.save_dataset(old(recorder.recording), tmp_path / "old.nc")
    found = Recording.load(tmp_path / "old.nc")
    assert all(np.isnan(found.dataset[name].values).all() for name in measures.PLACES)
    assert found.stored(1)
    assert found.then(1).fingerprint == str(old(recorder.recording)["past"].values[0])


def test_a_score_is_part_of_the_past(recorder):
    data = recorder.recording.dataset.copy(deep=True)
    data["first_position"].values[0] += 1e-9
    assert Recording(data).until(1).fingerprint != recorder.recording.until(1).fingerprint


def test_a_recording_of_before_goes_on(recorder, tmp_path):
    path = tmp_path / "old.nc"
    netcdf.save_dataset(old(recorder.recording), path)
    model = layers.Trained(layers.classes_inside(vocab_size=50))
    for number in range(5):
        model.step(number)
    more = layers.watched(model, length=30, steps=2, predict_at=[1], path=path)
    again = Recording.load(path).dataset["previous_token"].values[:, 0, 0]
    assert np.isnan(again[:6]).all() and np.isfinite(again[6:]).all() and len(again) > 6
    assert more.recording.stored(1)
