// What each view shows.

const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};

const nameOf = ({ name, pid }) => `${name} (${pid})`;
const time = { unit: "ns", show: n => duration(n) };
const clock = text => {
  const date = new Date(text);
  return Number.isNaN(date.valueOf()) ? text : date.toLocaleTimeString("en-GB");
};
function uptime(seconds) {
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  return days ? `${days} d ${hours} h` : hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min` : `${seconds} s`;
}

// The rows of dipc why: a label in nine columns, which is empty where a row belongs to the one above, and a sentence.
const diagnosisRows = lines => lines.map((line, place) => ({ place, label: line.slice(0, 9).trim(), text: line.slice(11) }));

// The last values as a line, from 0 up.
function sparkline(values) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), line = svg.appendChild(document.createElementNS(svg.namespaceURI, "polyline"));
  const most = Math.max(...values, 1e-9), step = 60 / Math.max(values.length - 1, 1);
  svg.setAttribute("viewBox", "0 0 60 14");
  svg.setAttribute("aria-hidden", "true");
  line.setAttribute("points", values.map((value, index) => `${(index * step).toFixed(1)},${(13 - 12 * value / most).toFixed(1)}`).join(" "));
  return svg;
}

const Views = {
  processes({ processes, counters, history, countersError }, chosen, onRow, onWhy) {
    const of = process => counters.get(keyOf(process)) ?? {};
    const details = process => {
      const cell = document.createDocumentFragment(), { containerId, podUid, commandLine } = process;
      const why = make("button", "Why?");
      why.title = "The cause of what is wrong with it, from some seconds of the process";
      why.setAttribute("aria-label", `Why? ${nameOf(process)}`);
      why.addEventListener("click", event => { event.stopPropagation(); onWhy(process); });
      cell.append(process.name, " ", why);
      if (commandLine) cell.append(make("span", commandLine, "faint cut"));
      const where = [containerId && `container ${containerId.slice(0, 12)}`, podUid && `pod ${podUid}`].filter(Boolean).join(", ");
      if (where) cell.append(make("span", where, "faint"));
      return cell;
    };
    const percentOf = process => {
      const cell = document.createDocumentFragment(), values = history.get(keyOf(process)) ?? [];
      if (values.length > 1) cell.append(sparkline(values));
      const { cpuPercent } = of(process);
      cell.append(typeof cpuPercent === "number" ? number(cpuPercent) + " %" : "");
      return cell;
    };
    return { id: "processes", order: { column: 0, descending: false }, rows: processes, onRow, key: keyOf,
      empty: "No .NET process is watched.", note: countersError,
      isChosen: process => keyOf(process) === chosen,
      columns: [
        { title: "Process", isText: true, value: ({ name, commandLine, containerId }) => `${name} ${commandLine ?? ""} ${containerId ?? ""}`, element: details },
        { title: "Pid", value: ({ pid }) => pid },
        { title: "CPU", hint: "Of all processors that the process may use", value: process => of(process).cpuPercent, element: percentOf },
        { title: "Memory", hint: "In RAM", value: process => of(process).memoryBytes, show: bytes },
        { title: "Pool", hint: "Threads of the thread pool, and queued work", value: process => of(process).poolThreads,
          show: (threads, process) => of(process).poolQueue ? `${number(threads)} + ${number(of(process).poolQueue)} queued` : number(threads) },
        { title: "Exceptions/s", value: process => of(process).exceptionsPerSecond, show: number },
        { title: "Requests/s", value: process => of(process).requestsPerSecond, show: number },
        { title: "Up", value: ({ uptimeSeconds }) => uptimeSeconds, show: uptime },
        { title: "Runtime", isText: true, value: ({ runtimeVersion }) => (runtimeVersion ?? "").split(/[+ ]/)[0] },
      ] };
  },

  requests({ report, note }) {
    return { id: "requests", order: { column: 2, descending: true }, rows: report?.rows ?? [], note, empty: note ?? "",
      columns: [
        { title: "Name", isText: true, value: ({ name, task }) => name || task },
        { title: "Kind", isText: true, value: ({ role, task }) => ({ server: "request", outgoing: "call" })[role] ?? task },
        { title: "Count", value: ({ count }) => count, show: number },
        { title: "Per second", value: row => row.per_second, show: number },
        { title: "Errors", value: ({ errors }) => errors, show: n => n ? number(n) : "" },
        { title: "Statuses", isText: true, value: ({ statuses }) => statuses.map(({ status, count }) => `${status ?? "?"} × ${number(count)}`).join(", ") },
        { title: "p50", value: ({ latencies }) => latencies.p50_ns, ...time }, { title: "p90", value: ({ latencies }) => latencies.p90_ns, ...time },
        { title: "p99", value: ({ latencies }) => latencies.p99_ns, ...time }, { title: "Longest", value: ({ latencies }) => latencies.max_ns, ...time },
      ] };
  },

  methods({ report, note }) {
    const cost = { unit: "ns", show: n => n ? `${duration(n)} ${percent(n, report.total)}` : "" };
    return { id: "methods", order: { column: 1, descending: true }, rows: report?.rows ?? [], note, empty: note ?? "",
      columns: [
        { title: "Method", isText: true, value: ({ csharp }) => csharp },
        { title: "Self", hint: "While it ran itself, or waited", value: ({ exclusive }) => exclusive, ...cost },
        { title: "Total", hint: "While it or anything that it called ran", value: ({ inclusive }) => inclusive, ...cost },
        { title: "Blocked", hint: "Part of the total in which it waited in the midst of work", value: ({ blocked }) => blocked, ...cost },
      ] };
  },

  why({ report, note }) {
    const sentence = ({ label, text }) => ["Cause", "Also"].includes(label) ? make("strong", text) : make("span", text, label ? "" : "faint");
    return { id: "why", order: { column: 0, descending: false }, rows: report?.rows ?? [], note, empty: note ?? "",
      columns: [
        { title: "Part", isText: true, value: ({ place, label }) => `${String(place).padStart(3, "0")} ${label}`, element: ({ label }) => make("span", label) },
        { title: "Diagnosis", isText: true, value: ({ text }) => text, element: sentence },
      ] };
  },

  rules({ processes }) {
    const rows = processes.flatMap(process => process.rules.map(rule => ({ process, ...rule })));
    return { id: "rules", order: { column: 0, descending: false }, rows, key: ({ process, name }) => `${keyOf(process)} ${name}`,
      empty: "No rule applies to a watched process.",
      columns: [
        { title: "Rule", isText: true, value: ({ name }) => name },
        { title: "Process", isText: true, value: ({ process }) => nameOf(process) },
        { title: "State", isText: true, value: ({ state }) => state, element: ({ state, stateReason }) => {
          const cell = document.createDocumentFragment();
          cell.append(state, make("span", stateReason, "faint"));
          return cell;
        } },
        { title: "Fired", value: ({ lifetimeOccurrences }) => lifetimeOccurrences },
        { title: "In the window", value: ({ slidingWindowOccurrences }) => slidingWindowOccurrences },
        { title: "Limit", value: ({ actionCountLimit }) => actionCountLimit,
          show: (limit, rule) => rule.actionCountSlidingWindowDurationLimit ? `${limit} in ${rule.actionCountSlidingWindowDurationLimit}` : String(limit) },
        { title: "Prevented", hint: "Firings prevented by the limit", value: ({ throttled }) => throttled, show: n => n ? number(n) : "" },
        { title: "Missed", hint: "Firings while its actions ran", value: ({ missed }) => missed, show: n => n ? number(n) : "" },
      ] };
  },

  ruleEvents({ ruleEvents }) {
    return { id: "ruleEvents", order: { column: 0, descending: true }, rows: ruleEvents, empty: "No rule has fired.",
      columns: [
        { title: "Time", isText: true, value: event => event.time, show: clock },
        { title: "Rule", isText: true, value: ({ rule }) => rule },
        { title: "Process", isText: true, value: ({ processName, pid }) => `${processName} (${pid})` },
        { title: "Event", isText: true, value: ({ text }) => text },
      ] };
  },

  operations({ operations }, madeBy, onStop) {
    const ending = row => {
      const cell = document.createDocumentFragment(), made = madeBy(row.operationId);
      if (made) cell.append(...made);
      else if (row.error) cell.append(make("span", row.error.message, "faint"));
      else if (row.resourceLocation) cell.append(row.resourceLocation);
      if (["Starting", "Running"].includes(row.status)) {
        for (const [title, stop, can] of [["Stop", true, row.isStoppable], ["Cancel", false, true]]) {
          if (!can) continue;
          const button = make("button", title);
          button.setAttribute("aria-label", `${title} ${row.kind} of ${nameOf(row.process)}`);
          button.addEventListener("click", () => onStop(row, stop));
          cell.append(button, " ");
        }
      }
      return cell;
    };
    return { id: "operations", order: { column: 0, descending: true }, rows: operations, key: ({ operationId }) => operationId,
      empty: "Nothing was collected.",
      columns: [
        { title: "Time", isText: true, value: ({ createdDateTime }) => createdDateTime, show: clock },
        { title: "Artifact", isText: true, value: ({ kind }) => kind },
        { title: "Process", isText: true, value: ({ process }) => nameOf(process) },
        { title: "State", isText: true, value: ({ status }) => status },
        { title: "To", isText: true, value: ({ egressProviderName }) => egressProviderName ?? "the client" },
        { title: "Result", isText: true, value: row => row.resourceLocation ?? row.error?.message ?? "", element: ending },
      ] };
  },

  recordings({ recordings }, onLoad) {
    const file = row => {
      const cell = document.createDocumentFragment();
      cell.append(row.name);
      const from = [row.egressProviderName && `in ${row.egressProviderName}`, row.rule && `rule ${row.rule}`, row.operationId && `operation ${row.operationId}`].filter(Boolean).join(", ");
      if (from) cell.append(make("span", from, "faint"));
      return cell;
    };
    const loading = row => {
      const cell = document.createDocumentFragment();
      for (const [title, asPage, can] of [["Page", true, row.hasPage], ["Load", false, true]]) {
        if (!can) continue;
        const button = make("button", title);
        button.setAttribute("aria-label", `${title} of ${row.name}`);
        button.addEventListener("click", () => onLoad(row, asPage));
        cell.append(button, " ");
      }
      return cell;
    };
    return { id: "recordings", order: { column: 0, descending: true }, rows: recordings, key: ({ id }) => id,
      empty: "The monitor keeps no artifact and no bundle in its directories.",
      columns: [
        { title: "Time", isText: true, value: ({ modified }) => modified, show: clock },
        { title: "File", isText: true, value: ({ name, rule }) => `${name} ${rule ?? ""}`, element: file },
        { title: "Artifact", isText: true, value: ({ kind }) => kind },
        { title: "Process", isText: true, value: ({ process }) => nameOf(process) },
        { title: "Size", value: row => row.bytes, show: bytes },
        { title: "Here", isText: true, value: ({ hasPage }) => hasPage ? "page" : "", element: loading },
      ] };
  },

  // The members of the monitor's state, those within others by both names.
  health({ health }) {
    const rows = [], add = (value, path) => {
      if (value !== null && typeof value === "object") for (const [name, member] of Object.entries(value)) add(member, [...path, name]);
      else rows.push({ path, value });
    };
    add(health ?? {}, []);
    const words = path => {
      const text = path.join(": ").replace(/([a-z])([A-Z])/g, (_, one, other) => `${one} ${other.toLowerCase()}`).replace(/\b(cpu|otlp)\b/, name => name.toUpperCase());
      return text[0].toUpperCase() + text.slice(1);
    };
    const isLoss = ({ path, value }) => /lost|leftOut|dropped|failed|unanswered/i.test(path.join()) && value > 0;
    const shown = ({ path, value }) => value === null ? "–" : typeof value !== "number" ? String(value)
      : /bytes$/i.test(path.at(-1)) ? bytes(value) : path.at(-1) === "uptimeSeconds" ? uptime(value) : /seconds$/i.test(path.at(-1)) ? number(value) + " s" : number(value);
    return { id: "health", order: { column: 0, descending: false }, rows: rows.map((row, place) => ({ ...row, place })), empty: "",
      columns: [
        { title: "State of the monitor", isText: true, value: ({ path }) => words(path) },
        { title: "Value", isText: true, value: shown, element: row => make("span", shown(row), isLoss(row) ? "bad" : "") },
      ] };
  },

  unanswered({ unanswered }) {
    return { id: "unanswered", order: { column: 0, descending: false }, rows: unanswered, empty: "All processes that were found have answered.",
      columns: [
        { title: "Pid", value: ({ pid }) => pid },
        { title: "Attempts", value: ({ attempts }) => attempts },
        { title: "Error", isText: true, value: ({ error }) => error ?? "" },
      ] };
  },
};
