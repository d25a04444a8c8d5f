//! Names and units of weights.

/// The unit of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Nanoseconds: a sample lasts as long as it weighs.
    Nanoseconds,
    /// Bytes: a sample is a point in time.
    Bytes,
    /// A number of things: a sample is a point in time.
    Count,
}

impl Unit {
    /// Returns true if samples last as long as they weigh.
    pub const fn is_time(self) -> bool {
        matches!(self, Self::Nanoseconds)
    }

    /// The measure's name in formats that name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }

    /// The measure's symbol, in JSON: `ns`, `bytes` or `count`.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }
}

/// The name and unit of a profile's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Measure {
    /// The name of the weights, such as `thread time`.
    pub name: &'static str,
    /// The plural of one sample, such as `samples`.
    pub sample: &'static str,
    /// In what.
    pub unit: Unit,
}

impl Measure {
    /// Time on the processors, by the kernel's samples: each weighs the time since the one before it.
    pub const CPU_TIME: Self = Self { name: "CPU time", sample: "samples", unit: Unit::Nanoseconds };

    /// Time in which threads ran: their samples, as long as the kernel's account says.
    pub const WORKING_TIME: Self =
        Self { name: "CPU time by the kernel's account", sample: "samples", unit: Unit::Nanoseconds };

    /// The measure of a metric of one's own: the name of the weights, the plural of one sample, and the unit.
    pub const fn new(name: &'static str, sample: &'static str, unit: Unit) -> Self {
        Self { name, sample, unit }
    }
}
