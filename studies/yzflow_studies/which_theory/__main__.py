"""Trains what is missing of the bench, and draws its figure: ``python -m yzflow_studies.which_theory [FOLDER]``."""

import sys
from pathlib import Path

from yzflow.figures.style import save
from yzflow_studies.which_theory import drawing, study, values

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    scores = study.bench(drawing.settings(), values.STORE, progress=True)
    for path in save(study.which_theory(scores), folder / "which_theory", formats=("png",)):
        print(path)
