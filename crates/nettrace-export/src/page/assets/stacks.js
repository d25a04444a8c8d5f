// Stacks as a tree, by the switches; weights of its nodes, by the chosen time and threads.

// A tree of names whose form depends on the switches alone. Nodes are numbered, callers first; 0 is the root.
class StackTree {
  constructor(recording, { frames, async, byThread }) {
    this.recording = recording;
    this.names = [...recording.frames, ...recording.written, "blocked", "idle", "ready to run", ...recording.threads.map(thread => thread.name)];
    const written = recording.frames.length, special = written + recording.written.length;
    this.blockedName = special;
    this.idleName = special + 1;
    this.readyName = special + 2;
    this.threadName = special + 3;
    this.kinds = new Uint8Array(this.names.length).fill(OTHER);
    this.kinds.set(recording.kinds);
    recording.folded.forEach((fold, frame) => { if (fold > 0) this.kinds[written + fold - 1] = recording.kinds[frame]; });
    this.parents = [0];
    this.nameOf = [-1];
    this.places = new Map();
    const leaves = frames === "mine" ? [0, OTHER] : frames === "noruntime" ? [0, 1, 3, OTHER, 5] : null;
    // The name of a frame: itself, the method that was written, or none (-1).
    this.shown = Int32Array.from(recording.frames, (_, frame) => {
      const fold = async ? recording.folded[frame] : 0;
      if (fold < 0 || leaves && !leaves.includes(recording.kinds[frame])) return -1;
      return fold > 0 ? written + fold - 1 : frame;
    });
    this.bareNames = new Map();
    const all = byThread ? null : new Int32Array(recording.stackCount).fill(-1);
    const nameOfState = { [BLOCKED]: this.blockedName, [IDLE]: this.idleName, [READY]: this.readyName };
    // By thread and its own stack: the node.
    this.nodes = recording.threads.map(thread => {
      const of = all ?? new Int32Array(recording.stackCount).fill(-1);
      of[0] = byThread ? this.child(0, this.threadName + thread.number) : 0;
      return Int32Array.from(thread.stacks, (stack, local) => {
        const node = this.place(of, stack), state = thread.states[local];
        return state === WORKING ? node : this.child(node, nameOfState[state]);
      });
    });
    this.size = this.parents.length;
    this.parents = Int32Array.from(this.parents);
    this.nameOf = Int32Array.from(this.nameOf);
    this.places = null;
    this.listChildren();
    // Whether none of a node's callers has its name: however often a method is on a stack, it counts once.
    this.isOutermost = Uint8Array.from(this.parents, (parent, node) => {
      for (let at = parent; at; at = this.parents[at]) if (this.nameOf[at] === this.nameOf[node]) return 0;
      return 1;
    });
  }

  // The node of a stack; those of its callers are made first.
  place(of, stack) {
    const missing = [];
    while (of[stack] < 0) { missing.push(stack); stack = this.recording.callers[stack]; }
    let node = of[stack];
    for (const next of missing.reverse()) {
      const name = this.shown[this.recording.frameOf[next]];
      if (name >= 0 && !this.isSameMethod(node, name)) node = this.child(node, name);
      of[next] = node;
    }
    return node;
  }

  // Whether a method that was written stands below itself: below the method that starts its state machine.
  isSameMethod(node, name) {
    const caller = this.nameOf[node];
    if (name < this.recording.frames.length || node === 0 || caller >= this.blockedName) return false;
    return caller === name || this.bareName(caller) === this.bareName(name);
  }

  // A name without parameters and type arguments.
  bareName(name) {
    if (!this.bareNames.has(name)) {
      const text = this.names[name].replace(/\(.*$/, "").replace(/\[.*?\]|`\d+/g, "");
      this.bareNames.set(name, text.replace(/<[^<>]*>/g, ""));
    }
    return this.bareNames.get(name);
  }

  child(parent, name) {
    const key = parent * 0x4000000 + name;
    let node = this.places.get(key);
    if (node === undefined) {
      this.places.set(key, node = this.parents.length);
      this.parents.push(parent);
      this.nameOf.push(name);
    }
    return node;
  }

  // Children of each node in the order of their names: they stay where they are when weights change.
  listChildren() {
    const order = Uint32Array.from({ length: this.size }, (_, node) => node), rank = new Uint32Array(this.names.length);
    this.names.map((name, index) => [name, index]).sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]).forEach(([, index], place) => rank[index] = place);
    order.sort((a, b) => this.parents[a] - this.parents[b] || rank[this.nameOf[a]] - rank[this.nameOf[b]]);
    // The root stands first, being its own parent.
    this.children = order.subarray(1);
    this.firstChild = new Uint32Array(this.size + 1);
    for (const node of this.children) this.firstChild[this.parents[node] + 1]++;
    for (let node = 0; node < this.size; node++) this.firstChild[node + 1] += this.firstChild[node];
  }

  isState(node) { const name = this.nameOf[node]; return name >= this.blockedName && name < this.threadName; }

  kind(name) { return name === this.blockedName ? "waiting" : name === this.readyName ? "ready" : name === this.idleName ? "resting" : name < 0 ? "other" : KINDS[this.kinds[name]]; }
}

// Weights of a tree's nodes in a part of the time, of some threads and states.
class Weights {
  constructor(tree, { from, to, mask, threads, blocked, idle }) {
    this.tree = tree;
    this.own = new Float64Array(tree.size);
    const shows = [true, blocked, idle, blocked];
    this.leftOut = new Array(NO_STATES).fill(0);
    for (const thread of tree.recording.threads) {
      if (threads.size && !threads.has(thread.number)) continue;
      const nodes = tree.nodes[thread.number];
      thread.each(from, to, (local, weight) => {
        const state = thread.states[local];
        if (shows[state]) this.own[nodes[local]] += weight; else this.leftOut[state] += weight;
      }, mask);
    }
    this.all = this.own.slice();
    this.blocked = new Float64Array(tree.size);
    for (let node = tree.size - 1; node > 0; node--) {
      if (tree.nameOf[node] === tree.blockedName || tree.nameOf[node] === tree.readyName) this.blocked[node] = this.own[node];
      this.all[tree.parents[node]] += this.all[node];
      this.blocked[tree.parents[node]] += this.blocked[node];
    }
    this.total = this.all[0];
  }

  // A row for each method: what it weighs alone, with what it called, and blocked.
  top() {
    const { tree } = this, rows = new Map();
    const row = name => rows.get(name) ?? rows.set(name, { name, self: 0, total: 0, blocked: 0 }).get(name);
    for (let node = 1; node < tree.size; node++) {
      if (!this.all[node]) continue;
      if (tree.isState(node)) {
        const parent = tree.parents[node];
        if (parent && tree.nameOf[parent] < tree.threadName) row(tree.nameOf[parent]).self += this.own[node];
      } else if (tree.nameOf[node] < tree.threadName) {
        const sums = row(tree.nameOf[node]);
        sums.self += this.own[node];
        if (tree.isOutermost[node]) { sums.total += this.all[node]; sums.blocked += this.blocked[node]; }
      }
    }
    return [...rows.values()];
  }

  flame() { return new CalleeNode(this, 0, null); }

  callers() { return CallerNode.root(this); }
}

// A box of the flame graph.
class CalleeNode {
  constructor(weights, node, up) {
    Object.assign(this, { weights, node, up, depth: up ? up.depth + 1 : 0, name: weights.tree.nameOf[node], all: weights.all[node], own: weights.own[node] });
  }

  get kids() {
    if (!this.list) {
      const { tree, all } = this.weights;
      this.list = [];
      for (let at = tree.firstChild[this.node]; at < tree.firstChild[this.node + 1]; at++) {
        if (all[tree.children[at]]) this.list.push(new CalleeNode(this.weights, tree.children[at], this));
      }
    }
    return this.list;
  }
}

// A box of the inverse: a method, below those that it called; the stacks of each box go up to it.
class CallerNode {
  constructor(weights, name, up) {
    Object.assign(this, { weights, name, up, depth: up ? up.depth + 1 : 0, all: 0, own: 0, nodes: [], amounts: [] });
  }

  static root(weights) {
    const { tree } = weights, root = new CallerNode(weights, -1, null);
    root.all = weights.total;
    for (let node = 0; node < tree.size; node++) {
      if (weights.own[node]) { root.nodes.push(tree.isState(node) ? tree.parents[node] : node); root.amounts.push(weights.own[node]); }
    }
    root.list = root.group(node => node);
    return root;
  }

  get kids() { return this.list ??= this.group(node => this.weights.tree.parents[node]); }

  group(next) {
    const { tree } = this.weights, boxes = new Map();
    this.nodes.forEach((node, index) => {
      const at = next(node), weight = this.amounts[index];
      if (!at) { this.own += weight; return; }
      const name = tree.nameOf[at];
      const box = boxes.get(name) ?? boxes.set(name, new CallerNode(this.weights, name, this)).get(name);
      box.nodes.push(at);
      box.amounts.push(weight);
      box.all += weight;
    });
    return [...boxes.values()].sort((a, b) => b.all - a.all);
  }
}
