"""Speeds of attention: their limits in closed form, where they are equal, and what the figure claims."""

import numpy as np
import pytest
from figure_rules import drawn

from theory.scan_and_snap.proofs.slowdown import late_ratio
from yzflow.papers.scan_and_snap import late
from yzflow_studies.overtaking import study


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


def small_speeds():
    s = np.linspace(-6, 12, 19)
    curves = {(5, 60, rho): study.frozen_speeds(s, n_classes=5, vocab_size=60, overlap=rho) for rho in (0.967, 0.01)}
    times = study.overtaking(n_classes=5, vocab_sizes=[10, 60], overlaps=[0.3, 0.9], last=30.0, n_times=60)
    return {"ln_t": s, "curves": curves, "map": times}


def test_the_figure_draws_its_data_and_claims_what_it_shows():
    data, (entry,) = small_speeds(), study.FIGURES
    _, claims = drawn(entry, data)
    assert "rho = 0.967: passes 1 near ln t = 3, " in claims and "rho = 0.01: stays below 1" in claims
