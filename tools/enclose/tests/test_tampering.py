"""Certificates that were tampered with, damaged or forged, none of which passes for a proof."""

import hashlib
import io
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest
from yzflow_enclose import Enclosure, canonical, certificate, enclose_flow
from yzflow_enclose.verifier import verify

from dynamics import SequenceClasses

pytestmark = pytest.mark.usefixtures("same_precision")  # a checker sets it and leaves it so


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file of a short enclosure with M > K."""
    path = tmp_path_factory.mktemp("enclosures") / "modified.npz"
    data = SequenceClasses.single_common_token(3, 7, common=0.5, distinct=(1.0, 0.5))
    flow = enclose_flow(data, decoder="modified", eta_y=1.0, eta_z=2.0, t_end=3.0, bits=36)
    flow.record(lambda at: (at.velocity(0, 0) < 0) & (at.velocity(0, 1) > 0))
    flow.record(lambda at: at.loss.rate < 0, until=2.5)
    flow.save(path)
    return path


def altered(saved, tmp_path, change):
    """A copy of a certificate after ``change(claim, arrays)``, sealed again, with the population's hash made anew."""
    claim, notes, arrays = certificate.read(saved)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(claim, arrays)
    found = claim["population"]
    found["sha256"] = canonical.digest({name: value for name, value in found.items() if name != "sha256"})
    certificate.write(tmp_path / "altered.npz", claim, notes, arrays)
    return tmp_path / "altered.npz"


def add(name, index, amount):
    def change(settings, arrays):
        arrays[name][index] += amount

    return change


def scale(name, index, factor):
    def change(settings, arrays):
        arrays[name][index] *= factor

    return change


def setting(name, value):
    def change(claim, arrays):
        claim[name] = value(claim[name])

    return change


def of_population(name, value):
    def change(claim, arrays):
        claim["population"][name] = value(claim["population"][name])

    return change


def of_bags(place, value):
    def change(claim, arrays):
        for bag in claim["population"]["bags"]:
            bag[place] = value(bag[place])

    return change


def predicate(**changes):
    def change(claim, arrays):
        claim["predicates"][0].update(changes)

    return change


def decided_otherwise(claim, arrays):
    claim["predicates"][0] |= {"verdict": False, "times": [1.0, 1.0], "margin": -1e-9}


def twice_as_steep(claim, arrays):
    says = claim["predicates"][0]["says"]
    says[-1:] = [["number", -0.1], ["+", says[-1][1], len(says) - 1], [says[-1][0], len(says)]]


def shorter(claim, arrays):
    claim["t_reached"] = claim["t_end"] = 2.0


def other_norm(claim, arrays):
    arrays["weights"] = arrays["weights"] * np.arange(1.0, 1 + arrays["weights"].size)


def scaled_norm(claim, arrays):
    arrays["weights"] *= 2.0**-27
    arrays["radius"] *= 2.0**-27
    claim["errors"] = [error * 2.0**-27 for error in claim["errors"]]


def without_a_step(settings, arrays):
    for name in ("start", "end", "radius", "pieces", "limbs"):
        arrays[name] = np.delete(arrays[name], 1, axis=0)


def exchanged_steps(settings, arrays):
    for name in ("radius", "limbs"):
        arrays[name][[0, 1]] = arrays[name][[1, 0]]


TAMPERED = {
    "a first coefficient": add("limbs", (0, 0, 0, 0), 1e-9),
    "a coefficient": scale("limbs", (1, 1, 1, 0), 1 + 1e-5),
    "a high coefficient": scale("limbs", (1, 0, 5, 0), 1.5),
    "a low limb": add("limbs", (1, 0, 1, 1), 1e-6),
    "a sign": scale("limbs", (slice(None), 0), -1),
    "a smaller radius": scale("radius", 0, 1e-3),
    "a last radius": scale("radius", -1, 1e-3),
    "no radius": scale("radius", 0, np.nan),
    "a negative radius": scale("radius", 0, -1),
    "an end": add("end", -1, 3.0),
    "a start": add("start", 0, 1e-6),
    "both times": lambda s, a: (add("end", 0, 1e-6)(s, a), add("start", 1, 1e-6)(s, a)),
    "no pieces": scale("pieces", 1, 0),
    "a missing step": without_a_step,
    "exchanged steps": exchanged_steps,
    "eta_y": setting("eta_y", lambda x: x * (1 + 1e-9)),
    "eta_z": setting("eta_z", lambda x: x * 1.001),
    "vocab_size": of_population("vocab_size", lambda x: x + 1),
    "a class less": of_population("bags", lambda bags: [[*bag[:2], 0.5, *bag[3:]] for bag in bags[:2]]),
    "weights of the classes": of_population(
        "bags", lambda bags: [[*bag[:2], p, *bag[3:]] for p, bag in zip((0.5, 0.25, 0.25), bags, strict=True)]
    ),
    "queries of their own": of_population("bags", lambda bags: [[q, *bag[1:]] for q, bag in enumerate(bags)]),
    "a count": of_bags(4, lambda counts: [*counts[:-1], counts[-1] * 1.001]),
    "twins": of_bags(4, lambda counts: [counts[0], counts[1], counts[1]]),
    "a decoder": setting("decoder", lambda name: "full" if name == "modified" else "modified"),
    "another decoder": setting("decoder", lambda name: "blend"),
    "a decoder and a blank": setting("decoder", lambda name: f"{name} "),
    "a letter without width": setting("decoder", lambda name: f"{name}\u200b"),
    **{
        f"decoder {name!r}": setting("decoder", lambda old, name=name: name)
        for name in (None, "", ["full"], "\x1b[31mfull")
    },
    "a format": setting("format", lambda name: "yzflow-certificate-3"),
    "a kind": setting("kind", lambda name: "flow"),
    "another start": setting("start", lambda name: "one"),
    "no time": setting("t_end", lambda t: -1.0),
    "a shorter time": shorter,
    "a longer time": lambda claim, arrays: claim.update(t_end=9.0, t_reached=9.0),
    "no number": setting("eta_z", lambda x: float("nan")),
    "an integer": setting("eta_z", lambda x: 2),
    "a truth": setting("eta_y", lambda x: True),
    "few bits": setting("bits", lambda bits: 8),
    "a closer error": setting("errors", lambda errors: [error / 8 for error in errors]),
    "an error less": setting("errors", lambda errors: errors[:-1]),
    "a scaled norm": scaled_norm,
    "another norm": other_norm,
    "no steps": lambda claim, arrays: arrays.update({name: arrays[name][:0] for name in _STEPS}),
    "a verdict": decided_otherwise,
    "a margin": predicate(margin=0.5),
    "a predicate of another sign": lambda claim, arrays: claim["predicates"][0]["says"].append(
        ["not", len(claim["predicates"][0]["says"]) - 1]
    ),
    "a stronger predicate": twice_as_steep,
    "a predicate's time": predicate(until=5.0),
    "an unknown operation": lambda claim, arrays: claim["predicates"][0]["says"].insert(0, ["import", 0]),
    "a predicate of no variable": lambda claim, arrays: claim["predicates"][0]["says"].__setitem__(0, ["variable", 99]),
    "a part more": lambda claim, arrays: claim.update(note="true"),
    "a part less": lambda claim, arrays: claim.pop("bits"),
    "words": lambda claim, arrays: claim["predicates"][0].update(says="\x1b[31mtrue"),
}
_STEPS = ("start", "end", "radius", "pieces", "limbs")


@pytest.mark.parametrize("mistake", TAMPERED)
def test_what_is_tampered_with_is_not_verified(saved, tmp_path, mistake):
    """Neither by the checker nor by the program that made it."""
    path = altered(saved, tmp_path, TAMPERED[mistake])
    with pytest.raises((ValueError, TypeError, LookupError)):
        verify.check(path)
    with pytest.raises(ValueError, match=r"^(`\w+` must .*, but got|the enclosure proves nothing: )"):
        Enclosure.load(path).holds(lambda at: at.time > 0)


@pytest.mark.parametrize(
    "change", [of_bags(4, lambda counts: [counts[0], counts[2], counts[1]]), of_bags(1, lambda n: n + 1)]
)
def test_what_is_as_true_by_symmetry_is_verified(saved, tmp_path, change):
    """Two distinct tokens with their counts exchanged, and other next tokens: the same flow under other names."""
    path = altered(saved, tmp_path, change)
    lines = verify.check(path)
    assert Enclosure.load(path).words.splitlines() == [line.removeprefix("verified: ") for line in lines]
    assert lines != verify.check(saved)


def test_a_byte_that_is_changed_is_noticed(saved, tmp_path):
    """One that stands anywhere: at 60 places, and a file that was cut."""
    content = saved.read_bytes()
    rng = np.random.default_rng(7)
    damaged = [content[:-30], content[:-64], b"", content + b"\0"]
    for place in rng.integers(len(content), size=60).tolist():
        damaged.append(content[:place] + bytes([content[place] ^ int(rng.integers(1, 256))]) + content[place + 1 :])
    for bytes_ in damaged:
        (tmp_path / "changed.npz").write_bytes(bytes_)
        with pytest.raises(ValueError, match="`path` must be an enclosure that `save` wrote, but got"):
            Enclosure.load(tmp_path / "changed.npz")
        with pytest.raises(ValueError, match="SHA-256"):
            verify.check(tmp_path / "changed.npz")
    with pytest.raises(FileNotFoundError):
        Enclosure.load(tmp_path / "none.npz")


def test_a_file_of_the_format_before_is_named(tmp_path):
    settings = np.frombuffer(b'{"format": "yzflow-enclosure-1"}', np.uint8)
    np.savez_compressed(tmp_path / "old.npz", sha256=settings, settings=settings, limbs=np.zeros(1))
    with pytest.raises(ValueError, match=r"in the format yzflow-certificate-2, but got an earlier one"):
        Enclosure.load(tmp_path / "old.npz")


def test_a_loaded_enclosure_answers_nothing_before_it_is_verified(saved, tmp_path):
    path = altered(saved, tmp_path, scale("radius", 0, 1e-3))
    flow = Enclosure.load(path)
    assert "not yet verified" in repr(flow)
    asked = [
        lambda: flow.at(1.0), lambda: flow.moment(1.0), lambda: flow.holds(lambda at: at.loss > 0), flow.plot,
        lambda: flow.crossing(lambda at: at.loss - 1, between=(0.5, 1.0)), lambda: flow.claim, lambda: flow.words,
        lambda: flow.record(lambda at: at.loss > 0), lambda: flow.save(tmp_path / "again.npz"),
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(ValueError, match="the enclosure proves nothing: the error of step 0"):
            ask()
    assert not (tmp_path / "again.npz").exists()
    believed = Enclosure.load(path, trust=True)
    assert believed.holds(lambda at: at.time > 0) is True and believed.claim["eta_z"] == 2.0


def repacked(saved, path, members, kind=zipfile.ZIP_STORED):
    """The members as an archive, sealed as yzflow does."""
    content = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(content, "w", kind) as archive:
        warnings.simplefilter("ignore")  # of a name that stands twice
        for name, raw in members(zipfile.ZipFile(saved)):
            archive.writestr(name, raw)
    return sealed_again(path, content.getvalue())


def sealed_again(path, content):
    path.write_bytes(content + hashlib.sha256(content).hexdigest().encode())
    return path


def members(archive):
    return [(name, archive.read(name)) for name in archive.namelist()]


def test_the_checker_reads_what_every_reader_reads(saved, tmp_path):
    """Parts that one program skips, and files that hold no claim at all, in one line each and without a traceback."""
    path = tmp_path / "forged.npz"
    assert verify.check(repacked(saved, path, members))
    for message, make in {
        "a part of the file is compressed": lambda: repacked(saved, path, members, zipfile.ZIP_DEFLATED),
        "a name stands twice in the file": lambda: repacked(saved, path, lambda own: [*members(own), members(own)[0]]),
        "no certificate: it holds no claim": lambda: repacked(saved, path, lambda own: members(own)[1:]),
        "no certificate: it holds no claim ": lambda: sealed_again(path, b"no archive"),
    }.items():
        make()
        with pytest.raises(ValueError, match=message.strip()):
            verify.check(path)
    deep = "[" * 100_000
    repacked(saved, path, lambda own: [("claim.json", deep)])
    done = subprocess.run([sys.executable, verify.__file__, path], capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "not verified" in done.stderr
