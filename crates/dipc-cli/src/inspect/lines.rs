//! Source lines of methods, from portable PDBs.

mod search;

use std::collections::HashMap;
use std::path::PathBuf;

use clr_events::code::{Method, Module};
use nettrace_export::{LineCounts, SourceLine, SourceLines};
use portable_pdb::{DocumentId, MethodLines, Pdb};
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
            search: Search::new(&self.folders),
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
    /// For names of source files.
    names: usize,
}

const BUDGET: Budget = Budget { points: 64 << 20, names: 64 << 20 };

/// The PDB of a module.
#[derive(Debug)]
struct Symbols {
    pdb: Vec<u8>,
    methods: HashMap<u32, MethodLines>,
    /// The index of the name of each document, if it has one.
    files: HashMap<DocumentId, Option<usize>>,
}

impl PdbLines {
    fn module(&mut self, module: &Module<'_>) -> usize {
        let (guid, _) = module.pdb();
        if let Some(place) = self.places.get(&guid).and_then(|places| places.get(module.path())) {
            return *place;
        }
        // The same path can be written in many ways.
        let path = normalized(module.path());
        let known = self.places.get(&guid).and_then(|places| places.get(&*path)).copied();
        let place = known.unwrap_or_else(|| {
            let pdb = self.search.find(module);
            let symbols = |pdb| Symbols { pdb, methods: HashMap::new(), files: HashMap::new() };
            self.modules.push(pdb.map(symbols));
            self.modules.len() - 1
        });
        let places = self.places.entry(guid).or_default();
        places.insert(path.into(), place);
        places.insert(module.path().into(), place);
        place
    }

    fn look_up(&mut self, module: usize, method: u32, il_offset: u32) -> Option<(usize, u32)> {
        let Symbols { pdb, methods, files } = self.modules.get_mut(module)?.as_mut()?;
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

impl SourceLines for PdbLines {
    fn line(&mut self, method: &Method<'_>, il_offset: u32) -> Option<SourceLine<'_>> {
        let module = self.module(&method.module()?);
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
