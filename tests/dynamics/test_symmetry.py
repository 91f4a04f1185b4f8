"""The reduced flow: what is recognised as symmetric, and that the result is that of the whole."""

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Bags, Layer, Limits, Objective, Optimizer, SequenceClasses, Solver, Trajectory, gradient_flow, sgd
from dynamics import layer as layer_module
from dynamics.fields import orbits
from dynamics.fields.symmetry import find_symmetry

pytestmark = pytest.mark.usefixtures("few_classes_reduced")
decoders = st.sampled_from(("full", "modified", "theory"))


def run(data, decoder="full", reduce="auto", time_scale="linear", **options):
    arguments = {"eta_y": 1.0, "eta_z": 0.7, "t_end": 10.0, "n_times": 3, "rtol": 1e-12, "atol": 1e-14}
    solver = Solver(reduce=reduce, time_scale=time_scale)
    return gradient_flow(data, decoder=decoder, solver=solver, **(arguments | options))


def reduction(trajectory):
    return trajectory.dataset.attrs["reduction"]


def assert_same(one, other):
    assert set(one.dataset) == set(other.dataset)
    for name in one.dataset:
        assert reference.scaled_difference(one.dataset[name] * 1.0, other.dataset[name] * 1.0) < 1e-9, name


@st.composite
def symmetric_bags(draw, *, max_unseen=3):
    """Orbits of classes built by hand, in random order and with random names, with and without classes of their own.

    Each kind of class has common tokens, of all and of its own kind only, and own tokens, of which some are twins. A
    kind has one query for all of it, or one for each of its copies, which may hold two classes.
    """
    rng = np.random.default_rng(draw(strategies.SEEDS))
    n_common = draw(st.integers(0, 2))
    common = iter(range(10**6))
    shared = [next(common) for _ in range(n_common)]
    rows, queries, weights = [], [], []
    next_query = 1
    for copies, paired, own_query in draw(
        st.lists(st.tuples(st.sampled_from([1, 3, 4]), st.booleans(), st.booleans()), min_size=1, max_size=3)
    ):
        of_kind = [next(common) for _ in range(rng.integers(0, 2))]
        pattern = [
            (rng.exponential(size=n_common) + 0.1, rng.exponential(size=len(of_kind)) + 0.1,
             np.repeat(rng.exponential(size=2) + 0.3, rng.integers(1, 3, 2)), rng.exponential() + 0.5)
            for _ in range(1 + paired)
        ]  # fmt: skip
        overlap = rng.exponential() + 0.1
        for _ in range(copies):
            between = next(common)
            for p_common, p_kind, p_own, weight in pattern:
                row = dict(zip(shared, p_common, strict=True)) | dict(zip(of_kind, p_kind, strict=True))
                row |= {next(common): p for p in p_own}
                if paired:
                    row[between] = overlap
                rows.append(row)
                queries.append(next_query if own_query else 0)
                weights.append(weight)
            next_query += own_query
    if len(rows) == 1:
        rows, queries, weights = rows * 1 + [{next(common): 1.0}], [*queries, 0], [*weights, 1.0]
    n_tokens = next(common)
    names, order = rng.permutation(n_tokens), rng.permutation(len(rows))
    counts = np.zeros((len(rows), n_tokens))
    for b, row in enumerate(rows):
        for token, p in row.items():
            counts[b, names[token]] = p
    targets = rng.permutation(len(rows) + draw(st.integers(0, max_unseen)))
    return Bags.from_dense(
        np.array(queries)[order],
        targets[: len(rows)],
        counts[order],
        np.array(weights)[order] / np.sum(weights),
        n_queries=next_query + 1,
        vocab_size=targets.size + draw(st.integers(0, max_unseen)),
    )


@given(symmetric_bags(), decoders)
def test_the_reduced_flow_is_the_whole_flow(data, decoder):
    assert_same(run(data, decoder), run(data, decoder, "none"))


@pytest.mark.parametrize("decoder", ["full", "modified", "theory"])
@pytest.mark.parametrize(
    ("data", "variables"),
    [
        # Common token and five own ones: six logits; each against its own, another and unseen next tokens.
        (SequenceClasses.single_common_token(12, 40), {"full": 6 + 2 * 6 + 5, "theory": 6 + 1, "unseen": 6}),
        # As many next tokens as classes: none unseen.
        (SequenceClasses.single_common_token(12, 12), {"full": 6 + 6 + 5, "theory": 6 + 1}),
        # Two groups of twins.
        (
            SequenceClasses.single_common_token(12, 40, distinct=[1, 1, 0.3]),
            {"full": 3 + 2 * 3 + 2, "theory": 3 + 1, "unseen": 3},
        ),
        # Copies are queries with two classes each; ten common tokens are twins.
        (SequenceClasses.syn_medium(6), {"full": 21 + 21 * 3 + 20 * 2, "theory": 21 + 2, "unseen": 21}),
    ],
)
def test_the_number_of_variables_is_that_of_the_orbits(data, variables, decoder):
    found = run(data, decoder, t_end=0.1)
    expected = variables.get(decoder, variables["full"])
    assert f": {expected} variables in place of" in reduction(found)
    # The symmetry is chosen by the full flow's, without the column of next tokens that no bag has.
    assert find_symmetry(data.population()).variables == variables["full"] - variables.get("unseen", 0)


def test_twins_alone_leave_one_kind_that_holds_everything():
    # Tokens 0 and 1 always occur together: two tokens for one query and two next tokens, Z 1 x 2 and Y 2 x 2.
    data = Bags.from_dense([0, 0], [0, 1], [[1, 1, 2], [1, 1, 0]], [0.3, 0.7])
    symmetry = find_symmetry(data)
    (kind,) = symmetry.kinds
    assert (symmetry.tokens.size, symmetry.columns.size, symmetry.queries.size) == (0, 0, 0)
    assert (kind.copies, symmetry.variables) == (1, 1 * 2 + 2 * 2)


@given(strategies.bags(soft=False), st.sampled_from(["linear", "log"]))
def test_any_bags(data, time_scale):
    """Whatever is found, the result does not change."""
    assert_same(run(data, time_scale=time_scale), run(data, "full", "none", time_scale=time_scale))


@given(strategies.sequence_classes(), decoders)
def test_classes_without_symmetry_are_not_reduced(classes, decoder):
    """Random probabilities differ; what is left is that classes have at most one common token and one of their own."""
    trajectory = run(classes, decoder, t_end=1.0)
    symmetry = find_symmetry(classes.population())
    if symmetry is not None:
        assert all(kind.copies == 1 or kind.tokens.shape[1] <= 2 for kind in symmetry.kinds)
    assert_same(trajectory, run(classes, decoder, "none", t_end=1.0))


@pytest.mark.parametrize(
    ("where", "decoder"), [("probability", "full"), ("weight", "modified"), ("query", "theory"), ("query", "full")]
)
def test_nearly_symmetric_classes_are_told_apart(decoder, where):
    """One class of eight differs by 1e-6: it is no copy of the others, and its logits are its own."""
    table = SequenceClasses.single_common_token(8, 20).probabilities.toarray()
    weights, query = np.full(8, 1 / 8), np.zeros(8, dtype=int)
    if where == "probability":
        table[3, [16, 17]] += [1e-6, -1e-6]
    elif where == "weight":
        weights[3] += 1e-6
        weights /= weights.sum()
    else:
        query[3] = 1
    data = SequenceClasses(table, query, vocab_size=20, class_weights=weights)
    found = run(data, decoder, t_end=100.0)
    assert reduction(found).startswith("7 copies of 1 bags")
    assert_same(found, run(data, decoder, "none", t_end=100.0))
    z = found.dataset["z"].values[-1, 0]
    assert (z[16:21] != z[1:6]).all()
    assert (z[6:11] == z[1:6]).all()


def test_a_cycle_is_no_clique():
    """Six classes that share tokens in one ring or in two: every class looks the same from nearby."""

    def rings(*lengths):
        table, start = np.zeros((6, 12)), 0
        for length in lengths:
            for i in range(length):
                table[start + i, [start + i, start + (i + 1) % length, 6 + start + i]] = [0.3, 0.3, 0.4]
            start += length
        return SequenceClasses(table, np.zeros(6, dtype=int), vocab_size=10)

    for data in (rings(6), rings(3, 3)):
        for decoder in ("full", "modified", "theory"):
            assert_same(run(data, decoder), run(data, decoder, "none"))
    assert reduction(run(rings(6))) == "none"
    assert reduction(run(rings(3, 3))).startswith("2 copies of 3 bags")


# Starts


@pytest.mark.parametrize("decoder", ["full", "modified", "theory"])
def test_a_reduced_trajectory_continues_reduced(decoder, tmp_path):
    data = SequenceClasses.single_common_token(6, 20)
    run(data, decoder, t_end=7.0).save(tmp_path / "half.nc")
    half = Trajectory.load(tmp_path / "half.nc")
    rest = run(data, decoder, init=half)
    assert reduction(rest) == reduction(half) != "none"
    whole = run(data, decoder, "none")
    assert reference.scaled_difference(rest.final.Z, whole.final.Z) < 1e-9
    assert reference.scaled_difference(rest.final.Y, whole.final.Y) < 1e-9


@pytest.mark.parametrize("part", ["Z", "Y"])
def test_a_start_without_the_symmetry_is_not_reduced(part):
    data = SequenceClasses.single_common_token(6, 20).population()
    start = Layer.zeros(data)
    parts = {"Z": start.Z.copy(), "Y": start.Y.copy()}
    parts[part][0, -1] += 0.5 if part == "Z" else 0.0
    symmetric = Layer(parts["Z"], parts["Y"], None, start.multiplicity)
    if part == "Y":
        parts["Y"][2, 4] = 0.5
        symmetric = Layer(parts["Z"], parts["Y"], None, start.multiplicity)
    found = run(data, init=symmetric)
    assert reduction(found) == "none"
    assert_same(found, run(data, "full", "none", init=symmetric))


@pytest.mark.parametrize("decoder", ["full", "modified"])
def test_a_symmetric_start_is_reduced(decoder):
    """Own tokens against the own, another and an unseen next token, with a column for every next token."""
    data = SequenceClasses.single_common_token(5, 8).population()
    Z, Y = np.zeros((1, 26)), np.zeros((26, 8))
    for n in range(5):
        own = slice(1 + 5 * n, 6 + 5 * n)
        Z[0, own] = [0.3, -0.2, 0.1, 0.0, 0.5]
        Y[own] = 0.2
        Y[own, 5:] = -0.4
        Y[own, n] = 0.7
    Y[0] = [0.1] * 5 + [-0.3] * 3
    found = run(data, decoder, init=Layer(Z, Y))
    assert reduction(found) == "5 copies of 1 bags: 23 variables in place of 234 logits"
    assert_same(found, run(data, decoder, "none", init=Layer(Z, Y)))
    np.testing.assert_array_equal(found.dataset["y"].values[0], Y)


@pytest.mark.parametrize("decoder", ["full", "modified", "theory"])
def test_a_start_with_tokens_that_occur_nowhere_is_not_reduced(decoder):
    """A layer may be as wide as the vocabulary, of which the classes have a part."""
    classes = SequenceClasses.single_common_token(3, 20, common=2.0)
    assert classes.population().n_tokens < 20
    start = Layer(np.zeros((1, 20)), np.zeros((20, 20)))
    flow = run(classes, decoder, init=start)
    assert reduction(flow) == "none"
    assert_same(flow, run(classes, decoder, reduce="none", init=start))


def test_what_never_occurs_keeps_its_logits():
    data = SequenceClasses.single_common_token(4, 9).population()
    padded = Bags(data.query + 1, data.target, data.indptr, data.token + 2, data.count, n_queries=3, vocab_size=9)
    Z, Y = np.zeros((3, padded.n_tokens)), np.zeros((padded.n_tokens, 9))
    rng = np.random.default_rng(0)
    Z[[0, 2]], Z[:, :2], Y[:2] = rng.normal(size=(2, padded.n_tokens)), rng.normal(size=(3, 2)), rng.normal(size=(2, 9))
    found = run(padded, init=Layer(Z, Y))
    assert reduction(found).startswith("4 copies")
    assert_same(found, run(padded, "full", "none", init=Layer(Z, Y)))
    np.testing.assert_array_equal(found.final.Z[[0, 2]], Z[[0, 2]])
    np.testing.assert_array_equal(found.final.Y[:2], Y[:2])


def test_few_classes_go_whole_where_the_features_are_inverted(monkeypatch):
    monkeypatch.setattr(orbits, "_FEWEST_INVERTED", 12)
    for decoder, reduced in (("full", True), ("modified", False), ("theory", False)):
        assert (reduction(run(SequenceClasses.single_common_token(11, 40), decoder)) != "none") == reduced
        assert reduction(run(SequenceClasses.single_common_token(12, 40), decoder)) != "none"


def test_options_without_reduction():
    data = SequenceClasses.single_common_token(4, 9)
    assert reduction(run(data)) != "none"
    assert reduction(run(data, reduce="none")) == "none"
    assert reduction(run(data, objective=Objective("squared"), t_end=1.0)) == "none"


@pytest.mark.parametrize("decoder", ["full", "modified", "theory"])
def test_a_large_reduced_flow_says_the_same(decoder, monkeypatch):
    """Loss and attention of one copy, without Y of all, are those of the whole flow; twins and unequal weights too."""
    table = [[0.5, 0.25, 0.25, 0, 0, 0, 0], [0.5, 0, 0, 0.25, 0.25, 0, 0], [0.2, 0, 0, 0, 0, 0.5, 0.3]]
    classes = SequenceClasses(table, [0, 0, 0], vocab_size=9, class_weights=[0.3, 0.3, 0.4])
    options = {"eta_y": 0.7, "eta_z": 0.4, "t_end": 60.0, "n_times": 5, "decoder": decoder, "rtol": 1e-12}
    whole = gradient_flow(classes, solver=Solver(reduce="none"), **options)
    # With so few classes the theory's plain system would be cheaper; what is compared is the way of the reduced one.
    monkeypatch.setattr(orbits, "_WORTH", 0.0)
    with Limits(tables=1):
        large = gradient_flow(classes, **options)
    assert large.dataset.attrs["reduction"].startswith("2 copies of 1 bags") and "entry" in large.dataset.dims
    np.testing.assert_allclose(large.dataset["loss"], whole.dataset["loss"], rtol=1e-9)
    np.testing.assert_allclose(large.attention_entropy("all"), whole.attention_entropy("all"), rtol=0, atol=1e-9)
    np.testing.assert_allclose(large.growth_factor(2, 6), whole.growth_factor(2, 6), rtol=1e-8)
    np.testing.assert_allclose(large.dataset["z_final"], whole.final.Z, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="never forms"):
        large.row_sums()


def test_a_reduced_flow_stays_reduced_to_the_end_and_what_is_whole_is_refused_with_its_size(tmp_path):
    """The start of 40,000 copies asked for 60 GiB; its flow has 23 variables. Small flows start from the same zeros."""
    classes = SequenceClasses.single_common_token(40_000, 100_000)
    rates = {"eta_y": 1.0, "eta_z": 0.5}
    with Limits(memory=2**30):
        flow = gradient_flow(classes, **rates, t_end=10.0, n_times=3)
        assert "23 variables in place of 8000440002 logits" in flow.dataset.attrs["reduction"]
        step, slope = "hold every logit, which each step may move", "hold every logit and its slope"
        given = {**rates, "t_end": 10.0}
        for needs, call in (
            (slope, lambda: gradient_flow(classes, **given, solver=Solver(reduce="none"))),
            (slope, lambda: gradient_flow(classes, **given, optimizer=Optimizer("adam"))),
            (step, lambda: sgd(classes, **rates, steps=2)),
        ):
            message = rf"`data` must leave at most 1,073,741,824 bytes, .* to {needs}, but got \d[\d,]+ bytes"
            with pytest.raises(ValueError, match=message):
                call()
    flow.save(tmp_path / "flow.nc")
    assert Trajectory.load(tmp_path / "flow.nc").dataset["loss"].identical(flow.dataset["loss"])


def test_zeros_that_are_one_number_give_the_same_flow(monkeypatch):
    classes = SequenceClasses.single_common_token(30, 300)
    rates = {"eta_y": 1.0, "eta_z": 0.5, "t_end": 100.0, "n_times": 5}
    first = gradient_flow(classes, **rates)
    monkeypatch.setattr(layer_module, "_ALLOCATED", 0)
    assert Layer.zeros(SequenceClasses.single_common_token(31, 300).population()).Y.strides == (0, 0)
    second = gradient_flow(SequenceClasses.single_common_token(30, 300), **rates)
    assert first.dataset.identical(second.dataset) and first.final.Y.tobytes() == second.final.Y.tobytes()
    whole = gradient_flow(SequenceClasses.single_common_token(30, 300), **rates, solver=Solver(reduce="none"))
    np.testing.assert_allclose(whole.dataset["z"], first.dataset["z"], atol=1e-7)
