//! The kernel's account of threads: how long each had a processor, at several times.
//!
//! A sample of a thread does not show whether the thread ran. The kernel knows that, but not in which method:
//! both together show it.

pub(super) mod correction;
mod in_range;

use hashbrown::HashMap;
use nettrace::{Event, Ticks};

pub use in_range::ThreadUse;

/// Readings that are kept, of 24 bytes.
const MAX_READINGS: usize = 1 << 22;
/// Names of threads that are kept.
const MAX_NAMES: usize = 1 << 16;
/// Characters of a name that are kept: the kernel's have 15.
const MAX_NAME_LENGTH: usize = 64;
/// Maximum lag of the kernel's account of a running thread: it is updated at each tick of the scheduler.
const LAG: u64 = 10_000_000;

/// The processor time of a process's threads, in rounds: each round looks at all threads.
///
/// `dipc trace` keeps them next to a recording, as a recording of the provider [`PROVIDER`](Self::PROVIDER)
/// with the same clock. A round is an event [`ROUND`](Self::ROUND), followed by events of the same time for
/// the threads that differ from the round before:
///
/// | event | fields |
/// |---|---|
/// | 1, `Round` | u64 processor time of the process, with threads that have ended, all bits set where it is not known; u32 number of threads |
/// | 2, `ThreadTime` | u64 thread, u64 processor time, u64 time on a run queue; then for people: state, wait channel and name as UTF-16 |
/// | 3, `ThreadEnd` | u64 thread |
///
/// Times are nanoseconds.
///
/// ```
/// use nettrace::Ticks;
/// use nettrace_export::KernelTimes;
///
/// let mut times = KernelTimes::default();
/// times.begin_round(Ticks(0), None);
/// times.set(4711, 0, 0);
/// times.begin_round(Ticks(1_000_000_000), None);
/// times.set(4711, 250_000_000, 0);
/// assert_eq!(times.rounds(), 2);
/// ```
#[derive(Debug, Clone, Default)]
pub struct KernelTimes {
    rounds: Vec<Round>,
    threads: HashMap<u64, Vec<Life>>,
    readings: usize,
    /// By thread, the part of its time that the profiles of a live session have used.
    carries: HashMap<u64, Carry>,
    /// By thread, its last name.
    names: HashMap<u64, String>,
}

/// The part of a thread's time that was used for the profile before: an interval between two rounds may
/// belong to two profiles.
#[derive(Debug, Clone, Copy)]
struct Carry {
    /// The time that a thread may still have beyond the kernel's account, which lags.
    credit: u64,
    /// The start of the last interval.
    start: Ticks,
    /// Nanoseconds of that interval that were used.
    used: u64,
}

impl Default for Carry {
    fn default() -> Self {
        Self { credit: LAG, start: Ticks(0), used: 0 }
    }
}

/// A round.
#[derive(Debug, Clone, Copy)]
struct Round {
    time: Ticks,
    /// The processor time of the process, with threads that have ended.
    process: Option<u64>,
}

/// A thread from its first reading to its end. Systems use numbers of threads again.
#[derive(Debug, Clone)]
struct Life {
    /// In the order of rounds; rounds between two are like the one before.
    readings: Vec<Reading>,
    /// The first round without the thread.
    end: Option<usize>,
}

/// The processor time of a thread in a round.
#[derive(Debug, Clone, Copy)]
struct Reading {
    round: usize,
    time: ThreadTime,
}

/// Processor time, and time that a thread was ready to run but not on a processor; in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ThreadTime {
    ran: u64,
    queued: u64,
}

impl ThreadTime {
    const fn since(self, before: Self) -> Self {
        Self { ran: self.ran.saturating_sub(before.ran), queued: self.queued.saturating_sub(before.queued) }
    }
}

impl Life {
    /// Returns the time until a round.
    fn until(&self, round: usize) -> Option<ThreadTime> {
        let after = self.readings.partition_point(|reading| reading.round <= round);
        Some(self.readings.get(after.checked_sub(1)?)?.time)
    }

    /// Returns the time between a round and the next; `None` if it is unknown.
    fn between(&self, round: usize) -> Option<ThreadTime> {
        let next = round.checked_add(1)?;
        if self.end.is_some_and(|end| end <= next) {
            return None;
        }
        let until = self.until(next)?;
        // A thread that the first of them does not have began after it.
        Some(until.since(self.until(round).unwrap_or_default()))
    }
}

impl KernelTimes {
    /// The provider of the events.
    pub const PROVIDER: &str = "Dipc.Threads";
    /// The event of a round.
    pub const ROUND: u32 = 1;
    /// The event of a thread's time.
    pub const THREAD_TIME: u32 = 2;
    /// The event of a thread that has ended.
    pub const THREAD_END: u32 = 3;

    /// Begins a round at a time of the recording's clock, which is later than the last one. `process` is the
    /// processor time of the whole process in nanoseconds, with threads that have ended.
    pub fn begin_round(&mut self, time: Ticks, process: Option<u64>) {
        let is_later = self.rounds.last().is_none_or(|last| last.time < time);
        if is_later && self.rounds.len() < MAX_READINGS {
            self.rounds.push(Round { time, process });
        }
    }

    /// Sets the processor time of a thread in this round, and its time on a run queue, in nanoseconds since
    /// the thread began. A thread of the round before keeps its times.
    pub fn set(&mut self, thread: u64, ran: u64, queued: u64) {
        let Some(round) = self.rounds.len().checked_sub(1) else { return };
        if self.readings >= MAX_READINGS {
            return;
        }
        self.readings = self.readings.saturating_add(1);
        let reading = Reading { round, time: ThreadTime { ran, queued } };
        let lives = self.threads.entry(thread).or_default();
        match lives.last_mut() {
            Some(life)
                if life.end.is_none() && life.readings.last().is_some_and(|last| last.time.ran <= ran) =>
            {
                life.readings.push(reading);
            }
            last => {
                if let Some(life) = last {
                    life.end.get_or_insert(round);
                }
                lives.push(Life { readings: vec![reading], end: None });
            }
        }
    }

    /// Sets the name of a thread; an empty one changes nothing. A thread that ended keeps its name until
    /// another thread of its number has one.
    pub fn name_thread(&mut self, thread: u64, name: &str) {
        if name.is_empty() || self.names.len() >= MAX_NAMES && !self.names.contains_key(&thread) {
            return;
        }
        let known = self.names.entry(thread).or_default();
        if known != name {
            known.clear();
            known.extend(name.chars().take(MAX_NAME_LENGTH));
        }
    }

    /// Returns the name of a thread.
    pub fn name(&self, thread: u64) -> Option<&str> {
        self.names.get(&thread).map(String::as_str)
    }

    /// Says that a thread has ended: this round does not have it.
    pub fn end(&mut self, thread: u64) {
        let Some(round) = self.rounds.len().checked_sub(1) else { return };
        if let Some(life) = self.threads.get_mut(&thread).and_then(|lives| lives.last_mut()) {
            life.end.get_or_insert(round);
        }
    }

    /// Adds an event of the recording in which they are kept. Other events are passed over.
    pub fn add(&mut self, event: &Event<'_>) {
        if event.provider() != Self::PROVIDER {
            return;
        }
        let payload = event.payload();
        let number = |field: usize| {
            let bytes = payload.get(field.checked_mul(8)?..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        match (event.id(), number(0), number(1), number(2)) {
            (Self::ROUND, Some(process), ..) => {
                self.begin_round(event.time(), Some(process).filter(|process| *process != u64::MAX));
            }
            (Self::THREAD_TIME, Some(thread), Some(ran), Some(queued)) => {
                self.set(thread, ran, queued);
                if let Some(name) = payload.get(24..).and_then(name_of) {
                    self.name_thread(thread, &name);
                }
            }
            (Self::THREAD_END, Some(thread), ..) => self.end(thread),
            _ => {}
        }
    }

    /// The number of rounds. Two at least are needed.
    pub fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// Drops the rounds that no time from `from` on needs: all before it but the last.
    pub fn forget_before(&mut self, from: Ticks) {
        let later = self.rounds.partition_point(|round| round.time <= from);
        let gone = later.saturating_sub(1);
        if gone == 0 {
            return;
        }
        self.rounds.drain(..gone);
        for lives in self.threads.values_mut() {
            for life in &mut *lives {
                let kept = life.readings.partition_point(|reading| reading.round <= gone).saturating_sub(1);
                life.readings.drain(..kept);
                for reading in &mut life.readings {
                    reading.round = reading.round.saturating_sub(gone);
                }
                life.end = life.end.map(|end| end.saturating_sub(gone));
            }
            lives.retain(|life| life.end != Some(0));
        }
        self.threads.retain(|_, lives| !lives.is_empty());
        self.carries.retain(|thread, _| self.threads.contains_key(thread));
        self.names.retain(|thread, _| self.threads.contains_key(thread));
        self.readings = self.threads.values().flatten().map(|life| life.readings.len()).sum();
    }

    /// Returns the time of a thread between a round and the next; `None` if it is unknown.
    fn between(&self, thread: u64, round: usize) -> Option<ThreadTime> {
        let lives = self.threads.get(&thread)?;
        // A number that two threads had in that time says nothing of either.
        lives
            .iter()
            .find(|life| {
                life.end.is_none_or(|end| end > round) && life.until(round.saturating_add(1)).is_some()
            })?
            .between(round)
    }

    /// Returns the processor time that no thread of which the time is known had between a round and the next:
    /// that of threads which began and ended meanwhile.
    fn unassigned(&self, round: usize) -> Option<u64> {
        let of = |round: usize| self.rounds.get(round)?.process;
        let process = of(round.checked_add(1)?)?.saturating_sub(of(round)?);
        let known = self.threads.keys().filter_map(|thread| self.between(*thread, round));
        let known = known.map(|time| time.ran).fold(0, u64::saturating_add);
        Some(process.saturating_sub(known))
    }
}

/// Returns the last of the three strings at the end of an event of a thread's time: state, wait channel and
/// name.
fn name_of(texts: &[u8]) -> Option<String> {
    let mut units = texts.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
    for _ in 0..2 {
        units.find(|unit| *unit == 0)?;
    }
    let name = units.take_while(|unit| *unit != 0).take(MAX_NAME_LENGTH);
    Some(char::decode_utf16(name).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_last_text_and_the_newest_counts() {
        let texts = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        for (text, name) in [
            ("S\0futex\0.NET TP Worker\0", Some(".NET TP Worker")),
            ("S\0\0cut", Some("cut")),
            ("R\0\0\0", Some("")),
            ("R\0", None),
            ("", None),
        ] {
            assert_eq!(name_of(&texts(text)).as_deref(), name, "{text}");
        }
        let mut times = KernelTimes::default();
        for name in ["dotnet", "", "worker"] {
            times.name_thread(7, name);
        }
        assert_eq!((times.name(7), times.name(8)), (Some("worker"), None));
        times.name_thread(7, &"x".repeat(1000));
        assert_eq!(times.name(7).map(str::len), Some(MAX_NAME_LENGTH));
    }
}
