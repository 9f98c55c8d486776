// Light or dark: what the system asks for, unless the reader chose otherwise on this page.
(() => {
  const root = document.documentElement, key = "festina-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  try { root.dataset.theme = localStorage.getItem(key) || ""; } catch { /* storage refused: follow the system */ }
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
    button.addEventListener("click", () => {
      const theme = isDark() ? "light" : "dark";
      root.dataset.theme = theme;
      try { localStorage.setItem(key, theme); } catch { /* not remembered */ }
      label();
    });
    system.addEventListener("change", label);
    button.hidden = false;
    label();
  });
})();

// Filters: experiments of one source, and those with printed claims that do not reproduce.
addEventListener("DOMContentLoaded", () => {
  const filters = document.getElementById("filters");
  if (!filters) return;
  const source = document.getElementById("source"), known = document.getElementById("known");
  const show = () => {
    for (const section of document.querySelectorAll("main > section")) {
      if (section.id === "not-reproduced") continue;
      const sources = (section.dataset.sources || "").split(" ");
      const fits = (!source.value || sources.includes(source.value)) && (!known.checked || "known" in section.dataset);
      section.toggleAttribute("data-hidden", !fits);
      for (const entry of document.querySelectorAll(`[data-of="${CSS.escape(section.id)}"]`)) {
        entry.toggleAttribute("data-hidden", !fits);
      }
    }
    for (const list of document.querySelectorAll("#contents ol, .side ul")) {
      const isEmpty = !list.querySelector("li:not([data-hidden])");
      list.toggleAttribute("data-hidden", isEmpty);
      list.previousElementSibling.toggleAttribute("data-hidden", isEmpty);
    }
  };
  for (const control of [source, known]) control.addEventListener("change", show);
  filters.hidden = false;
});

// Figures open large, and close with Escape.
addEventListener("DOMContentLoaded", () => {
  const close = () => {
    const open = document.querySelector("figure.large");
    if (!open) return;
    open.classList.remove("large");
    open.querySelector(".zoom").textContent = "Enlarge";
  };
  for (const figure of document.querySelectorAll("section > figure")) {
    const button = document.createElement("button");
    button.className = "zoom";
    button.textContent = "Enlarge";
    button.addEventListener("click", () => {
      const isLarge = figure.classList.contains("large");
      close();
      figure.classList.toggle("large", !isLarge);
      button.textContent = isLarge ? "Enlarge" : "Close";
    });
    const words = figure.querySelector("figcaption") || figure.appendChild(document.createElement("figcaption"));
    (words.querySelector(".files") || words).prepend(button);
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
});
