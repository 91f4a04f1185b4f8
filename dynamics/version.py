"""The version of yzflow, read by `setup.cfg` and written into every result file."""

__version__ = "1.0.0"
