"""Sharpness-aware steps against closed forms, and the loss in jax against the layer that it is of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage

from dynamics import Layer
from yzflow_studies.layer_parts import sharpness

LANGUAGE = DyckLanguage(2, 3)


@given(st.integers(0, 2**32 - 1), st.floats(0, 2))
def test_a_step_on_a_quadratic_is_that_of_the_closed_form(seed, rho):
    """Of w^T A w / 2 in two parts the climbed gradient is A (w + rho A w / |A w|)."""
    rng = np.random.default_rng(seed)
    root, w = rng.normal(size=(5, 5)), rng.normal(size=5)
    A = root @ root.T + np.eye(5)

    def slope(parts):
        whole = A @ np.concatenate([parts["a"], parts["b"]])
        return {"a": whole[:2], "b": whole[2:]}

    found = sharpness.climbed(slope, {"a": w[:2], "b": w[2:]}, rho)
    expected = A @ (w + rho * A @ w / np.linalg.norm(A @ w))
    np.testing.assert_allclose(np.concatenate([found["a"], found["b"]]), expected, rtol=1e-9)


@pytest.mark.slow
def test_the_loss_is_the_cross_entropy_of_the_layer():
    pytest.importorskip("jax")
    rng, states = np.random.default_rng(0), LANGUAGE.n_states
    weights = {
        "Z": rng.normal(size=(states, states)),
        "Y": rng.normal(size=(6, LANGUAGE.n_brackets)),
        "V": rng.normal(size=(states, 6)),
    }
    bags = LANGUAGE.sample(50, max_length=40, rng=1)
    chances = Layer(*(weights[name] for name in sharpness.STATES)).predict(bags)
    expected = -(bags.target * np.log(chances)).sum(axis=1).mean()
    assert float(sharpness.loss(weights, *sharpness.dense(bags, states))) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_the_grid_trains_and_a_larger_radius_ends_flatter():
    pytest.importorskip("jax")
    runs = sharpness.grid(LANGUAGE, radii=(0.0, 0.3), seeds=3, steps=150, n_train=500, n_test=200)
    assert float(runs["short"].min()) > 0.8
    plain, flat = (float(runs["sharpness"].sel(radius=radius).mean()) for radius in (0.0, 0.3))
    assert 0 < flat < plain
    rows = sharpness.summary(runs)
    assert [row["radius"] for row in rows] == [0.0, 0.3]
    assert rows[1]["sharpness"]["mean"] == pytest.approx(flat)
