"use strict";
// The frames of both graphs: zoom by mouse and keys, search. Everything can be read without it.

const WIDTH = 1200, CHARACTER = 7.3, at = id => document.getElementById(id);

class Graph {
  constructor(group) {
    const boxes = [...group.querySelectorAll("g")], layer = group.appendChild(document.createElementNS(group.namespaceURI, "g"));
    // Labels are apart from the buttons, whose names are whole.
    layer.setAttribute("aria-hidden", "true");
    layer.style.pointerEvents = "none";
    this.frames = boxes.map(box => {
      const rect = box.querySelector("rect"), title = box.querySelector("title").textContent;
      const number = name => Number(rect.getAttribute(name));
      const text = layer.appendChild(box.querySelector("text") ?? document.createElementNS(rect.namespaceURI, "text"));
      text.setAttribute("y", number("y") + 12);
      return { box, rect, text, title, left: number("x"), width: number("width"), row: number("y"), label: label(title, rect) };
    });
    // The root is the highest.
    this.root = this.frames.reduce((highest, frame) => !highest || frame.row < highest.row ? frame : highest, null);
    for (const frame of this.frames) {
      const { box } = frame;
      box.setAttribute("role", "button");
      box.setAttribute("aria-label", frame.title.replace(/\n/g, ", "));
      box.setAttribute("tabindex", frame === this.root ? 0 : -1);
      box.addEventListener("click", () => this.zoom(frame));
      box.addEventListener("focus", () => tell(frame));
      box.addEventListener("mouseenter", () => tell(frame));
      box.addEventListener("keydown", event => this.key(event, frame));
    }
    if (this.root) this.zoom(this.root);
  }

  // Shows a frame as wide as the graph, with those that it called; those above it that call it are as wide.
  zoom(to) {
    this.zoomed = to;
    const scale = WIDTH / to.width, end = to.left + to.width;
    for (const frame of this.frames) {
      const isCaller = frame.row < to.row && frame.left <= to.left + 0.1 && frame.left + frame.width >= end - 0.4;
      const isInside = frame.row >= to.row && frame.left >= to.left - 0.1 && frame.left + frame.width <= end + 0.4;
      frame.box.style.display = frame.text.style.display = isCaller || isInside ? "" : "none";
      if (!isCaller && !isInside) continue;
      const left = isCaller ? 0 : Math.max(0, (frame.left - to.left) * scale), width = isCaller ? WIDTH : frame.width * scale;
      Object.assign(frame, { shownLeft: left, shownWidth: width });
      frame.rect.setAttribute("x", left.toFixed(1));
      frame.rect.setAttribute("width", width.toFixed(1));
      frame.text.setAttribute("x", (left + 3).toFixed(1));
      const room = Math.floor((width - 6) / CHARACTER);
      frame.text.textContent = room < 3 ? "" : frame.label.length > room ? frame.label.slice(0, room - 1) + "…" : frame.label;
    }
  }

  key(event, frame) {
    const shown = this.frames.filter(({ box }) => box.style.display !== "none");
    const of = row => shown.filter(other => other.row === row).sort((a, b) => a.shownLeft - b.shownLeft);
    const row = of(frame.row), place = row.indexOf(frame), rows = [...new Set(shown.map(other => other.row))].sort((a, b) => a - b), level = rows.indexOf(frame.row);
    const meets = other => other.shownLeft < frame.shownLeft + frame.shownWidth && other.shownLeft + other.shownWidth > frame.shownLeft + 0.05;
    const widest = frames => frames.reduce((most, other) => !most || other.shownWidth > most.shownWidth ? other : most, null);
    let next = null;
    if (event.key === "Enter" || event.key === " ") this.zoom(frame);
    else if (event.key === "Escape") { this.zoom(this.root); next = this.root; }
    else if (event.key === "ArrowLeft") next = row[place - 1];
    else if (event.key === "ArrowRight") next = row[place + 1];
    else if (event.key === "ArrowDown") next = widest(of(rows[level + 1]).filter(meets));
    else if (event.key === "ArrowUp") next = of(rows[level - 1]).find(meets);
    else return;
    event.preventDefault();
    next?.box.focus();
  }
}

// A frame's label: the change where it is beyond noise, and the name without module, namespace.
function label(title, rect) {
  const [name, , , change] = title.split("\n"), bare = name.includes("!") ? name.slice(name.indexOf("!") + 1) : name;
  const dots = [...(bare.match(/^[^(<[]*/)[0]).matchAll(/\./g)].map(({ index }) => index);
  const short = dots.length > 1 ? bare.slice(dots[dots.length - 2] + 1) : bare;
  return /^[wb]/.test(rect.getAttribute("class")) ? `${change.split(/[ :]/)[0]} ${short}` : short;
}

function tell({ title }) { at("detail").textContent = title.replace(/\n/g, " · "); }

const graphs = ["new", "base"].map(id => new Graph(at(id)));
at("search").addEventListener("input", () => {
  const wanted = at("search").value.trim().toLowerCase();
  let found = 0;
  for (const { frames } of graphs) for (const { box, text, title } of frames) {
    const has = !wanted || title.split("\n")[0].toLowerCase().includes(wanted);
    box.style.opacity = text.style.opacity = has ? "" : "0.25";
    found += Number(has);
  }
  at("found").textContent = wanted ? `${found} frames` : "";
});
addEventListener("keydown", event => { if (event.key === "/" && event.target !== at("search")) { at("search").focus(); event.preventDefault(); } });
document.documentElement.dataset.ready = "true";
