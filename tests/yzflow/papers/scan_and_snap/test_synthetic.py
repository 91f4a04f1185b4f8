"""The paper's SGD experiments: shapes and labels, independence of threads, single cells by another route."""

import numpy as np
import pytest
import scipy.special
import xarray as xr

from dynamics import SequenceClasses, sgd
from yzflow.papers.scan_and_snap import synthetic
from yzflow.papers.scan_and_snap.tasks.synthetic import THRESHOLDS, WINDOWS

GRID = {"n_queries": [1, 3], "eta_z": [0.5, 2.0], "ratios": [1.0, 5.0], "seeds": 2, "steps": 30}


@pytest.fixture(scope="module")
def medium():
    return synthetic.syn_medium(**GRID)


def alone(n_queries, eta_z, ratio, seed, steps):
    """The run of one cell by `sgd`."""
    classes = SequenceClasses.syn_medium(n_queries)
    return sgd(
        classes, eta_y=ratio * eta_z, eta_z=eta_z, steps=steps, init="uniform", dtype="float32", seed=seed
    ), classes


def test_shapes_and_labels(medium):
    axes = ("n_queries", "eta_z", "ratio", "seed")
    assert medium["entropy"].dims == medium["batch_loss"].dims == axes
    assert medium["recall"].dims == medium["softmax_recall"].dims == (*axes, "threshold")
    assert medium["entropy"].shape == (2, 2, 2, 2)
    for name, values in (("n_queries", [1, 3]), ("eta_z", [0.5, 2.0]), ("ratio", [1.0, 5.0]), ("seed", [0, 1])):
        np.testing.assert_array_equal(medium[name], values)
    np.testing.assert_array_equal(medium["threshold"], THRESHOLDS)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_do_not_depend_on_threads(medium, threads):
    xr.testing.assert_identical(synthetic.syn_medium(**GRID, threads=threads), medium)


def test_results_do_not_depend_on_the_rest_of_the_grid(medium):
    """The cells of a smaller grid, in another order, are those of the larger one."""
    other = synthetic.syn_medium(n_queries=[3, 1], eta_z=[2.0], ratios=[5.0, 1.0], seeds=1, steps=30)
    for name in ("entropy", "recall", "batch_loss"):
        same = medium[name].sel(n_queries=[3, 1], eta_z=[2.0], ratio=[5.0, 1.0], seed=[0])
        xr.testing.assert_identical(other[name], same)


@pytest.mark.parametrize("cell", [(1, 0.5, 5.0, 0), (3, 2.0, 1.0, 1)])
def test_a_cell_is_the_run_of_sgd(medium, cell):
    """Entropy by `Trajectory.attention_entropy`, recall by counting the distinct tokens of `SequenceClasses`."""
    run, classes = alone(*cell, GRID["steps"])
    at = dict(zip(("n_queries", "eta_z", "ratio", "seed"), cell, strict=True))
    own = medium.sel(at)
    entropy = run.attention_entropy().isel(time=-1)
    assert entropy.sizes["next_token"] == 2 * cell[0]
    # The trajectory takes attention in double precision from the float32 logits.
    assert own["entropy"].item() == pytest.approx(entropy.mean().item(), abs=1e-6)
    assert own["batch_loss"].item() == run.dataset["batch_loss"].values[-1]
    # The row of Z that a next token reads, with the tokens that are no contextual ones at logits of zero.
    rows = run.dataset["z"].sel(query=run.dataset["query_of"]).isel(time=-1).values
    padded = np.pad(rows, ((0, 0), (0, classes.vocab_size - rows.shape[1])))
    shares = {"recall": run.dataset["attention"].values[-1], "softmax_recall": scipy.special.softmax(padded, axis=1)}
    for name, share in shares.items():
        for i in range(0, THRESHOLDS.size, 2):
            above = [
                (share[n, classes.distinct_tokens(n)] > own["threshold"].values[i]).mean()
                for n in range(classes.n_classes)
            ]
            # A share within float32 of the threshold may fall on either side: one of all the tokens at most.
            assert own[name].values[i] == pytest.approx(np.mean(above), abs=1.001 / (10 * classes.n_classes))


def test_paper_settings_are_the_defaults():
    """Section 7 of the specification: the grids, 10 seeds, 100 steps, momentum 0.9, batch 128, T = 128."""
    assert synthetic.N_QUERIES == (1, 3, 5, 10) and synthetic.ETA_Z == (0.5, 1, 2, 3)
    assert synthetic.RATIOS == (1, 2, 5, 10) and synthetic.SEEDS == 10 and synthetic.STEPS == 100
    assert synthetic.SMALL_RATES == ((1, 1), (10, 1)) and synthetic.ADAM_RATES == (0.1, 0.5, 1)
    run = synthetic.syn_small(eta_y=1.0, eta_z=1.0)
    expected = {"momentum": 0.9, "batch_size": 128, "length": 128, "init": "zero", "optimizer": "sgd", "steps": 100}
    assert {name: run.parameters[name] for name in expected} == expected
    np.testing.assert_array_equal(run.dataset["time"], np.arange(101))
    assert (run.dataset["z"].values[0] == 0).all() and (run.dataset["y"].values[0] == 0).all()


def test_thresholds_are_dense_in_the_paper_s_windows(medium):
    assert (np.diff(THRESHOLDS) > 1e-9).all()
    for n_queries, (low, high) in WINDOWS.items():
        own = THRESHOLDS[(low - 1e-12 <= THRESHOLDS) & (high + 1e-12 >= THRESHOLDS)]
        assert len(own) >= 20 and own[[0, -1]] == pytest.approx([low, high])
        assert low < 1 / SequenceClasses.syn_medium(n_queries).vocab_size < high
    for n_queries in (1, 3):
        shown = synthetic.window(medium, n_queries)["threshold"].values
        assert shown[[0, -1]] == pytest.approx(WINDOWS[n_queries]) and len(shown) >= 20


def test_descent_is_what_the_curve_loses_over_the_window():
    thresholds = np.array([0.01, 0.028, 0.03, 0.038, 0.1])
    curve = xr.DataArray(
        [[1.0, 0.9, 0.5, 0.2, 0.0]], {"n_queries": [1], "threshold": thresholds}, ["n_queries", "threshold"]
    )
    assert float(synthetic.descent(xr.Dataset({"softmax_recall": curve}), 1)) == pytest.approx(0.7)


def test_a_longer_run_begins_as_a_shorter_one_does():
    """So that the rows of Fig. 4 beyond step 100 continue those before it."""
    short = synthetic.syn_small(eta_y=10.0, eta_z=1.0, steps=20)
    long = synthetic.syn_small(eta_y=10.0, eta_z=1.0, steps=60, record_every=20)
    assert long.dataset["time"].values.tolist() == [0, 20, 40, 60]
    np.testing.assert_array_equal(long.dataset["attention"].sel(time=20), short.dataset["attention"].sel(time=20))
