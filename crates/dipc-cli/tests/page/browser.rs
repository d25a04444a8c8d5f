//! A browser without a window.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Names of the programs.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The time limit for opening a page and all that is done there.
const LIMIT: Duration = Duration::from_secs(120);

/// Whether it was said that there is no browser.
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

    /// Opens a page, does what a script says, and returns what it returns. `pause()` waits until the browser
    /// has drawn.
    pub(crate) fn drive(&self, page: &Path, script: &str) -> Value {
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
        let dumped = self.dump(&driven, page.parent().expect("a folder"));
        let result = dumped.split_once("<pre id=\"result\">").and_then(|(_, rest)| rest.split_once("</pre>"));
        let (json, _) = result.unwrap_or_else(|| {
            panic!(
                "no result in {} bytes of a page: {}",
                dumped.len(),
                dumped.get(dumped.len().saturating_sub(500)..).unwrap_or_default()
            )
        });
        let mut seen: Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(seen["errors"], serde_json::json!([]), "errors of scripts");
        seen["result"].take()
    }

    /// Returns the document once all is done.
    fn dump(&self, page: &Path, folder: &Path) -> String {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let profile = tempfile::tempdir_in(folder).expect("a folder");
        let mut child = Command::new(&self.0)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--window-size=1200,900",
                "--virtual-time-budget=60000",
                "--dump-dom",
            ])
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
