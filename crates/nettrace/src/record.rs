//! Records: events, and the things between them that matter to a program which writes a recording again.

use crate::event::Event;
use crate::raw::SequencePoint;
use crate::thread::Thread;
use crate::thread_table::ThreadTable;
use crate::time::Ticks;

/// A record of [`Events::next_record`](crate::Events::next_record).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Record<'a> {
    /// An event.
    Event(Event<'a>),
    /// A sequence point: all events before it are older than those after it, and ids of stacks and label
    /// lists end.
    SequencePoint(PassedPoint<'a>),
    /// The ids of stacks and label lists end, because the recording gives some of them to others.
    IdsEnd,
}

/// A sequence point of a recording, with the threads that it names.
#[derive(Debug, Clone, Copy)]
pub struct PassedPoint<'a> {
    pub(crate) point: Option<SequencePoint<'a>>,
    pub(crate) threads: &'a ThreadTable,
}

impl<'a> PassedPoint<'a> {
    /// Time of the point; `None` if it is damaged.
    pub fn time(&self) -> Option<Ticks> {
        self.point.map(|point| point.time())
    }

    /// The threads that the point names and that are not damaged: the index in
    /// [`Events::threads`](crate::Events::threads), the thread, and the number of the last event that it has
    /// captured.
    pub fn threads(&self) -> impl Iterator<Item = (usize, &'a Thread, u32)> + use<'a> {
        let threads = self.threads;
        let numbers = self.point.into_iter().flat_map(|point| point.threads());
        numbers.map_while(Result::ok).filter_map(move |number| {
            let slot = threads.known(number.thread);
            Some((usize::try_from(slot.0).ok()?, threads.get(slot)?, number.sequence))
        })
    }

    /// All threads so far, as [`Events::threads`](crate::Events::threads).
    pub fn all_threads(&self) -> &'a [Thread] {
        self.threads.all()
    }
}
