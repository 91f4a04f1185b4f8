"""The kernel of small plain layers beside the one of all layers; what is kept with a population, and made later."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Bags, Layer, Limits, Objective, SequenceClasses, gradient_flow
from dynamics._model import small
from dynamics._model.objective import PLAIN
from dynamics._model.problem import Problem
from dynamics._model.small import exp, plain_gradient, small_of
from dynamics.backend import lanes
from dynamics.backend.compiled import kernel
from dynamics.backend.lanes import LANES, highest, load_at, store_at, total
from dynamics.observables import Support

RATES = {"eta_y": 1.0, "eta_z": 0.5, "t_end": 30.0}


@kernel(uses=(lanes, small))
def exponentials(x, out):
    for i in range(0, x.size, LANES):
        store_at(out, i, exp(load_at(x, i)))


@kernel(uses=(lanes,))
def folded(x, i):
    return total(load_at(x, i)), highest(load_at(x, i))


def test_exponentials_are_within_two_units_in_the_last_place():
    """Beside long double, over all that does not underflow; within one where products and sums are one instruction."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-707, 0, 2**14), rng.uniform(-1, 0, 2**14), -(2.0 ** -np.arange(2 * LANES))])
    out = np.empty_like(x)
    exponentials(x, out)
    exact = np.exp(x.astype(np.longdouble))
    assert np.abs((out - exact) / np.spacing(np.exp(x))).max() < 2
    exponentials(np.full(LANES, np.nan), out)
    assert np.isnan(out[:LANES]).all()


def test_a_row_in_one_number():
    x = np.random.default_rng(1).normal(size=2 * LANES)
    sum_, largest = folded(x, 3)
    assert sum_ == pytest.approx(x[3 : 3 + LANES].sum(), rel=1e-14)
    assert largest == x[3 : 3 + LANES].max()


@st.composite
def problems(draw):
    """Bags on two queries, with up to forty next tokens, and weights of any scale."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns, n, tokens = draw(st.integers(1, 40)), draw(st.integers(1, 7)), draw(st.integers(1, 20))
    counts = rng.integers(0, 3, size=(n, tokens)) * draw(st.sampled_from([1.0, 1e-150, 1e150]))
    counts[np.arange(n), rng.integers(tokens, size=n)] += 10.0 ** draw(st.integers(-12, 12))
    bags = Bags.from_dense(
        rng.integers(2, size=n), rng.integers(columns, size=n), counts, rng.dirichlet(np.ones(n)), n_queries=2,
        vocab_size=columns + draw(st.integers(0, 1000)),
    )  # fmt: skip
    zeros, scale = Layer.zeros(bags), draw(st.sampled_from([0.1, 1.0, 30.0, 600.0]))
    return bags, Layer(*(scale * rng.normal(size=part.shape) for part in (zeros.Z, zeros.Y)), None, zeros.multiplicity)


def arguments(problem, layer):
    return small_of(problem.batch, problem.rule, layer.weights)


@given(problems())
@settings(max_examples=30)
def test_loss_and_gradient_are_those_of_any_layer(problem):
    bags, layer = problem
    general = Problem(bags, layer)
    slopes = general.zeros()
    loss = general.loss_and_gradient(layer.weights, slopes)
    own = arguments(general, layer)
    entries = np.concatenate([layer.Z.ravel(), layer.Y.ravel()])
    own.entries[: entries.size] = entries
    own.asked[0] = True
    known = np.concatenate([slopes.Z.ravel(), slopes.Y.ravel()])
    assert plain_gradient(own) == pytest.approx(loss, rel=1e-12, abs=1e-300)
    largest = max(1.0, np.abs(layer.Y).max())
    np.testing.assert_allclose(own.slopes[: entries.size], known, rtol=1e-9, atol=1e-13 * largest)
    own.asked[0] = False
    assert plain_gradient(own) == 0
    np.testing.assert_allclose(own.slopes[: entries.size], 2 * known, rtol=1e-9, atol=2e-13 * largest)


def test_what_is_more_than_plain_has_no_such_kernel():
    bags = SequenceClasses.single_common_token(3, 12).population()
    zeros = Layer.zeros(bags)

    def own(objective=PLAIN, layer=zeros, dtype=None):
        return arguments(Problem(bags, layer, objective, dtype), layer)

    soft = Bags(bags.query, np.eye(3), bags.indptr, bags.token, bags.count, vocab_size=12)
    assert own() is not None
    assert own(Objective("squared")) is None
    assert own(Objective(label_smoothing=0.1)) is None
    assert own(Objective(contrast=bags, contrast_weight=1.0)) is None
    assert own(layer=Layer(zeros.Z, zeros.Y, None, zeros.multiplicity, normalisation="layer")) is None
    assert own(layer=Layer(zeros.Z, zeros.Y, None, zeros.multiplicity, normalisation=None)) is None
    assert (
        own(layer=Layer(zeros.Z, np.zeros((4, zeros.Y.shape[1])), np.ones((bags.n_tokens, 4)), zeros.multiplicity))
        is None
    )
    assert own(dtype=np.float32) is None
    assert arguments(Problem(soft, zeros), zeros) is None


def changed(classes, **changes):
    """The same classes but for one of the arguments."""
    own = {
        "probabilities": classes.probabilities.toarray(),
        "query": classes.query,
        "vocab_size": classes.vocab_size,
        "class_weights": classes.class_weights,
        "token_names": None,
    }
    return SequenceClasses(**(own | changes))


def test_nothing_that_is_kept_is_stale():
    """Each input in turn, after a run that kept what it needs: as in a population of which nothing is kept."""
    classes = SequenceClasses.single_common_token(3, 12)
    gradient_flow(classes, **RATES).dataset  # noqa: B018
    shares = classes.probabilities.toarray()[:, ::-1]
    others = [
        changed(classes),
        changed(classes, probabilities=shares),
        changed(classes, query=[0, 1, 0]),
        changed(classes, vocab_size=13),
        changed(classes, class_weights=[0.2, 0.3, 0.5]),
        changed(classes, token_names=[f"t{i}" for i in range(classes.n_tokens)]),
    ]
    for other in (classes, *others, classes):
        kept = gradient_flow(other, **RATES).dataset
        fresh = gradient_flow(copy.deepcopy(other), **RATES).dataset
        assert kept.drop_attrs().identical(fresh.drop_attrs())
    rates = [{"eta_y": 0.5}, {"eta_z": 0.1}, {"t_end": 31.0}, {"init": Layer(*start(classes))}]
    for change in rates:
        kept = gradient_flow(classes, **(RATES | change)).dataset
        fresh = gradient_flow(copy.deepcopy(classes), **(RATES | change)).dataset
        assert kept.drop_attrs().identical(fresh.drop_attrs())
        assert not np.array_equal(kept["z"], gradient_flow(classes, **RATES).dataset["z"])


def start(classes):
    """Random weights for a population."""
    zeros, rng = Layer.zeros(classes.population()), np.random.default_rng(5)
    return rng.normal(size=zeros.Z.shape), rng.normal(size=zeros.Y.shape), None, zeros.multiplicity


def test_what_is_kept_cannot_be_written_to_and_goes_with_no_copy():
    classes = SequenceClasses.single_common_token(3, 12)
    bags = classes.population()
    assert classes.population() is bags
    assert Layer.zeros(bags) is Layer.zeros(bags)
    support = bags._once(Support, 20)
    assert support is bags._once(Support, 20)
    assert bags._once(Support, 21).n_tokens == 21
    for name in ("present", "starts", "token", "row", "distinct"):
        assert not getattr(support, name).flags.writeable
    dataset = gradient_flow(classes, **RATES).dataset
    dataset["attention"].values[:] = 7
    again = gradient_flow(classes, **RATES).dataset
    assert (again["attention"] <= 1).all()
    for other in (copy.copy(bags), copy.deepcopy(bags), pickle.loads(pickle.dumps(bags))):
        assert "_kept" not in vars(other)
        assert "_kept" in vars(bags)


@pytest.mark.parametrize("n", [3, 40])
def test_a_trajectory_is_the_same_whenever_it_is_read(n):
    """The last layer first, the dataset first, or after a copy; symmetric and not."""
    classes = SequenceClasses.single_common_token(3, 12)
    uneven = changed(classes, class_weights=[0.2, 0.3, 0.5])
    for data in (classes, uneven):
        first, second, third = (gradient_flow(data, n_times=n, **RATES) for _ in range(3))
        early, dataset = first.final, second.dataset
        for other in (copy.deepcopy(third), pickle.loads(pickle.dumps(third)), first):
            assert other is first or "_due" not in vars(other)  # no system goes to another process
            assert other.dataset.drop_attrs().identical(dataset.drop_attrs())
        for late in (first.final, second.final):
            for name in ("Z", "Y", "multiplicity"):
                np.testing.assert_array_equal(getattr(early, name), getattr(late, name))


def test_losses_and_slopes_of_many_states_are_found_in_parts():
    classes = SequenceClasses.single_common_token(3, 12)
    whole = gradient_flow(classes, n_times=20, **RATES).dataset
    with Limits(work=3 * 2**18):  # three states in a call
        parts = gradient_flow(classes, n_times=20, **RATES).dataset
    assert whole.drop_attrs().identical(parts.drop_attrs())
