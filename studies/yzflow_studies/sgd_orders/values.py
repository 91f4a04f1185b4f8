"""At which order SGD tends to the flow: in its rate, in the length of sequences, and in both with the batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.stats

from dynamics import Bags, Layer, SequenceClasses, gradient_flow, sgd, sgd_many
from theory.values import Study

TINY: dict[str, Any] = {
    "probabilities": [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]],
    "queries": [0, 1],
    "class_weights": [0.4, 0.6],
    "vocab_size": 4,
}


def _order(x: Sequence[float], y: Sequence[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _apart(one: Layer, other: Layer) -> float:
    return float(np.sqrt(((one.Z - other.Z) ** 2).sum() + ((one.Y - other.Y) ** 2).sum()))


def _tiny(probabilities: Sequence, queries: Sequence[int], class_weights: Sequence[float], vocab_size: int) -> Any:
    return SequenceClasses(probabilities, queries, class_weights=class_weights, vocab_size=vocab_size)


def steps_to_flow(t: float, ratio: float, momentum: Sequence[float], steps: Sequence[int], **tiny: Any) -> dict:
    """The order in the rate of full-batch steps' distance from the flow at a fixed time, at each momentum."""
    classes = _tiny(**tiny)
    flow = gradient_flow(classes, eta_y=1.0, eta_z=ratio, t_end=t, times=[t], rtol=1e-11, atol=1e-13).final
    orders = []
    for mu in momentum:
        errors, rates = [], [(1 - mu) * t / n for n in steps]
        for eta, n in zip(rates, steps, strict=True):
            options = {"batch_size": None, "length": None, "momentum": mu, "record_every": n}
            errors.append(_apart(sgd(classes, eta_y=eta, eta_z=ratio * eta, steps=n, **options).final, flow))
        orders.append(_order(rates, errors))
    return {"order": orders}


def finite_sequences(positions: Sequence[int], seed: int, **tiny: Any) -> dict:
    """The order in 1/(T - 1) of the bias of the mean gradient, by all multinomial counts of the tiny population."""
    classes, rng = _tiny(**tiny), np.random.default_rng(seed)
    limit = classes.population()
    layer = Layer(rng.normal(size=(limit.sizes["n_queries"], 3)), rng.normal(size=(3, tiny["vocab_size"])))
    biases = []
    for n in positions:
        counts = np.array([[i, j, n - i - j] for i in range(n + 1) for j in range(n + 1 - i)])
        law = [
            Bags.from_dense(
                np.full(len(counts), query),
                np.full(len(counts), k),
                counts,
                scipy.stats.multinomial.pmf(counts, n, row),
                **limit.sizes,
            )
            for k, (query, row) in enumerate(zip(tiny["queries"], tiny["probabilities"], strict=True))
        ]
        biases.append(_apart(layer.gradient(Bags.concatenate(law, classes.class_weights)), layer.gradient(limit)))
    return {"order": _order(positions, biases)}


def batches_to_flow(t: float, n: Sequence[int], seeds: int, **tiny: Any) -> dict:
    """The order in n of the root mean square distance from the flow: eta = 1/n, T - 1 = 4 n, batches of 2 n."""
    classes = _tiny(**tiny)
    flow = gradient_flow(classes, eta_y=1.0, eta_z=1.0, t_end=t, times=[t], rtol=1e-10, atol=1e-12).final
    orders = []
    for first in (0, seeds):
        errors = []
        for size in n:
            options = {"eta_y": 1 / size, "eta_z": 1 / size, "steps": round(t * size), "momentum": 0.0}
            options |= {"batch_size": 2 * size, "length": 4 * size + 1}
            runs = sgd_many([(classes, {**options, "seed": seed}) for seed in range(first, first + seeds)])
            errors.append(np.sqrt(np.mean([_apart(run.layer, flow) ** 2 for run in runs])))
        orders.append(_order(n, errors))
    return {"order": orders}


STUDIES = (
    Study(
        "steps_to_flow",
        steps_to_flow,
        {**TINY, "t": 20.0, "ratio": 0.7, "momentum": [0.0, 0.5, 0.9], "steps": [4000, 8000, 16000, 32000]},
        tolerance=1e-4,
    ),
    Study("finite_sequences", finite_sequences, {**TINY, "positions": [16, 32, 64, 128], "seed": 0}),
    Study("batches_to_flow", batches_to_flow, {**TINY, "t": 10.0, "n": [8, 16, 32, 64], "seeds": 40}, quick=False),
)
