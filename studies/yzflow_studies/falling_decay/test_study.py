"""Exact weights, minimisers with known answers, what the scale of W_V does to decay, and exponents of powers."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from figure_rules import drawn
from yzflow_bounded_dyck import DyckLanguage, balance

from dynamics import Layer
from yzflow_studies.falling_decay import study

LANGUAGE = DyckLanguage(2, 2)
BAGS = LANGUAGE.enumerate(max_length=4)


def scaled(layer, factor):
    """The layer with W_V multiplied by a factor."""
    own = layer.embedding
    return Layer.embedded(replace(own, values=factor * own.values), layer.Y, hidden=layer.hidden)


@pytest.mark.parametrize("depth", [2, 3])
def test_exact_weights_are_right_at_every_length_and_balanced(depth):
    language = DyckLanguage(2, depth)
    layer, size = study.exact_weights(language, draws=50)
    bags = language.sample(200, max_length=400, rng=1)
    np.testing.assert_allclose(layer.logits(bags), bags.target, atol=1e-10)
    assert balance.violation(layer, language) < 1e-12
    np.testing.assert_allclose(size, (layer.hidden**2).sum() + (layer.Y**2).sum())
    np.testing.assert_allclose(study.norm(layer), size)
    assert layer.Y.shape[0] == 2 ** (depth + 1) - 1  # one less than stacks would leave it inexact
    assert layer.Y.shape[0] <= study.UNITS[depth]


def test_more_directions_never_leave_a_larger_norm():
    sizes = [study.exact_weights(LANGUAGE, draws=draws)[1] for draws in (1, 10, 300)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]


def test_decay_of_w_v_has_no_minimiser_without_a_floor():
    """A smaller W_V has the same outputs, so that no weights are the smallest under decay of all of them."""
    layer = study.start(LANGUAGE, 3, 10)
    losses = [scaled(layer, factor).loss(BAGS, criterion="squared") for factor in (1, 0.1, 1e-3)]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-10)
    everything = [sum((part**2).sum() for part in scaled(layer, factor).weights) for factor in (1, 0.1, 1e-3)]
    assert everything == sorted(everything, reverse=True) and len(set(everything)) == 3
    np.testing.assert_allclose(study.norm(scaled(layer, 1e-3)), study.norm(layer))


def test_much_decay_leaves_nothing_but_the_targets():
    """At a decay above what the loss can gain, all weights are zero, and the loss is the mean square of the targets."""
    layer, objective = study.minimised(study.start(LANGUAGE, 1, 10), BAGS, 100.0)
    expected = BAGS.weight @ (BAGS.target**2).sum(axis=1)
    assert study.norm(layer) < 1e-6
    np.testing.assert_allclose([layer.loss(BAGS, criterion="squared"), 100 * objective], expected, rtol=1e-4)


@pytest.fixture(scope="module")
def minimum():
    return study.minimised(study.start(LANGUAGE, 1, 10), BAGS, 0.01, steps=800)


def test_at_a_minimum_both_matrices_of_a_unit_are_as_large(minimum):
    """Scaling a unit in one matrix and back in the other costs nothing, so their squares agree where R is least."""
    layer, objective = minimum
    first, second = (layer.hidden**2).sum(axis=0), (layer.Y**2).sum(axis=1)
    used = first + second > 1e-3
    assert used.any()
    np.testing.assert_allclose(first[used], second[used], rtol=0.02)
    keys, queries = layer.embedding.keys, layer.embedding.queries
    np.testing.assert_allclose((keys**2).sum(), (queries**2).sum(), atol=1e-6)
    loss = layer.loss(BAGS, criterion="squared")
    np.testing.assert_allclose(objective, loss / 0.01 + study.norm(layer), rtol=1e-12)


def test_at_a_minimum_no_step_lowers_the_objective(minimum):
    layer, objective = minimum
    rng = np.random.default_rng(2)
    for size in (1e-2, 1e-3):
        for _ in range(10):
            own = layer.embedding
            moved = Layer.embedded(
                replace(own, **{name: getattr(own, name) + size * rng.normal(size=getattr(own, name).shape)
                                for name in ("keys", "queries", "values")}),
                layer.Y + size * rng.normal(size=layer.Y.shape),
                hidden=layer.hidden + size * rng.normal(size=layer.hidden.shape),
            )  # fmt: skip
            assert moved.loss(BAGS, criterion="squared") / 0.01 + study.norm(moved) > objective


def test_tau_is_that_of_the_register():
    for q in (0.2, 0.5):
        np.testing.assert_allclose(study.separation(DyckLanguage(2, 3, q)), np.sqrt(2) * (1 - q))


def test_the_rarest_prefix_by_listing_all_prefixes():
    """n = 2 pairs before ( ( ) at length 7, the rarest of all results: its share among all prefixes of its length."""
    n, weight = study.least_weight(LANGUAGE, 7)
    length = 3 + 2 * n
    listed = [tuple(prefix) for prefix in LANGUAGE.prefixes(length)]
    shares = {prefix: np.exp(LANGUAGE.log_probability(prefix)) for prefix in listed}
    np.testing.assert_allclose(sum(shares.values()), 1)
    candidates = []
    for w in (0, 2):
        for j in (0, 2):
            base = [w, j, j + 1]
            candidates += [base[:at] + [i, i + 1] * n + base[at:] for at in (0, 1) for i in (0, 2)]
    assert n == 2
    np.testing.assert_allclose(weight, min(shares[tuple(one)] for one in candidates) / 7)


def test_exponents_of_powers_and_the_starts_near_the_best():
    decay = np.array([1e-2, 1e-3, 1e-4, 1e-5])
    excess = np.stack([3 * decay**2, decay**0.5])
    excess[:, 0] = 7.0  # not among those that are fitted
    runs = xr.Dataset(
        {"excess": (("seed", "decay"), excess), "norm": (("seed", "decay"), [[4.0] * 4, [4.1] * 4])},
        {"seed": [1, 2], "decay": decay},
    )
    np.testing.assert_allclose(study.exponents(runs, "excess"), [2, 0.5])
    assert study.near_best(runs).values.tolist() == [True, False]
    assert study.near_best(runs, within=1e3).all()


@pytest.mark.slow
def test_a_sweep_is_minimised_from_each_start_and_goes_on(tmp_path):
    size = {"decays": 2, "steps": 200, "store": tmp_path / "store"}
    runs = study.ladder((2, 5), (1, 2), **size)
    xr.testing.assert_identical(study.ladder((2, 5), (1, 2), **size), runs)
    bags = LANGUAGE.enumerate(max_length=5)
    layer = study.start(LANGUAGE, 2, study.UNITS[2])
    for decay in study.DECAYS[:2]:
        layer, _ = study.minimised(layer, bags, decay, steps=200)
    np.testing.assert_array_equal(runs["excess"].sel(seed=2)[-1], layer.loss(bags, criterion="squared"))
    np.testing.assert_array_equal(runs["violation"].sel(seed=2)[-1], balance.violation(layer, LANGUAGE))
    objective = runs["excess"] / runs["decay"] + runs["norm"]
    assert (objective <= study.exact_weights(LANGUAGE, draws=50)[1]).all()
    figure, claims = drawn(study.FIGURES[0], [runs])
    near = int(study.near_best(runs).sum())
    assert near and f"At D = 2, N = 5, {near} of 2 starts" in claims and len(figure.axes) == 2


def test_refusals():
    layer = study.start(LANGUAGE, 0, 4)
    with pytest.raises(ValueError, match=r"^`decay` must be positive, but got 0"):
        study.minimised(layer, BAGS, 0.0)
    with pytest.raises(ValueError, match=r"^`layer` must have an embedding"):
        study.minimised(replace(layer, embedding=None), BAGS, 0.1)
