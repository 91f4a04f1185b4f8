"""What the explorer cannot compute in the browser: SGD runs, a balanced layer, random keys."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from dynamics import DyckLanguage, Layer, SequenceClasses, sgd
from dynamics.support.progress import Progress
from theory import balance
from yzflow.pages.explorer.presets import AVERAGING, DYCK, TRANSITION

BATCH_SIZE, LENGTH, N_TOKENS, MAX_DIMENSION = 128, 128, 64, 256
LANGUAGE = DyckLanguage(n_types=2, max_depth=3)


def sgd_logits(setting: dict, *, seed: int = 0, records: int = 100) -> dict:
    """SGD of a preset: steps, and logits of the common and the distinct tokens, means over the classes."""
    classes = SequenceClasses.single_common_token(
        setting["K"], setting["M"], common=setting["common"], distinct=setting["distinct"]
    )
    steps = int(setting["end"])
    run = sgd(
        classes,
        eta_y=setting["etaY"],
        eta_z=setting["etaZ"],
        steps=steps,
        batch_size=BATCH_SIZE,
        length=LENGTH,
        momentum=0.0,
        seed=seed,
        record_every=max(1, steps // records),
    )
    z = run.dataset["z"].to_numpy()[:, 0]
    distinct = z[:, 1:].reshape(len(z), setting["K"], -1).mean(axis=1)
    logits = np.column_stack([z[:, 0], distinct])
    return {"t": run.dataset["time"].to_numpy().tolist(), "z": logits.round(9).tolist()}


def dyck_layer() -> Layer:
    """A balanced layer whose read-out is sharp enough to see."""
    layer = balance.balanced_layer(LANGUAGE, rng=2, scale=0.3)
    return Layer(layer.Z, 200.0 * layer.Y, layer.V)


def violation_pattern() -> np.ndarray:
    """What the slider's value multiplies and adds to Z: noise on the open brackets, which breaks (11)."""
    pattern = np.zeros((LANGUAGE.n_states, LANGUAGE.n_states))
    opens = balance.pairs(LANGUAGE)[0].ravel()
    pattern[:, opens] = np.random.default_rng(4).normal(size=(LANGUAGE.n_states, opens.size)).round(6) * -1
    return pattern


def key_signs() -> np.ndarray:
    """Signs of the random keys, (tokens, dimensions); the first m columns over sqrt(m) are keys of dimension m."""
    return np.random.default_rng(1).choice(np.array([-1, 1]), size=(N_TOKENS, MAX_DIMENSION))


def collect(*, progress: bool = False) -> dict:
    """Everything that the page reads, ready for JSON."""
    transition = []
    with Progress("SGD runs", enabled=progress) as report:
        for done, preset in enumerate(TRANSITION):
            report.update(done / len(TRANSITION), preset.name)
            run = sgd_logits(preset.setting) if preset.setting["K"] > 1 else None
            transition.append(asdict(preset) | {"sgd": run})
    layer = dyck_layer()
    return {
        "transition": transition,
        "dyck": {
            "presets": [asdict(preset) for preset in DYCK],
            "language": {"k": LANGUAGE.n_types, "D": LANGUAGE.max_depth},
            "layer": {"Z": layer.Z.tolist(), "V": np.asarray(layer.V).tolist(), "Y": layer.Y.tolist()},
            "pattern": violation_pattern().tolist(),
        },
        "averaging": {
            "presets": [asdict(preset) for preset in AVERAGING],
            "signs": ["".join("+" if sign > 0 else "-" for sign in row) for row in key_signs()],
        },
    }
