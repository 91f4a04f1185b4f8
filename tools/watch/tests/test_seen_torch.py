"""Models of PyTorch that are read as they are, or refused in one line: axes, padding, layers, answers, sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yzflow_watch.recording import Recording

import yzflow as yz

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

TOKENS = np.random.default_rng(0).integers(0, 12, (9, 9))


def array(tensor):
    return tensor.detach().cpu().double().numpy()


class Layers(torch.nn.Module):
    """Layers of attention with positions and residual links.

    ``axes``: "batch" for modules with sequences first; "inside" for modules with positions first in a model that turns
    its input; "first" for a model that takes positions first.
    """

    def __init__(self, heads=(2,), axes="batch", size=12, length=16, **options):
        super().__init__()
        self.axes = axes
        self.embedding = torch.nn.Embedding(size, 8)
        self.places = torch.nn.Parameter(torch.randn(length, 8))
        self.layers = torch.nn.ModuleList(
            torch.nn.MultiheadAttention(8, number, batch_first=axes == "batch", **options) for number in heads
        )
        self.decoder = torch.nn.Linear(8, size)

    def forward(self, tokens):
        x = self.embedding(tokens.T if self.axes == "inside" else tokens)
        of_time = 1 if self.axes == "batch" else 0
        length = x.shape[of_time]
        places = self.places[:length]
        x = x + (places if of_time else places[:, None])
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        for layer in self.layers:
            x = x + layer(x, x, x, attn_mask=mask, need_weights=False)[0]
        return self.decoder(x.transpose(0, 1) if self.axes == "inside" else x)


def by_hand(model, tokens):
    """Attention (layers, n, heads, T) and logits (n, V) of `Layers`, from its weights alone."""
    x = array(model.embedding.weight)[tokens] + array(model.places)[: tokens.shape[1]]
    found = []
    for layer in model.layers:
        weights = array(layer.in_proj_weight).reshape(3, 8, 8)
        q, k, v = (x @ one.T + bias for one, bias in zip(weights, array(layer.in_proj_bias).reshape(3, 8), strict=True))
        q, k, v = (one.reshape(*one.shape[:2], layer.num_heads, -1).swapaxes(1, 2) for one in (q, k, v))
        scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
        scores[..., np.triu_indices(x.shape[1], 1)[0], np.triu_indices(x.shape[1], 1)[1]] = -np.inf
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = (shares @ v).swapaxes(1, 2).reshape(x.shape)
        x = x + mixed @ array(layer.out_proj.weight).T + array(layer.out_proj.bias)
        found.append(shares[:, :, -1])
    return np.stack(found), x[:, -1] @ array(model.decoder.weight).T + array(model.decoder.bias)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 12),
    length=st.integers(3, 12),
    heads=st.sampled_from([1, 2, 4, 8]),
    layers=st.integers(1, 3),
    axes=st.sampled_from(["batch", "inside", "first"]),
    seed=st.integers(0, 100),
)
@pytest.mark.filterwarnings("ignore:the model takes sequences as")
def test_attention_is_that_of_an_independent_computation(n, length, heads, layers, axes, seed):
    """Whichever axis a module has first, and where there are as many sequences as positions, too."""
    torch.manual_seed(seed)
    model = Layers((heads,) * layers, axes)
    for size in (n, length):  # as many as positions
        tokens = np.random.default_rng(seed).integers(0, 12, (size, length + 1))
        recorder = yz.watch(model, tokens)
        seen = recorder.adapter.on(model, tokens[:, :-1])
        attention, logits = by_hand(model, tokens[:, :-1])
        np.testing.assert_allclose(seen.attention, attention, atol=1e-5)
        np.testing.assert_allclose(seen.logits, logits, atol=1e-4)


def test_a_model_with_positions_first_is_asked_so_and_says_it():
    """An encoder as PyTorch makes it by default: attention between sequences if it is given sequences first."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    model = torch.nn.Sequential(torch.nn.Embedding(12, 8), layer, torch.nn.Linear(8, 12))
    with pytest.warns(UserWarning, match=r"takes sequences as \(T, n\).*batch_first=False"):
        recorder = yz.watch(model, TOKENS[:8], optimizer=torch.optim.SGD(model.parameters(), lr=0.1))  # 8 of 8
    model.eval()
    alone = [array(model(torch.as_tensor(row[:-1, None])))[-1, 0] for row in TOKENS[:8]]
    np.testing.assert_allclose(recorder.adapter.on(model, TOKENS[:8, :-1]).logits, alone, atol=1e-5)
    assert np.isfinite(recorder.recording.dataset["eta_z"]).all()
    assert recorder.recording.facts["parts"] == ["a residual link", "LayerNorm", "a feed-forward part"]


class Mixed(Layers):
    """Each sequence is told what the others are."""

    def forward(self, tokens):
        found = super().forward(tokens)
        return found - found.mean(dim=0)


class Normed(Layers):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(12)

    def forward(self, tokens):
        return self.norm(super().forward(tokens).transpose(1, 2)).transpose(1, 2)


def test_a_model_that_mixes_sequences_is_refused_and_batch_norm_is_not():
    with pytest.raises(ValueError, match="`model` must answer on each sequence by itself, or come with `attention`"):
        yz.watch(Mixed(), TOKENS)
    model = Normed()
    assert yz.watch(model, TOKENS).recording.facts["parts"][-1] == "BatchNorm1d" and model.training


# Layers


def changed(model, forward):
    """The model with another forward, which is given it and tokens."""
    return type("Changed", (type(model),), {"forward": forward})  # type: ignore[misc]


def test_layers_that_are_not_called_are_left_out_and_those_called_twice_are_two():
    torch.manual_seed(0)
    model = Layers((2, 2, 2))
    model.layers[1].requires_grad_(False)

    class Order(Layers):
        order = (0, 2, 0)

        def forward(self, tokens):
            x = self.embedding(tokens) + self.places[: tokens.shape[1]]
            mask = torch.triu(torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool), 1)
            for number in self.order:
                x = x + self.layers[number](x, x, x, attn_mask=mask)[0]
            return self.decoder(x)

    model.__class__ = Order
    with pytest.warns(UserWarning, match=r"the model does not call 'layers\.1': left out of the recording"):
        recorder = yz.watch(model, TOKENS, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    data = recorder.recording.dataset
    assert data.sizes["layer"] == 3
    rates = data["eta_z"].values[0]
    assert np.isfinite(rates).all() and (rates[0] == rates[2]).all() and (rates[0] != rates[1]).all()
    model.__class__ = Layers
    plain = yz.watch(model, TOKENS, optimizer=torch.optim.SGD(model.parameters(), lr=0.1)).recording.dataset
    np.testing.assert_array_equal(rates[:2], plain["eta_z"].values[0, [0, 2]])
    np.testing.assert_array_equal(data["attention"][:, 0], plain["attention"][:, 0])


class Never(Layers):
    def forward(self, tokens):
        return self.decoder(self.embedding(tokens))


def tupled(entries):
    class Tupled(Layers):
        def forward(self, tokens):
            return entries(super().forward(tokens))

    return Tupled()


REFUSED = {
    "unlike heads": (
        lambda: Layers((2, 4)),
        r"as many heads each, .*'layers\.0', call 1 .*'layers\.1', call 2 \(2, 4,",
    ),
    "never called": (lambda: Never(), "`model` must call its torch.nn.MultiheadAttention, or come with"),
    "bias_kv": (lambda: Layers((2, 2), add_bias_kv=True), r"positions of sequences alone.* add_bias_kv in 'layers\.0'"),
    "zero_attn": (lambda: Layers((2,), add_zero_attn=True), r"but got add_zero_attn in 'layers\.0'"),
    "two answers": (lambda: tupled(lambda out: (out, out)), "`logits` must be given as a function"),
    "no logits": (lambda: tupled(lambda out: {"loss": out.sum()}), "have 'logits', but got a dict of loss"),
    "turned logits": (
        lambda: tupled(lambda out: out.transpose(1, 2)),
        r"`logits` must give an array \(2, 8, next tokens",
    ),
    "fewer tokens": (
        lambda: Layers(size=11),
        "`tokens` must be below 11, the size of the model's 'embedding', but got 11",
    ),
    "fewer positions": (
        lambda: Layers(length=5),
        r"`model` must take sequences \(2, 8\), but got an error, RuntimeError",
    ),
    "no weights": (lambda: Layers().to("meta"), "`model` must have weights, but got weights on the device 'meta'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_line(name):
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=message) as refused:
        yz.watch(make(), TOKENS)
    assert "\n" not in str(refused.value)


READ = {
    "a tuple": lambda out: (out, None),
    "a loss before": lambda out: (out.sum(), out),
    "a dict": lambda out: {"loss": out.sum(), "logits": out},
    "of the last": lambda out: out[:, -1],
    "of the last, with its axis": lambda out: out[:, -1:],
}


@pytest.mark.parametrize("name", READ)
def test_answers_of_other_kinds_are_read(name):
    torch.manual_seed(0)
    model = tupled(READ[name])
    recorder = yz.watch(model, TOKENS, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    seen = recorder.adapter.on(model, TOKENS[:, :-1])
    np.testing.assert_allclose(seen.logits, by_hand(model, TOKENS[:, :-1])[1], atol=1e-5)
    assert np.isfinite(recorder.recording.dataset["eta_z"]).all()


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float64"])
def test_models_of_other_precisions(kind):
    torch.manual_seed(0)
    model = Layers((2, 2)).to(getattr(torch, kind))
    seen = yz.watch(model, TOKENS).adapter.on(model, TOKENS[:, :-1])
    attention, _ = by_hand(model, TOKENS[:, :-1])
    rounding = {"bfloat16": 0.03, "float16": 4e-3, "float64": 1e-12}[kind]
    np.testing.assert_allclose(seen.attention, attention, atol=rounding)


@pytest.mark.filterwarnings("ignore:attention on the context is not known")
def test_a_training_that_ends_in_nan_is_recorded(tmp_path):
    torch.manual_seed(0)
    model = Layers((2, 2))
    recorder = yz.watch(model, TOKENS, path=tmp_path / "run.nc")
    with recorder:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e30)
        for _ in range(3):
            loss = torch.nn.functional.cross_entropy(
                model(torch.as_tensor(TOKENS[:, :-1]))[:, -1], torch.as_tensor(TOKENS[:, -1])
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    data = Recording.load(tmp_path / "run.nc").dataset
    assert data["entropy"][0].notnull().all() and data["entropy"][-1].isnull().all()
    assert data["by_token"][-1].isnull().all() and data["loss"][-1].isnull().all()


# Models of transformers


def of_transformers(name, **options):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocab_size": 12, "bos_token_id": 0, "eos_token_id": 0} | options
    if name == "GPT2":
        config = transformers.GPT2Config(n_embd=8, n_layer=2, n_head=2, n_positions=16, initializer_range=0.5, **sizes)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.GPTNeoXConfig(
        hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, initializer_range=0.5, **sizes
    )
    return transformers.GPTNeoXForCausalLM(config)


@pytest.mark.parametrize("name", ["GPT2", "GPTNeoX"])
@pytest.mark.parametrize("options", [{}, {"return_dict": False}])
def test_models_of_transformers_in_half_precision_and_with_tuples(name, options):
    model = of_transformers(name, **options).to(torch.bfloat16)
    before = model.config._attn_implementation, model.config.return_dict
    recorder = yz.watch(model, TOKENS)
    assert (model.config._attn_implementation, model.config.return_dict) == before
    seen = recorder.adapter.on(model, TOKENS[:, :-1])
    model.config.return_dict = True
    model.eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(torch.as_tensor(TOKENS[:, :-1]), output_attentions=True, return_dict=True)
    for layer, own in zip(seen.attention, out.attentions, strict=True):
        np.testing.assert_array_equal(layer, array(own[:, :, -1]))
    np.testing.assert_array_equal(seen.logits, array(out.logits[:, -1]))


def test_a_model_that_keeps_no_attention_is_told_the_cure(monkeypatch):
    model = of_transformers("GPT2", attn_implementation="sdpa")
    monkeypatch.setattr(type(model), "set_attn_implementation", lambda self, name: None)
    with pytest.raises(ValueError, match="attn_implementation='eager'"):
        yz.watch(model, TOKENS)


def test_tokens_and_positions_that_a_model_has_not():
    model = of_transformers("GPT2")
    with pytest.raises(
        ValueError, match=r"`tokens` must be below 12, the size of the model's 'transformer.wte', but g"
    ):
        yz.watch(model, TOKENS + 1)
    with pytest.raises(ValueError, match=r"`tokens` must have at most 16 columns and the next token, .* but got 17"):
        yz.watch(model, np.tile(TOKENS, 2))


# Padding


def padded(lengths, seed=0):
    """Tokens padded on the left with 11 to 8 before the next token, their mask, and positions."""
    tokens = np.random.default_rng(seed).integers(0, 10, (len(lengths), 9))
    mask = np.arange(8) >= 8 - np.asarray(lengths)[:, None]
    tokens[:, :-1][~mask] = 11
    return tokens, mask.astype(np.int64), np.maximum(mask.cumsum(axis=1) - 1, 0)


@pytest.mark.parametrize("name", ["GPT2", "GPTNeoX"])
def test_padding_is_left_out_as_the_training_does(name):
    """Each padded sequence has the attention and the logits of the same one without padding."""
    lengths = [3, 8, 5, 4, 6, 8, 2, 7]
    tokens, mask, positions = padded(lengths)
    model = of_transformers(name)
    inputs = {"attention_mask": mask, "position_ids": torch.as_tensor(positions)}
    recorder = yz.watch(model, tokens, inputs=inputs, n_classes=3)
    data, seen = (
        recorder.recording.dataset,
        recorder.adapter.on(model, tokens[:, :-1], {"attention_mask": mask, "position_ids": positions}),
    )
    assert 11 not in data["token"].values
    entropies, frequencies = [], np.zeros((3, data.sizes["token"]))
    for row, (length, sequence) in enumerate(zip(lengths, tokens, strict=True)):
        alone = recorder.adapter.on(model, sequence[None, 8 - length : 8])
        np.testing.assert_allclose(seen.attention[:, row, :, 8 - length :], alone.attention[:, 0], atol=1e-5)
        np.testing.assert_allclose(seen.logits[row], alone.logits[0], atol=1e-4)
        shares = alone.attention[:, 0, :, :-1] / alone.attention[:, 0, :, :-1].sum(axis=-1, keepdims=True)
        entropies.append(-(shares * np.log(shares)).sum(axis=-1))
        here = (sequence[8 - length : 7, None] == data["token"].values).mean(axis=0)
        frequencies += (data["next_token"].values == sequence[-1])[:, None] * here
    np.testing.assert_allclose(data["entropy"][0], np.mean(entropies, axis=0), atol=1e-5)
    counts = recorder.recording.facts["counts"]
    np.testing.assert_allclose(data["share"], frequencies / np.reshape(counts, (3, 1)), atol=1e-12)
    assert recorder.recording.facts["probe"] != yz.watch(model, tokens, n_classes=3).recording.facts["probe"]


def test_measures_of_padded_uniform_attention():
    """Weights of zero, on sequences of one number of tokens each: as without padding."""
    tokens, mask, positions = padded([4] * 12)
    model = of_transformers("GPT2")
    with torch.no_grad():
        for block in model.transformer.h:
            block.attn.c_attn.weight.zero_()
    recorded = [
        yz.watch(model, given, inputs=inputs).recording.dataset
        for given, inputs in (
            (tokens, {"attention_mask": mask, "position_ids": positions}),
            (tokens[:, 4:], None),
        )
    ]
    for name in ("attention", "gain", "entropy", "by_token", "share", "loss"):
        np.testing.assert_allclose(recorded[0][name], recorded[1][name], atol=1e-6, err_msg=name)
    assert float(recorded[0]["moved_by_order"].max()) < 1e-6 and float(recorded[0]["by_token"].min()) == 1


def test_a_recording_goes_on_with_the_same_inputs_alone(tmp_path):
    tokens, mask, positions = padded([3, 8, 5, 4])
    model, path = of_transformers("GPT2"), tmp_path / "run.nc"
    inputs = {"attention_mask": mask, "position_ids": positions}
    yz.watch(model, tokens, inputs=inputs, path=path)
    assert yz.watch(model, tokens, inputs=inputs, path=path).recording.steps.tolist() == [0]
    for other in (None, {"attention_mask": mask}, inputs | {"position_ids": positions + 1}):
        with pytest.raises(
            ValueError, match="`path` must hold a recording of the same model on the same tokens and inputs"
        ):
            yz.watch(model, tokens, inputs=other, path=path)


def test_padding_of_the_model_without_inputs_is_asked_about():
    tokens, mask, _ = padded([3, 8, 5, 4])
    model = of_transformers("GPT2", pad_token_id=11)
    with pytest.warns(UserWarning, match=r"`tokens` hold 11, the padding of the model: .*inputs="):
        yz.watch(model, tokens)
    yz.watch(model, tokens, inputs={"attention_mask": mask})


class Masked(Layers):
    """A model with PyTorch's own padding mask, which is true where nothing is to be seen, or one that forgets it."""

    forgets = False

    def forward(self, tokens, src_key_padding_mask=None):
        x = self.embedding(tokens)
        mask = None if self.forgets else src_key_padding_mask
        return self.decoder(self.layers[0](x, x, x, key_padding_mask=mask)[0])


@pytest.mark.parametrize("turn", [lambda mask: mask == 0, lambda mask: np.where(mask == 0, -np.inf, 0.0)])
def test_padding_masks_of_pytorch_true_or_added(turn):
    tokens, mask, _ = padded([3, 8, 5, 4])
    model = Masked()
    recorder = yz.watch(model, tokens, inputs={"src_key_padding_mask": turn(mask)},
                        optimizer=torch.optim.SGD(model.parameters(), lr=0.1))  # fmt: skip
    assert 11 not in recorder.recording.dataset["token"].values
    model.forgets = True
    with pytest.raises(ValueError, match=r"`inputs` must reach the model, .* but got 0\.\d+ of attention on it"):
        yz.watch(model, tokens, inputs={"src_key_padding_mask": turn(mask)})


def test_inputs_reach_a_model_that_functions_look_at():
    tokens, mask, _ = padded([3, 8, 5, 4])
    model = of_transformers("GPT2", attn_implementation="eager")
    looks = {
        "attention": lambda model, sequences: model(sequences, output_attentions=True),
        "logits": lambda model, sequences: model(sequences),
    }
    own = yz.watch(model, tokens, inputs={"attention_mask": mask}, **looks).recording.dataset
    known = yz.watch(model, tokens, inputs={"attention_mask": mask}).recording.dataset
    np.testing.assert_allclose(own["attention"], known["attention"], atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda mask: {"attention_mask": mask[:2]}, r"`inputs\['attention_mask'\]` must be numbers with a row for"),
        (lambda mask: {"attention_mask": mask[:, ::-1]}, "must leave the last position, .* but got another row 0"),
        (lambda mask: {"attention_mask": np.eye(8)[[7] * 4]}, "and one before it: pad on the left"),
        (lambda mask: {"attention_mask": np.ones((4, 9))}, "must have 8 columns, none for the next token"),
        (lambda mask: {"no_such": mask}, "`inputs` must name arguments of the model: input_ids, .* but got 'no_such'"),
        (lambda mask: [mask], "`inputs` must"),
    ],
)  # fmt: skip
def test_inputs_that_are_wrong_are_refused(change, message):
    tokens, mask, _ = padded([3, 8, 5, 4])
    with pytest.raises(ValueError, match=message):
        yz.watch(of_transformers("GPT2"), tokens, inputs=change(mask))


def test_inputs_of_what_is_no_module():
    with pytest.raises(ValueError, match="`inputs` must come with a module of PyTorch's"):
        yz.watch(
            object(), TOKENS, attention=lambda *given: 0, logits=lambda *given: 0, inputs={"attention_mask": TOKENS}
        )
