"""Trainings in PyTorch with a recorder beside them, and without: what `yzflow.watch` costs."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import Row, compare, optional_peer

STEPS, BATCH_SIZE, LENGTH, VOCABULARY, PROBES = 500, 32, 64, 500, 64
SHORT, LONG = 150, 2000  # steps of GPT-2: records are spaced logarithmically, and cost less of a long training


def run() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    batches = rng.integers(0, VOCABULARY, (LONG, BATCH_SIZE, LENGTH + 1))
    probe = rng.integers(0, VOCABULARY, (PROBES, LENGTH + 1))
    sizes = f"2 layers, {BATCH_SIZE} sequences of {LENGTH} tokens, recorded on {PROBES}"
    encoder, gpt2 = optional_peer("torch_encoder"), optional_peer("gpt2")
    if encoder is not None:
        encoder.torch.set_num_threads(1)
        for told, at in (("", None), ("; rivals predict as it goes", "log")):
            task = f"{STEPS} steps of SGD, {sizes}{told}"
            yield _row(task, lambda: encoder.model(VOCABULARY), encoder.train, batches[:STEPS], probe, at)
    if gpt2 is not None:
        gpt2.torch.set_num_threads(1)
        for steps in (SHORT, LONG):
            task = f"{steps} steps of AdamW, GPT-2, 64 dimensions, {sizes}"
            yield _row(task, lambda: gpt2.model(VOCABULARY, LENGTH), gpt2.train, batches[:steps], probe, None)


def _row(
    task: str, model: Callable[[], Any], train: Callable[..., np.ndarray], batches: np.ndarray, probe: np.ndarray, at
) -> Row:
    import yzflow as yz

    def watched() -> np.ndarray:
        trained = model()
        with yz.watch(trained, probe, predict_at=at):
            return train(trained, batches)

    return compare(
        task,
        watched,
        "PyTorch, the same without a recorder",
        lambda: train(model(), batches),
        tolerance=0.0,
        result="the weights, equal to the bit",
        runs=3,
        budget=float("inf"),
        clock=time.process_time,
    )
