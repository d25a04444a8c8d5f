//! The lengths of the fields that state the lengths of events.

/// The width of the length that precedes an event's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LengthWidth {
    /// The event has neither fields nor a length.
    None,
    Byte,
    Word,
}

impl LengthWidth {
    pub(super) const fn new(bytes: u8) -> Option<Self> {
        match bytes {
            0 => Some(Self::None),
            1 => Some(Self::Byte),
            2 => Some(Self::Word),
            _ => None,
        }
    }
}

/// The list of a process's events with the widths of their lengths, by which unknown events are skipped.
///
/// A runtime states it once in a session, in whichever buffer. Use one value for all buffers of a process.
#[derive(Debug, Clone)]
pub struct AsyncLayout {
    widths: [Option<LengthWidth>; 256],
}

/// Ids with a length of one byte.
const BYTE: [u8; 8] = [1, 2, 5, 11, 12, 15, 23, 24];
/// Ids with a length of two bytes.
const WORD: [u8; 6] = [6, 7, 8, 16, 19, 22];
/// The ids that are known.
const KNOWN: std::ops::RangeInclusive<u8> = 1..=24;

impl Default for AsyncLayout {
    fn default() -> Self {
        let mut widths = [None; 256];
        for id in KNOWN {
            let width = match id {
                id if BYTE.contains(&id) => LengthWidth::Byte,
                id if WORD.contains(&id) => LengthWidth::Word,
                _ => LengthWidth::None,
            };
            if let Some(place) = widths.get_mut(usize::from(id)) {
                *place = Some(width);
            }
        }
        Self { widths }
    }
}

impl AsyncLayout {
    pub(super) fn width(&self, id: u8) -> Option<LengthWidth> {
        self.widths.get(usize::from(id)).copied().flatten()
    }

    pub(super) fn set(&mut self, id: u8, width: LengthWidth) {
        if let Some(place) = self.widths.get_mut(usize::from(id)) {
            *place = Some(width);
        }
    }
}
