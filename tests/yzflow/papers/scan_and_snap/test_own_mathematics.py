"""The mathematics of the panel for a reader's own classes gives what Python's gives."""

import numpy as np
import pytest
from explorer_pages import close, mathematics

from dynamics import SequenceClasses, Solver, gradient_flow
from theory.scan_and_snap._register import assumptions
from yzflow.papers.scan_and_snap.own_panel import PANEL
from yzflow.papers.scan_and_snap.settings import Setting


@pytest.fixture(scope="module")
def run(shared_browser, tmp_path_factory):
    """Evaluate an expression beside the panel's mathematics, with `x` as its argument."""
    return mathematics(shared_browser, tmp_path_factory, (PANEL.folder, "mathematics.js"))


COUNTS = [[10, 5, 3, 0, 0, 0], [10, 0, 0, 6, 2, 0], [2, 1, 0, 0, 4, 8]]
SETS = {
    "unequal overlaps and weights": {"M": 50, "queries": [0, 0, 0], "counts": COUNTS, "weights": [3, 1, 2]},
    "two queries, no unseen next token, a token that never occurs": {
        "M": 4,
        "queries": [1, 0, 1, 0],
        "counts": [[1, 2, 0, 0, 0], [1, 0, 3, 0, 0], [1, 0.5, 0.5, 0, 0], [0, 1, 0, 2, 0]],
        "weights": [1, 1, 1, 1],
    },
    "huge and small numbers, weights apart": {
        "M": 1000,
        "queries": [0, 0],
        "counts": [[1e8, 9e8], [3e-4, 1e-4]],
        "weights": [1, 9],
    },
}


def classes_of(given):
    counts = np.array(given["counts"], dtype=float)
    weights = np.array(given["weights"], dtype=float)
    return SequenceClasses(
        counts / counts.sum(axis=1, keepdims=True),
        given["queries"],
        vocab_size=given["M"],
        class_weights=weights / weights.sum(),
    )


@pytest.mark.parametrize("level", ["full", "modified"])
@pytest.mark.parametrize(("eta_y", "eta_z", "t_end"), [(20.0, 3.0, 1e4)])
@pytest.mark.parametrize("name", SETS)
def test_flow_is_that_of_gradient_flow(run, name, level, eta_y, eta_z, t_end):
    """Logits, attention and probabilities over time, to 1e-6."""
    given = SETS[name]
    times = np.concatenate([[0.0], np.geomspace(t_end / 1e4, t_end, 12)])
    options = {"rtol": 1e-11, "atol": 1e-13, "solver": Solver(time_scale="log")}
    flow = gradient_flow(
        classes_of(given), eta_y=eta_y, eta_z=eta_z, t_end=t_end, times=times, decoder=level, **options
    ).dataset
    x = {"given": given, "rates": {"etaY": eta_y, "etaZ": eta_z}, "t": times.tolist()}
    rows = run(f"yzflow.own.flow('{level}', x.given, x.rates, x.t)", x)
    np.testing.assert_allclose([row["z"] for row in rows], flow["z"].to_numpy(), rtol=1e-6, atol=1e-8)
    attention = np.array([row["attention"] for row in rows], dtype=float)
    expected = flow["attention"].to_numpy()
    occurs = np.array(given["counts"]) > 0
    assert np.isnan(attention[:, ~occurs]).all()
    np.testing.assert_allclose(attention[:, occurs], expected[:, occurs], atol=1e-7)
    assert np.ptp(attention[:, occurs], axis=0).max() > 0.01  # attention moves


def test_eigenvalues_of_symmetric_matrices(run):
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 8):
        matrix = rng.normal(size=(size, size))
        for symmetric in (matrix + matrix.T, np.ones((size, size)), np.zeros((size, size))):
            found = run("yzflow.own.eigenvalues(x)", symmetric.tolist())
            np.testing.assert_allclose(found, np.linalg.eigvalsh(symmetric), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SETS)
def test_margins_are_those_of_the_register(run, name):
    given = SETS[name]
    classes = classes_of(given)
    found = run("yzflow.own.margins(x.given, x.rates)", {"given": given, "rates": {"etaY": 3.0, "etaZ": 0.2}})
    setting = Setting("own", classes, 3.0, 0.2, 10.0)
    for key, assumption in {
        "fast": assumptions.FAST_DECODER,
        "many": assumptions.MANY_TOKENS,
        "upper": assumptions.UPPER,
        "lower": assumptions.LOWER,
        "uniform": assumptions.UNIFORM,
        "equal": assumptions.EQUAL_OVERLAPS,
        "common": assumptions.ONE_COMMON,
        "query": assumptions.ONE_QUERY,
    }.items():
        assert found.pop(key) == pytest.approx(assumption.margin(setting), rel=2e-9), key
    assert not found
    close(run("yzflow.own.overlaps(x)", given), classes.overlap(), 1e-12)


def test_classes_with_the_same_ratios_are_dependent(run):
    given = {"M": 9, "queries": [0, 0], "counts": [[1, 2], [3, 6]], "weights": [1, 1]}
    assert run("yzflow.own.independent(x)", given) is False
    assert run("yzflow.own.independent(x)", given | {"counts": [[1, 2], [3, 6.01]]}) is True
