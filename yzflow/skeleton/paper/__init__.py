"""A new paper for yzflow: the entry point of this distribution names the object below."""

from yzflow.paper import Paper, later

PAPER = Paper(
    name="A new paper",
    slug="a_new_paper",
    reference="Authors (year), a public number",
    levels=("flow", "steps"),
    columns={"theory": ("flow",), "SGD": ("steps",)},
    statements=later(f"{__name__}.statements:STATEMENTS"),
    settings=later(f"{__name__}.settings:settings"),
    proofs=later(f"{__name__}.proofs:PROOFS"),
    mistakes=later(f"{__name__}.proofs:MISTAKES"),
    figures=later(f"{__name__}.figures:FIGURES"),
)
