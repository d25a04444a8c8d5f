//! Events that are held together, so that several threads can look at them.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use crate::engine::{Engine, Step};
use crate::error::Error;
use crate::event::Event;
use crate::events::{Events, Source};
use crate::raw::RowHeader;
use crate::tables::TableLengths;

/// The storage of a batch's rows, which serves one batch after the other: some 100 bytes an event.
#[derive(Debug, Default)]
pub struct BatchRows(Vec<BatchRow>);

impl BatchRows {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    #[inline]
    pub(crate) fn push(&mut self, row: BatchRow) {
        self.0.push(row);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// An event of a batch: its header, and the block that it was read from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchRow {
    pub(crate) header: RowHeader,
    /// Offset of the block in the recording, and its length.
    pub(crate) offset: u64,
    pub(crate) length: usize,
    pub(crate) lengths: TableLengths,
}

/// Some events that follow one another, and that any number of threads can look at: of
/// [`Events::next_batch`] or [`TimeOrder::next_batch`](crate::TimeOrder::next_batch).
#[derive(Debug, Clone, Copy)]
pub struct EventBatch<'a> {
    engine: &'a Engine,
    bytes: &'a [u8],
    rows: &'a [BatchRow],
}

impl<'a> EventBatch<'a> {
    pub(crate) fn new(engine: &'a Engine, bytes: &'a [u8], rows: &'a BatchRows) -> Self {
        Self { engine, bytes, rows: rows.0.as_slice() }
    }

    /// The number of events.
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no event.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The events, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Event<'a>> + use<'a> {
        let Self { engine, bytes, rows } = *self;
        rows.iter().filter_map(move |row| {
            let start = usize::try_from(row.offset.wrapping_sub(engine.base())).ok()?;
            let block = bytes.get(start..start.checked_add(row.length)?)?;
            engine.event_at(&row.header, block, row.offset, row.lengths)
        })
    }

    /// Parts of at most `size` events, in their order.
    pub fn chunks(&self, size: usize) -> impl Iterator<Item = Self> + use<'a> {
        let Self { engine, bytes, rows } = *self;
        rows.chunks(size.max(1)).map(move |rows| Self { engine, bytes, rows })
    }

    /// The events behind the first `count`.
    #[must_use]
    pub fn skip(self, count: usize) -> Self {
        Self { rows: self.rows.get(count..).unwrap_or_default(), ..self }
    }
}

impl<S: Source> Events<S> {
    /// Moves on by some events, and returns those of them that `choose` takes, at most `most`, which is taken for 1 where it is 0: as many as
    /// can be held without reading more of the input. A batch may be empty; `None` is the end, and with a [`Decoder`](crate::Decoder) also
    /// that more bytes are needed.
    ///
    /// `choose` is called with every event, in the order of [`next`](Self::next). It takes one with `Continue(true)`, and ends the
    /// batch before one with `Break`: that event has been passed, too.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_batch<'a>(
        &'a mut self,
        rows: &'a mut BatchRows,
        most: usize,
        mut choose: impl FnMut(&Event<'_>) -> ControlFlow<(), bool>,
    ) -> Result<Option<EventBatch<'a>>, Error> {
        rows.clear();
        if !self.engine.next_fast(self.source.bytes()) && !self.advance()? {
            return Ok(None);
        }
        loop {
            let Self { engine, source } = self;
            let bytes = source.bytes();
            if let (Some(event), Some((open, content, offset, _))) =
                (engine.event(bytes), engine.open_block(bytes))
            {
                match choose(&event) {
                    ControlFlow::Continue(true) => rows.push(BatchRow {
                        header: open.rows.header,
                        offset,
                        length: content.len(),
                        lengths: engine.tables.lengths(),
                    }),
                    ControlFlow::Continue(false) => {}
                    ControlFlow::Break(()) => break,
                }
            }
            // A step that is no event comes again with the next call.
            if rows.len() >= most
                || !engine.next_fast(bytes) && engine.advance(bytes, source.is_complete())? != Step::Event
            {
                break;
            }
        }
        Ok(Some(EventBatch::new(&self.engine, self.source.bytes(), rows)))
    }
}
