//! The search for the PDB of a module.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf, Prefix};

use portable_pdb::{Bundle, Image, Pdb};
use uuid::Uuid;

use crate::inspect::lines::PdbRequest;
use crate::render::messages;

/// Maximum size of a file to read, in bytes. Large programs have PDBs of some ten megabytes.
const MAX_FILE_SIZE: usize = 256 << 20;
/// Maximum number of bytes to keep of all PDBs together.
const MAX_TOTAL_SIZE: usize = 1 << 30;
/// The files searched for, found or not, and the bytes read of those found: a recording may name any number
/// of modules. A program of a thousand modules has some seven thousand places where PDBs might be, and a few
/// hundred megabytes of them.
const BUDGET: Budget = Budget { files: 50_000, bytes: 8 << 30, unpacked: MAX_TOTAL_SIZE as u64 };

/// A search for PDBs.
#[derive(Debug)]
pub(super) struct Search {
    folders: Vec<PathBuf>,
    /// Bytes that may still be kept.
    left: usize,
    budget: Budget,
    /// True to warn of modules whose only PDBs are of another build.
    warns_of_mismatches: bool,
    /// The lists of the files of single-file programs; `None` of other programs.
    bundles: HashMap<PathBuf, Option<Bundle>>,
}

/// The remaining files and bytes of the search.
#[derive(Debug, Clone, Copy)]
struct Budget {
    files: u32,
    bytes: u64,
    /// The bytes of PDBs that may be unpacked from modules.
    unpacked: u64,
}

/// A file that may be, or embed, the PDB of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    path: PathBuf,
    kind: CandidateKind,
    origin: Origin,
}

/// The place of a PDB in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CandidateKind {
    /// The file is one.
    Pdb,
    /// The file is a module, which can embed it.
    Module,
    /// The file is a program that was published as a single file, which can have it among its files.
    Bundle,
}

/// The origin of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The user named the folder.
    User,
    /// The recording or the memory named the whole path, and may name anything.
    Recording,
}

impl Candidate {
    const fn pdb(path: PathBuf, origin: Origin) -> Self {
        Self { path, kind: CandidateKind::Pdb, origin }
    }

    const fn module(path: PathBuf, origin: Origin) -> Self {
        Self { path, kind: CandidateKind::Module, origin }
    }
}

/// The name of the PDB's file.
fn pdb_name(module: &PdbRequest<'_>) -> String {
    let built = last_part(module.pdb_path);
    if built.is_empty() { format!("{}.pdb", module.name) } else { built.to_owned() }
}

impl Search {
    pub(super) fn new(folders: &[PathBuf], warns_of_mismatches: bool) -> Self {
        Self {
            folders: folders.to_vec(),
            left: MAX_TOTAL_SIZE,
            budget: BUDGET,
            warns_of_mismatches,
            bundles: HashMap::new(),
        }
    }

    /// Returns a PDB that the memory has, if it is that of the module.
    pub(super) fn check(&mut self, request: &PdbRequest<'_>, pdb: Vec<u8>) -> Option<Vec<u8>> {
        let is_of_module = Pdb::parse(&pdb).is_ok_and(|pdb| request.matches(pdb.id()));
        self.left = self.left.checked_sub(pdb.len()).filter(|_| is_of_module)?;
        messages::detail(format_args!("{}: source lines: the PDB in its memory", request.name));
        Some(pdb)
    }

    /// Returns the PDB of a module, unpacked; `None`, with a message, if no PDB is of the same build. It can
    /// be among the files of the programs at the paths `bundles`.
    pub(super) fn find(&mut self, module: &PdbRequest<'_>, bundles: &[String]) -> Option<Vec<u8>> {
        if self.budget.is_spent() {
            return None;
        }
        let found = self.find_within_budget(module, bundles);
        if self.budget.is_spent() {
            messages::warning(format_args!(
                "no more PDBs are looked for: the recording named {} files, or more than {} GB of them",
                BUDGET.files,
                BUDGET.bytes >> 30
            ));
            messages::help("--symbol-path DIR names a folder with the PDBs; it is looked into first");
        }
        found
    }

    fn find_within_budget(&mut self, module: &PdbRequest<'_>, bundles: &[String]) -> Option<Vec<u8>> {
        let name = module.name;
        let Some(guid) = Some(module.guid).filter(|guid| !guid.is_nil()).or_else(|| self.guid_of(module))
        else {
            messages::detail(format_args!("{name}: no source lines: it does not name its PDB"));
            return None;
        };
        let request = PdbRequest { guid, ..*module };
        let (mut why, mut mismatch) = (Vec::new(), None);
        for candidate in self.candidates(&request, bundles) {
            let path = &candidate.path;
            let found = match candidate.kind {
                CandidateKind::Pdb => self.read(&candidate),
                CandidateKind::Module => self.embedded(&candidate),
                CandidateKind::Bundle => self.bundled(&candidate, &pdb_name(&request)),
            };
            let what = match found {
                Ok(None) => continue,
                Ok(Some(pdb)) => match Pdb::parse(&pdb).map(|pdb| request.matches(pdb.id())) {
                    Ok(true) if pdb.len() <= self.left => {
                        self.left -= pdb.len();
                        messages::detail(format_args!("{name}: source lines: {}", path.display()));
                        return Some(pdb);
                    }
                    Ok(true) => "the others leave no room for it".to_owned(),
                    Ok(false) => {
                        mismatch.get_or_insert_with(|| path.clone());
                        "it is of another build".to_owned()
                    }
                    Err(error) => error.to_string(),
                },
                Err(error) => error,
            };
            why.push(format!("{}: {what}", path.display()));
        }
        if let Some(path) = mismatch.filter(|_| self.warns_of_mismatches) {
            let path = path.display();
            messages::warning(format_args!("{name} has no source lines: {path} is of another build of it"));
        }
        let why = if why.is_empty() { "no PDB was found".to_owned() } else { why.join("; ") };
        messages::detail(format_args!("{name}: no source lines: {why}"));
        None
    }

    /// The candidate files, likeliest first: in the user's folders, next to the module, embedded in it, in a
    /// single-file program, at the path of its build.
    fn candidates(&self, module: &PdbRequest<'_>, bundles: &[String]) -> Vec<Candidate> {
        let name = pdb_name(module);
        let mut candidates = Vec::new();
        for folder in &self.folders {
            candidates.push(Candidate::pdb(folder.join(&name), Origin::User));
            // The folder layout of symbol servers.
            let key = format!("{}ffffffff", module.guid.simple());
            candidates.push(Candidate::pdb(folder.join(&name).join(key).join(&name), Origin::User));
            let module = Some(last_part(module.path)).filter(|name| !name.is_empty());
            candidates.extend(module.map(|name| Candidate::module(folder.join(name), Origin::User)));
        }
        if let Some(path) = local(module.path) {
            candidates.push(Candidate::pdb(path.with_file_name(&name), Origin::Recording));
            candidates.push(Candidate::pdb(path.with_extension("pdb"), Origin::Recording));
            candidates.push(Candidate::module(path, Origin::Recording));
        }
        candidates.extend(bundles.iter().filter_map(|bundle| local(bundle)).map(|path| Candidate {
            path,
            kind: CandidateKind::Bundle,
            origin: Origin::Recording,
        }));
        candidates.extend(local(module.pdb_path).map(|path| Candidate::pdb(path, Origin::Recording)));
        let mut seen = HashSet::new();
        candidates.retain(|candidate| seen.insert(candidate.path.clone()));
        candidates
    }

    /// Reads the PDB's GUID from the module's file, if the recording does not state it.
    fn guid_of(&mut self, module: &PdbRequest<'_>) -> Option<Uuid> {
        let name = last_part(module.path);
        let by_user = self.folders.iter().map(|folder| Candidate::module(folder.join(name), Origin::User));
        let by_recording = local(module.path).map(|path| Candidate::module(path, Origin::Recording));
        let candidates: Vec<_> = by_user.chain(by_recording).collect();
        candidates.iter().find_map(|candidate| {
            let image = self.read(candidate).ok()??;
            let image = Image::parse(&image).ok()?;
            Some(image.code_view()?.guid)
        })
    }

    /// Returns the PDB embedded in a module; `None` if the file does not exist or lacks one.
    fn embedded(&mut self, module: &Candidate) -> Result<Option<Vec<u8>>, String> {
        let Some(image) = self.read(module)? else { return Ok(None) };
        let image = Image::parse(&image).map_err(|error| error.to_string())?;
        let (size, most) = (image.embedded_pdb_size(), (MAX_FILE_SIZE as u64).min(self.budget.unpacked));
        if size > most {
            return Err(format!("its PDB has {size} bytes, more than the {most} that may still be unpacked"));
        }
        // A failed unpacking has cost the time, too.
        self.budget.unpacked -= size;
        image.embedded_pdb(MAX_FILE_SIZE).map_err(|error| error.to_string())
    }

    /// Returns a PDB from the files of a single-file program; `None` if it has none.
    fn bundled(&mut self, program: &Candidate, name: &str) -> Result<Option<Vec<u8>>, String> {
        if !self.bundles.contains_key(&program.path) {
            // One that cannot be read is not read again for the next module.
            self.bundles.insert(program.path.clone(), None);
            let bytes = self.read(program)?.unwrap_or_default();
            let bundle = Bundle::parse(&bytes).map_err(|error| error.to_string())?;
            self.bundles.insert(program.path.clone(), bundle);
        }
        let bundle = self.bundles.get(&program.path).and_then(Option::as_ref);
        let Some(file) = bundle.and_then(|bundle| bundle.file(name)) else { return Ok(None) };
        let most = (MAX_FILE_SIZE as u64).min(self.budget.unpacked);
        if file.size.max(file.stored_size()) > most {
            return Err(format!("{name} in it has more than the {most} bytes that may still be unpacked"));
        }
        let mut opened = dipc_transport::open_untrusted(&program.path).map_err(|error| error.to_string())?;
        let mut stored = Vec::new();
        opened
            .seek(SeekFrom::Start(file.offset))
            .and_then(|_| opened.take(file.stored_size()).read_to_end(&mut stored))
            .map_err(|error| error.to_string())?;
        self.budget.unpacked = self.budget.unpacked.saturating_sub(file.size);
        self.budget.bytes = self.budget.bytes.saturating_sub(stored.len() as u64);
        file.unpack(stored, most).map(Some).map_err(|error| error.to_string())
    }

    /// Reads a whole file; `None` if it does not exist.
    fn read(&mut self, candidate: &Candidate) -> Result<Option<Vec<u8>>, String> {
        if self.budget.is_spent() {
            return Err("it was not read: the limit was reached before".to_owned());
        }
        self.budget.files -= 1;
        let opened = match candidate.origin {
            Origin::User => dipc_transport::open_regular(&candidate.path),
            Origin::Recording => dipc_transport::open_untrusted(&candidate.path),
        };
        let mut bytes = Vec::new();
        let most = (MAX_FILE_SIZE as u64).min(self.budget.bytes);
        match opened.and_then(|file| file.take(most + 1).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(error.to_string()),
        }
        self.budget.bytes = self.budget.bytes.saturating_sub(bytes.len() as u64);
        if bytes.len() as u64 > most {
            Err(format!("it has more than {most} bytes"))
        } else {
            Ok(Some(bytes))
        }
    }
}

impl Budget {
    const fn is_spent(self) -> bool {
        self.files == 0 || self.bytes == 0
    }
}

/// The last part of a path of any system; empty if it leads elsewhere.
fn last_part(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    if name == ".." || name == "." { "" } else { name }
}

/// A path that a recording names, if it is on this machine: the recording is untrusted.
fn local(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let is_local = match path.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_)),
        _ => true,
    };
    (is_local && path.is_absolute()).then(|| path.to_owned())
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

    #[test]
    fn no_more_is_read_than_the_budget_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pdb");
        std::fs::write(&path, [7; 1000]).unwrap();
        let read = |budget: &mut Search, origin| budget.read(&Candidate::pdb(path.clone(), origin));
        for origin in [Origin::User, Origin::Recording] {
            let mut search =
                Search { budget: Budget { files: 3, bytes: 2500, unpacked: 0 }, ..Search::new(&[], false) };
            assert_eq!(read(&mut search, origin), Ok(Some(vec![7; 1000])));
            assert_eq!(read(&mut search, origin), Ok(Some(vec![7; 1000])));
            assert_eq!(read(&mut search, origin), Err("it has more than 500 bytes".to_owned()));
            assert!(
                search.budget.is_spent()
                    && read(&mut search, origin).unwrap_err().contains("it was not read")
            );
            // Missing files count, too.
            let mut search =
                Search { budget: Budget { files: 2, bytes: 2500, unpacked: 0 }, ..Search::new(&[], false) };
            let none = Candidate::module(folder.path().join("none"), origin);
            assert_eq!((search.embedded(&none), search.embedded(&none)), (Ok(None), Ok(None)));
            assert!(search.budget.is_spent());
        }
    }

    /// A single-file program with these files, as the host of .NET 8 writes it.
    fn bundle(files: &[(&str, &[u8])]) -> Vec<u8> {
        const MARKER: [u8; 32] = [
            0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
            0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
        ];
        let string = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let content: Vec<u8> = files.iter().flat_map(|(_, content)| content.iter().copied()).collect();
        let list_at = 8 + MARKER.len() + content.len();
        let mut program = [&(list_at as u64).to_le_bytes()[..], &MARKER, &content].concat();
        let count = u32::try_from(files.len()).unwrap();
        program.extend([6, 0, count].into_iter().flat_map(u32::to_le_bytes));
        program.extend([string("id"), vec![0; 40]].concat());
        let mut at = 8 + MARKER.len() as u64;
        for (path, content) in files {
            let size = content.len() as u64;
            program.extend([at, size, 0].into_iter().flat_map(u64::to_le_bytes));
            program.extend([vec![1], string(path)].concat());
            at += size;
        }
        program
    }

    #[test]
    fn a_pdb_is_found_among_the_files_of_a_single_file_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("App");
        std::fs::write(&path, bundle(&[("App.dll", b"MZ"), ("App.pdb", b"BSJB of App")])).unwrap();
        let program = Candidate { path, kind: CandidateKind::Bundle, origin: Origin::Recording };
        let mut search = Search::new(&[], false);
        let before = search.budget;
        assert_eq!(search.bundled(&program, "App.pdb"), Ok(Some(b"BSJB of App".to_vec())));
        assert_eq!(search.bundled(&program, "Other.pdb"), Ok(None));
        // The program was read once, and what was unpacked counts.
        assert_eq!(search.budget.files, before.files - 1);
        assert_eq!(search.budget.unpacked, before.unpacked - 11);
        search.budget.unpacked = 10;
        let error = search.bundled(&program, "App.pdb").unwrap_err();
        assert!(error.contains("may still be unpacked"), "{error}");

        // No program, one that is not a single file, and one that is cut off: neither is read twice.
        let of = |name: &str, content: Option<&[u8]>| {
            let path = folder.path().join(name);
            if let Some(content) = content {
                std::fs::write(&path, content).unwrap();
            }
            Candidate { path, kind: CandidateKind::Bundle, origin: Origin::Recording }
        };
        let cut = bundle(&[("App.pdb", b"BSJB of App")]);
        let cut = &cut[..cut.len() - 1];
        for (program, is_error) in [
            (of("none", None), false),
            (of("other", Some(b"an apphost")), false),
            (of("cut", Some(cut)), true),
        ] {
            let files = search.budget.files;
            assert_eq!(search.bundled(&program, "App.pdb").is_err(), is_error, "{program:?}");
            assert_eq!(search.bundled(&program, "App.pdb"), Ok(None));
            assert_eq!(search.budget.files, files - 1);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_recording_names_no_files_of_the_kernel() {
        let mut search = Search::new(&[], false);
        for path in ["/dev/zero", "/proc/self/mem", "/proc/kmsg"] {
            let path = PathBuf::from(path);
            assert!(search.read(&Candidate::pdb(path, Origin::Recording)).is_err());
        }
    }
}
