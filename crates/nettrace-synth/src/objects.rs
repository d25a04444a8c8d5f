//! The object layer of V1 to V5.

use crate::{Bytes, bytes::length32};

/// A stream of objects, the container of V1 to V5.
///
/// | bytes | meaning |
/// |---|---|
/// | 4 (V1–V3) or 5 (V4, V5) | begin of an object |
/// | the same again | begin of its type |
/// | 1 | the type of the type: none |
/// | i32, i32 | version, least version of a reader |
/// | `counted_string` | name |
/// | 6 | end of the type |
/// | … | data |
/// | 6 | end of the object |
///
/// One byte of 1 in place of an object ends the stream. Where the data is a block it is an i32 size, zeros up
/// to the next offset *of the stream* that is a multiple of 4 (not counted in the size), and the content.
///
/// ```
/// use nettrace_synth::ObjectStream;
///
/// // An object of an unknown type, which readers skip by its size.
/// let mut stream = ObjectStream::new(b"Nettrace", 5);
/// stream.block("FutureBlock", 3, 2, &[1, 2, 3]);
/// stream.null_reference();
/// assert!(stream.into_vec().windows(11).any(|bytes| bytes == b"FutureBlock"));
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat_v5.md`, "Objects"; `NetPerfFormat.md`.
#[derive(Clone, Debug)]
pub struct ObjectStream {
    out: Bytes,
    begin: u8,
}

/// The tag that ends the stream.
const NULL_REFERENCE: u8 = 1;
/// The tag that ends an object or a type.
const END_OBJECT: u8 = 6;
const SIGNATURE: &str = "!FastSerialization.1";

impl ObjectStream {
    /// Creates a stream that begins with `magic` and the signature. Its objects begin with the tag `begin`.
    pub fn new(magic: &[u8], begin: u8) -> Self {
        let mut out = Bytes::new();
        out.raw(magic).counted_string(SIGNATURE);
        Self { out, begin }
    }

    /// Returns the offset of the next byte.
    pub fn offset(&self) -> usize {
        self.out.len()
    }

    /// Returns the stream under construction.
    pub fn bytes(&mut self) -> &mut Bytes {
        &mut self.out
    }

    /// Writes the tags and the type in front of an object's data.
    pub fn begin_object(&mut self, name: &str, version: i32, min_reader_version: i32) -> &mut Bytes {
        self.out.u8(self.begin).u8(self.begin).u8(NULL_REFERENCE);
        self.out.i32(version).i32(min_reader_version).counted_string(name).u8(END_OBJECT)
    }

    /// Writes the tag after an object's data.
    pub fn end_object(&mut self) {
        self.out.u8(END_OBJECT);
    }

    /// Writes an object with a block as its data.
    pub fn block(&mut self, name: &str, version: i32, min_reader_version: i32, content: &[u8]) {
        self.begin_object(name, version, min_reader_version)
            .u32(length32(content.len()))
            .align4()
            .raw(content);
        self.end_object();
    }

    /// Writes the end of the stream.
    pub fn null_reference(&mut self) {
        self.out.u8(NULL_REFERENCE);
    }

    /// Returns the bytes of the stream.
    pub fn into_vec(self) -> Vec<u8> {
        self.out.into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::ObjectStream;

    #[test]
    fn a_block_is_aligned_in_the_stream() {
        let mut stream = ObjectStream::new(b"M", 5);
        assert_eq!(stream.offset(), 25);
        stream.block("Thing", 2, 1, &[7, 8, 9]);
        stream.null_reference();
        let expected = [
            &b"M\x14\0\0\0!FastSerialization.1"[..],
            &[5, 5, 1, 2, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0],
            b"Thing\x06",
            &[3, 0, 0, 0],
            &[0, 0], // from offset 50 to 52
            &[7, 8, 9],
            &[6, 1],
        ];
        assert_eq!(stream.into_vec(), expected.concat());
    }
}
