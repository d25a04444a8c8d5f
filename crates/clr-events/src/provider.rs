//! The providers whose events this crate knows.

use nettrace::Metadata;
use uuid::Uuid;

pub use crate::generated::providers::Provider;

impl Provider {
    /// The provider with that GUID.
    pub fn from_guid(guid: Uuid) -> Option<Self> {
        Self::ALL.iter().copied().find(|provider| provider.guid() == guid)
    }

    /// The provider of a kind of event: by name, or by GUID where the recording has no names.
    #[inline]
    pub fn of(metadata: &Metadata) -> Option<Self> {
        match metadata.provider() {
            "" => metadata.provider_id().and_then(Self::from_guid),
            name => Self::from_name(name),
        }
    }
}
