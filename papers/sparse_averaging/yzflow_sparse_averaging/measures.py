"""Numerical checks of the statements on sparse averaging, pairs and triples, on running constructions and protocols.

A check takes (runs, level), ``runs.setting`` as in `yzflow_sparse_averaging.settings`, and returns the violation
of a bound in units of it, or the share of wrong answers; 0 where the statement holds.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy as sp

from theory.statements import Runs
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import attention_weights
from yzflow_sparse_averaging.proofs import assisted as neighbours
from yzflow_sparse_averaging.proofs import fully_connected, groups, moments, sorted_groups, transform
from yzflow_sparse_averaging.transform import Stages

ETA = 0.01
_MATCH_TOKENS = 400  # N of Match2 at most, for time
_TRIPLE_TOKENS = 16  # N of Match3 by a tensor unit
_LAYER_TOKENS = 32  # N of fully connected layers at most, for time
_DEEP_TOKENS = 64  # N of Match3 by a transform, and by sorted groups
_LARGE_ROOT = 2**10  # the cube root of an N at which the conjecture's bound, with the constant 1, is missed
_BUILT = (*range(3, 11), 16, 27, 50, 64, 100, 256, 1024, 4096)  # N at which constructions tell their sizes
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
    """Largest error of attention beyond eps on the moment curve with m = 2q; 1 if an integer gap is below one."""
    setting, rng = runs.setting, np.random.default_rng(runs.setting.seed)
    n, q = setting.n_tokens, setting.subset_size
    curve = averaging.moment_curve(n, q)
    subsets = np.stack([np.arange(n - q, n), *tasks.random_subsets(n, q, size=1, rng=rng)])
    if any(gap is None or gap < 1 for gap in map(curve.gap, subsets)):
        return 1.0
    attention = np.array([curve.attention(subset, error=ETA) for subset in subsets])
    return _beyond(tasks.attention_error(attention, subsets).max(), ETA)


def rounded_keys(runs: Runs, level: str) -> float:
    """Largest error of attention beyond eps with queries of log2(q ln N/eps) + 4 bits, rounded up, at the same m."""
    setting, rng = runs.setting, np.random.default_rng(runs.setting.seed)
    n, q = setting.n_tokens, setting.subset_size
    keys = averaging.random_keys(n, math.ceil(12 * q * math.log(n)), rng=rng)
    bits = math.ceil(math.log2(q * math.log(n) / ETA)) + 4
    tau = averaging.temperature(n_tokens=n, q=q, error=ETA / 2)
    errors = []
    for subset in np.concatenate([tasks.random_subsets(n, q, size=2, rng=rng), tasks.adversarial_subsets(keys, q)[:2]]):
        query = averaging.certificate(keys, subset).query
        precision = averaging.rounded_query(query, tau=tau, bits=bits)
        attention = attention_weights(np.array([query]), keys, scale=tau, precision=precision)
        errors.append(tasks.attention_error(attention, subset[None])[0])
    return _beyond(max(errors), ETA)


def curve_bits(runs: Runs, level: str) -> float:
    """Distance of the bits of a query on the moment curve from 4 q^2 log2 N, relative: 2q of the longest number."""
    n, q = runs.setting.n_tokens, runs.setting.subset_size
    curve = averaging.moment_curve(n, q)
    return abs(curve.dimension * curve.number_bits() / float(moments.query_bits(n, q)) - 1)


def protocol_margin(setting: Any) -> float:
    """The protocol's N over 2q + 1."""
    return _protocol_tokens(setting.bits) / (2 * setting.bits + 1)


def _protocol_tokens(bits: int) -> int:
    return 2 * bits + 1


def qsa_printed(runs: Runs, level: str) -> float:
    """Share of wrong answers of the protocol with the slides' encoding."""
    return _qsa(runs, "printed")


def qsa_corrected(runs: Runs, level: str) -> float:
    """Share of wrong answers with z_{2i} = 2 b_i - 1, and 1 where Alice sends fewer than q bits."""
    return _qsa(runs, "corrected")


def _qsa(runs: Runs, encoding: str) -> float:
    q = runs.setting.bits
    n = _protocol_tokens(q)
    keys = averaging.random_keys(n, 12 * q * n.bit_length(), rng=np.random.default_rng(runs.setting.seed))
    run = averaging.qsa_protocol(averaging.random_keys_unit(keys, q, error=0.5 / q, bits=8), q, encoding=encoding)
    return 1.0 if run.bits < q else run.errors / run.disjoint.size


def rank_of_intersection(runs: Runs, level: str) -> float:
    """Relative shortfall of the rank of max_i a_i b_i below 2^q; 1 if the matrix has a wrong entry."""
    return _rank_lacks(1 - averaging.disjointness_matrix(runs.setting.bits), lambda a, b: a & b != 0)


def rank_of_disjointness(runs: Runs, level: str) -> float:
    """Relative shortfall of the rank of disjointness below 2^q; 1 if the matrix has a wrong entry."""
    return _rank_lacks(averaging.disjointness_matrix(runs.setting.bits), lambda a, b: a & b == 0)


def _rank_lacks(matrix: np.ndarray, entry: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> float:
    # Compare the entries, too, since almost every matrix has full rank; rows are sets as binary numbers.
    sets = np.arange(len(matrix))
    if not np.array_equal(matrix, entry(sets[:, None], sets)):
        return 1.0
    return 1 - averaging.exact_rank(matrix) / len(matrix)


def narrow_network(runs: Runs, level: str) -> float:
    """Relative shortfall of a first layer's forced error below the proved error, d' = 2; 1 if no inputs collide.

    q is the setting's, a quarter and a half of all tokens; widths are d'(N - 2q), half of N d', and N d' - 1. Layers
    have random weights, or read single coordinates or sums of neighbours. The error belongs to two colliding inputs, z
    and -z, and a set (`averaging.collision`).
    """
    n, rng = min(runs.setting.n_tokens, _LAYER_TOKENS), np.random.default_rng(runs.setting.seed)
    sums = np.eye(2 * n) + np.eye(2 * n, k=1)
    lacks = []
    for q in {min(runs.setting.subset_size, n // 4), n // 4, n // 2}:
        for width in {2 * (n - 2 * q), n, 2 * n - 1} - {0}:
            bound = averaging.collision_error(n, q, width=width, value_dimension=2)
            for layer in (rng.normal(size=(width, 2 * n)), np.eye(2 * n)[rng.permutation(2 * n)[:width]], sums[:width]):
                lacks.append(1 - _forced(layer, n, q) / bound)
    return max(0.0, *lacks)


def least_error(runs: Runs, level: str) -> float:
    """Largest difference of the best layer's error from the least error, or shortfall of a random layer's below it.

    All N <= 5 at d' = 1, and all N <= 4 at d' = 2; widths from d' on.
    """
    from scipy.optimize import linprog

    def largest(layer: np.ndarray, n: int, q: int, d: int) -> float:
        """The largest average over q tokens on the kernel, by a linear program for each set and coordinate."""
        found = []
        for subset, coordinate in itertools.product(tasks.all_subsets(n, q), range(d)):
            toward = np.zeros((n, d))
            toward[subset, coordinate] = -1 / q
            equal = {"A_eq": layer, "b_eq": np.zeros(len(layer))}
            found.append(-linprog(toward.ravel(), **equal, bounds=[(-1, 1)] * (n * d)).fun)
        return max(found)

    rng, off = np.random.default_rng(runs.setting.seed), [0.0]
    for n, d in ((2, 1), (3, 1), (4, 1), (5, 1), (2, 2), (3, 2), (4, 2)):
        for q, width in itertools.product(range(1, n), range(d, n * d)):
            least = averaging.collision_error(n, q, width=width, value_dimension=d)
            best = averaging.best_first_layer(n, q, width=width, value_dimension=d)
            off.append(abs(largest(best, n, q, d) - least))
            off.append(least - largest(rng.normal(size=(width, n * d)), n, q, d))
    return max(off)


def balanced_kernels(runs: Runs, level: str) -> float:
    """Share of kernels without a vertex of s tokens at +-1 in one coordinate, half at each; one more for odd s.

    Kernels have the least dimension of the proof: random real ones, random small integer ones, and the kernel with free
    first tokens. All vertices are tried, for N = 3 and 4, d' = 1 to 3.
    """
    rng, without = np.random.default_rng(runs.setting.seed), []
    for n, d, at_one in ((3, 1, 3), (4, 1, 2), (3, 2, 2), (3, 2, 3), (4, 2, 3), (3, 3, 2)):
        size = int(fully_connected.balanced_dimension(sp.Integer(at_one), sp.Integer(d)))
        integers = np.eye(size, n * d) + rng.integers(-1, 2, size=(size, n * d))
        for kernel in (rng.normal(size=(size, n * d)), integers, np.eye(size, n * d)):
            if np.linalg.matrix_rank(kernel) == size:
                without.append(float(not _has_balanced_vertex(kernel, n, at_one)))
    return float(np.mean(without))


def _has_balanced_vertex(kernel: np.ndarray, n: int, at_one: int) -> bool:
    """Whether some vertex in the cube of the span of rows of (dimension, N d') numbers is so."""
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(kernel))))
    for entries in itertools.combinations(range(kernel.shape[1]), len(kernel)):
        tight = kernel[:, entries]
        if np.linalg.matrix_rank(tight) < len(kernel):
            continue
        points = np.linalg.solve(tight.T, signs.T).T @ kernel
        points = points[np.abs(points).max(axis=1) <= 1 + _COLLISION].reshape(-1, n, kernel.shape[1] // n)
        ones, minus_ones = (np.sum(sign * points > 1 - _COLLISION, axis=1) for sign in (1, -1))
        both = np.minimum(np.maximum(ones, minus_ones) - at_one % 2, np.minimum(ones, minus_ones))
        if (both >= at_one // 2).any():
            return True
    return False


def sum_of_all(runs: Runs, level: str) -> float:
    """Error beyond (N - q)/q of the sum of all values over q, d' = 1, for q above N/2; random values and +-1."""
    n, rng = runs.setting.n_tokens, np.random.default_rng(runs.setting.seed)
    beyond = []
    for q in {n // 2 + 1, (3 * n) // 4, n - 1}:
        subsets = tasks.random_subsets(n, q, size=4, rng=rng)
        for values in (rng.uniform(-1, 1, n), rng.choice([-1.0, 1.0], n), np.ones(n)):
            error = np.abs(values[subsets].mean(axis=1) - values.sum() / q).max()
            beyond.append(_beyond(error, float(fully_connected.error_of_sum(n, q))))
    return max(beyond)


def _forced(layer: np.ndarray, n: int, q: int) -> float:
    """The error of `averaging.collision`'s two inputs and set, looked at again; 0 where they do not collide."""
    found = averaging.collision(layer, q, n_tokens=n, value_dimension=2)
    values, subset = found.values, found.subset
    if np.abs(layer @ values.ravel()).max() > _COLLISION or np.abs(values).max() > 1 or len(set(subset)) != q:
        return 0.0
    return abs(float(values[subset, found.coordinate].mean()))


def recurrent_states(runs: Runs, level: str) -> float:
    """Relative distance of the number of states before the last token from 2^{N-1}, for every q < N; N to 7.

    Also the share of bits that Bob misreads off a network of N - 1 bits, for every q. 1 if the network sends fewer bits
    or messages than needed, or if a network of N - 2 bits does not err.
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


def pairs_margin(setting: Any) -> float:
    """The protocol's M over N + 2; 0 for an even N."""
    n, modulus = _match3_protocol_sizes(setting.bits)
    return modulus / (n + 2) * (n % 2)


def _match3_protocol_sizes(bits: int) -> tuple[int, int]:
    return 2 * bits + 1, 2 * bits + 3


def match3_protocol(runs: Runs, level: str) -> float:
    """Share of wrong answers of the protocol, by a layer of m = M = 2n + 3; 1 where it sends fewer than n bits."""
    n_tokens, modulus = _match3_protocol_sizes(runs.setting.bits)
    run = averaging.match3_protocol(averaging.match3_histogram(n_tokens=n_tokens, modulus=modulus), bits=10)
    return 1.0 if run.bits < runs.setting.bits else run.errors / run.disjoint.size


def assisted(runs: Runs, level: str) -> float:
    """Share of wrong tokens of the bigram construction, against Match3 of neighbours by its definition.

    1 if its size differs from the stated size.
    """
    setting, rng = runs.setting, np.random.default_rng(runs.setting.seed)
    n, modulus = setting.n_tokens, setting.modulus
    x = tasks.random_match(n, modulus, size=2, rng=rng)
    x[:, 0] = -(x[:, 1] + x[:, 2]) % modulus
    truth = np.stack([np.isin(-row % modulus, (row[:-1] + row[1:]) % modulus) for row in x])
    model = averaging.match3_bigram(n_tokens=n, modulus=modulus)
    right = (model.depth, model.heads, model.embedding_dim) == (neighbours.depth(), 1, neighbours.dimension())
    return float((model(x) != truth).mean()) if right else 1.0


def window(runs: Runs, level: str) -> float:
    """Share of wrong tokens of the construction for windows, K = q of the setting, against the definition.

    One planted match lies just within a window, another just beyond. 1 if the size differs from the stated size.
    """
    setting, rng = runs.setting, np.random.default_rng(runs.setting.seed)
    n, modulus, reach = setting.n_tokens, setting.modulus, setting.subset_size
    x = tasks.random_match(n, modulus, size=4, rng=rng)
    x[:2, reach] = -2 * x[:2, 0] % modulus
    x[2:, reach + 1] = -2 * x[2:, 0] % modulus
    model = averaging.match3_local(n_tokens=n, modulus=modulus, reach=reach)
    stated = (neighbours.window_depth(), 1, neighbours.window_dimension(reach), neighbours.window_token_width(reach))
    return float((model(x) != within(x, modulus, reach)).mean()) if _sizes(model) == stated else 1.0


def within(x: np.ndarray, modulus: int, reach: int) -> np.ndarray:
    """Which tokens have a match of Match3 with two tokens within ``reach`` positions, by the definition: (.., N)."""
    matched, n = np.zeros(x.shape, bool), x.shape[-1]
    for a, b in itertools.combinations_with_replacement(range(-min(reach, n - 1), min(reach, n - 1) + 1), 2):
        i = np.arange(max(0, -a), max(0, min(n, n - b)))
        matched[..., i] |= (x[..., i] + x[..., i + a] + x[..., i + b]) % modulus == 0
    return matched


def conjectured_size(runs: Runs, level: str) -> float:
    """Relative shortfall of the two layers' mHD below N / log2 N at N = 2^30; 0 if it is not below."""
    return _below_bound(runs, lambda model: model.embedding_dim)


def strict_size(runs: Runs, level: str) -> float:
    """`conjectured_size` if m is no less than the numbers of a token."""
    return _below_bound(runs, lambda model: max(model.embedding_dim, model.width))


def _below_bound(runs: Runs, dimension: Callable[[averaging.MatchTransformer], int]) -> float:
    model = averaging.match3_groups(root=_LARGE_ROOT, modulus=runs.setting.modulus)
    bound = model.n_tokens / math.log2(model.n_tokens)
    return max(0.0, 1 - dimension(model) * model.heads * model.depth / bound)


def counter_example(runs: Runs, level: str) -> float:
    """Share of tokens on which two layers with H = 3 and m = N^(2/3) are wrong, random and adversarial inputs."""
    root, modulus = runs.setting.root, runs.setting.modulus
    return _wrong(runs, averaging.match3_groups(root=root, modulus=modulus), root**3, modulus)


def residues_margin(setting: Any) -> float:
    """4N over M, as they are run."""
    n, modulus = _transform_sizes(setting)
    return 4 * n / modulus


def _transform_sizes(setting: Any) -> tuple[int, int]:
    n = min(setting.n_tokens, _DEEP_TOKENS)
    return n, min(setting.modulus, 4 * n)


def groups_sizes(runs: Runs, level: str) -> float:
    """Largest relative error of the stated D, H, m and numbers of a token for the two layers, and excess of their bits.

    The layers are built for many N, and M from 2 to N^2.
    """
    off = []
    for root in (*range(1, 17), 27, 64, 256):
        n = root**3
        for modulus in _moduli(runs, n):
            model = averaging.match3_groups(root=root, modulus=modulus)
            stated = (groups.depth(), groups.heads(), groups.dimension(n), groups.token_width(n))
            off += [abs(have / float(is_) - 1) for have, is_ in zip(_sizes(model), stated, strict=True)]
            off.append(_over(model.bits, groups.bits(n, modulus)))
    return max(off)


def deep_transform(runs: Runs, level: str) -> float:
    """As `counter_example`, for attention that computes a number-theoretic transform, M <= 4N."""
    n, modulus = _transform_sizes(runs.setting)
    return _wrong(runs, averaging.match3_transform(n_tokens=n, modulus=modulus), n, modulus)


def transform_sizes(runs: Runs, level: str) -> float:
    """Relative excess of D, H, m and token width over the stated sizes for N = 2^r and M <= N.

    1 if H or m falls short, or, at M = N, D or the width. Also the excess of the numbers that a token holds, M <= 4N.
    """
    off = [0.0]
    for n in _BUILT:
        for modulus in _moduli(runs, n, most=4 * n):
            model = averaging.match3_transform(n_tokens=n, modulus=modulus)
            block = model.layout.place("own")
            off.append((block.stop - block.start) / max(1.0, float(transform.held(n, modulus))) - 1)
            if n & (n - 1) == 0 and modulus <= n:
                stated = (transform.depth(n), transform.heads(), transform.dimension(n), transform.token_width())
                shares = [have / float(is_) - 1 for have, is_ in zip(_sizes(model), stated, strict=True)]
                exact = shares if modulus == n else shares[1:3]
                off += [*shares, float(any(share < -_ROUNDING for share in exact))]
    return max(off)


def transform_bits(runs: Runs, level: str) -> float:
    """Relative excess of the transform's bits over the stated bits, M <= 4N."""
    built = [(n, modulus) for n in _BUILT for modulus in _moduli(runs, n, most=4 * n)]
    return max(
        _over(
            averaging.match3_transform(n_tokens=n, modulus=modulus).bits, transform.bits(n, Stages.of(n, modulus).prime)
        )
        for n, modulus in built
    )


def deep_sorted(runs: Runs, level: str) -> float:
    """As `counter_example`, for sorted groups."""
    n, modulus = min(runs.setting.n_tokens, _DEEP_TOKENS), runs.setting.modulus
    return _wrong(runs, averaging.match3_sorted(n_tokens=n, modulus=modulus), n, modulus)


def sorted_sizes(runs: Runs, level: str) -> float:
    """Relative excess of D, H, m and token width of sorted groups over the stated sizes, at many N."""
    off = [0.0]
    for n, modulus in _sorted_built(runs):
        depth, heads, dimension, width = _sizes(averaging.match3_sorted(n_tokens=n, modulus=modulus))
        sizes = (depth, heads, dimension, width)
        off += [have / most - 1 for have, most in zip(sizes, _sorted_stated(n, modulus)[:4], strict=True)]
    return max(off)


def sorted_bits(runs: Runs, level: str) -> float:
    """Relative excess of the bits of sorted groups over the stated bits, at many N."""
    off = [0.0]
    for n, modulus in _sorted_built(runs):
        off.append(averaging.match3_sorted(n_tokens=n, modulus=modulus).bits / _sorted_stated(n, modulus)[4] - 1)
    return max(off)


def _sorted_built(runs: Runs) -> list[tuple[int, int]]:
    return [(n, modulus) for n in _BUILT for modulus in _moduli(runs, n)]


@functools.cache
def _sorted_stated(n: int, modulus: int) -> tuple[float, ...]:
    """Stated bounds of D, H, m, token width and bits; their exact logarithms are slow."""
    stated = (
        (sorted_groups.depth(sorted_groups.digits(n, modulus)),),
        (sorted_groups.heads(),),
        sorted_groups.dimension(n, modulus),
        (sorted_groups.token_width(n),),
        sorted_groups.bits(n, modulus),
    )
    return tuple(max(float(size) for size in several) for several in stated)


def _moduli(runs: Runs, n: int, most: int = 2**36) -> list[int]:
    return sorted({modulus for modulus in (2, 3, n, n + 1, n**2, runs.setting.modulus) if 2 <= modulus <= most})


def _sizes(model: averaging.MatchTransformer) -> tuple[int, int, int, int]:
    return model.depth, model.heads, model.embedding_dim, model.width


def _over(found: float, stated: Sequence[sp.Expr]) -> float:
    """Relative excess of ``found`` over the largest stated size."""
    return max(0.0, found / max(float(size) for size in stated) - 1)


def _wrong(runs: Runs, model: averaging.MatchTransformer, n: int, modulus: int) -> float:
    """Share of wrong tokens."""
    rng = np.random.default_rng(runs.setting.seed)
    x = tasks.random_match(n, modulus, size=8, rng=rng, order=3, planted=0.5)
    x = np.concatenate([x, tasks.adversarial_match(n, modulus, order=3)])
    return float((model(x) != tasks.match3(x, modulus)).mean())


def _beyond(value: float, bound: float) -> float:
    return max(0.0, (float(value) - _ROUNDING) / bound - 1)
