//! The bounds of a port. Alone in its process, since it changes the limit on open files.
#![cfg(unix)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dipc_client::dipc_wire::Advertise;
use dipc_client::{Deadline, Error, PortError, PortEvent, PortServer, Uuid};
use rustix::process::{Resource, Rlimit, setrlimit};

const OPEN_FILES: u64 = 400;
/// Three quarters of that.
const MAX_CONNECTIONS: usize = 300;
const MAX_PER_PROCESS: usize = 150;

/// Sends each line of standard input, up to an empty one, on its own connection, and keeps them all.
const CLIENT: &str = "import socket, sys
kept = []
for line in sys.stdin:
    if not line.strip(): break
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); kept.append(s)
    try: s.sendall(bytes.fromhex(line))
    except OSError: pass
sys.stdin.read()";

/// A process with runtimes, killed with its guard.
struct Client(Child);

impl Client {
    /// Starts a process that connects `count` times. `None` without python3.
    fn start(path: &Path, first_cookie: u128, count: usize) -> Option<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", CLIENT]).arg(path).stdin(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            let _ = writeln!(std::io::stderr(), "!!! NOT RUN: python3, the other process, is not installed");
            return None;
        };
        let mut lines = String::new();
        for cookie in (first_cookie..).take(count) {
            for byte in Advertise::new(Uuid::from_u128(cookie), 1).to_bytes().unwrap() {
                write!(lines, "{byte:02x}").unwrap();
            }
            lines.push('\n');
        }
        writeln!(child.stdin.as_mut().unwrap(), "{lines}").unwrap();
        Some(Self(child))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn count(port: &PortServer, of: &Client) -> usize {
    port.runtimes().iter().filter(|runtime| runtime.pid() == Some(of.pid())).count()
}

const PATIENCE: Duration = Duration::from_secs(60);

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The errors of a port: the expected number, and errors that follow at once.
fn errors(port: &PortServer, expected: usize) -> Vec<PortError> {
    let mut errors = Vec::new();
    loop {
        let patience = if errors.len() < expected { PATIENCE } else { Duration::from_millis(200) };
        match port.next(Deadline::after(patience)) {
            Ok(PortEvent::Error(Error::Port(error))) => errors.push(error),
            Ok(PortEvent::Error(error)) => panic!("{error:?}"),
            Ok(_) => {}
            Err(_) => return errors,
        }
    }
}

#[test]
fn neither_one_process_nor_many_take_all_open_files() {
    setrlimit(Resource::Nofile, Rlimit { current: Some(OPEN_FILES), maximum: Some(OPEN_FILES) }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let port = PortServer::bind(path.clone()).unwrap();

    let Some(greedy) = Client::start(&path, 1000, MAX_PER_PROCESS + 10) else { return };
    wait_for("half of the connections", || count(&port, &greedy) == MAX_PER_PROCESS);
    let told = errors(&port, 10);
    assert_eq!(told.len(), 10, "{told:?}");
    let is_of_greedy = |error: &PortError| matches!(error, PortError::ProcessFull { pid, limit: MAX_PER_PROCESS, .. } if *pid == greedy.pid());
    assert!(told.iter().all(is_of_greedy), "{told:?}");

    let modest = Client::start(&path, 2000, 1).unwrap();
    wait_for("another process", || count(&port, &modest) == 1);

    // The last of these has to wait.
    let other = Client::start(&path, 3000, MAX_PER_PROCESS).unwrap();
    wait_for("all connections", || port.runtimes().len() == MAX_CONNECTIONS);
    let told = errors(&port, 1);
    assert!(matches!(told[..], [PortError::Full { limit: MAX_CONNECTIONS, .. }]), "{told:?}");
    assert_eq!((port.runtimes().len(), count(&port, &other)), (MAX_CONNECTIONS, MAX_PER_PROCESS - 1));

    drop(greedy);
    wait_for("the one that waited", || count(&port, &other) == MAX_PER_PROCESS);
    wait_for("the end of the others", || port.runtimes().len() == MAX_PER_PROCESS + 1);
}
