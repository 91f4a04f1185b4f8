"""Enclosures of a reader's flow as files: no code in them, every bound computed again, and nothing else imported."""

import json
import subprocess
import sys

import numpy as np
import own_flows
import pytest
from own_flows import Drawn, Linear, Logistic, Stationary
from yzflow_enclose import Enclosure, ball, certificate, enclose
from yzflow_enclose.verifier import verify

import yzflow as yz
from dynamics.support import origins


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "drawn.npz"
    enclose(Drawn([1.0, 2.0]), t_end=0.75, bits=50).save(path)
    return path


def altered(saved, tmp_path, change):
    claim, notes, arrays = certificate.read(saved)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(claim, arrays)
    certificate.write(tmp_path / "altered.npz", claim, notes, arrays)
    return tmp_path / "altered.npz"


def test_a_saved_enclosure_comes_back(saved):
    flow = Enclosure.load(saved)
    assert "not yet verified" in repr(flow) and "own_flows:Drawn" in repr(flow)
    assert flow.verify() and flow.complete and flow.fault == "" and flow.changed == ()
    assert "not yet verified" not in repr(flow)
    fresh = enclose(Drawn([1.0, 2.0]), t_end=0.75, bits=50)
    assert flow.at([0.0, 0.5]).identical(fresh.at([0.0, 0.5]))
    assert Enclosure.load(saved).holds(lambda at: at.state["v"] < np.array([1.0, 2.0])) is True


def test_a_file_holds_names_and_no_code(saved):
    claim, _, arrays = certificate.read(saved)
    flow = claim["flow"]
    assert flow["target"] == "own_flows:Drawn" and flow["config"] == {"mu": [1.0, 2.0]}
    assert len(flow["code"]["sha256"]) == 64 and flow["code"]["distribution"] == "none"
    assert "derivative" not in json.dumps(claim) and set(arrays) >= {"initial", "limbs"}


def test_an_own_start_is_kept(tmp_path):
    flow = enclose(Drawn([1.0, 2.0]), start={"v": ball(["0.1", 0.5], 1e-9)}, t_end=0.5, bits=50)
    flow.save(tmp_path / "start.npz")
    again = Enclosure.load(tmp_path / "start.npz")
    assert again.verify() and again.at(0.5).identical(flow.at(0.5))


def scaled(settings, arrays):
    arrays["limbs"][0, 0, 0, 0] += 1e-9


def shrunk(settings, arrays):
    arrays["radius"] = arrays["radius"] / 64


def configured(settings, arrays):
    settings["flow"]["config"]["mu"] = [1.0, 2.0000001]


def moved(settings, arrays):
    settings["own_start"] = True
    arrays["initial"] = arrays["initial"] + 1e-6


def gap(settings, arrays):
    arrays["start"][1] += 1e-6


def weighed(settings, arrays):
    arrays["weights"] = arrays["weights"] * 1e-8


@pytest.mark.parametrize("change", [scaled, shrunk, configured, moved, gap])
def test_a_changed_file_proves_nothing(saved, tmp_path, change):
    flow = Enclosure.load(altered(saved, tmp_path, change))
    for ask in (
        lambda: flow.at(0.5),
        lambda: flow.holds(lambda at: at.state["v"] > 0),
        lambda: flow.crossing(lambda at: at.state["v"][0] - 0.1, between=(0.0, 0.5)),
        flow.plot,
        lambda: flow.save(tmp_path / "again.npz"),
    ):
        with pytest.raises(ValueError, match="the enclosure proves nothing: "):
            ask()
    assert flow.verify() is False and ("step" in flow.fault)


def test_scaled_weights_scale_nothing(saved, tmp_path):
    flow = Enclosure.load(altered(saved, tmp_path, weighed))
    try:
        found = flow.at(0.5)
    except ValueError:
        return
    run = enclose(Drawn([1.0, 2.0]), t_end=0.75, bits=100).at(0.5)
    assert (abs(found.v - run.v) <= found.v_radius).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, a: s.update(t_end=-1.0), "hold a claim whose t_end is a positive number"),
        (lambda s, a: s.update(t_end="1"), "hold a claim whose t_end is a positive number"),
        (lambda s, a: s.update(bits=8), "hold a claim whose bits is 30 to 400"),
        (lambda s, a: s.update(reason="\x1b[2J"), "hold a claim whose parts is"),
        (lambda s, a: a.update(weights=np.ones(1)), "`path` must hold the steps"),
        (lambda s, a: a.update(weights=np.array([-1.0, 1.0])), "`path` must hold the steps"),
        (lambda s, a: s.update(states={"v": [3]}), "with a weight and a start for each variable"),
        (
            lambda s, a: s["flow"].update(target="\x1b[2J:x"),
            "with its origin, states and start|with the name of a class",
        ),
        (lambda s, a: s.pop("flow"), "hold a claim whose parts is"),
        (lambda s, a: a.pop("radius"), "`path` must hold the steps"),
    ],
)
def test_what_no_save_wrote_is_refused(saved, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        Enclosure.load(altered(saved, tmp_path, change))


@pytest.mark.parametrize(
    ("target", "config", "message"),
    [
        ("subprocess:Popen", {"args": ["touch", "yes"]}, "must name a flow that is known here: hand it over"),
        ("os:system", {"command": "touch yes"}, "must name a flow that is known here: hand it over"),
        ("joma.flows:Drawn", {"mu": [1.0]}, "must name a flow that is known here: hand it over"),
        ("own_flows:Missing", {}, "must name a flow that is known here: hand it over"),
        ("own_flows:Stationary", {"x": [0.5]}, "must name a flow that is known here: hand it over"),
        ("own_flows:Drawn", {"nu": [1.0]}, "must hold a configuration that own_flows:Drawn takes"),
        ("own_flows:Logistic", {"x": 0.25}, "must hold the states of own_flows:Logistic"),
    ],
)
def test_a_file_chooses_nothing_that_runs(saved, tmp_path, monkeypatch, target, config, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(origins, "_handed", {f"own_flows:{kind.__name__}": kind for kind in (Drawn, Logistic)})
    path = altered(saved, tmp_path, lambda s, a: s["flow"].update(target=target, config=config))
    with pytest.raises(ValueError, match=message):
        Enclosure.load(path).verify()
    assert not (tmp_path / "yes").exists()


def test_changed_code_is_named_and_asked_again(saved, monkeypatch):
    flow = Enclosure.load(saved)
    monkeypatch.setattr("dynamics.support.origins._sha256", lambda *names: "0" * 64)
    (line,) = flow.changed
    assert line.startswith("code of own_flows: ") and line.endswith(f", {'0' * 64} now")
    assert flow.verify()  # the bounds are those of the code as it is now
    monkeypatch.setattr(
        own_flows.Drawn, "derivative", lambda self, t, s: {"v": (self.mu + s["v"]) * np.exp(s["v"] ** 2 / 2)}
    )
    other = Enclosure.load(saved)
    assert not other.verify() and "is not within its radius" in other.fault


def test_a_flow_of_a_notebook_is_given(saved, monkeypatch):
    monkeypatch.setattr(origins, "_handed", {})
    with pytest.raises(ValueError, match="must name a flow that is known here"):
        Enclosure.load(saved).verify()
    assert Enclosure.load(saved).verify(Drawn([1.0, 2.0])) and Enclosure.load(saved).verify(flow=Drawn)
    monkeypatch.setattr(origins, "_handed", {})
    assert yz.rerun(saved, flow=Drawn).same
    with pytest.raises(ValueError, match="`flow` must have the configuration"):
        Enclosure.load(saved).verify(Drawn([1.0, 2.5]))
    with pytest.raises(
        ValueError, match="`flow` must be a own_flows:Drawn, as the file says, but got own_flows:Logistic"
    ):
        Enclosure.load(saved).verify(Logistic())
    with pytest.raises(ValueError, match="`flow` must be left out"):
        enclose(Logistic(), t_end=0.5, bits=40).verify(Logistic())


class Inconsistent(Logistic):
    def config(self):
        return {"x": 0.5}


def test_what_cannot_be_made_again_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"`flow` must have a method `config\(\)`"):
        enclose(Stationary([0.5]), t_end=0.5, bits=40).save(tmp_path / "no.npz")

    class Local(Logistic):
        pass

    with pytest.raises(ValueError, match="`flow` must be of a class with a name in a module"):
        enclose(Local(), t_end=0.5, bits=40).save(tmp_path / "no.npz")
    own_flows.Inconsistent, Inconsistent.__module__ = Inconsistent, "own_flows"
    with pytest.raises(ValueError, match="another one: its `initial` has changed"):
        enclose(Inconsistent(), t_end=0.5, bits=40).save(tmp_path / "no.npz")
    del own_flows.Inconsistent
    assert not (tmp_path / "no.npz").exists()


def test_the_small_checker_refuses_what_it_has_no_equations_of(saved, tmp_path):
    with pytest.raises(ValueError, match="the kind of the claim is none that is known here"):
        verify.check(saved)
    done = subprocess.run([sys.executable, verify.__file__, saved], capture_output=True, text=True)
    assert done.returncode == 1 and "not verified, 'the kind of the claim is none that is known here" in done.stderr
    path = altered(saved, tmp_path, lambda s, a: s.update(kind="flow\u200b"))
    with pytest.raises(ValueError, match="hold a claim whose kind is one of"):
        Enclosure.load(path)
    done = subprocess.run([sys.executable, verify.__file__, path], capture_output=True, text=True)
    assert done.returncode == 1 and "not verified" in done.stderr


def test_predicates_about_named_states_are_kept(saved, tmp_path):
    flow = enclose(Drawn([1.0, 2.0]), t_end=0.75, bits=50)
    assert flow.record(lambda at: (at.velocity["v"] > 0) & (at.state["v"] ** 2 < [9.0, 9.0])).value is True
    assert flow.record(lambda at: at.state["v"][1] + at.t < 0.5).value is False
    flow.save(tmp_path / "said.npz")
    again = Enclosure.load(tmp_path / "said.npz")
    assert again.verify() and [one.verdict for one in again.predicates] == [True, False]
    assert "false at t = " in again.words and "((v[1] + t) + -0.5)" in again.words

    def other(claim, arrays):
        claim["predicates"][0]["says"][-1:] = [["not", len(claim["predicates"][0]["says"]) - 2]]

    with pytest.raises(ValueError, match="the enclosure proves nothing: predicate 0 is not true"):
        Enclosure.load(altered(tmp_path / "said.npz", tmp_path, other)).at(0.5)


def test_a_rerun_makes_the_same_bits(saved, tmp_path):
    report = yz.rerun(saved)
    assert report.same and "certificate" in str(report)
    enclose(Linear([[0.0, 1.0], [-2.0, -0.5]], [1.0, 0.0]), t_end=1.0, bits=40).save(tmp_path / "linear.npz")
    assert yz.rerun(tmp_path / "linear.npz").same
