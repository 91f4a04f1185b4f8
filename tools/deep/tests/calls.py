"""Valid calls of this room's public functions, which the hostile tests vary, and what only the room itself makes."""

# ruff: noqa: C408
import re

import hostile
import numpy as np
import yzflow_deep as deep
from yzflow_bounded_dyck import DyckLanguage

from dynamics import Layer
from dynamics.support import netcdf

INNER = re.compile(r"\._|\.(objective|kinds)\b")  # modules whose names are no calls for users
EXEMPT = {hostile.OURS: {"model.Block", "model.reparameterised"}}
SLOW = {"training.train"}  # which compiles for seconds a call


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    dyck = DyckLanguage(2, 3)
    architecture = deep.Architecture(3, width=2, mlp_width=2)
    sequences = deep.Sequences([[0, 1, 2]], [[1, 2, 0]])
    model, plain = deep.Transformer(architecture, 0), Layer(np.eye(3), np.eye(3))
    training = dict(
        start=architecture,
        data=sequences,
        learning_rate=0.1,
        steps=1,
        optimizer="sgd",
        momentum=0.5,
        batch_size=1,
        seeds=1,
        validation=sequences,
        probe=[[0, 1]],
        contrast=None,
        contrast_weight=0.0,
        label_smoothing=0.0,
        record_every=1,
        dtype="float32",
        checkpoint=None,
        progress=False,
    )
    deep_run = deep.train(**training)
    netcdf.save_dataset(deep_run, "deep.nc")
    return {
        "data.Insertions": (deep.Insertions, dict(tokens=[[0, 1]], lengths=[2], weights=[1.0])),
        "data.Sequences": (deep.Sequences, dict(inputs=[[0, 1]], targets=[[1, 0]], mask=np.ones((1, 2), bool))),
        "data.Sequences.from_tokens": (deep.Sequences.from_tokens, dict(tokens=[0, 1, 2], length=2)),
        "data.Sequences.__getitem__": (sequences.__getitem__, dict(rows=[0])),
        "data.dyck_insertions": (deep.dyck_insertions, dict(language=dyck, first_layer="trained")),
        "data.dyck_sequences": (deep.dyck_sequences, dict(language=dyck, prefixes=["()"], first_layer="trained",
                                                               targets="drawn", length=4)),
        "model.Architecture": (deep.Architecture, dict(
            vocab_size=3, n_outputs=3, n_layers=1, n_heads=1, width=2, mlp_width=2, positions="learned", max_length=4,
            norm="before", norm_kind="layer", residual=True, tied=True, values=True, factored=True, attend_self=True,
            train_embedding=True, temperature=1.0)),
        "model.Transformer": (deep.Transformer, dict(architecture=architecture, rng=0, dtype="float32")),
        **{f"model.Transformer.{name}": (getattr(model, name), dict(tokens=[0, 1]))
           for name in ("hidden", "__call__", "attention")},
        "model.Transformer.decode": (model.decode, dict(hidden=model.hidden([0, 1])[0])),
        "model.from_layer": (deep.from_layer, dict(layer=plain, embedding=np.eye(3))),
        "model.to_layer": (deep.to_layer, dict(model=deep.from_layer(plain))),
        "training.load_training": (deep.load_training, dict(path="deep.nc")),
        "training.model_at": (deep.model_at, dict(dataset=deep_run, learning_rate=0.1, seed=0)),
        "training.train": (deep.train, training),
    }  # fmt: skip
