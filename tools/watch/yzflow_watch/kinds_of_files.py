"""Kinds of saved files that this distribution adds to those of yzflow, found by an entry point."""

from dynamics.support.sealed import Kind

KINDS = {
    "yzflow-recording-1": Kind("a recording of a training", "yzflow_watch.recording:Recording.load"),
}
