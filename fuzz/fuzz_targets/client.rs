//! Any bytes as the answers of a runtime, to every command of the client, and as the stream of a session.
//!
//! The first byte chooses the command. Every connection gets the rest as its answer, and is closed.

#![no_main]

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use dipc_client::{
    Deadline, Dump, Error, PerfMapType, Providers, SessionConfig, SessionId, Target, Timeouts, Uuid,
};
use libfuzzer_sys::fuzz_target;

/// The longest time of each step. Nothing here waits for anything but the scheduler, also on a busy machine.
const STEP: Duration = Duration::from_secs(60);

static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fuzz_target!(|input: &[u8]| {
    let Some((&choice, answer)) = input.split_first() else { return };
    static SOCKET: OnceLock<PathBuf> = OnceLock::new();
    let path = SOCKET.get_or_init(listen);
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = answer.to_vec();
    let target = Target::from_path(path).with_timeouts(Timeouts::each(STEP));
    if let Err(error) = dipc_fuzz::bounded(input.len(), || call(&target, choice)) {
        assert!(!error.to_string().is_empty());
        assert!(!error.is_deadline(), "an answer that has ended is not waited for: {error}");
    }
});

fn call(target: &Target, choice: u8) -> Result<(), Error> {
    match choice % 11 {
        0 => target.info().map(drop),
        1 => target.environment().map(drop),
        2 => target.set_environment_variable("A", Some("b")),
        3 => target.resume(),
        4 => target.enable_perf_map(PerfMapType::ALL),
        5 => target.disable_perf_map(),
        6 => target.startup_profiler(Uuid::nil(), "/profiler.so"),
        7 => target.stop(SessionId(16)),
        8 => target.dump(&Dump::new("/core")).map(drop),
        9 => target.startup().map(drop),
        _ => record(target),
    }
}

fn record(target: &Target) -> Result<(), Error> {
    let providers = Providers::parse("A:1:4").expect("it is one provider");
    let mut session = target.start_session(&SessionConfig::new(providers))?;
    let mut buffer = [0; 256];
    while session.read(&mut buffer, Deadline::after(STEP))? > 0 {}
    Ok(())
}

/// Starts a thread that answers every connection.
fn listen() -> PathBuf {
    let path = std::env::temp_dir().join(format!("dipc-fuzz-client-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket in the folder for temporary files");
    std::thread::spawn(move || listener.incoming().flatten().for_each(answer));
    path
}

fn answer(mut stream: UnixStream) {
    // Closing with a request unread would be a reset.
    let _ = stream.set_read_timeout(Some(STEP));
    if stream.read(&mut [0; 1 << 16]).is_ok() {
        let _ = stream.write_all(&ANSWER.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
