"""The layer: attention logits Z, decoder Y, and optional parts: value matrix, hidden layer, embedding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike

from dynamics import _shown
from dynamics._model import kernels
from dynamics._model.objective import bare, checked_normalisation
from dynamics._model.problem import Problem, embed
from dynamics._model.weights import Weights
from dynamics.bags import Bags
from dynamics.support import checks, display, names
from dynamics.support.checks import read_only, read_only_views
from dynamics.support.frozen import Frozen, changed

# Entries of a start of zeros up to which memory is set aside for it.
_ALLOCATED = 2**27

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynamics.support.display import Labels, Style


@dataclass(frozen=True, eq=False)
class Embedding(Frozen):
    """Attention logits through embeddings: ``Z[q, s] = e(s)^T W_K^T W_Q e(q)`` and ``V_s = W_V e(s)``.

    Parameters
    ----------
    vectors : (tokens, dimensions)
        The fixed embedding e(s) of each token; a query has the embedding of its token.
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

    if TYPE_CHECKING:  # what is given; above stands what it becomes

        def __init__(
            self, vectors: ArrayLike, keys: ArrayLike, queries: ArrayLike, values: ArrayLike | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("vectors", "keys", "queries", "values"):
            if name != "values" or self.values is not None:
                object.__setattr__(self, name, _matrix(name, getattr(self, name)))
        for name in ("keys", "queries", "values"):
            array = getattr(self, name)
            if array is not None and array.shape[1] != self.vectors.shape[1]:
                raise checks.reject(name, f"have {self.vectors.shape[1]} columns, as `vectors`", array.shape[1])
        if self.keys.shape != self.queries.shape:
            raise checks.reject("queries", f"have the shape of `keys`, {self.keys.shape}", self.queries.shape)

    def matrices(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Z (tokens, tokens) and V (tokens, values), or None in place of V."""
        Z, V = embed(self.vectors, self.keys, self.queries, np.empty((0, 0)) if self.values is None else self.values)
        return Z, None if self.values is None else V


def in_precision(embedding: Embedding, dtype: DTypeLike) -> Embedding:
    """The embedding in another precision."""
    arrays = (embedding.vectors, embedding.keys, embedding.queries, embedding.values)
    return Embedding(*(None if array is None else array.astype(dtype) for array in arrays))


def attention(bags: Bags, Z: np.ndarray) -> scipy.sparse.csr_array:
    """Attention c_l = N_l exp(z_l) / sum of each bag at attention logits Z (Lemma 2, (5))."""
    shares = np.empty(bags.token.size, Z.dtype)
    count = read_only(bags.count.astype(Z.dtype, copy=False))
    kernels.attention(bags.query, bags.indptr, bags.token, count, read_only(Z), shares)
    return scipy.sparse.csr_array((shares, bags.token, bags.indptr), shape=(len(bags), Z.shape[1]))


def _matrix(name: str, value: ArrayLike) -> np.ndarray:
    """A read-only matrix in the precision of ``value``; an array that nobody can write to is not copied."""
    dtype = np.float32 if getattr(value, "dtype", None) == np.float32 else np.float64
    array = checks.finite_array(name, value, ndim=2, dtype=dtype)
    if 0 in array.shape:
        raise checks.reject(name, "have at least one row and one column", f"shape {array.shape}")
    return read_only(array)


@dataclass(frozen=True, eq=False)
class Layer(Frozen):
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
        The number of next tokens that share each column of Y. Columns of next tokens that never occur stay equal if
        they start equal. So if K of M next tokens occur, K + 1 columns are exact, the last with multiplicity M - K.
        Default: all ones.
    hidden : (tokens or values, + 1, units), optional
        A hidden layer of rectified linear units between feature and decoder, with their biases in the last row:
        ``alpha = softmax(Y^T relu(hidden^T [f; 1]))``.
    center : bool
        LN subtracts the mean over the values first, as the usual LayerNorm does. Needs V.
    floor : float
        C_eps >= 0 in ``LN(v) = v / max(||v||_2, C_eps)`` (Wen et al. 2023, (7)). Needs V.
    embedding : Embedding, optional
        Weights from which Z and V are computed; training moves them in place of Z and V. See `embedded`.
    residual : bool
        Add the query's vector to the attended vector: ``f = LN(LN(c) + e_query)`` (Section 7). Queries are orthogonal
        to tokens, so that f is ``[LN(c), e_query]/sqrt(2)``; Y has rows for tokens, then for queries. Excludes the
        other optional parts.
    temperature : float
        tau > 0: attention is ``c_l = N_l exp(z_l / tau) / sum``.
    normalisation : "unit", "layer" or None
        "unit": LN(v) = ``v / ||v||_2``. "layer": the mean is subtracted first; with V this is ``center``, and without V
        the mean is over all tokens of the layer. None: LN(v) = v.

    All arrays are copied and read-only.

    Raises
    ------
    ValueError
        If an entry is not finite, or shapes do not fit each other.
    """

    Z: np.ndarray
    Y: np.ndarray
    V: np.ndarray | None = None
    multiplicity: np.ndarray = None
    hidden: np.ndarray | None = None
    center: bool = False
    floor: float = 0.0
    embedding: Embedding | None = None
    residual: bool = False
    temperature: float = 1.0
    normalisation: str | None = "unit"

    if TYPE_CHECKING:  # what is given; above stands what it becomes

        def __init__(
            self,
            Z: ArrayLike,
            Y: ArrayLike,
            V: ArrayLike | None = None,
            multiplicity: ArrayLike | None = None,
            hidden: ArrayLike | None = None,
            center: bool = False,
            floor: float = 0.0,
            embedding: Embedding | None = None,
            residual: bool = False,
            temperature: float = 1.0,
            normalisation: str | None = "unit",
        ) -> None: ...

    def __post_init__(self) -> None:
        values = {name: getattr(self, name) for name in ("Z", "Y", "V", "hidden")}
        arrays = {name: _matrix(name, a) for name, a in values.items() if a is not None or name in ("Z", "Y")}
        dtype = np.result_type(*arrays.values())
        for name, array in arrays.items():
            object.__setattr__(self, name, read_only(array.astype(dtype, copy=False)))
        if self.embedding is not None:
            checks.instance("embedding", self.embedding, Embedding)
            object.__setattr__(self, "embedding", in_precision(self.embedding, dtype))
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
        object.__setattr__(self, "residual", checks.flag("residual", self.residual))
        rows = self.Z.shape[1]
        if self.residual:
            if self.V is not None or self.hidden is not None or self.embedding is not None:
                raise checks.reject("residual", "be left out beside V, hidden or embedding", self.residual)
            rows += self.Z.shape[0]
        if self.V is not None:
            if len(self.V) != rows:
                raise checks.reject("V", f"have {rows} rows, one a token", f"shape {self.V.shape}")
            rows = self.V.shape[1]
        what = "token and query" if self.residual else "token" if self.V is None else "column of V"
        if self.hidden is not None:
            if self.hidden.shape[0] != rows + 1:
                rule = f"have {rows + 1} rows, one a {what} and one for the biases"
                raise checks.reject("hidden", rule, f"shape {self.hidden.shape}")
            what, rows = "unit", self.hidden.shape[1]
        if self.Y.shape[0] != rows:
            raise checks.reject("Y", f"have {rows} rows, one a {what}", f"shape {self.Y.shape}")
        read_only(self.multiplicity)
        object.__setattr__(self, "center", checks.flag("center", self.center))
        object.__setattr__(self, "floor", checks.non_negative("floor", self.floor))
        if self.V is None and (self.center or self.floor > 0):
            name = "center" if self.center else "floor"
            raise checks.reject(name, "be left out without a value matrix", getattr(self, name))
        object.__setattr__(self, "temperature", checks.positive("temperature", self.temperature))
        self._check_normalisation()
        if self.embedding is not None:
            self._check_embedding(self.embedding)

    def _check_normalisation(self) -> None:
        kind = self.normalisation
        checked_normalisation(kind)
        if kind != "unit" and self.residual:
            raise checks.reject("normalisation", "be 'unit' with a residual connection", repr(kind))
        if kind is None and (self.center or self.floor > 0):
            name = "center" if self.center else "floor"
            raise checks.reject(name, "be left out without normalisation", getattr(self, name))
        if kind == "layer" and self.V is None and self.hidden is not None:
            raise checks.reject("normalisation", "be 'unit' or None with a hidden layer and no V", repr(kind))
        if kind == "layer" and self.V is not None:
            object.__setattr__(self, "center", True)
        elif self.center:
            object.__setattr__(self, "normalisation", "layer")

    def _check_embedding(self, embedding: Embedding) -> None:
        """Check that Z and V of the embedding have the shapes of the layer's own, by which the kernels index them."""
        tokens, values = len(embedding.vectors), embedding.values
        if self.Z.shape != (tokens, tokens):
            rule = f"have a vector for each of the {self.Z.shape[1]} tokens, which all are queries too"
            raise checks.reject("embedding", rule, f"{tokens} vectors and Z of shape {self.Z.shape}")
        width = None if values is None else len(values)
        if (None if self.V is None else self.V.shape[1]) != width:
            shape = "no V" if self.V is None else f"V of shape {self.V.shape}"
            raise checks.reject("embedding", "have the values that V is made of", f"{width} of them and {shape}")

    def __repr__(self) -> str:
        parts = [f"{name} {getattr(self, name).shape}" for name in ("V", "hidden") if getattr(self, name) is not None]
        parts += ["residual"] * self.residual + ["centred"] * self.center + [f"floor {self.floor:g}"] * (self.floor > 0)
        parts += ["embedded"] * (self.embedding is not None)
        parts += [f"temperature {self.temperature:g}"] * (self.temperature != 1)
        parts += ["normalised as LayerNorm does"] * self.means + ["no normalisation"] * (self.normalisation is None)
        optional = "".join(f", {part}" for part in parts)
        return f"<Layer: Z {self.Z.shape}, Y {self.Y.shape}{optional}, {self.vocab_size} next tokens>"

    def _repr_html_(self) -> str:
        return _shown.layer_html(self)

    def plot(
        self,
        matrix: str = "Z",
        *,
        ax: Axes | None = None,
        labels: Labels | None = None,
        style: Style | None = None,
    ) -> Axes:
        """Draw a matrix of logits, in colours to both sides of zero; of a large matrix the first rows and columns.

        Parameters
        ----------
        matrix : "Z" or "Y"
            Attention logits, or those of the decoder.
        ax : matplotlib Axes, optional
            Default: new ones, of a figure of pyplot's.
        labels : sequence or mapping, optional
            Text for the columns in the place of their numbers: from the first on, or by number.
        style : str or mapping, optional
            A style of matplotlib, such as "ggplot", or settings of it.

        Returns
        -------
        matplotlib Axes
        """
        row = "unit" if self.hidden is not None else "token" if self.V is None else "value"
        logits = {"Z": (self.Z, "attention", ("query", "token")), "Y": (self.Y, "decoder", (row, "column of Y"))}
        values, kind, dims = logits[checks.one_of("matrix", matrix, logits)]
        words = None, names.given(labels, None, values.shape[1])
        return display.picture(values, dims, f"{kind} logit {matrix}", words=words, ax=ax, style=style)

    @property
    def plain(self) -> bool:
        """True for the layer of the paper, with Z and Y alone, temperature one and unit norm.

        No value matrix, hidden layer, embedding or residual connection.
        """
        usual = self.temperature == 1 and self.normalisation == "unit" and not self.residual
        return self.V is None and self.hidden is None and self.embedding is None and usual

    @property
    def means(self) -> bool:
        """True if LN subtracts the mean over the tokens: normalisation "layer" without a value matrix."""
        return self.V is None and self.normalisation == "layer"

    @classmethod
    def zeros(cls, bags: Bags) -> Layer:
        """The start Y = Z = 0 for these bags, with one column of Y for all next tokens that never occur."""
        layer: Layer = checks.instance("bags", bags, Bags)._once(cls._zeros)
        return layer

    @classmethod
    def _zeros(cls, bags: Bags) -> Layer:
        columns = np.ones(bags.n_targets, dtype=np.int64)
        if bags.vocab_size > bags.n_targets:
            columns = np.append(columns, bags.vocab_size - bags.n_targets)
        Z, Y = (_zeros_of(n, m) for n, m in ((bags.n_queries, bags.n_tokens), (bags.n_tokens, columns.size)))
        layer = cls(Z, Y[:, :1].copy(), None, columns[:1])
        # One column was checked for all: to check K^2 zeros would take half the time of a flow that symmetry reduces.
        for name, array in (("Y", Y), ("multiplicity", columns)):
            object.__setattr__(layer, name, read_only(array))
        return layer

    @classmethod
    def embedded(cls, embedding: Embedding, Y: ArrayLike, **options: Any) -> Layer:
        """A layer whose Z and V come from an embedding; ``options`` are further parameters of `Layer`."""
        Z, V = checks.instance("embedding", embedding, Embedding).matrices()
        return cls(Z, Y, V, embedding=embedding, **options)

    @property
    def vocab_size(self) -> int:
        """M, the number of next tokens."""
        return int(self.multiplicity.sum())

    @property
    def weights(self) -> Weights:
        """The arrays that training moves; a missing array has no entries.

        With an embedding, Z and V count as missing, since they follow from it.
        """
        arrays: tuple[np.ndarray | None, ...] = (self.Z, self.Y, self.V, self.hidden, None, None, None)
        if self.embedding is not None:
            embedding = self.embedding
            arrays = (None, self.Y, None, self.hidden, embedding.keys, embedding.queries, embedding.values)
        nothing = read_only(np.empty((0, 0), self.Y.dtype))
        return Weights(*(nothing if array is None else array for array in arrays))

    def expand(self) -> Layer:
        """The same layer with a column of Y for every next token."""
        Y = np.repeat(self.Y, self.multiplicity, axis=1)
        return changed(self, Y=read_only(Y), multiplicity=read_only(np.ones(Y.shape[1], dtype=np.int64)))

    def check_fits(self, bags: Bags, *, name: str = "bags") -> None:
        """Raise ``ValueError`` unless this layer has rows and columns for every index in ``bags``."""
        if not checks.instance("name", name, str).isidentifier():
            raise checks.reject("name", "be that of an argument", checks.brief(name))
        checks.instance(name, bags, Bags)
        for what, needed, present in (
            ("queries", bags.n_queries, self.Z.shape[0]),
            ("tokens", bags.n_tokens, self.Z.shape[1]),
            ("next tokens", bags.vocab_size, self.vocab_size),
        ):
            if needed > present:
                raise checks.reject(name, f"have at most the {present} {what} of the layer", needed)
        targets = bags.n_targets
        alone = self.multiplicity[:targets]
        if alone.size < targets or (alone != 1).any():
            rule = "be 1 for every next token that occurs"
            raise checks.reject("multiplicity", rule, f"{alone.tolist()} for {targets} of them")

    def attention(self, bags: Bags) -> np.ndarray:
        """Attention c of each bag: (bags, tokens), rows sum to one (Lemma 2, (5))."""
        return self.sparse_attention(bags).toarray()

    def sparse_attention(self, bags: Bags) -> scipy.sparse.csr_array:
        """`attention` as a sparse array, with an entry for each token of each bag."""
        self.check_fits(bags)
        return attention(bags, self.Z if self.temperature == 1 else self.Z / self.temperature)

    def features(self, bags: Bags) -> np.ndarray:
        """Features f = LN(V^T c) of each bag: (bags, rows of Y without a hidden layer), unit rows (Lemma 2, (6))."""
        return self._predictions(bags)[0]

    def logits(self, bags: Bags) -> np.ndarray:
        """Logits of each bag: (bags, columns). Y^T f, or with a hidden layer Y^T applied to its units."""
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
        if self.center or self.means:
            x = x - x.mean(axis=1, keepdims=True)
        norm = np.maximum(np.linalg.norm(x, axis=1, keepdims=True), self.floor)
        if self.normalisation is None:
            norm = np.ones_like(norm)
        features = x / np.where(norm > 0, norm, x.dtype.type(1))
        if self.residual:
            queries = np.eye(len(self.Z), dtype=x.dtype)[bags.query]
            features = np.concatenate([features, queries], axis=1) / np.sqrt(x.dtype.type(2))
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
        return Problem(bags, self, bare(criterion)).loss(self.weights)

    def gradient(self, bags: Bags, *, criterion: str = "cross-entropy") -> Layer:
        """Gradient of the objective J = -loss with respect to each array (Lemma 1, (3)), as a layer.

        With an embedding, Z and V of the result are the gradients with respect to Z and V, and its embedding holds the
        gradients with respect to keys, queries and values.
        """
        self.check_fits(bags)
        problem = Problem(bags, self, bare(criterion))
        slopes = problem.zeros()
        problem.loss_and_gradient(self.weights, slopes)
        if self.embedding is None:
            return moved(self, slopes)
        V, hidden, values = (slope if slope.size else None for slope in (slopes.V, slopes.hidden, slopes.values))
        embedding = replace(self.embedding, keys=slopes.keys, queries=slopes.queries, values=values)
        return replace(self, Z=slopes.Z, Y=slopes.Y, V=V, hidden=hidden, embedding=embedding)


def _zeros_of(n: int, m: int) -> np.ndarray:
    """Zeros that nobody writes to; many are views of one number, since a flow that symmetry reduces reads none."""
    return read_only(np.zeros((n, m))) if n * m <= _ALLOCATED else np.broadcast_to(np.zeros(()), (n, m))


def moved(layer: Layer, weights: Iterable[np.ndarray]) -> Layer:
    """A layer of the same kind with other weights, of the same shapes and of finite numbers."""
    new = Weights(*weights)
    if layer.embedding is None:
        return changed(layer, **{name: _matrix(name, array) for name, array in new._asdict().items() if array.size})
    hidden = new.hidden if new.hidden.size else None
    values = new.values if new.values.size else None
    embedding = replace(layer.embedding, keys=new.keys, queries=new.queries, values=values)
    Z, V = embedding.matrices()
    return replace(layer, Z=Z, Y=new.Y, V=V, hidden=hidden, embedding=embedding)


def optional_rates(layer: Layer, eta_y: float, eta_v: float | None, eta_hidden: float | None) -> dict[str, float]:
    """Learning rates of value matrix and hidden layer, if the layer has them; ``eta_y`` in place of None."""
    rates = {}
    for name, rate, matrix in (("eta_v", eta_v, layer.V), ("eta_hidden", eta_hidden, layer.hidden)):
        if matrix is not None:
            rates[name] = eta_y if rate is None else checks.rate(name, rate)
        elif rate is not None:
            what = "value matrix" if name == "eta_v" else "hidden layer"
            raise checks.reject(name, f"be None unless `init` has a {what}", rate)
    return rates


class States(NamedTuple):
    """The layers at some times.

    Attributes
    ----------
    like : Layer
        Their kind, not their weights.
    weights : Weights
        Their arrays, each with an axis of times before its own; Z and V also where they follow from an embedding.
    """

    like: Layer
    weights: Weights

    @classmethod
    def of(cls, like: Layer, weights: Weights) -> States:
        """From the weights as training moves them."""
        if like.embedding is not None:
            inner = zip(weights.keys, weights.queries, weights.values, strict=True)
            whole = [embed(like.embedding.vectors, *own) for own in inner]
            weights = weights._replace(Z=np.stack([Z for Z, _ in whole]), V=np.stack([V for _, V in whole]))
        return cls(like, Weights(*read_only_views(weights)))

    @classmethod
    def plain(cls, like: Layer, Z: np.ndarray, Y: np.ndarray) -> States:
        """From arrays of a layer of Z and Y alone, which become read-only."""
        Z.flags.writeable = Y.flags.writeable = False
        return cls(like, Weights(Z, Y, *(np.empty((len(Z), 0, 0)),) * 5))
