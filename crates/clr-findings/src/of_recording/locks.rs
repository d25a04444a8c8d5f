//! Causes in locks and the thread pool.

use std::time::Duration;

use clr_events::escape_controls;
use nettrace_export::FrameId;
use nettrace_export::report::{LockRow, LockWait};
use nettrace_export::units::{counted, nanoseconds, share, short_percent, time};

use super::{OfRecording, caller};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number, in_method};
use crate::thresholds;

impl OfRecording<'_> {
    pub(super) fn deadlock(&self) -> Option<Finding> {
        let contention = &self.overview.contention;
        let first = contention.deadlocks.first()?;
        let of_first = |tid: &u64| contention.unfinished_waits.iter().find(|wait| wait.tid == *tid);
        let waits: Vec<_> = first.tids.iter().filter_map(of_first).collect();
        let of_lock = |wait: &&LockWait| contention.locks.iter().find(|lock| lock.lock == wait.lock);
        let method = waits.iter().find_map(|wait| caller(wait.from.as_ref()));
        let method =
            method.or_else(|| waits.iter().filter_map(of_lock).find_map(|lock| caller(lock.from.as_ref())));
        let cause = format!("Deadlock: {first}{}", in_method(method.as_deref()));
        let threads = first.tids.len() as f64;
        let others = contention.deadlocks.len().saturating_sub(1) as u64;
        let others =
            (others > 0).then(|| format!("{} like it", counted(others, "other deadlock", "other deadlocks")));
        Some(
            Finding::new(FindingKind::Deadlock, threads, cause, Details::Contention)
                .with_method(method)
                .with_evidence(others)
                .with_numbers([Number::new("threads", threads)]),
        )
    }

    /// The starvation of the pool by the samples of its workers; without it, by the pool's own account.
    pub(super) fn starvation(&self) -> Option<Finding> {
        let growth = self.pool_growth();
        match self.blocked_workers() {
            Some(finding) => Some(finding.and_evidence(growth.map(|finding| finding.cause))),
            None => growth,
        }
    }

    /// The growth of the pool for starvation: it waits without any progress before it adds a thread.
    fn pool_growth(&self) -> Option<Finding> {
        let pool = self.overview.thread_pool.as_ref()?;
        let starved = pool.adjustments.iter().find(|row| row.reason == "Starvation")?;
        let waited =
            thresholds::POOL_PATIENCE.saturating_mul(u32::try_from(starved.count).unwrap_or(u32::MAX));
        let percent = self.percent_of_time(waited).min(100.0);
        if percent < thresholds::STARVATION {
            return None;
        }
        let workers = f64::from(starved.most_threads);
        let cause = format!(
            "The thread pool had too few threads {}, and added up to {}: work waited while all others were blocked",
            counted(starved.count, "time", "times"),
            starved.most_threads,
        );
        Some(
            Finding::new(FindingKind::Starvation, workers * percent / 100.0, cause, Details::ThreadPool)
                .with_confidence(Confidence::Likely)
                .with_numbers([
                    Number::new("times", starved.count as f64),
                    Number::new("most_threads", workers),
                ]),
        )
    }

    fn blocked_workers(&self) -> Option<Finding> {
        let starvation = self.overview.starvation.as_ref()?;
        let percent = self.percent_of_time(starvation.total);
        if percent < thresholds::STARVATION {
            return None;
        }
        let frames = &self.overview.profile.frames;
        let is_method = |frame: &FrameId| Some(frames.method(*frame)) == starvation.method.as_deref();
        let method = frames.iter().map(|(frame, _)| frame).find(is_method).map(|frame| self.name(frame));
        let waited_for_tasks = share(nanoseconds(starvation.task_waits), nanoseconds(starvation.blocked));
        let reason = if waited_for_tasks >= 50.0 {
            ", waiting for tasks: synchronous code over asynchronous"
        } else {
            ""
        };
        let cause = format!(
            "The thread pool is starved: all {} workers were blocked {} of the time{}{reason}",
            starvation.workers,
            short_percent(percent),
            in_method(method.as_deref()),
        );
        let workers = f64::from(starvation.workers);
        let times =
            format!("{} together, {} at the longest", time(starvation.total), time(starvation.longest));
        Some(
            Finding::new(FindingKind::Starvation, workers * percent / 100.0, cause, Details::ThreadPool)
                .with_method(method)
                .with_evidence([times])
                .with_numbers([
                    Number::new("workers", workers),
                    Number::new("blocked_percent", percent),
                    Number::new("task_wait_percent", waited_for_tasks),
                ]),
        )
    }

    pub(super) fn lock_convoys(&self) -> impl Iterator<Item = Finding> {
        self.overview.contention.locks.iter().filter_map(|lock| self.lock_convoy(lock))
    }

    /// The thread that most of the waits were for, at the end of a sentence.
    fn holder(&self, lock: &LockRow, waiting: Option<&str>) -> Option<String> {
        let (tid, held) = lock.owner?;
        if held.saturating_mul(2) < lock.total {
            return None;
        }
        let method = self.method_of_thread(tid, waiting)?;
        let thread = self.overview.profile.threads.iter().find(|thread| thread.id == tid)?;
        let name = thread.name.as_deref().filter(|name| !name.is_empty());
        let thread = match name {
            Some(name) => format!("{} ({tid})", escape_controls(name)),
            None => format!("thread {tid}"),
        };
        Some(format!(", most of it for {thread}, which is mostly in {method}"))
    }

    fn lock_convoy(&self, lock: &LockRow) -> Option<Finding> {
        let end = self.overview.stream.last;
        let unfinished = self.overview.contention.unfinished_waits.iter();
        let unfinished: Vec<_> = unfinished.filter(|wait| wait.lock == lock.lock).collect();
        let open = unfinished
            .iter()
            .map(|wait| end.saturating_duration_since(wait.since).min(self.overview.duration));
        let waited = open.fold(lock.total, Duration::saturating_add);
        let threads = lock.threads.max(unfinished.len() as u64);
        let waiters = waited.as_secs_f64() / self.seconds;
        let percent = 100.0 * waiters / threads.max(1) as f64;
        if waiters < thresholds::LOCK_WAITERS || percent < thresholds::LOCK_SHARE {
            return None;
        }
        let method = caller(lock.from.as_ref());
        let one = if lock.lock == 0 { "locks" } else { "one lock" };
        let cause = format!(
            "{} for {one}{} {} of {} time{}",
            counted(threads, "thread waits", "threads wait"),
            in_method(method.as_deref()),
            short_percent(percent.min(100.0)),
            if threads == 1 { "its" } else { "their" },
            self.holder(lock, method.as_deref()).unwrap_or_default(),
        );
        let evidence = format!(
            "{}, {} together, {} at the longest",
            counted(lock.waits.saturating_add(unfinished.len() as u64), "wait", "waits"),
            time(waited),
            time(lock.max),
        );
        Some(
            Finding::new(FindingKind::LockConvoy, waiters, cause, Details::Contention)
                .with_waiting_methods(method.iter().cloned().collect())
                .with_method(method)
                .with_evidence([evidence])
                .with_numbers([
                    Number::new("threads", threads as f64),
                    Number::new("waiting_percent", percent),
                    Number::new("waits", lock.waits as f64),
                ]),
        )
    }
}
