// Plots over n, the number of inserted pairs: what a layer of bounded Dyck makes of longer and longer texts.
(() => {
  const { balance, apart } = yzflow;
  const { norm, minus, normalised } = balance;
  const brief = (value) => yzflow.widgets.brief(value);
  const PRINTED = { color: "c5", dash: "dashed", width: 2.5 };
  const CORRECTED = { color: "c3", width: 6 };
  const LAYER = { id: "layer", color: "c0", width: 3 };

  const SLIDERS = {
    k: { label: "k, types", min: 2, max: 3, integer: true },
    D: { label: "D, depth", min: 2, max: 4, integer: true },
    level: { label: "level of the pairs", min: 1, max: 4, integer: true },
    scale: { label: "spread of the logits", min: 0, max: 1, step: 0.01 },
    off: { label: "how far (11) is off, at one entry of Z", min: 0, max: 1, step: 0.01 },
    factor: { label: "V of the closing bracket, × its balanced value", min: 0.5, max: 2, step: 0.001 },
    live: { label: "size of the pair’s values", min: 0, max: 1, step: 0.01 },
    floor: { label: "floor of LN, C", min: 0, max: 0.5, step: 0.01 },
    end: { label: "pairs, at most", min: 10, max: 1e6, step: 0.05, log: true, integer: true },
  };
  const of = (...names) => Object.fromEntries(names.map((name) => [name, SLIDERS[name]]));
  const adjust = ({ D, level }) => { if (level.value > D.value) level.set(D.value); };
  const margins = ({ k = 2, D = 2 }) => ({ "k >= 2, several types": k / 2, "D >= 2, closing queries": D / 2 });

  // Where the slider breaks (11).
  const broken = ({ off, D, level }) => (off ? ` (11) is off by ${brief(off)} at one entry of Z alone: query ) back at depth ${D - 1}, key [ to depth ${level}.` : "");

  function axis(end) {
    const sizes = [...new Set(Array.from({ length: 120 }, (_, i) => Math.round(end ** (i / 119))))];
    return { sizes, x: { label: "n, inserted pairs", symbol: "n", min: 1, max: end, log: true } };
  }
  const BRACKETS = "([{)]}";
  const written = (types) => `${types.map((type) => BRACKETS[type]).join("")}()`;

  // The start of each program: the layer, off balance, and its features with n more pairs, as Bags with counts.
  const program = ({ seed }, { k = 2, D, level, scale, off = 0, factor = 1, live = 1, floor = 0, end }, rest) => `import numpy as np
from dynamics import Bags, Layer
from yzflow_bounded_dyck import DyckLanguage, balance

language = DyckLanguage(${k}, ${D})
exact = balance.balanced_layer(language, rng=${seed}, scale=${scale})
query = language.close(0, ${D - 1})
pair = [language.open(1, ${level}), language.close(1, ${level - 1})]
Z, V = exact.Z.copy(), exact.V.copy()
Z[query, pair[0]] += ${off}
V[pair[1]] *= ${factor}
V[pair] *= ${live}
layer = Layer(Z, exact.Y, V, floor=${floor})
times = np.unique(np.round(${end} ** (np.arange(120) / 119)))  # n


def texts(types, numbers=times):
    """A stack of types, a bracket that opens and closes, and pairs inserted before."""
    prefix = [2 * kind for kind in types] + [0, 1]
    counts = np.bincount(language.state_sequence(prefix), minlength=language.n_states)
    rows = np.tile(counts.astype(float), (len(numbers), 1))
    rows[:, pair] += np.reshape(numbers, (-1, 1))
    there = rows > 0
    ends = np.append(0, there.sum(axis=1).cumsum())
    target = np.tile(language.next_token(prefix), (len(rows), 1))
    sizes = {"n_queries": language.n_states, "n_tokens": language.n_states}
    return Bags(np.full(len(rows), query), target, ends, np.nonzero(there)[1], rows[there], **sizes)


def gap(one, other):
    return np.linalg.norm(one - other, axis=1)


${rest}print({name: float(np.asarray(curve)[-1]) for name, curve in curves.items()})
`;

  // Equation 13: how far the features move, run on the text and by the formula.
  yzflow.views.insertion = {
    title: "How far n inserted pairs move the features",
    sliders: of("D", "level", "scale", "off", "floor", "end"),
    adjust,
    compute(setting, runs) {
      const layer = balance.changed(balance.balanced(runs, setting), setting);
      const { sizes, x } = axis(setting.end);
      const types = new Array(setting.D - 1).fill(0);
      const counts = balance.countsOf(layer, types);
      const run = (n) => balance.features(layer, balance.inserted(counts, layer.pair, n), setting.floor);
      const [first, delta] = [balance.gathered(layer, counts, true), balance.added(layer)];
      const law = (n) => normalised(first.map((value, i) => value + n * delta[i]));
      const begin = normalised(first);
      const found = sizes.map(run);
      const formula = sizes.map(law);
      const still = norm(delta) < 1e-12 * norm(first);
      const limit = still ? null : normalised(delta);
      const lines = [
        { ...CORRECTED, id: "law", label: "by (13), LN(u₀ + nδ)", x: sizes, y: formula.map((f) => norm(minus(f, begin))) },
        { ...LAYER, label: "run on the text", x: sizes, y: found.map((f) => norm(minus(f, begin))), off: found.map((f, i) => norm(minus(f, formula[i]))) },
        { ...PRINTED, id: "limit", label: "the limit δ/‖δ‖", x: sizes, y: sizes.map(() => limit && norm(minus(limit, begin))), off: found.map((f) => limit && norm(minus(f, limit))) },
      ];
      return {
        x, y: { label: "distance moved" }, lines, margins: margins(setting),
        marks: still ? [] : [{ x: norm(first) / norm(delta), label: "‖u₀‖/‖δ‖", color: "mark", dash: "solid" }],
        reference: "of the features, norm 1: run against (13), and against the limit",
        note: `The text is ${written(types)} with n pairs [] at level ${setting.level} before its last two brackets. ${still ? "The pair adds nothing." : `A pair adds ‖δ‖ = ${brief(norm(delta) / norm(first))} of ‖u₀‖.`}${broken(setting)}`,
        bands: null,
        python: program(runs, setting, `types = [0] * ${setting.D - 1}
found, begin = layer.features(texts(types)), Layer(Z, exact.Y, V).features(texts(types, [0]))
u = balance.contributions(Layer(Z, exact.Y, V), language)[query]
first, delta = u[language.state_sequence([0] * ${setting.D} + [1])].sum(axis=0), u[pair].sum(axis=0)
law = first + times[:, None] * delta
law /= np.linalg.norm(law, axis=1, keepdims=True)
size = np.linalg.norm(delta)
limit = gap(delta[None] / size, begin) if size > 1e-12 * np.linalg.norm(first) else np.nan
curves = {"law": gap(law, begin), "layer": gap(found, begin), "limit": np.full(len(times), limit)}
`),
      };
    },
  };

  // Theorem 1, necessity, silent pairs and values: two texts that need different brackets.
  const forgetting = (...sliders) => ({
    title: "Distance of the features of two texts that need different brackets",
    sliders: of(...sliders),
    adjust,
    compute(setting, runs) {
      const right = balance.balanced(runs, setting);
      const layer = balance.changed(right, setting);
      const { sizes, x } = axis(setting.end);
      const pair = [0, 1].map((last) => [...new Array(setting.D - 2).fill(0), last]);
      const counts = pair.map((types) => balance.countsOf(layer, types));
      const apartAt = (one) => sizes.map((n) => norm(minus(...counts.map((count) => balance.features(one, balance.inserted(count, layer.pair, n))))));
      const [delta, sums] = [balance.added(layer), counts.map((count) => balance.gathered(layer, count, true))];
      const still = norm(delta) < 1e-12 * norm(sums[0]);
      const direction = normalised(delta);
      const between = minus(...sums);
      const along = yzflow.sum(between.map((value, i) => value * direction[i]));
      const across = norm(between.map((value, i) => value - along * direction[i]));
      const late = sizes.map((n) => (still ? null : Math.min(across / n / norm(delta), 2)));
      const found = apartAt(layer);
      return {
        x, y: { label: "distance", log: true, decades: 6 }, margins: margins(setting), marks: [],
        reference: "of the late form, against the layer",
        note: `The texts are ${pair.map(written).join(" and ")}, with n pairs [] at level ${setting.level} in both. ${still ? "The pair adds nothing: no number of pairs moves the features." : `A pair adds ${brief(norm(delta) / norm(sums[0]))} of what is there.`}${broken(setting)}`,
        lines: [
          { ...CORRECTED, id: "balanced", label: "balanced layer", x: sizes, y: apartAt({ ...right, pair: layer.pair }) },
          { ...LAYER, label: "layer at these sliders", x: sizes, y: found },
          { ...PRINTED, id: "late", label: "late: ‖P(u₀ − u₀′)‖/(n‖δ‖), 2 at most", x: sizes, y: late, off: apart(late, found) },
        ],
        bands: null,
        python: program(runs, setting, `pairs = [[0] * ${setting.D - 2} + [last] for last in (0, 1)]
u = balance.contributions(layer, language)[query]
sums = [u[language.state_sequence([2 * kind for kind in types] + [0, 1])].sum(axis=0) for types in pairs]
delta, between = u[pair].sum(axis=0), sums[0] - sums[1]
size = np.linalg.norm(delta)
late = np.full(len(times), np.nan)
if size > 1e-12 * np.linalg.norm(sums[0]):
    late = np.minimum(np.linalg.norm(between - delta * (between @ delta) / size**2) / times / size, 2)
curves = {
    "balanced": gap(*(exact.features(texts(types)) for types in pairs)),
    "layer": gap(*(layer.features(texts(types)) for types in pairs)),
    "late": late,
}
`),
      };
    },
  });
  yzflow.views.needed = forgetting("D", "level", "scale", "off", "live", "end");
  yzflow.views.silent = forgetting("D", "level", "off", "live", "end");
  yzflow.views.values = forgetting("D", "level", "off", "factor", "live", "end");

  // Theorem 1, sufficiency, and Corollary 1: the network that is exact for the balanced layer, behind this one.
  const exactness = (...sliders) => ({
    title: "Largest error of the next bracket’s probability, over all stacks",
    sliders: of(...sliders),
    adjust,
    compute(setting, runs) {
      const { k, D, floor } = setting;
      const right = balance.balanced(runs, setting);
      const layer = balance.changed(right, setting);
      const least = balance.smallest(right);
      const { sizes, x } = axis(setting.end);
      const stacks = balance.stacks(k, D - 1);
      const counts = stacks.map((types) => balance.countsOf(layer, types));
      const targets = stacks.map((types) => balance.target(types, setting));
      const begin = counts.map((count) => balance.features(right, count));
      const rows = sizes.map((n) => counts.map((count, i) => {
        const f = balance.features(layer, balance.inserted(count, layer.pair, n), floor);
        const error = Math.max(...balance.head(f, least, setting).map((value, b) => Math.abs(value - targets[i][b])));
        return { error, moved: norm(minus(f, begin[i])) };
      }));
      const worst = (name) => rows.map((row) => Math.max(...row.map((one) => one[name])));
      const errors = worst("error").map((value) => (value < 1e-9 ? 0 : value)); // rounding
      const first = errors.findIndex((value) => value > 0.01);
      return {
        x, y: { label: "largest error" }, margins: margins(setting), marks: [],
        reference: "of the features, norm 1, from those of the balanced layer without pairs",
        note: `Pairs [] at level ${setting.level}, ${stacks.length} stacks before (). ${first < 0 ? "No error above 0.01 in the plot." : `The first error above 0.01 is at n = ${sizes[first]}.`}${broken(setting)}`,
        lines: [
          { ...CORRECTED, id: "balanced", label: "balanced, no floor: 0 at every length", x: sizes, y: sizes.map(() => 0) },
          { ...LAYER, label: "layer at these sliders", x: sizes, y: errors, off: worst("moved") },
        ],
        bands: null,
        python: program(runs, setting, `head = balance.exact_head(exact, language)
worst = np.zeros(len(times))
for stack in np.ndindex(*[${k}] * ${D - 1}):
    bags = texts(list(stack))
    worst = np.maximum(worst, np.abs(head(layer.features(bags)) - bags.target).max(axis=1))
curves = {"balanced": 0 * times, "layer": np.where(worst < 1e-9, 0, worst)}
`),
      };
    },
  });
  yzflow.views.exact = exactness("k", "D", "level", "scale", "off", "floor", "end");
  yzflow.views.uniform = exactness("k", "D", "level", "off", "floor", "end");

  // Theorem 2: what a pair adds against what the distance of two features after n pairs allows.
  yzflow.views.bound = {
    title: "What one pair adds, S/P, and what n pairs allow",
    sliders: {
      added: { label: "S, what a pair adds", min: 0.001, max: 1, step: 0.02, log: true },
      angle: { label: "angle of the two stacks, degrees", min: 20, max: 180, integer: true },
      tilt: { label: "tilt of the pair to their middle", min: 0, max: 80, integer: true },
      end: SLIDERS.end,
    },
    compute({ added, angle, tilt, end }) {
      const { sizes, x } = axis(end);
      const [half, lean] = [(angle * Math.PI) / 360, (tilt * Math.PI) / 180];
      const stacks = [1, -1].map((sign) => [Math.cos(half), sign * Math.sin(half), 0]);
      const delta = [added * Math.sin(lean), 0, added * Math.cos(lean)];
      const distance = (n) => norm(minus(...stacks.map((stack) => normalised(stack.map((value, i) => value + n * delta[i])))));
      const bound = sizes.map((n) => (1 + 2 / distance(n)) / n);
      const share = sizes.map(() => added);
      return {
        x, y: { label: "S/P", log: true, decades: 6 }, margins: margins({}), marks: [], reference: "of the corrected bound, against S/P",
        lines: [
          { ...CORRECTED, id: "bound", label: "(1 + 2γ/τ)/n, best head", x: sizes, y: bound, off: apart(bound, share) },
          { ...LAYER, id: "share", label: "S/P of the layer", x: sizes, y: share },
          { ...PRINTED, id: "printed", label: "C/n as printed; C is not said, here 1", x: sizes, y: sizes.map((n) => 1 / n) },
        ],
        note: "The best head has γ/τ = 1/‖f − f′‖, of the two stacks’ features after n pairs. P = 1.",
        bands: null,
        python: `import numpy as np
from dynamics import Bags, Layer
from yzflow_bounded_dyck import DyckLanguage, balance

language, half, lean = DyckLanguage(2, 2), np.radians(${angle}) / 2, np.radians(${tilt})
V = np.zeros((language.n_states, 3))
for kind, sign in ((0, 1), (1, -1)):
    V[language.open(kind, 1)] = [np.cos(half), sign * np.sin(half), 0]
    V[language.close(kind, 0)] = -V[language.open(kind, 1)]
V[language.open(1, 2)] = ${added} * np.array([np.sin(lean), 0, np.cos(lean)])
layer = Layer(np.zeros((language.n_states,) * 2), np.zeros((3, language.n_brackets)), V)
query, pair = language.close(0, 1), [language.open(1, 2), language.close(1, 1)]
times = np.unique(np.round(${end} ** (np.arange(120) / 119)))  # n


def features(kind):
    counts = np.bincount(language.state_sequence([2 * kind, 0, 1]), minlength=language.n_states)
    rows = np.tile(counts.astype(float), (len(times), 1))
    rows[:, pair] += times[:, None]
    there = rows > 0
    ends = np.append(0, there.sum(axis=1).cumsum())
    sizes = {"n_queries": language.n_states, "n_tokens": language.n_states, "vocab_size": 4}
    bags = Bags(np.full(len(rows), query), [0] * len(rows), ends, np.nonzero(there)[1], rows[there], **sizes)
    return layer.features(bags)


share = np.linalg.norm(balance.insertions(layer, language)[query, 1, 1])
distance = np.linalg.norm(features(0) - features(1), axis=1)
curves = {"bound": (1 + 2 / distance) / times, "share": np.full(len(times), share), "printed": 1 / times}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };

  // Appendix C.7: n copies of every pair in a balanced layer, with and without the query's own vector.
  yzflow.views.link = {
    title: "Distance of the features of two texts, n copies of every pair inserted",
    sliders: {
      D: SLIDERS.D, scale: SLIDERS.scale,
      link: { label: "size of the query’s own vector", min: 0.01, max: 10, step: 0.05, log: true },
      turn: { label: "its angle to the ones, degrees", min: 0, max: 90, integer: true },
      end: SLIDERS.end,
    },
    compute({ D, scale, link, turn, end }, runs) {
      const layer = balance.balanced(runs, { k: 2, D, scale });
      const { sizes, x } = axis(end);
      const every = Array.from({ length: 4 * D }, (_, s) => s);
      const counts = [0, 1].map((last) => balance.countsOf(layer, [...new Array(D - 2).fill(0), last]));
      const width = 2 * D + 1;
      const radians = (turn * Math.PI) / 180;
      // Behind LN's projection only the part beside the ones is left, along the first coordinate less the second.
      const own = Array.from({ length: width }, (_, i) => link * (Math.cos(radians) / Math.sqrt(width) + (Math.sin(radians) * ((i === 0) - (i === 1))) / Math.SQRT2));
      const centred = (v) => v.map((value) => value - yzflow.sum(v) / v.length);
      const gathered = (n) => counts.map((count) => centred(balance.gathered(layer, balance.inserted(count, every, n))));
      const feature = (v) => normalised(v);
      const rest = centred(own);
      const size = norm(rest);
      const linked = size > 1e-9 * link;
      const plain = [];
      const behind = [];
      const late = [];
      for (const n of sizes) {
        const sums = gathered(n);
        plain.push(norm(minus(...sums.map(feature))));
        behind.push(linked ? norm(minus(...sums.map((sum) => feature(sum.map((value, i) => value + rest[i]))))) : plain.at(-1));
        const between = minus(...sums);
        const along = yzflow.sum(between.map((value, i) => value * rest[i])) / size;
        late.push(linked ? Math.min(norm(between.map((value, i) => value - (along * rest[i]) / size)) / size, 2) : null);
      }
      return {
        x: { ...x, label: "n, copies of every pair" }, y: { label: "distance", log: true, decades: 6 }, margins: margins({ D }), marks: [],
        reference: "of the limiting form, against the layer with a link",
        note: linked ? "What is gathered shrinks like 1/n beside the query’s own vector." : "LN’s projection takes the link off: with and without it the features are the same.",
        lines: [
          { ...CORRECTED, id: "plain", label: "no link: balanced at any length", x: sizes, y: plain },
          { ...LAYER, id: "linked", label: "with a residual link", x: sizes, y: behind },
          { ...PRINTED, id: "late", label: "‖P(Aₙ − Aₙ′)‖/‖link‖, 2 at most", x: sizes, y: late, off: apart(late, behind) },
        ],
        bands: null,
        python: `import numpy as np
from dynamics import Layer
from yzflow_bounded_dyck import DyckLanguage, balance, gpt

language, link, turn = DyckLanguage(2, ${D}), ${link}, np.radians(${turn})
exact = balance.balanced_layer(language, rng=${runs.seed}, scale=${scale})
layer = Layer(exact.Z, exact.Y, exact.V, center=True)
times = np.unique(np.round(${end} ** (np.arange(120) / 119)))  # n
own = np.full(${width}, link * np.cos(turn) / np.sqrt(${width}))
own[:2] += link * np.sin(turn) / np.sqrt(2) * np.array([1, -1])
own -= own.mean()
size = np.linalg.norm(own)
if size <= 1e-9 * link:  # LN takes it off
    own[:] = size = 0
sums = [gpt.gathered(layer, language, int(n))[0, ${D - 1}][${D > 2 ? `(0,) * ${D - 2}` : "()"}] for n in times]


def distance(one, other):
    return np.linalg.norm(one / np.linalg.norm(one) - other / np.linalg.norm(other))


between = np.array([a - b for a, b in sums])
with np.errstate(invalid="ignore"):
    across = between - np.outer(between @ own, own) / size**2 if size else np.nan * between
    late = np.minimum(np.linalg.norm(across, axis=1) / size, 2) if size else across[:, 0]
curves = {
    "plain": np.array([distance(a, b) for a, b in sums]),
    "linked": np.array([distance(a + own, b + own) for a, b in sums]),
    "late": late,
}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };
})();
