"""A random deep Transformer pruned to a given one: forward pass, lemmas, certificates, the law, Corollary 3."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import strategies
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from yzflow_bounded_dyck import (
    bounds,
    bounds_on_inputs,
    lottery,
    measures_of_pruning,
    pruning,
    subset_law,
    transformers,
)
from yzflow_bounded_dyck.networks import ReluNetwork
from yzflow_bounded_dyck.proofs import lottery as lemmas
from yzflow_bounded_dyck.transformers import Transformer, TransformerLayer, random_transformer

WIDTH = 3


def tokens(rng, n=60, length=5, width=WIDTH):
    """Inputs with tokens of norm one and less, some of them alone, equal or opposite."""
    found = rng.normal(size=(n, length, width))
    found *= rng.choice([1.0, 0.3], (n, length, 1)) / np.linalg.norm(found, axis=-1, keepdims=True)
    found[: n // 4, 1::2] = -found[: n // 4, :1]
    return found


def target_and_pruned(rng, n_layers=1, n=8, *, floor=0.5, norm=1.0, spare=0, place=None, residual=1.0, link=1.0):
    target = random_transformer(WIDTH, 2, [4], n_layers, rng, floor=floor, norm=norm, residual=link)
    random = lottery.room_for(target, n, rng, spare=spare, residual=residual)
    return target, lottery.prune_transformer(target, random, place=place)


def by_definition(model, inputs):
    """(6) and (7) in loops over positions, with columns of tokens as in the paper."""
    X = np.array(inputs).T
    for layer in model.layers:
        length, columns = X.shape[1], []
        for i in range(length):
            scores = [float((layer.key @ X[:, j]) @ (layer.query @ X[:, i])) for j in range(i + 1)]
            shares = np.exp(scores) / np.exp(scores).sum()
            u = sum(share * layer.value @ X[:, j] for j, share in enumerate(shares))
            centred = u - u.mean()
            z = centred / max(np.sqrt((centred**2).sum()), model.floor) + layer.residual * X[:, i]
            for number, weight in enumerate(layer.network.weights):
                z = weight @ (np.maximum(z, 0) if number else z)
            columns.append(z)
        X = np.array(columns).T
    return X.T


@given(st.integers(1, 3), strategies.SEEDS)
@settings(max_examples=4)
def test_forward_pass_is_the_definition(n_layers, seed):
    rng = np.random.default_rng(seed)
    target, pruned = target_and_pruned(rng, n_layers, 4, residual=0.7, link=-0.4, spare=1)
    batch = tokens(rng, 3)
    for model, rows in ((target, batch), (pruned.network, np.pad(batch, [(0, 0), (0, 0), (0, 4 * WIDTH)]))):
        np.testing.assert_allclose(model(rows), [by_definition(model, row) for row in rows], atol=1e-10)
    np.testing.assert_allclose(pruned(batch), pruned.network(rows)[..., :WIDTH])


@given(
    st.integers(1, 3),
    st.integers(4, 12),
    st.sampled_from([0.05, 0.5, 3.0]),
    st.sampled_from([0.4, 1.0, 1.6]),
    st.sampled_from([(0, None), (1, 0), (2, 1)]),
    st.sampled_from([1.0, 0.6, -1.5]),
    st.sampled_from([1.0, 0.0, -0.5]),
    strategies.SEEDS,
)
@settings(max_examples=5)
def test_certificates_are_above_every_error(n_layers, n, floor, norm, spare, residual, link, seed):
    rng = np.random.default_rng(seed)
    target, pruned = target_and_pruned(
        rng, n_layers, n, floor=floor, norm=norm, spare=spare[0], place=spare[1], residual=residual, link=link
    )
    assert pruning.is_pruning(pruned.network.matrices, pruned.random.matrices)
    assert max(np.abs(matrix).max() for matrix in pruned.random.matrices) <= 1
    assert [part.role for part in pruned.parts].count("pass") == spare[0]
    inputs = tokens(rng, 30)
    # Uphill from there, a few steps.
    for _ in range(2):
        moved = inputs + 0.3 * rng.normal(size=inputs.shape)
        moved /= np.maximum(np.linalg.norm(moved, axis=-1, keepdims=True), 1)
        errors = [np.linalg.norm(pruned(some) - target(some), axis=-1).max(axis=1) for some in (inputs, moved)]
        inputs = np.where((errors[1] > errors[0])[:, None, None], moved, inputs)
    error, here = pruned.error(inputs), pruned.certificate_on(inputs)
    assert error <= here * (1 + 1e-9) + 1e-13
    assert here <= pruned.certificate(1.0) * (1 + 1e-9)
    assert pruned.certificate(0.5) <= pruned.certificate(1.0)


@pytest.mark.slow
@given(strategies.SEEDS, st.integers(1, 2), st.integers(10, 14))
@settings(max_examples=4)
def test_certificates_on_given_inputs_need_no_floor(seed, n_layers, n):
    rng = np.random.default_rng(seed)
    _, pruned = target_and_pruned(rng, n_layers, n, floor=0.0)
    inputs = tokens(rng, 40)
    assert pruned.error(inputs) <= pruned.certificate_on(inputs) * (1 + 1e-9)
    with pytest.raises(ValueError, match="`floor` must be positive for all inputs"):
        pruned.certificate()


@pytest.mark.slow
def test_certificates_are_no_more_than_ten_times_a_sampled_error_for_one_layer():
    # Medians of three pairs: for one layer within ten, for two on given inputs within twenty; more layers are looser.
    for n_layers, all_inputs, given_ones in ((1, 10, 8), (2, 150, 20)):
        ratios = []
        for seed in range(3):
            rng = np.random.default_rng(seed)
            target = random_transformer(4, 4, [8], n_layers, rng, floor=1.0, norm=1.0)
            pruned = lottery.prune_transformer(target, lottery.room_for(target, 14, rng))
            inputs = tokens(rng, 200, 6, 4)
            error = pruned.error(inputs)
            ratios.append([pruned.certificate() / error, pruned.certificate_on(inputs) / error])
        everywhere, here = np.median(ratios, axis=0)
        assert 1 < here < given_ones and 1 < everywhere < all_inputs


def test_layers_to_spare_are_the_identity_within_their_certificate():
    rng = np.random.default_rng(0)
    _, pruned = target_and_pruned(rng, 1, 16, spare=3, place=0)
    inputs = tokens(rng)
    padded = np.pad(inputs, [(0, 0), (0, 0), (0, 4 * WIDTH)])
    states = pruned.network.states(padded)
    for layer, (part, bound) in enumerate(zip(pruned.parts[:3], pruned.errors_by_layer()[:3], strict=True)):
        error = np.linalg.norm(states[layer + 1][..., :WIDTH] - inputs, axis=-1).max()
        assert part.role == "pass" and 0 < error <= bound < 0.02
        # Attention is as it was drawn: the values it would mix are zero.
        one, drawn = pruned.network.layers[layer], pruned.random.layers[layer]
        np.testing.assert_array_equal([one.key, one.query], [drawn.key, drawn.query])
        assert one.value.any()
        np.testing.assert_array_equal(one.mixed(states[layer]), 0)
    assert pruned.errors_by_layer() == sorted(pruned.errors_by_layer())
    assert pruned.errors_by_layer()[-1] == pruned.certificate()


def test_certificates_of_identity_layers_by_hand():
    """One pass: (1 + |M_2 D E_1| + ..) by Lemma 5, from the errors themselves."""
    _, pruned = target_and_pruned(np.random.default_rng(3), 1, 10, spare=1, place=0)
    first, second = pruned.parts[0].fit.matrices
    one, two = (np.asarray(error) for error in pruned.parts[0].fit.errors)
    two = two[:WIDTH]
    by_hand = (
        bounds.chain_norm([one, second])
        + bounds.chain_norm([first, two])
        + np.linalg.norm(two, 2) * np.linalg.norm(one, 2)
    )
    assert pruned.errors_by_layer()[0] == pytest.approx(by_hand)


@given(strategies.SEEDS, st.integers(2, 6), st.floats(0, 4), st.sampled_from([0.1, 1.0, 5.0]))
def test_attention_moves_by_no_more_than_its_bound(seed, n, spread, scale):
    rng = np.random.default_rng(seed)
    logits, change = rng.normal(size=n) * scale, rng.uniform(0, spread, n)
    before, after = (
        np.exp(values - values.max()) / np.exp(values - values.max()).sum() for values in (logits, logits + change)
    )
    bound = bounds.attention_change(np.ptp(change))
    assert np.maximum(after - before, 0).sum() <= bound + 1e-14
    values = rng.normal(size=(n, 3))
    diameter = max(np.linalg.norm(a - b) for a, b in itertools.combinations(values, 2))
    assert np.linalg.norm((after - before) @ values) <= bound * diameter + 1e-13


@given(strategies.SEEDS, st.integers(2, 5), st.integers(0, 9), st.sampled_from([0.0, 0.3, 2.0]), st.floats(-2, 2))
def test_normalisation_moves_by_no_more_than_its_bound(seed, n, more, floor, link):
    rng = np.random.default_rng(seed)
    before = rng.normal(size=n) * rng.choice([0.1, 1, 5])
    before -= before.mean()
    change = rng.normal(size=n) * rng.choice([1e-3, 0.3, 3])
    wide = [np.concatenate([row, np.zeros(n + more)]) for row in (before, before + change)]
    # The token's coordinates are among the coordinates without values.
    small, large = (transformers.layer_norm(row, floor) for row in wide)
    np.testing.assert_allclose(small[:n], transformers.layer_norm(before, floor), atol=1e-14)
    size = float(np.linalg.norm(change))
    least = max(min(np.linalg.norm(before), np.linalg.norm(wide[1] - wide[1].mean())), 0.0)
    assert np.linalg.norm(large - small) <= bounds.norm_change(size, floor, least) * (1 + 1e-9) + 1e-15
    moved = large - small
    seen = np.linalg.norm(moved[:n] + link * moved[n : 2 * n])
    bound = bounds.padded_norm_change(size, floor, least, n / len(small), abs(link))
    assert seen <= bound * (1 + 1e-9) + 1e-14


@given(strategies.SEEDS, st.integers(1, 4), st.floats(0, 1), st.floats(0, 0.5))
def test_logits_move_apart_by_no_more_than_their_bound(seed, width, error, pruned):
    rng = np.random.default_rng(seed)
    B, E = rng.normal(size=(2, width, width))
    E *= pruned / np.linalg.norm(E, 2)
    x, moves = tokens(rng, 1, 6, width)[0], tokens(rng, 1, 6, width)[0] * error
    query = 2
    change = (x + moves) @ (B + E) @ (x[query] + moves[query]) - x @ B @ x[query]
    keys = max(np.linalg.norm(B.T @ (a - b)) for a, b in itertools.combinations(x, 2))
    bound = bounds.logit_spread(
        error, keys, np.linalg.norm(B @ x[query]), np.linalg.norm(B, 2), np.linalg.norm(E, 2), 1.0
    )
    assert np.ptp(change) <= bound * (1 + 1e-9) + 1e-13


@given(strategies.SEEDS, st.lists(st.sampled_from([2, 5, 13]), min_size=2, max_size=4), st.sampled_from([1e-3, 0.3]))
def test_networks_move_by_no_more_than_their_bounds(seed, sizes, scale):
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=(out, into)) / into for into, out in itertools.pairwise(sizes)]
    network = ReluNetwork(tuple(weights))
    one, other = rng.normal(size=(2, 200, sizes[0]))
    other = one + scale * other
    gaps = np.linalg.norm(network(one) - network(other), axis=1) / np.linalg.norm(one - other, axis=1)
    assert gaps.max() <= bounds.chain_norm(weights) * (1 + 1e-9)
    # The first error sees both halves of the input; the others see non-negative inputs.
    errors = [scale * rng.normal(size=(len(weight), weight.shape[1] * (2 if t == 0 else 1)))
              for t, weight in enumerate(weights)]  # fmt: skip
    one /= np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1)
    hidden = one @ weights[0].T + np.hstack([np.maximum(one, 0), np.maximum(-one, 0)]) @ errors[0].T
    for weight, error in zip(weights[1:], errors[1:], strict=True):
        hidden = np.maximum(hidden, 0) @ (weight + error).T
    off = np.linalg.norm(hidden - network(one), axis=1).max()
    assert off <= bounds.network_change(weights, errors, 1.0) * (1 + 1e-9)


def test_patterns_decide_the_norm_of_two_matrices():
    # max over D of |v D w| for a row and a column: the larger of the sums of the positive and of the negative products.
    w, v = np.array([[1.0], [2.0], [3.0]]), np.array([[1.0, -1.0, 1.0]])
    assert bounds.chain_norm([w, v]) == pytest.approx(4)
    assert bounds.chain_norm([np.repeat(w, 8, axis=0), np.repeat(v, 8, axis=1)]) >= 32


def test_lemmas_as_proved_are_those_that_are_computed():
    numbers = (0.1, 0.3, 0.2, 0.7, 0.05, 1.3)
    assert float(lemmas.logit_spread(*numbers)) == pytest.approx(bounds.logit_spread(*numbers))
    assert float(lemmas.attention_change(sp.exp(0.4))) == pytest.approx(bounds.attention_change(0.8))
    assert float(lemmas.lipschitz(0.4) * 0.1) == pytest.approx(bounds.norm_change(0.1, 0.4, 0.0))
    assert float(lemmas.read_change(0.2, 0.5, 0.1)) == pytest.approx(bounds.read_change(0.2, -0.5, 0.1))
    w, v, e, f, z = 0.5, 2.0, 0.01, 0.02, 1.5
    pair = [np.array([[number]]) for number in (w, v, e, f)]
    assert lemmas.network_change(w, v, e, f, z) == pytest.approx(bounds.network_change(pair[:2], pair[2:], z))
    strayed = bounds.padded_norm_change(0.1, 1.0, 0.0, 0.3, 1e12) / 1e12
    assert 0.1 * lemmas.stray(0.3) == pytest.approx(strayed)


@given(st.integers(1, 3), st.integers(2, 5), strategies.SEEDS)
def test_pruned_pairs_hold_the_map_between_chosen_inputs_and_outputs(rows, columns, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(-0.5, 0.5, (rows, columns))
    U, V = rng.uniform(-1, 1, (40 * columns, columns + 2)), rng.uniform(-1, 1, (rows + 3, 40 * columns))
    into, out = rng.permutation(columns + 2)[:columns], rng.permutation(rows + 3)[:rows]
    for signs in ((1, -1), (1,)):
        kept_u, kept_v, error = pruning.prune_pair(U, V, matrix, out, into, signs)
        assert pruning.is_pruning([kept_u, kept_v], [U, V]) and np.abs(error).max() < 0.02
        points = random_halves = rng.normal(size=(20, columns))
        if len(signs) == 1:
            points = random_halves = np.abs(points)
        else:
            random_halves = np.hstack([np.maximum(points, 0), np.maximum(-points, 0)])
        wide = rng.normal(size=(20, columns + 2))  # other inputs have no part in it
        wide[:, into] = points
        found = ReluNetwork((kept_u, kept_v))(wide)
        np.testing.assert_allclose(found[:, out], points @ matrix.T + random_halves @ error.T, atol=1e-12)
        assert not np.delete(found, out, axis=1).any()


def test_units_are_dealt_out_evenly():
    rng = np.random.default_rng(0)
    weights = rng.uniform(-1, 1, (400, 5))
    owner, side = pruning.dealt_out(np.stack([np.maximum(weights, 0), np.maximum(-weights, 0)], axis=1))
    counts = np.array([[((owner == j) & (side == sign)).sum() for j in range(5)] for sign in (0, 1)])
    assert counts.sum() == 400 and np.ptp(counts) <= 4
    chosen = weights[np.arange(400), owner]
    assert (np.sign(chosen) == 1 - 2 * side).all()
    assert np.abs(chosen).mean() > 0.65  # 0.5 if the weight had no say
    assert pruning.dealt_out(np.zeros((3, 1, 2)))[1].tolist() == [-1, -1, -1]


@pytest.mark.slow
def test_width_against_error_is_the_law_of_random_sums():
    found, _ = measures_of_pruning._slopes()
    assert -1.15 < found < -0.8 and measures_of_pruning.width_law(None, "") < 0.15
    # One entry: the nearest of 2^N sums, here for N = 12, against the law without a search, by its median.
    rng = np.random.default_rng(0)
    sizes = rng.uniform(0, 1, 12)
    searched = []
    for _ in range(300):
        products = rng.uniform(-1, 1, 12) * sizes
        searched.append(abs(products[pruning.subset_sum(products, 0.2)].sum() - 0.2))
    drawn = np.abs(subset_law.nearest_sums(np.full(300, 0.2), sizes, rng))
    assert 0.7 < np.median(drawn) / np.median(searched) < 1.4


def test_errors_that_are_drawn_stand_where_those_of_the_search_do():
    """Logits have an error in the layer that attends, and no number elsewhere; so do networks, at the same entries."""
    target, random = valid()
    searched = lottery.prune_transformer(target, random)
    drawn = subset_law.expected(searched, 0)
    assert [part.role for part in searched.parts].count("attend") == len(target.layers) < len(searched.parts)
    for old, new in zip(searched.parts, drawn.parts, strict=True):
        changed = old.role == "attend"
        assert (new.logits is old.logits) is not changed and new.logits.any() == changed
        assert new.role == old.role and new.entries is old.entries
        assert [error.shape for error in new.fit.errors] == [error.shape for error in old.fit.errors]


# With two layers to spare: before the one that attends, and that one.
@pytest.mark.parametrize("layer", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_two_transformers_agree_on_any_one_layer(layer):
    rng = np.random.default_rng(7)
    targets = [random_transformer(WIDTH, 2, [4], 1, rng, floor=0.5, norm=1.0) for _ in range(2)]
    random = lottery.room_for(targets[0], 20, rng, spare=2)
    pruned = lottery.indistinguishable_transformers(*targets, random, layer)
    for one, other in zip(*(model.network.layers[layer].matrices for model in pruned), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.any()
    inputs = tokens(rng)
    apart = np.linalg.norm(targets[0](inputs) - targets[1](inputs), axis=-1).max()
    for model, target in zip(pruned, targets, strict=True):
        assert model.random is random and pruning.is_pruning(model.network.matrices, random.matrices)
        assert model.error(inputs) <= model.certificate() and model.error(inputs) < 0.05 * apart
        assert model.target is target
    assert any((a != b).any() for a, b in zip(*(model.network.matrices for model in pruned), strict=True))


def valid():
    rng = np.random.default_rng(0)
    target = random_transformer(2, 2, [2], 1, rng, floor=1.0)
    return target, lottery.room_for(target, 2, rng)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, r: lottery.prune_transformer(r, t), "`random` must have at least 4 layers, but got 1"),
        (
            lambda t, r: lottery.prune_transformer(t, Transformer(r.layers, 2.0)),
            "`random` must have the target's floor",
        ),
        (lambda t, r: lottery.prune_transformer(t, r, place=2), "`place` must be at most 1, but got 2"),
        (lambda t, r: lottery.prune_transformer(t, Transformer(t.layers * 2, 1.0)), "`random` must have tokens of at"),
        (lambda t, r: lottery.room_for(t, 2, 0, residual=0.0), "`residual` must not be 0"),
        (lambda t, r: lottery.indistinguishable_transformers(t, t, r, 0), "`random` must have 4 layers, but got 2"),
        (lambda t, r: lottery.indistinguishable_transformers(t, r, r, 0), "`second` must have width 2 and 1 layers"),
        (lambda t, r: lottery.prune_transformer(t, r)(np.zeros((1, 3))), "`tokens` must have rows of 2 numbers"),
        (lambda t, r: lottery.prune_transformer(t, r).certificate(0), "`radius` must be positive, but got 0"),
        (lambda t, r: t(np.zeros(2)), "`tokens` must have rows of 2 numbers"),
        (
            lambda t, r: TransformerLayer(np.eye(2), np.eye(2), np.eye(2), ReluNetwork((np.eye(2),), (np.ones(2),))),
            "`network` must have no biases",
        ),
        (
            lambda t, r: TransformerLayer(np.eye(2), np.eye(3), np.eye(2), ReluNetwork((np.eye(2),))),
            r"`query` must have shape \(2, 2\)",
        ),
        (
            lambda t, r: TransformerLayer(np.eye(2), np.eye(2), np.eye(2), ReluNetwork((np.eye(2),)), np.nan),
            "`residual` must be a finite number",
        ),
        (lambda t, r: Transformer((), 1.0), "`layers` must be at least one"),
        (lambda t, r: random_transformer(2, 2, [2], 1, 0, floor=-1), "`floor` must be non-negative"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(*valid())


def test_a_mixture_moves_by_no_more_than_its_bound():
    """Two tokens; the second is the query: x_0 = (0, 1) moves by ``error`` towards x_1 = (1, 0), in closed form."""
    slope, value = 3.0, np.array([[2.0, 0.0], [0.0, 0.0]])
    layer = SimpleNamespace(key=np.eye(2), query=slope * np.eye(2), value=value)
    part, state = SimpleNamespace(logits=np.zeros((2, 2))), np.array([[0.0, 1.0], [1.0, 0.0]])
    share = 1 / (1 + np.exp(slope))  # of attention to x_0
    attention = np.array([[1.0, 0.0], [share, 1 - share]])
    apart = np.sqrt(2)  # P W_V x is (1, -1) at x_1 and 0 at x_0
    for error in (1e-4, 0.3, 1.0, 2.0, 5.0):
        before = bounds_on_inputs._Errors(np.array([error, 0.0]), np.zeros(2))
        bound = bounds_on_inputs._mixture_change(part, layer, attention, state, before)[1]
        moved = (1 / (1 + np.exp(slope * (1 - error))) - share) * apart
        assert moved <= bound * (1 + 1e-9)
        assert bound <= 2 * apart
        assert error > 1e-4 or bound < 1.01 * moved


def test_errors_of_a_copy_and_of_values_beside_it(monkeypatch):
    """A network that is copied exactly passes the error on, and the values have the spectral norm of P W_V of it."""
    monkeypatch.setattr(bounds_on_inputs.bounds, "network_change", lambda *fit: 0.0)
    layer = SimpleNamespace(value=np.diag([2.0, 0.0]))  # P W_V = ((1, 0), (-1, 0))
    before = bounds_on_inputs._Errors(np.array([0.1, 0.2]), np.array([5.0, 6.0]))
    for role, written in (("pass", [5.0, 6.0]), ("attend", np.sqrt(2) * np.array([0.1, 0.2]))):
        part = SimpleNamespace(role=role, entries=2, fit=SimpleNamespace(rows=lambda *rows: (1.0, 1.0)))
        found = bounds_on_inputs._written(part, layer, np.ones(2), before, 3, 1.0)
        np.testing.assert_allclose(found.state, [0.1, 0.2], rtol=1e-12)
        np.testing.assert_allclose(found.written, written, rtol=1e-12)


def test_sums_of_nothing_miss_by_all_that_was_wanted():
    """Where all sizes are 0 the only sum is 0; the law's mean error is 1600 then, so that seeds fail in 0.1%."""
    wanted = np.array([0.3, -2.0, 0.0])
    errors = subset_law.nearest_sums(wanted, np.zeros(3), 0)
    np.testing.assert_array_equal(np.abs(errors), np.abs(wanted))


def test_a_change_without_a_floor_may_turn_the_direction_round():
    assert bounds.norm_change(1e-9, 0.0, 0.0) == 2.0
    assert bounds.norm_change(0.0, 0.0, 0.0) == 0.0
