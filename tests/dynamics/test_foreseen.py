"""Memory and time that can be foreseen are refused before they are taken, and no flow goes on for ever."""

import numpy as np
import pytest
import xarray as xr
from balls import enclose_flow

from dynamics import (
    Bags,
    IntegrationError,
    Limits,
    Objective,
    SequenceClasses,
    Solver,
    Trajectory,
    gradient_flow,
    gradient_flow_ensemble,
    sgd,
    sgd_many,
)
from dynamics.support import checks
from theory.scan_and_snap import decoder

HUGE = 10**12
CLASSES = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)
RATES = {"eta_y": 0.1, "eta_z": 0.1}
# The argument that each message names, and the call.
CALLS = [
    ("n", lambda: CLASSES.sample(HUGE, length=3, rng=0)),
    ("n_queries", lambda: SequenceClasses.syn_medium(HUGE)),
    ("n_classes", lambda: SequenceClasses.single_common_token(HUGE, HUGE)),
    ("n_times", lambda: gradient_flow(CLASSES, **RATES, t_end=1.0, n_times=HUGE)),
    ("times", lambda: gradient_flow(CLASSES, **RATES, t_end=1.0, n_times=23 * 10**6, solver=Solver(reduce="none"))),
    ("data", lambda: gradient_flow(many_bags(), **RATES, t_end=1.0, decoder="modified")),
    ("data", lambda: gradient_flow(many_bags(), **RATES, t_end=1.0, decoder="theory")),
    ("steps", lambda: sgd(CLASSES, **RATES, steps=HUGE)),
    ("steps", lambda: sgd(CLASSES, **RATES, steps=HUGE, record_every=10**6)),
    ("steps", lambda: sgd(CLASSES, **RATES, steps=10**7, record_every=1)),
    ("steps", lambda: sgd(CLASSES, **RATES, steps=10**7, record_every=1, evaluate=CLASSES.population())),
    ("settings", lambda: gradient_flow_ensemble(crossed("eta_y", "eta_z"), t_end=1.0)),
    ("settings", lambda: gradient_flow_ensemble(crossed("n_classes", "vocab_size"), t_end=1.0)),
    ("data", lambda: enclose_flow(SequenceClasses.single_common_token(30_000, 30_000), **RATES, t_end=1.0, bits=40)),
    ("data", lambda: enclose_flow(far_apart(), **RATES, t_end=1.0, bits=40)),
    ("batch_size", lambda: sgd(CLASSES, **RATES, steps=1, batch_size=HUGE)),
    ("length", lambda: sgd(CLASSES, **RATES, steps=1, length=HUGE)),
    ("init", lambda: sgd(large(), **RATES, steps=1, init="uniform", batch_size=None, length=None)),
    ("threads", lambda: sgd_many([(CLASSES, RATES | {"steps": 1})], threads=10**9)),
    ("n_steps", lambda: decoder.h_steps(HUGE, vocab_size=10, eta_y=1.0)),
]


@pytest.fixture(autouse=True)
def two_gib():
    """The same bound on every machine."""
    with Limits(memory=2**31):
        yield


def large():
    """Bags whose matrices have 500 MB together, less than "uniform" may fill."""
    return Bags([0, 4999], [0, 1], [0, 1, 2], [0, 4999], [1.0, 1.0], vocab_size=7000)


def crossed(first, second):
    """Settings of Theorem 4's kind, of which two are a hundred thousand and ten million, each with each."""
    own = {"n_classes": 2, "vocab_size": 9, "eta_y": 0.1, "eta_z": 0.1}
    own[first] = xr.DataArray(np.full(10**5, own[first]), dims="first")
    return own | {second: xr.DataArray(np.full(10**7, own[second]), dims="second")}


def far_apart():
    """Two bags, whose queries and tokens have large numbers."""
    return Bags([0, 30_000], [0, 1], [0, 2, 4], [0, 30_000, 1, 2], [1.0, 2.0, 3.0, 4.0], vocab_size=3)


def many_bags():
    """Bags, so many that F^T F has 3 GB."""
    n = 20_000
    return Bags(np.zeros(n, dtype=int), np.arange(n) % 3, np.arange(n + 1), np.arange(n) % 7, np.ones(n))


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_memory_is_refused_before_it_is_taken(name, call):
    rule = r"leave at most 2,147,483,648 bytes, the limit of memory, to .*, but got [0-9,]+ bytes"
    with pytest.raises(ValueError, match=rf"^`{name}` must {rule}$"):
        call()


# By call: what is foreseen, and its bytes from the shapes of the arrays. CLASSES has two bags of two of three tokens,
# one query and four next tokens, two of which are no bag's and share a column, so that Z has 3 numbers and Y 9.
COUNTED = [
    # F^T F and its factor of 2 x 2, the right-hand sides and what is solved for them: of 2 x 3, or 2 x 2 in x.
    (lambda: flow_of("modified"), {"invert F^T F": 8 * (2 * 4 + 2 * 6), "record states": 8 * 3 * 12}),
    (lambda: flow_of("theory"), {"invert F^T F": 8 * (2 * 4 + 2 * 4), "record states": 8 * 3 * (3 + 2)}),
    # Losses of 5 steps, states at 0, 2, 4, 5; a token and a count of up to 2 entries a bag and 3 numbers beside; 6
    # places.
    (
        lambda: sgd(CLASSES, **RATES, steps=5, record_every=2, batch_size=3, length=7),
        {"record losses and states": 8 * (5 + 4 * 12), "draw a batch": 16 * 3 * 5, "weigh positions": 24 * 6},
    ),
    # Nine copies of Z and of Y with all its columns: what is drawn, the layer, up to four matrices of the optimizer,
    # three that are recorded.
    (lambda: sgd(CLASSES, **RATES, steps=1, init="uniform"), {"start at 'uniform'": 9 * 8 * 15}),
    (
        lambda: sgd(CLASSES, **RATES, steps=1, batch_size=None, length=None, objective=Objective(label_smoothing=0.1)),
        {"hold targets": 8 * 2 * 3},
    ),
    # 4 classes of 10 common and 40 distinct tokens; 5 of one common token and two distinct ones.
    (lambda: SequenceClasses.syn_medium(2), {"list probabilities": 4 * 8 * 4 * 50}),
    (lambda: SequenceClasses.single_common_token(5, 7, distinct=[1.0, 2.0]), {"list probabilities": 6 * 8 * 5 * 3}),
    (lambda: CLASSES.sample(6, length=3, rng=0), {"draw sequences": 16 * 6 * (1 + 2)}),
    # Two tokens in two places: 3 bags a class, of up to 2 tokens.
    (lambda: CLASSES.all_sequences(length=3), {"list bags": 64 * 2 * 3 * 2}),
]


def flow_of(decoder):
    options = {"t_end": 2.0, "n_times": 3, "solver": Solver(reduce="none")}
    return gradient_flow(CLASSES, **RATES, decoder=decoder, **options)


@pytest.mark.parametrize(("call", "expected"), COUNTED)
def test_bytes_are_those_of_the_arrays(call, expected, monkeypatch):
    """A run is refused for the size of its arrays, computed by hand, and for no more or less."""
    found = {}
    monkeypatch.setattr(checks, "fits_in_memory", lambda name, size, what: found.setdefault(what, int(size)))
    call()
    assert {what: found[what] for what in expected} == expected


def test_a_step_of_minutes_is_refused():
    with pytest.raises(ValueError, match=r"`length` must leave at most 1,073,741,824 tokens to draw a step"):
        sgd(CLASSES, **RATES, steps=1, length=10**7, batch_size=1000)


def test_what_fits_is_not_refused():
    checks.fits_in_memory("x", 2**31, "do this")
    with pytest.raises(ValueError, match="2,147,483,649 bytes"):
        checks.fits_in_memory("x", 2**31 + 1, "do this")


def test_the_bound_is_that_of_this_machine():
    pytest.importorskip("resource")
    import subprocess
    import sys

    with Limits():
        assert 2**28 < checks.memory() <= 2**50
    code = "from dynamics.support import checks; print(checks.memory())"
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({2**32}, {2**32})); {code}"
    found = int(subprocess.run([sys.executable, "-c", limited], check=True, capture_output=True, text=True).stdout)
    assert found == 2**32


@pytest.mark.parametrize(("eta_z", "method"), [(1e6, "DOP853"), (1e12, "RK23")])
@Limits(evaluations=3000)
def test_a_stiff_flow_ends(eta_z, method):
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


def test_records_of_a_large_run_are_counted_by_what_they_keep(monkeypatch):
    """Four of them: attention and logits of 4 pairs, twice, and the objects of Python that hold them."""
    found = {}
    monkeypatch.setattr(checks, "fits_in_memory", lambda name, size, what: found.setdefault(what, int(size)))
    with Limits(tables=1):
        sgd(CLASSES, **RATES, steps=5, record_every=2)
    assert found["record losses and states"] == 8 * 5 + 4 * (32 * 4 + 360)
