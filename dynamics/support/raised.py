"""Errors of other people's code: those of a user's functions are raised unchanged, others are said in a line."""

from __future__ import annotations

from contextlib import suppress


def note(error: Exception, what: str) -> None:
    """Mark an error as raised by a user's function, and add a note that names the function."""
    with suppress(AttributeError):  # of Python 3.10, or of a class of errors that takes no attributes
        if not is_own(error):
            error.raised_by_own_code = True  # type: ignore[attr-defined]
            error.add_note(f"raised by {what}")


def is_own(error: Exception) -> bool:
    """Tell whether a user's function raised the error, so that no integrator takes it for a failed step."""
    return hasattr(error, "raised_by_own_code")


def said(error: BaseException) -> str:
    """The message of an error in one line, or its class if it has none."""
    return " ".join(str(error).split()) or type(error).__name__
