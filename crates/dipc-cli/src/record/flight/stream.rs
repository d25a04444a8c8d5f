//! A session's stream with records that are kept, in any form: the state that the recorders share.

use std::path::PathBuf;
use std::time::Duration;

use dipc_client::Target;
use dipc_collect::{KeptFiles, Retention};
use nettrace::{Decoder, Record, Thread, TraceInfo};
use nettrace_edit::Segment;

use super::method_lists::MethodLists;
use crate::exit::{Exit, Failure};
use crate::record::notes::report_removal;
use crate::record::stopping_event::StoppingEvent;
use crate::record::stream_stats::{lost_in_words, report_damage};
use crate::render::live_line::LiveLine;
use crate::render::messages;

/// Returns the name of the next file.
pub(crate) type FileNames = Box<dyn Fn() -> PathBuf + Send>;

/// The stream, the files made of it, and the lists of methods that belong into them.
pub(super) struct KeptStream {
    pub(super) decoder: Decoder,
    pub(super) lists: Option<MethodLists>,
    /// The name of the next file.
    pub(super) file_name: FileNames,
    retention: Retention,
    files: KeptFiles,
    /// The number of files written.
    pub(super) written: usize,
    /// The number of events read.
    pub(super) events: u64,
    line: Option<LiveLine>,
    stopping_event: Option<StoppingEvent>,
    stopped_by: Option<String>,
    unreadable: Option<nettrace::Error>,
}

impl KeptStream {
    pub(super) fn new(
        retention: Retention,
        stopping_event: Option<StoppingEvent>,
        duration: Option<Duration>,
        file_name: FileNames,
    ) -> Self {
        Self {
            decoder: Decoder::new(),
            lists: None,
            file_name,
            retention,
            files: KeptFiles::default(),
            written: 0,
            events: 0,
            line: Some(LiveLine::new(duration)),
            stopping_event,
            stopped_by: None,
            unreadable: None,
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

    /// Returns the header, once its bytes have arrived. The next record reports an error in it.
    pub(super) fn header(&mut self) -> Option<&TraceInfo> {
        self.decoder.read_header().ok().flatten()
    }

    pub(super) fn threads(&self) -> &[Thread] {
        self.decoder.threads()
    }

    /// Passes the records that have arrived to `each`.
    pub(super) fn read(
        &mut self,
        mut each: impl FnMut(&Record<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        while self.unreadable.is_none() {
            let record = match self.decoder.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    self.unreadable = Some(error);
                    break;
                }
            };
            if let Record::Event(event) = &record {
                self.events += 1;
                if let Some(stopping_event) = &self.stopping_event
                    && self.stopped_by.is_none()
                {
                    self.stopped_by = stopping_event.name_if_matches(event);
                }
            }
            each(&record)?;
        }
        Ok(())
    }

    /// Counts a file that was written, and removes those beyond the limits.
    pub(super) fn add_file(&mut self, path: PathBuf, bytes: u64) {
        self.written += 1;
        self.files.add(vec![path], bytes, &self.retention, report_removal);
    }

    /// Returns true if the bytes that follow cannot be read.
    pub(super) const fn is_unreadable(&self) -> bool {
        self.unreadable.is_some()
    }

    /// Returns true if no more events are wanted, or can be read.
    pub(super) const fn is_over(&self) -> bool {
        self.stopped_by.is_some() || self.unreadable.is_some()
    }

    /// Returns true if the ended stream has the end that a runtime writes.
    pub(super) fn is_whole(&self) -> bool {
        self.unreadable.is_none() && self.decoder.truncated_at().is_none()
    }

    /// Shows the progress; `bytes` is the amount kept.
    pub(super) fn show(&mut self, elapsed: Duration, bytes: u64, is_stopping: bool) {
        if let Some(line) = &mut self.line {
            line.show(elapsed, bytes, self.events, self.decoder.loss().total(), is_stopping);
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
    pub(super) fn report(&self, done: &str) -> Exit {
        if let Some(event) = &self.stopped_by {
            messages::note(format_args!("Stopping event : {event}"));
        }
        report_damage(&self.decoder, self.unreadable.as_ref(), done)
    }

    /// The number of lost events.
    pub(super) fn lost(&self) -> u64 {
        self.decoder.loss().total()
    }

    /// The same in words.
    pub(super) fn lost_in_words(&self) -> String {
        lost_in_words(self.decoder.loss())
    }
}
