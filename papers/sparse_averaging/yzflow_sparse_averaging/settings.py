"""Sparse averaging, pairs and triples: sizes at which the constructions and protocols are run. Nothing is trained."""

from __future__ import annotations

from dataclasses import dataclass

from dynamics import Trajectory
from dynamics.support import checks

PAPER = "Sparse averaging"


@dataclass(frozen=True)
class AveragingSetting:
    """Sizes of the tasks.

    Attributes
    ----------
    name : str
    n_tokens : int
        N of sparse averaging and of Match2.
    subset_size : int
        q.
    modulus : int
        M.
    bits : int
        n of the set-disjointness protocols, q of theirs.
    root : int
        G of the two-layer construction for Match3 on G^3 tokens.
    seed : int
        Of keys and random inputs.
    """

    name: str
    n_tokens: int
    subset_size: int
    modulus: int
    bits: int
    root: int
    seed: int = 0

    def simulate(self, level: str, *, seed: int) -> Trajectory:
        """Nothing: these statements are about what can be represented, at the level "closed form" only."""
        raise checks.reject("level", "be left to formulas, since nothing is simulated", repr(level))


def settings(*, quick: bool) -> list[AveragingSetting]:
    """Small and large inputs; M = 2, where every residue is its own inverse."""
    chosen = [
        AveragingSetting("N = 40, q = 3, M = 101", 40, 3, 101, bits=4, root=2),
        AveragingSetting("M = 2: N = 12, q = 1", 12, 1, 2, bits=2, root=1),
    ]
    if not quick:
        chosen += [
            AveragingSetting("N = 512, q = 8, M = 10,007", 512, 8, 10_007, bits=6, root=3),
            AveragingSetting("N = 4096, q = 16, M = 1,000,003", 4096, 16, 1_000_003, bits=5, root=4),
        ]
    return chosen
