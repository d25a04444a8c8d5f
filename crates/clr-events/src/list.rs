//! Repeated parts of a payload, with typed elements.

use core::marker::PhantomData;

use crate::reader::{ReadResult, Reader};

/// An element type of [`List`].
pub(crate) trait Row<'a>: Sized {
    /// Bytes of an element with 4-byte and with 8-byte pointers, if all elements have one size. Not 0.
    const SIZES: Option<(usize, usize)> = None;

    fn read(reader: &mut Reader<'a>) -> ReadResult<Self>;
}

impl Row<'_> for u32 {
    const SIZES: Option<(usize, usize)> = Some((4, 4));

    #[inline]
    fn read(reader: &mut Reader<'_>) -> ReadResult<Self> {
        reader.u32()
    }
}

impl Row<'_> for u64 {
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

impl<'a, T> List<'a, T> {
    /// The reader stands before elements that are all there.
    pub(crate) const fn new(reader: Reader<'a>, left: usize) -> Self {
        Self { reader, left, element: PhantomData }
    }

    /// Returns the number of elements left.
    pub const fn len(&self) -> usize {
        self.left
    }

    /// Whether no element is left.
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

#[allow(private_bounds, reason = "what a list can hold is this crate's to say")]
impl<'a, T: Row<'a>> Iterator for List<'a, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        // The elements were found to be there when the list was read: this cannot fail.
        T::read(&mut self.reader).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
