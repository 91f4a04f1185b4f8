"""The exact transformer from tokens against the language, a parser written here, PyTorch and `tools/deep`."""

import numpy as np
import pytest
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck.from_tokens import token_transformer

FORMS = {"balanced": {}, "uniform": {"scale": 0.0}, "stack-like": {"scale": 0.0, "sharpness": 2.0}}


def parsed(prefix, k, D, q):
    """Distributions after each bracket by a stack, (3)."""
    stack, rows = [], []
    for bracket in [None, *prefix]:
        if bracket is not None:
            if bracket % 2:
                assert stack.pop() == bracket // 2
            else:
                stack.append(bracket // 2)
        opens = 1.0 if not stack else 0.0 if len(stack) == D else q
        row = np.zeros(2 * k)
        row[::2] = opens / k
        if stack:
            row[2 * stack[-1] + 1] = 1 - opens
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("k", "D", "length"), [(1, 1, 6), (1, 3, 8), (2, 1, 6), (2, 2, 7), (2, 3, 6), (3, 2, 5)])
def test_all_prefixes_have_the_exact_distribution(form, k, D, length):
    model = token_transformer(DyckLanguage(k, D, 0.3), 1, **FORMS[form])
    for prefix in model.language.prefixes(length):
        np.testing.assert_allclose(model.distribution(prefix), parsed(prefix, k, D, 0.3), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_words_of_length_1000_at_depth_10(form):
    language = DyckLanguage(2, 10)
    model = token_transformer(language, 0, **FORMS[form])
    for word in language.sample_sequences(3, min_length=1000, max_length=1000, rng=0, kind="word"):
        logits, target = model(word), parsed(word, 2, 10, 0.5)
        gaps = np.where(target > 0, logits, np.inf).min(axis=1) - np.where(target > 0, -np.inf, logits).max(axis=1)
        assert gaps.min() == pytest.approx(model.gap, abs=1e-4)
        np.testing.assert_allclose(model.distribution(word), target, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_nests_to_the_full_depth_leave_nothing_behind(form):
    """50 nests of ten levels with random types, then ten openings: drawn words seldom reach the full depth."""
    types = np.random.default_rng(1).integers(0, 2, (51, 10))
    nests = [np.concatenate([2 * row, 2 * row[::-1] + 1]) for row in types[:-1]]
    prefix = np.concatenate([*nests, 2 * types[-1]])
    model = token_transformer(DyckLanguage(2, 10), 0, **FORMS[form])
    np.testing.assert_allclose(model.distribution(prefix), parsed(prefix, 2, 10, 0.5), atol=1e-9)


@pytest.mark.slow
def test_pytorch_has_the_same_logits_after_saving(tmp_path):
    torch = pytest.importorskip("torch")
    language = DyckLanguage(2, 3)
    model = token_transformer(language, 0)
    torch.save(model.to_torch().state_dict(), tmp_path / "weights.pt")
    module = token_transformer(language, 5).to_torch()
    module.load_state_dict(torch.load(tmp_path / "weights.pt"))
    prefix = language.sample_sequences(1, min_length=60, max_length=60, rng=0)[0]
    with torch.no_grad():
        found = module(torch.tensor(np.append(4, prefix)[None])).numpy()[0]
    np.testing.assert_allclose(found, model(prefix), atol=1e-7)


@pytest.mark.slow
def test_tools_deep_has_the_same_logits():
    pytest.importorskip("yzflow_deep")
    import jax

    language = DyckLanguage(2, 3)
    model = token_transformer(language, 0)
    prefix = language.sample_sequences(1, min_length=40, max_length=40, rng=0)[0]
    with jax.enable_x64(True):
        found = np.asarray(model.to_deep()(np.append(4, prefix)))
    np.testing.assert_allclose(found, model(prefix), atol=1e-7)
