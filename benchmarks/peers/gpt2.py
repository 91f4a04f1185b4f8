"""GPT-2 of Hugging Face with 64 dimensions, trained by AdamW."""

import numpy as np
import torch
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel


def model(vocabulary: int, length: int) -> GPT2LMHeadModel:
    """The same start at every call."""
    torch.manual_seed(0)
    special = {"bos_token_id": 0, "eos_token_id": 0}
    sizes = {"vocab_size": vocabulary, "n_positions": length, "n_embd": 64, "n_layer": 2, "n_head": 4}
    return GPT2LMHeadModel(GPT2Config(**sizes, **special))


def train(model: GPT2LMHeadModel, batches: np.ndarray, *, rate: float = 1e-3) -> np.ndarray:
    """The weights after a step for each batch, with dropout; all positions have next tokens."""
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for batch in torch.as_tensor(batches):
        logits = model(batch[:, :-1], use_cache=False).logits
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return np.concatenate([one.detach().numpy().ravel() for one in model.parameters()])
