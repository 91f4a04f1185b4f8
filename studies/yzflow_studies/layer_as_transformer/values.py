"""A transformer with orthonormal embeddings is the Y/Z layer: full-batch steps of both."""

from typing import Any

import numpy as np

from dynamics import Bags, Layer, sgd
from dynamics.support import distributions
from theory.values import Study


def agree(tokens: int, length: int, rows: int, steps: int, eta: float) -> dict[str, float]:
    """How far Z and Y of a transformer with orthonormal embeddings are from the layer's after full-batch steps."""
    deep = distributions.bring("yzflow_deep")

    rng = np.random.default_rng(0)
    text = rng.integers(tokens, size=(rows, length + 1))
    mask = np.ones((rows, length), dtype=bool)
    mask[:, 0] = False  # nothing before it to attend to
    bags = [(row[i], row[i + 1], np.bincount(row[:i], minlength=tokens)) for row in text for i in range(1, length)]
    query, target, counts = map(np.array, zip(*bags, strict=True))
    data = Bags.from_dense(query, target, counts.astype(float), n_queries=tokens, vocab_size=tokens)
    layer = Layer(rng.normal(size=(tokens, tokens)), rng.normal(size=(tokens, tokens)))
    rotated = np.linalg.qr(rng.normal(size=(tokens, tokens)))[0]

    def apart(optimizer: str, embedding: np.ndarray | None) -> float:
        same: dict[str, Any] = {"steps": steps, "optimizer": optimizer, "batch_size": None, "momentum": 0.9}
        run = sgd(data, eta_y=eta, eta_z=eta, init=layer, length=None, **same)
        model = deep.from_layer(layer, embedding)
        sequences = deep.Sequences(text[:, :-1], text[:, 1:], mask)
        runs = deep.train(model, sequences, learning_rate=eta, dtype="float64", **same)
        end, own = deep.to_layer(deep.model_at(runs)), run.final.expand()
        return float(max(np.abs(end.Z - own.Z).max(), np.abs(end.Y - own.Y).max()))

    return {"sgd": max(apart("sgd", None), apart("sgd", rotated)), "adam": apart("adam", None)}


STUDIES = (
    Study(
        "agree",
        agree,
        {"tokens": 5, "length": 7, "rows": 4, "steps": 50, "eta": 0.1},
        ("orthonormal tied embeddings, no positions, one head, unit norm on the mixture",),
        quick=False,
        noise=1e-13,
    ),
)
