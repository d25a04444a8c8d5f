//! The memory of a process by its owners: its last reading, and the reader, of which a process has one at a
//! time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use dipc_collect::memory::{MemoryReading, Subject};

/// Maximum time for a reading. One that the kernel holds up longer goes on in its thread, and the process is
/// not read again before it ends.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(10);
/// The stack of a reader's thread.
const STACK: usize = 1 << 20;

/// The memory of a process by its owners.
#[derive(Debug, Default)]
pub(crate) struct OwnerMemory {
    /// True if someone uses readings at intervals.
    is_wanted: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// True while a thread reads the process.
    is_reading: bool,
    /// The time of the last attempt.
    attempt: Option<Instant>,
    /// Its result; `None` if the process could not be read.
    sizes: Option<OwnerSizes>,
}

/// Resident bytes by owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnerSizes {
    /// By subject, in the order of [`Subject::ALL`].
    pub(crate) subjects: [u64; Subject::ALL.len()],
    pub(crate) unattributed: u64,
    /// Bytes that malloc has, and has given to no one; `None` without glibc.
    pub(crate) native_free: Option<u64>,
}

impl OwnerSizes {
    fn of(reading: &MemoryReading) -> Self {
        let account = &reading.account;
        Self {
            subjects: Subject::ALL.map(|subject| account.resident_of(|owner| Subject::of(owner) == subject)),
            unattributed: account.unattributed(),
            native_free: reading.native_free(),
        }
    }

    /// The bytes of a subject.
    pub(crate) fn subject(&self, subject: Subject) -> u64 {
        let place = Subject::ALL.iter().position(|known| *known == subject);
        place.and_then(|place| self.subjects.get(place)).copied().unwrap_or_default()
    }

    /// The memory of native code: the heap of the C library, and memory without a known owner, which has the
    /// blocks of other C libraries.
    pub(crate) fn native(&self) -> u64 {
        self.subject(Subject::Native).saturating_add(self.unattributed)
    }
}

impl OwnerMemory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the process read at intervals from now on.
    pub(crate) fn want(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// The last sizes; `None` if the last attempt failed, and before the first one.
    pub(crate) fn sizes(&self) -> Option<OwnerSizes> {
        self.state().sizes
    }

    /// Returns true if the process was read, or could not be.
    pub(crate) fn is_attempted(&self) -> bool {
        self.state().attempt.is_some()
    }

    /// The time at which the next reading is due.
    pub(crate) fn due(&self, interval: Duration) -> Option<Instant> {
        self.state().attempt?.checked_add(interval)
    }

    /// Reads the process, and keeps its sizes. Returns false if it could not be read.
    pub(crate) fn update(self: &Arc<Self>, pid: u32) -> bool {
        let sizes = self.read(pid).ok().as_ref().map(OwnerSizes::of);
        let mut state = self.state();
        (state.attempt, state.sizes) = (Some(Instant::now()), sizes);
        sizes.is_some()
    }

    /// Records that the process cannot be read.
    pub(crate) fn skip(&self) {
        let mut state = self.state();
        (state.attempt, state.sizes) = (Some(Instant::now()), None);
    }

    /// Reads the process in a thread of its own, within [`MAX_TIME`].
    ///
    /// # Errors
    /// With the reason: it has ended, may not be traced, or was not read in time.
    pub(crate) fn read(self: &Arc<Self>, pid: u32) -> Result<MemoryReading, String> {
        self.read_by(move || MemoryReading::of_pid(pid), MAX_TIME)
    }

    fn read_by(
        self: &Arc<Self>,
        read: impl FnOnce() -> Result<MemoryReading, String> + Send + 'static,
        longest: Duration,
    ) -> Result<MemoryReading, String> {
        let late = || format!("the memory was not read within {} s", longest.as_secs());
        let end = Instant::now() + longest;
        let is_reading = |state: &mut State| state.is_reading;
        let (mut state, wait) = self
            .changed
            .wait_timeout_while(self.state(), longest, is_reading)
            .unwrap_or_else(PoisonError::into_inner);
        if wait.timed_out() && state.is_reading {
            return Err(late());
        }
        state.is_reading = true;
        drop(state);
        let place = Place(Arc::clone(self));
        let (sender, receiver) = mpsc::sync_channel(1);
        let run = move || {
            let reading = read();
            drop(place);
            // The one who asked may have given up.
            let _ = sender.send(reading);
        };
        let thread = thread::Builder::new().name("memory".to_owned()).stack_size(STACK);
        thread.spawn(run).map_err(|error| format!("start a thread: {error}"))?;
        let left = end.saturating_duration_since(Instant::now());
        receiver.recv_timeout(left).unwrap_or_else(|_| Err(late()))
    }
}

/// The place of the one reader, until it is dropped.
struct Place(Arc<OwnerMemory>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.state().is_reading = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_hangs_is_the_only_one() {
        let memory = Arc::<OwnerMemory>::default();
        let (release, held) = mpsc::channel::<()>();
        let hang = move || {
            // Nothing is sent.
            let _ = held.recv();
            Err("released".to_owned())
        };
        let late = "the memory was not read within 0 s";
        assert_eq!(memory.read_by(hang, Duration::ZERO).unwrap_err(), late);
        let again = || Err("again".to_owned());
        assert_eq!(memory.read_by(again, Duration::from_millis(1)).unwrap_err(), late);
        drop(release);
        assert_eq!(memory.read_by(again, Duration::from_secs(600)).unwrap_err(), "again");
    }

    #[test]
    fn a_process_that_has_ended_has_no_sizes() {
        let memory = Arc::<OwnerMemory>::default();
        let interval = Duration::from_secs(60);
        assert_eq!((memory.is_attempted(), memory.due(interval)), (false, None));
        assert!(!memory.update(u32::MAX));
        assert_eq!((memory.is_attempted(), memory.sizes()), (true, None));
        assert!(memory.due(interval) > Some(Instant::now()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn sizes_sum_to_the_resident_memory() {
        let memory = Arc::<OwnerMemory>::default();
        let reading = memory.read(std::process::id()).unwrap();
        let sizes = OwnerSizes::of(&reading);
        assert_eq!(sizes.subjects.iter().sum::<u64>(), reading.account.total.resident);
        assert!(sizes.subject(Subject::Files) > 0 && sizes.native() >= sizes.unattributed, "{sizes:?}");
    }
}
