//! Parts of recordings: the events that are wanted, and those that the rest needs.

use std::collections::BinaryHeap;
use std::path::Path;
use std::time::Duration;

use clr_events::ids::{event_pipe, runtime};
use clr_events::{Provider, sets};
use nettrace::{Event, Metadata, PassedPoint, RelativeTime, TraceInfo};

use crate::exit::Failure;
use crate::inspect::filter::{Criteria, Filter};
use crate::inspect::recording::Recording;
use crate::inspect::rewrite::{Choice, Chooser};

/// The time around a part in which samples and waits are kept that may reach into it. The sampler takes a stack of each thread every
/// millisecond, or every ten where threads are many.
const MARGIN: Duration = Duration::from_secs(1);

/// A part of a recording.
#[derive(Debug)]
pub(crate) struct Slice {
    filter: Filter,
    from: RelativeTime,
    to: RelativeTime,
    /// The first and the last event of `--head` and `--tail`.
    first: Option<Position>,
    last: Option<Position>,
    drop_stacks: bool,
    /// The use of each kind of event, by the index of its metadata.
    uses: Vec<Option<Use>>,
    /// The number of events that the filters admit, so far.
    count: u64,
}

/// The place of an event in time order: its time, and its number in file order.
type Position = (RelativeTime, u64);

/// The use of a kind of event for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It names code, types, processes or threads: always kept.
    Names,
    /// It reaches from one time to another.
    Lasts,
    None,
}

impl Slice {
    /// The events of criteria, which may have a time.
    pub(crate) fn new(criteria: Criteria, drop_stacks: bool) -> Self {
        let from = criteria.from.unwrap_or(RelativeTime::MIN);
        let to = criteria.to.unwrap_or(RelativeTime::MAX);
        let filter = Filter::new(Criteria { from: None, to: None, ..criteria });
        Self { filter, from, to, first: None, last: None, drop_stacks, uses: Vec::new(), count: 0 }
    }

    /// Reads a recording for the first or the last events of the slice in time order.
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
            if !self.is_in_time(event.relative_time()) || !self.filter.admits(&event) {
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
    pub(crate) fn warn_of_misses(&self, metadata: &[Metadata]) {
        self.filter.warn_of_misses(metadata);
    }

    fn is_in_time(&self, time: RelativeTime) -> bool {
        self.from <= time && time < self.to
    }

    /// Whether a time is near the slice, but not in it.
    fn is_near(&self, time: RelativeTime) -> bool {
        let distance = if time < self.from { self.from.abs_diff(time) } else { time.abs_diff(self.to) };
        distance <= MARGIN
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

impl Chooser for Slice {
    fn event(&mut self, event: &Event<'_>) -> Choice {
        let time = event.relative_time();
        let kind = self.use_of(event);
        if self.is_in_time(time) {
            let is_admitted = self.filter.admits(event) && self.is_within_limits(time);
            return if is_admitted || kind == Use::Names { Choice::Keep } else { Choice::Remove };
        }
        match kind {
            Use::Names => Choice::KeepBeyond,
            Use::Lasts if self.is_near(time) && self.filter.admits(event) => Choice::KeepBeyond,
            _ => Choice::Skip,
        }
    }

    fn keeps_point(&mut self, point: &PassedPoint<'_>, info: &TraceInfo) -> bool {
        point.time().is_some_and(|time| self.is_in_time(info.relative_time(time)))
    }

    fn keeps_stacks(&self) -> bool {
        !self.drop_stacks
    }
}
