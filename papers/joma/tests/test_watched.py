"""JoMA's forecasts for other trainings: its closed form by another solver, and a training that is its own flow."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
from yzflow_joma import PAPER
from yzflow_joma.watched import drive, weights

import yzflow as yz

RIVAL = PAPER.rivals[0]
SHARES = np.array([[0.3, 0.25, 0.2, 0.2, 0.05, 0.0], [0.0, 0.05, 0.05, 0.25, 0.4, 0.25]])


class Reduced:
    """A model with attention along the reduced flow, by scipy, with some units of time per step."""

    def __init__(self, size, unit, length=4000, n=30):
        rng = np.random.default_rng(0)
        which = np.arange(n) % 2
        rows = [rng.permutation(np.repeat(np.arange(6), np.round(SHARES[k] * length).astype(int))) for k in which]
        self.tokens = np.column_stack([rows, 6 + which, which])
        mu = SHARES - SHARES.mean(axis=0)
        self.mu, self.unit, self.v = size * mu / np.abs(mu).max(), unit, np.zeros_like(mu)

    def to(self, step):
        def slope(t, v):
            return (self.mu.ravel() - v) * np.exp(v * v / 2)

        options = {"method": "LSODA", "rtol": 1e-10, "atol": 1e-12}
        end = scipy.integrate.solve_ivp(slope, (0, self.unit * step), np.zeros(self.mu.size), **options).y[:, -1]
        self.v = end.reshape(self.mu.shape)

    def attention(self, sequences):
        z = (self.v**2 / 2)[sequences[:, -1, None] - 6, sequences[:, :-1]]
        seen = np.exp(z)
        return np.concatenate([seen / seen.sum(axis=1, keepdims=True), np.zeros((len(seen), 1))], axis=1)[:, None]


def recorded(size, unit, steps):
    model = Reduced(size, unit)
    recorder = yz.watch(
        model,
        model.tokens,
        attention=lambda model, given: model.attention(given),
        logits=lambda model, given: np.zeros((len(given), 8)),
    )
    for step in range(1, steps + 1):
        if step >= recorder._next:
            model.to(step)
        recorder.step()
    return recorder.recording


def test_weights_by_scipy():
    mu, times = np.array([[0.3, -1.2], [2.5, 0.0]]), np.array([0.05, 0.4, 2.0, 15.0])
    v = weights(mu, times)
    for entry, end in np.ndenumerate(mu):
        path = scipy.integrate.solve_ivp(
            lambda t, v, end=end: (end - v) * np.exp(v * v / 2), (0, 15), [0.0], "LSODA", times, rtol=1e-11, atol=1e-13
        )
        np.testing.assert_allclose(v[(slice(None), *entry)], path.y[0], atol=2e-4)


def test_a_training_that_is_its_reduced_flow_is_foreseen():
    """Forecast of the turn from a recording that ends before it."""
    whole = recorded(2.5, 0.004, 1500)
    steps, entropy = whole.steps, whole.dataset["entropy"].values[:, 0, 0]
    least = steps[entropy.argmin()]
    now = int(steps[steps <= least / 2][-1])
    assert now > 20 and entropy[-1] > entropy.min() + 0.01  # it turns
    past = whole.until(now)
    foreseen = RIVAL.predict(past)
    turns = foreseen["turns"].values[0, 0]
    # Even odds where the turn is, up to a factor of 1.5.
    even = now * np.exp(np.interp(0.5, turns, np.log([2, 4, 8, 16, 32, 64])))
    assert least / 1.5 < even < least * 1.5
    gain = whole.dataset["gain"].values[:, 0, 0]
    change = gain[np.searchsorted(steps, 2 * now)] - gain[steps == now][0]
    known = np.abs(change) > 0.05 * np.nanmax(np.abs(change))
    assert known.sum() > 4
    assert ((foreseen["rises"].values[0, 0] > 0.5) == (change > 0))[known].all()
    assert np.nanargmax(foreseen["leads"].values[0, 0], axis=1).tolist() == np.nanargmax(gain[-1], axis=1).tolist()
    assert float(foreseen["sparser"][0, 0]) == pytest.approx(0.9)
    # After the turn the forecast is denser attention.
    assert float(RIVAL.predict(whole)["sparser"][0, 0]) == pytest.approx(0.1)


def test_it_is_silent_without_a_past():
    whole = recorded(2.5, 0.02, 4)
    assert not RIVAL.predict(whole.until(1)).data_vars
    with pytest.warns(UserWarning, match="the model of step 1 answers as that of step 0"):
        still = recorded(2.5, 0.0, 4)
    assert not RIVAL.predict(still).data_vars
    np.testing.assert_allclose(drive(still).sum(axis=0), 0, atol=1e-15)


def test_reports_ask_it_where_it_is_installed():
    report = yz.watch(
        model := Reduced(2.5, 0.01),
        model.tokens,
        attention=lambda model, given: model.attention(given),
        logits=lambda model, given: np.zeros((len(given), 8)),
    ).report()
    assert "JoMA" in report.rivals
