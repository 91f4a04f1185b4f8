"""Every figure of the registry away from the paper's setting: its words and lines against numbers computed here."""

import functools
import inspect
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from matplotlib.text import Text
from scipy.optimize import brentq

from dynamics import Optimizer, SequenceClasses, gradient_flow, sgd
from yzflow import cli, figures
from yzflow.audits.survival_verdicts import Fate
from yzflow.figure_settings import KEYWORDS
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.tried import TRIED

DISTINCT = np.array([1.0, 0.8, 0.6, 0.4, 0.2])


def transition_time(k, m, eta_y):
    """t*, from the root of (x - 1) exp(x) = M - 1."""
    x = brentq(lambda x: (x - 1) * math.exp(x) - (m - 1), 1, 60)
    return k * (math.exp(x) + (m - 1) * x - 1) / (m * eta_y)


def overlap(common):
    return common**2 / (common**2 + (DISTINCT**2).sum())


def words(figure, *, labelled=True):
    """The texts of a figure, whose lines are all there and, where words stand at no ticks, whose axes have labels."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        bottom_row = axes.get_subplotspec() is None or axes.get_subplotspec().is_last_row()
        assert not labelled or axes.get_xlabel() or not bottom_row or axes.get_label() == "<colorbar>"
        lines = [line for line in axes.get_lines() if len(line.get_xdata()) > 2]
        assert all(np.isfinite(np.asarray(line.get_ydata(), dtype=float)).all() for line in lines)
    return " | ".join(text.get_text() for text in figure.findobj(Text))


def upright(axes):
    """Places of the vertical lines over a whole panel, and their styles."""
    lines = [line for line in axes.get_lines() if len(line.get_xdata()) == 2 and list(line.get_ydata()) == [0, 1]]
    return {(round(float(line.get_xdata()[0]), 6), line.get_linestyle()) for line in lines}


def of_figure3(entry):
    k, m, common, rates, eta_z, end = 5, 5000, 0.12, (1.0, 2.0), 0.1, 300.0
    data = entry.data(figures.Effort(quick=True), n_classes=k, vocab_size=m, common=common, eta_y=rates, eta_z=eta_z,
                      t_end=end)  # fmt: skip
    figure = entry(data)
    said, rho = words(figure), overlap(common)
    for word in ("K = 5$", "M = 5000$", r"\eta_Z = 0.1$", r"\eta_Y = 1$", r"\eta_Y = 2$", rf"\rho = {rho:.3g}$"):
        assert word in said, (word, said)
    left, right = figure.axes
    for axes in (left, right):
        assert axes.get_xlim() == (0, end)
        assert upright(axes) == {(round(2 * k * math.log(m) / rate, 6), ":") for rate in rates}
        diamonds = [float(line.get_xdata()[0]) for line in axes.get_lines()
                    if line.get_marker() == "D" and len(line.get_xdata())]  # fmt: skip
        np.testing.assert_allclose(diamonds, [transition_time(k, m, rate) for rate in rates], rtol=1e-9)
    curves = [line for line in right.get_lines() if len(line.get_xdata()) == 701]
    points = [line for line in right.get_lines() if line.get_marker() == "o" and len(line.get_xdata())]
    for curve, dots, flow in zip(curves, points, data.values(), strict=True):
        growth = 1e3 * np.expm1(2 * flow.dataset["z"].values[-1, 0, 1])
        assert dots.get_ydata()[-1] == pytest.approx(growth, rel=1e-9)
        assert curve.get_ydata()[-1] == pytest.approx(growth, rel=0.05)
    caption = entry.caption(data)
    assert f"K = 5, M = 5,000, overlap {rho:.3g} and eta_Z = 0.1. At t = 300 " in caption
    assert not re.search(r"K = 10\b|\b1000, eta|four", caption)


def of_attention_maps(entry):
    """A rule, rates and steps that no paper has; then data with three next tokens."""
    rates = {"eta_y": (3.0,), "eta_z": (0.7,)}
    for optimizer, name in (("sign", "sign descent with momentum 0.9"), ("adamw", "AdamW with weight decay 0.01")):
        data = entry.data(optimizer=optimizer, steps=7, **rates)
        figure, caption = entry(data), entry.caption(data)
        assert figure.get_suptitle().startswith(f"Syn-Small, {name}:\nattention on common (0-9) and distinct tokens")
        assert f"Here: Syn-Small, {name}." in caption and r"\eta_Y = 3$, $\eta_Z = 0.7$" in words(figure)
        assert figure.axes[0].get_ylabel() == f"step of {name.partition(' with')[0]}"
        assert [label.get_text() for label in figure.axes[0].get_yticklabels()][-1] == "7"
    own = SequenceClasses.single_common_token(3, 20)
    run = sgd(own, eta_y=0.3, eta_z=0.2, steps=4, momentum=0.0, seed=1)
    figure, caption = entry([(run,)]), entry.caption([(run,)])
    assert figure.get_suptitle() == "3 next tokens of 20, SGD:\nattention on common (0) and distinct tokens"
    assert [axes.get_title().partition(": ")[2] for axes in figure.axes[:3]] == [f"next token {n}" for n in range(3)]
    shown = figure.axes[2].images[0].get_array()
    np.testing.assert_allclose(shown[-1][~shown.mask[-1]], [x for x in run.dataset["attention"].values[-1, 2] if x])
    assert "Syn-Small" not in caption.partition("Here:")[2]
    assert entry.name == "figure4" or "Of the 5 distinct tokens" in caption


@functools.cache
def medium():
    grid = {"n_queries": (1, 2), "eta_z": (0.7, 1.0), "ratios": (3.0, 4.0), "seeds": 3, "steps": 6}
    return figures.figure6.data(**grid)


def of_medium(entry):
    runs = medium()
    figure, said = entry(runs), words(entry(runs))
    assert figure.get_suptitle().startswith("Syn-Medium after 6 steps of SGD with momentum 0.9:")
    assert "mean of 3 seeds" in figure.get_suptitle() and r"\eta_Z = 0.7$" in said and "100 " not in said
    if entry.name == "figure6":
        np.testing.assert_allclose(figure.axes[0].containers[0].lines[0].get_ydata(orig=False),
                                   runs["entropy"].sel(n_queries=1, eta_z=0.7).values.mean(-1))  # fmt: skip
        assert "Syn-Medium after 6 steps of SGD with momentum 0.9: here entropy" in entry.caption(runs)
    else:
        sizes = [SequenceClasses.syn_medium(n).vocab_size for n in (1, 2)]
        places = [upright(axes) for axes in figure.axes[::2]]
        assert places == [{(round(1e3 / size, 6), ":")} for size in sizes]
    adam = runs.assign_attrs(configuration=runs.attrs["configuration"].replace('"sgd"', '"adam"'))
    assert entry(adam).get_suptitle().startswith("Syn-Medium after 6 steps of Adam:")
    for wrong in (runs.drop_attrs(), runs.expand_dims(batch_size=[8, 16])):
        with pytest.raises(ValueError, match=r"^`runs` must (be of the sweep 'syn_medium'|have one batch_size)"):
            entry(wrong)


def of_figure8(entry):
    data = entry.data(vocab_size=30, eta_y=(0.3, 0.6), steps=9)
    figure, (top, bottom) = entry(data), entry(data).axes
    assert top.get_title() == "$M = 30$" and r"\eta_Y = 0.3$" in words(figure) and "eta_Y = 1$" not in words(figure)
    assert "(eta_Y = 0.3, 0.6 at M = 30, 9 visits)" in entry.caption(data)
    h, gaps = 0.0, []
    for step in range(10):  # (33): h* grows by eta_Y / (M - 1 + exp(M h*)) a visit
        continuous = brentq(lambda x, t=step: math.exp(30 * x) + 29 * 30 * x - 30 * 0.3 * t - 1, 0, 1)
        gaps.append((h - continuous) * 30 / 0.3)
        h += 0.3 / (29 + math.exp(30 * h))
    np.testing.assert_allclose(bottom.get_lines()[0].get_ydata(), gaps, atol=1e-9)


def of_figure9(entry):
    data = entry.data(vocab_size=50, ratios=2.0, eta_z=(0.4, 0.9))
    figure = entry(data)
    (axes,) = figure.axes
    assert axes.get_title() == r"$\nu = \eta_Y/\eta_Z = 2$, $M = 50$" and "eta_Z = 0.9$" in words(figure)
    dots = [float(line.get_xdata()[0]) for line in axes.get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose(dots, [2 * math.log(50) / (2 * eta_z) for eta_z in (0.4, 0.9)], rtol=1e-12)
    assert "at eta_Z = 0.4, 0.9, B at t0 is" in entry.caption(data) and "nu = 2, M = 50" in entry.caption(data)
    assert "does not depend on" in figure.get_suptitle()
    other = data.assign(exponent_at_t0_50=data["exponent_at_t0_50"] * [1, 1.3])
    assert "depends on" in entry(other).get_suptitle() and "spread over eta_Z 3e-01" in entry.caption(other)


def of_fidelity(entry):
    k, m, eta_y, eta_z = 4, 300, 0.8, 0.2
    data = entry.data(figures.Effort(quick=True), n_classes=k, vocab_size=m, eta_y=eta_y, eta_z=eta_z, t_end=200.0)
    figure, caption, rho = entry(data), entry.caption(data), overlap(0.15)
    top, bottom = figure.axes
    assert top.get_title() == rf"$K = 4$, $M = 300$, $\rho = {rho:.3g}$, $\eta_Y = 0.8$, $\eta_Z = 0.2$"
    for axes in (top, bottom):
        assert (round(transition_time(k, m, eta_y), 6), "--") in upright(axes)
    assert f"At K = 4, M = 300, overlap {rho:.3g}, eta_Y = 0.8, eta_Z = 0.2, theory" in caption
    assert "0.5" not in entry.text and f"1 - rho = {1 - rho:.3g}" in caption
    last = {name: flow.dataset["z"].values[-1, 0, 0] for name, flow in data[0][1].items()}
    assert f" and {last['full'] / last['modified']:.2g} at the last" in caption
    other = [(SequenceClasses.single_common_token(k, m + 1), data[0][1])]
    with pytest.raises(ValueError, match=r"^`panels` must be flows of the classes beside them, with K = 4 and M = 301"):
        entry(other)


def of_attention_over_training(entry):
    k, m, eta_y = 3, 400, 0.6
    setting = {"n_classes": k, "vocab_size": m, "common": 0.5, "eta_y": eta_y, "eta_z": 0.01, "t_end": 3000.0}
    data = entry.data(figures.Effort(quick=True), **setting)
    figure, caption, peak = entry(data), entry.caption(data), transition_time(k, m, eta_y)
    top, bottom = figure.axes
    assert top.get_title().endswith(
        rf"$K = 3$, $M = 400$, $\rho = {overlap(0.5):.3g}$, $\eta_Y = 0.6$, $\eta_Z = 0.01$"
    )
    assert upright(top) == upright(bottom) == {(round(peak, 6), "--")} and f"$t^* = {peak:.0f}$" in words(figure)
    assert bottom.get_xlim()[1] == 3000 and f"at t* = {peak:.0f}" in caption and "up to t = 3,000" in caption
    moved = {name: np.abs(np.diff(run.dataset["attention"].values[[0, -1], 0], axis=0)).sum() / 2
             for name, run in data[0][1].items()}  # fmt: skip
    times = float(f"{moved['theory'] / moved['full']:.2g}")
    assert f", {times:.4g} times as much in the theory as in the full flow" in caption
    with pytest.raises(
        ValueError, match=r"^`panels` must have flows at the eta_Y, eta_Z and last time 0\.7, 0\.01, 3000"
    ):
        entry([(replace(data[0][0], eta_y=0.7), data[0][1])])
    with pytest.raises(ValueError, match=r"^`t_end` must be after t\* = "):
        entry(t_end=5.0)


def of_moving_attention(entry):
    """Bars, lines and t* of another training, at a time of its own; a weighted one has no t*."""
    data = entry.data(figures.Effort(quick=True), n_classes=3, vocab_size=400, common=0.5, eta_y=0.6, t_end=3000.0)
    recorded, peak = data.dataset, transition_time(3, 400, 0.6)
    now = recorded.sel(time=70.0, method="nearest")
    figure = entry(data, time=70.0, next_token=1)
    bars, logits, pace = figure.axes
    shares = now["attention"].sel(next_token=1).values
    (tokens,) = np.nonzero(shares)
    np.testing.assert_array_equal([bar.get_height() for bar in bars.patches], shares[tokens])
    assert [label.get_text() for label in bars.get_xticklabels()] == [str(token) for token in tokens]
    assert bars.get_title() == "full flow, next token 1"
    np.testing.assert_array_equal(bars.get_lines()[0].get_ydata(), recorded["attention"].values[0, 1, tokens])
    whole, past, point = logits.get_lines()[:3]
    np.testing.assert_array_equal(whole.get_ydata(), recorded["z"].values[:, 0, 0])
    assert point.get_xdata()[0] == past.get_xdata()[-1] == float(now["time"])
    assert point.get_ydata()[0] == float(now["z"][0, 0])
    speed = pt.attention_speed(data, next_token=1)
    np.testing.assert_allclose(pace.get_lines()[0].get_ydata(), speed / speed.max())
    assert upright(logits) == upright(pace) == {(round(peak, 6), "--")}
    assert figure.get_suptitle().startswith(f"t = {float(now['time']):.1f} SGD steps: snapping")
    assert f"t^* = {peak:.0f}$" in figure.get_suptitle() and logits.get_xlim()[1] == 3000
    assert "SGD steps: scanning" in entry(data, time=5.0).get_suptitle()
    table = (np.eye(2, 3) + 1) / 4
    heavy = SequenceClasses(table, [2, 2], vocab_size=9, class_weights=[0.7, 0.3])
    own = gradient_flow(heavy, eta_y=1.0, eta_z=0.1, t_end=30.0, n_times=9)
    steps = sgd(heavy, eta_y=1.0, eta_z=0.1, steps=5, seed=0)
    for run, how in ((own, "full flow"), (steps, "SGD")):
        assert "t^*" not in words(entry(run)) and upright(entry(run).axes[1]) == set()
        assert entry(run).axes[0].get_title() == f"{how}, next token 0"
    moved = np.abs(steps.dataset["attention"][:, 0] - steps.dataset["attention"][0, 0]).sum("token")
    np.testing.assert_allclose(entry(steps).axes[2].get_lines()[0].get_ydata(), moved / moved[-1])
    assert entry(steps).get_suptitle() == "t = 5.0 SGD steps"
    with pytest.raises(ValueError, match=r"^`next_token` must be below 2, but got 2"):
        entry(own, next_token=2)


def of_audit_errors(entry):
    row = SimpleNamespace(statement="Ours: Lemma 1", check="a check", setting="K = 3", level="my level", error=3e-5,
                          inside=False)  # fmt: skip
    report = SimpleNamespace(table=[row, SimpleNamespace(**vars(row) | {"setting": "K = 4", "error": 50.0})])
    figure = entry(report)
    assert (
        figure.get_suptitle().startswith("Ours: Lemma 1: ")
        and "a check" in words(figure)
        and "at 2 settings" in words(figure)
    )
    marks = [line.get_xdata()[0] for line in figure.axes[0].get_lines() if len(line.get_xdata())]
    assert marks == [3e-5, 20] and "my level" in words(figure)


def of_survival(entry):
    dims = ("setting", "level", "check", "option")
    verdict = np.array([[[[Fate.HOLDS, Fate.REVERSED], [Fate.FAILS, Fate.HOLDS]]]], dtype=int)
    own = np.where(verdict == Fate.FAILS, Fate.HOLDS, Fate.NOT_ASKED)
    names = {"setting": ["K = 3"], "level": ["SGD"], "check": ["one", "two"], "option": ["plain", "odd"]}
    table = xr.Dataset({"verdict": (dims, verdict), "verdict_corrected": (dims, own)}, names,
                       {"tests": 17, "seeds": 23, "alpha": 0.01})  # fmt: skip
    said, caption = words(entry(table), labelled=False), entry.caption(table)
    assert "K = 3: SGD" in said and "odd" in said and "two" in said
    assert "reversed under odd. Of 1 cells" in caption and "17 tests over 23 seeds" in caption and "0.01." in caption


def of_worst_margins(entry):
    rows = [replace(row, share=row.share / 2, examples=7, setting="K = 77") for row in TRIED]
    worst = max(rows, key=lambda row: row.share)
    caption = entry.caption(rows)
    assert f"{len(rows)} campaigns of 7 settings" in caption and f"{worst.share:.2g} at K = 77" in caption
    drawn = [x for line in entry(rows).axes[0].get_lines()[:-1] for x in np.atleast_1d(line.get_xdata())]
    assert max(drawn) == pytest.approx(worst.share)


CASES = {
    "figure3": of_figure3,
    "figure4": of_attention_maps,
    "figure5": of_attention_maps,
    "figure6": of_medium,
    "figure8": of_figure8,
    "figure9": of_figure9,
    "figure11": of_medium,
    "figure12": of_medium,
    "fidelity": of_fidelity,
    "attention_over_training": of_attention_over_training,
    "moving_attention": of_moving_attention,
    "audit_errors": of_audit_errors,
    "survival": of_survival,
    "worst_margins": of_worst_margins,
}


SLOW = {"figure3", "figure4", "figure5", "figure6", "figure11", "figure12", "fidelity", "attention_over_training"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in figures.entries()]
)
def test_a_figure_draws_what_it_is_given(name):
    """A figure without a case here fails: each is drawn away from the paper's setting."""
    before = dict(matplotlib.rcParams)
    CASES[name](figures.entries()[name])
    assert dict(matplotlib.rcParams) == before


# Training that closed forms are not about


def theory_flow(classes, eta_y=1.0):
    return gradient_flow(classes, eta_y=eta_y, eta_z=0.1, t_end=30.0, decoder="theory", n_times=9)


def test_training_that_a_closed_form_is_not_about_is_refused():
    plain = SequenceClasses.single_common_token(3, 50)
    table = plain.probabilities.toarray()
    heavy = SequenceClasses(table, plain.query, vocab_size=50, class_weights=[0.6, 0.2, 0.2])
    uneven = table.copy()
    uneven[0, 0] *= 2
    other = SequenceClasses(uneven / uneven.sum(1, keepdims=True), plain.query, vocab_size=50)
    full = gradient_flow(plain, eta_y=1.0, eta_z=0.1, t_end=30.0, n_times=9)
    momentum = gradient_flow(plain, eta_y=1.0, eta_z=0.1, t_end=30.0, n_times=9, optimizer=Optimizer(momentum=0.9))
    steps = sgd(plain, eta_y=1.0, eta_z=0.1, steps=3, seed=0)
    for flow, message in (
        (theory_flow(heavy), "be of equally frequent classes, whose h is"),
        (theory_flow(other), "be of classes with equal overlaps"),
        (theory_flow(SequenceClasses.syn_small()), "be of classes with one query that share one token"),
        (full, "be theory flows"),
        (momentum, "be of plain gradient descent"),
        (steps, "be gradient flows"),
    ):
        with pytest.raises(ValueError, match=f"^`flows` must {message}"):
            figures.figure3({1.0: flow})
    longer = theory_flow(SequenceClasses.single_common_token(3, 60), eta_y=2.0)
    with pytest.raises(ValueError, match=r"^`flows` must differ in eta_Y alone: .* M = 50, .* M = 60"):
        figures.figure3({1.0: theory_flow(plain), 2.0: longer})


# Keywords


def test_settings_are_checked_before_anything_runs(monkeypatch):
    monkeypatch.setattr(pt, "fidelity_flows", lambda *_, **__: pytest.fail("ran"))
    for call in (figures.figure3, figures.figure3.data):
        with pytest.raises(ValueError, match="`n_classes` must be at least 2, but got 1"):
            call(n_classes=1)


def test_a_setting_beside_data_is_refused():
    with pytest.raises(ValueError, match=r"^`eta_z` must be left out beside `data`, which has its own, but got 1"):
        figures.figure9(figures.figure9.data(), eta_z=1)


def test_the_help_shows_typed_keywords():
    shown = inspect.signature(figures.figure3)
    assert [name for name in shown.parameters if name in KEYWORDS] == list(figures.figure3.takes)
    assert shown.parameters["n_classes"].default == 10 and "Any" not in str(shown)


@pytest.mark.parametrize("name", figures.names())
def test_a_figure_takes_keywords_of_the_table_alone(name):
    """And of the command: an option that is not in the table cannot be written there."""
    entry = figures.entries()[name]
    keywords = [
        one.name for one in inspect.signature(entry.compute).parameters.values() if one.kind is one.KEYWORD_ONLY
    ]
    assert keywords == list(entry.takes)


def run(*arguments):
    return CliRunner().invoke(cli.main, list(map(str, arguments)))


def test_the_command_draws_what_the_function_draws(tmp_path):
    words = ["--vocab-size", 30, "--eta-y", "0.3,0.6", "--steps", 9, "--format", "png", "--out", tmp_path]
    result = run("figure", 8, *words)
    assert result.exit_code == 0, result.output
    entry = figures.figure8
    assert entry.caption(entry.data(vocab_size=30, eta_y=(0.3, 0.6), steps=9)) in result.output
    shown = run("figure", "--help").output
    assert all(keyword.option in shown for keyword in KEYWORDS.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["3", "--steps", 5], "`--steps` must be left out for figure3, which takes --classes, --vocab-size, --common, "
         "--eta-y, --eta-z, --t-end, but got 5"),
        (["3", "--eta-y", "1,x"], "`--eta-y` must be numbers with commas between them, but got '1,x'"),
        (["3", "--classes", "1"], "`n_classes` must be at least 2, but got 1"),
    ],
)  # fmt: skip
def test_a_bad_setting_ends_in_one_line_and_leaves_nothing(arguments, message, tmp_path):
    out = tmp_path / "drawn"
    result = run("figure", *arguments, "--out", out)
    assert result.exit_code == 2 and result.output == f"Error: {message}\n" and not out.exists()


def test_a_file_after_out_is_that_file(tmp_path, monkeypatch):
    """It was made a folder of that name."""
    drawn = tmp_path / "x.png"
    assert run("figure", "3", "--classes", 3, "--quick", "--out", drawn).exit_code == 0
    assert drawn.read_bytes().startswith(b"\x89PNG") and not (tmp_path / "x.pdf").exists()
    for arguments, message in (
        (["--out", tmp_path / "y.gif"], "`--out` must be one of 'png', 'pdf', 'svg', but got 'gif'"),
        (["--out", tmp_path / "y.PNG"], "`--out` must be one of 'png', 'pdf', 'svg', but got 'PNG'"),
        (["--out", tmp_path / "y.png", "--format", "pdf"], "`--format` must be left out where `--out` is a file"),
    ):
        result = run("figure", "3", *arguments)
        assert result.exit_code == 2 and message in result.output and not (tmp_path / "y.png").exists()
