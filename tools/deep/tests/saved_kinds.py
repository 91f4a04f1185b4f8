"""A small saved file of each kind that this distribution adds."""

import numpy as np
import yzflow_deep as deep
from saved_kinds import File, archived, parts

from dynamics.support import netcdf

_TEXT = deep.Sequences.from_tokens(np.arange(41) % 5, length=8)
_DEEP = {"learning_rate": 0.1, "steps": 1, "batch_size": 2, "seeds": 1}


def _trained(path):
    run = deep.train(deep.Architecture(5, width=4, mlp_width=4), _TEXT, **_DEEP)
    netcdf.save_dataset(run, path)


def _checkpoint(path):
    deep.train(deep.Architecture(5, width=4, mlp_width=4), _TEXT, **_DEEP, checkpoint=path)


def _restored(path):
    """By the training itself, too, which starts again where the checkpoint is damaged."""
    restored = archived("yzflow-deep-checkpoint-1")(path)
    deep.train(deep.Architecture(5, width=4, mlp_width=4), _TEXT, **_DEEP, checkpoint=path)
    return restored


FILES = {
    "yzflow-deep-1": File("deep.nc", _trained, lambda path: parts(deep.load_training(path))),
    "yzflow-deep-checkpoint-1": File("state.npz", _checkpoint, _restored),
}
