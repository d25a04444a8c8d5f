//! Parts of recordings: the requested events, and the events that these need.

use std::collections::BinaryHeap;
use std::fmt;
use std::time::Duration;

use clr_events::ids::{event_pipe, runtime};
use clr_events::{KernelSample, KernelSampleKind, Provider, sets};
use nettrace::{Event, Events, Metadata, MetadataMap, PassedPoint, RelativeTime, Source, TraceInfo};

use crate::error::Error;
use crate::filter::{Criteria, Filter, UnmatchedCriterion};
use crate::range::RecordedRange;
use crate::record_selector::{EventDecision, RecordSelector};
use crate::redact::Redactor;

/// The time around a part in which samples and waits that may reach into it are kept. The sampler takes a
/// stack of each thread every millisecond, or every ten if there are many threads.
const MARGIN: Duration = Duration::from_secs(1);

/// A part of a recording: the choice of the events that match criteria.
///
/// Events of other times are kept if the part's events need them: events that name code, types, processes and
/// threads, the samples and waits that may reach into the part, and the intervals off the processors that do.
/// All are kept whole: the last event [states the time](RecordedRange) by which views cut them.
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
/// use nettrace_edit::{Criteria, RedactionLetters, Redactor, Slice};
///
/// let redactor = Redactor::new(vec!["paths".parse()?], RedactionLetters::by_text());
/// let mut slice = Slice::new(Criteria::default()).with_redactor(redactor).with_dropped_stacks(true);
/// let mut part = Vec::new();
/// nettrace_edit::copy(&recording[..], &mut part, &mut slice)?;
/// let replaced = slice.redactor().map(|redactor| redactor.replaced().values().sum::<u64>());
/// assert_eq!(replaced, Some(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Slice {
    filter: Filter,
    predicate: Option<Predicate>,
    from: RelativeTime,
    to: RelativeTime,
    /// The first and the last event that [`limit`](Self::limit) has found.
    first: Option<Position>,
    last: Option<Position>,
    drop_stacks: bool,
    /// The filter without its threads, if it names any. The samples of other threads show when a round of the
    /// sampler took place: a thread absent from a round was without managed frames.
    of_any_thread: Option<Filter>,
    /// True if the current event is a sample of another thread, of which only the time is kept.
    is_mark: bool,
    /// True if names outside the time are taken only from lists.
    lists_only: bool,
    redactor: Option<Redactor>,
    /// The use of each kind of event, by metadata index.
    uses: MetadataMap<Use>,
    /// The number of events admitted by the filters so far.
    count: u64,
}

/// A function that chooses among the events that match the criteria.
struct Predicate(Box<dyn Fn(&Event<'_>) -> bool + Send>);

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

/// The payload of a sample of which only the time is kept: the type `Error`, which no runtime writes.
const SAMPLE_MARK: [u8; 4] = [0; 4];

/// The position of an event in time order: its time, and its number in file order.
type Position = (RelativeTime, u64);

/// The use of a kind of event for other events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Names code, types, processes or threads: always kept.
    Names,
    /// Spans a time.
    Lasts,
    /// Ends an interval off the processors, and states its length.
    EndsOffCpu,
    None,
}

impl Slice {
    /// Creates a slice of the events that match the criteria, which may include a time.
    pub fn new(criteria: Criteria) -> Self {
        let from = criteria.from.unwrap_or(RelativeTime::MIN);
        let to = criteria.to.unwrap_or(RelativeTime::MAX);
        let criteria = criteria.with_from(None).with_to(None);
        let of_any_thread =
            (!criteria.threads.is_empty()).then(|| Filter::new(criteria.clone().with_threads(Vec::new())));
        Self {
            filter: Filter::new(criteria),
            of_any_thread,
            is_mark: false,
            predicate: None,
            from,
            to,
            first: None,
            last: None,
            drop_stacks: false,
            lists_only: false,
            redactor: None,
            uses: MetadataMap::default(),
            count: 0,
        }
    }

    /// Replaces strings in the events.
    #[must_use]
    pub fn with_redactor(self, redactor: Redactor) -> Self {
        Self { redactor: Some(redactor), ..self }
    }

    /// The redactor, if strings are replaced.
    pub const fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_ref()
    }

    /// Restricts the slice to the events for which `predicate` returns true, such as the events of a request.
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
    /// use nettrace_edit::{Criteria, Slice};
    ///
    /// let mut slice = Slice::new(Criteria::default()).with_predicate(|event| event.time().0 == 0);
    /// let copied = nettrace_edit::copy(&recording[..], &mut Vec::new(), &mut slice)?;
    /// assert_eq!(copied.kept, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_predicate(self, predicate: impl Fn(&Event<'_>) -> bool + Send + 'static) -> Self {
        Self { predicate: Some(Predicate(Box::new(predicate))), ..self }
    }

    /// Takes the names of code outside the time only from lists (rundown), so that more blocks can be
    /// skipped. Methods that were unloaded before the end of the recording are then unnamed.
    #[must_use]
    pub fn with_listed_names_only(self, lists_only: bool) -> Self {
        Self { lists_only, ..self }
    }

    /// Leaves out the stacks of events.
    #[must_use]
    pub fn with_dropped_stacks(self, drop_stacks: bool) -> Self {
        Self { drop_stacks, ..self }
    }

    /// Reads a recording to find the first or last events of the slice in time order, to which it is then
    /// restricted. Returns whether there are any. Memory: 16 bytes for each of `head` and `tail`.
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
    /// use nettrace_edit::{Criteria, Slice};
    ///
    /// let mut slice = Slice::new(Criteria::default());
    /// // The last three events; the recording is read twice.
    /// assert!(slice.limit(&mut nettrace::SliceReader::new(&recording)?, None, Some(3))?);
    /// let copied = nettrace_edit::copy(&recording[..], &mut Vec::new(), &mut slice)?;
    /// assert_eq!(copied.kept, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the recording cannot be read.
    pub fn limit<S: Source>(
        &mut self,
        events: &mut Events<S>,
        head: Option<usize>,
        tail: Option<usize>,
    ) -> Result<bool, Error> {
        let mut first = BinaryHeap::new();
        let mut last = BinaryHeap::new();
        while let Some(event) = events.next()? {
            if !self.is_in_time(event.relative_time()) || !self.admits(&event) {
                continue;
            }
            let position = (event.relative_time(), self.count);
            self.count = self.count.saturating_add(1);
            if let Some(head) = head {
                first.push(position);
                if first.len() > head {
                    first.pop();
                }
            }
            if let Some(tail) = tail {
                last.push(std::cmp::Reverse(position));
                if last.len() > tail {
                    last.pop();
                }
            }
        }
        self.last = head.map(|_| first.peek().copied().unwrap_or((RelativeTime::MIN, 0)));
        self.first = tail.map(|_| last.peek().map_or((RelativeTime::MAX, u64::MAX), |it| it.0));
        Ok(std::mem::take(&mut self.count) > 0)
    }

    /// Returns the criteria that matched nothing. Called after the events were read.
    pub fn misses<S: Source>(&mut self, events: &Events<S>) -> Vec<UnmatchedCriterion> {
        self.filter.misses(events)
    }

    /// Returns true if the filters admit an event, regardless of its time.
    fn admits(&mut self, event: &Event<'_>) -> bool {
        self.filter.admits(event) && self.predicate.as_ref().is_none_or(|predicate| (predicate.0)(event))
    }

    /// Returns true if an event is a sample of an unwanted thread of a wanted process.
    fn is_sample_of_other(&mut self, event: &Event<'_>) -> bool {
        sets::THREAD_SAMPLES.contains(event.metadata())
            && self.predicate.is_none()
            && !self.is_limited()
            && self.of_any_thread.as_mut().is_some_and(|filter| filter.admits(event))
    }

    fn is_in_time(&self, time: RelativeTime) -> bool {
        self.from <= time && time < self.to
    }

    /// Returns true if a time is near the slice but not in it.
    fn is_near(&self, time: RelativeTime) -> bool {
        let distance = if time < self.from { self.from.abs_diff(time) } else { time.abs_diff(self.to) };
        distance <= MARGIN
    }

    /// Returns true if an interval off the processors, which an event ends, extends from within the slice
    /// beyond its end.
    fn is_off_cpu_at_end(&self, event: &Event<'_>) -> bool {
        let time = event.relative_time();
        match KernelSampleKind::OffCpu.read(event) {
            KernelSample::OffCpu { nanoseconds, .. } if time >= self.to => {
                nanoseconds > u64::try_from(time.abs_diff(self.to).as_nanos()).unwrap_or(u64::MAX)
            }
            _ => false,
        }
    }

    const fn is_limited(&self) -> bool {
        self.first.is_some() || self.last.is_some()
    }

    fn use_of(&mut self, event: &Event<'_>) -> Use {
        self.uses.get_or_insert_with(event.metadata_index(), || Use::of(event.metadata()))
    }

    /// Returns true if the event is within the limits that [`limit`](Self::limit) has found.
    fn is_within_limits(&mut self, time: RelativeTime) -> bool {
        let position = (time, self.count);
        self.count = self.count.saturating_add(1);
        self.first.is_none_or(|first| first <= position) && self.last.is_none_or(|last| position <= last)
    }
}

/// Returns true if events of a kind name code, types, processes or threads of other events.
pub(crate) fn names_others(metadata: &Metadata) -> bool {
    Use::of(metadata) == Use::Names
}

impl Use {
    fn of(metadata: &Metadata) -> Self {
        let names = [&sets::CODE, &sets::IL_MAPS, &sets::PROCESSES, &sets::THREAD_ROLES];
        let lasts = [&sets::THREAD_SAMPLES, &sets::WAITS, &sets::CONTENTION, &sets::PAUSES];
        let provider = Provider::of(metadata);
        let is_type = provider == Some(Provider::Runtime) && metadata.event_id() == runtime::BULK_TYPE;
        let is_process =
            metadata.provider() == event_pipe::PROVIDER && metadata.event_id() == event_pipe::PROCESS_INFO;
        let is_listed = matches!(provider, Some(Provider::Rundown | Provider::UniversalSystem));
        if is_type || is_process || is_listed || names.iter().any(|set| set.contains(metadata)) {
            Self::Names
        } else if lasts.iter().any(|set| set.contains(metadata)) {
            Self::Lasts
        } else if is_off_cpu(metadata) {
            Self::EndsOffCpu
        } else {
            Self::None
        }
    }
}

/// Returns true if events of a kind end intervals off the processors.
fn is_off_cpu(metadata: &Metadata) -> bool {
    KernelSampleKind::of(metadata) == Some(KernelSampleKind::OffCpu)
}

/// Returns true if events of a kind may be needed whatever their time.
fn is_needed_anywhere(metadata: &Metadata) -> bool {
    names_others(metadata) || is_off_cpu(metadata)
}

/// The same, with names only from lists at the end of a recording (rundown) and in recordings of whole
/// machines.
fn is_needed_anywhere_or_listed(metadata: &Metadata) -> bool {
    is_off_cpu(metadata)
        || names_others(metadata) && !matches!(Provider::of(metadata), Some(Provider::Runtime))
}

impl RecordSelector for Slice {
    fn event(&mut self, event: &Event<'_>) -> EventDecision {
        let time = event.relative_time();
        let is_in_time = self.is_in_time(time);
        self.is_mark = false;
        if is_in_time && self.admits(event) && self.is_within_limits(time) {
            return EventDecision::Keep;
        }
        self.is_mark =
            (is_in_time || self.is_near(time)) && !self.admits(event) && self.is_sample_of_other(event);
        if self.is_mark {
            return if is_in_time { EventDecision::Keep } else { EventDecision::KeepBeyond };
        }
        let kind = if self.filter.admits_process(event) { self.use_of(event) } else { Use::None };
        match kind {
            Use::Names if is_in_time => EventDecision::Keep,
            _ if is_in_time => EventDecision::Remove,
            Use::Names => EventDecision::KeepBeyond,
            Use::Lasts if self.is_near(time) && self.admits(event) => EventDecision::KeepBeyond,
            Use::EndsOffCpu if self.is_off_cpu_at_end(event) && self.admits(event) => {
                EventDecision::KeepBeyond
            }
            _ => EventDecision::Skip,
        }
    }

    fn keeps_point(&mut self, point: &PassedPoint<'_>, info: &TraceInfo) -> bool {
        point.time().is_some_and(|time| self.is_in_time(info.relative_time(time)))
    }

    fn range(&self) -> Option<RecordedRange> {
        let from = self.first.map_or(self.from, |(first, _)| self.from.max(first));
        let to = self.last.map_or(self.to, |(last, _)| self.to.min(RecordedRange::up_to(last).to));
        let range = RecordedRange { from, to };
        (range != RecordedRange::ALL).then_some(range)
    }

    fn skip_blocks<S: Source>(&self, events: &mut Events<S>) -> bool {
        let Some(info) = events.info() else { return false };
        // A slice of the first or last events is known only after all of them are counted.
        if (self.from, self.to) == (RelativeTime::MIN, RelativeTime::MAX) || self.is_limited() {
            return false;
        }
        let margin = i64::try_from(MARGIN.as_nanos()).unwrap_or(i64::MAX).saturating_add(1);
        let at = |time: RelativeTime, margin: i64| {
            info.ticks(RelativeTime::from_nanos(time.as_nanos().saturating_add(margin)))
        };
        let times = at(self.from, margin.saturating_neg())..=at(self.to, margin);
        events.skip_blocks_outside(
            times,
            if self.lists_only { is_needed_anywhere_or_listed } else { is_needed_anywhere },
        );
        true
    }

    fn keeps_all(&self) -> bool {
        (self.from, self.to) == (RelativeTime::MIN, RelativeTime::MAX)
            && self.filter.admits_all()
            && self.predicate.is_none()
            && !self.is_limited()
            && self.redactor.is_none()
            && !self.drop_stacks
    }

    fn payload<'a>(&'a mut self, event: &Event<'a>) -> &'a [u8] {
        if self.is_mark {
            return &SAMPLE_MARK;
        }
        self.redactor.as_mut().map_or(event.payload(), |redactor| redactor.payload(event))
    }

    fn keeps_stacks(&self) -> bool {
        !self.drop_stacks && !self.is_mark
    }
}
