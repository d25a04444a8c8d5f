//! The numbers, GUIDs, strings and arrays that payloads consist of.

mod decoder;
mod encoder;
mod items;
mod text;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use items::Items;
pub use text::Utf16;

use crate::{DecodeError, EncodeError};
use alloc::vec::Vec;
use uuid::Uuid;

/// A value that can be encoded.
pub trait Encode {
    /// Appends the value's bytes. `field` names the value in errors.
    fn encode(&self, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError>;
}

/// A value that can be decoded, and that may borrow from the bytes (`'a`) that it is decoded from.
pub trait Decode<'a>: Sized {
    /// Minimum encoded size of a value in bytes. It bounds the count of an array before anything is allocated
    /// for it.
    const MIN_LEN: usize;

    /// Takes the value's bytes from the front of the remaining bytes. `field` names the value in errors.
    fn decode(decoder: &mut Decoder<'a>, field: &'static str) -> Result<Self, DecodeError>;
}

/// A value that can be decoded and borrows nothing.
pub trait DecodeOwned: for<'a> Decode<'a> {}

impl<T: for<'a> Decode<'a>> DecodeOwned for T {}

macro_rules! numbers {
    ($($type:ident),+) => {
        $(
            impl Encode for $type {
                fn encode(&self, encoder: &mut Encoder, _: &'static str) -> Result<(), EncodeError> {
                    encoder.$type(*self);
                    Ok(())
                }
            }

            impl Decode<'_> for $type {
                const MIN_LEN: usize = size_of::<$type>();

                fn decode(decoder: &mut Decoder<'_>, field: &'static str) -> Result<Self, DecodeError> {
                    decoder.$type(field)
                }
            }
        )+
    };
}

numbers!(u8, bool, u16, u32, i32, u64);

/// A GUID: 16 bytes, of which the first three fields are little-endian and the last two in order.
impl Encode for Uuid {
    fn encode(&self, encoder: &mut Encoder, _: &'static str) -> Result<(), EncodeError> {
        encoder.guid(*self);
        Ok(())
    }
}

impl Decode<'_> for Uuid {
    const MIN_LEN: usize = 16;

    fn decode(decoder: &mut Decoder<'_>, field: &'static str) -> Result<Self, DecodeError> {
        decoder.guid(field)
    }
}

/// An array: u32 count, then the items.
impl<T: Encode> Encode for [T] {
    fn encode(&self, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError> {
        encoder.count(self.len(), field)?;
        self.iter().try_for_each(|item| item.encode(encoder, field))
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError> {
        self.as_slice().encode(encoder, field)
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Vec<T> {
    const MIN_LEN: usize = 4;

    fn decode(decoder: &mut Decoder<'a>, field: &'static str) -> Result<Self, DecodeError> {
        let count = decoder.count(T::MIN_LEN, field)?;
        (0..count).map(|_| T::decode(decoder, field)).collect()
    }
}

/// An array of bytes, borrowed from the received bytes.
impl<'a> Decode<'a> for &'a [u8] {
    const MIN_LEN: usize = 4;

    fn decode(decoder: &mut Decoder<'a>, field: &'static str) -> Result<Self, DecodeError> {
        let count = decoder.count(1, field)?;
        decoder.slice(count, field)
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode(&self, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError> {
        (**self).encode(encoder, field)
    }
}

/// Defines a number with names for some values; an unknown value is kept as it is, and prints as `what` and
/// the number.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub struct $name:ident($type:ident) = $what:literal {
            $($(#[doc = $doc:literal])+ $constant:ident = $value:literal $text:literal;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $type);

        impl $name {
            $($(#[doc = $doc])+ pub const $constant: Self = Self($value);)+

            /// All values that have a name.
            pub const NAMED: &'static [Self] = &[$(Self::$constant),+];

            /// Returns the value's name, if it is a known one.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$constant => Some($text),)+
                    _ => None,
                }
            }
        }

        /// Prints the name, or the number without a name.
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!($what, " {}"), self.0),
                }
            }
        }

        $crate::codec::transparent!($name($type));
    };
}
pub(crate) use open_enum;

/// Encodes and decodes a newtype as its number.
macro_rules! transparent {
    ($name:ident($type:ident)) => {
        impl $crate::codec::Encode for $name {
            fn encode(
                &self,
                encoder: &mut $crate::Encoder,
                field: &'static str,
            ) -> Result<(), $crate::EncodeError> {
                self.0.encode(encoder, field)
            }
        }

        impl $crate::codec::Decode<'_> for $name {
            const MIN_LEN: usize = size_of::<$type>();

            fn decode(
                decoder: &mut $crate::Decoder<'_>,
                field: &'static str,
            ) -> Result<Self, $crate::DecodeError> {
                decoder.$type(field).map(Self)
            }
        }
    };
}
pub(crate) use transparent;

#[cfg(test)]
mod tests;
