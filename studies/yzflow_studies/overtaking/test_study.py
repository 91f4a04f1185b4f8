"""Speeds of attention: their limits in closed form, where they are equal, and what the figure claims."""

import numpy as np
import pytest
from figure_rules import drawn
from reference import integrated_full_flow
from yzflow_beyond_scan_and_snap import late

from dynamics import SequenceClasses, gradient_flow
from theory.scan_and_snap.proofs.slowdown import late_ratio
from yzflow_studies.overtaking import study, values
from yzflow_studies.refined import largest

APART = [[2 / 3, 1 / 3, 0], [1 / 4, 0, 3 / 4]]


@pytest.mark.parametrize(("k", "m", "rho"), [(5, 60, 0.967), (4, 4, 0.3), (3, 30, 0.2)])
def test_frozen_speeds_run_from_s_to_s_inf(k, m, rho):
    speeds = study.frozen_speeds([-11.0, 20_000.0], n_classes=k, vocab_size=m, overlap=rho)
    slowdown = (1 - rho) * (1 + (k - 1) * rho) / (1 + (m - 1) * rho)
    assert speeds[0] == pytest.approx(slowdown, rel=1e-3)
    assert speeds[1] == pytest.approx(float(late_ratio(m, k, rho)), rel=5e-3)


def test_where_the_full_flow_overtakes():
    found = study.overtaking(n_classes=10, vocab_sizes=[20, 100], overlaps=[0.01, 0.3], last=100.0)
    assert np.isfinite(found.values).all()
    assert (np.diff(found.values, axis=0) > 0).all() and (np.diff(found.values, axis=1) < 0).all()
    assert np.isinf(study.overtaking(n_classes=10, vocab_sizes=[1000], overlaps=[0.01], last=100.0).values).all()


def test_with_moving_features_the_lead_stays_where_k_is_m_and_is_lost_else():
    options = {"n_classes": 5, "common": 0.4, "n_distinct": 2, "eta_z": 1e-3}
    full, theory = (
        late.late_flow([6.0, 8.0, 30.0], vocab_size=5, **options)["z"].values,
        late.theory_logit([6.0, 8.0, 30.0], vocab_size=5, **options),
    )
    assert (full < theory).all() and full[-1] / theory[-1] < full[0] / theory[0]  # the multiple tends to one from above
    (full,) = late.late_flow([500.0], vocab_size=15, **options)["z"].values
    assert full > late.theory_logit([500.0], vocab_size=15, **options)[0]


@pytest.mark.parametrize("rates", [(1.0, 0.5), (2.0, 0.3)])
def test_two_classes_move_as_lemma_1_and_theorem_1_say(rates):
    eta_y, eta_z = rates
    t = np.array([10.0, 1000.0])
    found = study.two_classes(APART, np.log(t), eta_y=eta_y, eta_z=eta_z)
    classes = SequenceClasses(APART, [0, 0], vocab_size=2)
    full = integrated_full_flow(classes.population(), t, eta_y, eta_z)[:, 0]
    np.testing.assert_allclose(found["full"], full, rtol=1e-6, atol=1e-8)
    theory = gradient_flow(classes, eta_y=eta_y, eta_z=eta_z, t_end=1e3, times=t, decoder="theory")
    np.testing.assert_allclose(found["theory"], theory.dataset["z"].values[:, 0], rtol=1e-5, atol=1e-7)


def test_two_equal_classes_are_those_of_the_late_flow():
    """For ever ahead only there: the multiple that the proof is about, by the other route."""
    alike, s = [[0.4, 0.6, 0.0], [0.4, 0.0, 0.6]], np.array([7.0, 200.0])
    found = study.two_classes(alike, s, eta_y=1.0, eta_z=0.5)
    options = {"n_classes": 2, "vocab_size": 2, "common": 0.4, "n_distinct": 1}
    np.testing.assert_allclose(found["full"][:, 0], late.late_flow(s, **options)["z"], rtol=1e-5)
    np.testing.assert_allclose(found["theory"][:, 0], late.theory_logit(s, **options), rtol=1e-6)
    assert (found["full"] < found["theory"])[:, 0].all()


def test_the_lead_is_not_for_classes_that_differ():
    apart = values.apart(APART, 1.0, 0.5, [10.0, 1e3, 1e8, 1e16], 1000.0)
    np.testing.assert_allclose(apart["ratio"], [0.97, 0.81, 0.73, 0.76, 0.87], atol=0.006)
    assert not apart["keeps"]


def test_a_published_maximum_is_not_that_of_a_grid():
    """On the study's own points, 300 and 500 beside each other, it was .364; forty points in between have .36779."""
    setting = next(known for known in values.STUDIES if known.name == "paper").setting
    found = values.moving(**setting | {"ln_t": [300.0, 400.0]})
    assert found["largest"] == pytest.approx(0.36779, abs=1e-5) and found["at"] == pytest.approx(349, abs=3)


def test_the_largest_value_does_not_depend_on_the_points():
    for points in ([0.0, 1.0, 2.5, 4.0], np.linspace(0, 4, 9)):
        assert largest(np.sin, points) == pytest.approx((1, np.pi / 2), abs=1e-3)
    assert largest(np.exp, [0.0, 1.0]) == pytest.approx((np.e, 1), rel=1e-3)
    with pytest.raises(ValueError, match="`points` must be at least two, and increasing, but got"):
        largest(np.sin, [1.0, 0.5])


def small_speeds():
    s = np.linspace(-6, 12, 19)
    curves = {(5, 60, rho): study.frozen_speeds(s, n_classes=5, vocab_size=60, overlap=rho) for rho in (0.967, 0.01)}
    times = study.overtaking(n_classes=5, vocab_sizes=[10, 60], overlaps=[0.3, 0.9], last=30.0, n_times=60)
    return {"ln_t": s, "curves": curves, "map": times}


def test_the_figure_draws_its_data_and_claims_what_it_shows():
    data, (entry,) = small_speeds(), study.FIGURES
    _, claims = drawn(entry, data)
    assert "rho = 0.967: passes 1 near ln t = 3, " in claims and "rho = 0.01: stays below 1" in claims
