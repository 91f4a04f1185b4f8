"""The core without the other distributions of this repository, in a new interpreter."""

from driving import python

# In the place of what finds modules and entry points: the same, but for packages that are hidden.
_HIDE = """
import sys
from importlib import metadata

hidden = {hidden!r}

class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else self.finder.find_spec(name, path, target)

def kept(entry_points=metadata.entry_points, **wanted):
    points = entry_points(**wanted)
    if "group" not in wanted:
        return points
    return metadata.EntryPoints(point for point in points if point.module.partition(".")[0] not in hidden)

sys.meta_path[:] = map(Hiding, sys.meta_path)
metadata.entry_points = kept
"""


def without(program: str, *hidden: str) -> str:
    """The output of a program in a new interpreter, where packages with these names are not installed."""
    return python(f"{_HIDE.format(hidden=hidden)}\n{program}")
