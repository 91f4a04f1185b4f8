"""A reader's training once more, with numpy and scipy alone, and the truth of some statements of Scan and Snap in it.

Nothing of the package is imported: right-hand sides, steps, closed forms and errors are written out here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq

STILL = 1e-12  # of eta_Z times the largest entry of Y: what is below is no velocity


@dataclass(frozen=True)
class Training:
    """Data and training of one reader: probabilities (K, N), a query for each class, and how steps are made."""

    probabilities: np.ndarray
    query: np.ndarray
    vocab_size: int
    eta_y: float
    eta_z: float
    t_end: float
    weights: np.ndarray
    rule: str = "sgd"
    momentum: float = 0.0
    decay: float = 0.0
    smoothing: float = 0.0

    @property
    def shape(self):
        """Entries of Y and of Z."""
        return (self.probabilities.shape[1], self.vocab_size), (len(set(self.query)), self.probabilities.shape[1])

    @property
    def rows(self):
        """The row of Z that each class reads."""
        return np.unique(self.query, return_inverse=True)[1]


@dataclass(frozen=True)
class Recorded:
    """Records of a training: Y, Z, and the velocity of Z where there is one."""

    times: np.ndarray
    Y: np.ndarray
    Z: np.ndarray
    velocity: np.ndarray | None


def _gradients(own, shares, rows, classes, weight, Y, Z):
    """The rise of log-likelihood along Y and Z, of sequences whose tokens have shares (n, N)."""
    c = shares * np.exp(Z[rows])
    c /= c.sum(axis=1, keepdims=True)
    f = c / np.sqrt((c**2).sum(axis=1, keepdims=True))
    logits = f @ Y
    alpha = np.exp(logits - logits.max(axis=1, keepdims=True))
    alpha /= alpha.sum(axis=1, keepdims=True)
    target = np.full(alpha.shape, own.smoothing / own.vocab_size)
    target[np.arange(len(classes)), classes] += 1 - own.smoothing
    miss = target - alpha
    back = miss @ Y.T
    push = f * (back - f * (f * back).sum(axis=1, keepdims=True))
    along_z = np.zeros_like(Z)
    np.add.at(along_z, rows, weight[:, None] * push)
    return (weight[:, None] * f).T @ miss, along_z


def _full(own, Y, Z):
    return _gradients(own, own.probabilities, own.rows, np.arange(len(own.query)), own.weights, Y, Z)


def times_of(t_end):
    """The times at which flows are recorded."""
    return np.concatenate([[0.0], np.geomspace(0.01, t_end, 120)])


def flow(own):
    """The gradient flow of the training, each optimizer in its limit of small rates."""
    first, second = own.shape
    size = math.prod(first)
    rates = np.concatenate([np.full(size, own.eta_y), np.full(math.prod(second), own.eta_z)])
    n = rates.size

    def velocity(state):
        weights = state[:n]
        slope = np.concatenate(
            [g.ravel() for g in _full(own, weights[:size].reshape(first), weights[size:].reshape(second))]
        )
        slope = slope - own.decay * weights
        if own.rule == "adam":
            return rates * slope / (np.abs(slope) + 1e-8)
        if not own.momentum:
            return rates * slope
        gathered = state[n:]
        return np.concatenate([rates * gathered, slope - (1 - own.momentum) * gathered])

    times = times_of(own.t_end)
    start = np.zeros(2 * n if own.momentum and own.rule == "sgd" else n)
    method, tight = ("LSODA", 1e-7) if own.rule == "adam" else ("DOP853", 1e-11)
    found = solve_ivp(
        lambda t, s: velocity(s),
        (0, own.t_end),
        start,
        method,
        times,
        rtol=tight,
        atol=1e-15 if tight < 1e-8 else 1e-12,
    )
    assert found.success, found.message
    states = found.y.T
    moved = np.stack([velocity(state)[:n] for state in states])
    return Recorded(
        times,
        states[:, :size].reshape(-1, *first),
        states[:, size:n].reshape(-1, *second),
        moved[:, size:].reshape(-1, *second),
    )


def steps(own, seed, *, batch=64, length=256):
    """Mini-batch steps on sequences that are drawn here."""
    rng = np.random.default_rng(seed)
    Y, Z = (np.zeros(shape) for shape in own.shape)
    gathered = [[np.zeros_like(Y), np.zeros_like(Y)], [np.zeros_like(Z), np.zeros_like(Z)]]
    count, every = int(own.t_end), max(1, int(own.t_end) // 50)
    seen = [(0.0, Y.copy(), Z.copy())]
    for step in range(count):
        classes = rng.choice(len(own.query), size=batch, p=own.weights)
        drawn = np.stack([rng.multinomial(length - 1, own.probabilities[n]) for n in classes]).astype(float)
        slopes = _gradients(own, drawn, own.rows[classes], classes, np.full(batch, 1 / batch), Y, Z)
        for weights, slope, kept, rate in zip((Y, Z), slopes, gathered, (own.eta_y, own.eta_z), strict=True):
            slope = slope - own.decay * weights
            if own.rule == "adam":
                kept[0] = 0.9 * kept[0] + 0.1 * slope
                kept[1] = 0.999 * kept[1] + 0.001 * slope**2
                mean, square = kept[0] / (1 - 0.9 ** (step + 1)), kept[1] / (1 - 0.999 ** (step + 1))
                weights += rate * mean / (np.sqrt(square) + 1e-8)
            else:
                kept[0] = own.momentum * kept[0] + slope
                weights += rate * kept[0]
        if (step + 1) % every == 0 or step + 1 == count:
            seen.append((step + 1.0, Y.copy(), Z.copy()))
    times, Ys, Zs = zip(*seen, strict=True)
    return Recorded(np.array(times), np.array(Ys), np.array(Zs), None)


def features(own, Z):
    """Attention and features of each class at each time: (times, K, N)."""
    shares = own.probabilities * np.exp(Z[:, own.rows])
    shares = shares / shares.sum(axis=2, keepdims=True)
    return shares, shares / np.sqrt((shares**2).sum(axis=2, keepdims=True))


def growth(own, times):
    """x = M h(t/K) of the paper's decoder, from exp(x) + (M - 1) x = M eta_Y t/K + 1."""
    M, K = own.vocab_size, len(own.query)

    def at(t):
        total = M * own.eta_y * t / K + 1
        return brentq(lambda x: np.exp(x) + (M - 1) * x - total, 0, max(np.log(total), 1) + 1, xtol=1e-15)

    return np.array([at(t) for t in times])


def theory(own, seen):
    """Features of a run, the backpropagated g_n of Theorem 1 there, (times, K, N), and xi_n, without 1/K."""
    _, f = features(own, seen.Z[1:])
    K, M = len(own.query), own.vocab_size
    x = growth(own, seen.times[1:])
    rows = np.eye(K, M) - 1 / M
    Y = [own_f.T @ np.linalg.solve(own_f @ own_f.T, at * rows) for own_f, at in zip(f, x, strict=True)]
    size = M / (M - 1 + np.exp(x))
    back = np.stack([s * rows @ y.T for s, y in zip(size, Y, strict=True)])
    coefficient = np.stack(
        [
            s * np.linalg.solve(own_f @ own_f.T, at * (rows @ rows.T)).T.diagonal()
            for s, own_f, at in zip(size, f, x, strict=True)
        ]
    )
    return f, back, coefficient - (f * back).sum(axis=2)


def _pairs(own, common):
    several = (own.probabilities > 0).sum(axis=0) > 1
    return sorted(
        {
            (int(own.rows[n]), int(token))
            for n, token in zip(*np.nonzero(own.probabilities), strict=True)
            if several[token] == common
        }
    )


def _moving(own, seen, moved, factor=1.0):
    size = np.maximum.accumulate(np.abs(seen.Y).max(axis=(1, 2)))[1:]
    return (np.abs(moved) > (STILL * own.eta_z * size * factor)[:, None]).any(axis=0)


def signs(own, seen, common, *, velocity):
    """Share of (time, token) that has not moved, or does not move, as Theorem 2 says; None of nothing that moves."""
    pairs = _pairs(own, common)
    if not pairs:
        return None
    rows, tokens = np.array(pairs).T
    moved = (seen.velocity[1:] if velocity else seen.Z[1:] - seen.Z[:1])[:, rows, tokens]
    moving = _moving(own, seen, moved, 1.0 if velocity else seen.times[1:])
    right = (-moved if common else moved) > 0
    return float(1 - (right & moving).mean()) if moving.any() else None


def _regular(own):
    return np.linalg.matrix_rank(own.probabilities) == len(own.query)


def rates(own, seen):
    """Error of (98): z' of the distinct tokens against eta_Z f^2 xi_n/K."""
    several = (own.probabilities > 0).sum(axis=0) > 1
    places = np.nonzero((own.probabilities > 0) & ~several)
    if not places[0].size or not _regular(own):
        return None
    f, _, xi = theory(own, seen)
    wanted = own.eta_z / len(own.query) * f**2 * xi[:, :, None]
    found = seen.velocity[1:][:, own.rows]
    n, token = places
    wanted, found = wanted[:, n, token], found[:, n, token]
    if not (_moving(own, seen, found).any() or _moving(own, seen, wanted).any()):
        return None
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def velocities(own, seen):
    """Error of (10)."""
    if not _regular(own):
        return None
    f, back, _ = theory(own, seen)
    push = own.eta_z / len(own.query) * f * (back - f * (f * back).sum(axis=2, keepdims=True))
    wanted = np.stack([push[:, own.rows == row].sum(axis=1) for row in range(own.rows.max() + 1)], axis=1)
    found = seen.velocity[1:]
    flat = (len(found), -1)
    if not (_moving(own, seen, found.reshape(flat)).any() or _moving(own, seen, wanted.reshape(flat)).any()):
        return None
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def _distinct(own, n):
    several = (own.probabilities > 0).sum(axis=0) > 1
    tokens = np.flatnonzero((own.probabilities[n] > 0) & ~several)
    return tokens[np.argsort(-own.probabilities[n, tokens], kind="stable")]


def gain(own, seen):
    """Error of (11): the dominant token's relative gain over each other distinct token of its class."""
    worst = []
    for n, row in enumerate(own.rows):
        top, *others = [*_distinct(own, n)] or [None]
        for other in others:
            first = (own.probabilities[n, top] / own.probabilities[n, other]) ** 2 - 1
            if first > 1e-6:
                moved = seen.Z[:, row, top], seen.Z[:, row, other]
                found = (first + 1) * np.exp(2 * (moved[0] - moved[1])) - 1
                worst.append(np.abs(found / (first * np.exp(2 * moved[0])) - 1).max())
    return max(worst, default=None)


def leads(own, seen):
    """Share of (time, pair of distinct tokens of class 0) at which the lead shrinks."""
    tokens = _distinct(own, 0)
    if len(tokens) < 2:
        return None
    moved = seen.velocity[1:, own.rows[0]]
    if not _moving(own, seen, moved[:, tokens]).any():
        return None
    first, second = np.triu_indices(len(tokens), 1)
    rounding = 1e-9 * np.abs(moved).max(axis=1, keepdims=True)
    return float((moved[:, tokens[first]] - moved[:, tokens[second]] < -rounding).mean())


def dominant(own, seen):
    """Share of (time, class) at which the dominant token's feature does not grow."""
    _, f = features(own, seen.Z[1:])
    falls = []
    for n, row in enumerate(own.rows):
        tokens = _distinct(own, n)
        if len(tokens):
            speed = seen.velocity[1:, row]
            falls.append(speed[:, tokens[0]] - (f[:, n] ** 2 * speed).sum(axis=1))
    if not falls:
        return None
    moved = np.stack(falls, axis=1)
    moving = _moving(own, seen, moved)
    return float(1 - ((moved > 0) & moving).mean()) if moving.any() else None


def zero_sums(own, seen):
    """By how much rows of Y and Z change their sums, relative to the largest entry."""
    return float(
        max(np.abs(one.sum(axis=2)).max() / np.abs(one).max() for one in (seen.Y, seen.Z) if np.abs(one).max() > 1e-12)
    )


def loss(own, seen):
    """Error of Corollary 1's loss, the cross-entropy whatever is descended on."""
    _, f = features(own, seen.Z[1:])
    logits = f @ seen.Y[1:]
    top = logits.max(axis=2)
    right = logits[:, np.arange(len(own.query)), np.arange(len(own.query))]
    log_p = right - top - np.log(np.exp(logits - top[:, :, None]).sum(axis=2))
    found = -(log_p * own.weights).sum(axis=1)
    wanted = np.log1p((own.vocab_size - 1) * np.exp(-growth(own, seen.times[1:])))
    return float(np.abs(found / wanted - 1).max())


def bounds(own, seen):
    """Violation of (12) by ln chi of each class's dominant token, B_n = (eta_Z/K) int xi_n."""
    if not _regular(own):
        return None
    tops = [(n, _distinct(own, n)[0]) for n in range(len(own.query)) if len(_distinct(own, n))]
    _, _, xi = theory(own, seen)
    # Linear in time up to the first output, as gamma is, and smooth afterwards.
    rate = PchipInterpolator(seen.times, np.concatenate([np.zeros((1, xi.shape[1])), xi]))
    exponent = own.eta_z / len(own.query) * rate.antiderivative()(seen.times)
    _, first = features(own, seen.Z[:1])
    worst = []
    for n, top in tops:
        chi = 2 * (seen.Z[:, own.rows[n], top] - seen.Z[0, own.rows[n], top])
        known = exponent[:, n] > 1e-10
        if known.any():
            lower, upper = 2 * first[0, n, top] ** 2 * exponent[known, n], 2 * exponent[known, n]
            worst.append(max((1 - chi[known] / lower).max(), (chi[known] / upper - 1).max(), 0.0))
    return float(max(worst)) if worst else None


# Statement -> what is asked of a flow, and of steps: its name, a function of the training and of the run, the error up
# to which it holds, and whether that is a share of places.
ASKED = {
    "Theorem 2(a)": (
        ("the signs of the distinct tokens' changes", lambda o, s: signs(o, s, False, velocity=False), 0, True, True),
        (
            "the signs of the distinct tokens' velocities",
            lambda o, s: signs(o, s, False, velocity=True),
            0,
            True,
            False,
        ),
        ("the rates (98)", rates, 0.05, False, False),
    ),
    "Theorem 2(b)": (
        ("the sign of the common token's change", lambda o, s: signs(o, s, True, velocity=False), 0, True, True),
        ("the sign of the common token's velocity", lambda o, s: signs(o, s, True, velocity=True), 0, True, False),
    ),
    "Corollary 2": (
        ("the signs of the common tokens' changes", lambda o, s: signs(o, s, True, velocity=False), 0, True, True),
        ("the signs of the common tokens' velocities", lambda o, s: signs(o, s, True, velocity=True), 0, True, False),
    ),
    "Lemma 4": (("the velocities (10)", velocities, 0.05, False, False),),
    "Theorem 3": (
        ("the identity (11)", gain, 0.05, False, True),
        ("the growth of every lead", leads, 0, True, False),
        ("the growth of the dominant token's attention", dominant, 0, True, False),
        ("the bounds (12)", bounds, 1e-3, False, False),
    ),
    "Lemma 1, zero sums": (("zero row sums", zero_sums, 1e-8, False, True),),
    "Corollary 1": (("the loss of (71)", loss, 0.05, False, True),),
}


@dataclass(frozen=True)
class Truth:
    """The error of one part of a statement in one run; None of one that has nothing to compare."""

    says: str
    error: float | None
    tolerance: float
    share: bool

    @property
    def holds(self):
        return self.error is not None and self.error <= self.tolerance

    @property
    def fails(self):
        return self.error is not None and not self.error <= self.tolerance


def truths(number, own, seen):
    """The truth of every part of a statement in a run: of those for steps, where the run has no velocity."""
    return [
        Truth(says, measure(own, seen), tolerance, share)
        for says, measure, tolerance, share, of_steps in ASKED[number]
        if of_steps or seen.velocity is not None
    ]
