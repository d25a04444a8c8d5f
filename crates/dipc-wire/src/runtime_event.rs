//! The events that a runtime writes to user_events.

use uuid::Uuid;

use crate::DecodeError;
use crate::codec::Decoder;

/// An event that a runtime writes to a tracepoint of the kernel's user_events.
///
/// The kernel delivers the fields of the tracepoint; those of `__rel_loc` have the place of their bytes.
///
/// ```
/// use dipc_wire::RuntimeEvent;
///
/// let event = RuntimeEvent::from_fields([&[42, 0], &[], b"payload"])?;
/// assert_eq!((event.id, event.payload), (42, &b"payload"[..]));
/// # Ok::<(), dipc_wire::DecodeError>(())
/// ```
///
/// # Source
/// As [`EventExtension`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeEvent<'a> {
    /// The number of the event among those of its provider.
    pub id: u16,
    /// The optional part.
    pub extension: EventExtension<'a>,
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> RuntimeEvent<'a> {
    /// The fields of the tracepoints, as runtimes declare them.
    pub const DECLARATION: &'static str =
        "u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload";

    /// The names of the fields that [`from_fields`](Self::from_fields) takes.
    pub const FIELDS: [&'static str; 3] = ["event_id", "extension", "payload"];

    /// Decodes the bytes of the [`FIELDS`](Self::FIELDS), in their order.
    ///
    /// # Errors
    /// If the bytes of a field end inside a part of it.
    pub fn from_fields([id, extension, payload]: [&'a [u8]; 3]) -> Result<Self, DecodeError> {
        let id = Decoder::new(id).u16("event id")?;
        Ok(Self { id, extension: EventExtension::from_bytes(extension)?, payload })
    }
}

const METADATA: u8 = 1;
const ACTIVITY_ID: u8 = 2;
const RELATED_ACTIVITY_ID: u8 = 3;

/// The optional part of an event in the kernel's user_events: the field `extension` of its tracepoint.
///
/// | label | data |
/// |---|---|
/// | 1 | u32 length, and the event's metadata, as in nettrace V5 after the id of the metadata |
/// | 2 | the GUID of the activity |
/// | 3 | the GUID of the related activity |
///
/// Runtimes write the metadata with the first event of a kind in a session. Several threads may do that at
/// the same time.
///
/// ```
/// use dipc_wire::EventExtension;
///
/// let bytes = [1, 2, 0, 0, 0, b'm', b'd', 2, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// let extension = EventExtension::from_bytes(&bytes)?;
/// assert_eq!(extension.metadata, Some(&b"md"[..]));
/// assert_eq!(extension.activity_id.map(|id| id.as_u128() >> 96), Some(7));
/// # Ok::<(), dipc_wire::DecodeError>(())
/// ```
///
/// # Source
/// Diagnostic IPC Protocol, "User_events writing", which does not mention the length; .NET 10.0.5 on Linux
/// 6.12 writes it. Against that document, events of the runtime itself have metadata, too, without fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventExtension<'a> {
    /// The description of the kind of event.
    pub metadata: Option<&'a [u8]>,
    /// The activity that the event belongs to.
    pub activity_id: Option<Uuid>,
    /// The activity that it is related to.
    pub related_activity_id: Option<Uuid>,
}

impl<'a> EventExtension<'a> {
    /// Decodes the bytes up to an unknown label, after which nothing can be read.
    ///
    /// # Errors
    /// If the bytes end inside a part.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        let mut extension = Self::default();
        while !decoder.rest().is_empty() {
            match decoder.u8("label")? {
                METADATA => {
                    let length = decoder.count(1, "metadata")?;
                    extension.metadata = Some(decoder.slice(length, "metadata")?);
                }
                ACTIVITY_ID => extension.activity_id = Some(decoder.guid("activity id")?),
                RELATED_ACTIVITY_ID => {
                    extension.related_activity_id = Some(decoder.guid("related activity id")?);
                }
                _ => break,
            }
        }
        Ok(extension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_any_order() {
        let mut bytes = alloc::vec![RELATED_ACTIVITY_ID];
        bytes.extend([3; 16]);
        bytes.extend([METADATA, 1, 0, 0, 0, 9]);
        bytes.extend([ACTIVITY_ID]);
        bytes.extend([2; 16]);
        let extension = EventExtension::from_bytes(&bytes).unwrap();
        assert_eq!(extension.metadata, Some(&[9][..]));
        assert_eq!(extension.activity_id, Some(Uuid::from_bytes([2; 16])));
        assert_eq!(extension.related_activity_id, Some(Uuid::from_bytes([3; 16])));
        // Cut inside a part, the rest is an error; between parts it is shorter.
        for length in 0..bytes.len() {
            let is_whole = [0, 17, 23].contains(&length);
            assert_eq!(EventExtension::from_bytes(&bytes[..length]).is_ok(), is_whole, "{length}");
        }
    }

    #[test]
    fn nothing_is_read_after_an_unknown_label() {
        let extension = EventExtension::from_bytes(&[METADATA, 0, 0, 0, 0, 77, ACTIVITY_ID]).unwrap();
        assert_eq!(extension, EventExtension { metadata: Some(&[]), ..EventExtension::default() });
        assert_eq!(EventExtension::from_bytes(&[]), Ok(EventExtension::default()));
        assert!(EventExtension::from_bytes(&[METADATA, 0xff, 0xff, 0xff, 0xff]).is_err());
    }
}
