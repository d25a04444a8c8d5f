//! Samples of the kernel: of threads that run on a processor, and of threads that left it.

use nettrace::{Event, Metadata, Value};

/// The kind of a sample of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelSampleKind {
    /// A thread ran.
    OnCpu,
    /// A thread came back to a processor.
    OffCpu,
}

/// A sample of the kernel.
///
/// # Source
/// `UniversalProviders.md` of microsoft/perfview; the second field of `cswitch` is linux-sampler's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelSample {
    /// The thread ran, for so many nanoseconds as the sample stands for.
    OnCpu(u64),
    /// The thread was off the processors for so many nanoseconds, up to the time of the event.
    OffCpu {
        nanoseconds: u64,
        /// Whether it could have run all the time: another thread took its processor.
        preempted: bool,
    },
}

impl KernelSampleKind {
    /// The kind of the samples that an event states; `None` for all other events.
    pub(crate) fn of(metadata: &Metadata) -> Option<Self> {
        match (metadata.provider(), metadata.name()) {
            ("Universal.Events", "cpu") => Some(Self::OnCpu),
            ("Universal.Events", "cswitch") => Some(Self::OffCpu),
            _ => None,
        }
    }

    /// Returns the sample of an event of this kind.
    pub(crate) fn read(self, event: &Event<'_>) -> KernelSample {
        let mut numbers = event.fields().map_while(|field| match field {
            Ok((_, Value::U64(number))) => Some(number),
            _ => None,
        });
        let value = numbers.next();
        match self {
            // Milliseconds: the metric of PerfView.
            Self::OnCpu => KernelSample::OnCpu(value.unwrap_or(1).saturating_mul(1_000_000)),
            Self::OffCpu => KernelSample::OffCpu {
                nanoseconds: value.unwrap_or(0),
                preempted: numbers.next().is_some_and(|number| number != 0),
            },
        }
    }
}
