//! Things that a version cannot express.

/// Counts of the things in a recording that the written version cannot express.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace::SliceReader;
/// use nettrace_writer::{Error, Version, transcode};
///
/// let nowhere = |_: &[u8]| -> Result<(), Error> { Ok(()) };
/// let (_, transcoder) = transcode(SliceReader::new(&recording)?, Version::V4, nowhere)?;
/// // V4 lacks names of threads, and a type for the text.
/// let omissions = transcoder.omissions();
/// assert!(omissions.thread_descriptions > 0 && omissions.field_lists > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Omissions {
    /// Field lists of kinds of events; their events keep their payloads as bytes.
    pub field_lists: u64,
    /// Field lists with 8-byte times. V6 has no type for these: they are described as 64-bit numbers.
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
    /// Returns true if nothing was omitted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
