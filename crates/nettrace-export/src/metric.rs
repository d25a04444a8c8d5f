//! The metrics of a profile.

use crate::measure::{Measure, Unit};

/// The metric of a profile: the kind of event that counts, and its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Time of threads, whatever they did: from a thread's sample to its next. [Pseudo-frames](crate::pseudo_frames) at the leaf tell managed
    /// code from waiting and native code.
    Wall,
    /// Time of threads in managed code; in recordings of a whole machine (V6) samples of processors.
    Cpu,
    /// Bytes allocated, by what the allocator said of every so many bytes, or of sampled objects.
    Alloc,
    /// Time in which threads waited for a lock that another one had.
    Contention,
    /// Exceptions thrown.
    Exception,
    /// Time in which threads waited for handles, events and the like (.NET 9).
    Wait,
    /// Time in which the collector had stopped all threads, on the thread that stopped them.
    Gc,
}

impl Metric {
    /// Returns the name and unit of the weights.
    pub const fn measure(self) -> Measure {
        let (name, sample, unit) = match self {
            Self::Wall => ("thread time", "samples", Unit::Nanoseconds),
            Self::Cpu => ("managed code time", "samples", Unit::Nanoseconds),
            Self::Alloc => ("allocated bytes", "allocations", Unit::Bytes),
            Self::Contention => ("lock waits", "waits", Unit::Nanoseconds),
            Self::Exception => ("exceptions", "exceptions", Unit::Count),
            Self::Wait => ("waits", "waits", Unit::Nanoseconds),
            Self::Gc => ("GC pauses", "pauses", Unit::Nanoseconds),
        };
        Measure { name, sample, unit }
    }
}

/// Samples of processors, which say nothing of time.
pub(crate) const PROCESSOR_SAMPLES: Measure =
    Measure { name: "CPU samples", sample: "samples", unit: Unit::Count };
