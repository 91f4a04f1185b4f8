"""A small saved file of each kind that this distribution adds."""

from saved_kinds import File, parts
from yzflow_sparse_averaging.trained.qsa import load_training, train_qsa

_QSA = {"n_tokens": 4, "subset_size": 2, "embedding_dim": 3, "value_dim": 2, "steps": 2, "batch_size": 2}

FILES = {
    "yzflow-qsa-training-1": File(
        "qsa.nc", lambda path: train_qsa(**_QSA, checkpoint=path), lambda path: parts(load_training(path))
    ),
}
