"""Memory and time that can be foreseen are refused before they are taken."""

import numpy as np
import pytest
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.trained.linear_query import LinearQueryUnit
from yzflow_sparse_averaging.trained.qsa import train_qsa

from dynamics import Limits
from dynamics.support import checks

HUGE = 10**12
RNG = np.random.default_rng(0)
# The argument that each message names, and the call.
CALLS = [
    ("n", lambda: averaging.bit_strings(10**6)),
    ("n", lambda: averaging.disjointness_matrix(40)),
    ("dimension", lambda: averaging.random_keys(10, HUGE, rng=RNG)),
    ("n_tokens", lambda: averaging.smallest_dimension(10**7, 2, rng=RNG)),
    ("n_tokens", lambda: averaging.MomentCurve(HUGE, 2).keys()),
    ("size", lambda: tasks.random_qsa(3, 2, 2, size=HUGE, rng=RNG)),
    ("size", lambda: tasks.random_subsets(3, 2, size=HUGE, rng=RNG)),
    ("size", lambda: tasks.random_match(3, 7, size=HUGE, rng=RNG)),
    ("n_tokens", lambda: tasks.adversarial_match(HUGE, 7)),
    ("n_tokens", lambda: LinearQueryUnit.random(HUGE, 2, 2, RNG)),
    ("n_tokens", lambda: train_qsa(HUGE)),
    ("steps", lambda: train_qsa(4, 2, steps=HUGE)),
    ("batch_size", lambda: train_qsa(4, 2, steps=1, batch_size=HUGE)),
]


@pytest.mark.parametrize(("name", "call"), CALLS)
@Limits(memory=2**31)  # the same bound on every machine
def test_memory_is_refused_before_it_is_taken(name, call):
    rule = r"leave at most 2,147,483,648 bytes, the limit of memory, to .*, but got [0-9,]+ bytes"
    with pytest.raises(ValueError, match=rf"^`{name}` must {rule}$"):
        call()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        # The strings and what they are made of; beside them the matrix of products and that of answers.
        (lambda: averaging.bit_strings(3), {"list all inputs": 8 * 2 * 3 * 2**3}),
        (lambda: averaging.disjointness_matrix(3), {"list all inputs": 8 * (2 * 3 * 2**3 + 2 * 8 * 8)}),
        # Queries and keys of 4 x 5, values of 3 x 3: the unit, its gradient and moments, two copies; products of 4 x 4.
        (
            lambda: train_qsa(4, 2, embedding_dim=5, value_dim=3, steps=6, record_every=4, batch_size=7, seed=0),
            {
                "draw matrices": 8 * (4 * 20 + 2 * 9),
                "hold the matrices": 8 * (6 * (2 * 20 + 9) + 16),
                "draw a batch": 8 * 7 * 4 * (3 + 2),
                "record losses and states": 8 * (6 + 3 * (2 * 20 + 9 + 16)),
            },
        ),
        (
            lambda: tasks.random_qsa(3, 2, 4, size=5, rng=0),
            {"draw inputs": 8 * 5 * 3 * (4 + 2), "draw sets": 8 * 15 * 2},
        ),
        (lambda: tasks.all_subsets(5, 2), {"list sets": 8 * 10 * 2}),
        (lambda: tasks.random_match(3, 7, size=5, rng=0), {"draw inputs": 8 * 5 * (3 + 1)}),
        # Up to 52 rows for pairs, twice as many for triples.
        (lambda: tasks.adversarial_match(5, 7), {"list inputs": 8 * 52 * 5}),
        (lambda: tasks.adversarial_match(5, 7, order=3), {"list inputs": 8 * 2 * 52 * 5}),
    ],
)
def test_bytes_are_those_of_the_arrays(call, expected, monkeypatch):
    found = {}
    monkeypatch.setattr(checks, "fits_in_memory", lambda name, size, what: found.setdefault(what, int(size)))
    call()
    assert {what: found[what] for what in expected} == expected


def test_bit_strings_count_in_binary():
    strings = averaging.bit_strings(3)
    assert strings.dtype == np.int64
    assert ["".join(map(str, row)) for row in strings] == ["000", "001", "010", "011", "100", "101", "110", "111"]


def test_pinning_at_the_bound_ends():
    """Rounding leaves a pinned key above ``rho`` where ``level`` is equal to it, and there is nothing more to pin."""
    for seed in range(10):
        options = {"sets": "random", "n_sets": 2, "maximum": 100, "rho": 0.5, "level": 0.5}
        rng = np.random.default_rng(seed)
        assert 1 <= averaging.smallest_dimension(6, 1, rng=rng, **options) <= 100


def test_numbers_of_a_million_digits_are_not_formed():
    with pytest.raises(ValueError, match=r"`n_tokens` must give at most 16777216 cases, but got far more sets"):
        tasks.all_subsets(HUGE, HUGE // 2)
    with pytest.raises(ValueError, match=r"`n_tokens` must give at most 16777216 cases, but got far more inputs"):
        tasks.all_match(HUGE, 2)
