//! Source lines of methods and names of local variables, from portable PDBs.

mod search;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use clr_events::code::{Method, Module};
use nettrace_export::{LineCounts, SourceLine, SourceLines};
use portable_pdb::{DocumentId, LocalVariables, MethodLines, Pdb, PdbId};
use uuid::Uuid;

use crate::render::messages;
use search::Search;

/// The search for source lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineOptions {
    /// True to add source lines to frames.
    pub(crate) are_wanted: bool,
    /// Folders with PDBs, or with modules that embed theirs, searched first.
    pub(crate) folders: Vec<PathBuf>,
}

impl LineOptions {
    /// Opens the source of lines, if they are wanted.
    pub(crate) fn open(&self) -> Option<PdbLines> {
        self.are_wanted.then(|| PdbLines {
            search: Search::new(&self.folders, false),
            places: HashMap::new(),
            modules: Vec::new(),
            files: Vec::new(),
            left: BUDGET,
        })
    }

    /// Warns, with the remedy, if not a single frame has a line.
    pub(crate) fn warn_if_missing(&self, counts: LineCounts) {
        // Without frames, no line is missing.
        if !self.are_wanted || counts.found > 0 || counts == LineCounts::default() {
            return;
        }
        if counts.without_line == 0 {
            messages::warning("no frame has a source line: the recording does not map its code to IL");
            messages::help(
                "runtimes send the map for jitted code: at the end, in the rundown (not with --rundown false), or at once, with \
                 --clrevents jit+loader+jittedmethodiltonativemap --clreventlevel verbose",
            );
        } else {
            messages::warning("no frame has a source line: no PDB of a jitted method's module was found");
            messages::help("--symbol-path DIR names a folder that has them; -v shows which files were tried");
        }
    }
}

/// A module with a PDB to find.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PdbRequest<'m> {
    /// The name of the module without its extension.
    pub(crate) name: &'m str,
    /// The path of its file; empty if unknown.
    pub(crate) path: &'m str,
    /// The path of the PDB when it was built; empty if unknown.
    pub(crate) pdb_path: &'m str,
    /// The id of the PDB; nil if unknown.
    pub(crate) guid: Uuid,
    /// The rest of the id.
    pub(crate) stamp: Option<u32>,
}

impl PdbRequest<'_> {
    /// Returns true if a PDB belongs to the module.
    fn matches(&self, id: PdbId) -> bool {
        id.guid == self.guid && self.stamp.is_none_or(|stamp| id.stamp == stamp)
    }
}

/// A cache of source lines. The PDB of a module is searched when its first line is requested.
#[derive(Debug)]
pub(crate) struct PdbLines {
    search: Search,
    /// The index of the module, by PDB and path.
    places: HashMap<Uuid, HashMap<Box<str>, usize>>,
    modules: Vec<Option<Symbols>>,
    files: Vec<String>,
    left: Budget,
}

/// The bytes of all PDBs that may still be decoded. Bounded because many methods may share sequence points,
/// and documents the parts of their names.
#[derive(Debug, Clone, Copy)]
struct Budget {
    /// For sequence points; a large program's methods take some ten million.
    points: usize,
    /// For names of source files and of local variables.
    names: usize,
}

const BUDGET: Budget = Budget { points: 64 << 20, names: 64 << 20 };

/// Maximum number of programs to search for the PDB of a module.
const MAX_PROGRAMS: usize = 512;

/// The bytes of a local variable without its name.
const VARIABLE_SIZE: usize = 64;

/// The PDB of a module.
#[derive(Debug)]
struct Symbols {
    pdb: Vec<u8>,
    methods: HashMap<u32, MethodLines>,
    /// The local variables of each method.
    variables: HashMap<u32, Arc<LocalVariables>>,
    /// The index of the name of each document, if it has one.
    files: HashMap<DocumentId, Option<usize>>,
}

impl Symbols {
    fn new(pdb: Vec<u8>) -> Self {
        Self { pdb, methods: HashMap::new(), variables: HashMap::new(), files: HashMap::new() }
    }
}

impl PdbLines {
    /// Searches in the user's folders, and for the PDBs of modules in memory. Warns of PDBs of other builds.
    pub(crate) fn of_memory(folders: &[PathBuf]) -> Self {
        Self {
            search: Search::new(folders, true),
            places: HashMap::new(),
            modules: Vec::new(),
            files: Vec::new(),
            left: BUDGET,
        }
    }

    /// Returns the index of a module. `embedded` returns the PDB that the memory has in the module, and
    /// `bundles` the paths of programs that can have it among their files.
    pub(crate) fn module(
        &mut self,
        module: &PdbRequest<'_>,
        embedded: impl FnOnce() -> Option<Vec<u8>>,
        bundles: impl FnOnce() -> Vec<String>,
    ) -> usize {
        let guid = module.guid;
        if let Some(place) = self.places.get(&guid).and_then(|places| places.get(module.path)) {
            return *place;
        }
        // The same path can be written in many ways.
        let path = normalized(module.path);
        let known = self.places.get(&guid).and_then(|places| places.get(&*path)).copied();
        let place = known.unwrap_or_else(|| {
            let embedded = embedded().and_then(|pdb| self.search.check(module, pdb));
            let pdb = embedded.or_else(|| self.search.find(module, &bundles()));
            self.modules.push(pdb.map(Symbols::new));
            self.modules.len() - 1
        });
        let places = self.places.entry(guid).or_default();
        places.insert(path.into(), place);
        places.insert(module.path.into(), place);
        place
    }

    /// Returns the file and the line of the IL of a method, given the index of its module.
    pub(crate) fn line_of(&mut self, module: usize, method: u32, il_offset: u32) -> Option<(&str, u32)> {
        let (file, line) = self.look_up(module, method, il_offset)?;
        Some((self.files.get(file)?, line))
    }

    /// Returns the local variables of a method, given the index of its module; `None` if the module has no
    /// PDB.
    pub(crate) fn variables_of(&mut self, module: usize, method: u32) -> Option<Arc<LocalVariables>> {
        let Symbols { pdb, variables, .. } = self.modules.get_mut(module)?.as_mut()?;
        let known = variables.entry(method).or_insert_with(|| {
            let read = Pdb::parse(pdb).and_then(|pdb| pdb.local_variables(method));
            let read = read.map_err(messages::detail).unwrap_or_default();
            let size = |of: &portable_pdb::LocalVariable| of.name.len().saturating_add(VARIABLE_SIZE);
            let bytes = read.variables().iter().map(size).sum();
            let left = self.left.names.checked_sub(bytes);
            self.left.names = left.unwrap_or_default();
            Arc::new(left.map(|_| read).unwrap_or_default())
        });
        Some(Arc::clone(known))
    }

    fn look_up(&mut self, module: usize, method: u32, il_offset: u32) -> Option<(usize, u32)> {
        let Symbols { pdb, methods, files, .. } = self.modules.get_mut(module)?.as_mut()?;
        let lines = methods.entry(method).or_insert_with(|| {
            let lines = Pdb::parse(pdb).and_then(|pdb| pdb.method_lines(method, self.left.points));
            let lines = lines.map_err(messages::detail).unwrap_or_default();
            self.left.points -= lines.byte_count();
            lines
        });
        let line = lines.line(il_offset)?;
        let file = *files.entry(line.document).or_insert_with(|| {
            let name = Pdb::parse(pdb).and_then(|pdb| pdb.document_name(line.document)).ok()?;
            self.left.names = self.left.names.checked_sub(name.len())?;
            self.files.push(name);
            Some(self.files.len() - 1)
        });
        Some((file?, line.line))
    }
}

/// Returns the path without redundant parts: `.`, `..` with the folder before it, repeated slashes. With
/// links, that may be a different path; then the PDB's id decides.
fn normalized(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The PDB of a module of a recording.
fn request<'m>(module: &Module<'m>) -> PdbRequest<'m> {
    let (guid, _) = module.pdb();
    PdbRequest { name: module.name(), path: module.path(), pdb_path: module.pdb_path(), guid, stamp: None }
}

/// The paths of programs that can be the single file in which a method's module is: next to the module,
/// which has no file of its own then, with the name of one of the assemblies in its folder.
fn programs(method: &Method<'_>) -> Vec<String> {
    let Some(module) = method.module() else { return Vec::new() };
    let Some((folder, _)) = module.path().rsplit_once(['/', '\\']) else { return Vec::new() };
    let program = |path: &str| {
        let program = path.strip_suffix(".dll")?;
        let is_there = path.rsplit_once(['/', '\\']).is_some_and(|(of, _)| of == folder);
        let extension = if path.contains('\\') { ".exe" } else { "" };
        is_there.then(|| [program, extension].concat())
    };
    let others = method.modules().filter_map(|other| program(other.path()));
    program(module.path()).into_iter().chain(others).take(MAX_PROGRAMS).collect()
}

impl SourceLines for PdbLines {
    fn line(&mut self, method: &Method<'_>, il_offset: u32) -> Option<SourceLine<'_>> {
        let module = method.module()?;
        let module = self.module(&request(&module), || None, || programs(method));
        let (file, line) = self.look_up(module, method.token(), il_offset)?;
        Some(SourceLine::new(self.files.get(file)?, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_of_writing_a_path_are_one() {
        for path in ["/a/b.dll", "//a/./b.dll", "/a/.//././b.dll", "/x/../a/b.dll", "/../a/y/../b.dll"] {
            assert_eq!(normalized(path), "/a/b.dll", "{path}");
        }
    }
}
