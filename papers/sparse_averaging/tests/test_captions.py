"""Formulas that captions of figures state are the claims that the proofs decide."""

import pytest
from figure_rules import of_papers_and_studies
from yzflow_sparse_averaging.proofs import linear_query, moments

from theory.symbolic.printing import plain


@pytest.mark.parametrize(
    ("name", "words", "formula"),
    [
        ("qsa_query_bits", "moment curve (m = {})", plain(moments.dimension, "q")),
        ("qsa_embedding_dim", "training works from m = {} on", plain(linear_query.rank, "N")),
        ("qsa_embedding_dim", "W K^T of rank {} at least", plain(linear_query.rank, "N")),
    ],
)
def test_a_caption_has_the_claim(name, words, formula):
    caption = "".join(of_papers_and_studies()[name].draw.__doc__.split())
    assert "".join(words.replace("{}", formula).split()) in caption
