"""The map of worst margins: a mark for each campaign with an error, at its share."""

import pytest
from figure_rules import drawn

from yzflow import figures
from yzflow.papers.scan_and_snap.tried import TRIED


def test_every_campaign_with_an_error_has_its_mark():
    entry = figures.worst_margins
    figure, claims = drawn(entry, TRIED)
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    marks = {
        (names[int(place)], line.get_label()): share
        for line in axes.get_lines()
        if not line.get_label().startswith("_")
        for share, place in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }
    wanted = {(row.statement.partition(": ")[2], row.level): max(row.share, 1e-6) for row in TRIED if row.share > 0}
    assert marks == wanted
    assert "none of them a statement was broken" in claims and f"{max(wanted.values()):.2g}" in claims


def test_a_table_without_errors_is_refused():
    with pytest.raises(ValueError, match=r"^`rows` must have a campaign in which an error takes a share"):
        figures.worst_margins([row for row in TRIED if row.share == 0])
