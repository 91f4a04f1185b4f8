// The table of docs/survival.md as a matrix to filter; without this script the page shows the compact table.
// The data is `_static/survival_data.js`, made with the page by `python docs/writers/survival_page.py`.
"use strict";
(() => {
  const data = window.yzflowSurvival;
  const place = document.getElementById("survival");
  if (!data || !place) return;
  const { fates, checks, options, settings, levels } = data;
  const [HOLDS, LATER] = [0, 1];
  // A cell's place counts through checks, options, settings and levels, the last fastest.
  const cells = data.cells.place.map((place, i) => ({
    ...Object.fromEntries(Object.entries(data.cells).map(([name, all]) => [name, all[i]])),
    level: place % levels.length,
    setting: Math.floor(place / levels.length) % settings.length,
    option: Math.floor(place / levels.length / settings.length) % options.length,
    check: Math.floor(place / levels.length / settings.length / options.length),
  }));
  const make = (tag, more = {}, ...inside) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(more)) if (name in node) node[name] = value; else node.setAttribute(name, value);
    node.append(...inside);
    return node;
  };

  // Filters

  const statements = [...new Set(checks.map((one) => one.number))];
  const filters = {
    statement: { label: "Statement", names: statements, of: (cell) => statements.indexOf(checks[cell.check].number) },
    option: { label: "Option", names: options.map((one) => one.name), of: (cell) => cell.option },
    setting: { label: "Setting", names: settings, of: (cell) => cell.setting },
    level: { label: "Level", names: levels, of: (cell) => cell.level },
    verdict: { label: "Verdict", names: fates.map((one) => one.words), of: (cell) => cell.verdict },
  };
  const form = make("form", { className: "filters" });
  form.setAttribute("aria-label", "Filters of the matrix");
  for (const [name, filter] of Object.entries(filters)) {
    filter.select = make("select", { id: `survival-${name}` }, make("option", { value: "" }, "all"));
    filter.names.forEach((one, i) => filter.select.append(make("option", { value: i }, one)));
    filter.select.addEventListener("change", () => draw());
    form.append(make("label", { htmlFor: filter.select.id }, filter.label, filter.select));
  }
  form.append(make("button", { type: "reset" }, "Show all"));
  form.addEventListener("reset", () => setTimeout(draw));
  form.addEventListener("submit", (event) => event.preventDefault());
  const chosen = () => cells.filter((cell) => Object.values(filters).every(({ select, of }) => select.value === "" || of(cell) === Number(select.value)));

  // The matrix

  const said = make("p", { className: "said", role: "status" });
  const table = make("table");
  const scroll = make("div", { className: "matrix" }, table);
  const dialog = make("dialog", { className: "survival-run" });
  dialog.setAttribute("aria-labelledby", "survival-run");
  place.replaceChildren(form, said, scroll, dialog);

  const held = (found) => found.filter((cell) => cell.verdict === HOLDS || cell.verdict === LATER).length;
  const words = (found) => {
    const kinds = [...new Set(found.map((cell) => cell.verdict))];
    return kinds.length === 1 ? fates[kinds[0]].words : `${held(found)} of ${found.length} hold`;
  };
  function button(found, check, option) {
    const kinds = [...new Set(found.map((cell) => cell.verdict))];
    const own = found.some((cell) => (cell.own === HOLDS || cell.own === LATER) && cell.verdict !== HOLDS && cell.verdict !== cell.own);
    const mark = (kinds.length === 1 ? fates[kinds[0]].sign : `${held(found)}/${found.length}`) + (own ? "*" : "");
    const node = make("button", { type: "button", className: kinds.length === 1 ? fates[kinds[0]].name : "MIXED", tabIndex: -1 }, mark);
    node.style.setProperty("--share", `${(100 * held(found)) / found.length}%`);
    node.setAttribute("aria-label", `${checks[check].label}, ${options[option].name}: ${words(found)}${own ? ", some in its own form" : ""}`);
    node.addEventListener("click", () => open(found, check, option));
    return node;
  }
  function draw() {
    const found = chosen();
    const groups = new Map();
    for (const cell of found) {
      const key = cell.check * options.length + cell.option;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(cell);
    }
    const columns = options.map((_, i) => i).filter((i) => found.some((cell) => cell.option === i));
    const rows = checks.map((_, i) => i).filter((i) => found.some((cell) => cell.check === i));
    const head = make("tr", {}, make("th", { scope: "col" }, "check"));
    for (const i of columns) head.append(make("th", { scope: "col", title: options[i].text }, make("span", {}, options[i].name)));
    const body = make("tbody");
    for (const row of rows) {
      const line = make("tr", {}, make("th", { scope: "row" }, checks[row].label));
      for (const column of columns) {
        const own = groups.get(row * options.length + column);
        line.append(make("td", {}, ...(own ? [button(own, row, column)] : [])));
      }
      body.append(line);
    }
    table.replaceChildren(make("caption", {}, "Checks by options; a cell opens its runs"), make("thead", {}, head), body);
    const first = table.querySelector("td button");
    if (first) first.tabIndex = 0;
    const counts = fates.map((fate, i) => [found.filter((cell) => cell.verdict === i).length, fate]).filter(([n]) => n);
    said.textContent = `${found.length} of ${cells.length} runs: ${counts.map(([n, fate]) => `${n} ${fate.words} ${fate.sign}`).join(", ") || "none"}`;
  }
  // One cell is reached by Tab, the others from it by arrow keys.
  const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  table.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const from = event.target.closest("td");
    if (!step || !from) return;
    event.preventDefault();
    let [row, column] = [from.parentNode.sectionRowIndex, from.cellIndex];
    for (;;) {
      [row, column] = [row + step[0], column + step[1]];
      const line = table.tBodies[0].rows[row];
      if (!line || !line.cells[column] || column < 1) return;
      const next = line.cells[column].querySelector("button");
      if (next) return next.focus();
    }
  });
  table.addEventListener("focusin", (event) => {
    for (const node of table.querySelectorAll("button[tabindex='0']")) node.tabIndex = -1;
    event.target.tabIndex = 0;
  });

  // A cell's runs

  const size = (x) => (x === null ? "" : String(x));
  const verdict = (i) => (i < 0 ? "" : `${fates[i].sign} ${fates[i].words}`);
  const block = (text) => make("pre", { tabIndex: 0 }, make("code", {}, text));
  function open(found, check, option) {
    const one = checks[check];
    const heads = ["setting", "level", "verdict", "error", "under the option", "error", "more"];
    const lines = found.map((cell) => {
      const margin = data.margins[check][cell.setting][cell.level];
      const more = [
        data.why[cell.why],
        cell.from === null ? "" : `from step ${cell.from} on`,
        cell.votes ? `${cell.votes[0]} runs for, ${cell.votes[1]} against, p = ${cell.p}` : "",
        margin === null || margin >= 1 ? "" : `outside: margin ${margin}`,
      ];
      const shown = [settings[cell.setting], levels[cell.level], verdict(cell.verdict), size(cell.error), verdict(cell.own), size(cell.own_error), more.filter(Boolean).join("; ")];
      return make("tr", {}, ...shown.map((text) => make("td", {}, text)));
    });
    const python = [`import yzflow as yz`, `table = yz.survival(["${one.statement}"], ["${options[option].name}"]${data.quick ? ", quick=True" : ""})`];
    if (options[option].name === "plain") python.push(`print(yz.check("${one.statement}"${data.quick ? "" : ", quick=False"}).text())`);
    const close = make("button", { type: "button" }, "Close");
    close.addEventListener("click", () => dialog.close());
    dialog.replaceChildren(
      close,
      make("h2", { id: "survival-run" }, `${one.label}; ${options[option].name}`),
      make("p", {}, `${options[option].text[0].toUpperCase()}${options[option].text.slice(1)}. `, one.reversible ? "The error is the share of wrong signs" : "The error is relative", `; it holds up to ${one.tolerance}. "Under the option" is the form that the statement has there, where one is known.`),
      make("p", {}, `To run it again${data.levels[5] ? " (fewer tests than in the whole table, so that what is undecided there may be decided)" : ""}:`),
      block(`yzflow survival --statements "${one.statement}" --options "${options[option].name}"${data.quick ? " --quick" : ""} --out survival.nc`),
      block(python.join("\n")),
      make("div", { className: "matrix", tabIndex: 0, role: "region", ariaLabel: "Runs" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...lines))),
    );
    dialog.showModal();
  }
  draw();
})();
