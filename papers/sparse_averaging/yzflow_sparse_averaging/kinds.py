"""Kinds of saved files that this distribution adds to those of yzflow, found by an entry point."""

KINDS = {"yzflow-qsa-training-1": "a training on sparse averaging"}
