//! Payloads with typed fields.

use core::time::Duration;

use nettrace::{Event, FieldError};

use crate::provider::Provider;
use crate::reader::Reader;
use crate::schema::Schema;

pub use crate::dynamic::CommittedUsage;
pub use crate::generated::views::*;

impl<'a> ClrEvent<'a> {
    /// Reads the view of an event; `None` for an event, or an old version of it, without a view.
    ///
    /// Versions that this crate does not know are read as the newest that it knows: the runtime only appends
    /// fields.
    ///
    /// ```
    /// # let mut recording = nettrace_synth::clr::Recording::new();
    /// # let recording = recording.at(5).exception("System.TimeoutException", "no answer").bytes();
    /// use clr_events::ClrEvent;
    ///
    /// let mut events = nettrace::SliceReader::new(&recording)?;
    /// let event = events.next()?.ok_or("an event")?;
    /// let view = ClrEvent::of(&event)?;
    /// let Some(ClrEvent::ExceptionStart(thrown)) = view else { return Err("another event".into()) };
    /// assert_eq!(thrown.exception_type.to_string(), "System.TimeoutException");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the payload ends before its fields do.
    pub fn of(event: &Event<'a>) -> Result<Option<Self>, FieldError> {
        let Some(provider) = Provider::of(event.metadata()) else { return Ok(None) };
        Self::decode(provider, event.id(), event.version(), event.payload(), event.pointer_size())
    }

    /// Reads the view of a payload; see [`of`](Self::of). `pointer_size` is 4 or 8.
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
        // A newer version is read as the newest that is known.
        let Some(schema) = Schema::find(provider, id, version) else { return Ok(None) };
        let mut reader = Reader::new(payload, pointer_size != 4);
        let event = Self::read(provider, schema.id, schema.version, &mut reader);
        event.map(|event| reader.finish(event, schema.fields.len())).transpose()
    }
}

impl ContentionStop {
    /// The length of the wait, as the runtime measured it; `None` if it is missing or impossible.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and saturates")]
    pub fn duration(&self) -> Option<Duration> {
        self.duration_ns
            .filter(|duration| duration.is_finite() && *duration >= 0.0)
            .map(|nanoseconds| Duration::from_nanos(nanoseconds as u64))
    }
}

#[cfg(feature = "std")]
impl AllocationSampled<'_> {
    /// Estimates the bytes that the object represents: its size divided by the probability that one of its
    /// bytes was chosen. The allocator chooses a byte of each 102,400 on average.
    ///
    /// # Source
    /// `docs/design/features/RandomizedAllocationSampling.md` of dotnet/runtime.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate; what is too large saturates"
    )]
    pub fn estimated_bytes(&self) -> u64 {
        const MEAN_DISTANCE: f64 = 102_400.0;
        let size = self.object_size as f64;
        let chance = -(-size / MEAN_DISTANCE).exp_m1();
        if chance > 0.0 { (size / chance).round() as u64 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::schema;
    use nettrace::schema::{Count, Field, FieldType};

    /// The number of elements in every list.
    const ELEMENTS: u8 = 3;

    /// Appends a value of each field.
    fn fill(payload: &mut Vec<u8>, fields: &[Field], wide: bool) {
        for field in fields {
            let mut integer = |size: usize| {
                let mut bytes = [0; 8];
                bytes[0] = if field.is_counter() { ELEMENTS } else { 7 };
                payload.extend_from_slice(&bytes[..size]);
            };
            let elements = |count: Count| match count {
                Count::Fixed(count) => usize::from(count),
                Count::Counted => usize::from(ELEMENTS),
                _ => panic!("no count of {count:?}"),
            };
            match *field.field_type() {
                FieldType::U8 | FieldType::Named8(_) | FieldType::VARUINT => integer(1),
                FieldType::U16 | FieldType::Named16(_) | FieldType::Pad16 => integer(2),
                FieldType::U32 | FieldType::I32 | FieldType::BOOL32 | FieldType::Named32(_) => integer(4),
                FieldType::U64 | FieldType::I64 | FieldType::F64 => integer(8),
                FieldType::Address => integer(if wide { 8 } else { 4 }),
                FieldType::PadWord => integer(if wide { 4 } else { 0 }),
                FieldType::Hidden(hidden) => fill(payload, &[schema::field("", *hidden)], wide),
                FieldType::GUID => payload.extend_from_slice(&[1; 16]),
                FieldType::STRING16 => payload.extend_from_slice(&[b'a', 0, 0, 0]),
                FieldType::Utf8 => payload.extend_from_slice(b"b\0"),
                FieldType::CountedUtf8 => payload.extend_from_slice(&[1, 0, b'c']),
                FieldType::Bytes(count) => payload.resize(payload.len() + elements(count), 9),
                FieldType::Array(element, count) => {
                    for _ in 0..elements(count) {
                        fill(payload, &[schema::field("", *element)], wide);
                    }
                }
                FieldType::Object(list) => fill(payload, list, wide),
                ref other => panic!("no value of {other:?}"),
            }
        }
    }

    #[test]
    fn a_view_accepts_the_payloads_of_its_schema() {
        let mut views = 0;
        for &provider in Provider::ALL {
            for (schema, wide) in
                Schema::all(provider).iter().flat_map(|schema| [(schema, false), (schema, true)])
            {
                let mut payload = Vec::new();
                fill(&mut payload, schema.fields, wide);
                let pointer_size = if wide { 8 } else { 4 };
                let mut fields = schema.fields(&payload, pointer_size);
                assert!(fields.by_ref().all(|field| field.is_ok()), "{schema:?}");
                assert!(fields.rest().is_empty(), "{schema:?}");
                let mut reader = Reader::new(&payload, wide);
                let Some(view) = ClrEvent::read(provider, schema.id, schema.version, &mut reader) else {
                    continue;
                };
                views += 1;
                assert!(view.is_ok() && reader.rest().is_empty(), "{schema:?}");
                for cut in 0..payload.len() {
                    let (id, version) = (schema.id.into(), schema.version.into());
                    let cut_off = ClrEvent::decode(provider, id, version, &payload[..cut], pointer_size);
                    let error = cut_off.unwrap_err();
                    let mut fields = schema.fields(&payload[..cut], pointer_size);
                    assert_eq!(fields.find_map(Result::err), Some(error), "{schema:?} cut at {cut}");
                }
                // Fields that a newer version appends are ignored.
                payload.extend_from_slice(b"more");
                let newest = Schema::versions(provider, schema.id.into()).last().unwrap();
                if newest.version == schema.version {
                    let newer = ClrEvent::decode(provider, schema.id.into(), 1000, &payload, pointer_size);
                    assert!(newer.unwrap().is_some());
                    let mut fields = Schema::find(provider, schema.id.into(), 1000)
                        .unwrap()
                        .fields(&payload, pointer_size);
                    assert!(fields.by_ref().all(|field| field.is_ok()));
                    assert_eq!(fields.rest(), b"more");
                }
            }
        }
        assert!(views > 250, "{views} views");
    }

    #[test]
    fn rows_are_read_one_by_one() {
        let mut payload = alloc::vec![2, 0, 0, 0, 9, 0];
        for id in [10u64, 20] {
            payload.extend_from_slice(&id.to_le_bytes());
            payload.extend_from_slice(&[0; 17]);
            payload.extend_from_slice(&[b'A', 0, 0, 0, 1, 0, 0, 0]);
            payload.extend_from_slice(&(id + 1).to_le_bytes());
        }
        let event = ClrEvent::decode(Provider::Runtime, 15, 0, &payload, 8).unwrap();
        let Some(ClrEvent::BulkType(types)) = event else { panic!("{event:?}") };
        assert_eq!((types.clr_instance_id, types.values.len()), (9, 2));
        let rows: Vec<_> =
            types.values.map(|row| (row.type_id, row.type_parameters.collect::<Vec<_>>())).collect();
        assert_eq!(rows, [(10, alloc::vec![11]), (20, alloc::vec![21])]);
        // A count that the payload cannot hold.
        payload[0] = 0xff;
        assert!(ClrEvent::decode(Provider::Runtime, 15, 0, &payload, 8).is_err());
    }

    #[test]
    #[cfg(feature = "std")]
    fn small_sampled_objects_stand_for_the_distance_and_large_ones_for_themselves() {
        let estimate = |size: u64| {
            let mut payload = Vec::new();
            // Up to the size: 4 and 2 bytes, an address, an empty name, an address.
            payload.extend_from_slice(&[0; 4 + 2 + 8 + 2 + 8]);
            payload.extend_from_slice(&size.to_le_bytes());
            payload.extend_from_slice(&[0; 8]);
            match ClrEvent::decode(Provider::Runtime, 303, 0, &payload, 8) {
                Ok(Some(ClrEvent::AllocationSampled(sampled))) => sampled.estimated_bytes(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(estimate(0), 0);
        assert!((102_400..102_500).contains(&estimate(24)));
        assert_eq!(estimate(100_000_000), 100_000_000);
    }
}
