//! The schemas of events.

use nettrace::{Event, Fields, Metadata};

use crate::dynamic;
use crate::generated::schemas;
use crate::provider::Provider;
use crate::schema::Schema;

/// Returns the fields of an event: by the recording's field list, or by this crate's schema where that
/// [overrides](Schema::overrides) it. `None` if neither describes a payload that has bytes.
///
/// # Examples
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
/// while let Some(event) = events.next()? {
///     println!("{}", clr_events::event_name(&event));
///     for field in clr_events::event_fields(&event).into_iter().flatten() {
///         let (name, value) = field?;
///         println!("  {name} = {value}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub fn event_fields<'a>(event: &Event<'a>) -> Option<Fields<'a>> {
    let metadata = event.metadata();
    match Schema::of(event).filter(|schema| schema.overrides(metadata)) {
        Some(schema) => Some(schema.fields(event.payload(), event.pointer_size())),
        None if metadata.fields().is_empty() && !event.payload().is_empty() => None,
        None => Some(event.fields()),
    }
}

impl Schema {
    /// The schema for a version of an event: that version's own, or that of the newest version before it,
    /// since the runtime only appends fields. `None` for an event that is not known, or known only in newer
    /// versions.
    ///
    /// ```
    /// use clr_events::{Provider, Schema};
    ///
    /// let start = Schema::find(Provider::Runtime, 1, 2).ok_or("unknown")?;
    /// assert_eq!((start.name, start.version), ("GC/Start", 2));
    /// // The runtime only appends fields: a newer version is read as the newest known one.
    /// assert!(Schema::find(Provider::Runtime, 1, 99).is_some_and(|schema| schema.version >= 2));
    /// # Ok::<(), &str>(())
    /// ```
    #[inline]
    pub fn find(provider: Provider, id: u32, version: u32) -> Option<&'static Self> {
        Self::versions(provider, id).iter().rev().find(|schema| u32::from(schema.version) <= version)
    }

    /// The versions of an event, oldest first.
    #[inline]
    pub fn versions(provider: Provider, id: u32) -> &'static [Self] {
        let table = schemas::table(provider);
        let range = usize::try_from(id).ok().and_then(|id| {
            let first = table.firsts.get(id)?;
            let end = table.firsts.get(id.checked_add(1)?)?;
            table.schemas.get(usize::from(*first)..usize::from(*end))
        });
        range.unwrap_or_default()
    }

    /// All schemas of a provider, by id and version.
    pub fn all(provider: Provider) -> &'static [Self] {
        schemas::table(provider).schemas
    }

    /// The schema of an event; `None` for unknown events.
    ///
    /// A dynamic event of the garbage collector has a schema of its own if the layout of its data is known.
    #[inline]
    pub fn of(event: &Event<'_>) -> Option<&'static Self> {
        let schema = Self::find(Provider::of(event.metadata())?, event.id(), event.version())?;
        if event.id() == dynamic::ID && dynamic::is_dynamic(schema) {
            return dynamic::schema(event.payload()).or(Some(schema));
        }
        Some(schema)
    }

    /// The schema of a kind of event, if its events do not carry a version of their own.
    pub fn of_kind(metadata: &Metadata) -> Option<&'static Self> {
        Self::find(Provider::of(metadata)?, metadata.event_id(), metadata.version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_not_known_are_read_as_the_newest_before() {
        let version = |version| Schema::find(Provider::Runtime, 1, version).map(|schema| schema.version);
        assert_eq!([0, 1, 2, 9, u32::MAX].map(version), [Some(0), Some(1), Some(2), Some(2), Some(2)]);
        // Event 204 begins with version 3.
        assert!(Schema::find(Provider::Runtime, 204, 2).is_none());
        for id in [24, 1000, u32::MAX] {
            assert!(Schema::find(Provider::Runtime, id, 0).is_none());
        }
        assert_eq!(
            Schema::find(Provider::Rundown, 144, 1).map(|schema| schema.name),
            Some("Method/DCStopVerbose")
        );
    }

    #[test]
    fn every_schema_is_found_under_its_number() {
        for &provider in Provider::ALL {
            for schema in Schema::all(provider) {
                let found = Schema::find(provider, schema.id.into(), schema.version.into());
                assert!(core::ptr::eq(schema, found.unwrap()));
                assert_eq!(schema.provider, provider);
            }
            assert_eq!(Provider::from_guid(provider.guid()), Some(provider));
            assert_eq!(Provider::from_name(provider.name()), Some(provider));
        }
    }
}
