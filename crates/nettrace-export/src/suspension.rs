//! Times for which all threads of a process stand still for its garbage collector.

use hashbrown::HashMap;

use clr_events::ClrEvent;
use clr_events::enums::GcSuspendEeReason;
use nettrace::{Event, RelativeTime, ThreadId};

/// A time for which the collector stops all threads, from its request on.
///
/// Others stop threads too, the sampler more than a hundred times a second, and who asks while somebody else's suspension lasts
/// waits for its end: requests are told of before that. So several are open at once, and one ends where the thread that asked lets
/// all go again.
#[derive(Debug)]
pub(crate) struct Suspension<T> {
    process: Option<u64>,
    thread: ThreadId,
    /// The time at which it was asked for, or, if that was later, when the suspension before it ended.
    pub(crate) start: RelativeTime,
    /// The time at which all threads stood still.
    pub(crate) stopped: Option<RelativeTime>,
    /// Data of the caller about it.
    pub(crate) about: T,
}

/// All that are open.
#[derive(Debug)]
pub(crate) struct Suspensions<T> {
    open: Vec<Suspension<T>>,
    /// The time at which threads last ran again, by process.
    resumed: HashMap<Option<u64>, RelativeTime>,
}

impl<T> Default for Suspensions<T> {
    fn default() -> Self {
        Self { open: Vec::new(), resumed: HashMap::new() }
    }
}

impl<T> Suspensions<T> {
    /// More than threads of a process that ask at once; older ones have lost their end.
    const MOST: usize = 64;

    /// Takes in an event at a time; the suspension that it ends.
    pub(crate) fn add(
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
                    if self.open.len() == Self::MOST {
                        self.open.remove(0);
                    }
                    self.open.push(Suspension { process, thread, start: now, stopped: None, about: about() });
                }
                None
            }
            ClrEvent::GcSuspendStop(_) => {
                let asked = self.open.iter_mut().find(|it| it.process == process && it.thread == thread)?;
                asked.stopped = Some(now);
                // The end of the one before may be written later than this, but then it is not what was waited for.
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

    /// Since when a process has been asked to stand still, if it still is.
    #[cfg(feature = "report")]
    pub(crate) fn since(&self, process: Option<u64>) -> Option<RelativeTime> {
        self.open.iter().filter(|it| it.process == process).map(|it| it.start).min()
    }

    /// All that are open.
    #[cfg(feature = "report")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Suspension<T>> {
        self.open.iter()
    }

    /// The same, to be changed.
    #[cfg(feature = "report")]
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Suspension<T>> {
        self.open.iter_mut()
    }

    /// The one in which a process stands still.
    pub(crate) fn now(&mut self, process: Option<u64>) -> Option<&mut Suspension<T>> {
        self.open.iter_mut().rfind(|it| it.process == process && it.stopped.is_some())
    }
}
