"""Settings of the bench: trainings drawn from a stated distribution before any was run, and a file that keeps them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.support import checks

SEED = 4900  # used by no other study of this project
FILE = Path(__file__).with_name("settings.json")
SHA256 = "b177f8549bd5cde97bdaf25d1297820f556265a4ea55f7f70fb0cfd6d179d6a1"
TEXTS = ("sotu", "ferry")
SIZES = {"small": {"width": 16, "heads": 1}, "large": {"width": 48, "heads": 2}}
# How many settings of each kind: on populations, and on each text at each size with each optimizer.
KINDS = {"paper's": 30, "layer": 40, "embedding": 30, "attention": 50, "gpt2": 50}
ON_TEXT = ("layer", "attention", "attention", "gpt2", "gpt2")
LONG = 6000  # T of the settings that are to be inside the theorems' assumptions


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number that is uniform on a logarithmic axis, to three digits."""
    return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}")


def _population(rng: np.random.Generator) -> dict[str, Any]:
    """Classes with tokens of their own and common ones; what `models.population` makes of it has fewer than 60."""
    return {
        "classes": int(rng.integers(2, 9)),
        "queries": int(rng.integers(1, 4)),
        "distinct": int(rng.integers(1, 5)),  # tokens a class
        "common": int(rng.integers(1, 4)),
        "common_share": round(float(rng.uniform(0.1, 0.8)), 3),
        "decay": round(float(rng.uniform(0.5, 1.0)), 3),  # frequency of one token to that of the next
        "leak": round(float(rng.choice([0.0, rng.uniform(0.0, 0.3)])), 3),  # of other classes' tokens
        "weights": str(rng.choice(["equal", "falling"])),  # of next tokens
    }


def inside(rng: np.random.Generator) -> dict[str, Any]:
    """One common token, an overlap and a vocabulary inside Assumption 2."""
    classes = int(rng.integers(2, 5))
    least = max(1000, 36 * (classes * (classes - 1)) ** 2)
    vocabulary = int(least * rng.uniform(1.5, 3.0))
    overlap = log_uniform(rng, 1.1 * 6 / np.sqrt(vocabulary), 0.9 / (classes * (classes - 1)))
    return {"classes": classes, "queries": 1, "vocabulary": vocabulary, "overlap": overlap}


def _training(rng: np.random.Generator, kind: str, optimizer: str) -> dict[str, Any]:
    """Rates, steps and batches."""
    adam = optimizer == "Adam"
    found: dict[str, Any] = {"optimizer": optimizer, "momentum": 0.0, "batch": int(rng.choice([16, 32]))}
    if not adam and rng.random() < 0.3:
        found["momentum"] = 0.9
    if kind == "layer":
        found["eta_y"] = log_uniform(rng, 3e-3, 0.1) if adam else log_uniform(rng, 0.1, 3.0)
        found["eta_z"] = float(
            f"{found['eta_y'] * (log_uniform(rng, 1e-2, 1) if adam else log_uniform(rng, 1e-4, 2)):.3g}"
        )
    else:
        rates = {"embedding": (0.03, 1.0), "attention": (0.03, 1.0), "gpt2": (0.03, 0.5)}[kind]
        found["rate"] = log_uniform(rng, 5e-4, 2e-2) if adam else log_uniform(rng, *rates)
    found["steps"] = int(rng.choice([400, 1000, 3000] if kind in ("layer", "embedding") else [400, 1000]))
    return found


def _model(rng: np.random.Generator, kind: str, size: str) -> dict[str, Any]:
    """Parts of the model besides one layer of attention and a decoder."""
    found: dict[str, Any] = {"size": size}
    if kind in ("layer", "embedding"):
        found["residual"] = bool(rng.random() < 0.3)
        found["bias"] = float(rng.choice([0.0, 0.0, 0.02, 0.1]))  # of attention by position
    elif kind == "attention":
        found["layers"] = int(rng.integers(1, 3))
        found |= {name: bool(rng.random() < 0.5) for name in ("residual", "norm", "positions", "feed_forward")}
    else:
        found["layers"] = int(rng.integers(1, 3))
    return found


def draw(seed: int = SEED) -> list[dict[str, Any]]:
    """The settings: 200 on populations and 40 on two texts, in an order that mixes kinds.

    Parameters
    ----------
    seed : int

    Returns
    -------
    list of dict
        Numbers and words; ``name`` is that of its file, ``seed`` that of its training.
    """
    rng, found = np.random.default_rng(seed), []
    for kind, count in KINDS.items():
        for number in range(count):
            # Sizes and optimizers in turn, so that each kind has as many of each.
            size, optimizer = tuple(SIZES)[number % 2], ("SGD", "Adam")[number // 2 % 2]
            if kind == "paper's":
                own: dict[str, Any] = {
                    "size": size,
                    "residual": False,
                    "bias": 0.0,
                    "length": LONG,
                    "optimizer": "SGD",
                    "momentum": 0.0,
                }
                rates = {"eta_y": log_uniform(rng, 0.2, 1.0)}
                rates["eta_z"] = float(f"{rates['eta_y'] * log_uniform(rng, 1e-4, 8e-3):.3g}")
                own |= rates | {"batch": 32, "steps": int(rng.choice([100, 300])), "population": inside(rng)}
            else:
                own = _model(rng, kind, size) | _training(rng, kind, optimizer)
                own["length"] = int(rng.choice([8, 16, 32, 64] + [256] * (kind in ("layer", "embedding"))))
                own["population"] = _population(rng)
                if kind in ("layer", "embedding"):  # next tokens that never come
                    own["population"]["vocabulary"] = round(log_uniform(rng, 10, 2000))
            found.append({"text": "", "kind": kind} | own)
    for text in TEXTS:
        for size in SIZES:
            for optimizer in ("SGD", "Adam"):
                for kind in ON_TEXT:
                    own = _model(rng, kind, size) | _training(rng, kind, optimizer)
                    found.append({"text": text, "kind": kind, "length": int(rng.choice([16, 32]))} | own)
    order = rng.permutation(len(found))
    return [{"name": f"{place:03d}", "seed": int(seed + place)} | found[i] for place, i in enumerate(order)]


def written(settings: list[dict[str, Any]]) -> str:
    """The text of the file, one setting a line."""
    return "[\n" + ",\n".join(json.dumps(one, sort_keys=True) for one in settings) + "\n]\n"


def settings(path: Path = FILE, sha256: str | None = None) -> list[dict[str, Any]]:
    """The settings of the file.

    Parameters
    ----------
    path : path
    sha256 : str, optional
        Of the file; default: that of the one that was committed before the runs.

    Raises
    ------
    ValueError
        If a byte of the file is not as it was then.
    """
    content = path.read_bytes()
    digest, wanted = hashlib.sha256(content).hexdigest(), SHA256 if sha256 is None else sha256
    if digest != wanted:
        raise checks.reject("path", f"be the file whose SHA-256 is {wanted}", f"{path.name} with {digest}")
    return json.loads(content)
