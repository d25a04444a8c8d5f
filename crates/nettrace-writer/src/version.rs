//! Versions that are written.

use nettrace::{Format, TraceInfo};

/// A version of the format.
///
/// ```
/// use nettrace::{Ticks, TraceInfo};
/// use nettrace_writer::Version;
///
/// let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), Vec::new());
/// assert_eq!(Version::of(&info), Version::V6);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Version {
    /// The version of .NET Core 3.0 and later, with the metadata tags of .NET 5 where an event needs them.
    V4,
    /// The version of .NET 10's user_events recordings and of one-collect: threads with processes and names,
    /// labels.
    V6,
}

impl Version {
    /// Returns the version that says all that a recording of this kind has: V6 for V6, V4 for all others.
    pub fn of(info: &TraceInfo) -> Self {
        if is_v6(info) { Self::V6 } else { Self::V4 }
    }
}

/// Returns true if a recording has V6's blocks. The version in another recording's header may be damaged, but
/// only V6 has the process as a pair of key and value.
pub(crate) fn is_v6(info: &TraceInfo) -> bool {
    let is_by_pair = info.process_id.is_none() || !info.key_values.is_empty();
    info.format == Format::Nettrace && info.version >= 6 && is_by_pair
}
