// Builds the panels and keeps the colours.
(async () => {
  const { byId } = yzflow.widgets;
  const data = JSON.parse(byId("data").textContent);
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null; // what the button chose; before that, the system's choice
  const dress = () => {
    root.dataset.theme = chosen ?? (system.matches ? "dark" : "light");
    byId("theme").setAttribute("aria-pressed", String(root.dataset.theme === "dark"));
  };
  dress();
  const panels = [];
  for (const [name, content] of Object.entries(data.panels)) panels.push(await yzflow.panels[name](content, data.plots));
  const redress = () => {
    dress();
    for (const panel of panels) panel.recolour();
  };
  redress();
  system.addEventListener("change", redress);
  byId("theme").addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    redress();
  });
  root.dataset.ready = "true";
})();
