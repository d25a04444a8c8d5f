"use strict";
const at = id => document.getElementById(id);
const data = JSON.parse(at("data").textContent);

const count = number => number.toLocaleString("en-US");
const bytes = number => {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (number >= 1000 && unit < units.length - 1) { number /= 1000; unit++; }
  return `${unit === 0 ? number : number.toPrecision(3)} ${units[unit]}`;
};
const percent = (part, whole) => `${whole > 0 ? (part * 100 / whole).toFixed(1) : "0.0"}%`;

// Names are inserted only as text, never as markup.
const make = (tag, text) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  return element;
};
const row = cells => {
  const line = make("tr");
  for (const cell of cells) line.append(make("td", cell));
  return line;
};

// The nodes of the tree: five numbers each.
const nodes = [];
for (let index = 0; index < data.nodes.length; index += 5) {
  const [holder, name, objects, own, retained] = data.nodes.slice(index, index + 5);
  const node = { name: data.names[name], objects, own, retained, holder: null, held: [] };
  if (nodes.length > 0) { node.holder = nodes[holder]; node.holder.held.push(node); }
  nodes.push(node);
}
const root = nodes[0];
for (const node of nodes) node.held.sort((a, b) => b.retained - a.retained);
// The share of nodes that were too small for the page.
const rest = node => node.retained - node.own - node.held.reduce((sum, held) => sum + held.retained, 0);

const colour = name => {
  let hash = 0;
  for (const character of name) hash = (hash * 31 + character.codePointAt(0)) >>> 0;
  const hue = hash % 360, differs = hash % 12;
  return `light-dark(hsl(${hue} 50% ${72 + differs}%), hsl(${hue} 32% ${26 + differs}%))`;
};

// Rectangles close to squares: M. Bruls, K. Huizing, J. van Wijk, Squarified Treemaps, 2000.
function squarified(items, left, top, width, height) {
  const places = [];
  let sum = items.reduce((total, item) => total + item.weight, 0);
  let first = 0;
  while (first < items.length && sum > 0 && width > 0 && height > 0) {
    const side = Math.min(width, height), scale = width * height / sum;
    let taken = 0, last = first, worst = Infinity;
    while (last < items.length) {
      const area = (taken + items[last].weight) * scale;
      const largest = items[first].weight * scale, least = items[last].weight * scale;
      const ratio = Math.max(side * side * largest / (area * area), area * area / (side * side * least));
      if (ratio > worst) break;
      worst = ratio;
      taken += items[last].weight;
      last++;
    }
    const thickness = taken * scale / side;
    let offset = 0;
    for (; first < last; first++) {
      const length = items[first].weight * scale / thickness;
      places.push(width < height
        ? { item: items[first], left: left + offset, top, width: length, height: thickness }
        : { item: items[first], left, top: top + offset, width: thickness, height: length });
      offset += length;
    }
    if (width < height) { top += thickness; height -= thickness; } else { left += thickness; width -= thickness; }
    sum -= taken;
  }
  return places;
}

const map = {
  shown: root,
  zoom(node) {
    this.shown = node;
    this.draw();
  },
  draw() {
    const box = at("map");
    box.replaceChildren();
    this.fill(box, this.shown, 0, 0, box.clientWidth, box.clientHeight, 0);
    const trail = at("trail");
    trail.replaceChildren();
    const path = [];
    for (let node = this.shown; node; node = node.holder) path.unshift(node);
    for (const node of path) {
      const button = make("button", node.name);
      button.addEventListener("click", () => this.zoom(node));
      trail.append(button, " ");
    }
    trail.append(`${bytes(this.shown.retained)}, ${percent(this.shown.retained, root.retained)} of the heap`);
  },
  fill(box, node, left, top, width, height, depth) {
    const items = node.held.map(held => ({ node: held, name: held.name, weight: held.retained }));
    if (node.own > 0) items.push({ node: null, name: "own bytes", weight: node.own });
    if (rest(node) > 0) items.push({ node: null, name: "smaller ones", weight: rest(node) });
    items.sort((a, b) => b.weight - a.weight);
    for (const place of squarified(items, left, top, width, height)) {
      if (place.width < 3 || place.height < 3) continue;
      const { item } = place;
      const tile = make("div", `${item.name} ${bytes(item.weight)}`);
      tile.title = `${item.name}\n${bytes(item.weight)}`;
      Object.assign(tile.style, { left: `${place.left}px`, top: `${place.top}px`, width: `${place.width}px`, height: `${place.height}px`, background: item.node ? colour(item.name) : "var(--other)" });
      if (item.node) tile.addEventListener("click", event => { event.stopPropagation(); this.zoom(item.node); });
      box.append(tile);
      if (item.node?.held.length && depth < 3 && place.width > 40 && place.height > 40) {
        this.fill(box, item.node, place.left + 2, place.top + 16, place.width - 4, place.height - 18, depth + 1);
      }
    }
  },
};

// The number of rows of a level shown at once.
const MOST = 100;

const tree = {
  draw() {
    const body = at("tree").tBodies[0];
    body.replaceChildren();
    this.insert(root, 0, null);
    this.toggle(body.rows[0]);
  },
  insert(node, depth, before) {
    const mark = node.held.length ? "+ " : "  ";
    const line = row([bytes(node.retained), percent(node.retained, root.retained), bytes(node.own), count(node.objects), mark + node.name]);
    line.lastChild.style.paddingLeft = `${depth}rem`;
    Object.assign(line, { node, depth });
    line.addEventListener("click", () => this.toggle(line));
    at("tree").tBodies[0].insertBefore(line, before);
  },
  toggle(line) {
    const isOpen = line.nextSibling?.depth > line.depth;
    if (isOpen) {
      while (line.nextSibling?.depth > line.depth) line.nextSibling.remove();
    } else {
      const before = line.nextSibling;
      for (const held of line.node.held.slice(0, MOST)) this.insert(held, line.depth + 1, before);
      const left = line.node.held.length - MOST;
      if (left > 0) {
        const more = row(["", "", "", "", `${count(left)} more`]);
        more.depth = line.depth + 1;
        at("tree").tBodies[0].insertBefore(more, before);
      }
    }
    if (line.node.held.length) line.lastChild.textContent = (isOpen ? "+ " : "- ") + line.node.name;
  },
};

// Returns a predicate for a text or a /regex/; an invalid regex matches nothing.
function searched(text) {
  const regex = text.match(/^\/(.+)\/$/);
  if (!regex) return name => name.toLowerCase().includes(text.toLowerCase());
  try { const pattern = new RegExp(regex[1], "i"); return name => pattern.test(name); } catch { return () => false; }
}

// The number of types shown at once.
const MOST_TYPES = 500;

// A lower bound where the heap has too many groups for exact numbers.
const retained = row => (row.more ? "≥ " : "") + bytes(row.retained);

const types = {
  order: "bytes",
  chosen: null,
  draw() {
    const matches = searched(at("search").value);
    const found = data.types.filter(type => matches(type.name) || matches(type.module));
    const by = this.order;
    found.sort((a, b) => by === "name" ? (a.name < b.name ? -1 : 1) : b[by] - a[by]);
    const body = at("types").tBodies[0];
    body.replaceChildren();
    for (const type of found.slice(0, MOST_TYPES)) {
      const line = row([bytes(type.bytes), retained(type), count(type.objects), type.module ? `${type.name} [${type.module}]` : type.name]);
      line.addEventListener("click", () => this.choose(type, line));
      body.append(line);
    }
    const left = data.typesLeftOut > 0 ? `; ${count(data.typesLeftOut)} types of fewer bytes are not in this page` : "";
    at("found").textContent = `${count(found.length)} types${found.length > MOST_TYPES ? `, the first ${MOST_TYPES} are shown` : ""}${left}`;
  },
  choose(type, line) {
    for (const other of at("types").querySelectorAll("[aria-selected]")) other.removeAttribute("aria-selected");
    line.setAttribute("aria-selected", true);
    const box = at("paths");
    box.replaceChildren(make("h2", `Paths from roots to ${type.name}`));
    if (type.paths.length === 0) box.append(make("p", "The page has paths to the types of most bytes only: dipc gcdump paths has them all."));
    for (const path of type.paths) {
      box.append(make("p", `${count(path.objects)} objects of ${bytes(path.bytes)}, retaining ${retained(path)}`));
      const list = make("ol");
      for (const step of path.steps) list.append(make("li", data.names[step]));
      box.append(list);
    }
  },
};

function show(view) {
  for (const button of document.querySelectorAll("nav button")) {
    const isShown = button.dataset.view === view;
    button.setAttribute("aria-selected", isShown);
    at(`view-${button.dataset.view}`).hidden = !isShown;
  }
  if (view === "map") map.draw();
}

at("title").textContent = document.title = data.title;
at("summary").textContent = `${count(data.objects)} objects of ${bytes(data.bytes)}, ${count(data.references)} references, ${count(data.types.length + data.typesLeftOut)} types`;
for (const [key, what] of [["/", "search"], ["1 – 3", "the tabs"], ["d", "light or dark"], ["Click", "a rectangle: zoom in; a row: open it, or show the paths to a type"]]) {
  at("keys").append(make("dt", key), make("dd", what));
}
// Notes about missing data are always shown.
at("about").hidden = data.notes.length === 0;
at("help").setAttribute("aria-expanded", !at("about").hidden);
at("help").addEventListener("click", () => { at("about").hidden = !at("about").hidden; at("help").setAttribute("aria-expanded", !at("about").hidden); });
at("theme").addEventListener("click", () => {
  const themes = ["", "light", "dark"], root = document.documentElement, next = themes[(themes.indexOf(root.dataset.theme ?? "") + 1) % 3];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  at("theme").textContent = next ? `Theme: ${next}` : "Theme";
});
for (const note of data.notes) at("notes").append(make("li", note));
for (const button of document.querySelectorAll("nav button")) button.addEventListener("click", () => show(button.dataset.view));
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => { types.order = button.dataset.order; types.draw(); });
}
at("search").addEventListener("input", () => { types.draw(); if (at("search").value) show("types"); });
addEventListener("keydown", event => {
  if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
  const tab = document.querySelectorAll("nav button")[Number(event.key) - 1];
  if (event.key === "/") { at("search").focus(); event.preventDefault(); }
  else if (event.key === "d") at("theme").click();
  else if (event.key === "?") at("help").click();
  else if (tab) tab.click();
});
addEventListener("resize", () => { if (!at("view-map").hidden) map.draw(); });
tree.draw();
types.draw();
show("map");
document.documentElement.dataset.ready = "true";
