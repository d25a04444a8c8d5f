//! The use of each kind of event.

use clr_events::{Provider, ids, sets};
use nettrace::{Event, Metadata};

use crate::builder::CausalGrouping;
use crate::builder::context::tells_of_context;
use crate::metric::Metric;

/// The uses of a kind of event, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventInterest(u8);

impl EventInterest {
    /// Weighed, as what [`Metric`] says.
    const WEIGHED: Self = Self(1);
    /// May tell of code and threads.
    pub(super) const CODE: Self = Self(2);
    /// Tells of processes.
    pub(super) const PROCESS: Self = Self(4);
    /// A sample of what ran on a processor.
    pub(super) const PROCESSOR_SAMPLE: Self = Self(8);
    /// Tells what its thread works on.
    pub(super) const CONTEXT: Self = Self(16);
    /// Good for nothing.
    const USELESS: Self = Self(0);
    /// Not looked at yet.
    const UNKNOWN: Self = Self(0x80);

    #[inline]
    pub(super) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[inline]
    pub(super) const fn is_weighed(self) -> bool {
        self.contains(Self::WEIGHED)
    }

    #[inline]
    pub(super) const fn tells(self) -> bool {
        self.0 & (Self::CODE.0 | Self::PROCESS.0) != 0
    }

    fn new(metadata: &Metadata, metric: Metric, grouping: CausalGrouping) -> Self {
        let context = if tells_of_context(metadata, grouping) { Self::CONTEXT.0 } else { 0 };
        Self(Self::alone(metadata, metric).0 | context)
    }

    fn alone(metadata: &Metadata, metric: Metric) -> Self {
        let id = metadata.event_id();
        match Provider::of(metadata) {
            Some(Provider::SampleProfiler)
                if id == ids::sample_profiler::THREAD_SAMPLE
                    && matches!(metric, Metric::Wall | Metric::Cpu) =>
            {
                Self::WEIGHED
            }
            Some(Provider::Runtime) if is_weighed(metric, metadata) => Self(Self::WEIGHED.0 | Self::CODE.0),
            Some(Provider::Runtime | Provider::Rundown | Provider::Private) => Self::CODE,
            Some(Provider::UniversalSystem) => Self(Self::CODE.0 | Self::PROCESS.0),
            None => match metadata.provider() {
                "Universal.Events" if metadata.name() == "cpu" && metric == Metric::Cpu => {
                    Self(Self::WEIGHED.0 | Self::PROCESSOR_SAMPLE.0)
                }
                ids::event_pipe::PROVIDER if id == ids::event_pipe::PROCESS_INFO => Self::PROCESS,
                _ => Self::USELESS,
            },
            Some(_) => Self::USELESS,
        }
    }
}

/// Whether an event of the runtime is weighed.
fn is_weighed(metric: Metric, metadata: &Metadata) -> bool {
    let set = match metric {
        Metric::Wall | Metric::Cpu => return false,
        Metric::Alloc => &sets::ALLOCATIONS,
        Metric::Contention => &sets::CONTENTION,
        Metric::Exception => &sets::EXCEPTIONS,
        Metric::Wait => &sets::WAITS,
        Metric::Gc => &sets::PAUSES,
    };
    set.contains(metadata)
}

/// The class of each kind of event, by its place in the recording's metadata.
#[derive(Debug, Default)]
pub(super) struct EventInterests(Vec<EventInterest>);

impl EventInterests {
    /// Whether events of that kind are good for anything, or not known yet.
    #[inline]
    pub(super) fn is_of_use(&self, index: usize) -> bool {
        self.0.get(index) != Some(&EventInterest::USELESS)
    }

    #[inline]
    pub(super) fn of(
        &mut self,
        event: &Event<'_>,
        metric: Metric,
        grouping: CausalGrouping,
    ) -> EventInterest {
        match self.0.get(event.metadata_index()) {
            Some(interest) if *interest != EventInterest::UNKNOWN => *interest,
            _ => self.learn(event, metric, grouping),
        }
    }

    #[inline(never)]
    fn learn(&mut self, event: &Event<'_>, metric: Metric, grouping: CausalGrouping) -> EventInterest {
        let index = event.metadata_index();
        if self.0.len() <= index {
            // As many as the recording's own table has.
            self.0.resize(index.saturating_add(1), EventInterest::UNKNOWN);
        }
        let interest = EventInterest::new(event.metadata(), metric, grouping);
        if let Some(place) = self.0.get_mut(index) {
            *place = interest;
        }
        interest
    }
}
