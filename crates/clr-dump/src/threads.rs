//! Threads with their stacks, exceptions and monitors.

pub(crate) mod all_stacks;
pub(crate) mod exception;
pub(crate) mod explicit_roots;
pub(crate) mod lock;
pub(crate) mod roots;
pub(crate) mod stack;
pub(crate) mod thread;
pub(crate) mod variables;

use crate::dump::view;
use crate::memory::MemoryResult;
use crate::memory::address::Address;
use crate::threads::stack::Stack;
use crate::threads::thread::Thread;
use crate::unwind::registers::Registers;

view! {
    /// The threads of a dump, with their stacks.
    Threads, threads
}

impl Threads<'_> {
    /// Returns the managed threads.
    ///
    /// # Errors
    /// If the memory lacks a part of the list.
    pub fn list(self) -> MemoryResult<Vec<Thread>> {
        self.runtime().threads(self.memory())
    }

    /// Returns the address of a thread's managed object; `None` if the thread lacks one.
    ///
    /// # Errors
    /// If the memory lacks the way to it.
    pub fn object(self, thread: &Thread) -> MemoryResult<Option<Address>> {
        self.runtime().thread_object(self.memory(), thread)
    }

    /// Returns the name that the program gave a thread; `None` if unnamed.
    ///
    /// # Errors
    /// If the memory lacks the thread's object: small cores do.
    pub fn name(self, thread: &Thread) -> MemoryResult<Option<String>> {
        self.runtime().thread_name(self.memory(), thread)
    }

    /// Walks the frames of a thread. `registers` are the thread's own; without them the walk starts at the
    /// innermost explicit frame, which is right for a thread in native code.
    pub fn stack(self, thread: &Thread, registers: Option<&Registers>) -> Stack {
        self.runtime().stack(self.memory(), thread, registers)
    }

    /// Walks the frames of a thread of a process that runs meanwhile, until two walks agree. Returns the
    /// thread as it was then, and a stack with [`Gap::Changed`](crate::Gap::Changed) if none did.
    pub fn running_stack(self, thread: Thread) -> (Thread, Stack) {
        self.runtime().running_stack(self.memory(), thread)
    }

    /// Walks the frames of a thread that the runtime does not know.
    pub fn native_stack(self, registers: &Registers) -> Stack {
        self.runtime().native_stack(self.memory(), registers)
    }
}
