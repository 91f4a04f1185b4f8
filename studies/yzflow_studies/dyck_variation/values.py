"""Table 1's attention variation, one setting at a time: which of them moves it towards random rows."""

from typing import Any

import numpy as np

from theory.values import Study
from yzflow import intervals
from yzflow_studies.dyck_embeddings.study import random_variation
from yzflow_studies.dyck_variation import study

STORE = "dyck_variation.store"  # in the repository's root, where git ignores it: what it holds is not trained again


def factors(n_base: int, n_seeds: int, first_seed: int, data_seed: int) -> dict[str, Any]:
    """Variation by setting with 95% intervals, the change of each factor with its verdict, and sharpness."""
    runs = study.table(n_base=n_base, n_seeds=n_seeds, first_seed=first_seed, data_seed=data_seed, store=STORE)
    rows = []
    for name in runs["setting"].values:
        first = study.maps(runs, name, layer=1)
        mean, error = study.attention_variation(first)
        accuracy = runs["accuracy"].sel(setting=name, closing="all").dropna("seed")
        rows.append(
            {
                "setting": str(name),
                "sharpness": study.sharpness(runs, name),
                "first": {"mean": mean, "half": intervals.factor(len(first)) * error},
                "accuracy": float(accuracy.mean()),
                "least": float(accuracy.min()),
                "diverged": int((runs["diverged"].sel(setting=name) >= 0).sum()),
            }
        )
    mean, error = study.attention_variation(study.maps(runs, study.BASE.name))
    base = {"mean": mean, "half": intervals.factor(n_base) * error}
    random = random_variation(runs.sizes["row"])
    found = study.effects(runs)
    for row, at in zip(found, rows[1:], strict=False):
        row |= {name: at[name] for name in ("first", "accuracy", "sharpness")}
    sharp = rows[0]["sharpness"]
    slow = next(row for row in found if row["factor"] == "Adam at 3e-4")
    return {
        "base": {**rows[0], "variation": base, "ratio": mean / random, "gap": mean - random},
        "trained": found[: len(study.TRAINED)],
        "measured": found[len(study.TRAINED) :],
        "random": random,
        "near": study.NEAR * random,
        "closes": [row["factor"] for row in found if row["verdict"] == "closes"],
        "lessens": [row["factor"] for row in found if row["verdict"] == "lessens"],
        "widens": [row["factor"] for row in found if row["verdict"] == "widens"],
        "verdicts": {verdict: sum(row["verdict"] == verdict for row in found) for verdict in study.VERDICTS},
        "sharper": bool(sharp["mean"] + sharp["half"] < 0),
        "as_random_of_own": [
            float(some([row["sharpness"]["variation"] / row["sharpness"]["own"] for row in rows]))
            for some in (np.min, np.max)
        ],
        "slow": {**slow, "both": (slow["variation"]["mean"] + slow["first"]["mean"]) / 2},
        "best_share": max(row["share"] for row in found if row["verdict"] != "open"),
        "diverged": sum(row["diverged"] for row in rows),
        "models": n_base + n_seeds * len(study.TRAINED),
    }


def fresh(n_seeds: int, first_seed: int, data_seeds: list[int]) -> dict[str, Any]:
    """Variation of the base on words drawn anew, by data seed, beside random rows and its own rows shuffled."""
    rows, found = [], []
    for number, data_seed in enumerate(data_seeds):
        first = first_seed + number * n_seeds
        options: dict[str, Any] = {"settings": [study.BASE], "n_base": n_seeds, "first_seed": first, "store": STORE}
        runs = study.table(data_seed=data_seed, **options)
        mean, error = study.attention_variation(study.maps(runs, study.BASE.name))
        found.append((mean, error))
        rows.append(
            {
                "data_seed": data_seed,
                "variation": {"mean": mean, "half": intervals.factor(n_seeds) * error},
                "sharpness": study.sharpness(runs, study.BASE.name),
                "accuracy": float(runs["accuracy"].sel(closing="all").mean()),
            }
        )
    random = random_variation(runs.sizes["row"])
    error = float(np.sqrt(sum(one**2 for _, one in found))) / len(found)
    return {
        "rows": rows,
        "random": random,
        "above": all(row["variation"]["mean"] - row["variation"]["half"] > random for row in rows),
        "converged": {"steps": study.CONVERGED.steps, "eta": study.CONVERGED.eta},
        "replicated": {
            "what": "attention variation between seeds less that of random rows",
            "data_seeds": data_seeds,
            "seeds": n_seeds * len(data_seeds),
            "mean": float(np.mean([mean for mean, _ in found])) - random,
            "half": intervals.factor(len(found) * (n_seeds - 1) + 1) * error,
        },
    }


STUDIES = (
    Study(
        "fresh",
        fresh,
        {"n_seeds": 8, "first_seed": 6000, "data_seeds": [4243]},
        ("GPTs of two layers, k = 2, D = 4, words of fewer than 28 brackets; jackknife intervals over seeds",),
        quick=False,
        tolerance=0.05,
    ),
    Study(
        "factors",
        factors,
        {
            "n_base": study.N_BASE,
            "n_seeds": study.N_SEEDS,
            "first_seed": study.FIRST_SEED,
            "data_seed": study.DATA_SEED,
        },
        ("GPTs of two layers, k = 2, D = 4, words of fewer than 28 brackets; jackknife intervals over seeds",),
        quick=False,
        tolerance=0.05,
    ),
)
