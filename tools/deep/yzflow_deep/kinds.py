"""Kinds of saved files that this distribution adds to those of yzflow, found by an entry point."""

KINDS = {
    "yzflow-deep-1": "a training of transformers",
    "yzflow-deep-checkpoint-1": "a checkpoint of transformers",
}
