// Requests to the monitor.

// Characters that steer a display, as \u202e: texts of processes have any.
const visible = text => text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

// An answer that is an error, in the monitor's words.
class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

// The token is in this object alone: in no cookie, no storage and no address.
class Client {
  #token = "";

  get hasToken() { return this.#token !== ""; }
  use(token) { this.#token = token; }

  async fetch(path, { accept, method, signal } = {}) {
    const headers = {};
    if (accept) headers.Accept = accept;
    if (this.#token) headers.Authorization = `Bearer ${this.#token}`;
    let response;
    try {
      response = await fetch("/" + path, { method, headers, signal, cache: "no-store", credentials: "omit", redirect: "error" });
    } catch (error) {
      throw signal?.aborted ? error : new Refused(0, `The monitor does not answer (${error.message}).`);
    }
    if (response.ok) return response;
    const problem = await response.json().catch(() => ({}));
    throw new Refused(response.status, visible(problem.detail ?? `The monitor answers with ${response.status}.`));
  }

  async json(path, options) {
    const text = await (await this.fetch(path, options)).text();
    return JSON.parse(text, (_, value) => typeof value === "string" ? visible(value) : value);
  }

  async lines(path, options) {
    const text = await (await this.fetch(path, { ...options, accept: "text/plain" })).text();
    return text.split("\n").filter(Boolean).map(visible);
  }
}

// The query that names a process: runtimes of .NET Core 3.1 have no id of their own.
const NO_UID = "00000000-0000-0000-0000-000000000000";
const keyOf = ({ pid, uid }) => `${pid}/${uid}`;
function processQuery({ pid, uid }) {
  return uid === NO_UID ? `pid=${pid}` : `pid=${pid}&uid=${uid}`;
}
