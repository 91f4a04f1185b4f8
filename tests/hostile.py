"""Values that no argument expects and values that a rule forbids, and what is wrong with how a call on them ends."""

import copy
import inspect
import io
import os
import re
import runpy
import signal
import warnings
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from driving import LONG
from matplotlib import pyplot
from public import in_modules, public
from rules import RULES

from dynamics import DivergenceError, IntegrationError, Limits
from yzflow.testing import GRAMMAR, HOSTILE

resource = pytest.importorskip("resource")

VALUES_AN_ARGUMENT = 6  # in the short form, with those of `ALWAYS`
ALWAYS = ["timedelta64", "array of nan"]
CALLS_TOGETHER = 300  # of each callable, in the long form
SECONDS = 60.0  # a call may compile
BYTES = 2**32  # above what the process has


# Why something is not called with hostile values.
RECORD = "a record, which stores what it is given and computes nothing"
RAISED = "a protocol, or an error that is raised with what our code knows"
OURS = "no stub has it, and our code alone calls it"


class Foreign:
    """An object of no class that anything here knows, with a length."""

    def __len__(self):
        return 3


HOSTILE = {**HOSTILE, "foreign object": Foreign(), "10**5000": 10**5000, "generator": None}


def value_of(label):
    """The hostile value of a name; a generator is used up by the call that gets it."""
    return (number for number in (1, None)) if label == "generator" else HOSTILE[label]


class Slow(BaseException):
    """A call took too long."""


@contextmanager
def limits():
    """Time and memory that one call may take."""

    def late(*_):
        raise Slow

    statm = Path("/proc/self/statm")
    used = int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0
    before, handler = resource.getrlimit(resource.RLIMIT_AS), signal.signal(signal.SIGALRM, late)
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, before[1]))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def complaint(function, arguments, *, path=False, also=()):
    """A complaint about how a call ends, or None; it may raise ``also``, and OSError if it was given a ``path``."""
    try:
        with limits(), warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            function(**arguments)
    except ValueError as error:
        return None if GRAMMAR.match(str(error)) else f"ValueError: {error}"
    except (IntegrationError, DivergenceError, *also):
        return None
    except OSError as error:
        return None if path else f"{type(error).__name__}: {error}"
    except Slow:
        return f"took more than {SECONDS} s"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def without(calls) -> list[str]:
    """Arguments that a call of a table leaves out, ``name(argument)`` each."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        f"{name}({argument.name})"
        for name, (function, arguments) in calls.items()
        for argument in inspect.signature(function).parameters.values()
        if argument.kind not in several and argument.name not in arguments
    ]


def complaints(name, function, arguments, *, functions: Collection[str] = (), also=()) -> list[str]:
    """A line for each call that ends as it should not: a hostile value for each argument in turn; and, in the long
    form, for several at once. What the arguments ``functions`` raise is not ours.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    given = []
    for argument in arguments:
        labels = list(HOSTILE)
        if not LONG:
            rng = np.random.default_rng(zlib.crc32(f"{name}.{argument}".encode()))
            others = [label for label in labels if label not in ALWAYS]
            labels = ALWAYS + rng.choice(others, VALUES_AN_ARGUMENT - len(ALWAYS), replace=False).tolist()
        given += [{argument: label} for label in labels]
    for _ in range(CALLS_TOGETHER * (LONG and len(arguments) > 1)):
        some = rng.choice(list(arguments), rng.integers(2, min(len(arguments), 5) + 1), replace=False)
        given.append(dict(zip(some.tolist(), rng.choice(list(HOSTILE), some.size).tolist(), strict=True)))
    found = []
    for labels in given:
        if any(argument in functions and callable(HOSTILE[label]) for argument, label in labels.items()):
            continue
        values = {argument: value_of(label) for argument, label in labels.items()}
        path = not {"path", "source"}.isdisjoint(labels)
        if wrong := complaint(function, arguments | values, path=path, also=also):
            shown = ", ".join(f"{argument} = {label}" for argument, label in labels.items())
            found.append(f"{name}({shown}): {wrong.splitlines()[0][:200]}")
    return found


WRITTEN = (int, float, complex, str, bytes, type(None))  # values that a message has as Python writes them


class Refusal(NamedTuple):
    """A bad value of an argument, and what the message about it must hold.

    The message is about ``name``; the argument is called as its first word. The value ``...`` leaves that argument as
    it is in the valid call: another one, ``beside``, is what it does not fit. In ``rule``, " .. " stands for any words.
    """

    name: str
    value: object
    rule: str
    got: str | None = None  # None: the value itself, if it is of `WRITTEN`
    beside: Mapping = {}

    def complaint(self, function, arguments) -> str | None:
        """A line about a call that is not refused, or is with another name, rule or value."""
        bad = {} if self.value is ... else {re.match(r"\w+", self.name)[0]: self.value}
        got = self.got if self.got is not None else repr(self.value) if isinstance(self.value, WRITTEN) else ""
        rule, value = (".*".join(map(re.escape, words.split(" .. "))) for words in (self.rule, got))
        wanted = rf"`{re.escape(self.name)}` must .*{rule}.*\bbut .*" + (rf"(?<!\w){value}(?!\w).*" if got else "")
        try:
            function(**{**arguments, **self.beside, **bad})
        except ValueError as error:
            return None if re.fullmatch(wanted, str(error)) else f"{self}: {error}"
        return f"{self}: not refused"


def call_of(calls, name: str):
    """The call of a name, or of the only name that ends in it."""
    [known] = [name] if name in calls else [known for known in calls if known.endswith("." + name)]
    return calls[known]


def refused(function, arguments, rows: Sequence[tuple]) -> None:
    """Each bad value is refused, in a line and without a trace in the folder, by a call that is valid but for it."""
    before = sorted(os.listdir())
    complaints = [Refusal(*row).complaint(function, arguments) for row in rows]
    assert not any(complaints), "\n".join(filter(None, complaints))
    assert sorted(os.listdir()) == before


def refused_everywhere(calls, names: Collection[str], rows: Sequence[tuple], *, but: Collection[str] = ()) -> None:
    """Calls with an argument of one of the names refuse the values of the rows, which have no name themselves.

    Left out are those of ``but``, ``call(argument)`` each, where another rule holds for an argument of the name.
    """
    for call, (function, arguments) in calls.items():
        here = [name for name in names if name in arguments and f"{call}({name})" not in but]
        refused(function, arguments, [(name, *row) for name in here for row in rows])


class Table:
    """Valid calls of the public callables of some packages, from files ``calls.py`` of their tests.

    Such a file has ``calls()``: name, as `public.name_of` gives it, -> (callable, arguments); and ``EXEMPT``: the
    reason why something has no hostile calls -> names. It may have ``INNER``: a pattern of modules whose names are no
    calls for users; ``FUNCTIONS``: arguments that are functions, and what those raise is not ours; ``LIMITS``: where a
    limit stands that ends long calls -> its value in the tests; ``SLOW``: names that the long form alone calls.
    """

    def __init__(self, packages, *files):
        self.packages, self.files = packages, [runpy.run_path(str(file)) for file in files]
        self.exempt = {}
        for file in self.files:
            self.exempt |= {why: self.exempt.get(why, set()) | names for why, names in file["EXEMPT"].items()}

    def _all(self, name):
        return {entry for file in self.files for entry in file.get(name, ())}

    def made(self, folder):
        """The calls, made in a folder that takes the files of hostile paths too; the one value of a fixture."""
        before = os.getcwd()
        os.chdir(folder)
        try:
            table = {}
            for file in self.files:
                more = file["calls"]()
                assert not table.keys() & more.keys(), "two files have a call of the same name"
                table |= more
            yield table
        finally:
            os.chdir(before)
            pyplot.close("all")  # which `plot` without axes leaves open, as notebooks want it

    def check_complete(self, table):
        """Every public callable has a valid call or a reason, and nothing else has."""
        inner = re.compile("|".join(file["INNER"].pattern for file in self.files if "INNER" in file))
        stubbed, others = set(public(*self.packages)), set(in_modules(*self.packages, inner=inner))
        exempt = set().union(*self.exempt.values())
        # A method of what is in a stub stands for itself; elsewhere those of a class go with it.
        needed = stubbed | {name for name in others if name.rsplit(".", 1)[0] not in exempt}
        missing = sorted(needed - set(table) - exempt)
        assert not missing, f"{missing}: without a valid call in `calls`, or a reason in `EXEMPT`"
        assert not exempt & set(table), "both called and exempt"
        assert not self.exempt.get(OURS, set()) & stubbed, "no user's by its reason, and in a stub"
        assert exempt | set(table) <= stubbed | others | {name for name in table if name.endswith("__call__")}, "gone"
        assert not without(table)
        for name, (function, arguments) in table.items():
            assert complaint(function, copy.copy(arguments)) is None, name

    def check(self, table):
        """Each call with hostile values in every argument in turn ends in a result or in our grammar."""
        functions, slow, found = self._all("FUNCTIONS"), self._all("SLOW"), []
        with pytest.MonkeyPatch.context() as patch, Limits(evaluations=2000):
            for place, value in [pair for file in self.files for pair in file.get("LIMITS", {}).items()]:
                patch.setattr(place, value)
            for name, (function, arguments) in table.items():
                if LONG or name not in slow:
                    found += complaints(name, function, arguments, functions=functions)
        assert not found, f"{len(found)} calls:\n" + "\n".join(found)


class OfCalls:
    """Tests of the calls of a distribution, of which a class ``Test..`` is made there.

    Attributes
    ----------
    TABLE : Table
    REFUSED : mapping
        Name of a call -> rows of `Refusal`.
    OTHERWISE : set
        Arguments, ``call(argument)``, with other rules than `rules.RULES` has for the name.
    """

    REFUSED: Mapping = {}
    OTHERWISE: Collection = ()

    @pytest.fixture(scope="class")
    @classmethod
    def table(cls, tmp_path_factory):
        yield from cls.TABLE.made(tmp_path_factory.mktemp("calls"))

    @pytest.mark.slow
    def test_every_public_callable_has_a_valid_call(self, table):
        self.TABLE.check_complete(table)

    @pytest.mark.slow
    def test_hostile_arguments_end_in_a_result_or_our_grammar(self, table):
        self.TABLE.check(table)

    def test_a_rule_holds_wherever_its_argument_is(self, table):
        for arguments, rows in RULES.items():
            refused_everywhere(table, arguments.split(), rows, but=self.OTHERWISE)

    def test_a_bad_value_is_refused_by_its_name_the_rule_and_the_value(self, table):
        for name, rows in self.REFUSED.items():
            refused(*call_of(table, name), rows)
