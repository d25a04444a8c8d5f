//! The monitor's own state as metrics of Prometheus.

use clr_counters::prometheus::OwnMetric;

use super::health::{Health, LostCounts, OperationCounts};
use crate::continuous_profile::ProfileState;
use crate::otlp::OtlpTotals;

impl Health<'_> {
    /// Returns the state as metrics, grouped by name. Unknown and unused values are left out.
    pub(super) fn metrics(&self) -> Vec<OwnMetric> {
        let gauge = OwnMetric::gauge;
        let counter = OwnMetric::counter;
        let mut metrics = vec![
            gauge(
                "dipc_monitor_uptime_seconds",
                "Time since the server started.",
                number(self.uptime_seconds),
            ),
            gauge("dipc_monitor_processes", "Watched processes.", size(self.processes.watched)),
            gauge(
                "dipc_monitor_processes_unanswered",
                "Processes that were found and have not answered.",
                size(self.processes.unanswered),
            ),
            counter(
                "dipc_monitor_processes_left_out",
                "Processes that were not watched because there were too many.",
                number(self.processes.left_out),
            ),
            gauge(
                "dipc_monitor_counter_sessions",
                "Sessions of counters, which consumers share.",
                size(self.counters.sessions),
            ),
            gauge("dipc_monitor_counter_consumers", "Consumers of counters.", size(self.counters.consumers)),
            counter(
                "dipc_monitor_counter_values_left_out",
                "Values of counters that were left out because a process has more series than are kept.",
                number(self.counters.left_out_values),
            ),
        ];
        if let Some(boxes) = &self.black_boxes {
            metrics.extend([
                gauge("dipc_monitor_black_box_sessions", "Sessions of black boxes.", size(boxes.sessions)),
                gauge(
                    "dipc_monitor_black_box_bytes",
                    "Bytes of events that black boxes keep.",
                    number(boxes.bytes),
                ),
            ]);
        }
        let black_box = self.black_boxes.as_ref().map(|boxes| ("black_box", boxes.lost));
        let LostCounts { counters, export, rules } = self.lost_events;
        let losses = [("counters", counters), ("export", export), ("rules", rules)];
        metrics.extend(losses.into_iter().chain(black_box).map(|(session, count)| {
            let help = "Events that runtimes dropped, by the purpose of the session.";
            counter("dipc_monitor_lost_events", help, number(count)).with_label("session", session)
        }));
        metrics.push(gauge(
            "dipc_monitor_operations_running",
            "Artifacts that are collected.",
            size(self.operations.running),
        ));
        let OperationCounts { succeeded, failed, cancelled, .. } = self.operations;
        let ended = [("succeeded", succeeded), ("failed", failed), ("cancelled", cancelled)];
        metrics.extend(ended.map(|(result, count)| {
            counter("dipc_monitor_operations_ended", "Artifacts by result.", number(count))
                .with_label("result", result)
        }));
        metrics.extend(self.queued_artifacts.map(|count| {
            let help = "Artifacts that have not arrived at their egress provider.";
            gauge("dipc_monitor_queued_artifacts", help, size(count))
        }));
        if let Some(signals) = &self.otlp {
            let each = |metric: &dyn Fn(&OtlpTotals) -> OwnMetric| -> Vec<_> {
                signals.iter().map(|(name, totals)| metric(totals).with_label("signal", name)).collect()
            };
            metrics.extend(each(&|totals| {
                let help = "Bytes of requests that wait for the collector.";
                gauge("dipc_monitor_otlp_queued_bytes", help, number(totals.queued_bytes))
            }));
            metrics.extend(each(&|totals| {
                let help = "Points, log records and spans that the collector has taken.";
                counter("dipc_monitor_otlp_sent_items", help, number(totals.sent_items))
            }));
            metrics.extend(each(&|totals| {
                let help = "Points, log records and spans that were dropped or refused.";
                counter("dipc_monitor_otlp_dropped_items", help, number(totals.dropped_items))
            }));
        }
        metrics.extend(self.profile.iter().flat_map(profile));
        metrics.extend(self.cpu_seconds.map(|seconds| {
            counter("dipc_monitor_cpu_seconds", "Processor time of the monitor itself.", seconds)
        }));
        metrics.extend(self.resident_bytes.map(|bytes| {
            gauge("dipc_monitor_resident_memory_bytes", "Memory of the monitor itself.", number(bytes))
        }));
        metrics
    }
}

/// The samples of the machine.
fn profile(of: &ProfileState) -> [OwnMetric; 6] {
    let (gauge, counter) = (OwnMetric::gauge, OwnMetric::counter);
    [
        counter("dipc_monitor_profile_samples", "Samples of the machine.", number(of.samples)),
        counter(
            "dipc_monitor_profile_lost_samples",
            "Samples of the machine that the kernel lost.",
            number(of.lost_samples),
        ),
        gauge("dipc_monitor_profile_recordings", "Recordings of the machine.", size(of.recordings)),
        gauge("dipc_monitor_profile_bytes", "Bytes of recordings of the machine.", number(of.bytes)),
        gauge(
            "dipc_monitor_profile_waiting_recordings",
            "Recordings of the machine that could not be written so far.",
            size(of.waiting_recordings),
        ),
        counter(
            "dipc_monitor_profile_dropped_recordings",
            "Recordings of the machine that were dropped because too many could not be written.",
            number(of.dropped_recordings),
        ),
    ]
}

#[allow(clippy::cast_precision_loss, reason = "Prometheus has no other numbers")]
const fn number(count: u64) -> f64 {
    count as f64
}

#[allow(clippy::cast_precision_loss, reason = "Prometheus has no other numbers")]
const fn size(count: usize) -> f64 {
    count as f64
}
