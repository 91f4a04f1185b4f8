"""The study's numbers by other routes: added up by hand, and crossings by a finer walk."""

import math

import numpy as np
import pytest
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging.constructions import TRIPLES, linear_product, one_layer_bits

from yzflow_studies.strict_match import study, values


@pytest.mark.parametrize("name", TRIPLES)
@pytest.mark.parametrize("n", [8, 64, 512])
def test_what_is_promised_is_built(name, n):
    model = study.built(name, n, 2.0)
    product = model.width * model.heads * model.depth
    promised = linear_product(name, n, 2.0)
    assert product <= promised * (1 + 1e-12)
    if name != "sorted":
        assert product == pytest.approx(promised)
    assert model.width == model.embedding_dim


def test_columns_of_a_token_add_up():
    # Each head reads a query and a key of log2 N + 1 digits and two columns of values; the reads have two heads.
    assert study.built("transform", 64, 2.0).width == 8 + 2 * (2 * 7 + 2)
    # Three heads read two codes of groups and the slots of one; a token has x, a position and three blocks of slots.
    assert study.built("groups", 64, 2.0).width == 2 + 3 * 16 + 3 * (4 + 4 + 16)


def test_crossings():
    for name, n in values.crossings(2.0).items():
        for factor, below in ((1.001, True), (0.999, False)):
            at = n * factor
            assert bool(linear_product(name, at, 2.0) < at / math.log2(at)) is below


def test_counts_see_wrong_outputs(monkeypatch):
    found = study.counted("groups", 8, 2.0, 0)
    assert found["wrong"] == 0 and found["dimension"] == found["token"] == 38
    right = averaging.match3_groups
    monkeypatch.setattr(averaging, "match3_groups", lambda root, modulus: right(root=root, modulus=modulus + 1))
    model = study.built("groups", 8, 2.0)
    x = np.array([[62, 1, 1, 1, 1, 1, 1, 1]])  # 64, and no sum of three is 65 or 130
    assert model.modulus == 65 and not model(x)[0, 0]
    assert right(root=2, modulus=64)(x)[0, 0]


@pytest.mark.parametrize("n", [3, 33])
def test_bits_of_one_layer(n):
    least, one, promised = one_layer_bits(n, n + 2, 1)
    prime = {3: 7, 33: 67}[n]  # the least above 2N
    bits = 2 * n * math.log2(2 * n * prime)
    assert bits < one <= promised == pytest.approx(bits + 5)
    assert least == (n - 1) / 4


def test_the_figure_says_what_it_draws():
    data = study.strict_sizes(promised=(2**10, 2**20, 2**40), n_tokens=(3, 9))
    assert "transform from N = 1.05e+06" in study._claims(data) and "groups from N = 1.1e+12" in study._claims(data)
    assert len(study.strict_match(data).axes) == 2
