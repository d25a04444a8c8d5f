//! Time-outs of a session whose process is stopped.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dipc_client::dipc_transport::{self, ProcessState, process_state};
use dipc_client::dipc_wire::encode_ok;
use dipc_client::{Deadline, Error, ProviderConfig, SessionConfig, SessionId, Target};

/// Long enough for a crowded machine; a test that needs it all has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers the first command with what comes on standard input, and stops.
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

#[test]
fn only_a_long_read_reads_the_state_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut command = Command::new("python3");
    command.args(["-c", RUNTIME]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(child) = command.spawn() else {
        let _ =
            writeln!(std::io::stderr(), "!!! NOT RUN: python3, which plays the runtime, is not installed");
        return;
    };
    let mut victim = Victim(child);
    let pid = victim.0.id();
    victim.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let mut stdin = victim.0.stdin.take().unwrap();
    stdin.write_all(&encode_ok(&SessionId(0x10)).unwrap()).unwrap();
    stdin.write_all(b"Nettrace").unwrap();
    drop(stdin);

    let provider = ProviderConfig { name: "Provider".into(), ..Default::default() };
    let mut session = Target::from_path(path).start_session(&SessionConfig::new([provider])).unwrap();
    let mut bytes = [0; 64];
    assert_eq!(session.read(&mut bytes, Deadline::after(PATIENCE)).unwrap(), 8);
    let started = Instant::now();
    while process_state(pid).unwrap() != ProcessState::Stopped {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut read = |wait| session.read(&mut bytes, Deadline::after(wait)).unwrap_err();
    // Callers read with short deadlines many times a second: a look at every thread of the process takes long.
    assert_eq!(state_after(read(Duration::from_millis(50))), None);
    assert_eq!(state_after(read(Duration::from_millis(300))), Some(ProcessState::Stopped));
    drop(victim);
}
