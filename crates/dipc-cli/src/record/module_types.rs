//! The types that the modules of a process define, read from their files or from its single-file program.

use std::cell::OnceCell;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use dipc_client::ProcessView;
use gcdump::DefinedType;

use crate::record::bundle::Bundle;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 256 << 20;
/// The most bytes of all files together. A program of a thousand modules has a few hundred megabytes.
const MOST: u64 = 2 << 30;

/// A reader of module files as a process sees them.
pub(crate) struct ModuleTypes {
    view: Option<ProcessView>,
    /// The single-file program that the process runs, with its folder; looked for once.
    program: OnceCell<Option<(PathBuf, Bundle)>>,
    left: u64,
}

impl ModuleTypes {
    /// Creates a reader of the files of a process. If the pid is unknown, it reads none.
    pub(crate) fn of(pid: Option<u32>) -> Self {
        Self { view: pid.map(ProcessView::of), program: OnceCell::new(), left: MOST }
    }

    /// Returns the types of the module with this path, in the order of their tokens. `None` if it has no
    /// readable file, like a module generated at run time, or if too much was already read.
    pub(crate) fn read(&mut self, path: &str) -> Option<Vec<DefinedType>> {
        let path = Path::new(path);
        if !path.is_absolute() || self.left == 0 {
            return None;
        }
        let bytes = self.file(path).or_else(|| self.bundled(path))?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        let types = portable_pdb::type_definitions(&bytes).ok()?;
        let defined =
            |of: portable_pdb::TypeDefinition| DefinedType { name: of.name, static_fields: of.static_fields };
        Some(types.into_iter().map(defined).collect())
    }

    fn limit(&self) -> u64 {
        LARGEST.min(self.left)
    }

    fn file(&self, path: &Path) -> Option<Vec<u8>> {
        let file = open(self.view.as_ref()?, path)?;
        let mut bytes = Vec::new();
        file.take(self.limit()).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Reads the module from the single-file program, whose files have paths in the program's folder.
    fn bundled(&mut self, path: &Path) -> Option<Vec<u8>> {
        let limit = self.limit();
        let view = self.view.as_ref()?;
        self.program.get_or_init(|| single_file(view));
        let (folder, bundle) = self.program.get_mut()?.as_mut()?;
        bundle.content(path.strip_prefix(folder).ok()?.to_str()?, limit)
    }
}

/// Opens a file of the process. Links were resolved as in the process, and only a regular file is opened.
fn open(view: &ProcessView, path: &Path) -> Option<File> {
    dipc_transport::open_regular(&view.locate(path).ok()?).ok()
}

/// Returns the program of the process with its folder, if it is a single file.
fn single_file(view: &ProcessView) -> Option<(PathBuf, Bundle)> {
    let program = view.executable().ok()?;
    let bundle = Bundle::read(open(view, &program)?)?;
    Some((program.parent()?.to_owned(), bundle))
}
