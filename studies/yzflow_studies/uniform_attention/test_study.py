"""Verdicts on hypotheses by Student's t, attention that stays uniform, and what the figure draws."""

import numpy as np
import pytest
import scipy.stats
from figure_rules import drawn
from hypothesis import given
from hypothesis import strategies as st

from dynamics import DyckLanguage
from yzflow.papers.bounded_dyck import training as dyck
from yzflow_studies.uniform_attention import study

LANGUAGE = DyckLanguage(2, 3)


@pytest.fixture(scope="module")
def runs():
    samples = dyck.data(LANGUAGE, n_train=500, n_test=300, seed=7)
    return study.trained(seeds=[1, 2, 3], steps=150, samples=samples, units={"linear decoder": 0})


@given(values=st.lists(st.floats(-1, 1), min_size=2, max_size=9, unique=True), above=st.booleans())
def test_a_verdict_is_that_of_two_one_sided_t_tests(values, above):
    if np.std(values) < 1e-3:
        return
    found = study.verdict(values, study.Hypothesis("H", "", 0.1, above))
    for one, name in ((above, "supported"), (not above, "refuted")):
        p = scipy.stats.ttest_1samp(values, 0.1, alternative="greater" if one else "less").pvalue
        assert (found == name) == (p < 0.01)


def test_the_true_claim_is_refuted_at_the_stated_rate():
    """1% of 4,000 draws of six normal values about the bound: a false alarm of this test once in 1e5 (binomial)."""
    claim = study.Hypothesis("H", "", 0.0, True)
    draws = np.random.default_rng(3).normal(size=(4000, 6))
    refuted = sum(study.verdict(row, claim) == "refuted" for row in draws)
    low, high = scipy.stats.binom.interval(1 - 1e-5, 4000, 0.01)
    assert low <= refuted <= high


def test_uniform_attention_is_balanced_and_the_other_is_trained(runs):
    assert (runs["residual"].sel(held="uniform") == 0).all() and (runs["residual"].sel(held="trained") > 0).all()
    np.testing.assert_array_equal(runs["attention"].sel(held="uniform"), runs["start_attention"].sel(held="uniform"))
    assert set(study.verdicts(runs)["linear decoder"]) == {"H1", "H2", "H3"}


def test_the_figure_draws_means_and_claims_the_verdicts(runs):
    figure, claims = drawn(study.FIGURES[0], runs)
    own = study.verdicts(runs)["linear decoder"]
    assert all(f"{one.says}: {own[one.name]}" in claims for one in study.HYPOTHESES)
    mean = runs["accuracy"].sel(length="below 28", query="all").mean("seed").squeeze()
    np.testing.assert_allclose(figure.axes[0].containers[0][0].get_ydata(orig=False), mean)


def test_refusals():
    with pytest.raises(ValueError, match=r"^`values` must have two entries at least, but got 1"):
        study.verdict([0.5], study.HYPOTHESES[0])
