"""Questions that files of this distribution's kinds answer; see `answered` of the shared tests."""

import numpy as np
import yzflow_deep as deep
from answered import Question
from saved_kinds import parts

TEXT = np.arange(41) % 5


class MySequences(deep.Sequences):
    """Sequences of a class of one's own."""


def text(tokens, kind=deep.Sequences):
    return kind.from_tokens(tokens, length=8)


def trained_deep(folder, **changes):
    given = {"start": deep.Architecture(5, width=4, mlp_width=4), "data": text(TEXT), "learning_rate": 0.1,
             "steps": 2, "batch_size": 2, "seeds": 1} | changes  # fmt: skip
    return parts(deep.train(given.pop("start"), given.pop("data"), **given, checkpoint=folder / "deep.npz"))


READ_ALONE = {"yzflow-deep-1": "loaded; its checkpoint is what is gone on with"}
ANSWERED = {
    "yzflow-deep-checkpoint-1": {
        "deep": Question(
            trained_deep,
            "yzflow_deep.training:step_all",
            {
                "an option": {"momentum": 0.5, "optimizer": "sgd"},
                "a rate": {"learning_rate": 0.2},
                "a seed": {"seeds": [1]},
                "content": {"data": text((3 * TEXT) % 5)},
                "content of a class of one's own": {"data": text((2 * TEXT) % 5, MySequences)},
                "a start": {"start": deep.Transformer(deep.Architecture(5, width=4, mlp_width=4), 0)},
            },
            slow=True,
        )
    },
}
