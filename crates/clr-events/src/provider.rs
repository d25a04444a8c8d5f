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
    /// # let mut recording = nettrace_synth::clr::Recording::new();
    /// # let recording = recording.at(5).exception("System.TimeoutException", "no answer").bytes();
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
