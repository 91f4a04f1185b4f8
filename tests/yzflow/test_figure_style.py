"""The rules of docs/figure_style.md that code can break: lines, blanks and labels."""

import numpy as np
import pytest
from figure_rules import explained, has_its_own_place
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text

from dynamics import SequenceClasses, sgd
from yzflow import figures
from yzflow.figures import style


@pytest.mark.parametrize("name", figures.entries())
def test_a_broken_line_is_explained(name):
    assert explained(figures.entries()[name])


def test_absent_tokens_are_blank_and_steps_are_of_the_optimiser():
    """Attention that starts at zero is no small attention; a map of Syn-Small has 10 tokens of the other next token."""
    run = sgd(SequenceClasses.syn_small(), eta_y=0.1, eta_z=0.1, steps=2, optimizer="adam", seed=0)
    figure = figures.figure5([(run,)])
    for n, axes in enumerate(figure.axes[:2]):
        blank = np.ma.getmaskarray(axes.images[0].get_array())
        expected = np.zeros(30, dtype=bool)
        expected[20 - 10 * n : 30 - 10 * n] = True
        assert (blank == expected).all()
        assert axes.get_ylabel() == "step of Adam"
    plain = sgd(SequenceClasses.syn_small(), eta_y=0.1, eta_z=0.1, steps=2, seed=0)
    assert figures.figure4([(plain,)]).axes[0].get_ylabel() == "SGD step"


def test_steps_left_out_are_a_row_without_colour():
    """A line over the cells in the place of such a row reads as a minus where it stands alone."""
    first, longer = (sgd(SequenceClasses.syn_small(), eta_y=0.1, eta_z=0.1, steps=n, seed=0) for n in (2, 12))
    axes = figures.figure4([(first, longer)]).axes[0]
    names, shown = [label.get_text() for label in axes.get_yticklabels()], axes.images[0].get_array()
    (gap,) = np.flatnonzero(np.ma.getmaskarray(shown).all(axis=1))
    assert names[gap] == "⋮" and len(names) == len(shown) and not axes.get_lines()
    assert names[gap - 1] == "2" and names[-1] == "12"
    expected = longer.dataset["attention"].sel(time=12, next_token=0).values
    np.testing.assert_allclose(shown[-1].filled(0), np.where(expected > 0, expected, 0), rtol=1e-12)


# Labels, axes and a style of the caller


def drawn(**options):
    return figures.figure9(quick=True, **options)


def texts(figure):
    figure.figure.canvas.draw()
    return {text.get_text() for text in figure.findobj(Text)} - {""}


def test_a_figure_takes_other_words():
    before = texts(drawn())
    word = next(iter(sorted(before & {text.get_text() for text in drawn().axes[0].get_legend().get_texts()})))
    after = texts(drawn(labels={word: "THE WORD", drawn().axes[0].get_xlabel(): "Zeit"}))
    assert {"THE WORD", "Zeit"} <= after and word not in after and len(after) == len(before)


def test_named_ticks_take_other_words():
    @style.styled
    def named():
        figure = style.canvas(figsize=(2, 2))
        figure.subplots().set_xticks([0, 1], ["cat", "dog"])
        return figure

    shown = texts(named(labels={"dog": "DOG"}))
    assert {"cat", "DOG"} <= shown and "dog" not in shown


def test_a_figure_is_drawn_in_the_place_of_axes():
    outer = Figure(layout="constrained", figsize=(12, 5))
    left, right = outer.subplots(1, 2)
    left.plot([0, 1], [0, 1])
    part = drawn(ax=right)
    alone = drawn()
    assert right not in outer.axes and left in outer.axes and part in outer.subfigs
    assert len(part.axes) == len(alone.axes)
    for own, other in zip(part.axes, alone.axes, strict=True):
        assert own.get_title() == other.get_title() and own.get_xlabel() == other.get_xlabel()
        for line, same in zip(own.get_lines(), other.get_lines(), strict=True):
            assert np.array_equal(line.get_xydata(), same.get_xydata(), equal_nan=True)
    outer.canvas.draw()
    boxes = [axes.get_window_extent() for axes in part.axes]
    assert min(box.x0 for box in boxes) > left.get_window_extent().x1  # beside, and not over each other
    assert not drawn().figure.subfigs  # the place is forgotten


@pytest.mark.parametrize(
    ("ax", "message"),
    [
        (3, "`ax` must be axes of matplotlib, but got 3"),
        (Figure().subplots(), "`ax` must be of a figure with constrained layout"),
        (Figure(layout="constrained").add_axes((0, 0, 1, 1)), "`ax` must have a place in a grid"),
    ],
)
def test_other_places_are_refused(ax, message):
    with pytest.raises(ValueError) as caught:
        drawn(ax=ax)
    assert message in str(caught.value)


def test_labels_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="`labels` must have texts of the figure for keys, such as "):
        drawn(labels={"no such word": "x"})
    with pytest.raises(ValueError, match="`labels` must hold text, but got 3"):
        drawn(labels={drawn().axes[0].get_xlabel(): 3})
    with pytest.raises(ValueError, match="`labels` must be a mapping from texts"):
        drawn(labels=["x"])


def test_a_style_stands_over_that_of_the_project():
    thick = drawn(style={"lines.linewidth": 9.0, "axes.facecolor": "#123456"})
    assert thick.axes[0].get_facecolor() == to_rgba("#123456") != drawn().axes[0].get_facecolor()
    with pytest.raises(ValueError, match="`style` must be a style or settings of matplotlib, as "):
        drawn(style="ggplotted")


def test_every_figure_has_a_place_to_be_drawn_in():
    """None makes a figure of its own, which would not go where it is asked to."""
    assert not [entry.name for entry in figures.entries().values() if has_its_own_place(entry)]
    with pytest.raises(ValueError, match="`ax` must be left out for a figure that makes no `canvas`, but got own"):

        @style.styled
        def own():
            return Figure()

        own(ax=Figure(layout="constrained").subplots())


@pytest.mark.parametrize("loc", ["outside right upper", "outside lower center"])
def test_legends_and_bars_find_room_in_a_part_of_a_figure(loc):
    @style.styled
    def whole():
        figure = style.canvas(figsize=(6, 3))
        panels = figure.subplots(1, 2)
        panels[0].plot([0, 1], label="a line")
        figure.colorbar(panels[1].imshow(np.eye(3)), ax=panels)
        figure.legend(*panels[0].get_legend_handles_labels(), loc=loc)
        figure.suptitle("title")
        return figure

    outer = Figure(layout="constrained", figsize=(12, 6))
    part = whole(ax=outer.subplots(2, 2)[0, 1])
    outer.canvas.draw()
    legend, box = part.legends[0].get_window_extent(), part.bbox
    assert box.x0 <= legend.x0 and legend.x1 <= box.x1 + 1 and box.y0 <= legend.y0 and legend.y1 <= box.y1 + 1
