"""How large a population enclosures take."""

from yzflow_enclose.reading import MOST_VARIABLES

from theory.values import Study


def largest() -> dict[str, int]:
    """Variables of a flow that is not reduced by symmetry."""
    return {"variables": MOST_VARIABLES}


STUDIES = (Study("largest", largest),)
