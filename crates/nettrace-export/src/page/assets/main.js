// The page: what is chosen, and what shows it.

class Page {
  constructor(recording) {
    this.recording = recording;
    this.range = { from: 0, to: recording.bins };
    this.chosen = new Set();
    this.palette = new Palette();
    this.tables = new Tables(recording);
    this.table = new Table(at("table"), this.palette);
    this.flame = new FlameGraph(recording, this.palette, { onPick: box => this.tellBox(box) });
    this.tabs = this.usefulTabs();
    this.head();
    this.about();
    this.listen();
    if (recording.hasTime) {
      at("time").hidden = false;
      this.timeLine = new TimeLine(recording, this.palette, range => { this.range = range; this.refresh(); }, threads => this.chooseThreads(threads));
      if (recording.hasSamples) {
        at("heatbutton").hidden = false;
        this.heatMap = new HeatMap(recording, this.palette, range => this.chooseCells(range));
      }
      if (recording.curves.length) {
        at("countersbutton").hidden = false;
        this.curveLanes = new CurveLanes(recording, this.timeLine, this.palette);
      }
    }
    // What stands behind # is searched.
    try { at("search").value = decodeURIComponent(location.hash.slice(1)); } catch { /* no text */ }
    this.open(this.tabs[0].id);
  }

  usefulTabs() {
    const r = this.recording;
    return [
      ["flame", "Flame graph", r.hasSamples], ["callers", "Callers", r.hasSamples], ["top", "Methods", r.hasSamples],
      ["requests", "Requests", r.spans.length], ["slowest", "Slowest", r.slowest?.length], ["threads", "Threads", r.hasSamples],
      ["collections", "Collections", r.collections?.length], ["exceptions", "Exceptions", r.exceptions.length],
      ["flame", "Flame graph", true],
    ].filter(([id, , has], index, all) => has && all.findIndex(other => other[0] === id && other[2]) === index).map(([id, title]) => ({ id, title }));
  }

  head() {
    const r = this.recording, heldUp = r.states[BLOCKED] + r.states[READY], waits = r.isTime && (heldUp || r.states[IDLE]);
    for (const { text, problem } of r.findings ?? []) {
      const item = at("findings").appendChild(document.createElement("li"));
      Object.assign(item, { textContent: text, className: problem ? "problem" : "" });
      at("findings").hidden = false;
    }
    document.title = `${r.title} – ${r.measure}`;
    at("title").textContent = r.title;
    const start = r.startUnixMs === undefined ? "" : new Date(r.startUnixMs).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC") + " · ";
    const length = r.hasTime ? duration(r.endNs) + " · " : "";
    at("summary").textContent = `${start}${length}${number(r.samples)} ${r.sample} · ${r.exporter}`;
    at("bythread").checked = r.byThread;
    // Stacks as the awaits have them, where the recording tells of tasks.
    at("async").checked = Boolean(r.hasTasks);
    at("bythread").parentElement.hidden = r.threads.length < 2;
    // Waits are the second view where the kernel sampled running threads.
    at("blocked").checked = !r.cpuFirst;
    at("blocked").parentElement.hidden = !waits || !heldUp;
    at("idle").parentElement.hidden = !r.states[IDLE];
    for (const { id, title } of this.tabs) {
      const button = at("tabs").appendChild(document.createElement("button"));
      Object.assign(button, { id: "tab-" + id, textContent: title });
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", "main");
      button.addEventListener("click", () => this.open(id));
    }
  }

  // The colours that a tab has.
  legend() {
    const r = this.recording, used = new Set(r.kinds), frames = KINDS.map((name, kind) => [name, name, used.has(kind)]);
    const states = [["working", "working", this.tab === "threads"], ["waiting", "blocked", r.states[BLOCKED]], ["ready", "ready to run", r.states[READY]], ["resting", "idle", r.states[IDLE]]];
    const parts = SPAN_PARTS.map((name, part) => [PART_COLOURS[part], name, true]);
    const legend = { requests: parts, slowest: parts, threads: states, collections: [], exceptions: [] }[this.tab] ?? [...frames, ...states];
    at("legend").textContent = "";
    for (const [colour, name, has] of legend) {
      if (!has) continue;
      const item = at("legend").appendChild(document.createElement("span")), mark = item.appendChild(document.createElement("i"));
      mark.style.background = `var(--${colour})`;
      item.append(name);
    }
  }

  about() {
    const r = this.recording, keys = [["/", "search"], ["1 – 9", "the tabs"], ["Arrows, Enter, Esc", "in the flame graph: move, zoom in, zoom out"],
      ["← →", "in the time line: move what is chosen; with Shift its end; Esc: all"], ["b i f m t", "blocked, idle, fold async, frames, by thread"], ["h", "the heat map; there, arrows move, with Shift they choose, Space adds or removes a cell, Esc shows all"], ["k", "counters as curves"], ["c, s", "copy, save as SVG"], ["d", "light or dark"]];
    for (const [key, what] of keys) {
      at("keys").appendChild(document.createElement("dt")).textContent = key;
      at("keys").appendChild(document.createElement("dd")).textContent = what;
    }
    const notes = [];
    if (r.hasTime) {
      notes.push(`Time is divided into ${number(r.bins)} bins of ${duration(r.binNs)}: within a bin the page does not know when something was. What is chosen begins and ends at their edges.`);
      if (r.scale > 1) notes.push(`Weights of stacks are multiples of ${exact(r, r.scale)}: less than that counts in a later bin.`);
      if (r.isTime) notes.push("A sample counts until its thread's next one.");
      if (r.spans.length) notes.push("Requests count where they began. Durations in the table are at most a 64th too high.");
      if (r.spans.length && r.spanBinNs > r.binNs) notes.push(`The table of requests has bins of ${duration(r.spanBinNs)}: it shows all that began in those which the chosen time touches.`);
      if (r.slowest?.length === 500) notes.push("Only the 500 slowest requests of the recording are listed one by one.");
      if (r.collectionCount > (r.collections?.length ?? 0)) notes.push(`${number(r.collections.length)} of ${number(r.collectionCount)} collections are listed: those that paused the program the longest.`);
    }
    if (r.curves.length) notes.push("A counter's value stands where its program reported it: it is of the interval that ends there. Lines join means; where a bin has several values, its line reaches from the least to the largest.");
    const widest = Math.max(...r.curves.map(({ binNs }) => binNs));
    if (widest > r.binNs) notes.push(`Curves of counters have bins of up to ${duration(widest)}: values of all bins count that the chosen time touches.`);
    if (r.curveCount > r.curves.length) notes.push(`${number(r.curves.length)} of ${number(r.curveCount)} curves of counters are on this page.`);
    if (r.curveValuesLeftOut) notes.push(`${number(r.curveValuesLeftOut)} values of further counters were not read: there are too many.`);
    if (r.leftOutBelow) notes.push(`Stacks that weigh less than ${exact(r, r.leftOutBelow)} were left out to keep the page small: ${exact(r, r.leftOut)} of them count for their callers.`);
    if (r.idleLeftOut) notes.push(`${exact(r, r.idleLeftOut)} of threads that waited for work were left out.`);
    if (r.hasTasks) notes.push("The recording has events of tasks: one frame stands for an async method and what runs it. The switch “Fold async” (f) shows all frames.");
    if (r.states[BLOCKED] || r.states[IDLE]) notes.push("Blocked: a thread waited in the midst of work. Idle: it waited for work. Both are told by the methods on its stack.");
    if (r.states[READY]) notes.push("Ready to run: a thread could run and had no processor, by the kernel. The switch for blocked time shows it, too.");
    for (const note of [...r.notes, ...notes]) at("notes").appendChild(document.createElement("li")).textContent = note;
  }

  get switches() {
    return { frames: at("frames").value, async: at("async").checked, byThread: at("bythread").checked };
  }

  tree() {
    const key = JSON.stringify(this.switches);
    if (this.treeKey !== key) { this.treeKey = key; this.stacks = new StackTree(this.recording, this.switches); }
    return this.stacks;
  }

  open(id) {
    if (this.tab !== id) this.flame.forgetZoom();
    this.tab = id;
    for (const button of at("tabs").children) {
      const isOpen = button.id === "tab-" + id;
      button.setAttribute("aria-selected", isOpen);
      button.tabIndex = isOpen ? 0 : -1;
    }
    const isGraph = id === "flame" || id === "callers";
    at("field").hidden = !isGraph;
    at("table").hidden = isGraph;
    at("svg").hidden = !isGraph;
    at("switches").dataset.samples = isGraph || id === "top";
    this.legend();
    this.refresh();
  }

  refresh() {
    const { range, chosen } = this, shown = { threads: chosen, blocked: at("blocked").checked, idle: at("idle").checked };
    const weights = this.weights = new Weights(this.tree(), { ...range, ...shown });
    this.heatMap?.show(range, shown);
    this.curveLanes?.show(range);
    this.tellRange();
    this.search();
    const tables = {
      top: () => this.tables.top(weights, row => this.openCallers(row.name)),
      requests: () => this.tables.requests(range),
      slowest: () => this.tables.slowest(range, row => this.chooseRequest(row)),
      threads: () => this.tables.threads(range, chosen, ({ thread }) => this.chooseThreads([thread.number])),
      collections: () => this.tables.collections(range, row => this.chooseTime(row[4], row[4] + (row[5] ?? 0))),
      exceptions: () => this.tables.exceptions(range),
    };
    if (tables[this.tab]) {
      this.table.show({ ...tables[this.tab](), search: this.pattern });
      this.tellBox(null);
    } else {
      this.flame.show(this.tab === "flame" ? weights.flame() : weights.callers(), weights.tree);
      this.tellBox(null);
    }
    this.tellFound();
    at("main").dataset.total = weights.total;
    at("main").dataset.tab = this.tab;
  }

  tellRange() {
    const { recording: r, weights } = this, { from, to } = this.range;
    if (r.hasTime) {
      for (const [input, bin] of [["from", from], ["to", to]]) Object.assign(at(input), { value: +r.seconds(bin).toFixed(9), step: r.binNs / 1e9 });
      at("whole").disabled = from === 0 && to === r.bins && !this.range.mask;
      Object.assign(at("range").dataset, { fromNs: from * r.binNs, toNs: to * r.binNs });
    }
    const total = r.isTime && !weights.total ? "0 ns" : amount(r, weights.total);
    const shown = [`${total} ${r.measure}`];
    for (const [state, name] of [[BLOCKED, "blocked"], [READY, "ready to run"], [IDLE, "idle"]]) if (weights.leftOut[state]) shown.push(`${amount(r, weights.leftOut[state])} ${name} left out`);
    if (this.range.mask) shown.push(`${this.heatMap.chosen.reduce((sum, one) => sum + one, 0)} cells of the heat map`);
    if (this.chosen.size) shown.push(`${this.chosen.size} of ${r.threads.length} threads (Esc: all)`);
    if (!r.hasTime) at("summary").textContent = [...shown, r.exporter].join(" · ");
    at("chosen").textContent = shown.join(" · ");
  }

  // From the one bin to the other that microseconds lie in.
  chooseTime(fromMicros, toMicros) {
    const bin = micros => micros * 1000 / this.recording.binNs;
    this.timeLine?.choose(Math.floor(bin(fromMicros)), Math.floor(bin(toMicros)) + 1);
  }

  // A request that is picked: its time is chosen, and its parts stand below.
  chooseRequest(row) {
    this.chooseTime(row[1], row[1] + row[2]);
    at("detail").replaceChildren(requestTable(this.recording, row));
  }

  // The cells of the heat map that are chosen; the time line shows from the first to the last of them.
  chooseCells(range) {
    this.range = range;
    this.timeLine.show(range);
    this.refresh();
  }

  toggleHeatMap() {
    toggle("heat", "heatbutton");
    if (this.heatMap.isOpen) this.refresh();
  }

  toggleCounters() {
    toggle("counters", "countersbutton");
    this.curveLanes.show(this.range);
  }

  // Adds threads to what is chosen, or takes them out if all of them are.
  chooseThreads(threads) {
    const are = threads.every(thread => this.chosen.has(thread));
    for (const thread of threads) if (are) this.chosen.delete(thread); else this.chosen.add(thread);
    this.timeLine?.markThreads(this.chosen);
    this.refresh();
  }

  openCallers(name) { this.open("callers"); this.flame.zoomToName(name); }

  search() {
    const pattern = searched(at("search").value.trim());
    this.isWrong = pattern === undefined;
    this.pattern = pattern ?? null;
    this.flame.pattern = this.pattern;
  }

  tellFound() {
    const isGraph = !at("field").hidden;
    at("found").textContent = this.isWrong ? "not a regular expression"
      : !this.pattern ? "" : isGraph ? `${percent(this.flame.found(), this.weights.total)} in stacks with it` : `${this.table.rows.length} rows`;
  }

  tellBox(box) {
    const detail = at("detail"), { flame, weights, recording: r } = this;
    detail.textContent = "";
    if (!box) { detail.textContent = at("field").hidden ? "Click a column to sort. / searches, c copies." : "Click a frame to zoom in, Esc to zoom out, / to search; arrow keys and Enter do it too."; return; }
    const name = document.createElement("b"), all = weights.total, { zoom } = flame;
    name.textContent = flame.text(box);
    const within = zoom.up && box.depth > zoom.depth ? `, ${percent(box.all, zoom.all)} of what is zoomed into` : "";
    const self = this.tab === "flame" && box.own ? `, itself ${amount(r, box.own)} (${percent(box.own, all)})` : "";
    detail.append(name, ` ${amount(r, box.all)} (${percent(box.all, all)}${within})${self}`);
  }

  // What is shown as text: the stack that is picked or zoomed into, or the table.
  copyText() {
    if (at("field").hidden) return this.table.text();
    const lines = [];
    for (let box = this.flame.picked ?? this.flame.zoom; box?.up; box = box.up) lines.push(this.flame.text(box));
    if (!lines.length) return tableText(this.tables.top(this.weights).columns, this.weights.top().sort((a, b) => b.self - a.self));
    return (this.tab === "flame" ? lines : lines.reverse()).map(line => line + "\n").join("");
  }

  async copy() {
    const text = this.copyText();
    try { await navigator.clipboard.writeText(text); } catch {
      const area = document.body.appendChild(document.createElement("textarea"));
      area.value = text;
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    this.flash("copy", "Copied");
  }

  save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.flame.svg()], { type: "image/svg+xml" }));
    link.download = this.recording.title.replace(/[^\w.-]+/g, "_") + ".svg";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    this.flash("svg", "Saved");
  }

  flash(id, text) {
    const button = at(id), before = button.dataset.title ??= button.textContent;
    button.textContent = text;
    setTimeout(() => { button.textContent = before; }, 1500);
  }

  nextTheme() {
    nextTheme();
    this.repaint();
  }

  repaint() { this.palette.forget(); this.flame.paint(); this.timeLine?.redraw(); this.heatMap?.paint(); this.curveLanes?.paint(); }

  listen() {
    for (const id of ["blocked", "idle", "async", "frames", "bythread"]) at(id).addEventListener("change", () => this.refresh());
    at("search").addEventListener("input", () => { this.search(); if (at("field").hidden) this.refresh(); else { this.flame.paint(); this.tellFound(); } });
    at("copy").addEventListener("click", () => this.copy());
    at("svg").addEventListener("click", () => this.save());
    at("theme").addEventListener("click", () => this.nextTheme());
    at("help").addEventListener("click", () => toggle("about", "help"));
    at("heatbutton").addEventListener("click", () => this.toggleHeatMap());
    at("countersbutton").addEventListener("click", () => this.toggleCounters());
    at("whole").addEventListener("click", () => this.timeLine.choose(0, this.recording.bins));
    for (const id of ["from", "to"]) at(id).addEventListener("change", () => {
      const bin = input => Number(at(input).value) * 1e9 / this.recording.binNs;
      this.timeLine.choose(bin("from"), bin("to"));
    });
    at("tabs").addEventListener("keydown", event => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], { tabs } = this;
      if (!step) return;
      const next = tabs[(tabs.findIndex(({ id }) => id === this.tab) + step + tabs.length) % tabs.length].id;
      this.open(next);
      at("tab-" + next).focus();
    });
    addEventListener("keydown", event => this.key(event));
    new ResizeObserver(() => this.flame.lay()).observe(at("main"));
    addEventListener("resize", () => this.flame.paint());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
  }

  key(event) {
    const isTyping = event.target.matches?.("input:not([type=checkbox]), select, textarea");
    if (event.key === "Escape") {
      if (event.target === at("search")) { at("search").value = ""; at("search").dispatchEvent(new Event("input")); at("search").blur(); }
      else if (this.flame.zoom?.up) this.flame.zoomTo(this.flame.zoom.up);
      else if (this.chosen.size) { this.chosen.clear(); this.timeLine?.markThreads(this.chosen); this.refresh(); }
      return;
    }
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const toggles = { b: "blocked", i: "idle", f: "async", t: "bythread" };
    if (event.key === "/") at("search").focus();
    else if (event.key >= "1" && event.key <= "9") { const tab = this.tabs[event.key - 1]; if (tab) this.open(tab.id); }
    else if (toggles[event.key] && !at(toggles[event.key]).parentElement.hidden) at(toggles[event.key]).click();
    else if (event.key === "m") { const list = at("frames"); list.selectedIndex = (list.selectedIndex + 1) % list.length; this.refresh(); }
    else if (event.key === "c") this.copy();
    else if (event.key === "s" && !at("svg").hidden) this.save();
    else if (event.key === "d") this.nextTheme();
    else if (event.key === "h" && this.heatMap) this.toggleHeatMap();
    else if (event.key === "k" && this.curveLanes) this.toggleCounters();
    else if (event.key === "?") at("help").click();
    else return;
    event.preventDefault();
  }
}

readData().then(recording => {
  globalThis.page = new Page(recording);
  document.documentElement.dataset.ready = "true";
}, error => {
  at("detail").textContent = `This browser cannot show the page's data (${error}). Chromium and Edge from 123, Firefox from 120 and Safari from 17.5 on can.`;
});
