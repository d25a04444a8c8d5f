//! The recording of a session into a ring, and the snapshots of it.

use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clr_conditions::StreamEnd;
use dipc_client::Target;
use dipc_collect::{Retention, RingRecorder};
use nettrace_edit::{Error, RingCapacity, SegmentStorage, Snapshot};

use super::condition_watch::ConditionWatch;
use super::crash::{CrashSources, Description};
use super::crash_core::CrashDump;
use super::file_series::{FileNames, FileSeries};
use super::method_lists::MethodLists;
use super::snapshot::{SnapshotFile, Written, check_room};
use super::trigger::{Arrival, Origin, TriggerSettings, Triggers};
use crate::duration;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::record::recorder::{self, Consumer};
use crate::record::source::ChildEnd;
use crate::record::stopping_event::StoppingEvent;
use crate::record::stream_stats::lost_in_words;
use crate::render::escape::escape_controls;
use crate::render::messages;
use crate::render::units;

/// Maximum wait for a list of methods requested for a snapshot.
const LIST: Duration = Duration::from_secs(3);
/// The words of a condition for a crash, which say more once the end of the process is known.
const CRASHED: &str = "the process crashed or was killed";

/// The settings of a flight recorder.
#[derive(Debug, Clone)]
pub(crate) struct FlightSettings {
    pub(crate) capacity: RingCapacity,
    pub(crate) storage: SegmentStorage,
    pub(crate) triggers: TriggerSettings,
    pub(crate) retention: Retention,
    /// True if a crash is an end that was asked for.
    pub(crate) waits_for_crash: bool,
}

/// A consumer of a stream that keeps the latest part of it.
pub(crate) struct FlightRecorder {
    settings: FlightSettings,
    interrupts: Interrupts,
    ring: RingRecorder,
    files: FileSeries,
    watch: Option<ConditionWatch>,
    crash: Option<CrashSources>,
    triggers: Triggers,
    /// The number of user requests handled.
    requests: usize,
    /// A snapshot that waits for its list of methods.
    ready: Option<Ready>,
    writing: Option<JoinHandle<Result<Written, Failure>>>,
    /// The first failure to write a snapshot.
    failure: Option<Failure>,
    /// The failure of the ring's files, which ends the recording; the ring's content is still written.
    unkept: Option<Failure>,
}

struct Ready {
    snapshot: Snapshot,
    reason: String,
    until: Instant,
    /// The number of lists when it was requested.
    lists: u64,
}

impl FlightRecorder {
    pub(crate) fn new(
        settings: FlightSettings,
        interrupts: Interrupts,
        stopping_event: Option<StoppingEvent>,
        duration: Option<Duration>,
        file_name: FileNames,
    ) -> Self {
        Self {
            watch: settings.triggers.condition.clone().map(ConditionWatch::new),
            requests: interrupts.snapshots(),
            ring: RingRecorder::new(settings.capacity, settings.storage.clone()),
            files: FileSeries::new(settings.retention, stopping_event, duration, file_name),
            settings,
            interrupts,
            crash: None,
            triggers: Triggers::default(),
            ready: None,
            writing: None,
            failure: None,
            unkept: None,
        }
    }

    /// Makes the runtime list its methods from time to time.
    pub(crate) fn list_methods(&mut self, target: &Target, needs_help: bool, is_starting: bool) {
        self.files.list_methods(target, needs_help, is_starting);
    }

    /// Determines the sources of facts about a crash, and the process that events are requested from again.
    pub(crate) fn watch_for_crash(
        &mut self,
        target: &Target,
        child: Option<ChildEnd>,
        dump: Option<&CrashDump>,
    ) {
        self.crash = Some(CrashSources::new(target, child, dump));
        if let Some(watch) = &mut self.watch {
            watch.renew_from(target);
        }
    }

    /// Evaluates the events that have arrived in the ring, and ends the recording if its files have failed.
    fn look(&mut self, fed: Result<(), Error>) -> Result<(), Failure> {
        fed.map_err(|error| cannot_keep(&error))?;
        self.judge();
        if self.unkept.is_none() {
            self.unkept = self.ring.storage_error().map(unkept);
        }
        Ok(())
    }

    /// Evaluates the condition on events that it has not seen.
    fn judge(&mut self) {
        let Self { watch: Some(watch), triggers, settings, .. } = self else { return };
        watch.judge(|found| {
            triggers.add(found.what, Origin::Condition, &settings.triggers, Instant::now());
        });
    }

    /// Handles requests and matches, and continues the snapshots begun for them.
    fn act(&mut self, is_silent: bool) -> Result<(), Failure> {
        let now = Instant::now();
        let requests = self.interrupts.snapshots();
        if requests > self.requests {
            self.requests = requests;
            self.triggers.add("asked for".to_owned(), Origin::User, &self.settings.triggers, now);
        }
        self.files.read_lists();
        if self.writing.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish_writing();
        }
        if self.writing.is_none() && self.ready.is_none() {
            self.begin_snapshot(false, is_silent)?;
        }
        let lists = self.files.lists.as_ref().map_or(u64::MAX, |lists| lists.count);
        if let Some(ready) = self.ready.take_if(|ready| lists > ready.lists || ready.until <= now) {
            let file = self.file(ready);
            self.writing = Some(thread::spawn(move || file.write()));
        }
        Ok(())
    }

    /// Begins a snapshot of the ring's content, if there is a reason to.
    fn begin_snapshot(&mut self, is_end: bool, is_silent: bool) -> Result<(), Failure> {
        let now = Instant::now();
        let Some(newest) = self.ring.newest() else { return Ok(()) };
        let start = self.ring.stream().decoder().info().and_then(|info| info.start.unix_milliseconds());
        let newest = start.map(|start| start.saturating_add(newest.as_nanos() / 1_000_000));
        let arrival = Arrival { newest, is_silent };
        let Some(reason) = self.triggers.take(is_end, now, arrival) else { return Ok(()) };
        let Some(snapshot) = self.ring.snapshot() else { return Ok(()) };
        let snapshot = snapshot.map_err(|error| cannot_keep(&error))?;
        // A list that has just begun to arrive suffices.
        let lists = self.files.lists.as_ref().map_or(0, |lists| lists.count);
        let is_listing = !is_end && self.files.lists.as_mut().is_some_and(MethodLists::request_now);
        let until = if is_listing { now + LIST } else { now };
        self.ready = Some(Ready { snapshot, reason: reason.text, until, lists });
        Ok(())
    }

    fn file(&self, ready: Ready) -> SnapshotFile {
        SnapshotFile {
            snapshot: ready.snapshot,
            list: self.files.last_list().cloned(),
            path: (self.files.file_name)(),
            reason: ready.reason,
        }
    }

    /// Waits for the snapshot that is being written, and reports the result.
    fn finish_writing(&mut self) {
        let Some(writing) = self.writing.take() else { return };
        // A panic of that thread was printed where it happened.
        match writing.join() {
            Ok(outcome) => self.report(outcome),
            Err(_) => self.triggers.fail(),
        }
    }

    fn report(&mut self, outcome: Result<Written, Failure>) {
        match outcome {
            Ok(written) => {
                messages::note(format_args!("Snapshot       : {written}"));
                let suppressed = self.triggers.take_suppressed();
                if suppressed > 0 {
                    messages::detail(format_args!(
                        "{suppressed} further reasons for a snapshot since the last one wrote none"
                    ));
                }
                self.files.add_file(written.path, written.bytes);
            }
            Err(failure) => {
                self.triggers.fail();
                messages::warning(&failure);
                if let Some(help) = &failure.help {
                    messages::help(help);
                }
                self.failure.get_or_insert(failure);
            }
        }
    }

    /// Writes the snapshots that were begun.
    pub(crate) fn finish_begun(&mut self) {
        self.finish_writing();
        self.files.read_lists();
        if let Some(ready) = self.ready.take() {
            let outcome = self.file(ready).write();
            self.report(outcome);
        }
    }

    /// Prints how the process ended, before the line of its snapshot, and writes the known facts to a file
    /// next to the snapshot.
    fn describe_crash(&mut self, outcome: Result<Written, Failure>, end: &str) {
        let described = match (&outcome, &mut self.crash) {
            (Ok(written), Some(sources)) => Some(sources.describe(&written.path, end, Some(&written.reason))),
            _ => None,
        };
        self.report(outcome);
        if let Some(described) = described {
            self.print_description(described);
        }
    }

    fn print_description(&mut self, described: Result<Description, Failure>) {
        match described {
            Ok(description) => description.print(),
            Err(failure) => {
                messages::warning(&failure);
                self.failure.get_or_insert(failure);
            }
        }
    }

    /// Writes the remaining snapshots.
    pub(crate) fn finish(
        mut self,
        end: &recorder::StreamEnd,
        target: &Target,
    ) -> Result<FlightSummary, Failure> {
        self.files.end_line();
        self.finish_begun();
        let now = Instant::now();
        let is_whole = end.is_whole();
        let has_condition = self.watch.is_some();
        let newest = self.ring.newest().unwrap_or_default();
        // A process may end before the stream has begun.
        let is_cut_header = end.is_unasked() && self.ring.stream().decoder().info().is_none();
        let mut crash = None;
        let mut is_asked_for = self.settings.waits_for_crash;
        let end_reason = if self.unkept.is_some() {
            Some("nothing more could be kept".to_owned())
        } else if self.ring.stream().unreadable().is_some() && !is_cut_header {
            Some("the stream cannot be read".to_owned())
        } else if end.is_unasked() {
            let cause = end.cause(target);
            let found = self.watch.as_mut().and_then(|watch| watch.end(cause, newest));
            is_asked_for |= found.is_some();
            if cause == StreamEnd::Crash {
                crash = Some(self.crash.as_mut().map_or_else(|| CRASHED.to_owned(), CrashSources::await_end));
                // The program that was started has a code of its own for its crash.
                is_asked_for |= self.crash.as_ref().is_some_and(CrashSources::has_child);
            }
            match found {
                Some(found) => Some(
                    crash.as_ref().map_or_else(|| found.what.clone(), |end| found.what.replace(CRASHED, end)),
                ),
                None if cause == StreamEnd::Disconnect => Some("the connection was lost".to_owned()),
                None if crash.is_some() => crash.clone(),
                None if !is_whole => Some("the stream ended in the middle".to_owned()),
                None if !has_condition => Some("the process ended".to_owned()),
                None => None,
            }
        } else {
            let is_only = !has_condition && self.triggers.count == 0;
            is_only.then(|| "the recording ended".to_owned())
        };
        if let Some(reason) = end_reason {
            self.triggers.add(reason, Origin::User, &self.settings.triggers, now);
        }
        self.begin_snapshot(true, true)?;
        if let Some(ready) = self.ready.take() {
            let mut file = self.file(ready);
            if is_whole {
                // The runtime's own list is at the end of the stream.
                file.list = None;
            }
            let outcome = file.write();
            match &crash {
                Some(end) => self.describe_crash(outcome, end),
                None => self.report(outcome),
            }
        } else if let (Some(end), Some(sources)) = (&crash, &mut self.crash) {
            let described = sources.describe(&(self.files.file_name)(), end, Some(end));
            self.print_description(described);
        }
        let (stream, files) = (self.ring.stream(), &self.files);
        let damage = if crash.is_some() && is_cut_header {
            Exit::Done
        } else {
            files.report(stream, "snapshots have the readable part")
        };
        let loss = stream.decoder().loss();
        Ok(FlightSummary {
            text: format!(
                "Watched {} event{}, {} lost, for {}; {} snapshot{} written",
                stream.event_count(),
                if stream.event_count() == 1 { "" } else { "s" },
                lost_in_words(loss),
                duration::display(end.elapsed()),
                files.written,
                if files.written == 1 { "" } else { "s" },
            ),
            lost: loss.total(),
            damage,
            has_crashed_as_asked: crash.is_some() && is_asked_for,
            failure: self.failure.or(self.unkept),
        })
    }
}

/// Reports that the files of the ring failed to grow. Its content can still be written elsewhere.
fn unkept(error: &io::Error) -> Failure {
    let failure = Failure::new(Exit::Failed, format_args!("keep events: {error}; the recording ends"));
    let failure = failure.with_help("make room in the folder of --keep-in, or name another one");
    messages::warning(&failure);
    if let Some(help) = &failure.help {
        messages::help(help);
    }
    failure
}

impl FlightSettings {
    /// Rejects a path that is not a folder, or on a disk without room for the ring.
    pub(crate) fn check_storage(&self) -> Result<(), Failure> {
        let SegmentStorage::Folder(folder) = &self.storage else { return Ok(()) };
        if !folder.is_dir() {
            return Err(Failure::usage(format_args!("--keep-in: {}: it is not a folder", folder.display())));
        }
        // A generation is begun before the oldest is dropped.
        let bytes = self.capacity.bytes.saturating_add(self.capacity.bytes / 4);
        check_room(&folder.join("ring"), bytes)
    }
}

/// The outcome of a flight recorder.
#[derive(Debug)]
pub(crate) struct FlightSummary {
    pub(crate) text: String,
    pub(crate) lost: u64,
    pub(crate) damage: Exit,
    /// True if the process crashed, which is what the recorder waited for.
    pub(crate) has_crashed_as_asked: bool,
    /// The first snapshot that could not be written.
    pub(crate) failure: Option<Failure>,
}

impl Consumer for FlightRecorder {
    type Error = Failure;

    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.ring.stream().unreadable().is_none() {
            if let Some(watch) = &mut self.watch {
                watch.feed(bytes);
            }
            let search = &mut self.files.stopping_event;
            let fed = self.ring.feed(bytes, |record| search.add_record(record));
            self.look(fed)?;
        }
        self.act(false)
    }

    fn pause(&mut self) -> Result<(), Failure> {
        if let Some(lists) = &mut self.files.lists {
            lists.request_again();
        }
        if let Some(watch) = &mut self.watch {
            watch.release();
        }
        self.judge();
        self.act(true)
    }

    fn end(&mut self) -> Result<(), Failure> {
        if let Some(watch) = &mut self.watch {
            watch.end_of_input();
        }
        let search = &mut self.files.stopping_event;
        let fed = self.ring.end(|record| search.add_record(record));
        self.look(fed)
    }

    fn is_satisfied(&self) -> bool {
        let is_done = self.settings.triggers.most.is_some_and(|most| self.triggers.count >= most);
        let is_over = self.files.is_over(self.ring.stream()) || self.unkept.is_some();
        is_over || is_done && self.ready.is_none() && self.writing.is_none()
    }

    fn is_whole(&self) -> bool {
        self.ring.stream().is_whole()
    }

    fn show(&mut self, elapsed: Duration, is_stopping: bool) {
        self.files.show(self.ring.stream(), elapsed, self.ring.bytes(), is_stopping);
    }
}

impl std::fmt::Display for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}, {} events", self.path.display(), units::bytes(self.bytes), self.events)?;
        if let Some((first, last)) = self.range {
            write!(f, " of {}", duration::display(last.saturating_duration_since(first)))?;
        }
        write!(f, ": {}", escape_controls(&self.reason))?;
        if self.is_cut_short {
            f.write_str("; the requested time had more than the bytes of --keep")?;
        }
        if self.names_left_out > 0 {
            write!(f, "; {} events with names found no room", self.names_left_out)?;
        }
        Ok(())
    }
}

fn cannot_keep(error: &Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("keep events: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::record::flight::test_stream::TestStream;

    /// A recorder with snapshots named `a`, `a_2` and so on in a folder.
    fn recorder(folder: &Path, triggers: TriggerSettings) -> FlightRecorder {
        let settings = FlightSettings {
            capacity: RingCapacity { time: None, bytes: 1 << 20 },
            storage: SegmentStorage::Memory,
            triggers,
            retention: Retention::default(),
            waits_for_crash: false,
        };
        let path = folder.join("a");
        FlightRecorder::new(settings, Interrupts::default(), None, None, Box::new(move || path.clone()))
    }

    /// Returns the payload lengths of a whole recording.
    fn payloads(path: &Path) -> Vec<usize> {
        let mut reader = nettrace::Reader::new(fs::File::open(path).unwrap()).unwrap();
        let mut lengths = Vec::new();
        reader.for_each(|event| lengths.push(event.payload().len())).unwrap();
        assert_eq!(reader.truncated_at(), None);
        lengths
    }

    #[test]
    fn the_last_snapshot_of_a_stream_without_its_end_has_the_list() {
        let target = Target::from_path("/nowhere");
        for (end, expected) in [
            (recorder::StreamEnd::abandoned(&target), &[10, 77][..]),
            (recorder::StreamEnd::whole(&target), &[10]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut recorder = recorder(folder.path(), TriggerSettings::default());
            recorder.files.lists = Some(MethodLists::with_last(&target, &TestStream::list(77)));
            recorder.take(&TestStream::new().event(10)).unwrap();
            recorder.finish(&end, &target).unwrap();
            assert_eq!(payloads(&folder.path().join("a")), expected);
        }
    }

    #[test]
    fn a_stream_that_cannot_be_read_ends_the_recording() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = recorder(folder.path(), TriggerSettings::default());
        recorder.take(&[1; 100]).unwrap();
        assert!(recorder.is_satisfied() && !recorder.is_whole());
        let target = Target::from_path("/nowhere");
        let end = recorder::StreamEnd::abandoned(&target);
        let summary = recorder.finish(&end, &target).unwrap();
        assert_eq!((summary.damage, fs::read_dir(folder.path()).unwrap().count()), (Exit::Incomplete, 0));
    }

    #[test]
    fn failed_snapshots_are_not_counted() {
        let folder = tempfile::tempdir().unwrap();
        let triggers = TriggerSettings { most: Some(1), ..TriggerSettings::default() };
        let mut recorder = recorder(folder.path(), triggers.clone());
        let (working, calls) = (recorder.files.file_name, AtomicUsize::new(0));
        let missing = folder.path().join("missing/a");
        recorder.files.file_name =
            Box::new(
                move || {
                    if calls.fetch_add(1, Ordering::Relaxed) < 2 { missing.clone() } else { working() }
                },
            );
        recorder.take(&TestStream::new().event(10)).unwrap();
        let ask = |recorder: &mut FlightRecorder| {
            recorder.triggers.add("asked for".into(), Origin::Condition, &triggers, Instant::now());
            recorder.act(true).unwrap();
            recorder.finish_writing();
        };
        ask(&mut recorder);
        assert!(!recorder.is_satisfied());
        ask(&mut recorder);
        let target = Target::from_path("/nowhere");
        let end = recorder::StreamEnd::whole(&target);
        let summary = recorder.finish(&end, &target).unwrap();
        assert!(summary.failure.is_some_and(|failure| failure.message.contains("missing")));
        assert_eq!(payloads(&folder.path().join("a")), [10]);
    }

    #[test]
    fn finishes_a_begun_snapshot_despite_failures() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = recorder(folder.path(), TriggerSettings::default());
        let target = Target::from_path("/nowhere");
        recorder.files.lists = Some(MethodLists::with_last(&target, &TestStream::list(77)));
        recorder.take(&TestStream::new().event(10)).unwrap();
        recorder.triggers.add("met".into(), Origin::Condition, &TriggerSettings::default(), Instant::now());
        recorder.act(true).unwrap();
        recorder.finish_begun();
        assert_eq!(payloads(&folder.path().join("a")), [10, 77]);
    }
}
