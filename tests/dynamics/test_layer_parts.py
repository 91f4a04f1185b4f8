"""Optional parts of the layer and of the objective: every gradient against a complex step through plain NumPy.

LN's mean and floor, the hidden layer, embeddings, the squared loss and the contrastive regulariser, alone and together,
in `Layer`, in the flow and in SGD.
"""

import driving
import numpy as np
import pytest
import reference
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Bags, Embedding, Layer, Objective, Trajectory, gradient_flow, sgd
from dynamics._engine.sgd.run import SgdRun
from dynamics._model import kernels
from dynamics._model.problem import Problem
from dynamics.descent import _DEFAULTS
from dynamics.layer import in_precision, moved

PARTS = ("hidden", "center", "floor", "no norm", "embedding", "identity")


def build(bags, parts, seed):
    """A generic layer with some parts; its floor lies among the norms, so that bags fall on either side of it."""
    rng = np.random.default_rng(seed)
    n_tokens = max(bags.n_tokens, bags.n_queries)
    n_values = n_tokens if "identity" in parts else 4
    units = 5
    hidden = rng.normal(size=(n_values + 1, units)) if "hidden" in parts else None
    Y = rng.normal(size=(n_values if hidden is None else units, bags.vocab_size))
    V = None if "identity" in parts else rng.normal(size=(n_tokens, n_values))
    options = {"hidden": hidden, "center": "center" in parts and V is not None}
    if "no norm" in parts and V is not None:
        options |= {"center": False, "normalisation": None}
    if "embedding" in parts:
        vectors = rng.normal(size=(n_tokens, 3))
        keys, queries = rng.normal(size=(2, 2, 3))
        embedding = Embedding(vectors, keys, queries, None if V is None else rng.normal(size=(n_values, 3)))
        layer = Layer.embedded(embedding, Y, **options)
    else:
        layer = Layer(rng.normal(size=(n_tokens, n_tokens)), Y, V, **options)
    if "floor" not in parts or V is None or layer.normalisation is None:
        return layer
    norms = [np.linalg.norm(before_ln(layer, layer.weights, counts, q)) for counts, q in bag_list(bags, layer)]
    return build_floor(layer, float(np.median(norms)) * 1.001)


def build_floor(layer, floor):
    if layer.embedding is not None:
        return Layer.embedded(layer.embedding, layer.Y, hidden=layer.hidden, center=layer.center, floor=floor)
    return Layer(layer.Z, layer.Y, layer.V, hidden=layer.hidden, center=layer.center, floor=floor)


def bag_list(bags, layer):
    counts = np.zeros((len(bags), layer.Z.shape[1]))
    counts[:, : bags.n_tokens] = reference.dense_counts(bags)
    return list(zip(counts, bags.query, strict=True))


def before_ln(layer, weights, counts, query):
    Z, _, V, _, keys, queries, values = weights
    if layer.embedding is not None:
        e = layer.embedding.vectors
        Z = np.array([[e[s] @ keys.T @ queries @ e[q] for s in range(len(e))] for q in range(len(e))])
        V = e @ values.T if values.size else V
    x = reference.attend(counts, Z[query])
    x = V.T @ x if V.size else x
    return x - x.mean() if layer.center else x


def logits(layer, weights, counts, query):
    """(6)-(8) of Wen et al. with an optional hidden layer; accepts complex weights."""
    x = before_ln(layer, weights, counts, query)
    norm = np.sqrt((x * x).sum())
    f = x if layer.normalisation is None else x / (norm if norm.real > layer.floor else layer.floor)
    hidden = weights[3]
    if hidden.size:
        f = f @ hidden[:-1] + hidden[-1]
        f = np.where(f.real > 0, f, 0)
    return weights[1].T @ f


def objective(bags, layer, weights, criterion="cross-entropy", contrast=None, contrast_weight=0.0):
    """The loss written from its definition, bag by bag and insertion by insertion."""
    total = 0
    targets = reference.dense_targets(bags)
    for (counts, query), target, weight in zip(bag_list(bags, layer), targets, bags.weight, strict=True):
        u = logits(layer, weights, counts, query)
        total = total + weight * (
            ((u - target) ** 2).sum() if criterion == "squared" else -target @ reference.log_softmax(u)
        )
        if contrast is None:
            continue
        for (more, _), share in zip(bag_list(contrast, layer), contrast.weight, strict=True):
            difference = u - logits(layer, weights, counts + more, query)
            total = total + contrast_weight * weight * share * (difference**2).mean()
    return total


def complex_step(bags, layer, **options):
    """Minus the derivative of the objective with respect to each weight: the gradient of J."""
    return reference.complex_step(lambda *moved: -objective(bags, layer, moved, **options), layer.weights)


def gradient(bags, layer, **options):
    problem = Problem(bags, layer, Objective(**options))
    slopes = problem.zeros()
    loss = problem.loss_and_gradient(layer.weights, slopes)
    if layer.embedding is not None:
        slopes = slopes._replace(Z=np.zeros((0, 0)), V=np.zeros((0, 0)))
    return loss, slopes


def insertions_for(bags, seed, n=2):
    """Insertions that share some tokens with the bags and bring others."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 3, size=(n, bags.n_tokens)) * rng.random((n, bags.n_tokens))
    counts[:, 0] += 0.5
    return Bags.from_dense(np.zeros(n, int), np.zeros(n, int), counts, rng.dirichlet(np.ones(n)))


subsets = st.sets(st.sampled_from(PARTS)).map(sorted)
# Each combination of values, hidden layer, criterion and contrast is a kernel of its own, of 2 s to compile. These,
# from one part or all of them, have each pair of choices; in parts an identity stands for no values.
OF_VALUES = [([], "cross-entropy", False), (["hidden"], "squared", True)]
KINDS = [
    *OF_VALUES,
    (["identity"], "cross-entropy", False),
    (["identity", "hidden"], "cross-entropy", False),
    (["identity"], "squared", False),
    (["identity"], "cross-entropy", True),
    *OF_VALUES,  # again, for the parts that need values
]
COMMON = st.sets(st.sampled_from([part for part in PARTS if part not in ("hidden", "identity")])).map(sorted)


def assert_complex_step(bags, parts, criterion, contrasted, seed):
    """To 1e-9 of the largest slope."""
    layer = build(bags, parts, seed)
    options = {"criterion": criterion}
    if contrasted:
        options |= {"contrast": insertions_for(bags, seed), "contrast_weight": 0.7}
    value, slopes = gradient(bags, layer, **options)
    assert value == pytest.approx(float(np.real(objective(bags, layer, layer.weights, **options))), rel=1e-10)
    for ours, exact in zip(slopes, complex_step(bags, layer, **options), strict=True):
        assert ours.shape == exact.shape
        np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-9 * max(1.0, np.abs(exact).max(initial=0)))


@settings(max_examples=24)
@given(strategies.bags(max_bags=3), st.sampled_from(KINDS), COMMON, strategies.SEEDS)
def test_gradient_is_the_complex_step_derivative(bags, kind, more, seed):
    """For kinds with each pair of parts and objectives, and any of the parts that are no kinds."""
    parts, criterion, contrasted = kind
    assert_complex_step(bags, [*parts, *more], criterion, contrasted, seed)


@given(strategies.bags(max_bags=4), subsets, strategies.SEEDS)
def test_predictions_are_those_of_the_definition(bags, parts, seed):
    layer = build(bags, parts, seed)
    expected = [np.real(logits(layer, layer.weights, counts, q)) for counts, q in bag_list(bags, layer)]
    np.testing.assert_allclose(layer.logits(bags), expected, rtol=1e-10, atol=1e-12)
    alpha = [reference.softmax(u) for u in expected]
    np.testing.assert_allclose(layer.predict(bags), alpha, rtol=1e-10, atol=1e-14)


def some_bags(seed=0, n=5):
    rng = np.random.default_rng(seed)
    return Bags.from_dense(rng.integers(3, size=n), rng.dirichlet(np.ones(4), n), rng.exponential(size=(n, 5)))


# Of the kinds above, so that these compile nothing more.
FEW = [
    (["hidden", "center", "floor"], "squared", True),
    (["hidden", "no norm", "embedding"], "squared", True),
    (["embedding"], "cross-entropy", False),
    (["embedding", "identity"], "cross-entropy", True),
    (["hidden", "embedding", "floor"], "squared", True),
]


# Adam with values, a hidden layer and an embedding, whose moments are those of every array.
@pytest.mark.parametrize(
    ("parts", "criterion", "contrasted", "optimizer"), [*((*case, "sgd") for case in FEW), (*FEW[4], "adam")]
)
def test_full_batch_steps_follow_the_gradient(parts, criterion, contrasted, optimizer):
    """Two steps against a loop over the complex-step gradient, with a rate of its own for each part."""
    bags = some_bags(n=3)
    layer = build(bags, parts, 1)
    options = {"criterion": criterion}
    if contrasted:
        options |= {"contrast": insertions_for(bags, 2), "contrast_weight": 0.3}
    rates = {"eta_y": 0.02, "eta_z": 0.03}
    if layer.V is not None:
        rates["eta_v"] = 0.01
    if layer.hidden is not None:
        rates["eta_hidden"] = 0.05
    eta = (0.03, 0.02, 0.01, 0.05, 0.03, 0.03, 0.01)
    run = sgd(
        bags, **rates, objective=Objective(**options), steps=2, batch_size=None, length=None, momentum=0.5,
        optimizer=optimizer, init=layer,
    )  # fmt: skip

    def gradient(weights):
        return complex_step(bags, moved(layer, weights), **options)

    loop = (reference.momentum_loop, (0.5,)) if optimizer == "sgd" else (reference.adam_loop, ())
    weights = loop[0](gradient, layer.weights, eta, 2, *loop[1])
    for ours, exact in zip(run.final.weights, weights, strict=True):
        np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-9)
    assert run.final.center == layer.center and run.final.floor == layer.floor
    assert run.dataset["batch_loss"].values[0] == pytest.approx(
        objective(bags, layer, layer.weights, **options), rel=1e-10
    )


@pytest.mark.parametrize(("parts", "criterion", "contrasted"), [FEW[0], FEW[3]])
def test_the_flow_is_the_limit_of_full_batch_steps(parts, criterion, contrasted, tmp_path):
    """Halving the rates halves the distance; and dZ/dt, also through an embedding, is that of the recorded Z."""
    bags = some_bags()
    layer = build(bags, parts, 1)
    contrast = {"contrast": insertions_for(bags, 2), "contrast_weight": 0.3} if contrasted else {}
    options = {"objective": Objective(criterion, **contrast)}
    flow = gradient_flow(
        bags, eta_y=0.2, eta_z=0.3, t_end=1.0, init=layer, times=[0.0, 0.49, 0.5, 0.51, 1.0], **options
    )
    distances = []
    for steps in (50, 100):
        rates = {"eta_y": 0.2 / steps, "eta_z": 0.3 / steps}
        run = sgd(
            bags, **rates, **options, steps=steps, batch_size=None, length=None, momentum=0.0, init=layer,
            record_every=steps,
        )  # fmt: skip
        pairs = zip(run.final.weights, flow.final.weights, strict=True)
        distances.append(max(np.abs(a - b).max(initial=0) for a, b in pairs))
    assert 1.9 < distances[0] / distances[1] < 2.1
    z = flow.dataset["z"].values
    np.testing.assert_allclose((z[3] - z[1]) / 0.02, flow.dataset["z_velocity"].values[2], rtol=1e-3, atol=1e-6)
    path = tmp_path / "flow.nc"
    flow.save(path)
    for ours, kept in zip(flow.final.weights, Trajectory.load(path).final.weights, strict=True):
        np.testing.assert_array_equal(ours, kept)
    assert repr(Trajectory.load(path).final) == repr(flow.final)
    assert flow.final.center == layer.center and flow.final.floor == layer.floor


def test_every_bag_of_a_batch_comes_with_an_insertion():
    """Pairs of a drawn batch, over the tokens of both: the second less the first is an insertion, by its weight."""
    bags, insertions = some_bags(n=4), insertions_for(some_bags(n=4), 3, n=3)
    layer = build(bags, ["identity"], 0)
    n = 1000
    options = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, "batch_size": n, "length": None, "init": layer}
    run = SgdRun(bags, **_DEFAULTS | options | {"objective": Objective(contrast=insertions, contrast_weight=0.25)})
    found = np.zeros(3)
    for group in driving.draw_batch(run):
        dense = np.zeros((2, 5))
        dense[:, group["token"]] = group["count"]
        np.testing.assert_allclose(group["weight"], [1 / n, 0.25 / n])
        own = np.abs(reference.dense_counts(bags) - dense[0]).sum(axis=1)
        assert own.min() < 1e-12 and bags.query[own.argmin()] == group["query"]
        np.testing.assert_array_equal(group["target"], bags.target[own.argmin()])
        difference = np.abs(reference.dense_counts(insertions) - (dense[1] - dense[0])).sum(axis=1)
        assert difference.min() < 1e-12
        found[difference.argmin()] += 1
    assert found.sum() == n
    # Five standard deviations of each binomial count: false alarm below 2e-6.
    expected = n * insertions.weight
    assert (np.abs(found - expected) < 5 * np.sqrt(expected * (1 - insertions.weight))).all()


@pytest.mark.parametrize(
    "parts",
    [
        ["identity"],
        ["embedding", "identity"],
        pytest.param(["embedding"], marks=pytest.mark.slow),
    ],
)
def test_single_precision_layers_are_the_double_ones(parts):
    """A layer's results have the precision of its arrays; of mixed arrays, the higher one."""
    bags, double = some_bags(), build(some_bags(), parts, 1)
    single = moved(double, [array.astype(np.float32) for array in double.weights])
    if single.embedding is not None:
        single = Layer.embedded(in_precision(double.embedding, np.float32), double.Y.astype(np.float32))
    assert single.predict(bags).dtype == np.float32 and single.gradient(bags).Z.dtype == np.float32
    for compute in (lambda x: x.predict(bags), lambda x: x.attention(bags), lambda x: x.gradient(bags).Y):
        np.testing.assert_allclose(compute(single), compute(double), rtol=0, atol=3e-6)
    assert single.loss(bags) == pytest.approx(double.loss(bags), rel=1e-5)
    if single.embedding is None and single.hidden is None:
        assert Layer(double.Z.astype(np.float32), double.Y, double.V).Z.dtype == np.float64


def test_a_pair_too_large_for_one_product_is_still_compared():
    """With more columns than a product takes, the regulariser is that of the definition and not zero."""
    columns = kernels._TOGETHER // 2
    rng = np.random.default_rng(0)
    bags = Bags.from_dense([0], [1], [[1.0, 2.0, 0.0]], vocab_size=columns)
    layer = Layer(rng.normal(size=(1, 3)), rng.normal(size=(3, columns)))
    insertion = Bags.from_dense([0], [0], [[0.0, 1.0, 3.0]])
    problem = Problem(bags, layer, Objective(contrast=insertion, contrast_weight=100.0))
    joined = Bags.from_dense([0], [1], [[1.0, 3.0, 3.0]], vocab_size=columns)
    expected = layer.loss(bags) + 100 * np.mean((layer.logits(bags) - layer.logits(joined)) ** 2)
    assert problem.loss(layer.weights) == pytest.approx(expected, rel=1e-12)
