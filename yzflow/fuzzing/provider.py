"""Hypothesis's own draws without the constants that it reads in the modules at hand.

Which modules those are differs from one process to the next, and examples with them.
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
