//! The selection of notes from an overview, and its thresholds.

use std::time::Duration;

use clr_activity::SpanRole;
use clr_events::code::CodeOrigin;

use super::{MethodShare, MethodShares, Note, WaitingThreads, WorkSource};
use crate::method_name;
use crate::profile::Profile;
use crate::profile::frame::{FrameId, Frames};
use crate::profile::frame_kind::FrameKind;
use crate::profile::measure::Measure;
use crate::report::blocked::{BlockedPart, WaitingMethod, ready_methods};
use crate::report::overview::Overview;
use crate::report::requests::SpanRow;
use crate::report::top::{TopRow, top};
use crate::units::{nanoseconds, share};

/// Minimum share of lost events to report as a fault, in percent.
pub const MIN_LOSS: f64 = 1.0;
/// Minimum share of lock waits in a request's time to mention, in percent.
pub const MIN_LOCK_SHARE: f64 = 10.0;
/// Minimum share of a method to mention, in percent.
pub const MIN_METHOD_SHARE: f64 = 1.0;
/// Minimum share of methods without a name to mention, in percent.
pub const MIN_UNNAMED: f64 = 10.0;
/// Minimum share of time that may be work or a wait to mention, in percent.
pub const MIN_UNVERIFIED: f64 = 1.0;

/// Maximum number of methods of a note.
const MAX_METHODS: usize = 3;

/// Returns the share, in percent, of methods without a name in the [rows](top) of a profile of this weight;
/// for CPU time, also the share of native code. Native libraries without symbols are usual where time of
/// threads has their frames.
pub fn unnamed_share(profile: &Profile, rows: &[TopRow], total: u64) -> f64 {
    let has_all = profile.measure == Measure::CPU_TIME;
    let may_be_method =
        |kind| matches!(kind, FrameKind::Code(CodeOrigin::Managed | CodeOrigin::Unknown)) || has_all;
    let unnamed = rows.iter().filter(|row| row.is_unnamed && may_be_method(row.kind));
    share(unnamed.map(|row| row.exclusive).fold(0, u64::saturating_add), total)
}

impl Overview {
    /// Returns the notes, faults of the recording first. A small loss of events is last: it changes little.
    pub fn notes(&self) -> Vec<Note> {
        let rows = top(&self.profile);
        let total = self.profile.total();
        let (lost, small_loss) = match self.lost() {
            Some(lost) if lost.is_fault() => (Some(lost), None),
            lost => (None, lost),
        };
        let mut notes: Vec<_> = [
            lost,
            self.unnamed(&rows, total),
            self.starvation.clone().map(Note::Starvation),
            self.pool_growth(),
            self.failures(),
            self.slowest_requests(),
            self.work(&rows, total),
            self.processor_time(),
            self.blocked(total),
            self.throughout(),
            self.ready(total),
            self.asleep(),
            self.session_cost(),
            self.pauses(),
            self.allocations(),
            self.exceptions(),
            self.locks(),
            self.compilation(),
        ]
        .into_iter()
        .flatten()
        .collect();
        notes.sort_by_key(|note| !note.is_fault());
        notes.extend(small_loss);
        notes
    }

    fn lost(&self) -> Option<Note> {
        let stream = &self.stream;
        (stream.lost > 0).then(|| Note::Lost {
            lost: stream.lost,
            lost_samples: stream.lost_samples,
            is_lower_bound: stream.lost_is_lower_bound,
            percent: share(stream.lost, stream.lost.saturating_add(stream.events)),
        })
    }

    fn unnamed(&self, rows: &[TopRow], total: u64) -> Option<Note> {
        let percent = unnamed_share(&self.profile, rows, total);
        let is_cpu_time = self.profile.measure == Measure::CPU_TIME;
        (percent >= MIN_UNNAMED).then_some(Note::Unnamed { percent, is_cpu_time })
    }

    fn pool_growth(&self) -> Option<Note> {
        let pool = self.thread_pool.as_ref()?;
        if let Some(starved) = pool.adjustments.iter().find(|row| row.reason == "Starvation") {
            return Some(Note::PoolGrowth { times: starved.count, most_threads: starved.most_threads });
        }
        let queue = &pool.queue;
        (queue.count > 0).then_some(Note::PoolQueue {
            work_items: queue.count,
            median: queue.median,
            p99: queue.p99,
        })
    }

    /// The rows of the requests; in a recording without requests, of the calls, or else of other activities.
    fn request_rows(&self) -> Option<Vec<&SpanRow>> {
        let report = self.requests.as_ref()?;
        let of = |role: SpanRole| {
            report.rows.iter().filter(move |row| row.role == role && row.count > 0).collect::<Vec<_>>()
        };
        let roles = [SpanRole::Server, SpanRole::Outgoing, SpanRole::Other];
        roles.into_iter().map(of).find(|rows| !rows.is_empty())
    }

    fn failures(&self) -> Option<Note> {
        let rows = self.request_rows()?;
        let worst = rows.into_iter().max_by_key(|row| row.errors).filter(|row| row.errors > 0)?;
        Some(Note::FailedRequests {
            role: worst.role,
            name: span_name(worst),
            failed: worst.errors,
            count: worst.count,
        })
    }

    fn slowest_requests(&self) -> Option<Note> {
        let slowest = self.request_rows()?.into_iter().max_by_key(|row| row.latencies.p99)?;
        let locks = slowest.thread_parts.and_then(|parts| Some((parts.lock_waits, parts.lock_wait?)));
        let total = nanoseconds(slowest.latencies.total);
        let locks = locks.map(|(count, waited)| (count, share(nanoseconds(waited), total)));
        Some(Note::SlowestRequests {
            role: slowest.role,
            name: span_name(slowest),
            p99: slowest.latencies.p99,
            median: slowest.latencies.p50,
            count: slowest.count,
            lock_waits: locks.filter(|(_, percent)| *percent >= MIN_LOCK_SHARE),
        })
    }

    fn work(&self, rows: &[TopRow], total: u64) -> Option<Note> {
        let profile = &self.profile;
        let working = total.saturating_sub(profile.blocked());
        if total == 0 {
            return (profile.idle() > 0).then_some(Note::NoWork);
        }
        if working == 0 {
            return None;
        }
        let work = |row: &TopRow| row.exclusive.saturating_sub(row.exclusive_blocked);
        let is_named = |row: &TopRow| !row.is_root && !row.is_unnamed;
        let mut rows: Vec<_> = rows.iter().filter(|row| work(row) > 0).collect();
        rows.sort_by(|a, b| work(b).cmp(&work(a)).then_with(|| a.frame.cmp(&b.frame)));
        let of_row = |row: &&TopRow| {
            let caller = row.exclusive_from.map(|caller| caller.frame);
            Some(FrameShare { method: row.frame_id?, caller, weight: work(row) })
        };
        let methods: Vec<_> = rows.iter().filter(|row| is_named(row)).filter_map(of_row).collect();
        let source = if profile.measure == Measure::CPU_TIME {
            WorkSource::CpuSamples(profile.samples())
        } else if self.stream.has_kernel_samples {
            WorkSource::KernelSamples
        } else {
            let is_much = share(self.unverified, working) >= MIN_UNVERIFIED;
            WorkSource::ThreadSamples { unverified: time(if is_much { self.unverified } else { 0 }) }
        };
        // Unnamed rows may lie between the rows of the methods.
        let mut named = rows.iter().enumerate().filter(|(_, row)| is_named(row));
        let last = named.nth(MAX_METHODS - 1).map_or(rows.len(), |(at, _)| at.saturating_add(1));
        Some(Note::Work {
            time: time(working),
            source,
            methods: shares(&profile.frames, working, &methods),
            rows: last,
            leaves_out_session: self.leaves_out_session(),
        })
    }

    fn leaves_out_session(&self) -> bool {
        self.session_cost.total() > 0
    }

    fn processor_time(&self) -> Option<Note> {
        let total = self.processor_time.iter().map(|(_, weight)| *weight).fold(0, u64::saturating_add);
        let parts = self.processor_time.iter().map(|(origin, weight)| (*origin, share(*weight, total)));
        let parts: Vec<_> = parts.filter(|(_, percent)| *percent >= MIN_METHOD_SHARE).collect();
        (!parts.is_empty()).then(|| Note::ProcessorTime { total: time(total), parts })
    }

    fn blocked(&self, total: u64) -> Option<Note> {
        let profile = &self.profile;
        let part = &self.blocked.in_work;
        if part.weight == 0 || share(part.weight, total) < MIN_METHOD_SHARE {
            return None;
        }
        let without_processor = self.without_processor.saturating_sub(profile.ready()).min(part.weight);
        let waits = part.waits.iter().take(MAX_METHODS);
        let waits = waits.map(|(kind, weight)| (*kind, share(*weight, part.weight)));
        Some(Note::Blocked {
            time: time(part.weight),
            without_processor: time(without_processor),
            methods: waiting_shares(&profile.frames, part.weight, &part.methods),
            waits: waits.filter(|(_, percent)| *percent >= MIN_METHOD_SHARE).collect(),
            leaves_out_session: self.leaves_out_session(),
        })
    }

    /// Finds the threads that did nothing but wait.
    fn throughout(&self) -> Option<Note> {
        let BlockedPart { threads, methods, .. } = &self.blocked.throughout;
        let name = |frame| method_name::without_parameters(&self.profile.frames, frame);
        let method = |wait: &WaitingMethod| WaitingThreads {
            threads: wait.threads,
            method: name(wait.method),
            called: wait.called.map(name),
        };
        (*threads > 0).then(|| Note::WaitedThroughout {
            threads: *threads,
            methods: methods.iter().take(MAX_METHODS).map(method).collect(),
            leaves_out_session: self.leaves_out_session(),
        })
    }

    /// Finds runnable threads without a processor, from the kernel's samples.
    fn ready(&self, total: u64) -> Option<Note> {
        let profile = &self.profile;
        let ready = profile.ready();
        if ready == 0 || share(ready, total) < MIN_METHOD_SHARE {
            return None;
        }
        Some(Note::Ready {
            time: time(ready),
            methods: waiting_shares(&profile.frames, ready, &ready_methods(profile)),
            leaves_out_session: self.leaves_out_session(),
        })
    }

    /// Finds sleeps, which are intended.
    fn asleep(&self) -> Option<Note> {
        let BlockedPart { weight, threads, methods, .. } = &self.blocked.asleep;
        (*weight > 0).then(|| Note::Asleep {
            time: time(*weight),
            threads: *threads,
            methods: waiting_shares(&self.profile.frames, *weight, methods),
            leaves_out_session: self.leaves_out_session(),
        })
    }

    fn session_cost(&self) -> Option<Note> {
        let cost = self.session_cost;
        let working = self.profile.total().saturating_sub(self.profile.blocked());
        let all = working.saturating_add(cost.total());
        (share(cost.total(), all) >= MIN_METHOD_SHARE).then_some(Note::Session(cost))
    }

    fn pauses(&self) -> Option<Note> {
        let gc = &self.gc;
        let all = gc.generations.iter().filter(|row| row.generation.is_none());
        (!gc.is_empty()).then(|| Note::Pauses {
            percent: gc.pause_percent,
            collections: gc.collections.len() as u64,
            induced: all.map(|row| row.induced).sum(),
            longest: gc.pauses.max,
        })
    }

    fn allocations(&self) -> Option<Note> {
        let first = self.allocations.types.first()?;
        Some(Note::Allocations {
            bytes: self.allocations.bytes,
            first_type: first.csharp.clone(),
            first_type_bytes: first.bytes,
            from: first.from.clone(),
        })
    }

    fn exceptions(&self) -> Option<Note> {
        let first = self.exceptions.types.first()?;
        Some(Note::Exceptions {
            count: self.exceptions.count,
            first_type: first.csharp.clone(),
            first_type_count: first.count,
            from: first.from.clone(),
        })
    }

    fn locks(&self) -> Option<Note> {
        let (locks, waits) = (&self.contention.locks, &self.contention.waits);
        (waits.count > 0).then(|| Note::LockWaits {
            waits: waits.count,
            total: waits.total,
            longest: waits.max,
            from: locks.first().and_then(|lock| lock.from.clone()),
        })
    }

    fn compilation(&self) -> Option<Note> {
        let jit = &self.jit;
        (!jit.is_empty()).then_some(Note::Compilation { methods: jit.methods, duration: jit.duration })
    }
}

/// Returns a weight of nanoseconds as a duration.
const fn time(weight: u64) -> Duration {
    Duration::from_nanos(weight)
}

/// Route, path or address of a row; of activities, the provider with its task.
fn span_name(row: &SpanRow) -> String {
    match (row.role, &*row.name) {
        (SpanRole::Other, name) => format!("{}/{} {name}", row.provider, row.task).trim_end().to_owned(),
        (_, "") => row.task.clone(),
        (_, name) => name.to_owned(),
    }
}

/// A method with a weight, and the user's method that led to it.
struct FrameShare {
    method: FrameId,
    caller: Option<FrameId>,
    weight: u64,
}

/// Returns the shares of the first methods of a list, heaviest first.
fn shares(frames: &Frames, total: u64, methods: &[FrameShare]) -> MethodShares {
    let name = |frame| method_name::without_parameters(frames, frame);
    let percent = |method: &FrameShare| share(method.weight, total);
    let methods = methods.iter().take(MAX_METHODS).filter(|method| percent(method) >= MIN_METHOD_SHARE);
    let methods: Vec<_> = methods.collect();
    let Some(first) = methods.first() else { return MethodShares::default() };
    let common = first.caller.filter(|_| methods.iter().all(|method| method.caller == first.caller));
    let of_each = |method: &&FrameShare| MethodShare {
        method: name(method.method),
        caller: method.caller.map(name),
        percent: percent(method),
    };
    MethodShares { methods: methods.iter().map(of_each).collect(), common_caller: common.map(name) }
}

/// Returns the shares of methods that waited: user methods where the stack has one.
fn waiting_shares(frames: &Frames, total: u64, waits: &[WaitingMethod]) -> MethodShares {
    let of_wait =
        |wait: &WaitingMethod| FrameShare { method: wait.method, caller: None, weight: wait.weight };
    shares(frames, total, &waits.iter().map(of_wait).collect::<Vec<_>>())
}
