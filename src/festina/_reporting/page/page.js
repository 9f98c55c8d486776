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
