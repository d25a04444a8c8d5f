//! The readings of a process while it was recorded, and their form in the recording.

mod recorded;

use std::fmt;
use std::time::{Duration, Instant};

use linux_proc_stat::{OtherProcess, ProcessUsage};
use serde::{Deserialize, Serialize};

pub use self::recorded::RecordedReadings;
use crate::memory_counts::MemoryCounts;
use crate::memory_facts::MemoryFacts;
use crate::process::ProcessEnd;

/// Maximum size of the readings in a recording, as text.
const MAX_TEXT: usize = 16 << 20;
/// Maximum number of threads in each reading of a recording, as of the kernel's account.
const MAX_THREADS: usize = 20_000;
/// Maximum number of readings of a kind in a recording.
const MAX_READINGS: usize = 4;
/// Maximum number of other processes in each reading of a recording, the busiest first: their names are not
/// of the recorded program.
const MAX_OTHERS: usize = 8;

/// The readings of a process.
///
/// A recording has them as events of [`RecordedReadings::PROVIDER`]: then it shows the same causes as the
/// process did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Readings {
    /// The kernel's account at the beginning, in the middle and at the end.
    pub usage: Vec<ProcessUsage>,
    /// The threads in memory at the beginning and at the end; empty if one of the two readings failed.
    pub memory: Vec<MemoryFacts>,
    /// Counts of what its memory holds, at the times of the kernel's account; empty if memory was not read.
    pub counts: Vec<MemoryCounts>,
    /// The reason why memory was not read.
    pub memory_missing: Option<String>,
    /// The code with which the process exited of itself; `None` if it runs, or if the code is unknown.
    pub exit_code: Option<i32>,
}

/// Readings of more than 16 MB, which no recording takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadingsTooLarge;

impl fmt::Display for ReadingsTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the threads and the kernel's account take more than {} MB", MAX_TEXT >> 20)
    }
}

impl std::error::Error for ReadingsTooLarge {}

/// Readings as text. Times are those since the first of them.
#[derive(Serialize, Deserialize)]
struct ReadingsText<U, M, C> {
    usage: Vec<Timed<U>>,
    memory: Vec<M>,
    counts: Vec<Timed<C>>,
    memory_missing: Option<String>,
    exit_code: Option<i32>,
}

#[derive(Serialize, Deserialize)]
struct Timed<T> {
    time: Duration,
    reading: T,
}

impl Readings {
    /// The readings of a process of which nothing can be read, for a reason.
    pub fn missing(reason: impl Into<String>) -> Self {
        Self { memory_missing: Some(reason.into()), ..Self::default() }
    }

    /// Removes what was read of memory, for a reason.
    pub fn set_missing(&mut self, reason: impl Into<String>) {
        self.memory.clear();
        self.counts.clear();
        self.memory_missing = Some(reason.into());
    }

    /// The end of the process, by its exit code.
    pub fn end(&self) -> Option<ProcessEnd> {
        self.exit_code.map(|code| ProcessEnd::exit(Some(code)))
    }

    /// Returns the readings as JSON, in parts of at most `units` UTF-16 code units. Of the other processes of
    /// the machine it has the busiest, and of paths those of the open files.
    ///
    /// # Errors
    /// If they are too large for a recording.
    pub fn into_parts(mut self, units: usize) -> Result<Vec<String>, ReadingsTooLarge> {
        keep_busiest(&mut self.usage);
        let times = self.usage.iter().map(|usage| usage.at).chain(self.counts.iter().map(|counts| counts.at));
        let first = times.min();
        let since = |at: Instant| first.map_or(Duration::ZERO, |first| at.saturating_duration_since(first));
        let text = ReadingsText {
            usage: self.usage.iter().map(|of| Timed { time: since(of.at), reading: of }).collect(),
            memory: self.memory,
            counts: self.counts.iter().map(|of| Timed { time: since(of.at), reading: of }).collect(),
            memory_missing: self.memory_missing,
            exit_code: self.exit_code,
        };
        // Numbers, names and lists have a form in JSON.
        let text = serde_json::to_string(&text).map_err(|_| ReadingsTooLarge)?;
        if text.len() > MAX_TEXT {
            return Err(ReadingsTooLarge);
        }
        Ok(parts(&text, units))
    }

    /// Takes the text of all parts; `None` if it has another form, or more than any process.
    fn from_text(text: &str) -> Option<Self> {
        let text: ReadingsText<ProcessUsage, MemoryFacts, MemoryCounts> = serde_json::from_str(text).ok()?;
        let are_few =
            [text.usage.len(), text.memory.len(), text.counts.len()].iter().all(|n| *n <= MAX_READINGS)
                && text.usage.iter().all(|usage| usage.reading.threads.len() <= MAX_THREADS)
                && text.memory.iter().all(|memory| {
                    let in_deadlocks: usize = memory.deadlocks.iter().map(Vec::len).sum();
                    memory.threads.len() <= MAX_THREADS && in_deadlocks <= memory.threads.len()
                });
        if !are_few {
            return None;
        }
        let begin = Instant::now();
        let at = |time: Duration| begin.checked_add(time).unwrap_or(begin);
        let usage = |Timed { time, mut reading }: Timed<ProcessUsage>| {
            reading.at = at(time);
            reading
        };
        Some(Self {
            usage: text.usage.into_iter().map(usage).collect(),
            memory: text.memory,
            counts: text
                .counts
                .into_iter()
                .map(|Timed { time, reading }| MemoryCounts { at: at(time), ..reading })
                .collect(),
            memory_missing: text.memory_missing,
            exit_code: text.exit_code,
        })
    }
}

/// Keeps, of the other processes, those that were the busiest from the first to the last account.
fn keep_busiest(usage: &mut [ProcessUsage]) {
    let [first, last] =
        [usage.first(), usage.last()].map(|usage| usage.map_or(&[][..], |of| &of.machine.other_processes));
    let same = |one: &OtherProcess, other: &OtherProcess| {
        (one.pid, one.start_ticks) == (other.pid, other.start_ticks)
    };
    let used = |process: &OtherProcess| {
        let before = first.iter().find(|before| same(before, process));
        process.cpu_ns.saturating_sub(before.map_or(0, |before| before.cpu_ns))
    };
    let mut busiest: Vec<_> = last.iter().map(|process| (used(process), process.pid)).collect();
    busiest.sort_unstable_by(|a, b| b.cmp(a));
    busiest.truncate(MAX_OTHERS);
    for usage in usage {
        usage.machine.other_processes.retain(|process| busiest.iter().any(|(_, pid)| *pid == process.pid));
    }
}

/// Divides a text. No part is longer than `units` UTF-16 code units, but for a single character.
fn parts(text: &str, units: usize) -> Vec<String> {
    let (mut parts, mut part, mut length) = (Vec::new(), String::new(), 0_usize);
    for char in text.chars() {
        let more = length.saturating_add(char.len_utf16());
        if more > units && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            length = char.len_utf16();
        } else {
            length = more;
        }
        part.push(char);
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests;
