use super::{Decode, Decoder, Encode, Encoder};
use crate::{DecodeError, EncodeError};
use core::fmt;
use core::marker::PhantomData;

/// An array that borrows the received bytes: items are decoded as they are iterated over, and nothing is
/// allocated.
///
/// Every item was decoded once to find the end of the array, so that none of them fails later.
///
/// ```
/// use dipc_wire::{Decoder, Encoder, Items, Utf16};
///
/// let mut encoder = Encoder::new();
/// encoder.put(&vec!["a".to_owned(), "b".to_owned()], "names")?;
/// let bytes = encoder.into_bytes();
/// let names: Items<'_, Utf16<'_>> = Decoder::new(&bytes).take("names")?;
/// assert!(names.iter().map(|name| name.to_string()).eq(["a", "b"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Items<'a, T> {
    len: usize,
    /// The items without their count.
    bytes: &'a [u8],
    item: PhantomData<fn() -> T>,
}

impl<'a, T: Decode<'a>> Items<'a, T> {
    /// Returns the number of items.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the items in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        let mut decoder = Decoder::new(self.bytes);
        (0..self.len).map_while(move |_| {
            let item = decoder.take("item");
            debug_assert!(item.is_ok(), "the item was decoded before");
            item.ok()
        })
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Items<'a, T> {
    const MIN_LEN: usize = 4;

    fn decode(decoder: &mut Decoder<'a>, field: &'static str) -> Result<Self, DecodeError> {
        let len = decoder.count(T::MIN_LEN, field)?;
        let mut after = decoder.clone();
        (0..len).try_for_each(|_| after.take::<T>(field).map(drop))?;
        debug_assert!(after.offset() >= decoder.offset(), "a decoder only moves forward");
        let bytes = decoder.slice(after.offset().saturating_sub(decoder.offset()), field)?;
        Ok(Self { len, bytes, item: PhantomData })
    }
}

/// Appends the received bytes unchanged.
impl<T> Encode for Items<'_, T> {
    fn encode(&self, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError> {
        encoder.count(self.len, field)?;
        encoder.bytes(self.bytes);
        Ok(())
    }
}

/// The empty array.
impl<T> Default for Items<'_, T> {
    fn default() -> Self {
        Self { len: 0, bytes: &[], item: PhantomData }
    }
}

impl<T> Clone for Items<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Items<'_, T> {}

impl<'a, T: Decode<'a> + PartialEq> PartialEq for Items<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<'a, T: Decode<'a> + Eq> Eq for Items<'a, T> {}

impl<'a, T: Decode<'a> + fmt::Debug> fmt::Debug for Items<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
