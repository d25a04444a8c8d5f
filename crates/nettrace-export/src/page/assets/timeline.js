// The time line: one uPlot chart whose series lie below each other, and lanes of threads, or of processes if there are
// several, that are drawn into it.

const LANE = 13, GAP = 4, FEW_THREADS = 6, FEW_PROCESSES = 12, MAX_LANES = 400;

// Threads that share a lane: one alone, or all of a process.
class Lane {
  constructor(threads, name, title) { Object.assign(this, { threads, name, title }); }

  sum(state) { return this.threads.reduce((all, thread) => all + thread.sums[state], 0); }
}

class TimeLine {
  constructor(recording, palette, onRange, onThreads) {
    Object.assign(this, { recording, palette, onRange, onThreads });
    this.box = document.getElementById("plot");
    this.showsAll = false;
    this.chosen = new Set();
    this.range = { from: 0, to: recording.bins };
    this.bands = this.measured();
    const active = lane => lane.sum(WORKING) + lane.sum(BLOCKED) + lane.sum(READY);
    const order = (a, b) => b.sum(WORKING) - a.sum(WORKING) || active(b) - active(a) || b.sum(IDLE) - a.sum(IDLE);
    const sampled = recording.threads.filter(thread => thread.weights.length);
    this.busiest = sampled.map(thread => new Lane([thread], thread.name, thread.name)).sort(order);
    this.processes = recording.processes.map((name, number) => {
      const group = recording.groups[number], threads = sampled.filter(thread => thread.process === number);
      return new Lane(threads, name.replace(/^Process\d* | Args: .*$/g, ""), group ? `${name}\n${group}` : name);
    }).filter(lane => lane.threads.length).sort(order);
    this.hasProcesses = this.processes.length > 1;
    this.build();
    this.listen();
  }

  // The bands that the recording has something for: each with its values by bin, drawn on top of each other.
  measured() {
    const r = this.recording, bands = [];
    const perBin = (cells, value, keys = () => true) => {
      const values = new Float64Array(r.bins);
      cells.each(0, r.bins, (key, count, sum, bin) => { if (keys(key)) values[bin] += value(count, sum); });
      return values;
    };
    const seconds = r.binNs / 1e9, rate = count => number(count / seconds) + "/s";
    if (r.hasSamples) {
      const [working, blocked, idle, ready] = r.activity(), unit = r.isTime ? r.binWeight : 1 / r.scale;
      const sum = (...parts) => parts[0].map((_, bin) => parts.reduce((all, part) => all + part[bin], 0) / unit);
      const text = r.isTime ? number : n => exact(r, n);
      const waits = r.isTime && !r.cpuFirst ? [["blocked", "waiting", sum(working, ready, blocked), blocked]] : [];
      if (r.states[READY] && !r.cpuFirst) waits.push(["ready to run", "ready", sum(working, ready), ready]);
      bands.push({ label: r.isTime ? "threads" : r.measure, height: 64, text,
        // Idle threads are many and say little: they are not part of the sum that is drawn.
        series: [...waits, ["working", "working", sum(working), working]].map(([name, colour, values, own]) => ({ name, colour, values, own: sum(own) })),
        tell: bin => [[sum(working), r.isTime ? "working" : r.measure], ...(r.isTime ? [[sum(blocked), "blocked"], ...(r.states[READY] ? [[sum(ready), "ready to run"]] : []), [sum(idle), "idle"]] : [])]
          .filter(([values, name]) => name !== "idle" || r.idleKept).map(([values, name]) => `${text(values[bin])} ${name}`).join(", ") });
    }
    const one = (label, height, colour, cells, value, text, keys) => {
      if (!cells.length) return;
      const values = perBin(cells, value, keys);
      bands.push({ label, height, text, series: [{ name: label, colour, values }], tell: bin => values[bin] ? `${label} ${text(values[bin])}` : "" });
    };
    one("GC pauses", 16, "pause", r.pauses, (_, sum) => 100 * sum / r.binNs, n => number(n) + " %");
    const isServer = r.spanRows?.some(([role]) => role === "server");
    one(isServer ? "requests" : "activities", 26, "request", r.spanRoles, count => count, rate, role => !isServer || role === 0);
    one("exceptions", 16, "exception", r.exceptions, count => count, rate);
    one("allocations", 26, "allocation", r.allocations, (_, sum) => sum / seconds, n => bytes(n) + "/s");
    return bands;
  }

  // Of several processes a lane each, then with their threads below.
  get lanes() {
    if (!this.hasProcesses) return this.busiest.slice(0, this.showsAll ? MAX_LANES : FEW_THREADS);
    if (!this.showsAll) return this.processes.slice(0, FEW_PROCESSES);
    const of = process => this.busiest.filter(({ threads: [thread] }) => thread.process === process.threads[0].process);
    return this.processes.flatMap(process => process.threads.length > 1 ? [process, ...of(process)] : [process]).slice(0, MAX_LANES);
  }

  build() {
    const r = this.recording, { bands } = this;
    this.plot?.destroy();
    this.box.textContent = "";
    this.width = this.box.clientWidth;
    let top = 2;
    for (const band of bands) { band.top = top; top += band.height + GAP; }
    this.lanesTop = top;
    const height = top + this.lanes.length * (LANE + 2), gutter = innerWidth < 560 ? 64 : 120;
    const edges = Float64Array.from({ length: r.bins + 1 }, (_, bin) => r.seconds(bin));
    const scales = { x: { time: false, range: () => [0, r.seconds(r.bins)] } }, series = [{}], data = [edges];
    // Of counters alone there is only an axis.
    if (!bands.length) scales.y0 = { range: () => [0, 1] };
    bands.forEach((band, index) => {
      const most = band.most = Math.max(...band.series.map(({ values }) => values.reduce((a, b) => Math.max(a, b), 0))) || 1;
      // The scale reaches beyond the chart, so that its part from 0 to the largest value is the band.
      const each = most / band.height, from = -each * (height - band.top - band.height), to = most + each * band.top;
      scales["y" + index] = { range: () => [from, to] };
      for (const { colour, values } of band.series) {
        const points = new Array(r.bins + 1);
        for (let bin = 0; bin < r.bins; bin++) points[bin] = values[bin];
        points[r.bins] = values[r.bins - 1];
        data.push(points);
        series.push({ scale: "y" + index, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, width: 1, stroke: () => this.palette.get(colour), fill: () => this.palette.get(colour), fillTo: () => 0 });
      }
    });
    const width = Math.max(this.width, 160), right = 8;
    this.gutter = gutter;
    this.chartWidth = width - gutter - right;
    const ink = () => this.palette.get("faint"), grid = { stroke: () => this.palette.get("line"), width: 1 };
    this.plot = new uPlot({
      width, height: height + 30, padding: [0, right, 0, 0], legend: { show: false }, scales, series,
      axes: [
        { stroke: ink, grid, ticks: grid, size: 28, font: "11px system-ui, sans-serif", values: (_, ticks) => ticks.map(tick => +tick.toFixed(6) + " s") },
        { scale: "y0", size: gutter, values: () => [], grid: { show: false }, ticks: { show: false } },
      ],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => { this.choose(0, r.bins); } } },
      hooks: { draw: [() => this.drawLanes()], setSelect: [() => this.fromSelection()], setCursor: [() => this.tellMoment()] },
    }, data, this.box);
    for (const band of bands) this.label(band.label, band.top + Math.min(band.height, 26) / 2 - 7, gutter, null, `at most ${band.text(band.most)}`);
    this.lanes.forEach((lane, index) => this.label(lane.name, this.lanesTop + index * (LANE + 2), gutter, lane, lane.title));
    this.markThreads();
    this.showRange();
    this.listenToTouch();
    const more = document.getElementById("lanes");
    more.hidden = this.hasProcesses ? this.busiest.length <= Math.min(this.processes.length, FEW_PROCESSES) : this.busiest.length <= FEW_THREADS;
    const all = this.hasProcesses ? `All ${this.processes.length} processes, ${this.busiest.length} threads` : `All ${this.busiest.length} threads`;
    more.textContent = this.showsAll ? `Fewer ${this.hasProcesses ? "lanes" : "threads"}` : all;
    this.onBuilt?.();
  }

  label(text, top, width, lane, title) {
    const label = document.createElement(lane ? "button" : "span");
    label.className = "label";
    label.style.top = top + "px";
    label.style.width = width - 6 + "px";
    label.textContent = text.replace(/^Thread /, "");
    label.title = title;
    if (lane) {
      const threads = lane.threads.map(({ number }) => number);
      label.dataset.threads = threads.join(" ");
      label.addEventListener("click", () => this.onThreads(threads));
    }
    this.box.append(label);
  }

  // By column of the screen, what the threads of a lane did. Lanes of processes are as high as that with most threads at work.
  drawLanes() {
    const { ctx, bbox } = this.plot, ratio = devicePixelRatio || 1, r = this.recording, columns = Math.max(1, Math.floor(bbox.width / ratio));
    const colours = ["working", "waiting", "resting", "ready"].map(colour => this.palette.get(colour));
    ctx.save();
    const width = columns / r.bins;
    const drawn = this.lanes.map(({ threads }) => {
      const sums = colours.map(() => new Float64Array(columns));
      for (const thread of threads) thread.each(0, r.bins, (local, weight, bin) => {
        // A bin is spread over the columns that it covers, and parts of columns.
        const from = bin * width, to = from + width, sum = sums[thread.states[local]];
        for (let column = Math.floor(from); column < to && column < columns; column++) sum[column] += weight * (Math.min(to, column + 1) - Math.max(from, column)) / width;
      });
      return { sums, most: sums[0].map((_, column) => sums.reduce((all, sum) => all + sum[column], 0)).reduce((a, b) => Math.max(a, b), 0) };
    });
    const highest = this.hasProcesses ? drawn.reduce((most, lane) => Math.max(most, lane.most), 0) : 0;
    drawn.forEach(({ sums }, lane) => {
      const full = r.isTime ? Math.max(r.binWeight / width, highest) : highest || sums[0].reduce((a, b) => Math.max(a, b), 0) || 1;
      const top = bbox.top + (this.lanesTop + lane * (LANE + 2)) * ratio;
      for (let column = 0; column < columns; column++) {
        let below = 0;
        for (const state of [WORKING, READY, BLOCKED, IDLE]) {
          const share = Math.min(1, (below + sums[state][column]) / full), from = Math.min(1, below / full);
          below += sums[state][column];
          if (share <= from) continue;
          const high = Math.max((share - from) * LANE, state === IDLE ? 0 : 1);
          ctx.fillStyle = colours[state];
          ctx.fillRect(bbox.left + column * ratio, top + (LANE - share * LANE - (high - (share - from) * LANE)) * ratio, Math.ceil(ratio), high * ratio);
        }
      }
    });
    ctx.restore();
  }

  redraw() { this.plot.redraw(false, false); }
  showAll(showsAll) { this.showsAll = showsAll; this.build(); }
  markThreads(chosen = this.chosen) {
    this.chosen = chosen;
    for (const label of this.box.querySelectorAll("button.label")) label.setAttribute("aria-pressed", label.dataset.threads.split(" ").every(thread => chosen.has(+thread)));
  }

  binAt(x) { return this.recording.bins * x / this.plot.over.clientWidth; }

  // What was dragged over, up to the next edges of bins.
  fromSelection() {
    const { left, width } = this.plot.select;
    if (this.isShowing || width < 1) return;
    this.choose(Math.round(this.binAt(left)), Math.round(this.binAt(left + width)));
  }

  choose(from, to) {
    const { bins } = this.recording;
    from = Math.max(0, Math.min(bins - 1, Math.round(from)));
    this.range = { from, to: Math.max(from + 1, Math.min(bins, Math.round(to))) };
    this.showRange();
    this.onRange(this.range);
  }

  // Shows what was chosen elsewhere.
  show({ from, to }) { this.range = { from, to }; this.showRange(); }

  showRange() {
    const { from, to } = this.range, { bins } = this.recording, all = from === 0 && to === bins, scale = this.plot.over.clientWidth / bins;
    this.isShowing = true;
    this.plot.setSelect(all ? { left: 0, top: 0, width: 0, height: 0 } : { left: from * scale, top: 0, width: (to - from) * scale, height: this.plot.over.clientHeight }, false);
    this.isShowing = false;
  }

  tellMoment() {
    const { left } = this.plot.cursor, moment = document.getElementById("moment");
    if (left === undefined || left < 0) { moment.textContent = ""; return; }
    const bin = Math.min(this.recording.bins - 1, Math.floor(this.binAt(left)));
    moment.textContent = `${this.recording.rounded(bin)} s: ` + this.bands.map(band => band.tell(bin)).filter(Boolean).join(" · ");
  }

  listenToTouch() {
    const { over } = this.plot;
    let start = null;
    const x = event => event.clientX - over.getBoundingClientRect().left;
    over.addEventListener("pointerdown", event => { if (event.pointerType !== "mouse") { start = x(event); over.setPointerCapture(event.pointerId); } });
    over.addEventListener("pointermove", event => {
      if (start === null || Math.abs(x(event) - start) < 6) return;
      const edges = [start, x(event)].sort((a, b) => a - b);
      this.choose(this.binAt(edges[0]), this.binAt(edges[1]));
    });
    for (const end of ["pointerup", "pointercancel"]) over.addEventListener(end, () => { start = null; });
  }

  listen() {
    this.box.addEventListener("keydown", event => {
      const { from, to } = this.range, { bins } = this.recording, all = from === 0 && to === bins;
      const step = (event.key === "ArrowLeft" ? -1 : 1) * Math.max(1, Math.round((to - from) / 20));
      if (event.key === "Escape" || event.key === "Home") this.choose(0, bins);
      else if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      else if (event.shiftKey || all) this.choose(from, to + step);
      else { const moved = Math.max(-from, Math.min(bins - to, step)); this.choose(from + moved, to + moved); }
      event.preventDefault();
      event.stopPropagation();
    });
    new ResizeObserver(() => { if (this.box.clientWidth !== this.width) this.build(); }).observe(this.box);
    document.getElementById("lanes").addEventListener("click", event => {
      this.showAll(!this.showsAll);
      event.target.setAttribute("aria-pressed", this.showsAll);
    });
  }
}
