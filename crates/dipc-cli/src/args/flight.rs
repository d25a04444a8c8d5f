//! Arguments of the flight recorder.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use clr_conditions::Condition;
use dipc_collect::Retention;
use nettrace_edit::{RingCapacity, SegmentStorage};

use crate::record::flight::{FlightSettings, TriggerSettings};
use crate::{duration, size};

/// The bytes kept if only a time is given.
const DEFAULT_BYTES: u64 = 256 << 20;
/// The ring of a recording that waits for a crash, if no other is asked for.
const CRASH_CAPACITY: RingCapacity =
    RingCapacity { time: Some(Duration::from_secs(60)), bytes: DEFAULT_BYTES };
/// Minimum useful number of bytes: blocks under construction are this large.
const MIN_BYTES: u64 = 1 << 20;

/// Settings for keeping only the end of the stream, and for writing it.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct FlightArgs {
    /// Keep the last events in memory, limited by time or size, and write them on demand or on a condition:
    /// 60s, 256MB or 60s,1GB
    ///
    /// A flight recorder: only snapshots are written, each a whole recording with its method names, even
    /// after kill -9. A snapshot is written on Ctrl-\ or SIGUSR1, when --snapshot-on is met, and when the
    /// process crashes. A normal end of the process or the recording writes one only without --snapshot-on,
    /// and only if no snapshot has been written yet.
    ///
    /// Keeps at least the given time, and at most an eighth more. If that takes more than 256 MiB, or the
    /// size after the comma, less is kept, and the snapshot's line says so. Memory also holds up to 64 MiB of
    /// method names and, during the writing of a snapshot, the events dropped meanwhile.
    #[arg(long, value_name = "TIME|SIZE", value_parser = parse_capacity, conflicts_with_all = ["format", "rotate"])]
    pub(crate) keep: Option<RingCapacity>,
    /// Keep the ring in files in this folder instead of memory, for rings of many gigabytes
    ///
    /// The files are unnamed and disappear with dipc, however it ends. The disk needs room for the ring plus
    /// a quarter.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "keep")]
    pub(crate) keep_in: Option<PathBuf>,
    /// Continue in a new file when the current one reaches this size: 100MB. Each file is a whole recording
    /// with its method names
    ///
    /// A file is named NAME.partial until it is complete. The method list and the names from earlier files
    /// add to the size.
    #[arg(long, value_name = "SIZE", value_parser = parse_file_size, conflicts_with = "format")]
    pub(crate) rotate: Option<u64>,
    /// Write a snapshot when this condition is met: 'exception System.TimeoutException or gc pause > 200ms'
    ///
    /// Combine parts with and, or and parentheses. The parts of an 'and' must occur within 10 seconds of each
    /// other; append 'within 30s' for another limit.
    ///
    /// exception TYPE,…  is thrown; TYPE may have *, and without a namespace matches any{n}
    /// event PROVIDER/EVENT FIELD > VALUE, FIELD = VALUE  occurs, with such fields{n}
    /// gc pause > 200ms  stops all threads{n}
    /// request > 2s  request status >= 500  request path /api/* > 1s  ends, of ASP.NET Core{n}
    /// counter PROVIDER/COUNTER:p95 > 0.5  exceeds the bound{n}
    /// exit  crash  of the process; disconnect: the connection is lost, but the process lives
    ///
    /// The events that the condition needs are recorded too.
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition, requires = "keep")]
    pub(crate) snapshot_on: Option<Condition>,
    /// Also write a core dump when this happens, next to the snapshot, with an overview of the dump
    ///
    /// A program started after -- dumps itself (DOTNET_DbgEnableMiniDump and related variables), with a crash
    /// report. A process that is already running is traced instead, and its memory is copied when a signal is
    /// about to end it (Linux); meanwhile no debugger can attach to it. kill -9 leaves no dump. Without
    /// --keep, the last 60 s are kept.
    #[arg(long, value_enum, value_name = "EVENT", conflicts_with_all = ["format", "rotate"])]
    pub(crate) dump_on: Option<DumpEvent>,
    /// Continue recording for this time after the event that triggers a snapshot
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "keep")]
    pub(crate) after: Option<Duration>,
    /// Stop after this many snapshots
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "keep")]
    pub(crate) max_snapshots: Option<u32>,
    /// Minimum time between two snapshots of --snapshot-on
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    pub(crate) snapshot_interval: Duration,
    /// Remove the oldest file of this run when there are more than this many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "files")]
    pub(crate) keep_files: Option<u32>,
    /// Remove the oldest files of this run when their total size is larger
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "files")]
    pub(crate) keep_total: Option<u64>,
    /// Remove files of this run that are older than this whenever another is written
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "files")]
    pub(crate) keep_age: Option<Duration>,
}

/// A reason for a core dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpEvent {
    /// The process crashes
    Crash,
}

impl FlightArgs {
    /// The settings, if a ring is asked for.
    pub(crate) fn settings(&self) -> Option<FlightSettings> {
        let capacity = self.keep.or(self.dump_on.map(|_| CRASH_CAPACITY))?;
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Some(FlightSettings {
            capacity,
            storage: self.keep_in.clone().map_or(SegmentStorage::Memory, SegmentStorage::Folder),
            triggers: TriggerSettings {
                condition: self.snapshot_on.clone(),
                after: self.after.unwrap_or_default(),
                interval: self.snapshot_interval,
                most: self.max_snapshots.map(count),
            },
            retention: self.retention(),
            waits_for_crash: self.dump_on.is_some(),
        })
    }

    /// The limits on the files that are kept.
    pub(crate) fn retention(&self) -> Retention {
        Retention::default()
            .with_files(self.keep_files.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
            .with_bytes(self.keep_total)
            .with_age(self.keep_age)
    }
}

fn parse_file_size(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        bytes if bytes < MIN_BYTES => Err("the minimum is 1 MiB".to_owned()),
        bytes => Ok(bytes),
    }
}

fn parse_capacity(text: &str) -> Result<RingCapacity, String> {
    let mut capacity = RingCapacity { time: None, bytes: 0 };
    for part in text.split(',') {
        let is_time = part.trim().to_ascii_lowercase().strip_suffix('b').is_none();
        let is_twice = if is_time { capacity.time.is_some() } else { capacity.bytes > 0 };
        if is_twice {
            return Err("one time and one size at most, as 60s,256MB".to_owned());
        }
        if is_time {
            let time = duration::parse(part).map_err(|why| format!("{why}; or a size: 256MB"))?;
            if time.is_zero() {
                return Err("a time of zero keeps nothing".to_owned());
            }
            capacity.time = Some(time);
        } else {
            capacity.bytes = size::parse(part)?;
            if capacity.bytes < MIN_BYTES {
                return Err("the minimum is 1 MiB".to_owned());
            }
        }
    }
    if capacity.bytes == 0 {
        capacity.bytes = DEFAULT_BYTES;
    }
    Ok(capacity)
}

/// Reads a condition.
pub(crate) fn parse_condition(text: &str) -> Result<Condition, String> {
    Condition::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_a_time_or_a_size_or_both() {
        let capacity =
            |time: Option<u64>, bytes| Ok(RingCapacity { time: time.map(Duration::from_secs), bytes });
        assert_eq!(parse_capacity("60s"), capacity(Some(60), DEFAULT_BYTES));
        assert_eq!(parse_capacity("64MB"), capacity(None, 64_000_000));
        assert_eq!(parse_capacity("1m, 1GB"), capacity(Some(60), 1_000_000_000));
        for wrong in ["", "60", "0s", "10s,20s", "1MB,2MB", "5KB", "x"] {
            assert!(parse_capacity(wrong).is_err(), "{wrong}");
        }
    }
}
