// A filter on docs/errata.md by words and by paper; without this script everything is shown.
"use strict";
(() => {
  const place = document.getElementById("errata-filter");
  if (!place) return;
  const root = place.closest("article") ?? document.body;
  // A statement is the section of its heading, or an entry of the last list.
  const entries = [...root.querySelectorAll("h3, li:has(> a), li:has(> p > a)")].flatMap((node) => {
    if (node.tagName === "H3") return [node.closest("section")];
    return node.closest("section").querySelector("h3") ? [] : [node];
  });
  const titles = entries.map((one) => one.querySelector("h3, a").textContent.trim());
  const texts = entries.map((one) => one.textContent.toLowerCase());
  const paper = (title) => title.split(": ")[0];
  const make = (tag, more, ...inside) => {
    const node = Object.assign(document.createElement(tag), more);
    node.append(...inside);
    return node;
  };
  const search = make("input", { type: "search", id: "errata-words" });
  const select = make("select", { id: "errata-paper" }, make("option", { value: "" }, "all"), ...[...new Set(titles.map(paper))].map((name) => make("option", {}, name)));
  const said = make("p", { className: "said" });
  said.setAttribute("role", "status");
  const form = make("form", { className: "filters" }, make("label", { htmlFor: search.id }, "Words, or the statement's number", search), make("label", { htmlFor: select.id }, "Paper", select));
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Errata");
  place.append(form, said);
  function draw() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    entries.forEach((one, i) => {
      const fits = (!select.value || paper(titles[i]) === select.value) && words.every((word) => texts[i].includes(word));
      one.hidden = !fits;
      shown += fits;
    });
    said.textContent = `${shown} of ${entries.length} statements`;
  }
  form.addEventListener("input", draw);
  form.addEventListener("submit", (event) => event.preventDefault());
  draw();
})();
