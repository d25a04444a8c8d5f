//! The processes with their containers and rules, the last events of rules, and the operations, in one
//! answer: dotnet-monitor's routes do not have members for them.

use serde::Serialize;

use super::json::{OperationStatus, RuleDetails, time};
use super::service::Service;
use crate::metrics::CounterSummary;
use crate::monitor::Unanswered;
use crate::process::Watched;
use crate::rules::RuleStatus;

/// Maximum number of ended operations, the latest ones.
const MAX_ENDED: usize = 100;
/// Maximum number of characters of a command line.
const MAX_COMMAND_LINE_LENGTH: usize = 1000;

/// The answer of `/overview`. What is not known is null.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    processes: Vec<ProcessRow>,
    unanswered: Vec<UnansweredRow>,
    /// The last events of rules, oldest first.
    rule_events: Vec<RuleEventRow>,
    /// The operations, oldest first.
    operations: Vec<OperationRow>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProcessRow {
    pid: u32,
    uid: String,
    name: String,
    command_line: Option<String>,
    runtime_version: Option<String>,
    uptime_seconds: Option<u64>,
    container_id: Option<String>,
    pod_uid: Option<String>,
    rules: Vec<RuleRow>,
}

#[derive(Serialize)]
struct RuleRow {
    name: String,
    /// The executions that the limit prevented.
    throttled: u64,
    missed: u64,
    #[serde(flatten)]
    details: RuleDetails,
}

#[derive(Serialize)]
struct UnansweredRow {
    pid: Option<u32>,
    attempts: u32,
    error: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleEventRow {
    time: String,
    rule: String,
    pid: u32,
    process_name: String,
    text: String,
}

#[derive(Serialize)]
struct OperationRow {
    /// The kind of the artifact, by the name of its route.
    kind: &'static str,
    #[serde(flatten)]
    status: serde_json::Value,
}

/// A process in the answer of `/counters`.
#[derive(Serialize)]
pub(super) struct CountersRow {
    pid: u32,
    uid: String,
    #[serde(flatten)]
    values: CounterSummary,
}

impl Overview {
    pub(super) fn of(service: &Service) -> Self {
        let now = SystemUptime::read();
        let processes = service.monitor.processes();
        let processes = processes.iter().map(|process| ProcessRow::of(process, service, &now));
        let history = service.rules.as_ref().map(|rules| rules.history()).unwrap_or_default();
        let rule_events = history.into_iter().map(|record| RuleEventRow {
            time: time(record.time),
            rule: record.rule,
            pid: record.pid,
            process_name: record.process_name,
            text: record.text,
        });
        let operations = service.operations.list();
        let ended = operations.iter().filter(|operation| operation.state.has_ended()).count();
        let mut left_out = ended.saturating_sub(MAX_ENDED);
        let operations = operations.iter().filter(|operation| {
            let is_left_out = operation.state.has_ended() && left_out > 0;
            left_out -= usize::from(is_left_out);
            !is_left_out
        });
        let operations = operations.map(|operation| OperationRow {
            kind: operation.kind.name(),
            status: serde_json::to_value(OperationStatus::of(operation)).unwrap_or_default(),
        });
        Self {
            processes: processes.collect(),
            unanswered: service.monitor.unanswered().into_iter().map(UnansweredRow::of).collect(),
            rule_events: rule_events.collect(),
            operations: operations.collect(),
        }
    }
}

impl ProcessRow {
    fn of(process: &Watched, service: &Service, now: &SystemUptime) -> Self {
        let container = process.container();
        let cut = |text: &String| text.chars().take(MAX_COMMAND_LINE_LENGTH).collect();
        Self {
            pid: process.facts.pid,
            uid: process.uid.to_string(),
            name: process.title().to_owned(),
            command_line: process.facts.command_line.as_ref().map(cut),
            runtime_version: process.runtime_version.clone(),
            uptime_seconds: process.system_pid().and_then(|pid| now.of_process(pid)),
            container_id: container.id.clone(),
            pod_uid: container.pod_uid.clone(),
            rules: service.rule_statuses(process).iter().map(RuleRow::of).collect(),
        }
    }
}

impl RuleRow {
    fn of(status: &RuleStatus) -> Self {
        Self {
            name: status.name.clone(),
            throttled: status.throttled,
            missed: status.missed,
            details: RuleDetails::of(status),
        }
    }
}

impl UnansweredRow {
    fn of(process: Unanswered) -> Self {
        let Unanswered { pid, attempts, error } = process;
        Self { pid, attempts, error }
    }
}

impl CountersRow {
    pub(super) fn of(process: &Watched, values: CounterSummary) -> Self {
        Self { pid: process.facts.pid, uid: process.uid.to_string(), values }
    }
}

/// The time since the system's start, on systems with `/proc`.
struct SystemUptime(Option<f64>);

#[cfg(target_os = "linux")]
impl SystemUptime {
    fn read() -> Self {
        let text = linux_proc_stat::read(std::path::Path::new("/proc/uptime")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        Self(text.split(' ').next().and_then(|seconds| seconds.parse().ok()))
    }

    /// Returns the seconds since the start of a process.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole seconds, and negative ones are zero"
    )]
    fn of_process(&self, pid: u32) -> Option<u64> {
        let bytes = linux_proc_stat::read(&linux_proc_stat::process_folder(pid).join("stat")).ok()?;
        let ticks = linux_proc_stat::Stat::parse(&bytes)?.start_ticks()?;
        let start = ticks as f64 * (linux_proc_stat::TICK_NS as f64 / 1e9);
        Some((self.0? - start) as u64)
    }
}

#[cfg(not(target_os = "linux"))]
impl SystemUptime {
    const fn read() -> Self {
        Self(None)
    }

    fn of_process(&self, _: u32) -> Option<u64> {
        // The value is never known here.
        self.0.map(|_| 0)
    }
}
