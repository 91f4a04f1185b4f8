"""The exact transformer from tokens against the language, a parser written here, PyTorch and `tools/deep`."""

from dataclasses import replace

import numpy as np
import pytest
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck.from_tokens import token_transformer

from dynamics import Layer

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


@pytest.mark.parametrize("q", [0.2, 0.5, 0.8])
@pytest.mark.parametrize(("k", "D"), [(1, 1), (1, 3), (2, 1), (2, 3), (3, 2)])
def test_the_gap_is_the_least_between_a_possible_and_an_impossible_bracket(k, D, q):
    """Over all short prefixes. With one type, brackets are impossible at depths 0 and D only."""
    model = token_transformer(DyckLanguage(k, D, q), 0, low=9.0)
    gaps = []
    for prefix in model.language.prefixes(5):
        for logits, target in zip(model(prefix), parsed(prefix, k, D, q), strict=True):
            gaps += [one - other for one in logits[target > 0] for other in logits[target == 0]]
    assert min(gaps) == pytest.approx(model.gap, abs=1e-9)


def test_prefixes_outside_of_the_language_are_refused_with_the_reason():
    model = token_transformer(DyckLanguage(2, 2), 0)
    np.testing.assert_array_equal(model("([]"), model([0, 2, 3]))
    for prefix, rule in {
        "(]": r"close '\(' before any other, but got '\]' at position 1",
        ")": "open a bracket before it closes one",
        "(((": "be no deeper than 2",
    }.items():
        with pytest.raises(ValueError, match=f"`prefix` must {rule}"):
            model(prefix)
    with pytest.raises(ValueError, match="`parts` must be at most 4"):
        model.stream("()", parts=5)


def test_transformers_by_hand_are_checked_and_have_no_gap_that_is_not_theirs():
    model = token_transformer(DyckLanguage(2, 2), 0)
    assert replace(model).gap == model.gap
    with pytest.raises(ValueError, match="read-only"):
        model.decoder[0] = 1
    first, *others = model.parts
    wider = replace(first, up=np.hstack([first.up] * 2), bias=np.tile(first.bias, 2), down=np.vstack([first.down] * 2))
    for more, rule in {
        "embedding": (2 * model.embedding, "`embedding` must be what `token_transformer` makes"),
        "decoder": (model.decoder + 1, "`decoder` must be what"),
        "parts": ((wider, *others), r"`parts\[0\].up` must be what"),
        "low": (5.0, "`decoder` must be what"),
    }.items():
        with pytest.raises(ValueError, match=rule[1]):
            replace(model, **{more: rule[0]}).gap  # noqa: B018
    with pytest.raises(ValueError, match="`parts` must be 4, as"):
        replace(model, parts=(*model.parts, first)).gap  # noqa: B018
    for name, value, rule in [
        ("embedding", model.embedding[:-1], "have the shape"),
        ("decoder", model.decoder * np.nan, "hold finite numbers"),
        ("parts", (), "hold at least one `Part`"),
        ("parts", (first, token_transformer(DyckLanguage(2, 3), 0).parts[1]), "have the width of the first"),
        ("low", 0.0, "be positive"),
        ("language", 3, "be a DyckLanguage"),
        ("second", None, "be a Layer"),
    ]:
        with pytest.raises(ValueError, match=rf"`{name}.*` must {rule}"):
            replace(model, **{name: value})
    with pytest.raises(ValueError, match="`down` must have the shape"):
        replace(first, down=first.down[:-1])
    unbalanced = replace(
        model, second=Layer(*(np.random.default_rng(0).normal(size=s) for s in ((9, 9), (5, 4), (9, 5))))
    )
    with pytest.raises(ValueError, match="`layer` must be exactly balanced"):
        unbalanced.gap  # noqa: B018


@pytest.mark.parametrize("form", [{"scale": 10.0}, {"scale": 0.0, "sharpness": 40.0}, {"sharpness": 1000.0}])
def test_attention_whose_rounding_looks_like_a_bracket_is_refused(form):
    with pytest.raises(ValueError, match="`scale` must be so small, with `sharpness`, that rounding makes no bracket"):
        token_transformer(DyckLanguage(2, 3), 0, **form)


@pytest.mark.parametrize("scale", [3.0, 4.0, 5.0])
def test_what_is_not_refused_is_exact_behind_many_pairs(scale):
    language, built = DyckLanguage(2, 3), 0
    for seed in range(6):
        try:
            model = token_transformer(language, seed, scale=scale)
        except ValueError:
            continue
        built += 1
        for prefix in language.sample_sequences(2, min_length=300, max_length=300, rng=seed):
            np.testing.assert_allclose(model.distribution(prefix), parsed(prefix, 2, 3, 0.5), atol=1e-6)
    assert built > 0 or scale > 4
