// The heat map: time folded into columns, say of a second, with rows of 10 ms. Any of its cells can be chosen.

const LEAST_CELL_NS = 1e7, HEAT_HEIGHT = 200, WIDEST_COLUMN = 24;
// Nanoseconds of a column, for cells of up to so many.
const COLUMN_NS = [[5e7, 1e9], [2e8, 1e10], [2e9, 6e10], [2e10, 6e11], [2e11, 3.6e12], [Infinity, 8.64e13]];

// The cells of a recording's bins.
class HeatGrid {
  constructor({ bins, binNs }) {
    this.bins = bins;
    this.cellNs = Math.max(LEAST_CELL_NS, binNs);
    const fitting = COLUMN_NS.find(([most]) => this.cellNs <= most)[1];
    // The widest bins are of days.
    this.columnNs = Math.max(fitting, Math.ceil(fitting / this.cellNs) * this.cellNs);
    this.size = Math.round(this.cellNs / binNs);
    this.rows = Math.round(this.columnNs / this.cellNs);
    this.cells = Math.ceil(bins / this.size);
    this.columns = Math.ceil(this.cells / this.rows);
  }

  // The cells that a part of the time touches.
  touched({ from, to, mask }) {
    const chosen = new Uint8Array(this.cells);
    for (let bin = from; bin < to; bin++) if (!mask || mask[bin]) chosen[Math.floor(bin / this.size)] = 1;
    return chosen;
  }

  // The part of the time that cells are; those that follow each other are a plain range. All where none is chosen.
  range(chosen) {
    const first = chosen.indexOf(1), last = chosen.lastIndexOf(1), { bins, size } = this;
    if (first < 0) return { from: 0, to: bins };
    const from = first * size, to = Math.min(bins, (last + 1) * size);
    if (chosen.subarray(first, last + 1).every(Boolean)) return { from, to };
    const mask = Uint8Array.from({ length: bins }, (_, bin) => chosen[Math.floor(bin / size)]);
    return { from, to, mask };
  }

  // The cells of a rectangle between two corners, of those that there are.
  rectangle([column, row], [otherColumn, otherRow]) {
    const cells = [], [left, right] = [column, otherColumn].sort((a, b) => a - b), [top, bottom] = [row, otherRow].sort((a, b) => a - b);
    for (let x = left; x <= right; x++) for (let y = top; y <= bottom; y++) if (x * this.rows + y < this.cells) cells.push(x * this.rows + y);
    return cells;
  }
}

class HeatMap {
  constructor(recording, palette, onRange) {
    Object.assign(this, { recording, palette, onRange, grid: new HeatGrid(recording), cursor: [0, 0], anchor: null, drag: null });
    this.box = document.getElementById("heat");
    this.canvas = document.getElementById("heatmap");
    this.values = new Float64Array(this.grid.cells);
    this.chosen = null;
    this.canvas.setAttribute("aria-label", `Heat map: a column is ${this.span(this.grid.columnNs)}, a row ${this.span(this.grid.cellNs)}. Drag to choose cells, with Ctrl to add or remove some. Arrow keys move, with Shift they choose, Space adds or removes, Escape shows all.`);
    this.listen();
  }

  get isOpen() { return !this.box.hidden; }

  span(ns) { return ns >= 6e10 && ns % 6e10 === 0 ? `${ns / 6e10} min` : ns >= 1e9 ? `${ns / 1e9} s` : `${ns / 1e6} ms`; }

  // Weights of cells, of the threads and states that the rest of the page shows.
  show(range, { threads, blocked, idle }) {
    if (!this.isOpen) return;
    const { recording: r, grid } = this, key = JSON.stringify([[...threads], blocked, idle]);
    if (this.weighed !== key) {
      this.weighed = key;
      this.values.fill(0);
      const shows = [true, blocked, idle, blocked];
      for (const thread of r.threads) {
        if (threads.size && !threads.has(thread.number)) continue;
        thread.each(0, r.bins, (local, weight, bin) => { if (shows[thread.states[local]]) this.values[Math.floor(bin / grid.size)] += weight; });
      }
      this.most = this.values.reduce((a, b) => Math.max(a, b), 0) || 1;
    }
    this.chosen = range.from === 0 && range.to === r.bins && !range.mask ? null : grid.touched(range);
    this.paint();
  }

  paint() {
    if (!this.isOpen) return;
    const { grid, canvas, palette } = this, width = this.box.clientWidth;
    this.left = width < 500 ? 42 : 54;
    this.cell = [Math.min(WIDEST_COLUMN, Math.max(1, (width - this.left - 8) / grid.columns)), Math.max(2, Math.floor(HEAT_HEIGHT / grid.rows))];
    const [across, down] = [this.cell[0] * grid.columns, this.cell[1] * grid.rows], height = down + 20;
    canvas.style.height = height + "px";
    const pen = penFor(canvas, width, height), small = document.createElement("canvas");
    small.width = grid.columns;
    small.height = grid.rows;
    const dots = small.getContext("2d"), chosen = this.preview ?? this.chosen;
    for (let cell = 0; cell < grid.cells; cell++) {
      const share = this.values[cell] / this.most, isChosen = chosen && chosen[cell];
      dots.globalAlpha = isChosen ? 0.3 + 0.7 * share : share * (chosen ? 0.45 : 1);
      dots.fillStyle = palette.get(isChosen ? "match" : "working");
      dots.fillRect(Math.floor(cell / grid.rows), cell % grid.rows, 1, 1);
    }
    pen.imageSmoothingEnabled = false;
    pen.fillStyle = palette.get("field");
    pen.fillRect(this.left, 0, across, down);
    pen.drawImage(small, this.left, 0, across, down);
    this.paintScales(pen, across, down);
    if (document.activeElement === canvas || this.drag) {
      const [column, row] = this.cursor;
      pen.strokeStyle = palette.get("text");
      pen.lineWidth = 1.5;
      pen.strokeRect(this.left + column * this.cell[0] - 1, row * this.cell[1] - 1, this.cell[0] + 2, this.cell[1] + 2);
    }
  }

  // Times of columns below, and of rows at the left.
  paintScales(pen, across, down) {
    const { grid } = this, step = [1, 2, 5, 10, 15, 20, 30, 60, 120, 240].find(step => step * this.cell[0] >= 60) ?? 500;
    pen.fillStyle = this.palette.get("faint");
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "top";
    for (let column = 0; column < grid.columns; column += step) pen.fillText(this.span(column * grid.columnNs).replace(/^0 ms/, "0 s"), this.left + column * this.cell[0], down + 4);
    pen.textAlign = "right";
    for (const part of [0, 0.5]) pen.fillText(this.span(Math.round(grid.rows * part) * grid.cellNs).replace(/^0 ms/, "0"), this.left - 4, part * down);
    pen.textBaseline = "bottom";
    pen.fillText(this.span(grid.columnNs), this.left - 4, down);
    pen.textAlign = "left";
  }

  tell() {
    const { grid, recording: r } = this, cell = this.cursor[0] * grid.rows + this.cursor[1], from = cell * grid.size;
    const seconds = bin => r.rounded(Math.min(bin, r.bins)), chosen = this.chosen?.[cell] ? ", chosen" : "";
    document.getElementById("cell").textContent = cell < grid.cells ? `${seconds(from)} s to ${seconds(from + grid.size)} s: ${this.values[cell] ? amount(r, this.values[cell]) : "nothing"}${chosen}` : "";
  }

  // The cell at a place of the page, the nearest one where there is none.
  placeAt({ clientX, clientY }) {
    const area = this.canvas.getBoundingClientRect(), { grid } = this;
    const within = (at, most) => Math.max(0, Math.min(most - 1, Math.floor(at)));
    return [within((clientX - area.left - this.left) / this.cell[0], grid.columns), within((clientY - area.top) / this.cell[1], grid.rows)];
  }

  // Cells with those of a rectangle instead, or added; a single one that was chosen is removed.
  with(cells, adds) {
    const next = adds && this.chosen ? this.chosen.slice() : new Uint8Array(this.grid.cells);
    const removes = adds && cells.length === 1 && next[cells[0]];
    for (const cell of cells) next[cell] = removes ? 0 : 1;
    return next;
  }

  choose(chosen) { this.onRange(this.grid.range(chosen)); this.tell(); }

  moveTo(place) {
    const { grid } = this, [column, row] = place;
    if (column < 0 || row < 0 || row >= grid.rows || column * grid.rows + row >= grid.cells) return;
    this.cursor = place;
  }

  listen() {
    const { canvas } = this, adds = event => event.ctrlKey || event.metaKey || event.shiftKey;
    canvas.addEventListener("pointerdown", event => {
      if (event.button) return;
      this.drag = { start: this.placeAt(event), adds: adds(event) };
      if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
      this.toCursor(event);
    });
    canvas.addEventListener("pointermove", event => this.toCursor(event));
    canvas.addEventListener("pointerup", event => {
      if (!this.drag) return;
      this.toCursor(event);
      const next = this.preview;
      this.drag = this.preview = null;
      this.anchor = null;
      this.choose(next);
    });
    canvas.addEventListener("pointercancel", () => { this.drag = this.preview = null; this.paint(); });
    for (const kind of ["focus", "blur"]) canvas.addEventListener(kind, () => { this.paint(); if (kind === "focus") this.tell(); });
    canvas.addEventListener("keydown", event => this.key(event));
    new ResizeObserver(() => { if (this.isOpen && this.box.clientWidth !== this.width) { this.width = this.box.clientWidth; this.paint(); } }).observe(this.box);
  }

  toCursor(event) {
    this.cursor = this.placeAt(event);
    if (this.drag) {
      this.preview = this.with(this.grid.rectangle(this.drag.start, this.cursor), this.drag.adds);
      this.paint();
    }
    this.tell();
  }

  key(event) {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key], [column, row] = this.cursor;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (move) {
      if (event.shiftKey) this.anchor ??= this.cursor; else this.anchor = null;
      this.moveTo([column + move[0], row + move[1]]);
      if (event.shiftKey) this.choose(this.with(this.grid.rectangle(this.anchor, this.cursor), false)); else { this.paint(); this.tell(); }
    } else if (event.key === " " || event.key === "Enter") this.choose(this.with([column * this.grid.rows + row], true));
    else if (event.key === "Escape" && this.chosen) this.choose(new Uint8Array(this.grid.cells));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
