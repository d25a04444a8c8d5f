//! The events of a recording that have the readings of its process.

use nettrace::{Event, Metadata};

use super::{MAX_TEXT, Readings};

/// Maximum number of parts of the readings of a process.
const MAX_PARTS: usize = 4096;

/// The readings in a recording, gathered from its events.
///
/// `dipc profile` adds them as events of the provider [`PROVIDER`](Self::PROVIDER), all with the time of the
/// recording's start. Their texts together are a JSON object:
///
/// | event | fields |
/// |---|---|
/// | 1, `Part` | u32 number of the part, from zero; u32 number of parts; text as UTF-16 |
///
/// A recording of several processes can have those of each of them: then they are not used.
///
/// ```
/// use clr_findings::RecordedReadings;
///
/// assert!(RecordedReadings::default().finish().is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct RecordedReadings {
    parts: Vec<Option<String>>,
    bytes: usize,
    fault: Option<Fault>,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Several,
    TooLarge,
    Damaged,
}

impl RecordedReadings {
    /// The provider of the events.
    pub const PROVIDER: &str = "Dipc-Readings";
    /// The event with a part of the text.
    pub const PART: u32 = 1;

    /// Returns true for the kind of events that have readings.
    pub fn needs(kind: &Metadata) -> bool {
        // A number is compared first: pages ask for each event.
        kind.event_id() == Self::PART && kind.provider() == Self::PROVIDER
    }

    /// Adds an event of the recording. Other events are passed over.
    pub fn add(&mut self, event: &Event<'_>) {
        if Self::needs(event.metadata()) {
            match part(event.payload()) {
                Some((number, count, text)) => self.add_part(number, count, text),
                None => self.fault = Some(Fault::Damaged),
            }
        }
    }

    pub(super) fn add_part(&mut self, number: usize, count: usize, text: String) {
        if self.parts.is_empty() && count <= MAX_PARTS {
            self.parts.resize(count, None);
        }
        self.bytes = self.bytes.saturating_add(text.len());
        let is_new = self.parts.get(number).map(Option::is_none);
        match (is_new, self.bytes) {
            (_, MAX_TEXT..) => self.fault = Some(Fault::TooLarge),
            (None, _) => self.fault = Some(Fault::Damaged),
            (Some(false), _) => self.fault = Some(Fault::Several),
            (Some(true), _) if self.parts.len() != count => self.fault = Some(Fault::Several),
            (Some(true), _) => {
                if let Some(part) = self.parts.get_mut(number) {
                    *part = Some(text);
                }
            }
        }
    }

    /// Returns the readings; `None` if the recording has none. If they cannot be used, they have the reason.
    pub fn finish(self) -> Option<Readings> {
        let reason = match self.fault {
            Some(Fault::Several) => "the recording is of several processes",
            Some(Fault::TooLarge) => "it takes too much of the recording",
            Some(Fault::Damaged) => "it is damaged in the recording",
            None if self.parts.is_empty() => return None,
            None => {
                let text: Option<Vec<_>> = self.parts.into_iter().collect();
                match text.map(|parts| Readings::from_text(&parts.concat())) {
                    Some(Some(readings)) => return Some(readings),
                    Some(None) => "it is redacted or damaged in the recording, or of another version of dipc",
                    None => "a part of it is not in the recording",
                }
            }
        };
        Some(Readings::missing(reason))
    }
}

/// The number of a part, that of all parts, and the text.
fn part(payload: &[u8]) -> Option<(usize, usize, String)> {
    let (number, rest) = payload.split_first_chunk()?;
    let (count, text) = rest.split_first_chunk()?;
    let (units, _) = text.as_chunks();
    let units: Vec<_> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    let text = String::from_utf16(units.strip_suffix(&[0])?).ok()?;
    let [number, count] = [number, count].map(|bytes: &[u8; 4]| u32::from_le_bytes(*bytes));
    Some((usize::try_from(number).ok()?, usize::try_from(count).ok()?, text))
}
