//! A port with a thousand runtimes, and a hundred sessions at once. `--nocapture` shows the figures.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::ports::start_with_ports;
use crate::program::dipc;
use dipc_client::{
    Deadline, Keywords, Level, PortEvent, PortRuntime, PortServer, ProviderConfig, Session, SessionConfig,
    Timeouts,
};

/// Simulated ones, all in one process.
const RUNTIMES: usize = 1000;
/// Real runtimes along with them.
const REAL: usize = 3;
const SESSIONS: usize = 100;
/// The events after which each of them is stopped: those of two seconds.
const EVENTS: u64 = 400;
/// What one runtime at the port may cost, in bytes.
const MEMORY: u64 = 64 << 10;
/// What nothing here takes on a machine that works.
const PATIENCE: Duration = Duration::from_secs(120);

/// `dipc sim`.
fn simulate(port: &PortServer, count: usize, arguments: &[&str]) -> Ended {
    let (address, count) = (port.address().to_string(), count.to_string());
    let mut command = dipc(["sim", "--connect", &address, "--count", &count]);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Ended(command.spawn().unwrap())
}

/// A child that ends with its guard.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn arrivals(port: &PortServer, count: usize) -> Vec<PortRuntime> {
    let deadline = Deadline::after(PATIENCE);
    let mut runtimes = Vec::new();
    while runtimes.len() < count {
        match port.next(deadline).unwrap() {
            PortEvent::Connected(runtime) => runtimes.push(runtime),
            other => panic!("{other:?} after {} runtimes", runtimes.len()),
        }
    }
    runtimes
}

/// A number of `/proc/self/status`.
fn status(name: &str) -> u64 {
    let mut status = String::new();
    std::fs::File::open("/proc/self/status").unwrap().read_to_string(&mut status).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn patient() -> Timeouts {
    Timeouts::default()
        .with_connect(PATIENCE)
        .with_request(PATIENCE)
        .with_first_bytes(PATIENCE)
        .with_stop(PATIENCE)
}

#[test]
fn a_thousand_runtimes_are_served_by_one_thread_and_answer_each() {
    let folder = tempfile::tempdir().unwrap();
    // Raises the limit on open files, which a private port does not.
    let port = PortServer::bind(folder.path().join("port")).unwrap();
    let (memory, threads) = (status("VmRSS"), status("Threads"));
    let simulated = simulate(&port, RUNTIMES, &[]);
    let started = Instant::now();
    let address = port.address().to_string();
    let start = || start_with_ports(&address, &["quit"]).map(Ended);
    let real: Vec<_> = std::iter::repeat_with(start).take(REAL).flatten().collect();
    let runtimes = arrivals(&port, RUNTIMES + real.len());
    let arrived = started.elapsed();
    let each = (status("VmRSS").saturating_sub(memory) << 10) / RUNTIMES as u64;
    assert!(each <= MEMORY, "{each} bytes a runtime");
    // Tests that run beside this one have threads of their own: the requirement is that there is not one per
    // runtime.
    assert!(status("Threads") < threads + RUNTIMES as u64 / 2);

    let mut took: Vec<_> = runtimes
        .iter()
        .map(|runtime| {
            let asked = Instant::now();
            let info = runtime.target().with_timeouts(patient()).info().unwrap();
            assert_eq!(info.runtime_cookie, runtime.cookie());
            asked.elapsed()
        })
        .collect();
    took.sort();
    println!(
        "{RUNTIMES} simulated and {} real runtimes connected in {arrived:?}, {each} bytes each; a command: median {:?}, 99% {:?}, longest {:?}",
        real.len(),
        took[RUNTIMES / 2],
        took[RUNTIMES * 99 / 100],
        took[took.len() - 1]
    );

    drop(simulated);
    drop(real);
    let deadline = Deadline::after(PATIENCE);
    let mut gone = BTreeSet::new();
    while gone.len() < runtimes.len() || !port.runtimes().is_empty() {
        if let PortEvent::Exited(runtime) = port.next(deadline).unwrap() {
            gone.insert(runtime.cookie());
        }
    }
}

#[test]
fn a_hundred_sessions_at_once_all_get_their_events() {
    let port = PortServer::private().unwrap();
    let _simulated = simulate(&port, SESSIONS, &["--rate", "200"]);
    let runtimes = arrivals(&port, SESSIONS);
    let provider = || ProviderConfig {
        name: "Dipc-Simulated".into(),
        level: Level::VERBOSE,
        keywords: Keywords::ALL,
        ..Default::default()
    };
    let sessions: Vec<Session> = runtimes
        .iter()
        .map(|runtime| {
            runtime
                .target()
                .with_timeouts(patient())
                .start_session(&SessionConfig::new([provider()]))
                .unwrap()
        })
        .collect();
    let end = Instant::now() + PATIENCE;
    let events: Vec<u64> = std::thread::scope(|scope| {
        let read = |mut session: Session| {
            let mut decoder = nettrace::Decoder::new();
            let mut buffer = vec![0; 16 << 10];
            let (mut events, mut stopping) = (0_u64, false);
            loop {
                if !stopping && events >= EVENTS {
                    stopping = true;
                    let stopper = session.stopper();
                    scope.spawn(move || stopper.stop().unwrap());
                }
                assert!(stopping || Instant::now() < end, "{events} events");
                match session.read(&mut buffer, Deadline::after(Duration::from_millis(100))) {
                    Ok(0) => break,
                    Ok(count) => {
                        decoder.feed(&buffer[..count]);
                        decoder.for_each(|_| events += 1).unwrap();
                    }
                    Err(error) => assert!(error.is_deadline(), "{error}"),
                }
            }
            assert_eq!(decoder.loss().total(), 0);
            events
        };
        let threads: Vec<_> =
            sessions.into_iter().map(|session| scope.spawn(move || read(session))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    println!(
        "{SESSIONS} sessions: {} to {} events each",
        events.iter().min().unwrap(),
        events.iter().max().unwrap()
    );
}
