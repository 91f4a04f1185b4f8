"""Drift against noise: the rules of the prediction, what they say of SGD, and the figure's words."""

import dataclasses

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from dynamics import SequenceClasses, gradient_flow, linear_noise
from yzflow.figures import Effort
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token
from yzflow_studies.drift_and_noise import study as model

(ENTRY,) = model.FIGURES
SETTING = Setting("small", single_common_token(2, 1000, 0.3), 1.0, 1e-3, 40.0)


@pytest.fixture(scope="module")
def predicted():
    return model.predict(SETTING, [0, 20, 40])


def known():
    """Two logits with round numbers: one that finite sequences help, one that they turn below T = 5."""
    values = {"drift": [[2.0, 1.0]], "shift": [[1.0, -4.0]], "between": [[4.0, 1.0]], "within": [[0.0, 12.0]]}
    return xr.Dataset({k: (("time", "logit"), v) for k, v in values.items()}, {"sign": ("logit", [1.0, 1.0])})


def test_its_rules_on_round_numbers():
    found = known()
    np.testing.assert_allclose(model.shortest(found), [[0, 5]])
    mean, deviation = model.moments(found, batch_size=4, length=13)
    np.testing.assert_allclose(mean, [[2 + 1 / 12, 1 - 4 / 12]])
    np.testing.assert_allclose(deviation, [[1, np.sqrt(2 / 4)]])
    np.testing.assert_allclose(model.wrong(found, batch_size=4, length=None), scipy.stats.norm.cdf([[-2, -2]]))
    level = scipy.stats.norm.cdf(-2)
    np.testing.assert_allclose(model.smallest_batch(found, length=None, level=level), [[4, 4]])
    assert np.isinf(model.smallest_batch(found, length=5 - 1e-9).values[0, 1])
    assert np.isfinite(model.smallest_batch(found, length=5 + 1e-9).values[0, 1])
    # The other way round: a negative sign turns drift and shift, and no length helps a drift of the wrong sign.
    turned = found.assign_coords(sign=("logit", [-1.0, -1.0]))
    assert np.isnan(model.shortest(turned)).all() and np.isinf(model.smallest_batch(turned, length=None)).all()
    np.testing.assert_allclose(
        model.wrong(turned, batch_size=4, length=13), 1 - model.wrong(found, batch_size=4, length=13)
    )


def test_the_smallest_batch_has_the_chance_that_was_asked_for(predicted):
    at = predicted.sel(time=40.0)
    need = model.smallest_batch(at, length=10**6, level=0.01)
    for k, b in enumerate(need.values):
        assert float(model.wrong(at, batch_size=b, length=10**6)[k]) == pytest.approx(0.01, rel=1e-9)


def test_signs_are_those_of_tokens_with_each_query():
    classes = SequenceClasses([[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0.2, 0.8]], [0, 0, 1])
    expected = [[-1, 1, -1, 0], [0, 0, -1, 1]]
    np.testing.assert_array_equal(model.expected_signs(classes).reshape(2, 4), expected)


def test_the_prediction_is_made_of_the_flow_and_of_linear_noise(predicted):
    rates = {"eta_y": SETTING.eta_y, "eta_z": SETTING.eta_z}
    whole = linear_noise(SETTING.classes, **rates, steps=[0, 20, 40])
    np.testing.assert_array_equal(predicted["drift"], whole["z"])  # all logits occur with the one query
    np.testing.assert_array_equal(predicted["within"][2], np.diag(whole["within"][2]))
    # Steps of one and a flow differ in time by half a step.
    flow = gradient_flow(SETTING.classes, **rates, t_end=40.0, times=[20.0, 40.0]).dataset["z"][:, 0]
    np.testing.assert_allclose(predicted["drift"][1:], flow, rtol=0.15)
    assert (predicted["drift"][1:] * predicted["sign"] > 0).all()


def test_the_prediction_is_what_sgd_does(predicted):
    """Means and shares over 50 seeds: false alarms below 1e-3, and 10% of the deviation for what is left out."""
    b, length = 64, 256
    z = model.measure(SETTING, batch_size=b, length=length, every=20, steps=40, seeds=range(50))
    mean, deviation = model.moments(predicted, batch_size=b, length=length)
    error = deviation.values[1:] / np.sqrt(50)
    limit = scipy.stats.norm.isf(1e-3 / (4 * error.size))
    assert (np.abs(z.mean("seed")[1:] - mean[1:]) < limit * error + 0.1 * deviation.values[1:]).all()
    ratio = np.log(z.std("seed", ddof=1)[1:] / deviation[1:])
    assert (np.abs(ratio) < limit / np.sqrt(2 * 49) + 0.1).all()
    # Rare distinct tokens lose on the mean, which no batch size changes, and the drift alone would not say so.
    rare = (mean[2] < 0).values
    assert rare.sum() == 6 and (z.mean("seed")[2].values[rare] < 0).all()
    assert (predicted["drift"][2] * predicted["sign"] > 0).all()


def test_a_batch_of_one_shows_the_signs_of_long_sequences(predicted):
    z = model.measure(SETTING, batch_size=1, length=None, every=40, steps=40, seeds=range(10))
    assert (z[:, -1] > 0).all()
    assert float(model.wrong(predicted, batch_size=1, length=None)[-1].max()) < 0.1


@pytest.fixture(scope="module")
def data():
    """Made-up data in the form of the figure's: exact agreement at two sizes and infinity."""
    steps = np.arange(0, 101, 10.0)
    grow = steps[:, None] * np.ones(3)
    predicted = xr.Dataset(
        {
            "drift": (("time", "logit"), grow * [-2.0, 2.0, 1.0]),
            "shift": (("time", "logit"), grow * [0.0, 1.0, -999.0]),
            "between": (("time", "logit"), grow * 0 + 1.0),
            "within": (("time", "logit"), grow * 0 + 1.0),
        },
        {"time": steps, "sign": ("logit", [-1.0, 1.0, 1.0])},
    )
    sizes = [(64, 64.0), (64, 256.0), (1, np.inf)]
    share = [
        float(model.wrong(predicted, batch_size=b, length=None if t == np.inf else t)[-1].mean()) for b, t in sizes
    ]
    mean = model.moments(predicted, batch_size=64, length=256)[0]
    measured = xr.Dataset(
        {
            "share": (("size", "seed"), np.array(share)[:, None] + [[-0.01, 0.01]]),
            "chance": ("size", share),
            "batch_size": ("size", [b for b, _ in sizes]),
            "length": ("size", [t for _, t in sizes]),
            "mean": (("time", "logit"), mean.values),
            "half": (("time", "logit"), np.ones((11, 3))),
        },
        {"time": steps},
        {"seeds": 2, "batch_size": 64, "length": 256, "steps": 100},
    )
    predicted = predicted.assign_attrs(setting="K = 9, M = 77", eta_y=0.5, eta_z=0.002)
    return {"predicted": predicted, "measured": measured}


def test_the_caption_is_made_of_the_data(data):
    text = ENTRY.caption(data)
    assert "has the other sign after 100 steps for distinct 2, of 3 kinds of tokens" in text
    assert "the mean over 2 seeds has the predicted sign for 3" in text
    assert "from T = 1000 after 100 steps, whatever b" in text
    assert "over 3 sizes, by at most 0.000, with a standard error of 0.010 there" in text
    other = {**data, "predicted": data["predicted"].assign(shift=-data["predicted"]["shift"])}
    text = ENTRY.caption(other)
    assert "for none, of 3 kinds" in text and "has the predicted sign for 2" in text


def test_it_is_drawn(data):
    left, middle, right = model.drift_and_noise(data).axes
    assert [line.get_text() for line in right.get_legend().get_texts()] == ["common", "distinct 1", "distinct 2"]
    assert len(middle.get_legend().get_texts()) == 1
    # Of the second distinct token the line begins where its mean has the sign: T = 1000.
    drawn = [line.get_xdata()[np.isfinite(line.get_ydata())] for line in right.lines if len(line.get_xdata()) > 2]
    assert 990 < drawn[2][0] < 1090 and drawn[1][0] == pytest.approx(10)
    assert len(left.lines) >= 6


def test_data_for_it(monkeypatch):
    monkeypatch.setattr(model, "_SIZES", {4: (64,)})
    monkeypatch.setattr(model, "_LIMITS", (1,))
    monkeypatch.setattr(model, "_STEPS", 20)
    small = dataclasses.replace(SETTING, classes=SequenceClasses.single_common_token(2, 50, distinct=[1.0, 0.5]))
    monkeypatch.setattr(model, "_setting", lambda: small)
    found = ENTRY.data(Effort(quick=True))
    assert found["measured"].sizes["size"] == 2 and found["predicted"]["time"][-1] == 20
    gap, error = model.deviations(found)
    assert (np.abs(gap) < 5 * error + 0.2).all()
    assert "steps" in ENTRY.caption(found)


def test_bad_values():
    with pytest.raises(ValueError, match=r"`level` must be below 0.5, but got 0.7"):
        model.smallest_batch(known(), length=None, level=0.7)
    with pytest.raises(ValueError, match="`batch_size` must be positive"):
        model.wrong(known(), batch_size=0, length=None)
