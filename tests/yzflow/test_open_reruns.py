"""Runs of open flows made again: the same bits, changed code named, and nothing imported that a file chooses."""

import functools
import importlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import yzflow as yz
from dynamics.support import origins
from dynamics.support.calls import Call
from dynamics.support.origins import Origin

SOURCE = """
import numpy as np

class Decay:
    def __init__(self, rate):
        self.rate = rate
        self.initial = {"x": np.ones(3)}
    def derivative(self, t, state):
        return {"x": -self.rate * state["x"]}
    def events(self, t, state):
        return {"half": state["x"][0] - 0.5}
    def sample(self, t, state, rng):
        return {"x": -self.rate * state["x"] + rng.normal(size=3)}
    def config(self):
        return {"rate": self.rate}
    class Inner:
        pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of somebody's, in a folder of its own."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "mypaper.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "mypaper", raising=False)
    importlib.invalidate_caches()
    yield importlib.import_module("mypaper")
    sys.modules.pop("mypaper", None)


def integrated(module, path):
    run = yz.integrate(module.Decay(np.float64(1.5)), t_end=2.0, times=np.linspace(0, 2, 5), solver=yz.Solver("RK45"))
    run.save(path)
    return run


def test_the_same_bits_come_out_again(module, tmp_path):
    integrated(module, tmp_path / "run.nc")
    report = yz.rerun(tmp_path / "run.nc")
    assert report.same and report.factors == () and report.kind == "a run of integrate"
    yz.descend(module.Decay(1.5), rate=0.1, steps=9, seed=3, optimizer=yz.Optimizer("adam")).save(tmp_path / "steps.nc")
    report = yz.rerun(tmp_path / "steps.nc")
    assert report.same and report.kind == "a run of descend"


def test_a_changed_bit_and_a_changed_event_are_found(module, tmp_path):
    run = integrated(module, tmp_path / "run.nc")
    run.events["half"] = np.nextafter(run.events["half"], 1)
    run.save(tmp_path / "changed.nc")
    [found] = yz.rerun(tmp_path / "changed.nc").differences
    assert found.name == "event_time" and 0 < found.largest < 1e-15


def test_changed_code_is_named_whether_or_not_it_changed_bits(module, tmp_path):
    integrated(module, tmp_path / "run.nc")
    path = tmp_path / "theirs" / "mypaper.py"
    path.write_text(SOURCE + "# a remark\n")
    report = yz.rerun(tmp_path / "run.nc")
    assert report.same and [factor.name for factor in report.factors] == ["code of mypaper"]
    assert "code of mypaper" in report.text()


def test_a_flow_that_nobody_handed_over_is_refused_and_named(module, tmp_path, monkeypatch):
    integrated(module, tmp_path / "run.nc")
    rule = r"`path` must name a flow that is known here: hand it over, .* or install mypaper with an entry point"
    monkeypatch.setattr(origins, "_handed", {})
    with pytest.raises(ValueError, match=rule):  # although its module is imported
        yz.rerun(tmp_path / "run.nc")
    del sys.modules["mypaper"]
    with pytest.raises(ValueError, match=rule):
        yz.rerun(tmp_path / "run.nc")
    # Loading imports nothing either.
    assert yz.Run.load(tmp_path / "run.nc").events["half"].size == 1 and "mypaper" not in sys.modules


def test_a_flow_is_handed_over_as_its_class_or_itself(module, tmp_path, monkeypatch):
    integrated(module, tmp_path / "run.nc")
    monkeypatch.setattr(origins, "_handed", {})
    assert yz.rerun(tmp_path / "run.nc", flow=module.Decay).same
    assert yz.rerun(tmp_path / "run.nc", flow=module.Decay(1.5)).same
    rule = "`flow` must be of the class mypaper:Decay with the configuration that the file says, or this class"
    for other in (module.Decay(1.25), module.Decay.Inner(), module.Decay.Inner, Configured(object())):
        with pytest.raises(ValueError, match=rule):
            yz.rerun(tmp_path / "run.nc", flow=other)
    with pytest.raises(ValueError, match=r"`rtol` must be left out where the file holds it"):
        yz.rerun(tmp_path / "run.nc", rtol=1e-3)


def test_a_class_without_a_name_is_given_again(tmp_path):
    class Local:
        initial = {"x": 1.0}  # noqa: RUF012

        def derivative(self, t, state):
            return {"x": -state["x"]}

    yz.integrate(Local(), t_end=1.0).save(tmp_path / "run.nc")
    with pytest.raises(ValueError, match=r"`flow` must be given, as the file does not hold it, but got Local"):
        yz.rerun(tmp_path / "run.nc")
    assert yz.rerun(tmp_path / "run.nc", flow=Local()).same


class Configured:
    """A flow whose configuration, and a note on whose state, are what somebody put there."""

    def __init__(self, rate=1.0, **attributes):
        self.rate, self.initial = rate, {"x": xr.DataArray(1.0, attrs=attributes)}

    def derivative(self, t, state):
        return {"x": -state["x"]}

    def config(self):
        return {"rate": self.rate}


UNHELD = [{1, 2}, object(), print, b"x", 1 + 2j, {1: 2}, [1, {"b": {3}}], np.array([None])]
NUMBERS = st.one_of(st.floats(), st.integers(-(2**60), 2**60), st.booleans(), st.none(), st.text(max_size=3))
HELD = st.recursive(
    NUMBERS | st.floats(-9, 9).map(np.float64) | st.integers(0, 9).map(np.int32) | st.just(np.arange(2.0)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


def test_a_configuration_that_no_file_holds_is_refused_when_it_is_saved(tmp_path):
    """And not when the run is to be made again, which may be a year later."""
    for rate in UNHELD:
        run = yz.integrate(Configured(rate), t_end=1.0, times=[1.0])
        with pytest.raises(ValueError, match=r"^`config of \S+:Configured` must return numbers.* for 'rate'$"):
            run.save(tmp_path / "run.nc")
    assert not list(tmp_path.iterdir())


@given(st.lists(HELD, max_size=8))
@settings(max_examples=4, deadline=None)
def test_a_configuration_that_is_saved_is_made_again(tmp_path_factory, rates):
    file = tmp_path_factory.mktemp("held") / "run.nc"
    yz.integrate(Configured(rates), t_end=1.0, times=[1.0]).save(file)
    assert yz.rerun(file).same


@pytest.mark.parametrize("value", [{1, 2}, print, None, True, {"a": 1}, [1, "a"], "\ud800", [[1], [1, 2]]], ids=ascii)
def test_an_attribute_that_no_file_holds_is_refused_by_its_name(tmp_path, value):
    run = yz.integrate(Configured(note=value), t_end=1.0)
    with pytest.raises(ValueError, match=r"^`attributes` must hold numbers, words .*, but got .* for 'note'$"):
        run.save(tmp_path / "run.nc")
    assert not list(tmp_path.iterdir())


def test_attributes_that_a_file_holds_are_kept(tmp_path):
    values = [1, 2.5, np.float32(1), "word", ["a", "b"], [1, 2], np.arange(3), float("nan")]
    notes = {f"note {number}": value for number, value in enumerate(values)}
    yz.integrate(Configured(**notes), t_end=1.0, times=[1.0]).save(tmp_path / "run.nc")
    kept = yz.Run.load(tmp_path / "run.nc").dataset["x"].attrs
    for name, value in notes.items():
        np.testing.assert_array_equal(kept[name], value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "config"),
    [
        ("subprocess:Popen", {"args": "touch seen", "shell": True}),
        ("mypaper:Decay.Inner", {}),
        ("mypaper", {}),
    ],
)
def test_a_file_chooses_nothing_that_is_called(module, tmp_path, monkeypatch, target, config):
    monkeypatch.chdir(tmp_path)
    assert subprocess is sys.modules["subprocess"]
    run = integrated(module, tmp_path / "run.nc")
    code = run.call.arguments["flow"].found()
    forged = Call("integrate", {**run.call.arguments, "flow": Origin(target, config, replace(code, package="mypaper"))})
    run.call = forged
    run.save(tmp_path / "forged.nc")
    with pytest.raises(ValueError, match=r"`path` must"):
        yz.rerun(tmp_path / "forged.nc")
    assert not (tmp_path / "seen").exists()


def test_a_configuration_that_the_class_does_not_take_is_refused(module, tmp_path):
    run = integrated(module, tmp_path / "run.nc")
    known = run.call.arguments["flow"]
    run.call = Call("integrate", {**run.call.arguments, "flow": Origin(known.target, {"speed": 1.0})})
    run.save(tmp_path / "other.nc")
    with pytest.raises(ValueError, match=r"`path` must hold a configuration that mypaper:Decay takes"):
        yz.rerun(tmp_path / "other.nc")


def test_an_installed_paper_is_imported_where_it_was_not(module, tmp_path, monkeypatch):
    """A distribution is a folder with its metadata: a class with an entry point is imported, one without is not."""
    source, info = tmp_path / "theirs" / "mypaper.py", tmp_path / "theirs" / "their_paper-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-paper\nVersion: 1.2\n")
    (info / "top_level.txt").write_text("mypaper\n")
    monkeypatch.setattr(origins, "_distributions", functools.cache(origins._distributions.__wrapped__))
    integrated(module, tmp_path / "run.nc")

    def again():
        monkeypatch.setattr(origins, "_handed", {})
        sys.modules.pop("mypaper", None)
        return yz.rerun(tmp_path / "run.nc")

    for points in ("", "[yzflow.flows]\nmine = mypaper:Decay.Inner\n"):
        (info / "entry_points.txt").write_text(points)
        with pytest.raises(ValueError, match="`path` must name a flow that is known here"):
            again()
        assert "mypaper" not in sys.modules
    (info / "entry_points.txt").write_text("[yzflow.flows]\nmine = mypaper:Decay\n")
    report = again()
    assert report.same and report.factors == ()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-paper\nVersion: 1.3\n")
    source.write_text(SOURCE.replace("-self.rate * state", "-1.1 * self.rate * state"))
    report = again()
    assert not report.same
    assert {factor.name for factor in report.factors} == {"version of their-paper", "code of their-paper"}
