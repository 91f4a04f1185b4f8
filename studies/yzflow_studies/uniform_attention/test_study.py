"""Verdicts on hypotheses by Student's t, attention that stays uniform, and what the figure draws."""

import functools

import numpy as np
import pytest
import scipy.stats
from figure_rules import drawn
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from yzflow_studies.uniform_attention import study, values

LANGUAGE = DyckLanguage(2, 3)


@pytest.fixture(scope="module")
def runs():
    samples = dyck.data(LANGUAGE, n_train=500, n_test=300, seed=7)
    return study.trained(seeds=[1, 2, 3], steps=150, samples=samples, units={"linear decoder": 0})


@given(numbers=st.lists(st.floats(-1, 1), min_size=2, max_size=9, unique=True), above=st.booleans())
def test_a_verdict_is_that_of_two_one_sided_t_tests(numbers, above):
    if np.std(numbers) < 1e-3:
        return
    found = study.verdict(numbers, study.Hypothesis("H", "", 0.1, above))
    for one, name in ((above, "supported"), (not above, "refuted")):
        p = scipy.stats.ttest_1samp(numbers, 0.1, alternative="greater" if one else "less").pvalue
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


@pytest.fixture
def small(monkeypatch):
    """Few prefixes of every seed."""
    drawn = dyck.data
    monkeypatch.setattr(dyck, "data", lambda seed: drawn(n_train=300, n_test=100, seed=seed))


def test_what_is_kept_is_told_apart_by_its_data(small, tmp_path, monkeypatch):
    options = {"seeds": [1, 2], "steps": 2, "units": {"linear decoder": 0}, "store": tmp_path}
    first, other = (study.trained(data_seed=number, **options) for number in (1, 2))
    assert len(list(tmp_path.glob("*.nc"))) == 4 and not first["loss"].equals(other["loss"])
    np.testing.assert_array_equal(first["start_attention"], other["start_attention"])
    monkeypatch.setattr(dyck, "trained", None)
    np.testing.assert_array_equal(study.trained(data_seed=1, **options)["loss"], first["loss"])


def test_gains_on_other_data_are_those_of_the_runs(small, tmp_path, monkeypatch):
    monkeypatch.setattr(values, "STORE", tmp_path)
    monkeypatch.setattr(study, "trained", functools.partial(study.trained, steps=40))
    found = values.replicated(seeds=[1, 2, 3], data_seeds=[4, 5], scale=0.1)
    gains = []
    for row in found["rows"]:
        accuracy = study.trained(seeds=[1, 2, 3], data_seed=row["data_seed"])["accuracy"]
        long = accuracy.sel(length="400-500", query="close", decoder="linear decoder")
        gains += list((long.sel(held="uniform") - long.sel(held="trained")).values)
        assert row["linear"]["mean"] == pytest.approx(np.mean(gains[-3:]))
    record = found["replicated"]
    limits = scipy.stats.t.interval(0.95, 5, np.mean(gains), scipy.stats.sem(gains))
    np.testing.assert_allclose([record["mean"] - record["half"], record["mean"] + record["half"]], limits)
    assert (record["data_seeds"], record["seeds"], found["draws"]) == ([4, 5], 6, 2)


def test_refusals(runs, tmp_path):
    with pytest.raises(ValueError, match=r"^`samples` must be left out where `store` is given, but got some"):
        study.trained(samples=dyck.data(LANGUAGE, n_train=500, n_test=300, seed=7), store=tmp_path)
    with pytest.raises(ValueError, match=r"^`values` must have two entries at least, but got 1"):
        study.verdict([0.5], study.HYPOTHESES[0])
