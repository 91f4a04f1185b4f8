// The plot with sliders on the page of a statement. What it shows is a view, an entry of yzflow.views from the scripts of
// the paper's room:
//   title, sliders {name: as for widgets.slider}, adjust(controls) for sliders that bind each other;
//   compute(setting, runs): {x, y, lines, bands, marks, reference, margins, note, python}, where x is an axis, y {label, log,
//   min, decades}, lines have id, label, color, dash, width, x, y and, against the reference, `off`; bands are of SGD at the
//   first preset's setting, {x, low, high, color, seeds} for each length T of its sequences that `told` has a sentence on, the
//   last of which, "infinity", is drawn beside the others; margins are by the text of the assumption; python is a program that
//   leaves `times` and `curves`.
yzflow.views = {};

// Relative differences of one list from another, where both are there. Its property `whole` is the largest difference, over
// the largest value of the other list: where that is nearly nothing, a relative difference has no meaning as a number.
yzflow.apart = (values, reference) => {
  const there = (value) => value !== null && Number.isFinite(value);
  const largest = (list) => list.reduce((most, value) => (there(value) ? Math.max(most, Math.abs(value)) : most), 0);
  const off = values.map((value, i) => {
    const [a, b] = [value, reference[i]];
    return a === null || b === null || b === 0 || !Number.isFinite(a / b) ? null : Math.abs(a / b - 1);
  });
  const difference = values.map((value, i) => (there(value) && there(reference[i]) ? value - reference[i] : null));
  return Object.assign(off, { whole: largest(difference) / largest(reference) });
};

yzflow.panels.live = ({ view: name, presets, assumptions, runs, told }) => {
  const w = yzflow.widgets;
  const { plots: { steady, swatch } } = yzflow;
  const view = yzflow.views[name];
  const LETTERS = 5; // room beside both axes, so that the plots' times stand below each other
  const plots = { curves: w.plot("curves", view.title), difference: w.plot("difference", "Disagreement") };
  const controls = {};
  let found;
  let bench;
  const update = () => bench.draw();
  for (const [key, more] of Object.entries(view.sliders)) controls[key] = w.slider(w.byId("live-sliders"), { id: `set-${key}`, ...more }, update);
  const sliders = Object.keys(controls);
  const lengths = Object.keys(told ?? {});
  const LIMIT = lengths.at(-1);
  if (told) {
    const label = "T, tokens in each of SGD’s sequences";
    controls.sequences = w.select({ id: "set-sequences", label, options: lengths.map((value) => ({ value, label: w.lengthOf(value) })) }, update);
    w.byId("curves").prepend(w.element("span", { class: "sequences" }, "SGD: ", controls.sequences.node));
  }
  const start = ({ setting }) => ({ ...Object.fromEntries(sliders.map((key) => [key, setting[key]])), ...(told ? { sequences: lengths[0] } : {}) });
  const read = () => Object.fromEntries(sliders.map((key) => [key, controls[key].value]));

  function draw() {
    view.adjust?.(controls);
    const setting = { ...presets[0].setting, ...read() };
    found = view.compute(setting, runs);
    const { x, y, lines, bands, marks = [], reference, note } = found;
    // The length of training does not matter to a run that goes on from there.
    const moved = sliders.filter((key) => key !== "end" && controls[key].value !== presets[0].setting[key]);
    const away = moved.length ? ": as the page opened, not at these sliders" : "";
    const chosen = controls.sequences?.value;
    const every = Object.entries(bands ?? {}).map(([length, band]) => ({
      ...band, length, y: band.high, dash: length === chosen ? "solid" : "dotted", width: 3, band: band.seeds > 1,
      label: `SGD, ${band.seeds > 1 ? `${band.seeds} seeds, ` : ""}${w.lengthOf(length)}${away}`,
    }));
    const ofSgd = every.filter(({ length }) => length === chosen || length === LIMIT);
    const { label, ...how } = y;
    plots.curves.draw({
      x, y: { label, letters: LETTERS, ...steady([...lines.map((line) => line.y), ...every.flatMap(({ low, high }) => [low, high])], how) }, marks,
      lines: [...lines, ...ofSgd.filter(({ band }) => !band)], bands: ofSgd.filter(({ band }) => band),
    });
    plots.curves.key([...lines, ...ofSgd]);
    w.byId("live-band").hidden = !bands;
    w.byId("live-told").textContent = chosen ? told[chosen] : "";
    const last = (list) => list.at(-1);
    const at = `At ${x.symbol} = ${w.brief(last(lines[0].x))}`;
    const ends = ofSgd.map(({ label: name, x: steps, low, high, band }) => `${name}, after ${last(steps)} steps: ${band ? `${w.brief(last(low))} to ` : ""}${w.brief(last(high))}`);
    const said = lines.map((line) => `${line.label}: ${last(line.y) === null ? "–" : w.brief(last(line.y))}`);
    plots.curves.text(`${at}: ${said.join("; ")}.${ends.map((one) => ` ${one}.`).join("")}${note ? ` ${note}` : ""}`);

    const against = lines.filter((line) => line.off);
    // One range for all settings: from a millionth to a hundred times.
    const range = { label: "relative difference", letters: LETTERS, min: 1e-6, max: 100, log: true };
    plots.difference.draw({ x, y: range, lines: against.map((line) => ({ ...line, y: line.off })), marks });
    plots.difference.scope(reference);
    const largest = ({ off }) => off.reduce((most, value) => (value !== null && value > most ? value : most), 0);
    const compared = (words, those, pick) => (those.length ? [`${words}: ${those.map((line) => `${line.label}: ${percent(pick(line))}`).join("; ")}.`] : []);
    plots.difference.key([]);
    plots.difference.text([
      ...compared("Largest difference, over the largest value of what it is measured against", against.filter(({ off }) => "whole" in off), ({ off }) => off.whole),
      ...compared("The largest in the plot", against.filter(({ off }) => !("whole" in off)), largest),
    ].join(" "));
    tables();

    const shown = Object.keys(assumptions).filter((text) => text in found.margins).map((text) => {
      const margin = found.margins[text];
      const words = w.element("span", { "data-assumption": text });
      words.innerHTML = assumptions[text]; // made by Python
      const item = w.element("li", margin < 1 ? { class: "broken" } : {}, words, ": ", w.element("output", {}, w.brief(margin)), margin < 1 ? " (broken)" : "");
      item.querySelector("output").dataset.value = String(margin);
      return item;
    });
    w.byId("live-margins").replaceChildren(...shown);
    w.byId("live-assumptions").hidden = shown.length === 0;
  }

  const percent = (value) => (!Number.isFinite(value) ? "–" : value < 1e-6 ? "below 1e-6" : value < 10 ? `${w.brief(100 * value)}%` : `${w.brief(value)} times`);

  function tables() {
    const { x, lines } = found;
    const rows = w.sample(lines[0].x.length, 10);
    const of = (list, pick) => rows.map((i) => [lines[0].x[i], ...list.map((line) => pick(line)[i])]);
    plots.curves.table(view.title, [x.symbol, ...lines.map((line) => line.label)], of(lines, (line) => line.y));
    const against = lines.filter((line) => line.off);
    plots.difference.table("Relative difference", [x.symbol, ...against.map((line) => line.label)], of(against, (line) => line.off));
  }

  const python = () => found.python;
  const data = () => ({
    columns: ["curve", found.x.symbol, "value", "difference"],
    rows: [
      ...found.lines.flatMap((line) => line.x.map((at, i) => [line.id, at, line.y[i], line.off ? line.off[i] : null])),
      ...Object.entries(found.bands ?? {}).flatMap(([length, { x, low, high }]) => x.flatMap((at, i) => [["smallest", low], ["largest", high]].map(([end, of]) => [`SGD, T = ${length}, ${end}`, at, of[i], null]))),
    ],
  });

  bench = yzflow.bench.build("live", { presets, controls, start, draw, python, data, free: ["sequences"] });
  bench.start();
};
