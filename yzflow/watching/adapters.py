"""Models that can be looked at: how attention and logits are had of each kind, and what it is built of.

One table, `ADAPTERS`, which `families` goes on with; a model of no kind in it is refused, and can be watched by two
functions of the reader's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from inspect import signature
from typing import Any

import numpy as np

from dynamics.support import checks
from yzflow.watching.untouched import untouched

__all__ = ["ADAPTERS", "Adapter", "Look", "Matrices", "adapter_of", "of_functions", "with_parts"]

_ROWS = 64  # sequences that a model is asked about at once, so that memory is bounded


@dataclass(frozen=True)
class Look:
    """A model's answer on sequences (n, T), for the query at their end.

    Attributes
    ----------
    attention : (layers, n, heads, T) array
        On all positions, its own among them.
    logits : (n, next tokens) array
    """

    attention: np.ndarray
    logits: np.ndarray


@dataclass(frozen=True)
class Matrices:
    """Factors of the attention logits e_q W_Q W_K^T e_l/scale and of the decoder u_n W_O^T W_V^T e_l of one head.

    Attributes
    ----------
    embedding : (tokens, d) array
    query, key, value : (d, head width) array
        ``key`` is None where ``query`` is W_Q W_K^T, one matrix (d, d); ``value`` is None where there is none, and the
        head width is d.
    output : (head width, d) array
    unembedding : (next tokens, d) array
    scale : float
    still : frozenset of str
        Names of those that training does not move.
    """

    embedding: np.ndarray
    query: np.ndarray
    key: np.ndarray | None
    value: np.ndarray | None
    output: np.ndarray
    unembedding: np.ndarray
    scale: float
    still: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Adapter:
    """How models of one kind are looked at.

    Attributes
    ----------
    kind : str
        Name of the kind, for messages.
    fits : callable
        Model -> whether it is of this kind.
    look : callable
        (model, sequences (n, T)) -> `Look`.
    parts : callable
        Model -> what it has besides one layer of attention and a linear decoder, in words.
    matrices : callable, optional
        (model, sequences (n, T)) -> layers of heads of `Matrices`; none where they cannot be found.
    whole : bool
        Whether ``parts`` names everything that there is besides. False: a residual link that is written by hand, say,
        is not seen, and what is not named is not known.
    """

    kind: str
    fits: Callable[[Any], bool]
    look: Callable[[Any, np.ndarray], Look]
    parts: Callable[[Any], tuple[str, ...]] = field(default=lambda model: ())
    matrices: Callable[[Any, np.ndarray], list[list[Matrices]]] | None = None
    whole: bool = False

    def on(self, model: Any, tokens: np.ndarray) -> Look:
        """The model's answer on sequences (n, T), asked in pieces; its state is as before."""
        with untouched(model):
            pieces = [self.look(model, tokens[start : start + _ROWS]) for start in range(0, len(tokens), _ROWS)]
        attention = np.concatenate([one.attention for one in pieces], axis=1)
        return Look(attention, np.concatenate([one.logits for one in pieces]))


def _checked_look(attention: Any, logits: Any, tokens: np.ndarray) -> Look:
    """A look at the last query, in double precision; ValueError if the shape of an answer is another."""
    n, length = tokens.shape
    found = np.asarray(attention, dtype=np.float64)
    if found.ndim == 3 and found.shape[::2] == (n, length):  # of the last query alone
        found = found[:, :, None]
    elif found.ndim in (4, 5) and found.shape[-2] in (1, length):
        found = found[..., -1:, :]
    if found.ndim == 4:
        found = found[None]
    if found.ndim != 5 or (found.shape[1], found.shape[3], found.shape[4]) != (n, 1, length):
        wanted = f"([layers,] {n}, heads, {length}, {length}) or ({n}, heads, {length})"
        raise checks.reject("attention", f"give an array {wanted} for sequences {tokens.shape}", np.shape(attention))
    scores = np.asarray(logits, dtype=np.float64)
    if scores.ndim == 3 and scores.shape[1] == length:
        scores = scores[:, -1]
    if scores.ndim != 2 or len(scores) != n:
        wanted = f"({n}, {length}, next tokens) or ({n}, next tokens)"
        raise checks.reject("logits", f"give an array {wanted} for sequences {tokens.shape}", scores.shape)
    return Look(found[:, :, :, -1], scores)


def of_functions(attention: Callable[..., Any], logits: Callable[..., Any], parts: Sequence[str] | None) -> Adapter:
    """An adapter of two functions, as `yzflow.watch` takes them; without ``parts`` nobody knows what else there is."""

    def look(model: Any, tokens: np.ndarray) -> Look:
        with _quiet(model) as given:
            seen = _answer("attention", attention, model, given(tokens))
            found = _checked_look(seen, _answer("logits", logits, model, given(tokens)), tokens)
        least, total = found.attention.min(), found.attention.sum(axis=-1).max()
        if least < 0 or total > 1.1:  # half precision adds up to a little more than one; a training may end in NaN
            raise checks.reject(
                "attention", "give shares, from zero on, that add up to one", f"{least if least < 0 else total:.3g}"
            )
        return found

    kind, named = "a model with functions of yours", tuple(parts or ())
    return Adapter(kind, lambda model: True, look, lambda model: named, whole=parts is not None)


def with_parts(adapter: Adapter, more: Sequence[str] | None) -> Adapter:
    """The same adapter, of models whose parts besides those of their kind are all named, each once; None: as it is."""
    if more is None:
        return adapter
    return replace(adapter, parts=lambda model: tuple(dict.fromkeys((*adapter.parts(model), *more))), whole=True)


def _answer(name: str, function: Callable[..., Any], model: Any, sequences: Any) -> Any:
    """Answer of a function of the reader's; ValueError, with the reason, if it ends in an error."""
    try:
        return _numpy(function(model, sequences))
    except Exception as error:  # other people's code can raise anything
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise checks.reject(name, "take the model and sequences", f"an error, {why}") from error


def _numpy(value: Any) -> Any:
    return value.detach().double().cpu().numpy() if hasattr(value, "detach") else value


def _last(logits: Any, tokens: np.ndarray) -> np.ndarray:
    """Logits at the last position of sequences (n, T): what else a model gives need not be converted."""
    every = len(logits.shape) == 3 and logits.shape[1] == tokens.shape[1]
    return _numpy(logits[:, -1] if every else logits)


@contextlib.contextmanager
def _quiet(model: Any) -> Iterator[Callable[[np.ndarray], Any]]:
    """Without slopes and dropout, in the model's own precision; modes are put back, and no random number is drawn.

    Gives a function from sequences to what the model takes: tensors on its device, or arrays, of a model that is none
    of PyTorch's.
    """
    if not _is_module(model):
        yield lambda tokens: tokens
        return
    import torch

    modes = [(module, module.training) for module in model.modules()]
    device = next((one.device for one in model.parameters()), torch.device("cpu"))
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        model.eval()
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            yield lambda tokens: torch.as_tensor(tokens, device=device)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for module, mode in modes:
            module.training = mode


def _classes(model: Any) -> list[str]:
    return [one.__name__ for one in type(model).__mro__]


def _is_module(model: Any) -> bool:
    return "Module" in _classes(model) and hasattr(model, "state_dict")


# Hugging Face's

_OLDEST = (4, 46)  # of transformers, which .ci/run tests beside the newest


def _hugging_face(model: Any, tokens: np.ndarray) -> Look:
    version = metadata.version("transformers")
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        raise checks.reject("transformers", f"be of version {_OLDEST[0]}.{_OLDEST[1]} or later", version)
    before = getattr(model.config, "_attn_implementation", "eager")
    try:
        if before != "eager":  # fused kernels keep no attention
            _attend(model, "eager")
        with _quiet(model) as given:
            last = {"logits_to_keep": 1} if "logits_to_keep" in signature(model.forward).parameters else {}
            out = model(input_ids=given(tokens), output_attentions=True, use_cache=False, **last)
            attention = np.stack([_numpy(one[..., -1:, :]) for one in out.attentions])
            return _checked_look(attention, _numpy(out.logits[:, -1]), tokens)
    finally:
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
        still = _still(embedding=embedding, unembedding=unembedding, output=layer.c_proj.weight)
        still |= _still(**dict.fromkeys(("query", "key", "value"), layer.c_attn.weight))
        query, key, value = np.split(_numpy(layer.c_attn.weight), 3, axis=1)
        parts = (_numpy(embedding), query, key, value, _numpy(layer.c_proj.weight), _numpy(unembedding))
        scale = float(np.sqrt(layer.head_dim)) if options.scale_attn_weights else 1.0
        scale *= number if options.scale_attn_by_inverse_layer_idx else 1
        found.append([replace(head, scale=scale) for head in _heads(*parts, layer.num_heads, still)])
    return found


def _neox_matrices(model: Any, tokens: np.ndarray) -> list[list[Matrices]]:
    base, found = model.gpt_neox, []
    embedding, unembedding = base.embed_in.weight, _neox_decoder(model).weight
    n_heads, width = model.config.num_attention_heads, embedding.shape[1]
    for block in base.layers:
        layer = block.attention
        still = _still(embedding=embedding, unembedding=unembedding, output=layer.dense.weight)
        still |= _still(**dict.fromkeys(("query", "key", "value"), layer.query_key_value.weight))
        stacked = _numpy(layer.query_key_value.weight).reshape(n_heads, 3, -1, width)
        query, key, value = (np.moveaxis(stacked[:, i], 2, 0).reshape(width, -1) for i in range(3))
        parts = (_numpy(embedding), query, key, value, _numpy(layer.dense.weight).T, _numpy(unembedding))
        found.append(_heads(*parts, n_heads, still))
    return found


def _still(**weights: Any) -> frozenset[str]:
    """Names of weights of PyTorch's that ask for no gradient."""
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
) -> list[Matrices]:
    """One `Matrices` for each head, from the matrices (d, d) of all heads beside each other."""
    cut = [np.split(one, n_heads, axis=1) for one in (query, key, value)]
    rows = np.split(output, n_heads, axis=0)
    scale = float(np.sqrt(query.shape[1] // n_heads))
    return [Matrices(embedding, q, k, v, o, unembedding, scale, still) for q, k, v, o in zip(*cut, rows, strict=True)]


# PyTorch's own attention


def _attentions(model: Any) -> list[Any]:
    return [one for one in model.modules() if "MultiheadAttention" in _classes(one)]


def _multihead(model: Any, tokens: np.ndarray) -> Look:
    kept: list[Any] = []

    def ask(module: Any, args: tuple, given: dict) -> tuple[tuple, dict]:
        return args[:3], {**_named(args), **given, "need_weights": True, "average_attn_weights": False}

    def keep(module: Any, args: tuple, given: dict, out: Any) -> None:
        kept.append(_numpy(out[1][..., -1:, :]))

    hooks = []
    for module in _attentions(model):
        hooks += [
            module.register_forward_pre_hook(ask, with_kwargs=True),
            module.register_forward_hook(keep, with_kwargs=True),
        ]
    try:
        with _quiet(model) as given:
            logits = _last(model(given(tokens)), tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return _checked_look(np.stack(kept), logits, tokens)


def _named(args: tuple) -> dict[str, Any]:
    """Arguments of a call of MultiheadAttention that were given by position after query, key and value."""
    names = ("key_padding_mask", "need_weights", "attn_mask", "average_attn_weights", "is_causal")
    return dict(zip(names, args[3:], strict=False))


def _multihead_matrices(model: Any, tokens: np.ndarray) -> list[list[Matrices]]:
    """Matrices between the embedding that the tokens go through and the last linear map, which gives the logits."""
    layers = _attentions(model)
    width, inside = layers[0].embed_dim, {id(part) for one in layers for part in one.modules()}
    embeddings: list[Any] = []
    linear: list[Any] = []

    def seen(module: Any, args: tuple, out: Any) -> None:
        if "Embedding" in _classes(module):
            asked = _numpy(args[0])
            if asked.shape == tokens.shape and np.array_equal(asked, tokens) and module.embedding_dim == width:
                embeddings.append(module)
        elif module.in_features == width:
            linear.append(module)

    kinds = [one for one in model.modules() if {"Embedding", "Linear"} & set(_classes(one)) and id(one) not in inside]
    hooks = [one.register_forward_hook(seen) for one in kinds]
    try:
        with _quiet(model) as given:
            size = _last(model(given(tokens)), tokens).shape[-1]
    finally:
        for hook in hooks:
            hook.remove()
    decoders = [one.weight for one in linear if one.out_features == size]
    decoders = decoders or [one.weight for one in embeddings if one.num_embeddings == size]  # a tied one
    if len(embeddings) != 1 or not decoders:
        return []
    return [_of_multihead(one, embeddings[0].weight, decoders[-1]) for one in layers]


def _of_multihead(layer: Any, embedding: Any, unembedding: Any) -> list[Matrices]:
    packed = layer.in_proj_weight
    named = dict.fromkeys(("query", "key", "value"), packed)
    if packed is None:
        named = {"query": layer.q_proj_weight, "key": layer.k_proj_weight, "value": layer.v_proj_weight}
        query, key, value = (_numpy(one).T for one in named.values())
    else:
        query, key, value = (one.T for one in np.split(_numpy(packed), 3))
    still = _still(embedding=embedding, unembedding=unembedding, output=layer.out_proj.weight, **named)
    parts = (_numpy(embedding), query, key, value, _numpy(layer.out_proj.weight).T, _numpy(unembedding))
    return _heads(*parts, layer.num_heads, still)


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

    with jax.default_matmul_precision("highest"):  # as `dynamics.deep.train` trains it, on a GPU, too
        hidden, attention = jax.jit(jax.vmap(type(model).hidden, in_axes=(None, 0)))(model, tokens)
        scores = np.asarray(model.decode(hidden))
    return _checked_look(np.moveaxis(np.asarray(attention), 1, 0), scores, tokens)


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
    return _is_module(model) and bool(_attentions(model))


ADAPTERS: tuple[Adapter, ...] = (
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
        "a transformer of dynamics.deep",
        lambda model: "Transformer" in _classes(model) and hasattr(model, "architecture"),
        _deep,
        _deep_parts,
        _deep_matrices,
        whole=True,
    ),
    Adapter("a module with torch.nn.MultiheadAttention", _has_heads, _multihead, _multihead_parts, _multihead_matrices),
)


def adapter_of(model: Any) -> Adapter:
    """The first entry of `ADAPTERS`, and then of `FAMILIES`, that fits the model.

    Raises
    ------
    ValueError
        If none does.
    """
    from yzflow.watching.families import FAMILIES  # which are built of what stands here

    every = (*ADAPTERS, *FAMILIES)
    for one in every:
        if one.fits(model):
            return one
    known = ", ".join(one.kind for one in every)
    rule = f"be {known}, or come with `attention` and `logits`"
    raise checks.reject("model", rule, type(model).__name__)
