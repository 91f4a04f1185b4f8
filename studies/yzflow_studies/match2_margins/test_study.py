"""The margin that is measured is that of the formula, and the figure shows it."""

import numpy as np
from figure_rules import shows

from yzflow_studies.match2_margins import study

FIGURES = {entry.name: entry for entry in study.FIGURES}


def test_match2_margins_are_those_of_the_formula():
    data = study.match2_margins(n_tokens=(2, 50), moduli=(31, 101))
    np.testing.assert_allclose(data["measured"], data["predicted"], rtol=1e-9)
    assert data["measured"].sel(n_tokens=50, modulus=101) < 0 < data["measured"].sel(n_tokens=2, modulus=101)


def test_the_figure_labels_its_axes_and_shows_its_data():
    data = study.match2_margins(n_tokens=(2, 50), moduli=(31, 101, 201))
    shows(FIGURES["match2_margins"], data, data["measured"])
