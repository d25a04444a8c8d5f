//! Time-outs of a session of a stopped process.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dipc_client::dipc_transport::{self, ProcessState, process_state};
use dipc_client::dipc_wire::encode_ok;
use dipc_client::{Deadline, Error, ProviderConfig, Session, SessionConfig, SessionId, Target, Timeouts};
use tempfile::TempDir;

/// Long enough for a crowded machine; a test that uses all of it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers the first command with the bytes on standard input, and stops.
const RUNTIME: &str = "import os, signal, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(5)
print('!', end='', flush=True)
c, _ = s.accept(); c.recv(65536); c.sendall(sys.stdin.buffer.read())
os.kill(os.getpid(), signal.SIGSTOP)";

/// A child that is killed with its guard.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn state_after(error: Error) -> Option<ProcessState> {
    match error {
        Error::Transport(dipc_transport::Error::TimedOut { peer: Some(_), peer_state, .. }) => peer_state,
        other => panic!("{other:?}"),
    }
}

/// A session of a process that has stopped since the session started; `None` without python3.
fn session_of_a_stopped_process(folder: &TempDir, timeouts: Timeouts) -> Option<(Session, Victim)> {
    let path = folder.path().join("socket");
    let mut command = Command::new("python3");
    command.args(["-c", RUNTIME]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(child) = command.spawn() else {
        let _ =
            writeln!(std::io::stderr(), "!!! NOT RUN: python3, which plays the runtime, is not installed");
        return None;
    };
    let mut victim = Victim(child);
    let pid = victim.0.id();
    victim.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let mut stdin = victim.0.stdin.take().unwrap();
    stdin.write_all(&encode_ok(&SessionId(0x10)).unwrap()).unwrap();
    stdin.write_all(b"Nettrace").unwrap();
    drop(stdin);

    let provider = ProviderConfig { name: "Provider".into(), ..Default::default() };
    let target = Target::from_path(path).with_timeouts(timeouts);
    let mut session = target.start_session(&SessionConfig::new([provider])).unwrap();
    let mut bytes = [0; 64];
    assert_eq!(session.read(&mut bytes, Deadline::after(PATIENCE)).unwrap(), 8);
    let started = Instant::now();
    while process_state(pid).unwrap() != ProcessState::Stopped {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(2));
    }
    Some((session, victim))
}

#[test]
fn only_a_long_read_reads_the_state_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut session, victim)) = session_of_a_stopped_process(&folder, Timeouts::default()) else {
        return;
    };
    let mut read = |wait| session.read(&mut [0; 64], Deadline::after(wait)).unwrap_err();
    // Callers read with short deadlines many times a second: checking every thread of the process takes too
    // long.
    assert_eq!(state_after(read(Duration::from_millis(50))), None);
    assert_eq!(state_after(read(Duration::from_millis(300))), Some(ProcessState::Stopped));
    drop(victim);
}

/// The number of times that this thread has read from a file. Reads of sockets do not count.
fn files_read() -> u64 {
    let counts = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let reads = counts.lines().find_map(|line| line.strip_prefix("syscr:")).unwrap();
    reads.trim().parse().unwrap()
}

#[test]
fn a_poll_does_not_read_the_state_of_the_process_however_long_it_waits() {
    if std::fs::metadata("/proc/thread-self/io").is_err() {
        let _ = writeln!(std::io::stderr(), "!!! NOT RUN: this kernel does not count the reads of a thread");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some((mut session, victim)) = session_of_a_stopped_process(&folder, Timeouts::default()) else {
        return;
    };
    let of_counting = {
        let before = files_read();
        files_read() - before
    };
    let before = files_read();
    for _ in 0..2 {
        let polled = session.poll_read(&mut [0; 64], Deadline::after(Duration::from_millis(300))).unwrap();
        assert_eq!(polled, None);
    }
    assert_eq!(files_read() - before, of_counting);
    // The count shows a look at the process.
    let before = files_read();
    let error = session.read(&mut [0; 64], Deadline::after(Duration::from_millis(300))).unwrap_err();
    assert_eq!(state_after(error), Some(ProcessState::Stopped));
    assert!(files_read() - before > of_counting);
    drop(victim);
}

#[test]
fn a_reader_does_not_wait_for_the_scheduled_stop_of_a_process_that_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let timeouts = Timeouts::default().with_silence(Duration::from_millis(300));
    let Some((mut session, victim)) = session_of_a_stopped_process(&folder, timeouts) else { return };
    session.stop_after(PATIENCE * 60);
    let error = session.reader().read(&mut [0; 64]).unwrap_err().downcast::<Error>().unwrap();
    let Error::Silent { peer_state, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*peer_state, Some(ProcessState::Stopped));
    let text = format!("; process {} is stopped by a signal", victim.0.id());
    assert!(error.to_string().ends_with(&text), "{error}");
    drop(victim);
}
