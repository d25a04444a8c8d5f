//! The providers whose events this crate knows.

use nettrace::Metadata;
use uuid::Uuid;

pub use crate::generated::providers::Provider;

macro_rules! providers {
    ($($variant:ident = $name:literal, $guid:literal, $what:literal;)*) => {
        /// A provider whose events this crate knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Provider {
            $(#[doc = $what] $variant,)*
        }

        impl Provider {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its GUID, which netperf V1 has instead of the name.
            pub const fn guid(self) -> uuid::Uuid {
                uuid::Uuid::from_u128(match self { $(Self::$variant => $guid,)* })
            }

            /// The provider of that name.
            #[inline]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

pub(crate) use providers;

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
