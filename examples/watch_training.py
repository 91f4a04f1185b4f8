"""Is this training inside a theorem? A small transformer of PyTorch, trained by SGD and by Adam, and watched.

    python examples/watch_training.py [--out DIR] [--quick]

The text is drawn: half of the words of a sequence are those of its topic, which is also the next token, and half are
common to all topics. The recorder looks on at log-spaced steps, writes what rival theories foresee before the future is
seen, and says in the end which theorems speak of the training and which rival was right. Writes each recording and its
report, a page that works offline. Needs yzflow-watch and PyTorch: pip install -e 'tools/watch[torch]'. Half a minute on
two cores.
"""

import numpy as np

import yzflow as yz
from yzflow import scripts

try:
    import torch
except ImportError:
    torch = None

TOPICS, WORDS, COMMON, LENGTH, WIDTH = 8, 4, 6, 32, 32
QUERY = TOPICS * (1 + WORDS) + COMMON  # the last token of each context; vocabulary: topics, their words, common words
RATES = {"SGD": 0.1, "Adam": 0.002}


def text(n: int, rng: np.random.Generator) -> np.ndarray:
    """Sequences (n, LENGTH + 1): words, the query, and the topic as the next token."""
    topic = rng.integers(TOPICS, size=(n, 1))
    own = TOPICS + WORDS * topic + rng.integers(WORDS, size=(n, LENGTH - 1))
    common = TOPICS * (1 + WORDS) + rng.integers(COMMON, size=(n, LENGTH - 1))
    words = np.where(rng.random((n, LENGTH - 1)) < 0.5, own, common)
    return np.hstack([words, np.full((n, 1), QUERY), topic])


def word(number: int) -> str:
    """The word of a token's number: a topic, a word of one, a common word, or the query."""
    if number < TOPICS:
        return f"topic {number}"
    if number < TOPICS * (1 + WORDS):
        return f"word {number % WORDS} of topic {(number - TOPICS) // WORDS}"
    return "query" if number == QUERY else f"common {number - TOPICS * (1 + WORDS)}"


def encoder() -> "torch.nn.Module":
    """One layer of attention of the last token, without positions, and a decoder."""

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(QUERY + 1, WIDTH)
            self.attention = torch.nn.MultiheadAttention(WIDTH, 1, bias=False, batch_first=True)
            self.decoder = torch.nn.Linear(WIDTH, QUERY + 1, bias=False)

        def forward(self, tokens: "torch.Tensor") -> "torch.Tensor":
            x = self.embedding(tokens)
            return self.decoder(self.attention(x[:, -1:], x, x, need_weights=False)[0][:, 0])

    return Encoder()


def train(model: "torch.nn.Module", name: str, steps: int, rng: np.random.Generator) -> None:
    """An ordinary loop, which knows nothing of the recorder."""
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=RATES[name])
    for _ in range(steps):
        batch = torch.as_tensor(text(32, rng))
        loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]), batch[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="watched", quick="64 steps instead of 1024")
    options = script.options(arguments)
    if torch is None:
        script.error("PyTorch is missing: pip install -e 'tools/watch[torch]'")
    torch.set_num_threads(1)  # for matrices as small as these more are no faster
    for name in RATES:
        torch.manual_seed(0)
        rng, model = np.random.default_rng(0), encoder()
        recorder = yz.watch(model, text(256, rng), predict_at="log", parts=())  # there are no others
        with recorder:
            train(model, name, 64 if options.quick else 1024, rng)
        report = recorder.report(names=word)
        print(f"{name}\n\n{report.text}")
        report.save(options.out / f"{name}.nc")
        report.page(options.out / f"{name}.html")
    print(f"Recordings and pages are in {options.out}")
    return 0


if __name__ == "__main__":
    scripts.run(main)
