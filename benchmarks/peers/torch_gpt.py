"""A small GPT in PyTorch, the obvious way: LayerNorm before each part, one head, Adam, one seed after the other."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.output(
            functional.scaled_dot_product_attention(self.query(y), self.key(y), self.value(y), is_causal=True)
        )
        return x + self.down(torch.relu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Without positions, with a decoder of its own."""

    def __init__(self, vocab_size, n_outputs, *, n_layers, width):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(n_layers))
        self.norm = nn.LayerNorm(width)
        self.decoder = nn.Linear(width, n_outputs, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.decoder(self.norm(x))


def start(model) -> GPT:
    """A GPT with the weights of a `yzflow_deep.model.Transformer`."""
    a = model.architecture
    gpt = GPT(a.vocab_size, a.n_outputs, n_layers=a.n_layers, width=a.width)
    pairs = [(gpt.embedding.weight, model.embedding), (gpt.decoder.weight, model.decoder.T)]
    for block, theirs in zip(gpt.blocks, model.blocks, strict=True):
        for name in ("query", "key", "value", "output"):
            pairs.append((getattr(block, name).weight, getattr(theirs, name)[0].T))
        for name in ("up", "down"):
            weight, bias = getattr(theirs, name)
            pairs += [(getattr(block, name).weight, weight.T), (getattr(block, name).bias, bias)]
    with torch.no_grad():
        for own, given in pairs:
            own.copy_(torch.tensor(np.array(given)))
    return gpt


def train(model, data, rows, *, eta: float) -> np.ndarray:
    """The loss of each batch, one Adam step each; ``rows`` holds the sequences of each step."""
    gpt = start(model)
    inputs, targets, mask = (torch.tensor(np.array(array)) for array in (data.inputs, data.targets, data.mask))
    optimizer = torch.optim.Adam(gpt.parameters(), lr=eta)
    losses = []
    for batch in torch.tensor(rows):
        counts = mask[batch]
        loss = functional.cross_entropy(gpt(inputs[batch].long())[counts], targets[batch][counts].long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)
