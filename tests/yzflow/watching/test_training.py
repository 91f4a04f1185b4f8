"""Steps, rates and resumption of a training of PyTorch's: each counted once, with what moved the weights."""

import numpy as np
import pytest
import watched_layers as layers

import yzflow as yz

torch = pytest.importorskip("torch")

TOKENS = np.random.default_rng(0).integers(0, 12, (24, 7))


class Small(torch.nn.Module):
    """One layer of attention of the last position, without dropout, and a decoder."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = torch.nn.Embedding(12, 8)
        self.attention = torch.nn.MultiheadAttention(8, 2, bias=False, batch_first=True)
        self.decoder = torch.nn.Linear(8, 12, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.decoder(self.attention(x, x, x, need_weights=False)[0])


# A step with a number


def test_a_checkpoint_stands_at_its_step():
    recorder = yz.watch(Small(), TOKENS)
    for seed, step in enumerate((1, 2, 64, 70, 1000, 143000), start=1):
        recorder.step(Small(seed), at=step)
    assert recorder.recording.steps.tolist() == [0, 1, 2, 64, 70, 1000, 143000]
    recorder.step(Small(9))
    assert recorder._step == 143001
    for step in (143001, 5, 2.5, -1):
        with pytest.raises(ValueError, match="`at` must"):
            recorder.step(Small(), at=step)
    assert recorder._step == 143001


def test_equal_weights_at_two_steps_are_said_once():
    recorder = yz.watch(Small(), TOKENS)
    recorder.step(Small(1), at=64)
    with pytest.warns(UserWarning, match="the model of step 1000 answers as that of step 64") as said:
        recorder.step(Small(1), at=1000)
        recorder.step(Small(1), at=2000)
    assert len(said) == 1
