"""Training of a small encoder in PyTorch with a recorder beside it, and without: what `yzflow.watch` costs."""

import time

import numpy as np

from benchmarks import Row, compare, optional_peer

STEPS, BATCH_SIZE, LENGTH, VOCABULARY, PROBES = 2000, 32, 64, 500, 64


def run() -> list[Row]:
    peer = optional_peer("torch_encoder")
    if peer is None:
        return []
    import yzflow as yz

    peer.torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    batches = rng.integers(0, VOCABULARY, (STEPS, BATCH_SIZE, LENGTH + 1))
    probe = rng.integers(0, VOCABULARY, (PROBES, LENGTH + 1))

    def watched():
        model = peer.model(VOCABULARY)
        with yz.watch(model, probe):
            return peer.train(model, batches)

    row = compare(
        f"{STEPS} steps of SGD, 2 layers, {BATCH_SIZE} sequences of {LENGTH} tokens, recorded on {PROBES}",
        watched,
        "PyTorch, the same without a recorder",
        lambda: peer.train(peer.model(VOCABULARY), batches),
        tolerance=0.0,
        result="the weights, equal to the bit",
        runs=3,
        budget=float("inf"),
        clock=time.process_time,
    )
    return [row]
