//! What can be wrong with a file.

/// Why a PDB, or the program that it belongs to, cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no portable PDB at all.
    #[error("not a portable PDB: {0}")]
    NotPortable(&'static str),
    /// Something in the PDB cannot mean anything.
    #[error("damaged PDB: at offset {offset}: {what}")]
    Damaged {
        /// Where, in bytes from the beginning of the PDB.
        offset: usize,
        /// What was expected there.
        what: &'static str,
    },
    /// The bytes are no program, or one that is damaged.
    #[error("not a program: {0}")]
    NotAnImage(String),
    /// The PDB in a program does not unpack.
    #[error("embedded PDB: {0}")]
    Embedded(&'static str),
    /// Something is larger than it may be.
    #[error("{what} takes {bytes} bytes, more than the {limit} that are allowed")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// How large it is, or says it is.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
}

pub(crate) type Result<T> = core::result::Result<T, Error>;
