"""The picture on the front page: the settings against the register, and every word of it against the flows."""

import driving
import numpy as np
import pytest
import xarray as xr

from dynamics import SequenceClasses, gradient_flow
from yzflow import figures
from yzflow.papers.scan_and_snap import flagship
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.panel.presets import PRESETS
from yzflow.values.marks import bare

CONTRAST, INSIDE = PRESETS[:2]
SETTINGS = {"inside": flagship.inside(), "contrast": flagship.contrast()}


@pytest.fixture(scope="module")
def runs():
    return {name: flagship.flows(setting) for name, setting in SETTINGS.items()}


def from_the_explorer(preset):
    """The setting that a preset of the explorer shows."""
    own = preset.setting
    classes = SequenceClasses.single_common_token(own["K"], own["M"], common=own["common"], distinct=own["distinct"])
    return flagship.Setting(preset.name, classes, own["etaY"], own["etaZ"], own["end"])


DEMANDED = ("Assumption 2, |lambda_1(E)| < 1/K", "Assumption 2, |lambda_i(E)| >= 6/sqrt(M)", "Assumption 2, M >> K^2",
            "Assumption 1(c), eta_Y >> eta_Z: eta_Y >= 100 eta_Z", "K rho <= 0.1", "M rho >= 8", "one common token",
            "one query", "one f_n in all classes", "eta_Y < 1", "classes drawn uniformly")  # fmt: skip


@pytest.mark.parametrize("setting", [flagship.inside(), from_the_explorer(INSIDE)], ids=["figure", "preset"])
def test_what_the_project_opens_with_is_inside_every_assumption(setting):
    margins = flagship.margins(setting)
    for text in DEMANDED:
        assert any(text in one for one in margins), text
    for level in ("theory flow", "modified flow"):
        assert flagship.margins(setting, level) == margins
    assert {text: margin for text, margin in margins.items() if margin < 1} == {}
    assert flagship.broken(setting) == [] and flagship.standing(setting).startswith("inside all assumptions")
    # By hand, with the published overlap 0.0276: K (K - 1) rho < 1, rho >= 6/sqrt(M), eta_Y >= 100 eta_Z.
    assert 6 / np.sqrt(100_000) < setting.overlap == pytest.approx(0.0276, abs=5e-5) and setting.overlap < 1 / 2
    assert setting.eta_y / setting.eta_z == pytest.approx(500)


@pytest.mark.parametrize("setting", [flagship.contrast(), from_the_explorer(CONTRAST)], ids=["figure", "preset"])
def test_the_contrast_is_outside_what_its_name_says(setting):
    assert flagship.broken(setting) == ["1(c)", "2", "K rho <= 0.1"]
    assert flagship.standing(setting) == "outside Assumptions 1(c) and 2, and K rho <= 0.1"
    numbered = [text for text in flagship.broken(setting) if text[0].isdigit()]
    assert CONTRAST.name.startswith(f"Contrast, outside Assumptions {' and '.join(numbered)}:")


def test_each_preset_that_names_a_place_stands_there():
    for preset in PRESETS:
        if preset.setting["K"] > 1:
            missed = flagship.broken(from_the_explorer(preset))
            assert ("inside all" in preset.name) == (not missed)
            assert ("Where Assumption 2 holds" in preset.name) <= ("2" not in missed)


def test_a_setting_of_the_explorer_is_the_setting():
    for setting, preset in zip(SETTINGS.values(), (INSIDE, CONTRAST), strict=True):
        classes = from_the_explorer(preset).classes
        np.testing.assert_allclose(
            classes.probabilities.toarray(), setting.classes.probabilities.toarray(), rtol=1e-9, atol=0
        )


def test_the_assumptions_that_are_missed_are_named_once():
    paper = flagship.Setting("the paper's", pt.weak_classes(), 1.0, 0.5, 700.0)
    assert flagship.broken(paper) == ["1(c)", "2", "K rho <= 0.1"]  # of 2 the lower half, of K rho 0.988
    slow = flagship.Setting("slow", SETTINGS["inside"].classes, 1.0, 0.1, 700.0)
    assert flagship.standing(slow) == "outside Assumption 1(c)"
    apart = SequenceClasses([[0.25, 0.75, 0], [0.25, 0, 0.75]], [0, 1], vocab_size=100_000)
    assert flagship.broken(flagship.Setting("two queries", apart, 1.0, 1e-3, 1.0))[-1] == "one query"


def quoted(path):
    """A page's text without its marks, on one line."""
    return " ".join(bare((driving.ROOT / path).read_text(encoding="utf-8")).split())


@pytest.mark.parametrize("name", SETTINGS)
def test_the_page_says_what_the_flows_show(name, runs):
    said = flagship.told(SETTINGS[name], runs[name])
    assert said in quoted("docs/index.md"), said


def changed(run, **parts):
    """A trajectory with other data in its place, as far as `told` looks."""
    return type("Changed", (), {"dataset": run.dataset.assign(**parts), "parameters": run.parameters})


def test_a_logit_that_moves_the_wrong_way_is_noticed(runs):
    run = runs["inside"]["full"]
    assert flagship.scanned(run)
    for token in (0, 1, 5):
        z = run.dataset["z"] * xr.where(run.dataset["token"] == token, -1, 1)
        assert not flagship.scanned(changed(run, z=z))
    z = run.dataset["z"].copy()
    z.loc[{"token": 2}] = 2 * z.sel(token=1)  # more than the more frequent one
    both = {"full": changed(run, z=z), "theory": runs["inside"]["theory"]}
    said = flagship.told(SETTINGS["inside"], both)
    assert "the more frequent the more in the theory flow, not in the full flow." in said


def test_a_speed_that_does_not_fall_is_no_snap(runs):
    run = runs["inside"]["theory"]
    times = run.dataset["time"]
    speed = run.dataset["z_velocity"]
    goes_on = changed(run, z_velocity=speed.where(times < 38, speed.sel(time=38, method="nearest")))
    assert "attention does not scan and snap" in flagship.told(SETTINGS["inside"], {"theory": goes_on})
    shaken = changed(run, z_velocity=speed * (1 - 0.5 * ((times > 60) & (times < 70))))
    assert "attention does not scan and snap" in flagship.told(SETTINGS["inside"], {"theory": shaken})


@pytest.mark.parametrize(
    ("speed", "so"),
    [([0, 1, 3, 2, 0], True), ([3, 2, 1], True), ([1, 2, 3], True), ([0, 2, 1, 3, 0], False), ([0, 3, 1, 2], False),
     ([0, 3, 1, 1.002], True)],
)  # fmt: skip
def test_a_speed_rises_and_falls(speed, so):
    assert flagship.rises_and_falls(xr.DataArray(np.array(speed, dtype=float), dims="time")) is so


@pytest.mark.parametrize("name", SETTINGS)
def test_the_speed_of_attention_is_the_slope_of_attention(name, runs):
    # By differences of the recorded attention, which the speed does not look at.
    for run in runs[name].values():
        part = run.dataset.sel(next_token=0, time=slice(2, 2000))
        shares, times = part["attention"].values, part["time"].values
        steps = np.abs(np.diff(shares, axis=0)).sum(1) / 2 / np.diff(times)
        between = pt.attention_speed(run).interp(time=(times[1:] + times[:-1]) / 2)
        np.testing.assert_allclose(between, steps, rtol=5e-3)


def test_the_speed_of_a_next_token_is_that_of_its_own_query():
    """Queries are called by their tokens: of tokens 1 and 2, the first is not the one at place 1."""
    two = SequenceClasses([[0.5, 0.5, 0.0, 0.0], [0.6, 0.0, 0.2, 0.2]], [1, 2], vocab_size=30)
    run = gradient_flow(two, eta_y=1.0, eta_z=0.5, t_end=50.0, n_times=500)
    for n in (0, 1):
        shares, times = run.dataset["attention"].values[:, n], run.dataset["time"].values
        steps = np.abs(np.diff(shares, axis=0)).sum(1) / 2 / np.diff(times)
        between = pt.attention_speed(run, next_token=n).interp(time=(times[1:] + times[:-1]) / 2)
        np.testing.assert_allclose(between, steps, rtol=5e-3, atol=1e-6)
        common, distinct = pt._most_attended(run.dataset.sel(next_token=n))
        z = pt.curves(run, next_token=n)["z"]
        np.testing.assert_array_equal(z, run.dataset["z"].sel(query=n + 1, token=[common, distinct]))


def test_the_figure_shows_what_its_titles_and_axes_say(runs):
    panels = [(SETTINGS[name], runs[name]) for name in SETTINGS]
    figure = figures.attention_over_training(panels)
    top, bottom = figure.axes[:2], figure.axes[2:]
    assert [axes.get_xscale() for axes in (*top, *bottom)] == ["linear"] * 2 + ["log"] * 2
    for axes, word in zip((*top, *bottom), ["linear"] * 2 + ["logarithmic"] * 2, strict=True):
        assert axes.get_xlabel().endswith(word)
    assert top[0].get_title().startswith("Inside all assumptions of Theorems 1 to 4\n")
    assert top[1].get_title().startswith("Outside Assumptions 1(c) and 2, and K rho <= 0.1\n")
    for axes, peaks in zip(top, ([38, 38, 39.4], [5.6, 5.8, 50.4]), strict=True):
        lines = axes.get_lines()[:3]
        assert [line.get_ydata().max() for line in lines] == [1.0] * 3
        highest = [line.get_xdata()[line.get_ydata().argmax()] for line in lines]
        np.testing.assert_allclose(highest, peaks, rtol=0.03)  # the grid's step
    legends = [text.get_text() for axes in bottom for text in axes.get_legend().get_texts()]
    assert legends[0] == "theory: 19%; 5.9e-5" and legends[-1] == "full: 31%; 0.21"
    for axes in bottom:
        assert all(line.get_ydata()[-1] == 1 for line in axes.get_lines()[:3])


def test_the_first_two_presets_say_what_the_flows_show(runs):
    for preset, (name, flows) in zip((INSIDE, CONTRAST), runs.items(), strict=True):
        found, answer = pt.around_transition(flows), preset.answer
        shares = [f"{float(found['done'].sel(flow=level)):.0%}" for level in pt.LEVELS]
        assert all(share in answer for share in shares)
        assert f"t* = {float(found['transition_time']):.0f} " in answer
        assert f"t = {float(found['fastest_attention'].sel(flow='full')):.2g} in the full flow" in answer
        assert all(
            f"{float(found['change'].sel(flow=level)):.2g}" in answer.replace("e-", "e-0")
            for level in ("theory", "full")
        )
        told = flagship.told(SETTINGS[name], flows)
        assert ("scans and snaps at t* = 38." in told) == ("slows down (snapping)" in answer)
        assert ("most of it comes after t*." in told) == ("most of it comes after t*" in answer)
    outside = SETTINGS["contrast"]
    assert (
        "occurs twice as often as their most frequent distinct one, and attention learns half as fast" in CONTRAST.text
    )
    assert CONTRAST.setting["common"] == 2 * max(CONTRAST.setting["distinct"])
    assert outside.eta_z == outside.eta_y / 2
    inside, contrast = (pt.around_transition(flows) for flows in runs.values())
    assert contrast["fastest_attention"][0] < contrast["transition_time"] / 5 and "long before t*" in CONTRAST.answer
    speeds = [f"{100 * float(value):.2g}%" for value in inside["late_speed"]]
    assert "{}, {} and {} of its largest speed".format(*speeds) in INSIDE.answer
    assert f"fastest at t = {float(contrast['fastest_attention'][0]):.2g} in the theory flow" in CONTRAST.answer
    assert f"90% at t = {float(contrast['time_of_90_percent'].sel(flow='full')):.0f}, " in CONTRAST.answer
