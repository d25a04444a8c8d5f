//! The runtime that a process has loaded, by its mapped files and the exports of its program.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use dipc_client::ProcessView;
use memchr::memmem;
use object::read::{Object as _, ObjectSymbol as _, ReadCache};

use crate::RuntimeKind;

/// A loaded runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuntimeImage {
    pub(crate) kind: RuntimeKind,
    /// The library, or the program that contains the runtime, as the process sees its files.
    pub(crate) path: PathBuf,
    /// The version by the name of the library's folder, or by a text in the file.
    pub(crate) version: Option<String>,
    /// Whether the process runs on musl, the C library of Alpine Linux.
    pub(crate) is_musl: bool,
}

impl RuntimeImage {
    /// Finds the runtime of a process; `Ok(None)` if it has none.
    ///
    /// # Errors
    /// The file and the system's reason.
    pub(crate) fn read(pid: u32) -> Result<Option<Self>, String> {
        let Some(found) = RuntimeFile::find(pid)? else { return Ok(None) };
        let markers = || File::open(&found.file).map(Markers::read).unwrap_or_default();
        let (kind, version) = match found.kind {
            Kind::CoreClr => {
                let version = version_of_folder(&found.path).or_else(|| markers().version);
                (RuntimeKind::CoreClr, version)
            }
            Kind::SingleFile => (RuntimeKind::SingleFile, markers().version),
            Kind::NativeAot => (RuntimeKind::NativeAot { has_port: markers().has_port }, None),
            Kind::Mono => (RuntimeKind::Mono, None),
        };
        Ok(Some(Self { kind, path: found.path, version, is_musl: found.is_musl }))
    }
}

/// Returns whether a process is seen to have a runtime.
pub(crate) fn is_dotnet(pid: u32) -> bool {
    matches!(RuntimeFile::find(pid), Ok(Some(_)))
}

/// A kind of runtime, before the file was searched for a diagnostic port.
enum Kind {
    CoreClr,
    SingleFile,
    NativeAot,
    Mono,
}

/// The file of a loaded runtime.
struct RuntimeFile {
    kind: Kind,
    /// The path as the process has it.
    path: PathBuf,
    /// The same file as reached from here.
    file: PathBuf,
    is_musl: bool,
}

impl RuntimeFile {
    fn find(pid: u32) -> Result<Option<Self>, String> {
        let view = ProcessView::of(pid);
        let (mut library, mut mono, mut is_musl) = (None, None, false);
        view.for_each_mapped_file(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name == "libcoreclr.so" {
                library.get_or_insert_with(|| path.to_path_buf());
            } else if name.starts_with("libmonosgen-2.0.so") || name == "mono-sgen" {
                mono.get_or_insert_with(|| path.to_path_buf());
            }
            is_musl |= name.starts_with("ld-musl-");
        })
        .map_err(|error| format!("/proc/{pid}/maps: {error}"))?;
        let program = PathBuf::from(format!("/proc/{pid}/exe"));
        let found = match (library, mono) {
            (Some(path), _) => {
                let file = view.locate(&path).unwrap_or_else(|_| path.clone());
                Some((Kind::CoreClr, path, file))
            }
            (None, Some(path)) => Some((Kind::Mono, path, program)),
            (None, None) => kind_of_program(&program).map(|kind| {
                let path = std::fs::read_link(&program).unwrap_or_else(|_| program.clone());
                (kind, path, program)
            }),
        };
        Ok(found.map(|(kind, path, file)| Self { kind, path, file, is_musl }))
    }
}

/// Returns the kind of runtime that a program contains, by the symbols that it exports for debuggers.
fn kind_of_program(program: &Path) -> Option<Kind> {
    let cache = ReadCache::new(File::open(program).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let mut native = false;
    for symbol in file.dynamic_symbols().filter(object::ObjectSymbol::is_definition) {
        match symbol.name() {
            Ok("DotNetRuntimeInfo") => return Some(Kind::SingleFile),
            Ok("DotNetRuntimeDebugHeader") => native = true,
            _ => {}
        }
    }
    native.then_some(Kind::NativeAot)
}

/// Returns the version in `…/Microsoft.NETCore.App/9.0.1/libcoreclr.so`.
fn version_of_folder(library: &Path) -> Option<String> {
    let name = library.parent()?.file_name()?.to_str()?;
    let numbers = name.split('-').next()?.split('.');
    (numbers.clone().count() == 3 && numbers.into_iter().all(|it| it.parse::<u32>().is_ok()))
        .then(|| name.to_owned())
}

/// Texts in the file of a runtime.
#[derive(Default)]
struct Markers {
    version: Option<String>,
    /// Whether the file has the beginning of the name of a diagnostic socket.
    has_port: bool,
}

impl Markers {
    /// The largest part of a file that is searched, in bytes.
    const LIMIT: u64 = 512 << 20;
    const VERSION: &'static [u8] = b"@(#)Version ";
    const PORT: &'static [u8] = b"dotnet-diagnostic";
    /// The number of bytes that two pieces share; no marker is longer.
    const OVERLAP: usize = 64;

    fn read(file: impl Read) -> Self {
        let mut file = BufReader::with_capacity(1 << 16, file.take(Self::LIMIT));
        let mut markers = Self::default();
        let mut bytes = Vec::new();
        // A marker may lie across the end of a piece.
        while file.by_ref().take(1 << 20).read_to_end(&mut bytes).is_ok_and(|count| count > 0) {
            markers.has_port |= memmem::find(&bytes, Self::PORT).is_some();
            if markers.version.is_none() {
                markers.version = version_in(&bytes);
            }
            if markers.has_port && markers.version.is_some() {
                break;
            }
            bytes.drain(..bytes.len().saturating_sub(Self::OVERLAP));
        }
        markers
    }
}

/// Returns the version in `@(#)Version 9.0.124.61010 @Commit…`, whose third number is the patch times 100 plus the year. .NET
/// Core 3.1 is 4.700, older ones are 4.6.
fn version_in(bytes: &[u8]) -> Option<String> {
    let start = memmem::find(bytes, Markers::VERSION)? + Markers::VERSION.len();
    let text = bytes.get(start..)?;
    let end = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
    let mut numbers = std::str::from_utf8(text.get(..end)?).ok()?.split('.').map(str::parse::<u32>);
    let (major, minor, third) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(match (major, minor) {
        (4, 700) => "3.1".to_owned(),
        (4, _) => "2".to_owned(),
        _ => format!("{major}.{minor}.{}", third / 100),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_at_every_offset() {
        for (text, expected) in [
            ("@(#)Version 9.0.124.61010 @Commit: c8a", "9.0.1"),
            ("@(#)Version 10.0.526.15411 @Commit: a61", "10.0.5"),
            ("@(#)Version 4.700.22.11601 @Commit: 0de", "3.1"),
            ("@(#)Version 4.6.30411.01 @Commit", "2"),
        ] {
            for before in [0, 1, (1 << 20) - 20, 1 << 20, (1 << 20) + 5] {
                let mut bytes = vec![0; before];
                bytes.extend_from_slice(text.as_bytes());
                bytes.extend_from_slice(b"\0dotnet-diagnostic\0");
                let markers = Markers::read(bytes.as_slice());
                assert_eq!(
                    (markers.version.as_deref(), markers.has_port),
                    (Some(expected), true),
                    "{before}"
                );
            }
        }
        assert!(!Markers::read(&b"@(#)Version 9"[..]).has_port);
        assert_eq!(Markers::read(&b"@(#)Version 9"[..]).version, None);
    }

    #[test]
    fn shared_runtimes_have_folders_of_their_version() {
        let version = |path: &str| version_of_folder(Path::new(path));
        assert_eq!(version("/usr/share/dotnet/shared/x/9.0.1/libcoreclr.so").as_deref(), Some("9.0.1"));
        let preview = "10.0.0-rc.1.25451.107";
        assert_eq!(version(&format!("/x/{preview}/libcoreclr.so")).as_deref(), Some(preview));
        assert_eq!(version("/x/10.0/libcoreclr.so"), None);
        assert_eq!(version("/x/a.b.c/libcoreclr.so"), None);
        assert_eq!(version("/app/libcoreclr.so"), None);
    }
}
