//! The files that a recorder makes of a stream: the state that the recorders share.

use std::path::PathBuf;
use std::time::Duration;

use dipc_client::Target;
use dipc_collect::{KeptFiles, RecordStream, Retention};
use nettrace_edit::Segment;

use super::method_lists::MethodLists;
use crate::exit::Exit;
use crate::record::notes::report_removal;
use crate::record::stopping_event::{StoppingEvent, StoppingEventSearch};
use crate::record::stream_stats::report_damage;
use crate::render::live_line::LiveLine;

/// Returns the name of the next file.
pub(crate) type FileNames = Box<dyn Fn() -> PathBuf + Send>;

/// The files, the lists of methods that belong into them, and the progress.
pub(super) struct FileSeries {
    pub(super) lists: Option<MethodLists>,
    /// The name of the next file.
    pub(super) file_name: FileNames,
    retention: Retention,
    files: KeptFiles,
    /// The number of files written.
    pub(super) written: usize,
    pub(super) stopping_event: StoppingEventSearch,
    line: Option<LiveLine>,
}

impl FileSeries {
    pub(super) fn new(
        retention: Retention,
        stopping_event: Option<StoppingEvent>,
        duration: Option<Duration>,
        file_name: FileNames,
    ) -> Self {
        Self {
            lists: None,
            file_name,
            retention,
            files: KeptFiles::default(),
            written: 0,
            stopping_event: StoppingEventSearch::new(stopping_event),
            line: Some(LiveLine::new(duration)),
        }
    }

    /// Makes the runtime list its methods from time to time. With `needs_help`, it is also made to report
    /// each method that it compiles.
    pub(super) fn list_methods(&mut self, target: &Target, needs_help: bool, is_starting: bool) {
        self.lists = Some(MethodLists::start(target, needs_help, is_starting));
    }

    /// Takes the parts of lists that have arrived.
    pub(super) fn read_lists(&mut self) {
        if let Some(lists) = &mut self.lists {
            lists.read();
        }
    }

    /// The last list that is complete.
    pub(super) fn last_list(&self) -> Option<&Segment> {
        self.lists.as_ref()?.last.as_ref()
    }

    /// Counts a file that was written, and removes those beyond the limits.
    pub(super) fn add_file(&mut self, path: PathBuf, bytes: u64) {
        self.written += 1;
        self.files.add(vec![path], bytes, &self.retention, report_removal);
    }

    /// Returns true if no more events of the stream are wanted, or can be read.
    pub(super) fn is_over(&self, stream: &RecordStream) -> bool {
        self.stopping_event.found().is_some() || stream.unreadable().is_some()
    }

    /// Shows the progress; `bytes` is the amount kept.
    pub(super) fn show(&mut self, stream: &RecordStream, elapsed: Duration, bytes: u64, is_stopping: bool) {
        if let Some(line) = &mut self.line {
            let lost = stream.decoder().loss().total();
            line.show(elapsed, bytes, stream.event_count(), lost, is_stopping);
        }
    }

    /// Ends the line that shows the progress.
    pub(super) fn end_line(&mut self) {
        if let Some(line) = self.line.take() {
            line.end();
        }
    }

    /// Reports the stopping event and damage in the stream; `done` is what happened to the rest. Returns the
    /// exit code for the damage.
    pub(super) fn report(&self, stream: &RecordStream, done: &str) -> Exit {
        self.stopping_event.report();
        report_damage(stream.decoder(), stream.unreadable(), done)
    }
}
