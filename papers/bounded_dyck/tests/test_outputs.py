"""Pair effects, violation and reach of models, against closed forms, other code of ours and the exact language."""

import itertools

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage, balance, models, outputs
from yzflow_bounded_dyck.from_tokens import token_transformer

from dynamics import Layer

LANGUAGE = DyckLanguage(2, 3, 0.4)


def forgetful(ratio, language=LANGUAGE):
    """Right but for the type: known with the weight ratio^m behind m matched pairs, else a guess."""

    def ask(rows):
        found = []
        for row in rows:
            target, m = language.next_token(row).copy(), np.sum(row % 2)
            closing = target[1::2]
            target[1::2] = ratio**m * closing + (1 - ratio**m) * closing.sum() / language.n_types
            found.append(target)
        return np.array(found)

    return models.of(ask, language, kind="probabilities")


@pytest.mark.parametrize("ratio", [0.5, 0.9, 1.0])
def test_a_model_that_forgets_by_a_known_law(ratio):
    """Behind n pairs and the pair of (16): TV distances of distributions that share all but the closing brackets."""
    found = outputs.examine(forgetful(ratio), lengths=[4], n=5, pairs=[1, 3])
    free = (1 - 0.4) * ratio
    for number, n in enumerate(found.pairs):
        for i, level, j, d in itertools.product(range(2), range(1, 4), range(2), range(1, 3)):
            nest = max(0, level - d - 2)  # opened around no pair, and so matched itself
            before, after = ratio**nest, ratio ** (nest + n)
            place = (number, i, level - 1, j, d - 1)
            # Two depths of 3 are free; the deepest closing query closes with certainty at no depth of these.
            assert found.change[place] == pytest.approx(free * (before - after) / 2)
            assert found.apart[place] == pytest.approx(free * after)
    assert found.violation == pytest.approx((1 - ratio) / 2)
    assert np.isnan(found.paper_violation) and "sums" in found.unknown["S / P"]
    # At these prefixes the largest error is (1 - q)(1 - ratio^m)/2, which the bound from pairs attains.
    assert found.least_error == pytest.approx((1 - 0.4) * (1 - ratio**4) / 2)


def shortsighted(most_length, most_depth, language=LANGUAGE):
    """Right up to a length and a depth, else the other type."""

    def ask(row):
        target = language.next_token(row).copy()
        if len(row) > most_length or len(language.stack(row)) > most_depth:
            target[1::2] = target[1::2][::-1]
        return target

    return models.of(ask, language, kind="probabilities", one=True)


def test_reach_in_length_and_depth():
    language = DyckLanguage(2, 4, 0.6)
    found = outputs.examine(shortsighted(16, 9, language), lengths=[4, 8, 16, 24, 32], n=150, pairs=[1])
    reach = found.reach(0.9)
    assert (reach.length, reach.refuted, reach.everywhere) == (16, 24, False)
    assert found.accuracy.tolist() == [1, 1, 1, 0, 0]
    assert reach.depths == {4: 2, 8: 3, 16: 3, 24: 0, 32: 0}
    assert "16 brackets" in str(found) and "refuted at 24" in str(found)
    shallow = outputs.examine(shortsighted(99, 2, language), lengths=[8, 16], n=60, pairs=[1]).reach(0.9)
    assert shallow.depths == {8: 2, 16: 2} and shallow.length == 0


def test_few_prefixes_show_nothing_and_a_tie_is_wrong():
    exact = models.of(lambda row: LANGUAGE.next_token(row), LANGUAGE, kind="probabilities", one=True)
    few = outputs.examine(exact, lengths=[8], n=10, pairs=[1])
    assert few.accuracy == 1 and few.reach().length == 0 and few.reach().refuted is None
    assert few.error.max() < 1e-12 and few.least_error < 1e-12 and "open beyond" in str(few)
    blind = outputs.examine(models.of(lambda rows: np.zeros((len(rows), 4)), LANGUAGE), lengths=[8], n=30, pairs=[1])
    assert blind.accuracy == 0 and blind.reach().refuted == 8
    assert np.isnan(blind.violation) and blind.change.max() == 0 and blind.least_error == pytest.approx(0.3)


@given(strategies.SEEDS, st.integers(2, 3), st.integers(2, 3), st.booleans())
def test_the_papers_violation_of_random_layers(seed, k, depth, center):
    """S and P by inserted pairs and by listed stacks, against the closed form and the branch and bound of `balance`."""
    language, rng = DyckLanguage(k, depth), np.random.default_rng(seed)
    n = language.n_states
    layer = Layer(rng.normal(size=(n, n)), rng.normal(size=(4, 2 * k)), rng.normal(size=(n, 4)), center=center)
    model = models.of(layer, language)
    found = outputs.examine(model, lengths=[4], n=1, pairs=[1, 3], rng=seed)
    assert found.paper_violation == pytest.approx(balance.violation(layer, language), rel=1e-6)
    bags = language.sample(5, max_length=9, rng=seed)
    prefixes = language.sample_sequences(5, max_length=9, rng=seed)
    np.testing.assert_allclose(model.distribution(prefixes), layer.predict(bags), atol=1e-12)


def test_balanced_layers_and_transformers_have_no_pair_effect_and_sums_after_softmax_are_unknown():
    layer = balance.balanced_layer(LANGUAGE, 0)
    found = outputs.examine(models.of(layer, LANGUAGE), lengths=[8, 64], n=80, pairs=[1, 50])
    assert found.paper_violation == 0 and found.change.max() < 1e-10 and found.accuracy.min() == 1
    exact = models.of(token_transformer(LANGUAGE, 0), LANGUAGE)
    found = outputs.examine(exact, lengths=[8, 64], n=150, pairs=[1, 50])
    assert found.reach(0.9).everywhere and found.error.max() < 1e-6 and found.violation < 1e-6

    def gathered(rows):
        return layer.features(LANGUAGE.bags(list(rows)))

    shown = models.of(lambda rows: exact.scores(rows), LANGUAGE, sums=gathered)
    found = outputs.examine(shown, lengths=[8], n=5, pairs=[1, 4])
    assert found.paper_violation == 0  # features of a balanced layer do not change at all
    rng = np.random.default_rng(0)
    random = Layer(*(rng.normal(size=shape) for shape in ((13, 13), (4, 4), (13, 4))))
    normed = models.of(exact.scores, LANGUAGE, sums=lambda rows: random.features(LANGUAGE.bags(list(rows))))
    found = outputs.examine(normed, lengths=[8], n=5, pairs=[1, 4])
    assert np.isnan(found.paper_violation) and "not the same for each pair" in found.unknown["S / P"]


def test_one_type_and_one_depth_are_unknown_and_never_good():
    one_type = outputs.examine(models.of(token_transformer(DyckLanguage(1, 3), 0), DyckLanguage(1, 3)), lengths=[4])
    assert np.isnan(one_type.violation) and one_type.reach().length == 0 and {"reach", "apart"} <= set(one_type.unknown)
    flat = DyckLanguage(2, 1)
    found = outputs.examine(models.of(token_transformer(flat, 0), flat), lengths=[4, 5], n=100)
    assert found.change.size == 0 and "pair effects" in found.unknown and np.isnan(found.violation)
    assert found.asked.tolist() == [0, 100]  # after an even number of brackets nothing is open


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda rows: np.full((len(rows), 4), np.nan), "`model` must return numbers, but got NaN"),
        (lambda rows: np.full((len(rows), 4), -np.inf), "leave a bracket possible after each prefix"),
        (lambda rows: np.full((len(rows), 4), "a"), "`model` must return real numbers"),
        (lambda rows: np.zeros((len(rows) + 1, 4)), "batch first; one=True asks one prefix at a time, but got shape"),
        (lambda rows: np.zeros((len(rows), 9, 4)), r"return \(2, V\) or \(2, 2, V\) for tokens \(2, 2\)"),
        (lambda rows: np.tile([0.4, 0.3, 0.2, 0.1], (len(rows), 1)), '`model` must .* have kind="probabilities"'),
        ("a model", "`model` must be a function, a PyTorch module, a TokenTransformer or a Layer"),
        (Layer(np.zeros((3, 3)), np.zeros((3, 4))), "`layer` must have a row and a column for each of the 13 states"),
        (token_transformer(DyckLanguage(2, 2), 0), "`language` must be DyckLanguage"),
    ],
)
def test_functions_that_cannot_be_asked(answer, rule):
    with pytest.raises(ValueError, match=rule):
        models.of(answer, LANGUAGE)


def test_tokens_of_the_model_are_fed_and_are_its_columns():
    scores = np.log(np.arange(1.0, 8.0))
    seen = []

    def ask(tokens):
        seen.append(tokens)
        return np.tile(scores, (len(tokens), 1))

    model = models.of(ask, LANGUAGE, tokens=[6, 1, 3, 2], start=0)
    weights = np.array([7, 2, 4, 3])  # exp of the scores at 6, 1, 3, 2
    np.testing.assert_allclose(model.distribution(["([]"]), [weights / weights.sum()])
    assert seen[-1].tolist() == [[0, 6, 3, 2]]
    shifted = models.of(lambda tokens: scores[:4] + 0 * tokens[:, :1], LANGUAGE, tokens=[1, 2, 3, 4])
    np.testing.assert_allclose(shifted.distribution(["("]), [np.arange(1, 5) / 10])  # the brackets in order


def test_prefixes_that_cannot_be_asked():
    model = models.of(lambda rows: np.zeros((len(rows), 4)), LANGUAGE, longest=4)
    with pytest.raises(ValueError, match="at most 4 brackets, the most that the model reads, but got 5"):
        model.distribution([[0, 1, 0, 1, 0]])
    with pytest.raises(ValueError, match="`prefixes` must not be empty for a model without `start`"):
        model.distribution([[]])
    with pytest.raises(ValueError, match="`prefix` must close '\\(' before any other"):
        model.distribution(["(]"])
    with pytest.raises(ValueError, match="`model` must come with `sums`"):
        model.sums_before_norm([[0]])
    found = outputs.examine(model, lengths=[2, 4, 8], n=20, pairs=[1, 9])
    assert found.asked.tolist()[2] == 0 and "at most 4 brackets" in found.unknown["reach"]
    assert np.isnan(found.change[2]).all() and "some pair effects" in found.unknown
    with pytest.raises(ValueError, match="`share` must be below 1"):
        found.reach(1.0)
    for name, value in {"lengths": [0], "pairs": [], "n": 0, "stacks": 0}.items():
        with pytest.raises(ValueError, match=f"`{name}` must"):
            outputs.examine(model, **{name: value})


def test_each_prefix_of_the_pairs_is_asked_once():
    asked = []

    def ask(rows):
        asked.extend(map(tuple, rows.tolist()))
        return np.tile([0.25] * 4, (len(rows), 1))

    model = models.of(ask, LANGUAGE, kind="probabilities")
    asked.clear()
    outputs.examine(model, lengths=[1], n=1, pairs=[30])
    long = [row for row in asked if len(row) > 60]
    # Pairs of two types at three levels, and stacks of one and of two types before a closing query of two types.
    assert len(long) == 2 * 3 * 2 * (2 + 4)


def test_nothing_is_said_of_what_was_not_asked():
    one_type = DyckLanguage(1, 3)
    text = str(outputs.examine(models.of(token_transformer(one_type, 0), one_type, longest=10), lengths=[8, 16], n=9))
    assert "error: the model reads at most 10 brackets, not [16]" in text and "larger `n`" not in text
    flat = DyckLanguage(2, 1)
    text = str(outputs.examine(models.of(token_transformer(flat, 0), flat), lengths=[7, 8], n=99))
    assert "pair error" not in text and "7: 100%" in text
    text = str(outputs.examine(models.of(token_transformer(flat, 0), flat), lengths=[8], n=9))
    assert "reach: no drawn prefix had an unmatched bracket" in text and "larger `n`" not in text
