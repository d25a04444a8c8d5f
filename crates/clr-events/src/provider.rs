//! The providers known to this crate.

use nettrace::Metadata;
use uuid::Uuid;

pub use crate::generated::providers::Provider;

impl Provider {
    /// The provider with that GUID.
    pub fn from_guid(guid: Uuid) -> Option<Self> {
        Self::ALL.iter().copied().find(|provider| provider.guid() == guid)
    }

    /// The provider of a kind of event: by name, or by GUID in recordings without names.
    ///
    /// ```
    /// # use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, Value, nettrace::Trace, payload};
    /// # let provider = "Microsoft-Windows-DotNETRuntime".to_owned();
    /// # let thrown = Metadata { id: 1, provider, event_id: 80, version: 1, ..Metadata::default() };
    /// # let (kind, message) = (Value::string16("System.TimeoutException"), Value::string16("no answer"));
    /// # let rest = [Value::UInt64(0), Value::UInt32(0x8013_1505), Value::UInt16(0), Value::UInt16(0)];
    /// # let payload = payload(&[vec![kind, message], rest.to_vec()].concat());
    /// # let mut block = EventBlock::v4();
    /// # block.event(&Event { metadata_id: 1, sequence: 1, timestamp: 5, payload, ..Event::default() });
    /// # let mut trace = Trace::new(&TraceHeader::default());
    /// # trace.metadata_block(&[thrown]).event_block(&block);
    /// # let recording = trace.finish();
    /// use clr_events::Provider;
    ///
    /// let mut events = nettrace::SliceReader::new(&recording)?;
    /// let event = events.next()?.ok_or("an event")?;
    /// assert_eq!(Provider::of(event.metadata()), Some(Provider::Runtime));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn of(metadata: &Metadata) -> Option<Self> {
        match metadata.provider() {
            "" => metadata.provider_id().and_then(Self::from_guid),
            name => Self::from_name(name),
        }
    }
}
