"""Distinct and common tokens from samples: exact tests against scipy's, and false alarms against known populations."""

import numpy as np
import pytest
import scipy.stats
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Bags, SequenceClasses
from theory.scan_and_snap.token_estimates import COMMON, DISTINCT, UNDECIDED, TokenEstimates

LEVELS = (0.001, 0.05, 0.3)


def sequences(followed):
    """Bags that all hold token 0, followed by next token n in ``followed[n]`` of them."""
    target = np.repeat(np.arange(len(followed)), followed)
    return Bags.from_dense(np.zeros(target.size, int), target, np.ones((target.size, 1)), vocab_size=len(followed))


@given(strategies.bags(soft=False), st.booleans())
def test_counts_are_those_of_sequences(bags, repeat):
    bags = Bags(bags.query, bags.target, bags.indptr, bags.token, bags.count + 3 * repeat, **bags.sizes)
    found = TokenEstimates(bags)
    seen = np.zeros((bags.n_tokens, bags.vocab_size))
    for b in range(len(bags)):
        seen[bags.token[bags.indptr[b] : bags.indptr[b + 1]], bags.target[b]] += 1
    assert (found.seen.toarray() == seen).all()
    assert (found.trials == seen.sum(axis=1)).all()
    assert found.probability == pytest.approx(np.bincount(bags.target, minlength=bags.vocab_size) / len(bags))


@given(st.integers(0, 30), st.integers(0, 30), st.sampled_from(LEVELS))
def test_interval_is_that_of_clopper_and_pearson(seen, others, level):
    if seen + others == 0:
        return
    estimate, lower, upper = TokenEstimates(sequences([seen, others])).interval(0, 0, level=level)
    expected = scipy.stats.binomtest(seen, seen + others).proportion_ci(1 - level, method="exact")
    assert estimate == seen / (seen + others)
    assert (lower, upper) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.93])
def test_kind_is_decided_by_exact_tests(share):
    # A token for each (k, N - k) up to 30: in the first k of 30 sequences with next token 0, and of 30 with 1.
    seen, others = np.indices((31, 31)).reshape(2, -1)[:, 1:]
    place = np.tile(np.arange(30), 2)[:, None]
    holds = place < np.where(np.arange(60)[:, None] < 30, seen, others)
    holds = np.pad(holds, ((0, 0), (0, 1)), constant_values=True)
    found = TokenEstimates(Bags.from_dense(np.zeros(60, int), np.repeat([0, 1], 30), holds.astype(float)))
    at_least = scipy.stats.binom.sf(seen - 1, seen + others, share)
    at_most = scipy.stats.binom.cdf(seen, seen + others, share)
    for level in LEVELS:
        expected = np.where(at_least <= level * share, DISTINCT, np.where(at_most <= level, COMMON, UNDECIDED))
        assert (found.kind(np.arange(seen.size), 0, share=share, level=level) == expected).all()
    assert set(expected) == {COMMON, UNDECIDED, DISTINCT}


def test_what_was_seen_twice_is_not_distinct():
    kinds = [TokenEstimates(sequences([n, 0])).kind(0, 0, share=0.5, level=0.05) for n in range(1, 9)]
    assert kinds == [UNDECIDED] * 5 + [DISTINCT] * 3  # 0.5^6 <= 0.05 / 2 < 0.5^5
    assert TokenEstimates(sequences([2, 0])).kind(0, 0, share=0.1, level=0.5) == DISTINCT  # 0.1^2 <= 0.5 * 0.1


def test_lift_is_relative_to_the_probability_of_the_next_token():
    target = np.repeat([0, 1], [20, 180])
    holds = np.zeros((200, 2))
    holds[:, 1] = 1
    holds[:10, 0] = holds[20:30, 0] = 1  # token 0: half of its 20 sequences have next token 0, a tenth of all
    found = TokenEstimates(Bags.from_dense(np.zeros(200, int), target, holds))
    for lift in (1.1, 2.0, 4.0):
        assert found.kind(0, 0, lift=lift) == found.kind(0, 0, share=0.1 * lift)
    assert found.kind(0, 0, lift=2.0) == DISTINCT
    assert found.kind([0, 1], 0, lift=9.0).tolist() == [COMMON, COMMON]
    assert found.kind(1, 1, lift=2.0) == COMMON  # no share reaches 2 * 0.9


def test_tokens_finds_distinct_and_common_ones_of_a_known_population():
    classes = SequenceClasses.syn_small()
    found = TokenEstimates(classes.sample(4000, length=20, rng=np.random.default_rng(0)))
    kind, next_token = found.tokens(share=0.9)
    assert (kind[classes.common_tokens] == COMMON).all()
    for n in range(2):
        distinct = classes.distinct_tokens(n)
        assert (kind[distinct] == DISTINCT).all()
        assert (next_token[distinct] == n).all()
    unseen = np.setdiff1d(np.arange(kind.size), np.r_[0:30])
    assert (kind[unseen] == UNDECIDED).all()
    assert (next_token[unseen] == -1).all()


def share_of(classes, n_classes, width):
    """P(n | l is among ``width`` draws) by Bayes' rule: (tokens, next tokens)."""
    bags = classes.population()
    draws = np.zeros((n_classes, bags.n_tokens))
    draws[np.repeat(np.arange(n_classes), np.diff(bags.indptr)), bags.token] = bags.count
    holds = 1 - (1 - draws / draws.sum(axis=1, keepdims=True)) ** width
    return (holds / holds.sum(axis=0)).T


@pytest.mark.slow
def test_intervals_cover_and_kinds_alarm_at_the_stated_rates():
    rng = np.random.default_rng(1)
    n_classes, width, level, share, samples = 4, 5, 0.1, 0.4, 400
    probabilities = rng.dirichlet(np.full(12, 0.3), n_classes)
    classes = SequenceClasses(probabilities, np.zeros(n_classes, int))
    truth = share_of(classes, n_classes, width)
    token, next_token = np.indices(truth.shape)
    missed = np.zeros(truth.shape)
    false_common = np.zeros(truth.shape)
    false_distinct = np.zeros(len(truth))
    for _ in range(samples):
        found = TokenEstimates(classes.sample(60, length=width + 1, rng=rng))
        pad = found.trials.size  # tokens that no class has are no columns
        _, lower, upper = found.interval(token[:pad], next_token[:pad], level=level)
        missed[:pad] += (truth[:pad] < lower) | (truth[:pad] > upper)
        kind = found.kind(token[:pad], next_token[:pad], share=share, level=level)
        false_common[:pad] += (kind == COMMON) & (truth[:pad] >= share)
        false_distinct[:pad] += ((kind == DISTINCT) & (truth[:pad] < share)).any(axis=1)
    # Binomial with 400 samples at a rate of 0.1: above 62 for any of 108 counts with probability 5e-2 at the most.
    most = scipy.stats.binom.isf(0.05 / 108, samples, level)
    for wrong in (missed, false_common, false_distinct):
        assert wrong.max() <= most
    assert missed.sum() > 0
    assert false_common.sum() > 0


def test_the_rate_of_false_distinct_tokens_is_kept_at_the_worst_shares():
    # Next tokens 0 and 1 each next to a share of one half: the most that can be, with one level for all n.
    level, trials = 0.2, 40
    first = np.arange(trials + 1)
    alarms = np.array(
        [
            (TokenEstimates(sequences([n, trials - n])).kind(0, [0, 1], share=0.5, level=level) == DISTINCT).any()
            for n in first
        ]
    )
    rate = scipy.stats.binom.pmf(first, trials, 0.5)[alarms].sum()
    # P[Bin(40, 1/2) >= 25] = 0.077 is the largest below 0.1; at the level 0.2 itself it would be 2 P[.. >= 23] = 0.43.
    assert rate == pytest.approx(2 * scipy.stats.binom.sf(24, trials, 0.5))
    assert rate < level < 2 * scipy.stats.binom.sf(22, trials, 0.5)
