//! The runtime in a process: which files it has mapped, and what its program exports.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use memchr::memmem;
use object::read::{Object as _, ObjectSymbol as _, ReadCache};

use dipc_client::ProcessView;

/// A runtime that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) kind: ImageKind,
    /// Its library, or the program that contains it, as the process sees its files.
    pub(crate) path: PathBuf,
    /// As its files have it: a folder's name or a text in it.
    pub(crate) version: Option<String>,
    /// Whether the process runs on musl, as Alpine Linux does.
    pub(crate) musl: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImageKind {
    /// A library `libcoreclr.so`.
    CoreClr,
    /// A program that contains CoreCLR.
    SingleFile,
    /// A program compiled ahead of time; whether it has the part that opens a diagnostic port.
    NativeAot { has_port: bool },
    /// The Mono of before .NET 5, which has none.
    Mono,
}

impl Image {
    /// `Ok(None)` if there is none; else why it cannot be seen.
    pub(super) fn of(pid: u32) -> Result<Option<Self>, String> {
        let Some(found) = Found::of(pid)? else { return Ok(None) };
        let texts = || File::open(&found.file).map(Texts::read).unwrap_or_default();
        let (kind, version) = match found.kind {
            Kind::CoreClr => {
                let version = version_of_folder(&found.path).or_else(|| texts().version);
                (ImageKind::CoreClr, version)
            }
            Kind::SingleFile => (ImageKind::SingleFile, texts().version),
            Kind::NativeAot => (ImageKind::NativeAot { has_port: texts().has_port }, None),
            Kind::Mono => (ImageKind::Mono, None),
        };
        Ok(Some(Self { kind, path: found.path, version, musl: found.musl }))
    }
}

/// Whether a process is .NET, as far as can be seen.
pub(crate) fn is_dotnet(pid: u32) -> bool {
    matches!(Found::of(pid), Ok(Some(_)))
}

enum Kind {
    CoreClr,
    SingleFile,
    NativeAot,
    Mono,
}

struct Found {
    kind: Kind,
    path: PathBuf,
    /// The same as reached from here.
    file: PathBuf,
    musl: bool,
}

impl Found {
    fn of(pid: u32) -> Result<Option<Self>, String> {
        let view = ProcessView::of(pid);
        let (mut library, mut mono, mut musl) = (None, None, false);
        view.for_each_mapped_file(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name == "libcoreclr.so" {
                library.get_or_insert_with(|| path.to_path_buf());
            } else if name.starts_with("libmonosgen-2.0.so") || name == "mono-sgen" {
                mono.get_or_insert_with(|| path.to_path_buf());
            }
            musl |= name.starts_with("ld-musl-");
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
        Ok(found.map(|(kind, path, file)| Self { kind, path, file, musl }))
    }
}

/// Programs with a runtime in them export what debuggers look for.
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

/// `…/Microsoft.NETCore.App/9.0.1/libcoreclr.so`
fn version_of_folder(library: &Path) -> Option<String> {
    let name = library.parent()?.file_name()?.to_str()?;
    let numbers = name.split('-').next()?.split('.');
    (numbers.clone().count() == 3 && numbers.into_iter().all(|it| it.parse::<u32>().is_ok()))
        .then(|| name.to_owned())
}

/// What is written in a runtime's file.
#[derive(Default)]
struct Texts {
    version: Option<String>,
    /// The beginning of the name of a diagnostic socket.
    has_port: bool,
}

impl Texts {
    /// The most of a file that is looked through.
    const LIMIT: u64 = 512 << 20;
    const VERSION: &'static [u8] = b"@(#)Version ";
    const PORT: &'static [u8] = b"dotnet-diagnostic";
    /// As long as what is looked for, with its end.
    const OVERLAP: usize = 64;

    fn read(file: impl Read) -> Self {
        let mut file = BufReader::with_capacity(1 << 16, file.take(Self::LIMIT));
        let mut texts = Self::default();
        let mut bytes = Vec::new();
        // What is at the end of a piece is looked at again with the next one.
        while file.by_ref().take(1 << 20).read_to_end(&mut bytes).is_ok_and(|count| count > 0) {
            texts.has_port |= memmem::find(&bytes, Self::PORT).is_some();
            if texts.version.is_none() {
                texts.version = version_in(&bytes);
            }
            if texts.has_port && texts.version.is_some() {
                break;
            }
            bytes.drain(..bytes.len().saturating_sub(Self::OVERLAP));
        }
        texts
    }
}

/// `@(#)Version 9.0.124.61010 @Commit…`: the third number is the patch times 100 plus the year. .NET Core 3.1 is 4.700, and
/// what came before it 4.6.
fn version_in(bytes: &[u8]) -> Option<String> {
    let start = memmem::find(bytes, Texts::VERSION)? + Texts::VERSION.len();
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
    fn versions_are_found_wherever_they_lie() {
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
                let texts = Texts::read(bytes.as_slice());
                assert_eq!((texts.version.as_deref(), texts.has_port), (Some(expected), true), "{before}");
            }
        }
        assert!(!Texts::read(&b"@(#)Version 9"[..]).has_port);
        assert_eq!(Texts::read(&b"@(#)Version 9"[..]).version, None);
    }

    #[test]
    fn shared_runtimes_lie_in_folders_of_their_version() {
        let version = |path: &str| version_of_folder(Path::new(path));
        assert_eq!(version("/usr/share/dotnet/shared/x/9.0.1/libcoreclr.so").as_deref(), Some("9.0.1"));
        let preview = "10.0.0-rc.1.25451.107";
        assert_eq!(version(&format!("/x/{preview}/libcoreclr.so")).as_deref(), Some(preview));
        assert_eq!(version("/x/10.0/libcoreclr.so"), None);
        assert_eq!(version("/x/a.b.c/libcoreclr.so"), None);
        assert_eq!(version("/app/libcoreclr.so"), None);
    }
}
