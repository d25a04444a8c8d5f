// The flame graph, and its inverse, on a canvas that is as large as the window at most.

const ROW = 19, SMALLEST = 0.4, FONT = '12px system-ui, "DejaVu Sans", sans-serif';

class FlameGraph {
  constructor(recording, palette, { onPick, onOpen }) {
    Object.assign(this, { recording, palette, onPick, onOpen });
    this.canvas = document.getElementById("graph");
    this.field = document.getElementById("field");
    this.pen = this.canvas.getContext("2d");
    // Boxes by row, from left to right; the one that is told of; what is searched.
    this.rows = [];
    this.picked = null;
    this.pattern = null;
    this.listen();
  }

  // Shows a tree; what was zoomed into stays so where the tree has it.
  show(root, tree) {
    const path = [];
    if (this.tree && this.zoom) for (let box = this.zoom; box.up; box = box.up) path.unshift(this.tree.names[box.name]);
    this.tree = tree;
    this.root = this.zoom = root;
    for (const name of path) {
      const next = this.zoom.kids.find(kid => tree.names[kid.name] === name);
      if (!next) break;
      this.zoom = next;
    }
    this.picked = null;
    this.lay();
  }

  forgetZoom() { this.zoom = null; }

  zoomTo(box) { this.zoom = box; this.picked = box.up ? box : null; this.lay(); this.onPick(this.picked); }
  // Zooms into a box below the root.
  zoomToName(name) { const box = this.root.kids.find(kid => kid.name === name); if (box) this.zoomTo(box); }

  text(box) { return box.name < 0 ? "all" : this.tree.names[box.name]; }
  search(pattern) { this.pattern = pattern; this.paint(); }

  // The weight of stacks with a frame that is searched; each counts once.
  found() {
    let sum = 0;
    const todo = [this.root];
    while (todo.length) { const box = todo.pop(); if (box.up && this.pattern(this.text(box))) sum += box.all; else todo.push(...box.kids); }
    return sum;
  }

  // The boxes of each row for a width.
  layout(width) {
    const scale = this.zoom.all ? width / this.zoom.all : 0, rows = [];
    // Those above what is zoomed into take the whole width.
    for (let box = this.zoom; box; box = box.up) rows.unshift([{ box, x: 0, w: width }]);
    for (let row = rows[rows.length - 1]; row.length;) {
      const next = [];
      for (const { box, x } of row) {
        if (box.all * scale < SMALLEST) continue;
        let left = x;
        for (const kid of box.kids) {
          const w = kid.all * scale;
          if (w >= SMALLEST) next.push({ box: kid, x: left, w });
          left += w;
        }
      }
      rows.push(row = next);
    }
    rows.pop();
    return rows;
  }

  lay() {
    if (!this.zoom || !this.field.clientWidth) return;
    this.rows = this.layout(this.field.clientWidth);
    this.field.style.height = this.rows.length * ROW + "px";
    this.paint();
  }

  colour(box, row) {
    if (this.pattern && box.up && this.pattern(this.text(box))) return this.palette.get("match");
    if (this.pattern || row < this.zoom.depth) return this.palette.get("field");
    return this.palette.frame(this.text(box), this.tree.kind(box.name));
  }

  label(box, width) { this.pen.font = FONT; return fit(this.text(box), width, text => this.pen.measureText(text).width); }

  // Draws the rows that are in the window.
  paint() {
    if (!this.zoom || this.field.hidden) return;
    const { pen, canvas } = this, ratio = devicePixelRatio || 1, width = this.field.clientWidth, header = this.covered();
    const height = Math.min(this.rows.length * ROW, Math.max(innerHeight - header, ROW));
    canvas.style.top = header + "px";
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const hidden = this.above();
    pen.setTransform(ratio, 0, 0, ratio, 0, -hidden * ratio);
    pen.font = FONT;
    pen.textBaseline = "middle";
    const ink = this.palette.get("text");
    for (let row = Math.floor(hidden / ROW); row < this.rows.length && row * ROW < hidden + height; row++) for (const { box, x, w } of this.rows[row]) {
      const top = row * ROW;
      pen.fillStyle = this.colour(box, row);
      pen.fillRect(x, top, Math.max(w - 0.5, SMALLEST), ROW - 1);
      if (w > 26) { pen.fillStyle = ink; pen.fillText(this.label(box, w - 8), x + 4, top + ROW / 2); }
      if (this.picked === box) { pen.strokeStyle = ink; pen.lineWidth = 1.5; pen.strokeRect(x + 0.75, top + 0.75, Math.max(w - 2, 1), ROW - 2.5); }
    }
  }

  // How much of the window the switches cover, and how far the graph is scrolled behind them.
  covered() { const bar = document.getElementById("switches"); return getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0; }
  above() { return this.canvas.getBoundingClientRect().top - this.field.getBoundingClientRect().top; }

  pick(box) { if (box !== this.picked) { this.picked = box; this.canvas.title = box ? this.text(box) : ""; this.onPick(box); this.paint(); } }

  under(event) {
    const area = this.canvas.getBoundingClientRect(), x = event.clientX - area.left, row = Math.floor((event.clientY - area.top + this.above()) / ROW);
    return this.rows[row]?.find(box => x >= box.x && x < box.x + box.w)?.box ?? null;
  }

  // The box that an arrow key leads to: the caller, the heaviest callee, or the next one in the row.
  step(key) {
    if (!this.picked) return this.zoom;
    if (key === "ArrowUp") return this.picked.up ?? this.picked;
    const row = this.rows[this.picked.depth] ?? [], place = row.findIndex(({ box }) => box === this.picked);
    if (key === "ArrowLeft") return row[place - 1]?.box ?? this.picked;
    if (key === "ArrowRight") return row[place + 1]?.box ?? this.picked;
    const below = (this.rows[this.picked.depth + 1] ?? []).filter(({ box }) => box.up === this.picked);
    return below.reduce((most, box) => !most || box.w > most.w ? box : most, null)?.box ?? this.picked;
  }

  // Scrolls so that the row of the box that is told of is between the switches and what is told of it.
  reveal() {
    const top = this.field.getBoundingClientRect().top + this.picked.depth * ROW;
    const from = this.covered(), to = document.getElementById("detail").getBoundingClientRect().top - ROW;
    if (top < from) scrollBy(0, top - from); else if (top > to) scrollBy(0, top - to);
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("mousemove", event => this.pick(this.under(event)));
    canvas.addEventListener("mouseleave", () => this.pick(null));
    canvas.addEventListener("click", event => { const box = this.under(event); if (box) this.zoomTo(box); });
    canvas.addEventListener("keydown", event => {
      if (event.key.startsWith("Arrow")) { this.pick(this.step(event.key)); this.reveal(); }
      else if (event.key === "Enter" || event.key === " ") { if (this.picked) { this.zoomTo(this.picked); this.reveal(); } }
      else if (event.key === "Escape" && this.zoom.up) this.zoomTo(this.zoom.up);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    addEventListener("scroll", () => this.paint());
  }

  // The graph as it is shown, as SVG.
  svg() {
    const width = 1200, escape = text => text.replace(/[&<>"]/g, c => `&#${c.codePointAt(0)};`), rows = this.layout(width), parts = [];
    const title = `${this.recording.title}: ${this.recording.measure}, ${amount(this.recording, this.root.all)}`;
    rows.forEach((row, index) => row.forEach(({ box, x, w }) => {
      const share = percent(box.all, this.root.all), name = this.text(box), top = 28 + index * ROW;
      const label = w > 26 ? `<text x="${(x + 4).toFixed(1)}" y="${top + 13}">${escape(this.label(box, w - 8))}</text>` : "";
      parts.push(`<g><title>${escape(`${name}: ${amount(this.recording, box.all)} (${share})`)}</title><rect x="${x.toFixed(1)}" y="${top}" width="${Math.max(w - 0.5, SMALLEST).toFixed(1)}" height="${ROW - 1}" fill="${this.colour(box, index)}"/>${label}</g>`);
    }));
    const height = 36 + rows.length * ROW, ink = this.palette.get("text"), back = this.palette.get("back");
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, DejaVu Sans, sans-serif" font-size="12" fill="${ink}"><rect width="100%" height="100%" fill="${back}"/><text x="4" y="18" font-weight="600">${escape(title)}</text>\n${parts.join("\n")}\n</svg>\n`;
  }
}
