"""Options of training: against PyTorch step by step, against their flows, what they conserve, and what is refused."""

import dataclasses
import functools
import json

import driving
import numpy as np
import pytest
import reference
import scipy.stats
import strategies
import training
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynamics import (
    IntegrationError,
    Layer,
    Objective,
    Optimizer,
    SequenceClasses,
    Trajectory,
    gradient_flow,
    sgd,
)

FULL = {"batch_size": None, "length": None}


def ours(optimizer, objective, **more):
    arguments = {"steps": training.STEPS, "init": training.LAYER, **FULL, **training.RATES, **more}
    return sgd(training.BAGS, optimizer=optimizer, objective=objective, **arguments)


def assert_same(run, Z, Y, losses, tolerance=1e-12):
    np.testing.assert_allclose(run.final.Z, Z, rtol=0, atol=tolerance)
    np.testing.assert_allclose(run.final.expand().Y, Y, rtol=0, atol=tolerance)
    np.testing.assert_allclose(run.dataset["batch_loss"].values[[0, -1]], np.asarray(losses)[[0, -1]], rtol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("names", [*training.PAIRS[::2], ("clip", "smoothing"), ("adamw", "layer")], ids=" and ".join)
def test_steps_are_those_of_pytorch(names):
    """50 steps in double precision, for pairs of options that go together; for each alone see below."""
    torch = pytest.importorskip("torch", reason="needs PyTorch, the peer that it compares with")
    torch.set_num_threads(1)
    values = training.values(names)
    assert_same(ours(*values), *training.torch_run(*values))


@functools.cache
def numbers():
    return json.loads(training.NUMBERS.read_text())


@pytest.mark.parametrize("names", training.SINGLE, ids=" and ".join)
def test_steps_are_those_that_pytorch_took(names):
    """As above from numbers that are kept, with their source, for where there is no PyTorch."""
    kept = numbers()
    assert kept["source"].startswith("PyTorch 2")
    run = kept["runs"][names[0]]
    assert_same(ours(*training.values(names)), np.array(run["Z"]), np.array(run["Y"]), run["loss"])


# Another route to the gradient: a complex step through the definitions, on any bags


def reference_loss(data, Z, Y, multiplicity, objective):
    """The loss that is descended on, with dense arrays of any kind of number; Y has a column for each column."""
    counts, total = reference.dense_counts(data), 0
    for b, own in enumerate(counts):
        c = reference.attend(own, Z[data.query[b]] / objective.temperature)
        if objective.normalisation == "layer":
            c = c - c.mean()
        f = c if objective.normalisation is None else reference.normalise(c)
        target = np.zeros(data.vocab_size)
        target[: data.n_targets] = data.target[b] if not data.hard else np.eye(data.n_targets)[data.target[b]]
        target = (1 - objective.label_smoothing) * target + objective.label_smoothing / data.vocab_size
        u = np.repeat(Y.T @ f, multiplicity)
        if objective.criterion == "squared":
            total = total + data.weight[b] * ((u - target) ** 2).sum()
        else:
            total = total - data.weight[b] * (target @ reference.log_softmax(u))
    return total


@settings(deadline=None)
@given(
    st.data(),
    st.sampled_from([0.0, 0.1, 0.9]),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.sampled_from(["unit", "layer", None]),
    st.sampled_from(["cross-entropy", "squared"]),
)
def test_the_gradient_is_that_of_the_definition(draws, smoothing, temperature, normalisation, criterion):
    """On random bags with hard and soft targets, unseen tokens, and next tokens that share a column."""
    data = draws.draw(strategies.bags())
    # One token has no direction left once the mean is off, and counts that are all the same have none but round-off.
    counts = reference.dense_counts(data)
    assume(normalisation != "layer" or (np.ptp(counts, axis=1) > 1e-2 * counts.max(axis=1)).all())
    rng = np.random.default_rng(draws.draw(strategies.SEEDS))
    columns = np.ones(data.n_targets, dtype=int)
    if data.vocab_size > data.n_targets:
        columns = np.append(columns, data.vocab_size - data.n_targets)
    Z, Y = 0.3 * rng.normal(size=(data.n_queries, data.n_tokens)), rng.normal(size=(data.n_tokens, columns.size))
    objective = Objective(criterion, None, 0.0, smoothing, temperature, normalisation)
    own = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, "init": Layer(Z, Y, None, columns), **FULL}
    run = sgd(data, optimizer=Optimizer(momentum=0.0), objective=objective, **own)

    def loss(*moved):
        return reference_loss(data, *moved, columns, objective)

    dZ, dY = reference.complex_step(loss, [Z, Y])
    scale = max(1.0, np.abs(dZ).max(), np.abs(dY).max())
    np.testing.assert_allclose(run.final.Z - Z, -dZ, rtol=0, atol=1e-9 * scale)
    # A column of several next tokens moves as each of them does.
    np.testing.assert_allclose((run.final.Y - Y) * columns, -dY, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(run.dataset["batch_loss"][0], loss(Z, Y), rtol=1e-10, atol=1e-12)


# An own term, in steps and in the flow


@dataclasses.dataclass(frozen=True)
class Pull:
    strength: float

    def __call__(self, weights):
        return {"Z": -self.strength * weights.Z, "Y": -self.strength * weights.Y}


def test_an_own_term_is_in_steps_and_in_the_flow():
    """One that is weight decay, against the option; in SGD with momentum it is coupled, as a gradient is."""
    decay = {"objective": None, "optimizer": Optimizer(weight_decay=0.2)}
    term = {"objective": Objective(terms=(Pull(0.2),)), "optimizer": Optimizer()}
    own = {"steps": 30, "init": training.LAYER, **FULL, **training.RATES}
    one, other = (sgd(training.BAGS, **own, **options) for options in (decay, term))
    np.testing.assert_allclose(one.final.Y, other.final.Y, rtol=0, atol=1e-13)
    assert [name.rsplit(":", 1)[1] for name in other.parameters["terms"]] == ["Pull(strength=0.2)"]
    flows = [
        gradient_flow(training.BAGS, t_end=30.0, n_times=3, init=training.LAYER, **training.RATES, **options)
        for options in (decay, term)
    ]
    np.testing.assert_allclose(flows[0].final.Y, flows[1].final.Y, rtol=0, atol=1e-7)


# Classes without replacement


@pytest.mark.parametrize("batch_size", [1, 3, 5, 12])
def test_epochs_draw_each_class_once(batch_size):
    classes = SequenceClasses(np.eye(5), np.zeros(5, int), vocab_size=5)
    run = driving.start(classes, batch_size=batch_size, length=4, replacement=False, steps=15, seed=2)
    drawn = []
    for _ in range(15):
        run.feed.draw(1)
        drawn.extend(run.feed._workspace[0].tolist())
    epochs = np.array(drawn)[: len(drawn) // 5 * 5].reshape(-1, 5)
    assert (np.sort(epochs, axis=1) == np.arange(5)).all()
    assert len({tuple(epoch) for epoch in epochs}) > 2


def test_orders_of_epochs_are_equally_likely():
    """Chi square over the 6 orders of 3 classes in 3000 epochs; false alarm once in a thousand seeds."""
    classes = SequenceClasses(np.eye(3), np.zeros(3, int), vocab_size=3)
    run = driving.start(classes, batch_size=3000, length=2, replacement=False, steps=3, seed=4)
    orders: dict[tuple, int] = {}
    for _ in range(3):
        run.feed.draw(1)
        for epoch in run.feed._workspace[0].reshape(-1, 3):
            orders[tuple(epoch.tolist())] = orders.get(tuple(epoch.tolist()), 0) + 1
    expected = 3000 / 6
    assert len(orders) == 6
    assert sum((n - expected) ** 2 / expected for n in orders.values()) < scipy.stats.chi2.ppf(0.999, 5)


# Records


@pytest.mark.parametrize(
    ("flow", "names"),
    [
        (False, ["sign", "coupled decay", "warm-up", "smoothing", "layer"]),
        (False, ["adamw", "betas", "cosine", "clip", "temperature", "none", "squared"]),
        (True, ["momentum", "decoupled decay", "cosine", "clip", "smoothing", "temperature", "layer", "squared"]),
        (True, ["betas", "adam", "warm-up", "none"]),
    ],
)
def test_trajectories_record_options_and_load_back(flow, names, tmp_path):
    optimizer, objective = training.values(names)
    if flow:
        own = {"init": training.LAYER, "optimizer": optimizer, "objective": objective, **training.RATES}
        run = gradient_flow(training.BAGS, t_end=5.5, n_times=2, **own)
    else:
        run = ours(optimizer, objective, steps=8)
    run.save(tmp_path / "run.nc")
    again = Trajectory.load(tmp_path / "run.nc")
    assert again.objective == objective
    assert again.optimizer == optimizer
    assert again.final.temperature == objective.temperature and again.final.normalisation == objective.normalisation
    np.testing.assert_array_equal(again.final.features(training.BAGS), run.final.features(training.BAGS))


def test_default_runs_record_what_they_did():
    """Options that came later are named only where they are not the default, so that older files read the same."""
    run = ours("sgd", None, steps=1)
    assert set(run.parameters) == {
        "eta_y", "eta_z", "steps", "batch_size", "length", "momentum", "optimizer", "record_every", "dtype",
        "position_bias", "decoder", "init", "criterion", "contrast_weight",
    }  # fmt: skip
    assert run.optimizer == Optimizer() and run.objective == Objective()
    assert gradient_flow(training.BAGS, t_end=1.0, n_times=2, eta_y=1.0, eta_z=1.0).optimizer is None


def test_what_cannot_be_made_again_says_so():
    run = ours(training.values(["function"])[0], Objective(terms=(Pull(0.1),)), steps=1)
    assert run.parameters["schedule"].endswith("<lambda>")
    with pytest.raises(ValueError, match="`schedule` must be a Schedule to be made again"):
        run.optimizer  # noqa: B018
    with pytest.raises(ValueError, match="`terms` must be left out to be made again"):
        run.objective  # noqa: B018


# Uses


# Refusals

CLASSES = SequenceClasses.single_common_token(3, 6, common=0.5)


def test_a_flow_that_meets_a_bad_rate_stops_there_and_says_why():
    optimizer = Optimizer(momentum=0.0, schedule=lambda t: 1.0 - t)
    with pytest.raises(IntegrationError, match=r"`schedule` must return no negative number at step 1[^T]*$"):
        gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=5.0, optimizer=optimizer)


def test_an_optimizer_is_an_entry_of_the_table_and_no_class():
    """A method of a subclass would never be called, and the steps be those of the class above it."""
    with pytest.raises(TypeError, match="`Optimizer` has no rule to override"):
        type("Lion", (Optimizer,), {"step": lambda self, slope: np.sign(slope)})


def test_adamw_decays_by_default_as_pytorchs_does():
    default, plain = Optimizer("adamw"), Optimizer("adam")
    assert (default.weight_decay, default.decoupled) == (0.01, True)
    assert (plain.weight_decay, plain.decoupled) == (0.0, False)
