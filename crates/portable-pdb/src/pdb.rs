//! A portable PDB.

use uuid::Uuid;

use crate::document::{self, DocumentId};
use crate::error::Result;
use crate::point::SequencePoints;
use crate::stream::{Streams, Tables};

/// Which build a PDB is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PdbId {
    /// What the program's [`CodeView`](crate::CodeView) has, too, and what runtimes tell of their modules.
    pub guid: Uuid,
    /// The time stamp of the program's debug entry, or a part of a hash.
    pub stamp: u32,
}

/// A line of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The file.
    pub document: DocumentId,
    /// The line, from 1 on.
    pub line: u32,
}

/// A portable PDB in memory.
#[derive(Debug, Clone, Copy)]
pub struct Pdb<'a> {
    id: PdbId,
    streams: Streams<'a>,
    tables: Tables<'a>,
}

/// The table of methods, in the high byte of their tokens.
const METHOD_DEF: u32 = 0x06;

impl<'a> Pdb<'a> {
    /// Reads where everything is.
    ///
    /// # Errors
    /// The bytes are no portable PDB, or one whose tables do not fit into it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let streams = Streams::parse(bytes)?;
        let mut at = streams.pdb;
        let guid = at.bytes(16, "id")?.first_chunk().copied().unwrap_or_default();
        let id = PdbId { guid: Uuid::from_bytes_le(guid), stamp: at.u32("id")? };
        Ok(Self { id, streams, tables: Tables::parse(streams.tables)? })
    }

    /// Which build it is of.
    pub const fn id(&self) -> PdbId {
        self.id
    }

    /// How many methods there are, with lines or without: their tokens are 0x06000001 and on.
    pub const fn methods(&self) -> u32 {
        self.tables.methods.count
    }

    /// How many source files there are.
    pub const fn documents(&self) -> u32 {
        self.tables.documents.count
    }

    /// The sequence points of a method; none if its token is that of no method.
    ///
    /// # Errors
    /// What the PDB says of the method is damaged.
    pub fn sequence_points(&self, method: u32) -> Result<SequencePoints<'a>> {
        let row = (method >> 24 == METHOD_DEF).then(|| self.tables.methods.row(method & 0x00ff_ffff));
        let Some(Some(mut row)) = row else { return Ok(SequencePoints::none()) };
        let document = row.index(self.tables.wide_documents(), "document of a method")?;
        match row.index(self.tables.wide_blobs, "sequence points")? {
            0 => Ok(SequencePoints::none()),
            blob => SequencePoints::new(self.streams.blob(blob)?, document),
        }
    }

    /// The line that IL of a method came from: that of the last sequence point at or before it that has one, which is what the
    /// runtime prints in stack traces.
    ///
    /// # Errors
    /// What the PDB says of the method up to there is damaged.
    pub fn line(&self, method: u32, il_offset: u32) -> Result<Option<Line>> {
        let mut line = None;
        for point in self.sequence_points(method)? {
            let point = point?;
            if point.il_offset > il_offset {
                break;
            }
            if let Some(place) = point.place {
                line = Some(Line { document: point.document, line: place.start_line });
            }
        }
        Ok(line)
    }

    /// The name of a source file, as its compiler was told it.
    ///
    /// # Errors
    /// There is no such file, or its name is damaged.
    pub fn document(&self, document: DocumentId) -> Result<String> {
        document::name(&self.streams, &self.tables, document)
    }
}
