"""A small saved file of each kind that this distribution adds."""

import watched_layers
from saved_kinds import File, parts
from yzflow_watch.recording import Recording


def _watched(path):
    layer = watched_layers.Trained(watched_layers.classes_inside(vocab_size=8))
    watched_layers.watched(layer, length=8, n=4, steps=2, predict_at=[1]).save(path)


def _recording(path):
    found = Recording.load(path)
    return parts(found.dataset) + repr((found, found.facts))


FILES = {"yzflow-recording-1": File("watched.nc", _watched, _recording)}
