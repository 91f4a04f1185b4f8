"""The panel's mathematics in JavaScript gives what Python's gives."""

import numpy as np
import pytest
from explorer_pages import close, mathematics
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging.panel import PANELS


@pytest.fixture(scope="module")
def run(shared_browser, tmp_path_factory):
    """Evaluate an expression beside the panel's mathematics, with `x` as its argument."""
    return mathematics(shared_browser, tmp_path_factory, PANELS[0])


@pytest.mark.parametrize(("m", "q"), [(20, 1), (60, 3), (60, 6), (200, 8), (8, 8)])
def test_certificates(run, m, q):
    signs = np.random.default_rng(m).choice([-1, 1], size=(64, 200))
    keys = signs[:, :m] / np.sqrt(m)
    x = {"signs": signs.tolist(), "y": list(range(3, 3 + q))}
    found = run(f"yzflow.averaging.certificate(x.signs, {m}, x.y)", x)
    expected = averaging.certificate(keys, x["y"], method="minimum norm", rho=0.999, level=0.35, throw=False)
    if np.isfinite(found["rho"]):
        close(found["rho"], expected.rho, 1e-10)
        if expected.feasible:
            np.testing.assert_allclose(found["scores"], keys @ expected.query, rtol=1e-10, atol=1e-12)
    else:
        assert np.isinf(expected.rho)
    tau = averaging.temperature(n_tokens=64, q=q, error=0.1)
    close(run(f"yzflow.averaging.temperature(64, {q}, 0.1)"), tau, 1e-14)
    close(run("yzflow.averaging.temperature(4, 4, 0.1)"), 0.0, 0)


def test_hard_sets_are_the_closest_tokens(run):
    from yzflow_sparse_averaging.instances import adversarial_subsets

    signs = np.random.default_rng(0).choice([-1, 1], size=(64, 100))
    hard = run("x.map((_, i) => yzflow.averaging.closest(x, 37, i, 4))", signs.tolist())
    assert hard == adversarial_subsets(signs[:, :37].astype(float), 4).tolist()
