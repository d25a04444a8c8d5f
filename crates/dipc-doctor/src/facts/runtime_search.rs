//! The search for processes with a runtime among all processes of a machine.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use dipc_client::ProcessView;
use linux_proc_stat::Stat;

use super::image::{Libraries, library_kind};
use super::program::LinkedRuntime;

/// A search that reads each program once, however many processes run it.
#[derive(Default)]
pub(crate) struct RuntimeSearch {
    /// The runtimes of programs and libraries, by device and inode.
    programs: HashMap<(u64, u64), Option<LinkedRuntime>>,
}

impl RuntimeSearch {
    /// Returns true if a process has a visible runtime.
    pub(crate) fn has_runtime(&mut self, pid: u32) -> bool {
        // For a large program, the kernel takes many times longer for the mapped files than for this line.
        let stat = linux_proc_stat::process_folder(pid).join("stat");
        let Ok(stat) = linux_proc_stat::read(&stat) else { return false };
        let caught = Stat::parse(&stat).and_then(|stat| stat.caught_signals());
        if caught.is_some_and(|caught| caught & RUNTIME_SIGNALS != RUNTIME_SIGNALS) {
            return false;
        }
        self.has_image(pid)
    }

    /// Returns true if the program of a process, or a file that it has mapped, is a runtime.
    pub(crate) fn has_image(&mut self, pid: u32) -> bool {
        self.linked_runtime(pid).is_some() || self.has_library(pid)
    }

    fn linked_runtime(&mut self, pid: u32) -> Option<LinkedRuntime> {
        self.runtime_of(Path::new(&format!("/proc/{pid}/exe")))
    }

    fn runtime_of(&mut self, path: &Path) -> Option<LinkedRuntime> {
        let known = fs::metadata(path).ok().and_then(|file| identity(&file));
        if let Some(runtime) = known.and_then(|identity| self.programs.get(&identity)) {
            return *runtime;
        }
        let file = dipc_transport::open_regular(path).ok()?;
        let opened = file.metadata().ok().and_then(|file| identity(&file));
        let runtime = LinkedRuntime::find(file);
        if let Some(identity) = opened {
            self.programs.insert(identity, runtime);
        }
        runtime
    }

    /// Returns true if a process has mapped the library of a runtime, or one that was compiled ahead of
    /// time.
    fn has_library(&mut self, pid: u32) -> bool {
        let (mut found, mut others) = (false, Libraries::default());
        let view = ProcessView::of(pid);
        let read = view.for_each_mapped_file(|path| {
            found |= library_kind(path).is_some();
            others.add(path);
        });
        let mut is_aot =
            |path: &PathBuf| view.locate(path).is_ok_and(|file| self.runtime_of(&file).is_some());
        read.is_ok() && (found || others.paths.iter().any(&mut is_aot))
    }
}

/// SIGFPE (8) and SIGSEGV (11). CoreCLR, NativeAOT and Mono throw `DivideByZeroException` and
/// `NullReferenceException` from them: each catches both from its start on, before it runs managed code.
const RUNTIME_SIGNALS: u64 = 1 << (8 - 1) | 1 << (11 - 1);

/// Returns the device and the inode, on systems that have them.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems have neither")]
fn identity(file: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of real processes: .NET Core 3.1, .NET 9, a process that waits to be resumed, NativeAOT and
    /// Mono; `node`, and a shell.
    #[test]
    fn every_runtime_catches_the_signals_and_few_other_programs_do() {
        let stat = |caught: u64| {
            format!(
                "4711 (a) S 1) S 1 4711 4711 0 -1 4194560 92 0 0 0 1 2 3 4 20 0 1 0 987 3064147968 378 \
                 18446744073709551615 1 1 0 0 0 0 0 4096 {caught} 0 0 0 17 0 0 0 0 0 0"
            )
        };
        let may_have_runtime = |caught| {
            let caught = Stat::parse(stat(caught).as_bytes())?.caught_signals();
            caught.map(|found| found & RUNTIME_SIGNALS == RUNTIME_SIGNALS)
        };
        for caught in [17_624, 148_728, 17_656, 132_224, 1_260] {
            assert_eq!(may_have_runtime(caught), Some(true), "{caught}");
        }
        for caught in [17_922, 65_536, 0] {
            assert_eq!(may_have_runtime(caught), Some(false), "{caught}");
        }
    }

    #[test]
    fn a_program_is_read_once_for_all_its_processes() {
        let mut search = RuntimeSearch::default();
        let own = std::process::id();
        assert_eq!(search.linked_runtime(own), None);
        let known = search.programs.len();
        // The file does not give this result, so returning it shows that the file was not read again.
        for runtime in search.programs.values_mut() {
            *runtime = Some(LinkedRuntime::NativeAot);
        }
        let expected = (known == 1).then_some(LinkedRuntime::NativeAot);
        assert_eq!(search.linked_runtime(own), expected);
        assert_eq!(known, usize::from(cfg!(target_os = "linux")));
    }
}
