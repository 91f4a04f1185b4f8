"""Numbers in the questions on bounded Dyck, at what the pages' sliders start from, pairs [] at level 1."""

from typing import Any

import numpy as np
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.views import SEED

from dynamics import Layer
from theory.values import Study

SETTING = {"k": 2, "D": 3, "scale": 0.5, "seed": SEED}


def _features(off: float, k: int, D: int, scale: float, seed: int) -> tuple[Any, ...]:
    """Language, balanced layer, what each state adds at the query close (0, 2), and what a pair adds there."""
    language = DyckLanguage(k, D)
    right = balance.balanced_layer(language, rng=seed, scale=scale)
    Z = np.array(right.Z)
    Z[language.close(0, 2), language.open(1, 1)] += off
    u = balance.contributions(Layer(Z, right.Y, np.array(right.V)), language)[language.close(0, 2)]
    return language, right, u, u[[language.open(1, 1), language.close(1, 0)]].sum(axis=0)


def _sum(language: DyckLanguage, u: np.ndarray, text: str) -> np.ndarray:
    return u[language.state_sequence(text)].sum(axis=0)


def _turned(row: np.ndarray) -> np.ndarray:
    return row / np.linalg.norm(row, axis=-1, keepdims=True)


def turn(off: float, text: str, **setting: Any) -> dict[str, Any]:
    """How far the features have moved where what the pairs add is as long as the text's own sum."""
    language, _, u, delta = _features(off, **setting)
    own = _sum(language, u, text)
    at = np.linalg.norm(own) / np.linalg.norm(delta)
    turned = _turned(own + at * delta)
    angle = np.degrees(np.arccos(turned @ _turned(own)))
    return {"moved": float(np.linalg.norm(turned - _turned(own))), "degrees": round(float(angle), 6)}


def halved(offs: list[float], texts: list[str], most: int, **setting: Any) -> dict[str, Any]:
    """After how many pairs two texts are half as far apart as without any."""
    pairs = []
    for off in offs:
        language, _, u, delta = _features(off, **setting)
        one, other = (_sum(language, u, text) for text in texts)
        n = np.arange(most)[:, None]
        gap = np.linalg.norm(_turned(one + n * delta) - _turned(other + n * delta), axis=1)
        pairs.append(int(np.flatnonzero(gap < gap[0] / 2)[0]))
    return {"pairs": pairs, "times": offs[1] / offs[0]}


def right(off: float, error: float, texts: list[str], brackets: int, most: int, **setting: Any) -> dict[str, Any]:
    """Up to how many inserted pairs every probability is right to the error, and the error at short texts."""
    language, exact_one, u, delta = _features(off, **setting)
    head = balance.exact_head(exact_one, language)
    errors = np.zeros(most)
    for text in texts:
        found = head(_turned(_sum(language, u, text) + np.arange(most)[:, None] * delta))
        errors = np.maximum(errors, np.abs(found - language.next_token(text)).max(axis=1))
    last = int(np.flatnonzero(errors > error)[0]) - 1
    return {"pairs": last, "brackets_until": 2 * last, "rounding": bool(errors[: brackets // 2].max() < 1e-12)}


STUDIES = (
    Study("turn", turn, SETTING | {"off": 0.3, "text": "((()"}),
    Study("halved", halved, SETTING | {"offs": [0.01, 0.1], "texts": ["((()", "([()"], "most": 1000}),
    Study(
        "right",
        right,
        SETTING
        | {"off": 0.01, "error": 0.01, "texts": ["((()", "([()", "[(()", "[[()"], "brackets": 100, "most": 3000},
    ),
)
