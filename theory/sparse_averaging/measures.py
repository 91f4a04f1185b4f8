"""How far the statements on sparse averaging, pairs and triples are from constructions and protocols that are run.

A check takes (runs, level), ``runs.setting`` as in `yzflow.papers.sparse_averaging.settings`, and returns the violation
of a bound in units of it, or the share of wrong answers; 0 where the statement holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dynamics.data import averaging as tasks
from dynamics.units.attention_unit import attention_weights
from theory.sparse_averaging import averaging
from theory.statements import Runs

ETA = 0.01
_MATCH_TOKENS = 400  # N of Match2 at most, for time
_TRIPLE_TOKENS = 16  # N of Match3 by a tensor unit
_DEEP_TOKENS = 64  # N of Match3 by a transform, and by sorted groups
_LARGE_ROOT = 2**10  # the cube root of an N at which the conjecture's bound, with the constant 1, is missed
_ROUNDING = 1e-15  # of an output of order one
_COLLISION = 1e-9  # up to which two first layers count as the same


def random_keys(runs: Runs, level: str) -> float:
    """Largest error of attention beyond eps, over random sets and those closest to another key, m = 12 q ln N."""
    setting, rng = runs.setting, np.random.default_rng(runs.setting.seed)
    n, q = setting.n_tokens, setting.subset_size
    keys = averaging.random_keys(n, math.ceil(12 * q * math.log(n)), rng=rng)
    hard = np.argsort(-keys[:4] @ keys.T, axis=1)[:, 1 : q + 1]
    subsets = np.concatenate([tasks.random_subsets(n, q, size=4, rng=rng), np.sort(hard, axis=1)])
    queries = np.array([averaging.certificate(keys, subset).query for subset in subsets])
    tau = averaging.temperature(n_tokens=n, q=q, error=ETA)
    return _beyond(tasks.attention_error(attention_weights(queries, keys, scale=tau), subsets).max(), ETA)


def moment_curve(runs: Runs, level: str) -> float:
    """The same for the moment curve with m = 2q, or 1 where an integer gap is below one."""
    setting, rng = runs.setting, np.random.default_rng(runs.setting.seed)
    n, q = setting.n_tokens, setting.subset_size
    curve = averaging.moment_curve(n, q)
    subsets = np.stack([np.arange(n - q, n), *tasks.random_subsets(n, q, size=1, rng=rng)])
    if any(gap is None or gap < 1 for gap in map(curve.gap, subsets)):
        return 1.0
    attention = np.array([curve.attention(subset, error=ETA) for subset in subsets])
    return _beyond(tasks.attention_error(attention, subsets).max(), ETA)


def qsa_printed(runs: Runs, level: str) -> float:
    """Share of wrong answers of the protocol with the slides' encoding."""
    return _qsa(runs, "printed")


def qsa_corrected(runs: Runs, level: str) -> float:
    """Share of wrong answers with z_{2i} = 2 b_i - 1, and 1 where Alice sends fewer than q bits."""
    return _qsa(runs, "corrected")


def _qsa(runs: Runs, encoding: str) -> float:
    q = runs.setting.bits
    n = 2 * q + 1
    keys = averaging.random_keys(n, 12 * q * n.bit_length(), rng=np.random.default_rng(runs.setting.seed))
    run = averaging.qsa_protocol(averaging.random_keys_unit(keys, q, error=0.5 / q, bits=8), q, encoding=encoding)
    return 1.0 if run.bits < q else run.errors / run.disjoint.size


def rank_of_intersection(runs: Runs, level: str) -> float:
    """What the rank of max_i a_i b_i lacks of 2^q, or 1 where the matrix is another one."""
    return _rank_lacks(1 - averaging.disjointness_matrix(runs.setting.bits), lambda a, b: a & b != 0)


def rank_of_disjointness(runs: Runs, level: str) -> float:
    """What the rank of disjointness lacks of 2^q, or 1 where the matrix is another one."""
    return _rank_lacks(averaging.disjointness_matrix(runs.setting.bits), lambda a, b: a & b == 0)


def _rank_lacks(matrix: np.ndarray, entry: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> float:
    # Almost every matrix has full rank: the entries are those of sets as numbers in binary.
    sets = np.arange(len(matrix))
    if not np.array_equal(matrix, entry(sets[:, None], sets)):
        return 1.0
    return 1 - averaging.exact_rank(matrix) / len(matrix)


def narrow_network(runs: Runs, level: str) -> float:
    """What the error forced by a first layer lacks of what is proved, d' = 2, relative, or 1 where nothing collides.

    Of widths d'(N - 2q), where it is 1, and N d' - 1, where it is 1/(2q - 1); for q of the setting and N/4; layers with
    random weights, and layers that read single coordinates or sums of neighbours. The error is that of the two inputs,
    z and -z, and the set that were found.
    """
    n, rng = min(runs.setting.n_tokens, 64), np.random.default_rng(runs.setting.seed)
    sums = np.eye(2 * n) + np.eye(2 * n, k=1)
    lacks = []
    for q in {min(runs.setting.subset_size, n // 4), n // 4}:
        for width in (2 * (n - 2 * q), 2 * n - 1):
            bound = averaging.collision_error(n, q, width=width, value_dimension=2)
            for layer in (rng.normal(size=(width, 2 * n)), np.eye(2 * n)[rng.permutation(2 * n)[:width]], sums[:width]):
                lacks.append(1 - _forced(layer, n, q) / bound)
    return max(0.0, *lacks)


def _forced(layer: np.ndarray, n: int, q: int) -> float:
    """The error of `averaging.collision`'s two inputs and set, looked at again; 0 where they do not collide."""
    found = averaging.collision(layer, q, n_tokens=n, value_dimension=2)
    values, subset = found.values, found.subset
    if np.abs(layer @ values.ravel()).max() > _COLLISION or np.abs(values).max() > 1 or len(set(subset)) != q:
        return 0.0
    return abs(float(values[subset, found.coordinate].mean()))


def recurrent_states(runs: Runs, level: str) -> float:
    """Distance of the counted states before the last token from 2^{N-1}, relative, for every q < N; N to 7.

    And the share of bits that Bob reads wrongly off a network of N - 1 bits, for every q; 1 where it sends fewer bits
    or messages than needed, or where a network of N - 2 bits does not err.
    """
    n = min(runs.setting.n_tokens, 7)
    off = [abs(averaging.state_count(n, q=q) / 2 ** (n - 1) - 1) for q in range(1, n)]
    for q in range(1, n):
        run = averaging.recurrent_protocol(averaging.memory_network(n, q), n, q)
        small = averaging.recurrent_protocol(averaging.memory_network(n, q, slots=n - 2), n, q)
        short = run.bits < n - 1 or run.messages < 2 ** (n - 1) or small.errors == 0
        off.append(1.0 if short else run.errors / run.found.size)
    return max(off)


def match2_printed(runs: Runs, level: str) -> float:
    """Share of tokens on which the unit and the sum over positive integers, without "mod M", disagree."""
    x, outputs, _ = _match2(runs)
    positive = np.where(x == 0, runs.setting.modulus, x)  # [M] = 1..M
    exists = (positive[:, :, None] + positive[:, None, :] == 0).any(axis=2)
    return float(((outputs > 0.5) != exists).mean())


def match2_corrected(runs: Runs, level: str) -> float:
    """Largest error of the unit beyond eta, on random and adversarial inputs."""
    x, outputs, modulus = _match2(runs)
    return _beyond(np.abs(outputs - tasks.match2(x, modulus)).max(), ETA)


def _match2(runs: Runs) -> tuple[np.ndarray, np.ndarray, int]:
    setting, rng = runs.setting, np.random.default_rng(runs.setting.seed)
    n, modulus = min(setting.n_tokens, _MATCH_TOKENS), setting.modulus
    x = tasks.random_match(n, modulus, size=4, rng=rng, planted=0.5)
    x = np.concatenate([x, tasks.adversarial_match(n, modulus)])
    return x, averaging.match2(n_tokens=n, modulus=modulus, error=ETA)(x), modulus


def match3_tensor(runs: Runs, level: str) -> float:
    """Largest error of the tensor unit beyond eta, on random and adversarial inputs."""
    setting, rng = runs.setting, np.random.default_rng(runs.setting.seed)
    n, modulus = min(setting.n_tokens, _TRIPLE_TOKENS), setting.modulus
    x = tasks.random_match(n, modulus, size=8, rng=rng, order=3, planted=0.5)
    x = np.concatenate([x, tasks.adversarial_match(n, modulus, order=3)])
    outputs = averaging.match3_tensor(n_tokens=n, modulus=modulus, error=ETA)(x)
    return _beyond(np.abs(outputs - tasks.match3(x, modulus)).max(), ETA)


def match3_protocol(runs: Runs, level: str) -> float:
    """Share of wrong answers of the protocol, by a layer of m = M = 2n + 3; 1 where it sends fewer than n bits."""
    n = runs.setting.bits
    model = averaging.match3_histogram(n_tokens=2 * n + 1, modulus=2 * n + 3)
    run = averaging.match3_protocol(model, bits=10)
    return 1.0 if run.bits < n else run.errors / run.disjoint.size


def assisted(runs: Runs, level: str) -> float:
    """Share of wrong tokens of the bigram construction, against Match3 of neighbours by its definition."""
    setting, rng = runs.setting, np.random.default_rng(runs.setting.seed)
    n, modulus = min(setting.n_tokens, 100), setting.modulus
    x = tasks.random_match(n, modulus, size=4, rng=rng)
    x[:, 0] = -(x[:, 1] + x[:, 2]) % modulus
    pairs = (x[:, :-1] + x[:, 1:]) % modulus
    truth = ((x[:, :, None] + pairs[:, None, :]) % modulus == 0).any(axis=2)
    return float((averaging.match3_bigram(n_tokens=n, modulus=modulus)(x) != truth).mean())


def conjectured_size(runs: Runs, level: str) -> float:
    """By how much of N / log2 N the mHD of the two layers is below it, at N = 2^30; 0 where it is not."""
    model = averaging.match3_groups(root=_LARGE_ROOT, modulus=runs.setting.modulus)
    bound = model.n_tokens / math.log2(model.n_tokens)
    return max(0.0, 1 - model.embedding_dim * model.heads * model.depth / bound)


def counter_example(runs: Runs, level: str) -> float:
    """Share of tokens on which two layers with H = 3 and m = N^(2/3) are wrong, random and adversarial inputs."""
    root, modulus = runs.setting.root, runs.setting.modulus
    return _wrong(runs, averaging.match3_groups(root=root, modulus=modulus), root**3, modulus)


def transform(runs: Runs, level: str) -> float:
    """The same for attention that computes a number-theoretic transform, M <= 4N; 1 where it is larger than stated."""
    n = min(runs.setting.n_tokens, _DEEP_TOKENS)
    modulus = min(runs.setting.modulus, 4 * n)
    model = averaging.match3_transform(n_tokens=n, modulus=modulus)
    stated = (2 * int(math.log2(n)) + 2, 2, max(int(math.log2(n)) + 2, 16))  # 4M <= 16 N numbers at most
    return _wrong(runs, model, n, modulus, stated)


def sorted_groups(runs: Runs, level: str) -> float:
    """The same for sorted groups; 1 where m is beyond sqrt(N) + 3 and the codes' log2 MN."""
    n, modulus = min(runs.setting.n_tokens, _DEEP_TOKENS), runs.setting.modulus
    model = averaging.match3_sorted(n_tokens=n, modulus=modulus)
    digits = math.ceil(2 * math.log(modulus * n, n) - 1e-9)
    stated = (3 + math.ceil(digits / 3), 3, max(int(math.sqrt(n)) + 3, math.ceil(math.log2(modulus * n))))
    return _wrong(runs, model, n, modulus, stated)


def _wrong(
    runs: Runs, model: averaging.MatchTransformer, n: int, modulus: int, stated: tuple[int, int, int] | None = None
) -> float:
    """Share of wrong tokens; 1 if depth, heads or dimension are beyond those ``stated``, as counted on the inputs."""
    rng = np.random.default_rng(runs.setting.seed)
    x = tasks.random_match(n, modulus, size=8, rng=rng, order=3, planted=0.5)
    x = np.concatenate([x, tasks.adversarial_match(n, modulus, order=3)])
    if stated is not None:
        size = averaging.counted_size(model, x[:2])
        if any(found > limit for found, limit in zip((size.depth, size.heads, size.dimension), stated, strict=True)):
            return 1.0
    return float((model(x) != tasks.match3(x, modulus)).mean())


def _beyond(value: float, bound: float) -> float:
    return max(0.0, (float(value) - _ROUNDING) / bound - 1)
