"""Questions that files of this distribution's kinds answer; see `answered` of the shared tests."""

import numpy as np
from answered import Question
from saved_kinds import parts
from yzflow_sparse_averaging.trained.linear_query import LinearQueryUnit
from yzflow_sparse_averaging.trained.qsa import train_qsa

QSA = {"n_tokens": 4, "subset_size": 2, "embedding_dim": 3, "value_dim": 2, "steps": 3, "batch_size": 2}


def unit(seed):
    rng = np.random.default_rng(seed)
    return LinearQueryUnit(*(rng.normal(size=shape) for shape in ((4, 3), (4, 3), (2, 2))))


def trained_qsa(folder, **changes):
    return parts(train_qsa(**QSA | changes, checkpoint=folder / "qsa.nc"))


ANSWERED = {
    "yzflow-qsa-training-1": {
        "qsa": Question(
            trained_qsa,
            "yzflow_sparse_averaging.trained.qsa:_Run._step",
            {
                "an option": {"learning_rate": 0.2},
                "a seed": {"seed": 1},
                "a start": {"init": unit(0)},
            },
        ),
        "qsa from a unit": Question(
            lambda folder, **changes: trained_qsa(folder, **{"init": unit(0)} | changes),
            "yzflow_sparse_averaging.trained.qsa:_Run._step",
            {"content of equal sizes": {"init": unit(1)}, "a pool": {"seed": np.random.SeedSequence(0, pool_size=8)}},
        ),
    },
}
