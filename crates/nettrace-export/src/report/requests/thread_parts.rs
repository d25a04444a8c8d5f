//! The time of requests on threads, by what these threads did.

use std::time::Duration;

use clr_events::{ClrEvent, KernelSample, KernelSampleKind, sets};
use hashbrown::HashMap;
use nettrace::{Event, Metadata, MetadataMap, RelativeTime, ThreadId};
use serde::Serialize;

use crate::decode::decode;
use crate::report::blocked::SleepAndIo;
use crate::report::nanoseconds;

/// The parts of the time that threads had for requests: [`TimeParts::on_thread`](super::TimeParts).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ThreadParts {
    /// The time on a processor, by the kernel's samples; `None` without these.
    #[serde(rename = "cpu_ns", serialize_with = "nanoseconds::serialize")]
    pub cpu: Option<Duration>,
    /// Waits for locks; `None` if the recording lacks lock waits of any thread.
    #[serde(rename = "lock_wait_ns", serialize_with = "nanoseconds::serialize")]
    pub lock_wait: Option<Duration>,
    /// The number of these waits.
    pub lock_waits: u64,
    /// The thread that had the lock at the beginning of the longest of them, if the runtime says it.
    pub lock_owner_tid: Option<u64>,
    /// Sleep; `None` without samples of threads, or if [it was not asked for](super::RequestsOptions::waits).
    #[serde(rename = "sleep_ns", serialize_with = "nanoseconds::serialize")]
    pub sleep: Option<Duration>,
    /// Waits for input and output; `None` as [`sleep`](Self::sleep).
    #[serde(rename = "io_ns", serialize_with = "nanoseconds::serialize")]
    pub io: Option<Duration>,
    /// The rest: other waits, and time without a processor; `None` without [`cpu`](Self::cpu), or if it is
    /// not known when threads worked for the requests.
    #[serde(rename = "other_wait_ns", serialize_with = "nanoseconds::serialize")]
    pub other_wait: Option<Duration>,
}

/// The measured time of a request, or of several.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MeasuredThreadParts {
    cpu: Duration,
    lock_wait: Duration,
    lock_waits: u64,
    longest: Duration,
    owner: Option<u64>,
}

/// A wait for a lock that has not ended.
#[derive(Debug)]
struct OpenWait<K> {
    request: K,
    since: RelativeTime,
    owner: Option<u64>,
}

/// The kind of an event, from its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    CpuSample,
    Contention,
    Other,
}

/// The requests that have not ended, and waits of threads.
#[derive(Debug)]
pub(crate) struct ThreadTimes<K> {
    kinds: MetadataMap<Kind>,
    requests: HashMap<K, MeasuredThreadParts>,
    waits: HashMap<(Option<u64>, ThreadId), OpenWait<K>>,
    known: KnownThreadParts,
}

/// The parts that the recording has events for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownThreadParts {
    cpu: bool,
    locks: bool,
    /// True if there are samples of threads, which sleep and I/O are derived from.
    samples: bool,
}

/// Maximum number of requests and threads to follow at once.
const MAX_ENTRIES: usize = 1 << 16;

impl<K> Default for ThreadTimes<K> {
    fn default() -> Self {
        Self {
            kinds: MetadataMap::new(),
            requests: HashMap::new(),
            waits: HashMap::new(),
            known: KnownThreadParts::default(),
        }
    }
}

impl<K: Copy + Eq + std::hash::Hash> ThreadTimes<K> {
    /// Returns true if [`add`](Self::add) looks at events of a kind.
    pub(crate) fn needs(kind: &Metadata) -> bool {
        Self::kind(kind) != Kind::Other
    }

    fn kind(kind: &Metadata) -> Kind {
        match KernelSampleKind::of(kind) {
            Some(KernelSampleKind::OnCpu) => Kind::CpuSample,
            _ if sets::CONTENTION.contains(kind) => Kind::Contention,
            _ => Kind::Other,
        }
    }

    /// Adds an event; `request` returns the request that its thread works for then.
    pub(crate) fn add(&mut self, event: &Event<'_>, request: impl FnOnce() -> Option<K>) {
        match self.kinds.get_or_insert_with(event.metadata_index(), || Self::kind(event.metadata())) {
            Kind::Other => {}
            Kind::CpuSample => {
                self.known.cpu = true;
                if let (Some(request), KernelSample::OnCpu(time)) =
                    (request(), KernelSampleKind::OnCpu.read(event))
                {
                    self.change(request, |parts| {
                        parts.cpu = parts.cpu.saturating_add(Duration::from_nanos(time));
                    });
                }
            }
            Kind::Contention => self.add_wait(event, request()),
        }
    }

    fn add_wait(&mut self, event: &Event<'_>, request: Option<K>) {
        self.known.locks = true;
        let key = (event.process_id(), event.thread_id());
        let now = event.relative_time().max(RelativeTime::START);
        match decode(event, &sets::CONTENTION) {
            Some(ClrEvent::ContentionStart(start)) => {
                let owner = start.lock_owner_thread_id.filter(|owner| *owner != 0);
                if let Some(request) = request.filter(|_| self.waits.len() < MAX_ENTRIES) {
                    self.waits.insert(key, OpenWait { request, since: now, owner });
                }
            }
            Some(ClrEvent::ContentionStop(stop)) => {
                let Some(wait) = self.waits.remove(&key) else { return };
                let waited = stop.duration().unwrap_or_else(|| now.saturating_duration_since(wait.since));
                self.change(wait.request, |parts| {
                    parts.lock_wait = parts.lock_wait.saturating_add(waited);
                    parts.lock_waits = parts.lock_waits.saturating_add(1);
                    if waited > parts.longest {
                        (parts.longest, parts.owner) = (waited, wait.owner);
                    }
                });
            }
            _ => {}
        }
    }

    fn change(&mut self, request: K, change: impl FnOnce(&mut MeasuredThreadParts)) {
        if self.requests.len() < MAX_ENTRIES || self.requests.contains_key(&request) {
            change(self.requests.entry(request).or_default());
        }
    }

    /// Returns the time of a request that has ended.
    pub(crate) fn end(&mut self, request: K) -> MeasuredThreadParts {
        self.requests.remove(&request).unwrap_or_default()
    }

    /// Returns the parts that the recording has events for so far; `samples` is true if it has samples of
    /// threads.
    pub(crate) fn known(&self, samples: bool) -> KnownThreadParts {
        KnownThreadParts { samples, ..self.known }
    }
}

impl MeasuredThreadParts {
    /// Adds the time of another request.
    pub(crate) fn add(&mut self, other: &Self) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.lock_wait = self.lock_wait.saturating_add(other.lock_wait);
        self.lock_waits = self.lock_waits.saturating_add(other.lock_waits);
        if other.longest > self.longest {
            (self.longest, self.owner) = (other.longest, other.owner);
        }
    }

    /// Returns the parts that the recording has events for, if any. `on_thread` is the time that threads had
    /// for the requests, if that is known, and `total` their duration. Each moment counts once: samples and
    /// the clock of waits differ.
    pub(crate) fn known(
        self,
        known: KnownThreadParts,
        (on_thread, total): (Option<Duration>, Duration),
        sampled: SleepAndIo,
    ) -> Option<ThreadParts> {
        let most = on_thread.unwrap_or(total);
        let lock_wait = known.locks.then(|| self.lock_wait.min(most));
        let rest = most.saturating_sub(lock_wait.unwrap_or_default());
        let cpu = known.cpu.then(|| self.cpu.min(rest));
        let rest = rest.saturating_sub(cpu.unwrap_or_default());
        let sleep = known.samples.then(|| Duration::from_nanos(sampled.sleep).min(rest));
        let rest = rest.saturating_sub(sleep.unwrap_or_default());
        let io = known.samples.then(|| Duration::from_nanos(sampled.io).min(rest));
        let rest = rest.saturating_sub(io.unwrap_or_default());
        (known.cpu || known.locks || known.samples).then(|| ThreadParts {
            cpu,
            lock_wait,
            lock_waits: self.lock_waits,
            lock_owner_tid: self.owner,
            sleep,
            io,
            other_wait: on_thread.and(cpu).map(|_| rest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_by_thread_time_and_absent_without_events() {
        let ms = Duration::from_millis;
        let mut measured = MeasuredThreadParts {
            cpu: ms(30),
            lock_wait: ms(60),
            lock_waits: 2,
            longest: ms(50),
            owner: Some(7),
        };
        measured.add(&MeasuredThreadParts { lock_wait: ms(10), longest: ms(10), ..measured });
        let all = KnownThreadParts { cpu: true, locks: true, samples: false };
        let parts = measured.known(all, (Some(ms(140)), ms(500)), SleepAndIo::default()).unwrap();
        assert_eq!(
            (parts.cpu, parts.lock_wait, parts.other_wait),
            (Some(ms(60)), Some(ms(70)), Some(ms(10)))
        );
        assert_eq!((parts.lock_waits, parts.lock_owner_tid), (4, Some(7)));
        let parts = measured.known(all, (Some(ms(100)), ms(500)), SleepAndIo::default()).unwrap();
        assert_eq!((parts.cpu, parts.lock_wait, parts.other_wait), (Some(ms(30)), Some(ms(70)), Some(ms(0))));
        let locks = KnownThreadParts { cpu: false, locks: true, samples: false };
        let parts = measured.known(locks, (Some(ms(100)), ms(500)), SleepAndIo::default()).unwrap();
        assert_eq!((parts.cpu, parts.other_wait), (None, None));
        assert_eq!(
            measured.known(KnownThreadParts::default(), (Some(ms(1)), ms(1)), SleepAndIo::default()),
            None
        );
        let parts = measured.known(all, (None, ms(80)), SleepAndIo::default()).unwrap();
        assert_eq!((parts.cpu, parts.lock_wait, parts.other_wait), (Some(ms(10)), Some(ms(70)), None));
    }
    #[test]
    fn sleep_and_io_are_apart_from_other_waits() {
        let ms = Duration::from_millis;
        let measured = MeasuredThreadParts { cpu: ms(30), ..MeasuredThreadParts::default() };
        let sampled = SleepAndIo { sleep: 50_000_000, io: 15_000_000 };
        let known = KnownThreadParts { cpu: true, locks: true, samples: true };
        let split = |on_thread| {
            let parts = measured.known(known, (Some(ms(on_thread)), ms(500)), sampled).unwrap();
            [parts.cpu, parts.sleep, parts.io, parts.other_wait].map(|part| part.map(|part| part.as_millis()))
        };
        assert_eq!(split(100), [Some(30), Some(50), Some(15), Some(5)]);
        assert_eq!(split(90), [Some(30), Some(50), Some(10), Some(0)], "each moment counts once");
        let without_kernel = KnownThreadParts { cpu: false, locks: false, samples: true };
        let parts = measured.known(without_kernel, (Some(ms(100)), ms(500)), sampled).unwrap();
        assert_eq!((parts.cpu, parts.sleep, parts.other_wait), (None, Some(ms(50)), None));
    }
}
