//! A portable PDB.

use uuid::Uuid;

use crate::document::{self, DocumentId};
use crate::error::{Error, Result};
use crate::local_variable::{self, LocalVariables};
use crate::method_lines::{Line, MethodLines};
use crate::sequence_point::SequencePoints;
use crate::stream::{Streams, Tables};

/// The id of a PDB, which is new in every build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PdbId {
    /// The GUID that the program's [`CodeView`](crate::CodeView) and the runtime's module events also have.
    pub guid: Uuid,
    /// The time stamp of the program's debug entry, or a part of a hash.
    pub stamp: u32,
}

/// A portable PDB in memory.
///
/// ```
/// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
/// use portable_pdb::{Image, Pdb};
///
/// let image = Image::parse(program)?;
/// let embedded = image.embedded_pdb(64 << 20)?.expect("an embedded PDB");
/// let pdb = Pdb::parse(&embedded)?;
/// assert_eq!(Some(pdb.id().guid), image.code_view().map(|code_view| code_view.guid));
/// assert!(pdb.method_count() > 0 && pdb.document_count() > 0);
/// # Ok::<(), portable_pdb::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Pdb<'a> {
    id: PdbId,
    streams: Streams<'a>,
    tables: Tables<'a>,
}

/// The number of the table MethodDef, in the high byte of a method's token.
const METHOD_DEF: u32 = 0x06;

impl<'a> Pdb<'a> {
    /// Finds the streams and tables.
    ///
    /// # Errors
    /// The bytes are not a portable PDB, or its tables do not fit into it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let streams = Streams::parse(bytes)?;
        let mut at = streams.pdb;
        let guid = Uuid::from_bytes_le(at.array("id")?);
        let id = PdbId { guid, stamp: at.u32("id")? };
        Ok(Self { id, streams, tables: Tables::parse(&streams)? })
    }

    /// Returns its id.
    pub const fn id(&self) -> PdbId {
        self.id
    }

    /// Returns the number of methods, with or without lines. Their tokens start at 0x06000001.
    pub const fn method_count(&self) -> u32 {
        self.tables.methods.count
    }

    /// Returns the number of source files.
    pub const fn document_count(&self) -> u32 {
        self.tables.documents.count
    }

    /// Returns the sequence points of a method; none if the token is not that of a method.
    ///
    /// ```
    /// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
    /// # let embedded = portable_pdb::Image::parse(program)?.embedded_pdb(1 << 20)?.unwrap_or_default();
    /// # let pdb = portable_pdb::Pdb::parse(&embedded)?;
    /// for point in pdb.sequence_points(0x0600_0001)? {
    ///     let point = point?;
    ///     if let Some(span) = point.span {
    ///         println!("IL {:#x}: line {}, column {}", point.il_offset, span.start_line, span.start_column);
    ///     }
    /// }
    /// assert!(pdb.sequence_points(0x0600_0001)?.next().is_some());
    /// # Ok::<(), portable_pdb::Error>(())
    /// ```
    ///
    /// # Errors
    /// The row of the method is damaged.
    pub fn sequence_points(&self, method: u32) -> Result<SequencePoints<'a>> {
        if method >> 24 != METHOD_DEF {
            return Ok(SequencePoints::empty());
        }
        let Some(mut row) = self.tables.methods.row(method & 0x00ff_ffff) else {
            return Ok(SequencePoints::empty());
        };
        let document = row.index(self.tables.wide_documents(), "document of a method")?;
        match row.index(self.tables.wide.blobs, "sequence points")? {
            0 => Ok(SequencePoints::empty()),
            blob => SequencePoints::new(self.streams.blob(blob)?, document),
        }
    }

    /// Returns the source line of an IL offset: that of the last sequence point with a line at or before it,
    /// as the runtime prints it in stack traces.
    ///
    /// ```
    /// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
    /// # let embedded = portable_pdb::Image::parse(program)?.embedded_pdb(1 << 20)?.unwrap_or_default();
    /// # let pdb = portable_pdb::Pdb::parse(&embedded)?;
    /// // The first instruction of `Main`.
    /// let line = pdb.line(0x0600_0001, 0)?.expect("a line");
    /// assert_eq!((pdb.document_name(line.document)?.as_str(), line.line), ("/_/Lines.cs", 15));
    /// // The token of a type is not a method.
    /// assert_eq!(pdb.line(0x0200_0001, 0)?, None);
    /// # Ok::<(), portable_pdb::Error>(())
    /// ```
    ///
    /// # Errors
    /// The row of the method or a sequence point up to there is damaged.
    pub fn line(&self, method: u32, il_offset: u32) -> Result<Option<Line>> {
        let mut line = None;
        for point in self.sequence_points(method)? {
            let point = point?;
            if point.il_offset > il_offset {
                break;
            }
            if let Some(span) = point.span {
                line = Some(Line { document: point.document, line: span.start_line });
            }
        }
        Ok(line)
    }

    /// Returns the lines of a method, for many offsets: the sequence points are decoded once.
    ///
    /// ```
    /// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
    /// # let embedded = portable_pdb::Image::parse(program)?.embedded_pdb(1 << 20)?.unwrap_or_default();
    /// # let pdb = portable_pdb::Pdb::parse(&embedded)?;
    /// // For many offsets of one method.
    /// let lines = pdb.method_lines(0x0600_0001, 1 << 20)?;
    /// let numbers: Vec<_> = (0..100).filter_map(|il_offset| Some(lines.line(il_offset)?.line)).collect();
    /// assert!(numbers.is_sorted() && numbers.first() == Some(&15), "{numbers:?}");
    /// # Ok::<(), portable_pdb::Error>(())
    /// ```
    ///
    /// # Errors
    /// The row of the method is damaged, or its sequence points take more than `limit` bytes. Points after a
    /// damaged one are left out.
    pub fn method_lines(&self, method: u32, limit: usize) -> Result<MethodLines> {
        let points = self.sequence_points(method)?;
        let bytes = points.byte_count();
        if bytes > limit {
            let (bytes, limit) = (bytes as u64, limit as u64);
            return Err(Error::TooLarge { what: "the list of sequence points", bytes, limit });
        }
        Ok(MethodLines::new(points))
    }

    /// Returns the local variables of a method, with the parts of its IL in which each has its name; none if
    /// the token is not that of a method.
    ///
    /// ```
    /// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
    /// # let embedded = portable_pdb::Image::parse(program)?.embedded_pdb(1 << 20)?.unwrap_or_default();
    /// # let pdb = portable_pdb::Pdb::parse(&embedded)?;
    /// for variable in pdb.local_variables(0x0600_0001)?.variables() {
    ///     println!("{} is {} in {:?}", variable.slot, variable.name, variable.scope);
    /// }
    /// # Ok::<(), portable_pdb::Error>(())
    /// ```
    ///
    /// # Errors
    /// A scope or a variable is damaged, or the method has more than 65,536 variables.
    pub fn local_variables(&self, method: u32) -> Result<LocalVariables> {
        if method >> 24 != METHOD_DEF {
            return Ok(LocalVariables::default());
        }
        local_variable::read(&self.streams, &self.tables, method & 0x00ff_ffff)
    }

    /// Returns the name of a source file, as it was given to the compiler.
    ///
    /// # Errors
    /// No source file has this number, or its name is damaged.
    pub fn document_name(&self, document: DocumentId) -> Result<String> {
        document::name(&self.streams, &self.tables, document)
    }
}
