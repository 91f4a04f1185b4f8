"""One page says how later papers bear on ours, and how much of each was read; no page claims to be the first."""

import re

import numpy as np
from driving import ROOT

DOCS = ROOT / "docs"
WHOLE = (DOCS / "since.md").read_text(encoding="utf-8")
PAGE, _, INDEX = WHOLE.partition("## Index by paper")
FINDINGS = sorted(ROOT.glob("studies/yzflow_studies/*/*.md"))
MARKS = {"abstract", "opening", "code", "summary"}
VERDICTS = ("settle", "contradict", "preempt", "agree", "untouched")
NUMBER = r"\d{4}\.\d{4,5}"


def flat(text: str) -> str:
    return " ".join(text.split())


def entries() -> dict[str, str]:
    """The page's entry for each paper, by its number."""
    found = [flat(part) for part in re.split(r"\n(?=- |\n)", PAGE) if re.match(rf"\n?- \[{NUMBER}\]", part)]
    return {re.search(NUMBER, entry).group(): entry for entry in found}


def slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_each_number_on_the_page_has_an_entry_with_its_address_and_what_was_read():
    found = entries()
    assert set(re.findall(NUMBER, PAGE)) == set(found) and len(found) > 30
    assert PAGE.count("](https://arxiv.org/abs/") == len(found)
    for number, entry in found.items():
        head = re.match(rf"- \[({NUMBER})\]\(https://arxiv\.org/abs/\1\), [^*]*\*[^*]+\*\. Read: ([a-z, ]+)\. ", entry)
        assert head, number
        marks = head.group(2).split(", ")
        assert set(marks) <= MARKS and len(set(marks)) == len(marks), number
        rest = entry[head.end() :]
        assert any(word in bold for bold in re.findall(r"\*\*([^*]+)\*\*", rest.lower()) for word in VERDICTS), number
        # Claims of a summary or of code are said to be theirs.
        assert "summary" not in marks or "summary" in rest, number
        assert "code" not in marks or "script" in rest, number


def test_each_finding_that_the_page_names_exists_and_links_back():
    named = set(re.findall(r"\]\(\.\./(studies/[\w./]+)\)", PAGE))
    there = re.compile(r"\]\(\.\./\.\./\.\./docs/since\.md#([\w-]+)\)")
    back = {path.relative_to(ROOT).as_posix(): there.findall(path.read_text(encoding="utf-8")) for path in FINDINGS}
    assert named == {path for path, links in back.items() if links}
    sections = {slug(part.split("\n")[0]): part for part in PAGE.split("\n## ")[1:]}
    for path, links in back.items():
        for link in links:
            assert path in sections[link], (path, link)
    # The number in the words of a link is that of the page that it leads to.
    links = re.findall(r"\[[Ff]inding (\d+)\]\(\.\./(studies/[\w./]+)\)", PAGE)
    assert len(links) == len(re.findall(r"\]\(\.\./studies/", PAGE))
    assert not [path for number, path in links if not (ROOT / path).read_text().startswith(f"# {number}. ")]


def test_entropy_falls_and_rises_in_the_dynamics_of_jomas_script():
    """dv/dt = (mu - v) softmax(v^2/T), ten targets between 1 and 4, T = 3: what that paper's figure 4 draws."""
    assert "it falls and then rises" in entries()["2310.00535"]
    for seed in range(2):
        mu = 1 + 3 * np.random.default_rng(seed).random(10)
        v, entropy = np.full(10, 0.05), []
        for _ in range(5000):
            attention = np.exp(v**2 / 3)
            attention /= attention.sum()
            entropy.append(-(attention * np.log(attention)).sum())
            v = v + 0.02 * (mu - v) * attention
        turn = int(np.argmin(entropy))
        assert 0 < turn < len(entropy) - 1
        assert entropy[0] > entropy[turn] + 0.1 and entropy[-1] > entropy[turn] + 0.01
        assert (np.diff(entropy[: turn + 1]) < 0).all()
