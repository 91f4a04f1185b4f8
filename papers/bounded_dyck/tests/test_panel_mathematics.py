"""The panel's mathematics in JavaScript gives what Python's gives."""

import itertools

import numpy as np
import pytest
from explorer_pages import close, mathematics
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.panel import PANELS

from dynamics import Layer


@pytest.fixture(scope="module")
def run(shared_browser, tmp_path_factory):
    """Evaluate an expression beside the panel's mathematics, with `x` as its argument."""
    return mathematics(shared_browser, tmp_path_factory, PANELS[0])


LANGUAGE = DyckLanguage(n_types=2, max_depth=3)


SCRIPT_LANGUAGE = {"k": 2, "D": 3}


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


def _random_layer():
    rng = np.random.default_rng(3)
    layer = balance.balanced_layer(LANGUAGE, rng=rng)
    return Layer(layer.Z + 0.3 * rng.normal(size=layer.Z.shape), layer.Y, layer.V)


def test_prediction_and_residual_of_an_unbalanced_layer(run):
    layer = _random_layer()
    weights = {"Z": layer.Z.tolist(), "V": layer.V.tolist(), "Y": layer.Y.tolist()}
    bags = LANGUAGE.sample(20, max_length=30, rng=5)
    counts = np.zeros((len(bags), LANGUAGE.n_states))
    counts[np.repeat(np.arange(len(bags)), np.diff(bags.indptr)), bags.token] = bags.count
    x = {"layer": weights, "query": bags.query.tolist(), "counts": counts.tolist()}
    predicted = run("x.query.map((q, i) => yzflow.dyck.predict(x.layer, q, x.counts[i]))", x)
    close(predicted, layer.predict(bags), 1e-11)
    actual = run("yzflow.dyck.residual(x.Z, x.language)", {"Z": weights["Z"], "language": SCRIPT_LANGUAGE})
    close(actual, balance.residual(layer.Z, LANGUAGE), 1e-13)
    delta = np.linalg.norm(balance.insertions(layer, LANGUAGE), axis=-1)
    u = balance.contributions(layer, LANGUAGE)
    x |= {"language": SCRIPT_LANGUAGE, "pairs": list(itertools.product(range(2), (1, 2, 3)))}
    opened = "yzflow.dyck.openState(pair[0], pair[1], x.language)"
    share = f"yzflow.dyck.pairShare(x.layer, q, x.counts[i], {opened}, x.language)"
    shares = run(f"x.query.map((q, i) => x.pairs.map((pair) => {share}))", x)
    sums = np.einsum("bs,bsc->bc", counts, u[bags.query])
    close(shares, delta[bags.query].reshape(len(bags), -1) / np.linalg.norm(sums, axis=1)[:, None], 1e-10)
