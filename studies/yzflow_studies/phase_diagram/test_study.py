"""The transition over settings, in units of t*, against single flows and closed forms."""

import numpy as np
import pytest
import xarray as xr
from driving import example
from matplotlib.figure import Figure
from yzflow_beyond_scan_and_snap import late

from dynamics import gradient_flow, gradient_flow_ensemble
from theory import attention, decoder
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.settings import single_common_token
from yzflow_studies.phase_diagram import study as pd

FIGURES = {entry.name: entry for entry in pd.FIGURES}
SIZES = {"n_classes": 10, "vocab_size": 1000, "overlap": 0.0101, "ratio": 0.5}


@pytest.fixture(scope="module")
def maps():
    ratios = xr.DataArray([1e-6, 0.5], dims="ratio")
    return pd.diagram(SIZES | {"ratio": ratios, "overlap": xr.DataArray([0.0101, 0.3], dims="overlap")})


def test_time_is_in_units_of_the_transition_time():
    scaled = pd.in_transition_times(SIZES)
    rate = float(scaled["eta_y"])
    assert decoder.transition_time(n_classes=10, vocab_size=1000, eta_y=rate) == pytest.approx(1.0, rel=1e-12)
    assert float(scaled["eta_z"]) == pytest.approx(rate / 2)
    share = float(scaled["common"]) ** 2
    assert share / (share + float((scaled["distinct"] ** 2).sum())) == pytest.approx(0.0101, rel=1e-12)


@pytest.mark.parametrize("level", pd.LEVELS)
def test_a_setting_is_what_the_single_flow_shows(maps, level):
    """`around_transition`, by a grid of output times, on the flow at eta_Y = 1 in SGD steps."""
    unit = decoder.transition_time(n_classes=10, vocab_size=1000, eta_y=1.0)
    flow = gradient_flow(single_common_token(10, 1000, 0.0101), eta_y=1.0, eta_z=0.5, t_end=1000 * unit, decoder=level,
                         times=np.concatenate([[0], np.geomspace(0.01, 1000, 800)]) * unit)  # fmt: skip
    expected = pt.around_transition({level: flow}).isel(flow=0)
    found = maps.sel(level=level, ratio=0.5, overlap=0.0101)
    for name in ("fastest_common", "fastest_distinct"):
        assert float(found[name]) * unit == pytest.approx(float(expected[name]), rel=2e-3)
    assert float(found["done"]) == pytest.approx(float(expected["done"]), rel=2e-3)
    assert float(found["change"]) == pytest.approx(float(expected["change"]), rel=1e-6)


def test_with_slow_attention_the_theory_is_fastest_at_t_star_and_the_full_flow_after_it(maps):
    slow = maps.sel(ratio=1e-6)
    np.testing.assert_allclose(slow["fastest_distinct"].sel(level=["theory", "modified"]), 1, rtol=1e-3)
    late = slow["fastest_distinct"].sel(level="full")
    assert (late > 1.01).all() and float(late.sel(overlap=0.3)) > float(late.sel(overlap=0.0101))


def test_what_is_done_at_t_star_with_slow_attention_is_a_ratio_of_margins():
    """Attention's change is then proportional to Gamma, so to h^2: the numbers of the finding."""
    sizes = xr.DataArray([10, 1000, 10**5], dims="vocab_size")
    own = pd.diagram({"n_classes": 10, "vocab_size": sizes, "overlap": 0.2, "ratio": 1e-7}, levels=["theory", "full"])
    for i, size in enumerate(sizes.values.tolist()):
        single = decoder.Decoder(size, 1, 1.0)
        share = (single.h(single.transition_time) / single.h(1000 * single.transition_time)) ** 2
        assert float(own["done"].sel(level="theory")[i]) == pytest.approx(share, rel=1e-3)
        assert share == pytest.approx((0.0427, 0.1216, 0.2062)[i], abs=1e-4)
    # At K = M the full flow is the modified one at the rate (1 - rho) eta_Y.
    assert float(own["fastest_distinct"].sel(level="full")[0]) == pytest.approx(1 / 0.8, rel=1e-3)


@pytest.mark.parametrize("level", pd.LEVELS)
def test_the_constant_of_the_start_is_exact_there(level):
    """-z / B tends to one as t goes to 0, at settings inside and outside the assumptions."""
    falls = pd.falls(40, seed=3, levels=[level], times=np.array([1e-6]))
    np.testing.assert_allclose(falls["fall"], falls["from_start"], rtol=2e-4)
    assert float(np.abs(np.log(falls["exponent"] / falls["fall"].isel(level=0))).max()) > 0.5


def test_the_constant_of_the_start_is_theorem_4_s_where_its_assumptions_hold():
    """1/M << rho << 1/K; and the full flow's is s times that of the others."""
    own = {"n_classes": 3, "vocab_size": 10**7, "overlap": 1e-4}
    expected = attention.speed_constant(n_classes=3, overlap=1e-4)
    assert pd.start_constant("theory", **own) == pytest.approx(expected, rel=2e-3)
    s = attention.full_flow_slowdown(**own)
    assert pd.start_constant("full", **own) == pytest.approx(pd.start_constant("modified", **own) / s, rel=1e-12)
    closed = 2 * 1e-4 * (1 - 1e-4) * 10**7 / (10**7 - 1) ** 2
    assert pd.start_constant("full", **own) == pytest.approx(1 / closed, rel=1e-9)


def test_gamma_collapses_over_classes_and_rates_and_not_over_the_vocabulary():
    times = np.geomspace(0.01, 100, 50)
    curves = pd.gamma_curves([100, 10**5], times)
    for n_classes, eta_y in ((1, 1.0), (7, 0.3), (100, 5.0)):
        own = decoder.Decoder(100, n_classes, eta_y)
        expected = own.gamma(times * own.transition_time) / own.peak_gamma
        np.testing.assert_allclose(curves["gamma"].sel(vocab_size=100), expected, rtol=1e-11)
    own = decoder.Decoder(100, 1, 1.0)
    half = own.gamma(float(curves["half"][0]) * own.transition_time) / own.peak_gamma
    assert half == pytest.approx(0.5, abs=1e-4)
    assert float(curves["half"][1]) < float(curves["half"][0]) < 3


def test_the_number_of_distinct_tokens_matters_once_attention_has_moved_far():
    """At one K, M, overlap and ratio of the rates, in units of t*: the fall of the common token in the theory flow."""
    t_star = decoder.transition_time(vocab_size=100, n_classes=2, eta_y=1.0)
    falls = []
    for number in (1, 5):
        weight = np.sqrt(0.05 / 0.95) / np.sqrt(number)  # of the common token over all distinct ones, overlap 0.05
        options = {"n_classes": 2, "vocab_size": 100, "common": weight / (1 + weight), "n_distinct": number}
        falls.append(-late.theory_logit(np.log([1e-3 * t_star, 1e3 * t_star]), **options, eta_z=100.0))
    assert falls[1][0] == pytest.approx(falls[0][0], rel=1e-3) and falls[1][1] > 1.1 * falls[0][1]


def test_eta_y_is_no_axis():
    """The flow at another eta_Y and the same ratio is the same, in units of its own t*."""
    one = gradient_flow_ensemble(pd.in_transition_times(SIZES), t_end=3.0, rtol=1e-10, atol=1e-12)
    unit = decoder.transition_time(n_classes=10, vocab_size=1000, eta_y=0.37)
    flow = gradient_flow(single_common_token(10, 1000, 0.0101), eta_y=0.37, eta_z=0.185, t_end=3 * unit, n_times=2,
                         rtol=1e-10, atol=1e-12)  # fmt: skip
    np.testing.assert_allclose(one["z"][0], flow.dataset["z"][-1, 0, :6], rtol=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pd.diagram({"n_classes": 3}), "`sizes` must have the keys .* but got none called 'vocab_size'"),
        (lambda: pd.diagram(SIZES | {"overlap": 1.5}), r"`sizes\['overlap'\]` must lie between 0 and 1, but got 1.5"),
        (lambda: pd.diagram(SIZES, span=0.5), "`span` must be above 1"),
        (lambda: pd.diagram(SIZES, levels=["SGD"]), "`levels` must be one of"),
        (lambda: pd.falls(0), "`n_settings` must be at least 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_example_draws_both_figures_with_claims_from_its_data(tmp_path, capsys, monkeypatch):
    # To lay out and encode four files takes matplotlib ten seconds.
    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **_: file.write(b"drawn"))
    assert example("phase_diagram").main(["--quick", "--out", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert {"phase_diagram.png", "phase_collapse.pdf", "captions.txt", "phase_diagram_sizes.nc"} <= names
    text = capsys.readouterr().out
    assert "64 settings" in text and "the larger M, the sharper the snap" in text


def test_the_maps_show_the_data(maps):
    figure = FIGURES["phase_diagram"]((maps, maps))
    shown = figure.axes[0].collections[0].get_array()
    expected = np.log10(maps["fastest_distinct"].sel(level="theory").transpose(*maps["done"].dims[:0:-1]))
    np.testing.assert_allclose(np.ma.getdata(shown), expected)
    norm = figure.axes[0].collections[0].norm
    assert norm.vmax == -norm.vmin == pytest.approx(float(np.abs(np.log10(maps["fastest_distinct"])).max()))


def test_captions_say_what_the_data_says(maps):
    other = maps.assign(fastest_distinct=maps["fastest_distinct"] * 0 + 3.0, done=maps["done"] * 0 + 0.25)
    said = FIGURES["phase_diagram"].claims((maps, other))
    assert "theory: within 5% of t* at 0% of the settings, between 3 and 3 t*, with 25% to 25%" in said
    near = float((np.abs(maps["fastest_distinct"].sel(level="theory") - 1) < 0.05).mean())
    assert f"theory: within 5% of t* at {near:.0%} of the settings" in said
