// What every panel offers around its controls: presets, reset, a link that opens the page as it is now, the same in
// Python, the data as a file.
yzflow.bench = (() => {
  const { byId, element } = yzflow.widgets;
  // A file has another address on each machine; what follows its name is the same.
  const LOCAL = "Link copied: the name of this file and what it shows. Send the file too, open it there, and write all from # on behind its address.";
  const benches = new Map();
  let touched = null; // the panel that was changed last: a link opens there
  let timer = null;

  // The address names the preset, if it is not the first, and what differs from it: #at=PANEL&PANEL.preset=1&PANEL.size=7
  function address() {
    const parameters = new URLSearchParams();
    for (const [id, bench] of benches) for (const [key, value] of bench.differences()) parameters.set(`${id}.${key}`, value);
    return parameters.size ? `#at=${touched}&${parameters}` : "";
  }

  // Browsers refuse an address that changes many times a second.
  function note(id) {
    touched = id;
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState(null, "", address() || location.pathname + location.search), 200);
  }

  // Bring every panel to what the address says; words that no control knows are left out.
  function restore() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    if (!parameters.has("at")) return;
    for (const [id, bench] of benches) bench.restore((key) => parameters.get(`${id}.${key}`));
    if (benches.has(parameters.get("at"))) {
      touched = parameters.get("at");
      if ([...benches.keys()][0] !== touched) byId(touched).scrollIntoView();
    }
  }

  async function copy(text, status, what) {
    try {
      await navigator.clipboard.writeText(text);
      status.textContent = what;
    } catch {
      status.textContent = `This browser lets no page copy. To copy by hand: ${text}`;
    }
  }

  function download(name, text) {
    const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    const link = element("a", { href: url, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  // Names of a reader's own may hold commas and quotes.
  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const written = (cell) => (cell === null || Number.isNaN(cell) ? "" : quoted(String(cell)));
  const csv = ({ columns, rows }) => [columns, ...rows].map((row) => row.map(written).join(",")).join("\n") + "\n";

  // A panel's bench. `controls`: by name; `start(preset)`: their values; `draw()`; `python()`: a program; `data()`:
  // {columns, rows}; `free`: controls that change what is shown, and not what the preset's words are about. Returns
  // {preset, draw}: draw notes the state in the address, too.
  function build(id, { presets, controls, start, draw, python, data, free = [] }) {
    const select = element("select", { id: `${id}-preset-select` });
    presets.forEach((preset, i) => select.append(element("option", { value: i }, preset.name)));
    const words = element("p", { id: `${id}-preset-text` });
    const question = element("p");
    const answer = element("p");
    const reveal = element("details", {}, element("summary", {}, "Show the answer"), answer);
    const row = element("div", { class: "from" }, element("label", { for: select.id }, "Start from"), select);
    const left = element("p", { class: "left", role: "status", id: `${id}-left` });
    byId(`${id}-preset`).append(row, left, words, ...(presets.some((one) => one.question) ? [question, reveal] : []));

    const moved = () => Object.entries(start(preset())).filter(([name, value]) => controls[name].value !== value).map(([name]) => name);
    // The words of a preset are about its own values.
    function leave() {
      const gone = moved().some((name) => !free.includes(name));
      const said = "You have changed this example. Its words and its answer are about its own values, and are hidden: Reset brings them back.";
      if (left.textContent !== (gone ? said : "")) left.textContent = gone ? said : "";
      for (const node of [words, question, reveal]) node.hidden = gone;
    }

    const preset = () => presets[Number(select.value)];
    function apply() {
      const { text, question: asked, answer: given } = preset();
      words.textContent = text;
      question.replaceChildren(element("b", {}, "Question: "), asked ?? "");
      answer.textContent = given ?? "";
      reveal.open = false;
      for (const [name, value] of Object.entries(start(preset()))) controls[name].set(value);
      draw();
      leave();
    }
    const changed = () => { apply(); note(id); renew(); };
    select.addEventListener("change", changed);

    const status = element("p", { class: "small", role: "status", id: `${id}-status` });
    const program = element("pre", { id: `${id}-python`, tabindex: 0 });
    const button = (name, label, action) => {
      const node = element("button", { type: "button", id: `${id}-${name}` }, label);
      node.addEventListener("click", action);
      return node;
    };
    const copied = button("copy", "Copy as Python", () => copy(python(), status, "Program copied."));
    const shown = element("details", { class: "program" }, element("summary", {}, "The same in Python"), copied, program);
    const renew = () => { if (shown.open) program.textContent = python(); };
    shown.addEventListener("toggle", renew);
    byId(`${id}-actions`).append(
      button("reset", "Reset", () => { changed(); status.textContent = "As the preset has it."; }),
      button("link", "Copy link", () => {
        touched = id;
        history.replaceState(null, "", address() || location.pathname + location.search);
        const own = location.protocol === "file:";
        copy(own ? location.pathname.split("/").pop() + location.hash : location.href, status, own ? LOCAL : "Link copied.");
      }),
      button("download", "Download data", () => { download(`yzflow-${id}.csv`, csv(data())); status.textContent = "Data written as CSV."; }),
      status, shown,
    );
    for (const form of byId(id).querySelectorAll("form")) form.addEventListener("submit", (event) => event.preventDefault());

    benches.set(id, {
      differences() {
        const found = moved().map((name) => [name, String(controls[name].value)]);
        return Number(select.value) ? [["preset", select.value], ...found] : found;
      },
      restore(get) {
        const wanted = Number(get("preset") ?? 0);
        select.value = String(presets[wanted] ? wanted : 0);
        apply();
        for (const [name, control] of Object.entries(controls)) {
          const text = get(name);
          const value = text === null ? undefined : control.parse(text);
          if (value !== undefined) control.set(value);
        }
        draw();
        leave();
        renew();
      },
    });
    return {
      preset,
      start: apply,
      note: () => note(id),
      draw: yzflow.widgets.later(() => { draw(); leave(); note(id); renew(); status.textContent = ""; }),
    };
  }

  return { build, restore };
})();
