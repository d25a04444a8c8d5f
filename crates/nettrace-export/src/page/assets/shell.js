// What all pages have: parts that open, themes, a search.

const at = id => document.getElementById(id);
// Shows a part of the page or hides it, and says so on its button.
function toggle(part, button) {
  at(part).hidden = !at(part).hidden;
  at(button).setAttribute("aria-expanded", !at(part).hidden);
}

// Light, dark, or as the system has it.
function nextTheme() {
  const themes = ["", "light", "dark"], root = document.documentElement, next = themes[(themes.indexOf(root.dataset.theme ?? "") + 1) % 3];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  at("theme").textContent = next ? `Theme: ${next}` : "Theme";
}

// Whether a text has what is searched: a text in any case, or a /regex/. Null for all texts; undefined for what is no regular expression.
function searched(wanted) {
  if (!wanted) return null;
  const regex = wanted.match(/^\/(.+)\/$/), plain = wanted.toLowerCase();
  if (!regex) return text => text.toLowerCase().includes(plain);
  try { const pattern = new RegExp(regex[1], "i"); return text => pattern.test(text); } catch { return undefined; }
}
