"""Vector fields of the reduced flows in ball arithmetic, written from Lemma 1 (3), Lemma 3 (26) and (10).

A field takes and gives lists of `flint.arb_series`, one for each variable. The result depends on the argument: a
polynomial in time gives the defect, a box with a direction a column of the Jacobian, and a box alone the range of the
velocities. Nothing here is taken from the kernels of the simulator, which it judges.

A population is read in one of two ways:

- `Symmetric`: classes that are copies of each other, as in Theorem 4. One variable stands for each orbit.
- `General`: small populations as they are; next tokens that never occur share a column.

For a bag with the counts N_l, w_l = N_l exp(z_l), f = w / ||w||, u = Y^T f, alpha = softmax(u), r = e - alpha and
g = Y r::

    full:      dY/dt = eta_Y sum_n p_n f_n r_n^T,  dz/dt = eta_Z sum_n p_n f_n * (g_n - f_n (f_n . g_n))    (Lemma 1)
    modified:  dY/dt = eta_Y F (F^T F)^{-1} [p_n r_n^T]_n,  dz/dt as above                                  (Lemma 3)
    theory:    g_n = F (F^T F)^{-1} [w_n' . r_n]_n' with w_n = x_n (e_n - 1/M),
               dx_n/dt = p_n eta_Y M / (M - 1 + exp(x_n)), x_n = M h_n                      (Theorem 1, (10), (44))

Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Sections 3-5 and Appendix D.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from flint import arb, arb_series

from dynamics.support import checks

Series = list[arb_series]
# The decoders with equations below; any other is refused.
DECODERS = ("full", "modified", "theory")


def solve(matrix: Sequence[Sequence[arb_series]], right: Sequence[Sequence[arb_series]]) -> list[Series]:
    """The solution X of A X = B by elimination without exchanges of rows: F^T F is positive definite.

    Raises
    ------
    ValueError
        If a pivot's ball holds zero.
    """
    a = [list(row) for row in matrix]
    b = [list(row) for row in right]
    size = len(a)
    for k in range(size):
        try:
            inverse = 1 / a[k][k]
        except ZeroDivisionError as error:  # of an exact zero; of a ball that holds zero it is a ValueError
            raise ValueError("a pivot is zero") from error
        a[k] = [entry * inverse for entry in a[k]]
        b[k] = [entry * inverse for entry in b[k]]
        for i in range(size):
            if i != k:
                factor = a[i][k]
                a[i] = [entry - factor * own for entry, own in zip(a[i], a[k], strict=True)]
                b[i] = [entry - factor * own for entry, own in zip(b[i], b[k], strict=True)]
    return b


def total(terms: Iterable[arb_series]) -> arb_series:
    """The sum of series."""
    result = None
    for term in terms:
        result = term if result is None else result + term
    return result


class VectorField(ABC):
    """The velocity of a list of variables, for an enclosure.

    Attributes
    ----------
    size : int
        Number of variables.
    weights : (size,) float
        Errors are measured as sqrt(sum_i (weights_i e_i)^2).
    """

    size: int
    weights: np.ndarray

    @abstractmethod
    def derivative(self, state: Series) -> Series:
        """The velocity of each variable."""

    @property
    def scale(self) -> float:
        """The weight for measuring the truncation error of a step."""
        return float(self.weights.max())


class PopulationField(VectorField):
    """Base of both readings of a population.

    Attributes
    ----------
    settings : mapping
        The population and the rates in numbers that JSON holds exactly; `field_of` makes the field from them.
    size : int
        Number of variables: z, then Y, or x for the theory flow.
    weights : (size,) float
        With sqrt(multiplicity / eta) the Jacobian of the full flow, which ascends an objective, is symmetric.
    """

    settings: Mapping

    def __init__(self, settings: Mapping):
        self.settings = settings
        self.decoder = checks.one_of("decoder", settings["decoder"], DECODERS)
        self.vocab_size = int(settings["vocab_size"])
        self.eta_y, self.eta_z = arb(settings["eta_y"]), arb(settings["eta_z"])

    @abstractmethod
    def loss(self, state: Series) -> arb_series:
        """The expected cross-entropy, nats."""

    def _weights(self, z_copies, y_copies, n_clocks) -> np.ndarray:
        eta_y, eta_z = float(self.settings["eta_y"]), float(self.settings["eta_z"])
        z = np.sqrt(np.asarray(z_copies, float) / eta_z)
        if self.decoder == "theory":
            # x decides over z, never z over x: a heavy x keeps this one-way coupling out of the symmetric part.
            return np.append(z, np.full(n_clocks, 16.0 * z.max()))
        return np.append(z, np.sqrt(np.asarray(y_copies, float) / eta_y))


def features(counts: Sequence[arb], copies: Sequence[int], logits: Series) -> Series:
    """f of a bag: N_l exp(z_l) over its Euclidean norm."""
    unnormalised = [logit.exp() * count for count, logit in zip(counts, logits, strict=True)]
    scale = total(value * value * k for value, k in zip(unnormalised, copies, strict=True)).rsqrt()
    return [value * scale for value in unnormalised]


def residual(logits: Series, multiplicity: Sequence[int], target: int) -> Series:
    """e - alpha, with an entry for each column. The target's entry is a sum of the others, so that nothing cancels."""
    odds = [(logit - logits[target]).exp() for logit in logits]
    others = [odd * m for odd, m in zip(odds, multiplicity, strict=True)]
    del others[target]
    if multiplicity[target] > 1:
        raise ValueError("a target has a column of its own")
    rest = total(others)
    share = 1 / (rest + 1)
    return [rest * share if j == target else -(odd * share) for j, odd in enumerate(odds)]


def surprise(logits: Series, multiplicity: Sequence[int], target: int) -> arb_series:
    """-log alpha at the target."""
    others = total(
        (u - logits[target]).exp() * m for j, (u, m) in enumerate(zip(logits, multiplicity, strict=True)) if j != target
    )
    return (others + 1).log()


class Symmetric(PopulationField):
    """K classes that differ only by the names of their distinct tokens.

    Every class has the common tokens with the same probabilities, and distinct tokens with the same probabilities as
    every other class. Tokens of equal probability (copies) have one variable. Seen from class n, Y has the columns own
    (1), other (K - 1) and never (M - K); rows of common tokens have own = other.

    Variables: z of each group of common, then of distinct tokens; then, for each common group, Y[occurring] and
    Y[never], and for each distinct group Y[own], Y[other], Y[never]; for the theory flow, x in place of Y. If M = K
    there is no column `never`, and the zero sum of its rows keeps Y of common tokens at zero.
    """

    def __init__(self, settings: Mapping):
        super().__init__(settings)
        classes = self.n_classes = int(settings["n_classes"])
        groups = [*settings["common"], *settings["distinct"]]
        self.n_common = len(settings["common"])
        self.n_groups = len(groups)
        self.counts = [arb(count) for count, _ in groups]
        self.copies = [int(copies) for _, copies in groups]
        self.never = self.vocab_size - classes
        self.multiplicity = [1, classes - 1] + ([self.never] if self.never else [])
        self.class_weight = arb(settings["class_weight"])
        shared = classes if settings["own_queries"] else 1
        # The number of entries of Z for each variable; and for each group, the variables of its row of Y and their
        # entries.
        self.z_copies = [k * (shared if i < self.n_common else classes) for i, k in enumerate(self.copies)]
        self.rows: list[list[int | None]] = []
        y_copies: list[int] = []
        place = self.n_groups
        for i, k in enumerate(self.copies):
            if i >= self.n_common:
                self.rows.append(list(range(place, place + len(self.multiplicity))))
                y_copies += [k * classes * m for m in self.multiplicity]
            elif self.never:
                self.rows.append([place, place, place + 1])
                y_copies += [k * classes, k * self.never]
            else:
                self.rows.append([None, None])
            place = self.n_groups + len(y_copies)
        self.y_copies = y_copies
        self.size = self.n_groups + (1 if self.decoder == "theory" else len(y_copies))
        self.weights = self._weights(self.z_copies, y_copies, 1)

    def names(self) -> list[str]:
        """The meaning of each variable."""
        common = [f"common {i}" if i else "common" for i in range(self.n_common)]
        tokens = common + [f"distinct {i + 1}" for i in range(self.n_groups - self.n_common)]
        z = [f"z({token})" for token in tokens]
        if self.decoder == "theory":
            return [*z, "M h"]
        columns = [["any class"] * bool(self.never)] * self.n_common + [["own", "other"]] * len(tokens[self.n_common :])
        never = ["never"] * bool(self.never)
        return z + [f"Y({token}, {name})" for token, own in zip(tokens, columns, strict=True) for name in own + never]

    def _columns(self, state: Series, i: int) -> list[arb_series | None]:
        return [None if place is None else state[place] for place in self.rows[i]]

    def _logits(self, state: Series, f: Series) -> Series:
        columns = [self._columns(state, i) for i in range(self.n_groups)]
        sums = [
            total(f[i] * columns[i][j] * k for i, k in enumerate(self.copies) if columns[i][j] is not None)
            for j in range(len(self.multiplicity))
        ]
        return [f[0] * 0 if value is None else value for value in sums]  # no terms: no token is distinct, and M = K

    def _views(self, f: Series) -> list[Series]:
        """F^T F between class n, and the other classes together: rows and columns (own, others)."""
        rest = self.n_classes - 1
        rho = total([f[0] * 0, *(f[i] * f[i] * self.copies[i] for i in range(self.n_common))])
        return [[rho * 0 + 1, rho * rest], [rho, rho * (rest - 1) + 1]]

    def _velocities(self, f: Series, g: Series) -> Series:
        """dz/dt = eta_Z sum_n p_n f * (g - f (f . g)) over the classes that move the entry."""
        inner = total(f[i] * g[i] * k for i, k in enumerate(self.copies))
        pulled = [f[i] * (g[i] - f[i] * inner) for i in range(self.n_groups)]
        moved_by = [self.n_classes * k // copies for k, copies in zip(self.copies, self.z_copies, strict=True)]
        return [
            value * (self.eta_z * self.class_weight * classes) for value, classes in zip(pulled, moved_by, strict=True)
        ]

    def derivative(self, state: Series) -> Series:
        f = features(self.counts, self.copies, state[: self.n_groups])
        if self.decoder == "theory":
            return self._theory(state, f)
        r = residual(self._logits(state, f), self.multiplicity, 0)
        shared = [entry * m for entry, m in zip(r, self.multiplicity, strict=True)]
        g = []
        for i in range(self.n_groups):
            pairs = zip(self._columns(state, i), shared, strict=True)
            terms = [y * weight for y, weight in pairs if y is not None]
            g.append(total(terms) if terms else r[0] * 0)
        return self._velocities(f, g) + (self._modified if self.decoder == "modified" else self._full)(f, r)

    def _full(self, f: Series, r: Series) -> Series:
        rate = self.eta_y * self.class_weight
        out = []
        for i in range(self.n_groups):
            if i >= self.n_common:
                out += [f[i] * entry * rate for entry in r]
            elif self.never:
                # Every class moves the row of a common token: one as its own, K - 1 as another.
                out += [f[i] * (r[0] + r[1] * (self.n_classes - 1)) * rate, f[i] * r[2] * (rate * self.n_classes)]
        return out

    def _modified(self, f: Series, r: Series) -> Series:
        rate = self.eta_y * self.class_weight
        rest = self.n_classes - 1
        # B = (F^T F)^{-1} [r_n^T]_n: in the column of a class, its own entry and the others'; in a column of none, all
        # are equal.
        right = [[r[0], r[2]], [r[1], r[2]]] if self.never else [[r[0]], [r[1]]]
        (own, *never), (other, *_) = solve(self._views(f), right)
        out = []
        for i in range(self.n_groups):
            if i >= self.n_common:
                out += [f[i] * entry * rate for entry in (own, other, *never)]
            elif self.never:
                out += [f[i] * (own + other * rest) * rate, f[i] * never[0] * (rate * self.n_classes)]
        return out

    def _theory(self, state: Series, f: Series) -> Series:
        size, rest = self.vocab_size, self.n_classes - 1
        x = state[-1]
        clock = 1 / (x.exp() + (size - 1))
        # w_n' . r_n: r_n = (M - 1) / (M - 1 + exp x) zeta_n, w_n = x (e_n - 1/M), zeta_n = M / (M - 1) (e_n - 1/M).
        error = x * clock
        (own,), (other,) = solve(self._views(f), [[error * (size - 1)], [-error]])
        g = [f[i] * (own + other * rest) if i < self.n_common else f[i] * own for i in range(self.n_groups)]
        return [*self._velocities(f, g), clock * (self.class_weight * self.eta_y * size)]

    def loss(self, state: Series) -> arb_series:
        if self.decoder == "theory":
            return ((-state[-1]).exp() * (self.vocab_size - 1) + 1).log() * self.class_weight * self.n_classes
        f = features(self.counts, self.copies, state[: self.n_groups])
        return surprise(self._logits(state, f), self.multiplicity, 0) * self.class_weight * self.n_classes


class General(PopulationField):
    """A population as it is: z for each pair of query and token that occur together, Y for each token that occurs.

    Columns of Y are the next tokens that occur, then one for the M - C others.
    """

    def __init__(self, settings: Mapping):
        super().__init__(settings)
        self.n_bags = len(settings["query"])
        names = sorted(set(settings["target"]))
        self.target = [names.index(target) for target in settings["target"]]
        self.multiplicity = [1] * len(names)
        if self.vocab_size > len(names):
            self.multiplicity.append(self.vocab_size - len(names))
        self.bag_weights = [arb(weight) for weight in settings["weight"]]
        self.counts = [[arb(count) for count in counts] for counts in settings["count"]]
        pairs = sorted({(q, t) for q, ts in zip(settings["query"], settings["token"], strict=True) for t in ts})
        tokens = sorted({token for row in settings["token"] for token in row})
        self.pairs, self.tokens = pairs, tokens
        self.z_index = [
            [pairs.index((query, token)) for token in row]
            for query, row in zip(settings["query"], settings["token"], strict=True)
        ]
        columns = len(self.multiplicity)
        self.row_index = [[tokens.index(token) for token in row] for row in settings["token"]]
        self.n_logits = len(pairs)
        theory = self.decoder == "theory"
        self.size = self.n_logits + (self.n_bags if theory else len(tokens) * columns)
        self.weights = self._weights([1] * len(pairs), self.multiplicity * len(tokens), self.n_bags)

    def _row(self, state: Series, row: int) -> Series:
        columns = len(self.multiplicity)
        start = self.n_logits + row * columns
        return state[start : start + columns]

    def _features(self, state: Series) -> list[Series]:
        return [
            features(counts, [1] * len(counts), [state[i] for i in index])
            for counts, index in zip(self.counts, self.z_index, strict=True)
        ]

    def _logits(self, state: Series, n: int, f: Series) -> Series:
        rows = [self._row(state, row) for row in self.row_index[n]]
        return [
            total(value * row[j] for value, row in zip(f, rows, strict=True)) for j in range(len(self.multiplicity))
        ]

    def _gram(self, F: list[Series]) -> list[Series]:
        zero = F[0][0] * 0
        index = [dict(zip(row, f, strict=True)) for row, f in zip(self.row_index, F, strict=True)]
        return [
            [
                total([zero, *(a[row] * b[row] for row in a if row in b)]) if i != j else zero + 1
                for j, b in enumerate(index)
            ]
            for i, a in enumerate(index)
        ]

    def derivative(self, state: Series) -> Series:
        F = self._features(state)
        zero = F[0][0] * 0
        if self.decoder == "theory":
            G, tail = self._theory(state, F)
        else:
            R = [residual(self._logits(state, n, F[n]), self.multiplicity, self.target[n]) for n in range(self.n_bags)]
            G = [
                [
                    total(
                        y * entry * m for y, entry, m in zip(self._row(state, row), r, self.multiplicity, strict=True)
                    )
                    for row in rows
                ]
                for rows, r in zip(self.row_index, R, strict=True)
            ]
            right = [[entry * p for entry in r] for r, p in zip(R, self.bag_weights, strict=True)]
            if self.decoder == "modified":
                right = solve(self._gram(F), right)
            columns = len(self.multiplicity)
            tail = [zero] * (len(self.tokens) * columns)
            for n, rows in enumerate(self.row_index):
                for f, row in zip(F[n], rows, strict=True):
                    for j in range(columns):
                        tail[row * columns + j] = tail[row * columns + j] + f * right[n][j] * self.eta_y
        velocity = [zero] * self.n_logits
        for n, places in enumerate(self.z_index):
            inner = total(f * g for f, g in zip(F[n], G[n], strict=True))
            for f, g, place in zip(F[n], G[n], places, strict=True):
                velocity[place] = velocity[place] + f * (g - f * inner) * (self.eta_z * self.bag_weights[n])
        return velocity + tail

    def _theory(self, state: Series, F: list[Series]) -> tuple[list[Series], Series]:
        """g_n at the tokens of each bag, and dx/dt."""
        size = self.vocab_size
        x = state[self.n_logits :]
        clocks = [1 / (entry.exp() + (size - 1)) for entry in x]
        # w_n' . r_n = x_n' (M - 1) / (M - 1 + exp x_n) (e_n' - 1/M) . zeta_n.
        inner = [
            [
                x[other] * clocks[n] * (size - 1 if self.target[other] == self.target[n] else -1)
                for n in range(self.n_bags)
            ]
            for other in range(self.n_bags)
        ]
        beta = solve(self._gram(F), inner)
        index = [dict(zip(row, f, strict=True)) for row, f in zip(self.row_index, F, strict=True)]
        G = [
            [
                total(index[o][row] * beta[o][n] for o in range(self.n_bags) if row in index[o])
                for row in self.row_index[n]
            ]
            for n in range(self.n_bags)
        ]
        rates = [clock * (p * self.eta_y * size) for clock, p in zip(clocks, self.bag_weights, strict=True)]
        return G, rates

    def loss(self, state: Series) -> arb_series:
        if self.decoder == "theory":
            terms = [((-x).exp() * (self.vocab_size - 1) + 1).log() for x in state[self.n_logits :]]
        else:
            F = self._features(state)
            terms = [
                surprise(self._logits(state, n, F[n]), self.multiplicity, self.target[n]) for n in range(self.n_bags)
            ]
        return total(term * p for term, p in zip(terms, self.bag_weights, strict=True))


def field_of(settings: Mapping) -> PopulationField:
    """The field of settings from `read`, or from a certificate."""
    return {"symmetric": Symmetric, "general": General}[settings["kind"]](settings)
