//! A running .NET program that executes commands (`testdata/workload/Program.cs`).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use linux_proc_stat::Stat;
use rustix::process::{Pid, Signal, kill_process};

use crate::program::Recording;
use crate::runtime::{self, Runtime};

/// Longer than any answer takes on a loaded machine of two slow cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until the providers of a session that has just begun are enabled. 3.1 answers before: in one of a
/// hundred sessions events at once were not in it. It has no command and no event that would say when, so
/// this is one of the few fixed waits.
pub(crate) fn await_providers(runtime: Runtime) {
    if runtime == Runtime::Net3_1 {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Lets a program that is ready crash with a core dump. createdump writes none if a thread ends between the
/// list of the threads and the attachment to it, so the thread of tiered compilation does not end: in .NET
/// Core 3.1 there is none.
pub(crate) fn crash(runtime: Runtime, mut program: Command, core: &Path) {
    match runtime {
        Runtime::Net3_1 => program.env("COMPlus_TieredCompilation", "0"),
        // An hour, in milliseconds.
        _ => program.env("DOTNET_TC_BackgroundWorkerTimeoutMs", "36EE80"),
    };
    let mut target = Target::start(program);
    assert!(target.line().starts_with("ready "));
    target.send("");
    target.wait();
    assert!(core.exists(), "no core: {}", target.state());
}

/// A child that lives no longer than its guard, with a temporary folder of its own for the diagnostic socket.
/// Should the test itself be killed, the end of its standard input ends it.
pub(crate) struct Target {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The beginning of its standard error.
    errors: Arc<Mutex<String>>,
    folder: tempfile::TempDir,
}

impl Target {
    pub(crate) fn start(mut command: Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let has = |command: &Command, name: &str| command.get_envs().any(|(it, _)| it == name);
        if !has(&command, "TMPDIR") {
            command.env("TMPDIR", folder.path());
        }
        if !has(&command, "DOTNET_DiagnosticPorts") {
            // As a user's program: 3.1 and 9.0 both take the settings of their own name only.
            command.env_remove("DOTNET_DiagnosticPorts");
        }
        let mut child = command
            .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
            .env("DOTNET_CLI_TELEMETRY_OPTOUT", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let errors = Arc::new(Mutex::new(String::new()));
        let (stderr, beginning) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&errors));
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| {
                let mut beginning = beginning.lock().unwrap();
                if beginning.len() < 4096 {
                    beginning.push_str(&(line + "\n"));
                }
            });
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, errors, folder }
    }

    /// Starts the workload so that its runtime waits to be resumed; none where the runtime is missing.
    pub(crate) fn start_suspended(runtime: Runtime) -> Option<Self> {
        let mut command = runtime.workload()?;
        command.env("DOTNET_DefaultDiagnosticPortSuspend", "1");
        Some(Self::start_waiting(command))
    }

    /// Starts a program that was told to wait at its start, until it has its socket.
    pub(crate) fn start_waiting(command: Command) -> Self {
        let target = Self::start(command);
        let deadline = Instant::now() + PATIENCE;
        // A socket has its file before its runtime listens.
        let listens = || {
            let mut files = std::fs::read_dir(target.folder()).unwrap();
            files.any(|file| UnixStream::connect(file.unwrap().path()).is_ok())
        };
        while !listens() {
            assert!(Instant::now() < deadline, "the runtime has no diagnostic socket");
            std::thread::sleep(Duration::from_millis(5));
        }
        target
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The folder of its socket.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of its diagnostic socket.
    pub(crate) fn socket(&self) -> PathBuf {
        let prefix = format!("dotnet-diagnostic-{}-", self.pid());
        let mut entries = std::fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap());
        let found = entries.find(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
        found.expect("the runtime has a diagnostic socket").path()
    }

    /// Writes a line to it.
    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).unwrap();
    }

    /// Its next line.
    pub(crate) fn line(&self) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("the target answers: {error}; {}", self.state()));
            // A runtime that waits for some seconds says so.
            if !line.starts_with("The runtime has been configured to pause") {
                return line;
            }
        }
    }

    /// Its state and exit status in the kernel, and its standard error.
    pub(crate) fn state(&self) -> String {
        let stat = std::fs::read(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        let stat = Stat::parse(&stat);
        let (state, status) = (stat.and_then(|stat| stat.state()), stat.and_then(|stat| stat.exit_status()));
        let errors = self.errors.lock().unwrap();
        format!("state {state:?}, exit status {status:?}: {errors}")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops it by a signal, and waits until all of it has stopped.
    pub(crate) fn halt(&self) {
        self.signal(Signal::STOP);
        let deadline = Instant::now() + PATIENCE;
        let is_stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read(task.path().join("stat"));
            // A thread that has ended meanwhile runs no more either.
            stat.map_or(true, |stat| Stat::parse(&stat).is_some_and(|stat| stat.state() == Some('T')))
        };
        let tasks = || std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        while !tasks().all(|task| is_stopped(task.unwrap())) {
            assert!(Instant::now() < deadline, "it does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The number of its open sockets.
    pub(crate) fn sockets(&self) -> usize {
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let links = descriptors.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The workload under one of the runtimes.
pub(crate) struct Workload {
    target: Target,
    runtime: Runtime,
}

impl std::ops::Deref for Workload {
    type Target = Target;
    fn deref(&self) -> &Target {
        &self.target
    }
}

impl std::ops::DerefMut for Workload {
    fn deref_mut(&mut self) -> &mut Target {
        &mut self.target
    }
}

impl Workload {
    /// Starts it and waits until it is ready; none where the runtime is missing, which has then been said.
    pub(crate) fn start(runtime: Runtime) -> Option<Self> {
        Some(Self::from_command(runtime, runtime.workload()?))
    }

    /// The same with variables in its environment.
    pub(crate) fn start_with(runtime: Runtime, variables: &[(&str, &str)]) -> Option<Self> {
        let mut command = runtime.workload()?;
        command.envs(variables.iter().copied());
        Some(Self::from_command(runtime, command))
    }

    /// The same for a command line of the caller's.
    pub(crate) fn from_command(runtime: Runtime, command: Command) -> Self {
        let target = Target::start(command);
        assert_eq!(target.line(), format!("ready {}", target.pid()));
        Self { target, runtime }
    }

    /// The same for a command line that starts it in a container, where it has another pid.
    pub(crate) fn contained(runtime: Runtime, command: Command) -> Self {
        let target = Target::start(command);
        assert!(target.line().starts_with("ready "));
        Self { target, runtime }
    }

    pub(crate) fn runtime(&self) -> Runtime {
        self.runtime
    }

    /// Starts `dipc trace` of it, and waits until its events are recorded.
    pub(crate) fn record(&self, arguments: &[&str]) -> Recording {
        let recording = Recording::start(self.pid(), arguments);
        await_providers(self.runtime);
        recording
    }

    /// Lets it carry out a command, to its end; what it answers after `ok VERB`.
    pub(crate) fn run(&mut self, command: &str) -> String {
        self.send(command);
        self.done(command)
    }

    /// Waits for the end of a command that was sent.
    pub(crate) fn done(&mut self, command: &str) -> String {
        let verb = command.split(' ').next().unwrap();
        let line = self.line();
        let answer = line.strip_prefix("ok ").and_then(|rest| rest.strip_prefix(verb));
        answer.unwrap_or_else(|| panic!("{command}: {line}")).trim_start().to_owned()
    }
}

/// The server program of .NET 10.0.5 as a web server.
pub(crate) struct WebServer {
    target: Target,
    address: String,
}

impl WebServer {
    /// Starts it, and waits until it answers.
    pub(crate) fn start() -> Option<Self> {
        let mut command = runtime::mcp_server()?;
        // It does not say which port it was given.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        command.env("ASPNETCORE_URLS", format!("http://{address}"));
        command.args(["--transport", "http", "--dangerously-disable-http-incoming-auth"]);
        command.args(["--outgoing-auth-strategy", "UseHostingEnvironmentIdentity"]);
        let server = Self { target: Target::start(command), address };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&server.address).is_err() {
            assert!(Instant::now() < deadline, "the server does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.target.pid()
    }

    /// Sends a request of its own connection, and reads the answer to its end.
    pub(crate) fn request(&self) {
        self.request_for("/");
    }

    /// The same, for a path.
    pub(crate) fn request_for(&self, path: &str) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 "), "{}", String::from_utf8_lossy(&answer));
    }
}

/// The server program of .NET 10.0.5, started and ready for requests.
pub(crate) struct McpServer(Target);

impl McpServer {
    pub(crate) fn start() -> Option<Self> {
        Some(Self::from_command(runtime::mcp_server()?, "test"))
    }

    /// Starts it by a command line, and tells it the name of its client, which it keeps.
    pub(crate) fn from_command(command: Command, client: &str) -> Self {
        let mut server = Self(Target::start(command));
        let client = format!(
            r#"{{"protocolVersion":"2024-11-05","capabilities":{{}},"clientInfo":{{"name":"{client}","version":"1"}}}}"#
        );
        server.request(1, "initialize", &client);
        server.0.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        server
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    pub(crate) fn target(&self) -> &Target {
        &self.0
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.0.kill();
    }

    /// One JSON-RPC request and its result.
    pub(crate) fn request(&mut self, id: u32, method: &str, params: &str) -> serde_json::Value {
        self.0.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        loop {
            let line: serde_json::Value = serde_json::from_str(&self.0.line()).unwrap();
            // Notifications come in between.
            if line["id"] == id {
                return line["result"].clone();
            }
        }
    }
}
