//! The program under test, as a user's script would run it.

use std::fs;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

/// After this the program hangs. No test waits that long for anything that works.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until a signal counts as a request of its own: sooner it is one with the signal before. The time
/// that passes is what is tested.
pub(crate) fn await_next_request() {
    std::thread::sleep(Duration::from_millis(1100));
}

pub(crate) fn dipc<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The program, running. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdout: Option<Pipe>,
    stderr: Option<Pipe>,
}

/// A pipe that is read to its end by a thread.
struct Pipe {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// The program, ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// None if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().map(Pipe::read);
        let stderr = child.stderr.take().map(Pipe::read);
        Self { child, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns true if it has ended.
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends it and all that it has started what a terminal sends on Ctrl-C; it must lead a process group.
    pub(crate) fn interrupt_group(&self) {
        kill_process_group(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Waits until a recording has at least so many bytes. One byte is there once the session runs in the
    /// target.
    pub(crate) fn until_recorded(&mut self, file: &Path, bytes: u64) {
        let deadline = Instant::now() + PATIENCE;
        while fs::metadata(file).map_or(0, |file| file.len()) < bytes {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("{status} before {bytes} bytes were recorded: {}", self.collect(status).stderr);
            }
            assert!(Instant::now() < deadline, "{bytes} bytes do not come");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until it has said something on its standard error.
    pub(crate) fn until_said(&mut self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.stderr.as_ref().unwrap().text().contains(part) {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("{status} and not '{part}': {}", self.collect(status).stderr);
            }
            assert!(Instant::now() < deadline, "no '{part}': {}", self.stderr.as_ref().unwrap().text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Its standard error so far.
    pub(crate) fn said(&self) -> String {
        self.stderr.as_ref().unwrap().text()
    }

    /// Waits until it has printed something on its standard output.
    pub(crate) fn until_printed(&mut self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.stdout.as_ref().unwrap().text().contains(part) {
            assert!(Instant::now() < deadline, "no '{part}': {}", self.stdout.as_ref().unwrap().text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Finished {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() >= deadline {
                self.child.kill().unwrap();
                let status = self.child.wait().unwrap();
                panic!("does not end: {:?}", self.collect(status));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.collect(status)
    }

    fn collect(&mut self, status: ExitStatus) -> Finished {
        let read = |pipe: Option<Pipe>| pipe.map_or_else(Vec::new, Pipe::finish);
        let stdout = read(self.stdout.take());
        let stderr = String::from_utf8(read(self.stderr.take())).expect("messages are UTF-8");
        Finished { code: status.code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// The same, checked to have ended with a code.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.text(), self.stderr);
        self
    }

    /// The message of a failure: one line `error: …`, then at most candidates, indented, and lines of help.
    /// It names everything that is in `parts`.
    #[track_caller]
    pub(crate) fn assert_error_names(&self, parts: &[&str]) {
        let mut lines = self.stderr.lines().skip_while(|line| !line.starts_with("error: "));
        let error = lines.next().unwrap_or_else(|| panic!("no error line:\n{}", self.stderr));
        for part in parts {
            assert!(error.contains(part), "'{part}' is not in: {error}");
        }
        for line in lines {
            assert!(["help: ", "  "].iter().any(|start| line.starts_with(start)), "after the error: {line}");
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn json_lines(&self) -> impl Iterator<Item = Value> {
        serde_json::Deserializer::from_slice(&self.stdout).into_iter().map(|line| line.expect("JSON lines"))
    }
}

/// Runs it to its end.
pub(crate) fn run<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Finished {
    Running::start(dipc(arguments)).finish()
}

/// Runs it with bytes on its standard input.
pub(crate) fn run_with_input<'a>(arguments: impl IntoIterator<Item = &'a str>, input: &[u8]) -> Finished {
    let mut command = dipc(arguments);
    let mut running = Running::start({
        command.stdin(Stdio::piped());
        command
    });
    let mut stdin = running.child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        running.finish()
    })
}

/// `dipc stat` of a recording; the exit code is checked too.
#[track_caller]
pub(crate) fn stat(file: &Path, code: i32) -> Stat {
    Stat(run(["stat", file.to_str().unwrap(), "--format", "json"]).with_code(code).json())
}

/// What `dipc stat` says of a recording.
pub(crate) struct Stat(pub(crate) Value);

impl Stat {
    /// How many events of a provider and name there are.
    pub(crate) fn count(&self, provider: &str, name: &str) -> u64 {
        let types = self.0["types"].as_array().unwrap().iter();
        let matching = types.filter(|row| row["provider"] == provider && row["name"] == name);
        matching.map(|row| row["events"].as_u64().unwrap()).sum()
    }

    /// How many of the runtime's own events of an id there are.
    pub(crate) fn runtime_events(&self, id: u64) -> u64 {
        let types = self.0["types"].as_array().unwrap().iter();
        let matching =
            types.filter(|row| row["provider"] == "Microsoft-Windows-DotNETRuntime" && row["id"] == id);
        matching.map(|row| row["events"].as_u64().unwrap()).sum()
    }

    /// How many events of a provider there are.
    pub(crate) fn provider(&self, provider: &str) -> u64 {
        let rows = self.0["providers"].as_array().unwrap();
        rows.iter().find(|row| row["provider"] == provider).map_or(0, |row| row["events"].as_u64().unwrap())
    }

    pub(crate) fn lost(&self) -> u64 {
        self.0["lost"].as_u64().unwrap()
    }

    /// More may have been lost.
    pub(crate) fn lost_is_lower_bound(&self) -> bool {
        self.0["lost_is_lower_bound"].as_bool().unwrap()
    }

    /// Nothing is missing from the recording but, perhaps, events that the runtime itself dropped.
    #[track_caller]
    pub(crate) fn assert_whole(&self) {
        assert_eq!(self.0["truncated"], false, "{}", self.0);
        assert_eq!(self.0["damage"], serde_json::json!([]), "{}", self.0);
    }
}

/// `dipc trace` of a process into a new file.
pub(crate) struct Recording {
    folder: tempfile::TempDir,
    running: Running,
}

/// A recording whose program has ended.
pub(crate) struct Recorded {
    folder: tempfile::TempDir,
    pub(crate) program: Finished,
}

const FILE: &str = "out.nettrace";

impl Recording {
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }

    /// Starts it, and waits until the session runs in the target.
    pub(crate) fn start(pid: u32, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let pid = pid.to_string();
        let fixed = ["trace", "-p", &pid, "-o", file.to_str().unwrap()];
        let mut running = Running::start(dipc(fixed.into_iter().chain(arguments.iter().copied())));
        running.until_recorded(&file, 1);
        Self { folder, running }
    }

    pub(crate) fn until(&mut self, bytes: u64) {
        self.running.until_recorded(&self.folder.path().join(FILE), bytes);
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.running.is_over()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.running.signal(signal);
    }

    /// Stops it as Ctrl-C does.
    pub(crate) fn interrupt(self) -> Recorded {
        self.signal(Signal::INT);
        self.finish()
    }

    pub(crate) fn finish(self) -> Recorded {
        Recorded { folder: self.folder, program: self.running.finish() }
    }
}

impl Recorded {
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }

    /// The recording's statistics, once `trace` is checked to have ended with `code`, as `stat` must too.
    #[track_caller]
    pub(crate) fn stat(&self, code: i32) -> Stat {
        assert_eq!(self.program.code, Some(code), "{}", self.program.stderr);
        stat(&self.file(), code)
    }

    /// The events, as `dipc events --format jsonl` has them, after its exit code is checked.
    #[track_caller]
    pub(crate) fn events(&self, code: i32, arguments: &[&str]) -> Vec<Value> {
        let file = self.file();
        let fixed = ["events", file.to_str().unwrap(), "--format", "jsonl"];
        run(fixed.into_iter().chain(arguments.iter().copied())).with_code(code).json_lines().collect()
    }
}

impl Pipe {
    fn read(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut part = vec![0; 1 << 16];
            while let Ok(read @ 1..) = pipe.read(&mut part) {
                kept.lock().unwrap().extend_from_slice(&part[..read]);
            }
        });
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn finish(self) -> Vec<u8> {
        self.reader.join().unwrap();
        std::mem::take(&mut self.bytes.lock().unwrap())
    }
}
