"""Experiments that were made to find something out: a room for each finding, see README.md."""

from pathlib import Path

# The clone of the repository, which some rooms read: tables of benchmarks, the survival table, pages. No wheel has it.
CLONE = Path(__file__).parents[2]
