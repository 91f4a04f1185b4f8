"""A decoder-only transformer with options between the usual architecture and the Y/Z layer."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from dynamics.descent import DTYPES
from dynamics.layer import Layer
from dynamics.support import checks
from dynamics.support.checks import read_only
from dynamics.support.frozen import Frozen

NORMS = ("before", "after", "mixture", "none")
NORM_KINDS = ("layer", "unit")
POSITIONS = ("learned", "sinusoidal", "linear")
_EPSILON = 1e-5  # of LayerNorm, as in the usual deep-learning libraries
_SCALE = 0.02  # standard deviation of embeddings at the start, as in GPT-2


@dataclass(frozen=True)
class Architecture:
    r"""The parts of a `Transformer`; by default a small GPT with LayerNorm before each part.

    Parameters
    ----------
    vocab_size : int
        Number of input tokens.
    n_outputs : int, optional
        Number of next tokens. Default: ``vocab_size``.
    n_layers, n_heads : int
    width : int
        Dimension d of embeddings and of the residual stream, a multiple of ``n_heads``.
    mlp_width : int, optional
        Units of the feed-forward part of each layer; 0 leaves it out. Default: 4 d.
    positions : None, "learned", "sinusoidal" or "linear"
        The vector added to the embedding at position i: none; a trained vector; the sines and cosines of Vaswani et al.
        (2017); or ``i / max_length`` times one trained vector (the linear code of Yao et al. 2021).
    max_length : int, optional
        Longest input under learned positions, and the unit of linear ones.
    norm : "before", "after", "mixture" or "none"
        Place of the normalisation: before each part and at the end; after the sum with the residual stream; or on the
        attended vector of a head, before the output matrix (Tian et al. 2023, Section 3).
    norm_kind : "layer" or "unit"
        LayerNorm with gain and bias, or ``LN(v) = v / ||v||_2`` without them.
    residual : bool
        Add each part to the residual stream.
    tied : bool
        Decode next tokens by the input embedding; then there are as many next tokens as input tokens.
    values : bool
        Give heads a value matrix. Without it, a head averages the embeddings themselves.
    factored : bool
        Attention logits ``x_q^T W_Q W_K^T x_k / sqrt(d / heads)``, or ``x_q^T W x_k`` with one matrix W.
    attend_self : bool
        Include a query among its own keys. Without it, the first position attends to nothing and gathers zero.
    train_embedding : bool
        Train the token embedding.
    temperature : float
        tau > 0: attention logits are divided by it, as in a `dynamics.Layer`.

    Raises
    ------
    ValueError
        If an argument breaks one of these rules.
    """

    vocab_size: int
    n_outputs: int | None = None
    n_layers: int = 1
    n_heads: int = 1
    width: int = 64
    mlp_width: int | None = None
    positions: str | None = None
    max_length: int | None = None
    norm: str = "before"
    norm_kind: str = "layer"
    residual: bool = True
    tied: bool = True
    values: bool = True
    factored: bool = True
    attend_self: bool = True
    train_embedding: bool = True
    temperature: float = 1.0

    def __post_init__(self) -> None:
        for name in ("residual", "tied", "values", "factored", "attend_self", "train_embedding"):
            object.__setattr__(self, name, checks.flag(name, getattr(self, name)))
        for name in ("vocab_size", "n_layers", "n_heads", "width"):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), minimum=1))
        defaults = {"n_outputs": self.vocab_size, "mlp_width": 4 * self.width}
        for name, default in defaults.items():
            given = getattr(self, name)
            minimum = 0 if name == "mlp_width" else 1
            object.__setattr__(self, name, default if given is None else checks.integer(name, given, minimum=minimum))
        checks.one_of("norm", self.norm, NORMS)
        checks.one_of("norm_kind", self.norm_kind, NORM_KINDS)
        if self.positions is not None:
            checks.one_of("positions", self.positions, POSITIONS)
        if self.positions in ("learned", "linear"):
            if self.max_length is None:
                raise checks.reject("max_length", f"be given for {self.positions} positions", None)
            object.__setattr__(self, "max_length", checks.integer("max_length", self.max_length, minimum=1))
        elif self.max_length is not None:
            raise checks.reject("max_length", "be left out without learned or linear positions", self.max_length)
        object.__setattr__(self, "temperature", checks.positive("temperature", self.temperature))
        if self.width % self.n_heads:
            raise checks.reject("width", f"be a multiple of the {self.n_heads} heads", self.width)
        if self.tied and self.n_outputs != self.vocab_size:
            raise checks.reject("n_outputs", f"be the {self.vocab_size} tokens of a tied embedding", self.n_outputs)

    def as_dict(self) -> dict:
        """The parameters for JSON; a temperature of 1 is left out, as in files from before it existed."""
        return {name: value for name, value in asdict(self).items() if (name, value) != ("temperature", 1)}

    @property
    def n_weights(self) -> int:
        """Number of weights of a `Transformer` with this architecture."""
        d, heads = self.width, self.n_heads
        norm = 0 if self.norm_kind == "unit" else 2
        block = 2 * d * d if self.factored else heads * d * d
        block += (d * d if self.values else 0) + heads * self.head_width * d
        if self.mlp_width:
            block += 2 * d * self.mlp_width + self.mlp_width + d
        if self.norm == "mixture":
            block += norm * self.head_width
        elif self.norm != "none":
            block += norm * d * (2 if self.mlp_width else 1)
        position = {"learned": (self.max_length or 0) * d, "linear": d}.get(self.positions or "", 0)
        decoder = 0 if self.tied else d * (self.n_outputs or 0)
        last = norm * d if self.norm == "before" else 0
        return self.vocab_size * d + position + decoder + self.n_layers * block + last

    @property
    def head_width(self) -> int:
        """Dimension of a head's attended vector: d / heads, or d without value matrices."""
        return self.width // self.n_heads if self.values else self.width


class _Weights(eqx.Module):
    """Weights that cannot be changed, also in copies and after unpickling.

    Equinox lets attributes be deleted. It also lets them be set in copies, which are made without a call of their
    class.
    """

    __delattr__ = Frozen.__delattr__

    def __reduce__(self) -> tuple:
        return _remade, (type(self), dict(vars(self)))


def _remade(kind: type[_Weights], parts: dict) -> _Weights:
    for array in jax.tree.leaves(parts):
        if isinstance(array, np.ndarray):
            read_only(array)
    made = object.__new__(kind)
    made.__dict__.update(parts)
    return made


class Block(_Weights):
    """The weights of one layer; None for parts that the architecture lacks."""

    query: jax.Array | None  # (heads, d, d / heads)
    key: jax.Array | None
    merged: jax.Array | None  # (heads, d, d)
    value: jax.Array | None  # (heads, d, d / heads)
    output: jax.Array  # (heads, head width, d)
    norms: tuple  # gain and bias, for each normalisation
    up: tuple | None  # (d, units), (units,)
    down: tuple | None  # (units, d), (d,)


class Transformer(_Weights):
    """A decoder-only transformer.

    With x_i the embedding of token i plus its position, a layer adds to each position ``sum_h A_h x W_V W_O`` and then
    ``relu(x W_1 + b_1) W_2 + b_2``; attention A_h is the softmax of the attention logits over the keys before the query
    (see `Architecture` for the variants). Logits of the next token are ``x U^T`` or ``x W``.

    Parameters
    ----------
    architecture : Architecture
    rng : numpy.random.Generator or seed, optional
        Embeddings start normal with standard deviation 0.02, matrices with 1 / sqrt(rows).
    dtype : "float32" or "float64"

    It cannot be changed: weights are read-only, also in copies and after unpickling.
    """

    architecture: Architecture = eqx.field(static=True)
    embedding: jax.Array  # (tokens, d)
    position: jax.Array | None  # (max_length, d), or (d,) for linear ones
    blocks: tuple[Block, ...]
    last_norm: tuple
    decoder: jax.Array | None  # (d, next tokens)

    def __init__(
        self, architecture: Architecture, rng: np.random.Generator | int | None = None, *, dtype: str = "float32"
    ) -> None:
        a = self.architecture = checks.instance("architecture", architecture, Architecture)
        checks.one_of("dtype", dtype, DTYPES)
        checks.fits_in_memory("architecture", 16 * a.n_weights, "draw weights")

        # Drawn by NumPy, so that every device has the same start, and nothing is compiled.
        generator = checks.generator("rng", rng)

        def normal(*shape, scale=None):
            scale = shape[-2] ** -0.5 if scale is None else scale
            return read_only((scale * generator.normal(size=shape)).astype(dtype))

        self.embedding = normal(a.vocab_size, a.width, scale=_SCALE)
        shapes = {"learned": (a.max_length, a.width), "linear": (a.width,)}
        position = shapes.get(a.positions)
        self.position = None if position is None else normal(*position, scale=_SCALE)
        self.decoder = None if a.tied else normal(a.width, a.n_outputs)
        self.blocks = tuple(_block(a, normal, dtype) for _ in range(a.n_layers))
        self.last_norm = _norm_weights(a, a.width, dtype) if a.norm == "before" else ()

    def hidden(self, tokens: ArrayLike) -> tuple[jax.Array, jax.Array]:
        """The vector to be decoded at each position of one sequence (length,), and the attention maps.

        Returns
        -------
        hidden : (length, d)
        attention : (layers, heads, length, length)
            Row i holds the attention of the query at position i on the keys.

        Raises
        ------
        ValueError
            If a token is outside the vocabulary, or there are more tokens than learned positions.
        """
        a = self.architecture
        if not isinstance(tokens, jax.core.Tracer):  # in compiled code nothing can be seen, and jax clamps indices
            tokens = checks.index_array("tokens", tokens, upper=a.vocab_size)
        if a.positions == "learned" and len(tokens) > (a.max_length or 0):
            raise checks.reject("tokens", f"be at most {a.max_length}, as there are positions", len(tokens))
        x = jnp.asarray(self.embedding)[tokens]
        if a.positions == "learned":
            x = x + jnp.asarray(self.position)[: len(tokens)]
        elif a.positions is not None:
            index = jnp.arange(len(tokens), dtype=x.dtype)[:, None]
            x = x + (index / a.max_length * self.position if a.positions == "linear" else _sinusoidal(index, a.width))
        maps = []
        for block in self.blocks:
            x, attention = self._layer(block, x)
            maps.append(attention)
        if a.norm == "before":
            x = _normalise(x, self.last_norm)
        return x, jnp.stack(maps)

    def _layer(self, block: Block, x):
        a = self.architecture
        norms = iter(block.norms)

        def part(function, x):
            out = function(_normalise(x, next(norms)) if a.norm == "before" else x)
            out = x + out if a.residual else out
            return _normalise(out, next(norms)) if a.norm == "after" else out

        attention = None

        def attend(x):
            nonlocal attention
            attention = self._attention(block, x)
            gathered = jnp.einsum("hqk,khv->hqv", attention, self._values(block, x))
            if a.norm == "mixture":
                gathered = _normalise(gathered, next(norms))
            return jnp.einsum("hqv,hvd->qd", gathered, block.output)

        x = part(attend, x)
        if block.up is not None and block.down is not None:
            (up, up_bias), (down, down_bias) = block.up, block.down
            x = part(lambda x: jax.nn.relu(x @ up + up_bias) @ down + down_bias, x)
        return x, attention

    def _values(self, block, x):
        if block.value is None:
            return jnp.broadcast_to(x[:, None], (len(x), self.architecture.n_heads, x.shape[1]))
        return jnp.einsum("kd,hdv->khv", x, block.value)

    def _attention(self, block, x):
        a = self.architecture
        if a.factored:
            queries, keys = (jnp.einsum("td,hde->hte", x, w) for w in (block.query, block.key))
            logits = jnp.einsum("hqe,hke->hqk", queries, keys) / math.sqrt(a.width // a.n_heads)
        else:
            logits = jnp.einsum("qd,hde,ke->hqk", x, block.merged, x)
        logits = logits if a.temperature == 1 else logits / a.temperature
        seen = jnp.tri(len(x), k=0 if a.attend_self else -1, dtype=bool)
        top = jnp.max(logits, axis=-1, keepdims=True, where=seen, initial=-jnp.inf)
        top = jax.lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0))
        weights = jnp.where(seen, jnp.exp(jnp.where(seen, logits - top, 0)), 0)
        total = weights.sum(axis=-1, keepdims=True)
        return weights / jnp.where(total > 0, total, 1)

    def decode(self, hidden: jax.Array) -> jax.Array:
        """Logits of the next token from the first result of `hidden`: (.., next tokens)."""
        checks.instance("hidden", hidden, (jax.Array, np.ndarray), rule="be what `hidden` returns first")
        if np.ma.isMaskedArray(hidden):
            raise checks.reject("hidden", "have no masked entries", "a masked array")
        if not jnp.issubdtype(hidden.dtype, jnp.floating):
            raise checks.reject("hidden", "hold floats", f"dtype {hidden.dtype}")
        if hidden.ndim == 0 or hidden.shape[-1] != self.architecture.width:
            raise checks.reject("hidden", f"have a last axis of {self.architecture.width}", f"shape {hidden.shape}")
        return hidden @ self.rows().T

    def rows(self) -> jax.Array:
        """The vector of each next token; its products with hidden vectors are the logits: (next tokens, d)."""
        return self.embedding if self.decoder is None else self.decoder.T

    def __call__(self, tokens: ArrayLike) -> jax.Array:
        """Logits of the next token at each position of one sequence: (length, next tokens)."""
        return self.decode(self.hidden(tokens)[0])

    def attention(self, tokens: ArrayLike) -> jax.Array:
        """Attention maps on one sequence: (layers, heads, length, length)."""
        return self.hidden(tokens)[1]

    def trained(self) -> Transformer:
        """The same tree with True for weights that training moves, and False for others."""
        tree = jax.tree.map(lambda _: True, self)
        return eqx.tree_at(lambda m: m.embedding, tree, self.architecture.train_embedding)


def _block(a: Architecture, normal, dtype) -> Block:
    narrow = (a.n_heads, a.width, a.width // a.n_heads)
    n_norms = {"none": 0, "mixture": 1}.get(a.norm, 2 if a.mlp_width else 1)
    norm_width = a.head_width if a.norm == "mixture" else a.width
    up = down = None
    if a.mlp_width:
        up = normal(a.width, a.mlp_width), read_only(np.zeros(a.mlp_width, dtype))
        down = normal(a.mlp_width, a.width), read_only(np.zeros(a.width, dtype))
    return Block(
        query=normal(*narrow) if a.factored else None,
        key=normal(*narrow) if a.factored else None,
        merged=None if a.factored else normal(a.n_heads, a.width, a.width, scale=1 / a.width),
        value=normal(*narrow) if a.values else None,
        output=normal(a.n_heads, a.head_width, a.width, scale=(a.n_heads * a.head_width) ** -0.5),
        norms=tuple(_norm_weights(a, norm_width, dtype) for _ in range(n_norms)),
        up=up,
        down=down,
    )


def _norm_weights(a: Architecture, width: int, dtype) -> tuple:
    return () if a.norm_kind == "unit" else (read_only(np.ones(width, dtype)), read_only(np.zeros(width, dtype)))


def _normalise(x, weights):
    """LayerNorm over the last axis with its gain and bias, or v / ||v|| without weights; zero stays zero."""
    if weights:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x * jax.lax.rsqrt((x**2).mean(axis=-1, keepdims=True) + _EPSILON)
        return x * weights[0] + weights[1]
    square = (x**2).sum(axis=-1, keepdims=True)
    return x / jnp.sqrt(jnp.where(square > 0, square, 1))


def _sinusoidal(index, width):
    half = (width + 1) // 2
    angle = index * 10000.0 ** (-jnp.arange(half, dtype=index.dtype) / half)
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=1)[:, :width]


def reparameterised(vocab_size: int, width: int, *, temperature: float = 1.0) -> Architecture:
    """The architecture of the Y/Z layer: one head, unit norm on the mixture, the query not among its keys."""
    return Architecture(
        vocab_size, width=width, mlp_width=0, norm="mixture", norm_kind="unit", residual=False, values=False,
        factored=False, attend_self=False, train_embedding=False, temperature=temperature,
    )  # fmt: skip


def from_layer(layer: Layer, embedding: ArrayLike | None = None) -> Transformer:
    r"""The transformer whose reparameterisation is a Y/Z layer (Tian et al. 2023, Section 3.1).

    With orthonormal rows of the tied embedding U, ``Z = U W U^T`` and ``Y = U W_O U^T``: both have the same output, and
    the same steps, because ``U dW U^T = U U^T dZ U U^T = dZ``. U does not move.

    Parameters
    ----------
    layer : Layer
        With as many queries and next tokens as tokens, and no parts beside Z and Y; any temperature.
    embedding : (tokens, d), optional
        U, with orthonormal rows. Default: the identity, one-hot embeddings.

    Returns
    -------
    Transformer
        In double precision; train with ``dtype="float64"`` to keep it.
    """
    checks.instance("layer", layer, Layer)
    if not replace(layer, temperature=1.0).plain:
        raise checks.reject("layer", "have no parts beside Z and Y", layer)
    layer = layer.expand()
    n = layer.Z.shape[1]
    if layer.Z.shape != (n, n) or layer.Y.shape != (n, n):
        raise checks.reject("layer", "have square Z and Y", f"shapes {layer.Z.shape} and {layer.Y.shape}")
    U = np.eye(n) if embedding is None else checks.finite_array("embedding", embedding, ndim=2)
    if len(U) != n:
        raise checks.reject("embedding", f"have {n} rows, one a token", len(U))
    gap = np.abs(U @ U.T - np.eye(n)).max()
    if gap > 1e-9:
        raise checks.reject("embedding", "have orthonormal rows", f"rows whose products are off by {gap:.2g}")
    model = Transformer(reparameterised(n, U.shape[1], temperature=layer.temperature), 0)
    replaced = (np.array(U), (U.T @ layer.Z @ U)[None], (U.T @ layer.Y @ U)[None])
    return eqx.tree_at(_yz, model, tuple(map(read_only, replaced)))


def _yz(model: Transformer):
    return model.embedding, model.blocks[0].merged, model.blocks[0].output


def to_layer(model: Transformer) -> Layer:
    """The Y/Z layer of a transformer from `from_layer`, before or after training: the same function of bags."""
    a = checks.instance("model", model, Transformer).architecture
    if a != reparameterised(a.vocab_size, a.width, temperature=a.temperature):
        raise checks.reject("model", "have the architecture that `from_layer` gives", a)
    U, W, output = (np.asarray(array, dtype=np.float64) for array in _yz(model))
    return Layer(U @ W[0] @ U.T, U @ output[0] @ U.T, temperature=a.temperature)
