"""The audit's figures."""

import yzflow
from yzflow import figures


def test_the_audit_s_figure_shows_every_row():
    report = yzflow.audit(["Lemma 8"], quick=True)
    figure = figures.audit_errors(report, "Scan and Snap: Lemma 8")
    settings = list(dict.fromkeys(row.setting for row in report.table))
    assert len(figure.axes) == len({row.check for row in report.table})
    points = [line for axes in figure.axes for line in axes.get_lines() if len(line.get_xdata())]
    assert len(points) == len(report.table)
    assert all([label.get_text() for label in axes.get_yticklabels()] == settings for axes in figure.axes)
