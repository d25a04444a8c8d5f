//! Threads that wait already when a recording begins.

use std::collections::{BTreeSet, HashMap};

use super::{RecordingWriter, SwitchStack};
use crate::kernel::kernel_addresses;
use crate::record::ThreadKey;
use crate::sys;
use crate::threads::state;
use crate::waiting::{ThreadActivity, ThreadWait, thread_activity};

impl RecordingWriter {
    /// Adds the threads of a process that wait already to those off the processors.
    pub(super) fn existing_waits(&mut self, pid: i32, threads: &[i32]) {
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
                Err(_) if matches!(state(pid, *tid), Ok(Some('S' | 'D' | 'T' | 't' | 'I'))) => Some(None),
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
        self.note_frames(thread.pid, &stack);
        let in_kernel = wait.kernel_frames.iter().filter_map(|name| kernel.get(name.as_bytes()).copied());
        let mut frames: Vec<u64> = in_kernel.collect();
        self.kernel_frames.extend(frames.iter().copied());
        frames.extend_from_slice(&stack);
        Some(SwitchStack { frames, switches: 1 })
    }
}
