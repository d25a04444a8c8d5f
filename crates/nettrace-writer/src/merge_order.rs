//! The events of many recordings in the order of time.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use nettrace::{Event, Events, Source, Ticks, TimeOrder};

use crate::merger::Merger;

/// The events of many recordings in the order of their times on a [`Merger`]'s clock; of the same time in the
/// order of the recordings.
///
/// Memory: that of a [`TimeOrder`] for each recording.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace::SliceReader;
/// use nettrace_writer::{MergeOrder, Merger, MergerOptions};
///
/// # let (first, second) = (recording.clone(), recording.clone());
/// let merger = Merger::new(&[info.clone(), info], MergerOptions::default())?;
/// let mut order = MergeOrder::new([SliceReader::new(&first)?, SliceReader::new(&second)?]);
/// let mut sources = Vec::new();
/// while let Some((source, _)) = order.next(&merger).map_err(|(_, error)| error)? {
///     sources.push(source);
/// }
/// // Events of the same time are in the order of the recordings.
/// assert_eq!((sources.len(), &sources[..4]), (20, &[0, 1, 0, 1][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MergeOrder<S> {
    sources: Vec<TimeOrder<S>>,
    /// The times of the next events, without that of `current`.
    waiting: BinaryHeap<Reverse<(Ticks, usize)>>,
    /// The recording of the event that was given last.
    current: Option<usize>,
    is_begun: bool,
}

impl<S: Source> MergeOrder<S> {
    /// Creates the order of these recordings. None of their events may have been read yet.
    pub fn new(recordings: impl IntoIterator<Item = Events<S>>) -> Self {
        Self {
            sources: recordings.into_iter().map(Events::in_time_order).collect(),
            waiting: BinaryHeap::new(),
            current: None,
            is_begun: false,
        }
    }

    /// Returns the next event, and the index of its recording.
    ///
    /// # Errors
    /// The index of a recording that could not be read, and the reason.
    pub fn next(&mut self, merger: &Merger) -> Result<Option<(usize, Event<'_>)>, (usize, nettrace::Error)> {
        if !self.is_begun {
            self.is_begun = true;
            for index in 0..self.sources.len() {
                if let Some(time) = self.advance(merger, index)? {
                    self.waiting.push(Reverse((time, index)));
                }
            }
        }
        if let Some(index) = self.current.take()
            && let Some(time) = self.advance(merger, index)?
        {
            let next = Reverse((time, index));
            // Events of one recording often follow one another: the heap then stays as it is.
            if self.waiting.peek().is_none_or(|first| *first < next) {
                self.current = Some(index);
            } else {
                self.waiting.push(next);
            }
        }
        if self.current.is_none() {
            self.current = self.waiting.pop().map(|Reverse((_, index))| index);
        }
        Ok(self.current.and_then(|index| Some((index, self.sources.get(index)?.current()?))))
    }

    /// Moves to the next event of a recording and returns its time.
    fn advance(&mut self, merger: &Merger, index: usize) -> Result<Option<Ticks>, (usize, nettrace::Error)> {
        let Some(source) = self.sources.get_mut(index) else { return Ok(None) };
        let event = source.next().map_err(|error| (index, error))?;
        Ok(event.map(|event| merger.time(index, event.time())))
    }

    /// The readers of the recordings.
    pub fn events(&self) -> impl Iterator<Item = &Events<S>> {
        self.sources.iter().map(TimeOrder::events)
    }

    /// Returns the readers of the recordings.
    pub fn into_events(self) -> impl Iterator<Item = Events<S>> {
        self.sources.into_iter().map(TimeOrder::into_events)
    }
}
