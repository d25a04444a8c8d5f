//! Numbers of mapped files in recordings of whole machines (`Universal.System`), which are unique only within
//! one recording.

use clr_events::Provider;
use nettrace::raw::{Cursor, ReadResult};
use nettrace::{Event, Metadata, MetadataMap};

/// The numbers of mapped files of many recordings: each recording gets every n-th number.
#[derive(Debug)]
pub struct MappingIds {
    recordings: u64,
    /// By file, then by metadata index: parts of one recording have indexes of their own.
    fields: Vec<MetadataMap<NumberFields>>,
    payload: Vec<u8>,
}

/// The fields of a kind of event that hold numbers of mapped files or of data about one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberFields {
    None,
    /// `Id`, addresses and offset, `FileName`, `MetadataId`.
    Mapping,
    /// `Id`, `MappingId`, and others.
    Symbol,
    /// `Id`, and others.
    Metadata,
}

impl NumberFields {
    fn of(metadata: &Metadata) -> Self {
        match (Provider::of(metadata), metadata.event_id()) {
            (Some(Provider::UniversalSystem), 3) => Self::Mapping,
            (Some(Provider::UniversalSystem), 4) => Self::Symbol,
            (Some(Provider::UniversalSystem), 5) => Self::Metadata,
            _ => Self::None,
        }
    }
}

impl MappingIds {
    /// Creates the numbers of this many recordings.
    pub fn new(recordings: usize) -> Self {
        Self {
            recordings: recordings as u64,
            fields: vec![MetadataMap::default(); recordings],
            payload: Vec::new(),
        }
    }

    /// Returns the payload of an event, with numbers that no other recording has. `file` is a part of
    /// `recording`. A truncated payload is returned unchanged.
    pub fn payload<'a>(&'a mut self, file: usize, recording: usize, event: &Event<'a>) -> &'a [u8] {
        let Some(kinds) = self.fields.get_mut(file) else { return event.payload() };
        let fields = kinds.get_or_insert_with(event.metadata_index(), || NumberFields::of(event.metadata()));
        if fields == NumberFields::None {
            return event.payload();
        }
        match self.renumber(recording as u64, fields, event.payload()) {
            Ok(()) => &self.payload,
            Err(_) => event.payload(),
        }
    }

    fn renumber(&mut self, recording: u64, fields: NumberFields, payload: &[u8]) -> ReadResult<()> {
        let mut cursor = Cursor::new(payload);
        let recordings = self.recordings;
        self.payload.clear();
        let out = &mut self.payload;
        let number = |cursor: &mut Cursor<'_>, out: &mut Vec<u8>| {
            let id = cursor.varuint64()?;
            varuint(out, id.wrapping_mul(recordings).wrapping_add(recording));
            Ok(())
        };
        number(&mut cursor, out)?;
        match fields {
            NumberFields::Symbol => number(&mut cursor, out)?,
            NumberFields::Mapping => {
                let before = cursor.rest();
                for _ in 0..3 {
                    cursor.varuint64()?;
                }
                let length = cursor.u16()?;
                cursor.bytes(length.into())?;
                let size = before.len().saturating_sub(cursor.rest().len());
                out.extend_from_slice(before.get(..size).unwrap_or_default());
                number(&mut cursor, out)?;
            }
            NumberFields::Metadata | NumberFields::None => {}
        }
        out.extend_from_slice(cursor.rest());
        Ok(())
    }
}

/// Appends an unsigned variable-length integer.
fn varuint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_two_recordings_differ() {
        let mut ids = MappingIds::new(2);
        let mapping = [7, 0x80, 1, 2, 3, 1, 0, b'a', 200, 1];
        assert_eq!(ids.renumber(1, NumberFields::Mapping, &mapping), Ok(()));
        assert_eq!(ids.payload, [15, 0x80, 1, 2, 3, 1, 0, b'a', 0x91, 3]);
        assert_eq!(ids.renumber(0, NumberFields::Symbol, &[7, 9, 1, 2, 0, 0]), Ok(()));
        assert_eq!(ids.payload, [14, 18, 1, 2, 0, 0]);
        assert!(ids.renumber(1, NumberFields::Mapping, &mapping[..6]).is_err());
    }
}
