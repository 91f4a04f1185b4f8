"""Each statement has the hypotheses that its paper gives it, and each hypothesis has a setting that breaks it."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from dynamics import Layer, SequenceClasses
from theory import statements
from theory.scan_and_snap import finite_sequences
from theory.scan_and_snap._register import assumptions
from theory.scan_and_snap.bounds import xi_over_gamma
from yzflow.papers.scan_and_snap.settings import (
    Setting,
    classes_with_common_shares,
    rising_common_token,
    single_common_token,
    two_common_tokens,
)

TABLE = tomllib.loads((Path(__file__).parent / "hypotheses.toml").read_text(encoding="utf-8"))
PRINTED = {one.number: one for one in statements.REGISTER.values() if one.paper == "Scan and Snap" and not one.own}
# Inside every assumption of the paper at once.
INSIDE = Setting("inside", single_common_token(3, 50_000, 0.03), 0.9, 1e-3, 150.0, length=2_000_000)


def hypotheses(number):
    """Hypotheses of a statement, with those of the statements that it rests on."""
    entry = TABLE[number]
    found = set(entry["own"]) | set(entry.get("ours", ()))
    for other in entry.get("of", ()):
        found |= hypotheses(other) - set(TABLE[other].get("ours", ()))
    return found


def test_every_printed_statement_has_an_entry():
    assert set(TABLE) == set(PRINTED)
    assert all(("ours" in entry) == ("why" in entry) for entry in TABLE.values())


@pytest.mark.parametrize("number", TABLE)
def test_the_register_has_each_hypothesis_of_the_printed_page(number):
    one = PRINTED[number]
    assert {assumption.printed for assumption in one.assumptions} == hypotheses(number)
    parts = TABLE[number].get("parts", {})
    for clause in one.clauses:
        for check in (check for check in clause.checks if check.suffices is None):
            besides = {assumption.printed for assumption in (*clause.assumptions, *check.assumptions)}
            expected = {text for name, texts in parts.items() if check.name.startswith(name) for text in texts}
            assert besides == expected, check.name
    for name in parts:
        assert any(check.name.startswith(name) for check in one.checks), name


def test_what_suffices_is_less_than_the_statement_assumes():
    found = [(one, check) for one in PRINTED.values() for check in one.checks if check.suffices is not None]
    assert len(found) >= 10
    for one, check in found:
        assumed = {text for texts in one.assumes.values() for text in texts if texts}
        assert one.assumptions and not {two.text for two in one.assumptions} <= {two.text for two in check.suffices}
        assert "Sharper than printed" in one.text or one.errata, one.id
        assert {two.text for two in check.suffices} <= assumed


def changed(**fields):
    return dataclasses.replace(INSIDE, **fields)


def started(y, z):
    zeros = Layer.zeros(INSIDE.classes.population())
    return changed(start=dataclasses.replace(zeros, Y=zeros.Y + y, Z=zeros.Z + z))


def of(classes):
    return changed(classes=classes)


def unequal(weights):
    one = INSIDE.classes
    return of(SequenceClasses(one.probabilities, one.query, vocab_size=one.vocab_size, class_weights=weights))


def without_distinct():
    shares = np.array([[0.5, 0.3, 0.2, 0.0], [0.5, 0.3, 0.2, 0.0], [0.5, 0.0, 0.2, 0.3]])
    return SequenceClasses(shares, [0, 0, 1], vocab_size=50_000)


# Hypothesis -> a setting that breaks it.
BREAKING = {
    "Assumption 1(a), no positional encoding": changed(position_bias=0.1),
    "Assumption 1(b), T -> infinity": changed(length=256),
    "Assumption 1(c), eta_Y >> eta_Z": changed(eta_z=0.01),
    "Assumption 1(c) for the vocabulary": changed(eta_z=INSIDE.eta_y / 200),
    "Assumption 2, M >> K^2": of(single_common_token(3, 89, 0.03)),
    "Assumption 2, |lambda_1(E)| < 1/K": of(single_common_token(3, 50_000, 0.17)),
    "Assumption 2, |lambda_i(E)| >= 6/sqrt(M)": of(single_common_token(3, 39_000, 0.03)),
    "|lambda_1(E)| < 1": of(single_common_token(3, 50_000, 0.51)),
    "Y(0) = 0": started(1e-6, 0.0),
    "Z(0) = 0": started(0.0, 1e-6),
    "M >> 100": of(single_common_token(3, 999, 0.03)),
    "eta_Y < 1": changed(eta_y=1.01),
    "eta_Y >> M^-0.99": changed(eta_y=9.9 * 50_000**-0.99, eta_z=1e-9),
    "eta_Y = O(1)": changed(eta_y=10.1),
    "classes drawn uniformly": unequal([0.3, 0.3, 0.4]),
    "t >> K^2 steps of batch size 1": of(single_common_token(10, 50_000, 0.03)),
    "N >> K^2": of(single_common_token(10, 50_000, 0.03)),
    "M >= 4": of(single_common_token(3, 3, 0.03)),
    "equal overlaps": of(classes_with_common_shares([0.3, 0.3, 0.2], 50_000)),
    "common tokens that have one f_n in all classes": of(classes_with_common_shares([0.3, 0.2], 50_000)),
    "one common token": of(two_common_tokens(3, 50_000, 0.03)),
    "some class of the query has a distinct token": of(without_distinct()),
    "one query": of(classes_with_common_shares([0.3] * 4, 50_000, n_queries=2)),
    "distinct tokens of equal probabilities in all classes": of(rising_common_token(50_000)),
    "common tokens that have one probability in all classes": of(rising_common_token(50_000)),
    "a dominant distinct token": of(classes_with_common_shares([0.3] * 3, 50_000, distinct=(1.0, 1.0, 0.5))),
    "all common tokens fall": of(rising_common_token(50_000)),
    "(13), common components are small": of(single_common_token(3, 50_000, 0.034)),
    "(13), beta_nn' is f_n.f_n'": of(single_common_token(3, 50_000, 1.5e-4)),
}


def conditions():
    """Every assumption of the paper's statements, by what is printed."""
    held = [one.assumptions for one in PRINTED.values()]
    held += [clause.assumptions for one in PRINTED.values() for clause in one.clauses]
    held += [check.assumptions for one in PRINTED.values() for check in one.checks]
    return {assumption.printed: assumption for group in held for assumption in group}


def test_every_hypothesis_can_be_broken():
    found = conditions()
    assert set(found) == set(BREAKING)
    for text, assumption in found.items():
        assert assumption.margin(INSIDE) >= 1, text
        assert assumption.margin(BREAKING[text]) < 1, text


def test_only_what_is_broken_is():
    """Of Theorem 1, each condition but M >> K^2, which the others of Assumption 2 include, can fail alone."""
    alone = set()
    for text, setting in BREAKING.items():
        failing = [one.printed for one in PRINTED["Theorem 1"].assumptions if one.margin(setting) < 1]
        alone |= {text} if failing == [text] else set()
    assert {one.printed for one in PRINTED["Theorem 1"].assumptions} - alone <= {
        "Assumption 2, M >> K^2",
        "M >> 100",  # there 6/sqrt(M) is above 1/K, or the overlap
        "t >> K^2 steps of batch size 1",  # ten classes of this overlap are beyond 1/K
    }


def test_long_enough_is_where_the_term_of_finite_sequences_is_a_tenth_of_theorem_2_s():
    """By the formula for classes that share no token, whose rarest distinct token has little probability."""
    classes = single_common_token(2, 1000, 0.3)
    p = classes.probabilities.toarray()[0]
    p = p[p > 0]
    drift, pull = finite_sequences.finite_length_drift(p), xi_over_gamma(classes.overlap(), 1000)[0]
    rarest = np.argmin(p)
    gain = p[rarest] ** 2 / (p**2).sum() * pull
    margin = assumptions.LONG_SEQUENCES.margin(Setting("", classes, 1.0, 1e-3, 100.0, length=1001))
    # Beyond the leading -p/S_2 the formula has terms of the order of p.
    assert -drift[rarest] / 1000 / gain == pytest.approx(0.1 / margin, rel=0.25)
    assert assumptions.LONG_SEQUENCES.margin(dataclasses.replace(INSIDE, length=None)) == np.inf
    assert assumptions.LONG_SEQUENCES.levels == ("SGD",)


def test_features_that_depend_on_each_other_are_outside():
    shares = np.array([[0.5, 0.5], [0.5, 0.5]])
    setting = of(SequenceClasses(shares, [0, 0], vocab_size=50_000))
    margins = PRINTED["Theorem 2(a)"].margins(setting)
    assert margins["Assumption 2, |lambda_1(E)| < 1/K"] < 1 and min(margins.values()) == 0


def test_the_overlap_is_that_of_the_start():
    """With Z(0) on the common token classes overlap more, and Assumption 2 fails."""
    zeros = Layer.zeros(INSIDE.classes.population())
    z = np.array(zeros.Z)
    z[:, INSIDE.classes.common_tokens] = 2.0
    setting = changed(start=dataclasses.replace(zeros, Z=z))
    assert assumptions.UPPER.margin(setting) < 1 <= assumptions.UPPER.margin(INSIDE)
    run = setting.simulate("modified flow", seed=0)
    shares = run.dataset["attention"].values[0]
    f = shares / np.linalg.norm(shares, axis=1, keepdims=True)
    np.testing.assert_allclose(assumptions._overlap(setting), f @ f.T, atol=1e-12)


# Not needed where (10) itself is looked at: of finite sequences, of the decoder's speed and of how long it has learned.
_NOT_NEEDED = (*assumptions.ASSUMPTION_1, *assumptions.DECODER, assumptions.MANY_STEPS)


@pytest.mark.parametrize(
    "one", [one for one in PRINTED.values() if any(check.name.startswith("at any") for check in one.checks)],
    ids=lambda one: one.number,
)  # fmt: skip
def test_at_any_rates_all_else_is_assumed(one):
    for clause in one.clauses:
        for check in (check for check in clause.checks if check.name.startswith("at any")):
            given = {assumption.text for assumption in (*one.assumptions, *clause.assumptions)}
            dropped = given - {assumption.text for assumption in check.suffices}
            assert assumptions.FAST_DECODER.text in dropped
            assert dropped <= {assumption.text for assumption in _NOT_NEEDED}, check.name
            assert {assumption.text for assumption in check.suffices} <= given


def test_no_wrong_sign_is_tolerated():
    signs = [check for one in PRINTED.values() for check in one.checks if check.reversible]
    assert len(signs) == 8 and all(check.name.startswith("share of") for check in signs)
    assert {check.tolerance for check in signs} == {0.0}
    assert {check.expected for check in signs} == {("theory flow",)}


UNLIKE = {
    "shares": SequenceClasses([[0.5, 0.5, 0], [0.5, 0, 0.5]], [0, 0], vocab_size=9, class_weights=[0.6, 0.4]),
    "distinct": SequenceClasses([[0.5, 0.3, 0.2, 0], [0.5, 0, 0, 0.5]], [0, 0], vocab_size=9),
    "common": SequenceClasses([[0.5, 0.5, 0], [0.6, 0, 0.4]], [0, 0], vocab_size=9),
    "two common": SequenceClasses([[0.2, 0.2, 0.6, 0], [0.2, 0.2, 0, 0.6]], [0, 0], vocab_size=9),
    "queries": SequenceClasses([[0.5, 0.5, 0], [0.5, 0, 0.5]], [0, 1], vocab_size=9),
}


@pytest.mark.parametrize(
    ("number", "outside"),
    [("Late attention", set(UNLIKE)), ("Transition time", {"shares"})],
    ids=["late", "transition"],
)
def test_what_is_ours_says_of_which_classes_it_speaks(number, outside):
    one = statements.REGISTER[f"Scan and Snap: {number}"]
    assert all(margin >= 1 for margin in one.margins(INSIDE).values())
    broken = {
        name
        for name, classes in UNLIKE.items()
        if any(margin < 1 for margin in one.margins(changed(classes=classes)).values())
    }
    assert broken == outside
