"""Checks of the lemmas of Theorem 3 one by one: attained bounds, drawn networks, and independence of other inputs."""

from __future__ import annotations

import numpy as np

from yzflow_bounded_dyck import interpolating, lottery, pruning, widths
from yzflow_bounded_dyck._register.common import once
from yzflow_bounded_dyck.networks import ReluNetwork
from yzflow_bounded_dyck.proofs import lottery as proofs
from yzflow_bounded_dyck.proofs import pruning_lemmas as proved
from yzflow_bounded_dyck.transformers import layer_norm, random_transformer

_DRAWS = 30


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(axis=0))
    return weights / weights.sum(axis=0)


@once
def composed() -> float:
    """Distance of the errors of composed maps of the plane from Lemma 5's bound, which they attain; relative.

    The first map errs by a vector, the second, L times a rotation, by the rotated direction of that.
    """
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(20):
        lipschitz, first, second = rng.uniform(0.1, 3, 3)
        turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
        direction = rng.normal(size=2)
        direction /= np.linalg.norm(direction)
        points = rng.normal(size=(50, 2))
        inner = np.tanh(points)  # any map at all
        given = lipschitz * inner @ turn.T
        near = lipschitz * (inner + first * direction) @ turn.T + second * turn @ direction
        error = np.linalg.norm(near - given, axis=1).max()
        worst = max(worst, abs(error / float(proofs.composed(lipschitz, first, second)) - 1))
    return worst


@once
def enough_for_networks() -> float:
    """Share of random 4-layer networks of Lemma 6's width that miss a 2-layer one, beyond the promised failures."""
    accuracy, failure, missed = 0.2, 0.1, 0
    units = widths.units_of_network([(1, 1), (1, 1)], accuracy, failure)
    for seed in range(_DRAWS):
        rng = np.random.default_rng([seed, units])
        target = ReluNetwork(tuple(rng.choice([-1, 1]) * rng.uniform(0.2, 1, (1, 1)) for _ in range(2)))
        missed += pruning.prune_network(target, units // 2, rng).certificate > accuracy
    return max(missed / _DRAWS - failure, 0.0)


@once
def softmax() -> float:
    """Largest L1 distance over Lemma 8's bound, less one, of random logits; and what two keys fall short of it."""
    rng, ratios, short = np.random.default_rng(0), [], []
    for error in (0.01, 0.3, 2.0):
        logits = rng.normal(size=(5, 400)) * 3
        moved = logits + error * rng.choice([-1, 1], logits.shape)
        bound = float(proved.softmax_change(error))
        ratios.append(np.abs(_softmax(moved) - _softmax(logits)).sum(axis=0).max() / bound - 1)
        ends = (np.array([-error, error]) / 2, np.array([error, -error]) / 2)
        short.append(1 - np.abs(_softmax(ends[0]) - _softmax(ends[1])).sum() / bound)
    return float(max(0.0, *ratios, *np.abs(short)))


@once
def normalised() -> float:
    """Largest distance of LN's values times C over that of its inputs, less one, in and across all three cases."""
    rng, ratios = np.random.default_rng(0), []
    for floor in (0.3, 1.0, 5.0):
        one, other = rng.normal(size=(2, 2000, 4))
        moved = layer_norm(one, floor) - layer_norm(other, floor)
        apart = (one - other) - (one - other).mean(axis=1)[:, None]
        ratios.append((np.linalg.norm(moved, axis=1) * floor / np.linalg.norm(apart, axis=1)).max() - 1)
    return float(max(0.0, *ratios))


@once
def mixtures() -> float:
    """Largest change of a mixture over Lemma 11's bound, less one; and what two values fall short of it."""
    rng, ratios = np.random.default_rng(0), []
    for _ in range(200):
        values, error = rng.normal(size=(3, 5)), rng.normal(size=(3, 5)) * 0.1
        one, other = rng.dirichlet(np.ones(5), 2)
        diameter = np.linalg.norm(values[:, :, None] - values[:, None], axis=0).max()
        size, distance = np.linalg.norm(error, axis=0).max(), np.abs(one - other).sum()
        moved = np.linalg.norm((values + error) @ other - values @ one)
        ratios.append(moved / float(proved.mixture_change(size, distance, diameter)) - 1)
    attained = abs((0.1 + 2 * 0.7) - 2 * 0.4) / float(proved.mixture_change(0.1, 0.6, 2)) - 1
    return float(max(0.0, abs(attained), *ratios))


@once
def lipschitz_of_attention() -> float:
    """Largest change of drawn attention modules over Lemma 13's constant times the inputs' change, less one."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        key, query, value = rng.normal(size=(3, 4, 4)) / 2
        floor, link = float(rng.uniform(0.3, 2)), float(rng.uniform(-1, 1))

        def module(tokens, key=key, query=query, value=value, floor=floor, link=link):
            return (
                layer_norm((value @ tokens @ _softmax((key @ tokens).T @ (query @ tokens))).T, floor).T + link * tokens
            )

        centred = value - value.mean(axis=0)
        norm, product = np.linalg.norm(centred, 2), np.linalg.norm(key.T @ query, 2)
        bound = float(proved.attention_lipschitz(norm, product, 1.0, floor, abs(link)))
        for size in (1e-4, 0.1, 1.0):
            tokens, other = (draw / np.linalg.norm(draw, axis=0) for draw in rng.normal(size=(2, 4, 5)))
            other = tokens + size * (other - tokens)
            apart = np.linalg.norm(other - tokens, axis=0).max()
            ratios.append(np.linalg.norm(module(other) - module(tokens), axis=0).max() / (bound * apart) - 1)
    return float(max(0.0, *ratios))


@once
def wider_norms() -> float:
    """Largest distance of LN of padded tokens of mean zero from LN of the tokens, padded."""
    tokens = np.random.default_rng(0).normal(size=(50, 4))
    tokens -= tokens.mean(axis=1)[:, None]
    return float(
        max(
            np.abs(layer_norm(np.pad(tokens, [(0, 0), (0, more)]), floor)[:, :4] - layer_norm(tokens, floor)).max()
            for more in (1, 7)
            for floor in (0.5, 4.0)
        )
    )


@once
def pruned_layers() -> float:
    """Change of pruned layers' outputs with inputs beside the token, and sampled error beyond their certificate.

    Two random layers that hold one, Lemmas 3, 4 and 14; other coordinates of their inputs are drawn anew.
    """
    worst = 0.0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        target = random_transformer(3, 3, [4], 1, rng, floor=1.0, norm=1.0)
        pruned = lottery.prune_transformer(target, lottery.room_for(target, 8, rng))
        tokens = rng.normal(size=(40, 5, 3))
        tokens /= np.linalg.norm(tokens, axis=-1, keepdims=True)
        worst = max(worst, pruned.error(tokens) / pruned.certificate() - 1)
        beside = rng.normal(size=(40, 5, pruned.network.width - 3))
        plain = np.concatenate([tokens, np.zeros_like(beside)], axis=-1)
        first = pruned.network.layers[0]
        other = first(np.concatenate([tokens, beside], axis=-1), target.floor)
        worst = max(worst, np.abs(other - first(plain, target.floor)).max())
    return float(max(worst, 0.0))


@once
def kept_apart() -> float:
    """Error of bases that keep points apart: orthonormality, and 1 where two points fall together (Lemma 16)."""
    worst = 0.0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        points = rng.integers(-2, 3, (12, 3)).astype(float)
        basis = interpolating.separating_basis(points)
        worst = max(worst, np.abs(basis @ basis.T - np.eye(2)).max())
        seen = np.unique((points @ basis.T).round(9), axis=0)
        worst = max(worst, float(len(seen) != len(np.unique(points, axis=0))))
    return worst
