"""Numbers in the questions on Scan and Snap's theorems, at what the pages' sliders start from."""

from typing import Any

import numpy as np

from dynamics import gradient_flow, sgd
from theory import attention, decoder
from theory.scan_and_snap import bounds
from theory.values import Study
from yzflow.papers.scan_and_snap.settings import single_common_token
from yzflow.papers.scan_and_snap.views import DISTINCT, VIEWS, integral_of_xi

FIRST = VIEWS.starts[None][0].setting
SIZES = {"k": FIRST["K"], "m": FIRST["M"], "rho": FIRST["rho"]}
RATES = {"eta_y": FIRST["etaY"], "eta_z": FIRST["etaZ"], "t": FIRST["end"]}


def _end(
    k: int, m: int, rho: float, eta_y: float, eta_z: float, t: float, level: str = "theory", token: int = 1
) -> float:
    """A logit at the end: the common token's is 0."""
    run = gradient_flow(single_common_token(k, m, rho), eta_y=eta_y, eta_z=eta_z, t_end=t, decoder=level)
    return float(run.dataset["z"].to_numpy()[-1, 0, token])


def theorem_1(k: int, m: int, rho: float) -> dict[str, Any]:
    """The slow-down, and next tokens that never occur."""
    return {"s": attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho), "unseen": m - k}


def theorem_1b(k: int, m: int, eta_y: float, constant: float) -> dict[str, float]:
    """The speed where the second stage begins, and the printed bound on it."""
    t = 2 * bounds.crossings(m)[1] * k / eta_y
    speed = float(decoder.gamma(t, vocab_size=m, n_classes=k, eta_y=eta_y))
    printed = constant * k * np.log(eta_y * t / k) / (eta_y * t)
    return {"t": t, "speed": speed, "printed": printed, "factor": speed / printed}


def theorem_2a(larger: float, **setting: Any) -> dict[str, float]:
    """Where a distinct token's logit ends in the theory flow, and with a larger rate of attention."""
    return {"end": _end(**setting), "faster": _end(**setting | {"eta_z": larger})}


def _fall(
    length: int, batch: int, seed: int, k: int, m: int, rho: float, eta_y: float, eta_z: float, t: float
) -> float:
    """How far SGD lowers the common token's logit."""
    run = sgd(
        single_common_token(k, m, rho), eta_y=eta_y, eta_z=eta_z, steps=int(t), momentum=0.0, record_every=int(t),
        length=length, batch_size=batch, seed=seed,
    )  # fmt: skip
    return float(-run.dataset["z"].to_numpy()[-1, 0, 0])


def theorem_2b(length: int, batch: int, large: int, seed: int, **setting: Any) -> dict[str, Any]:
    """How far SGD and the flow lower the common token's logit, and whether larger batches change that."""
    flow = -_end(**setting, level="full", token=0)
    few, many = (_fall(length, size, seed, **setting) for size in (batch, large))
    # Were it noise, what is over the flow's fall would shrink as the batches grow.
    return {"sgd": few, "flow": flow, "mean": abs(many - few) < 0.1 * (few - flow)}


def long_sequences(length: int, batch: int, seed: int, **setting: Any) -> dict[str, float]:
    """How far off the flow SGD ends with long sequences."""
    return {"off": abs(_fall(length, batch, seed, **setting) / -_end(**setting, level="full", token=0) - 1)}


def theorem_3(k: int, m: int, rho: float, eta_y: float, eta_z: float, t: float) -> dict[str, Any]:
    """The growth of a distinct token in the theory flow, between its bounds, printed and corrected."""
    classes = single_common_token(k, m, rho)
    exponent = eta_z * integral_of_xi(classes, np.geomspace(0.1, t, 100), eta_y=eta_y, eta_z=eta_z)[-1]
    p = classes.probabilities.toarray()[0]
    share = p[1] / np.linalg.norm(p)
    low, high = map(float, attention.growth_bounds(exponent / k, share))
    printed = float(attention.growth_bounds(exponent, share)[0])
    grown = float(np.exp(2 * _end(k, m, rho, eta_y, eta_z, t)))
    return {"chi": grown, "low": low, "high": high, "printed": printed, "corrected": low < grown < high < printed}


def theorem_4(k: int, m: int, rho: float, eta_y: float, eta_z: float, t: float) -> dict[str, float]:
    """B as printed before the first step, and as corrected at the end."""
    sizes = {"vocab_size": m, "n_classes": k, "eta_y": eta_y, "eta_z": eta_z}
    start = attention.printed_growth_exponent(0.0, **sizes, c0=1 / (k * rho**2))
    end = attention.growth_exponent(t, **sizes, c0=attention.speed_constant(n_classes=k, overlap=rho))
    return {"start": float(start), "end": float(end)}


def branches(k: int, m: int, eta_y: float) -> dict[str, float]:
    """By how much the two printed branches of Gamma are too large where the paper changes them."""
    sizes = {"vocab_size": m, "n_classes": k, "eta_y": eta_y}
    share = ((m - 1) / m) ** 2
    scan, snap = decoder.scanning_time(**sizes), decoder.snapping_time(**sizes)

    def exact(t: float) -> float:
        return float(4 * decoder.gamma_integral(t, **sizes, eta_z=1.0))

    early, late = 2 * share * eta_y / k * scan**2, 2 * k / eta_y * share * np.log(m * eta_y * snap / k) ** 2
    return {"early": early / exact(scan) - 1, "late": late / exact(snap) - 1}


def presets(k: int, m: int, common: float, large: int, rarer: float) -> dict[str, Any]:
    """The slow-down of a preset of the explorer with more tokens, and the K at which another leaves Assumption 2."""
    distinct = sum(p**2 for p in DISTINCT)

    def overlap(common: float) -> float:
        return common**2 / (common**2 + distinct)

    fails = next(n for n in range(2, large) if n * (n - 1) * overlap(rarer) >= 1)
    return {
        "s": attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=overlap(common)),
        "fails_at": fails,
    }


STUDIES = (
    Study("theorem_1", theorem_1, SIZES),
    Study("theorem_1b", theorem_1b, {"k": SIZES["k"], "m": SIZES["m"], "eta_y": RATES["eta_y"], "constant": 2.0}),
    Study("theorem_2a", theorem_2a, SIZES | RATES | {"larger": 10 * RATES["eta_z"]}),
    Study("theorem_2b", theorem_2b, SIZES | RATES | {"length": 128, "batch": 128, "large": 1024, "seed": 0}),
    Study(
        "long_sequences",
        long_sequences,
        SIZES | RATES | {"length": 16384, "batch": 128, "seed": 0},
        quick=False,
    ),
    Study("theorem_3", theorem_3, SIZES | RATES),
    Study("theorem_4", theorem_4, SIZES | RATES),
    Study("presets", presets, {"k": 10, "m": 1000, "common": 0.15, "large": 100, "rarer": 0.37}),
    Study("branches", branches, {"k": SIZES["k"], "m": SIZES["m"], "eta_y": RATES["eta_y"]}),
)
