"""Cost of q-sparse averaging for recurrent networks, for every q: a count of states, and an executable protocol.

Source: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896: a recurrent network needs a hidden state of Omega(N)
bits, while one attention unit grows with q. The slides name neither q nor the allowed error; here both are explicit. A
network reads the tokens (z_i, y_i, i) once, in order, and must give the last output.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow_sparse_averaging.attention_unit import FixedPoint
from yzflow_sparse_averaging.instances import all_subsets, qsa_tokens
from yzflow_sparse_averaging.keys import checked_sizes
from yzflow_sparse_averaging.protocols import bit_strings

_MOST_TOKENS = 14  # all 2^13 values are listed


@dataclass(frozen=True)
class RecurrentNetwork:
    """A state of m numbers of p bits, a map that updates it at each token, and a map that reads it.

    Attributes
    ----------
    size : int
        m.
    numbers : FixedPoint
        Fixed-point numbers of the state, which is rounded after every token; the first state is zero.
    update : callable
        States (.., m) and tokens (.., d' + q + 1), as of `yzflow_sparse_averaging.instances.qsa_tokens`, to states.
    answer : callable
        The state before a token, and the token, to its output (..,), d' = 1. What a network computes from the state
        after the token is of this form too.
    """

    size: int
    numbers: FixedPoint
    update: Callable[[np.ndarray, np.ndarray], np.ndarray]
    answer: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checks.integer("size", self.size, minimum=1))
        checks.instance("numbers", self.numbers, FixedPoint)
        for name in ("update", "answer"):
            checks.function(name, getattr(self, name))

    @property
    def bits(self) -> int:
        """m p."""
        return self.size * self.numbers.bits

    def state(self, tokens: ArrayLike) -> np.ndarray:
        """The state (.., m) after tokens (.., n, d' + q + 1), rounded after each."""
        tokens = _tokens_of(tokens)
        state = np.zeros((*tokens.shape[:-2], self.size))
        for place in range(tokens.shape[-2]):
            state = self.numbers.round(_of_tokens(self.update, state, tokens[..., place, :]))
        return state

    def __call__(self, tokens: ArrayLike) -> np.ndarray:
        """The output (..,) of the last of the tokens."""
        tokens = _tokens_of(tokens)
        if not tokens.shape[-2]:
            raise checks.reject("tokens", "hold at least one token", "none")
        return _of_tokens(self.answer, self.state(tokens[..., :-1, :]), tokens[..., -1, :])


def _of_tokens(function: Callable, state: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    try:
        return function(state, tokens)
    except (ValueError, IndexError) as error:
        raise checks.reject("tokens", f"be those that the network takes ({error})", f"shape {tokens.shape}") from error


def _tokens_of(tokens: ArrayLike) -> np.ndarray:
    tokens = checks.finite_array("tokens", tokens)
    if tokens.ndim < 2:
        raise checks.reject("tokens", "have the axes (.., token, number)", f"shape {tokens.shape}")
    return tokens


def memory_network(n_tokens: int, q: int, *, slots: int | None = None) -> RecurrentNetwork:
    """A network for z in {-1, 1} that stores every value in one bit: N - 1 bits, the least possible number.

    Parameters
    ----------
    n_tokens, q : int
        q <= N.
    slots : int, optional
        Number of stored values; if below N - 1, later values are taken to be 1, and the network must err.
    """
    n_tokens, q = checked_sizes(n_tokens, q)
    slots = n_tokens - 1 if slots is None else checks.integer("slots", slots, minimum=1, maximum=n_tokens - 1)

    def update(state: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        # The two numbers of one bit are -1 and 0: they stand for z = -1 and 1.
        here = np.arange(slots) == tokens[..., -1:]
        return np.where(here, (tokens[..., :1] - 1) / 2, state)

    def answer(state: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        unknown = np.ones((*state.shape[:-1], n_tokens - 1 - slots))
        known = np.concatenate([2 * state + 1, unknown, tokens[..., :1]], axis=-1)
        return np.take_along_axis(known, tokens[..., 1 : q + 1].astype(np.int64), axis=-1).mean(axis=-1)

    return RecurrentNetwork(slots, FixedPoint(1, 0), update, answer)


@dataclass(frozen=True)
class IndexRun:
    """`recurrent_protocol` run on all values of Alice and all questions of Bob.

    Attributes
    ----------
    found : (2^(N-1), N-1) array of bool
        Bob's reading of each of Alice's bits, for her inputs in the order of `bit_strings`.
    bits : int
        Number of bits that Alice sends.
    messages : int
        Different messages among her inputs; a protocol that never errs needs all 2^(N-1).
    error : float
        The network's largest error in the last output, over Bob's questions.
    """

    found: np.ndarray
    bits: int
    messages: int
    error: float

    @property
    def errors(self) -> int:
        """Number of bits, over all inputs, that Bob gets wrong."""
        return int((self.found != bit_strings(self.found.shape[1]).astype(bool)).sum())


def recurrent_protocol(network: RecurrentNetwork, n_tokens: int, q: int) -> IndexRun:
    r"""Bob reads any bit of Alice off a recurrent network for q-sparse averaging: one message, m p bits.

    Alice has a in {0,1}^(N-1), lets the network read z_i = 2 a_i - 1 for i < N, and sends its state. Bob wants a_j. He
    lets two copies read the last token, z_N = 1: one is asked for a set y with j and without N, one for y - {j} + {N}.
    The sums over both sets differ by z_j - z_N. Outputs within 1/q of the averages tell the sums, for averages are
    2/q apart: a network with such errors needs 2^(N-1) states, for every q from 1 to N - 1.

    Parameters
    ----------
    network : RecurrentNetwork
    n_tokens, q : int
        N to 14, q < N.
    """
    checks.instance("network", network, RecurrentNetwork)
    n_tokens, q = checked_sizes(n_tokens, q)
    if not 2 <= n_tokens <= _MOST_TOKENS:
        raise checks.reject("n_tokens", f"be from 2 to {_MOST_TOKENS}, for all inputs are run", n_tokens)
    if q == n_tokens:
        raise checks.reject("q", "be below `n_tokens`, for the sum of all tells no value apart", q)
    n = n_tokens - 1
    z = np.append(2.0 * bit_strings(n) - 1, np.ones((2**n, 1)), axis=1)
    # Alice's tokens need sets, too; any set will do, since Bob asks for the last token only.
    y = np.broadcast_to(np.arange(q), (2**n, n_tokens, q))
    tokens = qsa_tokens(z[..., None], y)
    state, last = network.state(tokens[:, :-1]), tokens[:, -1].copy()
    found, worst = np.empty((2**n, n), bool), 0.0
    for j in range(n):
        others = np.delete(np.arange(n), j)[: q - 1]
        sums = []
        for member in (j, n):
            subset = np.sort(np.append(others, member))
            last[:, 1 : q + 1] = subset
            out = np.asarray(network.answer(state, last), dtype=np.float64)
            worst = max(worst, float(np.abs(out - z[:, subset].mean(axis=1)).max()))
            # The nearest sum of q values of +-1.
            sums.append(2 * np.rint((q * out + q) / 2) - q)
        found[:, j] = sums[0] - sums[1] > -1
    return IndexRun(found, network.bits, len(np.unique(state, axis=0)), worst)


def separation(n_tokens: int, q: int, more: ArrayLike, less: ArrayLike) -> np.ndarray:
    """Largest difference of two averages over one set, for values +-1 that differ on ``more`` + ``less`` tokens.

    The last token is equal in both inputs. On ``more`` = a tokens the first input is 1 and the second -1; on ``less`` =
    b tokens it is the reverse. The best set takes as many tokens of one kind, and then as few of the other, as it can:
    ``(2/q) (min(q, a) - max(0, q - (N - b)))``, or the same with a and b exchanged. It is at least 2/q for q < N if a
    token differs.
    """
    n_tokens, q = checked_sizes(n_tokens, q)
    a, b = np.broadcast_arrays(*(checks.finite_array(name, value) for name, value in (("more", more), ("less", less))))
    if (np.minimum(a, b) < 0).any() or (a + b > n_tokens - 1).any():
        raise checks.reject("more", "and `less` be from 0 and N - 1 together at most", "others")

    def one_way(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.minimum(q, a) - np.maximum(0, q - (n_tokens - b))

    return 2 / q * np.maximum(one_way(a, b), one_way(b, a))


def separated_values(n_tokens: int, q: int, *, error: float) -> np.ndarray:
    """Values that a network with errors of at most ``error`` must keep apart: a greedy choice from all 2^(N-1).

    Any two of them have averages over some set that differ by more than 2 ``error``, so that no output serves both: a
    network has at least as many states. (n, N - 1) of -1 and 1, n the number of states that are proved to be needed;
    below an error of 1/q these are all. A larger choice may exist.

    Parameters
    ----------
    n_tokens, q : int
        N to 14, q < N.
    error : float
        In [0, 1); at 1 a network may answer 0 always.
    """
    signs, apart = _listed(n_tokens, q, error)
    chosen: list[int] = []
    for number in range(len(signs)):
        if apart(number, np.array(chosen, int)).all():
            chosen.append(number)
    return signs[chosen]


def sufficient_states(n_tokens: int, q: int, *, error: float) -> int:
    """Sufficient number of states: greedily chosen centres, one of them within ``error`` of any values, on every set.

    A network that remembers the centre near the values, and answers with the centre's average, has errors of at most
    ``error``. Fewer states may be enough.
    """
    signs, _ = _listed(n_tokens, q, error)
    left = np.arange(len(signs))
    states = 0
    while left.size:
        more, less = _parted(signs, int(left[0]), left)
        left = left[separation(n_tokens, q, more, less) > error]
        states += 1
    return states


def _listed(n_tokens: int, q: int, error: float) -> tuple[np.ndarray, Callable[[int, np.ndarray], np.ndarray]]:
    """All values before the last token, and a function: which of them ``error`` keeps apart from one of them."""
    n_tokens, q = checked_sizes(n_tokens, q)
    error = checks.non_negative("error", error)
    if not 2 <= n_tokens <= _MOST_TOKENS:
        raise checks.reject("n_tokens", f"be from 2 to {_MOST_TOKENS}, for all values are listed", n_tokens)
    if error >= 1:
        raise checks.reject("error", "be below 1, that of the answer 0", error)
    signs = 2 * bit_strings(n_tokens - 1) - 1

    def apart(number: int, others: np.ndarray) -> np.ndarray:
        more, less = _parted(signs, number, others)
        return separation(n_tokens, q, more, less) > 2 * error

    return signs, apart


def _parted(signs: np.ndarray, number: int, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    difference = signs[number] - signs[others]
    return (difference > 0).sum(axis=1), (difference < 0).sum(axis=1)


def state_bits(n_tokens: int, q: int, *, error: float) -> float:
    r"""Bits of state that a recurrent network needs before the last token, for every N, q < N and error below 1.

    N - 1 below an error of 1/q, which `memory_network` attains. Above, the larger of floor((N - 1)/q), for values that
    are the same on blocks of q tokens, and, for q <= (N + 1)/2, ``N - 1 - log2 sum_{k <= 2 q eps} C(N - 1, k)``
    (Gilbert and Varshamov), for values of which any two differ on more than 2 q eps tokens. The latter is at least
    (N - 1)(1 - H(2 q eps/(N - 1))) for 2 q eps <= (N - 1)/2, H the entropy in bits: of order N for q eps <= c (N - 1),
    c < 1/4.

    Examples
    --------
    >>> state_bits(101, 10, error=0.05), round(state_bits(101, 10, error=0.5), 1)
    (100.0, 55.9)
    """
    n_tokens, q = checked_sizes(n_tokens, q)
    error = checks.non_negative("error", error)
    n = checks.integer("n_tokens", n_tokens, minimum=2, maximum=2**12) - 1
    if q == n_tokens:
        raise checks.reject("q", "be below `n_tokens`", q)
    if error >= 1:
        raise checks.reject("error", "be below 1, that of the answer 0", error)
    if error * q < 1:
        return float(n)
    blocks = float(n // q)
    if 2 * q > n_tokens + 1:
        return blocks
    ball = sum(math.comb(n, k) for k in range(min(n, math.floor(2 * q * error)) + 1))
    return max(blocks, n - math.log2(ball))


def state_count(n_tokens: int, *, q: int = 1, read: int | None = None, outputs: str = "last") -> int:
    """Number of states that a recurrent network needs after ``read`` tokens, for z in {-1, +1} and exact outputs.

    Counted by brute force: two prefixes need different states when some continuation makes a required output differ.

    Parameters
    ----------
    n_tokens : int
        N; the time grows like C(N, q)^N, so that 4 is the limit for "all" and 10 for "last".
    q : int
        Size of the subsets, at most N.
    read : int, optional
        Tokens read so far, from 0 to N. Default: N - 1.
    outputs : str
        "last": only the output of the last token counts, and the state needs N - 1 bits just before it, for q < N.
        "all": the outputs of all tokens are given after the last one, so that the subsets read so far count too.

    Source: the bound Omega(N) of Sanford, Hsu, Telgarsky (2023) for recurrent networks.
    """
    n_tokens, q = checked_sizes(n_tokens, q)
    outputs = checks.one_of("outputs", outputs, ("last", "all"))
    limit = 10 if outputs == "last" else 4
    if n_tokens > limit:
        raise checks.reject("n_tokens", f"be at most {limit} to be counted by brute force", n_tokens)
    read = n_tokens - 1 if read is None else checks.integer("read", read, minimum=0)
    if read > n_tokens:
        raise checks.reject("read", f"be at most `n_tokens` = {n_tokens}", read)
    subsets = [tuple(subset) for subset in all_subsets(n_tokens, q).tolist()]
    # With "last" the subset of no other token reaches an output: one choice stands for all.
    choices = [subsets if outputs == "all" or i == n_tokens - 1 else subsets[:1] for i in range(n_tokens)]
    behaviours = {
        tuple(
            tuple(sum(values[j] for j in asked) for asked in (sets if outputs == "all" else sets[-1:]))
            for sets, values in _join(prefix, choices)
        )
        for prefix in _tokens(choices[:read])
    }
    return len(behaviours)


def _tokens(choices: Sequence[Sequence[tuple[int, ...]]]) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Every (subsets, values) of the given tokens."""
    return itertools.product(itertools.product(*choices), itertools.product((-1, 1), repeat=len(choices)))


def _join(prefix: Any, choices: Any) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """The whole input for every continuation of a prefix."""
    subsets, values = prefix
    for more_subsets, more_values in _tokens(choices[len(values) :]):
        yield subsets + more_subsets, values + more_values
