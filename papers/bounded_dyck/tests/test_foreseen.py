"""Memory and time that can be foreseen are refused before they are taken."""

import numpy as np
import pytest
from yzflow_bounded_dyck import DyckLanguage, balance, pruning
from yzflow_bounded_dyck.networks import ReluNetwork
from yzflow_bounded_dyck.transformers import random_transformer

from dynamics import Limits
from dynamics.support import checks

HUGE = 10**12
DYCK = DyckLanguage(2, 3)
# The argument that each message names, and the call.
CALLS = [
    ("n", lambda: DYCK.sample(HUGE, max_length=3, rng=0)),
    ("max_length", lambda: DYCK.sample(1, max_length=HUGE, rng=0, kind="word")),
    ("n", lambda: DYCK.sample_sequences(2, max_length=HUGE, rng=0)),
    ("language", lambda: balance.balanced_layer(DyckLanguage(1000, 1000), 0)),
    ("lengths", lambda: balance.matched_pairs(DYCK, HUGE)),
    ("size", lambda: pruning.identity_network(10**6, 2)),
    ("n", lambda: pruning.prune_linear(np.eye(2), HUGE, 0)),
    ("n", lambda: pruning.prune_product(np.eye(2), HUGE, 0)),
]
# By call: the foreseen allocation, and its bytes from the shapes of the arrays.
COUNTED = [
    (
        lambda: DYCK.sample(6, max_length=8, rng=0, kind="word", min_length=4),
        {"draw sequences": 8 * 6 * (2 + 4), "weigh lengths": 8 * 9 * (3 + 1)},
    ),
    # Keys and queries of 2 x 3, values of 3 x 3, a network with 4 hidden units: drawn, then scaled, in each of 2
    # layers.
    (
        lambda: random_transformer(3, 2, [4], 2, 0, floor=0.5),
        {"draw a Transformer": 16 * 2 * (2 * 2 * 3 + 9 + 3 * 4 + 4 * 3)},
    ),
    # Of 2 x 3: random Q of 4 x 3 numbers a column and K with 2, both also pruned.
    (lambda: pruning.prune_product(np.zeros((2, 3)), 4, 0), {"draw a network": 2 * 8 * (12 * 3 + 12 * 2)}),
    # Weights 3 x 2 and 2 x 3, padded to 5 x 4 and 6 x 5: those, and what the network copies.
    (
        lambda: pruning.pad(ReluNetwork((np.ones((3, 2)), np.ones((2, 3)))), [4, 5, 6]),
        {"write down the weights": 2 * 8 * (5 * 4 + 6 * 5)},
    ),
    # START and 4 types at depths, 13 in all: 4 brackets with depths 1 to 3 or 0 to 2, to a coordinate each.
    (lambda: DYCK.embedding("one-hot"), {"embed 13 states": 16 * 13 * 13}),
]


@pytest.mark.parametrize(("name", "call"), CALLS)
@Limits(memory=2**31)  # the same bound on every machine
def test_memory_is_refused_before_it_is_taken(name, call):
    rule = r"leave at most 2,147,483,648 bytes, the limit of memory, to .*, but got [0-9,]+ bytes"
    with pytest.raises(ValueError, match=rf"^`{name}` must {rule}$"):
        call()


@pytest.mark.parametrize(("call", "expected"), COUNTED)
def test_bytes_are_those_of_the_arrays(call, expected, monkeypatch):
    """A call is refused for the size of its arrays, computed by hand, and for no more or less."""
    found = {}
    monkeypatch.setattr(checks, "fits_in_memory", lambda name, size, what: found.setdefault(what, int(size)))
    call()
    assert {what: found[what] for what in expected} == expected
