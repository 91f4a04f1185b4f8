"""How much slower than the decoder attention must be for (10), as the vocabulary grows."""

from collections.abc import Sequence

from theory.values import Study
from yzflow_studies.rates_and_vocabulary.study import constants, misses


def law(sizes: Sequence[int], settings: Sequence[tuple[int, float]], ratios: Sequence[float], t_end: float) -> dict:
    """Errors of (10), and how constant they are times eta_Y/eta_Z and over ln^2 M."""
    found = misses(sizes=sizes, settings=settings, ratios=ratios, t_end=t_end)
    left = constants(found)
    rows = [
        {
            "k": k,
            "rho": rho,
            "error": found.isel(setting=n, ratio=0).values.tolist(),
            "constant": float(left.isel(setting=n).mean()),
        }
        for n, (k, rho) in enumerate(settings)
    ]
    spread = left.max(["ratio", "vocab_size"]) / left.min(["ratio", "vocab_size"])
    return {"rows": rows, "spread": float(spread.max())}


SETTING = {"sizes": [10**3, 10**5, 10**7], "settings": [(2, 0.3), (3, 0.06), (7, 0.02)], "ratios": [100.0, 400.0]}
STUDIES = (
    Study(
        "law",
        law,
        {**SETTING, "t_end": 1000.0},
        ("below Assumption 2's lower bound at M = 1000, for the two weaker overlaps",),
        quick=False,
        tolerance=1e-4,
    ),
)
