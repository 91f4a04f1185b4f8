"""Names of tokens, next tokens and queries: kept everywhere, shown everywhere, and without a share in any number."""

import csv
import pickle
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
import strategies
import xarray as xr
from balls import enclose_flow
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from dynamics import (
    Bags,
    Limits,
    SequenceClasses,
    Trajectory,
    extensions,
    gradient_flow,
    noise,
    sgd,
    stochastic_flow,
)
from dynamics.support import calls, display, names

WORDS, AFTER = ["the", "stray", "loyal"], ["cat", "dog"]
ROWS = [[0.5, 0.5, 0], [0.5, 0, 0.5]]
TEXT = st.text(max_size=12).filter(names.is_name)


def classes(**options):
    return SequenceClasses(ROWS, [0, 4], vocab_size=6, **options)


NAMED = {"token_names": [*WORDS, "", "saw"], "class_names": AFTER}


RUN = {"eta_y": 1.0, "eta_z": 0.5, "t_end": 20.0, "n_times": 4}


def run(data, **options):
    return gradient_flow(data, **{**RUN, **options})


def without(dataset):
    return dataset.drop_vars([name for name in dataset.coords if str(name).endswith("_name")])


def named(draw, size):
    """A list of as many names, of which none is twice but for the empty one."""
    given = draw(st.lists(TEXT, min_size=size, max_size=size))
    return ["" if name in given[:i] else name for i, name in enumerate(given)]


@st.composite
def named_bags(draw):
    data = draw(strategies.bags())
    sizes = {
        "token_names": data.n_tokens,
        "query_names": data.n_queries,
        "class_names": draw(st.integers(data.n_targets, data.vocab_size)),
    }
    return replace(data, **{name: named(draw, size) for name, size in sizes.items() if draw(st.booleans())})


@given(named_bags(), st.randoms(use_true_random=False))
@settings(max_examples=13)
def test_names_outlive_files_merging_mixing_and_pickling(tmp_path_factory, data, random):
    path = tmp_path_factory.mktemp("bags") / "bags.npz"
    data.save(path)
    order = random.sample(range(len(data)), len(data))
    again = [
        Bags.load(path),
        pickle.loads(pickle.dumps(data)),
        data.merge(),
        Bags.concatenate([data, data]),
        data._take(np.array(order), data.weight[order]),
        calls._unpack(calls._pack(data, arrays := {}, "0"), arrays),
    ]
    for other in again:
        assert other.names == data.names


@given(named_bags())
@settings(max_examples=13)
def test_bags_with_and_without_names_have_the_same_numbers(data):
    bare = replace(data, token_names=None, class_names=None, query_names=None)
    assert [array.tobytes() for array in data.arrays.values()] == [array.tobytes() for array in bare.arrays.values()]
    options = {"eta_y": 1.0, "eta_z": 1.0, "steps": 3, "length": None, "batch_size": 4}
    own, other = (sgd(one, **options, seed=5).dataset for one in (data, bare))
    xr.testing.assert_identical(without(own), other)
    for name, axis in names.AXES.items():
        given = getattr(data, name)
        if given is None:
            assert f"{axis}_name" not in own.coords
        else:
            numbers = own[axis].values
            assert own[f"{axis}_name"].values.tolist() == [given[n] for n in numbers]
    assert not any(str(name).endswith("_name") for name in other.coords)


@pytest.mark.parametrize("tables", [2**30, 1])
@pytest.mark.parametrize("decoder", ["full", "theory"])
def test_a_flow_has_the_bits_that_it_has_without_names(tables, decoder):
    with Limits(tables=tables):
        own, bare = (run(data, decoder=decoder).dataset for data in (classes(**NAMED), classes()))
    assert ("entry" in own.dims) == (tables == 1 and decoder == "full") or decoder == "theory"
    xr.testing.assert_identical(without(own), bare)
    assert own["token_name"].values.tolist() == WORDS
    assert own["next_token_name"].values.tolist() == AFTER
    assert own["query"].values.tolist() == [0, 4] and own["query_name"].values.tolist() == ["the", "saw"]


def test_every_way_from_classes_to_bags_keeps_names():
    data = classes(**NAMED)
    expected = {"token_names": tuple(WORDS), "class_names": tuple(AFTER), "query_names": ("the", "saw")}
    for made in (
        data.population(),
        data.sample(3, length=4, rng=0),
        data.all_sequences(length=3),
        extensions.biased_sequences(data, 5, length=4, position_bias=0.1),
        extensions.residual_connection(data)[0],
        pickle.loads(pickle.dumps(data)).population(),
    ):
        assert made.names == expected
    paired = extensions.residual_connection(data, inner_norm=False)[0]  # whose tokens are pairs
    assert paired.names == expected | {"token_names": None}


def test_a_file_keeps_names_and_one_without_still_loads(tmp_path):
    for data in (classes(**NAMED), classes()):
        made = run(data)
        made.save(tmp_path / "flow.nc")
        found = Trajectory.load(tmp_path / "flow.nc")
        assert found.dataset.identical(made.dataset)
        assert found.call.arguments["data"].token_names == data.token_names
        assert found.call.make().dataset.identical(made.dataset)


def test_data_without_names_is_packed_as_before_there_were_any():
    """Files of large data hold a SHA-256 of it, with which what is given later is compared."""
    parts = calls._pack(classes(), {}, "0")["with"]
    assert list(parts) == ["probabilities", "query", "vocab_size", "class_weights"]
    assert not set(calls._pack(classes().population(), {}, "0")["with"]) & set(names.AXES)
    assert set(calls._pack(classes(**NAMED), {}, "0")["with"]) >= {"token_names", "class_names"}


def test_symmetric_classes_keep_names_of_all_tokens():
    data = SequenceClasses.single_common_token(4, 10)
    words = [f"word {i}" for i in range(data.n_tokens)]
    own = SequenceClasses(data.probabilities, data.query, vocab_size=10, token_names=words, class_names=list("abcd"))
    bare, made = run(data), run(own)  # the bare one first: what is known of its symmetry serves both
    assert made.dataset.attrs["reduction"] != "none"
    assert made.dataset["token_name"].values.tolist() == words
    xr.testing.assert_identical(without(made.dataset), bare.dataset)


def test_simulators_besides():
    data = classes(**NAMED)
    walked = stochastic_flow(data, eta_y=1.0, eta_z=0.5, t_end=0.5, batch_size=8, length=8, dt=0.5)
    assert walked.dataset["token_name"].values.tolist() == WORDS
    spread = noise.linear_noise(data, eta_y=0.1, eta_z=0.1, steps=[2])
    assert spread["token_name"].values.tolist() == WORDS * 2
    assert spread["query_name"].values.tolist() == ["the"] * 3 + ["saw"] * 3


def test_an_enclosure_shows_names():
    shared = [[0.3, 0.7, 0.0], [0.3, 0.0, 0.7]]
    symmetric = SequenceClasses(shared, [0, 0], vocab_size=4, token_names=WORDS, class_names=AFTER)
    for data in (symmetric, classes(**NAMED)):
        enclosed = enclose_flow(data, eta_y=1.0, eta_z=0.5, t_end=1.0, decoder="theory")
        at = enclosed.at(0.5)
        assert at["token_name"].values.tolist() == WORDS and at["next_token_name"].values.tolist() == AFTER
        ax = enclosed.plot(ax=Figure().subplots(), n_times=3, labels={"loyal": "L", "stray": "S"})
        assert ax.get_title().startswith("next token cat")
        assert {text.get_text() for text in ax.get_legend().get_texts()} == {"token the", "token S"}


def test_held_out_bags_take_the_names_of_the_training_data():
    held_out = Bags.from_dense([0, 1], [0, 1], [[3, 1], [2, 1]])
    options = {"eta_y": 1.0, "eta_z": 1.0, "steps": 2, "length": 4, "batch_size": 2}
    made = sgd(classes(**NAMED), evaluate=held_out, **options)
    assert made.dataset["token_name"].values.tolist() == ["the", "stray", ""]  # as many as the evaluated bags have
    own = replace(held_out, token_names=["one", "two"])
    assert sgd(classes(**NAMED), evaluate=own, **options).dataset["token_name"].values.tolist() == ["one", "two", ""]


def test_names_select():
    made = run(classes(**NAMED))
    last = made.dataset["attention"][-1].values
    assert made.named["attention"].isel(time=-1).sel(next_token="dog", token="loyal") == last[1, 2] > 0
    indexed = made.dataset.set_xindex("token_name")
    assert indexed["attention"].isel(time=-1).sel(token_name="loyal").values.tolist() == last[:, 2].tolist()
    assert made.named["query"].values.tolist() == ["the", "saw"]
    by_number = made.growth_factor(1, 2)
    assert made.growth_factor("dog", "loyal").identical(by_number)
    assert made.relative_gain("dog", "loyal", "the").identical(made.relative_gain(1, 2, 0))
    assert made.surviving_tokens("cat", 0.0).tolist() == made.surviving_tokens(0, 0.0).tolist() == [1]
    for measure in (made.attention_entropy(), made.recall([0.1])):
        assert measure["next_token_name"].values.tolist() == AFTER
    partly = run(classes(class_names=["", "dog"]))
    assert partly.named["next_token"].values.tolist() == ["0", "dog"]
    assert partly.named["token"].values.tolist() == [0, 1, 2]


def test_what_has_no_names_has_none_to_show():
    with pytest.raises(ValueError, match="`named` needs names"):
        run(classes()).named  # noqa: B018


def test_names_of_bags_are_joined():
    def bags(**options):
        return Bags.from_dense([0, 1], [0, 1], [[3, 1], [2, 1]], **options)

    mixed = Bags.concatenate([bags(token_names=["a", ""]), bags(token_names=["", "c"]), bags(n_tokens=3)])
    assert mixed.token_names == ("a", "c", "") and mixed.class_names is None


def test_tables_show_names():
    data = classes(**NAMED)
    for text in (data._repr_html_(), data.population()._repr_html_()):
        for name in ("loyal", "stray", "cat", "dog", "saw"):
            assert name in text
    soft = Bags.from_dense([0], [[0.2, 0.8]], [[1, 2]], class_names=["cat", "<dog>"])
    assert "&lt;dog&gt; (most likely)" in soft._repr_html_()


def test_plots_show_names_and_labels():
    made = run(classes(**NAMED))

    def legend(**options):
        ax = made.plot(ax=Figure().subplots(), **options)
        return ax.get_title(), [text.get_text() for text in ax.get_legend().get_texts()]

    assert legend(next_token="dog") == ("next token dog", ["token the (common)", "token loyal (distinct)"])
    assert legend(next_token=0)[1] == ["token the (common)", "token stray (distinct)"]
    assert legend(labels={"stray": "LOST"})[1] == ["token the (common)", "token LOST (distinct)"]
    assert legend(labels={1: "x"})[1] == ["token the (common)", "token x (distinct)"]
    assert legend(labels=["x", "x"])[1] == ["token x (common)", "token x (distinct)"]
    assert legend(quantity="entropy")[1] == ["next token cat", "next token dog"]
    assert legend(quantity="entropy", labels=["A"])[1] == ["next token A", "next token dog"]
    unnamed = run(classes()).plot(ax=Figure().subplots(), labels=["", "it"])
    assert [t.get_text() for t in unnamed.get_legend().get_texts()] == ["token 0 (common)", "token it (distinct)"]

    def ticks(axis):
        return [text.get_text() for text in axis.get_ticklabels()]

    for data in (classes(**NAMED), classes(**NAMED).population()):
        ax = data.plot(ax=Figure().subplots())
        assert ticks(ax.xaxis) == WORDS
    assert ticks(classes(**NAMED).plot(ax=Figure().subplots()).yaxis) == AFTER
    assert ticks(classes().plot(ax=Figure().subplots(), labels={2: "two"}).xaxis) == ["0", "1", "two"]
    assert ticks(made.final.plot(ax=Figure().subplots(), labels=WORDS).xaxis) == WORDS


def test_a_picture_on_the_axes_of_another_has_ticks_of_its_own():
    ax = Figure().subplots()
    classes(**NAMED).plot(ax=ax)
    classes().plot(ax=ax)
    ax.figure.canvas.draw()
    assert {"0", "1", "2"} <= {text.get_text() for text in ax.xaxis.get_ticklabels()}


def test_what_only_looks_like_a_formula_is_drawn_as_it_is():
    words = ["a$b$c", "\n", " ", "_under", "$"]
    data = SequenceClasses(np.full((2, 5), 0.2), [0, 0], token_names=words)
    figure = Figure()
    ax = run(data).plot(ax=figure.subplots())
    figure.savefig(display_file := __import__("io").BytesIO(), format="svg")
    assert display_file.tell() > 0
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown == [f"token {w} (common)" for w in (r"a\$b\$c", r"\n", "' '", "_under", r"\$")]


def test_many_names_stand_where_the_ticks_are():
    size = display._NAMED_TICKS + 10
    data = SequenceClasses(np.full((2, size), 1 / size), [0, 0], token_names=[f"w{i}" for i in range(size)])
    figure = Figure()
    ax = data.plot(ax=figure.subplots())
    figure.canvas.draw()
    shown = {text.get_text() for text in ax.xaxis.get_ticklabels()} - {""}
    assert shown and shown < {f"w{i}" for i in range(size)}


@pytest.mark.parametrize("style, width", [({"lines.linewidth": 7.0}, 7.0), ("fast", None)])
def test_plots_take_a_style(style, width):
    before = dict(matplotlib.rcParams)
    ax = run(classes()).plot(ax=Figure().subplots(), style=style)
    assert width is None or ax.get_lines()[0].get_linewidth() == width
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("tables", [2**30, 1])
def test_a_table_of_attention_has_numbers_and_names(tmp_path, tables):
    words = ["a, b", 'say "so"', "two\nlines"]
    with Limits(tables=tables):
        made = run(classes(token_names=words, class_names=AFTER))
    made.to_csv(tmp_path / "a.csv")
    with open(tmp_path / "a.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == made.dataset.sizes["time"] * 4  # two tokens of each of two next tokens
    for row in rows:
        n, token = int(row["next_token"]), int(row["token"])
        assert (row["next_token_name"], row["token_name"]) == (AFTER[n], words[token])
        assert row["distinct"] == str(int(token > 0))
        at = made._pair if tables == 1 else None
        share = at("attention", n, token) if at else made.dataset["attention"].sel(next_token=n, token=token)
        assert float(row["attention"]) == float(share.sel(time=float(row["time"])))
        assert float(row["z"]) == float(made._logit(n, token).sel(time=float(row["time"])))
