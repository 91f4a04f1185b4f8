"""A mistake in what the audit compares with alarms the row that it belongs to."""

import pytest
from yzflow_bounded_dyck import balance

import yzflow

MISTAKES = {
    "half of delta": ("Equation 13", "insertions", lambda right: lambda *a, **o: right(*a, **o) / 2),
    "values for minus the logits": (
        "Balance of values", "balancing_values", lambda right: lambda Z, language: right(-Z, language),
    ),
    "another layer's head": (
        "Theorem 1, sufficiency", "exact_head",
        lambda right: lambda layer, language: right(balance.balanced_layer(language, 1, scale=0), language),
    ),
}  # fmt: skip


# Other mistakes about delta turn checks red in `test_false_statements.py`, without an audit of trained layers.
@pytest.mark.parametrize("mistake", [pytest.param("half of delta", marks=pytest.mark.slow), *list(MISTAKES)[1:]])
def test_a_mistake_about_balance_alarms_the_right_row(mistake, monkeypatch):
    number, name, wrong = MISTAKES[mistake]
    monkeypatch.setattr(balance, name, wrong(getattr(balance, name)))
    report = yzflow.audit([f"Bounded Dyck: {number}"], quick=True)
    assert {row.statement for row in report.table if row.alarming} >= {f"Bounded Dyck: {number}"}
