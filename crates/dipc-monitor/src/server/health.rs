//! The monitor's own state.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::service::Service;
use crate::black_box::BlackBoxTotals;
use crate::continuous_profile::ProfileState;
use crate::egress::EgressQueue;
use crate::otlp::{OtlpSignal, OtlpTotals};

/// The answer of `/health`. What is not known, or not used, is null.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Health<'h> {
    version: &'h str,
    pub(super) uptime_seconds: u64,
    pub(super) processes: Processes,
    pub(super) counters: Counters,
    pub(super) black_boxes: Option<BlackBoxTotals>,
    pub(super) lost_events: LostCounts,
    pub(super) operations: OperationCounts,
    /// The artifacts that have not arrived at their egress provider.
    pub(super) queued_artifacts: Option<usize>,
    /// The export to a collector, by signal.
    pub(super) otlp: Option<BTreeMap<&'static str, OtlpTotals>>,
    /// The samples of the machine over time.
    pub(super) profile: Option<ProfileState>,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) resident_bytes: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Processes {
    pub(super) watched: usize,
    /// Processes that were found and have not answered.
    pub(super) unanswered: usize,
    /// Processes that were left out because there were too many.
    pub(super) left_out: u64,
}

/// The sessions of counters that consumers share.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counters {
    pub(super) sessions: usize,
    pub(super) consumers: usize,
    /// The values of series beyond the most that are kept.
    pub(super) left_out_values: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OperationCounts {
    pub(super) running: usize,
    /// Ended operations that are still listed.
    pub(super) ended: usize,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
}

/// The events that runtimes dropped, by the purpose of the session.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LostCounts {
    pub(super) counters: u64,
    pub(super) export: u64,
    pub(super) rules: u64,
}

impl<'h> Health<'h> {
    /// Collects the state. `start` is the time of the server's start.
    pub(super) fn of(service: &'h Service, start: Instant) -> Self {
        let processes = service.monitor.processes();
        let operations = service.operations.list();
        let ended = operations.iter().filter(|operation| operation.state.has_ended()).count();
        let usage = Usage::read();
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (totals, lost) = (service.operations.ended(), service.monitor.lost_events());
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
                left_out_values: count(&lost.left_out_values),
            },
            black_boxes: service.black_boxes.as_ref().map(|boxes| boxes.totals()),
            lost_events: LostCounts {
                counters: count(&lost.counters),
                export: count(&lost.export),
                rules: count(&lost.rules),
            },
            operations: OperationCounts {
                running: operations.len().saturating_sub(ended),
                ended,
                succeeded: count(&totals.succeeded),
                failed: count(&totals.failed),
                cancelled: count(&totals.cancelled),
            },
            queued_artifacts: service.queue.as_ref().map(EgressQueue::len),
            otlp: service.export.as_ref().map(|export| {
                let totals = OtlpSignal::ALL.into_iter().map(|it| (it.name(), export.totals(it)));
                totals.filter_map(|(name, totals)| Some((name, totals?))).collect()
            }),
            profile: service.profiles.as_ref().and_then(|profiles| profiles.state()),
            cpu_seconds: usage.cpu_seconds,
            resident_bytes: usage.resident_bytes,
        }
    }
}

/// The processor time and the memory of this program, on systems with `/proc`.
#[derive(Default)]
struct Usage {
    cpu_seconds: Option<f64>,
    resident_bytes: Option<u64>,
}

#[cfg(target_os = "linux")]
impl Usage {
    fn read() -> Self {
        let folder = std::path::Path::new("/proc/self");
        let stat = linux_proc_stat::read(&folder.join("stat")).unwrap_or_default();
        let status = linux_proc_stat::read(&folder.join("status")).unwrap_or_default();
        let cpu = linux_proc_stat::Stat::parse(&stat).and_then(|stat| stat.cpu_ns());
        let resident = linux_proc_stat::Status::new(&status).resident_bytes();
        let cpu_seconds = cpu.map(|ns| Duration::from_nanos(ns).as_secs_f64());
        Self { cpu_seconds, resident_bytes: resident }
    }
}

#[cfg(not(target_os = "linux"))]
impl Usage {
    fn read() -> Self {
        Self::default()
    }
}
