"""Reports, enclosures and figures in a notebook: in a real kernel, where there is one."""

import base64
import importlib.util
import io

import matplotlib

matplotlib.use("agg")

import numpy as np
import pytest
from balls import enclose_flow
from matplotlib import image
from matplotlib.figure import Figure

from dynamics import SequenceClasses
from theory.statements import Statement
from theory.trust import Label, Trust
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row

CLASSES = SequenceClasses([[0.4, 0.4, 0.2, 0.0, 0.0], [0.4, 0.0, 0.0, 0.4, 0.2]], [0, 0], vocab_size=20)


def row(name, printed, corrected, *, expected=True, tolerance=0.1):
    label = Label(Trust.MEASURED, {"error": printed, "tolerance": tolerance, "setting": "one"})
    return Row(name, "area", "full flow", "one", expected, {}, printed, corrected, tolerance, expected, label)


def report(*rows):
    names = list(dict.fromkeys(one.statement for one in rows))
    statements = tuple(
        Statement("P", name.removeprefix("P: "), "<b>title</b>", "text", "x", assumptions=()) for name in names
    )
    return AuditReport(list(rows), statements, {})


def test_a_report_puts_what_fails_first_and_escapes_words():
    fine, wrong = row("P: Theorem 1", 0.05, None), row("P: Theorem 2", 0.9, 0.2)
    text = report(fine, wrong)._repr_html_()
    assert text.index("P: Theorem 2") < text.index("P: Theorem 1") and "no: 1 do not hold" in text
    assert "<b>" not in text and "&lt;b&gt;title" in text
    assert "every statement that should hold does" in report(fine)._repr_html_()
    assert repr(report(fine, wrong)) == "<AuditReport: 2 statements, 2 rows, failed>"


def test_a_report_draws_printed_corrected_and_expected_apart():
    rows = [
        row("P: Theorem 1", 0.05, None),
        row("P: Theorem 2", 0.9, 0.02),
        row("P: Theorem 2", 0.4, 0.03),
        row("P: Theorem 2", 9.0, 9.0, expected=False),
        row("P: Theorem 3", 0.0, None, tolerance=0.0),
        row("P: Theorem 4", np.nan, None),
    ]
    axes = report(*rows).plot(ax=Figure().subplots())
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"P: Theorem {n}" for n in (1, 2, 3, 4)]
    printed, corrected, expected = axes.lines
    np.testing.assert_allclose(printed.get_xdata(), [0.5, 9.0, 1e-6, 1e6])
    np.testing.assert_allclose(printed.get_ydata(), [0, 1, 2, 3])
    np.testing.assert_allclose(corrected.get_xdata(), [0.3])
    assert list(expected.get_xdata()) == [1, 1]
    assert len({line.get_color() for line in axes.lines}) == 3 and printed.get_marker() != corrected.get_marker()
    one = report(*rows).plot("P: Theorem 2", ax=Figure().subplots())
    assert [label.get_text() for label in one.get_yticklabels()] == ["area"]
    with pytest.raises(ValueError, match="`statement` must be one of"):
        report(*rows).plot("P: Theorem 9")


def test_an_enclosure_draws_its_middle_and_says_its_radius():
    flow = enclose_flow(CLASSES, eta_y=1.0, eta_z=0.5, t_end=10.0, decoder="theory", bits=40)
    axes = flow.plot(next_token=1, n_times=4, ax=Figure().subplots())
    at = flow.at(np.geomspace(0.01, 10.0, 4) * (1 - 1e-15)).sel(next_token=1)
    assert [line.get_label() for line in axes.lines] == ["token 0", "token 3", "token 4"]
    for line, token in zip(axes.lines, (0, 3, 4), strict=True):
        np.testing.assert_allclose(line.get_ydata(), at["attention"].sel(token=token), rtol=1e-9)
    largest = float(at["attention_radius"].max())
    assert float(axes.get_title().rpartition(" ")[2]) == pytest.approx(largest, rel=0.06)
    text = flow._repr_html_()
    assert "every t from 0 to 10, as far as was asked for" in text and "theory" in text
    with pytest.raises(ValueError, match="`next_token` must be a next token of the data"):
        flow.plot(next_token=2)
    short = enclose_flow(CLASSES, eta_y=1.0, eta_z=0.5, t_end=10.0, decoder="theory", bits=40, max_steps=1)
    assert "of 10, since" in short._repr_html_()


# Source of a notebook's cell, how many pictures it shows, and what its last line shows besides.
CELLS = (
    ("import yzflow as yz\nclasses = yz.SequenceClasses.syn_small()\nclasses", 0, "text/html"),
    ("axes = classes.plot()", 1, None),
    ("classes.plot()", 1, "text/plain"),
    ("from matplotlib import pyplot\nassert not pyplot.get_fignums()", 0, None),
    ("entry = yz.figures.figure9\ndata = entry.data()", 0, None),
    ("figure = entry(data)", 1, None),
    ("entry(data)", 1, None),
    ("figure", 1, None),
    ("for name in 'ab':\n    figure = entry(data)", 2, None),
    ("drawn = entry.draw(data)", 0, None),
    ("figure.savefig('a.png')", 0, None),
    ("assert not pyplot.get_fignums()", 0, None),
)


@pytest.mark.slow
def test_a_kernel_shows_each_figure_once(tmp_path):
    for name in ("nbclient", "nbformat", "ipykernel"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}: pip install 'yzflow[docs]'")
    import nbclient
    from nbformat import v4

    notebook = v4.new_notebook(cells=[v4.new_code_cell(source) for source, *_ in CELLS])
    client = nbclient.NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    for cell, (source, pictures, kind) in zip(notebook.cells, CELLS, strict=True):
        results = [output for output in cell.outputs if output.output_type == "execute_result"]
        shown = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
        assert len(shown) == pictures, source
        assert [kind] * (kind is not None) == [kind for one in results if kind in one.data], source
        assert len(results) == (kind is not None), source
        for picture in shown:
            assert np.ptp(image.imread(io.BytesIO(base64.b64decode(picture)))) > 0, source
