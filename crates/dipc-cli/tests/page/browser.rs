//! A browser without a window.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Names of the programs.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Options of all runs: no window, and nothing that is loaded.
const FLAGS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
];

/// The time limit for opening a page and all that is done there.
const LIMIT: Duration = Duration::from_secs(120);

/// True once the missing browser was reported.
static SAID: OnceLock<()> = OnceLock::new();

/// Browsers run one at a time: each takes several processes.
static ONE: Mutex<()> = Mutex::new(());

pub(crate) struct Browser(PathBuf);

impl Browser {
    /// The installed browser; none where there is none, which is then said.
    pub(crate) fn find() -> Option<Self> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&folders)
            .flat_map(|folder| PROGRAMS.map(|name| folder.join(name)))
            .find(|program| program.is_file());
        if found.is_none() {
            let required =
                std::env::var("DIPC_REQUIRE_BROWSER").is_ok_and(|it| !matches!(&*it, "" | "0" | "false"));
            assert!(!required, "Chromium is missing (Debian: apt-get install chromium)");
            SAID.get_or_init(|| {
                eprintln!("NOT RUN: tests of pages: Chromium is missing (Debian: apt-get install chromium)");
            });
        }
        found.map(Self)
    }

    /// Opens a page, runs a script, and returns its result. `pause()` waits until the browser has drawn.
    pub(crate) fn drive(&self, page: &Path, script: &str) -> Value {
        let driven = driven(page, script);
        let dumped = self.dump(&driven, page.parent().expect("a folder"));
        let result = dumped.split_once("<pre id=\"result\">").and_then(|(_, rest)| rest.split_once("</pre>"));
        let (json, _) = result.unwrap_or_else(|| {
            panic!(
                "no result in {} bytes of a page: {}",
                dumped.len(),
                dumped.get(dumped.len().saturating_sub(500)..).unwrap_or_default()
            )
        });
        returned(json)
    }

    /// The same for a page that has work done by a worker: the browser's virtual time, in which `drive`
    /// waits, goes on without it.
    pub(crate) fn drive_with_workers(&self, page: &Path, script: &str) -> Value {
        let driven = driven(page, script);
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let profile = tempfile::tempdir_in(page.parent().expect("a folder")).expect("a folder");
        let mut connection = Connection::open(&self.0, profile.path());
        let session = connection.attach(&json!({ "url": format!("file://{}", driven.display()) }));
        let look = json!({ "expression": "document.getElementById('result')?.textContent ?? ''", "returnByValue": true });
        loop {
            let mut seen = connection.call(Some(&session), "Runtime.evaluate", &look);
            if let Some(text) = seen["result"]["value"].take().as_str().filter(|text| !text.is_empty()) {
                return returned(text);
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Opens a page of a server, in real time.
    pub(crate) fn visit(&self, url: &str) -> Tab {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let profile = tempfile::tempdir().expect("a folder");
        let mut connection = Connection::open(&self.0, profile.path());
        let session = connection.attach(&json!({ "url": "about:blank" }));
        // All errors of scripts, and all that the page's policy forbids.
        let source = "globalThis.errors = [];
            addEventListener('error', event => errors.push(String(event.message)));
            addEventListener('unhandledrejection', event => errors.push(String(event.reason)));
            addEventListener('securitypolicyviolation', event => errors.push(`${event.effectiveDirective} ${event.blockedURI}`));";
        connection.call(Some(&session), "Page.enable", &json!({}));
        let script = json!({ "source": source });
        connection.call(Some(&session), "Page.addScriptToEvaluateOnNewDocument", &script);
        connection.call(Some(&session), "Page.navigate", &json!({ "url": url }));
        Tab { connection, session, _profile: profile, _one: one }
    }

    /// Returns the document once all is done.
    fn dump(&self, page: &Path, folder: &Path) -> String {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let profile = tempfile::tempdir_in(folder).expect("a folder");
        let mut child = Command::new(&self.0)
            .args(FLAGS)
            .args(["--virtual-time-budget=60000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let mut output = child.stdout.take().expect("a pipe");
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            output.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
        });
        let start = Instant::now();
        while child.try_wait().expect("a process").is_none() {
            if start.elapsed() > LIMIT {
                child.kill().expect("a process");
                child.wait().expect("a process");
                panic!("the browser took more than {LIMIT:?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        reader.join().expect("a reader").expect("a pipe")
    }
}

/// An open page of a server.
pub(crate) struct Tab {
    connection: Connection,
    session: Value,
    _profile: TempDir,
    _one: MutexGuard<'static, ()>,
}

impl Tab {
    /// Runs a script once the page is ready, and returns its result. `wait(condition)` waits until a
    /// condition holds.
    pub(crate) fn run(&mut self, script: &str) -> Value {
        let expression = format!(
            "(async () => {{
               const pause = () => new Promise(done => setTimeout(done, 20));
               const wait = async condition => {{ for (let tries = 0; tries < 3000; tries++) {{ if (condition()) return; await pause(); }} throw new Error(`it does not happen: ${{condition}}`); }};
               await wait(() => document.documentElement?.dataset.ready === 'true');
               const result = await (async () => {{ {script} }})();
               return JSON.stringify({{ errors: globalThis.errors ?? [], result: result ?? null }});
             }})()"
        );
        let mut expression = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        // Links may open pages.
        expression["userGesture"] = true.into();
        // The limit is of each script.
        self.connection.start = Instant::now();
        let mut seen = self.connection.call(Some(&self.session), "Runtime.evaluate", &expression);
        assert!(seen["exceptionDetails"].is_null(), "{script}: {seen}");
        returned(seen["result"]["value"].take().as_str().expect("a text"))
    }

    /// Calls a method of the DevTools protocol.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.connection.call(Some(&self.session), method, parameters)
    }

    /// Sets the width of the window in pixels, and the colours that the system has.
    pub(crate) fn set_screen(&mut self, width: u32, is_dark: bool) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let value = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.call("Emulation.setEmulatedMedia", &media);
    }

    /// Goes on in the page that the last script opened, whose address begins with this.
    pub(crate) fn follow(&mut self, start: &str) {
        let has_start = |target: &&Value| target["url"].as_str().is_some_and(|url| url.starts_with(start));
        loop {
            let targets = self.connection.call(None, "Target.getTargets", &json!({}));
            if let Some(target) = targets["targetInfos"].as_array().expect("a list").iter().find(has_start) {
                let attach = json!({ "targetId": target["targetId"], "flatten": true });
                self.session =
                    self.connection.call(None, "Target.attachToTarget", &attach)["sessionId"].take();
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Writes a page that does what a script says, and leaves what that returns in its element `result`.
fn driven(page: &Path, script: &str) -> PathBuf {
    let text = std::fs::read_to_string(page).expect("a page");
    let (before, after) = text.rsplit_once("</body>").expect("the page's end");
    let driven = page.with_extension("driven.html");
    let steps = format!(
        "<script>
        const pause = () => new Promise(done => setTimeout(done, 50));
        const errors = [];
        addEventListener('error', event => errors.push(String(event.message)));
        (async () => {{
          for (let tries = 0; document.documentElement.dataset.ready !== 'true' && tries < 400; tries++) await pause();
          let result = {{}};
          try {{ result = await (async () => {{ {script} }})(); }} catch (error) {{ errors.push(String(error.stack ?? error)); }}
          const out = document.body.appendChild(document.createElement('pre'));
          out.id = 'result';
          out.textContent = JSON.stringify({{ errors, result }}).replace(/[<>&]/g, c => '\\\\u00' + c.charCodeAt(0).toString(16));
        }})();
        </script>"
    );
    std::fs::write(&driven, format!("{before}{steps}</body>{after}")).expect("a page");
    driven
}

/// What a script returned; its errors are failures.
fn returned(json: &str) -> Value {
    let mut seen: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(seen["errors"], json!([]), "errors of scripts");
    seen["result"].take()
}

/// A browser controlled by the DevTools protocol: objects of JSON, each with a NUL after it.
struct Connection {
    child: Child,
    answers: Receiver<Vec<u8>>,
    start: Instant,
    number: u32,
}

impl Connection {
    fn open(program: &Path, profile: &Path) -> Self {
        // The browser reads from descriptor 3, and writes to 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null"]).arg(program);
        command.args(FLAGS).arg("--remote-debugging-pipe");
        command.arg(format!("--user-data-dir={}", profile.display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the browser starts");
        let (sender, answers) = mpsc::channel();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                if sender.send(std::mem::take(&mut message)).is_err() {
                    return;
                }
            }
        });
        Self { child, answers, start: Instant::now(), number: 0 }
    }

    /// Opens a page and returns its session.
    fn attach(&mut self, target: &Value) -> Value {
        let target = self.call(None, "Target.createTarget", target)["targetId"].take();
        let attach = json!({ "targetId": target, "flatten": true });
        self.call(None, "Target.attachToTarget", &attach)["sessionId"].take()
    }

    fn call(&mut self, session: Option<&Value>, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = session.clone();
        }
        let input = self.child.stdin.as_mut().expect("a pipe");
        input.write_all(format!("{message}\0").as_bytes()).expect("the browser reads");
        loop {
            let left = LIMIT.saturating_sub(self.start.elapsed());
            let answer = self.answers.recv_timeout(left).unwrap_or_else(|error| panic!("{method}: {error}"));
            let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
            // All others are events.
            if answer["id"] == self.number {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
