"""JoMA's pages compute the same curves for their sliders as the Python program."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from yzflow_joma.views import VIEWS

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# Every start of the view, computed in the page and left in it as JSON.
PROGRAM = """<script>
const node = document.createElement("pre");
const kept = ({ python, lines, marks, margins }) => ({ python, lines, marks, margins });
const found = %s.map((setting) => kept(yzflow.views[%s].compute(setting, null)));
node.textContent = "FOUND" + JSON.stringify(found) + "END";
document.body.append(node);
</script></body>"""


@pytest.mark.skipif(BROWSER is None, reason="needs a browser: Chromium or Chrome")
@pytest.mark.parametrize("number", VIEWS.views)
def test_the_page_computes_what_python_does(number, tmp_path):
    view, page = VIEWS.views[number], tmp_path / "page.html"
    command = "from yzflow.cli import main; main()"
    subprocess.run([sys.executable, "-c", command, "page", f"JoMA: {number}", "--out", page], check=True)
    starts = json.dumps([start.setting for start in VIEWS.starts[view]])
    program = PROGRAM % (starts, json.dumps(view))
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", program), encoding="utf-8")
    how = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--virtual-time-budget=5000"]
    dom = subprocess.run([BROWSER, *how, "--dump-dom", page.as_uri()], check=True, capture_output=True, timeout=120)
    text = re.search(r"FOUND(\[.*\])END", dom.stdout.decode()).group(1)
    for start, shown in zip(VIEWS.starts[view], json.loads(_plain(text)), strict=True):
        left: dict = {}
        exec(shown["python"], left)
        assert set(left["curves"]) == {line["id"] for line in shown["lines"]}
        for line in shown["lines"]:
            there = np.array([value is not None for value in line["y"]])
            assert there.any(), line["id"]
            assert np.array(line["x"]) == pytest.approx(left["times"], rel=1e-12)
            expected = np.asarray(left["curves"][line["id"]], float)
            assert (np.isfinite(expected) == there).all()
            assert np.array(line["y"], float)[there] == pytest.approx(expected[there], rel=1e-5, abs=1e-9), start
        if view == "turning":
            zero = 0.0 in start.setting.values()
            assert bool(shown["marks"]) is not zero and list(shown["margins"].values()) == [0 if zero else 1]


def _plain(text):
    for mark, sign in {"&lt;": "<", "&gt;": ">", "&amp;": "&"}.items():
        text = text.replace(mark, sign)
    return text
