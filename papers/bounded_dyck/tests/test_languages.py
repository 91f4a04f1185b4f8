"""Languages beside Dyck: their laws against the definition, and what of balance carries over against brute force."""

import itertools
import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage, balance, loops, training
from yzflow_bounded_dyck.languages import Automaton, Language, Seen, shuffle_language

from dynamics import Layer, sgd


def modular(m):
    """The token a counts modulo m, b leaves the count; the next token tells whether it is zero."""
    rows = {}
    for count in range(m):
        chance = 0.5 if count == 0 else 0.9
        rows[str(count)] = {
            "a": {"to": str((count + 1) % m), "probability": chance},
            "b": {"to": str(count), "probability": 1 - chance},
        }
    return Automaton(rows, start="0")


def stacks(n_types, max_depth, *, depth):
    """Dyck as a table of moves between stacks; the first layer hands on the depth, or the bracket alone."""
    rows, symbols = {}, DyckLanguage(n_types, max_depth).brackets
    language = DyckLanguage(n_types, max_depth)
    for size in range(max_depth + 1):
        for stack in itertools.product(range(n_types), repeat=size):
            moves = {}
            for bracket in np.flatnonzero(language.next_token([2 * kind for kind in stack])).tolist():
                to = [*stack, bracket // 2] if bracket % 2 == 0 else list(stack[:-1])
                chance = language.next_token([2 * kind for kind in stack])[bracket]
                label = {"label": str(len(to))} if depth else {}
                moves[symbols[bracket]] = {"to": str(to), "probability": float(chance)} | label
            rows[str(list(stack))] = moves
    return Automaton(rows, start="[]")


def laps():
    """a, b, c in turns with rests x and y, whose next tokens tell where the lap is."""
    rows = {}
    for place, token in enumerate("abc"):
        chance = 0.2 * (place + 1)
        rest = (1 - chance) / 2
        rows[str(place)] = {token: {"to": str((place + 1) % 3), "probability": chance}} | {
            name: {"to": str(place), "probability": rest} for name in "xy"
        }
    return Automaton(rows, start="0")


@st.composite
def automata(draw):
    """Up to four configurations in a ring of moves, with more moves, and labels from two."""
    size, tokens = draw(st.integers(1, 4)), "abc"[: draw(st.integers(2, 3))]
    rows = {}
    for place in range(size):
        there = {"a": (place + 1) % size}
        there |= {token: draw(st.integers(0, size - 1)) for token in tokens[1:] if draw(st.booleans())}
        weights = [draw(st.integers(1, 3)) for _ in there]
        rows[str(place)] = {
            token: {"to": str(to), "probability": weight / sum(weights)} | draw(st.sampled_from([{}, {"label": "x"}]))
            for (token, to), weight in zip(there.items(), weights, strict=True)
        }
    return Automaton(rows, start="0")


def random_layer(language, seed=0, width=5):
    return training.start(language, seed, width=width)


def repeated(language, prefix, loop, times):
    """Features' bags of a prefix with a loop put in ``times`` times where its configuration is met."""
    for cut in range(len(prefix) + 1):
        here = list(prefix[:cut])
        try:
            longer = [*here, *loop]
            if language.configuration(longer) == language.configuration(here):
                return [*here, *loop * times, *prefix[cut:]]
        except ValueError:
            continue
    return None


@pytest.mark.parametrize("language", [DyckLanguage(2, 3), shuffle_language(2, 2), modular(3)])
def test_languages_share_a_protocol(language):
    assert isinstance(language, Language)
    assert language.start == language.n_states - 1 == len(language.states) - 1
    assert language.bags([[]]).target.shape == (1, len(language.tokens))


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 2), (2, 4)])
def test_for_dyck_loops_are_matched_pairs_and_the_violation_is_the_papers(sizes):
    language = DyckLanguage(*sizes)
    opens, closes = balance.pairs(language)
    pairs = {tuple(sorted(pair)) for pair in zip(opens.ravel(), closes.ravel(), strict=True)}
    assert {tuple(np.flatnonzero(bag)) for bag in loops.simple_loops(language)} == pairs
    np.testing.assert_array_equal(loops.queries_in_doubt(language), np.sort(balance.queries(language).ravel()))
    for seed in range(3):
        layer = random_layer(language, seed)
        expected = balance.violation(layer, language)
        assert loops.loop_violation(layer, language) == pytest.approx(expected, rel=1e-12)
    parts = loops.known(language)
    assert (parts.rank, parts.torsion, parts.exact) == (sizes[0] * sizes[1], (), True)
    np.testing.assert_array_equal(parts.blocks[opens], parts.blocks[closes])


def test_one_type_of_brackets_need_not_be_balanced():
    assert loops.queries_in_doubt(DyckLanguage(1, 3)).size == 0


def test_dyck_needs_the_depths_and_counters_do_not():
    with_depth, without = loops.known(stacks(2, 3, depth=True)), loops.known(stacks(2, 3, depth=False))
    assert (with_depth.rank, with_depth.exact) == (6, True)
    assert (without.rank, without.exact) == (2, False)
    assert loops.known(stacks(2, 2, depth=False)).exact  # a closed bracket leaves one open at most
    assert loops.known(shuffle_language(2, 3, label=None)).exact
    language = stacks(2, 3, depth=False)
    (query, one, other), *_ = loops.known(language).confused
    bags = language.bags([one, other])
    assert (bags.query == query).all() and np.abs(bags.target[0] - bags.target[1]).max() > 0.1


def counted(language, most, q):
    """Next tokens of shuffled brackets by definition: (configuration, distribution) after a sequence of names."""

    def law(names):
        counts = dict.fromkeys("ab", 0)
        for name in names:
            counts[name[0]] += 1 if name[1] == "+" else -1
        chances = dict.fromkeys(language.tokens, 0.0)
        for kind, count in counts.items():
            opens = 1 if count == 0 else 0 if count == most else q
            chances[kind + "+"], chances[kind + "-"] = opens / 2, (1 - opens) / 2
        return " ".join(map(str, counts.values())), [chances[name] for name in language.tokens]

    return law


@given(st.integers(1, 3), st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 2**16))
def test_shuffled_brackets_follow_their_definition(most, q, seed):
    language = shuffle_language(2, most, q)
    law = counted(language, most, q)
    for tokens in language.sample_sequences(3, max_length=12, rng=seed):
        names = [language.tokens[token] for token in tokens]
        configuration, distribution = law(names)
        assert language.configuration(names) == configuration
        np.testing.assert_allclose(language.next_token(tokens), distribution, rtol=1e-12)
        last = language.states[language.state_sequence(tokens)[-1]]
        assert last == Seen(names[-1], configuration.split()["ab".index(names[-1][0])])


@pytest.mark.parametrize("kind", ["prefix", "word"])
@pytest.mark.parametrize("positions", ["last", "all"])
def test_samples_have_the_exact_law(kind, positions):
    language, sizes = shuffle_language(2, 2, 0.3, label=None), {"kind": kind, "positions": positions}
    exact = language.enumerate(min_length=2, max_length=4, **sizes)
    drawn = language.sample(4000, min_length=2, max_length=4, rng=0, **sizes).merge()

    def table(bags):
        keys = [
            (int(q), *bags.token[a:b].tolist(), *bags.count[a:b].tolist())
            for q, a, b in zip(bags.query, bags.indptr, bags.indptr[1:], strict=False)
        ]
        return dict(zip(keys, bags.weight, strict=True))

    expected, found = table(exact), table(drawn)
    assert set(found) <= set(expected)
    if positions == "last":  # else bags of one sequence depend on each other
        observed = np.array([found.get(key, 0) for key in expected]) * 4000
        assert scipy.stats.chisquare(observed, np.array(list(expected.values())) * 4000).pvalue > 1e-3
    else:
        assert max(abs(found.get(key, 0) - chance) for key, chance in expected.items()) < 0.02


def test_words_return_and_the_same_seed_draws_the_same():
    language = modular(3)
    words = language.sample_sequences(200, min_length=1, max_length=9, rng=5, kind="word")
    assert {language.configuration(word) for word in words} == {"0"}
    again = language.sample_sequences(200, min_length=1, max_length=9, rng=5, kind="word")
    assert all(np.array_equal(one, other) for one, other in zip(words, again, strict=True))
    bags = language.sample(5, max_length=9, rng=5, kind="word", positions="all")
    assert len(bags) == sum(len(w) + 1 for w in language.sample_sequences(5, max_length=9, rng=5, kind="word"))


@given(automata())
def test_the_free_part_and_the_torsion_are_those_of_all_simple_loops(language):
    parts, bags = loops.known(language), loops.simple_loops(language)[:, :-1].astype(int)
    rank = int(np.linalg.matrix_rank(bags))
    assert parts.rank == language.n_states - 1 - rank == np.linalg.matrix_rank(parts.values)
    assert not (bags @ parts.values[:-1]).any()
    # The torsion's order is the greatest common divisor of all minors of full rank.
    minors = [
        round(np.linalg.det(bags[np.ix_(rows, columns)].astype(float)))
        for rows in itertools.combinations(range(len(bags)), rank)
        for columns in itertools.combinations(range(bags.shape[1]), rank)
    ]
    assert math.prod(parts.torsion) == abs(math.gcd(*minors))


@given(automata())
def test_what_is_told_apart_is_so_on_all_short_prefixes(language):
    parts, laws, clash = loops.known(language), {}, set()
    prefixes = [()]
    for _ in range(6):
        prefixes = [
            (*prefix, int(token)) for prefix in prefixes for token in np.flatnonzero(language.next_token(prefix))
        ]
        for prefix in prefixes:
            states = language.state_sequence(prefix)
            key = (int(states[-1]), tuple(np.bincount(states, minlength=language.n_states) @ parts.values))
            law = laws.setdefault(key, tuple(language.next_token(prefix)))
            if law != tuple(language.next_token(prefix)):
                clash.add(key[0])
    assert clash <= {query for query, _, _ in parts.confused}
    for query, one, other in parts.confused:
        ends = [language.state_sequence(prefix) for prefix in (one, other)]
        counts = [np.bincount(states, minlength=language.n_states) @ parts.values for states in ends]
        assert [states[-1] for states in ends] == [query, query] and np.array_equal(*counts)
        assert not np.array_equal(language.next_token(one), language.next_token(other))


@given(automata(), st.integers(0, 100))
def test_a_balanced_layer_is_exact_at_any_length_or_refused(language, seed):
    if not loops.known(language).exact:
        with pytest.raises(ValueError, match="`language` must have next tokens that counts tell"):
            loops.balanced_layer_of(language, seed)
        return
    layer = loops.balanced_layer_of(language, seed)
    bags = language.sample(20, min_length=0, max_length=600, rng=seed)
    np.testing.assert_allclose(loops.Head(layer, language)(bags), bags.target, atol=1e-12)
    added, u = loops.loop_sums(layer, language), balance.contributions(layer, language)
    assert np.abs(added).max(initial=0) <= 1e-12 * np.abs(u).max()


def test_loops_leave_the_features_of_a_balanced_layer_and_turn_those_of_another():
    language = shuffle_language(2, 2)
    prefix = language.encode(["a+", "b+", "b+"])
    for layer, balanced in ((loops.balanced_layer_of(language, 0), True), (random_layer(language), False)):
        for names in (["a+", "a-"], ["b+", "a+", "b-", "a-"]):
            loop = language.encode(names).tolist()
            before, after = layer.features(language.bags([prefix, [*loop * 10_000, *prefix]]))
            states = language.state_sequence([*loop, *prefix])[1 : len(loop) + 1]
            bag = np.bincount(states, minlength=language.n_states)
            (which,) = np.flatnonzero((loops.simple_loops(language) == bag).all(axis=1))
            added = loops.loop_sums(layer, language)[language.state_sequence(prefix)[-1], which]
            if balanced:
                np.testing.assert_allclose(after, before, atol=1e-9)
            else:
                np.testing.assert_allclose(after, added / np.linalg.norm(added), atol=1e-2)
                assert np.abs(after - before).max() > 0.1


def test_a_loop_of_three_states_may_be_balanced_without_equal_differences_of_logits():
    language = laps()
    logits = np.zeros((language.n_states,) * 2)
    a, b, c = (language.states.index(Seen(token, None)) for token in "abc")
    x, y = (language.states.index(Seen(token, None)) for token in "xy")
    logits[y, [a, b]] = np.log(1.5), np.log(0.5)
    values = np.zeros((language.n_states, 2))
    values[[a, b, c], 0], values[language.start, 1] = (1, 1, -2), 1
    layer = Layer(logits, np.zeros((2, 5)), values)
    assert set(loops.queries_in_doubt(language)) == {x, y}
    assert np.ptp((layer.Z[:, a] - layer.Z[:, b])[[x, y]]) > 1
    added = loops.loop_sums(layer, language)[[x, y]]
    np.testing.assert_allclose(added, 0, atol=1e-12)
    bags = language.sample(50, min_length=300, max_length=400, rng=0)
    np.testing.assert_allclose(loops.Head(layer, language)(bags), bags.target, atol=1e-12)


def test_the_same_layer_trains_on_any_language():
    language = shuffle_language(2, 2)
    bags = language.sample(300, max_length=10, rng=0)
    run = sgd(bags, eta_y=0.05, eta_z=0.05, steps=100, batch_size=32, init=random_layer(language), seed=0,
              optimizer="adam")  # fmt: skip
    before, after = (float((layer.predict(bags) * bags.target).sum()) for layer in (random_layer(language), run.final))
    assert after > 1.05 * before


def test_a_configuration_without_return_is_refused():
    one_way = Automaton({"s": {"a": {"to": "t", "probability": 1}}, "t": {"a": {"to": "t", "probability": 1}}}, "s")
    with pytest.raises(ValueError, match=r"`language` must lead back to its first .* 't'.*: add a move back"):
        loops.known(one_way)


GOOD = {"s": {"a": {"to": "s", "probability": 0.5}, "b": {"to": "s", "probability": 0.5}}}
REFUSED = [
    ({}, "s", r"`transitions` must have at least one configuration, but got none"),
    ({"s": {}}, "s", r"`transitions\['s'\]` must have at least one move"),
    (GOOD, "t", r"`start` must be .*s.*, but got 't'"),
    ({"s": {"a": {"to": "s", "probability": 0.5}}}, "s", r"`transitions\['s'\]` must sum to one, .*0.5: divide"),
    ({"s": {"a": {"to": "t", "probability": 1}}}, "s", r"`transitions\['s'\]\['a'\]` must lead \"to\" .* got 't'"),
    ({"s": {"a": {"to": "s", "probability": -1}}}, "s", r"`transitions\['s'\]\['a'\]` must be positive"),
    ({"s": {"a": {"to": "s", "chance": 1}}}, "s", r"must have \"to\", \"probability\" and perhaps \"label\""),
    ({"s": {"a": {"to": "s", "probability": 1, "label": 3}}}, "s", r"must have text for its \"label\""),
    ({"s": {"": {"to": "s", "probability": 1}}}, "s", r"must have tokens with names"),
    (GOOD | {"t": GOOD["s"]}, "s", r"reached from 's', but got 't', .*: leave it out"),
]


@pytest.mark.parametrize(("transitions", "start", "message"), REFUSED)
def test_a_table_that_is_no_automaton_is_refused(transitions, start, message):
    with pytest.raises(ValueError, match=message):
        Automaton(transitions, start)


def test_a_file_is_the_table_that_it_holds(tmp_path):
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"start": "s", "transitions": GOOD}))
    assert Automaton.load(path).next_token("ab").tolist() == [0.5, 0.5]
    for text, message in [
        ("{", "`path` must be a file of JSON"),
        ("[]", 'must hold one object with the keys "start" and "transitions"'),
        (json.dumps({"start": "s", "transitions": GOOD, "more": 1}), "and no other"),
        (
            '{"start": "s", "transitions": {"s": {}, "s": {}}}',
            "`path` must have each key of an object once, .*'s' twice",
        ),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            Automaton.load(path)


def test_prefixes_that_no_walk_has_are_refused():
    language = shuffle_language(2, 1)
    with pytest.raises(
        ValueError, match=r"`prefix` must go on from '1 0' with one of b\+ a-, but got 'a\+' at position 1"
    ):
        language.encode(["a+", "a+"])
    with pytest.raises(ValueError, match=r"`prefix` must consist of the tokens"):
        language.encode(["c+"])
    with pytest.raises(ValueError, match=r"`prefix` must be a sequence of tokens"):
        language.encode("a+")
    with pytest.raises(ValueError, match=r"`max_length` must leave the length of a word"):
        language.sample(3, min_length=1, max_length=1, rng=0, kind="word")
