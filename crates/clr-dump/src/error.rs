//! Errors of reading a core dump or a process.

use std::borrow::Cow;
use std::io;

use crate::contracts::ContractsError;
use crate::memory::Missing;
use crate::processor::{Machine, Processor};

/// A reason why a core dump or a process cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("{what}: {error}")]
    Io {
        /// The part that was read.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// The core dump cannot be written.
    #[error("writing: {error}")]
    Write {
        /// The system's error.
        error: io::Error,
    },
    /// The file is not a core dump that can be read.
    #[error("not a core dump of 64-bit Linux: {0}")]
    NotACore(&'static str),
    /// The file ends before the number and place of its parts are known.
    #[error("the core dump is truncated: it has {bytes} bytes, less than its headers take")]
    TruncatedHeader {
        /// The length of the file.
        bytes: u64,
    },
    /// A copy would have more memory than is kept track of.
    #[error("the copy would have more than 16 GiB of structures")]
    TooLarge,
    /// The memory lacks needed data.
    #[error("{what}: {missing}")]
    Missing {
        /// The structure that was read.
        what: &'static str,
        /// The missing memory.
        missing: Missing,
    },
    /// The processor has another architecture than x86-64 and arm64.
    #[error("programs of {0} are not read yet, only those of x86-64 and arm64")]
    UnsupportedMachine(Machine),
    /// No mapped file is a runtime.
    #[error("it has no .NET runtime: no mapped file is one")]
    NoRuntime,
    /// The runtime's build has unknown structures.
    #[error("the structures of this build of the runtime are not known: {path}, build id {build_id}")]
    UnknownRuntime {
        /// The path of the mapped file.
        path: String,
        /// The runtime's build id in hexadecimal.
        build_id: String,
    },
    /// The runtime's structures are not as they should be in this version.
    #[error("the structures of the runtime are not those of {version}: {what}")]
    WrongLayout {
        /// The version.
        version: String,
        /// The check that failed.
        what: Cow<'static, str>,
    },
    /// The structures of this build are not known, and its own description cannot be read.
    #[error(transparent)]
    Contracts(#[from] ContractsError),
}

impl Machine {
    /// Fails for architectures that are not read.
    ///
    /// # Errors
    /// [`Error::UnsupportedMachine`].
    pub const fn check(self) -> Result<(), Error> {
        match Processor::of(self) {
            Some(_) => Ok(()),
            None => Err(Error::UnsupportedMachine(self)),
        }
    }
}

impl Error {
    /// Adds the structure that was read to missing memory.
    pub(crate) const fn missing(what: &'static str) -> impl FnOnce(Missing) -> Self {
        move |missing| Self::Missing { what, missing }
    }
}
