//! Changes of files that are read again while `dipc monitor` runs.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// The time between two looks.
const LOOK: Duration = Duration::from_secs(2);

/// The time at which a file was changed, and its length; `None` if it is missing.
pub(super) type FileState = Option<(SystemTime, u64)>;

/// The states of files at the last look.
pub(super) struct FileWatch {
    states: Vec<FileState>,
    last_look: Instant,
}

impl FileWatch {
    pub(super) fn new(states: Vec<FileState>) -> Self {
        Self { states, last_look: Instant::now() }
    }

    /// Returns whether the files are to be read again: if one has changed, at which it looks at most every
    /// two seconds, or if that is asked for. `look` returns their states.
    pub(super) fn is_due(&mut self, look: impl FnOnce() -> Vec<FileState>, is_asked: bool) -> bool {
        if self.last_look.elapsed() < LOOK && !is_asked {
            return false;
        }
        self.last_look = Instant::now();
        let states = look();
        let is_due = states != self.states || is_asked;
        self.states = states;
        is_due
    }
}

/// Returns the states of files.
pub(super) fn states<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Vec<FileState> {
    let state = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    paths.into_iter().map(state).collect()
}
