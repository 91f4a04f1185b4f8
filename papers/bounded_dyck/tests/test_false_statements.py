"""False variants of the statements on balance, and random vectors in place of what they are about, turn checks red.

Those that turn a proof red are in ``mistakes.py`` beside this file.
"""

import dataclasses
import functools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from proving import first_quick
from yzflow_bounded_dyck import (
    DyckLanguage,
    approximate,
    balance,
    bounds,
    from_tokens,
    gpt,
    heads,
    hypotheses,
    larger,
    lottery,
    measures,
    measures_of_heads,
    measures_of_models,
    measures_of_pruning,
    outputs,
    silence,
    smoothing,
    subset_law,
    transformers,
)
from yzflow_bounded_dyck.networks import ReluNetwork
from yzflow_bounded_dyck.proofs import cross_entropy, theorem2
from yzflow_bounded_dyck.proofs import from_tokens as of_tokens
from yzflow_bounded_dyck.proofs import outputs as of_outputs
from yzflow_bounded_dyck.settings import DyckSetting, settings

from dynamics import Layer
from theory import statements
from yzflow.audits.audit import Simulations, measure
from yzflow.audits.verdicts import Verdict, judge

SETTING = settings(quick=True)[0]
EXACT = "closed form"


@pytest.fixture(autouse=True)
def afresh(monkeypatch):
    """Fewer cases for the dear checks; what one keeps from call to call must not outlive a mistake."""
    monkeypatch.setattr(measures, "SILENT_RUN", (DyckLanguage(2, 2), DyckLanguage(2, 3)))
    monkeypatch.setattr(measures_of_pruning, "_PAIRS", ((0, 1, 0.2, 0, 0), (1, 1, 50.0, 8, 0)))
    monkeypatch.setattr(measures_of_pruning, "_SEEDS", 3)
    monkeypatch.setattr(measures_of_pruning, "_HIDDEN", 4)
    yield
    for kept in KEPT:
        kept.cache_clear()


KEPT = (
    measures.silent_sets.__wrapped__,
    measures_of_heads.right_leaves_nothing.__wrapped__,
    *(getattr(measures_of_pruning, name).__wrapped__ for name in ("certificates_hold", "one_layer_of_two")),
    measures_of_pruning._slopes,
)


def noise(layer, seed=5):
    rng = np.random.default_rng(seed)
    return Layer(rng.normal(size=layer.Z.shape), rng.normal(size=layer.Y.shape), rng.normal(size=layer.V.shape))


def random_layer(right):
    return lambda language, *a, **o: noise(right(language, *a, **o))


def other_attention(right):
    """Wider Transformers with a query matrix of their own."""

    def wide(*a, **o):
        made, turn = right(*a, **o)
        (layer,) = made.layers
        query = np.random.default_rng(5).normal(size=layer.query.shape)
        return transformers.Transformer((replace(layer, query=query),), made.floor), turn

    return wide


def shuffled(network):
    rng = np.random.default_rng(5)
    return ReluNetwork(tuple(rng.permuted(weight) for weight in network.weights), network.biases)


def tilted(model):
    """The transformer from tokens with values of closed brackets that do not balance."""
    second = model.parts[2]
    value = second.value * np.where(second.value < 0, 1.2, 1)
    return replace(model, parts=(*model.parts[:2], replace(second, value=value), model.parts[3]))


def times(factor):
    return lambda right: lambda *a, **o: factor * right(*a, **o)


# Statement, check, and the falsified function: module, name, wrapper.
CHECKS = {
    "necessity: random vectors": ("Theorem 1, necessity", 2, balance, "balanced_layer", random_layer),
    "necessity: (11) for queries of every kind": ("Theorem 1, necessity", 2, balance, "residual",
        lambda right: lambda Z, language: float(np.ptp(Z, axis=0).max())),
    "necessity: (11) with plus for minus": (
        "Theorem 1, necessity",
        2,
        balance,
        "residual",
        lambda right: lambda Z, language: right(Z * np.where(np.arange(Z.shape[1]) < Z.shape[1] // 2, 1, -1), language),
    ),
    "more depth: random values": (
        "Appendix C.2",
        0,
        larger,
        "identity_layer",
        lambda right: (
            lambda width, rng: replace(right(width, rng), value=np.random.default_rng(5).normal(size=(width,) * 2))
        ),
    ),
    "more depth: no link": ("Appendix C.2", 0, larger, "identity_layer",
        lambda right: lambda width, rng: replace(right(width, rng), residual=0.0)),
    "more width: an isometry that turns the all-ones direction away": ("Appendix C.2", 2, larger, "isometry",
        lambda right: lambda width, wider, rng: np.linalg.qr(rng.normal(size=(wider, width)))[0].T),
    "more width: zeros as further coordinates": ("Appendix C.2", 2, larger, "isometry",
        lambda right: lambda width, wider, rng: np.eye(width, wider)),
    "more width: other attention": ("Appendix C.2", 1, larger, "wider", other_attention),
    "silent pairs: (14) is not needed": ("Silent pairs", 0, balance, "insertions", times(0)),
    "silent pairs: (14) with minus": (
        "Silent pairs",
        0,
        balance,
        "insertions",
        lambda right: lambda layer, language: 2 * balance.contributions(layer, language)[:, balance.pairs(language)[0]],
    ),
    "silent pairs: random vectors": ("Silent pairs", 0, silence, "silent_layer", random_layer),
    "silent pairs: random values beside zero ones": ("Silent pairs", 1, silence, "silent_layer",
        lambda right: lambda language, silent, rng: noise(right(language, silent, rng))),
    "silent pairs: one type of level D only": ("Silent pairs", 1, silence, "may_be_silent",
        lambda right: lambda language, silent: right(DyckLanguage(language.n_types, language.max_depth + 1), silent)),
    "silent pairs: one type of level 1 too": ("Silent pairs", 1, silence, "may_be_silent",
        lambda right: lambda language, silent: right(language, [pair for pair in silent if pair != (0, 1)])),
    "silent pairs: none below level D": ("Silent pairs", 1, silence, "may_be_silent",
        lambda right: lambda language, silent: all(level == language.max_depth for _, level in silent)),
    "silent pairs: any below level D": ("Silent pairs", 1, silence, "may_be_silent",
        lambda right: lambda language, silent: all(level > 1 for _, level in silent)),
    "necessity: one type of brackets": ("Theorem 1, necessity", 2, measures, "right_and_balanced",
        lambda right: lambda: [*right(), measures.one_type()]),
    "Theorem 2: S for 2 S": ("Theorem 2", 0, balance, "insertions", times(2)),
    "Theorem 2: half the constant": ("Theorem 2", 0, theorem2, "bound", times(0.5)),
    "Theorem 2: without the 2": ("Theorem 2", 0, theorem2, "bound",
        lambda right: lambda p, lipschitz, separation, n: right(p, lipschitz / 2, separation, n)),
    "Theorem 2: P for 2 P": ("Theorem 2", 0, measures, "sums", times(2)),
    "Theorem 2: deeper levels for nothing": ("Theorem 2", 2, theorem2, "deeper",
        lambda right: lambda reached, n, levels: reached),
    "Theorem 2: every deeper level like two": ("Theorem 2", 2, theorem2, "deeper",
        lambda right: lambda reached, n, levels: right(reached, n, 2 * levels)),
    "cross-entropy: twice Pinsker's constant": ("Theorem 2", 3, cross_entropy, "two_entries", times(2)),
    "cross-entropy: half the distance": ("Theorem 2", 3, cross_entropy, "squared_distance", times(0.5)),
    "cross-entropy: twice the distance": ("Theorem 2", 3, cross_entropy, "squared_distance", times(2)),
    "sufficiency: a link that tells nothing": ("Theorem 1, sufficiency", 1, hypotheses, "linked_features",
        lambda right: lambda layer, bags: np.hstack([layer.features(bags), np.zeros((len(bags), len(layer.Z)))])),
    "sufficiency: a head of random weights": ("Theorem 1, sufficiency", 2, balance, "exact_head",
        lambda right: lambda layer, language: shuffled(right(layer, language))),
    "sufficiency: V_open without exp(-a)": ("Theorem 1, sufficiency", 2, Layer, "features",
        lambda right: lambda layer, bags: right(Layer(layer.Z, layer.Y, np.sign(layer.V)), bags)),
    "Corollary 1: V_close = V_open": ("Corollary 1", 0, Layer, "features",
        lambda right: lambda layer, bags: right(Layer(layer.Z, layer.Y, np.abs(layer.V)), bags)),
    "C.7: a limit of another size": ("Appendix C.7", 3, gpt, "closed_form",
        lambda right: lambda layer, language: tuple(2 * value for value in right(layer, language))),
    "C.7: the normaliser does not grow": ("Appendix C.7", 3, gpt, "gathered",
        lambda right: lambda layer, language, n: right(layer, language, 0)),
    "C.7: balance is sufficient behind a link": ("Appendix C.7", 4, gpt, "distances",
        lambda right: lambda layer, language, n, queries=None: right(layer, language, n)),
    "C.7: no link needs no balance": ("Appendix C.7", 6, balance, "balanced_layer", random_layer),
    "C.7: any link can be projected off": ("Appendix C.7", 6, np, "outer",
        lambda right: lambda one, other: right(one, other) * np.arange(len(other))),
    "C.7: pairs leave nothing of the query": ("Appendix C.7", 0, heads, "left_of_pairs",
        lambda right: lambda found, language, numbers=None, *, link=None: right(found, language, numbers)),
    "C.7: a link that adds the opposite": ("Appendix C.7", 1, heads, "features",
        lambda right: lambda found, bags, *, link=None: right(found, bags, link=None if link is None else -link)),
    "C.7: a layer on a line without its link": ("Appendix C.7", 2, heads, "features",
        lambda right: lambda found, bags, *, link=None: right(found, bags)),
    "C.7: half the rate behind a link": ("Appendix C.7", 5, gpt, "linked_rate", times(0.5)),
    "B.2: heads leave their sum over one mass": ("Appendix B.2", 0, heads, "left_of_pairs", times(1.1)),
    "B.2: each kind by itself is enough": ("Appendix B.2", 1, heads, "left_of_pairs",
        lambda right: lambda found, language, numbers=None, *, link=None: right(found, language, link=link)),
    "B.2: constants that do not cancel": ("Appendix B.2", 2, heads, "shifted_heads",
        lambda right: lambda *a, **o: right(*a, **o)[:2]),
    "B.2: two heads of equal values": ("Appendix B.2", 3, heads, "opposite_heads",
        lambda right: lambda *a, **o: (right(*a, **o)[0],) * 2),
    "B.2: one head of several": ("Appendix B.2", 4, heads, "features",
        lambda right: lambda found, bags, *, link=None: right(found[:1], bags)),
    "footnote 1: a gap without the number of brackets": ("Footnote 1", 0, smoothing, "best_gap",
        lambda right: lambda p, n, eps: right(p, 1, eps)),
    "footnote 1: logits of no smoothing": ("Footnote 1", 1, smoothing, "smoothed_head",
        lambda right: lambda layer, language, eps: right(layer, language, eps / 2)),
    "Corollary 1: tokens without START": (
        "Corollary 1",
        2,
        from_tokens,
        "token_transformer",
        lambda right: (
            lambda language, *a, **o: dataclasses.replace(
                made := right(language, *a, **o),
                embedding=made.embedding * (np.arange(len(made.embedding)) < 2)[:, None],
            )
        ),
    ),
    "values: V_close = V_open": ("Balance of values", 0, balance, "balancing_values",
        lambda right: lambda Z, language: np.abs(right(Z, language))),
    "lemmas: half of softmax's bound": ("Lemmas of Theorem 3", 0, bounds, "attention_change", times(0.5)),
    "lemmas: LN without its Lipschitz constant": ("Lemmas of Theorem 3", 0, bounds, "norm_change",
        lambda right: lambda change, floor, least: change),
    "lemmas: the residual link left out": ("Lemmas of Theorem 3", 0, bounds, "read_change",
        lambda right: lambda normed, link, error: normed),
    "lemmas: half of the spread of logits": ("Lemmas of Theorem 3", 0, bounds, "logit_spread", times(0.5)),
    "lemmas: networks without the second error": ("Lemmas of Theorem 3", 0, bounds, "network_change",
        lambda right: lambda matrices, errors, size: right(matrices[:1], errors[:1], size)),
    "Theorem 3: errors that do not pass on": ("Theorem 3", 0, bounds, "read_change",
        lambda right: lambda normed, link, error: 0 * normed),
    "Theorem 3: certificates without the networks' errors": ("Theorem 3", 0, bounds, "network_change", times(0.01)),
    "Theorem 3: units that see relu(-x) with the wrong sign": ("Theorem 3", 0, lottery.ReluNetwork, "__call__",
        lambda right: lambda network, z: right(network, np.abs(z)) if len(network.weights) == 4 else right(network, z)),
    "Theorem 3: twice as many units for the same error": ("Theorem 3", 1, subset_law, "nearest_sums",
        lambda right: lambda wanted, sizes, rng: right(wanted, sizes[::2], rng)),
    "Corollary 3: two layers that differ": ("Corollary 3", 1, lottery, "indistinguishable_transformers",
        lambda right: lambda one, other, random, layer: right(one, other, random, 3 - layer)),
    "from tokens: states of the depth before the bracket": ("Transformer from tokens", 0, from_tokens, "_steps",
        lambda right: lambda width, sine, step, depth: right(width, sine, step[::-1], depth)),
    "from tokens: an unbalanced second attention": ("Transformer from tokens", 1, from_tokens, "_built",
        lambda right: lambda language, layer, low: tilted(right(language, layer, low))),
    "from tokens: a gap of q alone": ("Transformer from tokens", 2, of_tokens, "gap",
        lambda right: lambda low, least: right(low, 2 * least)),
    "from tokens: softmax without its normaliser": ("Transformer from tokens", 3, of_tokens, "lost",
        lambda right: lambda m, low: m * np.exp(-low)),
    "outputs: an error of the whole change": ("Pairs in outputs", 1, of_outputs, "least_apart",
        lambda right: lambda separation, apart: separation - apart),
    "outputs: twice the distance of stacks": ("Pairs in outputs", 1, outputs, "_variation", times(2)),
    "values: random vectors": ("Balance of values", 0, balance, "balancing_values",
        lambda right: lambda Z, language: np.random.default_rng(5).normal(size=right(Z, language).shape)),
}  # fmt: skip


@functools.cache
def verdict(number, index):
    """The verdict of a check; the right statement's is cached, since it has several false variants."""
    check = statements.REGISTER[f"Bounded Dyck: {number}"].checks[index]
    return judge((check.corrected or check.printed)(Simulations(SETTING, seed=0), EXACT), check.tolerance)


# Seconds each; `test_lottery.py` asks for the same law, and "lemmas: .." are variants of the same bound.
LONG = {
    "Theorem 3: twice as many units for the same error",
    "Theorem 3: units that see relu(-x) with the wrong sign",
    "Theorem 3: certificates without the networks' errors",
    "Theorem 3: errors that do not pass on",
    "Corollary 3: two layers that differ",
    "silent pairs: random values beside zero ones",
}


@pytest.mark.parametrize("name", first_quick({name: check[:2] for name, check in CHECKS.items()}, 2, LONG))
def test_a_false_statement_fails_its_check(name, monkeypatch):
    number, index, module, attribute, wrap = CHECKS[name]
    assert verdict(number, index) is not Verdict.FAILS
    for kept in KEPT:
        kept.cache_clear()
    monkeypatch.setattr(module, attribute, wrap(getattr(module, attribute)))
    assert verdict.__wrapped__(number, index) is Verdict.FAILS


@pytest.mark.parametrize("level", ["full flow", "SGD"])
def test_more_than_half_of_a_change_is_no_bound_of_a_trained_layers_error(level, monkeypatch):
    """The layer that training finds has errors near the bound: the whole change exceeds them."""
    runs = Simulations(SETTING, seed=0)
    assert measures_of_models.error_from_pairs(runs, level) == 0
    monkeypatch.setattr(of_outputs, "least", times(3)(of_outputs.least))
    assert measures_of_models.error_from_pairs(runs, level) > 0.1


def test_theorem_1_stands_as_printed_behind_the_link_of_6():
    """No check of it has a form besides: (11) at closing queries alone is enough behind the link, and not without."""
    for number in ("Theorem 1, necessity", "Theorem 1, sufficiency"):
        assert all(check.corrected is None for check in statements.REGISTER[f"Bounded Dyck: {number}"].checks)
    assert measures.linked_predictions(Simulations(SETTING, seed=0), EXACT) < 1e-10
    layer = hypotheses.balanced_at_closing_queries(SETTING.language, 0)
    assert not measures.right_at_every_length(layer, SETTING.language)


def test_silent_layers_that_are_right_lack_the_balance_condition():
    # (11) for all pairs, without the hypothesis that no value vanishes, is false.
    silent = [row for row in measures.right_and_balanced() if row["silent"] and row["right"]]
    assert silent and not any(row["(11)"] for row in silent) and all(row["(14)"] for row in silent)


@pytest.fixture(scope="module")
def runs():
    """The layer that is trained in the setting, before anything is false."""
    runs = Simulations(SETTING, seed=0)
    runs.trajectory("SGD")
    return runs


def trained(layer):
    return SimpleNamespace(setting=SETTING, trajectory=lambda level: SimpleNamespace(final=layer))


@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [
        (balance, "insertions", times(2)),
        (measures, "sums", times(1.1)),
        (measures, "sums", lambda right: lambda *a: right(*a)[::-1] * np.array([1, -1, 1, -1, 1, -1])),
        (Layer, "features", lambda right: lambda layer, bags: right(Layer(0 * layer.Z, layer.Y, layer.V), bags)),
    ],
)
def test_a_trained_layer_does_not_forget_by_another_law(module, name, wrong, runs, monkeypatch):
    assert measures.forgetting(runs, "SGD") < 0.01
    monkeypatch.setattr(module, name, wrong(getattr(module, name)))
    assert measures.forgetting(runs, "SGD") > 0.05


def test_a_trained_layer_lies_outside_of_theorem_1_and_a_balanced_one_inside(runs):
    """For the one, what stays of a pair is shown and no alarm; for the other it is asked for, and nothing stays."""
    one = statements.REGISTER["Bounded Dyck: Theorem 1, necessity"]
    (check,) = (check for check in one.checks if check.printed is measures.pair_left)

    class Balanced(DyckSetting):
        def simulate(self, level, *, seed):
            return SimpleNamespace(final=balance.balanced_layer(self.language, 0))

    trained = measure(one, check, "SGD", runs, None)
    assert not trained.inside and not trained.expected and not trained.alarming and 0.3 < trained.printed < 0.9
    balanced = measure(one, check, "SGD", Simulations(Balanced("balanced", SETTING.language), seed=0), None)
    assert balanced.inside and balanced.printed < 1e-9


def test_training_with_uniform_attention_does_not_find_the_layer_of_corollary_1():
    """Shown and no alarm: Corollary 1 says that one exists. Attention stays uniform, and values do not balance."""
    one = statements.REGISTER["Bounded Dyck: Corollary 1"]
    (check,) = (check for check in one.checks if check.printed is measures.uniform_trained)
    row = measure(one, check, "SGD", Simulations(SETTING, seed=0), None)
    assert not row.inside and not row.alarming and 0.5 < row.printed <= 1
    layer = replace(SETTING, uniform=True).simulate("SGD", seed=0).final
    assert not layer.Z.any() and approximate.miss(layer, SETTING.language) > 0.1
    bags = SETTING.language.enumerate(min_length=0, max_length=6)
    assert np.abs(layer.predict(bags) - bags.target).max() <= row.printed


def test_approximate_balance_says_nothing_of_layers_whose_loss_is_not_small(runs):
    final = runs.trajectory("SGD").final
    assert measures.approximate_balance(trained(final), "SGD") == 0
    for seed in range(20):
        assert measures.approximate_balance(trained(noise(final, seed)), "SGD") == 1


@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [
        (cross_entropy, "error", lambda right: lambda *a: right(*a) / 2),
        (approximate, "excess", lambda right: lambda *a: right(*a)[::-1]),
        (approximate, "_divergences", lambda right: lambda *a: (right(*a)[0] / 4, right(*a)[1])),
    ],
)
def test_outputs_of_a_trained_layer_refute_less_than_the_loss_leaves(module, name, wrong, runs, monkeypatch):
    assert measures.kept_apart(runs, "SGD") == 0
    monkeypatch.setattr(module, name, wrong(getattr(module, name)))
    assert measures.kept_apart(runs, "SGD") > 0.01


def test_approximate_balance_fails_where_a_layer_is_right_with_a_head_said_to_be_flat(runs, monkeypatch):
    # Twenty times the increments of the pairs: more than the outputs allow.
    final = runs.trajectory("SGD").final
    right = balance.insertions
    monkeypatch.setattr(balance, "insertions", lambda layer, language: 100 * right(layer, language))
    assert measures.approximate_balance(trained(final), "SGD") > 0


def test_predictions_are_measured_with_attention_and_with_uniform_attention(monkeypatch):
    """The two rows of Corollary 1 are about different layers."""
    layers = []
    made = balance.balanced_layer
    monkeypatch.setattr(balance, "balanced_layer", lambda *a, **o: layers.append(made(*a, **o)) or layers[-1])
    runs = SimpleNamespace(setting=SimpleNamespace(language=DyckLanguage(1, 1)))
    assert measures.exact_predictions(runs, EXACT) < 1e-9 and measures.uniform_predictions(runs, EXACT) < 1e-9
    assert layers[0].Z.any() and not layers[1].Z.any()
