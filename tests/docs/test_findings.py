"""The list of findings has the title of each page."""

import ast
import json
import math
import re
from functools import cache
from pathlib import Path

from driving import ROOT

from yzflow.values.marks import bare

DOCS = ROOT / "docs"
ROOMS = ROOT / "studies" / "yzflow_studies"
# A room whose code calls one of these trains from drawn starts; so does one whose code uses such a room's.
TRAINERS = {"sgd", "sgd_many", "train", "trained", "train_qsa"}
MINIMISES = {"falling_decay"}  # from drawn starts, by L-BFGS
CLAIMS = re.compile(r"\b(?:shown|shows|only)\b", re.I)
NEUTRAL = re.compile(r"\bnot shown\b|\bnot replicated on fresh data here\b", re.I)


def test_the_list_of_findings_has_their_titles():
    listed = re.findall(
        r"^- \[(.+)\]\((\.\./studies/[^)]+)\)$", (DOCS / "findings.md").read_text(encoding="utf-8"), re.M
    )
    pages = ROOT.glob("studies/yzflow_studies/*/*.md")
    assert {path for _, path in listed} == {f"../{path.relative_to(ROOT).as_posix()}" for path in pages}
    for title, path in listed:
        first = bare((DOCS / path).read_text(encoding="utf-8")).split("\n", 1)[0]
        assert first == f"# {title}"


def test_links_of_findings_and_to_them_are_paths_in_the_repository():
    """The site's own are mapped from these, see docs/_ext/findings.py."""
    lost = []
    for path in [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("*/*.md"), *ROOT.glob("studies/*/*/*.md")]:
        if path.parent.name == "findings":  # copies in the site
            continue
        for link in re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", path.read_text(encoding="utf-8")):
            own = "studies" in path.relative_to(ROOT).parts or "studies/" in link
            if own and not re.match(r"\w+:", link) and not (path.parent / link).resolve().is_file():
                lost.append(f"{path.relative_to(ROOT)}: {link}")
    assert lost == []


@cache
def trains(room: Path) -> bool:
    """Whether a finding's numbers come from training, by the calls in its own code."""
    if room.name in MINIMISES:
        return True
    for path in room.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name.startswith("test_") or not any(f"{name}(" in text for name in TRAINERS):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in TRAINERS:
                return True
    return False


def replications(room: Path) -> list[dict]:
    """Records ``replicated`` of the studies of a room, see studies/README.md."""
    store = room / "values.json"
    records = json.loads(store.read_text(encoding="utf-8")) if store.is_file() else {}
    return [one["values"]["replicated"] for one in records.values() if "replicated" in one["values"]]


def decides(record: dict) -> bool:
    """Whether a replication on several fresh data sets has an interval without zero."""
    return len(set(record["data_seeds"])) > 1 and abs(record["mean"]) > record["half"]


def needs_replication(title: str, records: list[dict]) -> bool:
    """Whether the title of a trained finding says more than its seeds of one data set can."""
    return bool(CLAIMS.search(NEUTRAL.sub("", title))) and not any(map(decides, records))


def test_titles_of_trained_findings_say_shown_and_only_of_what_fresh_data_replicate():
    pages = [path for path in ROOMS.glob("*/*.md") if trains(path.parent)]
    titles = {path: bare(path.read_text(encoding="utf-8")).split("\n", 1)[0] for path in pages}
    numbers = {int(title.split(".")[0].strip("# ")) for title in titles.values()}
    assert {11, 12, 28, 29, 31, 39, 40, 42, 43, 44, 45, 46, 47} <= numbers
    too_much = [title for path, title in titles.items() if needs_replication(title, replications(path.parent))]
    assert too_much == []


def test_a_record_of_a_replication_has_data_seeds_seeds_and_an_interval():
    records = {room.name: replications(room) for room in ROOMS.iterdir() if room.is_dir()}
    assert {"dyck_variation", "uniform_attention", "words_and_prefixes"} <= {name for name in records if records[name]}
    for record in (one for some in records.values() for one in some):
        assert set(record) == {"what", "data_seeds", "seeds", "mean", "half"}
        assert len(set(record["data_seeds"])) == len(record["data_seeds"]) >= 1
        assert record["seeds"] >= 2 * len(record["data_seeds"])
        assert math.isfinite(record["mean"]) and record["half"] > 0
