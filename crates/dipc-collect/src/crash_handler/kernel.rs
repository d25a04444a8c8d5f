//! The kernel's settings for core dumps.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{HandlerSettings, SETTINGS};
use crate::staged::StagedFile;

/// Maximum length of a pattern that the kernel takes.
///
/// # Source
/// Linux `include/linux/binfmts.h` (`CORENAME_MAX_SIZE`), with the end of the string.
const MAX_PATTERN: usize = 127;
/// The number of handlers for which the kernel keeps processes until they have ended. With 0, it would not
/// keep what `/proc` has of them.
const PIPE_LIMIT: &str = "64";
/// The words of the handler, after the path of its program.
const WORDS: &str = "crash-handler take";

/// The kernel's settings that a handler replaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs, reason = "the settings that are replaced")]
pub struct Former {
    /// `core_pattern`.
    pub core_pattern: String,
    /// `core_pipe_limit`.
    pub core_pipe_limit: String,
}

/// An error of making a program the handler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// Another program is the handler.
    #[error("the kernel gives core dumps to {0}")]
    OtherHandler(String),
    /// Users other than root can replace the program, which the kernel runs as root.
    #[error("{0} can be changed by other users than root, and the kernel runs the handler as root")]
    UnsafePath(PathBuf),
    /// The kernel does not take the pattern.
    #[error("the pattern has {0} bytes, and the kernel takes {MAX_PATTERN}: {1}")]
    TooLong(usize, String),
    /// A path has a character that separates words in the pattern.
    #[error("{0}: the path has spaces or '%', which separate words in the kernel's pattern")]
    InvalidPath(PathBuf),
    /// This program is not the handler.
    #[error("the handler is not this program: core_pattern is {0}")]
    NotInstalled(String),
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

/// The kernel's settings for core dumps.
#[derive(Debug, Clone)]
pub struct KernelSettings {
    /// `/proc/sys/kernel`, or a folder with such files.
    folder: PathBuf,
    /// The settings of the handler.
    settings: PathBuf,
}

impl KernelSettings {
    /// The settings of this kernel, in `folder` (`/proc/sys/kernel`), and those of the handler in a file.
    pub const fn new(folder: PathBuf, settings: PathBuf) -> Self {
        Self { folder, settings }
    }

    /// Returns the present settings.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn current(&self) -> Result<Former, InstallError> {
        Ok(Former {
            core_pattern: self.read("core_pattern")?,
            core_pipe_limit: self.read("core_pipe_limit")?,
        })
    }

    /// Returns true if the pattern is one of this module's handlers.
    pub fn is_ours(pattern: &str) -> bool {
        pattern.strip_prefix('|').is_some_and(|command| command.contains(WORDS))
    }

    /// Makes `program` the handler, and keeps the settings before in those of the handler. Replaces another
    /// handler only if `force` is true.
    ///
    /// # Errors
    /// If another program is the handler, `program` is not safe to run as root, or a file cannot be written.
    pub fn install(
        &self,
        program: &Path,
        settings: &HandlerSettings,
        force: bool,
    ) -> Result<(), InstallError> {
        let current = self.current()?;
        let is_update = Self::is_ours(&current.core_pattern);
        if let Some(command) = current.core_pattern.strip_prefix('|').filter(|_| !is_update && !force) {
            return Err(InstallError::OtherHandler(command.to_owned()));
        }
        let pattern = self.pattern(program)?;
        let former = match HandlerSettings::read(&self.settings) {
            Ok(before) if is_update => before.former,
            _ if is_update => Former { core_pattern: "core".to_owned(), core_pipe_limit: "0".to_owned() },
            _ => current,
        };
        self.write_settings(&HandlerSettings { former, ..settings.clone() })?;
        // The limit first: a handler that starts in between has its process in /proc.
        self.write("core_pipe_limit", PIPE_LIMIT)?;
        self.write("core_pattern", &pattern)
    }

    /// Restores the settings that were there before, and returns them. The core dumps stay.
    ///
    /// # Errors
    /// If another program is the handler by now, or a file cannot be written.
    pub fn uninstall(&self) -> Result<Former, InstallError> {
        let current = self.current()?.core_pattern;
        if !Self::is_ours(&current) {
            return Err(InstallError::NotInstalled(current));
        }
        let settings = HandlerSettings::read(&self.settings)
            .map_err(|error| InstallError::Io { path: self.settings.clone(), error })?;
        self.write("core_pattern", &settings.former.core_pattern)?;
        self.write("core_pipe_limit", &settings.former.core_pipe_limit)?;
        // Without them, the handler is as good as gone.
        let _ = fs::remove_file(&self.settings);
        Ok(settings.former)
    }

    /// Returns the pattern that has the kernel run `program`.
    fn pattern(&self, program: &Path) -> Result<String, InstallError> {
        let mut command = format!("|{} {WORDS}", word(program)?);
        if self.settings != Path::new(SETTINGS) {
            command.push_str(" --settings ");
            command.push_str(word(&self.settings)?);
        }
        // The pid and the thread in the first namespace, the signal, the time.
        command.push_str(" %P %I %s %t");
        if command.len() > MAX_PATTERN {
            return Err(InstallError::TooLong(command.len(), command));
        }
        for part in program.ancestors() {
            let metadata = fs::symlink_metadata(part)
                .map_err(|error| InstallError::Io { path: part.to_owned(), error })?;
            let own = rustix::process::geteuid().as_raw();
            let is_owned = metadata.uid() == 0 || metadata.uid() == own;
            // In a folder with the sticky bit, others cannot replace what is not theirs.
            let is_protected =
                metadata.mode() & 0o022 == 0 || (metadata.is_dir() && metadata.mode() & 0o1000 != 0);
            if !is_owned || !is_protected {
                return Err(InstallError::UnsafePath(part.to_owned()));
            }
        }
        Ok(command)
    }

    fn write_settings(&self, settings: &HandlerSettings) -> Result<(), InstallError> {
        let failed = |error| InstallError::Io { path: self.settings.clone(), error };
        let folder = crate::staged::folder_of(&self.settings);
        fs::create_dir_all(folder).map_err(failed)?;
        let (file, staged) = StagedFile::create(folder).map_err(failed)?;
        serde_json::to_writer_pretty(&file, settings).map_err(|error| failed(error.into()))?;
        file.sync_all().map_err(failed)?;
        staged.name_over(&self.settings).map_err(failed)
    }

    fn read(&self, name: &str) -> Result<String, InstallError> {
        let path = self.folder.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.trim_end_matches('\n').to_owned()),
            Err(error) => Err(InstallError::Io { path, error }),
        }
    }

    fn write(&self, name: &str, value: &str) -> Result<(), InstallError> {
        let path = self.folder.join(name);
        // One write: the kernel takes each as a whole value.
        fs::write(&path, format!("{value}\n")).map_err(|error| InstallError::Io { path, error })
    }
}

/// Returns a path as one word of the pattern.
fn word(path: &Path) -> Result<&str, InstallError> {
    path.to_str()
        .filter(|text| !text.contains(|c: char| c.is_whitespace() || c == '%'))
        .ok_or_else(|| InstallError::InvalidPath(path.to_owned()))
}
