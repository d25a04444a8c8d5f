//! The readings of a process as a recording, which becomes a part of that of its events.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};

use clr_findings::{Readings, ReadingsTooLarge, RecordedReadings};
use nettrace::TraceInfo;
use nettrace_synth::v6::{ThreadRow, Trace};
use nettrace_synth::{Event, EventBlock, Field, Metadata, SystemTime, TraceHeader, Type, Value, payload};

use crate::exit::{Exit, Failure};

/// The name of the readings in messages.
pub(super) const NAME: &str = "threads in memory and the kernel's account";
/// UTF-16 code units of each part: other readers take no event of 64 KB.
const PART: usize = 30_000;

/// Returns a recording of the readings at the start of another recording.
pub(super) fn recording_of(readings: Readings, recording: &TraceInfo) -> Result<File, Failure> {
    let parts = readings.into_parts(PART).map_err(|error: ReadingsTooLarge| failed(&error))?;
    let process = recording.process_id.unwrap_or_default();
    let header = TraceHeader {
        start: start_of(recording),
        sync_ticks: recording.start_ticks.0.cast_signed(),
        frequency: recording.frequency.cast_signed(),
        key_values: recording
            .process_id
            .map(|pid| ("ProcessId".to_owned(), pid.to_string()))
            .into_iter()
            .collect(),
        ..TraceHeader::default()
    };
    let mut trace = Trace::new(&header);
    trace.metadata_block(&[Metadata {
        id: RecordedReadings::PART,
        provider: RecordedReadings::PROVIDER.to_owned(),
        event_id: RecordedReadings::PART,
        name: "Part".to_owned(),
        level: 4,
        fields: [("Number", Type::UInt32), ("Parts", Type::UInt32), ("Text", Type::String16)]
            .map(|(name, of)| Field::new(name, of))
            .into(),
        ..Metadata::default()
    }]);
    trace.thread_block(&[ThreadRow::of_process(process)]);
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    for (number, text) in (0..).zip(&parts) {
        let mut block = EventBlock::v6();
        block.event(&Event {
            metadata_id: RecordedReadings::PART,
            sorted: true,
            sequence: number + 1,
            thread: process,
            capture_thread: process,
            processor: u32::MAX,
            timestamp: recording.start_ticks.0,
            payload: payload(&[Value::UInt32(number), Value::UInt32(count), Value::string16(text)]),
            ..Event::default()
        });
        trace.event_block(&block);
    }
    file_of(&trace.finish()).map_err(|error| failed(&error))
}

/// The calendar time of the start.
const fn start_of(recording: &TraceInfo) -> SystemTime {
    let nettrace::SystemTime { year, month, day_of_week, day, hour, minute, second, millisecond } =
        recording.start;
    SystemTime { year, month, day_of_week, day, hour, minute, second, millisecond }
}

fn file_of(bytes: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("{NAME}: {error}"))
}
