"""The scripts in ``examples``: what they are asked, how they refuse and how they end."""

import sys

import driving
import pytest

import yzflow as yz
from yzflow import scripts

FOLDER = driving.ROOT / "examples"
RUNNABLE = [path for path in sorted(FOLDER.glob("*.py")) if "__main__" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", RUNNABLE, ids=lambda path: path.stem)
def test_help_is_written_and_nothing_is_run(path, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    module = driving.example(path.stem)
    with pytest.raises(SystemExit) as ended:
        module.main(["--help"])
    assert ended.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert module.__doc__.splitlines()[0] in printed
    for option in ("--out", "--quick"):
        assert (option in printed) == (option in module.__doc__)
    assert not list(tmp_path.iterdir())
    assert len(RUNNABLE) == 12


def test_options_make_the_folder_and_refuse_one_that_cannot_be_written(tmp_path, capsys):
    script = scripts.Script("One line.\n\nMore.", out="results", quick="less")
    given = script.options(["--out", str(tmp_path / "new")])
    assert given.out == tmp_path / "new" and given.out.is_dir() and given.quick is False
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as ended:
        script.options(["--out", str(tmp_path / "file" / "below"), "--quick"])
    assert ended.value.code == 2
    assert "`--out` must be a folder that can be written" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ValueError("`seeds` must be at least 3, but got 2"), OSError("disk full")])
def test_bad_input_ends_in_one_line(error, capsys):
    script = scripts.Script("One line.")
    with pytest.raises(SystemExit) as ended, script.refusing():
        raise error
    assert ended.value.code == 2 and capsys.readouterr().err.splitlines()[-1].endswith(f"error: {error}")


def test_a_script_exits_with_its_status_or_says_what_it_kept():
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        scripts.run(lambda: 3)
    assert ended.value.code == 3
    with pytest.raises(SystemExit) as ended:
        scripts.run(interrupt, interrupted="all is kept")
    assert ended.value.code == "interrupted: all is kept"


def test_a_distribution_that_a_script_lacks_is_said_in_one_line(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "yzflow_watch", None)
    with pytest.raises(SystemExit) as ended:
        scripts.run(lambda: yz.watch(None, None))
    assert ended.value.code == 2
    assert capsys.readouterr().err == "`yz.watch` comes with yzflow-watch: pip install -e tools/watch\n"
