//! The uses of each kind of event.

use clr_activity::has_async_buffer;
use clr_events::ids::event_pipe;
use clr_events::{ClrEvent, KernelSampleKind, NativeAllocationKind, Provider, sets};
use nettrace::{Event, Metadata, MetadataMap};

use super::process::{MACHINE_PROCESS, MACHINE_PROVIDER};
use crate::profile::causality::states_context;
use crate::profile::metric::Metric;
#[cfg(feature = "report")]
use crate::profile::metrics::call::begins_call;
use crate::profile::options::{Options, Order};

/// The uses of a kind of event, as bits, and the provider that decodes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventInterest {
    uses: u16,
    /// `None` where nothing is decoded, or by the event's own metadata.
    provider: Option<Provider>,
    /// The kind of the kernel's samples that count.
    kernel_sample: Option<KernelSampleKind>,
}

/// A sample of the metric, or a part of one.
const WEIGHED: u16 = 1;
/// Code that is loaded or unloaded, or an IL map of it.
const CODE: u16 = 1 << 1;
/// The name or the command line of a process.
const PROCESS: u16 = 1 << 2;
/// A step of a task or a request.
const CONTEXT: u16 = 1 << 4;
/// The role of a thread.
const THREAD_ROLE: u16 = 1 << 5;
/// A method that is loaded or unloaded while the session lasts.
const METHOD: u16 = 1 << 6;
/// The beginning or the end of a pause that is cut out of thread time.
const GC_PAUSE: u16 = 1 << 7;
/// A buffer of the asynchronous profiler.
const ASYNC_BUFFER: u16 = 1 << 8;

impl EventInterest {
    const NONE: Self = Self { uses: 0, provider: None, kernel_sample: None };

    /// The uses but that of code: where it is the only one, nothing is decoded.
    const fn without_code(self) -> Self {
        match self.uses & !CODE {
            0 => Self::NONE,
            uses => Self { uses, ..self },
        }
    }

    /// Classifies a kind of event.
    #[inline(never)]
    pub(super) fn new(metadata: &Metadata, options: &Options) -> Self {
        let uses = [
            (options.metric.is_some_and(|metric| is_weighed(metric, metadata, options)), WEIGHED),
            (sets::CODE.contains(metadata) || options.lines && sets::IL_MAPS.contains(metadata), CODE),
            (sets::THREAD_ROLES.contains(metadata), THREAD_ROLE),
            (options.order == Order::Time && sets::METHODS.contains(metadata), METHOD),
            (sets::PROCESSES.contains(metadata), PROCESS),
            (options.cuts_gc_pauses() && sets::PAUSES.contains(metadata), GC_PAUSE),
        ];
        let decoded = uses.iter().filter(|(is_used, _)| *is_used).fold(0, |uses, (_, bit)| uses | bit);
        let provider = Provider::of(metadata).filter(|_| decoded != 0);
        let kernel_sample = KernelSampleKind::of(metadata).filter(|kind| {
            matches!(
                (kind, options.metric),
                (KernelSampleKind::OnCpu, Some(Metric::Cpu | Metric::Wall))
                    | (KernelSampleKind::OffCpu, Some(Metric::OffCpu | Metric::Wall))
            )
        });
        let id = metadata.event_id();
        let plain = match metadata.provider() {
            _ if kernel_sample.is_some() => WEIGHED,
            _ if options.collects_async_callers() && has_async_buffer(metadata) => ASYNC_BUFFER,
            event_pipe::PROVIDER if id == event_pipe::PROCESS_INFO => PROCESS,
            MACHINE_PROVIDER if id == MACHINE_PROCESS => PROCESS,
            _ => 0,
        };
        let context = if states_context(metadata, options.grouping) { CONTEXT } else { 0 };
        Self { uses: decoded | plain | context, provider, kernel_sample }
    }

    /// Decodes an event of this kind, once for all its uses; `None` if it is without a view, cut, or not used
    /// decoded.
    #[inline]
    pub(super) fn decode<'a>(self, event: &Event<'a>) -> Option<ClrEvent<'a>> {
        let decode = |provider| {
            let (id, version) = (event.id(), event.version());
            ClrEvent::decode(provider, id, version, event.payload(), event.pointer_size()).ok().flatten()
        };
        match self.provider? {
            // Most events of most profiles: a constant, so that the compiler sees which view it has.
            Provider::SampleProfiler => decode(Provider::SampleProfiler),
            provider => decode(provider),
        }
    }

    const fn has(self, bit: u16) -> bool {
        self.uses & bit != 0
    }

    /// Returns true if there is a use at all.
    pub(super) const fn is_any(self) -> bool {
        self.uses != 0
    }

    pub(super) const fn is_weighed(self) -> bool {
        self.has(WEIGHED)
    }

    pub(super) const fn kernel_sample(self) -> Option<KernelSampleKind> {
        self.kernel_sample
    }

    pub(super) const fn is_context(self) -> bool {
        self.has(CONTEXT)
    }

    pub(super) const fn is_process(self) -> bool {
        self.has(PROCESS)
    }

    pub(super) const fn is_code(self) -> bool {
        self.has(CODE)
    }

    pub(super) const fn is_method(self) -> bool {
        self.has(METHOD)
    }

    pub(super) const fn is_gc_pause(self) -> bool {
        self.has(GC_PAUSE)
    }

    pub(super) const fn is_async_buffer(self) -> bool {
        self.has(ASYNC_BUFFER)
    }

    pub(super) const fn is_thread_role(self) -> bool {
        self.has(THREAD_ROLE)
    }
}

/// Returns whether events of this kind are samples of the metric.
fn is_weighed(metric: Metric, metadata: &Metadata, options: &Options) -> bool {
    let set = match metric {
        // A thread that waits for a lock does not work.
        Metric::Wall | Metric::Cpu if !options.idle && sets::CONTENTION.contains(metadata) => return true,
        Metric::Wall | Metric::Cpu => &sets::THREAD_SAMPLES,
        Metric::Alloc => &sets::ALLOCATIONS,
        Metric::LiveAlloc => &sets::LIVE_ALLOCATIONS,
        Metric::Contention => &sets::CONTENTION,
        Metric::Exception => &sets::EXCEPTIONS,
        Metric::Wait => &sets::WAITS,
        Metric::Gc => &sets::PAUSES,
        #[cfg(feature = "report")]
        Metric::Call => return begins_call(metadata),
        Metric::NativeAlloc => return NativeAllocationKind::of(metadata).is_some(),
        Metric::OffCpu | Metric::Other => return false,
    };
    set.contains(metadata)
}

/// The interest in each kind of event.
#[derive(Debug, Default)]
pub(super) struct EventInterests {
    map: MetadataMap<EventInterest>,
    /// True if events about code are ignored.
    are_without_code: bool,
}

impl EventInterests {
    /// Ignores events about code, which another builder processes.
    pub(super) const fn leave_out_code(&mut self) {
        self.are_without_code = true;
    }

    /// Returns whether events of that kind have a use, or are not classified yet.
    #[inline]
    pub(super) fn is_used(&self, index: usize) -> bool {
        self.map.get(index).is_none_or(|interest| interest.is_any())
    }

    #[inline]
    pub(super) fn of(&mut self, event: &Event<'_>, options: &Options) -> EventInterest {
        let Self { map, are_without_code } = self;
        map.get_or_insert_with(event.metadata_index(), || {
            let interest = EventInterest::new(event.metadata(), options);
            if *are_without_code { interest.without_code() } else { interest }
        })
    }
}
