"""``python -m yzflow.values``: commands for a clone, whose code is beside the writers of its pages."""

import sys
from pathlib import Path

writers, studies = Path.cwd() / "docs" / "writers", Path.cwd() / "studies"
if not (writers / "published").is_dir():
    sys.exit(f"`python -m yzflow.values` must be run in a clone of the repository, but {Path.cwd()} is none")
# The rooms of this clone import each other, whether they are installed or not.
sys.path[:0] = [str(studies), str(writers), str(Path.cwd())]  # the last for its benchmarks

from published.commands import main  # noqa: E402, found from here on

main()
