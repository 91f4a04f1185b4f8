"""Bounded Dyck languages: their law, states and bags against the definition, written with a stack."""

import itertools

import driving
import numpy as np
import pytest
import reference
import scipy.stats
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck.dyck import State

from dynamics import gradient_flow

KINDS = ("prefix", "word")


def parse(language, brackets):
    """(unmatched types, state) after each bracket; None if the brackets are no prefix."""
    stack, history = [], []
    for bracket in brackets:
        kind = int(bracket) // 2
        if bracket % 2 == 0:
            stack.append(kind)
            history.append((tuple(stack), State("open", kind, len(stack))))
        else:
            if not stack or stack.pop() != kind:
                return None
            history.append((tuple(stack), State("close", kind, len(stack))))
        if len(stack) > language.max_depth:
            return None
    return history


def next_token(language, stack):
    """Definition 1, (3)."""
    k, q = language.n_types, language.open_probability
    opens = 1 if not stack else 0 if len(stack) == language.max_depth else q
    distribution = np.zeros(2 * k)
    distribution[::2] = opens / k
    if stack:
        distribution[2 * stack[-1] + 1] = 1 - opens
    return distribution


def probability(language, brackets):
    """By the chain rule."""
    stacks = [(), *(stack for stack, _ in parse(language, brackets))]
    return np.prod(
        [next_token(language, stack)[b] for stack, b in zip(stacks, brackets, strict=False)], dtype=np.float64
    )


def words(language, lengths):
    """All words of these lengths with their probabilities as prefixes."""
    everything = (w for n in lengths for w in itertools.product(range(2 * language.n_types), repeat=n))
    parsed = ((w, parse(language, w)) for w in everything)
    return {w: probability(language, w) for w, history in parsed if history is not None and not (w and history[-1][0])}


def test_states_are_numbered_so_that_partners_are_k_d_apart():
    language = DyckLanguage(2, 2)
    expected = [
        ("open", 0, 1), ("open", 0, 2), ("open", 1, 1), ("open", 1, 2),
        ("close", 0, 0), ("close", 0, 1), ("close", 1, 0), ("close", 1, 1),
        ("start", None, 0),
    ]  # fmt: skip
    assert [tuple(state) for state in language.states] == expected
    assert (language.n_states, language.start, language.n_brackets) == (9, 8, 4)
    np.testing.assert_array_equal(language.partner(np.arange(8)), [4, 5, 6, 7, 0, 1, 2, 3])
    assert language.partner(3) == 7 and type(language.partner(3)) is int
    assert language.partner(State("open", 1, 2)) == State("close", 1, 1)
    assert language.partner(State("close", 1, 1)) == State("open", 1, 2)


@given(strategies.dyck_languages())
def test_every_state_has_its_number_and_a_partner_that_it_matches(language):
    for number, state in enumerate(language.states[:-1]):
        numbered = language.open if state.kind == "open" else language.close
        assert numbered(state.type, state.depth) == number
        partner = language.partner(state)
        assert partner.type == state.type and {partner.kind, state.kind} == {"open", "close"}
        assert partner.depth == state.depth + (1 if state.kind == "close" else -1)
        assert language.states[language.partner(number)] == partner and language.partner(partner) == state


@pytest.mark.parametrize(("k", "depth", "length"), [(1, 3, 7), (2, 2, 5), (3, 2, 4)])
def test_the_prefixes_listed_are_those_of_all_strings_that_parse(k, depth, length):
    language = DyckLanguage(k, depth, 0.3)
    strings = itertools.product(range(2 * k), repeat=length)
    expected = {string for string in strings if parse(language, string) is not None}
    listed = [tuple(prefix) for prefix in language.prefixes(length)]
    assert len(listed) == len(expected) and set(listed) == expected


@given(strategies.dyck_languages(max_types=3, max_depth=4), st.integers(0, 6))
def test_probabilities_of_the_prefixes_of_a_length_sum_to_one(language, length):
    prefixes = language.prefixes(length)
    found = np.exp([language.log_probability(prefix) for prefix in prefixes])
    expected = [probability(language, prefix) for prefix in prefixes]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.sum() == pytest.approx(1, abs=1e-12)


@given(strategies.dyck_languages(), strategies.SEEDS, st.sampled_from(KINDS), st.integers(0, 30), st.integers(0, 10))
def test_every_sequence_is_valid_and_its_bag_holds_its_states(language, seed, kind, shortest, more):
    longest = shortest + more + (kind == "word")
    options = {"max_length": longest, "min_length": shortest, "rng": seed, "kind": kind}
    sequences, bags = language.sample_sequences(5, **options), language.sample(5, **options)
    assert len(sequences) == len(bags) == 5
    counts = reference.dense_counts(bags)
    assert (bags.n_queries, bags.n_tokens, bags.vocab_size) == (language.n_states,) * 2 + (2 * language.n_types,)
    for b, sequence in enumerate(sequences):
        history = parse(language, sequence)
        assert history is not None and shortest <= sequence.size <= longest
        stack = history[-1][0] if history else ()
        assert kind == "prefix" or stack == ()
        numbers = [language.start, *(language.states.index(state) for _, state in history)]
        np.testing.assert_array_equal(counts[b], np.bincount(numbers, minlength=language.n_states))
        assert bags.query[b] == numbers[-1]
        np.testing.assert_allclose(bags.target[b], next_token(language, stack), rtol=1e-15)
        np.testing.assert_array_equal(language.state_sequence(sequence), numbers)
        np.testing.assert_array_equal(language.stack(sequence), stack)
        np.testing.assert_array_equal(language.next_token(sequence), bags.target[b])


@given(strategies.dyck_languages(max_types=3), strategies.SEEDS)
def test_bags_at_all_positions_are_those_of_the_prefixes(language, seed):
    options = {"max_length": 9, "min_length": 0, "rng": seed}
    sequences = language.sample_sequences(3, **options)
    prefixes = [sequence[:length] for sequence in sequences for length in range(sequence.size + 1)]
    found, expected = language.sample(3, positions="all", **options), language.bags(prefixes)
    for name in ("query", "target", "indptr", "token", "count"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.weight, 1 / len(prefixes))


def tally(sequences, cells):
    counts = dict.fromkeys(cells, 0)
    for sequence in sequences:
        counts[tuple(int(b) for b in sequence)] += 1
    return list(counts.values())


@pytest.mark.parametrize(("k", "depth", "q"), [(2, 2, 0.1), (1, 3, 0.8), (2, 4, 0.5)])
def test_sampled_frequencies_are_the_enumerated_probabilities(k, depth, q):
    """Chi-square tests; each of 6 rejects a right sampler with probability 1e-6."""
    language = DyckLanguage(k, depth, q)
    n = 10_000
    prefixes = {tuple(int(b) for b in p): probability(language, p) for m in (2, 3, 4) for p in language.prefixes(m)}
    found = tally(language.sample_sequences(n, min_length=2, max_length=4, rng=5), prefixes)
    check_frequencies(found, np.array(list(prefixes.values())) / 3)
    whole = words(language, (2, 4, 6))
    found = tally(language.sample_sequences(n, min_length=1, max_length=7, rng=6, kind="word"), whole)
    check_frequencies(found, np.array(list(whole.values())) / sum(whole.values()))


def check_frequencies(found, expected):
    assert expected.sum() == pytest.approx(1)
    found, expected = np.array(found, dtype=float), expected * sum(found)
    assert (found[expected == 0] == 0).all()
    rare = expected < 10  # one cell in all, so that the statistic has its law
    found = np.append(found[~rare], found[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 1e-9
    if keep.sum() > 1:
        assert scipy.stats.chisquare(found[keep], expected[keep]).pvalue > 1e-6


def test_the_law_of_long_words_is_that_of_rejection():
    """A two-sample test of the mean number of open brackets at depth 3, at five standard errors (6e-7)."""
    language = DyckLanguage(2, 3, 0.7)
    number = {}
    words = language.sample(5_000, min_length=100, max_length=100, rng=1, kind="word")
    prefixes = language.sample(50_000, min_length=100, max_length=100, rng=2)
    closed = prefixes.query % 3 == 0
    closed &= (prefixes.query >= 6) & (prefixes.query < 12)
    for name, bags, chosen in (("word", words, np.full(len(words), True)), ("prefix", prefixes, closed)):
        level = np.isin(bags.token, language.open([0, 1], 3))
        bag = np.repeat(np.arange(len(bags)), np.diff(bags.indptr))
        number[name] = np.bincount(bag, weights=bags.count * level, minlength=len(bags))[chosen]
    assert len(number["prefix"]) > 500
    assert all((words.query[:, None] == language.close([0, 1], 0)).any(axis=1))
    error = np.sqrt(sum(values.var() / values.size for values in number.values()))
    assert abs(number["word"].mean() - number["prefix"].mean()) < 5 * error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positions", ["last", "all"])
def test_enumeration_is_the_law_of_the_samples(kind, positions):
    """The expected counts and targets; a wrong weight of lengths or positions moves them by much more than 2%."""
    language = DyckLanguage(2, 2, 0.4)
    options = {"min_length": 1, "max_length": 6, "kind": kind, "positions": positions}
    exact, drawn = language.enumerate(**options), language.sample(15_000, rng=3, **options)
    assert exact.weight.sum() == pytest.approx(1)
    for of in (reference.dense_counts, lambda bags: bags.target, lambda bags: np.eye(bags.n_queries)[bags.query]):
        found, expected = drawn.weight @ of(drawn), exact.weight @ of(exact)
        spread = np.sqrt(exact.weight @ (of(exact) - expected) ** 2)
        # Positions of a sequence are not independent; at most 7 of them.
        assert (np.abs(found - expected) <= 5 * np.sqrt(7 / 15_000) * spread + 1e-9).all()


def test_enumeration_merges_equal_bags():
    language = DyckLanguage(1, 2, 0.25)
    bags = language.enumerate(min_length=4, max_length=4)
    # ()() has 3/4 of ().. (q = 1/4), and so on: (()) and ()() differ, and (()( shares nothing.
    expected = {"()()": 0.75 * 0.75, "()((": 0.75 * 0.25, "(())": 0.25 * 0.75, "(()(": 0.25 * 0.25}
    by_prefix = {tuple(reference.dense_counts(language.bags([p]))[0]): w for p, w in expected.items()}
    found = dict(zip(map(tuple, reference.dense_counts(bags)), bags.weight, strict=True))
    assert found.keys() == by_prefix.keys()
    for key, weight in by_prefix.items():
        assert found[key] == pytest.approx(weight)
    # ()(()) and (())() are one bag.
    assert len(language.enumerate(min_length=6, max_length=6, kind="word")) == 3


def test_a_flow_starts_from_the_enumerated_bags_at_the_loss_of_a_guess():
    run = gradient_flow(DyckLanguage(2, 2).enumerate(max_length=3), eta_y=1, eta_z=1, t_end=1, n_times=2)
    assert run.dataset["loss"].values[0] == pytest.approx(np.log(4))
    assert run.dataset["loss"].values[1] < np.log(4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_sequence_is_no_trouble(kind):
    language = DyckLanguage(2, 4, 0.5)
    bags = language.sample(1, min_length=100_000, max_length=100_000, rng=0, kind=kind)
    assert bags.count.sum() == 100_001
    pairs = reference.dense_counts(bags)[0, :-1].reshape(2, -1)
    assert (pairs[0] - pairs[1]).sum() == (0 if kind == "word" else bags.query[0] % 4 + (bags.query[0] < 8))


@pytest.mark.parametrize(("q", "expected"), [(1e-12, [0, 1] * 30), (1 - 1e-12, [0, *[0, 1] * 29, 1])])
def test_extreme_words_keep_their_law(q, expected):
    # At depth 2 closing is free; each closing to depth 0 costs 1 - q, each opening to depth 2 costs q.
    words = DyckLanguage(1, 2, q).sample_sequences(20, min_length=60, max_length=60, rng=0, kind="word")
    assert all(word.tolist() == expected for word in words)


def test_words_far_below_the_smallest_float_keep_their_law():
    """All words of n pairs but one have (1 - q)^30 = 1e-360: Dyck paths are uniform, with 3 n / (n + 2) returns.

    At five standard errors (6e-7).
    """
    language = DyckLanguage(1, 30, 1 - 1e-12)
    words = language.sample(5_000, min_length=60, max_length=60, rng=0, kind="word")
    returns = reference.dense_counts(words)[:, language.close(0, 0)]
    assert abs(returns.mean() - 90 / 32) < 5 * returns.std() / np.sqrt(5_000)


@given(strategies.dyck_languages(max_types=3, max_depth=4))
def test_nested_pairs_are_the_insertions_of_22(language):
    """Listed by brackets: the bag of ``open .. open close .. close`` less START, r uniform, types uniform."""
    k, depth = language.n_types, language.max_depth
    expected = {}
    for r in range(1, depth + 1):
        for types in itertools.product(range(k), repeat=r):
            brackets = [2 * i for i in types] + [2 * i + 1 for i in reversed(types)]
            states = tuple(sorted(language.state_sequence(brackets)[1:].tolist()))
            expected[states, int(language.state_sequence(brackets)[-1])] = 1 / depth / k**r
    bags = language.nested_pairs()
    found = {}
    for b in range(len(bags)):
        at = slice(bags.indptr[b], bags.indptr[b + 1])
        assert (bags.count[at] == 1).all()
        found[tuple(bags.token[at].tolist()), int(bags.query[b])] = bags.weight[b]
        np.testing.assert_array_equal(bags.target[b], next_token(language, ()))
    assert found == pytest.approx(expected, rel=1e-12) and len(bags) == len(expected)
    assert bags.sizes == language.bags([[]]).sizes


def test_embeddings_by_hand_and_their_joint_ranks():
    language = DyckLanguage(2, 4)
    np.testing.assert_array_equal(language.embedding("one-hot"), np.eye(17))
    ranks = {
        kind: np.linalg.matrix_rank(language.embedding(kind)[:-1]) for kind in ("type and depth", "type and angle")
    }
    assert ranks == {"type and depth": 8, "type and angle": 6}
    small = DyckLanguage(2, 1)
    rows = {"open": [0, 0, 1, 0, 0, 1, 0], "close": [0, 0, 0, 1, 1, 0, 0]}
    found = small.embedding("type and depth")
    np.testing.assert_array_equal(found[small.open(1, 1)], rows["open"])
    np.testing.assert_array_equal(found[small.close(1, 0)], rows["close"])
    np.testing.assert_array_equal(found[-1], [0, 0, 0, 0, 0, 0, 1])
    # theta_1 = arctan(1 / 3) and theta_2 = arctan(2 / 2) for D = 2.
    angles = DyckLanguage(1, 2).embedding("type and angle")
    slope = np.sqrt(0.1)
    expected = [[1, 0, 3 * slope, slope, 0], [1, 0, np.sqrt(0.5), np.sqrt(0.5), 0], [0, 1, 1, 0, 0],
                [0, 1, 3 * slope, slope, 0], [0, 0, 0, 0, 1]]  # fmt: skip
    np.testing.assert_allclose(angles, expected, atol=1e-15)


def test_strings_and_numbers_are_the_same_prefix():
    language = DyckLanguage(2, 3)
    np.testing.assert_array_equal(language.encode("([])["), [0, 2, 3, 1, 2])
    assert language.log_probability("([])[") == language.log_probability([0, 2, 3, 1, 2])
    np.testing.assert_array_equal(language.stack("([](["), [0, 0, 1])
    assert language.brackets == ("(", ")", "[", "]")
    assert DyckLanguage(5, 1).brackets[8:] == ("(4", ")4")


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("([)", r"`prefix` must close '\[' before any other, but got '\)' at position 2"),
        ([0, 2, 3, 3], r"`prefix` must close '\(' before any other, but got '\]' at position 3"),
        ("()]", r"`prefix` must open a bracket before it closes one, but got '\]' at position 2"),
        ("(([[", r"`prefix` must be no deeper than 3, but got '\[' at position 3"),
        ("(a", r"`prefix` must consist of the brackets \( \) \[ \], but got 'a' at position 1"),
        ([0, 4], r"`prefix` must hold indices in \[0, 4\), but got 4 at index 1"),
        ([0.5], "`prefix` must hold integers, but got dtype float64"),
    ],
)
def test_what_is_no_prefix_is_refused_with_its_place(prefix, message):
    language = DyckLanguage(2, 3)
    for call in (language.encode, language.stack, language.log_probability, lambda p: language.bags(["()", p])):
        with pytest.raises(ValueError, match=message):
            call(prefix)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DyckLanguage(0, 3), "`n_types` must be at least 1, but got 0"),
        (lambda: DyckLanguage(2, 0), "`max_depth` must be at least 1, but got 0"),
        (lambda: DyckLanguage(2, 1.5), "`max_depth` must be an integer, but got 1.5"),
        (lambda: DyckLanguage(2, 3, 0), "`open_probability` must be above 0 and below 1, but got 0"),
        (lambda: DyckLanguage(2, 3, 1.0), "`open_probability` must be above 0 and below 1, but got 1"),
        (lambda: DyckLanguage(2, 3, np.nan), "`open_probability` must be a finite number, but got nan"),
        (lambda: DyckLanguage(2, 3).sample(0, max_length=3, rng=0), "`n` must be at least 1, but got 0"),
        (
            lambda: DyckLanguage(2, 3).sample(1, max_length=3, min_length=4, rng=0),
            "`max_length` must be at least 4, but got 3",
        ),
        (lambda: DyckLanguage(2, 3).sample(1, max_length=3, rng=0, kind="x"), "`kind` must be one of 'prefix', 'word'"),
        (
            lambda: DyckLanguage(2, 3).sample(1, max_length=3, rng=0, positions="x"),
            "`positions` must be one of 'last', 'all'",
        ),
        (
            lambda: DyckLanguage(2, 3).sample(1, min_length=3, max_length=3, rng=0, kind="word"),
            "`max_length` must leave an even length, as every word has, but got 3",
        ),
        (lambda: DyckLanguage(3, 9).enumerate(max_length=40), "`max_length` must leave at most 1,000,000 prefixes"),
        (lambda: DyckLanguage(3, 9).prefixes(40), "`length` must leave at most 1,000,000 prefixes"),
        (lambda: DyckLanguage(2, 3).partner(12), r"`state` must hold indices in \[0, 12\), but got 12"),
        (lambda: DyckLanguage(2, 3).partner(State("open", 2, 1)), "`state` must be a bracket of this language"),
        (lambda: DyckLanguage(2, 3).open(0, 0), "`depth` must be from 1 to 3, but got 0"),
        (lambda: DyckLanguage(2, 3).close([0, 1], [[0], [3]]), "`depth` must be from 0 to 2, but got 3"),
        (lambda: DyckLanguage(2, 3).open(2, 1), "`type` must be from 0 to 1, but got 2"),
        (lambda: DyckLanguage(2, 3).open(0, 1.0), "`depth` must hold integers, but got dtype float64"),
        (lambda: DyckLanguage(2, 3).bags([]), "`prefixes` must hold at least one prefix, but got none"),
        (lambda: DyckLanguage(2, 3).embedding("x"), "`kind` must be one of 'one-hot', 'type and depth'"),
        (
            lambda: DyckLanguage(4, 10).nested_pairs(),
            "`max_depth` must leave at most 1,000,000 insertions to list, but got 1,398,100",
        ),
        (lambda: DyckLanguage(5, 3).encode("()"), "`prefix` must be bracket numbers, since types have no symbols"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
def test_without_compilation_the_bags_are_the_same(monkeypatch):
    program = (
        "from yzflow_bounded_dyck import DyckLanguage\n"
        "for kind in ('prefix', 'word'):\n"
        "    bags = DyckLanguage(2, 3).sample(3, max_length=8, rng=0, kind=kind)\n"
        "    print(bags.token.tolist(), bags.count.tolist())\n"
    )
    compiled = driving.python(program)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert driving.python(program) == compiled and compiled.count("[") == 4
