//! The kernel's accounting of a process's threads, read while they are sampled.
//!
//! A sample of a thread does not show whether the thread ran; `/proc` does.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::{ProcessView, ThreadTimes, ThreadTimesReader};
use nettrace::Ticks;
use nettrace_export::KernelTimes;

/// The rounds of a live account take at most one part in this many of the time.
const SHARE: u32 = 50;
/// Maximum wait for a round later than the last sample.
const LAST_ROUND: Duration = Duration::from_secs(1);
/// Maximum number of pending rounds.
const MAX_WAITING: usize = 64;

/// One reading of all threads of a process.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "made by tests of what writes it")]
pub struct Round {
    /// The time in nanoseconds, on the clock of the runtime's time stamps.
    pub time: u64,
    /// The times of the threads.
    pub threads: ThreadTimes,
}

/// A reader of rounds of a process.
#[derive(Debug)]
pub struct RoundReader {
    threads: ThreadTimesReader,
    process: u64,
}

impl RoundReader {
    /// Returns the reader of a process, and its first round; `None` if the system does not show the threads,
    /// or the process is unknown.
    pub fn open(pid: Option<u32>) -> Option<(Self, Round)> {
        let view = ProcessView::of(pid?);
        let mut reader = Self { threads: view.thread_times(), process: view.own_id()? };
        let first = reader.read()?;
        Some((reader, first))
    }

    /// The process's id in its own namespace, which its runtime states.
    pub const fn process(&self) -> u64 {
        self.process
    }

    /// Reads the next round; `None` if the process has ended.
    pub fn read(&mut self) -> Option<Round> {
        let time = monotonic()?;
        let threads = self.threads.read().ok()?;
        Some(Round { time, threads })
    }
}

/// Returns the nanoseconds of `CLOCK_MONOTONIC`, which is the runtime's `QueryPerformanceCounter` on Linux,
/// and in milliseconds its tick count; `None` on other systems.
#[cfg(target_os = "linux")]
pub fn monotonic() -> Option<u64> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(now.tv_nsec).ok()?)
}

/// Returns `None`: the clock is that of Linux.
#[cfg(not(target_os = "linux"))]
pub fn monotonic() -> Option<u64> {
    None
}

/// The account of a process with a stream that is read while it arrives.
#[derive(Debug)]
pub struct LiveThreadTimes {
    rounds: Receiver<Round>,
    /// The thread ends when this is dropped.
    _stop: Sender<()>,
}

impl LiveThreadTimes {
    /// Starts to read a round every `period`, the first one at once; `None` if no account is available.
    pub fn start(pid: Option<u32>, period: Duration) -> Option<Self> {
        let (mut reader, first) = RoundReader::open(pid)?;
        let (sender, rounds) = mpsc::sync_channel(MAX_WAITING);
        let (stop, stopped) = mpsc::channel::<()>();
        sender.try_send(first).ok()?;
        thread::spawn(move || {
            let mut wait = period;
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let begun = Instant::now();
                let Some(round) = reader.read() else { return };
                // Reading thousands of threads takes long; this keeps it a small part of a processor's time.
                wait = period.max(begun.elapsed().saturating_mul(SHARE));
                if sender.send(round).is_err() {
                    return;
                }
            }
        });
        Some(Self { rounds, _stop: stop })
    }

    /// Adds the rounds read since the last call. `runnable` threads count as running all of the time, whether
    /// they were on a processor or waited for one.
    pub fn add_to(&self, runnable: &[u64], times: &mut KernelTimes) {
        while let Ok(round) = self.rounds.try_recv() {
            round.add_to(runnable, times);
        }
    }

    /// Adds the rounds read since the last call, and waits for a round that begins after `time` on the
    /// runtime's clock, for a second at most.
    pub fn add_until(&self, time: Option<Ticks>, runnable: &[u64], times: &mut KernelTimes) {
        let deadline = Instant::now() + LAST_ROUND;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(round) = self.rounds.recv_timeout(left) else { return };
            let is_last = time.is_none_or(|time| round.time > time.0);
            round.add_to(runnable, times);
            if is_last {
                return;
            }
        }
    }
}

impl Round {
    fn add_to(&self, runnable: &[u64], times: &mut KernelTimes) {
        times.begin_round(Ticks(self.time), self.threads.process);
        for thread in self.threads.changed.iter().filter(|thread| !runnable.contains(&thread.id)) {
            times.set(thread.id, thread.ran, thread.queued);
        }
        for thread in &self.threads.changed {
            times.name_thread(thread.id, &thread.name);
        }
        for thread in runnable {
            times.set(*thread, self.time, 0);
        }
        for thread in &self.threads.ended {
            times.end(*thread);
        }
    }
}
