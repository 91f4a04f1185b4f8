// The search of the index: every word must be in a statement's number, title or text.
"use strict";
(() => {
  const form = document.getElementById("search");
  const input = document.getElementById("search-words");
  const said = document.getElementById("search-said");
  const entries = [...document.querySelectorAll("ol.order > li")];
  const texts = entries.map((one) => one.dataset.words.toLowerCase());
  const address = (node) => node.querySelector("a").getAttribute("href");
  const rows = new Map([...document.querySelectorAll("table tbody tr")].map((row) => [address(row), row]));
  const sections = [...document.querySelectorAll("section")].filter((one) => one.querySelector(":scope > ol.order"));
  // "Lemma 1" stays together, and is not in "Lemma 10": a number must end where the word does.
  const parts = (words) => words.toLowerCase().match(/(lemma|theorem|corollary|remark|proposition|equation)s? \d+|\S+/g) ?? [];
  const within = (text, part) => {
    for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) {
      if (!/\d$/.test(part) || !/\d/.test(text[at + part.length] ?? "")) return true;
    }
    return false;
  };
  function draw() {
    const wanted = parts(input.value);
    let shown = 0;
    entries.forEach((one, i) => {
      one.hidden = !wanted.every((part) => within(texts[i], part));
      rows.get(address(one)).hidden = one.hidden;
      shown += !one.hidden;
    });
    for (const one of sections) one.hidden = !one.querySelector("li:not([hidden])");
    said.textContent = wanted.length ? `${shown} of ${entries.length} statements` : "";
  }
  form.hidden = false;
  input.addEventListener("input", draw);
  // Enter goes to the first that is left.
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    entries.find((one) => !one.hidden)?.querySelector("a").focus();
  });
})();
