"""How wide a random Transformer must be to be pruned to a given one: certificates and sampled errors (Theorem 3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from theory.values import Study
from yzflow_studies.pruned_transformers import study as lottery
from yzflow_studies.pruned_transformers.study import looseness, slopes


def width(
    numbers: Sequence[int],
    layers: Sequence[int],
    spare: Sequence[int],
    seeds: int,
    shown: Sequence[int],
    smallest: int,
    good: float,
) -> dict:
    """Medians over pairs drawn anew, by how much log2 of the certificate falls from the smallest n on, and shares."""
    data = lottery.width_law(numbers=numbers, layers=layers, spare=spare, seeds=seeds)
    middle = data[["certificate", "error"]].median("seed")
    ratio = data["error"] / data["certificate"]
    reached = (data["certificate"] <= good).mean("seed")
    quartiles = data["certificate_spare"].quantile([0.25, 0.75], "seed").values

    def of(name: str) -> list[dict[str, float]]:
        means, errors = slopes(data, name, smallest=smallest)
        return [{"mean": -mean, "half": half} for mean, half in zip(means, errors, strict=True)]

    def medians(n: int) -> list[dict[str, float]]:
        at = middle.sel(n=n)
        return [{name: at[name].sel(layers=count).item() for name in ("certificate", "error")} for count in layers]

    return {
        "rows": [{"n": n, "medians": medians(n)} for n in shown],
        "slope": of("certificate"),
        "law": of("law"),
        "reached": {
            f"layers{count}": {f"n{n}": reached.sel(layers=count, n=n).item() for n in numbers} for count in layers
        },
        "pairs": int(ratio.size),
        "nearest": float(ratio.max()),
        "above": int((ratio > 1).sum()),
        "loose": looseness(data, "certificate"),
        "loose_on_inputs": looseness(data, "certificate_on_inputs"),
        "spare_n": data.attrs["n_spare"],
        "spare_certificate": data["certificate_spare"].median("seed").values,
        "spare_error": data["error_spare"].median("seed").values,
        "spare_quartiles": [float(f(quartiles[1] / quartiles[0])) for f in (np.min, np.max)],
        **{name: data.attrs[name] for name in ("width", "hidden", "inputs")},
        "length": lottery.LENGTH,
    }


_PAPER: dict[str, Any] = {
    "numbers": list(lottery.NUMBERS),
    "layers": [1, 2, 3],
    "spare": list(lottery.SPARE),
    "seeds": 20,
}
STUDIES = (
    Study(
        "width",
        width,
        _PAPER | {"shown": [6, 10, 14, 18, 22], "smallest": 10, "good": 0.1},
        (
            "singular values of the given matrices at the theorem's limit",
            "two layers to spare, LN with the floor C = 1",
        ),
        quick=False,
        tolerance=1e-3,
    ),
)
