//! The work of sessions that have nothing to read. It is counted, not timed: a test of its own program,
//! because it looks at the threads of its process.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clr_counters::prometheus::NameStyle;
use dipc_client::dipc_transport::Address;
use dipc_monitor::{
    BlackBoxConfig, BlackBoxes, Metrics, MetricsConfig, Monitor, MonitorConfig, ProcessObserver,
};
use dipc_sim::Runtime;
use dipc_wire::PortConfig;

/// Longer than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The number of runtimes.
const RUNTIMES: usize = 3;
/// The number of waits of a thread that are watched.
const WAITS: u64 = 3;

/// The counts of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    /// The reads of files. Those of sockets are not among them.
    reads: u64,
    /// The times that it waited.
    waits: u64,
}

/// The session threads of this process.
fn threads() -> BTreeMap<String, Work> {
    let mut threads = BTreeMap::new();
    for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
        let path = task.path();
        let Ok(name) = fs::read_to_string(path.join("comm")) else { continue };
        if !matches!(name.trim_end(), "counters" | "black box") {
            continue;
        }
        let number = |file: &str, field: &str| -> u64 {
            let text = fs::read_to_string(path.join(file)).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
            line.trim_start_matches(':').trim().parse().unwrap()
        };
        let work = Work { reads: number("io", "syscr"), waits: number("status", "voluntary_ctxt_switches") };
        threads.insert(format!("{} {}", name.trim_end(), task.file_name().display()), work);
    }
    threads
}

fn await_that(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "it does not happen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Looking at a silent process means to open a file for each of its threads. Sessions of idle processes wait
/// several times a second: the cost would grow with the threads of all processes.
#[test]
fn sessions_without_events_look_at_no_process() {
    if fs::metadata("/proc/self/io").is_err() {
        eprintln!("NOT TESTED: this kernel does not count the reads of threads");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = Address::from(folder.path().join("port").as_path());
    let config = MonitorConfig::default().with_port(Some(port)).with_only_port(true);
    let metrics = Arc::new(Metrics::new(MetricsConfig::new(NameStyle::OpenTelemetry)));
    let boxes = Arc::new(BlackBoxes::new(BlackBoxConfig::default(), Arc::new(|_| {})));
    let observers: Vec<Arc<dyn ProcessObserver>> = vec![metrics, Arc::clone(&boxes) as _];
    let monitor = Monitor::start(config, observers).unwrap();
    let port: PortConfig = monitor.port_address().unwrap().to_string().parse().unwrap();
    // Each sends the beginning of a stream, and nothing else.
    let runtimes: Vec<_> = (0..RUNTIMES).map(|_| Runtime::builder().connect(&port).unwrap()).collect();
    await_that("all sessions run", || {
        let processes = monitor.processes();
        processes.len() == RUNTIMES
            && processes.iter().all(|process| process.counters.session_count() == 1)
            && boxes.totals().sessions == RUNTIMES
    });
    let before = threads();
    assert_eq!(before.len(), 2 * RUNTIMES, "{before:?}");
    await_that("all threads wait again and again", || {
        let now = threads();
        before.iter().all(|(thread, work)| now.get(thread).is_some_and(|now| now.waits >= work.waits + WAITS))
    });
    let after = threads();
    for (thread, work) in &before {
        assert_eq!(after[thread].reads, work.reads, "{thread}");
    }
    drop((monitor, runtimes));
}
