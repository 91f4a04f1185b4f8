"""The panel's mathematics in JavaScript gives what Python's gives."""

import pytest
from explorer_pages import mathematics
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck.panel import PANELS


@pytest.fixture(scope="module")
def run(shared_browser, tmp_path_factory):
    """Evaluate an expression beside the panel's mathematics, with `x` as its argument."""
    return mathematics(shared_browser, tmp_path_factory, (PANELS[0].folder, "mathematics.js"))


LANGUAGE = DyckLanguage(n_types=2, max_depth=3)


def test_states_of_every_prefix(run):
    prefixes = [prefix for length in range(7) for prefix in LANGUAGE.prefixes(length)]
    texts = ["".join("()[]"[bracket] for bracket in prefix) for prefix in prefixes]
    parsed = run("x.map((text) => yzflow.dyck.parse(text, { k: 2, D: 3 }))", texts)
    assert [one["states"] for one in parsed] == [LANGUAGE.state_sequence(prefix).tolist() for prefix in prefixes]
    assert [one["stack"] for one in parsed] == [LANGUAGE.stack(prefix).tolist() for prefix in prefixes]


@pytest.mark.parametrize(("text", "says"), [("(]", "close"), (")", "close"), ("(((([", "deeper"), ("(a", "not one of")])
def test_what_is_no_prefix_is_refused_with_its_place(run, text, says):
    attempt = "(() => { try { yzflow.dyck.parse(x, { k: 2, D: 3 }); } catch (error) { return error.message; } })()"
    message = run(attempt, text)
    assert message.startswith("bracket ") and says in message
