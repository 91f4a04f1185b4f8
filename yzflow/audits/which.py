"""`yzflow.which`: the theorems that speak of data, of a model's training or of a recording, the nearest first."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dynamics import Bags, Optimizer, SequenceClasses
from dynamics.optimizers.optimizer import RULES
from dynamics.support import checks, distributions
from dynamics.support.rounded import margin as shown_margin
from theory import layout
from theory.statements import Statement
from yzflow.audits.own_training import made
from yzflow.audits.places import Applies, Place, applies, foreseen
from yzflow.audits.rendered import as_json, columns
from yzflow.parts import part_of, parts

__all__ = ["Which", "which"]

_WATCH = "yzflow_watch"
_WIDTH = 100
# Attributes of a setting that data alone do not have, and the conditions of every statement that they decide.
_NOT_IN_DATA = ("eta_y", "eta_z", "t_end", "length")
PLAIN = "plain steps on the cross-entropy"
# A paper that takes no such data would be left out with these errors, as if they were of its data.
_GIVEN: dict[str, checks.Check] = {
    **dict.fromkeys(("eta_y", "eta_z", "t_end"), checks.optional(checks.positive)),
    "optimizer": lambda name, value: (
        value if isinstance(value, Optimizer | None) else checks.one_of(name, value, RULES)
    ),
}


@dataclass(frozen=True, repr=False)
class Which:
    """The statements that were asked whether they speak of something.

    Attributes
    ----------
    asked : str
        What was asked about, in words.
    statements : mapping
        Id -> statement.
    applies : mapping
        Id -> margins of the statement's assumptions; NaN where the margin is unknown.
    foreseen : mapping
        Id -> what the statement predicts, in words; only of those that predict something from what is known.
    left_out : mapping
        Paper -> why none of its statements could be asked.
    """

    asked: str
    statements: Mapping[str, Statement]
    applies: Mapping[str, Applies]
    foreseen: Mapping[str, str]
    left_out: Mapping[str, str]

    @property
    def inside(self) -> tuple[str, ...]:
        """Statements whose assumptions all hold."""
        return tuple(name for name in self.nearest if self.applies[name].inside)

    @property
    def nearest(self) -> tuple[str, ...]:
        """All statements: the fewest broken assumptions first, then the fewest unknown ones, then the least margin."""

        def distance(name: str) -> tuple[int, int, float]:
            found = self.applies[name]
            return len(found.broken), len(found.unknown), -min(found.broken.values(), default=1.0)

        return tuple(sorted(self.applies, key=distance))

    @property
    def headline(self) -> str:
        """How many statements speak of it, and which is the nearest, in a sentence."""
        if not self.applies:
            why = "; ".join(self.left_out.values()) or "no paper takes it"
            return f"No statement was asked of {self.asked}: {why}."
        if self.inside:
            return f"{len(self.inside)} of {len(self.applies)} statements speak of {self.asked}."
        first = self.applies[self.nearest[0]]
        if not first.broken:
            return f"Open of {self.asked}: {first.statement} would speak if what is not known holds."
        return f"No statement speaks of {self.asked}; the nearest is {first.statement}: {_state(first)}."

    def text(self) -> str:
        """The headline, a row for each statement, and what the first ones foresee."""
        rows = [["statement", "speaks", "least margin", "in its way"]]
        for name in self.nearest:
            found = self.applies[name]
            text, margin = _nearest_obstacle(found)
            rows.append([name, _state(found), margin, textwrap.shorten(text, 60, placeholder=" ..")])
        lines = [*textwrap.wrap(self.headline, _WIDTH), "", *columns(rows)]
        for name in self.nearest:
            if name in self.foreseen:
                lines += textwrap.wrap(f"{name} foresees: {self.foreseen[name]}.", _WIDTH)
        lines += [line for paper, why in self.left_out.items() for line in textwrap.wrap(f"{paper}: {why}", _WIDTH)]
        return "\n".join([*lines, "", 'yzflow check "STATEMENT" --data FILE runs one of them.'])

    def json(self) -> str:
        """Everything as JSON; an unknown margin is null."""
        rows = [
            {
                "statement": name,
                "speaks": self.applies[name].inside,
                "margins": {
                    text: None if math.isnan(margin) else margin for text, margin in self.applies[name].margins.items()
                },
                "foreseen": self.foreseen.get(name, ""),
            }
            for name in self.nearest
        ]
        return as_json({"asked": self.asked, "headline": self.headline, "rows": rows, "left_out": dict(self.left_out)})

    def __repr__(self) -> str:
        return self.text()


def _state(found: Applies) -> str:
    """ "yes", or how many assumptions are broken, or not known."""
    if found.inside:
        return "yes"
    counts = [(len(found.broken), "broken"), (len(found.unknown), "unknown")]
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _nearest_obstacle(found: Applies) -> tuple[str, str]:
    """The assumption that is broken the most, or the first unknown one, with its margin in words."""
    if found.broken:
        text, margin = next(iter(found.broken.items()))
        return text, shown_margin(margin, 2)
    if found.unknown:
        return found.unknown[0], "unknown"
    return "", f"{min(found.margins.values()):.3g}"


def which(
    data: Any,
    *,
    eta_y: float | None = None,
    eta_z: float | None = None,
    t_end: float | None = None,
    length: int | None = None,
    optimizer: Optimizer | str | None = None,
    tokens: Any = None,
) -> Which:
    """Ask which theorems speak of data and a training on it, of a model, or of a recorded training.

    What is not given is unknown, and not absent: an assumption about it neither holds nor is broken.

    Parameters
    ----------
    data : SequenceClasses, Bags, TextCorpus, model, Recorder, Recording or WatchReport
        A text needs ``length``, and is read as pairs of query and next token (`Bags.pairs`), as are Bags whose next
        tokens follow several queries. A model needs ``tokens``. `yzflow.watch` makes recorders, also of a model that is
        looked at by functions of yours.
    eta_y, eta_z : float, optional
        Learning rates per step.
    t_end : float, optional
        SGD steps.
    length : int, optional
        T, tokens in a sequence.
    optimizer : Optimizer or str, optional
        "sgd" for plain steps.
    tokens : (n, T + 1) int, optional
        For a model: sequences with the next token last, as for `yzflow.watch`.

    Returns
    -------
    Which

    Raises
    ------
    ValueError
        If an argument is invalid.
    ImportError
        For a model or a recording, if yzflow-watch is not installed.

    Examples
    --------
    >>> import yzflow as yz
    >>> classes = yz.SequenceClasses.single_common_token(2, 1000, common=0.5)
    >>> found = yz.which(classes, eta_y=1.0, eta_z=0.001, length=2**20, t_end=200.0, optimizer="sgd")
    >>> len(found.inside) > 0, len(yz.which(classes).inside)
    (True, 0)
    """
    from dynamics import TextCorpus  # which few ask for

    given = checks.each(_GIVEN, {"eta_y": eta_y, "eta_z": eta_z, "t_end": t_end, "optimizer": optimizer})
    if length is not None:
        length = checks.integer("length", length, minimum=2)
    if isinstance(data, TextCorpus):
        if length is None:
            raise checks.reject("length", "be given for a text, whose windows are of so many tokens", length)
        data = data.windows(length)
    if isinstance(data, (SequenceClasses, Bags)):
        if tokens is not None:
            raise checks.reject("tokens", "be None unless `data` is a model", checks.brief(tokens))
        if isinstance(data, Bags) and data.hard:
            data = _of_one_query(data)
        return _of_data(data, length, given)
    for name, value in {**given, "length": length}.items():
        if value is not None:
            raise checks.reject(name, "be None for a model or a recording, which show their own", checks.brief(value))
    return _of_training(data, tokens)


def _of_one_query(bags: Bags) -> Bags:
    """The bags, or where a next token follows several queries their pairs."""
    pairs = bags.pairs()
    return pairs if len(set(pairs.target.tolist())) > len(set(bags.target.tolist())) else bags


def _of_data(data: Bags | SequenceClasses, length: int | None, given: Mapping[str, Any]) -> Which:
    statements: dict[str, Statement] = {}
    found: dict[str, Applies] = {}
    told: dict[str, str] = {}
    left_out: dict[str, str] = {}
    known = {name for name, value in {**given, "length": length}.items() if value is not None}
    unknown = tuple(name for name in _NOT_IN_DATA if name not in known)
    asked = f"these {data.n_classes if isinstance(data, SequenceClasses) else data.n_targets} next tokens"
    for paper, _ in parts("own"):
        try:
            case = made(paper.name, {"data": data, **given})
        except (ValueError, distributions.Missing) as error:
            left_out[paper.name] = str(error)
            continue
        setting = case.setting
        if length is not None and hasattr(setting, "length"):
            setting = replace(setting, length=length)
        plain = 0.0 if case.beyond else 1.0 if "optimizer" in known else math.nan
        place = Place(setting, {PLAIN: plain}, unknown=unknown)
        level = (layout.columns(paper.name)["SGD"] or part_of(paper.name, "levels"))[-1]  # what a user trains
        for statement in part_of(paper.name, "statements"):
            if statement.assumptions and not statement.own:
                statements[statement.id] = statement
                found[statement.id] = applies(statement, place, level)
                if words := foreseen(statement, place):
                    told[statement.id] = words
    return Which(asked, statements, found, told, left_out)


def _of_training(data: Any, tokens: Any) -> Which:
    """The answer for a recorded training, or a model before its training."""
    what = "`yz.which` of a model or a recording"
    report = distributions.bring(f"{_WATCH}.report", what).WatchReport
    recorder = distributions.bring(f"{_WATCH}.recorder", what).Recorder
    recording = distributions.bring(f"{_WATCH}.recording", what).Recording
    if tokens is not None:
        if isinstance(data, (recorder, recording, report)):
            raise checks.reject("tokens", "be None unless `data` is a model", checks.brief(tokens))
        data = distributions.bring(f"{_WATCH}.watching", what).watch(data, tokens)
    if isinstance(data, recorder):
        data = data.recording
    if isinstance(data, recording):
        data = report(data)
    if not isinstance(data, report):
        rule = "be SequenceClasses, Bags, a TextCorpus, a Recording, or a model with `tokens`"
        raise checks.reject("data", rule, type(data).__name__)
    told = {}
    for name, statement in data.statements.items():
        if words := foreseen(statement, data.places[statement.paper]):
            told[name] = words
    left_out = {name: place.why for name, place in data.places.items() if place.why}
    return Which(f"the training at step {data.now:,}", data.statements, data.applies, told, left_out)
