"""Questions that files of this distribution's kinds answer; see `answered` of the shared tests."""

import numpy as np
import watched_layers
from answered import Question
from saved_kinds import parts

import yzflow as yz

_CLASSES = watched_layers.classes_inside(vocab_size=8)
_TOKENS = watched_layers.draw(_CLASSES, 4, 8, np.random.default_rng(0))


def recorded(folder, **changes):
    model = watched_layers.Trained(_CLASSES)
    looks = {"attention": watched_layers.attention, "logits": watched_layers.logits, "rates": model.rates}
    given = {"tokens": _TOKENS, "optimizer": watched_layers.PLAIN, "batch_size": 100} | changes
    return parts(yz.watch(model, given.pop("tokens"), **looks | given, path=folder / "run.nc").recording.dataset)


ANSWERED = {
    "yzflow-recording-1": {
        "recording": Question(
            recorded,
            "yzflow_watch.recorder:Recorder._record",
            {
                "tokens": {"tokens": watched_layers.draw(_CLASSES, 4, 8, np.random.default_rng(1))},
                "fewer next tokens": {"n_classes": 1},
                "fewer tokens": {"n_tokens": 2},
            },
        )
    },
}
