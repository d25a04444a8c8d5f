//! Core dumps that this program writes: their destination, and words for errors.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clr_dump::CopiedCore;
use dipc_collect::core::{self, CoreError, CoreSettings, ProcessCopy};

use crate::compression::OutputCompression;
use crate::duration;
use crate::exit::{Exit, Failure};
use crate::process::tracing_rights;
use crate::render::output_file::{NameOrigin, OutputFile, is_device};
use crate::render::{output, units};

/// A core dump that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenCore {
    /// The file; `None` for standard output.
    pub(crate) path: Option<PathBuf>,
    pub(crate) copy: ProcessCopy,
}

impl WrittenCore {
    /// The copied amounts in words.
    pub(crate) fn amounts(&self) -> String {
        let CopiedCore { memory_bytes, copied_bytes, unreadable_bytes, .. } = self.copy.copied;
        let mut text = format!(
            "{} of memory of {} threads, {} of it not zero",
            units::bytes(memory_bytes),
            self.copy.threads,
            units::bytes(copied_bytes)
        );
        if unreadable_bytes > 0 {
            text.push_str("; the kernel refused ");
            text.push_str(&units::bytes(unreadable_bytes));
        }
        text
    }
}

/// The place of a core dump.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CorePlace<'a> {
    StandardOutput,
    File(&'a Path, NameOrigin),
}

/// Stops a process, copies its memory into a core dump, and lets it run on. It runs on even if this program
/// is killed.
pub(crate) fn write(
    pid: u32,
    settings: &CoreSettings,
    compression: OutputCompression,
    place: CorePlace<'_>,
) -> Result<WrittenCore, Failure> {
    let mut output = Output::open(place, compression)?;
    let copy =
        core::write(pid, settings, output.file()?).map_err(|error| not_copied(&error, settings.pause))?;
    let path = output.finish(compression)?;
    Ok(WrittenCore { path, copy })
}

/// Returns the failure to copy a process that may be stopped for this time.
pub(crate) fn not_copied(error: &CoreError, pause: Duration) -> Failure {
    match error {
        CoreError::NotStopped { pid } => Failure::new(
            Exit::TimedOut,
            format_args!(
                "dump: process {pid}: its threads did not stop within --pause {}",
                duration::display(pause)
            ),
        )
        .with_help("it runs on; a longer --pause leaves time to stop the threads and to copy memory"),
        CoreError::Trace { pid, .. } => Failure::new(Exit::NotReachable, format_args!("dump: {error}"))
            .with_help(tracing_rights::to_attach(*pid)),
        CoreError::NoProcess { .. } => Failure::new(Exit::NotReachable, format_args!("dump: {error}")),
        _ => Failure::new(Exit::Failed, format_args!("dump: {error}")),
    }
}

/// The destination of a core dump. What cannot be written at any place, such as a pipe, gets a copy of an
/// unnamed file once the process runs on.
pub(crate) struct Output {
    named: Option<OutputFile>,
    spool: Option<File>,
}

impl Output {
    pub(crate) fn open(place: CorePlace<'_>, compression: OutputCompression) -> Result<Self, Failure> {
        let (named, is_direct) = match place {
            CorePlace::StandardOutput => {
                output::refuse_terminal("a core dump")?;
                (None, false)
            }
            CorePlace::File(path, origin) => {
                let is_direct = compression == OutputCompression::None && !is_device(path);
                let mut file = OutputFile::beside(path, origin)?;
                file.begin()?;
                // A core dump has all that the process knows.
                if let Some(written) = file.file().filter(|_| !is_device(path)) {
                    let owner_only = std::fs::Permissions::from_mode(0o600);
                    written.set_permissions(owner_only).map_err(|error| {
                        file.failed("protect", &error).with_help(
                            "a core dump has all that the process knows, and the file of this name is of another user: name another with -o",
                        )
                    })?;
                }
                (Some(file), is_direct)
            }
        };
        let spool = (!is_direct).then(tempfile::tempfile).transpose().map_err(|error| {
            let folder = std::env::temp_dir();
            Failure::new(Exit::Failed, format_args!("dump: {}: {error}", folder.display()))
                .with_help("the dump is collected there first: TMPDIR names another folder")
        })?;
        Ok(Self { named, spool })
    }

    /// The file to write into, at any offset.
    pub(crate) fn file(&mut self) -> Result<&File, Failure> {
        let named = self.named.as_ref().and_then(OutputFile::file);
        let file = self.spool.as_ref().or(named);
        file.ok_or_else(|| Failure::new(Exit::Failed, "dump: the output is closed"))
    }

    /// Writes the copy, and gives the file its name.
    pub(crate) fn finish(self, compression: OutputCompression) -> Result<Option<PathBuf>, Failure> {
        let Self { mut named, spool } = self;
        if let Some(mut spool) = spool {
            spool.seek(SeekFrom::Start(0)).map_err(|error| output::failed(&error))?;
            if let Some(file) = &mut named {
                let copied = compression.copy(spool, &mut *file);
                copied.map_err(|error| file.failed("write", &error))?;
            } else {
                let copied = compression.copy(spool, output::stream());
                copied.map_err(|error| output::failed(&error))?;
            }
        }
        let Some(mut file) = named else { return Ok(None) };
        file.close()?;
        Ok(Some(file.path().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use dipc_collect::core::CoreKind;

    use super::*;

    #[test]
    fn a_missing_process_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("core");
        let settings = CoreSettings::new(CoreKind::Full, Duration::from_secs(60));
        for pid in [u32::MAX, 0x7fff_fff0] {
            let place = CorePlace::File(&path, NameOrigin::User);
            let failure = write(pid, &settings, OutputCompression::None, place).unwrap_err();
            assert_eq!(failure.exit, Exit::NotReachable);
            assert!(!path.exists());
        }
    }
}
