"""The audit's figures."""

from dataclasses import replace
from types import SimpleNamespace

import xarray as xr
from driving import ROOT

import yzflow
from yzflow import figures


def test_the_audit_s_figure_fits_on_a_page():
    row = yzflow.audit(["Scan and Snap: Lemma 8"], quick=True).table[0]
    for many in (1, 12, 40):
        report = SimpleNamespace(table=[replace(row, check=f"check {n}", setting=f"K = {n}") for n in range(many)])
        assert figures.audit_errors(report).get_size_inches()[1] <= 8  # 1,600 pixels where it is saved


def test_the_survival_figure_fits_on_a_page_and_says_what_it_leaves_out():
    with xr.open_dataset(ROOT / "docs" / "survival" / "survival.nc", engine="h5netcdf") as table:
        table.load()
    figure = figures.survival(table)
    assert figure.get_size_inches()[1] <= 8
    assert "Not drawn, and in the table: 4 settings, 4 levels." in figures.entries()["survival"].caption(table)
