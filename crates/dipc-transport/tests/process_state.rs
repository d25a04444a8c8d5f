//! States of real processes that do not answer: stopped, traced, ended, dumped.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dipc_transport::{Connection, Deadline, Error, PeerCheck, ProcessState, process_state};
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(30);
/// The wait of tests that expect a time-out.
const SHORT: Duration = Duration::from_millis(50);
/// A wait after which the error has the state of the peer.
const LONGER: Duration = Duration::from_millis(300);

/// A child that is killed with its guard.
struct Victim(Child);

impl Victim {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Starts `cat`, and waits until it is no longer a copy of this process.
    fn idle() -> Self {
        let mut victim = Self::start(Command::new("cat").arg("-"));
        victim.0.stdin.as_mut().unwrap().write_all(b"!").unwrap();
        victim.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        victim
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Waits until it is in an expected state, and returns that state.
    fn becomes(&self, expected: impl Fn(&ProcessState) -> bool) -> ProcessState {
        let started = Instant::now();
        loop {
            let state = process_state(self.pid()).unwrap();
            if expected(&state) {
                return state;
            }
            assert!(started.elapsed() < PATIENCE, "process {} {state}", self.pid());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_stopped_process_differs_from_a_running_one() {
    let victim = Victim::idle();
    assert_eq!(process_state(victim.pid()).unwrap(), ProcessState::Running);
    victim.signal(Signal::STOP);
    let state = victim.becomes(|state| *state == ProcessState::Stopped);
    assert!(state.is_unresponsive() && state.help().is_some_and(|help| help.contains("-CONT")));
    victim.signal(Signal::CONT);
    victim.becomes(|state| *state == ProcessState::Running);
}

#[test]
fn an_ended_process_is_a_zombie_until_its_parent_waits_and_then_gone() {
    let mut victim = Victim::idle();
    victim.signal(Signal::KILL);
    victim.becomes(|state| *state == ProcessState::Zombie);
    victim.0.wait().unwrap();
    assert_eq!(process_state(victim.pid()).unwrap(), ProcessState::Gone);
}

#[test]
fn a_child_named_createdump_is_a_dump() {
    let folder = tempfile::tempdir().unwrap();
    let createdump = folder.path().join("createdump");
    let cat = ["/bin/cat", "/usr/bin/cat"].iter().map(Path::new).find(|path| path.exists()).unwrap();
    std::os::unix::fs::symlink(cat, &createdump).unwrap();
    // A shell that starts it and waits, as a runtime does.
    let victim = Victim::start(Command::new("sh").arg("-c").arg("\"$0\"; exit").arg(&createdump));
    let state = victim.becomes(|state| matches!(state, ProcessState::Dumping { .. }));
    let ProcessState::Dumping { createdump } = state else { unreachable!() };
    assert_ne!(createdump, victim.pid());
    assert!(state.to_string().contains(&createdump.to_string()), "{state}");
}

/// A single-file program writes its dump in this way, without a createdump to start.
#[test]
fn a_copy_that_traces_its_parent_is_a_dump() {
    const SCRIPT: &str = "import ctypes, os, signal
parent, libc = os.getpid(), ctypes.CDLL(None)
if os.fork() == 0:
    attached = libc.ptrace(16, parent, ctypes.c_void_p(0), ctypes.c_void_p(0)) == 0
    os.write(1, b'1' if attached else b'0')
    while attached and os.waitpid(parent, 0x40000000)[1] & 0x7f == 0x7f: pass
    os._exit(0)
signal.pause()";
    let python =
        Command::new("python3").args(["-c", SCRIPT]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let Ok(python) = python else {
        eprintln!("NOT TESTED: python3, which forks, is not installed");
        return;
    };
    let mut victim = Victim(python);
    let mut attached = [0];
    victim.0.stdout.as_mut().unwrap().read_exact(&mut attached).unwrap();
    if attached == *b"0" {
        eprintln!("NOT TESTED: a child may not trace its parent here");
        return;
    }
    let state = victim.becomes(|state| matches!(state, ProcessState::Dumping { .. }));
    let ProcessState::Dumping { createdump } = state else { unreachable!() };
    assert_ne!(createdump, victim.pid());
}

/// The kernel continues to accept for the socket of a stopped runtime.
#[test]
fn a_time_out_has_the_state_of_the_peer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    // The peer of a socket is the process that called `listen`: it has to be the child itself, and this is a
    // shell's only way.
    let python = Command::new("python3")
        .args(["-c", LISTEN])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(child) = python else {
        eprintln!("NOT TESTED: python3, which listens as a process of its own, is not installed");
        return;
    };
    let mut victim = Victim(child);
    victim.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let mut connection =
        Connection::connect(&(&path).into(), PeerCheck::Any, Deadline::after(PATIENCE)).unwrap();
    assert_eq!(connection.peer().pid, Some(victim.pid()));

    let error = connection.read(&mut [0; 4], Deadline::after(LONGER)).unwrap_err();
    assert!(matches!(&error, Error::TimedOut { peer_state: None, peer, .. } if *peer == Some(victim.pid())));

    victim.signal(Signal::STOP);
    victim.becomes(|state| *state == ProcessState::Stopped);
    let error = connection.read(&mut [0; 4], Deadline::after(LONGER)).unwrap_err();
    assert!(matches!(&error, Error::TimedOut { peer_state: Some(ProcessState::Stopped), .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.ends_with(&format!("; process {} is stopped by a signal", victim.pid())), "{text}");
    assert!(error.help().is_some_and(|help| help.contains("-CONT")));

    assert_eq!(connection.poll_read(&mut [0; 4], Deadline::after(SHORT)).unwrap(), None);
    // A short read does not read the state.
    let error = connection.read(&mut [0; 4], Deadline::after(SHORT)).unwrap_err();
    assert!(matches!(&error, Error::TimedOut { peer_state: None, .. }), "{error:?}");
}

const LISTEN: &str = "import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(5)
print('!', end='', flush=True); sys.stdin.read()";

#[test]
fn a_full_queue_has_the_state_of_the_peer_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let (pid, uid) = (std::process::id(), rustix::process::geteuid().as_raw());
    let check = PeerCheck::Process { pid, uid };
    let mut waiting = Vec::new();
    // As many as the kernel accepts: the backlog plus one.
    let error = loop {
        match Connection::connect(&(&path).into(), check, Deadline::after(SHORT)) {
            Ok(connection) => waiting.push(connection),
            Err(error) => break error,
        }
        assert!(waiting.len() < 10_000);
    };
    // The process that does not accept is this one: it runs, and its pid is in the error.
    assert!(
        matches!(&error, Error::TimedOut { peer, peer_state: None, .. } if *peer == Some(pid)),
        "{error:?}"
    );
}

#[test]
fn a_process_in_a_debugger_has_the_debuggers_name() {
    let victim = Victim::idle();
    let log = tempfile::NamedTempFile::new().unwrap();
    let pid = victim.pid().to_string();
    let strace = Command::new("strace").args(["-qq", "-p", &pid, "-o"]).arg(log.path()).spawn();
    let Ok(strace) = strace else {
        eprintln!("NOT TESTED: strace, which stops a process as a debugger does, is not installed");
        return;
    };
    let strace = Victim(strace);
    // Attached, but letting it run: no state of its own.
    let started = Instant::now();
    let tracer = loop {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:\t")?.parse::<u32>().ok());
        if tracer.is_some_and(|tracer| tracer != 0) {
            break tracer.unwrap();
        }
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(2));
    };
    assert_eq!(tracer, strace.pid());
    // With the tracer stopped, the traced process stops at the next system call, as at a breakpoint.
    strace.signal(Signal::STOP);
    strace.becomes(|state| *state == ProcessState::Stopped);
    victim.0.stdin.as_ref().unwrap().write_all(b"!").unwrap();
    let state = victim.becomes(|state| matches!(state, ProcessState::Traced { .. }));
    let text = state.to_string();
    assert!(text.contains(&format!("strace (process {tracer})")), "{text}");
    strace.signal(Signal::CONT);
}
