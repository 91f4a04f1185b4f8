"""The certified lattice: finding 8's setting is refuted where it should be, and what is open is not called proved."""

import numpy as np
import pytest
import yzflow_enclose as enclosures

from yzflow_studies.certified_leads import lattice

(LATTICE,) = lattice.FIGURES


@pytest.fixture(scope="module")
def found():
    # overlap 1/6 is a common token of weight 1 beside distinct ones of 2 and 1: finding 8 at K = M = 2, eta_Z = 2.
    return lattice.certified(np.array([1 / 6]), np.array([0.125, 2.0]), t_end=60.0)


def test_the_lead_of_finding_8_shrinks_there_and_not_at_a_slow_rate(found):
    classes = lattice.classes_of(2, 2, 1 / 6)
    assert classes.overlap()[0, 1] == pytest.approx(1 / 6)
    lead, theorem2 = found["value"].values
    assert lead.tolist() == [[[1], [0]], [[1], [0]]] and (theorem2 == 1).all()
    reached = found["reached"].values
    assert 52.0 < reached[0, 0, 1, 0] < 53.0 and (reached[found["value"].values == 1] == 60.0).all()


def test_what_ended_early_is_open(monkeypatch):
    right = enclosures.kept
    monkeypatch.setattr(enclosures, "kept", lambda *a, **o: right(*a, **{**o, "max_seconds": 1e-9}))
    found = lattice.certified(np.array([0.3]), np.array([0.5]), t_end=60.0)
    assert (found["value"] == lattice.OPEN).all() and (found["reached"] == 0).all()
    assert "proved at 0, refuted at 0, open at 1" in lattice.claims(found)


def test_the_figure_shows_and_says_what_is_decided(found):
    drawn = LATTICE(found)
    shown = [axes for axes in drawn.axes if axes.collections]
    assert len(shown) == 4
    for axes, values in zip(
        shown, found["value"].transpose("sizes", "claim", "ratio", "overlap").values.reshape(4, -1), strict=True
    ):
        assert axes.collections[0].get_array().ravel().tolist() == values.tolist()
        assert len(axes.texts) == (values != 1).sum()
    text = LATTICE.caption(found)
    assert "K = M = 2" not in text and "refuted from eta_Z/eta_Y = 2 on" in text and "Up to t = 60" in text
    assert "proved at 2, refuted at 0" in text
