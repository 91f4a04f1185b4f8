"""A small causal encoder of PyTorch's own parts, trained by plain SGD."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional


class Encoder(nn.Module):
    def __init__(self, vocabulary, width=64, heads=4, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        part = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(part, layers)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.decoder(self.layers(self.embedding(tokens), mask=mask, is_causal=True))


def model(vocabulary: int) -> Encoder:
    """The same start at every call."""
    torch.manual_seed(0)
    return Encoder(vocabulary)


def train(model: Encoder, batches: np.ndarray, *, rate: float = 0.1) -> np.ndarray:
    """The weights after a step for each batch; all positions have next tokens."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for batch in torch.as_tensor(batches):
        logits = model(batch[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return np.concatenate([one.detach().numpy().ravel() for one in model.parameters()])
