"""Models of the bench, the sequences that they are trained on, and a training that is watched. PyTorch is needed."""

from __future__ import annotations

import functools
import itertools
import runpy
from typing import Any, NamedTuple

import numpy as np
import torch
from yzflow_watch.recording import Recording

import yzflow as yz
from dynamics import SequenceClasses
from dynamics.data.text import TextCorpus
from yzflow.papers.scan_and_snap.settings import single_common_token
from yzflow_studies import CLONE
from yzflow_studies.which_theory.drawing import SIZES

FERRY = CLONE / "studies" / "yzflow_studies" / "real_text" / "small_text.txt"
LETTERS, LINES = 40, 4000  # letters and signs that keep a number of their own, and lines of a long text
PROBE = {True: 32, False: 256}  # sequences that a model is looked at with: long ones, short ones


def population(given: dict[str, Any]) -> SequenceClasses:
    """Classes of the numbers that `drawing.draw` gives: frequencies fall by ``decay`` from token to token.

    Of the tokens of the other classes a class has a share ``leak``, each as frequent as there. The n-th next token has
    the weight 1/n where weights fall.
    """
    if "overlap" in given:
        return single_common_token(given["classes"], given["vocabulary"], given["overlap"])
    n, own, common = given["classes"], given["distinct"], given["common"]
    shares = np.zeros((n, common + n * own))
    falling = given["decay"] ** np.arange(max(own, common))
    shares[:, :common] = given["common_share"] * falling[:common] / falling[:common].sum()
    for k in range(n):
        shares[k, common + k * own : common + (k + 1) * own] = (
            (1 - given["common_share"]) * falling[:own] / falling[:own].sum()
        )
    shares = (1 - given["leak"]) * shares + given["leak"] * shares.mean(axis=0)
    weights = 1 / np.arange(1, n + 1) if given["weights"] == "falling" else np.ones(n)
    return SequenceClasses(
        shares,
        np.arange(n) % min(given["queries"], n),
        vocab_size=max(given.get("vocabulary", n), n),
        class_weights=weights / weights.sum(),
    )


class Population:
    """Sequences of classes: tokens of the context first, then queries; next tokens count from zero.

    With ``shuffled`` next tokens are dealt out anew among the sequences, so that they depend on nothing.
    """

    def __init__(self, classes: SequenceClasses, length: int, *, shuffled: bool = False) -> None:
        self.shares = classes.probabilities.toarray()
        self.rising = self.shares.cumsum(axis=1)
        self.rising[:, -1] = 1.0
        self.weights, self.query = np.asarray(classes.class_weights), np.asarray(classes.query)
        self.length, self.shuffled = length, shuffled
        self.n_tokens = self.shares.shape[1]
        self.n_queries, self.n_next = int(self.query.max()) + 1, classes.vocab_size

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """(n, T + 1) sequences, the query before the next token."""
        which = rng.choice(len(self.weights), n, p=self.weights)
        rolled = rng.random((n, self.length - 1))
        context = np.empty(rolled.shape, dtype=np.int64)
        for k in np.unique(which):
            context[which == k] = np.searchsorted(self.rising[k], rolled[which == k], side="right")
        following = rng.permutation(which) if self.shuffled else which
        return np.column_stack([context, self.n_tokens + self.query[which], following])


@functools.cache
def letters(text: str) -> np.ndarray:
    """Letters and signs of a text, numbered by frequency."""
    if text == "ferry":
        lines = FERRY.read_text(encoding="utf-8").splitlines()
    else:
        lines = list(
            itertools.islice(runpy.run_path(str(CLONE / "examples" / "public_texts.py"))["TEXTS"][text](), LINES)
        )
    return np.asarray(TextCorpus(lines, vocab_size=LETTERS, tokenizer=list).tokens, dtype=np.int64)


class Text:
    """Windows of a text; ``shuffled`` puts its letters in a drawn order, so that none depends on those before."""

    def __init__(self, tokens: np.ndarray, length: int, *, shuffled: bool = False) -> None:
        self.tokens = np.random.default_rng(0).permutation(tokens) if shuffled else tokens
        self.length = length
        self.n_tokens = self.n_queries = self.n_next = int(tokens.max()) + 1

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """(n, T + 1) windows."""
        start = rng.integers(0, len(self.tokens) - self.length, n)
        return self.tokens[start[:, None] + np.arange(self.length + 1)]


class Layer(torch.nn.Module):
    """The paper's layer: f = c/||c|| of attention c by logits z, and a decoder Y; or Z and Y of embeddings that train.

    The query's own place gets no attention. ``bias`` is added to logits, by position; with ``residual`` the query has a
    row of the decoder of its own.
    """

    def __init__(self, source: Any, *, width: int | None = None, bias: float = 0.0, residual: bool = False) -> None:
        super().__init__()
        sizes = source.n_queries, source.n_tokens, source.n_next
        self.n_tokens, self.bias, self.width = source.n_tokens, bias, width
        if width is None:
            self.z = torch.nn.Parameter(torch.zeros(sizes[:2]))
            self.y = torch.nn.Parameter(torch.zeros(sizes[1:]))
        else:
            for name, size in zip(("query", "token", "next"), sizes, strict=True):
                setattr(self, name, torch.nn.Parameter(0.3 * torch.randn(size, width)))
        self.own = torch.nn.Parameter(torch.zeros(sizes[0], sizes[2])) if residual else None

    def matrices(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Z (queries, tokens) and Y (tokens, next tokens)."""
        if self.width is None:
            return self.z, self.y
        return self.query @ self.token.T / float(self.width) ** 0.5, self.token @ self.next.T

    def weights(self, tokens: torch.Tensor, z: torch.Tensor | None = None) -> torch.Tensor:
        """Attention of the last query on the context by Z, or by logits ``z`` of its shape: (n, T - 1)."""
        context, query = tokens[:, :-1], tokens[:, -1] - self.n_tokens
        places = torch.arange(context.shape[1], dtype=torch.float32)
        logits = (self.matrices()[0] if z is None else z)[query].gather(1, context)
        return torch.softmax(logits + self.bias * places, dim=1)

    def heads(self, tokens: torch.Tensor) -> torch.Tensor:
        """Attention of each head: (n, heads, T - 1). The decoder has their mean."""
        return self.weights(tokens)[:, None]

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        weights = self.heads(tokens).mean(dim=1)
        mixed = torch.zeros(len(tokens), self.n_tokens).scatter_add(1, tokens[:, :-1], weights)
        logits = mixed / mixed.norm(dim=1, keepdim=True) @ self.matrices()[1]
        return logits if self.own is None else logits + self.own[tokens[:, -1] - self.n_tokens]

    def rates(self, rate: float) -> tuple[float, float]:
        """eta_Y and eta_Z of embeddings that train at one rate: rate times the kernels' mean diagonals, now."""
        q, e, u = (float((one.detach() ** 2).sum(dim=1).mean()) for one in (self.query, self.token, self.next))
        return rate * (e + u), rate * (e + q) / self.query.shape[1]


def attention_of_layer(model: Layer, tokens: torch.Tensor) -> torch.Tensor:
    """(n, heads, T) of the last query, none on itself."""
    return torch.nn.functional.pad(model.heads(tokens), (0, 1))


class Attention(torch.nn.Module):
    """Layers of `torch.nn.MultiheadAttention` with the parts that are asked for, and a linear decoder."""

    def __init__(self, vocabulary: int, length: int, *, width: int, heads: int, layers: int, **parts: bool) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.places = torch.nn.Embedding(length, width) if parts["positions"] else None
        self.attention = torch.nn.ModuleList(
            torch.nn.MultiheadAttention(width, heads, batch_first=True) for _ in range(layers)
        )
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(layers)) if parts["norm"] else None
        self.dense = (
            torch.nn.ModuleList(
                torch.nn.Sequential(
                    torch.nn.Linear(width, 2 * width), torch.nn.ReLU(), torch.nn.Linear(2 * width, width)
                )
                for _ in range(layers)
            )
            if parts["feed_forward"]
            else None
        )
        self.residual = parts["residual"]
        self.decoder = torch.nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        x = self.embedding(tokens)
        if self.places is not None:
            x = x + self.places.weight[:length]
        for number, layer in enumerate(self.attention):
            seen = x if self.norms is None else self.norms[number](x)
            found = layer(seen, seen, seen, attn_mask=mask, need_weights=False)[0]
            x = x + found if self.residual else found
            if self.dense is not None:
                x = x + self.dense[number](x)
        return self.decoder(x)


class WatchedModel(NamedTuple):
    """A model with what `yzflow.watch` is told of it, its optimizer, and a loss of sequences (n, T + 1)."""

    model: torch.nn.Module
    source: Any
    told: dict[str, Any]
    optimizer: torch.optim.Optimizer
    every: bool  # position has a loss


def source_of(setting: dict[str, Any], *, shuffled: bool = False) -> Population | Text:
    """Where a setting's sequences come from."""
    if setting["text"]:
        return Text(letters(setting["text"]), setting["length"], shuffled=shuffled)
    return Population(population(setting["population"]), setting["length"], shuffled=shuffled)


def of_layer(source: Population | Text, setting: dict[str, Any]) -> WatchedModel:
    """The paper's layer, with rates of its own for Y and Z, or with embeddings that train at one rate."""
    width = SIZES[setting["size"]]["width"] if setting["kind"] == "embedding" else None
    model = Layer(source, width=width, bias=setting["bias"], residual=setting["residual"])
    if width is None:
        rates = setting["eta_y"], setting["eta_z"]
        decoder = [model.y, *([model.own] if model.own is not None else [])]
        groups = [{"params": decoder, "lr": rates[0]}, {"params": [model.z], "lr": rates[1]}]
    else:
        rates, groups = model.rates(setting["rate"]), [{"params": model.parameters(), "lr": setting["rate"]}]
    told = {"attention": attention_of_layer, "logits": Layer.forward, "rates": rates}
    told["parts"] = ["a residual link"] if setting["residual"] else []
    return WatchedModel(model, source, told, _optimizer(groups, setting), False)


def _optimizer(groups: Any, setting: dict[str, Any]) -> torch.optim.Optimizer:
    if setting["optimizer"] == "Adam":
        return torch.optim.Adam(groups, lr=1.0)
    return torch.optim.SGD(groups, lr=1.0, momentum=setting["momentum"])


def made(setting: dict[str, Any], *, shuffled: bool = False) -> WatchedModel:
    """A setting's model before training, from the setting's seed."""
    torch.manual_seed(setting["seed"])
    source = source_of(setting, shuffled=shuffled)
    if setting["kind"] in ("paper's", "layer", "embedding"):
        return of_layer(source, setting)
    size: dict[str, Any] = SIZES[setting["size"]]
    text = bool(setting["text"])
    # On populations queries and next tokens have numbers after those of the context.
    vocabulary = source.n_tokens if text else source.n_tokens + source.n_queries + source.n_next
    if setting["kind"] == "attention":
        parts: dict[str, Any] = {name: setting[name] for name in ("residual", "norm", "positions", "feed_forward")}
        model: Any = Attention(vocabulary, setting["length"], **size, layers=setting["layers"], **parts)
    else:
        from transformers import GPT2Config, GPT2LMHeadModel

        sizes = {"n_embd": size["width"], "n_head": size["heads"], "n_layer": setting["layers"]}
        drops = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        sizes |= {"vocab_size": vocabulary, "n_positions": setting["length"], "bos_token_id": 0, "eos_token_id": 0}
        config = GPT2Config(**sizes, **drops)
        model = GPT2LMHeadModel(config)
    groups = [{"params": list(model.parameters()), "lr": setting["rate"]}]
    return WatchedModel(model, source, {}, _optimizer(groups, setting), text)


def sequences(run: WatchedModel, n: int, rng: np.random.Generator) -> np.ndarray:
    """Sequences with the numbers that the run's model has for tokens."""
    tokens = run.source.draw(n, rng)
    if isinstance(run.source, Text):
        if isinstance(run.model, Layer):  # its queries have numbers of their own
            tokens = np.column_stack([tokens[:, :-2], tokens[:, -2] + run.source.n_tokens, tokens[:, -1]])
    elif not isinstance(run.model, Layer):
        tokens = np.column_stack([tokens[:, :-1], tokens[:, -1] + run.source.n_tokens + run.source.n_queries])
    return tokens


def train(run: WatchedModel, *, steps: int, batch: int, seed: int, probe: int | None = None) -> Recording:
    """The recording of a training, of ``steps`` steps on fresh sequences."""
    torch.set_num_threads(1)
    rng = np.random.default_rng([seed, 1])
    n = PROBE[run.source.length > 1000] if probe is None else probe
    recorder = yz.watch(run.model, sequences(run, n, np.random.default_rng([seed, 2])), **run.told)
    with recorder:
        for _ in range(steps):
            tokens = torch.as_tensor(sequences(run, batch, rng))
            out = run.model(tokens[:, :-1])
            logits = getattr(out, "logits", out)
            if run.every:
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            else:
                last = logits if logits.ndim == 2 else logits[:, -1]
                loss = torch.nn.functional.cross_entropy(last, tokens[:, -1])
            run.optimizer.zero_grad()
            loss.backward()
            run.optimizer.step()
    return recorder.recording


def recorded(setting: dict[str, Any], *, shuffled: bool = False) -> Recording:
    """The recording of one setting's training."""
    run = made(setting, shuffled=shuffled)
    return train(run, steps=setting["steps"], batch=setting["batch"], seed=setting["seed"])
