"""Names of tokens: the texts by which a reader knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dynamics.support import checks

__all__ = ["token_names"]


def token_names(names: Any, tokens: Iterable[int]) -> dict[int, str]:
    """Text of each token, in quotation marks; its number without ``names``.

    Parameters
    ----------
    names : mapping, sequence, callable or tokenizer, or None
        From numbers to texts; a tokenizer has ``decode`` or ``convert_ids_to_tokens``, which take a list of numbers.
    tokens : iterable of int

    Raises
    ------
    ValueError
        If there is no text for a token.
    """
    numbers = [int(token) for token in tokens]
    if names is None:
        return {number: f"token {number}" for number in numbers}
    text_of, found = _lookup(names), {}
    for number in numbers:
        try:
            text = text_of(number)
        except Exception as error:  # other people's code can raise anything
            why = f"an error, {type(error).__name__}: {error}".splitlines()[0]
            raise checks.reject(
                "names", f"have a text for token {number}, as for each that is kept apart", why
            ) from error
        if not isinstance(text, str):
            raise checks.reject("names", f"have a text for token {number}", checks.brief(text))
        found[number] = repr(str(text))
    return found


def _lookup(names: Any) -> Callable[[int], Any]:
    """A function from a number to its text."""
    if callable(getattr(names, "decode", None)):
        return lambda number: names.decode([number])
    if callable(getattr(names, "convert_ids_to_tokens", None)):
        return lambda number: names.convert_ids_to_tokens([number])[0]
    if hasattr(names, "__getitem__") and not isinstance(names, type):
        return lambda number: names[number]
    if callable(names):
        return names
    rule = "be a mapping, a sequence or a function from numbers to texts, or a tokenizer"
    raise checks.reject("names", rule, checks.brief(names))
