"""PyTorch modules and models of transformers, asked by `models.of`: against themselves by hand, and refusals."""

import numpy as np
import pytest
from yzflow_bounded_dyck import DyckLanguage, models, outputs
from yzflow_bounded_dyck.from_tokens import token_transformer

LANGUAGE = DyckLanguage(2, 3, 0.4)
torch = pytest.importorskip("torch")


class Reads(torch.nn.Module):
    """A small recurrent network over tokens."""

    def __init__(self, size=5, columns=4, batch_first=True, noise=False, mixes=False):
        super().__init__()
        self.embedding = torch.nn.Embedding(size, 8)
        self.rnn = torch.nn.GRU(8, 8, batch_first=batch_first)
        self.out, self.noise, self.mixes = torch.nn.Linear(8, columns), noise, mixes
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, tokens):
        x = self.dropout(self.rnn(self.embedding(tokens))[0])
        x = x + x.mean(dim=0, keepdim=True) if self.mixes else x
        return self.out(x + torch.randn_like(x) if self.noise else x)


def test_modules_are_asked_in_evaluation_mode_and_put_back():
    torch.manual_seed(0)
    module = Reads()
    module.rnn.eval()
    model = models.of(module, LANGUAGE, start=4)
    assert module.training and not module.rnn.training and module.dropout.training
    prefixes = [[], [0], [0, 2], [0, 1, 2, 3]]
    module.eval()
    for prefix, row in zip(prefixes, model.distribution(prefixes), strict=True):
        logits = module(torch.tensor([[4, *prefix]]))[0, -1].detach().double()
        np.testing.assert_allclose(row, torch.softmax(logits, dim=0).numpy(), atol=1e-6)
    found = outputs.examine(model, lengths=[8], n=20)
    by_hand = models.of(lambda tokens: module(torch.tensor(tokens)), LANGUAGE, start=4)
    other = outputs.examine(by_hand, lengths=[8], n=20)
    np.testing.assert_allclose(found.change, other.change, atol=1e-6)
    exact = token_transformer(LANGUAGE, 0)
    loaded = models.of(exact.to_torch(), LANGUAGE, start=4)
    np.testing.assert_allclose(loaded.distribution(prefixes), [exact.distribution(p)[-1] for p in prefixes], atol=1e-9)


@pytest.mark.parametrize(
    ("module", "more", "rule"),
    [
        (Reads(noise=True), {}, "`model` must give the same prefix the same output each time .* a difference of"),
        (Reads(mixes=True), {}, "`model` must give each prefix an output that no other prefix of its batch changes"),
        (Reads(batch_first=False), {}, "`model` must give each prefix an output"),
        (Reads(columns=9), {}, "`model` must have 4 columns, or come with `tokens`, .* but got 9 columns"),
        (Reads(columns=3), {}, "`model` must have 4 columns, .* but got 3 columns"),
        (Reads(), {"tokens": [0, 1, 2]}, r"`tokens` must have another number for each of the 4 brackets"),
        (Reads(), {"start": 3}, "`start` must be no bracket's number, but got 3"),
        (Reads(), {"kind": "probabilities"}, 'return probabilities, or have kind="logits"'),
        (Reads(), {"one": True}, "`one` must be left out for a module"),
        (Reads(), {"longest": 1}, "`longest` must be at least 2"),
    ],
)
def test_modules_that_cannot_be_asked(module, more, rule):
    torch.manual_seed(0)
    with torch.no_grad(), pytest.raises(ValueError, match=rule):
        models.of(module, LANGUAGE, **more)


@pytest.mark.slow
def test_a_causal_model_of_transformers_with_its_own_tokens():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2}
    module = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
    model = models.of(module, LANGUAGE, tokens=[5, 6, 8, 7], start=0)
    assert model.longest == 31 and module.training
    module.eval()
    logits = module(torch.tensor([[0, 5, 8, 7]])).logits[0, -1].detach().double().numpy()[[5, 6, 8, 7]]
    np.testing.assert_allclose(model.distribution(["([]"])[0], np.exp(logits) / np.exp(logits).sum(), atol=1e-6)
    found = outputs.examine(model, n=50)
    assert found.reach().length == 0 and "31 brackets" in found.unknown["reach"] and found.least_error > 0.2
