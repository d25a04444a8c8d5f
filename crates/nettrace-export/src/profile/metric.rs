//! The metrics of a profile.

use nettrace::{Format, TraceInfo};

use crate::profile::measure::{Measure, Unit};

/// The metric of a profile: the kind of event that counts, and its unit.
///
/// ```
/// use nettrace_export::{Metric, Unit};
///
/// assert_eq!(Metric::Alloc.name(), "alloc");
/// assert_eq!((Metric::Alloc.measure().unit, Metric::Wall.measure().unit), (Unit::Bytes, Unit::Nanoseconds));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// Time of threads, whatever they did: from a thread's sample to its next, or by the kernel's samples
    /// the time on the processors and [off](Self::OffCpu) them.
    /// [Pseudo-frames](crate::pseudo_frames) at the leaf distinguish managed code from waiting and native
    /// code.
    Wall,
    /// Time of threads in managed code; in recordings with the kernel's samples (V6) the
    /// [time on the processors](Measure::CPU_TIME) by these.
    Cpu,
    /// Time in which threads were off the processors, by the kernel's samples: waiting, or ready to run.
    OffCpu,
    /// Allocated bytes, from the allocator's periodic events, or from the events of sampled objects.
    Alloc,
    /// Allocated bytes that are still in use: sampled objects that the last collection of their generation
    /// found alive. Needs the collector's events of surviving and moved objects (keyword
    /// `GCHeapSurvivalAndMovement`). [`Omissions::live`](crate::Omissions::live) has what is not known.
    LiveAlloc,
    /// Bytes of native memory that are still in use: what `malloc` and others have returned while probes were
    /// set, and what was not freed. [`Omissions::native`](crate::Omissions::native) has what is not known.
    NativeAlloc,
    /// Time in which threads waited for a lock that another one had.
    Contention,
    /// Exceptions thrown.
    Exception,
    /// Time in which threads waited for handles, events and the like (.NET 9).
    Wait,
    /// Calls to something outside the program that began: HTTP, databases, connections, names.
    #[cfg(feature = "report")]
    Call,
    /// Time in which the collector had stopped all threads, on the thread that stopped them.
    Gc,
    /// The metric of a profile that a program [builds itself](crate::StackProfileBuilder); recordings lack
    /// events of it.
    Other,
}

impl Metric {
    /// Returns the metric for views that show CPU time and waits apart, CPU time first: [`Wall`](Self::Wall),
    /// with [states](clr_events::ThreadState) that distinguish them. In recordings of a whole machine, every
    /// idle program waits, so only running time counts: [`Cpu`](Self::Cpu). Merged recordings of processes
    /// list these in the header: `ProcessIds`.
    ///
    /// Views of one kind of time use [`Options::metric`](crate::Options::metric) without a value instead,
    /// which is CPU time wherever a recording has it.
    pub fn of_work_and_waits(info: Option<&TraceInfo>) -> Self {
        let is_list = |info: &TraceInfo| info.key_values.iter().any(|(key, _)| key == "ProcessIds");
        // Versions 1 and 2 of netperf do not say which process they are of.
        let is_machine = info.is_some_and(|info| {
            info.format == Format::Nettrace && info.process_id.is_none() && !is_list(info)
        });
        if is_machine { Self::Cpu } else { Self::Wall }
    }

    /// Returns true if the order of events decides: what is freed was allocated before.
    pub(crate) const fn needs_time_order(self) -> bool {
        matches!(self, Self::LiveAlloc | Self::NativeAlloc)
    }

    /// Returns its name, such as `wall`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::OffCpu => "off-cpu",
            Self::Alloc => "alloc",
            Self::LiveAlloc => "live-alloc",
            Self::NativeAlloc => "native-alloc",
            Self::Contention => "contention",
            Self::Exception => "exception",
            Self::Wait => "wait",
            #[cfg(feature = "report")]
            Self::Call => "call",
            Self::Gc => "gc",
            Self::Other => "other",
        }
    }

    /// Returns the name and unit of the weights.
    pub const fn measure(self) -> Measure {
        let (name, sample, unit) = match self {
            Self::Wall => ("thread time", "samples", Unit::Nanoseconds),
            Self::Cpu => ("managed code time", "samples", Unit::Nanoseconds),
            Self::OffCpu => ("off-CPU time", "switches", Unit::Nanoseconds),
            Self::Alloc => ("allocated bytes", "allocations", Unit::Bytes),
            Self::LiveAlloc => ("live bytes", "live allocations", Unit::Bytes),
            Self::NativeAlloc => ("native bytes in use", "native allocations", Unit::Bytes),
            Self::Contention => ("lock waits", "waits", Unit::Nanoseconds),
            Self::Exception => ("exceptions", "exceptions", Unit::Count),
            Self::Wait => ("waits", "waits", Unit::Nanoseconds),
            #[cfg(feature = "report")]
            Self::Call => ("calls", "calls", Unit::Count),
            Self::Gc => ("GC pauses", "pauses", Unit::Nanoseconds),
            Self::Other => ("weight", "samples", Unit::Count),
        };
        Measure { name, sample, unit }
    }
}
