"""Leads of two tokens: closed forms against flows, verdicts of made-up runs, and what the figure claims."""

import math

import numpy as np
import pytest
import xarray as xr

from theory import attention, decoder
from theory.scan_and_snap import initial
from yzflow.papers.scan_and_snap.lengths import said
from yzflow_studies.initial_values import study


def test_the_time_of_suppression_is_that_of_the_growth_that_is_needed():
    """Back from the time: B of Theorem 4 there is K times the B_n of the lead."""
    sizes = {"vocab_size": 1000, "n_classes": 2, "eta_y": 1.0, "eta_z": 0.5}
    (row,) = study.suppression(2, 1000, 0.3, 1.0, 0.5, [0.5], 2.0)["rows"]
    c0 = attention.speed_constant(n_classes=2, overlap=0.3, vocab_size=1000)
    reached = attention.growth_exponent(2 * math.exp(row["ln_t"]), **sizes, c0=c0)
    assert reached == pytest.approx(2 * row["exponent"], rel=1e-9)
    assert row["exponent"] == pytest.approx(initial.exponent_needed(0.5, math.log(2)))
    # Late, h is that of ln t alone.
    (late,) = study.suppression(2, 1000, 0.3, 1.0, 0.5, [0.2], 2.0)["rows"]
    x = 1000 * decoder.h(math.exp(late["ln_t"]), vocab_size=1000, eta_y=1.0)
    assert x == pytest.approx(late["ln_t"] + math.log(1000), rel=1e-3)


def test_a_strong_lead_reaches_twice_the_attention_about_when_it_should():
    """The theory flow, moving features: the closed form is an order of magnitude."""
    (row,) = study.suppression(2, 1000, 0.3, 1.0, 0.5, [0.6], 2.0)["rows"]
    one = study.setting(2, 1000, 0.3, 0.5, 0.5, 100.0)
    found = initial.leads(one, "theory flow", 0.6)
    times = np.concatenate([[0.0], np.geomspace(0.01, 100.0, 120)])
    reached = times[np.argmax(found > math.log(2))]
    assert reached > 0 and abs(math.log(reached / 2) - row["ln_t"]) < 1


def made(shift, spread):
    ends = np.array(study.OFFS)[:, None] + shift + spread * np.linspace(-1, 1, 20)
    return xr.DataArray(ends, {"lead": list(study.OFFS), "seed": list(study.SEEDS)}, ["lead", "seed"])


@pytest.mark.parametrize(
    ("shift", "spread", "expected"),
    [
        (0.0, 0.01, ("supported", "refuted", "open")),
        (-0.05, 0.051, ("supported", "supported", "supported")),
        (0.05, 0.051, ("supported", "supported", "refuted")),
        (0.0, 1.0, ("refuted", "supported", "open")),
    ],
)
def test_verdicts(shift, spread, expected):
    found = study.verdicts(made(shift, spread))
    assert tuple(found[name] for name in ("H1", "H2", "H3")) == expected
    assert found["runs"] == 40
    for row in found["rows"]:
        if row["lead"] > 0:
            assert row["led"] == row["ahead"]
        if row["lead"] < 0:
            assert row["led"] == 20 - row["ahead"]


def test_the_figure_says_who_leads():
    (entry,) = study.FIGURES
    data = {
        "leads": {"full flow": {0.1: np.array([0.1, 0.2]), -0.1: np.array([-0.1, -0.1])}},
    }
    leads = "Every leader of the flows is that of the start; no lead is above 2 times it."
    assert entry.claims(data) == f"{leads} {said(128)}"
    data["leads"]["full flow"][-0.1] = np.array([-0.1, 0.1])
    assert "is not that of the start" in entry.claims(data)
