//! Intervals in which all threads of a process are suspended for its garbage collector.

use clr_events::ClrEvent;
use clr_events::enums::GcSuspendEeReason;
use nettrace::{Event, RelativeTime, ThreadId};

use crate::bounded_map::BoundedMap;

/// An interval in which the collector stops all threads, starting at its request.
///
/// Others stop threads, too; the sampler does so more than a hundred times a second. A thread that requests a
/// suspension during another one waits for its end, and the event of its request is written before that wait.
/// Several can be open at once; each ends when its thread resumes all others.
#[derive(Debug)]
#[non_exhaustive]
pub struct Suspension<T> {
    /// The process; `None` if the recording does not state it.
    pub process: Option<u64>,
    /// The thread that requested it.
    pub thread: ThreadId,
    /// The time of the request, or the end of the previous suspension if that was later.
    pub start: RelativeTime,
    /// The time at which all threads were stopped.
    pub stopped: Option<RelativeTime>,
    /// Data of the caller.
    pub about: T,
}

/// The open suspensions of all processes.
///
/// # Memory
/// Bounded: 64 open suspensions, and the last end of each of 262,144 processes.
#[derive(Debug)]
pub struct Suspensions<T> {
    open: Vec<Suspension<T>>,
    /// The time at which threads last resumed, by process.
    resumed: BoundedMap<Option<u64>, RelativeTime>,
}

impl<T> Default for Suspensions<T> {
    fn default() -> Self {
        Self { open: Vec::new(), resumed: BoundedMap::default() }
    }
}

impl<T> Suspensions<T> {
    /// More than the number of threads of a process that request at once; older ones have lost their end.
    const MAX_OPEN: usize = 64;

    /// Adds an event, and returns the suspension that it ends; `about` creates the data of a suspension that
    /// it begins.
    pub fn add(
        &mut self,
        (event, view): (&Event<'_>, &ClrEvent<'_>),
        now: RelativeTime,
        about: impl FnOnce() -> T,
    ) -> Option<Suspension<T>> {
        let (process, thread) = (event.process_id(), event.thread_id());
        match view {
            ClrEvent::GcSuspendStart(suspend) => {
                self.end(process, thread);
                if matches!(
                    suspend.reason,
                    GcSuspendEeReason::SUSPEND_FOR_GC | GcSuspendEeReason::SUSPEND_FOR_GC_PREP
                ) {
                    if self.open.len() == Self::MAX_OPEN {
                        self.open.remove(0);
                    }
                    self.open.push(Suspension { process, thread, start: now, stopped: None, about: about() });
                }
                None
            }
            ClrEvent::GcSuspendStop(_) => {
                let asked = self.open.iter_mut().find(|it| it.process == process && it.thread == thread)?;
                asked.stopped = Some(now);
                // The end of the previous suspension can be written after this event, but then this one did
                // not wait for it.
                asked.start = asked.start.max(self.resumed.get(&process).copied().unwrap_or_default());
                None
            }
            ClrEvent::GcRestartStop(_) => {
                self.resumed.insert(process, now);
                self.end(process, thread)
            }
            _ => None,
        }
    }

    fn end(&mut self, process: Option<u64>, thread: ThreadId) -> Option<Suspension<T>> {
        let place = self.open.iter().position(|it| it.process == process && it.thread == thread)?;
        Some(self.open.remove(place))
    }

    /// Returns the start of the earliest open suspension of a process.
    pub fn since(&self, process: Option<u64>) -> Option<RelativeTime> {
        self.open.iter().filter(|it| it.process == process).map(|it| it.start).min()
    }

    /// Returns all open suspensions.
    pub fn iter(&self) -> impl Iterator<Item = &Suspension<T>> {
        self.open.iter()
    }

    /// Returns all open suspensions, mutably.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Suspension<T>> {
        self.open.iter_mut()
    }

    /// Returns the suspension that currently stops a process.
    pub fn now(&mut self, process: Option<u64>) -> Option<&mut Suspension<T>> {
        self.open.iter_mut().rfind(|it| it.process == process && it.stopped.is_some())
    }
}
