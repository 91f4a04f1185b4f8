"""Checks of input, files, archives, progress: support for every part."""
