"""Spurious tokens against exact enumeration and data sets; what the figure claims."""

import numpy as np
import pytest
from figure_rules import drawn

from yzflow_studies.spurious_tokens import study


def test_spurious_tokens_are_counted_right():
    # All data sets of two classes with two contextual tokens each, over three tokens: exact enumeration.
    p = np.array([0.5, 0.3, 0.2])
    number = share = 0.0
    for a in np.ndindex(3, 3):
        for b in np.ndindex(3, 3):
            chance = p[list(a)].prod() * p[list(b)].prod()
            alone = set(a) ^ set(b)
            number += chance * len(alone)
            share += chance * sum(token not in b for token in a) / 2
    options = {"tokens_per_class": 2, "n_classes": 2}
    assert study.expected_number(p, **options) == pytest.approx(number, rel=1e-12)
    assert study.expected_share(p, **options) == pytest.approx(share, rel=1e-12)


def test_large_data_sets_suppress_spurious_tokens():
    found = study.suppression(tokens_per_class=(100, 1000), seeds=3, t_end=100.0)
    # Six standard deviations of a count of rare tokens: a false alarm below 1e-6.
    expected = found["expected_number"].values
    assert (np.abs(found["number"].mean("seed") - expected) < 6 * np.sqrt(expected / 3)).all()
    assert (found["risen"] == 1).all()
    assert (found["end"] > found["start"]).all()
    np.testing.assert_allclose(found["end"].mean("seed"), found["expected_end"], rtol=0.35)
    assert float(found["end"].sel(tokens_per_class=1000).mean() / found["end"].sel(tokens_per_class=100).mean()) < 0.1


def test_refusals():
    with pytest.raises(ValueError, match="`common` must be between 0 and 1, both excluded"):
        study.expected_number([0.0, 0.5], tokens_per_class=3, n_classes=2)


def small_data_sets():
    return study.suppression(tokens_per_class=(50, 400), seeds=2, n_classes=3, n_tokens=60, t_end=20.0)


def test_the_figure_draws_its_data_and_claims_what_it_shows():
    data, (entry,) = small_data_sets(), study.FIGURES
    _, claims = drawn(entry, data)
    row = data.isel(tokens_per_class=0)
    assert f"n = 50: {float(row['number'].mean()):.3g} spurious tokens" in claims and "100% of the" in claims
    assert "K = 3 classes of 60 common tokens." in claims
