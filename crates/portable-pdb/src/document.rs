//! Documents: the source files.

use crate::error::{Error, Result};
use crate::stream::{Streams, Tables};

/// A source file of a PDB: the number of a row, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentId(pub(crate) u32);

impl DocumentId {
    /// The row's number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Bytes of a name; parts of names are shared, so that a small file could have a huge one.
const LONGEST: usize = 32 << 10;

/// The name of a document: a separator, and the parts that it stands between, each a blob of its own.
pub(crate) fn name(streams: &Streams<'_>, tables: &Tables<'_>, document: DocumentId) -> Result<String> {
    let row = tables.documents.row(document.0);
    let mut row = row.ok_or(Error::Damaged { offset: 0, what: "document that is there" })?;
    let mut at = streams.blob(row.index(tables.wide_blobs, "name of a document")?)?;
    if at.is_empty() {
        return Ok(String::new());
    }
    let separator = at.u8("separator of a name")?;
    let mut name = Vec::new();
    let mut is_first = true;
    while !at.is_empty() {
        if !is_first && separator != 0 {
            name.push(separator);
        }
        is_first = false;
        let part = at.unsigned("part of a name")?;
        // Index 0 is the empty part.
        if part != 0 {
            name.extend_from_slice(streams.blob(part)?.rest());
        }
        if name.len() > LONGEST {
            let (bytes, limit) = (name.len() as u64, LONGEST as u64);
            return Err(Error::TooLarge { what: "the name of a document", bytes, limit });
        }
    }
    Ok(String::from_utf8_lossy(&name).into_owned())
}
