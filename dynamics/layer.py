"""The layer: attention logits Z, decoder Y, and optional parts: value matrix, hidden layer, embedding."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from dynamics._model import kernels
from dynamics._sgd import sampling
from dynamics.bags import Bags
from dynamics.support import checks
from dynamics.support.checks import read_only

CRITERIA = ("cross-entropy", "squared")
# The argument that holds the learning rate of each of `Layer.weights`.
RATES = ("eta_z", "eta_y", "eta_v", "eta_hidden", "eta_z", "eta_z", "eta_v")


@dataclass(frozen=True, eq=False)
class Embedding:
    """Attention logits through embeddings: ``Z[q, s] = e(s)^T W_K^T W_Q e(q)`` and ``V_s = W_V e(s)``.

    Parameters
    ----------
    vectors : (tokens, dimensions)
        The fixed embedding e(s) of each token, which is that of each query too.
    keys, queries : (attention dimensions, dimensions)
        W_K and W_Q.
    values : (values, dimensions), optional
        W_V. Default: V is the identity.

    Raises
    ------
    ValueError
        If an entry is not finite, or shapes do not fit each other.
    """

    vectors: np.ndarray
    keys: np.ndarray
    queries: np.ndarray
    values: np.ndarray | None = None

    def __post_init__(self):
        for name in ("vectors", "keys", "queries", "values"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _matrix(name, getattr(self, name)))
        for name in ("keys", "queries", "values"):
            array = getattr(self, name)
            if array is not None and array.shape[1] != self.vectors.shape[1]:
                raise checks.reject(name, f"have {self.vectors.shape[1]} columns, as `vectors`", array.shape[1])
        if self.keys.shape != self.queries.shape:
            raise checks.reject("queries", f"have the shape of `keys`, {self.keys.shape}", self.queries.shape)

    def astype(self, dtype) -> Embedding:
        """The same in another precision."""
        parts = (self.vectors, self.keys, self.queries, self.values)
        return Embedding(*(None if part is None else part.astype(dtype) for part in parts))

    def matrices(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Z (tokens, tokens) and V (tokens, values), or None in place of V."""
        Z, V = embed(self.vectors, self.keys, self.queries, np.empty((0, 0)) if self.values is None else self.values)
        return Z, None if self.values is None else V


def embed(vectors, keys, queries, values) -> tuple[np.ndarray, np.ndarray]:
    """Z and V of an `Embedding`; V has no entries if ``values`` has none."""
    Z = (vectors @ queries.T) @ (vectors @ keys.T).T
    return Z, vectors @ values.T if values.size else values


def embed_back(vectors, keys, queries, dZ, dV) -> tuple[np.ndarray, ...]:
    """Gradients with respect to W_K, W_Q and W_V from those with respect to Z and V."""
    d_keys = (dZ.T @ (vectors @ queries.T)).T @ vectors
    d_queries = (dZ @ (vectors @ keys.T)).T @ vectors
    return d_keys, d_queries, dV.T @ vectors if dV.size else dV


def attention(bags: Bags, Z: np.ndarray) -> scipy.sparse.csr_array:
    """Attention c_l = N_l exp(z_l) / sum of each bag at attention logits Z (Lemma 2, (5))."""
    shares = np.empty(bags.token.size, Z.dtype)
    count = read_only(bags.count.astype(Z.dtype, copy=False))
    kernels.attention(bags.query, bags.indptr, bags.token, count, read_only(Z), shares)
    return scipy.sparse.csr_array((shares, bags.token, bags.indptr), shape=(len(bags), Z.shape[1]))


def _matrix(name: str, value) -> np.ndarray:
    """A read-only matrix in the precision of ``value``; one that nobody can write to is not copied."""
    dtype = np.float32 if getattr(value, "dtype", None) == np.float32 else np.float64
    array = checks.finite_array(name, value, ndim=2, dtype=dtype)
    if 0 in array.shape:
        raise checks.reject(name, "have at least one row and one column", f"shape {array.shape}")
    return read_only(array)


@dataclass(frozen=True, eq=False)
class Layer:
    """A 1-layer transformer in the Y/Z parameterisation (Section 3.1 of Tian et al. 2023).

    For a bag with query m and counts N: attention ``c_l = N_l exp(Z[m, l]) / sum``, feature ``f = LN(V^T c)`` with
    ``LN(v) = v / ||v||_2``, next-token probabilities ``alpha = softmax(Y^T f)``. LN of the zero vector is zero.

    Parameters
    ----------
    Z : (queries, tokens)
        Attention logits.
    Y : (tokens, values or units, next tokens)
        Decoder logits.
    V : (tokens, values), optional
        Value matrix; None stands for the identity, the model of the paper.
    multiplicity : (columns of Y,) int, optional
        How many next tokens share each column of Y. Next tokens that never occur have equal columns whenever they
        start equal, so K occurring ones of M need K + 1 columns, the last with multiplicity M - K, with no
        approximation. Default: all ones.
    hidden : (tokens or values, + 1, units), optional
        A hidden layer of rectified linear units between feature and decoder, with their biases in the last row:
        ``alpha = softmax(Y^T relu(hidden^T [f; 1]))``.
    center : bool
        LN subtracts the mean over the values first, as the usual LayerNorm does. Needs V.
    floor : float
        C_eps >= 0 in ``LN(v) = v / max(||v||_2, C_eps)`` (Wen et al. 2023, (7)). Needs V.
    embedding : Embedding, optional
        What Z and V are made of: training moves its weights in their place. See `embedded`.

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
    hidden: np.ndarray | None = None
    center: bool = False
    floor: float = 0.0
    embedding: Embedding | None = None

    def __post_init__(self):
        given = {name: getattr(self, name) for name in ("Z", "Y", "V", "hidden")}
        arrays = {name: _matrix(name, a) for name, a in given.items() if a is not None or name in ("Z", "Y")}
        dtype = np.result_type(*arrays.values())
        for name, array in arrays.items():
            object.__setattr__(self, name, read_only(array.astype(dtype, copy=False)))
        if self.embedding is not None:
            object.__setattr__(self, "embedding", self.embedding.astype(dtype))
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
        what = "token" if self.V is None else "column of V"
        if self.hidden is not None:
            if self.hidden.shape[0] != rows + 1:
                rule = f"have {rows + 1} rows, one a {what} and one for the biases"
                raise checks.reject("hidden", rule, f"shape {self.hidden.shape}")
            what, rows = "unit", self.hidden.shape[1]
        if self.Y.shape[0] != rows:
            raise checks.reject("Y", f"have {rows} rows, one a {what}", f"shape {self.Y.shape}")
        read_only(self.multiplicity)
        object.__setattr__(self, "center", bool(self.center))
        object.__setattr__(self, "floor", checks.non_negative("floor", self.floor))
        if self.V is None and (self.center or self.floor > 0):
            name = "center" if self.center else "floor"
            raise checks.reject(name, "be left out without a value matrix", getattr(self, name))

    def __repr__(self) -> str:
        parts = [f"{name} {getattr(self, name).shape}" for name in ("V", "hidden") if getattr(self, name) is not None]
        parts += ["centred"] * self.center + [f"floor {self.floor:g}"] * (self.floor > 0)
        parts += ["embedded"] * (self.embedding is not None)
        optional = "".join(f", {part}" for part in parts)
        return f"<Layer: Z {self.Z.shape}, Y {self.Y.shape}{optional}, {self.vocab_size} next tokens>"

    @classmethod
    def zeros(cls, bags: Bags) -> Layer:
        """The start Y = Z = 0 for these bags, with one column of Y for all next tokens that never occur."""
        columns = np.ones(bags.n_targets, dtype=np.int64)
        if bags.vocab_size > bags.n_targets:
            columns = np.append(columns, bags.vocab_size - bags.n_targets)
        # Never written to, so that they take no memory at any size.
        Z, Y = (
            read_only(np.zeros((n, m))) for n, m in ((bags.n_queries, bags.n_tokens), (bags.n_tokens, columns.size))
        )
        return cls(Z, Y, None, columns)

    @classmethod
    def embedded(cls, embedding: Embedding, Y, **options) -> Layer:
        """A layer whose Z and V come from an embedding; ``options`` are further parameters of `Layer`."""
        Z, V = embedding.matrices()
        return cls(Z, Y, V, embedding=embedding, **options)

    @property
    def vocab_size(self) -> int:
        """M, the number of next tokens."""
        return int(self.multiplicity.sum())

    @property
    def weights(self) -> tuple[np.ndarray, ...]:
        """What training moves: (Z, Y, V, hidden, W_K, W_Q, W_V), where what does not exist has no entries.

        Z and V are among what does not exist if they follow from an embedding.
        """
        attention = (self.Z, self.V) if self.embedding is None else (None, None)
        inner = (None,) * 3
        if self.embedding is not None:
            inner = (self.embedding.keys, self.embedding.queries, self.embedding.values)
        arrays = (attention[0], self.Y, attention[1], self.hidden, *inner)
        return tuple(read_only(np.empty((0, 0), self.Y.dtype)) if array is None else array for array in arrays)

    def moved(self, weights) -> Layer:
        """A layer of the same kind with other `weights`."""
        Z, Y, V, hidden, keys, queries, values = (array if array.size else None for array in weights)
        if self.embedding is None:
            return replace(self, Z=Z, Y=Y, V=V, hidden=hidden)
        embedding = replace(self.embedding, keys=keys, queries=queries, values=values)
        Z, V = embedding.matrices()
        return replace(self, Z=Z, Y=Y, V=V, hidden=hidden, embedding=embedding)

    def expand(self) -> Layer:
        """The same layer with a column of Y for every next token."""
        return replace(self, Y=np.repeat(self.Y, self.multiplicity, axis=1), multiplicity=None)

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
        return self.sparse_attention(bags).toarray()

    def sparse_attention(self, bags: Bags) -> scipy.sparse.csr_array:
        """`attention` in the form of the bags: an entry for each of their tokens."""
        self.check_fits(bags)
        return attention(bags, self.Z)

    def features(self, bags: Bags) -> np.ndarray:
        """Features f = LN(V^T c) of each bag: (bags, tokens or values), unit rows (Lemma 2, (6))."""
        return self._predictions(bags)[0]

    def logits(self, bags: Bags) -> np.ndarray:
        """Logits Y^T f of each bag, or those of the hidden layer: (bags, columns)."""
        return self._predictions(bags)[1]

    def predict(self, bags: Bags) -> np.ndarray:
        """Probability of a next token in each column of Y: (bags, columns).

        A column that stands for several next tokens holds the probability of one of them, so that
        ``predict(bags) @ multiplicity`` is one. ``expand().predict(bags)`` has all M columns.
        """
        u = self.logits(bags)
        alpha = np.exp(u - u.max(axis=1, keepdims=True))
        return alpha / (alpha @ self.multiplicity.astype(alpha.dtype))[:, None]

    def _predictions(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        shares = self.sparse_attention(bags)
        x = shares.toarray() if self.V is None else shares @ self.V
        if self.center:
            x -= x.mean(axis=1, keepdims=True)
        norm = np.maximum(np.linalg.norm(x, axis=1, keepdims=True), self.floor)
        features = x / np.where(norm > 0, norm, x.dtype.type(1))
        units = features
        if self.hidden is not None:
            units = np.maximum(features @ self.hidden[:-1] + self.hidden[-1], 0)
        return features, units @ self.Y

    def loss(self, bags: Bags, *, criterion: str = "cross-entropy") -> float:
        """Expected loss of the next token, -J.

        Parameters
        ----------
        bags : Bags
        criterion : "cross-entropy" or "squared"
            In nats (2), or ``sum_c (u_c - target_c)^2`` of the logits u (Wen et al. 2023, (5)).
        """
        self.check_fits(bags)
        return Problem(bags, self, criterion=criterion).loss(self.weights)

    def gradient(self, bags: Bags, *, criterion: str = "cross-entropy") -> Layer:
        """Gradient of the objective J = -loss with respect to each array (Lemma 1, (3)), as a layer.

        With an embedding, Z and V of the result are the gradients at these, and its embedding those at its weights.
        """
        self.check_fits(bags)
        problem = Problem(bags, self, criterion=criterion)
        slopes = problem.zeros()
        problem.loss_and_gradient(self.weights, slopes)
        dZ, dY, dV, d_hidden, d_keys, d_queries, d_values = (array if array.size else None for array in slopes)
        embedding = None
        if self.embedding is not None:
            embedding = replace(self.embedding, keys=d_keys, queries=d_queries, values=d_values)
        return replace(self, Z=dZ, Y=dY, V=dV, hidden=d_hidden, embedding=embedding)


class Problem:
    """Bags and a kind of layer in the form that the kernels take them, for callers that step many times.

    Parameters
    ----------
    bags : Bags
    layer : Layer
        Its kind counts, not its weights.
    criterion : "cross-entropy" or "squared"
    contrast : Bags, optional
        Insertions for the regulariser ``contrast_weight E ||u(x) - u(x + insertion)||^2 / M`` (Wen et al. 2023, (22)),
        drawn by their weights.
    contrast_weight : float
    dtype : numpy dtype, optional
        Precision of the weights. Default: that of ``layer``.
    """

    def __init__(
        self, bags: Bags, layer: Layer, *, criterion="cross-entropy", contrast=None, contrast_weight=0.0, dtype=None
    ):
        checks.one_of("criterion", criterion, CRITERIA)
        hard, dtype = bags.hard, layer.Z.dtype if dtype is None else np.dtype(dtype)
        target = bags.target if hard else read_only(np.full(len(bags), -1))
        soft = np.empty((0, 0)) if hard else bags.target
        soft, weight, count = (read_only(array.astype(dtype)) for array in (soft, bags.weight, bags.count))
        alone = read_only(np.ones(len(bags), dtype=np.int64))
        self.groups = len(bags)
        self.batch = (bags.query, target, soft, weight, alone, bags.indptr, bags.token, count)
        if contrast is not None:
            self.batch = sampling.contrasted(self.batch, contrast, contrast_weight)
            self.groups = self.batch[0].size
        self.rule = (layer.center, dtype.type(layer.floor), criterion == "squared", contrast is not None)
        self.multiplicity = layer.multiplicity
        vectors = np.empty((0, 0), dtype) if layer.embedding is None else layer.embedding.vectors
        self.vectors = read_only(vectors)
        self._shapes = [array.shape for array in layer.weights]
        self._matrices = (layer.Z.shape, (0, 0) if layer.V is None else layer.V.shape)
        self._dtype = dtype

    def zeros(self) -> tuple[np.ndarray, ...]:
        """Arrays for the gradient: those of `Layer.weights`, and Z and V in any case."""
        shapes = [self._matrices[0], self._shapes[1], self._matrices[1], *self._shapes[3:]]
        return tuple(np.zeros(shape, self._dtype) for shape in shapes)

    def state(self, weights) -> tuple:
        """(Z, Y, V, hidden, multiplicity) for the kernels."""
        Z, Y, V, hidden, *inner = weights
        if self.vectors.size:
            Z, V = embed(self.vectors, *inner)
        return (*(read_only(array) for array in (Z, Y, V, hidden)), self.multiplicity)

    def loss(self, weights) -> float:
        """The loss alone."""
        none = np.empty((0, 0), self._dtype)
        state = self.state(weights)
        return kernels.loss_and_gradient(self.batch, self.groups, state, self.rule, (none,) * 4, none, False)

    def loss_and_gradient(self, weights, slopes, residual=None) -> float:
        """The loss, with the gradient of J added into ``slopes`` (see the kernel for ``residual``)."""
        if residual is None:
            residual = np.empty((0, 0), self._dtype)
        state = self.state(weights)
        loss = kernels.loss_and_gradient(self.batch, self.groups, state, self.rule, slopes[:4], residual, True)
        if self.vectors.size:
            for slope, own in zip(
                slopes[4:], embed_back(self.vectors, weights[4], weights[5], slopes[0], slopes[2]), strict=True
            ):
                slope += own
        return loss


def check_objective(layer: Layer, criterion, contrast, contrast_weight) -> dict:
    """The arguments of `Problem` that say what is descended on, checked."""
    checks.one_of("criterion", criterion, CRITERIA)
    weight = checks.non_negative("contrast_weight", contrast_weight)
    if contrast is None:
        if weight > 0:
            raise checks.reject("contrast_weight", "be 0 without `contrast`", weight)
    elif not isinstance(contrast, Bags):
        raise checks.reject("contrast", "be Bags, one an insertion", type(contrast).__name__)
    elif contrast.n_tokens > layer.Z.shape[1]:
        raise checks.reject("contrast", f"have at most the {layer.Z.shape[1]} tokens of the layer", contrast.n_tokens)
    return {"criterion": criterion, "contrast": contrast, "contrast_weight": weight}


def optional_rates(layer: Layer, eta_y: float, eta_v, eta_hidden) -> dict[str, float]:
    """Learning rates of the parts that not every layer has, ``eta_y`` where they are None."""
    rates = {}
    for name, given, part in (("eta_v", eta_v, layer.V), ("eta_hidden", eta_hidden, layer.hidden)):
        if part is not None:
            rates[name] = eta_y if given is None else checks.non_negative(name, given)
        elif given is not None:
            what = "value matrix" if name == "eta_v" else "hidden layer"
            raise checks.reject(name, f"be None unless `init` has a {what}", given)
    return rates
