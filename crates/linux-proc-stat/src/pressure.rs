//! `/proc/pressure` and the files `cpu.pressure`, `memory.pressure` and `io.pressure` of control groups.

/// The time that tasks have been stalled for want of a resource, since the system or the group began.
///
/// ```
/// use linux_proc_stat::Pressure;
///
/// let text = b"some avg10=0.00 avg60=0.12 avg300=0.04 total=2500\nfull avg10=0.00 total=40\n";
/// let pressure = Pressure::parse(text).ok_or("no pressure")?;
/// assert_eq!((pressure.some_ns, pressure.full_ns), (2_500_000, Some(40_000)));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Pressure {
    /// Nanoseconds, to 1 µs, in which at least one task was stalled.
    pub some_ns: u64,
    /// Nanoseconds, to 1 µs, in which all tasks were stalled at once. For the processors of a whole system it
    /// is 0, or missing.
    pub full_ns: Option<u64>,
}

impl Pressure {
    /// Parses the file; `None` without a line `some`.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let total = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            let micros = line.split(' ').find_map(|field| field.strip_prefix("total="))?;
            micros.parse::<u64>().ok()?.checked_mul(1000)
        };
        Some(Self { some_ns: total("some")?, full_ns: total("full") })
    }
}

/// The pressure on the resources of a control group or of a system. `None` where the kernel does not count
/// it: before Linux 4.20, without `CONFIG_PSI`, with `psi=0`, and in control groups of version 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ResourcePressure {
    /// Tasks were runnable and had no processor.
    pub cpu: Option<Pressure>,
    /// Tasks waited for memory: reclaim, swapping in, or reading back pages that had been evicted.
    pub memory: Option<Pressure>,
    /// Tasks waited for block devices.
    pub io: Option<Pressure>,
}

impl ResourcePressure {
    /// Reads the three files with a function from `cpu`, `memory` and `io` to their content.
    pub(crate) fn read(mut file: impl FnMut(&str) -> Option<Vec<u8>>) -> Self {
        let mut pressure = |name| Pressure::parse(&file(name)?);
        Self { cpu: pressure("cpu"), memory: pressure("memory"), io: pressure("io") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_missing_or_broken_are_left_out() {
        let parse = |text: &str| {
            Pressure::parse(text.as_bytes()).map(|pressure| (pressure.some_ns, pressure.full_ns))
        };
        assert_eq!(parse("some avg10=1.00 avg60=0.00 avg300=0.00 total=7\n"), Some((7000, None)));
        assert_eq!(parse("full total=1\nsome total=2"), Some((2000, Some(1000))));
        for text in
            ["", "some", "some total=x", "someone total=3", "full total=1", "some total=18446744073709551615"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(Pressure::parse(b"some total=1 \xff"), None);
    }
}
