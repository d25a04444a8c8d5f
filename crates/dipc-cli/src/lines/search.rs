//! Where the PDB of a module is.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf, Prefix};

use clr_events::code::Module;
use portable_pdb::{Image, Pdb};
use uuid::Uuid;

use crate::report;

/// Bytes of a file that is looked at. Large programs have PDBs of some ten megabytes.
const LARGEST: usize = 256 << 20;
/// Bytes of all PDBs together that are kept.
const MOST: usize = 1 << 30;

/// Looks for PDBs.
#[derive(Debug)]
pub(super) struct Search {
    folders: Vec<PathBuf>,
    /// Bytes that may still be kept.
    left: usize,
}

/// A file that may be, or have in it, the PDB of a module.
enum Candidate {
    Pdb(PathBuf),
    Module(PathBuf),
}

impl Search {
    pub(super) fn new(folders: &[PathBuf]) -> Self {
        Self { folders: folders.to_vec(), left: MOST }
    }

    /// The PDB of a module, unpacked; `None`, which is told, if there is none of the same build.
    pub(super) fn find(&mut self, module: &Module<'_>) -> Option<Vec<u8>> {
        let name = module.name();
        let (guid, _) = module.pdb();
        let Some(guid) = Some(guid).filter(|guid| !guid.is_nil()).or_else(|| self.guid_of(module)) else {
            report::detail(format_args!("{name}: no source lines: it does not say which PDB is its own"));
            return None;
        };
        let mut why = Vec::new();
        for candidate in self.candidates(module, guid) {
            let (path, found) = match &candidate {
                Candidate::Pdb(path) => (path, read(path)),
                Candidate::Module(path) => (path, embedded(path)),
            };
            let what = match found {
                Ok(None) => continue,
                Ok(Some(pdb)) => match Pdb::parse(&pdb).map(|pdb| pdb.id().guid) {
                    Ok(id) if id == guid && pdb.len() <= self.left => {
                        self.left -= pdb.len();
                        report::detail(format_args!("{name}: source lines: {}", path.display()));
                        return Some(pdb);
                    }
                    Ok(id) if id == guid => "there is no room for it beside the others".to_owned(),
                    Ok(_) => "it is of another build".to_owned(),
                    Err(error) => error.to_string(),
                },
                Err(error) => error,
            };
            why.push(format!("{}: {what}", path.display()));
        }
        let why = if why.is_empty() { "no PDB was found".to_owned() } else { why.join("; ") };
        report::detail(format_args!("{name}: no source lines: {why}"));
        None
    }

    /// The files to look at, the likeliest first: where the user says, beside the module, in it, where it was built.
    fn candidates(&self, module: &Module<'_>, guid: Uuid) -> Vec<Candidate> {
        let built = last_part(module.pdb_path());
        let name = if built.is_empty() { format!("{}.pdb", module.name()) } else { built.to_owned() };
        let mut candidates = Vec::new();
        for folder in &self.folders {
            candidates.push(Candidate::Pdb(folder.join(&name)));
            // As symbol servers have them.
            let key = format!("{}ffffffff", guid.simple());
            candidates.push(Candidate::Pdb(folder.join(&name).join(key).join(&name)));
            let module = Some(last_part(module.path())).filter(|name| !name.is_empty());
            candidates.extend(module.map(|name| Candidate::Module(folder.join(name))));
        }
        if let Some(path) = local(module.path()) {
            candidates.push(Candidate::Pdb(path.with_file_name(&name)));
            candidates.push(Candidate::Pdb(path.with_extension("pdb")));
            candidates.push(Candidate::Module(path));
        }
        candidates.extend(local(module.pdb_path()).map(Candidate::Pdb));
        let path = |candidate: &Candidate| match candidate {
            Candidate::Pdb(path) | Candidate::Module(path) => path.clone(),
        };
        let mut seen = Vec::new();
        candidates.retain(|candidate| {
            let path = path(candidate);
            let is_new = !seen.contains(&path);
            seen.push(path);
            is_new
        });
        candidates
    }

    /// What the module's file says of its PDB, where the recording does not.
    fn guid_of(&self, module: &Module<'_>) -> Option<Uuid> {
        let name = last_part(module.path());
        let paths = self.folders.iter().map(|folder| folder.join(name)).chain(local(module.path()));
        paths.filter_map(|path| read(&path).ok()?).find_map(|image| {
            let image = Image::parse(&image).ok()?;
            Some(image.code_view()?.guid)
        })
    }
}

/// The last part of a path of any system; nothing that leads elsewhere.
fn last_part(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    if name == ".." || name == "." { "" } else { name }
}

/// A path that a recording names, if it is one of this machine: anybody can have written it.
fn local(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let is_local = match path.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_)),
        _ => true,
    };
    (is_local && path.is_absolute()).then(|| path.to_owned())
}

/// The PDB in a module; `None` if there is no such file, or none in it.
fn embedded(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let Some(image) = read(path)? else { return Ok(None) };
    let image = Image::parse(&image).map_err(|error| error.to_string())?;
    image.embedded_pdb(LARGEST).map_err(|error| error.to_string())
}

/// A whole file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let read = || -> io::Result<Result<Vec<u8>, String>> {
        let file = open(path)?;
        if !file.metadata()?.is_file() {
            return Ok(Err("it is no file".to_owned()));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST as u64 + 1).read_to_end(&mut bytes)?;
        Ok(if bytes.len() > LARGEST { Err(format!("it has more than {LARGEST} bytes")) } else { Ok(bytes) })
    };
    match read() {
        Ok(read) => read.map(Some),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    // A pipe of that name would keep us waiting.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_machine_are_looked_at() {
        for path in ["", "App.dll", "../App.dll", r"\\server\share\App.dll", r"\\?\UNC\server\share\App.dll"]
        {
            assert_eq!(local(path), None, "{path}");
        }
        let here = std::env::current_exe().unwrap();
        assert_eq!(local(here.to_str().unwrap()), Some(here));
    }

    #[test]
    fn names_lead_nowhere_else() {
        for (path, name) in
            [(r"C:\a\b.pdb", "b.pdb"), ("/a/b.pdb", "b.pdb"), ("b.pdb", "b.pdb"), ("/a/..", ""), ("", "")]
        {
            assert_eq!(last_part(path), name);
        }
    }
}
