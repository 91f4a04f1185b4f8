"""False variants of the statements on sparse averaging, and random numbers in place of constructions, fail checks.

Those that turn a proof red are in ``mistakes.py`` beside this file; more that alarm an audit are in
``test_statements.py``.
"""

import dataclasses
import math

import numpy as np
import pytest

from dynamics.data import averaging as tasks
from theory import averaging, statements
from theory.sparse_averaging import measures, sorted_groups
from theory.trust import Trust
from yzflow.audits.audit import Simulations
from yzflow.audits.verdicts import Verdict, judge
from yzflow.papers.sparse_averaging.settings import settings

RANDOM = np.random.default_rng(5)
SETTING = settings(quick=True)[0]


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
    """A transformer's layers, and random numbers in place of what it computes."""

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


# Statement, and what is false: module, name, wrapper. The corrected form is asked where there is one.
CHECKS = {
    "Theorem 2: random attention": ("Theorem 2", measures, "attention_weights", noise),
    "Theorem 2: queries that do not look at y": (
        "Theorem 2",
        averaging,
        "certificate",
        lambda right: lambda keys, subset: right(keys, np.arange(len(subset))),
    ),
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
    "Theorem 2, exact: m = 2q - 2": (
        "Theorem 2, exact",
        averaging,
        "moment_curve",
        lambda right: lambda n, q: Fewer(right(n, q), right(n, q - 1)),
    ),
    "Rank bound: a random matrix": (
        "Rank bound",
        averaging,
        "disjointness_matrix",
        lambda right: lambda n: np.random.default_rng(5).integers(2, size=(2**n, 2**n)),
    ),
    "Theorem 4: random queries": (
        "Theorem 4",
        averaging,
        "random_keys_unit",
        lambda right: lambda keys, q, **more: with_random_queries(right(keys, q, **more)),
    ),
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
    "Recurrent: a random number of states": (
        "Recurrent",
        averaging,
        "state_count",
        lambda right: lambda n, q: int(np.random.default_rng(5).integers(2**n)),
    ),
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
    "Theorem 4: the sets are read from Bob's tokens": (
        "Theorem 4",
        averaging,
        "qsa_protocol",
        lambda right: lambda unit, q, encoding: flipped(right(unit, q, encoding=encoding)),
    ),
    "Match2: random answers": ("Match2", averaging, "match2", drawn),
    "Match2: differences for sums": (
        "Match2",
        tasks,
        "match2",
        lambda right: lambda x, modulus: differences(x, modulus),
    ),
    "Match2: without mod M": ("Match2", tasks, "match2", lambda right: lambda x, modulus: right(x, 4 * modulus)),
    "Match3, tensor unit: random answers": ("Match3, tensor unit", averaging, "match3_tensor", drawn),
    "Match3, tensor unit: pairs for triples": (
        "Match3, tensor unit",
        tasks,
        "match3",
        lambda right: lambda x, modulus: tasks.match2(x, modulus),
    ),
    "Match3, assisted: random answers": ("Match3, assisted", averaging, "match3_bigram", drawn),
    "Match3, assisted: another token's neighbour": (
        "Match3, assisted",
        averaging,
        "match3_bigram",
        lambda right: lambda **sizes: lambda x: shuffled(right(**sizes), x),
    ),
    "Conjecture: random answers": ("Conjecture", averaging, "match3_groups", drawn),
    "Conjecture: one group only": (
        "Conjecture",
        tasks,
        "match3",
        lambda right: lambda x, modulus: right(x[:, : x.shape[1] // 2], modulus).repeat(2, axis=1),
    ),
    "Conjecture: sums that miss by one": (
        "Conjecture",
        tasks,
        "match3",
        lambda right: lambda x, modulus: right((x + 1) % modulus, modulus),
    ),
    "Match3, transform: random answers": ("Match3, transform", averaging, "match3_transform", answers),
    "Match3, transform: two triples for three": (
        "Match3, transform",
        tasks,
        "match3",
        lambda right: lambda x, modulus: tasks.match2(x, modulus),
    ),
    "Match3, transform: two bits fewer": (
        "Match3, transform",
        averaging,
        "match3_transform",
        lambda right: lambda **sizes: right(**sizes, spare_bits=-2),
    ),
    "Match3, transform: a modulus twice as large": (
        "Match3, transform",
        tasks,
        "match3",
        lambda right: lambda x, modulus: right(x, 2 * modulus),
    ),
    "Match3, transform: one head": (
        "Match3, transform",
        averaging,
        "counted_size",
        lambda right: lambda model, x: dataclasses.replace(right(model, x), heads=3),
    ),
    "Match3, transform: depth log2 N": (
        "Match3, transform",
        averaging,
        "counted_size",
        lambda right: lambda model, x: dataclasses.replace(right(model, x), depth=2 * right(model, x).depth),
    ),
    "Match3, sorted: random answers": ("Match3, sorted", averaging, "match3_sorted", answers),
    "Match3, sorted: pairs for triples": (
        "Match3, sorted",
        tasks,
        "match3",
        lambda right: lambda x, modulus: tasks.match2(x, modulus),
    ),
    "Match3, sorted: half of the triples of groups": (
        "Match3, sorted",
        sorted_groups,
        "feasible_triples",
        lambda right: lambda largest, modulus: right(largest, modulus)[::2],
    ),
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
    "Match3, sorted: a dimension of N": (
        "Match3, sorted",
        averaging,
        "counted_size",
        lambda right: lambda model, x: dataclasses.replace(right(model, x), dimension=model.n_tokens),
    ),
    "Match3, one layer: two bits": (
        "Match3, one layer",
        averaging,
        "match3_protocol",
        lambda right: lambda model, bits: right(model, bits=2),
    ),
    "Fully connected: a wider layer": (
        "Fully connected",
        averaging,
        "collision",
        lambda right: (
            lambda layer, q, **sizes: right(np.concatenate([layer, layer[:, ::-1]])[: layer.shape[1] - 1], q, **sizes)
        ),
    ),
    "Fully connected: width d'(N - q)": (
        "Fully connected",
        averaging,
        "collision_error",
        lambda right: lambda n, q, width, value_dimension: 1.0 if width < value_dimension * n else 0.0,
    ),
    "Recurrent: 2^N states": ("Recurrent", averaging, "state_count", lambda right: lambda n, q: right(n + 1, q=q)),
    "Recurrent: one sum is enough": ("Recurrent", averaging, "state_count", lambda right: lambda n, q: right(n, q=n)),
    "Recurrent: N - 2 bits are enough": (
        "Recurrent",
        averaging,
        "memory_network",
        lambda right: lambda n, q, slots=None: right(n, q),
    ),
    "Recurrent: the network with a bit less": (
        "Recurrent",
        averaging,
        "memory_network",
        lambda right: lambda n, q, slots=None: right(n, q, slots=n - 2),
    ),
}


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


def shuffled(model, x):
    order = np.random.default_rng(5).permutation(x.shape[1])
    out = np.empty(x.shape, bool)
    out[:, order] = model(x[:, order])
    return out


def flipped(run):
    return dataclasses.replace(run, disjoint=~run.disjoint)


def differences(x, modulus):
    return ((x[..., :, None] - x[..., None, :]) % modulus == 0).any(axis=-1)


@pytest.mark.parametrize("name", CHECKS)
def test_a_false_statement_fails_its_check(name, monkeypatch):
    number, module, attribute, wrap = CHECKS[name]
    check = statements.REGISTER[f"Sparse averaging: {number}"].checks[0]
    asked, runs = check.corrected or check.printed, Simulations(SETTING, seed=0)
    assert judge(asked(runs, "closed form"), check.tolerance) is not Verdict.FAILS
    monkeypatch.setattr(module, attribute, wrap(getattr(module, attribute)))
    assert judge(asked(runs, "closed form"), check.tolerance) is Verdict.FAILS


def test_no_check_passes_on_random_numbers_and_twenty_false_statements_fail():
    asked = {one.number for one in statements.REGISTER.values() if one.paper == "Sparse averaging" and one.checks}
    random = {number for name, (number, *_) in CHECKS.items() if "random" in name.removeprefix(number)}
    assert random == asked
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
    for number in ("Theorem 4", "Match3, one layer"):
        assert register[number].argued and any(check.needed for check in register[number].checks)
    for number in ("Conjecture", "Match3, transform", "Match3, sorted"):
        # Proved, run, and what is prose in the proof is listed.
        proof, run = register[number].trust
        assert proof.trust is Trust.PROVED and proof.prose and proof.holds
        assert run.trust is Trust.MEASURED and run.needed
    assert "in the model that is written out here, for large N only" in register["Conjecture"].errata[0]
    size = averaging.match3_groups(root=6, modulus=7)
    n = size.n_tokens
    assert size.embedding_dim * size.heads * size.depth == pytest.approx(6 * n ** (2 / 3))
    assert 6 * n ** (2 / 3) > n / np.log2(n) and 2.1e6 / np.log2(2.1e6) > 6 * 2.1e6 ** (2 / 3)


def test_printed_and_corrected_forms_are_latex():
    for one in (one for one in statements.REGISTER.values() if one.paper == "Sparse averaging"):
        for formula in filter(None, (one.printed, one.corrected)):
            assert ("\\" in formula or formula.startswith("m = O")) and "$" not in formula, one.id
            assert formula.count("{") == formula.count("}") and "  " not in formula, one.id
            assert formula.count(r"\left") == formula.count(r"\right"), one.id
