//! Runtimes at a port: their commands, their processes, their ends.

#![cfg(unix)]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dipc_client::dipc_transport::{Connection, PeerCheck};
use dipc_client::dipc_wire::{Advertise, CommandId};
use dipc_client::{Address, Deadline, Error, ErrorKind, PortError, PortEvent, PortServer, Timeouts, Uuid};
use dipc_sim::{Fault, Runtime};

const COOKIE: Uuid = Uuid::from_u128(7);
/// Longer than the runtime of an invisible process may be without a connection.
const LONG_COMMAND: Duration = Duration::from_secs(6);

/// Long enough for a crowded machine; a test that uses all of it has failed.
fn patient() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn advertise() -> Vec<u8> {
    Advertise::new(COOKIE, 1).to_bytes().unwrap()
}

/// Connects, sends standard input up to the end of its line, and prints the number of bytes received before
/// the connection ends. With one more argument it leaves the connection to a child after the next line, and
/// ends.
const CLIENT: &str = "import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(bytes.fromhex(sys.stdin.readline()))
if len(sys.argv) > 2:
    sys.stdin.readline()
    if os.fork() != 0: os._exit(0)
print(len(s.recv(4096)), flush=True); sys.stdin.read()";

/// Another process that advertises the cookie; `None` without python3.
fn other_process(path: &Path, arguments: &[&str]) -> Option<Killed> {
    let mut command = Command::new("python3");
    command.args(["-c", CLIENT]).arg(path).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        let _ = writeln!(std::io::stderr(), "!!! NOT RUN: python3, the other process, is not installed");
        return None;
    };
    let mut hex = String::new();
    for byte in advertise() {
        write!(hex, "{byte:02x}").unwrap();
    }
    writeln!(child.stdin.as_mut().unwrap(), "{hex}").unwrap();
    Some(Killed(child))
}

/// The line that the process, or its child, prints at the end of its connection.
fn received(process: &mut Killed) -> String {
    let mut line = String::new();
    BufReader::new(process.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

/// A child that is killed with its guard.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_invisible_runtime_is_alive_while_it_serves_a_command() {
    let port = PortServer::bind("127.0.0.1:0".parse::<Address>().unwrap()).unwrap();
    let config = format!("{},nosuspend", port.address()).parse().unwrap();
    let late = Fault::AnswerLate(LONG_COMMAND);
    let builder = Runtime::builder().serial().fault_on(CommandId::PROCESS_INFO_3, late);
    let simulated = builder.connect(&config).unwrap();
    let PortEvent::Connected(runtime) = port.next(patient()).unwrap() else { panic!() };
    assert_eq!(runtime.pid(), None);
    let target = runtime.target().with_timeouts(Timeouts::each(Duration::from_secs(60)));

    assert_eq!(target.info().unwrap().runtime_cookie, runtime.cookie());
    assert!(!runtime.has_exited());
    target.set_environment_variable("A", Some("b")).unwrap();
    let nothing = port.next(Deadline::after(Duration::ZERO)).unwrap_err();
    assert!(nothing.is_deadline(), "{nothing:?}");

    drop(simulated);
    let exited = port.next(patient()).unwrap();
    assert!(matches!(&exited, PortEvent::Exited(it) if it.cookie() == runtime.cookie()), "{exited:?}");
}

#[test]
fn a_wait_for_an_event_is_cancelled_by_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let port = PortServer::bind(folder.path().join("port")).unwrap();
    let canceller = port.canceller();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| port.next(patient()).unwrap_err());
        canceller.cancel();
        let error = waiting.join().unwrap();
        assert!(matches!(&error, Error::Port(PortError::Cancelled { .. })), "{error:?}");
        assert_eq!((error.kind(), error.is_deadline()), (ErrorKind::Cancelled, false));
    });
    // Every later one ends as well; runtimes still connect.
    assert_eq!(port.next(patient()).unwrap_err().kind(), ErrorKind::Cancelled);
    let config = port.address().to_string().parse().unwrap();
    let _runtime = Runtime::builder().connect(&config).unwrap();
    let until = patient();
    while port.runtimes().is_empty() {
        assert!(!until.is_over(), "the runtime does not come");
        std::thread::yield_now();
    }
}

#[test]
fn another_process_with_the_cookie_of_a_runtime_gets_none_of_its_commands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let port = PortServer::bind(path.clone()).unwrap();
    let mut own = Connection::connect(&path.clone().into(), PeerCheck::Any, patient()).unwrap();
    own.write_all(&advertise(), patient()).unwrap();
    let PortEvent::Connected(runtime) = port.next(patient()).unwrap() else { panic!() };
    assert_eq!(runtime.pid(), Some(std::process::id()));

    let Some(mut other) = other_process(&path, &[]) else { return };
    let found = Some(other.0.id());
    match port.next(patient()).unwrap() {
        PortEvent::Error(Error::Port(PortError::ForeignCookie { cookie, pid, found: it, .. })) => {
            assert_eq!((cookie, pid, it), (COOKIE, Some(std::process::id()), found));
        }
        event => panic!("{event:?}"),
    }
    assert_eq!((runtime.reconnects(), runtime.has_exited()), (0, false));
    let setting = std::thread::spawn({
        let target = runtime.target();
        move || target.set_environment_variable("SECRET", Some("x"))
    });
    assert!(own.read(&mut [0; 256], patient()).unwrap() > 0, "the command comes to the runtime");
    drop(own);
    setting.join().unwrap().unwrap_err();
    assert_eq!(received(&mut other), "0\n");
}

#[test]
fn a_process_takes_the_cookie_of_one_that_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let port = PortServer::bind(path.clone()).unwrap();
    // Its child keeps the connection open.
    let Some(mut first) = other_process(&path, &["leave"]) else { return };
    let PortEvent::Connected(ended) = port.next(patient()).unwrap() else { panic!() };
    assert_eq!(ended.pid(), Some(first.0.id()));
    writeln!(first.0.stdin.take().unwrap()).unwrap();
    assert!(first.0.wait().unwrap().success());

    let second = other_process(&path, &[]).unwrap();
    let exited = port.next(patient()).unwrap();
    assert!(matches!(&exited, PortEvent::Exited(it) if it.pid() == ended.pid()), "{exited:?}");
    let PortEvent::Connected(runtime) = port.next(patient()).unwrap() else { panic!() };
    assert_eq!((runtime.cookie(), runtime.pid()), (COOKIE, Some(second.0.id())));
    assert!(ended.has_exited() && !runtime.has_exited());
    // The child's connection is closed.
    assert_eq!(received(&mut first), "0\n");
}
