//! The finished recordings, and the steps to them, for the command that presents them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use clr_findings::Readings;
use nettrace_export::report::EventGroup;

use crate::render::{messages, shell};

/// The finished recordings, for a command that presents them.
#[derive(Debug, Clone, Default)]
pub(crate) struct WrittenFiles {
    files: Option<Arc<Mutex<Vec<WrittenFile>>>>,
    news: Option<mpsc::Sender<News>>,
}

/// A finished recording.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    pub(crate) path: PathBuf,
    /// The groups of events that were requested, but did not happen.
    pub(crate) absent: Vec<EventGroup>,
}

/// A step of a recording, for a command that works beside it.
#[derive(Debug)]
pub(crate) enum News {
    /// The session of a process is about to start.
    Starting { pid: Option<u32> },
    /// The process was read beside its events, also if it could not be recorded.
    Read(Box<Readings>),
    /// The recording is complete. A program that was started may still run.
    Written { path: PathBuf, end: RecordingEnd },
}

/// The end of a recording.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordingEnd {
    /// True if it has ended by itself, most likely with its process.
    pub(crate) has_ended: bool,
    /// True if exceptions were recorded for a part of the time: they were many.
    pub(crate) some_exceptions: bool,
}

impl WrittenFiles {
    /// A list of recordings that its owner presents.
    pub(crate) fn presented() -> Self {
        Self { files: Some(Arc::default()), news: None }
    }

    /// Has the steps of recordings sent to a command that presents them. The cause of a crash is written next
    /// to the recording of each process.
    pub(crate) fn followed(news: mpsc::Sender<News>) -> Self {
        Self { news: Some(news), ..Self::presented() }
    }

    /// Returns true if another command presents the recordings.
    pub(super) const fn are_presented(&self) -> bool {
        self.files.is_some()
    }

    pub(super) const fn are_followed(&self) -> bool {
        self.news.is_some()
    }

    /// Takes the files that were added.
    pub(crate) fn take(&self) -> Vec<WrittenFile> {
        let lock = |files: &Arc<Mutex<Vec<WrittenFile>>>| {
            std::mem::take(&mut *files.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.files.as_ref().map(lock).unwrap_or_default()
    }

    pub(super) fn tell(&self, news: News) {
        if let Some(sender) = &self.news {
            // The receiver is gone if the command has failed.
            let _ = sender.send(news);
        }
    }

    pub(super) fn tell_readings(&self, readings: &Readings) {
        if self.are_followed() {
            self.tell(News::Read(Box::new(readings.clone())));
        }
    }

    /// Adds a recording, or prints a note with the command that shows it: `report` after the file.
    pub(super) fn add(&self, path: &Path, report: &str, absent: Vec<EventGroup>, end: RecordingEnd) {
        self.tell(News::Written { path: path.to_owned(), end });
        match &self.files {
            Some(files) => {
                let file = WrittenFile { path: path.to_owned(), absent };
                files.lock().unwrap_or_else(PoisonError::into_inner).push(file);
            }
            None => {
                messages::note(format_args!("Overview       : dipc report {}{report}", shell::path(path)));
            }
        }
    }
}
