"""Trainings of PyTorch's, with a recorder beside them or without, and all that they leave."""

import contextlib
import random

import numpy as np
import pytest
from yzflow_watch.untouched import unwrapped

torch = pytest.importorskip("torch")

LEGACY = np.random  # whose one generator a model may draw from
TOKENS = np.random.default_rng(0).integers(0, 12, (20, 9))


class Small(torch.nn.Module):
    """One layer of multi-head attention with dropout, what ``between`` is, and a decoder."""

    def __init__(self, between=None):
        super().__init__()
        self.embedding = torch.nn.Embedding(12, 8)
        self.attention = torch.nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
        self.between = between or torch.nn.Identity()
        self.decoder = torch.nn.Linear(8, 12)

    def forward(self, tokens):
        x = self.embedding(tokens)
        mask = torch.triu(torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool), 1)
        return self.decoder(self.between(self.attention(x, x, x, need_weights=False, attn_mask=mask)[0]))


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(12, 8)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2)
        self.decoder = torch.nn.Linear(8, 12)

    def forward(self, tokens):
        return self.decoder(self.layers(self.embedding(tokens)))


class Averages(torch.nn.Module):
    """Running means and counts that move in evaluation mode, too; some behind autograd's back, or as new objects."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("last", None)
        self.norm = torch.nn.BatchNorm1d(8)
        self.cache = torch.zeros(8)  # a plain attribute

    def forward(self, x):
        self.mean.data.mul_(0.9).add_(0.1 * x.detach().mean(dim=(0, 1)))
        self.calls += 1
        self.cache += x.detach()[0, 0]
        self.seen = x.shape
        self.last = x.detach()[0, 0]
        return (
            self.norm(x.transpose(1, 2)).transpose(1, 2) + self.mean / 100 + self.cache / 1e5
        )  # of other sequences, too, but little


class Drawn(torch.nn.Module):
    """A layer that draws random numbers of all three kinds in every mode."""

    def forward(self, x):
        return x + 1e-3 * (torch.randn(()) + LEGACY.normal() + random.random())


def hugging_face(kind):
    transformers = pytest.importorskip("transformers")
    if kind == "GPT2":
        sizes = {"n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 16}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=12, **sizes, **OWN_TOKENS))
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    dropout = {"hidden_dropout": 0.1, "attention_dropout": 0.1}
    return transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(vocab_size=12, **sizes, **dropout, **OWN_TOKENS))


OWN_TOKENS = {"bos_token_id": 0, "eos_token_id": 0}


def by_hand(model, sequences):
    """Attention of a `Small`, asked through its own parts."""
    x = model.embedding(sequences)
    mask = torch.triu(torch.ones(sequences.shape[1], sequences.shape[1], dtype=torch.bool), 1)
    return model.attention(x, x, x, attn_mask=mask, average_attn_weights=False)[1]


def logits(model, sequences):
    return model(sequences)


MODELS = {
    "MultiheadAttention": (Small, {}),
    "Encoder": (Encoder, {}),
    "GPT2": (lambda: hugging_face("GPT2"), {}),
    "GPTNeoX": (lambda: hugging_face("GPTNeoX"), {}),
    "functions": (Small, {"attention": by_hand, "logits": logits}),
}


def made(make=Small):
    """The same model at each call."""
    torch.manual_seed(0)
    return make().train()


def train(
    model, watched=None, *, steps=4, called=None, after=None, accumulate=1, autocast=False, optimizer=None, skipped=None
):
    """All that a training leaves: weights, their slopes, buffers, the optimizer's state, modes and random states.

    With ``skipped`` there is a scaler, which skips that step, as its gradient is infinite.
    """
    torch.manual_seed(1)
    LEGACY.seed(2)
    random.seed(3)
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.01)
    rng, inside, called = np.random.default_rng(5), unwrapped(model), model if called is None else called
    kind = next(inside.parameters()).device.type
    scaler = torch.amp.GradScaler(kind, enabled=skipped is not None)
    with watched or contextlib.nullcontext():
        for number in range(steps):
            optimizer.zero_grad()
            for _ in range(accumulate):
                batch = torch.as_tensor(rng.integers(0, 12, (7, 9)))
                with torch.autocast(kind, torch.bfloat16, enabled=autocast):
                    out = called(batch[:, :-1])
                    scores = getattr(out, "logits", out)[:, -1]
                    loss = torch.nn.functional.cross_entropy(scores, batch[:, -1])
                scaler.scale(loss * torch.inf if number == skipped else loss).backward()
            scaler.step(optimizer)
            scaler.update()
            if after is not None:
                after(number)
    tensors = [*inside.parameters(), *(one.grad for one in inside.parameters()), *inside.buffers()]
    tensors += [one for state in optimizer.state.values() for one in state.values()]
    arrays = [np.asarray(torch.as_tensor(one).detach().cpu().clone()) for one in tensors if one is not None]
    modes = [module.training for module in inside.modules()]
    slopes = [one.requires_grad for one in inside.parameters()]
    return arrays, [modes, slopes, random.getstate(), *LEGACY.get_state()[2:]], torch.get_rng_state().numpy()


def assert_same(one, other):
    assert len(one[0]) == len(other[0]) and one[1] == other[1]
    for first, second in zip((*one[0], one[2]), (*other[0], other[2]), strict=True):
        assert first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def counted(recorder):
    return recorder.recording.steps.tolist(), recorder.recording.facts["counted"]
