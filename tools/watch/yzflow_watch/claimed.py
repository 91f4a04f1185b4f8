"""All known rivals, and theories without a paper here, as far as their claims go."""

from __future__ import annotations

import numpy as np
import xarray as xr

from yzflow.parts import parts
from yzflow_watch.rivals import NULLS, SURE, Recording, Rival, frequent, heading, leader, said, uniform_odds

__all__ = ["CLAIMED", "known_rivals"]


class _FocusThenDilute:
    """Focus on frequent tokens, then dilution, in cycles: Chen, Lin, Xu and Luo (2026), arXiv 2605.01199.

    Known by its abstract alone, for one layer on Markovian data: attention first hardly moves, then focuses on frequent
    tokens, then loses that focus, and the next cycle begins. So while entropy falls or has not moved yet, frequent
    tokens gain and attention gets sparser. While entropy rises, the opposite holds, and the leader is left open. The
    abstract has no times: a phase is as likely to end in each doubling of time.
    """

    name = "focus, then dilute"

    def predict(self, recording: Recording) -> xr.Dataset:
        """Predictions from the phase of each head."""
        share, dilutes = recording.dataset["share"].values, (heading(recording) > 0)[..., None, None]
        rises = np.where(frequent(recording) ^ dilutes, SURE, 1 - SURE)
        return said(
            recording,
            rises=rises,
            leads=np.where(dilutes, np.nan, leader(share, recording)),
            sparser=np.where(dilutes[..., 0, 0], 1 - SURE, SURE),
            turns=uniform_odds(),
        )


CLAIMED: tuple[Rival, ...] = (_FocusThenDilute(),)


def known_rivals() -> tuple[Rival, ...]:
    """Rivals of all papers, others' theories, and the nulls, which come last."""
    return (*(one for _, found in parts("rivals") for one in found), *CLAIMED, *NULLS)
