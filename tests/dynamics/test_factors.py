"""Slopes kept as factors: the same derivative, the same sums over stages and the same steps as with slopes in full."""

import numpy as np
import strategies
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from dynamics import Layer, Objective, SequenceClasses
from dynamics._engine import dop853, tableau
from dynamics._engine.factors import Factors, factors_of
from dynamics._model import factored
from dynamics.fields.full import Full
from dynamics.fields.modified import Modified
from dynamics.fields.system import FlowSetting

RATES = {"eta_y": 1.3, "eta_z": 0.4}


def full(bags, layer=None, objective=None, system=Full):
    return system(FlowSetting(bags, layer or Layer.zeros(bags), layer, RATES, objective or Objective()))


def classes(n_classes, own=5, common=1):
    """Classes with ``own`` tokens each beside common ones, all probabilities different."""
    rng = np.random.default_rng(7)
    tokens = common + own * n_classes
    table = np.zeros((n_classes, tokens))
    table[:, :common] = 1
    table[np.repeat(np.arange(n_classes), own), np.arange(common, tokens)] = 1
    table *= np.exp(0.2 * rng.normal(size=table.shape))
    table /= table.sum(axis=1, keepdims=True)
    return SequenceClasses(table, np.zeros(n_classes, dtype=int), vocab_size=20 * n_classes)


def in_full(factors, stage, size):
    """A slope of so many numbers."""
    out = np.full(size, np.nan)
    factors.add(np.array([stage]), np.ones(1), 1.0, np.zeros(size), out)
    return out


def evaluated(factors, stage, state):
    factors.bound(stage, state, factors.rows[stage])()
    return in_full(factors, stage, state.size)


@njit(error_model="numpy")  # not on disk, where what it calls could change unnoticed
def into(u, top, out):
    factored.exponentials(u, top, out)


def exponentials(u, top=0.0):
    out = np.empty((1, u.size))
    into(u.reshape(1, -1), np.array([top]), out)
    return out[0]


def test_exponentials_by_vector_instructions():
    """Relative error below 3e-16 over [-708, 0], on a fine grid and around the cuts between powers of two."""
    cuts = -np.log(2) * (np.arange(1020) + 0.5)
    near = (cuts[:, None] * (1 + np.linspace(-1e-12, 1e-12, 41))).ravel()
    u = np.concatenate([np.linspace(-708, 0, 400_001), np.linspace(-1, 0, 100_001), near, [0.0, -1e-300, -1e-17]])
    exact = np.exp(u.astype(np.longdouble))
    assert np.abs(exponentials(u) / exact - 1).max() < 3e-16
    assert exponentials(u)[-3] == 1
    np.testing.assert_array_equal(exponentials(u[:9] + 3.0, 3.0), exponentials(u[:9] + 3.0 - 3.0))


def test_exponentials_by_vector_instructions_at_the_ends():
    """Far below, a number too small to matter; nan, and infinity less infinity, stay nan and are not hidden."""
    out = exponentials(np.array([0, -709, -1e4, -1e300, -np.inf, np.nan]))
    assert out[0] == 1 and (out[1:5] >= 0).all() and (out[1:5] < 4e-308).all() and np.isnan(out[5])
    assert np.isnan(exponentials(np.array([np.inf, 0]), np.inf)[0])


@given(st.data())
def test_a_stage_is_the_derivative_where_the_slopes_before_it_lead(data):
    """At Y + h sum_j a_j K_j, of which rows of tokens of one bag hold Y alone; with any bags and any layer."""
    bags = data.draw(strategies.bags())
    system = full(bags, data.draw(strategies.layers(bags)))
    factors, base = Factors(system), system.initial
    rng = np.random.default_rng(data.draw(strategies.SEEDS))
    stages, weights, size = np.array([0, 2, 3, 5, 6]), rng.normal(size=5), data.draw(st.sampled_from([0.01, 1.0, 30.0]))
    slopes = []
    for stage in stages:
        place = base + rng.normal(size=base.size)
        slopes.append(system.derivative(place))
        np.testing.assert_allclose(evaluated(factors, stage, place), slopes[-1], atol=1e-12, rtol=1e-9)
    moved = base + size * weights @ slopes
    place = np.empty_like(base)
    factors.add(stages, weights, size, base, place)
    np.testing.assert_allclose(place, moved, atol=1e-11 * size, rtol=1e-9)
    place[:] = base
    factors.add_whole(stages, weights, size, base, place)
    alone = np.flatnonzero(np.bincount(bags.token, minlength=bags.n_tokens) == 1)
    np.testing.assert_array_equal(system.split(place).Y[alone], system.split(base).Y[alone])
    factors.earlier = (stages, size * weights)
    out, dense = factors.rows[9], np.empty_like(base)
    loss, expected = factors.bound(9, place, out)(), system.bound(moved, dense)()
    np.testing.assert_allclose(loss, expected, atol=1e-11, rtol=1e-9)
    np.testing.assert_allclose(in_full(factors, 9, base.size), dense, atol=1e-10)


@given(st.data())
def test_the_error_of_a_step_is_that_of_slopes_in_full(data):
    bags = data.draw(strategies.bags())
    system = full(bags, data.draw(strategies.layers(bags)))
    factors = Factors(system)
    rng = np.random.default_rng(data.draw(strategies.SEEDS))
    states = system.initial + rng.normal(size=(tableau.EXTENDED, system.initial.size))
    slopes = np.array([evaluated(factors, k, state) for k, state in enumerate(states)])[: tableau.STAGES + 1]
    old, new = rng.normal(size=(2, system.initial.size))
    scale = 1e-3 + 1e-2 * np.maximum(np.abs(old), np.abs(new))
    for weights, found in zip((tableau.E5, tableau.E3), factors.squares(old, new, 1e-2, 1e-3), strict=True):
        terms = np.abs(weights) @ np.abs(slopes) / scale  # which cancel where the slopes are equal
        assert abs(found**0.5 - np.linalg.norm(weights @ slopes / scale)) <= 1e-12 * np.linalg.norm(terms)


def test_other_flows_keep_their_slopes_in_full(monkeypatch):
    monkeypatch.setattr(dop853, "LARGE", 1)
    data = classes(6).population()
    layer = Layer.zeros(data)
    assert factors_of(full(data)) is not None
    for system in (
        full(data, objective=Objective(criterion="squared")),
        full(data, objective=Objective(label_smoothing=0.1)),
        full(data, Layer(layer.Z, layer.Y, None, layer.multiplicity, temperature=2.0)),
        full(data, Layer(layer.Z, layer.Y, None, layer.multiplicity, normalisation=None)),
        full(data, Layer(layer.Z, layer.Y, np.eye(data.n_tokens), layer.multiplicity)),
        full(classes(6, own=1).population()),  # a row for each bag is not less than one for each token
        full(classes(6, own=2, common=20).population()),
    ):
        assert factors_of(system) is None
    # Asked only of what declares them its own.
    assert "factors" in full(data).fast and "factors" not in full(data, system=Modified).fast
    monkeypatch.setattr(dop853, "LARGE", full(data).initial.size + 1)
    assert factors_of(full(data)) is None
