"""The certified map: what is said of a cell is so at settings in it, and what is cut or open is not called proved."""

import dataclasses

import numpy as np
import pytest
from flint import arb
from yzflow_enclose import cells
from yzflow_enclose.stepping import precision

from yzflow_studies.certified_leads import cells as certified_map
from yzflow_studies.certified_leads import lattice
from yzflow_studies.certified_leads.cells import CLAIMS, FALSE, OPEN, TRUE, Plane, shares

(MAP,) = certified_map.FIGURES
T_END = 60.0
SLOW, FAST = Plane(2, 2, (0.3, 0.32), (0.125, 0.135)), Plane(2, 2, (0.165, 0.168), (1.99, 2.01))
LEAD, THEOREM2 = CLAIMS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cells")


@pytest.fixture(scope="module")
def found(folder):
    # The second holds finding 8's setting: overlap 1/6, eta_Z = 2.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certified_map, "_DEGREE", 3)
        return certified_map.certified_cells([SLOW, FAST], t_end=T_END, folder=folder)


def test_settings_in_a_cell_agree_with_it(found):
    assert found["value"].values.tolist() == [TRUE, TRUE, FALSE, TRUE]
    rng = np.random.default_rng(5)
    for k, plane in ((0, SLOW), (2, FAST)):
        overlap, ratio = rng.uniform(*plane.overlaps), rng.uniform(*plane.ratios)
        single = lattice.certified(np.array([overlap]), np.array([ratio]), t_end=T_END)["value"].values[:, 0, 0, 0]
        assert single.tolist() == found["value"].values[k : k + 2].tolist()
    assert (found["reached"].values[[0, 1, 3]] == T_END).all() and 45 < found["reached"].values[2] < 52.7


def test_the_range_of_the_common_weight_holds_that_of_the_overlap():
    low, high = certified_map.common_range(0.3, 0.34)
    for rho, expected in ((0.3, low), (0.34, high)):
        assert expected == pytest.approx(np.sqrt(5 * rho / (1 - rho)))
    with precision(150):
        assert arb(low) ** 2 * (1 - arb(0.3)) <= 5 * arb(0.3)
        assert arb(high) ** 2 * (1 - arb(0.34)) >= 5 * arb(0.34)
    assert lattice.classes_of(2, 2, 0.3).overlap()[0, 1] == pytest.approx(0.3)


def test_open_cells_are_cut_and_keep_what_was_decided(monkeypatch):
    asked = []

    def decided(plane, box, names, t_end, folder):
        asked.append((box, names))
        whole = box == (0.2, 0.4, 0.25, 1.0)
        lead = OPEN if whole else TRUE if box[2] < 0.5 else OPEN if box[0] < 0.3 else FALSE
        return {name: (lead if name == LEAD else TRUE, 1.0) for name in names}

    monkeypatch.setattr(certified_map, "_decided", decided)
    monkeypatch.setattr(certified_map, "_lead_falls", lambda K, M, rho, ratio, t_end: False)
    plane = Plane(2, 2, (0.2, 0.4), (0.25, 1.0), levels=1)
    found = certified_map.certified_cells([plane], t_end=1.0)
    assert len(asked) == 5 and all(names == [LEAD] for _, names in asked[1:])
    assert shares(found, LEAD, plane.name) == pytest.approx({TRUE: 0.5, FALSE: 0.25, OPEN: 0.25})
    assert shares(found, THEOREM2, plane.name) == pytest.approx({TRUE: 1.0, FALSE: 0.0, OPEN: 0.0})
    text = certified_map.claims(found)
    assert "proved in 50.0% of the plane, false in 25.0%, open in 25.0% (false from 0.5 on)" in text
    drawn = MAP(found)
    panels = [axes for axes in drawn.axes if axes.patches]
    assert [len(axes.patches) for axes in panels] == [4, 1]
    # Where the answer changes from corner to corner, the lead is not asked of the whole cell.
    asked.clear()
    monkeypatch.setattr(certified_map, "_lead_falls", lambda K, M, rho, ratio, t_end: ratio > 0.6)
    certified_map.certified_cells([dataclasses.replace(plane, levels=0)], t_end=1.0)
    assert asked == [((0.2, 0.4, 0.25, 1.0), [THEOREM2])]


def test_a_claim_is_true_only_if_all_its_sums_are(monkeypatch):
    def signs(values):
        found = [cells.Sign(value, 1.0 + k) for k, value in enumerate(values)]
        monkeypatch.setattr(cells, "decide_cell", lambda cell, rows, **_: (found, cells.CellEnclosure(cell, 6)))
        return certified_map._decided(SLOW, (0.3, 0.32, 0.125, 0.135), tuple(CLAIMS), 5.0, None)

    assert signs([True, True, True, True]) == {LEAD: (TRUE, 1.0), THEOREM2: (TRUE, 2.0)}
    assert signs([None, True, None, True]) == {LEAD: (OPEN, 1.0), THEOREM2: (OPEN, 2.0)}
    assert signs([False, None, False, True]) == {LEAD: (FALSE, 1.0), THEOREM2: (FALSE, 2.0)}


def test_a_guess_in_floats_says_where_the_lead_falls():
    assert not certified_map._lead_falls(2, 2, 0.16, 0.125, T_END) and certified_map._lead_falls(2, 2, 0.16, 2.0, T_END)
    with pytest.raises(ValueError, match="`t_end` must be positive"):
        certified_map.certified_cells([SLOW], t_end=0.0)
