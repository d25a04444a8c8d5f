//! The overview of a bundle, as text.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clr_events::ClrEvent;
use dipc_client::nettrace::{Event, RelativeTime, TraceInfo};
use dipc_client::{CrashFiles, KernelCore, LiveReader, RuntimeFiles};
use dipc_collect::logs::LogReader;
use jiff::Timestamp;
use nettrace_edit::RecordingSummary;

use super::last_counters::CounterRow;
use crate::artifact::{LogFormat, causes_of_recording, write_record};
use crate::process::Watched;

/// The names of files in the bundle.
pub(super) const EVENTS: &str = "events.nettrace";
pub(super) const REPORT: &str = "crashreport.json";

/// Maximum number of exceptions, and of log records, to show: the last ones.
const MAX_SHOWN: usize = 50;
/// Maximum length of the shown text of an exception or a log record, in characters.
const MAX_TEXT_LENGTH: usize = 4000;
/// The bytes read at once.
const CHUNK: usize = 64 << 10;

/// A core dump, left where it is.
pub(super) struct CoreFile {
    pub(super) path: PathBuf,
    /// The size of the dump; `None` if it was not found.
    pub(super) bytes: Option<u64>,
}

/// The facts that the text states.
pub(super) struct Overview<'b> {
    pub(super) process: &'b Watched,
    pub(super) reason: &'static str,
    pub(super) files: &'b CrashFiles,
    pub(super) now: Timestamp,
    pub(super) written: Option<RecordingSummary>,
    pub(super) is_cut_short: bool,
    pub(super) lost: u64,
    pub(super) counters: &'b [CounterRow],
    pub(super) has_report: bool,
    pub(super) core: Option<CoreFile>,
}

/// The last events of a recording.
#[derive(Default)]
struct LastEvents {
    /// The beginning of the stream in Unix milliseconds.
    start: Option<i64>,
    exceptions: Last,
    records: Last,
    collections: u64,
    newest: Option<RelativeTime>,
}

/// The last strings of a list.
#[derive(Default)]
struct Last {
    texts: VecDeque<String>,
    count: usize,
}

impl Overview<'_> {
    /// Writes the text. The recording is read from the bundle.
    pub(super) fn text(&self, bundle: &Path) -> String {
        let mut events = LastEvents::default();
        // Events are missing without a recording; the readable part of it counts.
        let _ = events.read(&bundle.join(EVENTS));
        let causes = File::open(bundle.join(EVENTS)).and_then(causes_of_recording).unwrap_or_default();
        let mut text = String::new();
        self.write_facts(&mut text, &events);
        for (index, cause) in causes.iter().enumerate() {
            let label = if index == 0 { "Cause" } else { "Also" };
            // Writing into a `String` does not fail.
            let _ = writeln!(text, "{label:<15}: {}", line(&cause.cause));
            for evidence in &cause.evidence {
                let _ = writeln!(text, "{:<15}  {}", "", line(evidence));
            }
        }
        let mut list = |title: &str, last: &Last| {
            if last.count > 0 {
                // Writing into a `String` does not fail.
                let _ = writeln!(text, "\n{title} ({} of {}):", last.texts.len(), last.count);
                for entry in &last.texts {
                    text.push_str(entry);
                }
            }
        };
        list("The last exceptions", &events.exceptions);
        list("The last log records", &events.records);
        if !self.counters.is_empty() {
            text.push_str("\nThe last counters:\n");
            for row in self.counters {
                let value = row.value.map_or_else(|| "-".to_owned(), |value| format!("{value}"));
                let rate = if row.is_rate { "/s" } else { "" };
                let unit = if row.unit.is_empty() { String::new() } else { format!(" {}", row.unit) };
                let _ = writeln!(text, "  {}  {value}{}{rate}", line(&row.counter), line(&unit));
            }
        }
        text
    }

    fn write_facts(&self, text: &mut String, events: &LastEvents) {
        let mut fact = |name: &str, value: &str| {
            // Writing into a `String` does not fail.
            let _ = writeln!(text, "{name:<15}: {}", line(value));
        };
        let process = self.process;
        fact("Process", &format!("{} ({})", process.title(), process.facts.pid));
        if let Some(command_line) = &process.facts.command_line {
            fact("Command line", command_line);
        }
        if let Some(version) = &process.runtime_version {
            fact("Runtime", version);
        }
        fact("Reason", self.reason);
        fact("Noticed", &self.now.strftime("%Y-%m-%d %H:%M:%S%.3fZ").to_string());
        match &self.written {
            None => fact("Events", "none were kept"),
            Some(written) => {
                let span = written.range.map(|(first, last)| last.saturating_duration_since(first));
                let seconds = span.unwrap_or_default().as_secs_f64();
                let newest = events.newest.and_then(|newest| events.time(newest));
                let newest = newest.map(|time| format!(", the last at {time}")).unwrap_or_default();
                fact("Events", &format!("{} in {EVENTS}, of {seconds:.1} s{newest}", written.events));
                if self.is_cut_short {
                    fact("Kept", "less than the time to keep, because of the limit on bytes");
                }
                fact("Missing", "the events of the last 100 ms or so, which the runtime had not sent");
            }
        }
        if self.lost > 0 {
            fact("Lost", &format!("{} events, which the runtime dropped", self.lost));
        }
        if events.collections > 0 {
            fact("Collections", &events.collections.to_string());
        }
        if self.has_report {
            fact("Crash report", REPORT);
        }
        let place = |core: &CoreFile| {
            let path = core.path.display();
            match core.bytes {
                Some(bytes) => format!("{path}, {bytes} bytes, left there"),
                None if self.files.has_own_root => format!("{path} in its container"),
                None => format!("{path} (not there now)"),
            }
        };
        match (&self.core, &self.files.runtime) {
            (Some(core), _) => fact("Core dump", &place(core)),
            (None, None) => fact("Core dump", "not known: the environment of the process could not be read"),
            (None, Some(RuntimeFiles { report: None, .. })) => fact(
                "Core dump",
                "none by the runtime; DOTNET_DbgEnableMiniDump=1 and DOTNET_EnableCrashReport=1 in the \
                 environment of the process have it write them",
            ),
            (None, Some(_)) => {}
        }
        match &self.files.kernel {
            Some(KernelCore::LimitedToZero) => fact("Kernel's core", "none: ulimit -c is 0"),
            Some(KernelCore::Piped(program)) => {
                fact("Kernel's core", &format!("given to {program} (/proc/sys/kernel/core_pattern)"));
            }
            Some(KernelCore::File(pattern)) if self.files.has_own_root => {
                fact("Kernel's core", &format!("{} in its container", pattern.display().display()));
            }
            Some(KernelCore::File(pattern)) => match pattern.find() {
                Some(path) => fact("Kernel's core", &path.display().to_string()),
                None => fact("Kernel's core", &format!("{} (not there now)", pattern.display().display())),
            },
            None => {}
        }
    }
}

impl LastEvents {
    fn read(&mut self, path: &Path) -> std::io::Result<()> {
        let mut file = File::open(path)?;
        let mut reader = LiveReader::in_whole_order();
        let mut records = LogReader::default();
        let mut buffer = vec![0; CHUNK];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                reader.end_of_input();
            } else {
                reader.feed(buffer.get(..count).unwrap_or_default());
            }
            if let Some(info) = reader.info() {
                self.set_start(info);
                records.set_start(info);
            }
            let mut record = Vec::new();
            reader.for_each(|event| {
                self.add(event);
                records.add(event, &mut |it| write_record(it, LogFormat::PlainText, &mut record));
                self.records.add_record(&mut record);
            });
            if count == 0 {
                records.finish(&mut |it| write_record(it, LogFormat::PlainText, &mut record));
                self.records.add_record(&mut record);
                return Ok(());
            }
        }
    }

    fn set_start(&mut self, info: &TraceInfo) {
        self.start = info.start.unix_milliseconds();
    }

    fn time(&self, time: RelativeTime) -> Option<String> {
        let start = Timestamp::from_millisecond(self.start?).ok()?;
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or_default();
        let time = start.checked_add(Duration::from_nanos(nanoseconds)).ok()?;
        Some(time.strftime("%H:%M:%S%.3f").to_string())
    }

    fn add(&mut self, event: &Event<'_>) {
        let time = event.relative_time();
        self.newest = self.newest.max(Some(time));
        match ClrEvent::of(event) {
            Ok(Some(ClrEvent::ExceptionStart(thrown))) => {
                let (name, message) =
                    (thrown.exception_type.to_string(), thrown.exception_message.to_string());
                let time = self.time(time).unwrap_or_default();
                self.exceptions.add(format!("  {time} {}: {}\n", line(&name), line(&message)));
            }
            Ok(Some(ClrEvent::GcStop(_))) => self.collections = self.collections.saturating_add(1),
            _ => {}
        }
    }
}

impl Last {
    fn add(&mut self, text: String) {
        self.count = self.count.saturating_add(1);
        self.texts.push_back(text);
        if self.texts.len() > MAX_SHOWN {
            self.texts.pop_front();
        }
    }

    /// Adds a log record, which may have several lines, and clears the buffer.
    fn add_record(&mut self, record: &mut Vec<u8>) {
        if record.is_empty() {
            return;
        }
        let text: String = String::from_utf8_lossy(record).chars().take(MAX_TEXT_LENGTH).collect();
        let mut lines = String::new();
        for text in text.lines() {
            let _ = writeln!(lines, "  {}", line(text));
        }
        self.add(lines);
        record.clear();
    }
}

/// The text as one line: control characters, which could steer a terminal, are spaces.
fn line(text: &str) -> String {
    text.chars().take(MAX_TEXT_LENGTH).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
