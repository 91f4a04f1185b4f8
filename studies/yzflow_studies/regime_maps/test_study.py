"""Regime maps."""

import numpy as np
import pytest

from dynamics import gradient_flow
from yzflow.papers.scan_and_snap.lengths import said
from yzflow.papers.scan_and_snap.settings import single_common_token
from yzflow_studies.regime_maps import study as regime


@pytest.fixture(scope="module")
def errors():
    return regime.regime_map({"vocab_size": [5, 10, 300], "overlap": [0.01, 0.1]}, numbers=["Theorem 1", "Remark 1"])


def test_cells_without_room_for_the_classes_are_nan(errors):
    assert errors["error"].sel(vocab_size=5).isnull().all()
    assert errors["slowdown"].sel(vocab_size=5).isnull().all()
    assert errors["error"].sel(vocab_size=[10, 300], statement="Theorem 1").notnull().all()


def test_what_a_level_cannot_measure_is_nan(errors):
    assert errors["error"].sel(statement="Remark 1", level="SGD").isnull().all()


def test_the_corrected_remark_1_holds_in_every_cell(errors):
    assert (errors["error"].sel(statement="Remark 1", level="full flow", vocab_size=[10, 300]) < 0.01).all()


def test_beside_the_full_flow_the_caption_says_how_long_the_sequences_of_sgd_are(errors):
    sentence = said(regime._setting(**regime.DEFAULTS).of_batches["length"])
    for levels in (["full flow", "SGD"], ["full flow"], ["SGD"]):
        assert (sentence in regime.MAP.caption(errors.sel(level=levels))) == (len(levels) == 2)


def test_a_cell_is_the_error_that_the_definition_gives(errors):
    # The slow-down measured by hand, against the s that the map predicts.
    flows = {
        decoder: gradient_flow(
            single_common_token(10, 300, 0.1), eta_y=1.0, eta_z=1e-3, t_end=0.01, times=[0.01], decoder=decoder,
            rtol=1e-10, atol=1e-14,
        ).final.Z[0, 0]
        for decoder in ("full", "modified")
    }  # fmt: skip
    predicted = float(errors["slowdown"].sel(vocab_size=300, overlap=0.1))
    found = float(errors["error"].sel(statement="Remark 1", level="full flow", vocab_size=300, overlap=0.1))
    assert abs(flows["full"] / flows["modified"] / predicted - 1) == pytest.approx(found, rel=1e-3, abs=1e-7)


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        ({"eta": [1]}, {}, "`grid` must be one of 'n_classes', 'vocab_size', 'overlap', 'ratio', but got 'eta'"),
        ({"overlap": []}, {}, "`grid\\['overlap'\\]` must hold at least one value, but got none"),
        ({"overlap": [0.1]}, {"numbers": ["Lemma 1"]}, "`numbers` must be one of"),
        ({"overlap": [0.1]}, {"levels": ["closed form"]}, "`levels` must be one of"),
        ({"overlap": [1.5]}, {}, "`overlap` must be below 1, but got 1.5"),
    ],
)
def test_bad_input(grid, options, message):
    with pytest.raises(ValueError, match=message):
        regime.regime_map(grid, **options)


def test_the_map_shows_the_errors_and_the_predicted_boundary(errors):
    cells = errors.sel(vocab_size=[10, 300])
    figure = regime.MAP(cells)
    shown = figure.axes[0].collections[0].get_array()
    expected = cells["error"].sel(statement="Theorem 1", level="full flow").transpose("overlap", "vocab_size")
    np.testing.assert_allclose(np.ma.getdata(shown).ravel(), np.clip(expected.values, 1e-3, None).ravel())
    # On the logarithmic axes each value is in the middle of its cell, and no cell is cut off.
    edges = figure.axes[0].collections[0].get_coordinates()
    for axis, name in ((edges[0, :, 0], "vocab_size"), (edges[:, 0, 1], "overlap")):
        np.testing.assert_allclose(np.sqrt(axis[1:] * axis[:-1]), cells[name])
    assert figure.axes[0].get_xlim() == pytest.approx((edges[0, 0, 0], edges[0, -1, 0]))
    assert len(figure.axes[0].collections) == 2  # s is above 1/2 at M = 10 and below at M = 300: the boundary is drawn


def test_printed_and_corrected_forms_have_their_own_panels(errors):
    cells = errors.sel(vocab_size=[10, 300])
    assert cells["corrected"].sel(statement=["Theorem 1", "Remark 1"]).values.tolist() == [False, True]
    figure = regime.MAP(cells)
    names = [axes.get_ylabel().split("\n")[0] for axes in figure.axes if "\n" in axes.get_ylabel()]
    assert names == ["Theorem 1, printed", "Remark 1, printed", "Remark 1, corrected"]
    n_levels = cells.sizes["level"]
    assert [axes.get_title() for axes in figure.axes[:n_levels]] == [f"against {one}" for one in cells["level"].values]
    assert cells["level"].values[0] == "full flow"
    for row, name in ((1, "printed"), (2, "error")):
        shown = np.ma.getdata(figure.axes[row * n_levels].collections[0].get_array()).ravel()
        wanted = cells[name].sel(statement="Remark 1", level="full flow").transpose("overlap", "vocab_size").values
        np.testing.assert_allclose(shown, np.clip(wanted, 1e-3, None).ravel())
    # Remark 1's printed slow-down is 1 - rho; the corrected one at M = 300, rho = 0.1 is that of finding 1.
    slow = float(cells["slowdown"].sel(vocab_size=300, overlap=0.1))
    printed = float(cells["printed"].sel(statement="Remark 1", level="full flow", vocab_size=300, overlap=0.1))
    assert printed == pytest.approx(1 - slow / (1 - 0.1), abs=2e-3)
    caption = regime.MAP.caption(cells)
    assert "expected to hold for Remark 1 at the level full flow" in caption and "The dashed line" in caption
    alone = cells.sel(vocab_size=[300])  # s is below 1/2 in all of them: no line, and no word of one
    assert "dashed" not in regime.MAP(alone).get_suptitle() + regime.MAP.caption(alone)


def test_ensembles_give_the_errors_of_single_flows(monkeypatch):
    """Every statement, at cells with and without next tokens that never occur."""
    grid = {"vocab_size": [4, 200], "overlap": [0.01, 0.2], "ratio": [0.3], "n_classes": [4]}
    together = regime.regime_map(grid, levels=["full flow"])
    monkeypatch.setattr(regime, "ENSEMBLES", ())
    alone = regime.regime_map(grid, levels=["full flow"])
    for name in ("error", "printed"):
        np.testing.assert_allclose(together[name], alone[name], rtol=1e-5, atol=1e-9)
    assert together["error"].notnull().all()
