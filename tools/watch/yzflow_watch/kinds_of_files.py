"""Kinds of saved files that this distribution adds to those of yzflow, found by an entry point."""

KINDS = {"yzflow-recording-1": "a recording of a training"}
