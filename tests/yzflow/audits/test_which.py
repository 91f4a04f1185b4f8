"""Which theorems speak of data: the margins of a check, unknown where unknown, the nearest first."""

import json
import math

import numpy as np
import pytest
import watched_layers as layers
from click.testing import CliRunner

import yzflow as yz
from yzflow import cli
from yzflow.audits.which import PLAIN

CLASSES = yz.SequenceClasses.single_common_token(2, 1000, common=0.3)
ALL = {"eta_y": 1.0, "eta_z": 0.001, "t_end": 200.0, "length": 2**20, "optimizer": "sgd"}
LEAD = "Scan and Snap: Theorem 3"


def test_margins_are_those_of_a_check_at_the_same_data_and_rates():
    found = yz.which(CLASSES, **ALL)
    verdict = yz.check(
        LEAD, data=CLASSES, level="full flow", **{name: ALL[name] for name in ("eta_y", "eta_z", "t_end")}
    )
    ((_, checked),) = verdict.margins.items()
    own = found.applies[LEAD].margins
    shared = set(checked) & set(own)
    assert len(shared) > 4 and all(own[text] == pytest.approx(checked[text], rel=1e-12) for text in shared)
    assert found.inside == tuple(name for name in found.nearest if min(found.applies[name].margins.values()) >= 1)
    assert LEAD in found.text() and f"{len(found.inside)} of {len(found.applies)} statements speak" in found.headline


@pytest.mark.parametrize("left_out", ["eta_y", "eta_z", "t_end", "length", "optimizer"])
def test_what_is_not_given_is_unknown_and_not_absent(left_out):
    whole = yz.which(CLASSES, **ALL)
    found = yz.which(CLASSES, **{name: value for name, value in ALL.items() if name != left_out})
    changed = {
        text
        for name, one in found.applies.items()
        for text, margin in one.margins.items()
        if not math.isnan(whole.applies[name].margins[text]) and margin != whole.applies[name].margins[text]
    }
    assert changed and all(
        math.isnan(one.margins[text]) for one in found.applies.values() for text in changed & {*one.margins}
    )
    assert set(found.inside) < set(whole.inside) or (left_out == "optimizer" and not found.inside)
    if left_out == "optimizer":
        assert changed == {PLAIN} and found.headline.startswith("Open of these 2 next tokens: ")
    if left_out == "eta_y":
        assert "Scan and Snap: Theorem 4" in whole.foreseen.keys() - found.foreseen.keys()


def test_the_nearest_come_first():
    found = yz.which(
        CLASSES,
        **ALL,
    )
    other = yz.which(CLASSES, **{**ALL, "optimizer": "adam"})
    for one in (found, other):
        counts = [(len(one.applies[name].broken), len(one.applies[name].unknown)) for name in one.nearest]
        assert counts == sorted(counts)
    assert not other.inside and all(one.margins[PLAIN] == 0 for one in other.applies.values())
    assert "; the nearest is Scan and Snap: " in other.headline and "1 broken" in other.headline


def test_bags_and_a_text_are_read_as_pairs():
    text = yz.TextCorpus(["the cat sat on the mat and the dog sat on the log"])
    found = yz.which(text, length=3)
    assert found.applies and not found.inside and "left_out" in found.json()
    bags = yz.Bags.from_dense([0, 1, 1], [0, 0, 1], np.eye(3) + 0.1)
    assert yz.which(bags, **ALL).asked == "these 3 next tokens"
    with pytest.raises(ValueError, match="`length` must be given for a text"):
        yz.which(text)


def test_a_recording_has_the_table_of_watch():
    pytest.importorskip("yzflow_watch")
    report = layers.watched(layers.Trained(layers.classes_inside(vocab_size=50)), length=200, steps=3).report()
    found = yz.which(report.recording)
    assert found.applies == report.applies and set(found.inside) == set(report.inside)
    for name, value in ALL.items():
        with pytest.raises(ValueError, match=f"`{name}` must be None for a model or a recording"):
            yz.which(report.recording, **{name: value})
    with pytest.raises(ValueError, match="`data` must be SequenceClasses, Bags, a TextCorpus, a Recording, or a model"):
        yz.which(object())
    for recorded in (report, report.recording):
        with pytest.raises(ValueError, match="`tokens` must be None unless `data` is a model"):
            yz.which(recorded, tokens=np.zeros((2, 4), int))


def test_a_recorder_has_the_table_of_its_recording():
    """That of a model that `which` alone could not look at."""
    pytest.importorskip("yzflow_watch")
    recorder = layers.watched(layers.Trained(layers.classes_inside(vocab_size=50)), length=200, steps=3)
    assert yz.which(recorder).applies == recorder.report().applies


def test_a_model_has_the_table_of_its_first_look():
    torch = pytest.importorskip("torch")

    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = torch.nn.Embedding(6, 8), torch.nn.Linear(8, 6, bias=False)
            self.attention = torch.nn.MultiheadAttention(8, 1, batch_first=True)

        def forward(self, tokens):
            seen = self.embed(tokens)
            length = tokens.shape[1]
            mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
            return self.out(self.attention(seen, seen, seen, attn_mask=mask, need_weights=False)[0])

    model, tokens = Small().train(), np.random.default_rng(0).integers(0, 6, (20, 9))
    found = yz.which(model, tokens=tokens)
    first = yz.watch(model, tokens).report()
    assert found.applies.keys() == first.applies.keys() and found.asked == "the training at step 0"
    for name, one in found.applies.items():
        np.testing.assert_array_equal([*one.margins.values()], [*first.applies[name].margins.values()])
    assert not found.inside and model.training and not any(part._forward_hooks for part in model.modules())
    with pytest.raises(ValueError, match="or a model with `tokens`, but got Small"):
        yz.which(model)
    with pytest.raises(ValueError, match="`eta_y` must be None for a model or a recording"):
        yz.which(model, tokens=tokens, eta_y=1.0)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("eta_y", math.nan, "`eta_y` must be a positive finite number, but got nan"),
        ("eta_z", 0.0, "`eta_z` must be positive, but got 0.0"),
        ("t_end", -1.0, "`t_end` must be positive, but got -1.0"),
        ("optimizer", "sdg", "`optimizer` must be one of .*, but got 'sdg'"),
    ],
)
def test_a_wrong_argument_is_refused_and_no_paper_left_out_for_it(name, value, message):
    with pytest.raises(ValueError, match=message):
        yz.which(CLASSES, **{name: value})


def test_the_command(tmp_path):
    (tmp_path / "classes.csv").write_text("next_token,query,a,b,c\n0,0,0.5,0.5,0\n1,0,0.5,0,0.5\n")
    arguments = ["which", str(tmp_path / "classes.csv"), "--vocab-size", "1000", "--eta-y", "1", "--optimizer", "sgd"]
    result = CliRunner().invoke(cli.main, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.output)["rows"]
    assert {row["statement"] for row in rows} >= {LEAD} and any(None in row["margins"].values() for row in rows)
    (tmp_path / "corpus.txt").write_text("the cat sat on the mat and the dog sat on the log")
    shown = CliRunner().invoke(cli.main, ["which", str(tmp_path / "corpus.txt"), "--length", "3"])
    assert shown.exit_code == 0 and "in its way" in shown.output
    (tmp_path / "CORPUS.TXT").write_text("the cat sat on the mat and the dog sat on the log")
    capitals = CliRunner().invoke(cli.main, ["which", str(tmp_path / "CORPUS.TXT"), "--length", "3"])
    assert capitals.exit_code == 0 and capitals.output == shown.output


def test_the_command_on_a_recording(tmp_path):
    pytest.importorskip("yzflow_watch")
    recorder = layers.watched(layers.Trained(layers.classes_inside(vocab_size=50)), length=200, steps=3)
    for name in ("run.nc", "RUN.NC"):
        recorder.save(tmp_path / name)
        shown = CliRunner().invoke(cli.main, ["which", str(tmp_path / name)])
        assert shown.output.rstrip() == yz.which(recorder).text()
    for option, value in (("--vocab-size", "50"), ("--eta-y", "1")):
        refused = CliRunner().invoke(cli.main, ["which", str(tmp_path / "run.nc"), option, value])
        assert refused.exit_code == 2 and "for a" in refused.output and "recording" in refused.output
