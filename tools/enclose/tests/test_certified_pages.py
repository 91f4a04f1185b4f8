"""Certificates on a statement's page: whose claims they hold, and their checker in Node and in a browser."""

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from statement_pages import PROVED, invented
from yzflow_enclose import Enclosure, certificate, enclose
from yzflow_enclose.cells import Cell, decide_cell
from yzflow_enclose.evidence import FlowsInBalls
from yzflow_enclose.pages import certified, verifier
from yzflow_enclose.scan_and_snap.enclosed import ENCLOSING
from yzflow_enclose.verifier import verify

from dynamics import SequenceClasses
from theory.statements import REGISTER, Statement
from yzflow import cli
from yzflow.audits.enclosing import Enclose
from yzflow.fuzzing.campaign import fuzz
from yzflow.pages import statement, writing
from yzflow.papers.scan_and_snap.settings import Setting

LEADS, SIGNS = (REGISTER[f"Scan and Snap: Theorem {number}"] for number in ("3", "2(a)"))
CLASSES = SequenceClasses.single_common_token(2, 50, common=0.5, distinct=(1.0, 0.6))
TASK = Setting("small <task>", CLASSES, 1.0, 0.05, 3.0)
LEVEL = "full flow"
# Nothing that a name can hold may become a part of the page.
NAME = "lead'><img src=x onerror=alert(1)>&amp;.npz"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(certified, "settings", lambda paper, quick: [TASK])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A certificate of Theorem 3's claims that are formulas: one."""
    folder = tmp_path_factory.mktemp("certificates")
    flows = FlowsInBalls(TASK, ENCLOSING, Enclose(2.0, folder=folder))
    for check in LEADS.checks:
        if LEVEL in check.levels:
            flows.decide(check, LEVEL)
    return flows.enclosure(LEVEL).path


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A folder with the two packages."""
    try:
        return verifier.fetch(tmp_path_factory.mktemp("packages"))
    except ValueError as error:
        pytest.skip(f"needs the packages of verifier.js, which npm and pip bring: {error}")


@pytest.fixture(scope="module")
def site(packages, tmp_path_factory):
    """A folder with verifier.js."""
    folder = tmp_path_factory.mktemp("site")
    verifier.write(folder / verifier.NAME, packages)
    return folder


def changed(path, kept, place):
    """The certificate with one bit changed in a byte."""
    content = bytearray(kept.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    return path


def resealed(path, kept, change):
    """The certificate with another claim, under a hash of its own."""
    claim, notes, arrays = certificate.read(kept)
    change(claim)
    certificate.write(path, claim, notes, arrays)
    return path


def too_much(claim):
    claim["predicates"][0]["margin"] *= 1e6


def page_of(path, *held):
    text = statement.html(invented(LEADS, settings=1), derivations=[PROVED], attached=certified.attached(held))
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_certificate_is_compared_with_the_statement(kept, tmp_path):
    held = certified.certified(LEADS, kept)
    assert held.content == kept.read_bytes() and held.flow == "full flow, small <task>"
    assert held.decided == ("the growth of every lead: true for every t with 0 < t <= 2",)
    with pytest.raises(ValueError, match=r"`certificates` must decide a claim of .*2\(a\) at one of its settings"):
        certified.certified(SIGNS, kept)
    with pytest.raises(ValueError, match="`path` must be an enclosure"):
        certified.certified(LEADS, changed(tmp_path / "changed.npz", kept, 5000))
    with pytest.raises(ValueError, match="`certificates` must prove what they claim"):
        certified.certified(LEADS, resealed(tmp_path / "more.npz", kept, too_much))
    without = resealed(tmp_path / "without.npz", kept, lambda claim: claim["predicates"].clear())
    with pytest.raises(ValueError, match="`certificates` must decide a claim"):
        certified.certified(LEADS, without)


def test_a_certificate_of_another_setting_is_refused(kept, tmp_path, monkeypatch):
    other = Setting("other", CLASSES, 1.0, 0.06, 3.0)
    monkeypatch.setattr(certified, "settings", lambda paper, quick: [other])
    with pytest.raises(ValueError, match="`certificates` must decide a claim"):
        certified.certified(LEADS, kept)
    layer = Setting("layer", CLASSES, 1.0, 0.05, 3.0, start=object())
    assert ENCLOSING.question(layer, LEVEL) is None
    large = SequenceClasses(np.random.default_rng(0).dirichlet(np.ones(200), 2), [0, 0], vocab_size=50)
    assert ENCLOSING.question(Setting("large", large, 1.0, 0.05, 3.0), LEVEL) is None


@pytest.mark.slow
def test_a_page_holds_certificate_and_checker(kept, tmp_path):
    held = certified.certified(LEADS, shutil.copy(kept, tmp_path / NAME))
    text = page_of(tmp_path / "page.html", held).read_text()
    assert "<img" not in text and "<task>" not in text and html.escape(NAME, quote=True) in text
    (data,) = re.findall(r"href='data:application/octet-stream;base64,([^']*)'", text)
    assert base64.b64decode(data) == kept.read_bytes()
    assert hashlib.sha256(kept.read_bytes()).hexdigest() in text
    (given,) = re.findall(r'<script type="application/json" id="certified">(.*?)</script>', text)
    files = json.loads(given)["checker"]
    assert files["verify.py"] == Path(verify.__file__).read_text() and len(files) >= 2
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob: 'self'; ")
    bare = page_of(tmp_path / "bare.html").read_text()
    assert "wasm" not in bare and "certified" not in bare and "Certificates" not in bare


@pytest.mark.slow
def test_the_command_writes_page_and_verifier(kept, tmp_path, monkeypatch):
    calls = {}
    monkeypatch.setattr(writing, "check", lambda statement, **more: invented(LEADS, settings=1))
    monkeypatch.setattr(verifier, "write", lambda path, folder: calls.update({str(path): str(folder)}))
    page = tmp_path / "page.html"
    arguments = ["page", LEADS.id, "--out", str(page), "--certificate", str(kept), "--verifier", str(tmp_path / "got")]
    found = CliRunner().invoke(cli.main, arguments)
    assert found.exit_code == 0, found.output
    assert kept.name in page.read_text()
    assert calls == {str(tmp_path / verifier.NAME): str(tmp_path / "got")}
    for option in ("--certificate", "--verifier"):
        found = CliRunner().invoke(cli.main, ["page", "--all", str(tmp_path / "all"), option, str(kept)])
        assert found.exit_code == 2 and f"`{option}` must be left out beside --all" in found.output


def test_packages_that_are_not_there_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=f"`folder` must hold {verifier.ARCHIVE}, or npm bring it"):
        verifier.fetch(tmp_path)
    (tmp_path / verifier.ARCHIVE).write_bytes(b"no archive")
    with pytest.raises(ValueError, match="`folder` must hold"):
        verifier.parts(tmp_path)


@pytest.mark.slow
def test_another_file_in_a_package_is_refused(packages, tmp_path):
    shutil.copytree(packages, tmp_path / "packages")
    changed(tmp_path / "packages" / verifier.WHEEL, packages / verifier.WHEEL, 100_000)
    with pytest.raises(ValueError, match=f"hold {verifier.WHEEL} with the SHA-256"):
        verifier.parts(tmp_path / "packages")


@pytest.mark.slow
def test_in_node_the_checker_says_the_same_and_refuses_changes(packages, kept, tmp_path):
    if shutil.which("node") is None:
        pytest.skip("needs node")
    for name, content in verifier.parts(packages).items():
        (tmp_path / name).write_bytes(content)
    size = kept.stat().st_size
    places = (5, size // 2)
    wrong = [changed(tmp_path / f"{place}.npz", kept, place) for place in places]
    wrong.append(resealed(tmp_path / "more.npz", kept, too_much))
    cell = Cell(2, 2, distinct=(2.0, 1.0), eta_y=1.0, eta_z=(0.2, 0.22), common=(1.4, 1.5))
    decide_cell(cell, [(0, 1, -1)], t_end=0.25, degree=1)[1].save(tmp_path / "cell.npz")
    job = tmp_path / "job.json"
    paths = [*map(str, [kept, *wrong, tmp_path / "cell.npz", kept])]
    job.write_text(json.dumps({"wheel": verifier.WHEEL, "checker": certified.checker(), "certificates": paths}))
    program = Path(__file__).with_name("verified_in_node.mjs")
    code = Path(certified.__file__).with_name("checking.js")
    run = subprocess.run(["node", program, tmp_path, code, job], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    first, *refused, other, last = map(json.loads, run.stdout.splitlines())
    assert first == last == {"lines": verify.check(str(kept)), "refused": ""}
    assert other == {"lines": verify.check(str(tmp_path / "cell.npz")), "refused": ""}
    assert len(refused) == len(wrong)
    assert all(one["lines"] == [] and one["refused"].startswith("not verified") for one in refused)
    assert "the SHA-256 is another" in refused[0]["refused"] and "a predicate is not" in refused[-1]["refused"]


def pressed(page):
    """Text beside the button in the end, and printed text."""
    page.click(".certificate button")
    page.wait_for_selector(".certificate.verified, .certificate.refused", timeout=240_000)
    return page.text_content(".certificate [role=status]"), page.text_content(".certificate pre")


def test_in_a_browser_the_page_verifies_its_certificate(site, kept, tmp_path, browser):
    held = certified.certified(LEADS, shutil.copy(kept, tmp_path / NAME))
    page = browser(page_of(site / "page.html", held))
    said, printed = pressed(page)
    assert said.startswith("Verified here") and printed.splitlines() == verify.check(str(kept))
    assert page.text_content(".certificate a") == NAME and page.locator(".certificate img").count() == 0


def test_in_a_browser_a_changed_byte_is_refused(site, kept, tmp_path, browser):
    held = certified.certified(LEADS, kept)
    wrong = changed(tmp_path / "wrong.npz", kept, 5000).read_bytes()
    path = page_of(site / "changed.html", certified.Certified("wrong.npz", wrong, held.flow, held.decided))
    said, printed = pressed(browser(path))
    assert said == "Refused: not verified, 'the SHA-256 is another'" and printed == ""


def test_in_a_browser_another_verifier_is_refused(site, kept, tmp_path, browser):
    """With a part changed, and with none."""
    held = certified.certified(LEADS, kept)
    page = page_of(tmp_path / "page.html", held)
    said, _ = pressed(browser(page))
    assert said == "Refused: verifier.js does not lie beside this page"
    assert len(browser.problems) == 1 and "ERR_FILE_NOT_FOUND" in browser.problems.pop()
    files = dict.fromkeys(verifier.SHA256, b"another")
    (tmp_path / verifier.NAME).write_text(verifier.bundle(files))
    said, _ = pressed(browser(page))
    assert said == "Refused: pyodide.mjs in verifier.js is another file"


class Joint:
    """v' = exp(z), z' = v v', which keeps z - v^2/2."""

    def __init__(self):
        self.initial = {"v": np.zeros(1), "z": np.zeros(1)}

    def derivative(self, t, state):
        pushed = np.exp(state["z"])
        return {"v": pushed, "z": state["v"] * pushed}

    def config(self):
        return {}


def conjecture(paper):
    return Statement(paper, "Conjecture 7", "Joint growth", "They grow.", "z = v^2/2", conjecture=True, argued=("so",))


@pytest.mark.parametrize("paper", ["Ours", "Scan and Snap"])
def test_a_conjecture_says_whose_it_is_and_carries_its_certificate_and_what_was_tried(paper, tmp_path):
    """Its id finds nothing where the page is sent: no command names it, and the command of the file works there."""
    flow = enclose(Joint(), t_end=0.25, bits=40)
    flow.record(lambda at: at.state["z"][0] - at.state["v"][0] ** 2 / 2 < 1e-9)
    tried = fuzz(lambda run: True, like=SIGNS, level="theory flow", examples=1)
    writing.page(conjecture(paper), tmp_path / "page.html", certificates=[flow], tried=tried)
    page = (tmp_path / "page.html").read_text()
    assert f"A conjecture of this page's author, under the name {paper}, and of no paper" in html.unescape(page)
    assert f'yzflow check "{paper}: Conjecture 7"' not in html.unescape(page)
    assert "true for every t with 0 < t" in html.unescape(page) and html.escape(tried.text) in page
    (name, data), = re.findall(r"download='([^']*)' href='data:[^,]*,([^']*)'", page)  # fmt: skip
    (tmp_path / name).write_bytes(base64.b64decode(data))
    again = Enclosure.load(tmp_path / name)
    assert again.verify(Joint) and f'Enclosure.load("{name}").verify(Joint)' in html.unescape(page)
    assert "Verify here" not in page.partition("<script")[0]  # its checker would need the class


def test_a_conjecture_on_a_population_is_verified_where_the_page_is_sent(tmp_path, kept):
    writing.page(conjecture("Ours"), tmp_path / "page.html", certificates=[kept])
    page = html.unescape((tmp_path / "page.html").read_text())
    assert f"yzflow verify {Path(kept).name}" in page and "Verify here" in page
    with pytest.raises(ValueError, match="`certificates` must hold recorded claims"):
        writing.page(conjecture("Ours"), tmp_path / "x.html", certificates=[enclose(Joint(), t_end=0.1, bits=40)])
    with pytest.raises(ValueError, match="`certificates` must be files for a statement of Scan and Snap"):
        writing.page(LEADS, tmp_path / "x.html", certificates=[enclose(Joint(), t_end=0.1, bits=40)])
