"""The figure of how many steps of batch size 1 Theorem 1 needs: its numbers, and captions made of them."""

import numpy as np
import pytest
import xarray as xr

from yzflow_studies.visits_needed import study

(ENTRY,) = study.FIGURES
OTHER = {"seeds": 7, "vocab_size": 333, "eta_y": 0.25, "quantile": 0.8}


def power_law(power, sizes=(4, 8, 16), start=10.0):
    """Quantiles that fall below one half at start K^power exactly, on a fine grid."""
    variables = {}
    for k in sizes:
        steps = np.geomspace(1, 1e5, 4000)
        below = 0.5 * (start * k**power / steps)
        variables[f"step_{k}"] = ((f"step_{k}",), steps)
        for name in ("theta", "late_theta", "error"):
            variables[f"{name}_{k}"] = ((f"step_{k}",), below)
    return xr.Dataset(variables, coords={"n_classes": list(sizes)}).assign_attrs(OTHER)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_arrivals_and_their_power(power):
    data = power_law(power)
    np.testing.assert_allclose(study.arrival(data, "theta"), 10 * np.array([4, 8, 16]) ** power, rtol=4e-3)
    assert study.exponent(data, "theta") == pytest.approx(power, abs=5e-3)
    text = ENTRY.caption(data)
    assert text.count(f"a power {power:.1f} of K") == 3 and "80% of 7 runs" in text and "at eta_Y = 0.25 from" in text


def test_what_does_not_arrive_is_said():
    data = power_law(1.0)
    data["theta_16"][:] = 0.6
    assert np.isnan(study.arrival(data, "theta")[-1])
    assert "later than shown" in ENTRY.caption(data)


def test_one_run():
    times, early, theta, error = study._one(4, seed=3)
    # At eta_Y = 1 the decoder leaves the first stage within K ln M = 28 steps, and logarithms are closer than counts.
    late = times > 60
    assert late.sum() > 10 and (theta[late] < 0.5 * early[late]).all()
    assert (early > 0).any() and np.isfinite(error).all()
    # The chance of all four classes within 40% of their mean after 243 steps is above 0.99.
    assert early[-1] < 0.4 and error[-1] < 1
