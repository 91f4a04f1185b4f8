"""Bits of queries by construction, and their figure."""

import pytest
from figure_rules import shows

from yzflow_studies.moment_curve import study

FIGURES = {entry.name: entry for entry in study.FIGURES}


def test_query_bits_by_construction():
    data = study.query_bits(n_tokens=64, subset_sizes=(2, 8))
    assert (data["own_lengths"] < data["moment_curve"]).all()
    # q four times as large: sixteen times the bits of the moment curve, up to its lower-order terms.
    assert float(data["moment_curve"][1] / data["moment_curve"][0]) == pytest.approx(16, rel=0.2)


def test_the_figure_labels_its_axes_and_shows_its_data():
    data = study.query_bits(n_tokens=16, subset_sizes=(1, 2))
    shows(FIGURES["qsa_query_bits"], data, data["random_keys"])
