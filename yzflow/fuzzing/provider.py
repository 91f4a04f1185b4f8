"""Hypothesis's draws without constants from loaded modules.

Hypothesis also draws constants that it finds in loaded modules. These modules differ from one process to the next, and
the examples would, too.
"""

from __future__ import annotations

from typing import Any

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

NAME = "yzflow"


class Provider(HypothesisProvider):
    """Draws that depend on the seed alone."""

    def _maybe_draw_constant(self, *arguments: Any, **options: Any) -> None:
        return None


AVAILABLE_PROVIDERS[NAME] = f"{__name__}.{Provider.__name__}"
