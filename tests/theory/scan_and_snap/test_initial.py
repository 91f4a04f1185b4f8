"""Initial logits as a prior: the threshold, where the loser stops, and how much growth a lead needs, in flows."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from dynamics import SequenceClasses
from theory import attention
from theory.scan_and_snap import initial
from theory.scan_and_snap.proofs import initial_values
from yzflow.audits import audit
from yzflow.papers.scan_and_snap.settings import Setting, classes_with_common_shares, single_common_token

CLASSES = classes_with_common_shares([0.3**0.5] * 4, 1000, n_queries=2, distinct=(1.0, 0.4))
FAST = Setting("fast", CLASSES, 1.0, 0.5, 200.0)


@pytest.mark.parametrize("level", ["theory flow", "modified flow", "full flow"])
def test_the_weaker_token_leads_from_the_threshold_on_and_a_tie_stays_one(level):
    """Two queries: the class's own row of Z starts off zero. One in ten thousand off the tie is enough."""
    for off in (-1e-4, 1e-4):
        found = initial.leads(FAST, level, off)
        assert found[0] == pytest.approx(off, rel=1e-9) and (np.sign(found) == np.sign(off)).all()
    assert np.abs(initial.leads(FAST, level, 0.0)).max() < 1e-10


def test_the_loser_stops_and_a_lead_takes_the_growth_that_is_proved():
    """The sum of both logits is B_n where these tokens have all attention, and what the lead needs in any case."""
    classes = SequenceClasses.single_common_token(2, 20, common=1.0, distinct=[1.0, 0.5])
    setting = Setting("two tokens", classes, 1.0, 5.0, 200.0)
    run = initial.started(setting, 0.3).simulate("theory flow", seed=0).dataset
    n, first, second = initial.pair(setting)
    z = run["z"].values[:, 0]
    rise = (z - z[0])[:, [first, second]]
    lead = np.log(run["attention"].values[:, n, second] / run["attention"].values[:, n, first])
    np.testing.assert_allclose(rise.sum(axis=1), initial.exponent_needed(0.3, lead), rtol=1e-6, atol=1e-8)
    stop = float(initial_values.stop(sp.exp(-2 * sp.Float(0.3))))
    assert (rise[:, 0] < stop).all() and lead[-1] > 0.32
    chi = attention.distinct_growth(rise.sum(axis=1), [0.5 * np.exp(z[0, second]), 1.0])
    np.testing.assert_allclose(np.log(chi[:, 1]) / 2, rise[:, 0], rtol=1e-6, atol=1e-8)


def test_the_numbers_are_those_of_the_proof():
    for p, other in ((0.4, 0.1), (0.2, 0.3)):
        assert initial.threshold(p, other) == pytest.approx(float(initial_values.threshold(p, other)), rel=1e-14)
    gain, wanted = np.expm1(2 * 0.05), np.expm1(2 * 0.7)
    found = float(initial_values.exponent_needed(sp.Float(gain), sp.Float(wanted)))
    assert initial.exponent_needed(0.05, 0.7) == pytest.approx(found, rel=1e-12)


def test_a_class_with_two_distinct_tokens_is_needed():
    one = Setting("one", SequenceClasses.single_common_token(2, 1000, common=1.0, distinct=[1.0]), 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="`data` must have two distinct tokens in a class"):
        initial.pair(one)


def test_the_check_fails_where_the_threshold_is_wrong(monkeypatch):
    inside = Setting("inside", single_common_token(2, 1000, 0.3), 1.0, 1e-3, 100.0)
    assert initial.wrong_leads(audit.Simulations(inside, seed=0), "theory flow") == 0
    right = initial.threshold
    monkeypatch.setattr(initial, "threshold", lambda p, other: right(p, other) + 0.2)
    assert initial.wrong_leads(audit.Simulations(inside, seed=0), "theory flow") > 0
    # With xi_n below zero, which a negative rate of attention stands for, leads shrink.
    monkeypatch.setattr(initial, "threshold", right)
    monkeypatch.setattr(initial, "started", lambda setting, off: replace(started(setting, off), eta_z=1e-12))
    assert initial.leads(inside, "theory flow", 0.05)[-1] == pytest.approx(0.05, rel=1e-7)


started = initial.started
