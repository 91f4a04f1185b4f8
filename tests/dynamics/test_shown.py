"""Data, layers and trajectories in a notebook: numbers as they are, escaped, and of bounded size."""

import html
import re
from html.parser import HTMLParser

import matplotlib

matplotlib.use("agg")

import numpy as np
import pytest
import strategies
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib import pyplot
from matplotlib.figure import Figure

from dynamics import Layer, Limits, SequenceClasses, Solver, Trajectory, gradient_flow, sgd
from dynamics.support import display


@pytest.fixture(autouse=True)
def no_figures():
    """Other tests of a process may have left figures open; these count them."""
    pyplot.close("all")
    yield
    pyplot.close("all")


CLASSES = SequenceClasses([[0.3, 0.2, 0.5, 0, 0], [0.2, 0.3, 0, 0.1, 0.4]], [2, 4], vocab_size=9)


def run(classes=CLASSES, **options):
    return gradient_flow(classes, **{"eta_y": 1.0, "eta_z": 1.0, "t_end": 20.0, "n_times": 5, **options})


def axes():
    return Figure().subplots()


class Cells(HTMLParser):
    """The cells of tables, and the tags that are opened and closed."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.opened = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.opened += [] if tag in ("input", "br", "use", "path", "meta") else [tag]
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        if tag not in ("input", "br", "use", "path"):
            assert self.opened.pop() == tag

    def handle_data(self, data):
        if self.opened and self.opened[-1] in ("td", "th"):
            self.cells[-1] += data


def cells(shown):
    parser = Cells(shown._repr_html_())
    assert not parser.opened
    return parser.cells


@given(st.text(max_size=300) | st.text("<>&;/!-'\"ab ", max_size=300))
@example("<b>bold</b> &amp; <!-- gone -->")
@settings(max_examples=25)
def test_text_is_escaped_and_bounded(words):
    found = Cells(f"<table><tr><td>{display.text(words)}</td></tr></table>").cells[0]
    assert found.replace("\r", "\n")[:198] == words.replace("\r", "\n")[:198] and len(found) <= display.LETTERS


def test_a_trajectory_with_hostile_words_is_still_html():
    dataset = run().dataset
    dataset = dataset.assign_attrs(simulator="<script>alert(1)</script>")
    shown = Trajectory(dataset)
    text = shown._repr_html_()
    assert "<script" not in text and "&lt;script&gt;" in text and not Cells(text).opened


def test_a_trajectory_shows_one_line_and_its_dataset_as_xarray_does():
    shown = run()
    line, _, rest = shown._repr_html_().partition("</strong>")
    assert line.endswith(html.escape(repr(shown)))

    def without_ids(text):
        return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "", text)

    assert without_ids(shown.dataset._repr_html_()) in without_ids(rest)


@given(strategies.sequence_classes())
@settings(max_examples=10)
def test_the_table_of_classes_holds_their_probabilities(classes):
    found = cells(classes)
    shares = classes.probabilities[: display.ROWS, : display.COLUMNS].toarray()
    shown = np.reshape(found[-(shares.shape[1] + 3) * len(shares) :], (len(shares), -1))[:, 3:]
    np.testing.assert_allclose(np.where(shown == "", "0", shown).astype(float), shares, rtol=1e-3)


def test_a_table_says_what_is_common_and_what_a_bag_holds():
    assert {"0 (common)", "1 (common)", "2", "3", "4"} <= set(cells(CLASSES))
    assert "0: 0.3, 1: 0.2, 2: 0.5" in cells(CLASSES.population())
    assert "1 x 3" in cells(Layer([[1.0, -2.0, 0.5]], np.eye(3))) and "-2" in cells(
        Layer([[1.0, -2.0, 0.5]], np.eye(3))
    )


def test_large_objects_show_little_and_say_so():
    large = SequenceClasses.single_common_token(3000, 40_000)
    bags = large.population()
    layer = Layer.zeros(SequenceClasses.single_common_token(300, 400).population())
    for shown in (large, bags, layer):
        assert len(shown._repr_html_()) < 20_000
        figure = shown.plot(ax=axes())
        picture = figure.images[0].get_array()
        assert picture.shape[0] <= display.PICTURE_ROWS and picture.shape[1] <= display.PICTURE_COLUMNS
        rows, columns = picture.shape
        assert figure.get_title().startswith(f"first {rows} x {columns} of ")
    assert "first 12 of 3,000 next tokens" in large._repr_html_()
    flow = run(SequenceClasses.syn_medium(10), t_end=1.0)
    assert len(flow._repr_html_()) < 100_000
    drawn = flow.plot(ax=axes())
    assert len(drawn.lines) == display.LINES and drawn.get_title().endswith("the 10 of 20 tokens that move most")


def test_pictures_tell_absent_tokens_from_small_shares():
    for shown, expected in ((CLASSES, CLASSES.probabilities.toarray()), (CLASSES.population(), None)):
        picture = shown.plot(ax=axes()).images[0].get_array()
        shares = CLASSES.probabilities.toarray() if expected is None else expected
        np.testing.assert_array_equal(np.ma.getmaskarray(picture), shares == 0)
        np.testing.assert_allclose(picture.compressed(), shares[shares > 0])


def test_a_layer_is_drawn_to_both_sides_of_zero():
    layer = Layer([[1.0, -2.0, 0.5]], np.arange(12.0).reshape(3, 4))
    image = layer.plot(ax=axes()).images[0]
    assert image.get_clim() == (-2.0, 2.0)
    np.testing.assert_array_equal(layer.plot("Y", ax=axes()).images[0].get_array(), layer.Y)


@pytest.mark.parametrize("large", [False, True])
def test_lines_are_those_of_the_dataset(large):
    options = {"eta_y": 1.0, "eta_z": 1.0, "steps": 20, "length": 30, "record_every": 5}
    expected = sgd(CLASSES, **options).dataset
    with Limits(tables=1 if large else 2**30):
        flow = sgd(CLASSES, **options)
    assert ("entry" in flow.dataset.dims) == large
    for n, tokens in ((0, [0, 1, 2]), (1, [0, 1, 3, 4])):
        for quantity in ("attention", "z"):
            drawn = flow.plot(quantity, next_token=n, ax=axes())
            where = {"next_token": n} if quantity == "attention" else {"query": (2, 4)[n]}
            values = expected[quantity].sel(where)
            names = [f"token {token} ({'common' if token < 2 else 'distinct'})" for token in tokens]
            assert [line.get_label() for line in drawn.lines] == names
            for line, token in zip(drawn.lines, tokens, strict=True):
                np.testing.assert_allclose(line.get_ydata(), values.sel(token=token), rtol=1e-12)
                np.testing.assert_allclose(line.get_xdata(), expected["time"])
    np.testing.assert_allclose(flow.plot("loss", ax=axes()).lines[0].get_ydata(), expected["loss"])
    entropy = flow.plot("entropy", ax=axes()).lines[1].get_ydata()
    np.testing.assert_allclose(entropy, flow.attention_entropy("all").sel(next_token=1))


def test_the_axis_of_time_is_logarithmic_if_the_times_are():
    assert run().plot(ax=axes()).get_xscale() == "linear"
    drawn = run(t_end=1000.0, n_times=30, solver=Solver(time_scale="log")).plot(ax=axes())
    assert drawn.get_xscale() == "log" and drawn.lines[0].get_xdata().min() > 0


def test_the_axis_of_time_is_logarithmic_if_most_happens_early():
    """Equal times over a run that is long for its transition: as the tutorial's, of which 35 steps are half."""
    classes = SequenceClasses([[0.4, 0.4, 0.2, 0, 0], [0.4, 0, 0, 0.4, 0.2]], [0, 0], vocab_size=100)
    for t_end, scale in ((1000.0, "log"), (100.0, "linear")):
        flow = gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=t_end)
        drawn = flow.plot(ax=axes())
        assert drawn.get_xscale() == scale
        times = flow.dataset["time"].values
        np.testing.assert_allclose(drawn.lines[0].get_xdata(), times if scale == "linear" else times[1:])


@pytest.mark.parametrize(
    ("lines", "early"),
    [
        ([np.minimum(np.arange(101), 9)], True),  # all of it in the first tenth
        ([np.minimum(np.arange(101), 20)], False),
        ([np.arange(101)], False),
        ([np.zeros(101)], False),
        ([-np.minimum(np.arange(101), 9), np.arange(101)], False),
        ([np.minimum(np.arange(101), 9) * 20, np.arange(101)], True),
        ([np.full(101, np.nan)], False),
        ([], False),
    ],
)
def test_what_is_early(lines, early):
    assert display.moves_early(np.arange(101.0), lines) == early


@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(0, 25)), elements=st.integers(-9, 9) | st.just(np.nan))
)
@settings(max_examples=25)
def test_no_line_that_is_left_out_moves_more_than_one_that_is_drawn(table):
    kept = display.moving_most(table)
    assert kept == sorted(set(kept)) and len(kept) == min(display.LINES, table.shape[1])
    moved = np.ptp(np.nan_to_num(table), axis=0)
    assert np.delete(moved, kept).max(initial=0) <= moved[kept].min(initial=20)


def test_axes_are_those_given_or_new_ones_of_pyplot():
    given_axes = axes()
    assert CLASSES.plot(ax=given_axes) is given_axes and not pyplot.get_fignums()
    made = CLASSES.plot()
    try:
        assert pyplot.gcf() is made.figure
    finally:
        pyplot.close(made.figure)


@pytest.mark.parametrize("wrong", [{"quantity": "y"}, {"next_token": 7}, {"quantity": "loss", "next_token": 0}])
def test_what_cannot_be_drawn_leaves_no_figure(wrong):
    with pytest.raises(ValueError, match=f"`{[*wrong][-1]}` must"):
        run().plot(**wrong)
    assert not pyplot.get_fignums()
