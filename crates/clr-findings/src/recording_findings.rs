//! The causes and the other facts of a recording, for reports.

use nettrace_export::report::{Note, Overview};

use crate::diagnosis::{Evidence, diagnose};
use crate::finding::Finding;
use crate::process::ProcessEnd;
use crate::readings::Readings;

/// The causes that a recording shows, and its other facts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordingFindings {
    /// The causes, the most costly first.
    pub causes: Vec<Finding>,
    /// The facts, faults of the recording first. A fact with the name of a cause is left out: the cause has
    /// it.
    pub notes: Vec<Note>,
}

impl RecordingFindings {
    /// Judges an overview with the readings that the recording has, and with the end of the process if it
    /// ended.
    pub fn of(overview: &Overview, readings: &Readings, end: Option<&ProcessEnd>) -> Self {
        let evidence = Evidence::default().with_recording(overview).with_readings(readings).with_end(end);
        let causes = diagnose(&evidence);
        let mut notes = overview.notes();
        notes.retain(|note| causes.iter().all(|cause| cause.kind.id() != note.id()));
        Self { causes, notes }
    }

    /// The findings at the top of a page.
    #[cfg(feature = "page")]
    pub fn into_page(self) -> Vec<nettrace_export::page::PageFinding> {
        use nettrace_export::page::PageFinding;

        let causes = self.causes.into_iter().map(|cause| PageFinding { is_problem: true, text: cause.cause });
        causes.chain(self.notes.iter().map(PageFinding::from)).collect()
    }
}
