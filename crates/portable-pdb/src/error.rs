//! Errors of reading a file.

/// A reason why a PDB, or its program, cannot be read.
///
/// ```
/// use portable_pdb::Pdb;
///
/// let error = Pdb::parse(b"MZ").expect_err("a program, not its PDB");
/// eprintln!("App.dll: {error}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not a portable PDB.
    #[error("not a portable PDB: {0}")]
    NotPortable(&'static str),
    /// A value in the PDB is missing or out of range.
    #[error("damaged PDB: at offset {offset}: {what}")]
    Damaged {
        /// The offset in bytes from the beginning of the PDB.
        offset: usize,
        /// The expected value.
        what: &'static str,
    },
    /// The bytes are not a program, or the program is damaged.
    #[error("not a program: {0}")]
    NotAnImage(String),
    /// The PDB in a program cannot be decompressed.
    #[error("embedded PDB: {0}")]
    Embedded(&'static str),
    /// The list of the files in a single-file program is damaged, or one of the files.
    #[error("single-file program: {0}")]
    Bundle(&'static str),
    /// A size is above its limit.
    #[error("{what} takes {bytes} bytes, more than the {limit} that are allowed")]
    TooLarge {
        /// The name of the value that is too large.
        what: &'static str,
        /// The size in bytes, or the part of it that is known.
        bytes: u64,
        /// Maximum allowed size in bytes.
        limit: u64,
    },
}

pub(crate) type Result<T> = core::result::Result<T, Error>;
