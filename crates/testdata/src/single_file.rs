//! Programs of testdata as single-file applications: a published one with another assembly in the place of
//! its program's, and without the assemblies that are not of the framework.
//!
//! # Source
//! dotnet/runtime `src/installer/managed/Microsoft.NET.HostModel/Bundle/Manifest.cs` and `FileEntry.cs` (the
//! list of files), `src/native/corehost/apphost/bundle_marker.cpp` (its offset),
//! `src/native/corehost/corehost.cpp` (the program's name in the host).

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The version of this code: another one makes the programs again.
const VERSION: u32 = 1;

/// The bytes after the offset of the list: the SHA-256 of ".net core bundle".
const MARKER: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13,
    0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];

/// The room for the program's name in the host.
const NAME_ROOM: usize = 1024;

const ASSEMBLY: u8 = 1;
const DEPENDENCIES: u8 = 3;
const SETTINGS: u8 = 4;
const SYMBOLS: u8 = 5;

/// The alignment of a file on x86-64 Linux.
const ALIGNMENT: usize = 16;

/// Large assemblies that no program of testdata uses.
const UNUSED: [&str; 6] = [
    "System.Data.Common.dll",
    "System.Data.SqlClient.dll",
    "System.Linq.Expressions.dll",
    "System.Private.DataContractSerialization.dll",
    "System.Private.Xml.dll",
    "System.Private.Xml.Linq.dll",
];

/// Makes a program of an assembly of testdata and of a single-file application, unless `programs` has it from
/// an earlier run, and returns its path. It has the assembly's name. Several threads and processes may do the
/// same: the file appears whole.
pub fn single_file_program(application: &Path, assembly: &str, programs: &Path) -> PathBuf {
    make(application, assembly, None, programs)
}

/// The same, with the PDB in the file that lies next to the assembly in testdata.
pub fn single_file_program_with_pdb(application: &Path, assembly: &str, programs: &Path) -> PathBuf {
    let pdb = Path::new(assembly).with_extension("pdb");
    make(application, assembly, Some(&super::bytes(pdb.to_str().expect("a path of testdata"))), programs)
}

fn make(application: &Path, assembly: &str, pdb: Option<&[u8]>, programs: &Path) -> PathBuf {
    // Threads of one process do not make it twice.
    static MAKING: Mutex<()> = Mutex::new(());

    let name = Path::new(assembly).file_stem().expect("an assembly has a name");
    let content = super::bytes(assembly);
    let size = fs::metadata(application).unwrap_or_else(|error| panic!("{}: {error}", application.display()));
    let mut key = DefaultHasher::new();
    (VERSION, application.file_name(), size.len(), &content, pdb).hash(&mut key);
    let folder = programs.join(format!("{:016x}", key.finish()));
    let program = folder.join(name);
    let _guard = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !program.exists() {
        fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let published =
            fs::read(application).unwrap_or_else(|error| panic!("{}: {error}", application.display()));
        let published_name = application.file_name().and_then(|name| name.to_str()).expect("a name");
        let made = rebundle(&published, published_name, &name.to_string_lossy(), &content, pdb);
        super::install_bytes(&made, &program);
    }
    program
}

/// A file in a bundle.
struct File<'a> {
    kind: u8,
    name: String,
    content: &'a [u8],
}

/// Returns the single file `published` with the program `name` in the place of `published_name`.
fn rebundle(
    published: &[u8],
    published_name: &str,
    name: &str,
    assembly: &[u8],
    pdb: Option<&[u8]>,
) -> Vec<u8> {
    let marker = position(published, &MARKER) - 8;
    let mut list = Reader { file: published, at: 0 };
    list.at = marker;
    list.at = list.u64();
    assert_eq!(list.u32(), 6, "the version of the bundle's format");
    list.u32();
    let count = list.u32();
    let id = list.string();
    // The places of the dependencies and of the settings, and flags.
    list.take(5 * 8);
    let mut host_size = published.len();
    let mut settings: &[u8] = &[];
    let mut files = vec![File { kind: ASSEMBLY, name: format!("{name}.dll"), content: assembly }];
    for _ in 0..count {
        let (offset, size, compressed) = (list.u64(), list.u64(), list.u64());
        let (kind, path) = (list.take(1)[0], list.string());
        host_size = host_size.min(offset);
        let content = &published[offset..offset + size];
        if kind == SETTINGS {
            settings = content;
        } else if kind == ASSEMBLY && compressed == 0 && is_used(&path) {
            files.push(File { kind, name: path, content });
        }
    }
    let dependencies = dependencies(&files);
    files.push(File {
        kind: DEPENDENCIES,
        name: format!("{name}.deps.json"),
        content: dependencies.as_bytes(),
    });
    files.push(File { kind: SETTINGS, name: format!("{name}.runtimeconfig.json"), content: settings });
    files.extend(pdb.map(|content| File { kind: SYMBOLS, name: format!("{name}.pdb"), content }));

    let mut made = published[..host_size].to_vec();
    let bound = position(&made, format!("{published_name}.dll\0").as_bytes());
    made[bound..bound + NAME_ROOM].fill(0);
    made[bound..bound + name.len() + 4].copy_from_slice(format!("{name}.dll").as_bytes());
    append(&mut made, marker, &id, &files);
    made
}

/// Returns true if an assembly is of the framework, and may be used.
fn is_used(name: &str) -> bool {
    let of_framework = ["System.", "Microsoft.Win32.", "mscorlib.", "netstandard."];
    of_framework.iter().any(|prefix| name.starts_with(prefix)) && !UNUSED.contains(&name)
}

/// Returns the list of assemblies that the host reads.
fn dependencies(files: &[File<'_>]) -> String {
    let names: Vec<_> = files.iter().map(|file| format!(r#""{}":{{}}"#, file.name)).collect();
    let names = names.join(",");
    r#"{"runtimeTarget":{"name":"T"},"targets":{"T":{"a/1":{"runtime":{NAMES}}}},"libraries":{"a/1":{"type":"project","serviceable":false,"sha512":""}}}"#
        .replace("NAMES", &names)
}

/// Appends files and their list to a host.
fn append(host: &mut Vec<u8>, marker: usize, id: &str, files: &[File<'_>]) {
    let mut entries = Vec::new();
    let mut places = [[0_u64; 2]; 2];
    for file in files {
        host.resize(host.len().next_multiple_of(ALIGNMENT), 0);
        let place = [host.len() as u64, file.content.len() as u64];
        match file.kind {
            DEPENDENCIES => places[0] = place,
            SETTINGS => places[1] = place,
            _ => {}
        }
        for number in [place[0], place[1], 0] {
            entries.extend(number.to_le_bytes());
        }
        entries.push(file.kind);
        write_string(&mut entries, &file.name);
        host.extend(file.content);
    }
    let list = host.len() as u64;
    host[marker..marker + 8].copy_from_slice(&list.to_le_bytes());
    let count = u32::try_from(files.len()).expect("few files");
    for number in [6, 0, count] {
        host.extend(number.to_le_bytes());
    }
    write_string(host, id);
    for number in places.as_flattened().iter().chain(&[0]) {
        host.extend(number.to_le_bytes());
    }
    host.extend(entries);
}

/// Writes a string of less than 128 bytes.
fn write_string(bytes: &mut Vec<u8>, string: &str) {
    let length = u8::try_from(string.len()).ok().filter(|length| *length < 0x80);
    bytes.push(length.expect("names are short"));
    bytes.extend(string.as_bytes());
}

fn position(bytes: &[u8], wanted: &[u8]) -> usize {
    let first = bytes.windows(wanted.len()).position(|window| window == wanted);
    first.unwrap_or_else(|| panic!("not a single-file application: it lacks {wanted:02x?}"))
}

/// A reader of the list of files.
struct Reader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> &'a [u8] {
        let taken = &self.file[self.at..self.at + size];
        self.at += size;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn u64(&mut self) -> usize {
        let number = u64::from_le_bytes(self.take(8).try_into().expect("eight bytes"));
        usize::try_from(number).expect("a place in the file")
    }

    /// Reads a string after its length, of seven bits a byte.
    fn string(&mut self) -> String {
        let (mut size, mut shift) = (0, 0);
        loop {
            let byte = usize::from(self.take(1)[0]);
            size |= (byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        String::from_utf8(self.take(size).to_vec()).expect("a path")
    }
}

#[cfg(test)]
mod tests {
    use super::{ASSEMBLY, File, MARKER, NAME_ROOM, SETTINGS, append, rebundle};

    /// A host with the program's name, and the files of an application.
    fn published() -> Vec<u8> {
        let mut host = b"\x7fELF code ".to_vec();
        let marker = host.len();
        host.extend([0; 8]);
        host.extend(MARKER);
        host.extend(b"App.dll");
        host.resize(host.len() + NAME_ROOM - 7, 0);
        let files = [
            (ASSEMBLY, "App.dll", b"MZ app"),
            (ASSEMBLY, "Vendor.dll", b"MZ own"),
            (ASSEMBLY, "System.Runtime.dll", b"MZ run"),
            (SETTINGS, "App.runtimeconfig.json", b"{\"a\":1"),
        ];
        let files = files.map(|(kind, name, content)| File { kind, name: name.to_owned(), content });
        append(&mut host, marker, "id", &files);
        host
    }

    #[test]
    fn a_program_has_its_own_name_and_assembly_and_the_framework() {
        let made = rebundle(&published(), "App", "longer", b"MZ longer than the other", None);
        let text = String::from_utf8_lossy(&made);
        for part in
            ["longer.dll\0", "MZ longer than the other", "MZ run", "{\"a\":1", "\u{19}longer.runtimeconfig"]
        {
            assert!(text.contains(part), "{part}");
        }
        for part in ["App.dll", "MZ app", "Vendor", "MZ own"] {
            assert!(!text.contains(part), "{part}");
        }
        // The same once more is the same: its own list can be read.
        let again = rebundle(&made, "longer", "longer", b"MZ longer than the other", None);
        assert_eq!(again, made);
    }
}
