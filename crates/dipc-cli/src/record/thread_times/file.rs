//! The file of an account: a V6 recording of the events that [`KernelTimes`] describes.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use dipc_collect::thread_times::Round;
use jiff::Timestamp;
use nettrace_export::KernelTimes;
use nettrace_synth::v6::{ThreadRow, Trace};
use nettrace_synth::{Event, EventBlock, Field, Metadata, SystemTime, TraceHeader, Type, Value, payload};

use crate::exit::{Exit, Failure};
use crate::render::output_file::OutputFile;

/// Ticks per second of the runtime's clock on Linux.
const FREQUENCY: i64 = 1_000_000_000;

/// A file that rounds are appended to. Each round is whole once it is written.
#[derive(Debug)]
pub(super) struct AccountFile {
    file: OutputFile,
    process: u64,
    sequence: u32,
    written: u64,
}

impl AccountFile {
    /// Creates the file anew, with its header.
    pub(super) fn create(path: &Path, process: u64, start: u64) -> Result<Self, Failure> {
        let mut file = Self { file: new_file(path)?, process, sequence: 0, written: 0 };
        let header = TraceHeader {
            start: system_time(Timestamp::now()),
            sync_ticks: start.cast_signed(),
            frequency: FREQUENCY,
            key_values: vec![("ProcessId".to_owned(), process.to_string())],
            ..TraceHeader::default()
        };
        let mut trace = Trace::new(&header);
        trace.metadata_block(&kinds());
        trace.thread_block(&[ThreadRow::of_process(process)]);
        let written = file.append(&trace.unfinished());
        written.map_err(|error| file.file.failed("write", &error))?;
        Ok(file)
    }

    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn write(&mut self, round: &Round) -> io::Result<()> {
        let threads = &round.threads;
        let mut block = EventBlock::v6();
        let process = threads.process.unwrap_or(u64::MAX);
        let count = u32::try_from(threads.count).unwrap_or(u32::MAX);
        self.event(
            &mut block,
            KernelTimes::ROUND,
            round.time,
            &[Value::UInt64(process), Value::UInt32(count)],
        );
        for thread in &threads.changed {
            let values = [
                Value::UInt64(thread.id),
                Value::UInt64(thread.ran),
                Value::UInt64(thread.queued),
                Value::string16(thread.state.encode_utf8(&mut [0; 4])),
                Value::string16(&thread.wait_channel),
                Value::string16(&thread.name),
            ];
            self.event(&mut block, KernelTimes::THREAD_TIME, round.time, &values);
        }
        for thread in &threads.ended {
            self.event(&mut block, KernelTimes::THREAD_END, round.time, &[Value::UInt64(*thread)]);
        }
        let empty = Trace::without_header(6, 0);
        let begin = empty.offset();
        let mut trace = empty;
        trace.event_block(&block);
        self.append(&trace.unfinished()[begin..])
    }

    fn event(&mut self, block: &mut EventBlock, kind: u32, time: u64, values: &[Value]) {
        self.sequence = self.sequence.wrapping_add(1);
        block.event(&Event {
            metadata_id: kind,
            sorted: true,
            sequence: self.sequence,
            thread: self.process,
            capture_thread: self.process,
            processor: u32::MAX,
            timestamp: time,
            payload: payload(values),
            ..Event::default()
        });
    }

    /// Ends the recording.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let empty = Trace::without_header(6, 0);
        let begin = empty.offset();
        self.append(&empty.finish()[begin..])?;
        self.file.close().map_err(|failure| io::Error::other(failure.message))
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.written = self.written.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

/// Creates the file anew: an existing one belongs to an earlier recording with that name, or is a link that
/// somebody has put in the way.
fn new_file(path: &Path) -> Result<OutputFile, Failure> {
    let in_the_way =
        |error| Failure::new(Exit::Failed, format_args!("open output: {}: {error}", path.display()));
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(in_the_way(error)),
        Ok(()) | Err(_) => {}
    }
    let file = OutputFile::create_new(path)?;
    if file.path() != path {
        file.discard();
        return Err(in_the_way(io::ErrorKind::AlreadyExists.into()));
    }
    Ok(file)
}

/// The kinds of events, with the numbers that the events refer to.
fn kinds() -> [Metadata; 3] {
    let kind = |event_id, name: &str, fields: &[(&str, Type)]| Metadata {
        id: event_id,
        provider: KernelTimes::PROVIDER.to_owned(),
        event_id,
        name: name.to_owned(),
        level: 4,
        fields: fields.iter().map(|(name, of)| Field::new(name, of.clone())).collect(),
        ..Metadata::default()
    };
    [
        kind(
            KernelTimes::ROUND,
            "Round",
            &[("ProcessNanoseconds", Type::UInt64), ("ThreadCount", Type::UInt32)],
        ),
        kind(
            KernelTimes::THREAD_TIME,
            "ThreadTime",
            &[
                ("ThreadId", Type::UInt64),
                ("RanNanoseconds", Type::UInt64),
                ("QueuedNanoseconds", Type::UInt64),
                ("State", Type::String16),
                ("WaitChannel", Type::String16),
                ("Name", Type::String16),
            ],
        ),
        kind(KernelTimes::THREAD_END, "ThreadEnd", &[("ThreadId", Type::UInt64)]),
    ]
}

/// Returns a time in the form used in recordings.
fn system_time(now: Timestamp) -> SystemTime {
    let now = now.to_zoned(jiff::tz::TimeZone::UTC).datetime();
    let part = |number: i64| u16::try_from(number).unwrap_or(0);
    SystemTime {
        year: part(now.year().into()),
        month: part(now.month().into()),
        day_of_week: part(now.weekday().to_sunday_zero_offset().into()),
        day: part(now.day().into()),
        hour: part(now.hour().into()),
        minute: part(now.minute().into()),
        second: part(now.second().into()),
        millisecond: part(now.millisecond().into()),
    }
}

#[cfg(test)]
mod tests {
    use nettrace::Reader;

    use super::*;

    #[test]
    fn a_truncated_account_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.threads.nettrace");
        let mut file = AccountFile::create(&path, 42, 1_000).unwrap();
        for time in [2_000, 3_000, 4_000] {
            let threads = dipc_client::ThreadTimes::default();
            file.write(&Round { time, threads }).unwrap();
        }
        let rounds = |bytes: &[u8]| {
            let mut times = KernelTimes::default();
            let mut events = Reader::new(bytes).unwrap();
            events.for_each(|event| times.add(&event)).unwrap();
            let info = events.info().cloned().unwrap();
            (times.rounds(), info.process_id, info.start_ticks.0, info.frequency, events.damage_count())
        };
        let cut = fs::read(&path).unwrap();
        assert_eq!(rounds(&cut), (3, Some(42), 1_000, 1_000_000_000, 0));
        file.finish().unwrap();
        let whole = fs::read(&path).unwrap();
        assert_eq!(rounds(&whole), (3, Some(42), 1_000, 1_000_000_000, 0));
        assert!(Reader::new(&*whole).unwrap().truncated_at().is_none());
    }
}
