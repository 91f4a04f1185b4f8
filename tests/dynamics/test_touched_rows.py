"""SGD that touches only the rows of its batch, and trajectories that keep only what occurs: against plain loops."""

import driving
import numpy as np
import pytest
import reference
import scipy.sparse
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Bags, Layer, Limits, SequenceClasses, Trajectory, sgd
from dynamics._engine.sgd import steps
from dynamics._model.weights import Weights
from dynamics.optimizers.table import Moments, Velocity

KINDS = [("sgd", 0.0), ("sgd", 0.9), ("adam", 0.9)]


@st.composite
def rare_bags(draw):
    """Many bags of few tokens, with one next token each: a step meets few of the rows."""
    n, n_tokens, n_queries, n_targets = (draw(st.integers(2, most)) for most in (12, 20, 4, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = rng.integers(1, 4, (n, n_tokens)) * (rng.random((n, n_tokens)) < 0.15)
    counts[np.arange(n), rng.integers(0, n_tokens, n)] += 1
    sizes = {"n_queries": n_queries, "vocab_size": n_targets + draw(st.integers(0, 3))}
    query, target = rng.integers(0, n_queries, n), rng.integers(0, n_targets, n)
    return Bags.from_dense(query, target, counts, rng.dirichlet(np.ones(n)), **sizes)


def batches(bags, **options):
    """The batches of a run, as Bags."""
    run, found = driving.start(bags, **options), []
    for _ in range(options["steps"]):
        rows, weight = [], []
        for group in driving.draw_batch(run):
            for count, share in zip(group["count"], group["weight"], strict=True):
                dense = np.zeros(bags.n_tokens)
                dense[group["token"]] = count
                rows.append((group["query"], group["target"], dense))
                weight.append(share)
        query, target, dense = zip(*rows, strict=True)
        found.append(Bags.from_dense(query, target, np.array(dense), np.array(weight, float), **bags.sizes))
    return found


@settings(max_examples=13)
@given(st.data(), st.sampled_from(KINDS), st.booleans())
def test_numbers_are_those_of_the_textbook_loops(draws, kind, entries):
    """Each step's batch through dense NumPy gradients; rows that it misses move on, as usual optimisers have it."""
    bags, (optimizer, momentum) = draws.draw(rare_bags()), kind
    options = {"eta_y": 0.8, "eta_z": 0.3, "steps": 30, "batch_size": 1, "length": 6, "seed": 3, "momentum": momentum}
    drawn = iter(batches(bags, **options, optimizer=optimizer))

    def slopes(state):
        return reference.full_flow(next(drawn), *state)

    zero = [np.zeros((bags.n_queries, bags.n_tokens)), np.zeros((bags.n_tokens, bags.vocab_size))]
    if optimizer == "adam":
        expected = reference.adam_loop(slopes, zero, (0.3, 0.8), 30)
    else:
        expected = reference.momentum_loop(slopes, zero, (0.3, 0.8), 30, momentum)
    with pytest.MonkeyPatch.context() as patch:
        # Entries of Z are followed one by one where its rows count as long.
        patch.setattr("dynamics._engine.sgd.run._ROW", 0 if entries else 2**12)
        run = sgd(strategies.Population(bags), optimizer=optimizer, record_every=7, **options)
    # Adam divides a gradient that is zero but for round-off by itself plus 1e-8.
    tolerance = 1e-7 if optimizer == "adam" else 1e-12
    for ours, theirs in zip((run.final.Z, run.final.expand().Y), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1.0, np.abs(theirs).max()))
    assert np.abs(expected[1]).max() > 0.1


# Adam's kernels of float32 are compiled apart, for 4 s.
@pytest.mark.parametrize("missed", [1, 1000])
@pytest.mark.parametrize(
    "optimizer, momentum, dtype",
    [(*kind, "float64") for kind in KINDS]
    + [pytest.param(*kind, "float32", marks=pytest.mark.slow if kind[0] == "adam" else ()) for kind in KINDS],
)
def test_missed_steps_are_those_of_a_zero_gradient(optimizer, momentum, dtype, missed):
    """Catching up against the textbook loop with gradients g, 0, 0, ..: the state, and the moments."""
    gradient = np.random.default_rng(0).normal(size=(2, 5))
    kind, empty = optimizer == "adam", np.zeros((0, 0), dtype)
    x = np.zeros((2, 5), dtype)
    m, v = (0.1 * gradient, 0.001 * gradient**2) if kind else (gradient, np.zeros((2, 5)))
    m, v, slope = m.astype(dtype), v.astype(dtype), np.ones((2, 5), dtype)
    rate, mu = np.dtype(dtype).type(0.1), np.dtype(dtype).type(momentum)
    # Row 1 had its gradient at step 1, row 0 never; the layer has no V and no hidden layer.
    last = (np.zeros(1, np.int64), np.array([0, 1]), *np.zeros((2, 0), np.int64))
    nothing = (empty,) * 5
    weights, slopes, first, second = (Weights(np.zeros((1, 1), dtype), a, *nothing) for a in (x, slope, m, v))
    memory = steps.Memory(slopes if kind else first, first, second, last)
    steps.catch_up(weights, memory, Moments((rate,) * 4) if kind else Velocity(mu, (rate,) * 4), 1 + missed)
    every = iter([gradient] + [np.zeros((2, 5))] * missed)
    if kind:
        total = reference.adam_loop(lambda _: [next(every)], [np.zeros((2, 5))], (0.1,), 1 + missed)[0]
        before = reference.adam_loop(lambda _: [gradient], [np.zeros((2, 5))], (0.1,), 1)[0]
        kept = (0.1 * gradient * 0.9**missed, 0.001 * gradient**2 * 0.999**missed)
    else:
        total = reference.momentum_loop(lambda _: [next(every)], [np.zeros((2, 5))], (0.1,), 1 + missed, momentum)[0]
        before = 0.1 * gradient
        kept = (gradient * momentum**missed, np.zeros((2, 5)))
    tolerance = {"float64": 1e-13, "float32": 5e-6}[dtype]
    np.testing.assert_allclose(x[1], (total - before)[1], rtol=tolerance, atol=tolerance)
    for ours, theirs in zip((m, v), kept, strict=True):
        np.testing.assert_allclose(ours[1], theirs[1], rtol={"float64": 1e-11, "float32": 1e-3}[dtype], atol=1e-40)
    assert (x[0] == 0).all() and last[1].tolist() == [0, 1 + missed]


def small(vocab_size=9):
    table = [[0.3, 0.2, 0.5, 0, 0], [0.2, 0.3, 0, 0.5, 0], [0.4, 0, 0, 0, 0.6]]
    return SequenceClasses(table, [2, 4, 2], vocab_size=vocab_size)


OPTIONS = {"eta_y": 0.5, "eta_z": 0.4, "steps": 40, "batch_size": 2, "length": 9, "seed": 3, "record_every": 7}


@pytest.mark.parametrize(
    ("change", "vocab_size"), [({}, 9), ({"optimizer": "adam"}, 3), ({"batch_size": None, "length": None}, 9)]
)
def test_both_layouts_say_the_same(change, vocab_size, tmp_path):
    """Every observable of the layout of large runs is that of the dense one; it comes back from its file."""
    options = OPTIONS | change
    dense = sgd(small(vocab_size), **options)
    with Limits(tables=1):
        large = sgd(small(vocab_size), **options)
    assert "entry" in large.dataset.dims and "entry" not in dense.dataset.dims
    large.save(tmp_path / "run.nc")
    for run in (large, Trajectory.load(tmp_path / "run.nc")):
        for tokens in ("distinct", "all"):
            np.testing.assert_allclose(run.attention_entropy(tokens), dense.attention_entropy(tokens), atol=1e-12)
        np.testing.assert_array_equal(run.recall([0.1, 0.5]), dense.recall([0.1, 0.5]))
        for name in ("loss", "batch_loss", "query_of", "time", "next_token", "multiplicity"):
            np.testing.assert_allclose(run.dataset[name], dense.dataset[name], rtol=1e-14)
        np.testing.assert_allclose(run.growth_factor(1, 3), dense.growth_factor(1, 3), rtol=1e-14)
        np.testing.assert_allclose(run.relative_gain(0, 2, 0), dense.relative_gain(0, 2, 0), rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(run.surviving_tokens(1, 0.3), dense.surviving_tokens(1, 0.3))
        for name in ("y", "z"):
            last = dense.row_sums()[name].isel(time=[-1])
            found = run.row_sums()[name].transpose(*last.dims)
            np.testing.assert_array_equal(found["time"], last["time"])
            np.testing.assert_allclose(found, last, atol=1e-14)
        np.testing.assert_array_equal(run.final.Z, dense.final.Z)
        np.testing.assert_array_equal(run.final.Y, dense.final.Y)
        with pytest.raises(ValueError, match="`next_token` must be"):
            run.growth_factor(17, 0)
        with pytest.raises(ValueError, match="`token` must occur with next token 0, but got 3"):
            run.relative_gain(0, 3, 0)


def test_what_is_large_goes_by_the_bytes_of_all_states():
    """Two queries of five tokens, Y with a column for all other next tokens, and attention of three bags; 7 times."""
    own, size = OPTIONS | {"steps": 6, "record_every": 1}, 8 * 7 * (2 * 5 + 5 * 4 + 3 * 5)
    start = Layer.zeros(small().population())
    values = Layer(start.Z, start.Y, np.eye(5), start.multiplicity)
    for bound, large in ((size - 1, True), (size, False)):
        with Limits(tables=bound):
            assert ("entry" in sgd(small(), **own).dataset.dims) is large
            # A layer with values has no form that keeps less.
            assert "entry" not in sgd(small(), **own, init=values, eta_v=0.0).dataset.dims


def test_loss_and_attention_are_measured_on_what_is_given():
    classes, held_out = small(), small().sample(5, length=9, rng=1)
    run = sgd(classes, **OPTIONS, evaluate=held_out)
    assert run.dataset["loss"].values[-1] == pytest.approx(run.final.loss(held_out), rel=1e-12)
    assert (sgd(classes, **OPTIONS).final.Y == run.final.Y).all()


def large_classes(n_classes, n_tokens=50_272, seed=0):
    """Supports of 20 to 200 tokens anywhere in the vocabulary, one query."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 201, n_classes)
    token = np.concatenate([rng.choice(n_tokens, size, replace=False) for size in sizes])
    share = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    table = scipy.sparse.csr_array((share, token, indptr), shape=(n_classes, n_tokens))
    return SequenceClasses(table, np.zeros(n_classes, int), vocab_size=n_tokens)


@Limits(tables=2**27)  # which the full number of classes goes beyond anyway
def test_a_real_vocabulary_has_no_table_of_all_its_pairs():
    classes = large_classes(319)  # 320 columns, which need no padding
    support = classes.probabilities.nnz
    options = {"eta_y": 0.5, "eta_z": 0.1, "steps": 4, "batch_size": 16, "dtype": "float32", "record_every": 4}
    run = sgd(classes, **options)
    final = run.final
    assert final.Y.dtype == np.float32 and final.vocab_size == 50_272 and final.Y.shape == (50_272, 320)
    others = [variable for name, variable in run.dataset.variables.items() if name != "y_final"]
    assert max(variable.size for variable in others) <= max(2 * support, 50_272)
    assert run.dataset["loss"].values[0] == pytest.approx(np.log(50_272), rel=1e-6)
    assert run.dataset["batch_loss"].values[-1] < run.dataset["batch_loss"].values[0]
    # 64 sequences of 127 tokens: rows that none of them has were never written to.
    assert (np.abs(final.Y).max(axis=1) > 0).sum() <= 64 * 127
    assert np.abs(run.row_sums()["y"]).max() < 1e-4 * np.abs(final.Y).sum(axis=1).max()
