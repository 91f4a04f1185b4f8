"""Where the full flow's lead is proved never to shrink: at settings of a lattice, and in whole cells of settings."""

from yzflow_studies.certified_leads import cells, lattice

FIGURES = (*lattice.FIGURES, *cells.FIGURES)
