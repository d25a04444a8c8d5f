// The page: the state of the monitor, which is asked for again and again, and what is done with it.

const REFRESH_MS = 5000, HISTORY = 60, MOST_METHODS = 200, BUSY_ATTEMPTS = 40, BUSY_MS = 250;
const TABS = [["processes", "Processes"], ["requests", "Requests"], ["methods", "Hot methods"], ["why", "Why"], ["rules", "Rules"], ["operations", "Operations"], ["recordings", "Recordings"], ["health", "Health"]];
const KEYS = [["/", "search"], ["1 – 8", "the tabs"], ["p", "pause"], ["Enter", "on a row: choose the process"], ["d", "light or dark"]];
const NOTES = [
  "Values are of the last five seconds, and update every five seconds unless paused.",
  "Requests, hot methods and causes use a separate session in the process while they are measured.",
  "The token is kept only in the memory of this page, and is gone when the page is closed or reloaded.",
  "Artifacts collected into this page are gone with it, unless they are saved.",
];

// What is measured for the tabs of that name.
const MEASURED = {
  requests: (client, query, options) => client.json(`requests?${query}`, options),
  methods: (client, query, options) => client.json(`top?${query}&number=${MOST_METHODS}`, options),
  why: async (client, query, options) => ({ rows: diagnosisRows(await client.lines(`why?${query}`, options)) }),
};

const counted = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

class MonitorPage {
  constructor() {
    this.client = new Client();
    this.jobs = new Jobs(this.client, said => this.jobsChanged(said));
    this.state = { processes: [], unanswered: [], ruleEvents: [], operations: [], recordings: [], counters: new Map(), history: new Map() };
    this.measured = {};
    this.tables = Object.fromEntries(["jobs", "table", "more"].map(id => [id, new Table(at(id))]));
    this.head();
    this.listen();
    this.open("processes");
    this.poll();
  }

  head() {
    for (const [id, title] of TABS) {
      const button = at("tabs").appendChild(make("button", title));
      button.id = "tab-" + id;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", "main");
      button.addEventListener("click", () => this.open(id));
    }
    this.measure = at("actions").appendChild(make("button", "Measure"));
    this.measure.id = "measure";
    this.measure.addEventListener("click", () => this.toggleMeasure());
    for (const action of ACTIONS) {
      const button = at("actions").appendChild(make("button", action.title));
      Object.assign(button, { id: "do-" + action.id, title: action.hint });
      button.addEventListener("click", () => this.act(action));
    }
    for (const [key, what] of KEYS) at("keys").append(make("dt", key), make("dd", what));
    for (const note of NOTES) at("notes").append(make("li", note));
  }

  get process() { return this.state.processes.find(process => keyOf(process) === this.chosen); }
  get seconds() { return Math.min(Math.max(Math.round(Number(at("seconds").value)) || 10, 1), 86400); }

  say(text) { at("detail").textContent = text; }

  open(tab) {
    this.tab = tab;
    for (const button of at("tabs").children) {
      const isOpen = button.id === "tab-" + tab;
      button.setAttribute("aria-selected", isOpen);
      button.tabIndex = isOpen ? 0 : -1;
    }
    at("main").dataset.tab = tab;
    this.show();
    this.refresh();
  }

  choose(process) {
    this.chosen = keyOf(process);
    at("process").value = this.chosen;
    this.show();
  }

  async poll() {
    if (!document.hidden && at("pause").getAttribute("aria-pressed") === "false") await this.refresh();
    setTimeout(() => this.poll(), REFRESH_MS);
  }

  // Asks for what is shown.
  async refresh() {
    const { state, client } = this;
    try {
      const overview = await client.json("overview");
      Object.assign(state, overview);
      if (this.tab === "health" || !state.health) state.health = await client.json("health");
      at("do-profile").hidden = !state.health.profile?.recordings;
      if (this.tab === "processes") await this.refreshCounters();
      if (this.tab === "recordings") state.recordings = await client.json("recordings");
      this.signed(client.hasToken ? "The token is in use." : "");
      if (!client.hasToken) at("sign").hidden = true;
    } catch (error) {
      if (error.status === 401 || error.status === 403) this.signed(error.message);
      else this.say(error.message);
    }
    document.documentElement.dataset.ready = "true";
    this.show();
  }

  async refreshCounters() {
    const { state } = this;
    try {
      const rows = await this.client.json("counters");
      state.counters = new Map(rows.map(row => [keyOf(row), row]));
      state.countersError = undefined;
      for (const [key, { cpuPercent }] of state.counters) {
        if (typeof cpuPercent === "number") state.history.set(key, [...state.history.get(key) ?? [], cpuPercent].slice(-HISTORY));
      }
      for (const key of state.history.keys()) if (!state.counters.has(key)) state.history.delete(key);
    } catch (error) {
      state.counters = new Map();
      state.countersError = `No counters: ${error.message}`;
    }
  }

  // Says what became of the token, where the monitor wants one.
  signed(text) {
    at("sign").hidden = false;
    at("forget").hidden = !this.client.hasToken;
    if (at("signed").textContent !== text) at("signed").textContent = text;
  }

  sign(token) {
    this.client.use(token.trim());
    at("token").value = "";
    // What the other token has shown is not for this one.
    this.state = { processes: [], unanswered: [], ruleEvents: [], operations: [], recordings: [], counters: new Map(), history: new Map() };
    this.measured = {};
    this.refresh();
  }

  // What is shown is left alone while a text of it is selected.
  show() {
    const selection = getSelection();
    if (!selection.isCollapsed && at("main").contains(selection.anchorNode) && this.shown === this.tab) return;
    this.shown = this.tab;
    this.showChoice();
    const { tab, state } = this, { table, more } = this.tables;
    const pattern = searched(at("search").value.trim()), search = pattern ?? null;
    const measured = this.measured[tab] ?? { note: "Measure collects it from the process for the time above." };
    const contents = {
      processes: () => [Views.processes(state, this.chosen, process => this.choose(process), process => this.why(process))],
      requests: () => [Views.requests(measured)],
      methods: () => [Views.methods(measured)],
      why: () => [Views.why(measured)],
      rules: () => [Views.rules(state), Views.ruleEvents(state)],
      operations: () => [Views.operations(state, id => this.jobs.linksOf(id), (row, stop) => this.end(row, stop))],
      recordings: () => [Views.recordings(state, (row, asPage) => this.jobs.loadRecording(row, asPage))],
      health: () => [Views.health(state), Views.unanswered(state)],
    };
    const [first, second] = contents[tab]();
    table.show({ ...first, search });
    if (second) more.show({ ...second, search }); else at("more").textContent = "";
    if (second) at("more").prepend(make("h2", { rules: "The last events", health: "Processes that have not answered" }[tab]));
    at("found").textContent = pattern === undefined ? "not a regular expression" : search ? `${table.rows.length} rows` : "";
    const { health, processes } = state, running = state.operations.filter(({ status }) => ["Starting", "Running", "Stopping"].includes(status)).length;
    at("summary").textContent = health ? [health.version, counted(processes.length, "process", "processes"), running && counted(running, "operation runs", "operations run")].filter(Boolean).join(" · ") : "";
    this.measure.hidden = !(tab in MEASURED);
    this.measure.textContent = measured.cancel ? "Cancel" : "Measure";
  }

  // The list of processes; the chosen one stays, and the first is chosen where none is.
  showChoice() {
    const { processes } = this.state, list = at("process");
    if (!this.process) this.chosen = processes.length ? keyOf(processes[0]) : undefined;
    const wanted = processes.map(process => [keyOf(process), nameOf(process)]);
    if (JSON.stringify(wanted) !== this.choices) {
      this.choices = JSON.stringify(wanted);
      list.replaceChildren(...wanted.map(([value, text]) => Object.assign(make("option", text), { value })));
    }
    list.value = this.chosen ?? "";
    for (const button of at("actions").children) button.disabled = !this.chosen;
  }

  jobsChanged(said) {
    if (this.jobs.list.length) this.tables.jobs.show(this.jobs.content());
    if (said) { this.say(said); this.refresh(); }
  }

  act(action) {
    const { process } = this;
    if (!process) return;
    this.say(`${action.title} of ${nameOf(process)} …`);
    this.jobs.run(action, process, this.seconds, at("egress").value.trim());
  }

  async end({ operationId, kind, process }, stop) {
    try {
      await this.client.fetch(`operations/${operationId}${stop ? "?stop=true" : ""}`, { method: "DELETE" });
      this.say(`${kind} of ${nameOf(process)} is ${stop ? "stopped" : "cancelled"}.`);
    } catch (error) {
      this.say(error.message);
    }
    this.refresh();
  }

  // Measures the chosen process for the tab, or ends that.
  async toggleMeasure() {
    const { tab, process, seconds } = this, running = this.measured[tab]?.cancel;
    if (running) { running.abort(); return; }
    if (!process) return;
    const cancel = new AbortController(), query = `${processQuery(process)}&durationSeconds=${seconds}`;
    const put = result => { this.measured[tab] = result; this.show(); };
    put({ cancel, note: `${nameOf(process)} is measured for ${seconds} s …` });
    let measured;
    try {
      const report = await this.unlessBusy(() => MEASURED[tab](this.client, query, { signal: cancel.signal }), cancel.signal);
      const idle = report.idle ? `, ${duration(report.idle)} of idle threads left out` : "";
      measured = { report, note: `${nameOf(process)}, ${seconds} s up to ${clock(new Date())}${idle}${report.rows?.length ? "" : ": there was nothing"}` };
    } catch (error) {
      measured = { note: cancel.signal.aborted ? "The measurement was cancelled." : error.message };
    }
    // Another token or another measurement may have taken its place.
    if (this.measured[tab]?.cancel !== cancel) return;
    put(measured);
    this.say(measured.note);
  }

  // Asks again for a while if the monitor is busy with another of the kind: one that was cancelled ends a moment later.
  async unlessBusy(ask, signal) {
    for (let left = BUSY_ATTEMPTS; ; left--) {
      try {
        return await ask();
      } catch (error) {
        if (error.status !== 429 || !left || signal.aborted) throw error;
        await new Promise(resolve => setTimeout(resolve, BUSY_MS));
      }
    }
  }

  // Asks for the cause of what is wrong with a process.
  why(process) {
    this.measured.why?.cancel?.abort();
    this.measured.why = undefined;
    this.choose(process);
    this.open("why");
    this.toggleMeasure();
  }

  listen() {
    at("sign").addEventListener("submit", event => { event.preventDefault(); this.sign(at("token").value); });
    at("forget").addEventListener("click", () => this.sign(""));
    at("search").addEventListener("input", () => this.show());
    at("process").addEventListener("change", () => { this.chosen = at("process").value; this.show(); });
    at("theme").addEventListener("click", nextTheme);
    at("help").addEventListener("click", () => toggle("about", "help"));
    at("pause").addEventListener("click", () => at("pause").setAttribute("aria-pressed", at("pause").getAttribute("aria-pressed") === "false"));
    at("tabs").addEventListener("keydown", event => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      const next = TABS[(TABS.findIndex(([id]) => id === this.tab) + step + TABS.length) % TABS.length][0];
      this.open(next);
      at("tab-" + next).focus();
    });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.refresh(); });
    addEventListener("keydown", event => this.key(event));
  }

  key(event) {
    if (event.key === "Escape" && event.target === at("search")) { at("search").value = ""; this.show(); at("search").blur(); return; }
    if (event.target.matches?.("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const tab = TABS[Number(event.key) - 1];
    if (event.key === "/") at("search").focus();
    else if (tab) this.open(tab[0]);
    else if (event.key === "p") at("pause").click();
    else if (event.key === "d") nextTheme();
    else if (event.key === "?") at("help").click();
    else return;
    event.preventDefault();
  }
}

globalThis.page = new MonitorPage();
