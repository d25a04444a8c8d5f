//! The threads that the runtime knows.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/threads.h` (`ThreadStore`, `Thread`).

use hashbrown::HashSet;

use crate::memory::address::Address;
use crate::memory::{Memory, MemoryResult, offset};
use crate::runtime::layout::Layout;

/// Maximum number of threads of a process.
const MAX_THREADS: usize = 20_000;

/// A thread that runs, or ran, managed code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// The address of the runtime's Thread.
    pub address: Address,
    /// The thread id in the system; zero if it has not started or has ended.
    pub os_id: u64,
    /// The managed id; zero if the runtime does not assign one.
    pub managed_id: u32,
    /// The state of the thread; no bits if unknown (NativeAOT).
    pub state: ThreadState,
    /// True if it runs managed code or changes managed objects: a collection has to wait for it.
    pub is_cooperative: bool,
    /// The address of its innermost explicit frame.
    pub frame: Address,
}

#[cfg(test)]
impl Thread {
    /// A thread for tests that need only its address.
    pub(crate) const fn at(address: u64) -> Self {
        Self {
            address: Address::new(address),
            os_id: 1,
            managed_id: 1,
            state: ThreadState(0),
            is_cooperative: false,
            frame: Address::new(0),
        }
    }
}

/// The state bits of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadState(pub u32);

impl ThreadState {
    /// Returns true if it does not keep the process alive.
    pub const fn is_background(self) -> bool {
        self.0 & 0x200 != 0
    }

    /// Returns true if it has not started yet.
    pub const fn is_unstarted(self) -> bool {
        self.0 & 0x400 != 0
    }

    /// Returns true if it is a worker of the thread pool.
    pub const fn is_pool_worker(self) -> bool {
        self.0 & 0x0100_0000 != 0
    }

    /// Returns true if it waits in a method of the runtime.
    pub const fn is_waiting(self) -> bool {
        self.0 & 0x0200_0000 != 0
    }
}

/// Reads the list of threads from the runtime's ThreadStore, with the number that the runtime counts.
pub(crate) fn list(
    memory: &dyn Memory,
    layout: &Layout,
    store: u64,
) -> MemoryResult<(Option<u32>, Vec<Thread>)> {
    let count = layout.thread_store.count.map(|at| memory.u32(offset(store, at))).transpose()?;
    let mut link = memory.u64(offset(store, layout.thread_store.first))?;
    let fields = &layout.thread;
    let (mut threads, mut seen) = (Vec::new(), HashSet::new());
    while link != 0 && threads.len() < MAX_THREADS && seen.insert(link) {
        let address = Address::new(link.wrapping_sub(fields.link_target));
        threads.push(read(memory, layout, address)?);
        link = memory.u64(address.at(fields.link))?;
    }
    Ok((count, threads))
}

/// Reads the thread at an address.
pub(crate) fn read(memory: &dyn Memory, layout: &Layout, address: Address) -> MemoryResult<Thread> {
    let fields = &layout.thread;
    let number = |at: Option<u64>| at.map_or(Ok(0), |at| memory.u32(address.at(at)));
    let frame = memory.pointer(address.at(fields.frame))?;
    Ok(Thread {
        address,
        os_id: memory.u64(address.at(fields.os_id))?,
        managed_id: number(fields.managed_id)?,
        state: ThreadState(number(fields.state)?),
        is_cooperative: if fields.mode.is_some() { number(fields.mode)? & 1 != 0 } else { frame.is_null() },
        frame,
    })
}
