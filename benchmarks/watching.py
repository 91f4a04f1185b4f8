"""Training of a small encoder in PyTorch with a recorder beside it, and without: what `yzflow.watch` costs."""

import time

import numpy as np

from benchmarks import Row, compare, optional_peer

STEPS, BATCH_SIZE, LENGTH, VOCABULARY, PROBES = 500, 32, 64, 500, 64


def run() -> list[Row]:
    peer = optional_peer("torch_encoder")
    if peer is None:
        return []
    import yzflow as yz

    peer.torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    batches = rng.integers(0, VOCABULARY, (STEPS, BATCH_SIZE, LENGTH + 1))
    probe = rng.integers(0, VOCABULARY, (PROBES, LENGTH + 1))

    def watched(predict_at: str | None) -> np.ndarray:
        model = peer.model(VOCABULARY)
        with yz.watch(model, probe, predict_at=predict_at):
            return peer.train(model, batches)

    task = f"{STEPS} steps of SGD, 2 layers, {BATCH_SIZE} sequences of {LENGTH} tokens, recorded on {PROBES}"
    return [
        compare(
            task + told,
            lambda at=at: watched(at),
            "PyTorch, the same without a recorder",
            lambda: peer.train(peer.model(VOCABULARY), batches),
            tolerance=0.0,
            result="the weights, equal to the bit",
            runs=3,
            budget=float("inf"),
            clock=time.process_time,
        )
        for told, at in (("", None), ("; rivals predict as it goes", "log"))
    ]
