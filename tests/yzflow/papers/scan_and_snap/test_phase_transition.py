"""Experiments, figures, the main job and the command line."""

import csv
from types import SimpleNamespace

import driving
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from matplotlib.figure import Figure

from dynamics import SequenceClasses, Trajectory, sgd
from theory import decoder
from yzflow import cli, figures
from yzflow.paper import Paper
from yzflow.papers.scan_and_snap import flagship, synthetic
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.tasks.synthetic import WINDOWS


@pytest.fixture(scope="module")
def flows():
    return pt.fidelity_flows(pt.weak_classes(), eta_y=1.0, n_times=600)


def test_peak_time_finds_the_vertex_of_a_parabola_between_samples():
    times = np.array([0.0, 1.0, 2.5, 4.0, 7.0])
    assert pt.peak_time(xr.DataArray(5 - (times - 2.2) ** 2, {"time": times}, ["time"])) == pytest.approx(
        2.2, abs=1e-12
    )


def test_peak_time_refuses_a_peak_at_the_edge():
    times = np.array([0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="`speed` must peak inside the recorded times, but got its maximum at t = 2"):
        pt.peak_time(xr.DataArray(times, {"time": times}, ["time"]))


def test_weak_classes_satisfy_the_first_half_of_assumption_2_and_strong_ones_the_second():
    weak, strong = (pt.regime(classes) for classes in (pt.weak_classes(), flagship.contrast().classes))
    assert "< 1/K holds" in weak and "6/sqrt(M) fails" in weak
    assert "< 1/K fails" in strong and "6/sqrt(M) holds" in strong


def test_a_regime_is_of_classes_with_one_overlap_and_one_share():
    apart = SequenceClasses([[0.6, 0.4, 0, 0], [0.3, 0, 0.7, 0], [0.5, 0, 0, 0.5]], [0] * 3, vocab_size=9)
    with pytest.raises(ValueError, match="`classes` must have equal overlaps, but got"):
        pt.regime(apart)
    rare = SequenceClasses([[0.6, 0.4, 0], [0.6, 0, 0.4]], [0] * 2, vocab_size=9, class_weights=[0.9, 0.1])
    with pytest.raises(ValueError, match="`classes` must have equal weights, but got"):
        pt.regime(rare)


def test_simulated_gamma_peaks_at_the_exact_transition_time(flows):
    # t* from the closed form against the h that the flow integrated; the published example t* = 56.40.
    row = pt.transition_times(flows, eta_y=1.0)
    assert row.exact == pytest.approx(56.40, abs=0.005)
    assert row.gamma == pytest.approx(row.exact, rel=2e-4)
    assert row.scanning == pytest.approx(69.08, abs=0.005)
    assert row.snapping == pytest.approx(138.16, abs=0.005)


def test_speed_peaks_at_the_transition_when_attention_is_slow():
    # Then e^{4z} in xi stays one, so that the speed of a distinct token is gamma up to a constant.
    slow = pt.fidelity_flows(pt.weak_classes(), eta_y=2.0, eta_z=1e-5, t_end=200, decoders=["theory"], n_times=600)
    row = pt.transition_times(slow, eta_y=2.0)
    assert row.speed["theory"] == pytest.approx(row.exact, rel=1e-3)


def test_moving_features_make_the_speed_peak_before_gamma_in_every_flow(flows):
    # At eta_Z = 0.5; with slow attention it does so in none: a finding that the table shows.
    row = pt.transition_times(flows, eta_y=1.0)
    assert set(row.speed) == {"theory", "modified", "full"}
    assert all(time < row.exact for time in row.speed.values())


def test_closed_form_exponent_agrees_with_the_theory_flow(flows):
    from theory import attention

    flow = flows["theory"].dataset
    exponent = attention.growth_exponent(
        flow["time"].values,
        vocab_size=1000,
        n_classes=10,
        eta_y=1.0,
        eta_z=0.5,
        c0=pt.speed_constant(pt.weak_classes()),
    )
    fall = -flow["z"].isel(query=0).sel(token=0).values
    # B neglects the term q_0 of beta, about 1/M beside rho = 0.0101, and the change of rho_0: 3% together.
    np.testing.assert_allclose(exponent[1:], fall[1:], rtol=0.03)


def test_the_table_holds_the_numbers_of_its_rows(flows):
    rows = [pt.transition_times(flows, eta_y=1.0)]
    lines = pt.transition_table(rows).splitlines()
    assert lines[0].split()[:4] == ["eta_Y", "t0'", "t0", "t*"]
    assert [float(cell) for cell in lines[1].split()][:4] == pytest.approx([1, 69.078, 138.16, 56.401])
    names, values = csv.reader(pt.transition_csv(rows).splitlines())
    assert float(values[names.index("speed: full")]) == pytest.approx(rows[0].speed["full"], rel=1e-9)


def test_figure_9_meets_the_level_of_b_at_t0():
    curves = pt.exponent_curves(n_times=20)
    for vocab_size in (100, 10_000):
        level = curves[f"exponent_at_t0_{vocab_size}"]
        np.testing.assert_allclose(level, level[0], rtol=1e-12)


@pytest.fixture(scope="module")
def medium():
    return synthetic.syn_medium(n_queries=(1, 2), eta_z=(1.0, 2.0), ratios=(2.0, 5.0), seeds=2, steps=10)


def test_figure_4_shows_the_attention_of_the_runs_that_it_is_given():
    rates = {"eta_y": 3.0, "eta_z": 1.0}
    run = synthetic.syn_small(**rates, steps=12)
    further = synthetic.syn_small(**rates, steps=2000, record_every=100)
    steps = ["0", "2", "4", "6", "8", "10", "12"]
    for parts, labels in (((run,), steps), ((run, further), [*steps, "100", "1,000", "2,000"])):
        figure = figures.figure4([parts])
        for n, axes in enumerate(figure.axes[:2]):
            shown = [part.dataset["attention"].isel(next_token=n) for part in parts]
            shown = [
                shown[0].sel(time=[0, 2, 4, 6, 8, 10, 12]),
                *(one.sel(time=[100, 1000, 2000]) for one in shown[1:]),
            ]
            drawn = axes.images[0].get_array()
            left_out = np.ma.getmaskarray(drawn).all(axis=1)  # what parts the first steps from the rest
            np.testing.assert_array_equal(drawn[~left_out], np.concatenate(shown))
            assert [text for label in axes.get_yticklabels() if (text := label.get_text()) in labels] == labels
            assert left_out.sum() == len(parts) - 1


def test_maps_that_share_a_colour_bar_share_their_scale():
    runs = [(synthetic.syn_small(eta_y=eta_y, eta_z=1.0, steps=20),) for eta_y in (1.0, 10.0)]
    maps = [shown for axes in figures.figure4(runs).axes for shown in (*axes.images, *axes.collections)]
    maps = [shown for shown in maps if shown.get_array() is not None and shown.get_array().size > 30]
    assert len(maps) >= 2 and len({shown.get_clim() for shown in maps}) == 1
    least, most = maps[0].get_clim()
    values = np.concatenate([np.ravel(shown.get_array()) for shown in maps])
    values = values[~np.isnan(values)]  # absent tokens are blank
    assert least <= values[values > 0].min() * (1 + 1e-12) and values.max() <= most


def test_figure_6_shows_mean_and_95_percent_interval_over_seeds(medium):
    panel = figures.figure6(medium).axes[1]
    values = medium["entropy"].sel(n_queries=2, eta_z=2.0)
    line, _, bars = panel.containers[1].lines
    np.testing.assert_allclose(line.get_ydata(orig=False), values.mean("seed"))
    # Two seeds: the standard error of the mean is half their distance, and 12.706 of it Student's interval.
    half = 12.7062047 * np.abs(values[:, 0] - values[:, 1]).values / 2
    lengths = [segment[1, 1] - segment[0, 1] for segment in bars[0].get_segments()]
    np.testing.assert_allclose(lengths, 2 * half)


def test_captions_say_what_the_data_shows(medium):
    caption = figures.figure6.caption(medium)
    assert caption.startswith("Entropy of attention") and "Parameters" not in caption and "\n" not in caption
    assert "falls from one eta_Z to the next in 4 of 4 cases, and rises with the ratio from 2 to 5 in 4 of 4" in caption
    assert "least at the ratios 2 with 1 query; 2 with 2 queries" in caption
    swapped = medium.assign_coords(ratio=[5.0, 2.0], eta_z=[2.0, 1.0]).sortby(["eta_z", "ratio"])
    assert "in 0 of 4 cases, and rises with the ratio from 2 to 5 in 0 of 4" in figures.figure6.caption(swapped)
    assert "least at the ratios 5 with 1 query; 5 with 2 queries" in figures.figure6.caption(swapped)


def made_up_recall(fall):
    """Curves that fall linearly from one over the windows by ``fall``(ratio, eta_Z), with a little noise over seeds."""
    axes = {"n_queries": [1, 3], "eta_z": [1.0, 2.0], "ratio": [1.0, 2.0, 5.0], "seed": [0, 1, 2]}
    thresholds = np.sort(np.concatenate([np.linspace(*WINDOWS[number], 3) for number in (1, 3)]))
    grid = {name: xr.DataArray(values, dims=name, coords={name: values}) for name, values in axes.items()}
    place = xr.DataArray([0, 0.5, 1, 0, 0.5, 1], dims="threshold", coords={"threshold": thresholds})
    noise = 1e-3 * (grid["seed"] - 1)
    values = 1 - place * (fall(grid["ratio"], grid["eta_z"]) + noise + 0 * grid["n_queries"])
    return xr.Dataset({"softmax_recall": values})


@pytest.mark.parametrize(
    ("fall", "by_ratio", "by_eta_z"),
    [
        (lambda ratio, eta_z: 0.1 * ratio / eta_z, "4 of 4 panels; of the steps between neighbouring curves 8 of 8",
         "6 of 6 panels; of the steps between neighbouring curves 6 of 6"),
        (lambda ratio, eta_z: 0.1 / ratio * eta_z, "0 of 4 panels; of the steps between neighbouring curves 0 of 8",
         "0 of 6 panels; of the steps between neighbouring curves 0 of 6"),
        (lambda ratio, eta_z: 0.1 * abs(ratio - 1.9) + 0 * eta_z,
         "0 of 4 panels; of the steps between neighbouring curves 4 of 8",
         "0 of 6 panels; of the steps between neighbouring curves 0 of 6"),
    ],
)  # fmt: skip
def test_captions_of_recall_count_the_panels_in_the_paper_s_order(fall, by_ratio, by_eta_z):
    runs = made_up_recall(fall)
    for figure, words in ((figures.figure11, by_ratio), (figures.figure12, by_eta_z)):
        caption = figure.caption(runs)
        right = int(words.split()[-3])
        # Steps are far larger than the noise, or have the other sign.
        assert f"{words} have this sign, and {right} have it throughout their 95% intervals" in caption, caption


def test_captions_of_the_other_figures_of_the_paper_change_with_their_data():
    curves, exponents = pt.decoder_curves(), pt.exponent_curves(n_times=5)
    assert "at most 0.19 to 0.21 eta_Y / M, and at least 0: as Lemma 7 says" in figures.figure8.caption(curves)
    assert "at most 1.9 to 2.1 eta_Y / M, and at least 0: against Lemma 7" in figures.figure8.caption(
        curves.assign({name: 10 * value for name, value in curves.items()})
    )
    below = {name: -value for name, value in curves.items()}
    assert "and at least -0.21: against Lemma 7" in figures.figure8.caption(curves.assign(below))
    caption = figures.figure9.caption(exponents)
    assert "0.510 at nu = 10, M = 100" in caption and caption.count("t0 falls with eta_Z") == 2
    assert "prints nu = eta_Z / eta_Y" in caption
    backwards = exponents.assign(t0_100=("eta_z", exponents["t0_100"].values[::-1]))
    assert "t0 does not fall with eta_Z" in figures.figure9.caption(backwards)

    flows = {
        rate: pt.fidelity_flows(pt.weak_classes(), eta_y=rate, decoders=["theory"], n_times=30)["theory"]
        for rate in (0.5, 5.0)
    }
    caption = figures.figure3.caption(flows)
    for words in ("left panel has 17.99 to 45.22", "is 37.52 to 55.94", "1.139 to 1.699", "1.013 to 1.054", "it grows"):
        assert words in caption, caption
    turned = {rate: Trajectory(flow.dataset.assign(z=flow.dataset["z"] * rate**2)) for rate, flow in flows.items()}
    assert "it does not grow more" in figures.figure3.caption(turned)
    with pytest.raises(ValueError, match=r"`flows` must have their own eta_Y for keys, but got 5 under 0\.5"):
        figures.figure3.caption({0.5: flows[5.0], 5.0: flows[0.5]})


def test_captions_of_attention_on_syn_small_change_with_their_data():
    slow, fast = ((synthetic.syn_small(eta_y=eta_y, eta_z=1.0),) for eta_y in (1.0, 10.0))
    caption = figures.figure4.caption([slow, fast])
    assert "are 0.645 and 2.151 at step 0, " in caption and "attention on distinct tokens is in the order" in caption
    assert "So the larger eta_Y is the faster one, and ends less sparse." in caption
    adam = [(synthetic.syn_small(eta_y=rate, eta_z=rate, optimizer="adam", steps=steps),) for rate, steps in
            ((1.0, 3), (0.5, 100))]  # fmt: skip
    assert "distinct tokens is not in the order" in figures.figure4.caption([adam[1]])
    caption = figures.figure5.caption(adam)
    assert "9 and 9 at 1 (with " in caption and "9 and 9 at 0.5" not in caption


def made_up_flow():
    """Attention 1, 0 -> 0.6, 0.4 -> 0.2, 0.8 at times 0, t*, 2 t*, K = 1; the common token is fastest at t*."""
    peak = decoder.transition_time(vocab_size=20, n_classes=1, eta_y=1.0)
    attention = np.array([[[1.0, 0.0]], [[0.6, 0.4]], [[0.2, 0.8]]])
    velocity = np.array([[[-1.0, 1.0]], [[-2.0, 2.0]], [[-1.0, 3.0]]])
    dataset = xr.Dataset(
        {
            "attention": (("time", "next_token", "token"), attention),
            "z_velocity": (("time", "query", "token"), velocity),
            "distinct": (("next_token", "token"), [[False, True]]),
            "query_of": ("next_token", [0]),
            "multiplicity": ("kind", [1, 19]),
        },
        {"time": [0.0, peak, 2 * peak], "next_token": [0], "token": [5, 7]},
    )
    return peak, SimpleNamespace(dataset=dataset, parameters={"eta_y": 1.0})


def test_what_happens_around_the_transition_in_a_made_up_flow():
    peak, flow = made_up_flow()
    found = pt.around_transition({"theory": flow}).isel(flow=0)
    assert float(found["done"]) == pytest.approx(0.5, rel=1e-12)
    assert float(found["change"]) == pytest.approx(0.8, rel=1e-12)
    assert float(found["time_of_90_percent"]) == pytest.approx(1.8 * peak, rel=1e-12)
    assert float(found["fastest_common"]) == pytest.approx(peak, rel=1e-12)
    assert np.isnan(found["fastest_distinct"])
    assert float(found["transition_time"]) == pytest.approx(peak, rel=1e-12)
    # dc/dt = c (z' - sum c z') is 0 at the start, 0.96 at t*, and 0.64 at the end.
    np.testing.assert_allclose(pt.attention_speed(flow), [0, 0.96, 0.64], rtol=1e-12)
    assert float(found["fastest_attention"]) == pytest.approx(1.25 * peak, rel=1e-12)
    assert np.isnan(found["late_speed"])  # 10 t* is past the end


def test_the_peaks_of_the_paper_s_setting(flows):
    # Times of the largest speed that findings 5 has, from runs of another resolution.
    found = pt.around_transition(flows).sel(flow=["theory", "modified", "full"])
    np.testing.assert_allclose(found["fastest_distinct"], [51.4, 35.7, 38.7], atol=0.06)
    np.testing.assert_allclose(found["fastest_common"], [51.4, 44.1, 46.8], atol=0.06)


def test_a_figure_of_given_runs_says_so():
    given = figures.Entry("runs_given", "Scan and Snap", figures.figure9.draw)
    with pytest.raises(ValueError, match="`data` must be given to draw runs_given, but got none"):
        given()


def test_entries_are_declared_once():
    with pytest.raises(ValueError, match="each figure, task and panel once, but Scan and Snap has figure9 twice"):
        Paper("Scan and Snap", "again", "none", figures=(figures.figure9, figures.figure9))


@pytest.mark.slow
def test_the_sgd_example_writes_figures_captions_and_data(tmp_path, capsys):
    example = driving.example("sgd_figures")
    assert example.main(["--quick", "--only", "4", "12", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"figure{number}.{kind}" for number in (4, 12) for kind in ("png", "pdf")), "syn_medium.nc", "captions.txt",
    }  # fmt: skip
    assert "Figure 12. Recall" in (tmp_path / "captions.txt").read_text()
    assert xr.load_dataset(tmp_path / "syn_medium.nc").sizes["seed"] == 2


def test_saving_a_figure_writes_png_and_pdf_or_nothing(tmp_path):
    figure = Figure()
    paths = figures.save(figure, tmp_path / "nine")
    assert [path.name for path in paths] == ["nine.png", "nine.pdf"]
    assert paths[0].read_bytes().startswith(b"\x89PNG") and paths[1].read_bytes().startswith(b"%PDF")
    with pytest.raises(ValueError, match="`formats` must be one of"):
        figures.save(figure, tmp_path / "ten", formats=["nonsense"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nine.pdf", "nine.png"]


@pytest.mark.slow
def test_the_main_job_writes_figures_data_and_table(tmp_path, capsys, monkeypatch):
    out = tmp_path / "results"
    monkeypatch.setattr(pt, "ETA_Y", (0.5, 1.0))
    assert driving.example("phase_transition").main(["--quick", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    row = next(line for line in printed.splitlines() if line.split()[:1] == ["1"])
    assert [float(cell) for cell in row.split()][1:4] == pytest.approx([69.078, 138.16, 56.401])
    stems = {
        "attention_over_training",
        "fidelity",
        "figure3_growth_factor",
        "figure8_decoder",
        "figure9_growth_exponent",
    }
    assert {path.stem for path in out.glob("*.png")} == {path.stem for path in out.glob("*.pdf")} == stems
    curves = xr.load_dataset(out / "data" / "weak_eta-y-0.5_full_curves.nc")
    times = curves["time"].values
    assert times[-1] == pt.T_END and list(curves["token"]) == [0, 1]  # the common token, and the first distinct one
    between = np.trapezoid(curves["z_velocity"], times, axis=0)
    np.testing.assert_allclose(between, curves["z"][-1] - curves["z"][0], rtol=2e-3)
    assert curves["share_done"][0] == 0 and curves["share_done"][-1] == 1
    with pytest.raises(ValueError, match="must be a trajectory written by yzflow"):
        Trajectory.load(out / "data" / "weak_eta-y-0.5_full_curves.nc")
    assert sum(path.stat().st_size for path in out.rglob("*.nc")) < 5e6
    assert len((out / "transition_times.csv").read_text().splitlines()) == 1 + len(pt.ETA_Y)


def test_the_main_job_refuses_a_folder_that_cannot_be_written(tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("")
    for out in (blocked, blocked / "below"):
        with pytest.raises(SystemExit) as error:
            driving.example("phase_transition").main(["--out", str(out)])
        assert error.value.code == 2
        assert "`--out` must be a folder that can be written, but got" in capsys.readouterr().err
    assert blocked.read_text() == ""


def test_command_line_sgd_writes_the_run_of_its_arguments(tmp_path):
    path = tmp_path / "sgd.nc"
    arguments = ["sgd", "--data", "syn_medium", "--queries", "1", "--eta-y", "2", "--steps", "3", "--seed", "5"]
    result = CliRunner().invoke(cli.main, [*arguments, "--out", str(path)])
    assert result.exit_code == 0, result.output
    expected = sgd(SequenceClasses.syn_medium(1), eta_y=2.0, eta_z=1.0, steps=3, seed=5)
    assert Trajectory.load(path).dataset.identical(expected.dataset)


def test_a_simulation_that_diverges_exits_1(tmp_path):
    path = tmp_path / "sgd.nc"
    result = CliRunner().invoke(cli.main, ["sgd", "--eta-y", "1e308", "--eta-z", "1e308", "--out", str(path)])
    assert result.exit_code == 1
    assert "no longer finite" in result.output
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sgd", "--data", "text"], "`--data` must be a file that exists, or the name of a data set, but got 'text'"),
        (["flow", "--classes", "1"], "`n_classes` must be at least 2, but got 1"),
        (["flow", "--t-end", "1", "--out", "missing/flow.nc"], "missing"),
        (["figure", "99"], "`NAME` must be the number of a figure that is drawn here: "),
        (["figure", "9", "--format", "png,gif"], "`--format` must be one of 'png', 'pdf', 'svg', but got 'gif'"),
    ],
)
def test_command_line_bad_input_exits_2_with_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 2
    assert message in result.output.splitlines()[-1]
    assert not list(tmp_path.iterdir())
