//! The monitor's own state.

use std::time::Instant;

use serde::Serialize;

use super::service::Service;
use crate::black_box::BlackBoxTotals;
use crate::egress::EgressQueue;

/// The answer of `/health`. What is not known, or not used, is null.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Health<'h> {
    version: &'h str,
    uptime_seconds: u64,
    processes: Processes,
    counters: Counters,
    black_boxes: Option<BlackBoxes>,
    operations: OperationCounts,
    /// The artifacts that have not arrived at their egress provider.
    queued_artifacts: Option<usize>,
    cpu_seconds: Option<f64>,
    resident_bytes: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Processes {
    watched: usize,
    /// Those that were found and have not answered.
    unanswered: usize,
    /// Those that were left out because there were too many.
    left_out: u64,
}

/// The sessions of counters that consumers share.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Counters {
    sessions: usize,
    consumers: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BlackBoxes {
    sessions: usize,
    bytes: u64,
    lost_events: u64,
}

impl From<BlackBoxTotals> for BlackBoxes {
    fn from(totals: BlackBoxTotals) -> Self {
        Self { sessions: totals.sessions, bytes: totals.bytes, lost_events: totals.lost }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationCounts {
    running: usize,
    ended: usize,
}

impl<'h> Health<'h> {
    /// Collects the state. `start` is the time of the server's start.
    pub(super) fn of(service: &'h Service, start: Instant) -> Self {
        let processes = service.monitor.processes();
        let operations = service.operations.list();
        let ended = operations.iter().filter(|operation| operation.state.has_ended()).count();
        let usage = Usage::read();
        Self {
            version: &service.version,
            uptime_seconds: start.elapsed().as_secs(),
            processes: Processes {
                watched: processes.len(),
                unanswered: service.monitor.unanswered().len(),
                left_out: service.monitor.left_out(),
            },
            counters: Counters {
                sessions: processes.iter().filter(|process| process.counters.is_running()).count(),
                consumers: processes.iter().map(|process| process.counters.consumer_count()).sum(),
            },
            black_boxes: service.black_boxes.as_ref().map(|boxes| boxes.totals().into()),
            operations: OperationCounts { running: operations.len().saturating_sub(ended), ended },
            queued_artifacts: service.queue.as_ref().map(EgressQueue::len),
            cpu_seconds: usage.cpu_seconds,
            resident_bytes: usage.resident_bytes,
        }
    }
}

/// The processor time and the memory of this program, where the system has `/proc`.
#[derive(Default)]
struct Usage {
    cpu_seconds: Option<f64>,
    resident_bytes: Option<u64>,
}

#[cfg(target_os = "linux")]
impl Usage {
    fn read() -> Self {
        let folder = std::path::Path::new("/proc/self");
        let stat = linux_proc::read(&folder.join("stat")).unwrap_or_default();
        let status = linux_proc::read(&folder.join("status")).unwrap_or_default();
        let cpu = linux_proc::Stat::parse(&stat).and_then(|stat| stat.cpu_ns());
        let resident = linux_proc::Status::new(&status).field("VmRSS").and_then(parse_kilobytes);
        let cpu_seconds = cpu.map(|ns| std::time::Duration::from_nanos(ns).as_secs_f64());
        Self { cpu_seconds, resident_bytes: resident }
    }
}

#[cfg(not(target_os = "linux"))]
impl Usage {
    fn read() -> Self {
        Self::default()
    }
}

/// Parses a size as the kernel writes it, `1234 kB`. Returns bytes.
#[cfg(target_os = "linux")]
fn parse_kilobytes(text: &str) -> Option<u64> {
    text.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
