//! The first reading of a recording: its code, its process and its times.

use std::io::Read;

use clr_events::ids::event_pipe;
use clr_events::{ClrEvent, CodeMap, EventSet, Provider, ids};
use nettrace::{Error, Event, Reader, RelativeTime, TraceInfo, Value};

/// Maximum number of bytes of code to keep from a recording: some 150,000 methods. Further methods are
/// unnamed, and are counted.
const MAX_CODE_SIZE: usize = 20 << 20;

/// Maximum number of bytes kept of a string about the process.
const MAX_LENGTH: usize = 8 << 10;

/// The events that name the runtime.
static RUNTIME_STARTS: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::RUNTIME_START),
    (Provider::Rundown, ids::rundown::RUNTIME_DC_START),
]);

/// The result of the first reading.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) code: CodeMap,
    pub(crate) process: ProcessFacts,
    pub(crate) runtime: Option<String>,
}

/// The facts of a process that a single event has.
#[derive(Debug, Default)]
pub(crate) struct ProcessFacts {
    pub(crate) command_line: Option<String>,
    pub(crate) os: Option<String>,
    pub(crate) arch: Option<String>,
}

impl ProcessFacts {
    /// Returns true if an event contains the facts.
    pub(crate) fn are_in(event: &Event<'_>) -> bool {
        let metadata = event.metadata();
        metadata.event_id() == event_pipe::PROCESS_INFO && metadata.provider() == event_pipe::PROVIDER
    }

    /// Takes the facts from an event that contains them.
    pub(crate) fn add(&mut self, event: &Event<'_>) {
        for (name, value) in event.fields().flatten() {
            let Value::String(text) = value else { continue };
            let place = match name {
                "CommandLine" => &mut self.command_line,
                "OSInformation" => &mut self.os,
                "ArchInformation" => &mut self.arch,
                _ => continue,
            };
            *place = Some(text.chars().take(MAX_LENGTH).collect());
        }
    }
}

impl Survey {
    /// Reads a recording to its end.
    pub(crate) fn read<R: Read>(mut events: Reader<R>) -> Result<Self, Error> {
        let mut survey = Self {
            code: CodeMap::with_limit(MAX_CODE_SIZE),
            process: ProcessFacts::default(),
            runtime: None,
        };
        events.for_each(|event| survey.add(&event))?;
        Ok(survey)
    }

    #[inline]
    fn add(&mut self, event: &Event<'_>) {
        self.code.add(event);
        let metadata = event.metadata();
        if self.runtime.is_none() && RUNTIME_STARTS.contains(metadata) {
            if let Ok(Some(ClrEvent::RuntimeStart(start))) = ClrEvent::of(event) {
                let (major, minor, build) =
                    (start.vm_major_version, start.vm_minor_version, start.vm_build_number);
                self.runtime = Some(format!("{major}.{minor}.{build}"));
            }
        } else if ProcessFacts::are_in(event) {
            self.process.add(event);
        }
    }
}

/// Returns the recording's start in nanoseconds since 1970; 0 without a calendar time, or with one after
/// 2262.
pub(crate) fn start_ns(info: Option<&TraceInfo>) -> i64 {
    let start = info.and_then(|info| info.start.unix_milliseconds());
    start.and_then(|milliseconds| milliseconds.checked_mul(1_000_000)).unwrap_or(0)
}

/// Returns a time in nanoseconds since 1970.
#[inline]
pub(crate) fn time_ns(start_ns: i64, time: RelativeTime) -> i64 {
    start_ns.saturating_add(time.as_nanos())
}
