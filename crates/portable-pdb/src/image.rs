//! The debug directory of a program (a PE image), which refers to its PDB or has it embedded.

use std::io::Read as _;

use flate2::read::DeflateDecoder;
use object::LittleEndian as LE;
use object::pe::{
    IMAGE_DEBUG_TYPE_CODEVIEW, IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR, IMAGE_DIRECTORY_ENTRY_DEBUG,
    IMAGE_NT_OPTIONAL_HDR64_MAGIC, ImageDebugDirectory, ImageDosHeader, ImageNtHeaders32, ImageNtHeaders64,
};
use object::read::pe::{ImageNtHeaders, optional_header_magic};
use uuid::Uuid;

use crate::cursor::Cursor;
use crate::error::{Error, Result};

/// The type of an entry with an embedded portable PDB, which is not in the PE specification.
const EMBEDDED_PORTABLE_PDB: u32 = 17;

/// The debug directory of a program (`App.dll`).
///
/// ```
/// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
/// use portable_pdb::Image;
///
/// let image = Image::parse(program)?;
/// // A PDB beside the program has the same GUID if it belongs to it.
/// println!("{:?}", image.code_view().map(|code_view| code_view.guid));
/// assert!(image.has_embedded_pdb() && Image::parse(b"a text").is_err());
/// # Ok::<(), portable_pdb::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    code_view: Option<CodeView<'a>>,
    /// The unpacked size, and the packed bytes.
    embedded: Option<(u32, &'a [u8])>,
}

/// A reference to the PDB that a program was built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeView<'a> {
    /// The GUID of the [`PdbId`](crate::PdbId).
    pub guid: Uuid,
    /// 1 for portable PDBs.
    pub age: u32,
    /// The path of the PDB when it was built: text that should be UTF-8.
    pub path: &'a [u8],
}

impl<'a> Image<'a> {
    /// Reads the debug directory. A program without one has neither a reference nor an embedded PDB.
    ///
    /// # Errors
    /// The bytes are not a PE image.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let magic = optional_header_magic(bytes).map_err(|error| not_an_image(&error))?;
        let entries = if magic == IMAGE_NT_OPTIONAL_HDR64_MAGIC {
            debug_directory::<ImageNtHeaders64>(bytes)
        } else {
            debug_directory::<ImageNtHeaders32>(bytes)
        };
        let entries = entries.map_err(|error| not_an_image(&error))?;
        Ok(Self::of_debug_entries(
            entries.iter().filter_map(|entry| Some((entry.typ.get(LE).0, data(bytes, entry)?))),
        ))
    }

    /// Reads entries of a debug directory, such as that of a program in the memory of a process: the type and
    /// the data of each.
    ///
    /// ```
    /// use portable_pdb::Image;
    ///
    /// let code_view = [&b"RSDS"[..], &[7; 16], &[1, 0, 0, 0], b"/src/App.pdb\0"].concat();
    /// let image = Image::of_debug_entries([(2, &*code_view)]);
    /// assert_eq!(image.code_view().unwrap().path, b"/src/App.pdb");
    /// ```
    pub fn of_debug_entries(entries: impl IntoIterator<Item = (u32, &'a [u8])>) -> Self {
        let mut image = Self { code_view: None, embedded: None };
        for (kind, data) in entries {
            if kind == IMAGE_DEBUG_TYPE_CODEVIEW.0 {
                image.code_view = image.code_view.or_else(|| code_view(data));
            } else if kind == EMBEDDED_PORTABLE_PDB {
                image.embedded = image.embedded.or_else(|| embedded(data));
            }
        }
        image
    }

    /// Returns the reference to its PDB, if any.
    pub const fn code_view(&self) -> Option<CodeView<'a>> {
        self.code_view
    }

    /// Returns true if the program has an embedded PDB.
    pub const fn has_embedded_pdb(&self) -> bool {
        self.embedded.is_some()
    }

    /// Returns the stated decompressed size of the embedded PDB in bytes; 0 without one. Decompression stops
    /// there.
    pub fn embedded_pdb_size(&self) -> u64 {
        self.embedded.map_or(0, |(size, _)| size.into())
    }

    /// Unpacks the embedded PDB; `None` for a program without one.
    ///
    /// ```
    /// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
    /// use portable_pdb::{Error, Image};
    ///
    /// let image = Image::parse(program)?;
    /// let pdb = image.embedded_pdb(64 << 20)?.expect("an embedded PDB");
    /// assert!(pdb.starts_with(b"BSJB"));
    /// // Sizes of untrusted files are bounded.
    /// assert!(matches!(image.embedded_pdb(100), Err(Error::TooLarge { .. })));
    /// # Ok::<(), portable_pdb::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the PDB does not unpack to its stated size, or the size exceeds `limit` bytes.
    pub fn embedded_pdb(&self, limit: usize) -> Result<Option<Vec<u8>>> {
        let Some((size, packed)) = self.embedded else { return Ok(None) };
        let limit = limit as u64;
        if u64::from(size) > limit {
            return Err(Error::TooLarge { what: "the embedded PDB", bytes: size.into(), limit });
        }
        let mut pdb = Vec::new();
        // The buffer grows with the decompressed bytes: a wrong size allocates nothing.
        let unpacked = DeflateDecoder::new(packed).take(u64::from(size)).read_to_end(&mut pdb);
        match unpacked {
            Ok(length) if length as u64 == u64::from(size) => Ok(Some(pdb)),
            Ok(_) => Err(Error::Embedded("it is shorter than it says it is")),
            Err(_) => Err(Error::Embedded("it does not unpack")),
        }
    }
}

/// Returns the metadata of a program.
///
/// # Errors
/// The bytes are not a PE image of .NET.
pub(crate) fn metadata(bytes: &[u8]) -> Result<&[u8]> {
    let magic = optional_header_magic(bytes).map_err(|error| not_an_image(&error))?;
    let metadata = if magic == IMAGE_NT_OPTIONAL_HDR64_MAGIC {
        metadata_of::<ImageNtHeaders64>(bytes)
    } else {
        metadata_of::<ImageNtHeaders32>(bytes)
    };
    metadata
        .map_err(|error| not_an_image(&error))?
        .ok_or_else(|| Error::NotAnImage("it has no metadata".to_owned()))
}

fn metadata_of<Headers: ImageNtHeaders>(bytes: &[u8]) -> object::Result<Option<&[u8]>> {
    let mut offset = ImageDosHeader::parse(bytes)?.nt_headers_offset().into();
    let (headers, directories) = Headers::parse(bytes, &mut offset)?;
    let sections = headers.sections(bytes, offset)?;
    let Some(directory) = directories.get(IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR) else { return Ok(None) };
    let mut header = Cursor::new(directory.data(bytes, &sections)?);
    let mut place = || {
        // Size, and version of the runtime.
        header.bytes(8, "header of .NET").ok()?;
        let address = header.u32("address of the metadata").ok()?;
        Some((address, usize::try_from(header.u32("size of the metadata").ok()?).ok()?))
    };
    Ok(place().and_then(|(address, size)| sections.pe_data_at(bytes, address)?.get(..size)))
}

fn not_an_image(error: &object::Error) -> Error {
    Error::NotAnImage(error.to_string())
}

fn debug_directory<Headers: ImageNtHeaders>(bytes: &[u8]) -> object::Result<&[ImageDebugDirectory]> {
    let mut offset = ImageDosHeader::parse(bytes)?.nt_headers_offset().into();
    let (headers, directories) = Headers::parse(bytes, &mut offset)?;
    let sections = headers.sections(bytes, offset)?;
    let Some(directory) = directories.get(IMAGE_DIRECTORY_ENTRY_DEBUG) else { return Ok(&[]) };
    let entries = directory.data(bytes, &sections)?;
    let count = entries.len().checked_div(size_of::<ImageDebugDirectory>()).unwrap_or(0);
    let (entries, _) = object::pod::slice_from_bytes(entries, count).unwrap_or_default();
    Ok(entries)
}

/// Returns the data of an entry; `None` if it is not in the file.
fn data<'a>(bytes: &'a [u8], entry: &ImageDebugDirectory) -> Option<&'a [u8]> {
    let start = usize::try_from(entry.pointer_to_raw_data.get(LE)).ok()?;
    let size = usize::try_from(entry.size_of_data.get(LE)).ok()?;
    bytes.get(start..)?.get(..size)
}

/// Reads a CodeView entry: `RSDS`, GUID, age, path.
fn code_view(data: &[u8]) -> Option<CodeView<'_>> {
    let mut at = Cursor::new(data.strip_prefix(b"RSDS")?);
    let guid = at.array("GUID").ok()?;
    let age = at.u32("age").ok()?;
    let path = at.rest().split(|byte| *byte == 0).next().unwrap_or_default();
    Some(CodeView { guid: Uuid::from_bytes_le(guid), age, path })
}

/// Reads the entry of an embedded PDB: `MPDB`, the unpacked size, the packed bytes.
fn embedded(data: &[u8]) -> Option<(u32, &[u8])> {
    let mut at = Cursor::new(data.strip_prefix(b"MPDB")?);
    Some((at.u32("unpacked size").ok()?, at.rest()))
}
