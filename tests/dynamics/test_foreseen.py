"""Memory and time that can be foreseen are refused before they are taken, and no flow goes on for ever."""

import numpy as np
import pytest

from dynamics import (
    Bags,
    DyckLanguage,
    IntegrationError,
    Layer,
    SequenceClasses,
    Solver,
    Trajectory,
    flow,
    gradient_flow,
    sgd,
    sgd_many,
)
from dynamics.data import averaging as tasks
from dynamics.support import checks
from dynamics.units.qsa import LinearQueryUnit, train_qsa
from theory.bounded_dyck import balance, pruning
from theory.scan_and_snap import decoder

HUGE = 10**12
CLASSES = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)
DYCK = DyckLanguage(2, 3)
RATES = {"eta_y": 0.1, "eta_z": 0.1}
RNG = np.random.default_rng(0)
# The argument that each message names, and the call.
CALLS = [
    ("n", lambda: CLASSES.sample(HUGE, length=3, rng=0)),
    ("n", lambda: DYCK.sample(HUGE, max_length=3, rng=0)),
    ("max_length", lambda: DYCK.sample(1, max_length=HUGE, rng=0, kind="word")),
    ("n", lambda: DYCK.sample_sequences(2, max_length=HUGE, rng=0)),
    ("n_queries", lambda: SequenceClasses.syn_medium(HUGE)),
    ("n_classes", lambda: SequenceClasses.single_common_token(HUGE, HUGE)),
    ("size", lambda: tasks.random_qsa(3, 2, 2, size=HUGE, rng=RNG)),
    ("size", lambda: tasks.random_subsets(3, 2, size=HUGE, rng=RNG)),
    ("size", lambda: tasks.random_match(3, 7, size=HUGE, rng=RNG)),
    ("n_tokens", lambda: tasks.adversarial_match(HUGE, 7)),
    ("n_tokens", lambda: LinearQueryUnit.random(HUGE, 2, 2, RNG)),
    ("n_tokens", lambda: train_qsa(HUGE)),
    ("steps", lambda: train_qsa(4, 2, steps=HUGE)),
    ("batch_size", lambda: train_qsa(4, 2, steps=1, batch_size=HUGE)),
    ("n_times", lambda: gradient_flow(CLASSES, **RATES, t_end=1.0, n_times=HUGE)),
    ("times", lambda: gradient_flow(CLASSES, **RATES, t_end=1.0, n_times=3 * 10**7, solver=Solver(reduce="none"))),
    ("data", lambda: gradient_flow(many_bags(), **RATES, t_end=1.0, decoder="modified")),
    ("data", lambda: gradient_flow(many_bags(), **RATES, t_end=1.0, decoder="theory")),
    ("steps", lambda: sgd(CLASSES, **RATES, steps=HUGE)),
    ("steps", lambda: sgd(CLASSES, **RATES, steps=HUGE, record_every=10**6)),
    ("batch_size", lambda: sgd(CLASSES, **RATES, steps=1, batch_size=HUGE)),
    ("length", lambda: sgd(CLASSES, **RATES, steps=1, length=HUGE)),
    ("init", lambda: sgd(large(), **RATES, steps=1, init="uniform", batch_size=None, length=None)),
    ("threads", lambda: sgd_many([(CLASSES, RATES | {"steps": 1})], threads=10**9)),
    ("n_steps", lambda: decoder.h_steps(HUGE, vocab_size=10, eta_y=1.0)),
    ("language", lambda: balance.balanced_layer(DyckLanguage(1000, 1000), 0)),
    ("lengths", lambda: balance.matched_pairs(DYCK, HUGE)),
    ("size", lambda: pruning.identity_network(10**6, 2)),
    ("n", lambda: pruning.prune_linear(np.eye(2), HUGE, 0)),
    ("n", lambda: pruning.prune_product(np.eye(2), HUGE, 0)),
]


@pytest.fixture(autouse=True)
def two_gib(monkeypatch):
    """The same bound on every machine."""
    monkeypatch.setattr(checks, "memory", lambda: 2**31)


def large():
    """Bags whose matrices have 500 MB together, less than "uniform" may fill."""
    return Bags([0, 4999], [0, 1], [0, 1, 2], [0, 4999], [1.0, 1.0], vocab_size=7000)


def many_bags():
    """So many that F^T F has 3 GB."""
    n = 20_000
    return Bags(np.zeros(n, dtype=int), np.arange(n) % 3, np.arange(n + 1), np.arange(n) % 7, np.ones(n))


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_memory_is_refused_before_it_is_taken(name, call):
    rule = r"leave at most 2,147,483,648 bytes, this machine's memory, to .*, but got [0-9,]+ bytes"
    with pytest.raises(ValueError, match=rf"^`{name}` must {rule}$"):
        call()


def test_numbers_of_a_million_digits_are_not_formed():
    with pytest.raises(ValueError, match=r"`n_tokens` must give at most 16777216 cases, but got far more sets"):
        tasks.all_subsets(HUGE, HUGE // 2)
    with pytest.raises(ValueError, match=r"`n_tokens` must give at most 16777216 cases, but got far more inputs"):
        tasks.all_match(HUGE, 2)


def test_a_step_of_minutes_is_refused():
    with pytest.raises(ValueError, match=r"`length` must leave at most 1,073,741,824 tokens to draw a step"):
        sgd(CLASSES, **RATES, steps=1, length=10**7, batch_size=1000)


def test_transformers_are_counted_before_they_are_made():
    deep = pytest.importorskip("dynamics.deep")
    small, data = deep.Architecture(5, width=4), deep.Sequences([[0, 1, 2]], [[1, 2, 3]])
    options = {"learning_rate": 0.1, "steps": 1}
    for name, call in (
        ("seeds", lambda: deep.train(small, data, **options, seeds=10**9)),
        ("seeds", lambda: deep.train(small, data, **options, seeds=10**6)),
        ("steps", lambda: deep.train(small, data, learning_rate=0.1, steps=HUGE)),
        ("batch_size", lambda: deep.train(small, data, **options, batch_size=HUGE)),
        ("architecture", lambda: deep.Transformer(deep.Architecture(HUGE), 0)),
        ("length", lambda: deep.dyck_sequences(DYCK, ["()"], length=HUGE)),
    ):
        with pytest.raises(ValueError, match=rf"^`{name}` must leave at most 2,147,483,648 bytes"):
            call()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_heads": 2, "n_layers": 3, "mlp_width": 5},
        {"positions": "learned", "max_length": 7, "tied": False, "n_outputs": 3},
        {"positions": "linear", "max_length": 7, "norm": "after"},
        {"norm": "mixture", "factored": False, "n_heads": 2},
        {"norm": "mixture", "values": False, "n_heads": 2, "mlp_width": 0},
        {"norm": "none", "positions": "sinusoidal"},
        {"norm_kind": "unit", "values": False},
    ],
)
def test_weights_are_counted_as_they_are_made(options):
    deep = pytest.importorskip("dynamics.deep")
    import jax

    a = deep.Architecture(6, width=4, **options)
    assert a.n_weights == sum(leaf.size for leaf in jax.tree.leaves(deep.Transformer(a, 0)))


def test_what_fits_is_not_refused(monkeypatch):
    checks.fits_in_memory("x", 2**31, "do this")
    with pytest.raises(ValueError, match="2,147,483,649 bytes"):
        checks.fits_in_memory("x", 2**31 + 1, "do this")


def test_the_bound_is_that_of_this_machine():
    resource = pytest.importorskip("resource")
    import subprocess
    import sys

    code = "from dynamics.support import checks; print(checks.memory())"
    found = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    assert 2**28 < found <= 2**50
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({2**32}, {2**32})); {code}"
    assert resource.RLIMIT_AS is not None
    found = int(subprocess.run([sys.executable, "-c", limited], check=True, capture_output=True, text=True).stdout)
    assert found == 2**32


@pytest.mark.parametrize("eta_z", [1e6, 1e12])
@pytest.mark.parametrize("method", ["DOP853", "RK23"])
def test_a_stiff_flow_ends(monkeypatch, eta_z, method):
    monkeypatch.setattr(flow, "_MOST_EVALUATIONS", 3000)
    with pytest.raises(IntegrationError, match=r"more than 3,000 evaluations of the derivative\. Try") as error:
        gradient_flow(CLASSES, eta_y=1.0, eta_z=eta_z, t_end=1e9, times=[0.0, 1e9], solver=Solver(method=method))
    assert 0 < error.value.time < 1e9
    assert error.value.trajectory.dataset.sizes["time"] == 1
    assert np.isfinite(error.value.layer.Z).all()


@pytest.mark.parametrize("time", [np.nan, np.inf])
def test_a_flow_does_not_go_on_from_no_time(time):
    run = gradient_flow(CLASSES, **RATES, t_end=1.0, n_times=2)
    dataset = run.dataset.assign_coords(time=[0.0, time])
    with pytest.raises(ValueError, match=r"`init` must end at a finite time, but got (nan|inf)"):
        gradient_flow(CLASSES, **RATES, t_end=2.0, init=Trajectory(dataset))


def test_a_layer_of_usual_size_passes():
    assert Layer.zeros(CLASSES.population()).Z.shape == (1, 3)
