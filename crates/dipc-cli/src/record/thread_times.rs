//! The kernel's accounting of a process's threads, read while they are sampled.
//!
//! A sample of a thread does not show whether the thread ran; `/proc` does. The account of a recording is
//! kept next to it, in a recording of its own, so that the recording remains exactly what the runtime sent.

mod file;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dipc_client::{ProcessView, ThreadTimes, ThreadTimesReader};
use nettrace::Ticks;
use nettrace_export::KernelTimes;

use crate::render::messages;
use file::AccountFile;

/// The time between two rounds in a recorded account.
const PERIOD: Duration = Duration::from_secs(1);
/// Each time this number of bytes is written, the time between two rounds doubles.
const BYTES_PER_PERIOD: u64 = 8 << 20;
/// The rounds of a live account take at most one part in this many of the time.
const SHARE: u32 = 50;
/// Maximum wait for a round later than the last sample.
const LAST_ROUND: Duration = Duration::from_secs(1);
/// Maximum number of pending rounds.
const MAX_WAITING: usize = 64;

/// One reading of all threads of a process.
#[derive(Debug)]
struct Round {
    /// The time in nanoseconds, on the clock of the runtime's time stamps.
    time: u64,
    threads: ThreadTimes,
}

/// A reader of rounds of a process.
#[derive(Debug)]
pub(crate) struct RoundReader {
    threads: ThreadTimesReader,
    process: u64,
}

impl RoundReader {
    /// Returns the reader of a process, and its first round; `None` if the system does not show the threads,
    /// or the process is unknown.
    fn open(pid: Option<u32>) -> Option<(Self, Round)> {
        let view = ProcessView::of(pid?);
        let mut reader = Self { threads: view.thread_times(), process: view.own_id()? };
        let first = reader.read()?;
        Some((reader, first))
    }

    fn read(&mut self) -> Option<Round> {
        let time = monotonic()?;
        let threads = self.threads.read().ok()?;
        Some(Round { time, threads })
    }
}

/// Returns the time of `CLOCK_MONOTONIC`, which is the runtime's `QueryPerformanceCounter` on Linux.
#[cfg(target_os = "linux")]
fn monotonic() -> Option<u64> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(now.tv_nsec).ok()?)
}

#[cfg(not(target_os = "linux"))]
fn monotonic() -> Option<u64> {
    None
}

/// A process after its first round, before its session begins.
#[derive(Debug)]
pub(crate) struct AccountStart {
    reader: RoundReader,
    first: Round,
}

impl AccountStart {
    /// Reads the first round; `None` if no account is available.
    pub(crate) fn read(pid: Option<u32>) -> Option<Self> {
        let (reader, first) = RoundReader::open(pid)?;
        Some(Self { reader, first })
    }

    /// Begins to write the account of a recording.
    pub(crate) fn record(self, recording: &Path) -> Option<AccountRecorder> {
        let path = crate::inspect::thread_times::threads_path(recording);
        let file = AccountFile::create(&path, self.reader.process, self.first.time);
        let mut file =
            file.map_err(|failure| messages::warning(format_args!("thread times: {failure}"))).ok()?;
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut reader = self.reader;
            let mut round = Some(self.first);
            while let Some(read) = round {
                file.write(&read)?;
                let doublings = u32::try_from(file.written() / BYTES_PER_PERIOD).unwrap_or(u32::MAX);
                let period = PERIOD.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX));
                let is_over = stopped.recv_timeout(period) != Err(RecvTimeoutError::Timeout);
                round = reader.read();
                if is_over {
                    if let Some(last) = &round {
                        file.write(last)?;
                    }
                    break;
                }
            }
            file.finish()
        });
        Some(AccountRecorder { path, stop, thread })
    }
}

/// The account of a recording, while it is written.
#[derive(Debug)]
pub(crate) struct AccountRecorder {
    path: PathBuf,
    stop: Sender<()>,
    thread: JoinHandle<std::io::Result<()>>,
}

impl AccountRecorder {
    /// Reads the last round, and ends the file.
    pub(crate) fn finish(self) {
        // The thread may have ended with the process.
        let _ = self.stop.send(());
        match self.thread.join() {
            Ok(Ok(())) => messages::detail(format_args!(
                "Thread times   : {} has the kernel's account of threads; commands that read the recording find it",
                self.path.display()
            )),
            Ok(Err(error)) => {
                messages::warning(format_args!("thread times: {}: {error}", self.path.display()));
            }
            // The panic was printed where it happened.
            Err(_) => {}
        }
    }
}

/// The account of a process with a stream that is read while it arrives.
#[derive(Debug)]
pub(crate) struct LiveThreadTimes {
    rounds: Receiver<Round>,
    /// The thread ends when this is dropped.
    _stop: Sender<()>,
}

impl LiveThreadTimes {
    /// Starts to read a round every `period`, the first one at once; `None` if no account is available.
    pub(crate) fn start(pid: Option<u32>, period: Duration) -> Option<Self> {
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
    pub(crate) fn add_to(&self, runnable: &[u64], times: &mut KernelTimes) {
        while let Ok(round) = self.rounds.try_recv() {
            round.add_to(runnable, times);
        }
    }

    /// The same, and waits for a round that begins after `time` on the runtime's clock, for [`LAST_ROUND`] at
    /// most.
    pub(crate) fn add_until(&self, time: Option<Ticks>, runnable: &[u64], times: &mut KernelTimes) {
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
