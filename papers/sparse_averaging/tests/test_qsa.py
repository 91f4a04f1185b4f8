"""Training on sparse averaging: gradients by complex steps, textbook loops, closed forms, checkpoints, measured values.

Statistical tests have fixed seeds; each states the probability with which it would fail by chance at new ones.
"""

import json

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.trained import qsa as qsa_training
from yzflow_sparse_averaging.trained.linear_query import LinearQueryUnit
from yzflow_sparse_averaging.trained.qsa import load_training, train_qsa, unit_at

from dynamics import DivergenceError, Limits

SMALL = {"n_tokens": 5, "subset_size": 2, "embedding_dim": 3, "value_dim": 2, "batch_size": 4}


def loss_by_definition(z, y, W, K, V):
    """Mean squared error of one input after another, row after row; complex numbers welcome."""
    total = 0
    for vectors, sets in zip(z, y, strict=True):
        for members in sets:
            scores = K @ sum(W[j] for j in members)
            a = np.exp(scores - scores.real.max())
            error = V.T @ (vectors.T @ (a / a.sum())) - sum(vectors[j] for j in members) / len(members)
            total = total + (error * error).sum()
    return total / (y.shape[0] * y.shape[1])


def gradient_by_complex_step(z, y, matrices):
    """The gradient of minus the loss."""
    return reference.complex_step(lambda *moved: -loss_by_definition(z, y, *moved), matrices)


@st.composite
def problems(draw):
    """A unit with inputs; N = q, q = 1 and N = 1 among them, logits up to saturation."""
    n_tokens = draw(st.integers(1, 5))
    size = draw(st.sampled_from([1, n_tokens, max(1, n_tokens // 2)]))
    dim, m = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    scale = draw(st.sampled_from([0.3, 1.0, 20.0]))
    rng = np.random.default_rng(draw(strategies.SEEDS))
    z, y = tasks.random_qsa(n_tokens, size, dim, size=2, rng=rng)
    W, K = scale * rng.normal(size=(2, n_tokens, m))
    return LinearQueryUnit(W, K, rng.normal(size=(dim, dim))), z, y


# The unit


@given(problems())
def test_loss_and_gradient_are_those_of_the_definition(problem):
    unit, z, y = problem
    assert unit.loss(z, y) == pytest.approx(loss_by_definition(z, y, *unit.matrices), rel=1e-12, abs=1e-14)
    expected = gradient_by_complex_step(z, y, unit.matrices)
    for ours, theirs in zip(unit.gradient(z, y).matrices, expected, strict=True):
        assert reference.scaled_difference(ours, theirs) < 1e-11


@given(problems())
def test_trained_unit_is_an_attention_unit_on_the_tokens(problem):
    """The same attention, and the same loss from its outputs, by the unit of the paper."""
    unit, z, y = problem
    paper, tokens = unit.unit(), tasks.qsa_tokens(z, y)
    np.testing.assert_allclose(paper.attention(tokens), unit.attention(y), rtol=0, atol=1e-11)
    error = paper(tokens) - tasks.sparse_average(z, y)
    assert (error**2).sum(axis=-1).mean() == pytest.approx(unit.loss(z, y), rel=1e-9, abs=1e-14)
    assert paper.embedding_dim == unit.query.shape[1]


def test_expected_loss_is_the_mean_over_random_inputs():
    """Exact in z: 4000 inputs with the same sets, within 5 standard errors (6e-7 by chance)."""
    rng = np.random.default_rng(4)
    z, _ = tasks.random_qsa(6, 2, 3, size=4000, rng=rng)
    y = tasks.random_subsets(6, 2, size=6, rng=rng)
    unit = LinearQueryUnit(*rng.normal(size=(2, 6, 4)), rng.normal(size=(3, 3)))
    losses = [unit.loss(vectors[None], y[None]) for vectors in z]
    error = np.std(losses) / np.sqrt(len(losses))
    assert abs(np.mean(losses) - unit.expected_loss(y)) < 5 * error
    assert error < 0.01 * unit.expected_loss(y)


@pytest.mark.parametrize(("n_tokens", "q", "margin"), [(5, 3, 2.0), (8, 3, 9.0), (9, 4, 4.0)])
def test_linear_query_of_dimension_n_minus_1_is_uniform_on_each_set(n_tokens, q, margin):
    """W K^T = margin (1 - J/N), of rank N - 1: distance 2 (N - q) / (N - q + q e^margin) for every set."""
    basis = np.linalg.svd(np.eye(n_tokens) - 1 / n_tokens)[0][:, :-1]
    unit = LinearQueryUnit(margin * basis, basis, np.eye(1))
    sets = tasks.all_subsets(n_tokens, q)
    off = n_tokens - q
    expected = 2 * off / (off + q * np.exp(margin))
    np.testing.assert_allclose(tasks.attention_error(unit.attention(sets), sets), expected, rtol=1e-10)


@pytest.mark.parametrize(("n_tokens", "q"), [(4, 3), (5, 3), (6, 4), (5, 2)])
def test_equal_scores_on_every_set_leave_no_other_freedom(n_tokens, q):
    """For q >= 3 the solutions B of the linear equations "equal scores on each y" are of dimension 2 N.

    They are diag(kappa - q c) + r 1^T + 1 c^T; where the diagonal is positive, as attention that is lower off each set
    needs, the rank is N - 1 or N, at random as at the worst. For q = 2 there are more, and lower ranks.
    """
    equations = []
    for members in tasks.all_subsets(n_tokens, q):
        for i in members[1:]:
            row = np.zeros((n_tokens, n_tokens))
            row[members, i] += 1
            row[members, members[0]] -= 1
            equations.append(row.ravel())
    freedom = n_tokens**2 - np.linalg.matrix_rank(np.array(equations))
    assert (freedom == 2 * n_tokens) == (q >= 3)
    rng = np.random.default_rng(1)
    for _ in range(20):
        c, r = rng.normal(size=(2, n_tokens))
        diagonal = 1 + q * (c.max() - c)
        B = np.diag(diagonal) + r[:, None] + c
        assert np.abs(np.array(equations) @ B.ravel()).max() < 1e-12
        # The r that brings the rank down: 1 + 1^T D^-1 r = 0 and so on cannot all hold, since sum 1/D > 0.
        worst = np.linalg.lstsq(np.stack([1 / diagonal, c / diagonal]), [-1 - (c / diagonal).sum(), 0], rcond=None)[0]
        for rows in (r, worst):
            assert np.linalg.matrix_rank(np.diag(diagonal) + rows[:, None] + c) >= n_tokens - 1


# Loops


def batches(seed, steps, *, n_tokens, subset_size, value_dim, batch_size, **_):
    """The inputs of the first draw: the second child of the seed draws, with one child a draw."""
    draws = np.random.SeedSequence(seed).spawn(2)[1]
    a_step = batch_size * n_tokens * (value_dim + subset_size)
    size = 2**19 // a_step * batch_size
    z, y = tasks.random_qsa(n_tokens, subset_size, value_dim, size=size, rng=np.random.default_rng(draws.spawn(1)[0]))
    return [(z[k * batch_size : (k + 1) * batch_size], y[k * batch_size : (k + 1) * batch_size]) for k in range(steps)]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_steps_are_those_of_the_textbooks(optimizer):
    """Velocity and Adam as `test_sgd` has them, with the gradient of a complex step on the same batches."""
    run = train_qsa(
        **SMALL,
        steps=6,
        learning_rate=0.3,
        schedule="constant",
        optimizer=optimizer,
        momentum=0.7,
        record_every=1,
        seed=2,
    )
    drawn = batches(2, 6, **SMALL)
    losses, inputs = [], iter(drawn)

    def gradient(matrices):
        z, y = next(inputs)
        losses.append(loss_by_definition(z, y, *matrices))
        return gradient_by_complex_step(z, y, matrices)

    start = list(unit_at(run, 0).matrices)
    loop = reference.momentum_loop if optimizer == "sgd" else reference.adam_loop
    final = loop(gradient, start, (0.3, 0.3, 0.3), 6, *([0.7] if optimizer == "sgd" else []))
    for ours, theirs in zip(unit_at(run).matrices, final, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run["batch_loss"], losses, rtol=1e-9)


def test_cosine_schedule_scales_each_step():
    """Plain SGD: the step from t to t + 1 is the gradient times (1 + cos(pi t / steps)) / 2 of the rate."""
    run = train_qsa(**SMALL, steps=8, learning_rate=0.5, optimizer="sgd", momentum=0, record_every=1, seed=1)
    for t, (z, y) in enumerate(batches(1, 8, **SMALL)):
        before, after = unit_at(run, t), unit_at(run, t + 1)
        rate = 0.5 * (1 + np.cos(np.pi * t / 8)) / 2
        for old, new, slope in zip(before.matrices, after.matrices, before.gradient(z, y).matrices, strict=True):
            np.testing.assert_allclose(new - old, rate * slope, rtol=0, atol=1e-15)


def test_the_dataset_holds_what_its_unit_does():
    run = train_qsa(**SMALL, steps=50, learning_rate=0.1, record_every=20, times=[7], seed=3)
    assert run["time"].values.tolist() == [0, 7, 20, 40, 50]
    sets = tasks.all_subsets(5, 2)
    for time in (0, 7, 50):
        unit, state = unit_at(run, time), run.sel(time=time)
        errors = tasks.attention_error(unit.attention(sets), sets)
        assert float(state["distance"]) == pytest.approx(errors.mean(), rel=1e-14)
        assert float(state["largest_distance"]) == pytest.approx(errors.max(), rel=1e-14)
        assert float(state["loss"]) == pytest.approx(unit.expected_loss(sets), rel=1e-14)
        np.testing.assert_array_equal(state["attention"], unit.attention(run["sets"].values))
    assert run.sizes["step"] == 50
    assert run["time"].attrs["units"] == "SGD steps"
    assert json.loads(run.attrs["parameters"])["learning_rate"] == 0.1
    assert {"versions", "platform", "simulator"} <= set(run.attrs)


def test_same_seed_same_bits_and_other_seed_other_run():
    options = {**SMALL, "steps": 30, "learning_rate": 0.1}
    sequence = np.random.SeedSequence(5)
    first, again, other = (train_qsa(**options, seed=seed) for seed in (sequence, 5, 6))
    assert first.equals(again) and sequence.n_children_spawned == 0
    assert not np.array_equal(first["query"][0], other["query"][0])
    assert not np.array_equal(first["batch_loss"], other["batch_loss"])


def test_sets_are_sampled_where_there_are_too_many():
    """N = 30, q = 5: 142506 sets. The mean over 4096 of them, with uniform attention, is 2 (1 - q/N) exactly."""
    start = LinearQueryUnit(np.zeros((30, 1)), np.zeros((30, 1)), np.eye(1))
    run = train_qsa(30, 5, embedding_dim=1, value_dim=1, steps=1, learning_rate=1e-9, init=start)
    assert float(run["distance"][0]) == pytest.approx(2 * (1 - 5 / 30), rel=1e-12)


# Checkpoints


class Interrupted(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@Limits(seconds_between_saves=0)
def test_an_interrupted_run_goes_on_to_the_same_bits(optimizer, tmp_path, monkeypatch):
    options = {**SMALL, "steps": 12, "learning_rate": 0.1, "optimizer": optimizer, "record_every": 5, "seed": 8}
    monkeypatch.setattr(qsa_training, "_NUMBERS_A_DRAW", 3 * 80)  # 3 steps a draw: 7 is within the third
    whole = train_qsa(**options)
    path = tmp_path / "run.nc"
    save, saved = qsa_training.save_dataset, []

    def interrupting(dataset, where):
        save(dataset, where)
        saved.append(int(dataset["time"][-1]))
        if saved[-1] == 7:
            raise Interrupted

    monkeypatch.setattr(qsa_training, "save_dataset", interrupting)
    with pytest.raises(Interrupted):
        train_qsa(**options, checkpoint=path)
    assert load_training(path)["time"].values.tolist() == [0, 5, 7]
    again = train_qsa(**options, checkpoint=path)
    assert saved[7] == 8  # and not 1
    assert again.equals(whole) and again.attrs == whole.attrs
    assert load_training(path).equals(whole)
    # A finished run is read, and no step taken.
    count = len(saved)
    assert train_qsa(**options, checkpoint=path).equals(whole) and len(saved) == count


def test_a_run_at_a_constant_rate_can_be_made_longer(tmp_path):
    options = {**SMALL, "learning_rate": 0.1, "schedule": "constant"}
    whole = train_qsa(**options, steps=40)
    train_qsa(**options, steps=15, checkpoint=tmp_path / "run.nc")
    longer = train_qsa(**options, steps=40, checkpoint=tmp_path / "run.nc")
    assert longer.equals(whole)
    with pytest.raises(ValueError, match="`steps` must be at least the 40 steps that the checkpoint has, but got 20"):
        train_qsa(**options, steps=20, checkpoint=tmp_path / "run.nc")


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.nc"
    options = {**SMALL, "learning_rate": 0.1, "steps": 5}
    train_qsa(**options, checkpoint=path)
    for change, message in [
        ({"seed": 1}, "`checkpoint` must be of a run with seed"),
        ({"learning_rate": 0.2}, "`checkpoint` must be of a run with learning_rate = 0.2, but got 0.1"),
        ({"steps": 9}, "`checkpoint` must be of a run with steps = 9, but got 5"),
    ]:
        with pytest.raises(ValueError, match=message):
            train_qsa(**{**options, **change}, checkpoint=path)
    starts = [LinearQueryUnit(np.full((5, 3), a), np.ones((5, 3)), np.eye(2)) for a in (0.0, 1.0)]
    train_qsa(**options, init=starts[0], checkpoint=tmp_path / "init.nc")
    with pytest.raises(ValueError, match="`checkpoint` must be of a run with the same `init`"):
        train_qsa(**options, init=starts[1], checkpoint=tmp_path / "init.nc")
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="`path` must be a training on sparse averaging written by yzflow"):
        load_training(path)
    with pytest.raises(FileNotFoundError):
        load_training(tmp_path / "none.nc")


# Bad input


def test_divergence_keeps_what_was_recorded():
    with pytest.raises(DivergenceError, match="the loss is no longer finite at step") as caught:
        train_qsa(**SMALL, steps=200, learning_rate=1e3, optimizer="sgd", record_every=1)
    kept = caught.value.trajectory
    assert kept["time"].values.tolist() == list(range(caught.value.step))
    assert np.isfinite(kept["query"]).all() and kept.sizes["step"] == caught.value.step - 1


SQUARE = LinearQueryUnit(np.ones((5, 3)), np.ones((5, 3)), np.eye(2))
BAD = [
    (lambda: train_qsa(3, 4), "`subset_size` must be at most the number of tokens, 3, but got 4"),
    (lambda: train_qsa(0, 1), "`n_tokens` must be at least 1, but got 0"),
    (lambda: train_qsa(learning_rate=-1), "`learning_rate` must be positive, but got -1"),
    (lambda: train_qsa(momentum=1.0), "`momentum` must be below 1, but got 1.0"),
    (lambda: train_qsa(schedule="linear"), "`schedule` must be one of 'cosine', 'constant', but got 'linear'"),
    (lambda: train_qsa(optimizer="lion"), "`optimizer` must be one of 'sgd', 'adam', but got 'lion'"),
    (lambda: train_qsa(steps=0), "`steps` must be at least 1, but got 0"),
    (lambda: train_qsa(steps=5, times=[6]), r"`times` must hold indices in \[0, 6\), but got 6"),
    (lambda: train_qsa(init="zero"), "`init` must be 'random' or a LinearQueryUnit, but got 'zero'"),
    (lambda: train_qsa(init=SQUARE), "`init` must have matrices of the shapes"),
    (lambda: train_qsa(seed=-1), "`seed` must be at least 0"),
    (lambda: LinearQueryUnit(np.ones((3, 2)), np.ones((2, 2)), np.eye(1)), "`key` must have the shape of the query"),
    (lambda: LinearQueryUnit(np.ones((3, 2)), np.ones((3, 2)), np.ones((1, 2))), "`value` must be square"),
    (lambda: SQUARE.loss(np.zeros((1, 4, 2)), np.zeros((1, 4, 1), int)), r"`z` must have shape \(inputs, 5, 2\)"),
    (lambda: SQUARE.attention([[5]]), r"`y` must hold tokens in \[0, 5\), but got 5"),
    (lambda: unit_at(train_qsa(**SMALL, steps=2), 1), "`at` must be a recorded time, but got 1"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
