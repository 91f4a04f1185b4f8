"""Films: each picture against the run at its time, and what is refused before anything is drawn."""

import matplotlib
import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from PIL import Image

from dynamics import Layer, SequenceClasses, gradient_flow
from yzflow import cli, figures
from yzflow.figures import film
from yzflow.figures.registry import Entry


@pytest.fixture(scope="module")
def flow():
    classes = SequenceClasses.single_common_token(3, 20, common=2.0)
    return gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=300.0, n_times=60)


def picture(data, time):
    """A square with a bar as high as the value at a time: what is read back tells the time."""
    figure = Figure(figsize=(0.6, 1), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    axes.fill_between([0, 1], [data[time], data[time]], color="black")
    return figure


def heights(path):
    """Share of dark rows in each picture of a GIF, and how long each is shown."""
    with Image.open(path) as image:
        found = []
        for number in range(image.n_frames):
            image.seek(number)
            found.append(((np.asarray(image.convert("L")) < 128)[:, 30].mean(), image.info["duration"]))
        return found


def test_pictures_are_of_the_times_in_their_order(tmp_path):
    data = dict(enumerate((0.1, 0.8, 0.3, 0.5)))
    entry = Entry("bar", "No paper", picture, times=lambda data, pictures: list(data)[:pictures])
    path = entry.film(tmp_path / "bar.gif", data, seconds=1.0, fps=4)
    shown, lasting = zip(*heights(path), strict=True)
    np.testing.assert_allclose(shown, list(data.values()), atol=0.02)
    assert lasting == (250,) * 4 and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fps", [7, 40])
def test_a_gif_lasts_as_long_as_is_said(tmp_path, fps):
    """Its clock counts hundredths of a second, of which a picture is no whole number."""
    film.write(tmp_path / "bar.gif", (picture({0: n % 2}, 0) for n in range(fps)), fps)
    assert sum(lasting for _, lasting in heights(tmp_path / "bar.gif")) == 1000


def test_a_film_of_attention_shows_scan_and_snap(flow):
    """Recorded times, early and late ones: half of log(1 + t) is before the middle picture."""
    times = np.array(figures.moving_attention.times(flow, 20))
    assert len(times) == 20 and times[0] == 0 and times[-1] == 300
    assert set(times) <= set(flow.dataset["time"].values) and (np.diff(times) >= 0).all()
    assert np.log1p(times[10]) == pytest.approx(np.log1p(300) * 10 / 19, abs=0.2)


@pytest.mark.parametrize(
    "start",
    [
        Layer(np.zeros((1, 16)), np.zeros((16, 20)), normalisation="layer"),
        Layer(np.zeros((1, 16)), np.zeros((17, 20)), residual=True),
        Layer(np.zeros((1, 16)), np.zeros((3, 20)), np.eye(16, 3)),
        Layer(np.zeros((1, 16)), np.zeros((3, 20)), hidden=np.eye(17, 3)),
    ],
    ids=["LayerNorm", "residual", "values", "hidden"],
)
def test_a_layer_that_t_star_is_not_derived_for_has_none(start):
    classes = SequenceClasses.single_common_token(3, 20, common=2.0)
    run = gradient_flow(classes, eta_y=0.1, eta_z=0.05, t_end=20.0, n_times=5, init=start)
    assert "t^*" not in figures.moving_attention(run).get_suptitle()


@pytest.mark.parametrize(("eta_z", "t_end"), [(0.0, "20.0"), (0.5, "0.002")])
def test_a_run_that_does_not_snap_is_not_said_to(eta_z, t_end):
    """Attention that stands still, and a run that ends while attention gets faster."""
    data = SequenceClasses.single_common_token(3, 20, common=2.0)
    run = gradient_flow(data, eta_y=1.0, eta_z=eta_z, t_end=float(t_end), n_times=9)
    shown = [figures.moving_attention(run, time=time).get_suptitle() for time in (0.0, float(t_end))]
    assert not any("ing" in title for title in shown) and shown[1].startswith(f"t = {t_end} SGD steps")


def test_a_store_takes_no_transition_away(tmp_path):
    """The command `figure` always has one; t* is said of data that are known."""
    effort = figures.Effort(quick=True, store=tmp_path / "store")
    data = figures.moving_attention.data(effort, n_classes=2, vocab_size=50, t_end=100.0)
    assert "t^*" in figures.moving_attention(data).get_suptitle()


def test_the_command_writes_the_film_of_a_run(tmp_path, flow):
    flow.save(tmp_path / "flow.nc")
    out = tmp_path / "film.gif"
    words = ["film", "--run", tmp_path / "flow.nc", "--out", out, "--seconds", "0.4", "--fps", "5"]
    result = CliRunner().invoke(cli.main, list(map(str, words)))
    assert result.exit_code == 0, result.output
    assert result.stdout == f"wrote {out}: 2 pictures, 0.4 s\n"
    with Image.open(out) as image:
        assert image.n_frames == 2 and image.size == (960, 540)


def refused(*words):
    result = CliRunner().invoke(cli.main, ["film", *map(str, words)])
    assert result.exit_code == 2, result.output
    return result.stderr


def test_what_makes_no_film_is_refused_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(figures.registry.Entry, "film", lambda *_, **__: pytest.fail("ran"))
    gif = tmp_path / "film.gif"
    for words, said in (
        (["--out", tmp_path / "film.avi"], "`--out` must end in .gif or .mp4, but got "),
        (["--out", tmp_path / "none" / "film.gif"], "`--out` must lie in a folder that exists, but got "),
        (["--out", gif, "--fps", 0], "`fps` must be at least 1, but got 0"),
        (["--out", gif, "--fps", 51], "`fps` must be at most 50, but got 51"),
        (["--out", gif, "--seconds", -1], "`seconds` must be positive, but got -1"),
        (["--out", gif, "--seconds", 0.1], "`seconds` must make 2 to 1000 pictures at 10 a second, but got 0.1"),
        (["--out", gif, "--seconds", 1e300], "`seconds` must make 2 to 1000 pictures at 10 a second, but got 1e+300"),
        (["--run", __file__, "--quick"], "`--quick` must be left out beside --run, whose times are recorded"),
        (["--out", gif, "--queries", 3], "`--queries` must be left out for moving_attention, which takes --classes"),
    ):
        assert said in refused(*words), words
    assert list(tmp_path.iterdir()) == []


def test_a_missing_ffmpeg_is_named_with_its_cure(tmp_path, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "animation.ffmpeg_path", str(tmp_path / "none"))
    message = "`--out` must end in .gif where there is no ffmpeg, which makes MP4 files: install ffmpeg by "
    assert message in refused("--out", tmp_path / "film.mp4")


def test_other_figures_and_axes_are_refused(tmp_path, flow):
    with pytest.raises(
        ValueError, match=r"^`NAME` must be a figure that makes a film: moving_attention, but got figure8"
    ):
        figures.figure8.film(tmp_path / "film.gif")
    axes = Figure().add_subplot()
    with pytest.raises(ValueError, match=r"^`ax` must be left out for a film"):
        figures.moving_attention.film(tmp_path / "film.gif", flow, ax=axes)
    with pytest.raises(ValueError, match=r"^`time` must be left out for a film"):
        figures.moving_attention.film(tmp_path / "film.gif", flow, time=1.0)
    with pytest.raises(ValueError, match=r"^`eta_z` must be left out beside `data`"):
        figures.moving_attention.film(tmp_path / "film.gif", flow, eta_z=1.0)


def test_settings_of_matplotlib_do_not_change_a_film(tmp_path):
    """Pictures cut to what is drawn would differ in size; and a picture may have no axes."""
    pictures = [Figure(figsize=(0.6, 1)), Figure(figsize=(0.6, 1))]
    pictures[1].patch.set_facecolor("black")
    with matplotlib.rc_context({"savefig.bbox": "tight"}):
        film.write(tmp_path / "film.gif", pictures, 10)
    assert [dark for dark, _ in heights(tmp_path / "film.gif")] == [0, 1]


def test_a_film_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "film.gif"
    path.write_bytes(b"before")

    def pictures():
        yield picture({0: 0.5}, 0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        film.write(path, pictures(), 10)
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]


@pytest.fixture
def ffmpeg(tmp_path, monkeypatch):
    """A function that writes a program in the place of ffmpeg; its last argument is the film."""
    program = tmp_path / "ffmpeg"
    monkeypatch.setitem(matplotlib.rcParams, "animation.ffmpeg_path", str(program))

    def write(*lines):
        program.write_text("\n".join(("#!/bin/sh", *lines, "")))
        program.chmod(0o755)
        return program

    return write


@pytest.mark.parametrize("reading", ["cat > /dev/null", "exec < /dev/null"])
def test_ffmpeg_that_fails_is_told(tmp_path, ffmpeg, reading):
    program = ffmpeg(reading, "echo 'no encoder' >&2", "exit 3")
    path = film.check("path", tmp_path / "film.mp4")
    with pytest.raises(RuntimeError, match=r"^ffmpeg made no film: no encoder$"):
        film.write(path, [Figure()] * 9, 10)
    assert list(tmp_path.iterdir()) == [program]


def test_ffmpeg_has_ended_when_a_film_is_given_up(tmp_path, ffmpeg):
    """It might make its file after ours is removed, and waits for pictures as long as an error is kept."""
    program = ffmpeg("cat > /dev/null", f"touch {tmp_path}/ended", "exit 255")

    def pictures():
        yield picture({0: 0.5}, 0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        film.write(film.check("path", tmp_path / "film.mp4"), pictures(), 10)
    assert {*tmp_path.iterdir()} == {program, tmp_path / "ended"}
