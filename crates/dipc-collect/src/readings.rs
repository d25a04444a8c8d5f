//! Readings of a process while something else records it: the threads in its memory at the beginning and at
//! the end, and the kernel's account of it in the middle, too. Without a duration, the first two of them are
//! replaced by later ones as the time passes.
//!
//! They are evidence of `clr-findings`: what lasts is in both readings of memory, and what grows, grows from
//! each account to the next. The process is not stopped. Memory takes Linux on x86-64 or arm64, and the
//! permission to trace the process.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, mem, thread};

use clr_findings::Readings;
use linux_proc_stat::ProcessUsage;

/// The part of the time before the first reading, and after the last.
const MARGIN: u32 = 10;
/// The same time of a recording without a duration.
const OPEN_MARGIN: Duration = Duration::from_millis(500);
/// The time before the second reading of a recording without a duration. Each later one takes twice as long.
const SECOND: Duration = Duration::from_secs(2);
/// Maximum time in which a program has to load its runtime.
const MAX_START: Duration = Duration::from_secs(10);
/// The time between attempts to find the runtime in a program that starts.
const RETRY: Duration = Duration::from_millis(250);
/// Minimum time between two readings of memory: what both have is not of a moment.
const MIN_APART: Duration = Duration::from_millis(250);
/// Maximum number of threads with stacks that are also read in the middle, for the collections to which they
/// lead.
const MAX_THREADS: usize = 1000;
/// Maximum wait for the last readings: a process of 10,000 threads takes seconds.
const LAST: Duration = Duration::from_secs(8);

/// A reader of a process, with a thread of its own.
///
/// ```no_run
/// use std::time::Duration;
///
/// use dipc_collect::readings::BackgroundReader;
///
/// let reader = BackgroundReader::start(4711, Some(Duration::from_secs(5)))?;
/// // Record the process for five seconds.
/// let readings = reader.finish();
/// println!("{} readings of memory", readings.memory.len());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct BackgroundReader {
    /// Dropped to have the last readings taken at once.
    stop: SyncSender<()>,
    /// The readings so far.
    readings: Arc<Mutex<Readings>>,
    /// Closed after the last one.
    end: Receiver<()>,
}

impl BackgroundReader {
    /// Starts to read a process that is recorded for `duration`, or until the reader is finished.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub fn start(pid: u32, duration: Option<Duration>) -> io::Result<Self> {
        let readings = Arc::<Mutex<Readings>>::default();
        let (stop, stopped) = mpsc::sync_channel(0);
        let (reader_end, end) = mpsc::sync_channel(0);
        let shared = Arc::clone(&readings);
        let read = move || {
            read(pid, duration, &stopped, &shared);
            drop(reader_end);
        };
        thread::Builder::new().name("readings".to_owned()).spawn(read)?;
        Ok(Self { stop, readings, end })
    }

    /// Returns the readings. The last ones are taken now if the time is not over, and waited for at most
    /// eight seconds: what was not read until then is missing.
    pub fn finish(self) -> Readings {
        drop(self.stop);
        // Nothing is sent.
        let is_late = self.end.recv_timeout(LAST) == Err(RecvTimeoutError::Timeout);
        let mut readings = mem::take(&mut *lock(&self.readings));
        if is_late {
            readings.set_missing(format!("they were not read within {} s", LAST.as_secs()));
        }
        readings
    }
}

fn lock(readings: &Mutex<Readings>) -> MutexGuard<'_, Readings> {
    readings.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a process at three moments of `duration`, or sooner once `stopped` is.
fn read(pid: u32, duration: Option<Duration>, stopped: &Receiver<()>, readings: &Mutex<Readings>) {
    let margin = duration.map_or(OPEN_MARGIN, |duration| duration / MARGIN);
    let begin = Instant::now();
    let until = |part: Duration| is_stopped(stopped, part.saturating_sub(begin.elapsed()));
    until(margin);
    let mut memory = memory::Source::attach(pid);
    // A program that has just started has no runtime yet.
    let start = duration.map_or(MAX_START, |duration| duration / 2);
    while memory.is_err() && begin.elapsed() < start && !is_stopped(stopped, RETRY) {
        memory = memory::Source::attach(pid);
    }
    let mut read = |reads_threads| {
        let usage = ProcessUsage::read(pid);
        lock(readings).usage.extend(usage);
        let Ok(source) = &memory else { return };
        let (has_few, before) = {
            let readings = lock(readings);
            let last = readings.memory.last();
            let has_few = last.is_none_or(|reading| reading.threads.len() <= MAX_THREADS);
            (has_few, readings.counts.last().cloned())
        };
        match source.read(reads_threads, has_few, before.as_ref()) {
            Ok((threads, counts)) => {
                let mut readings = lock(readings);
                if let (Some(_), [_, _]) = (&threads, &readings.memory[..]) {
                    readings.memory.remove(0);
                }
                readings.memory.extend(threads);
                readings.counts.push(counts);
            }
            Err(reason) => memory = Err(reason),
        }
    };
    read(true);
    let mut last = Instant::now();
    if let Some(duration) = duration {
        until(duration / 2);
        read(false);
        until(duration.saturating_sub(margin));
    } else {
        let mut wait = SECOND;
        while !is_stopped(stopped, wait) {
            wait = wait.saturating_mul(2);
            last = Instant::now();
            read(true);
            let mut readings = lock(readings);
            keep_last_two(&mut readings.usage);
            keep_last_two(&mut readings.counts);
        }
        if lock(readings).usage.len() < 2 {
            read(false);
        }
    }
    thread::sleep(MIN_APART.saturating_sub(last.elapsed()));
    read(true);
    let mut readings = lock(readings);
    keep_middle(&mut readings.usage, |usage| usage.at);
    keep_middle(&mut readings.counts, |counts| counts.at);
    if let Err(reason) = memory {
        readings.set_missing(reason);
    }
}

/// Keeps the first reading, and the two of which one is in the middle of the time so far: each takes twice as
/// long as the one before.
fn keep_last_two<T>(readings: &mut Vec<T>) {
    if readings.len() > 3 {
        readings.remove(1);
    }
}

/// Keeps the first reading, the last, and of two between them the one that is nearer to the middle of their
/// time.
fn keep_middle<T>(readings: &mut Vec<T>, at: impl Fn(&T) -> Instant) {
    if let [first, second, third, last] = &readings[..] {
        let [second, third, all] = [second, third, last].map(|reading| at(reading) - at(first));
        let from_middle = |time: Duration| (time * 2).abs_diff(all);
        readings.remove(if from_middle(second) < from_middle(third) { 2 } else { 1 });
    }
}

/// Waits for a time, and returns true if the readings are stopped meanwhile.
fn is_stopped(stopped: &Receiver<()>, time: Duration) -> bool {
    // Nothing is sent.
    stopped.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
}

#[cfg(target_os = "linux")]
mod memory {
    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    use clr_dump::{
        Dump, Machine, NativeArena, NativeHeap, NativeHeapError, PageMap, ProcessMemory, ResidentPages,
        Runtime, ThreadStacks,
    };
    use clr_findings::{MemoryCounts, MemoryFacts, thresholds};

    use crate::thread_times::monotonic;

    /// Maximum time for which the heap of the C library is read: some gigabytes.
    const NATIVE_HEAP_TIME: Duration = Duration::from_millis(500);

    /// The memory of a process.
    pub(super) struct Source {
        memory: ProcessMemory,
        runtime: Runtime,
    }

    impl Source {
        pub(super) fn attach(pid: u32) -> Result<Self, String> {
            let open = || {
                let memory = ProcessMemory::open(pid)?.with_kept_files();
                memory.machine().map_or(Ok(()), Machine::check)?;
                let runtime = Runtime::find(&memory, &memory.files()?)?;
                Ok(Self { memory, runtime })
            };
            open().map_err(|error: clr_dump::Error| error.to_string())
        }

        /// Reads the threads, if wanted, and counts. Collections on stacks are counted if stacks are read,
        /// for their threads or because there are few.
        pub(super) fn read(
            &self,
            reads_threads: bool,
            has_few: bool,
            before: Option<&MemoryCounts>,
        ) -> Result<(Option<MemoryFacts>, MemoryCounts), String> {
            let dump = Dump::new(&self.memory, &self.runtime);
            let mut stacks = ThreadStacks::default();
            if reads_threads || has_few {
                let read = dump.threads().running_stacks(&BTreeMap::new());
                stacks = read.map_err(|missing| format!("the list of threads: {missing}"))?;
            }
            // The methods on stacks lead to the modules of the user's code, which have the static fields.
            let threads = reads_threads.then(|| MemoryFacts::of_process(&dump, stacks.clone()));
            let pages = PageMap::open(self.memory.pid()).ok();
            let pages = pages.as_ref().map(|pages| pages as &dyn ResidentPages);
            let mut counts = MemoryCounts::read(&dump, &stacks, pages, before);
            if let Some(now) = monotonic() {
                counts = counts.with_late_timers(&dump, Duration::from_nanos(now));
            }
            if reads_threads {
                counts = counts.with_native_heap(self.native_heap(pages));
            }
            Ok((threads, counts))
        }

        /// Reads the chunks of a heap that can have enough free memory for a finding.
        fn native_heap(&self, pages: Option<&dyn ResidentPages>) -> Result<NativeHeap, NativeHeapError> {
            let mappings = self.memory.mappings().unwrap_or_default();
            let sizes = NativeHeap::read_sizes(&self.memory, &mappings)?;
            let system = |arena: &NativeArena| arena.system;
            if sizes.sum(system) < thresholds::MIN_FREE_BYTES {
                return Ok(sizes);
            }
            NativeHeap::read(&self.memory, &mappings, pages, Instant::now().checked_add(NATIVE_HEAP_TIME))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod memory {
    use clr_findings::{MemoryCounts, MemoryFacts};

    /// The memory of a process, which is read on Linux alone.
    pub(super) struct Source(std::convert::Infallible);

    impl Source {
        pub(super) fn attach(_: u32) -> Result<Self, String> {
            Err("it is read only on Linux".to_owned())
        }

        pub(super) fn read(
            &self,
            _: bool,
            _: bool,
            _: Option<&MemoryCounts>,
        ) -> Result<(Option<MemoryFacts>, MemoryCounts), String> {
            match self.0 {}
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The reader of an hour, which ends with the recording.
    #[test]
    fn readings_end_with_the_recording() {
        let reader = BackgroundReader::start(std::process::id(), Some(Duration::from_secs(3600))).unwrap();
        let readings = reader.finish();
        assert_eq!(readings.usage.len(), 3);
        // This program has no runtime.
        assert_eq!(readings.memory, []);
        assert!(readings.memory_missing.is_some());
    }

    #[test]
    fn the_reading_in_the_middle_is_the_nearest_to_it() {
        let begin = Instant::now();
        // The times of readings of a recording that ends after `end` seconds.
        let kept = |end: u64| {
            let mut readings = vec![0];
            for time in [2_u64, 6, 14, 30, 62, 126].into_iter().take_while(|time| *time < end) {
                readings.push(time);
                keep_last_two(&mut readings);
            }
            readings.push(end);
            keep_middle(&mut readings, |time| begin + Duration::from_secs(*time));
            readings
        };
        for (end, middle) in
            [(3, 2), (7, 2), (13, 6), (15, 6), (29, 14), (60, 30), (61, 30), (100, 62), (125, 62)]
        {
            assert_eq!(kept(end), [0, middle, end]);
        }
    }

    #[test]
    fn ended_processes_have_no_readings() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let readings = BackgroundReader::start(child.id(), None).unwrap().finish();
        assert!(readings.usage.is_empty() && readings.memory.is_empty() && readings.memory_missing.is_some());
    }
}
