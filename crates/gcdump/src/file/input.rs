//! Checked reading of serialized objects.

use std::sync::Arc;

use hashbrown::HashMap;

use super::{MAGIC, tag};
use crate::error::Error;

/// A file in memory, and a position in it.
#[derive(Debug)]
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    position: usize,
    /// The targets of forward references.
    forward: Vec<u32>,
    /// Types of objects, by the offsets of their descriptions.
    types: HashMap<u32, Arc<ObjectType>>,
}

/// The type of serialized objects.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ObjectType {
    pub(super) name: String,
    pub(super) version: i32,
    /// The oldest version of a reader that can read it.
    pub(super) oldest_reader: i32,
}

impl<'a> Input<'a> {
    /// Reads the header before the first object and the trailer after the last.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut input = Self { bytes, position: 0, forward: Vec::new(), types: HashMap::new() };
        match input.string() {
            Ok(Some(magic)) if magic == MAGIC => {}
            Ok(Some(magic)) if magic.starts_with("!FastSerialization.") => {
                return Err(Error::Unsupported("its serialization is another than version 1"));
            }
            _ => return Err(Error::NotGcDump("it does not begin with !FastSerialization.1")),
        }
        let first = input.position;
        input.read_forward_table()?;
        input.position = first;
        Ok(input)
    }

    fn read_forward_table(&mut self) -> Result<(), Error> {
        let last = self.bytes.len().checked_sub(4).ok_or(Error::NotGcDump("it is too short"))?;
        self.position = last;
        let trailer = self.u32()? as usize;
        self.position = trailer;
        let table = self.u32()? as usize;
        self.position = table;
        let count = self.count(4)?;
        for entry in self.array::<4>(count)? {
            self.forward.push(u32::from_le_bytes(*entry));
        }
        Ok(())
    }

    pub(super) fn damaged(&self, problem: &'static str) -> Error {
        Error::Damaged { offset: self.position as u64, problem }
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let taken = rest.get(..length).ok_or_else(|| self.damaged("the file ends within a value"))?;
        self.position = self.position.saturating_add(length);
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self, count: usize) -> Result<&'a [[u8; N]], Error> {
        let length =
            count.checked_mul(N).ok_or_else(|| self.damaged("a table that is longer than the file"))?;
        Ok(self.take(length)?.as_chunks::<N>().0)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.array::<N>(1)?.first().copied().ok_or_else(|| self.damaged("the file ends within a value"))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        self.fixed().map(u8::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        self.fixed().map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Error> {
        self.fixed().map(i32::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Error> {
        self.fixed().map(i64::from_le_bytes)
    }

    pub(super) fn f32(&mut self) -> Result<f32, Error> {
        self.fixed().map(f32::from_le_bytes)
    }

    /// Reads a number of elements of at least `element` bytes each.
    pub(super) fn count(&mut self, element: usize) -> Result<usize, Error> {
        let count = self.i32()?;
        let rest = self.bytes.len().saturating_sub(self.position);
        usize::try_from(count)
            .ok()
            .filter(|count| count.checked_mul(element).is_some_and(|length| length <= rest))
            .ok_or_else(|| self.damaged("a count that the file has no room for"))
    }

    /// Reads a string. Each UTF-16 code unit takes one to three bytes.
    pub(super) fn string(&mut self) -> Result<Option<String>, Error> {
        let count = self.i32()?;
        if count < 0 {
            return Ok(None);
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > self.bytes.len().saturating_sub(self.position) {
            return Err(self.damaged("a text that is longer than the file"));
        }
        let mut units = Vec::with_capacity(count);
        for _ in 0..count {
            let first = u16::from(self.u8()?);
            units.push(match first {
                0..0x80 => first,
                0x80..0xe0 => (first & 0x1f) << 6 | self.continuation()?,
                _ => (first & 0x0f) << 12 | self.continuation()? << 6 | self.continuation()?,
            });
        }
        Ok(Some(String::from_utf16_lossy(&units)))
    }

    fn continuation(&mut self) -> Result<u16, Error> {
        Ok(u16::from(self.u8()? & 0x3f))
    }

    /// Reads the beginning of an object: its type. `None` for the null object.
    pub(super) fn begin(&mut self) -> Result<Option<Arc<ObjectType>>, Error> {
        match self.u8()? {
            tag::NULL => Ok(None),
            tag::BEGIN | tag::BEGIN_PRIVATE => self.object_type().map(Some),
            _ => Err(self.damaged("no object where one should begin")),
        }
    }

    fn object_type(&mut self) -> Result<Arc<ObjectType>, Error> {
        let place = u32::try_from(self.position).unwrap_or(u32::MAX);
        match self.u8()? {
            tag::OBJECT_REFERENCE => {
                let label = self.u32()?;
                self.types.get(&label).cloned().ok_or_else(|| self.damaged("a type that is not described"))
            }
            tag::BEGIN if self.u8()? == tag::NULL => {
                let (version, oldest_reader) = (self.i32()?, self.i32()?);
                let name = self.string()?.unwrap_or_default();
                if self.u8()? != tag::END {
                    return Err(self.damaged("a type without its end"));
                }
                let of = Arc::new(ObjectType { name, version, oldest_reader });
                self.types.insert(place, Arc::clone(&of));
                Ok(of)
            }
            _ => Err(self.damaged("no type where one should be")),
        }
    }

    /// Reads the index of a forward reference, and returns its target.
    pub(super) fn forward(&mut self) -> Result<usize, Error> {
        let index = self.i32()?;
        let place = usize::try_from(index).ok().and_then(|index| self.forward.get(index));
        place.map(|place| *place as usize).ok_or_else(|| self.damaged("a forward reference to nothing"))
    }

    /// Moves to an offset.
    pub(super) const fn seek(&mut self, position: usize) {
        self.position = position;
    }

    pub(super) const fn position(&self) -> usize {
        self.position
    }
}
