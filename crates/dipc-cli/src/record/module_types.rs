//! The types that the modules of a process define, read from their files.

use std::io::Read as _;
use std::path::Path;

use dipc_client::ProcessView;
use gcdump::DefinedType;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 256 << 20;
/// The most bytes of all files together. A program of a thousand modules has a few hundred megabytes.
const MOST: u64 = 2 << 30;

/// A reader of module files as a process sees them.
pub(crate) struct ModuleTypes {
    view: Option<ProcessView>,
    left: u64,
}

impl ModuleTypes {
    /// Creates a reader of the files of a process. If the pid is unknown, it reads none.
    pub(crate) fn of(pid: Option<u32>) -> Self {
        Self { view: pid.map(ProcessView::of), left: MOST }
    }

    /// Returns the types of the module with this path, in the order of their tokens. `None` if it has no
    /// readable file, like a module generated at run time, or if too much was already read.
    pub(crate) fn read(&mut self, path: &str) -> Option<Vec<DefinedType>> {
        let path = Path::new(path);
        let view = self.view.as_ref().filter(|_| path.is_absolute() && self.left > 0)?;
        // Links were resolved as in the process, and only a regular file is opened.
        let file = dipc_transport::open_regular(&view.locate(path).ok()?).ok()?;
        let mut bytes = Vec::new();
        file.take(LARGEST.min(self.left)).read_to_end(&mut bytes).ok()?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        let types = portable_pdb::type_definitions(&bytes).ok()?;
        let defined =
            |of: portable_pdb::TypeDefinition| DefinedType { name: of.name, static_fields: of.static_fields };
        Some(types.into_iter().map(defined).collect())
    }
}
