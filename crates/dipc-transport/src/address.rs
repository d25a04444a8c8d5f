use std::fmt;
use std::path::{Path, PathBuf};

/// Where a diagnostic port is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// A Unix domain socket. The path may be longer than a socket address holds (107 bytes on Linux).
    Unix(PathBuf),
}

impl Address {
    /// The path of a Unix domain socket.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Self {
        Self::Unix(path)
    }
}

impl From<&Path> for Address {
    fn from(path: &Path) -> Self {
        Self::Unix(path.to_path_buf())
    }
}
