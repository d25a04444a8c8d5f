// What is collected into this page.

const ACTIONS = [
  { id: "trace", title: "Record", hint: "A recording of that time, for dipc and other programs", isTimed: true },
  { id: "snapshot", title: "Snapshot", hint: "The last seconds, from the black box" },
  { id: "gcdump", title: "Heap", hint: "The contents of the heap, by type: pauses the process for a garbage collection" },
  { id: "dump", title: "Dump", hint: "The memory of the process, which is stopped for the copy" },
  { id: "profile", title: "Past", hint: "A page of the processor time of the last seconds, which the monitor has kept (--profile-keep)", accept: "text/html", isPast: true },
  { id: "flamegraph", title: "Page", hint: "A page of that time: threads, pauses, requests and counters over time, and a flame graph", accept: "text/html", isTimed: true },
];
// Artifacts that stay in the page, and the bytes of pieces that the browser may move to its disk.
const MOST_JOBS = 20, PIECE_BYTES = 64e6;

class Jobs {
  constructor(client, onChange) {
    Object.assign(this, { client, onChange, list: [] });
  }

  // Collects an artifact. Returns when it is here, or promised to a provider.
  run({ id, title, accept, isTimed, isPast }, process, seconds, provider) {
    // The past is always answered here.
    const egress = isPast ? "" : provider;
    const query = [processQuery(process), isTimed && `durationSeconds=${seconds}`, isPast && `from=${seconds}&format=html`, egress && `egressProvider=${encodeURIComponent(egress)}`];
    return this.load({ title, process, path: `${id}?${query.filter(Boolean).join("&")}`, accept, egress });
  }

  // Loads a file that the monitor keeps, or the page of it.
  loadRecording({ id, process }, asPage) {
    return this.load({ title: asPage ? "Page" : "File", process, path: `recordings/${id}`, accept: asPage ? "text/html" : undefined });
  }

  async load({ title, process, path, accept, egress }) {
    const job = { title, process, bytes: 0, cancel: new AbortController(), state: "running" };
    this.list.unshift(job);
    for (const old of this.list.splice(MOST_JOBS)) { old.cancel.abort(); if (old.url) URL.revokeObjectURL(old.url); }
    this.onChange();
    try {
      const response = await this.client.fetch(path, { accept, signal: job.cancel.signal });
      job.operation = response.headers.get("location")?.split("/").pop();
      if (response.status === 202) job.state = `promised to ${egress}`;
      else {
        await this.receive(job, response);
        job.state = "here";
      }
    } catch (error) {
      job.state = job.cancel.signal.aborted ? "cancelled" : "failed";
      job.error = job.state === "failed" ? error.message : "";
    }
    this.onChange(`${title} of ${nameOf(process)}: ${job.error || job.state}`);
    return job;
  }

  async receive(job, response) {
    const reader = response.body.getReader(), type = response.headers.get("content-type") ?? "";
    let pieces = [], held = 0, shown = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      pieces.push(value);
      job.bytes += value.length;
      held += value.length;
      if (held > PIECE_BYTES) { pieces = [new Blob(pieces)]; held = 0; }
      if (performance.now() - shown > 500) { shown = performance.now(); this.onChange(); }
    }
    job.name = response.headers.get("content-disposition")?.match(/filename=([\w.-]+)/)?.[1] ?? "artifact";
    job.isPage = type.startsWith("text/html");
    job.url = URL.createObjectURL(new Blob(pieces, { type }));
  }

  // The links to what an operation made, if that is in this page.
  links(job) {
    if (!job?.url) return null;
    const save = make("a", `${job.name} (${bytes(job.bytes)})`);
    Object.assign(save, { href: job.url, download: job.name });
    if (!job.isPage) return [save];
    const open = make("a", `Open ${job.name}`);
    Object.assign(open, { href: job.url, target: "_blank", rel: "noopener" });
    save.textContent = `Save (${bytes(job.bytes)})`;
    return [open, " ", save];
  }

  linksOf(operation) { return this.links(this.list.find(job => job.operation === operation && operation)); }

  content() {
    const ending = job => {
      const cell = document.createDocumentFragment(), links = this.links(job);
      if (links) cell.append(...links);
      else if (job.error) cell.append(make("span", job.error, "bad"));
      else if (job.state === "running") {
        const cancel = make("button", "Cancel");
        cancel.setAttribute("aria-label", `Cancel ${job.title} of ${nameOf(job.process)}`);
        cancel.addEventListener("click", () => job.cancel.abort());
        cell.append(job.bytes ? `${bytes(job.bytes)} ` : "", cancel);
      } else cell.append(job.state);
      return cell;
    };
    return { id: "jobs", order: { column: 2, descending: true }, rows: this.list, key: job => String(this.list.length - this.list.indexOf(job)), empty: "",
      columns: [
        { title: "Here", isText: true, value: ({ title }) => title },
        { title: "Process", isText: true, value: ({ process }) => nameOf(process) },
        { title: "Result", isText: true, value: job => -this.list.indexOf(job), element: ending },
      ] };
  }
}
