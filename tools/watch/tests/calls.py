"""Valid calls of this room's public functions, which the hostile tests vary, and what only the room itself makes."""

import re

import hostile
import numpy as np
import watched_layers
import yzflow_watch

INNER = re.compile(r"")  # the modules beside the public names are no calls for users
EXEMPT = {hostile.RECORD: {"recorder.Recorder"}}


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    trained = watched_layers.Trained(watched_layers.classes_inside(vocab_size=8))
    watching = {
        "model": trained, "tokens": watched_layers.draw(trained.classes, 4, 8, np.random.default_rng(0)),
        "attention": watched_layers.attention, "logits": watched_layers.logits, "optimizer": None,
        "rates": (1.0, 0.1), "learning_rate": 0.1, "batch_size": 4, "n_classes": 3, "n_tokens": 8,
        "predict_at": None, "inputs": None,
    }  # fmt: skip
    recorder = watched_layers.watched(trained, length=8, n=4, steps=2)
    return {
        "watching.watch": (yzflow_watch.watch, watching | {"path": None, "every": "log", "parts": None,
                                                            "resume_at": None}),
        "checkpoints.watch_checkpoints": (yzflow_watch.watch_checkpoints, {
            "checkpoints": {2: trained, 5: lambda: trained}, **{name: value for name, value in watching.items()
                                                                if name != "model"},
            "model": None, "path": None, "parts": None}),
        "recorder.Recorder.report": (recorder.report, {"now": 1, "names": None}),
        "recorder.Recorder.step": (recorder.step, {"model": None, "at": None}),
        "recorder.Recorder.save": (recorder.save, {"path": "watched.nc"}),
        "report.WatchReport": (yzflow_watch.WatchReport, {
            "recording": recorder.recording, "now": 1, "names": None}),
        "report.WatchReport.page": (recorder.report().page, {
            "path": "watched.html", "layer": 0, "head": 0}),
        "report.WatchReport.save": (recorder.report().save, {"path": "watched.nc"}),
    }  # fmt: skip
