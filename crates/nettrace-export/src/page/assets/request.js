// One request: the parts of its time, and when in it the collector stopped the program.

// Rows of a request's time, in the order in which a request meets them. Parts are sums: only of pauses the page knows when they were.
function requestParts(recording, [, start, micros, , , hasEnded, ...parts]) {
  const all = micros * 1000, { binNs } = recording, from = start * 1000, marks = [];
  recording.pauses.each(Math.floor(from / binNs), Math.ceil((from + all) / binNs), (_, count, sum, bin) => {
    if (!sum || !all) return;
    const left = Math.max(0, (bin * binNs - from) / all), right = Math.min(1, ((bin + 1) * binNs - from) / all);
    if (right > left) marks.push([left, right - left]);
  });
  const order = [3, 1, 4, 2, 0].filter(part => parts[part] !== undefined && parts[part] !== null);
  const rows = order.map(part => ({ name: SPAN_PARTS[part], colour: PART_COLOURS[part], ns: parts[part] * 1000, marks: part ? [] : marks }));
  return { rows, all, hasEnded, unknown: SPAN_PARTS.filter((_, part) => parts[part] === undefined || parts[part] === null) };
}

// A table of these, each with a bar as long as its share of the request.
function requestTable(recording, row) {
  const { rows, all, hasEnded, unknown } = requestParts(recording, row), box = document.createElement("div");
  const table = document.createElement("table"), caption = table.createCaption(), body = table.createTBody();
  box.className = "request";
  caption.textContent = `${recording.spanRows[row[0]][2] || recording.spanRows[row[0]][1]}: ${duration(all)}${hasEnded ? "" : " so far"} from ${instant(row[1] * 1000)}`;
  for (const { name, colour, ns, marks } of rows) {
    const line = body.insertRow(), title = line.appendChild(document.createElement("th"));
    title.scope = "row";
    title.textContent = name;
    line.insertCell().textContent = duration(ns);
    line.insertCell().textContent = percent(ns, all);
    const bar = line.insertCell().appendChild(document.createElement("span"));
    bar.className = "bar";
    for (const [left, width] of marks.length ? marks : [[0, Math.min(1, ns / (all || 1))]]) {
      const piece = bar.appendChild(document.createElement("i"));
      Object.assign(piece.style, { left: 100 * left + "%", width: 100 * width + "%", background: `var(--${colour})` });
    }
  }
  const note = document.createElement("p");
  note.className = "note";
  note.textContent = rows.length ? `Sums of its parts${rows.some(({ marks }) => marks.length) ? "; pauses stand where they were" : ""}.${unknown.length ? ` Not recorded: ${unknown.join(", ")}.` : ""} The flame graph is of all threads in its time.`
    : "The recording does not say where its time went: profile records it. The flame graph is of all threads in its time.";
  box.append(table, note);
  return box;
}
