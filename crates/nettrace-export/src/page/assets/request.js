// One request: a waterfall of what happened in its time, its calls, and the stacks of its threads.

const MOST_INTERVALS = 64;

// Intervals as [from, to] without what they share, in order.
function united(intervals) {
  const all = [];
  for (const [from, to] of [...intervals].sort((a, b) => a[0] - b[0])) {
    const last = all[all.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to); else if (to > from) all.push([from, to]);
  }
  return all;
}

// United intervals without what others cover.
function without(intervals, others) {
  const left = [], covered = united(others);
  for (let [from, to] of united(intervals)) {
    for (const [start, end] of covered) {
      if (end <= from || start >= to) continue;
      if (start > from) left.push([from, start]);
      from = Math.max(from, end);
    }
    if (to > from) left.push([from, to]);
  }
  return left;
}

// When a request's threads, calls and queues were, in nanoseconds since its start: each moment counts once, as it does in the sums.
function requestWork({ intervals }, all) {
  const of = wanted => {
    const found = [];
    for (let at = 0; at < intervals.length; at += 4) if (intervals[at] === wanted) found.push([Math.min(all, intervals[at + 2]), Math.min(all, intervals[at + 3])]);
    return united(found);
  };
  const threads = of(0), calls = without(of(1), threads), queued = without(of(2), [...threads, ...calls]);
  return { threads, calls, queued, waiting: without([[0, all]], [...threads, ...calls, ...queued]), isCut: intervals.length >= 4 * MOST_INTERVALS };
}

// Rows of a request's time, in the order in which a request meets them, with pieces as [from, to].
function requestParts(recording, [, start, micros, , , hasEnded, ...parts], work) {
  const all = micros * 1000, { binNs } = recording, from = start * 1000, pauses = [];
  recording.pauses.each(Math.floor(from / binNs), Math.ceil((from + all) / binNs), (_, count, sum, bin) => {
    const left = Math.max(0, bin * binNs - from), right = Math.min(all, (bin + 1) * binNs - from);
    if (sum && right > left) pauses.push([left, right]);
  });
  const hasWork = work?.intervals.length > 0, pieces = hasWork ? requestWork(work, all) : {};
  const known = [united(pauses), pieces.threads, pieces.calls, pieces.queued, pieces.waiting];
  const order = [3, 1, 4, 2, 0].filter(part => parts[part] !== undefined && parts[part] !== null);
  const rows = order.map(part => ({ name: SPAN_PARTS[part], colour: PART_COLOURS[part], ns: parts[part] * 1000, pieces: known[part] ?? null }));
  const { rest } = partsOf(rows.map(({ ns }) => ns), all);
  if (rest && rows.length) rows.push({ name: "not known", colour: "field", ns: rest, pieces: [] });
  return { rows, all, hasEnded, hasWork, isCut: pieces.isCut, unknown: SPAN_PARTS.filter((_, part) => parts[part] === undefined || parts[part] === null) };
}

const THREAD_PARTS = ["on a processor", "in lock waits", null, "asleep", "in I/O", "in other waits"], THREAD_COLOURS = ["working", "ready", null, "resting", "request", "waiting"];

// What threads did in their time for a request, as rows; the pieces are shares of that time, in this order.
function threadParts(threads, { pieces }) {
  const rows = [], left = (pieces ?? []).map(piece => [...piece]);
  THREAD_PARTS.forEach((name, part) => {
    const micros = threads?.[part];
    if (!name || !micros) return;
    const taken = [];
    for (let ns = micros * 1000; ns > 0 && left.length;) {
      const [from, to] = left[0], end = Math.min(to, from + ns);
      taken.push([from, end]);
      ns -= end - from;
      if (end === to) left.shift(); else left[0][0] = end;
    }
    const waits = part === 1 && threads[2] ? ` (${threads[2]})` : "";
    rows.push({ name: `– ${name}${waits}`, colour: THREAD_COLOURS[part], ns: micros * 1000, pieces: taken, isSplit: true });
  });
  return rows;
}

// A table with a caption; `fill` adds its rows.
function requestSection(box, name, title, fill) {
  const table = box.appendChild(document.createElement("table"));
  table.className = name;
  table.createCaption().textContent = title;
  const body = table.createTBody();
  fill((name, ...cells) => {
    const line = body.insertRow(), head = line.appendChild(document.createElement("th"));
    head.scope = "row";
    head.append(name);
    for (const cell of cells) line.insertCell().append(cell);
    return line;
  });
}

// Pieces where they were in a request.
function pieceBar(pieces, all, colour, text) {
  const bar = document.createElement("span");
  bar.className = "bar";
  bar.title = text;
  for (const [from, to] of pieces) {
    const piece = bar.appendChild(document.createElement("i"));
    Object.assign(piece.style, { left: 100 * from / (all || 1) + "%", width: 100 * (to - from) / (all || 1) + "%", background: `var(--${colour})` });
    piece.title = `${duration(to - from)} from ${duration(from)} on`;
  }
  return bar;
}

// The innermost frames of a stack, and all of them. Frames for the kind of time say less than the method below them.
function stackText(recording, stack) {
  const names = [], most = 3;
  for (let at = stack; at && names.length < 200; at = recording.callers[at]) names.push(short(recording.frames[recording.frameOf[at]]));
  const shown = names.length > 1 && /^[A-Z_]+_TIME$/.test(names[0]) ? names.slice(1) : names;
  return { leaf: shown[0] ?? "no frames", callers: shown.slice(1, most + 1).map(name => " ← " + name.replace(/\(.*$/, "")).join("") + (shown.length > most + 1 ? " ← …" : ""), whole: names.join("\n") };
}

function requestTable(recording, row) {
  const place = recording.slowest.indexOf(row), work = recording.slowestWork?.[place], threads = recording.slowestThreads?.[place], { rows, all, hasEnded, hasWork, isCut, unknown } = requestParts(recording, row, work);
  const box = document.createElement("div"), from = row[1] * 1000, spanName = index => recording.spanRows[index][2] || recording.spanRows[index][1];
  box.className = "request";
  // Keys scroll it where it is longer than its place.
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", `Request: ${spanName(row[0])}`);
  requestSection(box, "parts", `${spanName(row[0])}: ${duration(all)}${hasEnded ? "" : " so far"} from ${instant(from)}`, add => {
    const split = rows.flatMap(part => part.name === SPAN_PARTS[1] ? [part, ...threadParts(threads, part)] : [part]);
    for (const { name, colour, ns, pieces, isSplit } of split) {
      const line = add(name, duration(ns), percent(ns, all), pieceBar(pieces ?? [[0, Math.min(all, ns)]], all, colour, `${name}: ${duration(ns)}`));
      if (isSplit) line.className = "split";
    }
  });
  if (work?.calls.length) requestSection(box, "requestcalls", "Its calls", add => {
    for (let at = 0; at < work.calls.length; at += 3) {
      const [index, start, ns] = work.calls.slice(at, at + 3);
      add(spanName(index), duration(ns), `from ${duration(start)} on`, pieceBar([[Math.min(all, start), Math.min(all, start + ns)]], all, "request", `${spanName(index)}: ${duration(ns)}`));
    }
  });
  if (work?.stacks.length) requestSection(box, "requeststacks", "Stacks of its threads, by time", add => {
    for (let at = 0; at < work.stacks.length; at += 3) {
      const [stack, state, ns] = work.stacks.slice(at, at + 3), { leaf, callers, whole } = stackText(recording, stack), name = document.createElement("span");
      const line = add(name, duration(ns), ["working", "blocked", "idle", "ready to run"][state], callers);
      name.textContent = leaf;
      line.title = whole;
      line.dataset.ns = ns;
      line.dataset.state = state;
    }
  });
  const note = box.appendChild(document.createElement("p"));
  note.className = "note";
  const notes = [];
  if (!rows.length) notes.push("The recording does not say where its time went: profile records it.");
  else {
    notes.push(hasWork ? "Bars stand where these times were: a moment counts for a thread before a call, and for a call before a queue; what pauses took is left out of the other sums." : "Sums of its parts; pauses stand where they were.");
    if (threads?.length) notes.push("What threads did is drawn as shares of their time.");
    if (isCut) notes.push(`Only the first ${MOST_INTERVALS} intervals are drawn.`);
    if (unknown.length) notes.push(`Not recorded: ${unknown.join(", ")}.`);
    if (hasWork && !work.stacks.length) notes.push("No stack of its threads was sampled.");
  }
  note.textContent = notes.join(" ") + " The flame graph is of all threads in its time.";
  return box;
}
