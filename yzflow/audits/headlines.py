"""Verdicts in words: a sentence for all columns, and a headline that always names a failure in training."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from theory import layout
from yzflow.audits.outcomes import MISSED, PRINTED, Column, Outcome, Part

__all__ = ["MOST", "failing", "failure", "headline", "own_headline", "sentence"]

MOST = 160  # characters of a headline
# Column -> the words before its finding in a sentence.
_WHERE = {
    PRINTED: "as printed",
    **dict(zip(layout.COLUMNS, ("in the theory", "under the true gradient", "in SGD"), strict=True)),
}
# Column -> name of a reader's training.
_TRAINED = dict(zip(layout.COLUMNS[1:], ("full flow", "SGD"), strict=True))
_NAMED = 2  # failed parts that a sentence names
_SILENT = (Outcome.NOT_RUN, Outcome.NOT_EXAMINED)


def sentence(columns: Sequence[Column]) -> str:
    """The findings of each column in plain words: parts that held, and parts that missed with their errors."""
    said = [f"{_upper(f'{_where(column)} {_phrases(column)[0]}')}." for column in columns if _speaks(column)]
    if not said:
        could_run = any(part.outcome is Outcome.NOT_RUN for column in columns for part in column.parts)
        return "Nothing was run for this." if could_run else "No simulation and no proof is asked about this statement."
    return " ".join(said)


def headline(columns: Sequence[Column]) -> str:
    """One sentence of at most `MOST` characters, on the first column with a finding.

    The order is: true gradient, theory, SGD, printed form. A refuted conjecture comes before all, and a failure in SGD
    is always added.
    """
    by_name = {column.name: column for column in columns}
    printed, steps = by_name.get(PRINTED), by_name.get("SGD")
    first = next((by_name[name] for name in ("true gradient", "theory", "SGD", PRINTED) if _says(by_name, name)), None)
    if printed is not None and printed.scope:
        first = printed
    if first is None:
        return sentence(columns)
    said = [first]
    if steps is not None and steps is not first and _fails(steps) and not _fails(first):
        said.append(steps)
    return _fit([(_where(column), _phrases(column)) for column in said])


def own_headline(
    columns: Sequence[Column], *, training: str = "", broken: int = 0, of: int = 0, subject: str = ""
) -> str:
    """One sentence of at most `MOST` characters on a reader's own training, which begins with its outcome.

    Parameters
    ----------
    columns : sequence of Column
        The verdict at the reader's setting.
    training : str
        Features of the training that the statement does not treat.
    broken, of : int
        How many of the assumptions are broken there.
    subject : str
        The name of what a reader gave, if it was trained already, by whatever steps.
    """
    by_name = {column.name: column for column in columns}
    ending = f"; {broken} of {of} assumptions broken" if broken else ""
    trained = {name: by_name[name] for name in _TRAINED if name in by_name and by_name[name].parts}
    ran = {name: column for name, column in trained.items() if _speaks(column)}
    if not ran:
        start = "your training was not run" if trained else "it is not asked of training"
        rest = next((by_name[name] for name in ("theory", PRINTED) if _says(by_name, name)), None)
        return _fit([("", [start]), *([] if rest is None else [(_where(rest), _phrases(rest))])], ending)
    clauses: list[tuple[str, list[str]]] = []
    for name, column in (ran if subject else trained).items():
        if subject:
            clauses.append((f"in your {subject}", _phrases(column, named=True)))
        elif name not in ran:
            clauses.append(("", [f"{_TRAINED[name]} was not run"]))
        elif clauses and clauses[-1][1] == _phrases(column, named=True):
            clauses[-1] = (f"{clauses[-1][0]} and {_TRAINED[name]}", clauses[-1][1])
        else:
            clauses.append((f"in your {_TRAINED[name]}", _phrases(column, named=True)))
    if not training:
        return _fit(clauses, ending)
    first = next(i for i, (where, _) in enumerate(clauses) if where)
    where, words = clauses[first]
    return _fit(clauses, ending, named=[*clauses[:first], (f"{where} ({training})", words), *clauses[first + 1 :]])


def failure(names: str) -> str:
    """A sentence on proofs and checks that should hold and fail."""
    return f"FAILS where it should hold: {names}."


def failing(wrong: Sequence[tuple[str, str]]) -> str:
    """The headline of failures: the name of each and its setting, or as many as fit."""
    (name, at), *others = wrong
    more = f"; {len(others)} more" if others else ""
    count = f"{len(wrong)} checks or steps of the proof"
    names = ["; ".join(name + at for name, at in wrong), f"{name}{at}{more}", f"{name}{more}", count]
    return fitted([failure(name) for name in names])


def fitted(candidates: Sequence[str]) -> str:
    """The first candidate of at most `MOST` characters, or else the last; longest candidates first."""
    return next((text for text in candidates if len(text) <= MOST), candidates[-1])


def _fit(
    clauses: Sequence[tuple[str, list[str]]], ending: str = "", named: Sequence[tuple[str, list[str]]] | None = None
) -> str:
    """One sentence from clauses, each in the longest wording that fits."""
    candidates = []
    for form in (named or clauses, clauses):
        for words in itertools.product(*(choices for _, choices in form)):
            said = (f"{where} {phrase}".strip() for (where, _), phrase in zip(form, words, strict=True))
            candidates.append(f"{_upper('; '.join(said))}{ending}.")
    return fitted(sorted(candidates, key=len, reverse=True))


def _upper(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _where(column: Column) -> str:
    return column.where or _WHERE[column.name]


def _speaks(column: Column) -> bool:
    """True if the column has a finding."""
    return any(part.outcome not in _SILENT for part in column.parts)


def _says(by_name: dict[str, Column], name: str) -> bool:
    return name in by_name and _speaks(by_name[name])


def _fails(column: Column) -> bool:
    return column.outcome in (Outcome.FAILS, Outcome.REFUTED)


def _phrases(column: Column, *, named: bool = False) -> list[str]:
    """Wordings of a column's finding, without the column's name, from the fullest to the shortest.

    With ``named``, a part that was measured alone is called by its name.
    """
    first, *others = _worded(column, named)
    kept = [first]
    kept += [words for words in others if len(words) < len(kept[-1])]
    return kept


def _worded(column: Column, named: bool) -> list[str]:
    if column.scope:
        return [f"it is refuted here, {column.scope}", "it is refuted here"]
    held = [part for part in column.parts if part.outcome is Outcome.HOLDS]
    if column.outcome in MISSED:
        missed = [part for part in column.parts if part.outcome in MISSED]
        unrun = any(part.outcome is Outcome.NOT_RUN for part in column.parts)
        return _failing(held, missed, named, rest="what else was run" if unrun else "the rest")
    others = [part for part in column.parts if part.outcome not in (Outcome.HOLDS, *_SILENT)]
    if column.outcome is Outcome.HOLDS:
        alone = [f"{held[0].says} held"] if named and len(held) == 1 and not others else []
        return [*alone, *_holding(column, held, others)]
    return _open(column, held)


def _failing(held: Sequence[Part], missed: list[Part], named: bool, rest: str) -> list[str]:
    missed.sort(key=lambda part: (part.outcome is Outcome.DIFFERS, part.size is None, -(part.size or 0.0)))
    shortest = f"it {_missed(missed[0])}"
    if not held and len(missed) == 1:
        return [f"{missed[0].says} {_missed(missed[0])}", shortest] if named else [shortest]
    words = "; ".join(f"{part.says} {_missed(part)}" for part in missed[:_NAMED])
    if len(missed) > _NAMED:
        words += f"; {len(missed) - _NAMED} more failed"
    more = f"; {len(missed) - 1} more failed" if len(missed) > 1 else ""
    worst = f"{missed[0].says} {_missed(missed[0])}"
    if not held:
        return [words, f"{worst}{more}", shortest]
    whole = f"{words}; {rest} held" if len(held) > 2 else f"{_listed(held)} held; {words}"
    share = f"{len(held)} of {len(held) + len(missed)} parts held"
    return [whole, f"{words}; {share}", f"{worst}; {share}", f"{worst}{more}", shortest]


def _holding(column: Column, held: Sequence[Part], others: Sequence[Part]) -> list[str]:
    measured = [part for part in held if part.size is not None]
    said = next((_proved(part) for part in held if part.size is None), [""])
    run = f"held{column.where_run}" if measured else ""
    words, *shorter = (f"{column.about or 'it'} {' and '.join(filter(None, [run, proved]))}" for proved in said)
    if not others:
        return [words, *shorter]
    count = f"{len(held)} of {len(held) + len(others)} parts held, the rest was {_kinds(others)}"
    named = "; ".join(f"{part.says}: {part.outcome.value}" for part in others)
    return [f"{_listed(measured)} held; {named}", count] if measured else [f"{words}; {named}", words, *shorter]


def _proved(part: Part) -> list[str]:
    """Wordings of a proof that holds; the word "proved" never stands without the sizes of a proof at sizes."""
    of = f" in {part.clauses}" if part.clauses else ""
    unsized = f"has a proof{of}{part.sizes.partition(' at ')[0]} at fixed sizes"
    return [f"is proved{of}{part.sizes}", *[unsized] * bool(part.sizes)]


def _open(column: Column, held: Sequence[Part]) -> list[str]:
    """Wordings for a column that neither holds nor fails."""
    part = column.deciding[0]
    if part.outcome is Outcome.STOPPED:
        return [f"training stopped {part.why}".rstrip()]
    if part.outcome is Outcome.NOTHING:
        return ["there was nothing to compare"]
    if part.outcome is not Outcome.NOT_MET:
        return [f"it was {part.outcome.value}"]
    why = f" ({part.why})" if part.why else ""
    short = f"its hypothesis was not met{why}"
    also = f"; {_listed(held)} held" if held else ""
    assumption = f" ({part.unmet[0].partition(': ')[0]}: {part.why})" if part.unmet is not None else ""
    return [f"its hypothesis was not met{assumption}{also}", f"{short}{also}", short]


def _listed(parts: Sequence[Part]) -> str:
    return " and ".join(part.says for part in parts)


def _kinds(parts: Sequence[Part]) -> str:
    return " or ".join(dict.fromkeys(part.outcome.value for part in parts))


def _missed(part: Part) -> str:
    """Verb for a part that missed, in the past tense, which fits singular and plural."""
    verb = {Outcome.REFUTED: "was found false in balls", Outcome.DIFFERS: "differed"}.get(part.outcome, "failed")
    why = f" ({part.why})" if part.outcome is Outcome.DIFFERS else ""
    return f"{verb}, {part.by}{why}" if part.by else f"{verb}{why}"
