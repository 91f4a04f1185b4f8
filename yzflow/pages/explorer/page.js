// Builds the panels, keeps the colours, opens the page as its address says.
(() => {
  const { byId } = yzflow.widgets;
  const content = JSON.parse(byId("data").textContent);
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null; // what the button chose; before that, the system's choice
  const dress = () => {
    root.dataset.theme = chosen ?? (system.matches ? "dark" : "light");
    byId("theme").setAttribute("aria-pressed", String(root.dataset.theme === "dark"));
  };
  dress();
  system.addEventListener("change", dress);
  byId("theme").addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    dress();
  });
  for (const [name, data] of Object.entries(content.panels)) yzflow.panels[name](data);
  for (const row of document.querySelectorAll(".symbols")) yzflow.widgets.symbols(row);
  yzflow.bench.restore();
  addEventListener("hashchange", yzflow.bench.restore);
  root.dataset.ready = "true";
})();
