"""Text as tokens and bags: against counting by hand, whatever the source, and refused where it is none."""

import fileinput
import io
import itertools
import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics import TextCorpus
from dynamics.data import text

TEXTS = st.text(
    st.sampled_from("aAbB \n\r\t.'-<>@é\u2019\u2028İß") | st.characters(exclude_categories=["Cs"], min_codepoint=1),
    max_size=60,
)
IDS = st.lists(st.integers(0, 4), min_size=3, max_size=40)


def of_ids(ids, **options):
    """A corpus whose ids are as given, by a vocabulary of numbers."""
    return TextCorpus([" ".join(map(str, ids))], vocabulary=("<unk>", *map(str, range(5))), **options)


def read(source, **options):
    """Tokens and vocabulary; None for an empty text."""
    try:
        corpus = TextCorpus(source, **options)
    except ValueError as error:
        assert "hold at least one token" in str(error)
        return None
    return corpus.vocabulary, corpus.tokens.tolist()


def test_vocabulary_is_by_frequency_then_code_point():
    corpus = TextCorpus(["b a b", "<unk> a c", "D"])
    assert corpus.vocabulary == ("<unk>", "a", "b", "c", "d")
    assert corpus.tokens.tolist() == [2, 1, 2, 0, 1, 3, 4]
    assert corpus.counts.tolist() == [1, 2, 2, 1, 1]
    assert (corpus.tokens.dtype, len(corpus), corpus.vocab_size, corpus.unknown) == (np.int32, 7, 5, 0)
    assert not corpus.tokens.flags.writeable
    assert "D" in TextCorpus(["b a b", "D"], lowercase=False).vocabulary


def test_rare_tokens_become_unknown():
    corpus = TextCorpus(["b a b c <unk> a c c"], vocab_size=3)
    assert corpus.vocabulary == ("<unk>", "c", "a")
    assert corpus.decode(corpus.tokens) == "<unk> a <unk> c <unk> a c c"
    assert TextCorpus(["b a b"], vocab_size=100).vocab_size == 3
    assert corpus.encode("c nowhere\na").tolist() == [1, 0, 2]


def test_words_of_prose():
    line = "“Don't,” she said * the co-owner of 1,000.5 acres (U.S.) in 1901. <unk> @-@\n"
    corpus = TextCorpus([line], tokenizer="words")
    expected = "“ don't , ” she said * the co-owner of 1,000.5 acres ( u.s . ) in 1901 . <unk> @-@"
    assert corpus.decode(corpus.tokens) == expected


def test_ends_of_lines_by_a_callable(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"a b\r\n\nc")
    for source in (path, ["a b\n", "", "c\r\n"], io.StringIO("a b\n\nc")):
        corpus = TextCorpus(source, tokenizer=lambda line: [*line.split(), "<eos>" + str(len(line))])
        assert corpus.decode(corpus.tokens).split() == ["a", "b", "<eos>3", "<eos>0", "c", "<eos>1"]


@given(TEXTS, st.sampled_from(["whitespace", "words"]), st.booleans(), st.none() | st.integers(2, 6))
def test_every_source_is_the_same_text(tmp_path_factory, written, tokenizer, lowercase, vocab_size):
    options = {"tokenizer": tokenizer, "lowercase": lowercase, "vocab_size": vocab_size}
    path = tmp_path_factory.mktemp("text") / "text"
    content = written.encode()
    path.write_bytes(content)
    expected = read(path, **options)
    with open(path, encoding="utf-8") as for_text, open(path, "rb") as for_bytes:
        assert read(for_text, **options) == expected
        assert read(for_bytes, **options) == expected
        assert not for_bytes.closed
    lines = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
    assert read(iter(lines), **options) == expected
    assert read([written], **options) == expected  # a line is as long as one likes
    path.write_bytes(b"\xef\xbb\xbf" + content)
    if not written.startswith("\ufeff"):
        assert read(str(path), **options) == expected


@given(TEXTS, st.sampled_from(["whitespace", "words"]), st.booleans())
def test_decode_and_encode_are_reverse(written, tokenizer, lowercase):
    if (found := read([written], tokenizer=tokenizer, lowercase=lowercase)) is None:
        return
    corpus = TextCorpus([written], tokenizer=tokenizer, lowercase=lowercase)
    assert corpus.encode(corpus.decode(corpus.tokens)).tolist() == found[1] == corpus.encode(written).tolist()
    if tokenizer == "whitespace" and not lowercase:
        assert corpus.decode(corpus.tokens).split(" ") == written.split()


@given(IDS, st.integers(2, 12), st.integers(1, 9), st.integers(0, 5), st.integers(0, 50))
def test_windows_are_those_of_the_definition(ids, length, stride, start, stop):
    corpus = of_ids(ids)
    expected = [
        (corpus.tokens[s : s + length - 1], corpus.tokens[s + length - 1], corpus.tokens[s + length])
        for s in range(start, min(stop, len(ids)) - length, stride)
    ]
    if not expected:
        with pytest.raises(
            ValueError, match=r"`length` must be below the .* tokens of the text|`stop` must be at least"
        ):
            corpus.windows(length, stride=stride, start=start, stop=stop)
        return
    bags = corpus.windows(length, stride=stride, start=start, stop=stop)
    assert bags.query.tolist() == [query for _, query, _ in expected]
    assert bags.target.tolist() == [target for _, _, target in expected]
    for b, (context, _, _) in enumerate(expected):
        at = slice(bags.indptr[b], bags.indptr[b + 1])
        assert dict(zip(bags.token[at].tolist(), bags.count[at].tolist(), strict=True)) == Counter(context.tolist())
        assert bags.count[at].sum() == length - 1
    assert bags.sizes == {"n_queries": 6, "n_tokens": 6, "vocab_size": 6}
    assert (bags.weight == 1 / len(expected)).all()


def test_a_limit_spreads_windows_over_the_text_or_draws_them():
    corpus = TextCorpus([" ".join(map(str, range(1000)))])  # ids in the order of code points: no token twice
    starts = np.arange(990)
    found = {int(query): s for s, query in enumerate(corpus.tokens[9:])}
    even = [found[query] for query in corpus.windows(10, limit=7).query.tolist()]
    assert even == [0, 141, 282, 424, 565, 707, 848]
    assert len(corpus.windows(10, limit=5000)) == starts.size
    tally = np.zeros(starts.size)
    for seed in range(200):
        bags = corpus.windows(10, limit=99, rng=np.random.default_rng(seed))
        drawn = [found[query] for query in bags.query.tolist()]
        assert drawn == sorted(set(drawn))
        assert len(drawn) == 99
        tally[drawn] += 1
    # Each start is drawn in 20 of 200, binomially: outside 3 .. 45 with probability 1e-4 for any of the 990.
    assert 3 <= tally.min() <= tally.max() <= 45
    again = [corpus.windows(10, limit=99, rng=np.random.default_rng(3)).token for _ in range(2)]
    assert (again[0] == again[1]).all()


BAD = b"caf\xe9 au lait"
OPENED = "or a file that you open in its own encoding, as open(path, encoding='utf-16-le')"


@pytest.mark.parametrize("filler", [b"", (b"b\xc3\xa9" + 60 * b"a" + b"\n") * 17_000], ids=["short", "beyond-a-chunk"])
def test_another_encoding_is_refused_with_file_and_position(tmp_path, filler):
    path = tmp_path / "latin.txt"
    path.write_bytes(filler + BAD)
    message = f"`source` must be UTF-8 text, {OPENED}, but got byte 0xe9 at position {len(filler) + 3} of "
    with open(path, "rb") as for_bytes, open(path, encoding="utf-8") as for_text:
        for source in (path, for_bytes, for_text) if filler else (path, str(path), for_bytes, for_text):
            with pytest.raises(ValueError) as refused:
                TextCorpus(source)
            assert str(refused.value) == message + repr(str(path))
    with pytest.raises(ValueError) as refused:
        TextCorpus(io.BytesIO(filler + BAD))
    assert str(refused.value) == message + "an open file"


@pytest.mark.parametrize(
    ("content", "byte", "position"),
    [
        ("Zwölf".encode("utf-16"), "ff", 0),
        (b"\xef\xbb\xbfa \xff", "ff", 5),
        (b"cut off \xe2\x82", "e2", 8),
    ],
    ids=["utf-16", "after-a-mark", "cut"],
)
def test_the_position_is_that_in_the_file(tmp_path, content, byte, position):
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"byte 0x{byte} at position {position} of '"):
        TextCorpus(path)


def test_the_position_where_a_file_was_read_before(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"\xff header\n" + BAD)
    with open(path, "rb") as file:
        file.readline()
        with pytest.raises(ValueError, match="byte 0xe9 at position 12 of "):
            TextCorpus(file)
    path.write_bytes("naïve".encode())
    with (
        open(path, encoding="ascii") as file,
        pytest.raises(ValueError, match=r"be ASCII text, .* 0xc3 at position 2 "),
    ):
        TextCorpus(file)


def test_a_pipe_tells_the_line():
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo\n" + BAD)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe, pytest.raises(ValueError, match="byte 0xe9 after line 0 of an open file"):
        TextCorpus(pipe)


def test_several_files_at_once(tmp_path):
    paths = [tmp_path / "one", tmp_path / "two"]
    paths[0].write_text("a b\n")
    paths[1].write_bytes(b"b\n")
    with fileinput.input(paths, encoding="utf-8") as lines:
        assert TextCorpus(lines).tokens.tolist() == [2, 1, 1]
    paths[1].write_bytes(BAD)
    message = f"`source` must be UTF-8 text, {OPENED}, but got byte 0xe9 after line 1 of {str(paths[1])!r}"
    with fileinput.input(paths, encoding="utf-8") as lines, pytest.raises(ValueError) as refused:
        TextCorpus(lines)
    assert str(refused.value) == message


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.txt"):
        TextCorpus(tmp_path / "none.txt")


def test_progress_of_a_file(tmp_path, monkeypatch):
    notes = []
    monkeypatch.setattr(text.Progress, "update", lambda self, done, note="": notes.append((done, note)))
    path = tmp_path / "text"
    path.write_text("a b c\n" * 40_000)
    TextCorpus(path, progress=True)
    done = [share for share, _ in notes]
    assert len(done) == 4
    assert all(early <= late for early, late in itertools.pairwise(done))
    assert done[0] == pytest.approx(0.25, abs=0.1)
    assert done[-1] == 1


# Mistakes of users that gave words with NULs, or columns or keys as the text.
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_text_without_a_mark_in_another_encoding_is_refused(tmp_path, encoding):
    path = tmp_path / "text"
    path.write_bytes("the cat sat\non the mat".encode(encoding))
    with open(path, "rb") as opened:
        for source, shown in ((path, repr(str(path))), (opened, repr(str(path))), ([path.read_text()], "lines")):
            with pytest.raises(ValueError, match=r"must be text without NUL, .*encoding=.* in line 1 of") as caught:
                TextCorpus(source)
            assert shown in str(caught.value)
    with open(path, encoding=encoding) as opened:  # the cure
        assert TextCorpus(opened).vocabulary == TextCorpus(["the cat sat", "on the mat"]).vocabulary


class Table:
    """As tables of several libraries look: iterated over, it gives rows or names of columns."""

    def __init__(self, attribute):
        setattr(self, attribute, ["text", "label"])

    def __iter__(self):
        return iter(["text", "label"])


@pytest.mark.parametrize("table", [Table("columns"), Table("column_names"), {"text": ["a b"]}, Counter("ab")])
def test_a_table_is_no_text(table):
    with pytest.raises(ValueError, match=r"^`source` must be .*: of a table, one column, but got \w+ with \['"):
        TextCorpus(table)


def test_a_column_of_a_table_is_a_text():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"text": ["the cat", "a dog"], "label": [0, 1]})
    with pytest.raises(ValueError, match=r"one column, but got DataFrame with \['text', 'label'\]$"):
        TextCorpus(table)
    assert TextCorpus(table["text"]).vocabulary == ("<unk>", "a", "cat", "dog", "the")


@pytest.mark.parametrize("tokenizer", ["whitespace", "words", str.split])
def test_capitals_that_no_text_in_small_letters_has_are_refused(tokenizer):
    lines, vocabulary = ["The Cat sat"], ["<unk>", "The", "cat"]
    with pytest.raises(ValueError, match=r"^`vocabulary` must be in small letters"):
        TextCorpus(lines, vocabulary=vocabulary, tokenizer=tokenizer)
    assert TextCorpus(lines, vocabulary=vocabulary, tokenizer=tokenizer, lowercase=False).tokens.tolist() == [1, 0, 0]
    assert TextCorpus(lines, vocabulary=[word.lower() for word in vocabulary]).tokens.tolist() == [1, 2, 0]


def test_capitals_of_a_tokenizer_s_own_are_kept():
    options = {"tokenizer": lambda line: ["<BOS>", *line.split(), "<EOS>"][: 3 if "b" in line else None]}
    first = TextCorpus(["a c"], **options)
    assert "<EOS>" in first.vocabulary
    assert TextCorpus(["B c"], vocabulary=first.vocabulary, **options).decode([1]) == "<BOS>"


@given(TEXTS)
def test_bytes_as_tokens(written):
    line = written.replace("\n", "").replace("\r", "")
    if not line:
        return
    corpus = TextCorpus([line], tokenizer="bytes", lowercase=False)
    code = {chr(byte): byte for byte in range(33, 127)} | {f"<0x{byte:02X}>": byte for byte in range(256)}
    assert bytes(code[word] for word in corpus.decode(corpus.tokens).split(" ")) == line.encode()
    assert corpus.vocab_size <= 257 and (corpus.encode(line) == corpus.tokens).all()


WRONG = {
    "bytes": str.encode,
    "ids of bytes": lambda line: list(line.encode()),
    "ids in an array": lambda line: np.frombuffer(line.encode(), np.uint8),
    "text": str.strip,
    "a mapping": lambda line: {"input_ids": [1], "attention_mask": [1]},
    "lists": lambda line: [[line]],
    "nothing": lambda line: None,
    "a number": len,
}


@pytest.mark.parametrize("tokenizer", WRONG.values(), ids=WRONG)
def test_a_tokenizer_that_gives_no_words_is_refused_with_the_cure(tokenizer):
    rule = r"^`tokenizer` must return a list of words .*\[str\(i\) for i in ids\].*, but got "
    with pytest.raises(ValueError, match=rule):
        TextCorpus(["the cat"], tokenizer=tokenizer)


@pytest.mark.parametrize("error", [KeyError("mine"), TypeError("mine"), ValueError("mine")])
def test_an_error_of_a_tokenizer_comes_out_as_it_was_raised(error):
    def tokenizer(line):
        raise error

    with pytest.raises(type(error), match="mine") as caught:
        TextCorpus(["the cat"], tokenizer=tokenizer)
    assert caught.value is error
