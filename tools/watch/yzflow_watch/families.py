"""Families of models, recognised by the layout of their modules: attention like Llama's, TransformerLens' hooks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynamics.support import checks
from yzflow_watch import adapters
from yzflow_watch.adapters import Adapter, Matrices
from yzflow_watch.looks import Look, array_of, checked_look, last_of

__all__ = ["FAMILIES"]


# Llama's layout: four projections; those of keys and values may be narrower


def _projections(layer: Any) -> dict[str, Any]:
    """Weights of a layer of attention; fewer than four for another layout."""
    named = {
        "query": getattr(layer, "q_proj", None),
        "key": getattr(layer, "k_proj", None),
        "value": getattr(layer, "v_proj", None),
        "output": getattr(layer, "o_proj", None),
    }
    return {name: one.weight for name, one in named.items() if one is not None and hasattr(one, "weight")}


def _projected(model: Any) -> list[Any]:
    """Layers of attention of the layout, in order."""
    return [one for one in model.modules() if len(_projections(one)) == 4]


def _is_like_llama(model: Any) -> bool:
    config = getattr(model, "config", None)
    named = hasattr(config, "num_attention_heads") and hasattr(model, "get_output_embeddings")
    return adapters.is_module(model) and named and bool(_projected(model))


def _alike(model: Any) -> list[Any]:
    """The layers of attention; ValueError unless every layer of the model has one, and all are alike."""
    config, layers = model.config, _projected(model)
    sizes = {tuple(tuple(one.shape) for one in _projections(layer).values()) for layer in layers}
    if getattr(config, "is_encoder_decoder", False) or len(layers) != config.num_hidden_layers or len(sizes) != 1:
        kinds = f"{len(layers)} of {len(sizes)} kinds in {config.num_hidden_layers} layers"
        rule = "have one attention like Llama's in each of its layers, all alike, or come with `attention` and `logits`"
        raise checks.reject("model", rule, f"{type(model).__name__}: {kinds}")
    return layers


def _like_llama(model: Any, tokens: np.ndarray) -> Look:
    _alike(model)
    return adapters._hugging_face(model, tokens)


def _like_llama_parts(model: Any) -> tuple[str, ...]:
    options, weights = model.config.to_dict(), _projections(_alike(model)[0])
    kinds = {type(one).__name__ for one in model.modules()}
    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    width = options.get("sliding_window") if options.get("use_sliding_window", True) else None
    experts = any(options.get(name) for name in ("num_local_experts", "num_experts", "n_routed_experts"))
    gated = "gated " if {"gate_proj", "gate_up_proj"} & names else ""
    found = {
        "a residual link": True,
        "RMSNorm": any("RMSNorm" in kind for kind in kinds),
        "LayerNorm": any("LayerNorm" in kind for kind in kinds),
        "norms of queries and keys": "q_norm" in names,
        "rotary positions": any("Rotary" in kind for kind in kinds),
        "grouped queries": len(weights["key"]) < len(weights["query"]),
        f"a sliding window of {width} tokens": width is not None,
        "a cap on logits": any(options.get(name) for name in ("attn_logit_softcapping", "final_logit_softcapping")),
        "a mixture of experts": experts,
        f"a {gated}feed-forward part": not experts,
    }
    return tuple(part for part, there in found.items() if there)


def _like_llama_matrices(model: Any, tokens: np.ndarray) -> list[list[Matrices]]:
    """Matrices of each query head, with keys and values of its group; none if the model scales its rows or logits.

    Rotary positions are left out: they turn queries and keys and keep their lengths. All heads of a group move its keys
    and values, but the rate of a head includes its own pull only.
    """
    layers, found = _alike(model), []
    embedding, unembedding = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    if not _is_plain(model, layers[0], tokens) or "a cap on logits" in _like_llama_parts(model):
        return []
    n_heads = model.config.num_attention_heads
    for layer in layers:
        weights = {"embedding": embedding, "unembedding": unembedding, **_projections(layer)}
        query, key, value = (array_of(weights[name]) for name in ("query", "key", "value"))
        key, value = (_of_every_head(one, len(query) // n_heads, n_heads) for one in (key, value))
        parts = (query.T, key.T, value.T, array_of(weights["output"]).T, array_of(unembedding))
        heads = adapters._heads(array_of(embedding), *parts, n_heads, adapters._still(**weights), weights)
        scaling = getattr(layer, "scaling", None)
        found.append(heads if scaling is None else [replace(head, scale=1 / scaling) for head in heads])
    return found


def _of_every_head(rows: np.ndarray, width: int, n_heads: int) -> np.ndarray:
    """Rows of the key or value of every query head, one after the other, from the rows of the groups."""
    groups = rows.reshape(-1, width, rows.shape[1])
    return np.repeat(groups, n_heads // len(groups), axis=0).reshape(-1, rows.shape[1])


def _is_plain(model: Any, attention: Any, tokens: np.ndarray) -> bool:
    """True if the first layer gets the rows of the embedding, and logits are the decoder's output, neither scaled."""
    first = next(one for one in model.modules() if any(child is attention for child in one.children()))
    decoder, seen = model.get_output_embeddings(), {}

    def fed(module: Any, args: tuple, given: dict) -> None:
        seen["rows"] = array_of(args[0] if args else given["hidden_states"])

    def decoded(module: Any, args: tuple, out: Any) -> None:
        seen["logits"] = array_of(out)

    hooks = [first.register_forward_pre_hook(fed, with_kwargs=True), decoder.register_forward_hook(decoded)]
    try:
        with adapters._quiet(model) as given:
            logits = array_of(model(input_ids=given(tokens), use_cache=False).logits)
    finally:
        for hook in hooks:
            hook.remove()
    rows = array_of(model.get_input_embeddings().weight)[tokens]
    return np.array_equal(seen["rows"], rows) and np.array_equal(seen["logits"], logits)


# TransformerLens' names of hooks


def _has_hooks(model: Any) -> bool:
    return adapters.is_module(model) and hasattr(model, "run_with_hooks") and hasattr(model, "hook_dict")


def _asked(model: Any, tokens: np.ndarray, names: list[str], cut: Any = lambda value: value) -> tuple[Any, dict]:
    """Logits, and values at the hooks of these names, or a part of each; ValueError if there is no such hook."""
    kept: dict[str, np.ndarray] = {}

    def keep(name: str) -> Any:
        return name, lambda value, hook: kept.update({name: array_of(cut(value))})

    missing = ", ".join(name for name in names if name not in model.hook_dict)
    if missing:
        rule = "have hooks on the attention of every layer, or come with `attention` and `logits`"
        raise checks.reject("model", rule, f"none called {missing}")
    with adapters._quiet(model) as given:
        hooks = [keep(name) for name in names]
        return model.run_with_hooks(given(tokens), return_type="logits", fwd_hooks=hooks), kept


def _hooked(model: Any, tokens: np.ndarray) -> Look:
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(model.cfg.n_layers)]
    logits, kept = _asked(model, tokens, names, lambda pattern: pattern[..., -1:, :])
    patterns = np.stack([kept[name] for name in names])
    return checked_look(patterns, last_of(logits, tokens), tokens)


def _hooked_parts(model: Any) -> tuple[str, ...]:
    options = vars(model.cfg)
    norm, groups = str(options.get("normalization_type")), options.get("n_key_value_heads")
    caps = [options.get(name) for name in ("attn_scores_soft_cap", "output_logits_soft_cap")]
    gated = "gated " if options.get("gated_mlp") else ""
    found = {
        "a residual link": True,
        "RMSNorm": "RMS" in norm or bool(options.get("final_rms")),
        "LayerNorm": "LN" in norm,
        "norms of queries and keys": bool(options.get("use_qk_norm")),
        "rotary positions": options.get("positional_embedding_type") == "rotary",
        "grouped queries": groups is not None and groups < options["n_heads"],
        f"a sliding window of {options.get('window_size')} tokens": bool(options.get("use_local_attn")),
        "a cap on logits": any(cap is not None and cap > 0 for cap in caps),
        "a mixture of experts": bool(options.get("num_experts")),
        f"a {gated}feed-forward part": not options.get("attn_only") and not options.get("num_experts"),
    }
    return tuple(part for part, there in found.items() if there)


def _hooked_matrices(model: Any, tokens: np.ndarray) -> list[list[Matrices]]:
    """Matrices of each head; none if attention is more than a softmax of products of queries and keys.

    Rotary positions and the pull of other heads on shared keys are left out, as for Llama.
    """
    import torch

    scales = [_scale(model, layer, tokens) for layer in range(model.cfg.n_layers)]
    if not np.isfinite(scales).all():
        return []
    with torch.enable_grad():  # stacked weights then know if their pieces have gradients
        weights = {"query": model.W_Q, "key": model.W_K, "value": model.W_V, "output": model.W_O}
        ends = {"embedding": model.W_E, "unembedding": model.W_U.T}
    still, found = adapters._still(**weights, **ends), []
    of_all, rows = [array_of(one) for one in weights.values()], [array_of(one) for one in ends.values()]
    for layer, scale in enumerate(scales):
        heads = []
        for head in range(model.cfg.n_heads):  # heads of a group share its keys and values
            query, key, value, output = (one[layer, head * one.shape[1] // model.cfg.n_heads] for one in of_all)
            heads.append(Matrices(rows[0], query, key, value, output, rows[1], scale, still))
        found.append(heads)
    return found


def _scale(model: Any, layer: int, tokens: np.ndarray) -> float:
    """The divisor of products of queries and keys; NaN if attention is not the softmax of these.

    Rotary positions count as products if there are hooks after the rotation.
    """
    start = f"blocks.{layer}.attn.hook_"
    names = [start + name for name in ("q", "k", "rot_q", "rot_k", "pattern") if start + name in model.hook_dict]
    kept = _asked(model, tokens, names)[1]
    query, key = (kept.get(f"{start}rot_{name}", kept[start + name]) for name in ("q", "k"))
    shares = kept[f"{start}pattern"][:, :, -1]
    key = np.repeat(key, query.shape[2] // key.shape[2], axis=2)
    products = np.einsum("nhd,nthd->nht", query[:, -1], key)
    seen = shares > 1e-12  # not masked, nor lost in rounding
    number, logs = seen.sum(axis=-1, keepdims=True), np.log(np.where(seen, shares, 1.0))
    z, found = (seen * (one - (seen * one).sum(axis=-1, keepdims=True) / number) for one in (products, logs))
    total = float((z * found).sum())
    scale = float((z * z).sum()) / total if total else float("nan")
    return scale if np.abs(z / scale - found).max() <= 1e-3 * np.abs(found).max() else float("nan")


FAMILIES: tuple[Adapter, ...] = (
    Adapter(
        "a model of Hugging Face with attention like Llama's",
        _is_like_llama,
        _like_llama,
        _like_llama_parts,
        _like_llama_matrices,
    ),
    Adapter("a model with TransformerLens' hooks", _has_hooks, _hooked, _hooked_parts, _hooked_matrices),
)
