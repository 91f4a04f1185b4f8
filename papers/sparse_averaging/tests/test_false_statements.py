"""False variants of the statements on sparse averaging, and random numbers in place of constructions, fail checks.

Those that turn a proof red are in ``mistakes.py`` beside this file; more that alarm an audit are in
``test_statements.py``.
"""

import dataclasses
import functools
import math

import numpy as np
import pytest
from proving import first_quick
from yzflow_sparse_averaging import averaging, measures, measures_ball, measures_strict, sorted_groups
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.proofs import fully_connected, moments
from yzflow_sparse_averaging.proofs import groups as proofs_of_groups
from yzflow_sparse_averaging.proofs import strict as proofs_of_strict
from yzflow_sparse_averaging.settings import settings
from yzflow_sparse_averaging.sizes import below_bound

from theory import statements
from theory.trust import Trust, weakest
from yzflow.audits.audit import Simulations
from yzflow.audits.verdicts import Verdict, judge

RANDOM = np.random.default_rng(5)
SETTING = settings(quick=True)[0]


@pytest.fixture(autouse=True)
def smaller(monkeypatch):
    """Fewer tokens for the dear checks."""
    monkeypatch.setattr(measures, "_LAYER_TOKENS", 12)
    monkeypatch.setattr(measures, "_DEEP_TOKENS", 16)
    monkeypatch.setattr(measures, "_BUILT", (3, 4, 9, 27, 64, 256))
    monkeypatch.setattr(measures_strict, "_BUILT", (8, 64))
    monkeypatch.setattr(measures_strict, "_STRICT_TOKENS", 9)
    monkeypatch.setattr(measures_strict, "_LAYER_TOKENS", 3)


def drawn(right):
    """Random answers in the place of a construction's."""

    def wrong(*arguments, **options):
        rng = np.random.default_rng(5)
        return lambda x: rng.integers(2, size=np.shape(x)).astype(float)

    return wrong


def answers(right):
    """Random answers of a transformer of the right size."""

    def wrong(**sizes):
        model, rng = right(**sizes), np.random.default_rng(5)
        return dataclasses.replace(model, transformer=Drawn(model.transformer, rng))

    return wrong


class Drawn:
    """A transformer's layers, with random numbers in place of its outputs."""

    def __init__(self, transformer, rng):
        self.layers, self.maps, self.depth, self.rng = transformer.layers, transformer.maps, transformer.depth, rng

    def __call__(self, X):
        return self.rng.integers(2, size=(*X.shape[:-1], 1))


def noise(right):
    def wrong(*arguments, **options):
        result = right(*arguments, **options)
        return np.random.default_rng(5).normal(size=result.shape) if isinstance(result, np.ndarray) else result

    return wrong


def times(factor):
    return lambda right: lambda *arguments, **options: factor * right(*arguments, **options)


def answering(change):
    """A transformer of the same size with other answers."""
    return lambda right: lambda **sizes: Answering(right(**sizes), change)


class Answering:
    """Protocol of a model for a measure: its size, and answers."""

    def __init__(self, model, change):
        self.depth, self.heads, self.embedding_dim, self.width = (
            model.depth,
            model.heads,
            model.embedding_dim,
            model.width,
        )
        self.model, self.change = model, change

    def __call__(self, x):
        return self.change(self.model, x)


def random_sizes(right):
    return lambda model: tuple(RANDOM.integers(1, 5, size=4))


def larger(place):
    """A size that is one more than built."""
    return lambda right: lambda model: tuple(size + (k == place) for k, size in enumerate(right(model)))


def bits_of(count):
    """Transformers of other numbers of bits."""
    return lambda right: property(lambda model: count(right.fget(model)))


RANDOM_BITS = bits_of(lambda right: right + int(RANDOM.integers(5, 99)))
TWICE_THE_BITS = bits_of(lambda right: 2 * right)
PUBLISHED = ("Conjecture", "published form, M = O(N): refuted")
SORTED = ("Conjecture", "slides' form, M = N^a: refuted")
SLIDES = ("Conjecture", "slides' form, every M: refuted")
STRICT = ("Conjecture", "slides' form, m as wide as a token: refuted")
BUILT = ("Conjecture", "sizes of what is built")
LINEAR = "Match3, strict"
ONE_LAYER = (LINEAR, "one layer, every M, without positions")
REPEATED = (LINEAR, "without positions M = N is as hard as M = n^a")
CIRCUITS = (LINEAR, "circuits run in as many layers as they are deep")


def drawn_answers(right):
    """Random answers of what a transformer is made into."""

    def wrong(model):
        made = right(model)
        return dataclasses.replace(made, transformer=Drawn(made.transformer, np.random.default_rng(5)))

    return wrong


def without_values(right):
    """Strict transformers whose heads have V = 0."""

    def wrong(model):
        made = right(model)
        for head in (head for layer in made.transformer.layers for head in layer.heads):
            vars(head)["_value"] = np.zeros_like
        return made

    return wrong


# Statement, or statement and clause, and what is false: module, name, wrapper. The corrected form is asked where there
# is one.
def moved(lost, n):
    """A random set in place of the one that is lost."""
    subset = np.sort(np.random.default_rng(5).permutation(n)[: lost.subset.size])
    return dataclasses.replace(lost, subset=subset)


CHECKS = {
    "Theorem 2: random attention": ("Theorem 2", measures, "attention_weights", noise),
    "Theorem 2: queries that do not look at y": ("Theorem 2", averaging, "certificate",
        lambda right: lambda keys, subset: right(keys, np.arange(len(subset)))),
    "Theorem 2: ln N left out of the temperature": ("Theorem 2", averaging, "temperature", times(0.3)),
    "Theorem 2, exact: random keys": (
        "Theorem 2, exact",
        averaging,
        "moment_curve",
        lambda right: (
            lambda n, q: Curve(
                right(n, q), np.random.default_rng(5).integers(-(2**30), 2**30, (n, 2 * q)).astype(object)
            )
        ),
    ),
    "Theorem 2, exact: m = 2q - 2": ("Theorem 2, exact", averaging, "moment_curve",
        lambda right: lambda n, q: Fewer(right(n, q), right(n, q - 1))),
    "Rank bound: a random matrix": ("Rank bound", averaging, "disjointness_matrix",
        lambda right: lambda n: np.random.default_rng(5).integers(2, size=(2**n, 2**n))),
    "Theorem 4: random queries": ("Theorem 4", averaging, "random_keys_unit",
        lambda right: lambda keys, q, **more: with_random_queries(right(keys, q, **more))),
    "Theorem 4: Bob answers at random": (
        "Theorem 4",
        averaging,
        "qsa_protocol",
        lambda right: (
            lambda unit, q, encoding: dataclasses.replace(
                right(unit, q, encoding=encoding), disjoint=np.random.default_rng(5).integers(2, size=(2**q, 2**q)) > 0
            )
        ),
    ),
    "Match3, one layer: random answers": (
        "Match3, one layer",
        averaging,
        "match3_protocol",
        lambda right: (
            lambda model, bits: dataclasses.replace(
                run := right(model, bits=bits),
                disjoint=np.random.default_rng(5).integers(2, size=run.disjoint.shape) > 0,
            )
        ),
    ),
    "Fully connected: random values": (
        "Fully connected",
        averaging,
        "collision",
        lambda right: (
            lambda layer, q, **sizes: dataclasses.replace(
                run := right(layer, q, **sizes), values=np.random.default_rng(5).choice([-1.0, 1.0], run.values.shape)
            )
        ),
    ),
    "Recurrent: a random number of states": ("Recurrent", averaging, "state_count",
        lambda right: lambda n, q: int(np.random.default_rng(5).integers(2**n))),
    "Recurrent: random states": (
        "Recurrent",
        averaging,
        "memory_network",
        lambda right: (
            lambda n, q, **more: dataclasses.replace(
                right(n, q, **more),
                update=lambda state, tokens: RANDOM.integers(-1, 1, size=state.shape),
            )
        ),
    ),
    "Rank bound: rank 2^n - 1": ("Rank bound", averaging, "disjointness_matrix", lambda right: lambda n: 1 - right(n)),
    "Theorem 4: the sets are read from Bob's tokens": ("Theorem 4", averaging, "qsa_protocol",
        lambda right: lambda unit, q, encoding: flipped(right(unit, q, encoding=encoding))),
    "Match2: random answers": ("Match2", averaging, "match2", drawn),
    "Match2: differences for sums": ("Match2", tasks, "match2",
        lambda right: lambda x, modulus: differences(x, modulus)),
    "Match2: without mod M": ("Match2", tasks, "match2", lambda right: lambda x, modulus: right(x, 4 * modulus)),
    "Match3, tensor unit: random answers": ("Match3, tensor unit", averaging, "match3_tensor", drawn),
    "Match3, tensor unit: pairs for triples": ("Match3, tensor unit", tasks, "match3",
        lambda right: lambda x, modulus: tasks.match2(x, modulus)),
    "Match3, assisted: random answers": ("Match3, assisted", averaging, "match3_bigram",
        answering(lambda model, x: np.random.default_rng(5).integers(2, size=x.shape))),
    "Match3, assisted: a third layer": ("Match3, assisted", averaging, "match3_bigram",
        lambda right: lambda **sizes: with_depth(Answering(right(**sizes), lambda model, x: model(x)), 3)),
    "Match3, assisted: another token's neighbour": ("Match3, assisted", averaging, "match3_bigram",
        answering(lambda model, x: shuffled(model, x))),
    "Match3, assisted: random answers in windows": (("Match3, assisted", "a window"), averaging, "match3_local",
        answering(lambda model, x: np.random.default_rng(5).integers(2, size=x.shape))),
    "Match3, assisted: windows a position too wide": (("Match3, assisted", "a window"), averaging, "match3_local",
        answering(lambda model, x: measures.within(x, model.modulus, model.embedding_dim // 4 + 1))),
    "Match3, assisted: windows a position too narrow": (("Match3, assisted", "a window"), averaging, "match3_local",
        answering(lambda model, x: measures.within(x, model.modulus, max(0, model.embedding_dim // 4 - 1)))),
    "Conjecture: random answers of the transform": (PUBLISHED, averaging, "match3_transform", answers),
    "Conjecture: random answers of sorted groups": (SORTED, averaging, "match3_sorted", answers),
    "Conjecture: random answers": (SLIDES, averaging, "match3_groups", drawn),
    "Conjecture: random answers, strict": (STRICT, averaging, "match3_groups", drawn),
    "Conjecture: random sizes": (BUILT, measures, "_sizes", random_sizes),
    "Conjecture: three layers": (BUILT, measures, "_sizes", larger(0)),
    "Conjecture: m is one more": (BUILT, measures, "_sizes", larger(2)),
    "Conjecture: tokens of one number more": (BUILT, measures, "_sizes", larger(3)),
    "Conjecture: log2 M + 4 bits without positions": (BUILT, proofs_of_groups, "bits",
        lambda right: lambda n, modulus: right(n, modulus)[:2]),
    "Conjecture: one group only": (SLIDES, tasks, "match3",
        lambda right: lambda x, modulus: right(x[:, : x.shape[1] // 2], modulus).repeat(2, axis=1)),
    "Conjecture: sums that miss by one": (SLIDES, tasks, "match3",
        lambda right: lambda x, modulus: right((x + 1) % modulus, modulus)),
    "Match3, transform: random answers": ("Match3, transform", averaging, "match3_transform", answers),
    "Match3, transform: two triples for three": ("Match3, transform", tasks, "match3",
        lambda right: lambda x, modulus: tasks.match2(x, modulus)),
    "Match3, transform: two bits fewer": ("Match3, transform", averaging, "match3_transform",
        lambda right: lambda **sizes: right(**sizes, spare_bits=-2)),
    "Match3, transform: a modulus twice as large": ("Match3, transform", tasks, "match3",
        lambda right: lambda x, modulus: right(x, 2 * modulus)),
    "Match3, transform: random sizes": (("Match3, transform", "sizes"), measures, "_sizes", random_sizes),
    "Match3, transform: three heads": (("Match3, transform", "sizes"), measures, "_sizes", larger(1)),
    "Match3, transform: a layer more": (("Match3, transform", "sizes"), measures, "_sizes", larger(0)),
    "Match3, transform: random bits": (("Match3, transform", "bits"), averaging.MatchTransformer, "bits", RANDOM_BITS),
    "Match3, transform: twice the bits": (("Match3, transform", "bits"), averaging.MatchTransformer, "bits",
        TWICE_THE_BITS),
    "Match3, sorted: random answers": ("Match3, sorted", averaging, "match3_sorted", answers),
    "Match3, sorted: pairs for triples": ("Match3, sorted", tasks, "match3",
        lambda right: lambda x, modulus: tasks.match2(x, modulus)),
    "Match3, sorted: half of the triples of groups": ("Match3, sorted", sorted_groups, "feasible_triples",
        lambda right: lambda largest, modulus: right(largest, modulus)[::2]),
    "Match3, sorted: sums of M only": (
        "Match3, sorted",
        sorted_groups,
        "feasible_triples",
        lambda right: (
            lambda largest, modulus: np.array(
                [t for t in right(largest, modulus) if largest[t].sum() < 2 * modulus]
            ).reshape(-1, 3)
        ),
    ),
    "Match3, sorted: random sizes": (("Match3, sorted", "sizes"), measures, "_sizes",
        lambda right: lambda model: tuple(size + int(RANDOM.integers(1, 999)) for size in right(model))),
    "Match3, sorted: a dimension of N": (("Match3, sorted", "sizes"), measures, "_sizes",
        lambda right: lambda model: (*right(model)[:2], model.n_tokens + 4, right(model)[3])),
    "Match3, sorted: a head more": (("Match3, sorted", "sizes"), measures, "_sizes", larger(1)),
    "Match3, sorted: random bits": (("Match3, sorted", "bits"), averaging.MatchTransformer, "bits", RANDOM_BITS),
    "Match3, sorted: twice the bits": (("Match3, sorted", "bits"), averaging.MatchTransformer, "bits", TWICE_THE_BITS),
    "Theorem 2: random attention of rounded queries": (("Theorem 2", "O(log N) bits"), measures, "attention_weights",
        noise),
    "Theorem 2: eight bits fewer": (("Theorem 2", "O(log N) bits"), averaging, "rounded_query",
        lambda right: lambda query, tau, bits: right(query, tau=tau, bits=max(1, bits - 8))),
    "Theorem 2, exact: random numbers of bits": (("Theorem 2, exact", "bits of a query"), averaging.MomentCurve,
        "number_bits", lambda right: lambda curve: int(np.random.default_rng(5).integers(50, 99))),
    "Theorem 2, exact: bits of q log2 N for q^2": (("Theorem 2, exact", "bits of a query"), moments, "query_bits",
        lambda right: lambda n, q: right(n, q) / q),
    "Fully connected: a random sum": (("Fully connected", "q above N/2"), fully_connected, "error_of_sum",
        lambda right: lambda n, q: 1e-3 * np.random.default_rng(5).random()),
    "Fully connected: a sum within half of that": (("Fully connected", "q above N/2"), fully_connected, "error_of_sum",
        lambda right: lambda n, q: right(n, q) / 2),
    "Fully connected: errors of one at N/2": ("Fully connected", averaging, "collision_error",
        lambda right: lambda n, q, width, value_dimension: 1.0),
    "Fully connected: balanced coordinates of one dimension fewer": (("Fully connected", "balanced coordinates"),
        fully_connected, "balanced_dimension", lambda right: lambda s, d: right(s, d) - 1),
    "Fully connected: a random layer for the best": (
        ("Fully connected", "the least error"),
        averaging,
        "best_first_layer",
        lambda right: (
            lambda n, q, width, value_dimension: np.random.default_rng(5).normal(size=(width, n * value_dimension))
        ),
    ),
    "Fully connected: odd numbers as even ones": (("Fully connected", "the least error"), averaging, "collision_error",
        lambda right: lambda n, q, width, value_dimension: min(q, n - q, (n - width / value_dimension) / 2) / q),
    "Fully connected: 1/(2q - 1) where tokens have several numbers": (
        ("Fully connected", "the least error"),
        averaging,
        "collision_error",
        lambda right: (
            lambda n, q, width, value_dimension: (
                right(n, q, width=width, value_dimension=value_dimension)
                if value_dimension == 1 or 2 * q <= n
                else 1 / (2 * q - 1)
            )
        ),
    ),
    "Fully connected: balanced coordinates of kernels of a random smaller dimension": (
        ("Fully connected", "balanced coordinates"), fully_connected, "balanced_dimension",
        lambda right: lambda s, d: int(np.random.default_rng(5).integers(1, int(right(s, d))))),
    "Match3, one layer: two bits": ("Match3, one layer", averaging, "match3_protocol",
        lambda right: lambda model, bits: right(model, bits=2)),
    "Fully connected: a wider layer": (
        "Fully connected",
        averaging,
        "collision",
        lambda right: (
            lambda layer, q, **sizes: right(np.concatenate([layer, layer[:, ::-1]])[: layer.shape[1] - 1], q, **sizes)
        ),
    ),
    "Fully connected: width d'(N - q)": ("Fully connected", averaging, "collision_error",
        lambda right: lambda n, q, width, value_dimension: 1.0 if width < value_dimension * n else 0.0),
    "Match3, strict: random answers of the transform": ((LINEAR, "published form, M = O(N), with positions: refuted"),
        averaging, "strict_transformer", drawn_answers),
    "Match3, strict: random answers of groups": ((LINEAR, "slides' form, every M, with positions: refuted"), averaging,
        "strict_transformer", drawn_answers),
    "Match3, strict: random answers of sorted groups": ((LINEAR, "slides' form, M = N^a, with positions: refuted"),
        averaging, "strict_transformer", drawn_answers),
    "Match3, strict: V = 0": ((LINEAR, "slides' form, every M, with positions: refuted"), averaging,
        "strict_transformer", without_values),
    "Match3, strict: random widths": ((LINEAR, "sizes of what is built"), proofs_of_strict, "transform_width",
        lambda right: lambda n: RANDOM.integers(1, 9)),
    "Match3, strict: the widths of maps": ((LINEAR, "sizes of what is built"), averaging, "strict_transformer",
        lambda right: lambda model: model),
    "Match3, strict: random answers of one layer": (ONE_LAYER, averaging, "match3_power_sums", drawn),
    "Match3, strict: one layer for another modulus": (ONE_LAYER, averaging, "match3_power_sums",
        lambda right: lambda modulus, **more: right(modulus=modulus + 1, **more)),
    "Match3, strict: random bits": ((LINEAR, "one layer: no smaller product"), proofs_of_strict, "bits",
        lambda right: lambda n, prime, m: RANDOM.integers(1, 3)),
    "Match3, strict: one layer as small as N": ((LINEAR, "one layer: no smaller product"), proofs_of_strict,
        "least_product", lambda right: lambda n: 99 * n),
    "Match3, strict: random answers to repeated tokens": (REPEATED, averaging, "match3_power_sums", drawn),
    "Match3, strict: random answers of circuits": (CIRCUITS, averaging, "circuit_transformer", drawn),
    "Match3, strict: random answers without maps": ((LINEAR, "no maps between layers: circuits run, too"), averaging,
        "attention_only_transformer", drawn),
    "Match3, strict: a circuit of a gate less": (
        CIRCUITS,
        averaging,
        "match3_circuit",
        lambda right: lambda **sizes: dataclasses.replace(right(**sizes), gates=((0, 0, 0), *right(**sizes).gates[1:])),
    ),
    "Recurrent: 2^N states": ("Recurrent", averaging, "state_count", lambda right: lambda n, q: right(n + 1, q=q)),
    "Recurrent: one sum is enough": ("Recurrent", averaging, "state_count", lambda right: lambda n, q: right(n, q=n)),
    "Recurrent: N - 2 bits are enough": ("Recurrent", averaging, "memory_network",
        lambda right: lambda n, q, slots=None: right(n, q)),
    "Recurrent: the network with a bit less": ("Recurrent", averaging, "memory_network",
        lambda right: lambda n, q, slots=None: right(n, q, slots=n - 2)),
    "Dimension for all sets: random keys": (
        ("Dimension for all sets", "keys of that dimension"),
        averaging,
        "every_set_keys",
        lambda right: lambda n, q: np.random.default_rng(5).integers(-9, 10, right(n, q).shape),
    ),
    "Dimension for all sets, errors: a random set": (
        ("Dimension for all sets", "errors in fewer dimensions"),
        averaging,
        "lost_set",
        lambda right: lambda keys, q: moved(right(keys, q), len(keys)),
    ),
    "Fully connected, unit ball: random tokens, a tenth as large": (
        ("Fully connected, unit ball", "errors of order 1/q"),
        measures_ball,
        "largest_average",
        lambda right: lambda points, q: right(points, q) / 10,
    ),
    "Fully connected, unit ball: random averages": (
        ("Fully connected, unit ball", "all tokens but one"),
        measures_ball,
        "largest_average",
        lambda right: lambda points, q: float(np.random.default_rng(5).uniform(0, 0.1)),
    ),
    "Dimension for all sets: a random set is lost": (
        "Dimension for all sets",
        averaging,
        "lost_set",
        lambda right: lambda keys, q: moved(right(keys, q), len(keys)),
    ),
}  # fmt: skip


class Curve:
    """A curve with other keys."""

    def __init__(self, curve, keys):
        self.curve, self.keys = curve, keys

    def gap(self, subset):
        scores = self.keys @ self.curve.query(subset)
        inside = scores[subset]
        return int(inside.min() - np.delete(scores, subset).max())

    def attention(self, subset, *, error):
        return self.curve.attention(subset, error=error)


def with_random_queries(unit):
    rng = np.random.default_rng(5)
    width = unit.embedding_dim
    return type(unit).from_maps(
        lambda X: rng.normal(size=(*X.shape[:-1], width)),
        unit.keys,
        unit.values,
        embedding_dim=width,
        scale=unit.scale,
        precision=unit.precision,
    )


class Fewer:
    """A curve whose attention is that of one member less."""

    def __init__(self, curve, smaller):
        self.gap = curve.gap
        self.attention = lambda subset, error: smaller.attention(subset[:-1], error=error)


def with_depth(model, depth):
    model.depth = depth
    return model


def shuffled(model, x):
    order = np.random.default_rng(5).permutation(x.shape[1])
    out = np.empty(x.shape, bool)
    out[:, order] = model(x[:, order])
    return out


def flipped(run):
    return dataclasses.replace(run, disjoint=~run.disjoint)


def differences(x, modulus):
    return ((x[..., :, None] - x[..., None, :]) % modulus == 0).any(axis=-1)


@functools.cache
def verdict(number, clause):
    """The verdict of a check; the right statement's is cached, since it has several false variants."""
    clauses = statements.REGISTER[f"Sparse averaging: {number}"].clauses
    (check,) = next(one for one in clauses if one.checks and clause in (None, one.name)).checks
    runs = Simulations(SETTING, seed=0)
    return judge((check.corrected or check.printed)(runs, "closed form"), check.tolerance)


# A second each, of a formula whose values `test_bounds.py` knows.
LONG = {
    "Fully connected: a random layer for the best",
    "Fully connected: odd numbers as even ones",
    "Fully connected: 1/(2q - 1) where tokens have several numbers",
}


@pytest.mark.parametrize("name", first_quick({name: check[0] for name, check in CHECKS.items()}, 2, LONG))
def test_a_false_statement_fails_its_check(name, monkeypatch):
    asked, module, attribute, wrap = CHECKS[name]
    number, clause = asked if isinstance(asked, tuple) else (asked, None)
    assert verdict(number, clause) is not Verdict.FAILS
    monkeypatch.setattr(module, attribute, wrap(getattr(module, attribute)))
    assert verdict.__wrapped__(number, clause) is Verdict.FAILS


def test_no_check_passes_on_random_numbers_and_twenty_false_statements_fail():
    register = [one for one in statements.REGISTER.values() if one.paper == "Sparse averaging"]
    first = {one.number: next(clause.name for clause in one.clauses if clause.checks) for one in register if one.checks}
    asked = {(one.number, clause.name) for one in register for clause in one.clauses if clause.checks}
    named = [(name, of if isinstance(of, tuple) else (of, first[of])) for name, (of, *_) in CHECKS.items()]
    assert {of for name, of in named if "random" in name} == asked
    assert len([name for name in CHECKS if "random" not in name]) >= 20


def test_float64_loses_the_gap_of_the_curve_at_64_tokens_and_four():
    curve = averaging.moment_curve(64, 4)
    subset = np.array([37, 56, 57, 62])
    query, keys = curve.query(subset), curve.keys()
    exact = query @ keys.T
    assert len(set(exact[subset])) == 1 and curve.gap(subset) >= 1
    products = query.astype(float) * keys.astype(float)
    once = np.array([math.fsum(row) for row in products])
    assert np.ptp(once[subset]) >= 1  # as much as the gap, even if only products and one sum are rounded


def test_labels_say_what_is_proved():
    register = {one.number: one for one in statements.REGISTER.values() if one.paper == "Sparse averaging"}
    assert register["Theorem 4"].argued and any(check.needed for check in register["Theorem 4"].checks)
    right = [(f"Match3, {name}", "right for every N and M") for name in ("transform", "sorted")]
    for number, clause in (*right, PUBLISHED, SLIDES):
        # The label says that it is proved and run, and lists the proof's prose.
        proof, run = (label for label in register[number].trust if label.clause == clause)
        assert proof.trust is Trust.PROVED and proof.prose and proof.holds
        assert run.trust is Trust.MEASURED and run.needed
    # Bits are compared at sizes, and never proved.
    for number in ("Match3, transform", "Match3, sorted"):
        assert [one.trust for one in register[number].trust if one.clause == "bits"] == [Trust.MEASURED]
    assert "in the model that is written out here, for large N only" in register["Conjecture"].errata[0]


def test_the_conjecture_is_refuted_for_few_residues_and_open_for_more():
    one = statements.REGISTER["Sparse averaging: Conjecture"]
    assert one.title == "Triples: refuted in part, where tokens know their positions"
    assert one.refuted.startswith("for M = O(N) as published") and one.refuted.endswith("tokens know their positions")
    open_, refuted = (
        [label for label in one.trust if label.clause.startswith(f"published form, M = {m}")] for m in ("N^a", "O(N)")
    )
    assert [label.trust for label in open_] == [Trust.NOT_EXAMINED] and open_[0].prose[0].startswith("open, ")
    assert {label.trust for label in refuted} == {Trust.PROVED, Trust.MEASURED}
    assert weakest(one.trust).trust is Trust.NOT_EXAMINED  # no label of the whole is green
    assert {"tokens know their positions", "queries, keys and values are maps of a token of any size"} <= {
        assumption.text for assumption in one.assumptions
    }


@pytest.mark.parametrize(("size", "digits"), [("size", "2.0 10^6"), ("strict_size", "1.1 10^8")])
def test_from_where_on_two_layers_are_below_the_bound(size, digits):
    claim = getattr(proofs_of_groups, size)
    n = below_bound(claim)
    assert claim(0.999 * n) > 0.999 * n / np.log2(0.999 * n) and claim(1.001 * n) < 1.001 * n / np.log2(1.001 * n)
    assert f"from N of about {digits}" in (text := statements.REGISTER["Sparse averaging: Conjecture"].errata[0]) or (
        f"from about {digits} on" in text
    )
