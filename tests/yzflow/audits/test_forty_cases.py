"""Readers: what a headline says of their training, against the same training written down a second time.

The second one (`own_truth`) has right-hand sides, steps and closed forms of its own.
"""

import re

import numpy as np
import pytest
from own_truth import ASKED, Training, flow, steps, truths

import yzflow as yz

STATEMENTS = tuple(ASKED)
KINDS = (
    "plain", "weights", "queries", "momentum", "adam", "decay", "smoothing", "apart", "one class", "all tokens",
    "copies", "single", "common only", "ties",
)  # fmt: skip
SEEDS = 6  # of our own steps


def drawn(number):
    """The training of a reader, and a kind of it that goes in turn."""
    rng = np.random.default_rng([20231, number])
    kind = KINDS[number % len(KINDS)]
    classes = 1 if kind == "one class" else int(rng.integers(2, 4))
    common, distinct = int(rng.integers(1, 3)), int(rng.integers(2, 4))
    if kind == "apart":
        common = 0
    if kind == "single":
        distinct = 1
    if kind == "common only":
        distinct = 0
    shares = np.zeros((classes, common + classes * distinct))
    shares[:, :common] = rng.uniform(0.5, 1.5, (classes, common))
    for n in range(classes):
        shares[n, common + n * distinct : common + (n + 1) * distinct] = rng.uniform(0.2, 1.5, distinct)
    if kind == "ties":
        shares[0, common : common + 2] = 1.0
    if kind == "copies":
        shares[1] = shares[0]
    shares /= shares.sum(axis=1, keepdims=True)
    tokens = shares.shape[1]
    vocabulary = max(tokens, classes) if kind == "all tokens" else int(rng.integers(max(tokens, 10), 60))
    weights = np.full(classes, 1 / classes)
    if kind == "weights":
        weights = rng.dirichlet(np.ones(classes)) * 0.9 + 0.1 / classes
    query = np.arange(classes) % 2 if kind == "queries" else np.zeros(classes, dtype=int)
    more = {
        "momentum": {"momentum": 0.9},
        "adam": {"rule": "adam"},
        "decay": {"decay": 0.01},
        "smoothing": {"smoothing": 0.1},
    }.get(kind, {})
    fast = kind == "adam"
    eta_y, eta_z = (0.01, 0.001) if fast else (float(rng.choice([0.3, 1.0])), float(rng.choice([0.003, 0.3])))
    return kind, Training(shares, query, vocabulary, eta_y, eta_z, float(rng.integers(20, 60)), weights, **more)


def asked(training, number):
    """The verdict of the package on a statement at a training."""
    optimizer = objective = None
    if training.rule == "adam":
        optimizer = "adam"
    elif training.momentum or training.decay:
        optimizer = yz.Optimizer("sgd", momentum=training.momentum, weight_decay=training.decay)
    if training.smoothing:
        objective = yz.Objective(label_smoothing=training.smoothing)
    data = yz.SequenceClasses(
        training.probabilities, training.query, vocab_size=training.vocab_size, class_weights=training.weights
    )
    rates = {"eta_y": training.eta_y, "eta_z": training.eta_z, "t_end": training.t_end}
    return yz.check(f"Scan and Snap: {number}", data=data, optimizer=optimizer, objective=objective, **rates)


_BY = r"by up to (?P<by>[\d.,e+-]+)(?P<unit>%| times)"
_SIZE = rf"(?:, (?:{_BY}|in up to (?P<part>[\d.e-]+) of all places|in (?P<all>all) places))?"


def false_claims(clause, runs):
    """Claims of a clause of a headline that none of the runs of a training (each a list of `Truth`) bears out."""
    return [piece for piece in clause.split("; ") if not any(_true(piece, parts) for parts in runs)]


def _true(piece, parts):
    held, failed = [one for one in parts if one.holds], [one for one in parts if one.fails]
    if piece == "there was nothing to compare":
        return not held and not failed
    if piece == "it held":
        return bool(held) and not failed
    if piece == "the rest held":
        return len(held) > 2
    if match := re.fullmatch(r"(\d+) more failed", piece):
        return len(failed) > int(match[1])
    if match := re.fullmatch(r"(\d+) of (\d+) parts held(, the rest was nothing to compare)?", piece):
        whole = len(parts) if match[3] else len(held) + len(failed)
        return (int(match[1]), int(match[2])) == (len(held), whole) and not (match[3] and failed)
    if match := re.fullmatch(r"(.*): nothing to compare", piece):
        return any(one.says == match[1] and one.error is None for one in parts)
    if piece.endswith(" held"):
        return all(any(one.says == says for one in held) for says in piece.removesuffix(" held").split(" and "))
    match = re.fullmatch(rf"(?P<says>.*?) failed{_SIZE}", piece)
    assert match is not None, piece
    named = failed if match["says"] == "it" else [one for one in failed if one.says == match["says"]]
    return any(_size(match, one) for one in named)


def _size(match, one):
    if one.share:
        said = 1.0 if match["all"] else float(match["part"] or "nan")
        return abs(said - one.error) <= 0.35
    said = float(match["by"].replace(",", "")) * (0.01 if match["unit"] == "%" else 1)
    return one.error / 3 <= said <= 3 * one.error


def clauses(said):
    """The clauses of a headline on the flow and on steps; None of one that is not there."""
    said = re.sub(r"; \d+ of \d+ assumptions broken$", "", said.removesuffix("."))
    said = re.sub(r"^(In your full flow(?: and SGD)?) \([^()]*\) ", r"\1 ", said)
    if match := re.fullmatch("In your full flow and SGD (.*)", said):
        return match[1], match[1]
    match = re.fullmatch("In your full flow (.*?)(?:; in your SGD (.*)|; SGD was not run)?", said)
    assert match is not None, said
    return match[1], match[2]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(16))
def test_no_claim_of_a_headline_is_false(number):
    """Each reader asks two statements, in turn."""
    kind, training = drawn(number)
    if kind == "one class":
        with pytest.raises(ValueError, match="`probabilities` must have at least two rows"):
            asked(training, STATEMENTS[0])
        return
    runs = None
    for place in (number, number + 3):
        name = STATEMENTS[place % len(STATEMENTS)]
        said = asked(training, name).headline
        assert len(said) <= 160, said
        of_flow, of_steps = clauses(said)
        if not of_flow.startswith("training stopped at t = "):
            seen = truths(name, training, flow(training))
            assert not false_claims(of_flow, [seen]), (said, seen)
            # Nothing that failed there is passed over.
            assert not any(one.fails for one in seen) or "failed" in of_flow, (said, seen)
        if of_steps is not None:
            runs = runs or [steps(training, seed) for seed in range(SEEDS)]
            several = [truths(name, training, run) for run in runs]
            assert not false_claims(of_steps, several), (said, several)
