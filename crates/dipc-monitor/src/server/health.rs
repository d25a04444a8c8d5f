//! The monitor's own state.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use super::json;
use super::service::Service;
use crate::black_box::BlackBoxTotals;
use crate::egress::EgressQueue;
use crate::otlp::{OtlpSignal, OtlpTotals};
use crate::profile_history::ProfileState;

/// The answer of `/health`. What is not known, or not used, is null.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Health<'h> {
    version: &'h str,
    pub(super) uptime_seconds: u64,
    pub(super) processes: Processes,
    pub(super) counters: Counters,
    pub(super) black_boxes: Option<BlackBoxes>,
    pub(super) lost_events: LostCounts,
    pub(super) operations: OperationCounts,
    /// The artifacts that have not arrived at their egress provider.
    pub(super) queued_artifacts: Option<usize>,
    /// The export to a collector, by signal.
    pub(super) otlp: Option<BTreeMap<&'static str, Otlp>>,
    /// The samples of the machine over time.
    pub(super) profile: Option<Profile>,
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
pub(super) struct BlackBoxes {
    pub(super) sessions: usize,
    pub(super) bytes: u64,
    pub(super) lost_events: u64,
}

impl From<BlackBoxTotals> for BlackBoxes {
    fn from(totals: BlackBoxTotals) -> Self {
        Self { sessions: totals.sessions, bytes: totals.bytes, lost_events: totals.lost }
    }
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

/// The requests of a signal to the collector.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Otlp {
    pub(super) queued_bytes: u64,
    pub(super) sent_items: u64,
    pub(super) dropped_items: u64,
}

impl From<OtlpTotals> for Otlp {
    fn from(totals: OtlpTotals) -> Self {
        let OtlpTotals { queued_bytes, sent_items, dropped_items } = totals;
        Self { queued_bytes, sent_items, dropped_items }
    }
}

/// The samples of the machine, and the recordings of them on disk.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Profile {
    pub(super) samples: u64,
    /// The samples that the kernel lost.
    pub(super) lost_samples: u64,
    pub(super) recordings: usize,
    pub(super) bytes: u64,
    /// The time that the recordings cover.
    from: Option<String>,
    to: Option<String>,
    /// Recordings that could not be written so far, and wait in memory.
    pub(super) waiting_recordings: usize,
    pub(super) dropped_recordings: u64,
    /// The reason for which recordings wait, or for which the machine is not sampled.
    error: Option<String>,
}

impl From<ProfileState> for Profile {
    fn from(state: ProfileState) -> Self {
        let ProfileState { status, segments, bytes, kept } = state;
        let time = |ms: u64| json::time(SystemTime::UNIX_EPOCH + Duration::from_millis(ms));
        Self {
            samples: status.samples,
            lost_samples: status.lost,
            recordings: segments,
            bytes,
            from: kept.map(|kept| time(kept.start_ms)),
            to: kept.map(|kept| time(kept.end_ms)),
            waiting_recordings: status.ring.waiting,
            dropped_recordings: status.ring.dropped,
            error: status.ended.or(status.ring.error),
        }
    }
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
            black_boxes: service.black_boxes.as_ref().map(|boxes| boxes.totals().into()),
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
                totals.filter_map(|(name, totals)| Some((name, totals?.into()))).collect()
            }),
            profile: service.profiles.as_ref().map(|profiles| profiles.state().into()),
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
