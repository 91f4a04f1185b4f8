"""Text: words as tokens, and windows of them as bags."""

from __future__ import annotations

import codecs
import io
import itertools
import os
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.backend.compiled import kernel
from dynamics.bags import Bags
from dynamics.support import checks, names, raised
from dynamics.support.checks import read_only
from dynamics.support.frozen import Frozen
from dynamics.support.progress import Progress

UNKNOWN = "<unk>"
# Markers of tokenised texts as they are; numbers; words, with apostrophes, hyphens and points inside; marks one by one.
_WORDS = re.compile(r"<\w+>|@[^\w\s]@|\d+(?:[.,]\d+)+|\w+(?:['\u2019.-]\w+)*|[^\w\s]")
# The token of each byte: a letter, digit or mark itself; for any other byte its number, as <0x20> for a blank.
_BYTES = [chr(byte) if 32 < byte < 127 else f"<0x{byte:02X}>" for byte in range(256)]


def _bytes(line: str) -> list[str]:
    return [_BYTES[byte] for byte in line.encode()]


TOKENIZERS: dict[str, Callable[[str], list[str]]] = {
    "whitespace": str.split,
    "words": _WORDS.findall,
    "bytes": _bytes,
}
_A_LIST = "return a list of words for a line, such as [str(i) for i in ids] of ids or bytes, and list(line) of letters"
_ENCODING = "utf-8-sig"  # UTF-8, with or without a byte-order mark
_OPENED = "a file that you open in its own encoding, as open(path, encoding='utf-16-le')"
_LINES_A_REPORT = 10_000
_BYTES_A_READ = 2**20


class TextCorpus(Frozen):
    """A text as a sequence of token ids, with its vocabulary.

    Parameters
    ----------
    source : path, open file or iterable of str
        UTF-8 text, read once and line by line. A file may be open for text or for bytes.
    vocab_size : int, optional
        M, at least 2: the ``M - 1`` most frequent tokens have an id each, all others become ``<unk>``. Default: every
        token has an id.
    lowercase : bool
        Whether capital letters are read as small ones.
    tokenizer : "whitespace", "words", "bytes" or callable
        "whitespace": split at blanks. Files of tokens such as WikiText's ``wiki.train.tokens`` (with ``<unk>``, ``@-@``
        and headings `` = Heading = ``) stay as they are. "words": for plain prose; a punctuation mark is a token.
        "bytes": the bytes of UTF-8, without the ends of lines; a byte that is no letter, digit or mark has a name such
        as "<0x20>". A callable takes a line, without its end, and returns a list of tokens:
        ``lambda line: line.split() + ["<eos>"]`` marks the ends of lines.
    vocabulary : sequence of str, optional
        Tokens by id, in place of ids by frequency: give ``train.vocabulary`` for a validation text. Excludes
        ``vocab_size``. With ``lowercase``, a token with capitals is refused if the text has only small letters.
    progress : bool
        Show progress on standard error.

    Attributes
    ----------
    tokens : (n,) int32, read-only
        The text.
    vocabulary : tuple of str
        Token of each id: ``<unk>`` first, then tokens by falling frequency, those of equal frequency by code point.
        ``<unk>`` stands for all tokens outside the vocabulary.

    Raises
    ------
    ValueError
        If the text is empty, is no UTF-8 (the message says where), or an argument is invalid. Errors of a callable
        are raised as they are.
    OSError
        If a path cannot be read.

    Notes
    -----
    Memory: four bytes a token, and the distinct tokens while they are counted.

    Examples
    --------
    >>> corpus = TextCorpus(["the cat and the dog and the bird"], vocab_size=3)
    >>> corpus.vocabulary
    ('<unk>', 'the', 'and')
    >>> corpus.decode(corpus.tokens)
    'the <unk> and the <unk> and the <unk>'
    """

    tokens: np.ndarray
    vocabulary: tuple[str, ...]
    _ids: dict[str, int]
    _lowercase: bool
    _tokenizer: Callable[[str], list[str]]

    def __init__(
        self,
        source: str | os.PathLike | Iterable[str],
        *,
        vocab_size: int | None = None,
        lowercase: bool = True,
        tokenizer: str | Callable[[str], list[str]] = "whitespace",
        vocabulary: Sequence[str] | None = None,
        progress: bool = False,
    ) -> None:
        if vocab_size is not None:
            vocab_size = checks.integer("vocab_size", vocab_size, minimum=2)
            if vocabulary is not None:
                raise checks.reject("vocab_size", "be left out beside a vocabulary", vocab_size)
        lowercase, progress = checks.flag("lowercase", lowercase), checks.flag("progress", progress)
        if vocabulary is not None:
            vocabulary = checks.listed("vocabulary", vocabulary, "be a sequence of tokens")
            for word in vocabulary:
                checks.instance("vocabulary", word, str, rule="hold text")
        custom = callable(tokenizer)
        split = partial(_split_by, tokenizer) if callable(tokenizer) else _tokenizer_of(tokenizer)
        vars(self).update(_lowercase=lowercase, _tokenizer=split)
        with Progress("reading text", enabled=progress) as report:
            words, tokens = self._number(_lines(source, report))
        if tokens.size == 0:
            raise checks.reject("source", "hold at least one token", f"an empty text{_of_file(source)}")
        for word in words if custom else ():
            if not isinstance(word, str):
                raise checks.reject("tokenizer", _A_LIST, f"{checks.brief(word)}, {type(word).__name__}, in it")
        if vocabulary is None:
            vocabulary = _by_frequency(words, np.bincount(tokens), vocab_size)
        elif lowercase:
            _check_small(vocabulary, set(words) if custom else None)
        vocabulary = tuple(vocabulary)
        ids = {word: i for i, word in enumerate(vocabulary)}
        if len(ids) < len(vocabulary) or UNKNOWN not in ids:
            raise checks.reject("vocabulary", f"hold {UNKNOWN} and each token once", f"{len(vocabulary)} entries")
        vars(self).update(vocabulary=vocabulary, _ids=ids)
        vars(self).update(tokens=read_only(self._known(words)[tokens]))

    def _number(self, lines: Iterable[str]) -> tuple[list[str], np.ndarray]:
        """The distinct tokens in order of appearance, and the text as indices into that list."""
        places: defaultdict[str, int] = defaultdict(itertools.count().__next__)
        tokens = array("i")
        for line in lines:
            try:
                tokens.extend(map(places.__getitem__, self._split(line)))
            except TypeError as error:  # an item that cannot be looked up, such as a list
                if raised.is_own(error):
                    raise
                raise checks.reject("tokenizer", _A_LIST, error) from None
        return list(places), np.frombuffer(tokens, dtype=np.int32) if tokens else np.empty(0, np.int32)

    def _split(self, line: str) -> list[str]:
        line = line.rstrip("\r\n")
        return self._tokenizer(line.lower() if self._lowercase else line)

    def _known(self, words: Sequence[str]) -> np.ndarray:
        unknown = self._ids[UNKNOWN]
        return np.array([self._ids.get(word, unknown) for word in words], dtype=np.int32)

    def __len__(self) -> int:
        return self.tokens.size

    def __repr__(self) -> str:
        return f"<TextCorpus: {len(self)} tokens, vocabulary of {self.vocab_size}>"

    @property
    def vocab_size(self) -> int:
        """M, the number of ids; less than the argument if the text has fewer distinct tokens."""
        return len(self.vocabulary)

    @property
    def unknown(self) -> int:
        """The id of ``<unk>``."""
        return self._ids[UNKNOWN]

    @property
    def counts(self) -> np.ndarray:
        """How often each id occurs: (vocab_size,) int."""
        return np.bincount(self.tokens, minlength=self.vocab_size)

    def encode(self, text: str) -> np.ndarray:
        """Ids of the tokens of a text, (n,) int32; the reverse of `decode`."""
        checks.instance("text", text, str, rule="be text")
        return self._known([word for line in io.StringIO(text, newline=None) for word in self._split(line)])

    def decode(self, tokens: ArrayLike) -> str:
        """The tokens with these ids, with a blank between each two."""
        ids = checks.index_array("tokens", tokens, upper=self.vocab_size)
        return " ".join([self.vocabulary[i] for i in ids])

    def windows(
        self,
        length: int,
        *,
        stride: int = 1,
        limit: int | None = None,
        rng: np.random.Generator | None = None,
        start: int = 0,
        stop: int | None = None,
    ) -> Bags:
        """Windows x_1..x_T of the text with the token x_{T+1} that follows, as bags.

        As in Section 3.1 of Tian et al. (2023), arXiv 2305.16380: x_1..x_{T-1} are the contextual tokens, whose counts
        sum to T - 1; x_T is the query token and x_{T+1} the next token. Ids of tokens are rows and columns of Z and Y.

        Parameters
        ----------
        length : int
            T, at least 2, query included.
        stride : int
            Tokens from the start of a window to that of the next one.
        limit : int, optional
            The largest number of windows: evenly spread, or drawn without repetition if ``rng`` is given.
        rng : numpy.random.Generator, optional
        start, stop : int
            The windows lie, with their next tokens, in ``tokens[start:stop]``.

        Returns
        -------
        Bags
            In the order of the text, of equal weight, named by the vocabulary. About 16 bytes for each distinct token
            of each window: ``limit`` or ``stride`` keep that small.

        Raises
        ------
        ValueError
            If an argument is invalid, or the text too short for one window.
        """
        length = checks.integer("length", length, minimum=2)
        stride = checks.integer("stride", stride, minimum=1)
        start = checks.integer("start", start, minimum=0)
        stop = len(self) if stop is None else min(checks.integer("stop", stop, minimum=start), len(self))
        if length >= stop - start:
            rule = f"be below the {max(stop - start, 0)} tokens of the text, the last of which is the next token"
            raise checks.reject("length", rule, length)
        starts = np.arange(start, stop - length, stride)
        if rng is not None:
            checks.instance("rng", rng, np.random.Generator, rule="be a numpy.random.Generator")
        if limit is not None and checks.integer("limit", limit, minimum=1) < starts.size:
            if rng is None:
                starts = starts[np.arange(limit) * starts.size // limit]
            else:
                starts = np.sort(rng.choice(starts, limit, replace=False))
        elif rng is not None and limit is None:
            raise checks.reject("limit", "say how many windows `rng` draws", limit)
        indptr = np.zeros(starts.size + 1, dtype=np.int64)
        nothing = np.empty(0, dtype=np.int64), np.empty(0)
        alone = starts[np.diff(starts, prepend=-length) >= length - 1]
        apart = np.sort(np.lib.stride_tricks.sliding_window_view(self.tokens, length - 1)[alone], axis=1)
        task = read_only(self.tokens), read_only(starts), read_only(apart), length - 1
        _window_counts(*task, indptr, *nothing, False)
        indptr = np.cumsum(indptr)
        token, count = np.empty(indptr[-1], dtype=np.int64), np.empty(indptr[-1])
        _window_counts(*task, indptr, token, count, True)
        query, target = self.tokens[starts + length - 1], self.tokens[starts + length]
        sizes: dict[str, Any] = dict.fromkeys(("n_queries", "n_tokens", "vocab_size"), self.vocab_size)
        sizes |= dict.fromkeys(names.AXES, self._names)
        return Bags(query, target, indptr, token, count, **sizes)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The vocabulary as names of bags; "" for a token that files cannot keep."""
        return tuple(word if names.is_name(word) else "" for word in self.vocabulary)


@kernel()
def _replace(ordered, old, new):
    """Take one ``old`` out of an ascending array and put in ``new``."""
    at = np.searchsorted(ordered, old)
    while at + 1 < ordered.size and ordered[at + 1] < new:
        ordered[at] = ordered[at + 1]
        at += 1
    while at > 0 and ordered[at - 1] > new:
        ordered[at] = ordered[at - 1]
        at -= 1
    ordered[at] = new


@kernel()
def _window_counts(tokens, starts, apart, width, indptr, token, count, fill):
    """Distinct tokens of each window of ``width`` tokens, in order, with their counts.

    Without ``fill``, ``indptr[b + 1]`` receives their number; with ``fill``, ``token`` and ``count`` receive the
    entries. ``starts`` ascend. A window that overlaps the window before is updated from it; any other window is the
    next row of ``apart``, which is sorted.
    """
    ordered, row = np.empty(width, tokens.dtype), 0
    for b in range(starts.size):
        first = starts[b]
        if b == 0 or first - starts[b - 1] >= width:
            for i in range(width):
                ordered[i] = apart[row, i]
            row += 1
        else:
            for i in range(starts[b - 1], first):
                _replace(ordered, tokens[i], tokens[i + width])
        entry = indptr[b] if fill else 0
        run = 0
        for i in range(width):
            run += 1
            if i + 1 == width or ordered[i + 1] != ordered[i]:
                if fill:
                    token[entry], count[entry] = ordered[i], run
                entry += 1
                run = 0
        if not fill:
            indptr[b + 1] = entry


def _tokenizer_of(name: str) -> Callable[[str], list[str]]:
    return TOKENIZERS[checks.one_of("tokenizer", name, tuple(TOKENIZERS))]


def _split_by(tokenizer: Callable[[str], list[str]], line: str) -> list[str]:
    """The tokens of a line by a user's tokenizer, as a list; text and mappings are refused."""
    try:
        words = tokenizer(line)
    except Exception as error:
        raised.note(error, f"the tokenizer {getattr(tokenizer, '__qualname__', type(tokenizer).__qualname__)}")
        raise
    return words if isinstance(words, list) else checks.listed("tokenizer", words, _A_LIST)


def _check_small(vocabulary: Iterable[str], words: Collection[str] | None) -> None:
    """Refuse tokens with capitals that no text in small letters has.

    ``words`` are the tokens of the text if a user's tokenizer made them, which may add capitals; else None.
    """
    for word in vocabulary:
        small = word.lower()
        if small in (word, UNKNOWN) or (words is not None and (word in words or small not in words)):
            continue
        rule = "be in small letters where `lowercase` is True (give lowercase=False, or [word.lower() for word in ..])"
        raise checks.reject("vocabulary", rule, repr(word))


def _by_frequency(words: list[str], counts: np.ndarray, vocab_size: int | None) -> list[str]:
    """``<unk>`` and the most frequent others, ``vocab_size`` in all."""
    ranked = sorted(((-count, word) for word, count in zip(words, counts.tolist(), strict=True) if word != UNKNOWN))
    kept = ranked if vocab_size is None else ranked[: vocab_size - 1]
    return [UNKNOWN, *(word for _, word in kept)]


def _lines(source, report: Progress) -> Iterator[str]:
    """The lines of a text, whatever it comes in."""
    rule = "be a path, an open file or an iterable of lines"
    if isinstance(source, str) and "\n" in source:
        raise checks.reject("source", rule, "text: pass its splitlines()")
    if isinstance(source, (bytes, bytearray)):
        raise checks.reject("source", rule, f"{type(source).__name__}: pass io.BytesIO of them")
    # Tables iterate over the names of their columns, or over rows.
    columns = list(source) if isinstance(source, Mapping) else names.columns_of(source)
    if columns is not None:
        shown = checks.brief(list(map(str, columns)))
        raise checks.reject("source", f"{rule}: of a table, one column", f"{type(source).__name__} with {shown}")
    if isinstance(source, (str, os.PathLike)):
        with open(checks.path("source", source), encoding=_ENCODING) as file:
            yield from _text_file(file, 0, report)
    elif hasattr(source, "read"):
        if isinstance(source.read(0), str):
            yield from _text_file(source, 0, report)
        else:
            start = source.tell() if source.seekable() else 0
            file = io.TextIOWrapper(source, encoding=_ENCODING)
            try:
                yield from _text_file(file, start, report)
            finally:
                file.detach()
    elif not isinstance(source, Iterable) or getattr(source, "ndim", 1) == 0:
        raise checks.reject("source", rule, type(source).__name__)
    else:
        yield from _given_lines(source)


def _given_lines(source: Iterable[str]) -> Iterator[str]:
    """Lines of an iterable, which may itself read files."""
    number = 0
    try:
        for number, line in enumerate(source, 1):
            if not isinstance(line, str):
                raise checks.reject("source", "hold lines of text", f"{type(line).__name__} at index {number - 1}")
            yield _legible(line, number, "lines that were given")
    except UnicodeDecodeError as error:
        filename = getattr(source, "filename", None)  # of a fileinput.FileInput
        raise _refused(error, filename() if callable(filename) else None, f"after line {number}") from None


def _text_file(file, start: int, report: Progress) -> Iterator[str]:
    """Lines of a file that is open for text; reading begins at the byte ``start``."""
    size = _size(file)
    number = 0
    try:
        for number, line in enumerate(file, 1):
            yield _legible(line, number, _shown(getattr(file, "name", None)))
            if size and number % _LINES_A_REPORT == 0:
                report.update(file.buffer.tell() / size, f"line {number}")
    except UnicodeDecodeError as error:
        position, byte = _undecodable(file, start)
        where = f"after line {number}" if position is None else f"at position {position}"
        raise _refused(error, getattr(file, "name", None), where, byte) from None


def _refused(error: UnicodeDecodeError, name, place: str, byte: int | None = None) -> ValueError:
    """The error to raise for a text in another encoding."""
    byte = error.object[error.start] if byte is None else byte
    rule = f"be {error.encoding.upper()} text, or {_OPENED}"
    return checks.reject("source", rule, f"byte 0x{byte:02x} {place} of {_shown(name)}")


def _legible(line: str, number: int, where: str) -> str:
    """Return a line without NUL, or refuse it: UTF-16 without a mark at its start has NULs if it is read as UTF-8."""
    if "\0" in line:
        raise checks.reject("source", f"be text without NUL, or {_OPENED}", f"NUL in line {number} of {where}")
    return line


def _shown(name: object) -> str:
    return repr(os.fspath(name)) if isinstance(name, (str, os.PathLike)) else "an open file"


def _of_file(source: object) -> str:
    return f", {os.fspath(source)!r}" if isinstance(source, (str, os.PathLike)) else ""


def _size(file) -> int:
    """Bytes of a file on disk; 0 for anything else."""
    with suppress(OSError, AttributeError):
        return os.fstat(file.buffer.fileno()).st_size
    return 0


def _undecodable(file, start: int) -> tuple[int | None, int | None]:
    """Position and value of the first byte, from ``start`` on, that the encoding of a text file refuses.

    (None, None) if the file cannot be read again. The file is decoded anew, since the position in its own error counts
    from somewhere inside the file.
    """
    binary = getattr(file, "buffer", None)
    if binary is None or not binary.seekable():
        return None, None
    binary.seek(start)
    decoder = codecs.getincrementaldecoder(file.encoding)()
    end = start
    while True:
        chunk = binary.read(_BYTES_A_READ)
        end += len(chunk)
        try:
            decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            return end - len(error.object) + error.start, error.object[error.start]
        if not chunk:
            return None, None
