"""The error of (10) in the modified flow: its law in the rates and the vocabulary, and what the figure claims."""

import numpy as np
import pytest
from figure_rules import drawn

from yzflow_studies.rates_and_vocabulary import study


def test_the_error_falls_with_the_ratio_and_grows_with_the_logarithm_squared():
    found = study.misses(sizes=[10**4, 10**8], settings=[(3, 0.05)], ratios=(100.0, 400.0))
    assert float(found[0, 0, 0] / found[0, 1, 0]) == pytest.approx(4, rel=0.05)
    assert float(found[0, 0, 1] / found[0, 0, 0]) == pytest.approx(4, rel=0.1)  # (8/4)^2
    left = study.constants(found)
    assert float(left.max() / left.min()) < 1.15


def test_the_figure_draws_its_data_and_claims_what_it_shows():
    (entry,) = study.FIGURES
    data = study.misses(sizes=[1000, 10**6], settings=[(2, 0.3)], ratios=(100.0, 400.0))
    figure, claims = drawn(entry, data)
    worst = 100 * float(data.sel(ratio=100.0).isel(vocab_size=-1).max())
    assert f"up to {worst:.2g}% at M = 1,000,000" in claims
    line = figure.axes[0].get_lines()[0]
    np.testing.assert_array_equal(line.get_ydata(), data.isel(setting=0, ratio=0).values)


def test_the_error_is_not_that_of_a_grid():
    """15.9%, where 120 times have 15.7%, and 4,000 have .15853."""
    found = study.miss(n_classes=2, vocab_size=10**7, overlap=0.3, ratio=100.0)
    assert found == pytest.approx(0.1586, abs=1e-4)


def test_refusals():
    for name in ("overlap", "ratio"):
        with pytest.raises(ValueError, match=f"`{name}` must be positive, but got 0"):
            study.miss(**{"n_classes": 2, "vocab_size": 1000, "overlap": 0.1, "ratio": 100.0, name: 0.0})
