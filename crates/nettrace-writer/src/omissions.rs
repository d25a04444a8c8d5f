//! Things that a version cannot express.

/// Counts of the things in a recording that the written version cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Omissions {
    /// Field lists of kinds of events; their events keep their payloads as bytes.
    pub field_lists: u64,
    /// Field lists with times of 8 bytes, for which V6 has no type: they are described as numbers of 64 bits.
    pub dates: u64,
    /// Templates, descriptions, further pairs and provider GUIDs of kinds of events.
    pub descriptions: u64,
    /// Versions or levels of kinds of events: V6 has 8 bits for them.
    pub numbers: u64,
    /// Events with labels other than activities, opcode, keywords, level and version.
    pub labels: u64,
    /// Names, processes and further pairs of threads.
    pub thread_descriptions: u64,
    /// Key/value pairs of the recording's header.
    pub key_values: u64,
}

impl Omissions {
    /// Whether nothing was omitted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
