//! Events in time order across threads.

mod kinds;
mod merge;
mod run;

use core::ops::ControlFlow;
use core::time::Duration;

use crate::damage::Damage;
use crate::engine::{Engine, Step};
use crate::error::Error;
use crate::event::Event;
use crate::events::{Events, Source};
use crate::info::TraceInfo;
use crate::loss::Loss;
use crate::metadata::Metadata;
use crate::time::RelativeTime;
pub use kinds::Interest;
use kinds::KindChoice;
use merge::Merge;

/// Gives the events of all threads in time order; events of the same tick in file order.
///
/// A recording is merged between its sequence points: at most the events between two of them are held, or
/// those before an event that is marked as sorted. Runtimes write a sequence point at least for every 10 MB
/// of events and mark an event as sorted every 100 ms. The events themselves are not held, only a decoder for
/// each run of events in time order, of some 150 bytes, and for a [`Reader`](crate::Reader) or
/// [`Decoder`](crate::Decoder) the bytes of the blocks.
///
/// [`Events::in_time_order_of`] gives only events of some kinds. The others cost about as much as in file
/// order; a run then consists of wanted events with few others between them.
///
/// If an older event follows such a point, which violates the format, it is not lost: it is given out of
/// order.
#[derive(Debug)]
pub struct TimeOrder<S> {
    events: Events<S>,
    merge: Merge,
    max_delay: Option<Duration>,
}

/// Events of a part of [`TimeOrder::try_for_each`].
const PART: usize = 1024;

impl<S: Source> Events<S> {
    /// Returns the same events in time order across threads.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut events = nettrace::SliceReader::new(bytes)?.in_time_order();
    /// let mut times = Vec::new();
    /// events.for_each(|event| times.push(event.relative_time().as_nanos() / 1_000_000))?;
    /// assert_eq!(times, [100, 200, 300, 400]);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn in_time_order(self) -> TimeOrder<S> {
        self.ordered(None)
    }

    /// Returns the events of some kinds in time order across threads: the same events as
    /// [`in_time_order`](Self::in_time_order) without the other kinds, and faster if there are many others.
    /// The choice is made once for each kind.
    ///
    /// All events are read, so losses, damage, threads and kinds are known as without a choice.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let is_wanted = |kind: &nettrace::Metadata| kind.name() == "Message";
    /// let mut events = nettrace::SliceReader::new(bytes)?.in_time_order_of(is_wanted);
    /// let event = events.next()?.expect("an event");
    /// assert_eq!((event.provider(), event.id(), event.name()), ("Demo", 2, "Message"));
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn in_time_order_of(
        self,
        is_wanted: impl Fn(&Metadata) -> bool + Send + Sync + 'static,
    ) -> TimeOrder<S> {
        self.in_time_order_by(move |kind| Interest::all_if(is_wanted(kind)))
    }

    /// As [`in_time_order_of`](Self::in_time_order_of), with a choice that also leaves out events that only
    /// repeat the activity of their thread.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// use nettrace::{Interest, Metadata};
    ///
    /// let interest = |kind: &Metadata| Interest::all_if(kind.provider() == "Demo" && kind.level() <= 3);
    /// let mut events = nettrace::SliceReader::new(bytes)?.in_time_order_by(interest);
    /// let mut count = 0;
    /// events.for_each(|_| count += 1)?;
    /// assert_eq!(count, 1);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn in_time_order_by(
        self,
        interest: impl Fn(&Metadata) -> Interest + Send + Sync + 'static,
    ) -> TimeOrder<S> {
        self.ordered(Some(KindChoice::new(interest)))
    }

    fn ordered(self, kinds: Option<KindChoice>) -> TimeOrder<S> {
        TimeOrder { events: self, merge: Merge::new(kinds), max_delay: None }
    }
}

impl<S: Source> TimeOrder<S> {
    /// Limits the delay of live events: an event is given, at the latest, once an event that is newer by
    /// `delay` has arrived. Older events that follow are given out of order.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// use std::time::Duration;
    ///
    /// // A live reader waits at most 2 s of the recording's time for events of other threads.
    /// let events = nettrace::SliceReader::new(bytes)?;
    /// let mut ordered = events.in_time_order().with_max_delay(Duration::from_secs(2));
    /// let first = ordered.next()?.map(|event| event.relative_time());
    /// assert_eq!(first.map(nettrace::RelativeTime::as_nanos), Some(100_000_000));
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    #[must_use]
    pub fn with_max_delay(self, delay: Duration) -> Self {
        Self { max_delay: Some(delay), ..self }
    }

    /// Releases all events that have arrived so far, for a stream that has fallen silent: runtimes mark only
    /// the first event of each thread's batch as sorted, so the last batch would be held until the next batch
    /// arrives. Older events that follow are given out of order.
    ///
    /// A [`Reader`](crate::Reader) with an input that times out does not need this call: it gives all events
    /// that have arrived before it returns such an error.
    pub fn release(&mut self) {
        self.merge.release();
        self.limit_to_sorted();
        self.merge.set_limit();
    }

    /// Returns the next event in time order; `None` at the end, and with a [`Decoder`](crate::Decoder) also
    /// when more bytes are needed.
    ///
    /// # Errors
    /// As [`Events::next`].
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "an event borrows from its reader, which an Iterator's items cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        let Events { engine, source } = &self.events;
        if !self.merge.next_held(engine, source.bytes()) && !self.advance()? {
            return Ok(None);
        }
        Ok(self.current())
    }

    /// Returns the event that [`next`](Self::next) returned last, if it returned one.
    #[inline]
    pub fn current(&self) -> Option<Event<'_>> {
        let Events { engine, source } = &self.events;
        self.merge.current(engine, source.bytes())
    }

    /// Calls `each` with the remaining events, in the order of [`next`](Self::next) and faster. With a
    /// [`Decoder`](crate::Decoder) it ends when more bytes are needed.
    ///
    /// # Errors
    /// As [`Events::next`].
    pub fn for_each(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        let Events { engine, source } = &self.events;
        self.merge.give(engine, source.bytes(), &mut each);
        while self.may_give()? {
            let Events { engine, source } = &self.events;
            self.merge.give(engine, source.bytes(), &mut each);
        }
        Ok(())
    }

    /// Calls `each` with the remaining events until it breaks off, in the order of [`next`](Self::next). The
    /// rest of that [part](Self::read_part), some thousand events at most, is skipped, and no further part is
    /// read.
    ///
    /// # Errors
    /// As [`Events::next`].
    pub fn try_for_each<B>(
        &mut self,
        mut each: impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, Error> {
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() {
            let part = self.read_part(PART, |event| {
                if flow.is_continue() {
                    flow = each(event);
                }
            })?;
            if part.is_none() {
                break;
            }
        }
        Ok(flow)
    }

    /// Calls `each` with the next part of the remaining events, in the order of [`next`](Self::next): about
    /// `most` of them, and at least one. Returns their number; `None` at the end, and with a
    /// [`Decoder`](crate::Decoder) also when more bytes are needed.
    ///
    /// The ends of parts depend only on the recording, on `most` and on the wanted kinds. So several readers
    /// of a recording can share its events: each reads some parts and [passes](Self::pass_part) the others,
    /// which is cheap.
    ///
    /// # Errors
    /// As [`Events::next`].
    pub fn read_part(&mut self, most: usize, mut each: impl FnMut(Event<'_>)) -> Result<Option<u64>, Error> {
        self.part(most, |merge, engine, bytes| merge.give(engine, bytes, &mut each))
    }

    /// Passes the part that [`read_part`](Self::read_part) would read. Returns the number of its events.
    ///
    /// # Errors
    /// As [`Events::next`].
    pub fn pass_part(&mut self, most: usize) -> Result<Option<u64>, Error> {
        self.part(most, Merge::pass)
    }

    /// Reads until there are events that may be given, and calls `take` for a part of them. Returns their
    /// number, as `take` does.
    fn part(
        &mut self,
        most: usize,
        take: impl FnOnce(&mut Merge, &Engine, &[u8]) -> u64,
    ) -> Result<Option<u64>, Error> {
        let Events { engine, source } = &self.events;
        self.merge.put_back(engine, source.bytes());
        if !self.may_give()? {
            return Ok(None);
        }
        let Events { engine, source } = &self.events;
        let all = self.merge.begin_part(most);
        let count = take(&mut self.merge, engine, source.bytes());
        self.merge.end_part(all, count);
        Ok(Some(count))
    }

    /// Moves to the first event of the waiting runs, and reads more if none of them may be given. Returns
    /// whether there is one.
    #[inline(never)]
    fn advance(&mut self) -> Result<bool, Error> {
        Ok(self.may_give()? && self.merge.take_next())
    }

    /// Reads more if no event may be given. Returns whether an event may now be given.
    fn may_give(&mut self) -> Result<bool, Error> {
        Ok(self.merge.may_give() || self.prepare()?)
    }

    /// Reads more until events may be given. Returns whether there are any.
    fn prepare(&mut self) -> Result<bool, Error> {
        self.merge.begin();
        self.limit_to_sorted();
        loop {
            let Events { engine, source } = &mut self.events;
            match engine.advance(source.bytes(), source.is_complete())? {
                Step::Event => {
                    self.merge.hold_block(engine, source.bytes());
                    self.limit_to_sorted();
                    if self.merge.may_give() {
                        return Ok(true);
                    }
                }
                // Ids lose their meaning with the next call of `advance`, so these events are given first.
                step @ (Step::SequencePoint | Step::Invalidates) => {
                    self.merge.release_all(step == Step::SequencePoint);
                    if self.merge.may_give() {
                        return Ok(true);
                    }
                }
                Step::End => {
                    self.merge.release_all(false);
                    return Ok(self.merge.may_give());
                }
                Step::NeedMore(wanted) => {
                    let outcome = self.events.more_but_keep(wanted, self.merge.held_from());
                    if !self.is_changed(outcome)? {
                        return Ok(self.merge.may_give());
                    }
                }
                Step::Skip(beyond) => {
                    let outcome = self.events.skip(beyond, self.merge.held_from());
                    if !self.is_changed(outcome)? {
                        return Ok(self.merge.may_give());
                    }
                }
            }
        }
    }

    /// Returns whether more bytes have arrived. A time-out releases the held events, and is an error if none
    /// are held.
    fn is_changed(&mut self, outcome: Result<bool, Error>) -> Result<bool, Error> {
        match outcome {
            Err(error) if error.is_timeout() => {
                self.release();
                if self.merge.may_give() { Ok(false) } else { Err(error) }
            }
            outcome => outcome,
        }
    }

    /// Limits the events that may be given to events that nothing older follows, or that are overdue.
    fn limit_to_sorted(&mut self) {
        let delay = self.max_delay.and_then(|delay| {
            let per_second = u128::from(self.info()?.frequency);
            let ticks = delay.as_nanos().saturating_mul(per_second).checked_div(1_000_000_000)?;
            Some(u64::try_from(ticks).unwrap_or(u64::MAX))
        });
        self.merge.limit_to_sorted(delay);
    }

    /// The memory of the held events, in bytes: their blocks and their decoders. It depends only on the
    /// recording and on the events that were given or passed.
    pub fn held_bytes(&self) -> u64 {
        self.merge.held_bytes()
    }

    /// The time of the last event read so far, of any kind; `None` before the first.
    pub fn last_time(&self) -> Option<RelativeTime> {
        Some(self.info()?.relative_time(self.merge.latest()?))
    }

    /// The number of events read so far of each kind that was chosen or passed, by
    /// [`Event::metadata_index`]. Empty without a choice of kinds.
    pub fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        self.merge.counts().enumerate().filter(|(_, count)| *count > 0)
    }

    /// Format, version, clock and process of the recording; `None` while the header has not arrived.
    pub fn info(&self) -> Option<&TraceInfo> {
        self.events.info()
    }

    /// Events that the runtime lost, as far as the recording has been read.
    pub fn loss(&self) -> &Loss {
        self.events.loss()
    }

    /// Damage, as far as the recording has been read. Only the first 1024 are listed.
    pub fn damage(&self) -> &[Damage] {
        self.events.damage()
    }

    /// The offset of the first incomplete item, if the recording was cut. Known after a full read.
    pub fn truncated_at(&self) -> Option<u64> {
        self.events.truncated_at()
    }

    /// Returns the reader in file order, which continues after the events read so far.
    pub fn into_events(self) -> Events<S> {
        self.events
    }

    /// The reader in file order, for all other properties of the recording.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut ordered = nettrace::SliceReader::new(bytes)?.in_time_order();
    /// ordered.for_each(|_| {})?;
    /// assert_eq!((ordered.events().metadata().len(), ordered.events().damage_count()), (2, 0));
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub const fn events(&self) -> &Events<S> {
        &self.events
    }
}

impl TimeOrder<crate::PushSource> {
    /// Reads the header, as [`Decoder::read_header`](crate::Decoder::read_header).
    ///
    /// # Errors
    /// As [`Decoder::read_header`](crate::Decoder::read_header).
    pub fn read_header(&mut self) -> Result<Option<&TraceInfo>, Error> {
        self.events.read_header()
    }

    /// Appends bytes to the input.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.events.feed(bytes);
    }

    /// Declares the input complete.
    pub fn end_of_input(&mut self) {
        self.events.end_of_input();
    }
}
