"""Adapters for kinds of models: how to read attention, logits and weights of each.

A model of no kind in `yzflow_watch.kinds_of_models` can be watched by two functions of the reader's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import metadata
from inspect import signature
from types import MappingProxyType
from typing import Any

import numpy as np

from dynamics.support import checks
from yzflow_watch.looks import Look, array_of, checked_look, last_of, layered, shares_of, told_apart
from yzflow_watch.untouched import untouched

__all__ = ["KINDS", "Adapter", "Look", "Matrices", "of_functions", "with_parts"]

_ROWS = 64  # the most sequences in a call of a model, to bound memory


@dataclass(frozen=True)
class Matrices:
    """Factors of the attention logits e_q W_Q W_K^T e_l/scale and of the decoder u_n W_O^T W_V^T e_l of one head.

    Attributes
    ----------
    embedding : (tokens, d) array
    query, key, value : (d, head width) array
        ``key`` is None if ``query`` is the product W_Q W_K^T, (d, d); ``value`` is None if there is none, and the head
        width is then d.
    output : (head width, d) array
    unembedding : (next tokens, d) array
    scale : float
    still : frozenset of str
        Names of matrices that training does not move.
    weights : mapping
        Name of a matrix -> its parameter in PyTorch; empty if there are none.
    """

    embedding: np.ndarray
    query: np.ndarray
    key: np.ndarray | None
    value: np.ndarray | None
    output: np.ndarray
    unembedding: np.ndarray
    scale: float
    still: frozenset[str] = frozenset()
    weights: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Adapter:
    """The functions that look at models of one kind.

    Attributes
    ----------
    kind : str
        Name of the kind, for messages.
    fits : callable
        Model -> whether it is of this kind.
    look : callable
        (model, sequences (n, T)) -> `Look`.
    parts : callable
        Model -> its parts besides one layer of attention and a linear decoder, in words.
    matrices : callable, optional
        (model, sequences (n, T)) -> layers of heads of `Matrices`; empty if they cannot be found.
    whole : bool
        Whether ``parts`` names all other parts. If False, a residual link written by hand, say, is not seen, and a part
        that is not named is not known to be absent.
    turned : Adapter, optional
        The adapter for models that take (T, n).
    positions_first : bool
        Whether this adapter is for models that take (T, n).
    """

    kind: str
    fits: Callable[[Any], bool]
    look: Callable[[Any, np.ndarray], Look]
    parts: Callable[[Any], tuple[str, ...]] = field(default=lambda model: ())
    matrices: Callable[[Any, np.ndarray], list[list[Matrices]]] | None = None
    whole: bool = False
    turned: Adapter | None = None
    positions_first: bool = False

    def on(self, model: Any, tokens: np.ndarray, inputs: Mapping[str, np.ndarray] | None = None) -> Look:
        """The model's answer on sequences (n, T), asked in pieces with their inputs; its state is as before."""
        pieces = []
        with untouched(model):
            for start in range(0, len(tokens), _ROWS):
                rows = slice(start, start + _ROWS)
                with with_inputs(model, {name: values[rows] for name, values in (inputs or {}).items()}):
                    pieces.append(self.look(model, tokens[rows]))
        attention = np.concatenate([piece.attention for piece in pieces], axis=1)
        return Look(attention, np.concatenate([piece.logits for piece in pieces]), pieces[0].unused)


@contextlib.contextmanager
def with_inputs(model: Any, inputs: Mapping[str, np.ndarray]) -> Iterator[None]:
    """Within this context, the model's forward gets further arguments, which are arrays and are moved to its device."""
    if not inputs:
        yield
        return
    import torch

    weight = next(model.parameters())
    tensors = {name: torch.as_tensor(values, device=weight.device) for name, values in inputs.items()}
    tensors = {name: one.to(weight.dtype) if one.is_floating_point() else one for name, one in tensors.items()}
    hook = model.register_forward_pre_hook(lambda module, args, own: (args, {**own, **tensors}), with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def of_functions(attention: Callable[..., Any], logits: Callable[..., Any], parts: Sequence[str] | None) -> Adapter:
    """An adapter of two functions, as `yzflow.watch` takes them; without ``parts``, other parts are not known."""
    lacking: dict[tuple, int | None] = {}  # shapes of attention and sequences -> the axis to add

    def look(model: Any, tokens: np.ndarray) -> Look:
        with _quiet(model) as given:

            def ask(sequences: np.ndarray) -> np.ndarray:
                return _answer("attention", attention, shares_of, model, given(sequences))

            shares = ask(tokens)
            if (shares.shape, tokens.shape) not in lacking:
                lacking[shares.shape, tokens.shape] = told_apart(shares.shape, tokens, ask)
            axis = lacking[shares.shape, tokens.shape]
            shares = shares if axis is None else np.expand_dims(shares, axis)
            scores = _answer("logits", logits, partial(last_of, tokens=tokens), model, given(tokens))
            return checked_look(shares, scores, tokens)

    kind, named = "a model with functions of yours", tuple(parts or ())
    return Adapter(kind, lambda model: True, look, lambda model: named, whole=parts is not None)


def with_parts(adapter: Adapter, more: Sequence[str] | None) -> Adapter:
    """The adapter for models with these further parts, and no others; None: the adapter as it is."""
    if more is None:
        return adapter
    return replace(adapter, parts=lambda model: tuple(dict.fromkeys((*adapter.parts(model), *more))), whole=True)


def _answer(
    name: str, function: Callable[..., Any], read: Callable[[Any], Any], model: Any, sequences: Any
) -> np.ndarray:
    """The answer of a reader's function, converted by ``read``; ValueError, with the reason, if it raises an error."""
    try:
        answer = function(model, sequences)
    except Exception as error:  # other people's code can raise anything
        raise checks.reject(name, "take the model and sequences", f"an error, {first_line(error)}") from error
    found: np.ndarray = read(answer)
    return found


def first_line(error: Exception) -> str:
    """An error of other people's code in a line."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


@contextlib.contextmanager
def _quiet(model: Any) -> Iterator[Callable[[np.ndarray], Any]]:
    """Turn off gradients, dropout and autocast; `untouched`, around it, restores modes.

    Gives a function from sequences to the model's input: tensors on its device, or arrays if the model is none of
    PyTorch's.
    """
    if not is_module(model):
        yield lambda tokens: tokens
        return
    import torch

    device = next((one.device for one in model.parameters()), torch.device("cpu"))
    if device.type == "meta":
        raise checks.reject("model", "have weights", "weights on the device 'meta', which holds none")
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        model.eval()
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            yield lambda tokens: torch.as_tensor(tokens, device=device)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _classes(model: Any) -> list[str]:
    return [one.__name__ for one in type(model).__mro__]


def is_module(model: Any) -> bool:
    return "Module" in _classes(model) and hasattr(model, "state_dict")


# Hugging Face

_OLDEST = (4, 46)  # of transformers; .ci/run tests it beside the newest


def _hugging_face(model: Any, tokens: np.ndarray) -> Look:
    version = metadata.version("transformers")
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        raise checks.reject("transformers", f"be of version {_OLDEST[0]}.{_OLDEST[1]} or later", version)
    config = model.config
    before, answer = getattr(config, "_attn_implementation", "eager"), getattr(config, "return_dict", True)
    last = {"logits_to_keep": 1} if "logits_to_keep" in signature(model.forward).parameters else {}
    try:
        config.return_dict = True
        if before != "eager":  # fused kernels keep no attention
            _attend(model, "eager")
        with _quiet(model) as given:
            out = model(input_ids=given(tokens), output_attentions=True, use_cache=False, **last)
            layers = enumerate(getattr(out, "attentions", None) or ())
            seen = {f"layer {number}": None if one is None else one[..., -1:, :] for number, one in layers}
            return checked_look(layered(seen), last_of(out, tokens), tokens)
    finally:
        config.return_dict = answer
        if before != "eager":
            _attend(model, before)


def _attend(model: Any, implementation: str) -> None:
    """Choose how a model of Hugging Face computes attention, with the words of its version."""
    if hasattr(model, "set_attn_implementation"):
        model.set_attn_implementation(implementation)
    else:  # before transformers 4.54
        model.config._attn_implementation = implementation


_OF_GPT = ("a residual link", "LayerNorm", "a feed-forward part")


def _gpt2_matrices(model: Any, tokens: np.ndarray) -> list[list[Matrices]]:
    base, found = model.transformer, []
    embedding, unembedding = base.wte.weight, model.lm_head.weight
    options = model.config
    for number, block in enumerate(base.h, start=1):
        layer = block.attn
        weights = {"embedding": embedding, "unembedding": unembedding, "output": layer.c_proj.weight}
        weights |= dict.fromkeys(("query", "key", "value"), layer.c_attn.weight)
        query, key, value = np.split(array_of(layer.c_attn.weight), 3, axis=1)
        parts = (array_of(embedding), query, key, value, array_of(layer.c_proj.weight), array_of(unembedding))
        scale = float(np.sqrt(layer.head_dim)) if options.scale_attn_weights else 1.0
        scale *= number if options.scale_attn_by_inverse_layer_idx else 1
        heads = _heads(*parts, layer.num_heads, _still(**weights), weights)
        found.append([replace(head, scale=scale) for head in heads])
    return found


def _neox_matrices(model: Any, tokens: np.ndarray) -> list[list[Matrices]]:
    base, found = model.gpt_neox, []
    embedding, unembedding = base.embed_in.weight, _neox_decoder(model).weight
    n_heads, width = model.config.num_attention_heads, embedding.shape[1]
    for block in base.layers:
        layer = block.attention
        weights = {"embedding": embedding, "unembedding": unembedding, "output": layer.dense.weight}
        weights |= dict.fromkeys(("query", "key", "value"), layer.query_key_value.weight)
        stacked = array_of(layer.query_key_value.weight).reshape(n_heads, 3, -1, width)
        query, key, value = (np.moveaxis(stacked[:, i], 2, 0).reshape(width, -1) for i in range(3))
        parts = (array_of(embedding), query, key, value, array_of(layer.dense.weight).T, array_of(unembedding))
        found.append(_heads(*parts, n_heads, _still(**weights), weights))
    return found


def _still(**weights: Any) -> frozenset[str]:
    """Names of weights of PyTorch's without a gradient."""
    return frozenset(name for name, one in weights.items() if not one.requires_grad)


def _neox_decoder(model: Any) -> Any:
    return model.get_output_embeddings()


def _heads(
    embedding: np.ndarray,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    output: np.ndarray,
    unembedding: np.ndarray,
    n_heads: int,
    still: frozenset[str],
    weights: Mapping[str, Any] = MappingProxyType({}),
) -> list[Matrices]:
    """One `Matrices` for each head, from the matrices (d, d) of all heads beside each other."""
    cut = [np.split(one, n_heads, axis=1) for one in (query, key, value)]
    rows = np.split(output, n_heads, axis=0)
    scale = float(np.sqrt(query.shape[1] // n_heads))
    return [
        Matrices(embedding, q, k, v, o, unembedding, scale, still, weights)
        for q, k, v, o in zip(*cut, rows, strict=True)
    ]


# PyTorch's own attention


def _attentions(model: Any) -> list[Any]:
    return [one for one in model.modules() if "MultiheadAttention" in _classes(one)]


def _multihead(model: Any, tokens: np.ndarray, *, turned: bool = False) -> Look:
    modules = _attentions(model)
    names = {id(module): name for name, module in model.named_modules()}
    kept: dict[str, Any] = {}
    called: set[int] = set()
    for module in modules:
        if module.bias_k is not None or module.add_zero_attn:
            rule = "attend to positions of sequences alone, or come with `attention` and `logits`"
            more = "add_zero_attn" if module.bias_k is None else "add_bias_kv"
            raise checks.reject("model", rule, f"{more} in {names[id(module)]!r}")

    def ask(module: Any, args: tuple, given: dict) -> tuple[tuple, dict]:
        return args[:3], {**_named(args), **given, "need_weights": True, "average_attn_weights": False}

    def keep(module: Any, args: tuple, given: dict, out: Any) -> None:
        weights = None if out[1] is None else array_of(out[1][..., -1:, :])
        kept[f"{names[id(module)]!r}, call {len(kept) + 1}"] = weights
        called.add(id(module))

    hooks = []
    for module in modules:
        hooks += [
            module.register_forward_pre_hook(ask, with_kwargs=True),
            module.register_forward_hook(keep, with_kwargs=True),
        ]
    try:
        with _quiet(model) as given:
            logits = last_of(model(given(tokens.T if turned else tokens)), tokens, turned=turned)
    finally:
        for hook in hooks:
            hook.remove()
    if not kept:
        rule = "call its torch.nn.MultiheadAttention, or come with `attention` and `logits`"
        raise checks.reject("model", rule, "none that was called")
    return checked_look(layered(kept), logits, tokens, [names[id(one)] for one in modules if id(one) not in called])


def _named(args: tuple) -> dict[str, Any]:
    """Arguments of MultiheadAttention that were given by position after query, key and value."""
    names = ("key_padding_mask", "need_weights", "attn_mask", "average_attn_weights", "is_causal")
    return dict(zip(names, args[3:], strict=False))


def _multihead_matrices(model: Any, tokens: np.ndarray, *, turned: bool = False) -> list[list[Matrices]]:
    """Matrices between the embedding of the tokens and the last linear map, which gives the logits."""
    inside = {id(inner) for module in _attentions(model) for inner in module.modules()}
    fed = tokens.T if turned else tokens
    layers: list[Any] = []  # in the order of their calls
    embeddings: list[Any] = []
    linear: list[Any] = []

    def seen(module: Any, args: tuple, out: Any) -> None:
        kinds = _classes(module)
        if "MultiheadAttention" in kinds:
            layers.append(module)
        elif "Embedding" in kinds:
            asked = array_of(args[0])
            if asked.shape == fed.shape and np.array_equal(asked, fed):
                embeddings.append(module)
        else:
            linear.append(module)

    wanted = {"Embedding", "Linear"}
    kinds = [one for one in model.modules() if wanted & set(_classes(one)) and id(one) not in inside]
    hooks = [one.register_forward_hook(seen) for one in (*kinds, *_attentions(model))]
    try:
        with _quiet(model) as given:
            size = last_of(model(given(fed)), tokens, turned=turned).shape[-1]
    finally:
        for hook in hooks:
            hook.remove()
    width = layers[0].embed_dim
    embeddings = [one for one in embeddings if one.embedding_dim == width]
    decoders = [one.weight for one in linear if (one.in_features, one.out_features) == (width, size)]
    decoders = decoders or [one.weight for one in embeddings if one.num_embeddings == size]  # a tied one
    if len(embeddings) != 1 or not decoders or any((one.embed_dim, one.kdim) != (width, width) for one in layers):
        return []
    return [_of_multihead(one, embeddings[0].weight, decoders[-1]) for one in layers]


def _of_multihead(layer: Any, embedding: Any, unembedding: Any) -> list[Matrices]:
    packed = layer.in_proj_weight
    named = dict.fromkeys(("query", "key", "value"), packed)
    if packed is None:
        named = {"query": layer.q_proj_weight, "key": layer.k_proj_weight, "value": layer.v_proj_weight}
        query, key, value = (array_of(one).T for one in named.values())
    else:
        query, key, value = (one.T for one in np.split(array_of(packed), 3))
    weights = {"embedding": embedding, "unembedding": unembedding, "output": layer.out_proj.weight, **named}
    parts = (array_of(embedding), query, key, value, array_of(layer.out_proj.weight).T, array_of(unembedding))
    return _heads(*parts, layer.num_heads, _still(**weights), weights)


def _multihead_parts(model: Any) -> tuple[str, ...]:
    kinds = {one for module in model.modules() for one in _classes(module)}
    inside = {id(part) for one in _attentions(model) for part in one.modules()}
    linear = [one for one in model.modules() if "Linear" in _classes(one) and id(one) not in inside]
    found = ["a residual link"] if "TransformerEncoderLayer" in kinds else []
    found += [name for name in ("LayerNorm", "RMSNorm", "BatchNorm1d") if name in kinds]
    return (*found, *(["a feed-forward part"] if len(linear) > 1 else []))


# Ours


def _deep(model: Any, tokens: np.ndarray) -> Look:
    import jax

    a = model.architecture
    if tokens.max() >= a.vocab_size:  # else jax reads the last row
        raise checks.reject("tokens", f"be below {a.vocab_size}, the size of the model's vocabulary", int(tokens.max()))
    if a.positions == "learned" and tokens.shape[1] > (a.max_length or 0):
        rule = f"have at most {a.max_length} columns and the next token, as the model has such positions"
        raise checks.reject("tokens", rule, f"{tokens.shape[1]} and the next token")
    with jax.default_matmul_precision("highest"):  # as in `yzflow_deep.train`, also on a GPU
        hidden, attention = jax.jit(jax.vmap(type(model).hidden, in_axes=(None, 0)))(model, tokens)
        scores = np.asarray(model.decode(hidden))
    return checked_look(np.moveaxis(np.asarray(attention), 1, 0), scores, tokens)


def _deep_matrices(model: Any, tokens: np.ndarray) -> list[list[Matrices]]:
    a, found = model.architecture, []
    still = frozenset() if a.train_embedding else frozenset(("embedding", "unembedding") if a.tied else ("embedding",))
    embedding, unembedding = _wide(model.embedding), _wide(model.rows())
    for block in model.blocks:
        first, scale = (block.merged, 1.0) if block.query is None else (block.query, np.sqrt(a.width // a.n_heads))
        found.append(
            [
                Matrices(
                    embedding,
                    _wide(first[head]),
                    None if block.key is None else _wide(block.key[head]),
                    None if block.value is None else _wide(block.value[head]),
                    _wide(block.output[head]),
                    unembedding,
                    float(scale * a.temperature),
                    still,
                )
                for head in range(a.n_heads)
            ]
        )
    return found


def _wide(array: Any) -> np.ndarray:
    return np.asarray(array, dtype=np.float64)


def _deep_parts(model: Any) -> tuple[str, ...]:
    a = model.architecture
    found = ["a residual link"] if a.residual else []
    found += ["LayerNorm"] if a.norm != "none" and a.norm_kind == "layer" else []
    return (*found, *(["a feed-forward part"] if a.mlp_width else []))


def _has_heads(model: Any) -> bool:
    return is_module(model) and bool(_attentions(model))


_MULTIHEAD = Adapter(
    "a module with torch.nn.MultiheadAttention", _has_heads, _multihead, _multihead_parts, _multihead_matrices
)
_TURNED = replace(
    _MULTIHEAD,
    look=partial(_multihead, turned=True),
    matrices=partial(_multihead_matrices, turned=True),
    positions_first=True,
)
KINDS: tuple[Adapter, ...] = (
    Adapter(
        "GPT-2 of Hugging Face",
        lambda model: "GPT2LMHeadModel" in _classes(model),
        _hugging_face,
        lambda model: _OF_GPT,
        _gpt2_matrices,
        whole=True,
    ),
    Adapter(
        "GPT-NeoX of Hugging Face",
        lambda model: "GPTNeoXForCausalLM" in _classes(model),
        _hugging_face,
        lambda model: (*_OF_GPT, "rotary positions"),
        _neox_matrices,
        whole=True,
    ),
    Adapter(
        "a transformer of yzflow_deep",
        lambda model: "Transformer" in _classes(model) and hasattr(model, "architecture"),
        _deep,
        _deep_parts,
        _deep_matrices,
        whole=True,
    ),
    replace(_MULTIHEAD, turned=_TURNED),
)
