// Controls, plots, tables and readouts, as plain HTML that a keyboard and a screen reader can use.
//
// A control has a `value`, `set(value)` and `parse(text)`, which is undefined for what the control cannot show.
yzflow.widgets = (() => {
  const byId = (id) => document.getElementById(id);

  function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }

  // Text with η_Y and η_Z set as subscripts.
  const rich = (text) => text.split(/(?<=η)_([YZ])/).map((part, i) => (i % 2 ? element("sub", {}, part) : part));

  // Short for a person; the exact number is in data-value. With `holds`, as many digits as keep it on its side.
  function short(value, holds = () => true) {
    if (value === null || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return "∞";
    const size = Math.abs(value);
    if (size < 1e-12) return "0"; // rounding
    const words = (digits) => (size < 1e-3 || size >= 1e7 ? value.toExponential(digits - 2) : String(Number(value.toPrecision(digits))));
    let digits = 5;
    while (digits < 17 && holds(Number(words(digits))) !== holds(value)) digits += 1;
    return words(digits);
  }

  const plain = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 6 });

  // In a sentence, three digits.
  const brief = (value) => short(Number(value.toPrecision(3))).replace(/\.?0*e\+?/, "e");

  // A slider with a number field for the exact value. `log`: its position is log10 of the value, which is rounded to
  // three digits; `integer`: to whole numbers; `exact`: whether it has the number field. A number that is not in the range
  // stays marked, with the range in words, until it is mended or the slider is moved.
  function slider(parent, { id, label, min, max, step, log = false, integer = false, unit = "", exact: typed = true }, change) {
    const place = (value) => (log ? Math.log10(value) : value);
    const text = element("label", { for: id }, ...rich(label));
    const range = element("input", { type: "range", id, min: place(min), max: place(max), step: log ? step : step || 1 });
    const exact = element("input", { type: "number", id: `${id}-exact`, "aria-label": `${label.replace("_", "")}: exact value`, min, max });
    exact.step = integer ? 1 : "any";
    const wrong = element("p", { class: "wrong", id: `${id}-wrong`, role: "alert" });
    exact.setAttribute("aria-describedby", wrong.id);
    parent.append(element("div", { class: "slider" }, text, range, ...(typed ? [exact, wrong] : [])));
    const control = {
      value: min,
      set(value) {
        control.value = value;
        range.value = place(value);
        exact.value = value;
        exact.removeAttribute("aria-invalid");
        wrong.textContent = "";
        range.setAttribute("aria-valuetext", `${short(value)} ${unit}`.trim());
      },
      parse(text) {
        const value = Number(text);
        const valid = text.trim() !== "" && value >= min && value <= max && (!integer || Number.isInteger(value));
        return valid ? value : undefined;
      },
    };
    range.addEventListener("input", () => {
      let value = Number(range.value);
      if (log) value = Number((10 ** value).toPrecision(3));
      if (integer) value = Math.round(value);
      control.set(Math.min(Math.max(value, min), max));
      change();
    });
    exact.addEventListener("change", () => {
      const value = control.parse(exact.value);
      if (value === undefined) {
        exact.setAttribute("aria-invalid", "true");
        const now = `${integer ? "a whole number " : ""}from ${plain(min)} to ${plain(max)}`;
        wrong.replaceChildren(`Not used: this must be ${now}. Still at ${plain(control.value)}.`);
        return;
      }
      control.set(value);
      change();
    });
    return control;
  }

  // Radio buttons {value, label, more}; `more` are nodes before and after the label.
  function choices(parent, name, options, change) {
    const inputs = options.map(({ value, label, before = [], after = [] }) => {
      const input = element("input", { type: "radio", name, value, id: `${name}-${value}` });
      input.addEventListener("change", change);
      parent.append(element("label", { class: "choice", for: input.id }, input, ...before, element("span", {}, label), ...after));
      return input;
    });
    return {
      get value() { return inputs.find((input) => input.checked).value; },
      set(value) { for (const input of inputs) input.checked = input.value === value; },
      parse: (text) => (inputs.some((input) => input.value === text) ? text : undefined),
      enable(value, able) { inputs.find((input) => input.value === value).disabled = !able; },
    };
  }

  // A list that unfolds: options {value, label}. Its `node` is for the caller to place; `label` is what it chooses.
  function select({ id, label, options }, change) {
    const node = element("select", { id, "aria-label": label }, ...options.map((one) => element("option", { value: one.value }, one.label)));
    node.addEventListener("change", change);
    return {
      node,
      get value() { return node.value; },
      set(value) { node.value = value; },
      parse: (text) => (options.some(({ value }) => value === text) ? text : undefined),
      enable(able) { node.disabled = !able; },
    };
  }

  function checkbox(parent, id, label, change) {
    const input = element("input", { type: "checkbox", id });
    input.addEventListener("change", change);
    parent.append(element("label", { class: "choice", for: id }, input, element("span", {}, label)));
    return {
      get value() { return input.checked; },
      set(value) { input.checked = value; },
      parse: (text) => ({ true: true, false: false })[text],
    };
  }

  // Readouts by name: {name: label}; update with {name: number}. What `holds` with a name and a number is never rounded away.
  function readouts(id, labels, holds = () => true) {
    const outputs = {};
    for (const [name, label] of Object.entries(labels)) {
      outputs[name] = element("output", { id: `${id}-${name}` });
      byId(`${id}-readouts`).append(element("div", {}, element("dt", {}, ...rich(label)), element("dd", {}, outputs[name])));
    }
    return (values) => {
      for (const [name, value] of Object.entries(values)) {
        outputs[name].textContent = short(value, (number) => holds(name, number));
        outputs[name].dataset.value = String(value);
      }
    };
  }

  // The place of a plot: title, whom it obeys, canvas, key, one sentence, and a table with the plot's numbers. Words and
  // table stand in the element `${id}-words` if there is one.
  function plot(id, title) {
    const target = element("div", { class: "canvas", id: `${id}-canvas`, role: "img" });
    target.setAttribute("aria-label", title);
    target.setAttribute("aria-describedby", `${id}-text`);
    const scope = element("span", { class: "scope" });
    const key = element("ul", { class: "key" });
    const text = element("p", { id: `${id}-text`, class: "small" });
    const table = element("table");
    const scroll = element("div", { class: "table", tabindex: 0, role: "region", "aria-label": `${title}: table` }, table);
    const data = element("details", { class: "data" }, element("summary", {}, "Data table"), scroll);
    const heading = element("span", {}, title);
    byId(id).append(element("h3", {}, heading, " ", scope), target, key);
    (byId(`${id}-words`) ?? byId(id)).append(text, data);
    const { draw, now } = yzflow.plots.canvas(target);
    return {
      draw,
      now,
      title(words) {
        heading.textContent = words;
        target.setAttribute("aria-label", words);
      },
      // What the plot shows of the levels: all, the chosen one, or that it is the same for all.
      scope(words) { scope.textContent = words; },
      key(list) {
        key.replaceChildren(...list.map(({ label, color, dash, band }) => element("li", {}, yzflow.plots.swatch(color, dash, 3, band), ...rich(label))));
      },
      text(sentence) { text.replaceChildren(...rich(sentence)); },
      table(caption, columns, rows) {
        const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
        const body = rows.map((row) =>
          element("tr", {}, ...row.map((value, i) => {
            const cell = element(i ? "td" : "th", i ? {} : { scope: "row" }, typeof value === "string" ? value : short(value));
            cell.dataset.value = String(value ?? NaN);
            return cell;
          })),
        );
        table.replaceChildren(element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body));
      },
    };
  }

  // Buttons that each have a symbol, with what it is in the title: shown on hover, and below the row after a tap or a key.
  function symbols(row) {
    const said = row.querySelector("[role=status]");
    const buttons = [...row.querySelectorAll("button")];
    for (const button of buttons) {
      button.addEventListener("click", () => {
        const open = button.getAttribute("aria-expanded") === "true";
        for (const other of buttons) other.setAttribute("aria-expanded", "false");
        button.setAttribute("aria-expanded", String(!open));
        said.replaceChildren(...(open ? [] : [element("b", {}, ...[...button.childNodes].map((node) => node.cloneNode(true))), ": ", ...rich(button.title)]));
      });
    }
  }

  // Every n-th of a list's indices, the last one among them.
  function sample(length, wanted) {
    const step = Math.max(1, Math.floor((length - 1) / wanted));
    const indices = [];
    for (let i = 0; i < length; i += step) indices.push(i);
    if (indices.at(-1) !== length - 1) indices.push(length - 1);
    return indices;
  }

  // T of SGD's sequences in words; runs are called by its digits, or "infinity" in the limit.
  const lengthOf = (name) => `T = ${name === "infinity" ? "∞" : Number(name).toLocaleString("en-US")}`;

  // Run at most once in a frame, and not before the last change of that frame.
  function later(action) {
    let pending = false;
    return () => {
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => { pending = false; action(); });
    };
  }

  // A Play button that moves a clock from 0 to 100; `isOn` tells whether it plays.
  function player(id, clock, draw) {
    const button = byId(id);
    let timer = null;
    function play(on) {
      clearInterval(timer);
      timer = on ? setInterval(() => {
        clock().set(Math.min(100, clock().value + 1));
        draw();
        if (clock().value >= 100) play(false);
      }, 80) : null;
      button.textContent = on ? "Pause" : "Play";
      button.setAttribute("aria-pressed", String(on));
    }
    button.addEventListener("click", () => {
      if (timer === null && clock().value >= 100) clock().set(0);
      play(timer === null);
    });
    return { isOn: () => timer !== null };
  }

  return { byId, element, short, brief, slider, choices, select, checkbox, readouts, plot, sample, symbols, lengthOf, later, player, rich };
})();
