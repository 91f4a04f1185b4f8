"""The lemmas of Theorem 3 one by one: every check turns red under a wrong bound, and bounds against other routes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import interpolating, measures_of_lemmas, pruning, widths
from yzflow_bounded_dyck.proofs import lottery as proofs
from yzflow_bounded_dyck.proofs import pruning_lemmas as proved
from yzflow_bounded_dyck.transformers import layer_norm

CHECKS = (
    "composed", "enough_for_networks", "softmax", "normalised", "mixtures", "lipschitz_of_attention", "wider_norms",
    "pruned_layers", "kept_apart",
)  # fmt: skip


@pytest.fixture(autouse=True)
def afresh():
    yield
    for name in CHECKS:
        getattr(measures_of_lemmas, name).__wrapped__.cache_clear()


def test_all_checks_hold():
    for name in CHECKS:
        assert getattr(measures_of_lemmas, name)() <= 1e-9, name


WRONG = {
    "errors add up without L": (proofs, "composed", lambda right: lambda c, e, own: e + own, "composed"),
    "half of the bound on attention": (
        proved, "softmax_change", lambda right: lambda e: right(e) / 2, "softmax",
    ),
    "a bound on attention that nothing attains": (proved, "softmax_change", lambda right: lambda e: e, "softmax"),
    "LN without its floor": (
        measures_of_lemmas, "layer_norm", lambda right: lambda x, floor: right(x, floor / 2), "normalised",
    ),
    "half of the diameter": (
        proved, "mixture_change", lambda right: lambda e, t, d: right(e, t, d / 2), "mixtures",
    ),
    "an attention module a hundredth as steep": (
        proved, "attention_lipschitz", lambda right: lambda *a: right(*a) / 100, "lipschitz_of_attention",
    ),
    "a mean over other tokens": (
        measures_of_lemmas, "layer_norm", lambda right: lambda x, floor: right(x + np.arange(x.shape[-1]), floor),
        "wider_norms",
    ),
    "two numbers for each weight": (
        pruning, "subset_sum",
        lambda right: lambda v, t: np.append(right(v[:2], t), np.zeros(max(len(v) - 2, 0), dtype=bool)),
        "enough_for_networks",
    ),
    "a basis along an axis": (
        interpolating, "separating_basis", lambda right: lambda points: np.eye(3)[:2], "kept_apart",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_bound_is_seen(name, monkeypatch):
    module, attribute, wrap, check = WRONG[name]
    monkeypatch.setattr(module, attribute, wrap(getattr(module, attribute)))
    assert getattr(measures_of_lemmas, check)() > 1e-6


@given(st.integers(2, 6), st.floats(1e-3, 5), st.integers(0, 2**32 - 1))
def test_attention_under_errors_of_logits(n, error, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * 4
    y = x + rng.uniform(-error, error, n)
    one, other = (np.exp(v - v.max()) / np.exp(v - v.max()).sum() for v in (x, y))
    assert np.abs(one - other).sum() <= float(proved.softmax_change(error)) * (1 + 1e-9) + 1e-15
    assert float(proved.softmax_change(error)) <= error


def test_a_map_that_is_near_on_the_image_alone_is_not_enough():
    """f_1 = 0 and f_2 = 0: the second is right on f_1's image, and far from it where the first approximation leads."""
    error, far = 0.1, 5.0

    def second(x):
        return np.where(x == 0, 0.0, far)

    bound = float(proofs.composed(0, error, np.abs(second(np.zeros(3))).max()))
    assert np.abs(second(np.full(3, error))).max() > bound


def test_zeros_beside_a_token_with_a_mean_change_layer_norm():
    token = np.array([1.0, 0.0])
    assert not np.allclose(layer_norm(np.append(token, 0.0), 0.1)[:2], layer_norm(token, 0.1))


def test_width_of_a_network_is_that_of_its_larger_need():
    found = widths.units_of_network([(2, 3), (1, 2)], 0.3, 0.1)
    parts = widths.units_of_linear((2, 3), 0.1, 0.05), widths.units_of_linear((1, 2), 0.15, 0.05)
    assert found == max(parts)
    with pytest.raises(ValueError, match="`shapes` must be two pairs"):
        widths.units_of_network([(1, 1)], 0.1, 0.1)


@given(st.integers(2, 5), st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_points_stay_apart(d, n, seed):
    points = np.random.default_rng(seed).integers(-3, 4, (n, d)).astype(float)
    basis = interpolating.separating_basis(points)
    assert basis.shape == (d - 1, d) and np.allclose(basis @ basis.T, np.eye(d - 1))
    kept = {tuple(row) for row in (points @ basis.T).round(7).tolist()}
    assert len(kept) == len(np.unique(points, axis=0))


def test_one_dimension_has_no_direction_to_spare():
    with pytest.raises(ValueError, match="`points` must be of two dimensions or more"):
        interpolating.separating_basis([[1.0], [2.0]])
