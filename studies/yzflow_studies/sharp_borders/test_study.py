"""Sharp borders: the true statements survive some settings, and a bound that is one percent closer falls."""

import pytest

from yzflow.fuzzing.blocks import draw_block
from yzflow_studies.sharp_borders import study
from yzflow_studies.sharp_borders.study import BORDERS, CLOSER, Border, Drawing, campaign


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if one.flows else []) for name, one in BORDERS.items()]
)
def test_a_true_statement_survives_and_its_border_is_sharp(name):
    """Of 250 settings: none beyond the bound, and some within a percent of it."""
    found = campaign(name, 50 if BORDERS[name].flows else 250, seed=0)
    assert found["fell"] == 0 and CLOSER < found["nearest"] <= 1 + 2 * study.ROUNDING
    assert 0 < found["closer"] <= found["examples"]


@pytest.mark.parametrize("name", ["first stage", "Remark 1", "Lemma 17, sharp"])
def test_a_closer_bound_falls(name):
    one = BORDERS[name]
    asked = Drawing(one.statement(closer=CLOSER), "closed form", draw=one.draw)
    blocks = (draw_block(asked, seed=0, number=number, simpler=False) for number in range(10))
    assert any(block.simplest is not None for block in blocks)


def test_a_false_neighbour_falls(monkeypatch):
    """M from 18 on in place of 19, where t* is behind t0'; and signs of LayerNorm that are wrong on one side."""
    one = BORDERS["peak before t0'"]
    monkeypatch.setitem(BORDERS, one.name, Border(one.name, "", lambda choose: study._sizes(choose, 18), one.share))
    assert campaign(one.name, 100, seed=0)["fell"] > 0
    speed = study.centred.speed
    monkeypatch.setattr(study.centred, "speed", lambda shares, m: -abs(speed(shares, m)))
    assert campaign("LayerNorm", 100, seed=0)["fell"] > 0
