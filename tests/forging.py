"""Certificates drawn at random, honest ones and forged ones; `judging` says which claims are false."""

import contextlib
import copy
import hashlib
import math

import numpy as np
from yzflow_enclose import canonical, enclose_flow
from yzflow_enclose.cells import Cell, decide_cell
from yzflow_enclose.formulas import Unwritten

from dynamics import Bags, SequenceClasses

DECODERS = ("full", "modified", "theory")
_BITS = (30, 36, 40, 53, 60, 80)


# Honest ones.


def population(rng):
    """Bags of one to three queries, or classes that are copies of each other."""
    if rng.random() < 0.3:
        classes, distinct = int(rng.integers(2, 4)), tuple(rng.choice([1.5, 1.0, 0.75, 0.3], int(rng.integers(1, 3))))
        more = int(rng.choice([0, 1, 9]))
        return SequenceClasses.single_common_token(
            classes, classes + more, common=float(rng.choice([0.25, 0.75, 1.45])), distinct=tuple(map(float, distinct))
        )
    queries, size = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    n_bags, tokens = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    rows, counts = [], []
    for _ in range(n_bags):
        row = np.sort(rng.choice(tokens, int(rng.integers(1, tokens + 1)), replace=False))
        rows.append(row)
        counts.append(rng.choice([1.0, 2.0, 3.0, 0.1, float(rng.uniform(0.5, 3))], row.size))
    weight = rng.uniform(0.1, 1, n_bags) if rng.random() < 0.7 else np.ones(n_bags)
    return Bags(
        rng.integers(queries, size=n_bags), rng.integers(size, size=n_bags),
        np.concatenate([[0], np.cumsum([row.size for row in rows])]), np.concatenate(rows), np.concatenate(counts),
        weight / weight.sum(), n_queries=queries, n_tokens=tokens, vocab_size=size,
    )  # fmt: skip


def quantity(at, rng, depth):
    """A quantity of a moment, as a reader could write it."""
    reading = at._reading
    bag = int(rng.integers(len(reading.bags)))
    target, query = int(reading.bags.target[bag]), int(reading.query_tokens[reading.bags.query[bag]])
    tokens = reading.entries(bag)[0].tolist()
    first, second = (int(rng.choice(tokens)) for _ in range(2))
    if depth and rng.random() < 0.5:
        mine = quantity(at, rng, depth - 1)
        return [
            lambda: mine + quantity(at, rng, depth - 1),
            lambda: mine * quantity(at, rng, depth - 1),
            lambda: mine / (quantity(at, rng, 0) * 0 + float(rng.choice([3, -2, 0.7]))),
            lambda: mine / (quantity(at, rng, 0).exp() + 1),
            lambda: -mine * int(rng.integers(-5, 6)),
            lambda: mine.exp(),
            lambda: (mine.exp() + 1).log(),
            lambda: (mine * mine + 0.25).sqrt(),
            lambda: mine - 1e-9,
        ][rng.integers(9)]()
    kinds = [
        lambda: at.z(query, first), lambda: at.velocity(query, first), lambda: at.attention(target, first),
        lambda: at.relative_gain(target, first, second), lambda: at.loss, lambda: at.loss.rate, lambda: at.time,
        lambda: at.growth_factor(query, first), lambda: at.attention(target, first).rate,
        lambda: at.z(query, first) - at.z(query, second),
        lambda: at.h(target) if reading.field.decoder == "theory" else at.y(first, target),
    ]  # fmt: skip
    return kinds[rng.integers(len(kinds))]()


THRESHOLDS = (0, 0, 0.0, -1, -3, 1, 2, 1e-4, -1e-4, 1e-9, -1e-12, 1e-300, 0.05, -0.2, 0.3)


def predicate(flow, rng):
    """A predicate of one to three comparisons, of which some are near what the flow does at a time."""
    seeds, sizes = rng.integers(2**31, size=3), int(rng.choice([1, 1, 1, 2, 3]))
    depth, signs = int(rng.integers(3)), rng.random(3) < 0.5
    t = float(rng.uniform(0, flow.t_reached))
    bounds = []
    for seed in seeds[:sizes]:
        value = float(quantity(flow.moment(t), np.random.default_rng(seed), depth).ball().mid())
        near = value + float(rng.choice([0, 1e-9, -1e-6, 1e-3]))
        bounds.append(near if rng.random() < 0.4 and math.isfinite(near) else THRESHOLDS[rng.integers(len(THRESHOLDS))])
    which, opposite = int(rng.integers(2)), rng.random() < 0.2

    def asked(at):
        found = None
        for seed, sign, bound in zip(seeds, signs, bounds, strict=False):
            mine = quantity(at, np.random.default_rng(seed), depth)
            claim = mine > bound if sign else mine <= bound
            found = claim if found is None else found & claim if which else found | claim
        return ~found if opposite else found

    return asked


def enclosed(rng, largest):
    """An enclosure of four steps at most, and of few variables times pieces: so long it takes to check it."""
    while True:
        flow = enclose_flow(
            population(rng),
            eta_y=float(rng.choice([1.0, 0.3, 2.5])),
            eta_z=float(rng.choice([0.8, 4.0, 1.7])),
            t_end=float(rng.choice([0.4, 1.0, 1.999])),
            decoder=str(rng.choice(DECODERS)),
            bits=int(rng.choice(_BITS)),
            max_steps=4,
        )
        if flow.steps and flow.variables * sum(step.pieces for step in flow.steps) < largest:
            return flow


def honest(rng, largest=600):
    """An enclosure with what could be recorded of it."""
    flow = enclosed(rng, largest)
    for _ in range(5):
        until = None if rng.random() < 0.6 else float(rng.uniform(0.01, 1) * max(flow.t_reached, 1e-3))
        try:
            flow.record(predicate(flow, rng), until=until)
        except (Unwritten, ValueError) as error:
            if not any(word in str(error) for word in ("a rate has no rate", "to be written down", "one query")):
                raise
    return flow


# Mutants: any change of any field.


def places(node, path=()):
    """Every place of plain content."""
    yield path
    for key, part in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(part, (*path, key))


WORDS = ["", "full", "modified ", "theory\u200b", "\x1b[2Jtrue", "rate", ">", "nan", "../../etc", "flow", "population"]
FACTORS = (0.0, -1.0, 0.5, 2.0, 1 - 1e-9, 1 + 1e-9, 1.001, 1e-8, 1e8, 1e300, float("nan"), float("inf"))


def changed(value, rng):
    """Something else in the place of a leaf, or a little more, less or otherwise of a list or mapping."""
    if isinstance(value, dict):
        keys = list(value)
        if keys and rng.random() < 0.5:
            return {key: part for key, part in value.items() if key != keys[rng.integers(len(keys))]}
        return {**value, str(rng.choice(WORDS)): 1}
    if isinstance(value, list):
        place = int(rng.integers(len(value) + 1))
        own = copy.deepcopy(value[min(place, len(value) - 1)]) if value else 0
        others = list(value)
        if value and rng.random() < 0.3:
            del others[min(place, len(value) - 1)]
        elif len(value) > 1 and rng.random() < 0.5:
            i, j = rng.choice(len(value), 2, replace=False)
            others[i], others[j] = others[j], others[i]
        else:
            others.insert(place, own)
        return others
    if rng.random() < 0.15:
        others = [None, True, False, [], {}, 0, -1, 2**70, 2**40, 10**9, 5000, str(rng.choice(WORDS))]
        return others[rng.integers(len(others))]
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        factor = FACTORS[rng.integers(len(FACTORS))]
        if isinstance(value, int) and rng.random() < 0.7:
            return value + int(rng.choice([-2, -1, 1, 2, 7]))
        return factor if value == 0 else value * factor
    return str(rng.choice(WORDS))


def mutant(header, arrays, rng):
    """One to three changes of a claim, or of the numbers of its steps."""
    header, arrays = copy.deepcopy(header), {name: array.copy() for name, array in arrays.items()}
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.3:
            changed_array(arrays, rng)
            continue
        # Parts are chosen first, or bags and operations, of which there are many, would be all that changes.
        top = ["claim", "claim", "claim", "notes"][rng.integers(4)]
        part = list(header[top])[rng.integers(len(header[top]))] if header.get(top) else None
        inner = list(places(header[top][part])) if part is not None and isinstance(header[top], dict) else [()]
        path = (top, part, *inner[rng.integers(len(inner))])
        parent = header
        for key in path[:-1]:
            parent = parent[key]
        if parent is not None and path[-1] is not None:
            parent[path[-1]] = changed(parent[path[-1]], rng)
    found = header.get("claim", {}).get("population") if isinstance(header.get("claim"), dict) else None
    if isinstance(found, dict) and rng.random() < 0.95:
        with contextlib.suppress(ValueError, TypeError):  # where no JSON has it
            found["sha256"] = canonical.digest({key: part for key, part in found.items() if key != "sha256"})
    return header, arrays


def changed_array(arrays, rng):
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name]
    kind = rng.integers(8)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays["more"] = array
    elif kind == 2:
        arrays[name] = array[:-1]
    elif kind == 3:
        arrays[name] = array.astype([np.float32, np.int64, np.complex128, bool][rng.integers(4)])
    elif kind == 4 and array.ndim:
        arrays[name] = np.roll(array, 1, axis=int(rng.integers(array.ndim)))
    elif array.size:
        place = np.unravel_index(rng.integers(array.size), array.shape)
        with np.errstate(all="ignore"):
            value = array[place] * FACTORS[rng.integers(len(FACTORS))] + rng.choice([0.0, 0.0, 1e-6])
            array[place] = value if array.dtype.kind == "f" else np.clip(np.nan_to_num(value), -1e9, 1e9)


def rewritten(content, rng):
    """A file with a byte changed that is not of its seal, and sealed again."""
    place = int(rng.integers(len(content) - 64))
    body = content[:place] + bytes([content[place] ^ int(rng.integers(1, 256))]) + content[place + 1 : -64]
    return body + hashlib.sha256(body).hexdigest().encode()


# Forged ones: changes that keep the form, so that what is proved is what decides.


def amount(rng, low, high):
    return float(10 ** rng.uniform(low, high))


def bend(claim, arrays, rng):
    """A step's polynomial with one power more of, and a radius that covers that, or not."""
    step, i = int(rng.integers(arrays["start"].size)), int(rng.integers(arrays["weights"].size))
    length = arrays["end"][step] - arrays["start"][step]
    power, size = int(rng.integers(arrays["limbs"].shape[2])), amount(rng, -13, -2)
    arrays["limbs"][step, i, power, 0] += size / length**power
    if rng.random() < 0.7:
        radius = size * arrays["weights"][i] * amount(rng, -0.5, 1)
        arrays["radius"][step:] = np.maximum(arrays["radius"][step:], radius)
        claim["errors"] = [float(arrays["radius"].max() / w * (1 + 1e-9)) for w in arrays["weights"]]


def breathe(claim, arrays, rng):
    """A radius, or all of them, up or down, and the errors with it, or not."""
    step = slice(None) if rng.random() < 0.3 else int(rng.integers(arrays["start"].size))
    arrays["radius"][step] *= amount(rng, -3, 3)
    if rng.random() < 0.7:
        claim["errors"] = [float(arrays["radius"].max() / w * (1 + 1e-9)) for w in arrays["weights"]]


def cut(claim, arrays, rng):
    """Pieces of a step, or the time at which two of them meet."""
    step = int(rng.integers(arrays["start"].size))
    if rng.random() < 0.5:
        arrays["pieces"][step] = int(rng.choice([1, 2, 3, 64, 1000, 1001]))
    elif step:
        moved = arrays["start"][step] * float(rng.choice([1 - 1e-9, 1 + 1e-9, 0.9, 1.1]))
        arrays["start"][step] = arrays["end"][step - 1] = moved


def lengthen(claim, arrays, rng):
    """A later last time."""
    later = claim["t_reached"] * (1 + amount(rng, -9, 0))
    arrays["end"][-1] = claim["t_reached"] = later
    claim["t_end"] = max(claim["t_end"], later)
    for told in claim["predicates"]:
        told["until"] = later if rng.random() < 0.5 else told["until"]


def tell_otherwise(claim, arrays, rng):
    """A predicate's verdict, span, last time or margin."""
    if not claim["predicates"]:
        return
    told = claim["predicates"][rng.integers(len(claim["predicates"]))]
    edges = [0.0, *arrays["end"].tolist()]
    kind = rng.integers(6)
    if kind == 0:
        told["verdict"] = not told["verdict"]
        told["margin"] *= -1
    elif kind == 1:
        told["until"] = min(claim["t_reached"], told["until"] * amount(rng, -1, 1))
    elif kind == 2:
        told["margin"] += amount(rng, -12, 0) * float(rng.choice([-1, 1]))
    elif "times" in told:
        times = sorted(float(x) for x in (rng.choice(edges), told["until"] * rng.random(), told["times"][kind % 2]))
        told["times"] = [times[0], times[2]] if rng.random() < 0.5 else times[1:]
    if not told["verdict"]:
        place = int(rng.integers(arrays["start"].size))
        told.setdefault("times", [edges[place], min(edges[place + 1], told["until"])])
        told["times"] = [min(x, told["until"]) for x in told["times"]]
    else:
        told.pop("times", None)


def say_otherwise(claim, arrays, rng):
    """A predicate's operations."""
    if not claim["predicates"]:
        return
    says = claim["predicates"][rng.integers(len(claim["predicates"]))]["says"]
    kind, place = rng.integers(5), int(rng.integers(len(says)))
    numbers = [operation for operation in says if operation[0] == "number"]
    if kind == 0 and numbers:
        operation = numbers[rng.integers(len(numbers))]
        operation[1] = operation[1] + float(rng.choice([-1, 1])) * amount(rng, -14, 1)
    elif kind == 1:
        says.append(["not", len(says) - 1])
    elif kind == 2 and says[place][0] in ("+", "*", "/"):
        says[place][0] = str(rng.choice(["+", "*", "/"]))
    elif kind == 3 and says[place][0] in ("exp", "log", "sqrt", "rsqrt", "rate", "-"):
        says[place][0] = str(rng.choice(["exp", "log", "sqrt", "rsqrt", "rate", "-"]))
    elif says[place][0] == "variable":
        says[place][1] = int(rng.integers(len(claim["errors"])))


def live_elsewhere(claim, arrays, rng):
    """Another rate, count, weight, decoder or vocabulary."""
    kind, bags = rng.integers(5), claim["population"]["bags"]
    if kind < 2:
        name = ("eta_y", "eta_z")[kind]
        claim[name] *= 1 + float(rng.choice([-1, 1])) * amount(rng, -15, -1)
    elif kind == 2:
        counts = bags[rng.integers(len(bags))][4]
        counts[rng.integers(len(counts))] *= 1 + amount(rng, -15, -1)
    elif kind == 3:
        claim["decoder"] = str(rng.choice(DECODERS))
    else:
        claim["population"]["vocab_size"] += 1


def leave_the_step(claim, arrays, rng):
    """A step that bends away after its end, within its radius before, and a predicate that is false of it there."""
    place, i = int(rng.integers(arrays["start"].size)), int(rng.integers(arrays["weights"].size))
    start, end = float(arrays["start"][place]), float(arrays["end"][place])
    power, size = min(8, arrays["limbs"].shape[2] - 1), amount(rng, -6, -2)
    arrays["limbs"][place, i, power, 0] += float(rng.choice([-1, 1])) * size / (end - start) ** power
    arrays["radius"][place:] = np.maximum(arrays["radius"][place:], size * arrays["weights"][i])
    claim["errors"] = [float(arrays["radius"].max() / w * (1 + 1e-9)) for w in arrays["weights"]]
    last = float(min(claim["t_reached"], end + (end - start) * rng.uniform(-0.1, 1)))
    says = [["variable", i], [">", 0], ["time"], ["-", 2], ["number", last * (1 - 1e-6)], ["+", 3, 4], [">", 5]]
    says.append(["and", 1, 6] if rng.random() < 0.5 else ["or", 1, 6])
    first = float(rng.uniform(start, min(end, last)))
    claim["predicates"] = [
        {"says": says, "verdict": False, "until": claim["t_reached"], "times": [first, last], "margin": -1e-12}
    ]


FORGERIES = (bend, breathe, cut, lengthen, tell_otherwise, tell_otherwise, say_otherwise, say_otherwise,
             live_elsewhere, leave_the_step)  # fmt: skip


def forged(header, arrays, rng):
    """A certificate with one forgery or two, each part in the form that it has to have."""
    header, arrays = copy.deepcopy(header), {name: array.copy() for name, array in arrays.items()}
    for _ in range(rng.integers(1, 3)):
        FORGERIES[rng.integers(len(FORGERIES))](header["claim"], arrays, rng)
    found = header["claim"]["population"]
    found["sha256"] = canonical.digest({key: part for key, part in found.items() if key != "sha256"})
    return header, arrays


# Cells.


def honest_cell(rng):
    """An enclosure of a narrow cell, and two sums of velocities of it."""
    classes, distinct = int(rng.integers(2, 4)), tuple(rng.choice([2.0, 1.0, 0.5], int(rng.integers(1, 3)), False))
    eta_z, common = float(rng.choice([0.2, 0.8, 1.9])), float(rng.choice([0.5, 1.4]))
    cell = Cell(
        classes, classes + int(rng.choice([0, 1, 7])), tuple(map(float, distinct)), float(rng.choice([1.0, 0.5])),
        (eta_z, eta_z * (1 + amount(rng, -3, -1))), (common, common * (1 + amount(rng, -3, -1))),
        str(rng.choice(DECODERS)),
    )  # fmt: skip
    rows = [tuple(map(float, rng.choice([-1.0, 0.0, 1.0, 0.3], 1 + len(distinct)))) for _ in range(3)]
    rows = [row for row in dict.fromkeys(rows) if any(row)] or [(1.0,) * (1 + len(distinct))]
    while True:
        made = decide_cell(cell, rows, t_end=float(rng.choice([0.4, 0.75])), degree=int(rng.integers(1, 3)))[1]
        if made.steps:
            return made


def tell_a_cell_otherwise(claim, arrays, rng):
    told = claim["predicates"][rng.integers(len(claim["predicates"]))]
    kind = rng.integers(4)
    if kind == 0:
        told["coefficients"][rng.integers(len(told["coefficients"]))] += float(rng.choice([-1, 1])) * amount(rng, -6, 0)
    elif kind == 1:
        told["verdict"] = [True, False, None][rng.integers(3)]
    elif kind == 2:
        told["until"] *= float(rng.choice([0.0, 0.5, 1 - 1e-9, 1.01, 2.0]))
    told.pop("time", None) if told["verdict"] is not False else None
    if told["verdict"] is True:
        told["until"] = claim["t_end"]
    elif told["verdict"] is False:
        told["until"] = min(told["until"], claim["t_reached"] / 2)
        times = [told.get("time", claim["t_reached"]), *arrays["end"].tolist(), claim["t_reached"] * rng.random()]
        told["time"] = float(rng.choice(times))


def move_a_cell(claim, arrays, rng):
    name = str(rng.choice(["eta_z", "common", "eta_y", "distinct"]))
    if name == "eta_y":
        claim[name] *= 1 + amount(rng, -9, -1)
    else:
        place = int(rng.integers(len(claim[name])))
        claim[name][place] *= 1 + float(rng.choice([-1, 1])) * amount(rng, -9, -1)


def bend_a_cell(claim, arrays, rng):
    step, i, k, power = (int(rng.integers(size)) for size in arrays["limbs"].shape[:4])
    length = arrays["end"][step] - arrays["start"][step]
    arrays["limbs"][step, i, k, power, 0] += amount(rng, -9, -2) / length**power
    if rng.random() < 0.7:
        for name in ("radius", "speed"):
            arrays[name][step:] *= amount(rng, -0.5, 3)
        claim["errors"] = [float(arrays["radius"].max() / w * (1 + 1e-9)) for w in arrays["weights"]]


def forged_cell(header, arrays, rng):
    header, arrays = copy.deepcopy(header), {name: array.copy() for name, array in arrays.items()}
    for _ in range(rng.integers(1, 3)):
        forge = (tell_a_cell_otherwise, tell_a_cell_otherwise, move_a_cell, bend_a_cell)[rng.integers(4)]
        forge(header["claim"], arrays, rng)
    return header, arrays
