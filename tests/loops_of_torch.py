"""Loops of PyTorch's that train a small model in many ways, and a recorder beside them."""

import itertools

import numpy as np
import pytest

import yzflow as yz

torch = pytest.importorskip("torch")

TOKENS = np.random.default_rng(0).integers(0, 12, (24, 7))
BATCH = 6
STEPS = 3


class Small(torch.nn.Module):
    """One layer of attention of the last position, without dropout, and a decoder."""

    def __init__(self, seed=0, dtype=None):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = torch.nn.Embedding(12, 8, dtype=dtype)
        self.attention = torch.nn.MultiheadAttention(8, 2, bias=False, batch_first=True, dtype=dtype)
        self.decoder = torch.nn.Linear(8, 12, bias=False, dtype=dtype)

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.decoder(self.attention(x, x, x, need_weights=False)[0])


def batches(n=BATCH, seed=3):
    rng = np.random.default_rng(seed)
    while True:
        yield torch.as_tensor(rng.integers(0, 12, (n, 7)))


def loss_of(model, batch):
    return torch.nn.functional.cross_entropy(model(batch[:, :-1])[:, -1], batch[:, -1])


def sgd(parameters, lr=0.1, **options):
    return torch.optim.SGD(parameters, lr=lr, **options)


def parts_of(model):
    """Embeddings, and the rest: what two optimizers share."""
    return list(model.embedding.parameters()), [*model.attention.parameters(), *model.decoder.parameters()]


class Muon(torch.optim.SGD):
    """Named as another optimizer."""


def recorded(train, steps=STEPS, model=None, **options):
    """Facts and recording of ``train(model, batches, steps)`` in a `with` block."""
    model = model or Small()
    recorder = yz.watch(model, TOKENS, **options)
    with recorder:
        train(model, batches(), steps)
    return recorder


def together(model, data, steps):
    """Two optimizers, both after one backward pass."""
    first, second = parts_of(model)
    optimizers = [Muon(first, lr=0.2), torch.optim.AdamW(second, lr=0.01)]
    for batch in itertools.islice(data, steps):
        loss_of(model, batch).backward()
        for one in optimizers:
            one.step()
            one.zero_grad()


def in_backward(model, data, steps):
    """An optimizer for each parameter, which steps as its gradient arrives."""
    optimizers = {one: sgd([one]) for one in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    hooks = [one.register_post_accumulate_grad_hook(step) for one in model.parameters()]
    for batch in itertools.islice(data, steps):
        loss_of(model, batch).backward()
    for one in hooks:
        one.remove()


def sharp(model, data, steps, to_none=True):
    """Sharpness-aware: two forwards and backward passes on a batch, and one step."""
    optimizer = sgd(model.parameters())
    for batch in itertools.islice(data, steps):
        optimizer.zero_grad(set_to_none=to_none)
        loss_of(model, batch).backward()
        shifts = [0.05 * one.grad.clone() for one in model.parameters()]
        with torch.no_grad():
            for one, shift in zip(model.parameters(), shifts, strict=True):
                one.add_(shift)
        optimizer.zero_grad(set_to_none=to_none)
        loss_of(model, batch).backward()
        with torch.no_grad():
            for one, shift in zip(model.parameters(), shifts, strict=True):
                one.sub_(shift)
        optimizer.step()


def closures(model, data, steps):
    """L-BFGS, which evaluates a batch many times in a step."""
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    for batch in itertools.islice(data, steps):

        def closure(batch=batch):
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            return loss

        optimizer.step(closure)


def validated(model, data, steps):
    """With forwards in training mode that nothing learns from, with and without slopes."""
    optimizer = sgd(model.parameters())
    for batch in itertools.islice(data, steps):
        optimizer.zero_grad()
        with torch.no_grad():
            loss_of(model, next(data))
        loss_of(model, next(data))
        loss = loss_of(model, batch)
        loss_of(model, next(data))
        loss.backward()
        optimizer.step()


def skipped(model, data, steps):
    """A scaler leaves out every second step."""
    optimizer, scaler = sgd(model.parameters()), torch.amp.GradScaler("cpu", init_scale=3.0 * 2**10)
    for number, batch in enumerate(itertools.islice(data, 2 * steps)):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, batch) * (torch.inf if number % 2 else 1)).backward()
        scaler.step(optimizer)
        scaler.update()


def pairs(model, data, steps):
    """A loss of two forwards."""
    optimizer = sgd(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        (loss_of(model, next(data)[:2]) + loss_of(model, next(data)[:4])).backward()
        optimizer.step()


def plain(model, data, steps, change=lambda model: None):
    optimizer = sgd(model.parameters())
    for batch in itertools.islice(data, steps):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        change(model)
        optimizer.step()
