"""Counted and promised sizes for Match3, and their figure."""

import numpy as np
import pytest
from figure_rules import shows

from yzflow_studies.conjecture import study

FIGURES = {entry.name: entry for entry in study.FIGURES}


@pytest.fixture(scope="module")
def triples():
    return study.triple_sizes(n_tokens=(8, 12, 27), promised=(2**6, 2**14, 2**30))


def test_sizes_of_triples_are_counted_and_those_of_the_formulas(triples):
    one = triples.sel(construction="groups")
    assert np.isnan(one["depth"].sel(n_tokens=12)) and (one["dimension"].sel(n_tokens=[8, 27]) == [4, 9]).all()
    assert float(triples["wrong"].sum()) == 0 and float(triples["outputs"].sum()) > 500
    # The promise is enough for the count at the same size.
    again = study.triple_sizes(n_tokens=(64,), promised=(64,))
    counted = (again["depth"] * again["heads"] * again["dimension"]).isel(n_tokens=0)
    assert (counted <= again["product"].isel(promised=0) + 1e-9).all()
    assert counted.sel(construction="transform") == again["product"].sel(construction="transform", promised=64)
    # The order of the three, and who is below N / log2 N where.
    below = triples["product"] < triples["bound"]
    assert not below.sel(promised=2**6).any() and below.sel(promised=2**30).all()
    assert below.sel(promised=2**14).values.tolist() == [False, False, True]


def test_the_caption_of_sizes_follows_the_data(triples):
    claims = FIGURES["match3_sizes"].claims
    outputs = int(triples["outputs"].sum())
    assert f"to N = 27: 0 of {outputs} outputs wrong" in claims(triples) and "transform from N = 1.64e+04" in claims(
        triples
    )
    worse = triples.assign(wrong=triples["wrong"] + 1, product=triples["product"] * 1e12)
    assert "groups at none" in claims(worse) and f": 8 of {outputs} outputs wrong" in claims(worse)


def test_the_figure_labels_its_axes_and_shows_its_data(triples):
    shows(FIGURES["match3_sizes"], triples, triples["product"])
