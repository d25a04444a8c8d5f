//! The stacks of all threads of a process.

use std::collections::BTreeMap;

use crate::memory::MemoryResult;
use crate::threads::Threads;
use crate::threads::stack::Stack;
use crate::threads::thread::Thread;
use crate::unwind::registers::Registers;

/// The threads of a process, with their stacks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ThreadStacks {
    /// The threads that the runtime knows.
    pub managed: Vec<ManagedStack>,
    /// The other threads with registers: they have never run managed code.
    pub native: Vec<NativeStack>,
}

/// A managed thread with its stack.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ManagedStack {
    /// The runtime's thread.
    pub thread: Thread,
    /// The frames.
    pub stack: Stack,
    /// The thread's own registers; `None` if they are not known.
    pub registers: Option<Registers>,
}

/// A thread that the runtime does not know, with its stack.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NativeStack {
    /// The thread id in the system.
    pub tid: u32,
    /// The frames.
    pub stack: Stack,
}

impl Threads<'_> {
    /// Walks the stacks of all threads. `registers` are those of threads, keyed by thread id.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let stacks = dump.threads().stacks(&core.thread_registers())?;
    /// println!("{} managed and {} other threads", stacks.managed.len(), stacks.native.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks a part of the list of threads.
    pub fn stacks(self, registers: &BTreeMap<u32, Registers>) -> MemoryResult<ThreadStacks> {
        self.all_stacks(registers, |thread, registers| {
            let stack = self.stack(&thread, registers.as_ref());
            ManagedStack { thread, stack, registers }
        })
    }

    /// Walks the stacks of all threads of a process that runs, or that is stopped if there are `registers` of
    /// its threads: without them a stack is walked by [`running_stack`](Self::running_stack).
    ///
    /// # Errors
    /// If the memory lacks a part of the list of threads.
    pub fn running_stacks(self, registers: &BTreeMap<u32, Registers>) -> MemoryResult<ThreadStacks> {
        self.all_stacks(registers, |thread, registers| {
            let (thread, stack) = match &registers {
                None => self.running_stack(thread),
                Some(_) => {
                    let stack = self.stack(&thread, registers.as_ref());
                    (thread, stack)
                }
            };
            ManagedStack { thread, stack, registers }
        })
    }

    fn all_stacks(
        self,
        registers: &BTreeMap<u32, Registers>,
        walk: impl Fn(Thread, Option<Registers>) -> ManagedStack,
    ) -> MemoryResult<ThreadStacks> {
        let threads = self.list()?;
        let is_known = |tid: &u32| threads.iter().any(|thread| thread.os_id == u64::from(*tid));
        let native = registers.iter().filter(|(tid, _)| !is_known(tid));
        let native =
            native.map(|(tid, registers)| NativeStack { tid: *tid, stack: self.native_stack(registers) });
        let native = native.collect();
        let managed = threads.into_iter().map(|thread| {
            let registers = u32::try_from(thread.os_id).ok().and_then(|tid| registers.get(&tid));
            walk(thread, registers.copied())
        });
        Ok(ThreadStacks { managed: managed.collect(), native })
    }
}
