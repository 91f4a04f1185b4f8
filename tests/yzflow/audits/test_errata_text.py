"""The page of errata against the register: classes, settings and numbers, what must not be there, and its length."""

import re

import pytest
from driving import ROOT
from errata_page import CLASSES, errata_page, heaviest
from ours import OURS

from theory.statements import FalseAsPrinted, RefutedInPart
from yzflow.audits import formulas

PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
ACCUSATIONS = [
    pytest.param(one, erratum, id=one.id)
    for one in OURS.values()
    for erratum in one.errata
    if isinstance(erratum, FalseAsPrinted | RefutedInPart)
]


def sections(page):
    """Heading -> its part of the page."""
    parts = re.split(r"^## (.*): \d+$", page, flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def entries(part):
    """Id -> entry, of the statements of a section; remarks are links alone."""
    found = re.split(r"^(?:###|-) <a [^>]*>", part, flags=re.M)[1:]
    return {formulas_off(one).partition(". ")[0]: one for one in found}


def formulas_off(text):
    return re.sub(r"<[^>]*>", "", text)


def shown(text):
    return formulas.readable(text).replace("*", "&#42;")


def test_the_page_is_the_register_s():
    assert errata_page(OURS.values()) == PAGE


def test_what_stands_lower_is_set_lower():
    plain = re.sub(r"`[^`]*`|<code>.*?</code>|<script.*|<a href[^>]*>", "", PAGE)
    assert not re.findall(r".*\w_\w.*", plain)


def test_each_statement_stands_in_the_section_of_its_heaviest_class():
    found = sections(PAGE)
    assert list(found) == ["False as printed", "Refuted in part", "Slips", "Remarks"]
    for kind in CLASSES:
        ids = set(entries(found[kind.heading]))
        assert ids == {one.id for one in OURS.values() if one.errata and heaviest(one) is kind}
    without = [one for one in OURS.values() if not one.errata]
    assert f"\n{len(without)} more [statements](statements.md) have no erratum.\n" in PAGE


@pytest.mark.parametrize(("one", "erratum"), ACCUSATIONS)
def test_an_accusation_says_what_stands_first_and_has_its_number_on_the_page(one, erratum):
    entry = entries(sections(PAGE)[type(erratum).heading])[one.id]
    places = [entry.index(shown(getattr(erratum, name))) for name in ("stands", "quoted", "setting", "found", "right")]
    assert places == sorted(places)
    assert erratum.numbers and re.search(r"\d", erratum.found) and re.search(r"\d", erratum.setting)
