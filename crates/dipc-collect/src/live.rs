//! The activity of a process while it runs, interval by interval.

mod counter;
mod in_use;
mod interval;
mod sum;
mod threads;

use std::time::{Duration, Instant};

use dipc_client::{
    Keywords, LIVE_ALLOCATION_KEYWORDS, Level, LiveNames, LiveReader, ProviderConfig, RUNTIME_PROVIDER,
    Rundown, SessionConfig,
};
use nettrace::Event;
use nettrace_export::{CausalGrouping, NameForm};

use crate::stacks::sampler;
use crate::thread_times::LiveThreadTimes;

pub use counter::Counter;
pub use in_use::{InUse, TypeInUse};
pub use interval::{Interval, Omissions};
pub use sum::{ExceptionSum, IntervalSum, TypeSum};
pub use threads::ThreadRow;

use interval::IntervalBuilder;

/// Maximum time that the first interval waits for the names of methods.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The settings of intervals.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct IntervalSettings {
    length: Duration,
    names: NameForm,
    grouping: CausalGrouping,
    by_kernel: bool,
    has_allocations: bool,
    follows_objects: bool,
}

impl IntervalSettings {
    /// Creates settings of intervals of this length, with samples of the runtime, and without allocations.
    pub fn new(length: Duration) -> Self {
        Self {
            length,
            names: NameForm::default(),
            grouping: CausalGrouping::default(),
            by_kernel: false,
            has_allocations: false,
            follows_objects: false,
        }
    }

    /// Sets the names of methods.
    #[must_use]
    pub const fn with_names(self, names: NameForm) -> Self {
        Self { names, ..self }
    }

    /// Sets the grouping of stacks by their causes.
    #[must_use]
    pub const fn with_grouping(self, grouping: CausalGrouping) -> Self {
        Self { grouping, ..self }
    }

    /// Sets whether the kernel samples the process instead of the runtime: then times are processor time.
    #[must_use]
    pub const fn with_samples_of_kernel(self, by_kernel: bool) -> Self {
        Self { by_kernel, ..self }
    }

    /// Sets whether the runtime reports allocations: one event for about every 100 KB.
    #[must_use]
    pub const fn with_allocations(self, has_allocations: bool) -> Self {
        Self { has_allocations, ..self }
    }

    /// Sets whether sampled allocations are followed through collections, which take longer: each reports all
    /// that survives it. Allocations are reported, too.
    #[must_use]
    pub const fn with_objects_in_use(self, follows_objects: bool) -> Self {
        Self { follows_objects, has_allocations: self.has_allocations || follows_objects, ..self }
    }

    /// Returns the configuration of a session with the events of the intervals.
    pub fn session_config(&self) -> SessionConfig {
        let level = if self.has_allocations { Level::VERBOSE } else { Level::INFORMATIONAL };
        let of_objects = if self.follows_objects { LIVE_ALLOCATION_KEYWORDS } else { Keywords::NONE };
        let runtime = ProviderConfig {
            name: RUNTIME_PROVIDER.to_owned(),
            keywords: Keywords::GC | Keywords::LOADER | Keywords::METHODS | Keywords::EXCEPTION | of_objects,
            level,
            arguments: String::new(),
        };
        let counters = ProviderConfig {
            name: counter::PROVIDER.to_owned(),
            keywords: Keywords::NONE,
            level: Level::INFORMATIONAL,
            arguments: format!("EventCounterIntervalSec={}", self.length.as_secs_f64()),
        };
        let sampler = (!self.by_kernel).then(sampler);
        SessionConfig::new([runtime, counters].into_iter().chain(sampler)).with_rundown(Rundown::Off)
    }
}

/// Samples that the kernel takes of the process.
pub trait KernelSamples {
    /// Passes the samples since the last call to `add`, and events about the code that they met.
    fn read(&mut self, add: &mut dyn FnMut(&Event<'_>));
}

/// No samples.
impl KernelSamples for () {
    fn read(&mut self, _: &mut dyn FnMut(&Event<'_>)) {}
}

/// The intervals of a session, which end as its events arrive.
#[derive(Debug)]
pub struct LiveIntervals<S> {
    builder: IntervalBuilder,
    /// The source of names of earlier methods, which also keeps the runtime reporting new ones.
    names: Option<LiveNames>,
    samples: Option<S>,
    waits_for_names: bool,
    begun: Instant,
}

impl<S: KernelSamples> LiveIntervals<S> {
    /// Creates the intervals of a session that has just begun. `names` are the names of its methods, which
    /// the first interval waits for, for 30 s at most. `account` is the kernel's account of its threads, and
    /// `samples` the kernel's samples, if the runtime does not sample itself.
    pub fn new(
        settings: &IntervalSettings,
        names: Option<LiveNames>,
        account: Option<LiveThreadTimes>,
        samples: Option<S>,
    ) -> Self {
        Self {
            builder: IntervalBuilder::new(settings, account),
            waits_for_names: names.is_some(),
            names,
            samples,
            begun: Instant::now(),
        }
    }

    /// Counts bytes that have arrived. Beyond 64 MiB in an interval, further samples are left out.
    pub fn receive(&mut self, bytes: usize) {
        self.builder.add_bytes(bytes);
    }

    /// Adds the events that are ready, and passes the intervals that have ended to `take`. With `is_end`, no
    /// more events follow.
    pub fn read(&mut self, reader: &mut LiveReader, is_end: bool, mut take: impl FnMut(Interval)) {
        let Self { builder, names, samples, waits_for_names, begun } = self;
        if let Some(names) = names {
            let is_whole = names.read(|event| builder.add_code(event));
            *waits_for_names &= !is_whole && begun.elapsed() < MAX_WAIT;
        }
        if let Some(samples) = samples {
            samples.read(&mut |event| builder.add_sample(event));
        }
        if let Some(info) = reader.info() {
            builder.set_info(info);
        }
        let mut ended = Vec::new();
        while let Some(event) = reader.next() {
            if !*waits_for_names && builder.is_over(&event) {
                // The event borrows the reader, so the lost events are counted below.
                ended.push(builder.take(false));
            }
            builder.add(&event);
        }
        if !*waits_for_names && builder.is_overdue() {
            ended.push(builder.take(false));
        }
        if is_end && builder.has_events() {
            ended.push(builder.take(true));
        }
        let lost = reader.events().loss().total();
        for mut interval in ended {
            if interval.lacks_names()
                && let Some(names) = names
            {
                names.request_again();
            }
            interval.omissions.lost = lost;
            take(interval);
        }
    }
}
