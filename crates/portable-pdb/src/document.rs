//! Documents: the source files.

use crate::error::{Error, Result};
use crate::stream::{Streams, Tables};

/// A source file of a PDB: the number of a row, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentId(pub(crate) u32);

impl DocumentId {
    /// Returns the row's number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Maximum length of a name in bytes. Parts of names are shared, so a small file could have a huge name.
const MAX_NAME_LEN: usize = 32 << 10;

/// Returns the name of a document. Its blob has a separator and the parts to join with it, each a blob of its
/// own.
pub(crate) fn name(streams: &Streams<'_>, tables: &Tables<'_>, document: DocumentId) -> Result<String> {
    let row = tables.documents.row(document.0);
    let mut row = row.ok_or(Error::Damaged { offset: 0, what: "number of a document" })?;
    let mut at = streams.blob(row.index(tables.wide.blobs, "name of a document")?)?;
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
        let part = at.compressed_u32("part of a name")?;
        // Index 0 is the empty part.
        if part != 0 {
            name.extend_from_slice(streams.blob(part)?.rest());
        }
        if name.len() > MAX_NAME_LEN {
            let (bytes, limit) = (name.len() as u64, MAX_NAME_LEN as u64);
            return Err(Error::TooLarge { what: "the name of a document", bytes, limit });
        }
    }
    Ok(String::from_utf8_lossy(&name).into_owned())
}
