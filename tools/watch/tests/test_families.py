"""Models known by their layout: what is seen is what their own layers compute, and matrices give their logits."""

from importlib import metadata
from types import SimpleNamespace

import numpy as np
import pytest
from yzflow_watch.kinds_of_models import adapter_of
from yzflow_watch.rates import induced

import yzflow as yz

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

TOKENS = np.random.default_rng(0).integers(0, 11, (12, 7))
NAMES = ["GPT2LMHead", "GPTNeoXForCausalLM", "Llama", "Mistral", "Qwen2", "TransformerLens"]


def hugging_face(name, **changes):
    """A tiny model of one of transformers' families, in double precision."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 11, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 16, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None,
    }  # fmt: skip
    if name != "GPTNeoX":
        sizes |= {"num_key_value_heads": 2}
    try:
        config = getattr(transformers, f"{name}Config")(**sizes | changes)
        kind = getattr(transformers, f"{name}ForCausalLM")
    except AttributeError:
        pytest.skip(f"{name} came to transformers later")
    return kind(config).double().eval()


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def array(tensor):
    return tensor.detach().cpu().numpy()


class Unturned(torch.nn.Module):
    """Rotary positions that turn nothing."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x, *given, **named):
        ones = torch.ones(1, x.shape[-2], self.width, dtype=x.dtype)
        return ones, 0 * ones


def bare(name, **changes):
    """A model whose last layer of attention is fed the embedding, not normalised and not turned, and has no biases."""
    if name == "GPT2":
        transformers = pytest.importorskip("transformers")
        torch.manual_seed(0)
        sizes = {"vocab_size": 11, "n_embd": 8, "n_layer": 1, "n_head": 4, "n_positions": 16, "bos_token_id": 0}
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes | changes)).double().eval()
        model.transformer.h[-1].ln_1 = torch.nn.Identity()
        torch.nn.init.zeros_(model.transformer.wpe.weight)
        for block in model.transformer.h[:-1]:  # which add nothing
            torch.nn.init.zeros_(block.attn.c_proj.weight)
            torch.nn.init.zeros_(block.mlp.c_proj.weight)
    elif name == "GPTNeoX":
        model = hugging_face(name, num_hidden_layers=1, **changes)
        model.gpt_neox.layers[0].input_layernorm = torch.nn.Identity()
        model.gpt_neox.rotary_emb = Unturned(2)
    else:
        model = hugging_face(name, num_hidden_layers=1, **changes)
        model.model.layers[0].input_layernorm = torch.nn.Identity()
        for module in list(model.modules()):
            if hasattr(module, "rotary_emb"):  # once, or in each layer of older versions
                module.rotary_emb = Unturned(model.config.hidden_size // 4)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            weight.mul_(0.0 if key.endswith("bias") else 20.0)
    return model


class Hooked(torch.nn.Module):
    """One layer with the interface of TransformerLens: a configuration, named hooks and stacked matrices."""

    def __init__(self, heads=4, groups=2, layers=1, **options):
        super().__init__()
        torch.manual_seed(0)
        self.slope = 0.0  # of a bias by place
        self.cfg = SimpleNamespace(n_layers=layers, n_heads=heads, d_head=2, n_key_value_heads=groups,
                                   scale=3.0, attn_only=True, **options)  # fmt: skip
        hooks = ("q", "k", "attn_scores", "pattern")
        self.hook_dict = {f"blocks.{i}.attn.hook_{name}": None for i in range(layers) for name in hooks}

        def made(*shape):
            return torch.nn.Parameter(torch.randn(*shape, dtype=torch.float64))

        self.W_E, self.W_U = made(11, 8), made(8, 11)
        self.W_Q, self.W_O = made(layers, heads, 8, 2), made(layers, heads, 2, 8)
        self.W_K, self.W_V = made(layers, groups, 8, 2), made(layers, groups, 8, 2)

    def run_with_hooks(self, tokens, return_type, fwd_hooks):
        hooks, x = dict(fwd_hooks), self.W_E[tokens]
        mask = torch.full((x.shape[1], x.shape[1]), -torch.inf).triu(1)
        for layer in range(self.cfg.n_layers):

            def seen(name, value, layer=layer):
                hooks.get(f"blocks.{layer}.attn.hook_{name}", lambda value, hook: None)(value, hook=None)
                return value

            query = seen("q", torch.einsum("ntd,hdk->nthk", x, self.W_Q[layer]))
            key = seen("k", torch.einsum("ntd,hdk->nthk", x, self.W_K[layer]))
            value = torch.einsum("ntd,hdk->nthk", x, self.W_V[layer])
            key, value = (one.repeat_interleave(query.shape[2] // one.shape[2], 2) for one in (key, value))
            scores = (
                torch.einsum("nthk,nshk->nhts", query, key) / self.cfg.scale
                + mask
                + self.slope * torch.arange(x.shape[1])
            )
            pattern = seen("pattern", seen("attn_scores", scores).softmax(dim=-1))
            x = x + torch.einsum("nhts,nshk,hkd->ntd", pattern, value, self.W_O[layer])
        return x @ self.W_U

    def forward(self, tokens):
        return self.run_with_hooks(tokens, "logits", [])


BARE = {
    "GPT-2": lambda: bare("GPT2"),
    "GPT-2, not scaled": lambda: bare("GPT2", scale_attn_weights=False),
    "GPT-2, scaled by layer": lambda: bare("GPT2", scale_attn_by_inverse_layer_idx=True, n_layer=2),
    "GPT-NeoX": lambda: bare("GPTNeoX"),
    "Llama": lambda: bare("Llama"),
    "Llama, no groups": lambda: bare("Llama", num_key_value_heads=4),
    "Llama, one group": lambda: bare("Llama", num_key_value_heads=1),
    "Mistral": lambda: bare("Mistral"),
    "Qwen2": lambda: bare("Qwen2"),
    "hooks": Hooked,
    "hooks, one group": lambda: Hooked(groups=1),
}


@pytest.mark.parametrize("name", BARE)
def test_attention_is_the_softmax_of_the_logits_of_the_matrices(name):
    """Computed by numpy alone, of a layer that nothing stands before."""
    model = BARE[name]()
    adapter = adapter_of(model)
    context = TOKENS[:, :-1]
    heads = adapter.matrices(model, context[:2])[-1]
    seen = adapter.on(model, context)
    assert len(heads) == seen.attention.shape[2] == 4
    for i, of in enumerate(heads):
        e = of.embedding[context]
        z = np.einsum("nd,ntd->nt", e[:, -1] @ of.query @ of.key.T, e) / of.scale
        np.testing.assert_allclose(seen.attention[-1, :, i], softmax(z), rtol=1e-6, atol=1e-9)
    assert np.ptp(seen.attention[-1], axis=1).max() > 0.01  # heads differ, so that their order is asked


@pytest.mark.parametrize("name", ["GPTNeoX", "Llama", "Mistral", "Qwen2", "Qwen3"])
def test_attention_and_logits_are_the_models_own(name):
    model = hugging_face(name)
    seen = adapter_of(model).on(model, TOKENS[:, :-1])
    model.config._attn_implementation = "eager"
    with torch.no_grad():
        out = model(torch.as_tensor(TOKENS[:, :-1]), output_attentions=True)
    np.testing.assert_allclose(seen.attention, np.stack([array(one[:, :, -1]) for one in out.attentions]), atol=1e-12)
    np.testing.assert_allclose(seen.logits, array(out.logits[:, -1]), atol=1e-12)
    assert "rotary positions" in adapter_of(model).parts(model)


def test_what_is_more_than_a_softmax_of_products_has_no_matrices():
    model = Hooked()
    model.slope = 0.3
    assert adapter_of(model).matrices(model, TOKENS[:2, :-1]) == []


def test_output_of_a_head_is_that_of_its_value_and_output_matrices():
    """Y of a model that nothing is added to: attention on values, through the output matrix, decoded."""
    model = Hooked()
    [heads] = adapter_of(model).matrices(model, TOKENS[:2])
    context = TOKENS[:, :-1]
    seen = adapter_of(model).on(model, context)
    total = model.W_E[context[:, -1]] @ model.W_U
    found = array(total)
    for i, of in enumerate(heads):
        mixed = np.einsum("nt,ntd->nd", seen.attention[0, :, i], of.embedding[context])
        found = found + mixed @ of.value @ of.output @ of.unembedding.T
    np.testing.assert_allclose(found, seen.logits, rtol=1e-10)


def test_values_of_llama_are_those_of_the_group():
    model = hugging_face("Llama", num_hidden_layers=1)
    x = torch.randn(5, 8, dtype=torch.float64)
    layer = model.model.layers[0].self_attn
    values = array(layer.v_proj(x)).reshape(5, 2, 2).repeat(2, axis=1)
    mixed = array(layer.o_proj(torch.as_tensor(values.reshape(5, 8))))
    [heads] = adapter_of(model).matrices(model, TOKENS[:2, :-1])
    np.testing.assert_allclose(sum(array(x) @ of.value @ of.output for of in heads), mixed, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "changes", "some", "none"),
    [
        ("Llama", {}, ["a residual link", "RMSNorm", "rotary positions", "grouped queries",
                       "a gated feed-forward part"], ["a sliding window"]),
        ("Llama", {"num_key_value_heads": 4}, ["RMSNorm"], ["grouped queries"]),
        ("Mistral", {"sliding_window": 5}, ["a sliding window of 5 tokens"], ["experts"]),
        ("Mistral", {"sliding_window": None}, ["rotary positions"], ["a sliding window"]),
        ("Qwen2", {}, ["grouped queries"], ["a sliding window"]),
        ("Qwen3", {"head_dim": 2}, ["norms of queries and keys"], ["experts"]),
        ("Mixtral", {"num_local_experts": 2}, ["a mixture of experts"], ["feed-forward"]),
        ("Gemma2", {"head_dim": 2}, ["a cap on logits", "a sliding window of 4096 tokens"], ["experts"]),
        ("GPTNeoX", {}, ["LayerNorm", "rotary positions"], ["grouped queries"]),
    ],
)  # fmt: skip
def test_parts_are_named(name, changes, some, none):
    model = hugging_face(name, **changes).float()
    parts = yz.watch(model, TOKENS).recording.facts["parts"]
    assert set(some) <= set(parts) and not [part for part in parts for word in none if word in part]


def test_an_older_transformers_is_refused(monkeypatch):
    model = hugging_face("Llama")
    monkeypatch.setattr(metadata, "version", lambda name: "4.45.2")
    with pytest.raises(ValueError, match=r"`transformers` must be of version 4\.46 or later, but got 4\.45\.2"):
        yz.watch(model, TOKENS)


def test_a_sliding_window_is_seen():
    model = hugging_face("Mistral", sliding_window=2, num_hidden_layers=1)
    seen = adapter_of(model).on(model, TOKENS[:, :-1]).attention
    assert (seen[..., :-2] == 0).all() and (seen[..., -2:] > 0).all()


def test_rates_are_not_known_where_rows_or_logits_are_scaled():
    for name, changes in (("Gemma2", {"head_dim": 2}), ("Granite", {"logits_scaling": 2.0}),
                          ("Granite", {"embedding_multiplier": 3.0})):  # fmt: skip
        model = hugging_face(name, **changes)
        assert adapter_of(model).matrices(model, TOKENS[:2, :-1]) == []
    data = yz.watch(model, TOKENS, optimizer=torch.optim.SGD(model.parameters(), lr=0.1)).recording.dataset
    assert data["eta_z"].isnull().all()


def test_layers_that_are_unlike_are_refused():
    model = hugging_face("Llama", num_hidden_layers=3)
    layers = model.model.layers
    layers[1].self_attn.k_proj = torch.nn.Linear(8, 8, bias=False)
    with pytest.raises(ValueError, match=r"`model` must have one attention like Llama's .* 3 of 2 kinds in 3 layers"):
        yz.watch(model, TOKENS)
    layers[1].self_attn = torch.nn.Identity()
    with pytest.raises(ValueError, match=r"2 of 1 kinds in 3 layers"):
        yz.watch(model, TOKENS)
    with pytest.raises(ValueError, match=r"none called blocks\.1\.attn\.hook_pattern"):
        model = Hooked(layers=2)
        del model.hook_dict["blocks.1.attn.hook_pattern"]
        yz.watch(model, TOKENS)


@pytest.mark.parametrize("name", ["Llama", "hooks"])
def test_what_stands_still_has_no_rate(name):
    model = hugging_face("Llama", num_hidden_layers=1) if name == "Llama" else Hooked()
    named = dict(model.named_parameters())
    for key, weight in named.items():
        if key.endswith(("W_K", "k_proj.weight", "W_O", "o_proj.weight")):
            weight.requires_grad_(False)
    with torch.no_grad():
        [heads] = adapter_of(model).matrices(model, TOKENS[:2, :-1])
    assert {of.still for of in heads} == {frozenset({"key", "output"})}
    assert induced(heads[0], 0.0, TOKENS[0], TOKENS[0]) == (0.0, 0.0)


def test_each_matrix_has_the_rate_of_its_group():
    """A key that is moved half as fast gives half of its term."""
    model = hugging_face("Llama", num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1)
    key = model.model.layers[0].self_attn.k_proj.weight
    rest = [one for one in model.parameters() if one is not key]
    found = {}
    for rate in (0.0, 0.1, 0.2):
        optimizer = torch.optim.SGD([{"params": [key], "lr": rate}, {"params": rest, "lr": 0.2}])
        found[rate] = float(yz.watch(model, TOKENS, optimizer=optimizer).recording.dataset["eta_z"].squeeze())
    assert found[0.0] < found[0.1] and found[0.1] == pytest.approx((found[0.0] + found[0.2]) / 2, rel=1e-9)


def train(model, watched=None):
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()

    def run():
        for _ in range(3):
            optimizer.zero_grad()
            out = model(torch.as_tensor(TOKENS[:, :-1]))
            logits = getattr(out, "logits", out)
            torch.nn.functional.cross_entropy(logits[:, -1], torch.as_tensor(TOKENS[:, -1])).backward()
            optimizer.step()

    if watched is None:
        run()
    else:
        with watched:
            run()
    return [array(one).copy() for one in model.parameters()]


@pytest.mark.parametrize("make", [lambda: hugging_face("Llama", attention_dropout=0.3), Hooked], ids=["Llama", "hooks"])
def test_weights_are_the_same_to_the_bit_with_a_recorder(make):
    alone, model = train(make()), make()
    recorder = yz.watch(model, TOKENS)
    beside = train(model, recorder)
    assert all(np.array_equal(one, other) for one, other in zip(alone, beside, strict=True))
    assert recorder.recording.steps.tolist() == [0, 1, 2, 3]
    assert (recorder.recording.dataset[["eta_y", "eta_z"]].isel(step=slice(1, None)).to_array() > 0).all()


# TransformerLens itself, of either form


LENS = {
    "n_layers": 2, "d_model": 8, "d_head": 2, "n_heads": 4, "n_ctx": 16, "d_vocab": 11, "d_mlp": 12, "act_fn": "gelu",
    "seed": 0,
}  # fmt: skip


def lens(**changes):
    """A model of TransformerLens, built from a configuration, with hooks of its own or as a bridge."""
    library = pytest.importorskip("transformer_lens")
    if int(metadata.version("transformer_lens").split(".")[0]) < 4:
        with pytest.warns(DeprecationWarning, match="HookedTransformer"):  # gone from 4.0 on
            return library.HookedTransformer(library.HookedTransformerConfig(**LENS | changes)).double()
    native = pytest.importorskip("transformer_lens.model_bridge.sources.native")
    return native.boot(LENS | {"normalization_type": "LN"} | changes).double()


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"normalization_type": "LN"}, ["a residual link", "LayerNorm", "a feed-forward part"]),
        ({"normalization_type": "RMS", "positional_embedding_type": "rotary", "rotary_dim": 2, "gated_mlp": True,
          "n_key_value_heads": 2},
         ["a residual link", "RMSNorm", "rotary positions", "grouped queries", "a gated feed-forward part"]),
        ({"normalization_type": None, "attn_only": True}, ["a residual link"]),
    ],
)  # fmt: skip
def test_a_model_of_transformer_lens_is_seen_as_its_cache_has_it(changes, parts):
    model = lens(**changes)
    recorder = yz.watch(model, TOKENS, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    assert recorder.recording.facts["parts"] == parts
    turned_unseen = "rotary positions" in parts and type(model).__name__ == "TransformerBridge"
    assert (recorder.recording.dataset["eta_z"] > 0).all() != turned_unseen
    with torch.no_grad():
        logits, cache = model.run_with_cache(torch.as_tensor(TOKENS[:, :-1]))
    seen = recorder.adapter.on(model, TOKENS[:, :-1])
    own = np.stack([array(cache[f"blocks.{i}.attn.hook_pattern"][:, :, -1]) for i in range(2)])
    np.testing.assert_allclose(seen.attention, own, atol=1e-12)
    np.testing.assert_allclose(seen.logits, array(logits[:, -1]), atol=1e-12)


@pytest.mark.parametrize("changes", [{}, {"n_key_value_heads": 2}, {"attn_scale": 5.0}, {"use_attn_scale": False}])
def test_matrices_of_transformer_lens_give_its_attention_logits(changes):
    model = lens(normalization_type=None, attn_only=True, n_layers=1, **changes)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            weight.mul_(0.0 if "b_" in key or "bias" in key or "pos" in key else 5.0)
    context = TOKENS[:, :-1]
    with torch.no_grad():
        cache = model.run_with_cache(torch.as_tensor(context))[1]
    own = array(cache["blocks.0.attn.hook_pattern"][:, :, -1])
    for i, of in enumerate(adapter_of(model).matrices(model, context)[0]):
        e = of.embedding[context]
        z = np.einsum("nd,ntd->nt", e[:, -1] @ of.query @ of.key.T, e) / of.scale
        np.testing.assert_allclose(own[:, i], softmax(z), rtol=1e-6, atol=1e-9)
