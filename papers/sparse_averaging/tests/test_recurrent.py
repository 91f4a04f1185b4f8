"""Recurrent networks: states counted by brute force, the protocol on all inputs, packings and coverings by error."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import FixedPoint


@pytest.mark.parametrize("n", range(1, 9))
def test_a_state_for_every_prefix(n):
    counts = [averaging.state_count(n, read=read) for read in range(n + 1)]
    assert counts == [2**read for read in range(n)] + [2]
    assert math.log2(averaging.state_count(n)) == n - 1


def test_states_when_all_outputs_count():
    # N = 2 after one token: z_1 may be asked for, and output 1 is z_1 or the unknown z_2: 2 x 2 states.
    assert [averaging.state_count(2, read=read, outputs="all") for read in range(3)] == [1, 4, 4]
    for n, read in [(3, 1), (3, 2), (4, 2), (4, 3)]:
        # Known z; of each token read, the unread token that it asks for, or else the value, one of those present.
        later = n - read
        expected = 2 * (later + 1) ** read + (2**read - 2) * (later + 2) ** read
        assert averaging.state_count(n, read=read, outputs="all") == expected


@pytest.mark.parametrize("n", range(2, 9))
def test_states_for_every_q(n):
    """All 2^(N-1) values for q < N; at q = N only their sum, of N values."""
    assert [averaging.state_count(n, q=q) for q in range(1, n + 1)] == [2 ** (n - 1)] * (n - 1) + [n]


def test_states_when_all_outputs_count_for_sets():
    # N = 3, q = 2 after one token, which asks for {1, 2}, {1, 3} or {2, 3}: three sets times two values.
    assert averaging.state_count(3, q=2, read=1, outputs="all") == 6
    # q = N: nobody's set says anything.
    assert [averaging.state_count(3, q=3, read=read, outputs="all") for read in range(4)] == [1, 2, 3, 4]


@pytest.mark.parametrize(("n", "q"), [(2, 1), (5, 1), (5, 2), (5, 4), (8, 3), (10, 7), (11, 5)])
def test_bob_reads_every_bit_off_the_smallest_network(n, q):
    network = averaging.memory_network(n, q)
    run = averaging.recurrent_protocol(network, n, q)
    assert run.error == 0 and run.errors == 0
    assert run.bits == network.bits == n - 1 and run.messages == 2 ** (n - 1)
    np.testing.assert_array_equal(run.found, averaging.bit_strings(n - 1))


@pytest.mark.parametrize(("n", "q"), [(3, 1), (5, 2), (5, 4), (9, 3), (9, 8)])
def test_a_bit_less_errs_by_one_value_of_the_average(n, q):
    run = averaging.recurrent_protocol(averaging.memory_network(n, q, slots=n - 2), n, q)
    assert run.messages == 2 ** (n - 2)
    # The last value is taken for 1: wrong for half of the inputs, and for no other bit.
    assert run.errors == 2 ** (n - 2)
    assert run.error == pytest.approx(2 / q)


def test_the_network_averages_its_last_set():
    rng = np.random.default_rng(0)
    n, q = 7, 3
    z = rng.choice([-1.0, 1.0], size=(20, n, 1))
    y = tasks.random_subsets(n, q, size=20 * n, rng=rng).reshape(20, n, q)
    out = averaging.memory_network(n, q)(tasks.qsa_tokens(z, y))
    np.testing.assert_allclose(out, tasks.sparse_average(z, y)[:, -1, 0], atol=1e-15)


@pytest.mark.parametrize(("n", "q"), [(4, 2), (6, 3), (7, 1)])
def test_errors_below_one_in_q_are_what_bob_can_bear(n, q):
    """Outputs that are off by less than 1/q, by turns up and down, mislead nobody; by a little more they do."""
    network = averaging.memory_network(n, q)

    def off_by(size):
        signs = np.random.default_rng(3)
        answer = lambda *given: network.answer(*given) + size * signs.choice([-1, 1], size=2 ** (n - 1))  # noqa: E731
        return averaging.recurrent_protocol(dataclasses.replace(network, answer=answer), n, q)

    assert off_by(0.99 / q).errors == 0 and off_by(0.99 / q).error == pytest.approx(0.99 / q)
    assert off_by(1.01 / q).errors > 0


def test_a_network_is_rounded_after_every_token():
    halves = averaging.RecurrentNetwork(
        1, FixedPoint(3, 1), lambda state, tokens: state + 0.3, lambda state, tokens: state[..., 0]
    )
    # 0.3 is rounded to 0.5, 0.8 to 1.0, 1.3 to 1.5, 1.8 to 1.5, the largest number.
    assert halves.state(np.zeros((4, 3))).tolist() == [1.5] and halves.state(np.zeros((2, 3))).tolist() == [1.0]
    assert halves.bits == 3


@given(st.integers(2, 7), st.data())
def test_separation_is_the_largest_difference_of_averages(n, data):
    q = data.draw(st.integers(1, n))
    signs = st.lists(st.sampled_from((-1, 1)), min_size=n - 1, max_size=n - 1)
    first, second = (np.array([*data.draw(signs), 1]) for _ in range(2))
    largest = max(abs(first[y].mean() - second[y].mean()) for y in tasks.all_subsets(n, q))
    more, less = int((first > second).sum()), int((first < second).sum())
    assert averaging.separation(n, q, more, less) == pytest.approx(largest, abs=1e-12)
    if q < n and more + less:
        assert largest >= 2 / q - 1e-12


CASES = [(6, 2, 0.6), (9, 3, 0.34), (10, 4, 0.25), (10, 2, 0.9), (11, 6, 0.3)]


@pytest.mark.parametrize(("n", "q", "error"), CASES)
def test_packings_are_below_coverings_and_above_the_formula(n, q, error):
    kept = averaging.separated_values(n, q, error=error)
    enough = averaging.sufficient_states(n, q, error=error)
    assert len(kept) <= enough
    first, second = kept[:, None], kept[None]
    apart = averaging.separation(n, q, (first > second).sum(axis=-1), (first < second).sum(axis=-1))
    assert (apart[~np.eye(len(kept), dtype=bool)] > 2 * error).all()
    # A greedy choice is at least as large as Gilbert and Varshamov say; blocks may be better than both.
    ball = sum(math.comb(n - 1, k) for k in range(math.floor(2 * q * error) + 1))
    assert len(kept) >= 2 ** (n - 1) / ball
    assert averaging.state_bits(n, q, error=error) <= math.log2(enough)


def test_bits_are_those_of_a_ball_up_to_half_of_the_tokens_and_of_blocks_beyond():
    """Any two values differ on more than 2 q eps tokens, for q <= (N + 1)/2: 2.8 of 12, 3 of 100; then one block."""
    assert averaging.state_bits(13, 7, error=0.2) == pytest.approx(12 - math.log2(1 + 12 + 66))
    assert averaging.state_bits(101, 50, error=0.03) == pytest.approx(100 - math.log2(1 + 100 + 4950 + 161700))
    assert averaging.state_bits(13, 8, error=0.2) == averaging.state_bits(101, 52, error=0.03) == 1
    assert averaging.state_bits(13, 4, error=0.9) == 3  # blocks: the ball of 7 of 12 leaves 0.3 bits


@pytest.mark.parametrize(("n", "q"), [(5, 2), (8, 3), (9, 8)])
def test_below_one_in_q_all_values_are_kept_apart(n, q):
    for error in (0.0, 0.99 / q):
        assert len(averaging.separated_values(n, q, error=error)) == 2 ** (n - 1)
        assert averaging.sufficient_states(n, q, error=error) == 2 ** (n - 1)
        assert averaging.state_bits(n, q, error=error) == n - 1
    if q > 2:  # a centre serves values that differ from it in one token from an error of 2/q on
        assert averaging.sufficient_states(n, q, error=2 / q - 1e-12) == 2 ** (n - 1)
        assert averaging.sufficient_states(n, q, error=2 / q) < 2 ** (n - 1)


@given(st.integers(8, 300), st.data())
def test_bits_grow_with_n_while_q_times_the_error_is_small(n, data):
    q = data.draw(st.integers(2, max(2, n // 8)))
    bits = averaging.state_bits(n, q, error=0.5)
    share = q / (n - 1)
    entropy = -(share * math.log2(share) + (1 - share) * math.log2(1 - share))
    assert bits >= (n - 1) * (1 - entropy) - 1e-9 and bits >= (n - 1) // q
    assert bits >= 0.4 * (n - 1)  # 1 - H(1/7) is 0.408


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: averaging.state_count(11), "`n_tokens` must be at most 10 to be counted by brute force, but got 11"),
        (lambda: averaging.state_count(5, outputs="all"), "`n_tokens` must be at most 4 to be counted"),
        (lambda: averaging.state_count(3, read=4), "`read` must be at most `n_tokens` = 3, but got 4"),
        (lambda: averaging.state_count(3, q=4), "`q` must be at most `n_tokens` = 3, but got 4"),
        (lambda: averaging.state_count(3, outputs="some"), "`outputs` must be one of 'last', 'all'"),
        (lambda: averaging.state_bits(5, 5, error=0.1), "`q` must be below `n_tokens`, but got 5"),
        (lambda: averaging.state_bits(5, 2, error=1), "`error` must be below 1, that of the answer 0, but got 1"),
        (lambda: averaging.separated_values(15, 2, error=0.1), "`n_tokens` must be from 2 to 14"),
        (lambda: averaging.memory_network(5, 2, slots=5), "`slots` must be at most 4, but got 5"),
        (
            lambda: averaging.recurrent_protocol(averaging.memory_network(4, 2), 4, 4),
            "`q` must be below `n_tokens`, for the sum of all tells no value apart, but got 4",
        ),
        (lambda: averaging.collision_error(4, 5, width=1), "`q` must be at most `n_tokens` = 4, but got 5"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
