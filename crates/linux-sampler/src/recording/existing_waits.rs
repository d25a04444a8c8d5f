//! Threads that wait already when a recording begins.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use linux_proc_stat::Status;

use super::{MAX_THREADS, RecordingWriter, SwitchStack};
use crate::kernel::each_function;
use crate::record::ThreadKey;
use crate::sys;
use crate::threads::{folder, state};
use crate::waiting::{ThreadActivity, ThreadWait, thread_activity};

/// A wait at the beginning of a recording, by which it is known again.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExistingWait {
    /// When it was seen.
    seen_ns: u64,
    /// The times that its thread had left a processor.
    switches: u64,
}

impl ExistingWait {
    /// Returns the wait of a thread; `None` if it does not wait.
    pub(super) fn of(thread: ThreadKey) -> Option<Self> {
        let switches = switches_until_wait(thread)?;
        Some(Self { seen_ns: sys::monotonic_ns(), switches })
    }

    /// Returns the time since when the thread has waited, if it has not left a processor again.
    pub(super) fn since(self, thread: ThreadKey) -> Option<u64> {
        (switches_until_wait(thread) == Some(self.switches)).then_some(self.seen_ns)
    }
}

impl RecordingWriter {
    /// Notes the waits of the threads of a process, to confirm them at the end if records are lost.
    pub(super) fn note_waits(&mut self, pid: i32, threads: &[i32]) {
        let room = MAX_THREADS.saturating_sub(self.existing_waits.len());
        for &tid in threads.iter().take(room) {
            let thread = ThreadKey { pid, tid };
            self.existing_waits.extend(ExistingWait::of(thread).map(|wait| (thread, wait)));
        }
    }

    /// Adds the waiting threads of a process to the threads that are off the processors.
    pub(super) fn existing_waits(&mut self, pid: i32, threads: &[i32]) {
        if self.many.as_ref().is_some_and(|many| !many.has_existing_stacks) {
            for &tid in threads {
                let is_waiting = matches!(state(pid, tid), Ok(Some(state)) if is_waiting(state));
                let wait = is_waiting.then_some(None);
                let thread = ThreadKey { pid, tid };
                self.off_cpu.existing(thread, self.start_ns, sys::monotonic_ns(), wait);
            }
            return;
        }
        let looks: Vec<_> = threads.iter().map(|&tid| (tid, thread_activity(pid, tid))).collect();
        let names: BTreeSet<&[u8]> = looks
            .iter()
            .filter_map(|(_, look)| match look {
                Ok(ThreadActivity::Waiting(wait)) => Some(wait.kernel_frames.iter().map(String::as_bytes)),
                _ => None,
            })
            .flatten()
            .collect();
        let kernel = kernel_addresses(&names).unwrap_or_default();
        for (tid, look) in &looks {
            let thread = ThreadKey { pid, tid: *tid };
            let wait = match look {
                Ok(ThreadActivity::Waiting(wait)) => Some(self.existing_stack(thread, wait, &kernel)),
                // Not permitted, or ended.
                Err(_) if matches!(state(pid, *tid), Ok(Some(state)) if is_waiting(state)) => Some(None),
                Ok(ThreadActivity::Running) | Err(_) => None,
            };
            self.off_cpu.existing(thread, self.start_ns, sys::monotonic_ns(), wait);
        }
    }

    /// The stack of a thread that waits; `None` if it cannot be read.
    fn existing_stack(
        &mut self,
        thread: ThreadKey,
        wait: &ThreadWait,
        kernel: &HashMap<Vec<u8>, u64>,
    ) -> Option<SwitchStack> {
        let mut stack = Vec::new();
        self.unwinder.waiting_stack(thread.pid, wait, &mut self.processes, &mut stack).ok()?;
        self.mappings_of(thread.pid, self.start_ns, &stack).ok()?;
        self.note_frames(thread.pid, &stack);
        let in_kernel = wait.kernel_frames.iter().filter_map(|name| kernel.get(name.as_bytes()).copied());
        let mut frames: Vec<u64> = in_kernel.collect();
        self.kernel_mapping_of(thread.pid, self.start_ns, &frames).ok()?;
        self.kernel_frames.extend(frames.iter().copied());
        frames.extend_from_slice(&stack);
        Some(SwitchStack { frames, switches: 1 })
    }
}

/// Reads the addresses of some functions. Of several with the same name, the first is taken.
fn kernel_addresses(names: &BTreeSet<&[u8]>) -> io::Result<HashMap<Vec<u8>, u64>> {
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    addresses(BufReader::with_capacity(1 << 16, File::open("/proc/kallsyms")?), names)
}

fn addresses(text: impl BufRead, names: &BTreeSet<&[u8]>) -> io::Result<HashMap<Vec<u8>, u64>> {
    let mut found = HashMap::new();
    each_function(text, |address, name| {
        if names.contains(name) {
            found.entry(name.to_vec()).or_insert(address);
        }
        true
    })?;
    Ok(found)
}

/// Returns true if a thread in this state of the kernel neither runs nor waits for a processor.
const fn is_waiting(state: char) -> bool {
    matches!(state, 'S' | 'D' | 'T' | 't' | 'I')
}

/// Returns how often a waiting thread has left a processor: the same number later, from this function, is the
/// same wait. `None` if it runs, has ended, or its status cannot be read.
fn switches_until_wait(thread: ThreadKey) -> Option<u64> {
    let status = linux_proc_stat::read(&folder(thread.pid, thread.tid).join("status")).ok()?;
    let status = Status::new(&status);
    status.state().filter(|&state| is_waiting(state))?;
    status.context_switches()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_some_functions_are_read() {
        let text = "50 t e\n10 T a\n20 t b\n30 d c\n60 t b\n";
        let found = addresses(text.as_bytes(), &BTreeSet::from([&b"b"[..], b"c", b"e"])).unwrap();
        assert_eq!(found, HashMap::from([(b"b".to_vec(), 0x20), (b"e".to_vec(), 0x50)]));
    }
}
