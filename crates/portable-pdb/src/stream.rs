//! The metadata root: its streams, the blob heap, and the two tables that lines need.

use crate::cursor::Cursor;
use crate::error::{Error, Result};

/// The magic of metadata, the first bytes of a portable PDB.
const MAGIC: u32 = 0x424a_5342;
/// The first bytes of a Windows PDB.
const MSF: &[u8] = b"Microsoft C/C++";
/// The most streams that are read.
const MAX_STREAMS: u16 = 64;

/// The streams that lines need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams<'a> {
    pub(crate) pdb: Cursor<'a>,
    pub(crate) tables: Cursor<'a>,
    pub(crate) blobs: Cursor<'a>,
}

/// The streams that the types of a program need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramStreams<'a> {
    pub(crate) tables: Cursor<'a>,
    strings: Cursor<'a>,
    blobs: Option<Cursor<'a>>,
}

impl<'a> ProgramStreams<'a> {
    /// Returns a string, without the NUL at its end.
    pub(crate) fn string(&self, index: u32) -> Result<&'a [u8]> {
        let at = self.strings.from(usize::try_from(index).unwrap_or(usize::MAX), "string inside the heap")?;
        Ok(at.rest().split(|byte| *byte == 0).next().unwrap_or_default())
    }

    /// Returns a blob, without the length at its beginning.
    pub(crate) fn blob(&self, index: u32) -> Result<&'a [u8]> {
        let blobs = self.blobs.ok_or(Error::NotPortable("it is metadata without the stream #Blob"))?;
        Ok(blob(blobs, index)?.rest())
    }
}

/// The streams of metadata, by name.
#[derive(Default)]
struct Named<'a> {
    pdb: Option<Cursor<'a>>,
    tables: Option<Cursor<'a>>,
    blobs: Option<Cursor<'a>>,
    strings: Option<Cursor<'a>>,
}

impl<'a> Streams<'a> {
    /// Finds the streams of a program's metadata.
    pub(crate) fn of_program(bytes: &'a [u8]) -> Result<ProgramStreams<'a>> {
        let named = Self::named(bytes)?;
        match (named.tables, named.strings) {
            (Some(tables), Some(strings)) => Ok(ProgramStreams { tables, strings, blobs: named.blobs }),
            _ => Err(Error::NotPortable("it is metadata without the streams #~ and #Strings")),
        }
    }

    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Named { pdb, tables, blobs, .. } = Self::named(bytes)?;
        match (pdb, tables, blobs) {
            (Some(pdb), Some(tables), Some(blobs)) => Ok(Self { pdb, tables, blobs }),
            _ => Err(Error::NotPortable("it is other metadata, without the streams #Pdb, #~ and #Blob")),
        }
    }

    fn named(bytes: &'a [u8]) -> Result<Named<'a>> {
        if bytes.starts_with(MSF) {
            return Err(Error::NotPortable("it is a Windows PDB"));
        }
        let file = Cursor::new(bytes);
        let mut at = file;
        if at.u32("").ok() != Some(MAGIC) {
            return Err(Error::NotPortable("it does not begin with BSJB"));
        }
        // Major and minor version, reserved.
        at.bytes(8, "header")?;
        let version = at.u32("length of the version")?;
        at.bytes(usize::try_from(version).unwrap_or(usize::MAX), "version")?;
        at.u16("flags")?;
        let count = at.u16("number of streams")?;
        let mut named = Named::default();
        for _ in 0..count.min(MAX_STREAMS) {
            let offset = at.u32("offset of a stream")?;
            let size = at.u32("size of a stream")?;
            let part = file.part(
                usize::try_from(offset).unwrap_or(usize::MAX),
                usize::try_from(size).unwrap_or(usize::MAX),
                "stream inside the file",
            )?;
            match name(&mut at)? {
                b"#Pdb" => named.pdb = Some(part),
                // The second is that of metadata that a program has made, which can have tables of pointers.
                b"#~" | b"#-" => named.tables = Some(part),
                b"#Blob" => named.blobs = Some(part),
                b"#Strings" => named.strings = Some(part),
                _ => {}
            }
        }
        Ok(named)
    }

    /// Returns a blob, which begins with its length.
    pub(crate) fn blob(&self, index: u32) -> Result<Cursor<'a>> {
        blob(self.blobs, index)
    }
}

fn blob(heap: Cursor<'_>, index: u32) -> Result<Cursor<'_>> {
    let mut at = heap.from(usize::try_from(index).unwrap_or(usize::MAX), "blob inside the heap")?;
    let length = at.compressed_u32("length of a blob")?;
    at.part(0, usize::try_from(length).unwrap_or(usize::MAX), "blob inside the heap")
}

/// Reads the name of a stream: up to a NUL, padded to four bytes.
fn name<'a>(at: &mut Cursor<'a>) -> Result<&'a [u8]> {
    const MAX_LEN: usize = 32;
    let length = at.rest().iter().take(MAX_LEN).position(|byte| *byte == 0);
    let length = length.ok_or(at.damaged("name of a stream"))?;
    let padded = length.saturating_add(1).next_multiple_of(4);
    let padded = at.bytes(padded, "name of a stream")?;
    Ok(padded.get(..length).unwrap_or_default())
}

/// The numbers of tables.
const DOCUMENT: u32 = 0x30;
const METHOD_DEBUG_INFORMATION: u32 = 0x31;

/// A table: rows of equal size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table<'a> {
    rows: Cursor<'a>,
    pub(crate) count: u32,
    size: usize,
}

impl<'a> Table<'a> {
    /// Returns a row; rows count from 1.
    pub(crate) fn row(&self, number: u32) -> Option<Cursor<'a>> {
        let index = number.checked_sub(1).filter(|index| *index < self.count)?;
        let from = usize::try_from(index).ok()?.checked_mul(self.size)?;
        self.rows.part(from, self.size, "row of a table").ok()
    }
}

/// The two tables, and the width of the indexes in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tables<'a> {
    pub(crate) documents: Table<'a>,
    pub(crate) methods: Table<'a>,
    pub(crate) wide_blobs: bool,
}

impl<'a> Tables<'a> {
    pub(crate) fn parse(mut at: Cursor<'a>) -> Result<Self> {
        // Reserved, major and minor version.
        at.bytes(6, "header of the tables")?;
        let heaps = at.u8("sizes of heaps")?;
        at.u8("header of the tables")?;
        let present = at.u64("list of tables")?;
        at.u64("list of sorted tables")?;
        if present & ((1 << DOCUMENT) - 1) != 0 {
            return Err(Error::NotPortable("it has the tables of a program"));
        }
        let (mut documents, mut methods) = (0, 0);
        for table in (0..u64::BITS).filter(|table| present >> table & 1 != 0) {
            let rows = at.u32("number of rows")?;
            match table {
                DOCUMENT => documents = rows,
                METHOD_DEBUG_INFORMATION => methods = rows,
                _ => {}
            }
        }
        let wide_blobs = heaps & 4 != 0;
        let (blob, guid) = (index_size(wide_blobs), index_size(heaps & 2 != 0));
        // Name, hash algorithm, hash, language.
        let document = blob.saturating_add(guid).saturating_mul(2);
        // Document, sequence points.
        let method = index_size(is_wide(documents)).saturating_add(blob);
        let documents = table(&mut at, documents, document)?;
        let methods = table(&mut at, methods, method)?;
        Ok(Self { documents, methods, wide_blobs })
    }

    /// Returns whether indexes of documents have four bytes.
    pub(crate) const fn wide_documents(&self) -> bool {
        is_wide(self.documents.count)
    }
}

/// Bytes of an index.
pub(crate) const fn index_size(is_wide: bool) -> usize {
    if is_wide { 4 } else { 2 }
}

const fn is_wide(rows: u32) -> bool {
    rows > 0xffff
}

fn table<'a>(at: &mut Cursor<'a>, count: u32, size: usize) -> Result<Table<'a>> {
    let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(size)).unwrap_or(usize::MAX);
    let rows = at.part(0, bytes, "rows of a table")?;
    at.bytes(bytes, "rows of a table")?;
    Ok(Table { rows, count, size })
}
