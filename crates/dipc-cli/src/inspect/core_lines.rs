//! Source lines and local variables of frames in memory, from the portable PDBs of their modules.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clr_dump::{Address, DebugEntry, Dump, Method, Module};
use portable_pdb::{Image, LocalVariables};

use crate::inspect::core_source::Source;
use crate::inspect::lines::{PdbLines, PdbRequest};

/// The end of the path of a runtime that is not in the program's own file.
const RUNTIME_LIBRARY: &str = "/libcoreclr.so";
/// The type of entries that refer to a PDB.
const CODE_VIEW: u32 = 2;
/// Maximum size in bytes of such an entry.
const MAX_CODE_VIEW: u32 = 1 << 16;
/// The type of entries with an embedded PDB.
const EMBEDDED_PDB: u32 = 17;
/// Maximum size in bytes of an embedded PDB, packed and unpacked.
const MAX_EMBEDDED: u32 = 64 << 20;

/// The source line of a frame. The file is the path that was given to the compiler.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FrameLine {
    pub(crate) file: Arc<str>,
    pub(crate) line: u32,
}

impl FrameLine {
    /// The line as the runtime writes it after a method, with the last part of the file's path.
    pub(crate) fn suffix(&self) -> String {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        format!(" in {name}:line {}", self.line)
    }
}

/// A source of lines and of names of local variables. The PDB of a module is searched when
/// its first line or name is requested.
#[derive(Debug)]
pub(crate) struct CoreLines {
    pdbs: RefCell<PdbLines>,
    /// The index of each module, by its address.
    modules: RefCell<HashMap<Address, usize>>,
    /// The paths of source files, which many frames share.
    files: RefCell<HashSet<Arc<str>>>,
}

impl CoreLines {
    /// Searches in folders first.
    pub(crate) fn new(folders: &[PathBuf]) -> Self {
        Self {
            pdbs: RefCell::new(PdbLines::of_memory(folders)),
            modules: RefCell::default(),
            files: RefCell::default(),
        }
    }

    /// Returns the line of the IL of a method; `None` if its module has no PDB of the same build here.
    pub(crate) fn find(
        &self,
        source: &Source,
        dump: &Dump<'_>,
        method: &Method,
        il_offset: u32,
    ) -> Option<FrameLine> {
        let (module, token) = (method.module.as_deref()?, method.token?);
        let index = self.index(source, dump, module);
        let mut pdbs = self.pdbs.borrow_mut();
        let (file, line) = pdbs.line_of(index, token, il_offset)?;
        Some(FrameLine { file: self.shared(file), line })
    }

    /// Returns the local variables of a method; `None` if its module has no PDB of the same build here.
    pub(crate) fn variables(
        &self,
        source: &Source,
        dump: &Dump<'_>,
        method: &Method,
    ) -> Option<Arc<LocalVariables>> {
        let (module, token) = (method.module.as_deref()?, method.token?);
        let index = self.index(source, dump, module);
        self.pdbs.borrow_mut().variables_of(index, token)
    }

    /// The index of a module, with its PDB.
    fn index(&self, source: &Source, dump: &Dump<'_>, module: &Module) -> usize {
        if let Some(known) = self.modules.borrow().get(&module.address) {
            return *known;
        }
        let index = search(&mut self.pdbs.borrow_mut(), source, dump, module);
        self.modules.borrow_mut().insert(module.address, index);
        index
    }

    fn shared(&self, file: &str) -> Arc<str> {
        let mut files = self.files.borrow_mut();
        if let Some(known) = files.get(file) {
            return Arc::clone(known);
        }
        let file = Arc::<str>::from(file);
        files.insert(Arc::clone(&file));
        file
    }
}

/// Searches the PDB of a module: in its memory, and by the names that it has there.
fn search(pdbs: &mut PdbLines, source: &Source, dump: &Dump<'_>, module: &Module) -> usize {
    let entries = dump.types().debug_entries(module);
    let data = |kind: u32, limit: u32| {
        let entry: &DebugEntry = entries.iter().find(|entry| entry.kind == kind)?;
        Some((entry.stamp, dump.types().debug_data(entry, limit)?))
    };
    let code_view = data(CODE_VIEW, MAX_CODE_VIEW);
    let of_pdb = code_view.as_ref().and_then(|(stamp, data)| {
        let of_pdb = Image::of_debug_entries([(CODE_VIEW, &**data)]).code_view()?;
        Some((*stamp, of_pdb.guid, String::from_utf8_lossy(of_pdb.path).into_owned()))
    });
    let path = path(source, module);
    let name = Path::new(module.file_name()).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let (stamp, guid, pdb_path) =
        of_pdb.map_or_else(Default::default, |(stamp, guid, path)| (Some(stamp), guid, path));
    // The runtime of a single-file program is in the program itself.
    let bundle = Some(dump.runtime().path()).filter(|path| !path.ends_with(RUNTIME_LIBRARY));
    let request = PdbRequest { name, path: &path, pdb_path: &pdb_path, guid, stamp };
    let embedded = || {
        let (_, packed) = data(EMBEDDED_PDB, MAX_EMBEDDED)?;
        let image = Image::of_debug_entries([(EMBEDDED_PDB, &*packed)]);
        image.embedded_pdb(usize::try_from(MAX_EMBEDDED).ok()?).ok()?
    };
    pdbs.module(&request, embedded, || bundle.map(ToOwned::to_owned).into_iter().collect())
}

/// The path of a module: of one in a single file, the path that it would have next to it.
fn path(source: &Source, module: &Module) -> String {
    if module.path.contains(['/', '\\']) {
        return module.path.clone();
    }
    let program = source.program_path();
    let beside = program.as_deref().map(|program| Path::new(program).with_file_name(&module.path));
    beside.and_then(|path| path.to_str().map(ToOwned::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_follows_the_name_of_its_file() {
        for (file, suffix) in [
            ("/src/App/Cart.cs", " in Cart.cs:line 7"),
            (r"C:\App\Cart.cs", " in Cart.cs:line 7"),
            ("a", " in a:line 7"),
        ] {
            assert_eq!(FrameLine { file: file.into(), line: 7 }.suffix(), suffix);
        }
    }
}
