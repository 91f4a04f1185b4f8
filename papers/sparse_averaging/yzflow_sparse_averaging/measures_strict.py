"""Numerical checks of the statement on the strict model, as in `yzflow_sparse_averaging.measures`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from theory.statements import Runs
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.proofs import strict

_STRICT_TOKENS = 16  # N of strict transformers at most, for time
_LAYER_TOKENS = 4  # N of the layer that averages, whose every input is run
_BUILT = (8, 16, 64, 256, 1024)  # N at which widths are compared


def _small(runs: Runs) -> tuple[int, int]:
    n = min(runs.setting.n_tokens, _STRICT_TOKENS)
    return n, min(runs.setting.modulus, n)


def _wrong(model: Callable, n: int, modulus: int, seed: int) -> float:
    x = tasks.random_match(n, modulus, size=4, rng=np.random.default_rng(seed), order=3, planted=0.5)
    x = np.concatenate([x, tasks.adversarial_match(n, modulus, order=3)[:: max(1, n // 8)]])
    return float((model(x) != tasks.match3(x, modulus)).mean())


def strict_transform(runs: Runs, level: str) -> float:
    """Share of tokens on which the strict transform is wrong, M <= N."""
    n, modulus = _small(runs)
    model = averaging.strict_transformer(averaging.match3_transform(n_tokens=n, modulus=modulus))
    return _wrong(model, n, modulus, runs.setting.seed)


def strict_groups(runs: Runs, level: str) -> float:
    """Share of tokens on which the strict two layers are wrong, M up to 10007."""
    root, modulus = min(runs.setting.root, 3), min(runs.setting.modulus, 10_007)  # M of its tables
    model = averaging.strict_transformer(averaging.match3_groups(root=root, modulus=modulus))
    return _wrong(model, root**3, modulus, runs.setting.seed)


def strict_sorted(runs: Runs, level: str) -> float:
    """Share of tokens on which strict sorted groups are wrong, M up to N^2."""
    n = min(runs.setting.n_tokens, _STRICT_TOKENS)
    modulus = min(runs.setting.modulus, n**2)
    model = averaging.strict_transformer(averaging.match3_sorted(n_tokens=n, modulus=modulus))
    return _wrong(model, n, modulus, runs.setting.seed)


def widths(runs: Runs, level: str) -> float:
    """Largest relative error of the stated widths of strict tokens; 1 if D, H, p or d = m changes."""
    off = [0.0]
    for n in _BUILT:
        loose = {
            strict.transform_width: averaging.match3_transform(n_tokens=n, modulus=n),
            strict.groups_width: averaging.match3_groups(root=round(n ** (1 / 3)), modulus=n),
        }
        for stated, model in loose.items():
            found = averaging.strict_transformer(model)
            off.append(abs(found.width / float(stated(model.n_tokens)) - 1))
            same = [(one.depth, one.heads, one.bits) for one in (model, found)]
            off.append(float(same[0] != same[1] or found.embedding_dim != found.width))
        most = max(float(one) for one in strict.sorted_width(n, n**2))
        found = averaging.strict_transformer(averaging.match3_sorted(n_tokens=n, modulus=n**2))
        off.append(max(0.0, found.width / most - 1))
    return max(off)


def averaging_layer(runs: Runs, level: str) -> float:
    """Share of tokens on which one layer that averages is wrong, over all inputs of few tokens."""
    off = []
    for n in range(1, _LAYER_TOKENS + 1):
        modulus = min(runs.setting.modulus, 5)
        x = tasks.all_match(n, modulus)
        truth = tasks.match3(x, modulus)
        for dimension in (1, 2 * n):
            layer = averaging.match3_power_sums(n_tokens=n, modulus=modulus, dimension=dimension)
            off.append(float((layer(x) != truth).mean()))
    return max(off)


def averaging_bits(runs: Runs, level: str) -> float:
    """Excess of an averaging layer's bits over the stated bits, and of the lower bound over its m p."""
    off = [0.0]
    for n in (1, 2, 3, 5, 16, 51, 101):
        for dimension in (1, 2, n, 2 * n):
            layer = averaging.match3_power_sums(n_tokens=n, modulus=n + 2, dimension=dimension)
            off.append(layer.bits / float(strict.bits(n, layer.prime, dimension)) - 1)
            off.append(float(strict.least_product(n)) / (dimension * layer.bits) - 1)
    return max(0.0, *off)


def repeated(runs: Runs, level: str) -> float:
    """Share of tokens whose answer changes if every token is repeated three times, by one layer for 3n tokens."""
    modulus = min(runs.setting.modulus, 5)
    x = tasks.all_match(2, modulus)
    layer = averaging.match3_power_sums(n_tokens=6, modulus=modulus)
    return float((layer(np.tile(x, (1, 3)))[:, :2] != tasks.match3(x, modulus)).mean())


def no_maps(runs: Runs, level: str) -> float:
    """Share of tokens on which a circuit without maps between layers is wrong, over all inputs of three tokens."""
    circuit = averaging.Circuit(3, 1, ((0, 1, 0b0110), (3, 2, 0b0001), (1, 2, 0b1011)), (3, 4, 5))
    x = tasks.all_match(3, 2)
    return float((averaging.attention_only_transformer(circuit, modulus=2)(x) != circuit(x)).mean())


def circuits(runs: Runs, level: str) -> float:
    """Share of tokens on which a circuit for Match3, run by attention, is wrong, over all inputs of four tokens."""
    modulus = 2
    circuit = averaging.match3_circuit(n_tokens=4, modulus=modulus)
    x = tasks.all_match(4, modulus)
    return float((averaging.circuit_transformer(circuit, modulus=modulus)(x) != tasks.match3(x, modulus)).mean())
