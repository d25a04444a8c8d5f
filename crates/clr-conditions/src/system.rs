//! Values that the system has of a process and its container.

use std::fmt;

/// A value of the system that a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemValue {
    /// Processor time of the process, in percent of a core.
    ProcessCpu,
    /// Resident memory of the process, in bytes.
    ProcessMemory,
    /// Processor time of the container, in percent of its limit.
    ContainerCpu,
    /// Memory of the container, in bytes.
    ContainerMemory,
    /// Memory of the container, in percent of its limit.
    ContainerMemoryShare,
    /// Resident memory of native code: the heap of the C library, and memory without a known owner, in bytes.
    NativeMemory,
}

/// The values of the system at one time. Unknown values, such as shares of a limit without a limit, are
/// `None`.
///
/// ```
/// use clr_conditions::{SystemUsage, SystemValue};
///
/// // A container without a limit has no share of it.
/// let usage = SystemUsage { container_memory_bytes: Some(1 << 30), ..SystemUsage::default() };
/// assert_eq!(usage.value(SystemValue::ContainerMemory), Some(1_073_741_824.0));
/// assert_eq!(usage.value(SystemValue::ContainerMemoryShare), None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "made by those who measure")]
pub struct SystemUsage {
    /// Processor time of the process since the last reading, in percent of a core.
    pub process_cpu_percent: Option<f64>,
    /// Resident memory of the process.
    pub process_memory_bytes: Option<u64>,
    /// Processor time of the container since the last reading, in percent of its limit.
    pub container_cpu_percent: Option<f64>,
    /// Memory of the container.
    pub container_memory_bytes: Option<u64>,
    /// Memory of the container, in percent of its limit.
    pub container_memory_percent: Option<f64>,
    /// Resident memory of native code: the heap of the C library, and memory without a known owner.
    pub native_memory_bytes: Option<u64>,
}

impl SystemUsage {
    /// Returns a value, if it is known.
    pub fn value(&self, value: SystemValue) -> Option<f64> {
        #[allow(clippy::cast_precision_loss, reason = "no memory has 2^53 bytes")]
        let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
        match value {
            SystemValue::ProcessCpu => self.process_cpu_percent,
            SystemValue::ProcessMemory => bytes(self.process_memory_bytes),
            SystemValue::ContainerCpu => self.container_cpu_percent,
            SystemValue::ContainerMemory => bytes(self.container_memory_bytes),
            SystemValue::ContainerMemoryShare => self.container_memory_percent,
            SystemValue::NativeMemory => bytes(self.native_memory_bytes),
        }
    }
}

impl fmt::Display for SystemValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProcessCpu => "process cpu",
            Self::ProcessMemory => "process memory",
            Self::ContainerCpu => "container cpu",
            Self::ContainerMemory => "container memory",
            Self::ContainerMemoryShare => "container memory in percent",
            Self::NativeMemory => "native memory",
        })
    }
}

impl SystemValue {
    /// Returns the text of a match.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::ProcessCpu | Self::ContainerCpu => format!("{self} = {value:.1}%"),
            Self::ContainerMemoryShare => format!("container memory = {value:.1}% of its limit"),
            Self::ProcessMemory | Self::ContainerMemory | Self::NativeMemory => {
                format!("{self} = {:.1} MB", value / 1e6)
            }
        }
    }
}

/// The units of memory, and the number of bytes in each.
const UNITS: [(&str, f64); 8] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("B", 1.0),
];

/// The subject of a condition over a value of the system, by its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemSubject {
    ProcessCpu,
    ProcessMemory,
    ContainerCpu,
    ContainerMemory,
    NativeMemory,
}

impl SystemSubject {
    const ALL: [(&'static str, &'static str, Self); 5] = [
        ("process", "cpu", Self::ProcessCpu),
        ("process", "memory", Self::ProcessMemory),
        ("container", "cpu", Self::ContainerCpu),
        ("container", "memory", Self::ContainerMemory),
        ("native", "memory", Self::NativeMemory),
    ];

    /// Returns the subject that two words name, in any case.
    pub(crate) fn of(first: &str, second: &str) -> Option<Self> {
        let is_named = |(one, other, _): &&(&str, &str, Self)| {
            first.eq_ignore_ascii_case(one) && second.eq_ignore_ascii_case(other)
        };
        Self::ALL.iter().find(is_named).map(|(.., subject)| *subject)
    }

    /// The expected bound, in words.
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::ContainerMemory => "an amount is expected: 80% of the limit, or 500MB",
            Self::ProcessMemory | Self::NativeMemory => "an amount is expected: 500MB, 2GiB",
            Self::ContainerCpu => "percents of the limit are expected: 90%",
            Self::ProcessCpu => "percents of a core are expected: 150%",
        }
    }

    /// Parses a bound: `80%`, or `1.5GB` for memory. Returns the value that it is for.
    pub(crate) fn parse_bound(self, text: &str) -> Option<(SystemValue, f64)> {
        let is_bound = |number: &f64| number.is_finite() && *number >= 0.0;
        let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok()).filter(is_bound);
        let bytes = || {
            let bytes = UNITS.iter().find_map(|(unit, factor)| {
                let at = text.len().checked_sub(unit.len())?;
                let (number, ending) = (text.get(..at)?, text.get(at..)?);
                let number: f64 = number.parse().ok().filter(|_| ending.eq_ignore_ascii_case(unit))?;
                Some(number * factor)
            });
            bytes.filter(is_bound)
        };
        Some(match (self, percent) {
            (Self::ProcessCpu, _) => (SystemValue::ProcessCpu, percent?),
            (Self::ContainerCpu, _) => (SystemValue::ContainerCpu, percent?),
            (Self::ContainerMemory, Some(percent)) => (SystemValue::ContainerMemoryShare, percent),
            (Self::ContainerMemory, None) => (SystemValue::ContainerMemory, bytes()?),
            (Self::ProcessMemory, _) => (SystemValue::ProcessMemory, bytes()?),
            (Self::NativeMemory, _) => (SystemValue::NativeMemory, bytes()?),
        })
    }
}
