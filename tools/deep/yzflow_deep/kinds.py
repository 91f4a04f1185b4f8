"""Kinds of saved files that this distribution adds to those of yzflow, found by an entry point."""

from dynamics.support.sealed import Kind

KINDS = {
    "yzflow-deep-1": Kind("a training of transformers", "yzflow_deep:load_training"),
    "yzflow-deep-checkpoint-1": Kind("a checkpoint of transformers", "yzflow_deep:train", remade=True),
}
