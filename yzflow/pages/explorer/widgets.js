// Controls, plots, tables and readouts, as plain HTML that a keyboard and a screen reader can use.
yzflow.widgets = (() => {
  const byId = (id) => document.getElementById(id);

  function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }

  // Text with η_Y and η_Z set as subscripts.
  const rich = (text) => text.split(/_([YZ])/).map((part, i) => (i % 2 ? element("sub", {}, part) : part));

  // Short for a person; the exact number is in data-value.
  function short(value) {
    if (value === null || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return "∞";
    const size = Math.abs(value);
    if (size < 1e-12) return "0"; // rounding
    if ((size < 1e-3 || size >= 1e7)) return value.toExponential(3);
    return String(Number(value.toPrecision(5)));
  }

  // A slider with a number field for the exact value. `log`: its position is log10 of the value, which is rounded to
  // three digits; `integer`: to whole numbers.
  function slider(parent, { id, label, min, max, step, log = false, integer = false, unit = "" }, change) {
    const place = (value) => (log ? Math.log10(value) : value);
    const text = element("label", { for: id }, ...rich(label));
    const range = element("input", { type: "range", id, min: place(min), max: place(max), step: log ? step : step || 1 });
    const exact = element("input", { type: "number", id: `${id}-exact`, "aria-label": `${label}: exact value`, min, max });
    exact.step = integer ? 1 : "any";
    parent.append(element("div", { class: "slider" }, text, range, exact));
    const control = {
      value: min,
      set(value) {
        control.value = value;
        range.value = place(value);
        exact.value = value;
        exact.removeAttribute("aria-invalid");
        range.setAttribute("aria-valuetext", `${short(value)} ${unit}`.trim());
      },
      limit(high) {
        range.max = place(high);
        exact.max = high;
      },
    };
    range.addEventListener("input", () => {
      let value = Number(range.value);
      if (log) value = Number((10 ** value).toPrecision(3));
      if (integer) value = Math.round(value);
      control.set(Math.min(Math.max(value, min), Number(exact.max)));
      change();
    });
    exact.addEventListener("change", () => {
      const value = Number(exact.value);
      const valid = exact.value !== "" && value >= min && value <= Number(exact.max) && (!integer || Number.isInteger(value));
      if (!valid) return exact.setAttribute("aria-invalid", "true"), exact.reportValidity();
      control.set(value);
      change();
    });
    return control;
  }

  function choices(parent, name, options, change) {
    const inputs = options.map(({ value, label }) => {
      const input = element("input", { type: "radio", name, value, id: `${name}-${value}` });
      input.addEventListener("change", change);
      parent.append(element("label", { class: "choice", for: input.id }, input, element("span", {}, label)));
      return input;
    });
    return {
      get value() { return inputs.find((input) => input.checked).value; },
      set(value) { for (const input of inputs) input.checked = input.value === value; },
      enable(value, able) { inputs.find((input) => input.value === value).disabled = !able; },
    };
  }

  function checkbox(parent, id, label, change) {
    const input = element("input", { type: "checkbox", id });
    input.addEventListener("change", change);
    parent.append(element("label", { class: "choice", for: id }, input, element("span", {}, label)));
    return input;
  }

  function presets(id, list, apply) {
    const select = element("select", { id: `${id}-preset-select` });
    list.forEach((preset, i) => select.append(element("option", { value: i }, preset.name)));
    const words = element("p", { id: `${id}-preset-text` });
    const question = element("p");
    const answer = element("p");
    const reveal = element("details", {}, element("summary", {}, "Show the answer"), answer);
    byId(`${id}-preset`).append(element("label", { for: select.id }, "Start from"), select, words, question, reveal);
    const show = () => {
      const preset = list[Number(select.value)];
      words.textContent = preset.text;
      question.replaceChildren(element("b", {}, "Question: "), preset.question);
      answer.textContent = preset.answer;
      reveal.open = false;
      apply(preset);
    };
    select.addEventListener("change", show);
    return show;
  }

  // Readouts by name: {name: label}; update with {name: number}.
  function readouts(id, labels) {
    const outputs = {};
    for (const [name, label] of Object.entries(labels)) {
      outputs[name] = element("output", { id: `${id}-${name}` });
      byId(`${id}-readouts`).append(element("div", {}, element("dt", {}, ...rich(label)), element("dd", {}, outputs[name])));
    }
    return (values) => {
      for (const [name, value] of Object.entries(values)) {
        outputs[name].textContent = short(value);
        outputs[name].dataset.value = String(value);
      }
    };
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const DASHES = { solid: "", dashed: "12 5", dotted: "3 4", dotdash: "3 4 12 4" };

  function swatch(name, dash) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const attributes = { x1: 0, x2: 35, y1: 7, y2: 7, "stroke-width": 3, "stroke-dasharray": DASHES[dash] };
    for (const [key, value] of Object.entries(attributes)) line.setAttribute(key, value);
    line.style.stroke = `var(--${name})`;
    svg.append(line);
    return svg;
  }

  // The place of a plot: title, canvas, key, one sentence, and a table with the plot's numbers.
  async function plot(id, title, item) {
    const target = element("div", { class: "canvas", id: `${id}-canvas`, role: "img" });
    target.setAttribute("aria-label", title);
    target.setAttribute("aria-describedby", `${id}-text`);
    const key = element("ul", { class: "key" });
    const text = element("p", { id: `${id}-text`, class: "small" });
    const table = element("table");
    const scroll = element("div", { class: "table", tabindex: 0, role: "region", "aria-label": `${title}: table` }, table);
    const data = element("details", {}, element("summary", {}, "Data table"), scroll);
    byId(id).append(element("h3", {}, title), target, key, text, data);
    await Bokeh.embed.embed_item(item, target);
    const model = Bokeh.documents.at(-1);
    const get = (name) => model.get_model_by_name(name);
    return {
      get,
      // Lines as {label, color, dash, width, x, y}; color is a name of the style sheet's.
      lines(list, points = []) {
        get("lines").data = {
          xs: list.map((line) => line.x),
          ys: list.map((line) => line.y.map((y) => (y === null ? NaN : y))),
          color: list.map((line) => colour(line.color)),
          dash: list.map((line) => DASHES[line.dash] || "solid"),
          width: list.map((line) => line.width || 2.5),
        };
        get("points").data = {
          x: points.map((point) => point.x),
          y: points.map((point) => point.y),
          color: points.map((point) => colour(point.color)),
        };
      },
      spans(values) {
        for (const [name, value] of Object.entries(values)) get(name).location = value;
      },
      range(end, start = 0) { get("x").setv({ start, end }); },
      key(list) {
        key.replaceChildren(...list.map(({ label, color, dash }) => element("li", {}, swatch(color, dash || "solid"), ...rich(label))));
      },
      text(sentence) { text.textContent = sentence; },
      table(caption, columns, rows) {
        const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
        const body = rows.map((row) =>
          element("tr", {}, ...row.map((value, i) => {
            const cell = element(i ? "td" : "th", i ? {} : { scope: "row" }, typeof value === "string" ? value : short(value));
            cell.dataset.value = String(value);
            return cell;
          })),
        );
        table.replaceChildren(element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body));
      },
      recolour() {
        const [ink, soft, line] = ["ink", "soft", "line"].map(colour);
        for (const axis of ["x-axis", "y-axis"]) {
          get(axis).setv({
            axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: soft, major_tick_line_color: soft,
          });
        }
        for (const grid of ["x-grid", "y-grid"]) if (get(grid).grid_line_color !== null) get(grid).grid_line_color = line;
        const bar = get("bar");
        if (bar) bar.setv({ major_label_text_color: ink, title_text_color: ink });
        for (const name of ["peak", "scanning", "snapping", "now"]) {
          const span = get(name);
          if (span) span.line_color = colour("mark");
        }
      },
    };
  }

  // Every n-th of a list's indices, the last one among them.
  function sample(length, wanted) {
    const step = Math.max(1, Math.floor((length - 1) / wanted));
    const indices = [];
    for (let i = 0; i < length; i += step) indices.push(i);
    if (indices.at(-1) !== length - 1) indices.push(length - 1);
    return indices;
  }

  // Run at most once in a frame, and not before the last change of that frame.
  function later(action) {
    let pending = false;
    return () => {
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => { pending = false; action(); });
    };
  }

  return { byId, element, short, slider, choices, checkbox, presets, readouts, colour, plot, sample, later, rich };
})();
