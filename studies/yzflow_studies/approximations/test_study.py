"""Errors of the approximations against the theory flow's own velocities, and B with a norm that moves."""

import numpy as np
import pytest

from dynamics import gradient_flow
from theory import decoder
from yzflow.papers.scan_and_snap.settings import classes_with_common_shares
from yzflow_studies.approximations import study


@pytest.mark.parametrize(("k", "m", "rho"), [(2, 50, 0.3), (4, 2000, 0.05)])
def test_the_exact_speed_and_the_fall_of_the_overlap_are_those_of_the_theory_flow(k, m, rho):
    """Three unequal distinct tokens a class, at a time at which the logits have moved."""
    classes = classes_with_common_shares([rho**0.5] * k, m, distinct=(1.0, 0.6, 0.3))
    times = [0.0, 30.0, 30.01]
    rates = {"eta_y": 1.0, "eta_z": 2.0, "t_end": 30.01, "rtol": 1e-12, "atol": 1e-15}
    data = gradient_flow(classes, decoder="theory", times=times, **rates).dataset
    shares = data["attention"].values
    features = shares / np.linalg.norm(shares, axis=2, keepdims=True)
    overlap = features[:, 0] * features[:, 1]
    rhos = overlap.sum(axis=1)
    gamma = decoder.gamma(30.0, vocab_size=m, n_classes=k, eta_y=1.0)
    speed = -data["z_velocity"].values[1, 0, 0] / (2.0 * gamma * (k - 1) * rhos[1] ** 2)
    assert speed == pytest.approx(float(study.speed_ratio(m, k, rhos[1])), rel=1e-7)
    assert rhos[1] < 0.999 * rho
    xi = 2.0 * gamma * (k - 1) * rhos[1] ** 2 * float(study.beta_ratio(m, k, rhos[1]))
    fourth = (features[1, 0, 1:] ** 4).sum()
    kappa = (1 - rhos[1]) ** 2 + fourth / k
    assert np.log(rhos[2] / rhos[1]) / 0.01 == pytest.approx(-2 * kappa * xi, rel=1e-3)


def test_leading_orders_are_those_of_the_exact_errors():
    found = study.errors([[10, 10**8, 1e-4], [10, 10**8, 1e-6]])["rows"]
    for row in found:
        for name in ("beta", "speed"):
            assert row[name] == pytest.approx(row[f"{name}_leading"], rel=1e-2)
    assert found[0]["speed"] < 0 < found[1]["speed"]


def test_a_norm_that_moves_is_better_and_both_agree_where_little_moves():
    """K = 2, where the difference is largest."""
    little = study.falls(2, 10**5, 1e-3, 1.0, 1.0, [10.0, 1000.0])
    far = study.falls(2, 10**5, 1e-3, 1.0, 1e4, [10.0, 1000.0])
    assert little["still"][-1] == pytest.approx(little["flow"][-1], rel=3e-3)
    assert far["still"][-1] > 1.2 * far["flow"][-1]
    assert far["moving"][-1] == pytest.approx(far["flow"][-1], rel=0.02)
