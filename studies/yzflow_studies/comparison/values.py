"""Numbers of findings on the page of comparison: two pages that state one number share it."""

import re
from collections.abc import Sequence

from dynamics.support import checks
from theory import attention
from theory.values import Study
from yzflow.values.marks import bare
from yzflow_studies import CLONE
from yzflow_studies.dyck_embeddings.study import random_variation

PAGES = sorted((CLONE / "studies" / "yzflow_studies").glob("*/*.md"))


def quoted(page: str, pieces: Sequence[str]) -> dict[str, str]:
    """Numbers that stand once on the page of a finding, in pieces of its text with names in braces for them.

    Raises
    ------
    ValueError
        If a piece does not stand there once.
    """
    texts = [path.read_text(encoding="utf-8") for path in PAGES]
    [text] = [" ".join(bare(one).split()) for one in texts if one.startswith(f"# {int(page)}. ")]
    found: dict[str, str] = {}
    for piece in pieces:
        # Between the named places the words of the finding, and in them a number.
        parts = re.split(r"\{(\w+)\}", piece)
        pattern = "".join(
            rf"(?P<{part}>[-+]?[\d.,]*\d%?)" if i % 2 else re.escape(part) for i, part in enumerate(parts)
        )
        matches = list(re.finditer(pattern, text))
        if len(matches) != 1:
            raise checks.reject(
                "piece",
                f"stand once on the page of finding {int(page)}, but it stands {len(matches)} times",
                repr(piece),
            )
        found |= matches[0].groupdict()
    return found


def exponents(rates: Sequence[float], times: Sequence[float], eta_z: float, k: int, m: int, c0: float) -> dict:
    """B at two times for rising eta_Y, and whether it rises at the first and falls at the second."""
    found = [
        [float(attention.growth_exponent(t, vocab_size=m, n_classes=k, eta_y=y, eta_z=eta_z, c0=c0)) for y in rates]
        for t in times
    ]
    early, late = found
    return {
        "early": early,
        "late": late,
        "grows_early": early == sorted(early),
        "falls_late": late == sorted(late)[::-1],
    }


def variation(prefixes: int) -> dict[str, float]:
    """Variation of attention between seeds if rows are random."""
    return {"random": float(random_variation(prefixes))}


def finding(name: str, page: str, *pieces: str) -> Study:
    """A study of what is quoted from a finding."""
    return Study(name, quoted, {"page": page, "pieces": list(pieces)}, (f"measured for finding {int(page)}",))


STUDIES = (
    Study(
        "exponents",
        exponents,
        {"rates": [1.0, 2.0, 10.0], "times": [10.0, 1000.0], "eta_z": 0.5, "k": 10, "m": 1000, "c0": 1.0},
    ),
    Study("variation", variation, {"prefixes": 17}),
    finding("syn_medium", "09", "Syn-Medium with 5 queries, eta_Z = {eta_z}, ratio {ratio}: entropy {entropy} with"),
)
