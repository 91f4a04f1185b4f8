// Plots as SVG, drawn anew whenever what they show or their size changes. Colours are names of the style sheet's.
yzflow.plots = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const DASHES = { solid: "", dashed: "12 5", dotted: "2 4", dotdash: "3 4 12 4" };
  // Cividis (Nuñez, Anderton and Renslow 2018), which looks the same to readers who confuse red and green.
  const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];

  function svg(name, attributes = {}, ...children) {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "color") node.style[name === "line" || name === "path" ? "stroke" : "fill"] = `var(--${value})`;
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }

  function cividis(share) {
    const place = Math.min(Math.max(share, 0), 1) * (CIVIDIS.length - 1);
    const low = Math.min(Math.floor(place), CIVIDIS.length - 2);
    const part = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
    const mixed = [0, 1, 2].map((i) => Math.round(part(CIVIDIS[low], i) + (place - low) * (part(CIVIDIS[low + 1], i) - part(CIVIDIS[low], i))));
    return `rgb(${mixed.join()})`;
  }

  const raised = (k) => [...String(k)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
  const plain = (value) => (value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-4) ? value.toExponential(0).replace("e+", "e") : String(Number(value.toPrecision(8))));

  // Ticks {at, text} of an axis {min, max, log, ticks}; about one for each `every` of `room` pixels.
  function ticks({ min, max, log, ticks: given }, room, every) {
    if (given) return given;
    const out = [];
    if (!log) {
      const wish = ((max - min) * every) / room;
      const unit = 10 ** Math.floor(Math.log10(wish));
      const step = unit * ([1, 2, 5].find((n) => n * unit >= wish * 0.999) ?? 10);
      for (let n = Math.ceil(min / step - 1e-9); n * step <= max + step * 1e-9; n++) out.push({ at: n * step, text: plain(n * step) });
      return out;
    }
    const [low, high] = [Math.ceil(Math.log10(min) - 1e-9), Math.floor(Math.log10(max) + 1e-9)];
    const skip = Math.max(1, Math.ceil(((high - low + 1) * every * 0.7) / room));
    const between = high - low < 2 ? [1, 2, 5] : [1];
    for (let k = low - 1; k <= high; k++) {
      for (const n of between) {
        const at = n * 10 ** k;
        if (k % skip === 0 && at >= min * 0.999 && at <= max * 1.001) out.push({ at, text: n === 1 && Math.abs(k) > 3 ? `10${raised(k)}` : plain(at) });
      }
    }
    return out;
  }

  const span = ({ min, max, log }) => {
    const at = log ? Math.log10 : (value) => value;
    const [a, b] = [at(min), at(max)];
    return (value) => (at(value) - a) / (b - a);
  };

  let made = 0;

  // A canvas. draw({x, y, lines, points, bars, cells, marks}) shows:
  //   x, y: axes {label, min, max, log, ticks, slanted}, of y at least as much room as `letters` take; lines {x, y, color, dash, width} with null where there is none;
  //   bands {x, low, high, color}, between two lines;
  //   points {x, y, color}; bars {x, top, color}, of width 0.8, from zero; cells {left, right, y, share}, of height 1;
  //   marks {x, label, title, color, dash}, vertical lines, each with its label above it; spans {from, to, label}, below.
  // now(x, playing) moves the line at the time shown; what is to come is dimmed while it plays.
  function canvas(target) {
    const clip = `clip-${++made}`;
    let spec = null;
    let place = null; // of x, in pixels
    const pointer = svg("line", { color: "link", "stroke-width": 3, "stroke-opacity": 0.65, class: "now" });
    const ahead = svg("rect", { color: "paper", "fill-opacity": 0.8, class: "ahead" });
    let now = null;
    let dimmed = false;
    let end = 0;

    function render() {
      const [width, height] = [target.clientWidth, target.clientHeight];
      if (!spec || width < 40 || height < 40) return;
      const { x, y } = spec;
      const marks = (spec.marks || []).filter((mark) => mark.x >= x.min && mark.x <= x.max).sort((a, b) => a.x - b.x);
      const u = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16; // letters grow with the reader's
      const yTicks = ticks(y, height - 60 * u, 44 * u);
      const left = (26 + 7.2 * Math.max(y.letters ?? 0, ...yTicks.map(({ text }) => [...text].length))) * u;
      const [sx, sy] = [span(x), span(y)];
      const right = width - 18 * u;
      place = (value) => left + (right - left) * sx(value);
      const { labels: above, rows } = stacked(marks, width, u);
      const box = { left, right, top: (rows ? 5 + 14 * rows : 8) * u, bottom: height - (x.slanted ? 78 : 42) * u };
      end = box.right;
      const down = (value) => box.bottom - (box.bottom - box.top) * sy(value);
      const frame = svg("g", { class: "axes" });
      for (const { at, text } of ticks(x, box.right - box.left, 70 * u)) {
        const px = place(at);
        if (!x.ticks) frame.append(svg("line", { x1: px, x2: px, y1: box.top, y2: box.bottom, color: "line" }));
        const turned = x.slanted ? { transform: `rotate(-38 ${px} ${box.bottom + 14 * u})`, "text-anchor": "end" } : { "text-anchor": "middle" };
        frame.append(svg("text", { x: px, y: box.bottom + (x.slanted ? 14 : 17) * u, ...turned }, text));
      }
      for (const { at, text } of yTicks) {
        const py = down(at);
        if (!y.ticks) frame.append(svg("line", { x1: box.left, x2: box.right, y1: py, y2: py, color: "line" }));
        frame.append(svg("text", { x: box.left - 6 * u, y: py + 4 * u, "text-anchor": "end" }, text));
      }
      frame.append(
        svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, color: "soft" }),
        svg("line", { x1: box.left, x2: box.left, y1: box.top, y2: box.bottom, color: "soft" }),
        svg("text", { x: (box.left + box.right) / 2, y: height - 7 * u, "text-anchor": "middle", class: "label" }, x.label),
        svg("text", { x: 0, y: 0, "text-anchor": "middle", class: "label", transform: `translate(${13 * u} ${(box.top + box.bottom) / 2}) rotate(-90)` }, y.label),
      );
      const inside = svg("g", { "clip-path": `url(#${clip})` });
      for (const cell of spec.cells || []) {
        const [a, b] = [place(Math.max(cell.left, x.min)), place(Math.min(cell.right, x.max))];
        inside.append(svg("rect", { x: a, width: Math.max(b - a, 0) + 0.6, y: down(cell.y + 0.5), height: down(cell.y - 0.5) - down(cell.y + 0.5) + 0.4, fill: cividis(cell.share) }));
      }
      for (const bar of spec.bars || []) {
        if (!Number.isFinite(bar.top)) continue;
        const [a, b, base, top] = [place(bar.x - 0.4), place(bar.x + 0.4), down(Math.max(y.min, 0)), down(Math.min(bar.top, y.max))];
        inside.append(svg("rect", { x: a, width: b - a, y: Math.min(base, top), height: Math.abs(base - top), color: bar.color }));
      }
      for (const band of spec.bands || []) inside.append(svg("path", { d: around(band, x, y, down), class: "band", fill: `var(--${band.color})`, "fill-opacity": 0.28 }));
      for (const mark of marks) {
        const px = place(mark.x);
        inside.append(svg("line", { x1: px, x2: px, y1: box.top, y2: box.bottom, color: mark.color, "stroke-width": 1.8, "stroke-dasharray": DASHES[mark.dash], class: "mark", "data-label": mark.label }));
      }
      for (const line of spec.lines || []) inside.append(svg("path", { d: path(line, x, y, down), fill: "none", color: line.color, "stroke-width": line.width || 2.5, "stroke-dasharray": DASHES[line.dash || "solid"], "stroke-linejoin": "round" }));
      inside.append(ahead, pointer);
      const points = (spec.points || []).filter(({ x: at, y: value }) => at >= x.min && at <= x.max && value >= y.min && value <= y.max);
      const labels = svg("g", { class: "marks" });
      for (const point of points) labels.append(svg("circle", { cx: place(point.x), cy: down(point.y), r: 5 * u, color: point.color }));
      for (const { mark, px, row } of above) {
        // A label of an upper row is tied to its line.
        if (row < rows - 1) labels.append(svg("line", { x1: px, x2: px, y1: (17 + 14 * row) * u, y2: box.top, color: mark.color, "stroke-width": 1 }));
        labels.append(svg("text", { x: px, y: (13 + 14 * row) * u, "text-anchor": "middle", color: mark.color }, mark.label, ...(mark.title ? [svg("title", {}, mark.title)] : [])));
      }
      for (const part of spec.spans || []) {
        const [a, b] = [place(Math.max(part.from, x.min)), place(Math.min(part.to, x.max))];
        if (b - a < 7.5 * u * [...part.label].length) continue;
        labels.append(svg("text", { x: (a + b) / 2, y: box.top + 15 * u, "text-anchor": "middle", class: "span" }, part.label));
      }
      const area = svg("clipPath", { id: clip }, svg("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }));
      target.replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, area, frame, inside, labels));
      pointer.setAttribute("y1", box.top);
      pointer.setAttribute("y2", box.bottom);
      ahead.setAttribute("y", box.top);
      ahead.setAttribute("height", box.bottom - box.top);
      point();
    }

    // Where the labels of marks stand: over their lines, in as many rows as they need, none over another.
    function stacked(marks, width, u) {
      const free = []; // where the next label of a row may begin
      const labels = marks.map((mark) => {
        const half = (4.2 * [...mark.label].length + 2) * u;
        const px = Math.min(Math.max(place(mark.x), half), width - half);
        let row = free.findIndex((from) => from <= px - half);
        if (row < 0) row = free.length;
        free[row] = px + half;
        return { mark, px, row };
      });
      // The first row is the lowest, beside the plot.
      return { labels: labels.map((label) => ({ ...label, row: free.length - 1 - label.row })), rows: free.length };
    }

    function path(line, x, y, down) {
      let [d, pen] = ["", "M"];
      line.x.forEach((at, i) => {
        const value = line.y[i];
        const drawn = value !== null && Number.isFinite(value) && (!x.log || at > 0) && (!y.log || value > 0);
        if (drawn) d += `${pen}${place(at).toFixed(1)} ${down(Math.min(Math.max(value, y.min - 9 * (y.max - y.min)), y.max + 9 * (y.max - y.min))).toFixed(1)}`;
        pen = drawn ? "L" : "M";
      });
      return d;
    }

    // Along the upper line and back along the lower one.
    function around({ x: at, low, high }, x, y, down) {
      const upper = path({ x: at, y: high }, x, y, down);
      const lower = path({ x: [...at].reverse(), y: [...low].map((value) => (y.log ? Math.max(value, y.min / 10) : value)).reverse() }, x, y, down);
      return upper && lower ? `${upper}L${lower.slice(1)}Z` : "";
    }

    function point() {
      const shown = now !== null && place !== null && now >= spec.x.min && now <= spec.x.max;
      pointer.style.display = shown ? "" : "none";
      ahead.style.display = shown && dimmed ? "" : "none";
      if (!shown) return;
      pointer.setAttribute("x1", place(now));
      pointer.setAttribute("x2", place(now));
      ahead.setAttribute("x", place(now));
      ahead.setAttribute("width", Math.max(end - place(now), 0));
    }

    new ResizeObserver(render).observe(target);
    return {
      draw(next) { spec = next; render(); },
      now(value, playing = false) { now = value; dimmed = playing; if (spec) point(); },
    };
  }

  // Axis limits that hold all of `lists` (numbers, null for none) and `min`, and a little more above.
  function upTo(lists, min = 0) {
    let max = -Infinity;
    for (const list of lists) {
      for (const value of list) {
        if (value === null || !Number.isFinite(value)) continue;
        max = Math.max(max, value);
        min = Math.min(min, value);
      }
    }
    return { min, max: max > min ? min + 1.06 * (max - min) : min + 1 };
  }

  // The same limits for all data that are not far from each other: the end above is 1, 2 or 5 times a power of ten, and of
  // a logarithmic axis both ends are powers of ten, at most `decades` apart. So a slider's step rarely moves the axis.
  function steady(lists, { log = false, decades = 6, min = 0 } = {}) {
    const values = lists.flat().filter((value) => value !== null && Number.isFinite(value) && (!log || value > 0));
    const most = Math.max(...values, log ? 0 : min);
    if (!(most > (log ? 0 : min))) return log ? { log, min: 1e-3, max: 1 } : { min, max: min + 1 };
    if (log) {
      const top = Math.ceil(Math.log10(most) - 1e-9);
      const bottom = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
      return { log, min: 10 ** Math.max(Math.min(bottom, top - 1), top - decades), max: 10 ** top };
    }
    const rung = (size) => {
      const unit = 10 ** Math.floor(Math.log10(size) + 1e-9);
      return unit * ([1, 2, 5].find((n) => n * unit >= size * 0.999999) ?? 10);
    };
    const least = Math.min(...values, min);
    return { min: least < min ? min - rung(min - least) : min, max: min + rung(most - min) };
  }

  // A short line of a color and a dash, or a band, for a key.
  function swatch(name, dash = "solid", width = 3, band = false) {
    if (band) return svg("svg", { "aria-hidden": "true", class: "swatch", viewBox: "0 0 35 14" }, svg("rect", { x: 0, y: 1, width: 35, height: 12, "fill-opacity": 0.35, color: name }));
    const line = svg("line", { x1: 0, x2: 35, y1: 7, y2: 7, "stroke-width": width, "stroke-dasharray": DASHES[dash], color: name });
    return svg("svg", { "aria-hidden": "true", class: "swatch", viewBox: "0 0 35 14" }, line);
  }

  return { canvas, upTo, steady, swatch, cividis };
})();
