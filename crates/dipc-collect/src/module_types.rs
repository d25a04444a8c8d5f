//! The types that modules define, read from their files or from a single-file program.

use std::cell::OnceCell;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use dipc_client::ProcessView;
use gcdump::DefinedType;

use crate::bundle::Bundle;

/// Maximum size of a file to read, in bytes.
const MAX_FILE_SIZE: u64 = 256 << 20;
/// Maximum number of bytes of all files together. A program of a thousand modules has a few hundred
/// megabytes.
const MAX_TOTAL_SIZE: u64 = 2 << 30;

/// A reader of module files, as a process or this machine has them.
#[derive(Debug)]
pub struct ModuleTypes {
    files: Files,
    /// The single-file program that the process runs, with its folder; looked for once.
    program: OnceCell<Option<(PathBuf, Bundle)>>,
    left: u64,
}

/// The source of module files.
#[derive(Debug)]
enum Files {
    /// A running process.
    Process(ProcessView),
    /// This machine, for paths in files from elsewhere: only regular files are opened.
    Machine,
    Unknown,
}

impl ModuleTypes {
    /// Creates a reader of the files of a process. If the pid is unknown, it reads none.
    pub fn of(pid: Option<u32>) -> Self {
        Self::new(pid.map_or(Files::Unknown, |pid| Files::Process(ProcessView::of(pid))))
    }

    /// Creates a reader of the files that a recording names, if this machine has them.
    pub fn of_recording() -> Self {
        Self::new(Files::Machine)
    }

    fn new(files: Files) -> Self {
        Self { files, program: OnceCell::new(), left: MAX_TOTAL_SIZE }
    }

    /// Returns the types of the module with this path, in the order of their tokens. `None` if it lacks a
    /// readable file, like a module generated at run time, or if too much was already read.
    pub fn read(&mut self, path: &str) -> Option<Vec<DefinedType>> {
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
        MAX_FILE_SIZE.min(self.left)
    }

    fn file(&self, path: &Path) -> Option<Vec<u8>> {
        let file = match &self.files {
            Files::Process(view) => open(view, path)?,
            Files::Machine => dipc_transport::open_untrusted(path).ok()?,
            Files::Unknown => return None,
        };
        let mut bytes = Vec::new();
        file.take(self.limit()).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Reads the module from the single-file program. Its bundled files have paths in the program's folder.
    fn bundled(&mut self, path: &Path) -> Option<Vec<u8>> {
        let limit = self.limit();
        let Files::Process(view) = &self.files else { return None };
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
