//! A handler for the kernel's core dumps: a program that `core_pattern` names gets each core on its standard
//! input, writes it into a folder, and keeps the newest.
//!
//! [`KernelSettings`] makes a program the handler and restores the one before; [`take`] is the work of the
//! handler for one process that has crashed.
//!
//! # Source
//! core(5); Linux `fs/coredump.c`.

mod intake;
mod kernel;
mod store;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use intake::{CrashedProcess, CutReason, TakenCore, take};
pub use kernel::{Former, InstallError, KernelSettings};
pub use store::{CoreNames, KeptCore, kept_cores, make_room};

/// The place of the settings, as the kernel's pattern has room for few words.
pub const SETTINGS: &str = "/etc/dipc/crash-handler.json";

/// The settings of a handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs, reason = "the program that is the handler states every setting")]
pub struct HandlerSettings {
    /// The folder of the core dumps.
    pub folder: PathBuf,
    /// Maximum size of one core dump, in bytes of its file.
    pub max_bytes: u64,
    /// Maximum number of core dumps to keep.
    pub keep: usize,
    /// Minimum free space that is left on the file system, in bytes.
    pub min_free_bytes: u64,
    /// Maximum time for which the process that has crashed waits for its core dump to be written, in seconds.
    pub max_wait_seconds: u64,
    /// True to take the core dumps of .NET processes only.
    pub dotnet_only: bool,
    /// True to keep copies without strings and buffers only.
    pub privacy: bool,
    /// The kernel's settings before.
    pub former: Former,
}

impl HandlerSettings {
    /// Maximum time for which the process that has crashed waits.
    pub const fn max_wait(&self) -> Duration {
        Duration::from_secs(self.max_wait_seconds)
    }

    /// Reads the settings of a handler.
    ///
    /// # Errors
    /// If the file cannot be read, or is not one of settings.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read(path)?;
        Ok(serde_json::from_slice(&text)?)
    }
}
