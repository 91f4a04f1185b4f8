"""Hypotheses of the bounded Dyck paper's statements.

A hypothesis that the checks' layers satisfy by construction has the margin one.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from theory.statements import Assumption
from yzflow_bounded_dyck import approximate


def _by_construction(setting: Any) -> float:
    """Margin one: the checks' layers satisfy the hypothesis by construction."""
    return 1.0


def _independent(setting: Any) -> float:
    return float(np.linalg.matrix_rank(setting.encodings) / setting.language.n_states)


@functools.lru_cache(maxsize=16)
def _keeps(setting: Any) -> float:
    """Ten times the share of two stacks' distance that 1000 pairs leave in the trained layer (`kept_behind`)."""
    share = approximate.kept_behind(setting.simulate("full flow", seed=0).final, setting.language)
    return 10 * share if np.isfinite(share) else 1.0


def _keeps_uniform(setting: Any) -> float:
    return _keeps(dataclasses.replace(setting, uniform=True))


TYPES = Assumption("k >= 2, several types", lambda setting: setting.language.n_types / 2)
DEPTH = Assumption("D >= 2, closing queries", lambda setting: setting.language.max_depth / 2)
MINIMAL = Assumption("a minimal first layer (Assumption 1)", _by_construction)
NO_FLOOR = Assumption("no floor in LN (C_eps = 0)", _by_construction)
FLOOR = Assumption("a floor in LN, C > 0", _by_construction)
RIGHT = Assumption("right at every length, with a continuous head", _by_construction)
KEEPS = Assumption("right at every length when trained: behind 1000 pairs a tenth of two stacks' distance", _keeps)
KEEPS_UNIFORM = Assumption(
    "right at every length when trained with uniform attention: behind 1000 pairs a tenth of two stacks' distance",
    _keeps_uniform,
)
LOUD = Assumption("no value vanishes: P W_V e is not 0", _by_construction)
INDEPENDENT = Assumption("encodings of all states and START independent, rank 2 k D + 1", _independent)
CLOSING = Assumption("(11) at closing queries of depth 1 to D - 1", _by_construction)
ALL_QUERIES = Assumption("(11) at every query", _by_construction)
LINK = Assumption("the residual link of (6), behind LN", _by_construction)
NO_LINK = Assumption("no residual link", _by_construction)
LIPSCHITZ = Assumption("a gamma-Lipschitz head", _by_construction)
APART = Assumption("outputs tau apart after n pairs", _by_construction)
NEAR = Assumption("squared loss near its least", _by_construction)
NEAR_ENTROPY = Assumption("cross-entropy near its least", _by_construction)
DECAY = Assumption("a minimiser of the squared loss with weight decay", _by_construction)
NOT_ONES = Assumption("closing brackets that are no multiples of the all-ones vector", _by_construction)
ONES = Assumption("closing brackets that are multiples of the all-ones vector", _by_construction)
ZERO_TO_ZERO = Assumption("LN maps zero to zero", _by_construction)
BEFORE = Assumption("LN before each part, none on the residual stream", _by_construction)
CAUSAL = Assumption("causal mask, no positions, a starting token", _by_construction)
UNLIKE = Assumption("heads whose ratios of the masses of two kinds of pairs differ", _by_construction)
SMOOTHED = Assumption("label smoothing eps between 0 and 1", _by_construction)
UNIFORM = Assumption("random weights uniform in [-1, 1]", _by_construction)
NORM = Assumption("given matrices of norm at most 1", _by_construction)
BALL = Assumption("inputs of norm at most 1", _by_construction)
IDENTITY = Assumption("the identity as decoder", _by_construction)

# <!-- numbers
# typed: 2 (condition of a theorem or of a clause that is proved)
# typed: 1000 (size in the code of a check, which its name tells)
# -->
