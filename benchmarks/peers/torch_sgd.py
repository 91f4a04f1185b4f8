"""Syn-Medium in PyTorch, written the obvious way: one-hot sequences, attention by bmm, autograd, torch.optim.SGD."""

import numpy as np
import torch

from dynamics import Layer, SequenceClasses


def train(
    classes: SequenceClasses, *, eta_y: float, eta_z: float, steps: int, batch_size: int, length: int, seed: int
) -> tuple[Layer, np.ndarray]:
    """The final layer and the loss of each mini-batch; momentum 0.9, start uniform in +-1/sqrt(M), single precision."""
    generator = torch.Generator().manual_seed(seed)
    probabilities = torch.tensor(classes.probabilities.toarray(), dtype=torch.float32)
    query_row = torch.tensor(np.searchsorted(classes.query_tokens, classes.query))
    bound = classes.vocab_size**-0.5

    def uniform(*shape):
        return ((2 * torch.rand(shape, generator=generator) - 1) * bound).requires_grad_()

    Z = uniform(len(classes.query_tokens), classes.n_tokens)
    Y = uniform(classes.n_tokens, classes.vocab_size)
    optimizer = torch.optim.SGD([{"params": [Z], "lr": eta_z}, {"params": [Y], "lr": eta_y}], momentum=0.9)
    losses = np.empty(steps)
    for step in range(steps):
        target = torch.randint(classes.n_classes, (batch_size,), generator=generator)
        tokens = torch.multinomial(probabilities[target], length - 1, replacement=True, generator=generator)
        X = torch.nn.functional.one_hot(tokens, classes.n_tokens).float()
        logits = torch.bmm(X, Z[query_row[target]].unsqueeze(2)).squeeze(2)
        attention = torch.softmax(logits, dim=1)
        feature = torch.bmm(attention.unsqueeze(1), X).squeeze(1)
        feature = feature / feature.norm(dim=1, keepdim=True)
        loss = torch.nn.functional.cross_entropy(feature @ Y, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[step] = loss.item()
    return Layer(Z.detach().numpy(), Y.detach().numpy()), losses
