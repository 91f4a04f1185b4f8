"""A reader's model in `yz.check`: the verdict on it, and what is refused."""

import numpy as np
import pytest
from yzflow_bounded_dyck import DyckLanguage, models
from yzflow_bounded_dyck.from_tokens import token_transformer

import yzflow as yz

LANGUAGE = DyckLanguage(2, 3)
NUMBER = "Bounded Dyck: Pairs in outputs"


def rows(verdict):
    return {row.check.partition(",")[0]: row for row in verdict.rows}


def test_an_exact_model_is_inside_and_changes_nothing():
    verdict = yz.check(NUMBER, data=models.of(token_transformer(LANGUAGE, 0), LANGUAGE))
    assert verdict.passed and all(row.inside and row.expected for row in verdict.rows)
    assert all(margin >= 1 for margin in verdict.margins[next(iter(verdict.margins))].values())
    assert "TokenTransformer" in verdict.text() and "Leave out `level`" not in verdict.text()


def test_a_model_that_forgets_is_outside_and_no_alarm():
    def ask(row):
        target = LANGUAGE.next_token(row).copy()
        target[1::2] = target[1::2] * 0.6 ** len(row) + target[1::2].sum() / 2 * (1 - 0.6 ** len(row))
        return target

    verdict = yz.check(NUMBER, data=models.of(ask, LANGUAGE, kind="probabilities", one=True, longest=80))
    bound, change = rows(verdict).values()
    assert bound.expected and bound.printed == 0 and not bound.alarming
    assert not change.inside and not change.expected and not change.alarming
    # In closed form: the shortest prefix of (16) has three brackets, and 23 with ten pairs.
    assert change.printed == pytest.approx(0.5 * (0.6**3 - 0.6**23) / 2)
    assert "outside right at every length" in " ".join(verdict.text().split())


def test_checks_of_layers_have_nothing_to_compare_and_rates_are_refused():
    model = models.of(yz.balance.balanced_layer(LANGUAGE, 0), LANGUAGE)
    verdict = yz.check("Bounded Dyck: Theorem 2", data=model)
    assert not verdict.rows and "be left out for a check that trains layers of its own" in str(verdict)
    with pytest.raises(ValueError, match=r"`eta_y` must be left out for a model that is trained already, but got 1.0"):
        yz.check(NUMBER, data=model, eta_y=1.0)
    with pytest.raises(ValueError, match=r"`data` must be a model that `yzflow_bounded_dyck.models.of` makes"):
        yz.check(NUMBER, data=np.zeros(3))


def test_a_model_that_reads_no_pair_is_not_said_to_ignore_them():
    """The prefixes of (16) have three brackets or more, and two more with a pair."""
    verdict = yz.check(NUMBER, data=models.of(token_transformer(LANGUAGE, 0), LANGUAGE, longest=4))
    assert "the largest change of outputs by pairs" not in rows(verdict)
    assert "nothing to compare" in " ".join(verdict.text().split())


def test_a_model_has_no_flow_that_could_hold():
    """It was called the model's full flow, inside every assumption of which the one of outputs was left out."""
    model = models.of(lambda prefixes: np.zeros((len(prefixes), 4)), LANGUAGE)
    with pytest.raises(ValueError, match="`level` must be one of 'SGD', but got 'full flow'"):
        yz.check(NUMBER, data=model, level="full flow")
    said = yz.check(NUMBER, data=model, level="SGD")
    assert said.rows and said.headline == "In your model it held; 1 of 2 assumptions broken."
