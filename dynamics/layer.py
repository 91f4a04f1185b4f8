"""The layer: self-attention logits Z, decoder Y and an optional value matrix V."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics import checks, kernels
from dynamics.bags import Bags


@dataclass(frozen=True, eq=False)
class Layer:
    """A 1-layer transformer in the Y/Z parameterisation (Section 3.1 of Tian et al. 2023).

    For a bag with query m and counts N: attention ``c_l = N_l exp(Z[m, l]) / sum``, feature ``f = LN(V^T c)`` with
    ``LN(v) = v / ||v||_2``, next-token probabilities ``alpha = softmax(Y^T f)``. LN of the zero vector is zero.

    Parameters
    ----------
    Z : (queries, tokens)
        Attention logits.
    Y : (tokens or values, next tokens)
        Decoder logits.
    V : (tokens, values), optional
        Value matrix; None stands for the identity, the model of the paper.
    multiplicity : (columns of Y,) int, optional
        How many next tokens share each column of Y. Next tokens that never occur have equal columns whenever they
        start equal, so K occurring ones of M need K + 1 columns, the last with multiplicity M - K, with no
        approximation. Default: all ones.

    All arrays are copied and read-only.

    Raises
    ------
    ValueError
        If an entry is not finite, or shapes do not fit each other.
    """

    Z: np.ndarray
    Y: np.ndarray
    V: np.ndarray | None = None
    multiplicity: np.ndarray | None = None

    def __post_init__(self):
        for name in ("Z", "Y", "V"):
            value = getattr(self, name)
            if value is None and name == "V":
                continue
            dtype = np.float32 if getattr(value, "dtype", None) == np.float32 else np.float64
            array = checks.finite_array(name, value, ndim=2, dtype=dtype)
            if 0 in array.shape:
                raise checks.reject(name, "have at least one row and one column", f"shape {array.shape}")
            object.__setattr__(self, name, array)
        if self.multiplicity is None:
            multiplicity = np.ones(self.Y.shape[1], dtype=np.int64)
        else:
            multiplicity = checks.index_array("multiplicity", self.multiplicity)
            if multiplicity.size != self.Y.shape[1] or (multiplicity == 0).any():
                raise checks.reject(
                    "multiplicity",
                    f"be a positive integer for each of {self.Y.shape[1]} columns of Y",
                    list(multiplicity),
                )
        object.__setattr__(self, "multiplicity", multiplicity)
        inputs, rows = (self.Z.shape[1], self.Z.shape[1]) if self.V is None else self.V.shape
        if self.Z.shape[1] != inputs:
            raise checks.reject("V", f"have {self.Z.shape[1]} rows, one a token", f"shape {self.V.shape}")
        if self.Y.shape[0] != rows:
            what = "token" if self.V is None else "column of V"
            raise checks.reject("Y", f"have {rows} rows, one a {what}", f"shape {self.Y.shape}")
        for array in (self.Z, self.Y, self.V, self.multiplicity):
            if array is not None:
                read_only(array)

    def __repr__(self) -> str:
        value = "" if self.V is None else f", V {self.V.shape}"
        return f"<Layer: Z {self.Z.shape}, Y {self.Y.shape}{value}, {self.vocab_size} next tokens>"

    @classmethod
    def zeros(cls, bags: Bags) -> Layer:
        """The start Y = Z = 0 for these bags, with one column of Y for all next tokens that never occur."""
        columns = np.ones(bags.n_targets, dtype=np.int64)
        if bags.vocab_size > bags.n_targets:
            columns = np.append(columns, bags.vocab_size - bags.n_targets)
        return cls(np.zeros((bags.n_queries, bags.n_tokens)), np.zeros((bags.n_tokens, columns.size)), None, columns)

    @property
    def vocab_size(self) -> int:
        """M, the number of next tokens."""
        return int(self.multiplicity.sum())

    @property
    def value_matrix(self) -> np.ndarray:
        """V for the kernels: an array without rows where V is the identity."""
        return read_only(np.empty((0, 0), self.Z.dtype)) if self.V is None else self.V

    def expand(self) -> Layer:
        """The same layer with a column of Y for every next token."""
        return Layer(self.Z, np.repeat(self.Y, self.multiplicity, axis=1), self.V)

    def check_fits(self, bags: Bags, *, name: str = "bags") -> None:
        """Raise ``ValueError`` unless this layer has rows and columns for every index in ``bags``."""
        for what, needed, present in (
            ("queries", bags.n_queries, self.Z.shape[0]),
            ("tokens", bags.n_tokens, self.Z.shape[1]),
            ("next tokens", bags.vocab_size, self.vocab_size),
        ):
            if needed > present:
                raise checks.reject(name, f"have at most the {present} {what} of the layer", needed)
        alone = self.multiplicity[: bags.n_targets]
        if alone.size < bags.n_targets or (alone != 1).any():
            raise checks.reject(
                "multiplicity",
                "be 1 for every next token that occurs",
                f"{alone.tolist()} for {bags.n_targets} of them",
            )

    def attention(self, bags: Bags) -> np.ndarray:
        """Attention c of each bag: (bags, tokens), rows sum to one (Lemma 2, (5))."""
        self.check_fits(bags)
        values = np.empty(bags.token.size, self.Z.dtype)
        kernels.attention(bags.query, bags.indptr, bags.token, bags.count, self.Z, values)
        dense = np.zeros((len(bags), self.Z.shape[1]), self.Z.dtype)
        dense[np.repeat(np.arange(len(bags)), np.diff(bags.indptr)), bags.token] = values
        return dense

    def features(self, bags: Bags) -> np.ndarray:
        """Features f = LN(V^T c) of each bag: (bags, rows of Y), unit rows (Lemma 2, (6))."""
        return self._predictions(bags)[0]

    def predict(self, bags: Bags) -> np.ndarray:
        """Probability of a next token in each column of Y: (bags, columns).

        A column that stands for several next tokens holds the probability of one of them, so that
        ``predict(bags) @ multiplicity`` is one. ``expand().predict(bags)`` has all M columns.
        """
        return self._predictions(bags)[1]

    def _predictions(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        self.check_fits(bags)
        features = np.zeros((len(bags), self.Y.shape[0]), self.Z.dtype)
        alpha = np.empty((len(bags), self.Y.shape[1]), self.Z.dtype)
        kernels.predictions(
            bags.query,
            bags.indptr,
            bags.token,
            bags.count,
            self.Z,
            self.Y,
            self.value_matrix,
            self.multiplicity,
            features,
            alpha,
        )
        return features, alpha

    def loss(self, bags: Bags) -> float:
        """Expected cross-entropy -J of the next token (2), in nats."""
        self.check_fits(bags)
        return Problem(bags).loss(self.Z, self.Y, self.value_matrix, self.multiplicity)

    def gradient(self, bags: Bags) -> Layer:
        """Gradient of the objective J = -loss with respect to Z, Y and V (Lemma 1, (3)), as a layer."""
        self.check_fits(bags)
        dZ, dY, dV = (np.zeros_like(array) for array in (self.Z, self.Y, self.value_matrix))
        Problem(bags).loss_and_gradient(self.Z, self.Y, self.value_matrix, self.multiplicity, dZ, dY, dV)
        return Layer(dZ, dY, None if self.V is None else dV, self.multiplicity)


def read_only(array: np.ndarray) -> np.ndarray:
    """Make ``array`` read-only and return it.

    Kernels take their inputs read-only and their outputs writable: numba compiles a kernel anew for each
    combination, so one convention means one compilation.
    """
    array.flags.writeable = False
    return array


class Problem:
    """Bags in the form that `kernels.loss_and_gradient` takes them, for callers that step many times."""

    def __init__(self, bags: Bags):
        hard = bags.hard
        target = bags.target if hard else read_only(np.full(len(bags), -1))
        soft = read_only(np.empty((0, 0))) if hard else bags.target
        alone = read_only(np.ones(len(bags), dtype=np.int64))
        self._arguments = (bags.query, target, soft, bags.weight, alone, bags.indptr, bags.token, bags.count)

    def loss(self, Z, Y, V, multiplicity) -> float:
        """The loss alone."""
        none = np.empty((0, 0), Z.dtype)
        return kernels.loss_and_gradient(*self._arguments, Z, Y, V, multiplicity, none, none, none, none, False)

    def loss_and_gradient(self, Z, Y, V, multiplicity, dZ, dY, dV, residual=None) -> float:
        """The loss, with the gradient of J added into ``dZ``, ``dY``, ``dV`` (see the kernel for ``residual``)."""
        if residual is None:
            residual = np.empty((0, 0), Z.dtype)
        return kernels.loss_and_gradient(*self._arguments, Z, Y, V, multiplicity, dZ, dY, dV, residual, True)
