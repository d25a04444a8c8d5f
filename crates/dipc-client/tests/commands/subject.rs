//! A process that commands are tried on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::dipc_transport::Connection;
use dipc_client::dipc_wire::{self, Feed, Message, MessageReader, ServerError, decode_reply};
use dipc_client::{Deadline, Error, Startup, Target};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::runtime::Runtime;

/// Longer than any step on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(10);

/// Lives no longer than its guard, and writes only into its own folder.
pub(crate) struct Subject {
    pub(crate) runtime: Runtime,
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    folder: TempDir,
    socket: PathBuf,
    spent: bool,
}

impl Subject {
    pub(crate) fn start(runtime: Runtime, suspended: bool) -> Self {
        Self::of(runtime, runtime.program(), suspended)
    }

    pub(crate) fn of(runtime: Runtime, mut program: Command, suspended: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        program
            .env("TMPDIR", folder.path())
            .env("DOTNET_PerfMapJitDumpPath", folder.path())
            .env("HOOK_MARK", folder.path().join("hook"))
            .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
            .env_remove("DOTNET_DiagnosticPorts")
            .env("DOTNET_DefaultDiagnosticPortSuspend", if suspended { "1" } else { "0" })
            .current_dir(folder.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = program.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        // Always read: `createdump` logs to it, and waits if nothing reads.
        thread::spawn(move || {
            stdout.lines().map_while(Result::ok).for_each(|line| {
                let _ = sender.send(line);
            });
        });
        let socket = PathBuf::new();
        let mut subject = Self { runtime, child, stdin, lines, folder, socket, spent: false };
        if suspended {
            wait("it waits", || subject.is_waiting());
        } else {
            subject.await_program();
        }
        subject.socket = subject.endpoint().unwrap();
        subject
    }

    /// Returns true if the runtime waits. It has its socket before it waits, and answers differently until it
    /// does: its first thread has to be at rest.
    fn is_waiting(&self) -> bool {
        const REST: usize = 20;
        let Ok(target) = Target::from_pid(self.pid()) else { return false };
        let seen = self.runtime == Runtime::NativeAot9 || target.startup().unwrap() == Startup::Suspended;
        seen && {
            let first = self.activity();
            first.0 == Some('S')
                && (0..REST).all(|_| {
                    thread::sleep(POLL);
                    self.activity() == first
                })
        }
    }

    /// The first thread's state, and how long it has run.
    fn activity(&self) -> (Option<char>, Option<u64>) {
        let stat = std::fs::read(format!("/proc/{0}/task/{0}/stat", self.pid())).unwrap();
        let stat = linux_proc_stat::Stat::parse(&stat).unwrap();
        (stat.state(), stat.cpu_ns())
    }

    /// Waits for the program, past the runtime's start, or for its end.
    pub(crate) fn await_program(&mut self) {
        if self.runtime == Runtime::Net10_0 {
            let parameters = r#"{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
            let request =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{parameters}}}"#);
            // It may be about to end.
            let _ = writeln!(self.stdin, "{request}");
        }
        let line = self.lines.recv_timeout(PATIENCE);
        assert_ne!(line, Err(RecvTimeoutError::Timeout), "the program begins, or ends");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn target(&self) -> Target {
        Target::from_pid(self.pid()).unwrap()
    }

    /// A path in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn endpoint(&self) -> Option<PathBuf> {
        dipc_client::find(self.pid()).ok().map(|endpoint| endpoint.path)
    }

    /// Makes the next case use another process.
    pub(crate) fn spend(&mut self) {
        self.spent = true;
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.spent
    }

    /// Returns its fate, if it did not survive.
    pub(crate) fn fate(&mut self) -> Option<String> {
        if let Some(status) = self.child.try_wait().unwrap() {
            self.spend();
            return Some(match status.signal() {
                Some(signal) => format!("THE PROCESS ENDED with signal {signal}"),
                None => format!("THE PROCESS ENDED: {status}"),
            });
        }
        if self.socket.exists() {
            return None;
        }
        self.spend();
        Some("THE SOCKET IS GONE".into())
    }

    /// Waits until it has ended or `alive` returns true.
    pub(crate) fn settle(&mut self, mut alive: impl FnMut(&mut Self) -> bool) {
        let started = Instant::now();
        while self.child.try_wait().unwrap().is_none() && !alive(self) {
            assert!(started.elapsed() < PATIENCE, "neither lives on nor ends");
            thread::sleep(POLL);
        }
    }

    /// Sends a command in exactly this form; returns the reply with its connection, or the error.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(Message, Connection), String> {
        let answer = self.try_send(bytes);
        if answer.is_err() {
            self.await_end();
        }
        answer
    }

    /// Gives it time to end, which takes a moment after its last output; it may also live on.
    fn await_end(&mut self) {
        let started = Instant::now();
        while self.child.try_wait().unwrap().is_none() && started.elapsed() < Duration::from_secs(10) {
            thread::sleep(POLL);
        }
    }

    fn try_send(&self, bytes: &[u8]) -> Result<(Message, Connection), String> {
        let deadline = Deadline::after(PATIENCE);
        let endpoint = dipc_client::find(self.pid()).unwrap();
        let mut connection = endpoint.connect(deadline).unwrap();
        connection.write_all(bytes, deadline).unwrap();
        let (mut reader, mut buffer) = (MessageReader::new(), [0; 4096]);
        loop {
            let count = match connection.read(&mut buffer, deadline) {
                Ok(0) => return Err("no answer".into()),
                Err(error) if error.is_disconnected() => return Err("no answer".into()),
                Err(error) => panic!("{error}; the threads wait in\n{}", self.waits()),
                Ok(count) => count,
            };
            if let Feed::Message { message, .. } = reader.feed(&buffer[..count]).unwrap() {
                return Ok((message, connection));
            }
        }
    }

    /// The waits of the threads of the process and of its children, such as a createdump that does not end.
    fn waits(&self) -> String {
        let (mut text, mut processes) = (String::new(), vec![self.pid()]);
        while let Some(process) = processes.pop() {
            let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
            for task in tasks.flatten() {
                let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
                let (name, wait, call) = (read("comm"), read("wchan"), read("syscall"));
                let thread = task.file_name();
                let line = format!("{process}/{} {name} {wait} {call}", thread.display()).replace('\n', " ");
                text.extend([line.trim_end(), "\n"]);
                processes
                    .extend(read("children").split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
        }
        text
    }

    /// Does the same for a command of ours: returns its reply, or the error as in the report.
    pub(crate) fn ask<C: dipc_wire::Command>(&mut self, command: &C) -> Result<C::Reply, String> {
        self.converse(command).map(|(reply, _)| reply)
    }

    /// Does the same, with the connection, which may carry more bytes.
    pub(crate) fn converse<C: dipc_wire::Command>(
        &mut self,
        command: &C,
    ) -> Result<(C::Reply, Connection), String> {
        let (message, connection) = self.send(&command.to_bytes().unwrap())?;
        match decode_reply::<C>(&message).unwrap() {
            Ok(reply) => Ok((reply, connection)),
            Err(error) => Err(self.refusal(&error)),
        }
    }

    /// Does the same if only success is of interest.
    pub(crate) fn send_command<C: dipc_wire::Command>(&mut self, command: &C) -> String {
        self.ask(command).map_or_else(|error| error, |_| "ok".into())
    }

    /// A text without the parts that differ between runs.
    pub(crate) fn anonymous(&self, text: &str) -> String {
        let text = text.replace(&self.folder.path().display().to_string(), "FOLDER").replace('\n', "\\n");
        let words = text.split(' ').map(|word| {
            let number = word.strip_suffix("\\n").unwrap_or(word).strip_suffix("ms");
            if number.is_some_and(|number| number.parse::<u32>().is_ok()) { "N ms" } else { word }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// The client's error as in the report: its meaning rather than its words.
    pub(crate) fn said(&self, error: &Error) -> String {
        let text = match error {
            Error::UnknownCommand { command, .. } => format!("Unknown: {command}"),
            Error::UnsupportedOption { command, feature, .. } => {
                format!("UnsupportedOption: {feature:?} needs {command}")
            }
            Error::Blocked { command, hazard, .. } => format!("Blocked: {command}: {hazard:?}"),
            Error::Refused { command, reason, .. } => {
                format!("Refused: {command}: {}", self.refusal(reason))
            }
            other => format!("{other:?}"),
        };
        self.anonymous(&text.replace(&self.runtime.folder().display().to_string(), "RUNTIME"))
    }

    fn refusal(&self, error: &ServerError) -> String {
        match &error.detail {
            Some(detail) => format!("{}: {}", error.hresult, self.anonymous(detail.trim_end())),
            None => error.hresult.to_string(),
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // The children that wrote the dumps of a single file of .NET 8 do not end with it.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < PATIENCE, "{what}: not so");
        thread::sleep(POLL);
    }
}

/// The length of a file as in the report: whether it exists, and is not empty.
pub(crate) fn file(path: &Path) -> &'static str {
    match path.metadata() {
        Ok(metadata) if metadata.len() > 0 => "written",
        Ok(_) => "empty",
        Err(_) => "not there",
    }
}
