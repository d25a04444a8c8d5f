//! Payloads with typed fields.

use nettrace::{Event, FieldError};

use crate::provider::Provider;
use crate::reader::{Parsed, Reader};
use crate::schema::Schema;

pub use crate::generated::views::*;

/// What a payload looks like.
pub(crate) trait Shape<'a>: Sized {
    fn read(reader: &mut Reader<'a>, version: u8) -> Parsed<Self>;
}

impl<'a> ClrEvent<'a> {
    /// What an event tells; `None` for an event, or an old version of it, that has no view.
    ///
    /// Versions that this crate does not know are read as the newest that it knows: the runtime only appends fields.
    ///
    /// # Errors
    /// If the payload ends before its fields do.
    pub fn of(event: &Event<'a>) -> Result<Option<Self>, FieldError> {
        let Some(provider) = Provider::of(event.metadata()) else { return Ok(None) };
        Self::decode(provider, event.id(), event.version(), event.payload(), event.pointer_size())
    }

    /// What a payload tells; see [`of`](Self::of). `pointer_size` is 4 or 8.
    ///
    /// # Errors
    /// If the payload ends before its fields do.
    pub fn decode(
        provider: Provider,
        id: u32,
        version: u32,
        payload: &'a [u8],
        pointer_size: u8,
    ) -> Result<Option<Self>, FieldError> {
        let Ok(number) = u16::try_from(id) else { return Ok(None) };
        let mut reader = Reader::new(payload, pointer_size != 4);
        let version = u8::try_from(version).unwrap_or(u8::MAX);
        match Self::read(provider, number, version, &mut reader) {
            None => Ok(None),
            Some(Ok(event)) => Ok(Some(event)),
            Some(Err(bad)) => {
                let fields =
                    Schema::find(provider, id, version.into()).map_or(0, |schema| schema.fields.len());
                Err(bad.at(reader.field, fields))
            }
        }
    }
}
