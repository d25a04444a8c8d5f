//! Parts of recordings: the requested events, and the events that these need.

use std::collections::BinaryHeap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use clr_activity::{ActivityEvents, ActivityFinder};
use clr_events::ids::{event_pipe, runtime};
use clr_events::{Provider, sets};
use nettrace::{Event, Events, Metadata, PassedPoint, RelativeTime, Source, TraceInfo};

use crate::exit::Failure;
use crate::inspect::filter::{Criteria, Filter};
use crate::inspect::recording::Recording;
use crate::inspect::redact::{Letters, Redaction, Redactor};
use crate::inspect::rewrite::{Choice, Chooser};

/// The time around a part in which samples and waits that may reach into it are kept. The sampler takes a
/// stack of each thread every millisecond, or every ten if there are many threads.
const MARGIN: Duration = Duration::from_secs(1);

/// A part of a recording.
#[derive(Debug)]
pub(crate) struct Slice {
    filter: Filter,
    /// The events of the requested activities and requests.
    activities: Option<Rc<ActivityEvents>>,
    from: RelativeTime,
    to: RelativeTime,
    /// The first and the last event of `--head` and `--tail`.
    first: Option<Position>,
    last: Option<Position>,
    drop_stacks: bool,
    /// The filter without its threads, if it has any. The samples of other threads show when a round of the
    /// sampler took place: a thread absent from a round had no managed frames.
    of_any_thread: Option<Filter>,
    /// Whether the current event is a sample of another thread, of which only the time is kept.
    is_mark: bool,
    /// Whether names outside the time are taken only from lists.
    lists_only: bool,
    redactor: Option<Redactor>,
    /// The use of each kind of event, by metadata index.
    uses: Vec<Option<Use>>,
    /// The number of events admitted by the filters so far.
    count: u64,
}

/// The payload of a sample of which only the time is kept: the type `Error`, which no runtime writes.
const SAMPLE_MARK: [u8; 4] = [0; 4];

/// The position of an event in time order: its time, and its number in file order.
type Position = (RelativeTime, u64);

/// The use of a kind of event for other events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It names code, types, processes or threads: always kept.
    Names,
    /// It spans a time.
    Lasts,
    None,
}

impl Slice {
    /// Creates a slice of the events that match the criteria, which may include a time.
    pub(crate) fn new(criteria: Criteria, drop_stacks: bool) -> Self {
        let from = criteria.from.unwrap_or(RelativeTime::MIN);
        let to = criteria.to.unwrap_or(RelativeTime::MAX);
        let criteria = Criteria { from: None, to: None, ..criteria };
        let of_any_thread = (!criteria.threads.is_empty())
            .then(|| Filter::new(Criteria { threads: Vec::new(), ..criteria.clone() }));
        Self {
            filter: Filter::new(criteria),
            of_any_thread,
            is_mark: false,
            activities: None,
            from,
            to,
            first: None,
            last: None,
            drop_stacks,
            lists_only: false,
            redactor: None,
            uses: Vec::new(),
            count: 0,
        }
    }

    /// Adds redactions, with texts replaced by these letters.
    pub(crate) fn with_redactions(mut self, redactions: &[Redaction], letters: Letters) -> Self {
        self.redactor = (!redactions.is_empty()).then(|| Redactor::new(redactions.to_vec(), letters));
        self
    }

    /// The redactor, if texts are replaced.
    pub(crate) const fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_ref()
    }

    /// Reports which texts were replaced.
    pub(crate) fn report_redactions(&self) {
        if let Some(redactor) = &self.redactor {
            redactor.report("they are as they were");
        }
    }

    /// Restricts the slice to the events of activities and requests.
    pub(crate) fn with_activities(self, activities: Option<Rc<ActivityEvents>>) -> Self {
        Self { activities, ..self }
    }

    /// Takes the names of code outside the time only from lists (rundown).
    pub(crate) fn with_lists_only(self, lists_only: bool) -> Self {
        Self { lists_only, ..self }
    }

    /// Reads a recording to find the first or last events of the slice in time order.
    pub(crate) fn limit(
        &mut self,
        file: &Path,
        head: Option<usize>,
        tail: Option<usize>,
    ) -> Result<(), Failure> {
        let (mut events, origin) = Recording::open(file)?.into_parts();
        let mut first = BinaryHeap::new();
        let mut last = BinaryHeap::new();
        let mut outcome = Ok(());
        while let Some(event) = events.next().map_err(|error| origin.failed(&error))? {
            if !self.is_in_time(event.relative_time()) || !self.admits(&event) {
                continue;
            }
            let position = (event.relative_time(), self.count);
            self.count += 1;
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
        if self.count == 0 {
            outcome = Err(Failure::new(crate::exit::Exit::Failed, "no event matches the filters"));
        }
        self.last = head.map(|_| first.peek().copied().unwrap_or((RelativeTime::MIN, 0)));
        self.first = tail.map(|_| last.peek().map_or((RelativeTime::MAX, u64::MAX), |it| it.0));
        self.count = 0;
        outcome
    }

    /// Warns of criteria that matched nothing.
    pub(crate) fn warn_of_misses<S: Source>(&mut self, events: &Events<S>) {
        self.filter.warn_of_misses(events);
    }

    /// Whether the filters admit an event, regardless of its time.
    fn admits(&mut self, event: &Event<'_>) -> bool {
        self.filter.admits(event)
            && self.activities.as_ref().is_none_or(|activities| activities.contains(event))
    }

    /// Whether an event is a sample of an unwanted thread of a wanted process.
    fn is_sample_of_other(&mut self, event: &Event<'_>) -> bool {
        sets::THREAD_SAMPLES.contains(event.metadata())
            && self.activities.is_none()
            && !self.is_limited()
            && self.of_any_thread.as_mut().is_some_and(|filter| filter.admits(event))
    }

    fn is_in_time(&self, time: RelativeTime) -> bool {
        self.from <= time && time < self.to
    }

    /// Whether a time is near the slice but not in it.
    fn is_near(&self, time: RelativeTime) -> bool {
        let distance = if time < self.from { self.from.abs_diff(time) } else { time.abs_diff(self.to) };
        distance <= MARGIN
    }

    const fn is_limited(&self) -> bool {
        self.first.is_some() || self.last.is_some()
    }

    fn use_of(&mut self, event: &Event<'_>) -> Use {
        let index = event.metadata_index();
        if let Some(Some(known)) = self.uses.get(index) {
            return *known;
        }
        let found = Use::of(event.metadata());
        if self.uses.len() <= index {
            self.uses.resize(index + 1, None);
        }
        self.uses[index] = Some(found);
        found
    }

    /// Whether the event is among those of `--head` and `--tail`.
    fn is_within_limits(&mut self, time: RelativeTime) -> bool {
        let position = (time, self.count);
        self.count += 1;
        self.first.is_none_or(|first| first <= position) && self.last.is_none_or(|last| position <= last)
    }
}

/// Reads a recording to find the events of activities and requests.
pub(crate) fn find_activities(file: &Path, mut finder: ActivityFinder) -> Result<ActivityEvents, Failure> {
    let (events, origin) = Recording::open(file)?.into_parts();
    nettrace_export::report::read(events, |event| finder.add(event))
        .map_err(|error| origin.failed(&error))?;
    Ok(finder.finish())
}

/// Whether events of a kind name code, types, processes or threads of other events.
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
        } else {
            Self::None
        }
    }
}

/// Whether events of the kind name others, regardless of their time.
fn is_name(metadata: &Metadata) -> bool {
    Use::of(metadata) == Use::Names
}

/// The same, but only for lists at the end of a recording (rundown) and for recordings of whole machines.
fn is_listed_name(metadata: &Metadata) -> bool {
    is_name(metadata) && !matches!(Provider::of(metadata), Some(Provider::Runtime))
}

impl Chooser for Slice {
    fn event(&mut self, event: &Event<'_>) -> Choice {
        let time = event.relative_time();
        let is_in_time = self.is_in_time(time);
        self.is_mark = false;
        if is_in_time && self.admits(event) && self.is_within_limits(time) {
            return Choice::Keep;
        }
        self.is_mark =
            (is_in_time || self.is_near(time)) && !self.admits(event) && self.is_sample_of_other(event);
        if self.is_mark {
            return if is_in_time { Choice::Keep } else { Choice::KeepBeyond };
        }
        let kind = if self.filter.admits_process(event) { self.use_of(event) } else { Use::None };
        match kind {
            Use::Names if is_in_time => Choice::Keep,
            _ if is_in_time => Choice::Remove,
            Use::Names => Choice::KeepBeyond,
            Use::Lasts if self.is_near(time) && self.admits(event) => Choice::KeepBeyond,
            _ => Choice::Skip,
        }
    }

    fn keeps_point(&mut self, point: &PassedPoint<'_>, info: &TraceInfo) -> bool {
        point.time().is_some_and(|time| self.is_in_time(info.relative_time(time)))
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
        let times = at(self.from, -margin)..=at(self.to, margin);
        events.skip_blocks_outside(times, if self.lists_only { is_listed_name } else { is_name });
        true
    }

    fn keeps_all(&self) -> bool {
        (self.from, self.to) == (RelativeTime::MIN, RelativeTime::MAX)
            && self.filter.admits_all()
            && self.activities.is_none()
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
