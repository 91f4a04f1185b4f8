"""Changes statements one by one and sees that Coq refuses each: a proof that proves all would prove nothing.

``python3 -m formal.variants`` makes every variant of variants.toml. Its statement must be well formed, and the proof as
it stands must fail on it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from formal import checking

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIST = checking.FOLDER / "variants.toml"


@dataclass(frozen=True)
class Variant:
    """A theorem's name with room and file, what is replaced in its statement by what, and what that means."""

    theorem: str
    old: str
    new: str
    means: str

    @property
    def file(self) -> str:
        return self.theorem.rpartition(".")[0] + ".v"


def listed() -> list[Variant]:
    """The variants of the list."""
    rows = tomllib.loads(LIST.read_text())["variant"]
    return [Variant(row["theorem"], row["replace"], row["with"], row["means"]) for row in rows]


def changed(one: Variant, text: str) -> tuple[str, str]:
    """The source up to the changed theorem with its proof, and with its statement alone.

    Raises
    ------
    ValueError
        If the theorem, or in its statement what is to be replaced, is not found.
    """
    name = one.theorem.rpartition(".")[2]
    found = re.search(rf"^Theorem {name}\s*:.*?^Proof\.", text, re.DOTALL | re.MULTILINE)
    if found is None or one.old not in found.group():
        raise ValueError(f"a variant must change a statement, but {one.theorem} has no {one.old!r}")
    before = text[: found.start()]
    statement = found.group().replace(one.old, one.new)
    proof = text[found.end() : text.index("Qed.", found.end())] + "Qed.\n"
    sections: list[str] = []
    for kind, section in re.findall(r"^(Section|End) (\w+)\.", before, re.MULTILINE):
        sections = [*sections, section] if kind == "Section" else sections[:-1]
    ends = "".join(f"End {section}.\n" for section in reversed(sections))
    return before + statement + proof + ends, before + statement + " Abort.\n" + ends


def refused(one: Variant, folder: Path, number: int) -> str:
    """Empty where Coq takes the statement and refuses the proof; else what went wrong."""
    proved, stated = changed(one, (checking.FOLDER / one.file).read_text())
    for name, text in ((f"Stated{number}.v", stated), (f"Proved{number}.v", proved)):
        (folder / name).write_text(text)
    if checking.coq(folder, f"Stated{number}.v").returncode:
        return "its statement is not well formed"
    if not checking.coq(folder, f"Proved{number}.v").returncode:
        return "it is proved"
    return ""


def main() -> int:
    """Tries all; 0 where every variant is refused."""
    if checking.compiler() is None:
        print("There is no coqc here.", file=sys.stderr)
        return 2
    variants = listed()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        for _ in checking.build(folder):
            pass
        answers = list(pool.map(lambda pair: refused(pair[1], folder, pair[0]), enumerate(variants)))
    wrong = 0
    for one, answer in zip(variants, answers, strict=True):
        wrong += bool(answer)
        print(f"{one.theorem}, {one.means}: {answer or 'refused'}")
    print(f"{len(variants)} variants, {len(variants) - wrong} refused")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
