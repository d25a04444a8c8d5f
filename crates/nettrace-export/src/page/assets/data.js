// The data of the page, decoded.

// Ready: the thread could run and had no processor, which only the kernel's samples tell from blocked.
const NO_STATES = 4, WORKING = 0, BLOCKED = 1, IDLE = 2, READY = 3;

async function readData() {
  const text = atob(document.getElementById("data").textContent), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Recording(JSON.parse(await new Response(stream).text()));
}

class Recording {
  constructor(data) {
    Object.assign(this, data);
    this.stackCount = data.stacks.length / 2 + 1;
    this.callers = new Uint32Array(this.stackCount);
    this.frameOf = new Uint32Array(this.stackCount);
    for (let stack = 1; stack < this.stackCount; stack++) {
      this.callers[stack] = stack - data.stacks[2 * stack - 2];
      this.frameOf[stack] = data.stacks[2 * stack - 1];
    }
    this.threads = data.threads.map((thread, number) => new Thread(thread, number));
    this.isTime = data.unit === "ns";
    this.hasTime = data.binNs > 0;
    // How weights are copied: exactly, in a unit that is named.
    this.weightUnit = { times: data.scale, unit: { count: "" }[data.unit] ?? data.unit };
    this.hasSamples = this.threads.some(thread => thread.weights.length > 0);
    // A bin's duration in units of weight, for one thread.
    this.binWeight = this.isTime ? data.binNs / data.scale : 0;
    this.states = new Array(NO_STATES).fill(0);
    for (const thread of this.threads) thread.sums.forEach((sum, state) => this.states[state] += sum);
    for (const name of ["pauses", "exceptions", "allocations", "spanRoles", "spans", "spanParts"]) this[name] = new Cells(data[name] ?? []);
    this.curves = (data.curves ?? []).map((curve, number) => new Curve(curve, number, data.binNs));
  }

  // Weights of each state by bin.
  activity() {
    const sums = Array.from({ length: NO_STATES }, () => new Float64Array(this.bins));
    for (const thread of this.threads) thread.each(0, this.bins, (local, weight, bin) => sums[thread.states[local]][bin] += weight);
    return sums;
  }

  // The bins of requests that a part of the time touches: they may be wider than those of everything else.
  spanBins({ from, to, mask }) {
    const factor = (this.spanBinNs || this.binNs) / this.binNs, first = Math.floor(from / factor), end = Math.ceil(to / factor);
    let wide = null, count = Math.min(end * factor, this.bins) - first * factor;
    if (mask) {
      wide = new Uint8Array(end);
      for (let bin = from; bin < to; bin++) if (mask[bin]) wide[Math.floor(bin / factor)] = 1;
      count = wide.reduce((sum, one) => sum + one, 0) * factor;
    }
    return { first, end, mask: wide, count, isWider: factor > 1, from: first * factor, to: Math.min(end * factor, this.bins) };
  }

  seconds(bin) { return this.hasTime ? bin * this.binNs / 1e9 : 0; }

  // The same to the microsecond, to be shown.
  rounded(bin) { return +this.seconds(bin).toFixed(6); }
}

// A thread's samples, bin by bin; each is of one of its own stacks, which are numbered from 0.
class Thread {
  constructor({ id, process, name, stacks, samples }, number) {
    Object.assign(this, { id, process, name, number });
    const count = stacks.length / 2;
    this.stacks = new Uint32Array(count);
    this.states = new Uint8Array(count);
    for (let local = 0; local < count; local++) { this.stacks[local] = stacks[2 * local]; this.states[local] = stacks[2 * local + 1]; }
    const bins = [], starts = [];
    let pairs = 0;
    for (let at = 0; at < samples.length; at += 2 + 2 * samples[at + 1]) { starts.push(pairs); pairs += samples[at + 1]; }
    this.locals = new Uint32Array(pairs);
    this.weights = new Float64Array(pairs);
    this.sums = new Array(NO_STATES).fill(0);
    for (let at = 0, bin = 0, pair = 0; at < samples.length;) {
      bins.push(bin += samples[at]);
      const end = at + 2 + 2 * samples[at + 1];
      for (at += 2; at < end; at += 2, pair++) {
        this.locals[pair] = samples[at];
        this.weights[pair] = samples[at + 1];
        this.sums[this.states[samples[at]]] += samples[at + 1];
      }
    }
    starts.push(pairs);
    this.bins = Uint32Array.from(bins);
    this.starts = Uint32Array.from(starts);
  }

  // The weight of its work, done or held up.
  get active() { return this.sums[WORKING] + this.sums[BLOCKED] + this.sums[READY]; }

  // Passes every sample from one bin up to another, or of those that a mask has: the number of the stack, the weight and the bin.
  each(from, to, callback, mask) {
    let low = 0, high = this.bins.length;
    while (low < high) { const middle = (low + high) >> 1; if (this.bins[middle] < from) low = middle + 1; else high = middle; }
    for (; low < this.bins.length && this.bins[low] < to; low++) {
      if (mask && !mask[this.bins[low]]) continue;
      for (let pair = this.starts[low]; pair < this.starts[low + 1]; pair++) callback(this.locals[pair], this.weights[pair], this.bins[low]);
    }
  }
}

// Counts and sums by key and bin.
class Cells {
  constructor(flat) {
    this.length = flat.length / 4;
    for (const name of ["keys", "bins", "counts", "sums"]) this[name] = new Float64Array(this.length);
    for (let cell = 0, key = 0, bin = 0; cell < this.length; cell++) {
      const at = 4 * cell;
      if (flat[at]) { key += flat[at]; bin = 0; }
      this.keys[cell] = key;
      this.bins[cell] = bin += flat[at + 1];
      this.counts[cell] = flat[at + 2];
      this.sums[cell] = flat[at + 3];
    }
  }

  // Passes every cell from one bin up to another, or of those that a mask has: key, count, sum and bin.
  each(from, to, callback, mask) {
    for (let cell = 0; cell < this.length; cell++) {
      if (this.bins[cell] >= from && this.bins[cell] < to && (!mask || mask[this.bins[cell]])) callback(this.keys[cell], this.counts[cell], this.sums[cell], this.bins[cell]);
    }
  }

  total(from, to) {
    let count = 0, sum = 0;
    this.each(from, to, (_, cells, sums) => { count += cells; sum += sums; });
    return { count, sum };
  }
}
