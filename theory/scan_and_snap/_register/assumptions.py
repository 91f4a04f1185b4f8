"""The hypotheses of the paper as data: the printed text, after a colon the evaluated condition, and a margin.

``>>`` is a factor of `MUCH` here, unless the text has another factor. A statement also inherits hypotheses from the
results that it uses: Lemma 4 from Theorem 1, by its gradient, and Theorems 2 and 3 from Lemma 4, by (10). A check that
needs less names its hypotheses itself (`theory.statements.Check.suffices`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynamics.support import checks
from theory.scan_and_snap import coverage, tokens
from theory.scan_and_snap.bounds import xi_over_gamma
from theory.statements import Assumption

MUCH = 10
# At this ratio of the rates the modified flow agrees with the theory to 5%.
FASTER = 100
MANY = 1000  # tokens of a large vocabulary
BOUNDED = 10  # bound of a rate of O(1)
DOMINANCE = 1.01
LITTLE, ENOUGH = 0.1, 8  # K rho at most, M rho at least: see theory.attention.speed_constant
BATCHES = ("SGD",)
# The theorems' algorithm: the modified decoder, batch size 1, T -> infinity.
DRAWN = "modified SGD"


def _features(setting: Any) -> np.ndarray:
    """f_n at the start: (K, tokens)."""
    if setting.start is not None:
        return setting.start.features(setting.classes.population())
    shares = setting.classes.probabilities.toarray()
    return shares / np.linalg.norm(shares, axis=1, keepdims=True)


def _overlap(setting: Any) -> np.ndarray:
    features = _features(setting)
    overlap = features @ features.T
    np.fill_diagonal(overlap, 1.0)  # to the last bit
    return (overlap + overlap.T) / 2


def _overlaps(setting: Any) -> np.ndarray:
    overlap = _overlap(setting)
    return overlap[~np.eye(len(overlap), dtype=bool)]


def _weak(setting: Any) -> tokens.WeakCorrelation:
    return tokens.weak_correlation(_overlap(setting), vocab_size=setting.classes.vocab_size)


def _zero(values: np.ndarray | None) -> float:
    """Margin of "all values are zero": one for zeros, and smaller for a larger largest entry."""
    return 1.0 if values is None else 1 / (1 + float(np.abs(values).max(initial=0.0)))


def _long(setting: Any) -> float:
    """Margin of "sequences are long": T - 1 over `MUCH` gamma/(P(l|n) xi_n), for the rarest token of a class.

    Finite sequences add eta_Z p_n kappa beta_l/(T - 1) to a token's velocity, with kappa = gamma and beta_l = -P/S_2
    for rare tokens (`theory.scan_and_snap.finite_sequences`). By (10) a distinct token has the velocity
    eta_Z p_n P^2 xi_n/S_2. At a margin of one, the added term is a tenth of this velocity.
    """
    if setting.length is None:
        return math.inf
    overlap, shares = _overlap(setting), setting.classes.probabilities.toarray()
    if np.linalg.eigvalsh(overlap)[0] < 1e-9:  # linearly dependent features have no xi_n
        return 0.0
    rarest = np.where(shares > 0, shares, 1.0).min(axis=1)
    pull = (rarest * xi_over_gamma(overlap, setting.classes.vocab_size)).min()
    return float(max((setting.length - 1) * pull / MUCH, 0.0))


def _draws(setting: Any) -> float:
    """Margin of "many draws of classes": the least number of draws, of the training and of a counted run, over K^2."""
    n_classes = setting.classes.n_classes
    draws = min(setting.batch_size * setting.t_end, coverage.n_steps(n_classes))
    return float(draws / (MUCH * n_classes**2))


def _distinct(setting: Any) -> float:
    """Distinct tokens of the class with the most, for the query where this number is least."""
    classes = setting.classes
    counts = np.array([len(classes.distinct_tokens(n)) for n in range(classes.n_classes)])
    return float(min(counts[classes.query == m].max() for m in classes.query_tokens))


def _dominant(setting: Any) -> float:
    """Smallest f_l0^2/f_l^2 over the classes, for a class's two largest distinct tokens."""
    features, least = _features(setting), math.inf
    for n, row in enumerate(features):
        sizes = np.sort(row[setting.classes.distinct_tokens(n)])[::-1]
        if len(sizes) == 0:
            return 0.0
        if len(sizes) > 1:
            least = min(least, float((sizes[0] / sizes[1]) ** 2))
    return least / DOMINANCE


def _common(setting: Any) -> float:
    count = len(setting.classes.common_tokens)
    return 1 / count if count else 0.0


def _falling(setting: Any) -> float:
    """Margin of "all common tokens fall": by the assumptions on tokens of Theorem 2(b) or of Corollary 2."""
    single = min(ONE_COMMON.margin(setting), SOME_DISTINCT.margin(setting))
    several = min(assumption.margin(setting) for assumption in (ONE_QUERY, *SYMMETRIC))
    return max(single, several) if len(setting.classes.common_tokens) else 1.0


def slower_by(vocab_size: int) -> float:
    """Factor by which attention must be slower than at M = `MANY`."""
    vocab_size = checks.integer("vocab_size", vocab_size, minimum=1)
    return max(1.0, (math.log(vocab_size) / math.log(MANY)) ** 2)


# Assumption 1
NO_POSITIONS = Assumption(
    "Assumption 1(a), no positional encoding: position bias 0",
    lambda setting: 1 / (1 + abs(setting.position_bias)),
    BATCHES,
)
LONG_SEQUENCES = Assumption(
    f"Assumption 1(b), T -> infinity: T - 1 >= {MUCH} gamma/(P xi_n), rarest token", _long, BATCHES
)
FAST_DECODER = Assumption(
    f"Assumption 1(c), eta_Y >> eta_Z: eta_Y >= {FASTER} eta_Z", lambda setting: setting.eta_y / setting.eta_z / FASTER
)
# At a fixed ratio of the rates the modified flow's velocities miss (10) by more the larger M is, like ln^2 M.
FAST_FOR_VOCABULARY = Assumption(
    f"Assumption 1(c) for the vocabulary: eta_Y >= {FASTER} eta_Z (ln M/ln {MANY})^2",
    lambda setting: setting.eta_y / setting.eta_z / (FASTER * slower_by(setting.classes.vocab_size)),
    ("modified flow",),
)
ASSUMPTION_1 = (NO_POSITIONS, LONG_SEQUENCES, FAST_DECODER)

# Assumption 2; its second and third part together need M > 36 K^2.
MANY_TOKENS = Assumption(
    f"Assumption 2, M >> K^2: M >= {MUCH} K^2",
    lambda setting: setting.classes.vocab_size / (MUCH * setting.classes.n_classes**2),
)
UPPER = Assumption("Assumption 2, |lambda_1(E)| < 1/K", lambda setting: _weak(setting).upper_margin)
LOWER = Assumption("Assumption 2, |lambda_i(E)| >= 6/sqrt(M)", lambda setting: _weak(setting).lower_margin)
WEAK = (MANY_TOKENS, UPPER, LOWER)

# Theorem 1
ZERO_DECODER = Assumption(
    "Y(0) = 0", lambda setting: _zero(None if setting.start is None else np.asarray(setting.start.Y))
)
LARGE_VOCABULARY = Assumption(f"M >> 100: M >= {MANY}", lambda setting: setting.classes.vocab_size / MANY)
# One is counted as inside, as the paper's own figures have it.
SLOW_ENOUGH = Assumption("eta_Y < 1: eta_Y <= 1", lambda setting: 1 / setting.eta_y)
FAST_ENOUGH = Assumption(
    f"eta_Y >> M^-0.99: eta_Y >= {MUCH} M^-0.99",
    lambda setting: setting.eta_y * setting.classes.vocab_size**0.99 / MUCH,
)
# Remark 3; the paper assumes it from there on.
DECODER = (LARGE_VOCABULARY, SLOW_ENOUGH, FAST_ENOUGH)
UNIFORM = Assumption(
    "classes drawn uniformly", lambda setting: tokens.alike(np.asarray(setting.classes.class_weights)[:, None])
)
MANY_STEPS = Assumption(f"t >> K^2 steps of batch size 1: t >= {MUCH} K^2", _draws, (*BATCHES, DRAWN))
MANY_DRAWS = Assumption(f"N >> K^2: N >= {MUCH} K^2", _draws, (*BATCHES, DRAWN))
# Assumptions for the signs in (10), which do not depend on learning rates.
ANY_RATES = (*WEAK, ZERO_DECODER, UNIFORM)
THEOREM_1 = (*ASSUMPTION_1, *WEAK, ZERO_DECODER, *DECODER, UNIFORM, MANY_STEPS)
# Lemma 12; its features stand still by Assumption 1(c).
LEMMA_12 = (FAST_DECODER, ZERO_DECODER, *DECODER, UNIFORM, MANY_DRAWS)

# Tokens and queries
SOME_DISTINCT = Assumption("some class of the query has a distinct token", _distinct)
ONE_COMMON = Assumption("one common token", _common)
ONE_QUERY = Assumption("one query", lambda setting: 1 / len(setting.classes.query_tokens))
EQUAL_OVERLAPS = Assumption("equal overlaps", lambda setting: tokens.alike(_overlaps(setting)[:, None]))
# With one common token, equal shares imply equal overlaps. The converse holds from three classes on. Two classes have
# only one overlap, but each has its own velocity, by 1 - f_n^2.
ONE_SHARE = Assumption(
    "common tokens that have one f_n in all classes",
    lambda setting: tokens.alike(_features(setting)[:, setting.classes.common_tokens]),
)
SYMMETRIC = (
    Assumption(
        "distinct tokens of equal probabilities in all classes",
        lambda setting: tokens.alike(tokens.distinct_probabilities(setting.classes)),
    ),
    Assumption(
        "common tokens that have one probability in all classes",
        lambda setting: tokens.alike(tokens.common_probabilities(setting.classes)),
    ),
)
ZERO_ATTENTION = Assumption(
    "Z(0) = 0", lambda setting: _zero(None if setting.start is None else np.asarray(setting.start.Z))
)
DOMINANT = Assumption(f"a dominant distinct token: f_l0^2 >= {DOMINANCE} f_l^2", _dominant)
COMMON_FALL = Assumption("all common tokens fall: by Theorem 2(b) or Corollary 2", _falling)
# Theorem 4's xi has rho in the place of rho'' + 1/(M (1 + (K - 1) rho)): see theory.attention.speed_constant.
SMALL_OVERLAP = (
    Assumption(
        f"(13), common components are small: K rho <= {LITTLE}",
        lambda setting: LITTLE / (setting.classes.n_classes * (setting.overlap or 1e-300)),
    ),
    Assumption(
        f"(13), beta_nn' is f_n.f_n': M rho >= {ENOUGH}",
        lambda setting: setting.classes.vocab_size * setting.overlap / ENOUGH,
    ),
)

# Of single lemmas
BOUNDED_RATE = Assumption(f"eta_Y = O(1): eta_Y <= {BOUNDED}", lambda setting: BOUNDED / setting.eta_y)
NEUMANN = Assumption("|lambda_1(E)| < 1", lambda setting: 1 / max(_weak(setting).largest, 1e-300))
# Weaker assumptions for the proofs of Lemmas 8 and 9 and of insight (b).
FOUR_TOKENS = Assumption("M >= 4", lambda setting: setting.classes.vocab_size / 4)
EIGHT_TOKENS = Assumption("M >= 8", lambda setting: setting.classes.vocab_size / 8)

# <!-- numbers
# typed: 6 100 (number of the paper's assumptions)
# typed: 4 (condition of a theorem or of a clause that is proved)
# typed: 8 (condition of a theorem)
# -->
