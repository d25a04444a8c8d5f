// Counters as curves: lanes on the axis of the time line, with what their values were in the chosen time.

const CURVE_HEIGHT = 28;

// A counter's values by bin; a bin may be wider than the page's.
class Curve {
  constructor({ provider, name, unit, shown, binNs, points }, number, pageBinNs) {
    Object.assign(this, { provider, name, unit, shown, number, binNs, factor: binNs / pageBinNs, points: [] });
    for (let at = 0, bin = 0; at < points.length;) {
      const count = points[at + 1], first = points[at + 2], isOne = count === 1;
      bin += points[at];
      this.points.push({ bin, count, least: first, most: isOne ? first : points[at + 3], mean: isOne ? first : points[at + 4] / count });
      at += isOne ? 3 : 5;
    }
    // The scale has zero, so that heights are comparable.
    this.low = this.points.reduce((low, { least }) => Math.min(low, least), 0);
    this.high = this.points.reduce((high, { most }) => Math.max(high, most), 0);
    const distances = this.points.slice(1).map(({ bin }, index) => bin - this.points[index].bin).sort((a, b) => a - b);
    // After a longer time than this without a value the line begins anew.
    this.gap = 4 * (distances[distances.length >> 1] ?? 1);
  }

  // The values in a part of the time, or in the bins that a mask has; and the last value before.
  values({ from, to, mask }) {
    let count = 0, least = Infinity, most = -Infinity, sum = 0, before = null;
    for (const point of this.points) {
      const start = point.bin * this.factor, end = start + this.factor;
      if (start >= to) break;
      if (end <= from) { before = point; continue; }
      if (mask && !mask.subarray(Math.max(start, from), Math.min(end, to)).includes(1)) continue;
      count += point.count;
      least = Math.min(least, point.least);
      most = Math.max(most, point.most);
      sum += point.mean * point.count;
    }
    return { count, least, most, mean: sum / count, before };
  }

  // The last point up to a bin of the page.
  at(bin) { return this.points.findLast(point => point.bin * this.factor <= bin) ?? null; }

  text(value) { return quantity(value, this.unit); }

  tell(range) {
    const { count, least, mean, most, before } = this.values(range);
    if (!count) return before ? `no value; ${this.text(before.mean)} before` : "no value";
    return count === 1 ? this.text(mean) : `least ${this.text(least)} · mean ${this.text(mean)} · most ${this.text(most)}`;
  }
}

class CurveLanes {
  constructor(recording, timeLine, palette) {
    Object.assign(this, { recording, timeLine, palette, shown: new Set(recording.curves.filter(({ shown, low, high }) => shown && (low || high))), preview: null });
    this.box = document.getElementById("counters");
    this.lanes = document.getElementById("curves");
    this.choices();
    this.build();
    timeLine.onBuilt = () => this.paint();
    document.getElementById("countervalues").parentElement.addEventListener("toggle", () => this.fill());
  }

  get isOpen() { return !this.box.hidden; }

  // A box to tick for each counter, in groups by provider.
  choices() {
    const list = document.getElementById("counterchoice"), groups = new Map(), r = this.recording;
    for (const curve of r.curves) {
      if (!groups.has(curve.provider)) {
        const group = list.appendChild(document.createElement("fieldset"));
        group.appendChild(document.createElement("legend")).textContent = curve.provider;
        groups.set(curve.provider, group);
      }
      const label = groups.get(curve.provider).appendChild(document.createElement("label")), box = label.appendChild(document.createElement("input"));
      Object.assign(box, { type: "checkbox", checked: this.shown.has(curve) });
      box.dataset.curve = curve.number;
      label.append(curve.name);
      box.addEventListener("change", () => {
        if (box.checked) this.shown.add(curve); else this.shown.delete(curve);
        this.build();
        this.show(this.range);
      });
    }
    if (r.curveCount > r.curves.length) {
      const note = list.appendChild(document.createElement("p"));
      note.className = "note";
      note.textContent = `${number(r.curveCount - r.curves.length)} more are not on this page: counters read has them.`;
    }
  }

  build() {
    const { curves } = this.recording;
    this.lanes.textContent = "";
    this.drawn = curves.filter(curve => this.shown.has(curve)).map(curve => {
      const lane = this.lanes.appendChild(document.createElement("div")), name = lane.appendChild(document.createElement("span"));
      const side = lane.appendChild(document.createElement("div")), told = side.appendChild(document.createElement("span")), canvas = side.appendChild(document.createElement("canvas"));
      lane.className = "curve";
      lane.setAttribute("role", "group");
      lane.setAttribute("aria-label", `${curve.name}, ${curve.provider}`);
      name.textContent = curve.name;
      lane.title = `${curve.name} (${curve.provider}): ${curve.text(curve.low)} to ${curve.text(curve.high)}`;
      canvas.setAttribute("aria-hidden", "true");
      this.listen(canvas, curve);
      return { curve, lane, told, canvas };
    });
    document.getElementById("countercount").textContent = `Choose counters: ${this.drawn.length} of ${curves.length} are shown`;
  }

  show(range) {
    this.range = range;
    // Folded, the counters are one line.
    const strip = document.getElementById("counterstrip");
    strip.hidden = this.isOpen || !this.drawn.length;
    const values = ({ curve }) => [curve, curve.values(range)];
    strip.textContent = this.drawn.map(values).filter(([, { count }]) => count).map(([curve, { mean }]) => `${curve.name} ${curve.text(mean)}`).join(" · ");
    if (!this.isOpen) return;
    for (const { curve, told } of this.drawn) told.textContent = curve.tell(range);
    this.fill();
    this.paint();
  }

  // The same as a table.
  fill() {
    const table = document.getElementById("countervalues");
    if (!table.parentElement.open) return;
    const r = this.recording, { from, to } = this.range, head = ["Counter", "Least", "Mean", "Most", "Values", "Provider"];
    table.textContent = "";
    table.createCaption().textContent = `Values of counters from ${r.rounded(from)} s to ${r.rounded(to)} s${this.range.mask ? ", in the chosen cells" : ""}`;
    const titles = table.createTHead().insertRow(), body = table.createTBody();
    for (const title of head) Object.assign(titles.appendChild(document.createElement("th")), { scope: "col", textContent: title });
    for (const { curve } of this.drawn) {
      const line = body.insertRow(), { count, least, mean, most } = curve.values(this.range);
      Object.assign(line.appendChild(document.createElement("th")), { scope: "row", textContent: curve.name });
      for (const value of [least, mean, most]) {
        const cell = line.insertCell();
        cell.textContent = count ? curve.text(value) : "";
        if (count) cell.dataset.value = value;
      }
      line.insertCell().textContent = number(count);
      line.insertCell().textContent = curve.provider;
    }
  }

  // Lanes begin and end where the time line does.
  align() {
    const { gutter, chartWidth } = this.timeLine;
    this.lanes.style.setProperty("--gutter", gutter + "px");
    this.lanes.style.setProperty("--chart", chartWidth + "px");
  }

  paint() {
    if (!this.isOpen || !this.range) return;
    this.align();
    for (const { curve, canvas } of this.drawn) this.draw(curve, canvas);
  }

  draw(curve, canvas) {
    const width = canvas.clientWidth, { bins } = this.recording, { factor } = curve, pen = penFor(canvas, width, CURVE_HEIGHT);
    pen.fillStyle = this.palette.get("field");
    pen.fillRect(0, 0, width, CURVE_HEIGHT);
    this.drawRange(pen, width / bins);
    const height = CURVE_HEIGHT - 3, x = bin => width * Math.min(bins, (bin + 0.5) * factor) / bins;
    const y = value => 1.5 + height - height * (value - curve.low) / (curve.high - curve.low || 1);
    pen.strokeStyle = pen.fillStyle = this.palette.get("curve");
    pen.lineWidth = 1.5;
    pen.beginPath();
    let before = null;
    for (const { bin, least, mean, most } of curve.points) {
      const isNext = before !== null && bin - before <= curve.gap;
      if (isNext) pen.lineTo(x(bin), y(mean)); else { pen.moveTo(x(bin) - 1, y(mean)); pen.lineTo(x(bin) + 1, y(mean)); }
      if (most > least) { pen.moveTo(x(bin), y(least)); pen.lineTo(x(bin), y(most)); }
      pen.moveTo(x(bin), y(mean));
      before = bin;
    }
    pen.stroke();
  }

  // The chosen time, or what is being dragged over.
  drawRange(pen, scale) {
    const { from, to, mask } = this.preview ?? this.range;
    if (from === 0 && to === this.recording.bins && !mask) return;
    pen.fillStyle = this.palette.get("select");
    for (let start = from; start < to;) {
      let end = mask ? start : to;
      while (mask && end < to && mask[end]) end++;
      if (end > start) pen.fillRect(start * scale, 0, Math.max(1, (end - start) * scale), CURVE_HEIGHT);
      start = Math.max(end, start + 1);
    }
  }

  // The time can be chosen here, too; the time line does the same by keys.
  listen(canvas, curve) {
    let start = null;
    const { bins } = this.recording, binAt = event => {
      const area = canvas.getBoundingClientRect();
      return Math.max(0, Math.min(bins, bins * (event.clientX - area.left) / (area.width || 1)));
    };
    const dragged = event => { const [from, to] = [start.bin, binAt(event)].sort((a, b) => a - b).map(Math.round); return { from, to: Math.max(from + 1, to) }; };
    canvas.addEventListener("pointerdown", event => {
      if (event.button) return;
      start = { x: event.clientX, bin: binAt(event) };
      if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      const bin = Math.min(bins - 1, Math.floor(binAt(event))), point = curve.at(bin);
      document.getElementById("moment").textContent = `${this.recording.rounded(bin)} s: ${curve.name} ${point ? point.count === 1 ? curve.text(point.mean) : `${curve.text(point.least)} to ${curve.text(point.most)}` : "no value yet"}`;
      if (start && Math.abs(event.clientX - start.x) > 2) { this.preview = dragged(event); this.paint(); }
    });
    canvas.addEventListener("pointerup", event => {
      const chosen = start && Math.abs(event.clientX - start.x) > 2 ? dragged(event) : null;
      start = this.preview = null;
      if (chosen) this.timeLine.choose(chosen.from, chosen.to); else this.paint();
    });
    canvas.addEventListener("pointercancel", () => { start = this.preview = null; this.paint(); });
  }
}
