"""Training of a small GPT on bounded Dyck words, four seeds, beside PyTorch; the same starts and the same batches."""

from collections.abc import Iterator

import numpy as np

from benchmarks import Row, compare, optional_peer

STEPS, SEEDS, BATCH_SIZE, ETA = 40, 4, 64, 3e-3


def run() -> Iterator[Row]:
    peer = optional_peer("torch_gpt")
    if peer is None:
        return
    try:
        import yzflow_deep as deep
        from yzflow_deep.model import Transformer
        from yzflow_studies.ordinary_dyck import deep as deep_dyck
    except ImportError as error:
        print(f"torch_gpt: left out ({error})")
        return
    from yzflow_bounded_dyck import training as dyck

    peer.torch.set_num_threads(1)
    language = dyck.LANGUAGE
    data = deep_dyck.data(language)
    for n_layers in (2, 3):
        architecture = deep.Architecture(
            language.n_brackets + 1, n_outputs=language.n_brackets, tied=False, n_layers=n_layers, width=deep_dyck.WIDTH
        )

        def ours(architecture=architecture):
            options = {"optimizer": "adam", "batch_size": BATCH_SIZE, "seeds": SEEDS, "record_every": STEPS}
            runs = deep.train(architecture, data, learning_rate=ETA, steps=STEPS, **options, validation=data[:2])
            return runs["batch_loss"].values[0]

        def theirs(architecture=architecture):
            return np.stack([_train(peer, Transformer(architecture, _rng(s, 0)), data, s) for s in range(SEEDS)])

        yield compare(
            f"GPT, {n_layers} layers, Dyck words, {SEEDS} seeds, {STEPS} steps of Adam, float32",
            ours,
            "PyTorch, one seed after the other",
            theirs,
            tolerance=1e-3,
            result="loss of every batch",
        )


def _train(peer, model, data, seed):
    rows = [_rng(seed, 1, step).integers(len(data), size=BATCH_SIZE, dtype=np.int32) for step in range(STEPS)]
    return peer.train(model, data, np.stack(rows), eta=ETA)


def _rng(seed, *key):
    """The generator with which `yzflow_deep.train` draws."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
