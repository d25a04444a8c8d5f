//! The runtime that a process has loaded, from its mapped files and the exports of its program.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use dipc_client::ProcessView;

use super::program::{LinkedRuntime, Markers};
use crate::RuntimeKind;

/// A loaded runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuntimeImage {
    pub(crate) kind: RuntimeKind,
    /// The library, or the program that contains the runtime, as the process sees its files.
    pub(crate) path: PathBuf,
    /// The version from the name of the library's folder, or from a string in the file.
    pub(crate) version: Option<String>,
    /// True if the process runs on musl, the C library of Alpine Linux.
    pub(crate) is_musl: bool,
}

impl RuntimeImage {
    /// Finds the runtime of a process; `Ok(None)` without a runtime.
    ///
    /// # Errors
    /// The file and the system's reason.
    pub(crate) fn read(pid: u32) -> Result<Option<Self>, String> {
        let Some(found) = RuntimeFile::find(pid)? else { return Ok(None) };
        let markers = || dipc_transport::open_regular(&found.file).map(Markers::read).unwrap_or_default();
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

/// Returns the kind of runtime that a library contains, by file name.
pub(super) fn library_kind(path: &Path) -> Option<LibraryKind> {
    let name = path.file_name()?.to_str()?;
    if name == "libcoreclr.so" {
        Some(LibraryKind::CoreClr)
    } else if name.starts_with("libmonosgen-2.0.so") || name == "mono-sgen" {
        Some(LibraryKind::Mono)
    } else {
        None
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LibraryKind {
    CoreClr,
    Mono,
}

/// Libraries of a process, which can be compiled ahead of time.
#[derive(Default)]
pub(super) struct Libraries {
    pub(super) paths: BTreeSet<PathBuf>,
}

impl Libraries {
    /// Maximum number of libraries to keep.
    const MAX: usize = 1024;

    /// Adds the path of a mapped file if it has the name of a library.
    pub(super) fn add(&mut self, path: &Path) {
        let is_library = path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"));
        if is_library && self.paths.len() < Self::MAX && !self.paths.contains(path) {
            self.paths.insert(path.to_path_buf());
        }
    }
}

/// A kind of runtime, before the file is searched for a diagnostic port.
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
        let mut others = Libraries::default();
        view.for_each_mapped_file(|path| {
            let found = match library_kind(path) {
                Some(LibraryKind::CoreClr) => &mut library,
                Some(LibraryKind::Mono) => &mut mono,
                None => {
                    let name = path.file_name().unwrap_or_default();
                    is_musl |= name.to_string_lossy().starts_with("ld-musl-");
                    others.add(path);
                    return;
                }
            };
            found.get_or_insert_with(|| path.to_path_buf());
        })
        .map_err(|error| format!("/proc/{pid}/maps: {error}"))?;
        let program = PathBuf::from(format!("/proc/{pid}/exe"));
        let found = match (library, mono) {
            (Some(path), _) => {
                let file = view.locate(&path).unwrap_or_else(|_| path.clone());
                Some((Kind::CoreClr, path, file))
            }
            (None, Some(path)) => Some((Kind::Mono, path, program)),
            (None, None) => {
                let of_program = || {
                    let runtime = LinkedRuntime::find(File::open(&program).ok()?)?;
                    let path = std::fs::read_link(&program).unwrap_or_else(|_| program.clone());
                    Some((runtime, path, program.clone()))
                };
                let of_library = |path: &PathBuf| {
                    let file = view.locate(path).ok()?;
                    let runtime = LinkedRuntime::find(dipc_transport::open_regular(&file).ok()?)?;
                    Some((runtime, path.clone(), file))
                };
                let found = of_program().or_else(|| others.paths.iter().find_map(of_library));
                found.map(|(runtime, path, file)| {
                    let kind = match runtime {
                        LinkedRuntime::CoreClr => Kind::SingleFile,
                        LinkedRuntime::NativeAot => Kind::NativeAot,
                    };
                    (kind, path, file)
                })
            }
        };
        Ok(found.map(|(kind, path, file)| Self { kind, path, file, is_musl }))
    }
}

/// Returns the version in `…/Microsoft.NETCore.App/9.0.1/libcoreclr.so`.
pub(super) fn version_of_folder(library: &Path) -> Option<String> {
    let name = library.parent()?.file_name()?.to_str()?;
    let numbers = name.split('-').next()?.split('.');
    (numbers.clone().count() == 3 && numbers.into_iter().all(|it| it.parse::<u32>().is_ok()))
        .then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
