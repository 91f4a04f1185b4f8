"""The Y/Z layer on windows of a real text: data, groups of tokens, and what is measured on held-out windows."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dynamics import Bags, Layer, TextCorpus
from theory.scan_and_snap.early import initial_drift
from theory.scan_and_snap.token_estimates import COMMON, DISTINCT, UNDECIDED, TokenEstimates

GROUPS: Mapping[str, int] = {"distinct": DISTINCT, "undecided": UNDECIDED, "common": COMMON}
TRAINING_SHARE = 0.9  # of the text; the rest is held out
_LEVEL = 0.05
_HELD_OUT_WINDOWS = 2000


@dataclass(frozen=True, eq=False)
class RealText:
    """A text in two parts, training windows and held-out ones, and which tokens are distinct to which next tokens.

    Attributes
    ----------
    corpus : TextCorpus
    train : Bags
        Windows of the first `TRAINING_SHARE` of the text, evenly spread.
    held_out : Bags
        Windows of the rest that do not overlap.
    estimates : TokenEstimates
        Of the windows of the training part that do not overlap.
    kind : (entries of held_out,) int8
        Of each contextual token for the next token of its window: `DISTINCT`, `COMMON` or `UNDECIDED`.
    """

    corpus: TextCorpus
    train: Bags
    held_out: Bags
    estimates: TokenEstimates
    kind: np.ndarray

    @classmethod
    def of(cls, corpus: TextCorpus, *, length: int, windows: int, lift: float) -> RealText:
        """Windows of ``length`` tokens, ``windows`` of them at most to train on; see `TokenEstimates.kind` for lift."""
        cut = int(TRAINING_SHARE * len(corpus))
        train = corpus.windows(length, limit=windows, stop=cut)
        held_out = corpus.windows(length, stride=length + 1, limit=_HELD_OUT_WINDOWS, start=cut)
        estimates = TokenEstimates(corpus.windows(length, stride=length + 1, stop=cut))
        kind = estimates.kind(held_out.token, held_out.target[held_out.owner], lift=lift, level=_LEVEL)
        return cls(corpus, train, held_out, estimates, kind)

    def weighted(self, next_tokens: str) -> tuple[Bags, Bags]:
        """Training and held-out windows as the text has them ("natural"), or weighted so that all next tokens that
        occur are equally likely ("equal"), as the theory assumes."""
        if next_tokens == "natural":
            return self.train, self.held_out
        return equal_next_tokens(self.train), equal_next_tokens(self.held_out)

    @cached_property
    def start(self) -> dict[str, float]:
        """Attention on each group before training, mean over held-out windows."""
        return self._on_groups(self._attention(Layer.zeros(self.held_out)))

    def measure(self, layer: Layer) -> dict[str, float]:
        """Measures of attention on the held-out windows.

        Returns
        -------
        dict
            "entropy" of attention over the tokens of a window (nats, mean over windows). "gain_GROUP" for each group:
            attention on it, relative to that before training. "relative_gain": mean of ln((1 + r)/(1 + r(0))) over
            windows with distinct and common tokens, for the relative gain r of (11) of the first over the second.
        """
        attention = self._attention(layer)
        logs = attention * np.log(np.maximum(attention, np.finfo(np.float64).tiny))
        found = {"entropy": float(-np.add.reduceat(logs, self.held_out.indptr[:-1]).mean())}
        groups = self._on_groups(attention)
        found |= {f"gain_{name}": share / self.start[name] for name, share in groups.items()}
        return found | {"relative_gain": self._relative_gain(layer)}

    def drift(self, next_tokens: str) -> dict[str, float]:
        """Predicted sign and size of the first moves: mean over the groups of the curvature of `initial_drift`,
        relative to the mean of its absolute values."""
        drift = initial_drift(self.weighted(next_tokens)[0])
        moves = drift[self.held_out.query[self.held_out.owner], self.held_out.token]
        share = self._attention(Layer.zeros(self.held_out))
        scale = np.average(np.abs(moves), weights=share)
        means = {}
        for name, kind in GROUPS.items():
            at = self.kind == kind
            means[name] = float(np.average(moves[at], weights=share[at]) / scale) if at.any() else np.nan
        return means

    def _attention(self, layer: Layer) -> np.ndarray:
        """Attention of the entries of the held-out windows."""
        bags = self.held_out
        bag = bags.owner
        logits = np.log(bags.count) + layer.Z[bags.query[bag], bags.token]
        logits -= np.maximum.reduceat(logits, bags.indptr[:-1])[bag]
        share = np.exp(logits)
        return share / np.add.reduceat(share, bags.indptr[:-1])[bag]

    def _on_groups(self, attention: np.ndarray) -> dict[str, float]:
        sums = {name: attention[self.kind == kind].sum() / len(self.held_out) for name, kind in GROUPS.items()}
        return {name: float(total) if total > 0 else np.nan for name, total in sums.items()}

    def _relative_gain(self, layer: Layer) -> float:
        """With ln(1 + r) = 2 ln(c_l / c_l') for l distinct and l' common, each averaged by its counts."""
        bags, bag = self.held_out, self.held_out.owner
        logits = layer.Z[bags.query[bag], bags.token]
        means = []
        for kind in (DISTINCT, COMMON):
            count = np.where(self.kind == kind, bags.count, 0.0)
            total = np.add.reduceat(count, bags.indptr[:-1])
            with np.errstate(invalid="ignore"):
                means.append(np.add.reduceat(count * logits, bags.indptr[:-1]) / total)
        difference = 2 * (means[0] - means[1])
        both = np.isfinite(difference)
        return float(difference[both].mean()) if both.any() else np.nan


def equal_next_tokens(bags: Bags) -> Bags:
    """The same bags, weighted so that each next token that occurs has the same probability."""
    weight = 1 / np.bincount(bags.target)[bags.target]
    return replace(bags, weight=weight / weight.sum())


def digest(path: str | os.PathLike) -> str:
    """SHA-256 of a file, in hexadecimal; read once as long as the file stays as it is."""
    found = os.stat(path)
    return _digest_of(os.fspath(path), found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=64)
def _digest_of(path, size, modified) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(2**20):
            found.update(block)
    return found.hexdigest()


_reading = threading.Lock()


def load(text: str, content: str, **settings: Any) -> RealText:
    """`RealText` of a file whose SHA-256 is ``content``, made once for all runs of a process that ask for it.

    Raises
    ------
    ValueError
        If the file has changed.
    """
    with _reading:  # threads that want the same text wait for the first
        return _load(text, content, **settings)


@lru_cache(maxsize=2)
def _load(text, content, *, tokenizer, vocab_size, **settings) -> RealText:
    if digest(text) != content:
        raise ValueError(f"{text} has changed since this work was planned: plan it again")
    return RealText.of(TextCorpus(text, tokenizer=tokenizer, vocab_size=vocab_size), **settings)
