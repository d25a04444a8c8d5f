//! Macros for generated code.

/// A type for the values of a field, with a constant for each name, and the names themselves.
macro_rules! value_names {
    ($what:literal, $type:ident, $names:ident, $name:literal, $kind:ident; $($constant:ident = $number:literal, $entry:literal;)*) => {
        #[doc = $what]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $type(pub u32);

        #[allow(missing_docs, reason = "the runtime's names say what is known of them")]
        impl $type {
            $(pub const $constant: Self = Self($number);)*
        }

        impl $type {
            /// Returns true if all bits of `other` are set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Number and names.
            pub const fn named(self) -> ::nettrace::schema::NamedValue {
                ::nettrace::schema::NamedValue::new(self.0, &$names)
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.named().fmt(f)
            }
        }

        pub(crate) static $names: ::nettrace::schema::ValueNames = ::nettrace::schema::ValueNames::new(
            $name,
            ::nettrace::schema::ValueNamesKind::$kind,
            &[$(($number, $entry)),*],
        );
    };
}

/// The enum of providers.
macro_rules! providers {
    ($($variant:ident = $name:literal, $guid:literal, $what:literal;)*) => {
        /// A provider known to this crate.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Provider {
            $(#[doc = $what] $variant,)*
        }

        impl Provider {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name of the provider.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The GUID of the provider, which netperf V1 has instead of the name.
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

pub(crate) use {providers, value_names};

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use crate::generated::enums::{GcReason, MethodFlags, TieredCompilationSettingsFlags, TypeFlags};

    #[test]
    fn numbers_print_as_their_names() {
        assert_eq!(GcReason::ALLOC_LARGE.to_string(), "AllocLarge");
        assert_eq!(GcReason(77).to_string(), "77");
        assert!(!GcReason(77).named().has_name());
        assert_eq!(MethodFlags(0x9).to_string(), "Dynamic|Jitted");
        assert_eq!(MethodFlags(0x88).to_string(), "Jitted|0x80");
        assert_eq!(MethodFlags(0x80).to_string(), "128");
        assert_eq!(MethodFlags(0).to_string(), "0");
        assert_eq!(TieredCompilationSettingsFlags(0).to_string(), "None");
        assert_eq!(TypeFlags(0x108).to_string(), "Array|ArrayRankBit0");
        assert!(
            MethodFlags(0x9).contains(MethodFlags::JITTED) && !MethodFlags(0x9).contains(MethodFlags(0x18))
        );
    }
}
