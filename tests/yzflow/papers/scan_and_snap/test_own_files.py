"""Files of a reader that the explorer opens, and those that it refuses."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from explorer_pages import opened, run_program, table

import yzflow as yz
from yzflow.cli import main
from yzflow.pages import explorer
from yzflow.papers.scan_and_snap.own_panel import PANEL


@pytest.fixture
def quick(monkeypatch):
    """An explorer of this panel alone: what others collect takes seconds."""
    monkeypatch.setattr(explorer, "panels", lambda: (PANEL,))


def _explore(path, out):
    return CliRunner().invoke(main, ["explore", "--data", str(path), "--out", str(out)])


HEAD = "next_token,query,weight,the,<!--,blue-eyed & loyal\n"


def test_a_file_opens_as_the_first_table(quick, browser, tmp_path):
    (tmp_path / "pets.csv").write_text(HEAD + "cat,the,3,10,5,\ndog,saw,1,10,,0.5\n", encoding="utf-8")
    result = _explore(tmp_path / "pets.csv", tmp_path / "x.html")
    assert result.exit_code == 0, result.output
    page = opened(browser, tmp_path / "x.html")
    assert page.input_value("#own-token-2") == "blue-eyed & loyal" and page.input_value("#own-token-1") == "<!--"
    assert page.inner_text("#own-preset-select option:first-child") == "Your data: pets.csv"
    assert [page.input_value(f"#own-{name}") for name in ("class-1", "query-1", "weight-1", "cell-1-2")] == [
        "dog", "saw", "1", "1",
    ]  # fmt: skip
    names = run_program(page, "own")
    given, found = yz.read_data(tmp_path / "pets.csv"), names["classes"]
    np.testing.assert_allclose(found.probabilities.toarray(), given.probabilities.toarray(), rtol=1e-14)
    np.testing.assert_allclose(found.class_weights, given.class_weights, rtol=1e-14)
    assert found.token_names == given.token_names and found.class_names == given.class_names
    assert found.query.tolist() == given.query.tolist() and found.vocab_size == given.vocab_size
    flow = names["flow"].dataset["attention"].isel(time=-1, next_token=0).values
    np.testing.assert_allclose(table(page, "own-share")[-1][1:], flow[:2], atol=1e-6)


@pytest.mark.slow
def test_panels_for_data_come_first_and_others_stay():
    two = (*explorer.panels()[:1], PANEL)
    data = yz.SequenceClasses([[1, 0], [0.5, 0.5]], [0, 5], vocab_size=7)
    page = explorer.html(two, data=data, name="x.json")
    content = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["panels"]
    assert list(content) == [PANEL.name, two[0].name]
    setting = content[PANEL.name]["presets"][0]["setting"]
    assert setting["tokens"] == ["token 0", "token 1"]
    assert setting["rows"] == [["next token 0", "token 0", 1, 1, 0], ["next token 1", "token 5", 1, 1, 1]]
    assert explorer.html(two, data=data, name="x.json") == page
    with pytest.raises(ValueError, match="`data` must be left out where no panel opens it"):
        explorer.html(two[:1], data=data)


def test_ratios_of_small_whole_numbers_are_shown_as_such_and_others_as_they_are():
    shares = np.array([[3, 0, 999, 12], [1, np.pi, 0, 2], [1, 1001, 0, 0]])
    shares /= shares.sum(axis=1, keepdims=True)
    data = yz.SequenceClasses(shares, [0, 0, 0], class_weights=[0.2, 0.5, 0.3])
    rows = PANEL.of(data, "x.json").presets[0].setting["rows"]
    assert [row[2] for row in rows] == [2, 5, 3]
    assert [row[3:] for row in rows] == [[1, 0, 333, 4], shares[1].tolist(), shares[2].tolist()]


def test_names_that_cannot_be_shown_are_made_so():
    data = yz.SequenceClasses(
        np.eye(3), [0, 0, 0], token_names=[" ", "a\nb", ""], class_names=["token 2", "", "next token 1"]
    )
    setting = PANEL.of(data, "x.json").presets[0].setting
    assert setting["tokens"] == ["' '", "a\\nb", "token 2"]
    assert [row[0] for row in setting["rows"]] == ["token 2", "next token 1", "next token 1\N{PRIME}"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("none.csv", None, "none.csv"),
        ("wrong.csv", "a,b\n1,2\n", "wrong.csv` must begin with a line of heads"),
        ("minus.csv", "next_token,query,a\nx,q,1\ny,q,-1\n", "numbers from zero up"),
        ("one.csv", "next_token,query,a\nx,q,1\n", "at least two rows"),
        ("story.txt", "the cat saw the dog", "`length` must be given for a text"),
        ("x.pdf", "", "`path` must end in one of"),
        ("long.csv", "next_token,query,a\n" + "".join(f"n{n},q,1\n" for n in range(9)), "at most 8 classes"),
        (
            "wide.json",
            json.dumps({"counts": [[1] * 13, [2] * 13], "query": [0, 0]}),
            "at most 12 tokens for the explorer's table (`yz.gradient_flow` and `yzflow flow --data FILE` take any "
            "size), but got 13",
        ),
        ("many.json", json.dumps({"counts": [[1], [2]], "query": [0, 0], "vocab_size": 10**7}), "at most 1000000"),
    ],
)
def test_files_that_are_refused(quick, tmp_path, name, text, says):
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = _explore(tmp_path / name, tmp_path / "x.html")
    assert result.exit_code == 2 and says in result.stderr.replace("\n", " "), result.stderr
    assert not (tmp_path / "x.html").exists()


def test_bags_are_refused(quick, tmp_path):
    yz.Bags.from_dense([0, 0], [0, 1], [[1, 0], [0, 1]]).save(tmp_path / "bags.npz")
    result = _explore(tmp_path / "bags.npz", tmp_path / "x.html")
    assert result.exit_code == 2 and "`data` must hold classes (.csv, .tsv or .json)" in result.stderr
