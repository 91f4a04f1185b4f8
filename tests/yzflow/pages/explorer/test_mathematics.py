"""The mathematics that the panels share."""

import numpy as np
import pytest
from explorer_pages import mathematics


@pytest.fixture(scope="module")
def run(shared_browser, tmp_path_factory):
    """Evaluate an expression beside mathematics.js, with `x` as its argument."""
    return mathematics(shared_browser, tmp_path_factory)


def test_integrator_has_order_five(run):
    """y'' = -y from (0, 1) has the solution sin t; the work grows with the fifth root of the tolerance."""
    script = """(() => {
      let calls = 0;
      const problem = { start: [0, 1], derivative: (t, y) => (calls++, [y[1], -y[0]]) };
      const end = yzflow.integrate(problem, [0, 20], { rtol: 0, atol: x }).at(-1);
      return [Math.abs(end[0] - Math.sin(20)), calls];
    })()"""
    (coarse, few), (fine, many) = run(script, 1e-5), run(script, 1e-10)
    assert coarse < 1e-3 and fine < 1e-8
    assert 7 < many / few < 12  # 1e5^(1/5) = 10


def test_integrator_gives_up_where_asked(run):
    states = run("yzflow.integrate({ start: [1], derivative: (t, y) => [-y[0]] }, [0, 50], { maximum: 3 })")
    assert states[0] == [1] and states[1] is None


def test_shares_are_those_of_softmax_whatever_is_added_to_all_logits(run):
    p, z = np.array([0.2, 1.0, 3.0]), np.array([1.0, -2.0, 0.5])
    expected = p * np.exp(z) / (p * np.exp(z)).sum()
    for shift in (0.0, 1e4, -1e4):
        np.testing.assert_allclose(
            run("yzflow.shares(x.p, x.z)", {"p": p.tolist(), "z": (z + shift).tolist()}), expected
        )
