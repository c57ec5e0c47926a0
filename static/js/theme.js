// Runs before the first paint: "as the device" becomes light or dark, and follows the device.
(() => {
  const root = document.documentElement;
  const device = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const choice = root.dataset.themeChoice;
    const dark = choice === "dark" || (choice === "auto" && device.matches);
    root.setAttribute("data-bs-theme", dark ? "dark" : "light");
  };
  device.addEventListener("change", apply);
  window.neoApplyTheme = apply;
  apply();
})();
