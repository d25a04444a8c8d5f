//! Repeated parts of a payload, with typed elements.

use core::marker::PhantomData;

use nettrace::raw::{ReadError, ReadResult};

use crate::reader::Reader;

/// An element type of [`List`].
pub(crate) trait Element<'a>: Sized {
    /// Bytes of an element with 4-byte and with 8-byte pointers, if all elements have one size. Not 0.
    const SIZES: Option<(usize, usize)> = None;

    fn read(reader: &mut Reader<'a>) -> ReadResult<Self>;
}

impl Element<'_> for u32 {
    const SIZES: Option<(usize, usize)> = Some((4, 4));

    #[inline]
    fn read(reader: &mut Reader<'_>) -> ReadResult<Self> {
        reader.u32()
    }
}

impl Element<'_> for u64 {
    const SIZES: Option<(usize, usize)> = Some((8, 8));

    #[inline]
    fn read(reader: &mut Reader<'_>) -> ReadResult<Self> {
        reader.u64()
    }
}

/// Elements of one type, decoded as the iterator goes.
#[derive(Debug, Clone, Copy)]
pub struct List<'a, T> {
    reader: Reader<'a>,
    left: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> List<'_, T> {
    /// Returns the number of elements left.
    pub const fn len(&self) -> usize {
        self.left
    }

    /// Returns true if no element is left.
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

#[allow(private_bounds, reason = "the crate decides which types a list can hold")]
impl<'a, T: Element<'a>> List<'a, T> {
    /// Reads `count` elements. Unless all have one size each is decoded, to find the end.
    pub(crate) fn read(reader: &mut Reader<'a>, count: impl Into<u32>) -> ReadResult<Self> {
        let left = usize::try_from(count.into()).map_err(|_| ReadError::UnexpectedEnd)?;
        let list = Self { reader: Reader::new(reader.rest(), reader.wide), left, element: PhantomData };
        if let Some((narrow, wide)) = T::SIZES {
            let size = if reader.wide { wide } else { narrow };
            reader.skip(left, size)?;
        } else {
            // Every element takes at least a byte, so this ends with the payload.
            for _ in 0..left {
                T::read(reader)?;
            }
        }
        Ok(list)
    }
}

#[allow(private_bounds, reason = "the crate decides which types a list can hold")]
impl<'a, T: Element<'a>> Iterator for List<'a, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        // The bytes of all elements were checked when the list was read: this cannot fail.
        T::read(&mut self.reader).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

#[allow(private_bounds, reason = "the crate decides which types a list can hold")]
impl<'a, T: Element<'a>> ExactSizeIterator for List<'a, T> {}
