r"""An exact Dyck transformer from tokens: two layers of attention, for any k and D (Yao et al. 2021; Corollary 1).

The first attention is uniform. It gives START the share 1/(n + 1) and the signed count (opens - closes)/(n + 1) of n
brackets: the depth is their ratio, which a norm keeps. So it needs START, and neither positions nor the length.
ReLU parts write the state one-hot (19); the second attention is a `balance.balanced_layer`; ReLU parts with the weights
of `balance.exact_head` read the last unmatched bracket, and a linear decoder has a row of logits for each.

Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts are imported where they are first used
from numpy.typing import ArrayLike

from dynamics import Layer
from dynamics.support import checks, distributions
from yzflow_bounded_dyck import DyckLanguage, balance

_FIELDS = ("merged", "value", "output", "up", "bias", "down")


@dataclass(frozen=True, eq=False)
class Part:
    """A layer: ``x += unit(A x V) O``, then ``x += relu(x U + b) W``; zero stays zero under ``unit``.

    Attributes
    ----------
    merged, value, output : (width, width) array
        Attention logits are ``x_q^T merged x_k``, causal, the query included.
    up, bias, down : (width, units), (units,) and (units, width) array
    """

    merged: np.ndarray
    value: np.ndarray
    output: np.ndarray
    up: np.ndarray
    bias: np.ndarray
    down: np.ndarray

    def __post_init__(self) -> None:
        merged, bias = (checks.finite_array(*pair) for pair in (("merged", self.merged), ("bias", self.bias)))
        width, units = merged.shape[0] if merged.ndim else 0, bias.size
        square = dict.fromkeys(("merged", "value", "output"), (width, width))
        shapes = square | {"up": (width, units), "bias": (units,), "down": (units, width)}
        _kept(self, shapes)


@dataclass(frozen=True, eq=False)
class TokenTransformer:
    """A transformer from brackets to logits of the next bracket; START stands before each prefix by itself.

    Attributes
    ----------
    language : DyckLanguage
    second : dynamics.Layer
        The second attention as a layer over states.
    embedding : (2 k + 1, width) array
        Of the brackets, with START last.
    parts : tuple of Part
        Four, of which the second and the fourth have no attention: a ReLU part here has one hidden layer.
    decoder : (width, 2 k) array
    low : float
        Minus the logit of a bracket that cannot come next.
    """

    language: DyckLanguage
    second: Layer
    embedding: np.ndarray
    parts: tuple[Part, ...]
    decoder: np.ndarray
    low: float

    def __post_init__(self) -> None:
        checks.instance("language", self.language, DyckLanguage)
        checks.instance("second", self.second, Layer)
        rule = "hold at least one `Part`"
        parts = tuple(checks.instance("parts", one, Part) for one in checks.listed("parts", self.parts, rule))
        if not parts:
            raise checks.reject("parts", rule, "none")
        width = len(parts[0].merged)
        for number, part in enumerate(parts):
            if len(part.merged) != width:
                raise checks.reject(f"parts[{number}]", f"have the width of the first, {width}", len(part.merged))
        brackets = self.language.n_brackets
        _kept(self, {"embedding": (brackets + 1, width), "decoder": (width, brackets)})
        vars(self).update(parts=parts, low=checks.positive("low", self.low))

    def __call__(self, prefix: ArrayLike) -> np.ndarray:
        """Logits after START and after each bracket: (length + 1, 2 k).

        ValueError for a sequence that is no prefix of the language, by its first bracket that does not fit.
        """
        return self.stream(prefix) @ self.decoder

    def stream(self, prefix: ArrayLike, *, parts: int | None = None) -> np.ndarray:
        """The residual stream after START and each bracket: (length + 1, width); behind the first ``parts``, or all."""
        brackets = self.language.encode(prefix)
        most = len(self.parts)
        chosen = most if parts is None else checks.integer("parts", parts, minimum=0, maximum=most)
        size = brackets.size + 1
        checks.fits_in_memory("prefix", 4 * 8 * size**2, "attend to it")
        x = self.embedding[np.append(self.language.n_brackets, brackets)]
        seen = np.tri(size, dtype=bool)
        for part in self.parts[:chosen]:
            if part.value.any():
                logits = np.where(seen, x @ part.merged @ x.T, -np.inf)
                gathered = scipy.special.softmax(logits, axis=1) @ (x @ part.value)
                norm = np.linalg.norm(gathered, axis=1, keepdims=True)
                x = x + gathered / np.where(norm > 0, norm, 1) @ part.output
            x = x + np.maximum(x @ part.up + part.bias, 0) @ part.down
        return x

    def distribution(self, prefix: ArrayLike) -> np.ndarray:
        """Softmax of the logits: (length + 1, 2 k)."""
        shares: np.ndarray = scipy.special.softmax(self(prefix), axis=1)
        return shares

    @property
    def gap(self) -> float:
        """Least difference of the logits of a possible and an impossible bracket, in exact arithmetic.

        ``low + ln min p``, whatever the length, over prefixes after which some bracket is impossible (3): 1/k if k or D
        is 1, else the lesser of q/k and 1 - q. ValueError for weights that are not those of `token_transformer`, of
        which no gap is known.
        """
        self._as_built()
        k, q = self.language.n_types, self.language.open_probability
        least = 1 / k if min(k, self.language.max_depth) == 1 else min(q / k, 1 - q)
        return float(self.low + np.log(least))

    def _as_built(self) -> None:
        """Refuses weights that `token_transformer` does not make of this language, second layer and ``low``."""
        built = _built(self.language, self.second, self.low)
        for name, mine, other in zip(_NAMES, _arrays(self), _arrays(built), strict=False):
            if not np.array_equal(mine, other):
                rule = "be what `token_transformer` makes of its language, its second layer and `low`"
                raise checks.reject(name, rule, "other weights")
        if len(self.parts) != len(built.parts):
            raise checks.reject("parts", f"be {len(built.parts)}, as `token_transformer` makes them", len(self.parts))

    def to_deep(self) -> Any:
        """The same weights as a `yzflow_deep.Transformer`, in float64 where jax allows it.

        ``tools/deep`` admits them with four layers, the unit norm on the mixture, one matrix of attention logits and a
        decoder of its own. It does not admit LayerNorm with its mean and epsilon, which moves the depth's ratio, nor
        factored logits of less than the full rank.
        """
        deep, equinox = distributions.bring("yzflow_deep"), distributions.bring("equinox")
        width, units = self.embedding.shape[1], max(part.bias.size for part in self.parts)
        architecture = deep.Architecture(
            len(self.embedding), self.language.n_brackets, n_layers=len(self.parts), width=width, mlp_width=units,
            norm="mixture", norm_kind="unit", tied=False, factored=False,
        )  # fmt: skip
        model = deep.Transformer(architecture, 0, dtype="float64")
        leaves: list[Any] = [self.embedding, self.decoder]
        for part in self.parts:
            more = units - part.bias.size
            up, bias = np.pad(part.up, ((0, 0), (0, more))), np.pad(part.bias, (0, more))
            down = np.pad(part.down, ((0, more), (0, 0)))
            leaves += [part.merged[None], part.value[None], part.output[None], up, bias, down, np.zeros(width)]
        return equinox.tree_at(_weights_of, model, [checks.read_only(np.array(one)) for one in leaves])

    def to_torch(self) -> Any:
        """The same weights as a `torch.nn.Module` in float64: tokens (n, T), START (2 k) first, to logits (n, T, 2 k).

        Its ``state_dict`` holds every weight. Without PyTorch `dynamics.support.distributions.Missing` says so.
        """
        return _torch_module(self)


def token_transformer(
    language: DyckLanguage,
    rng: np.random.Generator | int | None = None,
    *,
    scale: float = 1.0,
    sharpness: float = 0.0,
    low: float = 800.0,
) -> TokenTransformer:
    """The exact transformer with a random, uniform or stack-like second attention.

    Parameters
    ----------
    language : DyckLanguage
    rng : numpy.random.Generator or seed, optional
    scale : float
        As in `balance.balanced_layer`; 0 is uniform attention.
    sharpness : float
        Added to the logits of both brackets of all pairs at the query's depth, the last unmatched bracket among them.
        A layer without positions cannot tell that bracket from matched ones of its state.
    low : float
        Minus the logit of impossible brackets. From about 745 on their probability is 0 in float64.

    Raises
    ------
    ValueError
        If ``scale`` or ``sharpness`` is so large that rounding could make a bracket of 10,000 matched pairs.

    Examples
    --------
    >>> language = DyckLanguage(n_types=2, max_depth=3)
    >>> model = token_transformer(language, rng=0)
    >>> bool(np.allclose(model.distribution([0, 2])[-1], language.next_token([0, 2])))
    True
    """
    checks.instance("language", language, DyckLanguage)
    low, sharpness = checks.positive("low", low), checks.real("sharpness", sharpness)
    layer = balance.balanced_layer(language, rng, scale=scale, decoder=False)
    if sharpness:
        state = np.array([one.depth for one in language.states])
        level = np.tile(np.arange(language.max_depth) + 1, 2 * language.n_types)
        Z = np.array(layer.Z)
        Z[:, :-1] += sharpness * (state[:, None] == level)
        layer = Layer(Z, layer.Y, layer.V)
    _check_room(layer, language)
    return _built(language, layer, low)


def _built(language: DyckLanguage, layer: Layer, low: float) -> TokenTransformer:
    """The weights around a balanced second attention; ValueError if it is not balanced."""
    k, D, states, pairs = language.n_types, language.max_depth, language.n_states, language.n_types * language.max_depth
    sizes = [2 * k + 1, 1, D, states, pairs + 1, pairs, pairs + 1]
    width = sum(sizes)
    checks.fits_in_memory("language", 8 * 8 * 4 * width**2, "write down the weights")
    token, sine, step, state_at, feature, unmatched, top = np.split(np.arange(width), np.cumsum(sizes)[:-1])
    head = balance.exact_head(layer, language)
    none = np.zeros((width, width))

    value = none.copy()
    value[token[-1], 0], value[token[:-1], 1] = 1, np.tile([1, -1], k)
    first = Part(none, value, _at(width, [1], sine), *_steps(width, sine, step, D))
    silent = Part(none, none, none, *_states(width, token, step, state_at, language))
    merged, value = none.copy(), none.copy()
    merged[np.ix_(state_at, state_at)] = layer.Z
    value[np.ix_(state_at, np.arange(pairs + 1))] = layer.V
    read = _relu(width, feature, unmatched, (head.weights[0], head.biases[0]), _differences(pairs))
    second = Part(merged, value, _at(width, np.arange(pairs + 1), feature), *read)
    last = head.weights[1][:, :pairs], head.biases[1]  # of h itself, which stands in the stream here
    final = Part(none, none, none, *_relu(width, unmatched, top, last, np.eye(pairs + 1)))
    decoder = np.zeros((width, language.n_brackets))
    chances = head.weights[2].T
    decoder[top] = np.where(chances > 0, np.log(np.where(chances > 0, chances, 1)), -low)
    embedding = np.eye(2 * k + 1, width)
    return TokenTransformer(language, layer, embedding, (first, silent, second, final), decoder, low)


_PAIRS = 10_000  # matched pairs whose rounding must look like no bracket


def _check_room(layer: Layer, language: DyckLanguage) -> None:
    """Refuses logits so far apart that rounding of matched pairs would look like an unmatched bracket in float64.

    n pairs leave ``n eps`` of the largest weight at most. The head takes half of the least coordinate for a bracket,
    and the sum before the norm is no shorter than START's weight with the least one of each level of the stack.
    """
    u, pairs = balance.contributions(layer, language, scaled=True), language.n_types * language.max_depth
    opens = balance.pairs(language)[0].ravel()
    weights = np.diagonal(u[:, opens, :pairs], axis1=1, axis2=2)
    levels = weights.reshape(-1, language.n_types, language.max_depth).min(axis=1)
    stack = np.arange(language.max_depth) < np.array([[state.depth] for state in language.states])
    least = np.linalg.norm(np.column_stack([np.where(stack, levels, 0), u[:, -1, -1]]), axis=1)
    seen = balance.smallest_coordinate(layer, language) if weights.min() > 0 else 0.0
    if not (_PAIRS * np.finfo(float).eps * weights.max(axis=1) < seen / 2 * least).all():
        rule = f"be so small, with `sharpness`, that rounding makes no bracket of {_PAIRS:,} matched pairs"
        raise checks.reject("scale", rule, f"a least share of attention of {seen:.2g}")


_NAMES = ("embedding", "decoder", *(f"parts[{number}].{name}" for number in range(4) for name in _FIELDS))


def _arrays(model: TokenTransformer) -> list[np.ndarray]:
    """All weights, in the order of `_NAMES`."""
    return [model.embedding, model.decoder, *(vars(part)[name] for part in model.parts for name in _FIELDS)]


def _kept(owner: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    """Copies of an object's arrays, read-only; ValueError for another shape, and for numbers that are not finite."""
    for name, shape in shapes.items():
        array = checks.finite_array(name, vars(owner)[name])
        if array.shape != shape:
            raise checks.reject(name, f"have the shape {shape}", f"shape {array.shape}")
        vars(owner)[name] = checks.read_only(array)


def _weights_of(model: Any) -> list[Any]:
    """The weights of a `yzflow_deep.Transformer`, in the order of `to_deep`."""
    blocks = [(b.merged, b.value, b.output, *b.up, *b.down) for b in model.blocks]
    return [model.embedding, model.decoder, *(one for block in blocks for one in block)]


def _at(width: int, source: ArrayLike, target: ArrayLike) -> np.ndarray:
    """The matrix that moves coordinates."""
    moved = np.zeros((width, width))
    moved[source, target] = 1
    return moved


def _relu(width, source, target, first, last) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """up, bias and down, from the weights of one hidden layer on some coordinates."""
    weight, bias = first
    up, down = np.zeros((width, bias.size)), np.zeros((bias.size, width))
    up[source] = weight.T
    down[:, target] = last
    return up, bias, down


def _differences(n: int) -> np.ndarray:
    return np.vstack([np.eye(n), -np.eye(n)])


def _steps(width, sine, step, depth) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[d >= m] for m = 1..D from d / sqrt(1 + d^2), by ramps over the middle third of each gap."""
    at = np.arange(depth + 1) / np.sqrt(1 + np.arange(depth + 1.0) ** 2)
    slope = 3 / np.diff(at)
    start = at[:-1] + 1 / slope
    bias = np.concatenate([-slope * start, -slope * start - 1])
    return _relu(width, sine, step, (np.tile(slope, 2)[:, None], bias), _differences(depth))


def _states(width, token, step, state_at, language) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """relu([bracket] + [depth >= d] - [depth >= d + 1] - 1), one unit a state."""
    up, bias = np.zeros((width, language.n_states)), np.zeros(language.n_states)
    for number, state in enumerate(language.states[:-1]):
        up[token[2 * state.type + (state.kind == "close")], number] = 1
        bias[number] = -1.0 if state.depth > 0 else 0.0
        if state.depth > 0:
            up[step[state.depth - 1], number] = 1
        if state.depth < language.max_depth:
            up[step[state.depth], number] = -1
    up[token[-1], -1] = 1
    down = np.zeros((language.n_states, width))
    down[np.arange(language.n_states), state_at] = 1
    return up, bias, down


def _torch_module(model: TokenTransformer) -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        rule = "`to_torch` makes a module of PyTorch, which is not installed: pip install torch"
        raise distributions.Missing(rule, name="torch") from None

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            given = {"embedding": model.embedding, "decoder": model.decoder}
            for number, part in enumerate(model.parts):
                given |= {f"{name}_{number}": array for name, array in vars(part).items()}
            for name, array in given.items():
                self.register_parameter(name, torch.nn.Parameter(torch.tensor(array, dtype=torch.float64)))

        def forward(self, tokens):
            x = self.embedding[tokens]
            later = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device).triu(1)
            for number in range(len(model.parts)):
                merged, value, output, up, bias, down = (
                    getattr(self, f"{name}_{number}") for name in ("merged", "value", "output", "up", "bias", "down")
                )
                logits = (x @ merged @ x.transpose(1, 2)).masked_fill(later, -torch.inf)
                gathered = torch.softmax(logits, dim=2) @ (x @ value)
                norm = gathered.norm(dim=2, keepdim=True)
                x = x + gathered / torch.where(norm > 0, norm, torch.ones_like(norm)) @ output
                x = x + torch.relu(x @ up + bias) @ down
            return x @ self.decoder

    return Module()
