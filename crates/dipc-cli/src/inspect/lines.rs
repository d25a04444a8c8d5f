//! Source lines of methods, out of portable PDBs.

mod search;

use std::collections::HashMap;
use std::path::PathBuf;

use clr_events::code::{Method, Module};
use nettrace_export::{LineCounts, SourceLine, SourceLines};
use portable_pdb::{DocumentId, Pdb};
use uuid::Uuid;

use crate::render::messages;
use search::Search;

/// The search for source lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineOptions {
    /// Whether frames have source lines.
    pub(crate) are_wanted: bool,
    /// Folders with PDBs, or with modules that have theirs in them, searched first.
    pub(crate) folders: Vec<PathBuf>,
}

impl LineOptions {
    /// Opens the source of lines, if they are wanted.
    pub(crate) fn open(&self) -> Option<PdbLines> {
        self.are_wanted.then(|| PdbLines {
            search: Search::new(&self.folders),
            places: HashMap::new(),
            modules: Vec::new(),
            known: HashMap::new(),
            files: Vec::new(),
        })
    }

    /// Warns, with the remedy, if no frame at all has a line.
    pub(crate) fn warn_if_missing(&self, counts: LineCounts) {
        // Where there are no frames, no line is missing.
        if !self.are_wanted || counts.found > 0 || counts == LineCounts::default() {
            return;
        }
        if counts.without_line == 0 {
            messages::warning(
                "no frame has a source line: the recording does not tell which IL its code was made of",
            );
            messages::help(
                "runtimes tell it of jitted code: at the end, in the rundown (not with --rundown false), or at once, with \
                 --clrevents jit+loader+jittedmethodiltonativemap --clreventlevel verbose",
            );
        } else {
            messages::warning("no frame has a source line: no PDB of a jitted method's module was found");
            messages::help("--symbol-path DIR names a folder that has them; -v tells what was looked at");
        }
    }
}

/// A cache of source lines. The PDB of a module is searched when its first line is requested.
#[derive(Debug)]
pub(crate) struct PdbLines {
    search: Search,
    /// By PDB and path, which module it is.
    places: HashMap<Uuid, HashMap<Box<str>, usize>>,
    modules: Vec<Option<Symbols>>,
    /// By module, method and offset: file and line.
    known: HashMap<(usize, u32, u32), Option<(usize, u32)>>,
    files: Vec<String>,
}

/// The PDB of a module.
#[derive(Debug)]
struct Symbols {
    pdb: Vec<u8>,
    files: HashMap<DocumentId, usize>,
}

impl PdbLines {
    fn module(&mut self, module: &Module<'_>) -> usize {
        let (guid, _) = module.pdb();
        let place = self.places.get(&guid).and_then(|places| places.get(module.path()));
        if let Some(place) = place {
            return *place;
        }
        let pdb = self.search.find(module);
        self.modules.push(pdb.map(|pdb| Symbols { pdb, files: HashMap::new() }));
        let place = self.modules.len() - 1;
        self.places.entry(guid).or_default().insert(module.path().into(), place);
        place
    }

    fn look_up(&mut self, module: usize, method: u32, il_offset: u32) -> Option<(usize, u32)> {
        let Symbols { pdb, files } = self.modules.get_mut(module)?.as_mut()?;
        let pdb = Pdb::parse(pdb).ok()?;
        let line = pdb.line(method, il_offset).ok()??;
        if let Some(file) = files.get(&line.document) {
            return Some((*file, line.line));
        }
        self.files.push(pdb.document_name(line.document).ok()?);
        let file = self.files.len() - 1;
        files.insert(line.document, file);
        Some((file, line.line))
    }
}

impl SourceLines for PdbLines {
    fn line(&mut self, method: &Method<'_>, il_offset: u32) -> Option<SourceLine<'_>> {
        let module = self.module(&method.module()?);
        let key = (module, method.token(), il_offset);
        if !self.known.contains_key(&key) {
            let found = self.look_up(module, method.token(), il_offset);
            self.known.insert(key, found);
        }
        let (file, line) = (*self.known.get(&key)?)?;
        Some(SourceLine::new(self.files.get(file)?, line))
    }
}
