"""Kinds of saved files that this distribution adds to those of yzflow, found by an entry point."""

from dynamics.support.sealed import Kind

KINDS = {
    "yzflow-qsa-training-1": Kind(
        "a training on sparse averaging", "yzflow_sparse_averaging.trained.qsa:load_training", remade=True
    ),
}
