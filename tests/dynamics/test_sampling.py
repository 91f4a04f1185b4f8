"""The drawing of mini-batches: random bits, alias tables, the law of the counts, and positions.

Statistical tests have fixed seeds. Each fails at a p-value below `FALSE_ALARM`, so that with new seeds all of them
together would fail by chance less than once in ten thousand times.
"""

import itertools

import driving
import numpy as np
import pytest
import reference
import scipy.stats
import strategies
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from dynamics import Bags, SequenceClasses
from dynamics._model import sampling

FALSE_ALARM = 1e-6


# Not on disk, where what these call could change unnoticed.
@njit(error_model="numpy")
def random_bits(state, out):
    sampling.random_bits(state, out)


@njit(error_model="numpy")
def pick(bits, threshold, choice):
    return sampling._pick(bits, threshold, choice)


@njit(error_model="numpy")
def pick_two(bits, threshold, choice, pairs):
    return sampling._pick_two(bits, threshold, choice, pairs)


@njit(error_model="numpy")
def draw_tokens(random, threshold, choice, pairs, position_weight, tallies, count):
    sampling._draw_tokens(random, threshold, choice, pairs, position_weight, tallies, count)


def draw(run):
    """The next mini-batch of a run: dense counts, query rows and targets (next tokens, or their distributions).

    The bags of a group follow each other; a bag that stands for several draws is repeated.
    """
    groups = driving.draw_batch(run)
    counts, query, target = [], [], []
    size = run.feed.batches.weight.shape[1]
    for group in groups:
        assert (np.diff(group["token"]) > 0).all() and (group["count"] >= 0).all()
        assert (group["count"].sum(axis=1) > 0).all()
        times = np.rint(group["weight"].astype(float) * size).astype(int)
        np.testing.assert_allclose(times, group["weight"] * size, rtol=1e-5)
        dense = np.zeros((len(times), run.source.bags.n_tokens))
        dense[:, group["token"]] = group["count"]
        counts.append(np.repeat(dense, times, axis=0))
        query.append(np.full(times.sum(), group["query"]))
        target.append(np.repeat(group["target"][None], times.sum(), axis=0))
    counts = np.concatenate(counts)
    assert len(counts) == size
    return counts, np.concatenate(query), np.concatenate(target)


def draw_positions(data, n, length, seed):
    """n sequences, token by token: with weights 2^-j of the positions, the weighted counts are binary numbers whose
    digits tell which token stands at which position."""
    counts, _, _ = draw(driving.start(data, batch_size=n, length=length, seed=seed, position_bias=np.log(2)))
    digits = np.rint(counts * 2.0 ** (length - 2)).astype(np.int64)
    tokens = np.full((n, length - 1), -1)
    for j in range(length - 1):
        own = (digits >> (length - 2 - j)) & 1
        assert (own.sum(axis=1) == 1).all()
        tokens[:, j] = own.argmax(axis=1)
    return tokens


def one_bag(probabilities):
    return Bags([0], [0], [0, len(probabilities)], np.arange(len(probabilities)), probabilities, vocab_size=2)


def chi_square(observed, expected):
    """p-value of Pearson's test, with cells of small expectation pooled."""
    order = np.argsort(expected)
    observed, expected = observed[order], expected[order]
    few = max(1, np.searchsorted(np.cumsum(expected), 5.0, side="right") + 1)
    few = max(few, np.searchsorted(expected, 5.0))
    observed = np.append(observed[few:], observed[:few].sum())
    expected = np.append(expected[few:], expected[:few].sum())
    statistic = ((observed - expected) ** 2 / expected).sum()
    return scipy.stats.chi2.sf(statistic, len(observed) - 1)


def sequence_law(tokens, probabilities):
    """p-value of the hypothesis that the rows of ``tokens`` are independent draws, jointly over all positions."""
    size = len(probabilities)
    index = tokens @ size ** np.arange(tokens.shape[1])
    law = np.ones(1)
    for _ in range(tokens.shape[1]):
        law = np.outer(probabilities, law).ravel()
    return chi_square(np.bincount(index, minlength=law.size), law * len(tokens))


# Random bits and alias tables


def test_random_bits_are_xoshiro256_plus_plus():
    """The published reference outputs for the state 1, 2, 3, 4."""
    state = np.array([1, 2, 3, 4], dtype=np.uint64)
    outputs = np.empty(8, dtype=np.uint64)
    published = [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
        14011001112246962877,
        12406186145184390807,
    ]
    random_bits(state, outputs[:3])
    random_bits(state, outputs[3:])  # goes on where the first call stopped
    assert outputs.tolist() == published


@st.composite
def csr_weights(draw):
    """Rows of weights: few or many, equal, generic, over hundreds of orders of magnitude, or with zeros."""
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 40))
        kind = draw(st.sampled_from(["equal", "generic", "huge", "zeros"]))
        rng = np.random.default_rng(draw(strategies.SEEDS))
        row = rng.exponential(size=size)
        if kind == "equal":
            row[:] = draw(st.floats(1e-300, 1e300))
        elif kind == "huge":
            row *= 10.0 ** rng.integers(-290, 290, size)
        elif kind == "zeros":
            row[1:] *= rng.random(size - 1) < 0.5
        rows.append(row)
    return rows


def tables(rows, *, pairs=False):
    indptr = np.cumsum([0] + [len(row) for row in rows])
    built, start, threshold, choice = sampling.alias_tables(indptr, np.concatenate(rows), pairs=pairs)
    assert built == pairs
    return [(threshold[lo:hi], choice[2 * lo : 2 * hi]) for lo, hi in itertools.pairwise(start)]


@given(csr_weights())
@example([np.array([3.0])])
@example([np.full(7, 0.1)])
@example([np.array([1e-300, 1.0]), np.array([1.0, 1e300, 1e-300])])
def test_alias_tables_hold_the_probabilities(rows):
    """Each cell has mass 1/n, split at its threshold; thresholds are rounded to 2^-32."""
    for row, (threshold, choice) in zip(rows, tables(rows), strict=True):
        assert (threshold <= 2**32).all() and (choice >= 0).all() and (choice < len(row)).all()
        share = threshold / 2.0**32
        law = np.zeros(len(row))
        np.add.at(law, choice[::2], share / len(row))
        np.add.at(law, choice[1::2], (1 - share) / len(row))
        np.testing.assert_allclose(law, row / row.sum(), rtol=0, atol=2.0**-32)
        # A bag without weight does not exist: it is never drawn.
        assert law[row == 0].sum() == 0


@given(csr_weights())
@example([np.array([3.0])])
@example([np.array([1e-300, 1.0]), np.array([1.0, 1e300, 1e-300])])
def test_alias_tables_of_pairs_hold_the_products(rows):
    """Independent tokens: the law of (first, second) is the outer product, rounded to 2^-32 a cell."""
    for row, (threshold, choice) in zip(rows, tables(rows, pairs=True), strict=True):
        share = threshold / 2.0**32
        law = np.zeros((len(row), len(row)))
        first, second = (choice & np.uint64(2**32 - 1)).astype(int), (choice >> np.uint64(32)).astype(int)
        np.add.at(law, (first[::2], second[::2]), share / len(row) ** 2)
        np.add.at(law, (first[1::2], second[1::2]), (1 - share) / len(row) ** 2)
        p = row / row.sum()
        np.testing.assert_allclose(law, np.outer(p, p), rtol=0, atol=2.0**-32)
        assert law[row == 0].sum() == 0 and law[:, row == 0].sum() == 0


def test_large_supports_are_drawn_token_by_token():
    """Tables of pairs grow with the square of the support: beyond a bound they are not made."""
    few, many = np.ones(256), np.ones(257)
    assert sampling.alias_tables(np.array([0, 256]), few, pairs=True)[0]
    built, _, threshold, _ = sampling.alias_tables(np.array([0, 257]), many, pairs=True)
    assert not built and threshold.size == 257
    assert not sampling.alias_tables(np.array([0, 256]), few)[0]


def exact_law(threshold, choice):
    """The law of `_pick` over all 2^32 values of its bits: in a cell the choice changes once, found by bisection."""
    n = len(threshold)
    law = np.zeros(n)
    for cell in range(n):
        lo, hi = -(-(cell * 2**32) // n), -(-((cell + 1) * 2**32) // n)
        first = pick(np.uint64(lo), threshold, choice)
        last = pick(np.uint64(hi - 1), threshold, choice)
        assert {first, last} <= set(choice[2 * cell : 2 * cell + 2].tolist())
        low, high = lo, hi
        while first != last and high - low > 1:
            middle = (low + high) // 2
            if pick(np.uint64(middle), threshold, choice) == first:
                low = middle
            else:
                high = middle
        law[first] += (high - lo) / 2**32
        law[last] += (hi - high) / 2**32
    return law


@given(csr_weights())
def test_pick_has_the_law_of_the_weights(rows):
    """Counted over all 32-bit numbers: each cell adds at most two roundings of 2^-32."""
    row, (threshold, choice) = rows[0], tables(rows[:1])[0]
    law = exact_law(threshold, choice)
    np.testing.assert_allclose(law, row / row.sum(), rtol=0, atol=2 * len(row) * 2.0**-32)
    assert law[row == 0].sum() == 0


@given(csr_weights(), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_pick_reads_the_lower_half_of_the_bits(rows, low, high):
    """The upper half draws the next token: reading any of it twice would tie the two."""
    threshold, choice = tables(rows[:1])[0]
    alone = pick(np.uint64(low), threshold, choice)
    assert pick(np.uint64(high << 32 | low), threshold, choice) == alone


@given(csr_weights(), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_two_single_tokens_take_separate_halves_of_the_bits(rows, low, high):
    """An overlap of a few bits would escape every statistical test: the halves are looked up by hand."""
    threshold, choice = tables(rows[:1])[0]
    two = int(pick_two(np.uint64(high << 32 | low), threshold, choice, False))
    assert two % 2**32 == pick(np.uint64(low), threshold, choice)
    assert two >> 32 == pick(np.uint64(high), threshold, choice)


@given(csr_weights())
def test_a_pair_takes_its_cell_from_one_half_and_its_side_from_the_other(rows):
    """At both ends of every cell and on both sides of its threshold: so each cell has mass 1/n to 2^-32."""
    threshold, choice = tables([rows[0][:12]], pairs=True)[0]
    n = len(threshold)
    for cell in range(n):
        ends = -(-(cell * 2**32) // n), -(-((cell + 1) * 2**32) // n) - 1
        cut = int(threshold[cell])
        for low, high in itertools.product(ends, {0, max(cut - 1, 0), min(cut, 2**32 - 1), 2**32 - 1}):
            two = pick_two(np.uint64(high << 32 | low), threshold, choice, True)
            assert two == choice[2 * cell + int(high >= cut)]


@given(csr_weights(), st.integers(1, 9), st.booleans(), st.booleans(), strategies.SEEDS)
def test_counts_add_up_the_positions(rows, positions, pairs, alike, seed):
    """Two positions from each 64 bits, in order, the last of an odd number alone; sequences follow each other."""
    threshold, choice = tables(rows[:1], pairs=pairs)[0]
    size = len(rows[0])
    state = np.random.default_rng(seed).integers(1, 2**63, 4, dtype=np.uint64)
    bits = np.empty(2 * ((positions + 1) // 2), dtype=np.uint64)
    expected_state = state.copy()
    random_bits(expected_state, bits)
    weight = np.ones(positions) if alike else 2.0 ** -np.arange(positions)
    counts = np.full((2, size), np.nan)
    tallies = tuple(np.full((2, size + 3), 99))  # buffers of an earlier, larger bag
    draw_tokens(state, threshold, choice, pairs, weight, tallies, counts)
    expected = np.zeros((2, size))
    for row, own in enumerate(bits.reshape(2, -1)):
        twos = [int(pick_two(b, threshold, choice, pairs)) for b in own]
        tokens = [token for two in twos for token in (two % 2**32, two >> 32)]
        for token, w in zip(tokens, weight, strict=False):
            expected[row, token] += w
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(state, expected_state)


# The law of the mini-batches

SKEWED = np.array([0.1, 0.35, 0.55])
SHIFT = np.array([0.005, 0, -0.005])  # the error of the negative controls


@pytest.mark.parametrize("length", [2, 3, 6])
def test_tokens_of_a_sequence_are_independent(length):
    """Chi-square over all 3^(T-1) sequences, so over every pair that comes from the same 64 bits too."""
    tokens = draw_positions(one_bag(SKEWED), 200_000, length, seed=length)
    assert sequence_law(tokens, SKEWED) > FALSE_ALARM
    assert sequence_law(tokens, SKEWED + SHIFT) < FALSE_ALARM


def test_bags_of_a_batch_are_independent():
    """Batches of two, whose groups stand in the order of their first bags: all ordered pairs, by chi-square."""
    weight = np.array([0.05, 0.0, 0.5, 0.2, 0.25])
    bags = Bags.from_dense(np.zeros(5, int), np.arange(5), np.eye(5), weight)
    run = driving.start(bags, batch_size=2, length=2, seed=0)
    pairs = np.array([draw(run)[2] for _ in range(2_500)])
    assert sequence_law(pairs, weight) > FALSE_ALARM
    assert sequence_law(pairs, np.array([0.1, 0.0, 0.45, 0.2, 0.25])) < FALSE_ALARM


def test_tokens_do_not_depend_on_the_bag_drawn_before_them():
    """The token after a bag's draw, jointly with the bag: chi-square over (bag, token)."""
    table = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    counts, _, target = draw(driving.start(SequenceClasses(table, [0, 0]), batch_size=100_000, length=2, seed=4))
    joint = np.bincount(3 * target + counts.argmax(axis=1), minlength=6)
    assert chi_square(joint, (table / 2).ravel() * len(target)) > FALSE_ALARM
    assert chi_square(joint, (table / 2 + SHIFT).ravel() * len(target)) < FALSE_ALARM


@given(strategies.bags())
def test_without_a_length_bags_come_as_they_are(bags):
    """Every drawn bag is one of those of positive weight, entry by entry."""
    counts, query, target = draw(driving.start(bags, batch_size=20, length=None, seed=3))
    known = {
        (q, t.tobytes(), c.tobytes())
        for q, t, c, w in zip(bags.query, bags.target, reference.dense_counts(bags), bags.weight, strict=True)
        if w > 0
    }
    assert all((q, t.tobytes(), c.tobytes()) in known for q, t, c in zip(query, target, counts, strict=True))


@given(strategies.bags(), st.integers(2, 40), strategies.SEEDS)
def test_sequences_hold_the_tokens_of_their_bag(bags, length, seed):
    """Valid counts for any data: T - 1 tokens, all from one bag of positive weight, with its query and target."""
    counts, query, target = draw(driving.start(bags, batch_size=8, length=length, seed=seed))
    assert (counts.sum(axis=1) == length - 1).all()
    population = reference.dense_counts(bags)
    for c, q, t in zip(counts, query, target, strict=True):
        fits = (bags.query == q) & (bags.weight > 0) & ((population > 0) >= (c > 0)).all(axis=1)
        fits &= (bags.target == t) if bags.hard else (bags.target == t).all(axis=1)
        assert fits.any()


def test_batches_follow_each_other_without_repeating():
    """Consecutive batches of one run, and runs of other seeds, are different draws."""
    run, other = (driving.start(one_bag(np.full(8, 1 / 8)), batch_size=50, length=40, seed=seed) for seed in (0, 1))
    batches = [draw(run)[0] for _ in range(5)] + [draw(other)[0]]
    assert len({batch.tobytes() for batch in batches}) == 6


# Linear position bias


@given(strategies.bags(), st.floats(0, 3), st.integers(2, 30), strategies.SEEDS)
def test_position_bias_weighs_positions_geometrically(bags, bias, length, seed):
    """The counts of a sequence add up to sum_j exp(-b j) instead of T - 1."""
    counts, _, _ = draw(driving.start(bags, batch_size=5, length=length, seed=seed, position_bias=bias))
    np.testing.assert_allclose(counts.sum(axis=1), np.exp(-bias * np.arange(length - 1)).sum(), rtol=1e-13)


def test_no_position_bias_is_the_plain_law():
    """b = 0 counts; and b > 0 moves no random number: the same tokens stand behind the weighted counts."""
    options = {"batch_size": 500, "length": 20, "seed": 5}
    plain, _, _ = draw(driving.start(one_bag(SKEWED), **options))
    tokens = draw_positions(one_bag(SKEWED), 500, 20, seed=5)
    np.testing.assert_array_equal(plain, (tokens[:, :, None] == np.arange(3)).sum(axis=1))
