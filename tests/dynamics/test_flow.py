"""The gradient flow: right-hand sides, integration, invariants, symmetries, restarts and failures."""

import itertools

import numpy as np
import pytest
import reference
import scipy.integrate
import strategies
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynamics import Bags, IntegrationError, Layer, SequenceClasses, Solver, Trajectory, gradient_flow
from dynamics.fields import full as flow_systems

DECODERS = ("full", "modified", "theory")
decoders = st.sampled_from(DECODERS)
moving_decoders = st.sampled_from(("full", "modified"))


def small_classes(vocab_size=9):
    """Two queries, a common token of all, one of two classes, unequal probabilities; classes equally likely."""
    table = [[0.3, 0.2, 0.5, 0, 0], [0.2, 0.3, 0, 0.5, 0], [0.4, 0, 0, 0, 0.6]]
    return SequenceClasses(table, [2, 4, 2], vocab_size=vocab_size)


def run(data, decoder="full", method="DOP853", time_scale="linear", **options):
    arguments = {"eta_y": 1.0, "eta_z": 0.7, "t_end": 20.0, "n_times": 5, "rtol": 1e-10, "atol": 1e-13}
    solver = Solver(method, time_scale)
    return gradient_flow(data, decoder=decoder, solver=solver, **(arguments | options))


def logits(trajectory):
    return trajectory.dataset["z"].values


# Right-hand sides and integration by another route


@given(strategies.sequence_classes(max_unseen=5), moving_decoders, strategies.SEEDS)
def test_velocity_of_random_classes_follows_the_formulas(classes, decoder, seed):
    """At a random layer, with class probabilities of any kind."""
    data = classes.population()
    rng = np.random.default_rng(seed)
    Z, Y = rng.normal(size=(data.n_queries, data.n_tokens)), rng.normal(size=(data.n_tokens, data.vocab_size))
    trajectory = run(classes, decoder, init=Layer(Z, Y), t_end=1e-6, times=[0.0, 1e-6])
    dZ, dY = getattr(reference, f"{decoder}_flow")(data, Z, Y)
    np.testing.assert_allclose(trajectory.dataset["z_velocity"].values[0], 0.7 * dZ, rtol=1e-9, atol=1e-11)
    # The step is small enough for a difference quotient: its error is the step times a second derivative.
    moved = (trajectory.final.Y - Y) / 1e-6
    assert np.abs(moved - dY).max() < 1e-4 * max(1, np.abs(dY).max())


@given(strategies.sequence_classes(uniform=True, max_unseen=5))
def test_theory_velocity_of_random_classes_follows_the_formulas(classes):
    trajectory = run(classes, "theory", t_end=30.0, n_times=4)
    h = trajectory.dataset["h"].values
    for i in range(4):
        np.testing.assert_allclose(h[i], h[i, 0], rtol=1e-13)  # classes equally likely
        dZ = reference.theory_flow(classes.population(), logits(trajectory)[i], h[i, 0])[0]
        np.testing.assert_allclose(trajectory.dataset["z_velocity"].values[i], 0.7 * dZ, rtol=1e-8, atol=1e-12)


@given(strategies.sequence_classes(uniform=False, max_unseen=5))
def test_theory_with_unequal_classes_backpropagates_through_its_decoder(classes):
    """Theorem 5's Y = F (I - E') W^T from the trajectory's own h, then Lemma 1 with matrices: another route to (10).

    Here e_n - alpha_n is (M - 1) zeta_n / (M - 1 + exp(M h_n)), the error at the modified flow's own logits W.
    """
    data = classes.population()
    M = classes.vocab_size
    trajectory = run(classes, "theory", t_end=30.0, n_times=3)
    for i in range(3):
        Z, h = logits(trajectory)[i], trajectory.dataset["h"].values[i]
        zeta = M / (M - 1) * (np.eye(M)[:, : len(data)] - 1 / M)
        W = (M - 1) * h * zeta
        F = reference.features(data, Z)
        Y = F @ np.linalg.inv(F.T @ F) @ W.T
        R = (M - 1) / (M - 1 + np.exp(M * h)) * zeta
        # F^T Y = W, so that the residuals at this Y are R.
        np.testing.assert_allclose(reference.residuals(data, F, Y), R, rtol=1e-8, atol=1e-11)
        layer = Layer(Z, trajectory.dataset["y"].values[i], None, trajectory.dataset["multiplicity"].values)
        np.testing.assert_allclose(layer.expand().Y, Y, rtol=1e-8, atol=1e-10)
        expected = 0.7 * reference.pull_back(data, Z, F, Y @ R)
        np.testing.assert_allclose(trajectory.dataset["z_velocity"].values[i], expected, rtol=1e-8, atol=1e-12)


# Integration


@pytest.mark.parametrize("decoder", DECODERS)
def test_error_falls_with_rtol(decoder):
    best = logits(run(small_classes(), decoder, rtol=1e-13, atol=1e-15))
    errors = [
        np.abs(logits(run(small_classes(), decoder, rtol=rtol, atol=rtol / 100)) - best).max()
        for rtol in (1e-3, 1e-5, 1e-7, 1e-9)
    ]
    # A hundred times smaller tolerance: at least ten times smaller error, and never far above what was asked for.
    assert all(fine < coarse / 10 for coarse, fine in itertools.pairwise(errors)), errors
    assert all(error < 10 * rtol for error, rtol in zip(errors, (1e-3, 1e-5, 1e-7, 1e-9), strict=True)), errors


@pytest.mark.parametrize(
    ("decoder", "reduce"), [("full", "none"), ("full", "auto"), ("modified", "none"), ("theory", "auto")]
)
def test_our_steps_are_those_of_scipys_integrator(decoder, reduce):
    """Loose tolerances: two methods of one order would differ by 1e-4, the same steps by rounding alone."""
    data, rates = small_classes(), {"eta_y": 1.0, "eta_z": 0.5, "t_end": 20.0, "rtol": 1e-4, "atol": 1e-6}
    ours, scipys, other = (
        gradient_flow(data, decoder=decoder, solver=Solver(method=method, reduce=reduce), **rates)
        for method in ("DOP853", "scipy DOP853", "RK45")
    )
    assert scipys.dataset.attrs["method"] == "scipy DOP853"
    assert reference.scaled_difference(logits(ours), logits(scipys)) < 1e-11
    assert reference.scaled_difference(logits(other), logits(scipys)) > 1e-7


@given(st.lists(st.floats(0, 50), min_size=1, max_size=8, unique=True).map(sorted), st.sampled_from(["linear", "log"]))
@settings(max_examples=8)
def test_times_are_honoured_exactly(times, time_scale):
    trajectory = run(small_classes(), t_end=50.0, times=times, time_scale=time_scale)
    np.testing.assert_array_equal(trajectory.dataset["time"].values, times)
    alone = run(small_classes(), t_end=50.0, times=times[-1:])
    np.testing.assert_allclose(trajectory.final.Z, alone.final.Z, atol=1e-8)


@pytest.mark.parametrize("time_scale", ["linear", "log"])
def test_default_times(time_scale):
    time = run(small_classes(), n_times=6, time_scale=time_scale).dataset["time"].values
    variable = time if time_scale == "linear" else np.log1p(time)
    np.testing.assert_allclose(np.diff(variable), variable[-1] / 5, rtol=1e-12)
    assert (time[0], time[-1]) == (0, 20)
    rest = run(small_classes(), init=run(small_classes()), t_end=50.0, n_times=6, time_scale=time_scale)
    time = rest.dataset["time"].values
    variable = time if time_scale == "linear" else np.log1p(time - 20)
    np.testing.assert_allclose(np.diff(variable), (variable[-1] - variable[0]) / 5, rtol=1e-12)
    assert (time[0], time[-1]) == (20, 50)


# Restarts


@pytest.mark.parametrize(("decoder", "time_scale"), [("full", "log"), ("modified", "linear"), ("theory", "log")])
def test_a_saved_trajectory_continues_where_it_stopped(decoder, time_scale, tmp_path):
    whole = run(small_classes(), decoder, t_end=20.0, times=[10.0, 15.0, 20.0])
    run(small_classes(), decoder, t_end=10.0, n_times=3).save(tmp_path / "half.nc")
    half = Trajectory.load(tmp_path / "half.nc")
    rest = run(small_classes(), decoder, init=half, t_end=20.0, times=[10.0, 15.0, 20.0], time_scale=time_scale)
    np.testing.assert_array_equal(rest.dataset["z"].values[0], half.final.Z)
    np.testing.assert_array_equal(rest.dataset["y"].values[0], half.final.Y)
    assert reference.scaled_difference(logits(rest), logits(whole)) < 1e-8
    assert reference.scaled_difference(rest.dataset["y"], whole.dataset["y"]) < 1e-8
    if decoder == "theory":
        np.testing.assert_allclose(rest.dataset["h"], whole.dataset["h"], rtol=1e-8)


def test_theory_starts_from_a_layer_with_attention():
    data = small_classes().population()
    Z = np.random.default_rng(5).normal(size=(2, 5))
    trajectory = run(small_classes(), "theory", init=Layer(Z, np.zeros((5, 9))), t_end=4.0)
    np.testing.assert_array_equal(logits(trajectory)[0], Z)

    def slope(_, state):
        dZ, dh = reference.theory_flow(data, state[:-1].reshape(2, 5), state[-1])
        return [*0.7 * dZ.ravel(), dh]

    found = scipy.integrate.solve_ivp(slope, (0, 4.0), [*Z.ravel(), 0.0], method="DOP853", rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(trajectory.final.Z.ravel(), found.y[:-1, -1], atol=1e-9)


# Invariants and compression


@given(st.data(), moving_decoders)
def test_rows_keep_their_sums(draws, decoder):
    """The zero-sum invariants of Lemma 1, which Lemma 3's decoder gradient shares."""
    classes = draws.draw(strategies.sequence_classes())
    data = classes.population()
    init = draws.draw(strategies.layers(data)) if draws.draw(st.booleans()) else None
    scale = 1.0 if init is None else max(1, np.abs(init.Y).max(), np.abs(init.Z).max())
    assume(scale < 10)  # else softmax is saturated at the start: little moves, and the features may be dependent
    sums = run(data, decoder, init=init, rtol=1e-8).row_sums()
    for name in ("y", "z"):
        assert np.abs(sums[name] - sums[name][0]).max() < 1e-10 * scale


@given(st.data(), moving_decoders)
def test_what_is_never_seen_never_moves(draws, decoder):
    """Exactly: rows of Y of unseen tokens, entries of z_m at tokens not seen with m, whole rows of unseen queries."""
    classes = draws.draw(strategies.sequence_classes())
    population = classes.population()
    data = Bags.from_dense(
        population.query + 1,
        population.target,
        np.pad(reference.dense_counts(population), ((0, 0), (2, 1))),
        population.weight,
        n_queries=population.n_queries + 2,
        vocab_size=population.vocab_size,
    )
    rng = np.random.default_rng(draws.draw(strategies.SEEDS))
    Z, Y = rng.normal(size=(data.n_queries, data.n_tokens)), rng.normal(size=(data.n_tokens, data.vocab_size))
    trajectory = run(data, decoder, init=Layer(Z, Y), rtol=1e-6)
    counts = reference.dense_counts(data)
    seen = np.zeros(Z.shape, dtype=bool)
    for b, query in enumerate(data.query):
        seen[query] |= counts[b] > 0
    unseen_tokens = ~(counts > 0).any(axis=0)
    for i in range(5):
        np.testing.assert_array_equal(logits(trajectory)[i][~seen], Z[~seen])
        np.testing.assert_array_equal(trajectory.dataset["y"].values[i][unseen_tokens], Y[unseen_tokens])
    assert (trajectory.final.Y[~unseen_tokens] != Y[~unseen_tokens]).all()


# Symmetries


@given(strategies.sequence_classes(), decoders, st.floats(0.01, 100))
def test_faster_learning_for_a_shorter_time_is_the_same(classes, decoder, c):
    one = run(classes, decoder, t_end=8.0, n_times=3)
    other = run(classes, decoder, eta_y=c, eta_z=0.7 * c, t_end=8.0 / c, n_times=3)
    np.testing.assert_allclose(other.dataset["time"].values * c, one.dataset["time"].values, rtol=1e-12)
    assert reference.scaled_difference(logits(other), logits(one)) < 1e-7
    assert reference.scaled_difference(other.dataset["y"], one.dataset["y"]) < 1e-7


# Value matrix


def with_values(data, n_values=3, scale=0.5):
    rng = np.random.default_rng(2)
    return Layer(
        scale * rng.normal(size=(data.n_queries, data.n_tokens)),
        scale * rng.normal(size=(n_values, data.vocab_size)),
        rng.normal(size=(data.n_tokens, n_values)),
    )


def test_default_rate_of_the_values_is_the_one_of_the_decoder():
    data = small_classes().population()
    one, other = run(data, init=with_values(data)), run(data, init=with_values(data), eta_v=1.0)
    np.testing.assert_array_equal(one.final.V, other.final.V)
    assert one.parameters["eta_v"] == 1.0


# Failures


@pytest.mark.parametrize(
    ("decoder", "method"),
    [*((decoder, "DOP853") for decoder in DECODERS), *(("full", method) for method in ("Radau", "BDF", "LSODA"))],
)
def test_enormous_rates_fail_at_once(decoder, method):
    """LSODA would otherwise step on the spot for ever, and the explicit methods return no state at all."""
    with pytest.raises(IntegrationError) as raised:
        run(small_classes(), decoder, eta_y=1e300, eta_z=1e300, method=method)
    error = raised.value
    message = str(error)
    for part in (f"({decoder})", "after t = 0 of 20 SGD steps", "eta_y = 1e+300", "smaller learning rates", "'log'"):
        assert part in message
    assert error.time == 0
    assert error.trajectory is None
    np.testing.assert_array_equal(error.layer.Z, np.zeros((2, 5)))


@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau", "LSODA"])
def test_a_failure_on_the_way_keeps_what_was_reached(method, monkeypatch):
    bound = flow_systems.Full.bound
    limit = np.abs(logits(run(small_classes(), times=[10.0]))).max()

    def breaks_down(self, state, out):
        evaluate = bound(self, state, out)

        def at():
            loss = evaluate()
            if np.abs(state[:10]).max() >= limit:
                out[:] = np.nan
            return loss

        return at

    good = run(small_classes(), n_times=21)
    monkeypatch.setattr(flow_systems.Full, "bound", breaks_down)
    monkeypatch.setattr(flow_systems.Full, "frame", None)  # no step in one kernel
    with pytest.raises(IntegrationError) as raised:
        run(small_classes(), n_times=21, method=method, rtol=1e-7)
    error = raised.value
    assert 9.0 < error.time < 10.001
    reached = error.trajectory.dataset["time"].values
    np.testing.assert_array_equal(reached, np.arange(int(reached[-1]) + 1.0))
    assert reached[-1] <= error.time < reached[-1] + 1
    np.testing.assert_allclose(logits(error.trajectory), logits(good)[: reached.size], atol=1e-4)
    # The layer belongs to the time: it lies between the last record and the limit.
    last = np.abs(error.trajectory.final.Z).max()
    assert last <= np.abs(error.layer.Z).max() <= limit
    assert f"stopped after t = {error.time:g} of 20 SGD steps" in str(error)


def test_derivative_not_finite_at_the_start():
    data = small_classes().population()
    layer = Layer(np.full((2, 5), 0.0), np.full((5, 9), 1.7e308))
    with pytest.raises(IntegrationError, match="not finite at the start"):
        run(data, init=layer)


# Records


def test_parameters_and_labels_are_recorded():
    trajectory = run(small_classes(), "modified", time_scale="log")
    assert trajectory.parameters == {
        "eta_y": 1.0,
        "eta_z": 0.7,
        "t_end": 20.0,
        "decoder": "modified",
        "rtol": 1e-10,
        "atol": 1e-13,
        "time_scale": "log",
        "method": "DOP853",
        "criterion": "cross-entropy",
        "contrast_weight": 0.0,
    }
    np.testing.assert_array_equal(trajectory.dataset["query"], [2, 4])
    np.testing.assert_array_equal(trajectory.dataset["query_of"], [2, 4, 2])
    np.testing.assert_array_equal(trajectory.dataset["next_token"], [0, 1, 2])


def test_progress_goes_to_standard_error_only(capsys):
    quiet = run(small_classes(), progress=False)
    assert capsys.readouterr() == ("", "")
    loud = run(small_classes(), progress=True)
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(loud.final.Z, quiet.final.Z)
