"""Memory and time that can be foreseen are refused before they are taken."""

import numpy as np
import pytest
from yzflow_sparse_averaging import averaging

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
]


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_memory_is_refused_before_it_is_taken(name, call, monkeypatch):
    monkeypatch.setattr(checks, "memory", lambda: 2**31)  # the same bound on every machine
    rule = r"leave at most 2,147,483,648 bytes, this machine's memory, to .*, but got [0-9,]+ bytes"
    with pytest.raises(ValueError, match=rf"^`{name}` must {rule}$"):
        call()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        # The strings and what they are made of; beside them the matrix of products and that of answers.
        (lambda: averaging.bit_strings(3), {"list all inputs": 8 * 2 * 3 * 2**3}),
        (lambda: averaging.disjointness_matrix(3), {"list all inputs": 8 * (2 * 3 * 2**3 + 2 * 8 * 8)}),
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
