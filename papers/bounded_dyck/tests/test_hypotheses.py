"""Each hypothesis stands in the register, and without it the statement is false."""

import sys
from pathlib import Path

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from latex import value
from yzflow_bounded_dyck import DyckLanguage, _stacks, balance, bounds, hypotheses, measures, silence
from yzflow_bounded_dyck.proofs import lottery, theorem2
from yzflow_bounded_dyck.settings import DyckSetting, settings

from dynamics import Layer
from theory import statements

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REGISTER = {one.number: one for one in statements.REGISTER.values() if one.paper == "Bounded Dyck"}
TABLE = tomllib.loads((Path(__file__).parent / "hypotheses.toml").read_text())


@pytest.mark.parametrize("number", REGISTER)
def test_the_register_has_the_hypotheses_of_the_paper_and_ours(number):
    one = REGISTER[number]
    found = [assumption.text for assumption in one.assumptions]
    found += [f"{clause.name}: {assumption.text}" for clause in one.clauses for assumption in clause.assumptions]
    table = TABLE[number]
    assert sorted(found) == sorted(table.get("paper", []) + table.get("ours", []))


def test_the_table_names_no_other_statement():
    assert set(TABLE) == set(REGISTER)


def test_margins_of_types_depth_and_encodings_follow_the_setting():
    sufficiency, necessity = REGISTER["Theorem 1, sufficiency"], REGISTER["Theorem 1, necessity"]

    class Shared(DyckSetting):
        @property
        def encodings(self):
            encodings = np.eye(self.language.n_states)
            encodings[-1] = encodings[0]
            return encodings

    class Angles(DyckSetting):
        @property
        def encodings(self):
            return self.language.embedding("type and angle")

    (encoded,) = (check for check in sufficiency.checks if check.printed is measures.encoded_predictions)
    text = "encodings of all states and START independent, rank 2 k D + 1"
    for setting in settings(quick=False):
        assert sufficiency.margins(setting, encoded)[text] == 1
        margins = necessity.margins(setting)
        assert (margins["k >= 2, several types"] >= 1) == (setting.language.n_types >= 2)
        assert (margins["D >= 2, closing queries"] >= 1) == (setting.language.max_depth >= 2)
    for kind in (Shared, Angles):
        assert sufficiency.margins(kind("other", DyckLanguage(2, 4)), encoded)[text] < 1


@given(st.integers(1, 6), strategies.SEEDS)
def test_one_type_needs_no_balance(depth, seed):
    language = DyckLanguage(1, depth)
    layer = hypotheses.one_type_layer(language)
    sequences = language.sample_sequences(20, min_length=1, max_length=5001, rng=seed)
    prefixes = language.bags(sequences)
    depths = np.array([language.states[query].depth for query in prefixes.query])
    # By hand: 1 + d + C opens and START, and C closed brackets of the weight 1/(1 + d).
    closed = np.array([np.sum(sequence % 2) for sequence in sequences])
    sums = np.outer(1 + depths + closed, layer.V[0]) + np.outer(
        1 + closed / (1 + depths), layer.V[language.close(0, 0)]
    )
    features = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    assert np.allclose(layer.features(prefixes), features, atol=1e-12)
    centred = Layer(layer.Z, layer.Y, layer.V, center=True)
    assert np.allclose(centred.features(prefixes), features, atol=1e-12)
    assert np.ptp(features[depths == depths[0]], axis=0).max() < 1e-12
    added = np.linalg.norm(balance.insertions(layer, language)[balance.queries(language).ravel()], axis=-1)
    assert (added > 1).all()
    assert (balance.residual(layer.Z, language) > 0.1) == (depth >= 3)


@given(st.integers(1, 3), st.integers(1, 4), strategies.SEEDS)
def test_a_link_tells_the_query_and_11_at_closing_queries_is_enough(k, depth, seed):
    language = DyckLanguage(k, depth)
    layer = hypotheses.balanced_at_closing_queries(language, seed)
    assert balance.residual(layer.Z, language) < 1e-9
    head = hypotheses.linked_head(layer, language)
    for bags in (language.enumerate(min_length=0, max_length=5), language.sample(20, max_length=300, rng=seed)):
        assert np.abs(head(hypotheses.linked_features(layer, bags)) - bags.target).max() < 1e-9


def test_without_a_link_11_at_closing_queries_is_not_enough():
    for seed in range(4):
        language = DyckLanguage(2, 2)
        layer = hypotheses.balanced_at_closing_queries(language, seed)
        assert not measures.right_at_every_length(layer, language)
        with pytest.raises(ValueError, match="`layer` must be exactly balanced"):
            balance.exact_head(layer, language)
        assert measures.right_at_every_length(balance.balanced_layer(language, seed), language)


@given(st.integers(1, 3), st.integers(1, 3), strategies.SEEDS)
def test_independent_encodings_have_every_layer(k, depth, seed):
    language = DyckLanguage(k, depth)
    layer = balance.balanced_layer(language, seed)
    encodings, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(language.n_states + 1,) * 2))
    found = hypotheses.encoded_layer(layer, encodings[:-1])
    assert np.allclose(found.Z, layer.Z, atol=1e-9) and np.allclose(found.V, layer.V, atol=1e-9)


@given(st.integers(1, 3), st.integers(1, 3), strategies.SEEDS)
def test_START_like_an_open_bracket_makes_it_look_like_the_empty_text(k, depth, seed):
    language, rng = DyckLanguage(k, depth), np.random.default_rng(seed)
    encodings = rng.normal(size=(language.n_states, language.n_states))
    encodings[language.start] = encodings[language.open(0, 1)]
    assert np.linalg.matrix_rank(encodings[:-1]) == 2 * k * depth  # what was said to be enough
    W, values = rng.normal(size=encodings.shape), rng.normal(size=(language.n_states, 3))
    layer = Layer(encodings @ W @ encodings.T, np.zeros((3, 2 * k)), encodings @ values)
    bags = language.bags([[], [0]])
    one, other = layer.features(bags)
    assert np.allclose(one, other, atol=1e-9) and np.abs(bags.target[0] - bags.target[1]).max() > 0.4


def test_a_text_of_depth_one_cannot_be_silent():
    language = DyckLanguage(2, 1)
    assert silence.may_be_silent(language, []) and not silence.may_be_silent(language, [(0, 1)])
    with pytest.raises(ValueError, match="`layer` must tell apart"):
        silence.memory_head(silence.silent_layer(language, [(0, 1)], 0), language)


@given(strategies.SEEDS, st.integers(4, 6), st.integers(1, 20), st.floats(-3, 3))
def test_theorem_2_for_random_layers_and_every_level(seed, depth, n, size):
    """With the best head, whose gamma / tau is one over the distance of the features after n pairs."""
    language, rng = DyckLanguage(2, depth), np.random.default_rng(seed)
    V = rng.normal(size=(language.n_states, 4))
    V[language.open(0, 1)] *= np.exp(size)
    layer = Layer(rng.normal(size=(language.n_states,) * 2), np.zeros((4, 4)), V)
    d, j, i = 1, 0, int(rng.integers(2))
    prefixes = [[2 * w, 0, 1] for w in range(2)]
    P = np.linalg.norm(_stacks.sums(layer, language, prefixes), axis=1).max()
    S = np.linalg.norm(balance.insertions(layer, language)[language.close(j, d), i], axis=-1)
    nearest = np.inf
    for level in range(1, depth + 1):
        above = min(level - 1, d + 1)
        between = level - 1 - above
        nest = [2 * i] * between + [2 * i, 2 * i + 1] * n + [2 * i + 1] * between
        features = layer.features(language.bags([one[:above] + nest + one[above:] for one in prefixes]))
        distance = np.linalg.norm(features[0] - features[1])
        nearest = min(nearest, distance) if level > d + 2 else distance
        most = theorem2.deeper(theorem2.bound(P, 1, nearest, n), n, max(0, level - d - 2))
        assert S[level - 1] <= most * (1 + 1e-9)


def test_the_longest_of_the_prefixes_of_theorem_2_fits():
    for depth in range(2, 9):
        for N in range(2 * depth + 2, 40):
            n = N // 2 - depth
            lengths = [
                d + 2 + 2 * n + 2 * max(0, level - d - 2) for d in range(1, depth) for level in range(1, depth + 1)
            ]
            assert max(lengths) <= N


def test_exact_distributions_after_closing_brackets_are_as_far_apart_as_theorem_2_says():
    for q in (0.1, 0.5, 0.9):
        targets = DyckLanguage(3, 4, q).bags([[0, 0, 1], [2, 0, 1]]).target
        assert np.isclose(np.linalg.norm(targets[0] - targets[1]), np.sqrt(2) * (1 - q))


def test_a_loss_near_its_least_leaves_outputs_apart():
    """The worst outputs that an excess allows: all of it at the two prefixes, towards each other."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        weights, exact = rng.uniform(0.01, 1, 2), rng.dirichlet(np.ones(4), 2)
        tau = np.linalg.norm(exact[0] - exact[1])
        excess = float(theorem2.small_excess(weights.min(), tau))
        shifts = rng.dirichlet(np.ones(2)) ** 0.5 * np.sqrt(excess / weights)  # sum of weight x shift^2 is the excess
        toward = (exact[1] - exact[0]) / tau
        outputs = exact + np.outer(shifts * [1, -1], toward)
        assert np.isclose(((outputs - exact) ** 2).sum(axis=1) @ weights, excess)
        assert np.linalg.norm(outputs[0] - outputs[1]) >= tau / 2 - 1e-12


def test_the_names_of_checks_say_how_many_layers_they_rest_on():
    names = [check.name for number in ("Theorem 1, necessity", "Silent pairs") for check in REGISTER[number].checks]
    rows = measures.right_and_balanced()
    named = [name for name in names if "written by hand" in name]
    assert len(named) == 2 and all(f"{len(rows)} layers written by hand, k = 2" in name for name in named)
    assert any(f"{len(measures.SILENT_RUN)} languages" in name for name in names)
    one = measures.one_type()
    assert one["right"] and not one["(11)"] and not one["(14)"] and not one["silent"]


def test_the_difference_that_silent_pairs_reach_is_as_the_text_says():
    language = DyckLanguage(2, 2)
    layers = [silence.silent_layer(language, [(0, 2), (1, 2)], rng=seed) for seed in range(4)]
    found = [balance.residual(layer.Z, language) for layer in layers]
    assert f"differences in (11) of {min(found):.1f} to {max(found):.1f}" in REGISTER["Silent pairs"].text


POINT = {
    "P": 1.3, r"\gamma": 0.7, r"\tau": 0.4, "n": 3.0, "d'": 4.0, "d": 1.0, "R_0": 2.2, "L": 3.0, r"\lambda": 0.3,
    r"\omega": 0.9, "C": 0.6, "h": 1.7, "s": 0.2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("number", "clause", "start", "expected"),
    [
        ("Theorem 2", 0, r"S \le ", 1.3 * (1 + 2 * 0.7 / 0.4) / 3),
        ("Theorem 2", 1, r"S \le ", 1.3 * (1 + 2 * 0.7 / 0.4) / 3 * (1 + 1 / 3)),
        ("Theorem 2", 2, r"\le ", np.pi * 0.4**2 / 16),
        ("Theorem 2", 2, r"S \le ", 1.3 * (1 + 4 * 0.7 / 0.4) / 3),
        ("Corollary 2", 0, r"\le ", 0.3 * 2.2),
        ("Corollary 2", 1, r"\le ", (2.2 / 3) ** 1.5),
        ("Lemmas of Theorem 3", 1, r"\le ", np.tanh(0.9 / 4)),
        ("Corollary 1", 0, "d = ", 1.7 / 0.2),
    ],
)
def test_formulas_mean_what_they_say(number, clause, start, expected):
    formula = REGISTER[number].clauses[clause].formula
    right = formula[formula.index(start) + len(start) :].split(r", \quad")[0].split(r": \quad")[0]
    assert np.isclose(value(right, POINT), expected)


def test_corrected_forms_hold_the_formulas_of_their_clauses():
    for number, clauses in {"Theorem 2": (0, 1), "Corollary 2": (1,), "Theorem 1, sufficiency": (0, 1)}.items():
        one = REGISTER[number]
        for clause in clauses:
            formula = one.clauses[clause].formula
            assert formula.split(r": \quad ")[-1] in one.corrected, number
    decay = REGISTER["Corollary 2"].corrected.split(r"\lambda \le ")[1].split(":")[0]
    assert np.isclose(value(decay, POINT), np.pi * 0.4**2 / (16 * 2.2))


@given(st.floats(0.01, 20))
def test_the_bound_of_attention_is_the_printed_one(omega):
    assert np.isclose(bounds.attention_change(omega), np.tanh(omega / 4))
    assert np.isclose(float(lottery.attention_change(np.exp(omega / 2))), np.tanh(omega / 4))
    assert r"\tanh\frac{\omega}{4}" in REGISTER["Lemmas of Theorem 3"].printed
