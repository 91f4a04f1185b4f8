"""Errors of a person's own functions, such as schedules: they come out of a run as they were raised."""

from __future__ import annotations

from contextlib import suppress


def note(error: Exception, what: str) -> None:
    """Mark an error as one of a person's function, and say in a note which function that is."""
    with suppress(AttributeError):  # of Python 3.10, or of a class of errors that takes no attributes
        if not is_own(error):
            error.raised_by_own_code = True  # type: ignore[attr-defined]
            error.add_note(f"raised by {what}")


def is_own(error: Exception) -> bool:
    """Tell whether a person's function raised it, so that no integrator takes it for a failed step."""
    return hasattr(error, "raised_by_own_code")
