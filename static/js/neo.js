// What pages need beyond htmx and Tabler: theme at once, dialogs, live parts, toasts, copying.
(() => {
  const closest = (event, selector) => event.target instanceof Element && event.target.closest(selector);

  // Theme: no reload when scripts run; without them the form posts.
  const chooseTheme = (button) => {
    const value = button.dataset.themeValue;
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `neo_theme=${value}; path=/; max-age=31536000; samesite=lax${secure}`;
    document.documentElement.dataset.themeChoice = value;
    window.neoApplyTheme();
    for (const other of document.querySelectorAll("[data-theme-value]")) {
      const chosen = other.dataset.themeValue === value;
      other.classList.toggle("active", chosen);
      other.setAttribute("aria-pressed", String(chosen));
    }
  };

  // A button that needs a name typed stays off until it is typed.
  const checkTyped = (dialog) => {
    const input = dialog.querySelector("[data-typed]");
    const submit = dialog.querySelector("[type=submit]");
    if (input) submit.disabled = input.value.trim() !== input.dataset.typed;
  };

  const openDialog = (id) => {
    const dialog = document.getElementById(id);
    if (!dialog) {
      location.reload(); // the button came with a refresh; its dialog comes with the page
      return;
    }
    checkTyped(dialog);
    dialog.showModal();
    dialog.querySelector("input:not([type=hidden]), textarea, select")?.focus();
  };

  document.addEventListener("click", (event) => {
    const theme = closest(event, "[data-theme-value]");
    if (theme) {
      event.preventDefault();
      chooseTheme(theme);
    }
    const opener = closest(event, "[data-opens]");
    if (opener) openDialog(opener.dataset.opens);
    if (closest(event, "[data-closes]")) event.target.closest("dialog").close();
    if (closest(event, "[data-back]")) history.back();
    if (closest(event, "[data-dismiss]")) event.target.closest("[data-toast]").remove();
    const copy = closest(event, "[data-copy]");
    if (copy) {
      navigator.clipboard.writeText(copy.dataset.copy).then(() => {
        copy.classList.add("neo-copied");
        setTimeout(() => copy.classList.remove("neo-copied"), 1200);
      });
    }
    if (event.target instanceof HTMLDialogElement) event.target.close();
  });

  document.addEventListener("input", (event) => {
    if (closest(event, "[data-typed]")) checkTyped(event.target.closest("dialog"));
  });

  document.addEventListener("change", (event) => {
    const all = closest(event, "[data-check-all]");
    if (all) {
      const boxes = all.closest("table").querySelectorAll(`input[name="${all.dataset.checkAll}"]`);
      for (const box of boxes) box.checked = all.checked;
    }
    const form = closest(event, "form[data-submit-on-change]");
    if (form) form.requestSubmit();
  });

  // One submission per form: a second click does nothing while the first is under way.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || event.defaultPrevented) return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
    form.classList.add("neo-sending");
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      form.classList.remove("neo-sending");
    }
  });

  // "/" goes to the search.
  document.addEventListener("keydown", (event) => {
    const typing = closest(event, "input, textarea, select, [contenteditable]");
    const search = document.querySelector("[data-search]");
    if (event.key === "/" && search && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      search.focus();
    }
  });

  // Live parts: named as such, asked with the tag of what is shown, quiet in a hidden tab.
  const tags = new Map();
  const isLive = (element) => element instanceof Element && element.hasAttribute("data-live");
  const address = (element) => element.getAttribute("hx-get");

  document.addEventListener("htmx:configRequest", (event) => {
    const { elt, headers } = event.detail;
    if (!isLive(elt)) return;
    headers["Neo-Live"] = "1";
    const tag = tags.get(address(elt));
    if (tag) headers["If-None-Match"] = tag;
  });

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (isLive(event.detail.elt) && document.hidden) event.preventDefault();
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const { elt, xhr } = event.detail;
    if (xhr.status < 400) {
      if (isLive(elt)) tags.set(address(elt), xhr.getResponseHeader("ETag"));
      return;
    }
    const told = xhr.getResponseHeader("HX-Retarget") || xhr.status === 422;
    if (isLive(elt) || !told) event.detail.shouldSwap = false;
    if (isLive(elt)) elt.classList.add("neo-stale");
    else document.querySelector("dialog[open]")?.close(); // the toast would lie behind it
  });

  document.addEventListener("htmx:sendError", (event) => {
    if (isLive(event.detail.elt)) event.detail.elt.classList.add("neo-stale");
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    if (isLive(event.detail.elt) && event.detail.successful) {
      event.detail.elt.classList.remove("neo-stale");
    }
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const part of document.querySelectorAll("[data-live]")) window.htmx.trigger(part, "neo:visible");
  });

  // Good news goes by itself; trouble stays until it is read.
  const fade = (toast) => {
    if (!toast.matches('[role="alert"]')) setTimeout(() => toast.remove(), 8000);
  };
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-toast]").forEach(fade);
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes)
        for (const node of addedNodes) if (node instanceof Element && node.matches("[data-toast]")) fade(node);
    }).observe(document.getElementById("toasts"), { childList: true });
  });
})();
