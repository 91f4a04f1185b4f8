// A table of classes that can be edited: rows are classes (next token, query, weight), columns tokens, cells how often a
// token occurs. Numbers that are wrong are marked and said in words, and the last valid table stays.
yzflow.classTable = (parent, { id, limits, changed, say }) => {
  const { element } = yzflow.widgets;
  const most = String(limits.largest);
  const copy = (table) => ({ tokens: [...table.tokens], rows: table.rows.map((row) => ({ ...row, counts: [...row.counts] })) });
  const plain = (text) => {
    const read = text.trim();
    if (read === "") return 0;
    return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(read) ? Number(read) : read; // what is no number stays text
  };
  const shown = (value) => (typeof value === "number" ? String(Number.isInteger(value) ? value : Number(value.toPrecision(4))) : value);

  let table = { tokens: [], rows: [] }; // the last valid one
  let draft = table; // as the fields have it; an entry that is no number is text

  // A table as text, for the address: [tokens, [name, query, weight, counts..], ..].
  const written = ({ tokens, rows }) => JSON.stringify([tokens, ...rows.map(({ name, query, weight, counts }) => [name, query, weight, ...counts])]);

  function read(text) {
    let given;
    try { given = JSON.parse(text); } catch { return undefined; }
    if (!Array.isArray(given) || !given.every(Array.isArray) || given.length < 1) return undefined;
    const [tokens, ...rows] = given;
    const fits = rows.length >= 2 && rows.length <= limits.classes && tokens.length >= 1 && tokens.length <= limits.tokens;
    if (!fits || rows.some((row) => row.length !== tokens.length + 3)) return undefined;
    const named = [...tokens, ...rows.flatMap((row) => row.slice(0, 2))];
    const numbers = rows.flatMap((row) => row.slice(2));
    if (named.some((name) => typeof name !== "string") || numbers.some((value) => typeof value !== "number")) return undefined;
    const found = { tokens, rows: rows.map(([name, query, weight, ...counts]) => ({ name, query, weight, counts })) };
    return problems(found).length ? undefined : found;
  }

  // What is wrong with a table: fields, and a sentence each.
  function problems({ tokens, rows }) {
    const found = [];
    const wrong = (fields, text) => found.push({ fields: [fields].flat().map((field) => `${id}-${field}`), text });
    const called = (n) => (rows[n].name.trim() ? `“${rows[n].name}”` : `class ${n + 1}`);
    const token = (l) => (tokens[l].trim() ? `“${tokens[l]}”` : `token ${l + 1}`);
    const name = (field, text, what) => {
      const fits = text.trim() !== "" && text.length <= limits.letters;
      if (!fits) wrong(field, `${what} must have a name of 1 to ${limits.letters} characters.`);
    };
    const once = (list, field, what) => list.forEach((text, i) => {
      const first = list.indexOf(text);
      if (first < i && text.trim() !== "") wrong([`${field}-${first}`, `${field}-${i}`], `Two ${what} must have different names, but both are “${text}”.`);
    });
    tokens.forEach((text, l) => name(`token-${l}`, text, `Token ${l + 1}`));
    once(tokens, "token", "tokens");
    rows.forEach((row, n) => {
      name(`class-${n}`, row.name, `Class ${n + 1}`);
      name(`query-${n}`, row.query, `The query of ${called(n)}`);
      if (!(typeof row.weight === "number" && row.weight > 0 && row.weight <= limits.largest)) {
        wrong(`weight-${n}`, `The weight of ${called(n)} must be a number above 0 and at most ${most}, but it is ${row.weight}.`);
      }
      row.counts.forEach((value, l) => {
        const fits = typeof value === "number" && value >= 0 && value <= limits.largest;
        if (!fits) wrong(`cell-${n}-${l}`, `How often ${token(l)} occurs before ${called(n)} must be a number from 0 to ${most}, but it is ${value}.`);
      });
      if (row.counts.every((value) => value === 0)) wrong(row.counts.map((_, l) => `cell-${n}-${l}`), `At least one token must occur before ${called(n)}: a cell must be above 0.`);
    });
    once(rows.map((row) => row.name), "class", "classes");
    return found;
  }

  const sentences = (found) => found.slice(0, 3).map(({ text }) => text).join(" ") + (found.length > 3 ? ` And ${found.length - 3} more fields.` : "");

  let pasting = false; // fields are written one after the other, and count when all are
  function settle() {
    if (pasting) return;
    const found = problems(draft);
    const wrong = new Set(found.flatMap(({ fields }) => fields));
    for (const field of parent.querySelectorAll("input")) {
      if (wrong.has(field.id)) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }
    say(found.length ? `${sentences(found)} The plots show the last valid table.` : "");
    if (found.length) return;
    table = copy(draft);
    changed();
  }

  // A field; `put(text)` writes into the draft what it holds, and returns what it then shows.
  function field(name, value, put, kind = "text") {
    const input = element("input", { type: "text", id: `${id}-${name}`, autocomplete: "off", spellcheck: "false", class: kind });
    if (kind === "number") input.setAttribute("inputmode", "decimal");
    input.value = shown(value);
    input.addEventListener("change", () => {
      input.value = shown(put(input.value));
      relabel();
      settle();
    });
    return input;
  }

  const button = (name, text, action, able) => {
    const node = element("button", { type: "button", id: `${id}-${name}` }, text);
    node.disabled = !able;
    node.addEventListener("click", action);
    return node;
  };
  const drop = (kind, place, able, action) => button(`drop-${kind}-${place}`, "×", () => {
    action();
    render();
    settle();
    document.getElementById(`${id}-add-${kind}`).focus();
  }, able);

  function render() {
    const { tokens, rows } = draft;
    const head = element("tr", {}, ...["next token", "query", "weight"].map((text) => element("th", { scope: "col" }, text)));
    tokens.forEach((name, l) => head.append(element("td", {}, field(`token-${l}`, name, (text) => rename(l, text)))));
    const body = rows.map((row, n) => element("tr", {},
      element("td", {}, field(`class-${n}`, row.name, (text) => (row.name = text.trim()))),
      element("td", {}, field(`query-${n}`, row.query, (text) => (row.query = text.trim()))),
      element("td", {}, field(`weight-${n}`, row.weight, (text) => (row.weight = plain(text)), "number")),
      ...row.counts.map((value, l) => element("td", {}, field(`cell-${n}-${l}`, value, (text) => (row.counts[l] = plain(text)), "number"))),
      element("td", {}, drop("class", n, rows.length > 2, () => draft.rows.splice(n, 1))),
    ));
    const foot = element("tr", {}, element("td", { colspan: 3 }), ...tokens.map((_, l) => element("td", {}, drop("token", l, tokens.length > 1, () => {
      draft.tokens.splice(l, 1);
      for (const { counts } of draft.rows) counts.splice(l, 1);
    }))));
    const grid = element("table", { class: "edit" }, element("caption", {}, "How often each token occurs before each next token"), element("thead", {}, head), element("tbody", {}, ...body), element("tfoot", {}, foot));
    const words = `Only ratios within a row count. The page takes up to ${limits.classes} classes and ${limits.tokens} tokens; a spreadsheet can be pasted, in part or whole with its heads: next_token, query, then tokens.`;
    parent.replaceChildren(
      element("div", { class: "table" }, grid),
      element("div", { class: "actions" },
        button("add-class", "Add a class", () => add("class"), rows.length < limits.classes),
        button("add-token", "Add a token", () => add("token"), tokens.length < limits.tokens),
        element("span", { class: "small" }, words)),
    );
    relabel();
  }

  // Names of fields for those who cannot see where they stand.
  function relabel() {
    const label = (name, text) => document.getElementById(`${id}-${name}`).setAttribute("aria-label", text);
    const { tokens, rows } = draft;
    tokens.forEach((name, l) => {
      label(`token-${l}`, `name of token ${l + 1}`);
      label(`drop-token-${l}`, `remove token ${name || l + 1}`);
    });
    rows.forEach(({ name }, n) => {
      label(`class-${n}`, `name of class ${n + 1}, a next token`);
      label(`drop-class-${n}`, `remove class ${name || n + 1}`);
      label(`query-${n}`, `query of ${name}`);
      label(`weight-${n}`, `weight of ${name}`);
      tokens.forEach((token, l) => label(`cell-${n}-${l}`, `how often ${token} occurs before ${name}`));
    });
  }

  // A query that has the name of a token is that token, and keeps it.
  function rename(l, text) {
    const [was, name] = [draft.tokens[l], text.trim()];
    draft.tokens[l] = name;
    draft.rows.forEach((row, n) => {
      if (row.query !== was || name === "") return;
      row.query = name;
      document.getElementById(`${id}-query-${n}`).value = name;
    });
    return name;
  }

  // "class 4", or the next number that no other name has.
  function fresh(kind, used) {
    for (let i = used.length + 1; ; i++) if (!used.includes(`${kind} ${i}`)) return `${kind} ${i}`;
  }

  function add(what) {
    const { tokens, rows } = draft;
    if (what === "token") {
      tokens.push(fresh("token", tokens));
      for (const row of rows) row.counts.push(0);
    } else {
      const name = fresh("class", rows.map((row) => row.name));
      rows.push({ name, query: rows.at(-1).query, weight: 1, counts: tokens.map((_, l) => (l === (rows.length % tokens.length) ? 2 : 1)) });
    }
    render();
    settle();
    const last = document.getElementById(what === "token" ? `${id}-token-${tokens.length - 1}` : `${id}-class-${rows.length - 1}`);
    last.focus();
    last.select();
  }

  // Enter and the arrows up and down move in a column, as in a spreadsheet.
  parent.addEventListener("keydown", (event) => {
    const step = { Enter: 1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    const place = event.target.closest?.("td");
    if (!step || event.target.tagName !== "INPUT" || !place) return;
    const rows = [...place.closest("table").rows];
    const next = rows[rows.indexOf(place.parentElement) + step]?.cells[place.cellIndex]?.querySelector("input");
    event.preventDefault();
    if (next) next.focus();
    else if (event.key === "Enter") event.target.blur();
  });

  // A whole sheet has the heads of a file of classes: next_token, query, maybe weight, then tokens. Null for other blocks.
  function sheet([head, ...lines]) {
    const [first, second, third] = head.map((text) => text.trim().toLowerCase().replaceAll(" ", "_"));
    if (first !== "next_token" || second !== "query") return null;
    const start = third === "weight" ? 3 : 2;
    const tokens = head.slice(start).map((text) => text.trim());
    const rows = lines.filter((line) => line.some((text) => text.trim())).map(([name, query = "", ...cells]) => ({
      name: name.trim(), query: query.trim(), weight: start === 3 ? plain(cells[0] ?? "") : 1, counts: tokens.map((_, l) => plain(cells[l + start - 2] ?? "")),
    }));
    return { tokens, rows };
  }

  // A table in the place of the draft, or what is wrong with it, and the draft as it was.
  function replace(next, before, where) {
    const { tokens, rows } = next;
    const known = new Set(problems(before).map(({ text }) => text));
    const fits = rows.length >= 2 && rows.length <= limits.classes && tokens.length >= 1 && tokens.length <= limits.tokens;
    const found = fits
      ? problems(next).filter(({ text }) => !known.has(text))
      : [{ text: `A sheet must have 2 to ${limits.classes} classes and 1 to ${limits.tokens} tokens, but this has ${rows.length} and ${tokens.length}.` }];
    draft = found.length ? before : next;
    render();
    document.getElementById(where)?.focus();
    settle();
    if (found.length) say(`${sentences(found)} Nothing was changed.`);
  }

  // A block of a spreadsheet goes into the fields from the one with the focus on, names and numbers alike.
  parent.addEventListener("paste", (event) => {
    const lines = event.clipboardData.getData("text/plain").replace(/\r?\n$/, "").split(/\r?\n/);
    const cells = lines.map((line) => line.split("\t"));
    const place = event.target.closest?.("td");
    if (!place) return;
    const whole = sheet(cells[0].length > 1 ? cells : lines.map((line) => line.split(",")));
    if (whole === null && cells.length === 1 && cells[0].length === 1) return;
    event.preventDefault();
    const before = copy(draft);
    if (whole !== null) {
      replace(whole, before, event.target.id);
      return;
    }
    const rows = [...place.closest("table").rows].slice(place.parentElement.rowIndex);
    const fields = cells.map((line, i) => line.map((_, j) => rows[i]?.cells[place.cellIndex + j]?.querySelector("input")));
    if (fields.flat().includes(null) || fields.flat().includes(undefined)) {
      say(`What was pasted, ${cells.length} × ${Math.max(...cells.map((line) => line.length))}, reaches beyond the table from here: add classes or tokens first. Nothing was changed.`);
      return;
    }
    pasting = true;
    fields.forEach((line, i) => line.forEach((input, j) => {
      input.value = cells[i][j];
      input.dispatchEvent(new Event("change"));
    }));
    pasting = false;
    replace(draft, before, event.target.id);
  });

  return {
    get value() { return written(table); },
    get table() { return table; },
    set(text) {
      table = typeof text === "string" ? read(text) : text;
      draft = copy(table);
      say("");
      render();
    },
    parse: (text) => (read(text) ? text : undefined),
    written,
  };
};
