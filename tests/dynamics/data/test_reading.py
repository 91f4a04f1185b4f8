"""Data from files: what they say, by name, and where they are refused."""

import csv
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Bags, SequenceClasses, TextCorpus, read_data

TABLE = "next_token,query,weight,the,stray,loyal\ncat,saw,2,3,1,\n\ndog,the,1,1,,4\n"


@pytest.fixture
def file(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    "name, text", [("a.csv", TABLE), ("a.TSV", TABLE.replace(",", "\t")), ("a.csv", "\ufeff" + TABLE)]
)
def test_a_table_of_classes(file, name, text):
    found = read_data(file(name, text))
    assert np.allclose(found.probabilities.toarray(), [[0.75, 0.25, 0], [0.2, 0, 0.8]], rtol=1e-15)
    assert np.allclose(found.class_weights, [2 / 3, 1 / 3], rtol=1e-15)
    assert found.query.tolist() == [3, 0] and found.vocab_size == 4
    assert found.token_names == ("the", "stray", "loyal", "saw") and found.class_names == ("cat", "dog")
    assert read_data(file(name, text), vocab_size=50).vocab_size == 50


def test_a_table_without_weights_is_uniform(file):
    found = read_data(file("a.csv", "next_token,query,a,b\nx,a,1e308,1e308\ny,a,0,3\n"))
    assert found.class_weights.tolist() == [0.5, 0.5] and found.vocab_size == 2
    assert found.probabilities.toarray().tolist() == [[0.5, 0.5], [0, 1]]


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8)


@given(st.data())
@settings(max_examples=25)
def test_what_was_written_is_read(tmp_path_factory, data):
    heads = data.draw(st.lists(WORDS, min_size=1, max_size=5, unique=True))
    after = data.draw(st.lists(WORDS, min_size=2, max_size=4, unique=True))
    counts = np.array(data.draw(st.lists(st.lists(st.integers(1, 99), min_size=len(heads), max_size=len(heads)),
                                         min_size=len(after), max_size=len(after))))  # fmt: skip
    query = data.draw(st.lists(st.sampled_from(heads), min_size=len(after), max_size=len(after)))
    path = tmp_path_factory.mktemp("table") / "a.csv"
    # A third column called weight would be the weights: the reader's one reserved word.
    heads = ["weights" if head == "weight" else head for head in heads]
    query = ["weights" if one == "weight" else one for one in query]
    with open(path, "w", encoding="utf-8", newline="") as opened:
        lines = csv.writer(opened)
        lines.writerow(["next_token", "query", *heads])
        lines.writerows([name, one, *row] for name, one, row in zip(after, query, counts.tolist(), strict=True))
    found = read_data(path)
    assert found.token_names == tuple(heads) and found.class_names == tuple(after)
    assert [heads[q] for q in found.query] == query
    assert np.allclose(found.probabilities.toarray(), counts / counts.sum(axis=1, keepdims=True), rtol=1e-14)


def test_json_with_the_arguments_of_classes(file):
    given = {"counts": [[3, 1, 0], [1, 0, 4]], "query": ["the", 2], "token_names": ["the", "stray", "loyal"]}
    found = read_data(file("a.json", json.dumps(given | {"vocab_size": 7, "class_names": ["cat", "dog"]})))
    assert found.probabilities.toarray().tolist() == [[0.75, 0.25, 0], [0.2, 0, 0.8]]
    assert found.query.tolist() == [0, 2] and found.vocab_size == 7 and found.class_names == ("cat", "dog")
    plain = read_data(file("b.json", '{"probabilities": [[1, 0], [0, 1]], "query": [0, 1]}'), vocab_size=9)
    assert isinstance(plain, SequenceClasses) and plain.vocab_size == 9 and plain.token_names is None


def test_bags_and_texts(file, tmp_path):
    bags = Bags.from_dense([0], [1], [[2, 1]], token_names=["a", "b"])
    bags.save(tmp_path / "a.npz")
    found = read_data(tmp_path / "a.npz")
    assert found.names == bags.names and found.count.tolist() == [2, 1]
    path = file("a.txt", "the cat sees the dog\n")
    read, made = read_data(path, length=3), TextCorpus(path).windows(3)
    assert read.names == made.names and read.target.tolist() == made.target.tolist()
    assert read_data(path, length=3, vocab_size=2).vocab_size == 2


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.csv", "", "a.csv` must begin with a line of heads, next_token and query first, but got ''"),
        ("a.csv", "next,query,a\nx,a,1\n", "but got 'next,query,a'"),
        ("a.csv", "next_token,query,a\nx,a,1,2\n", "a.csv` must have 3 cells in each line, but got 4 in line 2"),
        ("a.csv", "next_token,query,a\nx,a,1\n\ny,a,no\n", "numbers from zero up, but got 'no' in line 4, column 'a'"),
        ("a.csv", "next_token,query,a\nx,a,-1\ny,a,1\n", "but got '-1' in line 2, column 'a'"),
        ("a.csv", "next_token,query,a\nx,a,nan\ny,a,1\n", "but got 'nan' in line 2"),
        ("a.csv", "next_token,query,weight,a\nx,a,w,1\ny,a,1,1\n", "but got 'w' in line 2, column 'weight'"),
        ("a.csv", "next_token,query,a,a\nx,a,1,1\ny,a,1,1\n", "`token_names` must hold each name once, but got 'a' at"),
        (
            "a.csv",
            "next_token,query,a\nx,a,1\nx,a,1\n",
            "`class_names` must hold each name once, but got 'x' at 0 and 1",
        ),
        ("a.csv", "next_token,query,a\nx,a,1\ny,,1\n", "a.csv` must name each query and each column"),
        ("a.csv", "next_token,query,a,b\nx,a,1,1\ny,a,,\n", "sum to one, but got 0.0 in row 1"),
        ("a.csv", "next_token,query,weight,a\nx,a,0,1\ny,a,0,1\n", "`class_weights` must be positive"),
        ("a.csv", "next_token,query,a\nx,a,1\n", "`probabilities` must have at least two rows"),
        ("a.csv", 'next_token,query,a\n"x,a,1\n', "a.csv` must be a table"),
        ("a.json", "{", "a.json` must be JSON, but got Expecting property name"),
        ("a.json", "[" * 100_000, "a.json` must be JSON"),
        ("a.json", "[]", "a.json` must hold an object of JSON, but got list"),
        ("a.json", '{"queryy": [0, 0], "counts": [[1], [1]]}', 'a.json` must have keys such as "query"'),
        ("a.json", '{"query": [0, 0]}', "a.json` must hold `query`, and either `probabilities` or `counts`"),
        ("a.json", '{"counts": [[1]], "probabilities": [[1]], "query": [0]}', "either `probabilities` or `counts`"),
        ("a.json", '{"counts": [[1], [1]]}', "a.json` must hold `query`"),
        ("a.json", '{"counts": [["a"], [1]], "query": [0, 0]}', "`counts` must be an array of numbers"),
        ("a.json", '{"counts": [[1], [1]], "query": 0}', "`query` must be a list of numbers or names"),
        ("a.json", '{"counts": [[1], [1]], "query": ["a", 0]}', "`query` must be in `token_names`, but got 'a'"),
        (
            "a.json",
            '{"counts": [[1], [1]], "query": ["tho", 0], "token_names": ["the"]}',
            '`token_names`, as "the" are',
        ),
        ("a.xls", "", "`path` must end in one of .csv, .tsv, .json, .npz, .txt"),
        ("a.txt", "a b c", "`length` must be given for a text"),
        ("a.npz", "no", "`path` must be a file of bags written by yzflow"),
    ],
)
def test_files_of_another_content_are_refused(file, name, text, message):
    given = file(name, text)
    with pytest.raises(ValueError) as caught:
        read_data(given)
    assert message in str(caught.value)
    assert str(given) in str(caught.value) or message.startswith("`length` must be given")


def test_arguments_for_files_of_another_kind_are_refused(file, tmp_path):
    with pytest.raises(ValueError, match="`length` must be left out but for a text, but got 3"):
        read_data(file("a.csv", TABLE), length=3)
    Bags.from_dense([0], [0], [[1]]).save(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="`vocab_size` must be left out for bags, which have it, but got 3"):
        read_data(tmp_path / "a.npz", vocab_size=3)
    (tmp_path / "latin.csv").write_bytes(b"next_token,query,caf\xe9\n")
    with pytest.raises(ValueError, match=r"latin.csv` must be a table in UTF-8, .*, but got .* at position 20"):
        read_data(tmp_path / "latin.csv")
    with pytest.raises(FileNotFoundError):
        read_data(tmp_path / "none.csv")


TABLES = {
    "an index": (",next_token,query,the\n0,x,the,1\n", "leave out the column before these"),
    "a named index": ("id,next_token,query,the\n0,x,the,1\n", "leave out the column before these"),
    "semicolons": ("next_token;query;the\nx;the;1\n", "save it with commas, and points in numbers"),
    "a spreadsheet's mark": ("sep=;\nnext_token;query;the\n", "save it with commas, and points in numbers"),
    "tabs": ("next_token\tquery\tthe\nx\tthe\t1\n", "name it .tsv"),
    "another order": ("query,next_token,the\nthe,x,1\n", "in this order and spelling"),
    "another spelling": ("Next Token,Query,the\nthe,x,1\n", "in this order and spelling"),
    "decimal commas": ('next_token,query,the\nx,the,"0,5"\n', "write 1000 and 0.5, with a point"),
    "1_000": ("next_token,query,the\nx,the,1_000\n", "write 1000 and 0.5, with a point"),
    "1,000": ('next_token,query,the\nx,the,"1,000"\n', "write 1000 and 0.5, with a point"),
    "1.000,5": ('next_token,query,the\nx,the,"1.000,5"\n', "write 1000 and 0.5, with a point"),
    "a blank in a number": ("next_token,query,the\nx,the,1 000\n", "write 1000 and 0.5, with a point"),
    "per cent": ("next_token,query,the\nx,the,50%\n", "write 1000 and 0.5, with a point"),
}


@pytest.mark.parametrize(("text", "cure"), TABLES.values(), ids=TABLES)
def test_tables_of_other_programs_are_refused_with_the_cure(file, text, cure):
    given = file("words.csv", text)
    with pytest.raises(ValueError) as caught:
        read_data(given)
    assert str(caught.value).startswith(f"`{given}` must ") and cure in str(caught.value)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.json", "a.txt"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_file_in_another_encoding_is_refused_by_its_name(tmp_path, name, encoding):
    (tmp_path / name).write_bytes('{"counts": [[1], [1]]}, next_token, query'.encode(encoding))
    with pytest.raises(ValueError, match=r"UTF-8|without NUL") as caught:
        read_data(tmp_path / name, length=2 if name == "a.txt" else None)
    assert str(tmp_path / name) in str(caught.value)


def test_a_table_in_memory_is_no_file():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"^`path` must be the path of a file; a table in memory goes to SequenceCl"):
        read_data(pandas.DataFrame({"a": [1.0]}))
