//! Events in file order, from every source.

use core::ops::ControlFlow;

use crate::damage::Damage;
use crate::engine::{BlockSkipping, Engine, Step};
use crate::error::Error;
use crate::event::Event;
use crate::info::TraceInfo;
use crate::loss::Loss;
use crate::metadata::Metadata;
use crate::record::Record;
use crate::thread::Thread;

/// A source of bytes: [`SliceSource`](crate::SliceSource), [`ReadSource`](crate::ReadSource) or
/// [`PushSource`](crate::PushSource).
pub trait Source: sealed::Source {}

impl<S: sealed::Source> Source for S {}

pub(crate) mod sealed {
    use crate::error::Error;

    /// The bytes that have not been released, and how to get more of them.
    pub trait Source {
        /// The available bytes.
        fn bytes(&self) -> &[u8];
        /// Returns true if the input is complete.
        fn is_complete(&self) -> bool;
        /// Drops `released` bytes from the front and gets at least `wanted` more, or as many as there are.
        /// Returns whether anything has changed. Bytes that are not dropped keep their order, not their
        /// address.
        fn more(&mut self, released: usize, wanted: usize) -> Result<bool, Error>;
        /// Drops all bytes and the next `count` bytes. Returns `false`, with nothing changed, if the source
        /// cannot do that.
        fn skip(&mut self, count: usize) -> Result<bool, Error> {
            let _ = count;
            Ok(false)
        }
        /// Returns true if dropped bytes leave the buffer, which shifts positions.
        fn drops(&self) -> bool;
    }
}

/// Reads a recording, event by event in file order.
///
/// That is the order in which the runtime wrote them: in time order for each capturing thread, not across
/// threads. For time order across threads see [`in_time_order`](Self::in_time_order).
#[derive(Debug)]
pub struct Events<S> {
    pub(crate) source: S,
    pub(crate) engine: Engine,
}

impl<S: Source> Events<S> {
    pub(crate) fn with_source(source: S) -> Self {
        Self { source, engine: Engine::new() }
    }

    /// Reads the header, if its bytes are there.
    pub(crate) fn open(mut self) -> Result<Self, Error> {
        while let Some(Step::NeedMore(wanted)) =
            self.engine.open(self.source.bytes(), self.source.is_complete())?
        {
            if !self.more(wanted)? {
                break;
            }
        }
        Ok(self)
    }

    /// Returns the next event; `None` at the end, and with a [`Decoder`](crate::Decoder) also when more bytes
    /// are needed.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let (mut events, mut ticks) = (nettrace::SliceReader::new(bytes)?, 0);
    /// while let Some(event) = events.next()? {
    ///     if (event.provider(), event.name()) == ("Demo", "Tick") {
    ///         ticks += 1;
    ///     }
    /// }
    /// assert_eq!((ticks, events.loss().total()), (3, 2));
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the bytes are not a recording, or reading them failed. Damage is not an error: see
    /// [`damage`](Self::damage).
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    #[allow(
        clippy::should_implement_trait,
        reason = "an event borrows from its reader, which an Iterator's items cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        // Only the step from one event to the next is worth inlining into the caller's loop.
        if !self.engine.next_fast(self.source.bytes()) && !self.advance()? {
            return Ok(None);
        }
        Ok(self.engine.event(self.source.bytes()))
    }

    /// Returns the next event, or the next item between events that a program needs in order to write them
    /// again; `None` as [`next`](Self::next), which returns only events.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// use nettrace::Record;
    ///
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// let (mut count, mut points) = (0, 0);
    /// while let Some(record) = events.next_record()? {
    ///     match record {
    ///         Record::Event(_) => count += 1,
    ///         Record::SequencePoint(_) => points += 1,
    ///         _ => {}
    ///     }
    /// }
    /// assert_eq!((count, points), (4, 1));
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        let step =
            if self.engine.next_fast(self.source.bytes()) { Step::Event } else { self.advance_record()? };
        let Self { engine, source } = self;
        Ok(match step {
            Step::Event => engine.event(source.bytes()).map(Record::Event),
            step => engine.passed(&step, source.bytes()),
        })
    }

    /// Calls `each` with the remaining records until it breaks, in the order of
    /// [`next_record`](Self::next_record) and faster, as [`for_each`](Self::for_each) is. With a
    /// [`Decoder`](crate::Decoder) it ends when more bytes are needed.
    ///
    /// The loop over the events of a block is compiled once, in this crate and as it is optimized, for all
    /// callers: a call through `each` costs less than a loop in a program that is not.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// use std::ops::ControlFlow;
    ///
    /// use nettrace::Record;
    ///
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// let mut count = 0;
    /// let _ = events.try_for_each_record(&mut |record| {
    ///     count += u32::from(matches!(record, Record::Event(_)));
    ///     if count < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// assert_eq!(count, 3);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`next`](Self::next). If `each` breaks, the other events of that block have been passed, too.
    pub fn try_for_each_record(
        &mut self,
        each: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        loop {
            let step = self.advance_record()?;
            let flow = if let Step::Event = step {
                self.engine.records_of_block(self.source.bytes(), each)
            } else {
                match self.engine.passed(&step, self.source.bytes()) {
                    Some(record) => each(&record),
                    None => return Ok(ControlFlow::Continue(())),
                }
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
    }

    /// Moves to the next record: an event, a sequence point, the end of ids, or the end.
    #[inline(never)]
    fn advance_record(&mut self) -> Result<Step, Error> {
        loop {
            let has_more = match self.engine.advance(self.source.bytes(), self.source.is_complete())? {
                Step::NeedMore(wanted) => self.more(wanted)?,
                Step::Skip(beyond) => self.skip(beyond, None)?,
                step => return Ok(step),
            };
            if !has_more {
                return Ok(Step::End);
            }
        }
    }

    /// Calls `each` with the remaining events, in the order of [`next`](Self::next) and faster: the loop over
    /// the events of a block is here, where the compiler sees all of it. With a [`Decoder`](crate::Decoder)
    /// it ends when more bytes are needed.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut payload_bytes = 0;
    /// nettrace::SliceReader::new(bytes)?.for_each(|event| payload_bytes += event.payload().len())?;
    /// assert_eq!(payload_bytes, 18);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn for_each(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        while self.advance()? {
            self.engine.rest_of_block(self.source.bytes(), |_, event| each(event));
        }
        Ok(())
    }

    /// Calls `each` with the remaining events until it breaks off, as fast as [`for_each`](Self::for_each).
    /// The rest of that block is skipped, and no further block is read.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// use std::ops::ControlFlow::{Break, Continue};
    ///
    /// // The first event of a thread; the rest is not read.
    /// let found = nettrace::SliceReader::new(bytes)?.try_for_each(|event| match event.thread_id().0 {
    ///     9 => Break(event.relative_time()),
    ///     _ => Continue(()),
    /// })?;
    /// assert_eq!(found.break_value().map(nettrace::RelativeTime::as_nanos), Some(200_000_000));
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn try_for_each<B>(
        &mut self,
        mut each: impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, Error> {
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() && self.advance()? {
            self.engine.rest_of_block(self.source.bytes(), |_, event| {
                if flow.is_continue() {
                    flow = each(event);
                }
            });
        }
        Ok(flow)
    }

    /// Calls `each` with the next part of the remaining events, in the order of [`next`](Self::next): the
    /// rest of a block. Returns their number; `None` at the end, and with a [`Decoder`](crate::Decoder) also
    /// when more bytes are needed.
    ///
    /// As [`TimeOrder::read_part`](crate::TimeOrder::read_part), parts are for several readers that share the
    /// events of a recording.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn read_part(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<Option<u64>, Error> {
        if !self.advance()? {
            return Ok(None);
        }
        let mut count = 0_u64;
        self.engine.rest_of_block(self.source.bytes(), |_, event| {
            count = count.saturating_add(1);
            each(event);
        });
        Ok(Some(count))
    }

    /// Moves to the next event. Returns whether there is one.
    #[inline(never)]
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        loop {
            match self.advance_record()? {
                Step::Event => return Ok(true),
                Step::End => return Ok(false),
                _ => {}
            }
        }
    }

    /// Gets more bytes. Returns whether anything has changed.
    pub(crate) fn more(&mut self, wanted: usize) -> Result<bool, Error> {
        self.more_but_keep(wanted, None)
    }

    /// Gets more bytes, and keeps the bytes from an offset in the recording on.
    pub(crate) fn more_but_keep(&mut self, wanted: usize, from: Option<u64>) -> Result<bool, Error> {
        let kept = from.and_then(|from| usize::try_from(from.saturating_sub(self.engine.base())).ok());
        let released =
            if self.source.drops() { self.engine.releasable().min(kept.unwrap_or(usize::MAX)) } else { 0 };
        let outcome = self.source.more(released, wanted);
        self.engine.release(released);
        outcome
    }

    /// Drops all bytes and the next `beyond` bytes except the last. If bytes from an offset on are kept, or
    /// if the source cannot skip, gets those bytes instead. Returns whether anything has changed.
    pub(crate) fn skip(&mut self, beyond: usize, from: Option<u64>) -> Result<bool, Error> {
        let at_hand = self.source.bytes().len();
        if from.is_none() && self.source.skip(beyond.saturating_sub(1))? {
            self.engine.skipped_beyond(at_hand, beyond);
            return Ok(true);
        }
        self.more_but_keep(beyond, from)
    }

    /// Leaves out event blocks (V4 and later) if their headers show that all their events are outside this
    /// range of times, as long as no kind of event that is needed at any time is defined. A
    /// [`Reader`](crate::Reader) that was made [with a way to skip](crate::Reader::with_skip) does not read
    /// them.
    ///
    /// Everything else is read: kinds of events, stacks, threads, sequence points. Damage in a block that is
    /// left out is not found, and a gap in a thread's numbers that reaches into such a block is not a loss.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// // All events of the demo are later than these times.
    /// events.skip_blocks_outside(nettrace::Ticks(0)..=nettrace::Ticks(1), |_| false);
    /// assert!(events.next()?.is_none());
    /// assert_eq!(events.skipped_blocks(), 3);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn skip_blocks_outside(
        &mut self,
        times: core::ops::RangeInclusive<crate::Ticks>,
        is_needed: fn(&Metadata) -> bool,
    ) {
        self.engine.skipping = Some(BlockSkipping::new(times, is_needed));
    }

    /// The number of event blocks [left out](Self::skip_blocks_outside) so far.
    pub const fn skipped_blocks(&self) -> u64 {
        self.engine.skipped.count
    }

    /// The times of the first and the last event in skipped blocks; `None` without such blocks.
    pub fn skipped_times(&self) -> Option<(crate::Ticks, crate::Ticks)> {
        let (first, last) = self.engine.skipped.times?;
        Some((crate::Ticks(first.cast_unsigned()), crate::Ticks(last.cast_unsigned())))
    }

    /// The number of bytes of skipped blocks.
    pub const fn skipped_bytes(&self) -> u64 {
        self.engine.skipped.bytes
    }

    /// Gives the events of a V6 block only once the next block has arrived, which shows whether the block's
    /// size is right. Suits complete recordings, and readers that can wait.
    ///
    /// Without it a block that ends with the available bytes is not checked, because a quiet program may
    /// write the next one much later. A [`SliceReader`](crate::SliceReader) has all available bytes, and a
    /// [`Reader`](crate::Reader) of a file nearly always has enough of them.
    #[must_use]
    pub fn with_lookahead(mut self) -> Self {
        self.engine.has_lookahead = true;
        self
    }

    /// Format, version, clock and process of the recording; `None` while the header has not arrived.
    pub fn info(&self) -> Option<&TraceInfo> {
        self.engine.tables.info.as_ref()
    }

    /// Events that the runtime lost, up to the current place.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// events.for_each(|_| {})?;
    /// for gap in events.loss().gaps() {
    ///     println!("{} events lost on thread {}", gap.events, gap.thread);
    /// }
    /// assert_eq!(events.loss().total(), 2);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn loss(&self) -> &Loss {
        &self.engine.tables.threads.loss
    }

    /// Damage up to the current place. Only the first 1024 are listed.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut damaged = bytes.to_vec();
    /// let middle = damaged.len() / 2;
    /// damaged[middle..middle + 40].fill(0xff);
    /// let mut events = nettrace::SliceReader::new(&damaged)?;
    /// events.for_each(|_| {})?;
    /// for damage in events.damage() {
    ///     println!("offset {}: {} bytes skipped: {}", damage.offset, damage.skipped, damage.what);
    /// }
    /// assert!(events.damage_count() > 0);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn damage(&self) -> &[Damage] {
        &self.engine.tables.damages.listed
    }

    /// The number of damages, listed or not.
    pub fn damage_count(&self) -> u64 {
        self.engine.tables.damages.count
    }

    /// The offset of the first incomplete item, if the recording was cut. Known after a full read.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// // A recording whose process was killed: everything before the cut is read.
    /// let mut events = nettrace::SliceReader::new(&bytes[..bytes.len() - 40])?;
    /// events.for_each(|_| {})?;
    /// assert!(events.truncated_at().is_some());
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn truncated_at(&self) -> Option<u64> {
        self.engine.tables.truncated_at
    }

    /// The kinds of events up to the current place.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// events.for_each(|_| {})?;
    /// let names: Vec<_> = events.metadata().iter().map(|kind| (kind.name(), kind.level())).collect();
    /// assert_eq!(names, [("Tick", 4), ("Message", 3)]);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn metadata(&self) -> &[Metadata] {
        self.engine.tables.metadata.rows()
    }

    /// The threads up to the current place. A thread number that was reused occurs once for each thread that
    /// had it.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// events.for_each(|_| {})?;
    /// let names: Vec<_> = events.threads().iter().map(|thread| (thread.id().0, thread.name())).collect();
    /// assert_eq!(names[0], (8, Some("main")));
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn threads(&self) -> &[Thread] {
        self.engine.tables.threads.all()
    }
}
