// The tables of a recording.

const SPAN_DURATIONS = 4096, SPAN_PARTS = ["GC pause", "on a thread", "calls", "queued", "waiting"];
const PART_COLOURS = ["pause", "working", "request", "allocation", "waiting"];

// What each tab shows of a part of the time.
class Tables {
  constructor(recording) { this.recording = recording; }

  top(weights, onRow) {
    const r = this.recording, { tree } = weights, cost = { ...r.weightUnit, show: n => n ? `${amount(r, n)} ${percent(n, weights.total)}` : "" };
    return { id: "top", order: { column: 1, descending: true }, empty: "No samples in this part of the time.", rows: weights.top(), onRow,
      columns: [
        { title: "Method", isText: true, value: row => tree.names[row.name], kind: row => tree.kind(row.name) },
        { title: "Self", hint: "While it ran itself", value: row => row.self, ...cost },
        { title: "Total", hint: "While it or anything that it called ran", value: row => row.total, ...cost },
        ...(r.isTime ? [{ title: "Blocked", hint: "Part of the total in which it waited in the midst of work", value: row => row.blocked, ...cost }] : []),
      ] };
  }

  // Latencies and sums of the spans that began in a part of the time.
  requests(range) {
    const r = this.recording, rows = new Map(), { first, end, from, to, mask, count: spanBins, isWider } = r.spanBins(range);
    const row = index => rows.get(index) ?? rows.set(index, { index, count: 0, errors: 0, durations: [], time: 0, parts: [0, 0, 0, 0, 0] }).get(index);
    r.spans.each(first, end, (key, count, errors) => {
      const sums = row(Math.floor(key / SPAN_DURATIONS));
      sums.count += count;
      sums.errors += errors;
      sums.durations.push([key % SPAN_DURATIONS, count]);
      sums.time += middle(key % SPAN_DURATIONS) * count * 1000;
    }, mask);
    r.spanParts.each(first, end, (key, _, sum) => { if (rows.has(Math.floor(key / 5))) row(Math.floor(key / 5)).parts[key % 5] += sum; }, mask);
    for (const sums of rows.values()) {
      sums.durations.sort((a, b) => a[0] - b[0]);
      const at = share => {
        let rank = Math.max(1, Math.ceil(sums.count * share));
        for (const [number, count] of sums.durations) if ((rank -= count) <= 0) return longest(number) * 1000;
        return 0;
      };
      Object.assign(sums, { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) });
    }
    const seconds = spanBins * r.binNs / 1e9, time = { unit: "ns", show: n => duration(n) };
    const note = mask ? (isWider ? `All requests that began in the bins of ${duration(r.spanBinNs)} that the chosen cells touch.` : "")
      : from === range.from && to === range.to ? ""
      : `All requests from ${r.seconds(from)} s up to ${r.seconds(to)} s: there are too many for bins of less than ${duration(r.spanBinNs)}.`;
    return { id: "requests", note, order: { column: 2, descending: true }, empty: "No requests or other activities began in this part of the time.", rows: [...rows.values()],
      columns: [
        { title: "Name", isText: true, value: ({ index }) => r.spanRows[index][2] || r.spanRows[index][1] },
        { title: "Kind", isText: true, value: ({ index }) => ({ server: "request", outgoing: "call", other: "" })[r.spanRows[index][0]] || r.spanRows[index][1] },
        { title: "Count", value: ({ count }) => count, show: number },
        { title: "Per second", value: ({ count }) => count / seconds, show: number },
        { title: "Errors", value: ({ errors }) => errors, show: n => n ? number(n) : "" },
        { title: "p50", value: ({ p50 }) => p50, ...time }, { title: "p90", value: ({ p90 }) => p90, ...time },
        { title: "p99", value: ({ p99 }) => p99, ...time }, { title: "Longest", value: ({ max }) => max, ...time },
        { title: "Where the time went", isText: true, value: ({ parts, time }) => partsText(parts, time), element: ({ parts, time }) => partsBar(parts, time) },
      ] };
  }

  slowest({ from, to, mask }, onRow) {
    const r = this.recording, began = ([, start]) => { const bin = Math.floor(start * 1000 / r.binNs); return bin >= from && bin < to && (!mask || mask[bin]); };
    return { id: "slowest", order: { column: 2, descending: true }, empty: "None of the slowest requests began in this part of the time.", rows: (r.slowest ?? []).filter(began), onRow,
      columns: [
        { title: "Name", isText: true, value: ([row]) => r.spanRows[row][2] || r.spanRows[row][1] },
        { title: "Start", unit: "ns", value: row => row[1] * 1000, show: instant },
        { title: "Duration", unit: "ns", value: row => row[2] * 1000, show: (ns, row) => duration(ns) + (row[5] ? "" : " …") },
        { title: "Status", isText: true, value: row => row[3] + (row[4] ? " failed" : "") + (row[5] ? "" : " not ended") },
        { title: "Where the time went", isText: true, value: row => partsText(row.slice(6).map(part => part * 1000), row[2] * 1000), element: row => partsBar(row.slice(6).map(part => part * 1000), row[2] * 1000) },
      ] };
  }

  threads({ from, to, mask }, chosen, onRow) {
    const r = this.recording, cost = { ...r.weightUnit, show: n => n ? amount(r, n) : "" };
    const rows = r.threads.map(thread => {
      const sums = new Array(NO_STATES).fill(0);
      thread.each(from, to, (local, weight) => { sums[thread.states[local]] += weight; }, mask);
      return { thread, sums };
    });
    const states = r.isTime ? [["Working", WORKING], ["Blocked", BLOCKED], ...(r.states[READY] ? [["Ready", READY]] : []), ...(r.idleKept ? [["Idle", IDLE]] : [])] : [[r.measure, WORKING]];
    return { id: "threads", order: { column: 2, descending: true }, empty: "The recording has no samples of threads.", rows: rows.filter(({ sums }) => sums.some(Boolean)), onRow,
      isChosen: ({ thread }) => chosen.has(thread.number),
      columns: [
        { title: "Thread", isText: true, value: ({ thread }) => thread.name },
        { title: "Id", value: ({ thread }) => thread.id },
        ...states.map(([title, state]) => ({ title, value: ({ sums }) => sums[state], ...cost })),
        ...(r.processes.length > 1 ? [{ title: "Process", isText: true, value: ({ thread }) => r.processes[thread.process] }] : []),
      ] };
  }

  collections({ from, to, mask }, onRow) {
    const r = this.recording, inside = row => { const bin = Math.floor(row[4] * 1000 / r.binNs); return bin >= from && bin < to && (!mask || mask[bin]); };
    const time = { unit: "ns", times: 1000, show: us => duration(us * 1000) }, size = { unit: "bytes", show: n => bytes(n) };
    return { id: "collections", order: { column: 0, descending: false }, empty: "No collections began in this part of the time.", rows: (r.collections ?? []).filter(inside), onRow,
      columns: [
        { title: "Number", value: row => row[0] }, { title: "Generation", value: row => row[1] },
        { title: "Reason", isText: true, value: row => row[2] }, { title: "Kind", isText: true, value: row => row[3] },
        { title: "Start", unit: "ns", times: 1000, value: row => row[4], show: us => instant(us * 1000) },
        { title: "Duration", value: row => row[5], ...time }, { title: "Paused", value: row => row[6], ...time },
        { title: "Before", value: row => row[7], ...size }, { title: "After", value: row => row[8], ...size }, { title: "Promoted", value: row => row[9], ...size },
      ] };
  }

  exceptions({ from, to, mask }) {
    const r = this.recording, rows = new Map();
    r.exceptions.each(from, to, (type, count, _, bin) => {
      const row = rows.get(type) ?? rows.set(type, { type, count: 0, first: bin }).get(type);
      row.count += count;
      row.last = bin;
    }, mask);
    return { id: "exceptions", order: { column: 1, descending: true }, empty: "No exceptions were thrown in this part of the time.", rows: [...rows.values()],
      columns: [
        { title: "Type", isText: true, value: ({ type }) => r.exceptionTypes[type][0] },
        { title: "Thrown", value: ({ count }) => count, show: number },
        { title: "First message", isText: true, value: ({ type }) => r.exceptionTypes[type][1] },
        { title: "First", unit: "ns", times: 1e9, value: ({ first }) => r.seconds(first), show: s => instant(s * 1e9) },
        { title: "Last", unit: "ns", times: 1e9, value: ({ last }) => r.seconds(last), show: s => instant(s * 1e9) },
      ] };
  }
}

// The longest duration in microseconds that has a number: the first 128 have one each, then each power of two has 64.
function longest(number) {
  if (number < 128) return number;
  const shift = (number >> 6) - 1;
  return (number - (shift << 6)) * 2 ** shift;
}

const middle = number => number < 128 ? number : longest(number) - 2 ** (number >> 6) / 4;

// The parts of a time, with the part that is not known; less than a hundredth of it is the inaccuracy of the sums.
function partsOf(parts, all) {
  const known = parts.reduce((sum, part) => sum + part, 0), rest = all - known;
  return { known, whole: Math.max(all, known), rest: rest > all / 100 ? rest : 0 };
}
function partsText(parts, all) {
  const { rest } = partsOf(parts, all), texts = parts.map((part, index) => part ? `${SPAN_PARTS[index]} ${duration(part)}` : "").filter(Boolean);
  if (rest && texts.length) texts.push(`not known ${duration(rest)}`);
  return texts.join(", ");
}
// The bar is as wide as the whole time: what is not known stays empty.
function partsBar(parts, all) {
  const bar = document.createElement("span"), { known, whole } = partsOf(parts, all);
  bar.className = "bar";
  bar.title = partsText(parts, all);
  if (!known) return "";
  parts.forEach((part, index) => {
    const piece = bar.appendChild(document.createElement("i"));
    piece.style.width = 100 * part / whole + "%";
    piece.style.background = `var(--${PART_COLOURS[index]})`;
  });
  return bar;
}
