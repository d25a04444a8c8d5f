//! Samples of the kernel: of threads that run on a processor, and of threads that left it.

use nettrace::{Event, Metadata, Value};

/// The kind of a sample of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a thread ran, or did not")]
pub enum KernelSampleKind {
    /// A thread ran.
    OnCpu,
    /// A thread returned to a processor.
    OffCpu,
}

/// A sample of the kernel.
///
/// Profiles of a part of a recording have the samples of running threads that were taken in it, and the time
/// in it of an interval off the processors, which may belong to several parts.
///
/// ```no_run
/// use clr_events::{KernelSample, KernelSampleKind};
///
/// let (mut on_cpu, mut off_cpu) = (0, 0);
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
/// while let Some(event) = events.next()? {
///     match KernelSampleKind::of(event.metadata()).map(|kind| kind.read(&event)) {
///         Some(KernelSample::OnCpu(nanoseconds)) => on_cpu += nanoseconds,
///         Some(KernelSample::OffCpu { nanoseconds, .. }) => off_cpu += nanoseconds,
///         None => {}
///     }
/// }
/// println!("{on_cpu} ns on processors, {off_cpu} ns off them");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// `UniversalProviders.md` of microsoft/perfview; the second field of `cswitch` is linux-sampler's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a thread ran, or did not")]
pub enum KernelSample {
    /// The thread ran: the nanoseconds that the sample represents.
    OnCpu(u64),
    /// The thread was off the processors until the time of the event.
    OffCpu {
        /// The length of the interval.
        nanoseconds: u64,
        /// True if it could have run all the time: another thread took its processor.
        preempted: bool,
    },
}

/// Nanoseconds of a millisecond.
const MILLISECOND: u64 = 1_000_000;

impl KernelSample {
    /// The key of linux-sampler's header, which describes how samples were taken, and missing permissions.
    pub const SAMPLING_KEY: &str = "KernelSampling";
}

impl KernelSampleKind {
    /// The kind of the samples that events of a kind state; `None` for all other events.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        match (metadata.provider(), metadata.name()) {
            ("Universal.Events", "cpu") => Some(Self::OnCpu),
            ("Universal.Events", "cswitch") => Some(Self::OffCpu),
            _ => None,
        }
    }

    /// Returns the sample of an event of this kind. A field that is missing or cannot be read counts as one
    /// millisecond on a processor, and as no time off them.
    ///
    /// Values of running threads are whole milliseconds. Where samples are [more
    /// frequent](Event::sampling_rate), only some of them have one, and each counts for the time between two.
    pub fn read(self, event: &Event<'_>) -> KernelSample {
        let mut numbers = event.fields().map_while(|field| match field {
            Ok((_, Value::U64(number))) => Some(number),
            _ => None,
        });
        let value = numbers.next();
        match self {
            Self::OnCpu => {
                // Milliseconds: the metric of PerfView.
                let milliseconds = value.unwrap_or(1);
                let is_finer = |rate: &u64| (1..MILLISECOND).contains(rate) && milliseconds <= 1;
                let rate = event.sampling_rate().filter(is_finer);
                KernelSample::OnCpu(rate.unwrap_or_else(|| milliseconds.saturating_mul(MILLISECOND)))
            }
            Self::OffCpu => KernelSample::OffCpu {
                nanoseconds: value.unwrap_or(0),
                preempted: numbers.next().is_some_and(|number| number != 0),
            },
        }
    }
}
