"""Bad values for data, layers and text: each is refused by the argument's name, the rule and the value."""

import numpy as np
import pytest
from driving import ROOT
from hostile import Table, call_of, refused
from scipy.sparse import csr_array

from dynamics import Bags, Embedding, Layer, SequenceClasses, TextCorpus
from dynamics.support import checks

TABLE = Table(["dynamics"], ROOT / "tests" / "dynamics" / "calls.py")
NOTHING = {"token": [], "count": []}
TWO = {"query": [0, 1], "target": [0, 1], "indptr": [0, 2, 3], "token": [0, 2, 1], "count": [1.0, 2.0, 1.0]}
HIDDEN = np.ma.array([1.0, 1.0], mask=[True, False])
OF_VALUES = Embedding(np.eye(3), np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 3)))
THREE = Embedding(np.eye(3), np.ones((2, 3)), np.ones((2, 3)))  # vectors
# Calls beside those of the table, whose bad values need other good ones beside them.
MORE = {
    "two bags": (Bags, TWO),
    "a plain layer": (Layer, {"Z": [[1.0, 2.0]], "Y": [[1.0, 2.0], [3.0, 4.0]]}),
    "a layer with values": (Layer, {"Z": np.zeros((2, 4)), "Y": np.ones((3, 3)), "V": np.ones((4, 3))}),
    "a layer of a residual": (Layer, {"Z": np.zeros((2, 3)), "Y": np.zeros((5, 4)), "residual": True}),
    "names": (SequenceClasses, {"probabilities": np.eye(3), "query": [0] * 3, "vocab_size": 6}),
    "windows of six tokens": (TextCorpus(["0 1 2 3 4 0"], vocabulary=("<unk>", *"01234")).windows, {"length": 3}),
    "an index array": (checks.index_array, {"name": "value", "value": [0, 3], "upper": 4}),
    "a finite array": (checks.finite_array, {"name": "value", "value": [1.0]}),
    "a number": (checks.real, {"name": "value", "value": 1.0}),
}
REFUSED = {
    "SequenceClasses": [
        ("probabilities", [[0.5, 0.6, -0.1], [1, 0, 0]], "non-negative", "-0.1 at index (0, 2)"),
        ("probabilities", [[0.5, np.nan, 0.5], [1, 0, 0]], "hold finite numbers", "nan at index (0, 1)"),
        ("probabilities", [[1, 0, 0], [0.5, 0.4, 0]], "have rows that sum to one", "0.9 in row 1"),
        ("probabilities", [[1.0, 0.0]], "have at least two rows", "shape (1, 2)"),
        ("probabilities", [1.0, 0.0], "have 2 axes", "shape (2,)"),
        ("probabilities", None, "an array of numbers"),
        ("probabilities", csr_array([[1.0, 0], [2, -1]]), "non-negative", "-1.0"),
        ("probabilities", csr_array([[1.0, 0], [np.nan, 1]]), "hold finite numbers", "nan"),
        ("probabilities", csr_array([[1.0, 0], [0, 0.5]]), "have rows that sum to one", "0.5 in row 1"),
        ("probabilities", csr_array([[1 + 1j, 0], [0, 1]]), "an array of numbers", "array([1.+1.j, 1.+0.j])"),
        ("query", [0, 3], "hold indices in [0, 3)", "3 at index 1"),
        ("query", [0, 0, 0], "have one entry for each of 2 next tokens", "3"),
        ("query", [0.0, 1.0], "hold integers", "dtype float64"),
        ("class_weights", [0.5, 0.4], "sum to one", "0.9"),
        ("class_weights", [1.0, 0.0], "positive", "0.0"),
        ("class_weights", [1.0], "have 2 entries", "1"),
        ("class_weights", [np.nan, 1.0], "hold finite numbers", "nan at index 0"),
    ],
    "names": [
        ("token_names", ["the", "stray"], "hold 3 to 6 names, one for each of the contextual tokens", "2"),
        ("token_names", list("abcdefg"), "hold 3 to 6 names", "7"),
        ("token_names", ["the", "the", "cat"], "hold each name once", "'the' at 0 and 1"),
        ("token_names", ["the", 2, "cat"], "hold text", "2 at index 1"),
        ("token_names", "abc", "a sequence of names"),
        ("token_names", ["a", "b\0", "c"], "hold text of at most 200 characters that files", r"'b\x00' at index 1"),
        ("token_names", ["a", "\ud800", "c"], "files can keep", r"'\ud800' at index 1"),
        ("token_names", ["a", "b" * 201, "c"], "at most 200 characters", "at index 1"),
        ("class_names", ["cat"], "hold 3 to 6 names, one for each of the next tokens", "1"),
        ("class_names", {"cat": 0, "dog": 1}, "a sequence of names of next tokens", "{'cat': 0, 'dog': 1}"),
    ],
    "SequenceClasses.sample": [("n", 0, "at least 1"), ("n", 2.0, "an integer", "2.0: write 2")],
    "SequenceClasses.distinct_tokens": [("n", 2, "below 2"), ("n", -1, "at least 0")],
    "SequenceClasses.syn_medium": [("n_queries", 0, "at least 1"), ("n_queries", "3", "an integer")],
    "SequenceClasses.single_common_token": [
        ("n_classes", 1, "at least 2"),
        ("vocab_size", 2, "at least 3", None, {"n_classes": 3}),
        ("common", 0, "positive"),
        ("common", np.nan, "a positive finite number"),
        ("distinct", [], "hold at least one number, all positive", "[]"),
        ("distinct", [1.0, 0.0], "all positive", "[1.0, 0.0]"),
        ("distinct", 1.0, "have 1 axis", "shape ()"),
    ],
    "two bags": [
        ("query", [], "hold at least one bag", "an empty array", {"target": [], "indptr": [0]} | NOTHING),
        ("query", [0, -1], "hold indices of at least 0", "-1 at index 1"),
        ("query", [0.5, 1], "hold integers", "dtype float64"),
        ("target", [0], "have one entry for each of 2 bags", "1"),
        ("target", [0, -2], "hold indices of at least 0", "-2 at index 1"),
        ("target", [0.0, 1.0], "hold integers", "dtype float64"),
        ("target", [[0.5, 0.4], [0, 1]], "have rows that sum to one", "0.9 in row 0"),
        ("target", [[1.5, -0.5], [0, 1]], "non-negative", "-0.5 at index (0, 1)"),
        ("target", [[np.nan, 1], [0, 1]], "hold finite numbers", "nan at index (0, 0)"),
        ("target", [[], []], "have at least one column", "shape (2, 0)"),
        ("target", [[1.0]], "have one entry for each of 2 bags", "1"),
        ("indptr", [0, 3], "have 3 entries", "2"),
        ("indptr", [1, 2, 3], "run from 0 to 3", "1 to 3"),
        ("indptr", [0, 3, 3], "give every bag at least one token", "bag 1 has none"),
        ("token", [2, 0, 1], "increase within a bag, each token once", "bag 0"),
        ("token", [0, 2, 1], "increase within a bag, each token once", "bag 1", {"indptr": [0, 1, 3]}),
        ("token", [-1, 2, 1], "hold indices of at least 0", "-1 at index 0"),
        ("token", [0.0, 2, 1], "hold integers", "dtype float64"),
        ("count", [1.0, 0.0, 1.0], "positive", "0.0 at index 1"),
        ("count", [1.0, np.nan, 1.0], "hold finite numbers", "nan at index 1"),
        ("count", [1.0], "have one entry for each of 3 tokens", "1"),
        ("count", [1e300, 5e-324, 1.0], "have ratios within a bag", "5e-324 at index 1 beside 1e+300"),
        ("weight", [0.5, 0.4], "sum to one", "0.9"),
        ("weight", [1.5, -0.5], "non-negative", "-0.5 at index 1"),
        ("weight", [1.0], "have one entry for each of 2 bags", "1"),
        ("weight", [np.nan, 1.0], "hold finite numbers", "nan at index 0"),
        ("n_queries", 1, "at least 2"),
        ("n_tokens", 2, "at least 3"),
        ("vocab_size", 1, "at least 2"),
        ("query_names", ["a"], "hold 2 names, one for each of the 2 rows of Z", "1"),
        ("token_names", ["a", "b"], "hold 3 names, one for each of the 3 contextual tokens", "2"),
    ],
    "Bags.from_dense": [
        ("counts", [[1, -1]], "non-negative", "-1.0 at index (0, 1)"),
        ("counts", [1, 1], "have 2 axes", "shape (2,)"),
        ("indptr", ..., "give every bag at least one token", "bag 0 has none", {"counts": [[0.0]]}),
    ],
    "Bags.concatenate": [
        ("parts", [], "hold at least one", "none"),
        ("parts", [3], "Bags", "3"),
        ("parts", [Bags(**TWO), Bags(**TWO | {"target": np.eye(2)})], "have targets of one kind", "[(), (2,)]"),
        ("parts", [Bags(**TWO, token_names=names) for names in (["a", "b", ""], ["", "c", ""])],
         "have the same token names", "'b' and 'c' for 1"),
        ("shares", [1.0], "2 numbers with a positive sum", "0.5"),
        ("shares", [0.0, 0.0], "2 numbers with a positive sum", "0.0"),
        ("shares", [1.0, -1.0], "non-negative", "-1.0"),
    ],
    "a plain layer": [
        ("Z", [[np.nan, 1.0]], "hold finite numbers", "nan at index (0, 0)"),
        ("Z", [1.0], "have 2 axes", "shape (1,)"),
        ("Z", np.zeros((0, 2)), "have at least one row and one column", "shape (0, 2)"),
        ("Y", [[np.inf]], "hold finite numbers", "inf at index (0, 0)"),
        ("Y", [[1.0]], "have 2 rows, one a token", "shape (1, 1)"),
        ("V", [[1.0]], "have 2 rows, one a token", "shape (1, 1)"),
        ("multiplicity", [1], "a positive integer for each of 2 columns of Y", "1"),
        ("multiplicity", [1, 0], "a positive integer for each of 2 columns of Y", "0"),
        ("multiplicity", [1.0, 2.0], "hold integers", "dtype float64"),
        ("center", True, "left out without a value matrix"),
        ("floor", 0.1, "left out without a value matrix"),
        ("embedding", THREE, "have a vector for each of the 2 tokens", "3 vectors and Z of shape (1, 2)"),
        ("embedding", THREE, "have a vector for each of the", "3 vectors and Z of shape (5, 3)",
         {"Z": np.zeros((5, 3)), "Y": np.zeros((3, 2))}),
        *(("embedding", own, "have the values that V is made of", got, {"Z": np.zeros((3, 3)), **weights})
          for own, got, weights in (
              (OF_VALUES, "no V", {"Y": np.zeros((3, 2))}),
              (OF_VALUES, "(3, 4)", {"V": np.zeros((3, 4)), "Y": np.zeros((4, 2))}),
              (THREE, "None of them", {"V": np.zeros((3, 2)), "Y": np.zeros((2, 2))}))),
    ],
    "a layer with values": [
        ("Y", np.ones((2, 3)), "have 3 rows, one a column of V", "shape (2, 3)"),
        ("hidden", np.ones((3, 2)), "have 4 rows, one a column of V and one for the biases", "shape (3, 2)"),
        ("Y", ..., "have 5 rows, one a unit", "shape (3, 3)", {"hidden": np.ones((4, 5))}),
        ("floor", -0.1, "non-negative"),
        ("floor", np.inf, "a non-negative finite number"),
        ("floor", 0.1, "left out without normalisation", None, {"normalisation": None}),
        ("normalisation", "layer", "'unit' or None with a hidden layer and no V", None,
         {"V": None, "hidden": np.ones((5, 3)), "Y": np.ones((3, 3))}),
    ],
    "a layer of a residual": [
        ("Y", np.zeros((3, 4)), "have 5 rows, one a token and query", "shape (3, 4)"),
        ("residual", ..., "left out beside V, hidden or embedding", "True", {"V": np.zeros((3, 5))}),
    ],
    "layer.Embedding": [
        ("keys", ..., "have 3 columns", "2", {"keys": np.ones((2, 2)), "queries": np.ones((2, 2))}),
        ("queries", np.ones((1, 3)), "have the shape of `keys`", "(1, 3)"),
    ],
    **{f"layer.Layer.{name}": [
        ("bags", Bags([1], [0], [0, 1], [0], [1.0]), "have at most the 1 queries of the layer", "2"),
        ("bags", Bags([0], [0], [0, 1], [3], [1.0]), "have at most the 3 tokens of the layer", "4"),
        ("bags", Bags([0], [4], [0, 1], [0], [1.0]), "have at most the 4 next tokens of the layer", "5"),
    ] for name in ("loss", "gradient", "attention", "features", "predict")},
    "residual_connection": [("data", [1, 2], "Bags or offer population()", "list")],
    "layer_norm": [("width", 2, "at least 3")],
    "biased_sequences": [
        ("position_bias", -1.0, "non-negative"),
        ("position_bias", [0.0, 1.0], "have an entry for each of the 3 contextual tokens", "2 entries"),
        ("position_bias", [0.0, 1.0, np.nan], "hold finite numbers", "nan at index 2"),
    ],
    "TextCorpus": [
        ("source", [], "hold at least one token", "an empty text"),
        ("source", ["\n", " \t"], "hold at least one token", "an empty text"),
        ("source", "a text\nof lines", "a path, an open file or an iterable of lines", "text"),
        ("source", b"bytes", "a path, an open file or an iterable of lines", "bytes"),
        ("source", 7, "a path, an open file or an iterable of lines", "int"),
        ("source", ["a", b"b"], "hold lines of text", "bytes at index 1"),
        ("source", {"text": ["a b"]}, "of a table, one column", "dict with ['text'"),
        ("tokenizer", "bpe", "one of 'whitespace', 'words', 'bytes'"),
        ("vocabulary", ["a"], "hold <unk> and each token once", "1 entries"),
        ("vocabulary", ["<unk>", "a", "a"], "hold <unk> and each token once", "3"),
        ("vocab_size", 5, "left out beside a vocabulary"),
        ("vocabulary", ["<unk>", "The"], "in small letters .. lowercase=False", "'The'"),
    ],
    "TextCorpus.decode": [("tokens", [6], "hold indices in [0, 4)", "6 at index 0")],
    "windows of six tokens": [
        ("length", 6, "below the 6 tokens of the text, the last of which is the next token"),
        ("length", 3, "below the 3 tokens", None, {"stop": 3}),
        ("stride", 0, "at least 1"),
        ("limit", 0, "at least 1"),
        ("stop", 2, "at least 4", None, {"start": 4}),
        ("limit", ..., "say how many windows `rng` draws", "None", {"rng": np.random.default_rng(0)}),
    ],
    "a number": [("value", np.ma.masked, "a finite number", "masked")],
    "an index array": [
        ("value", -1, "have 1 axis", "shape ()"),
        ("value", [[0, 1]], "have 1 axis", "shape (1, 2)"),
        ("value", [[0], [1, 2]], "an array of integers", "rows of different lengths"),
        *(("value", bad, "hold integers", f"dtype {np.asarray(bad).dtype}") for bad in ([True, False], ["0", "1"])),
        ("value", np.array([-1, 2], dtype=np.int8), "hold indices in [0, 4)", "-1 at index 0"),
        ("value", [0, 4], "hold indices in [0, 4)", "4 at index 1"),
        ("value", np.array([0, 2**64 - 1], dtype=np.uint64), "hold", "18446744073709551615 at index 1"),
        ("value", np.ma.array([1, 2], mask=[False, True]), "have no masked entries", "a masked array"),
    ],
    # What holds of all arrays of numbers, and of indices, is asked here once; a row above says that it is asked there.
    "a finite array": [
        *(("value", bad, "an array of numbers", repr(bad)) for bad in ("x", ["1", "0"], [1j, 0])),
        ("value", None, "an array of numbers"),
        ("value", [[1], [0, 1]], "an array of numbers", "rows of different lengths"),
        ("value", [1.0, np.inf], "hold finite numbers", "inf at index 1"),
        ("value", HIDDEN, "have no masked entries", "a masked array"),
        ("value", [HIDDEN, HIDDEN], "have no masked entries", "a masked array"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    for table in TABLE.made(tmp_path_factory.mktemp("refused")):
        yield table | MORE


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_value_is_refused_by_its_name_the_rule_and_the_value(table, name):
    refused(*call_of(table, name), REFUSED[name])
