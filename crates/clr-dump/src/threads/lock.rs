//! Monitors: their holders, and the threads that wait for them.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/syncblk.h` (`SyncTableEntry`, `SyncBlock`, `AwareLock`), `vm/threads.h`
//! (`DebugBlockingItem`).

use hashbrown::HashSet;

use crate::dump::view;
use crate::memory::address::Address;
use crate::memory::{Memory, MemoryResult, offset};
use crate::runtime::layout::MonitorOwner;
use crate::threads::thread::Thread;

/// Maximum number of entries of the table of sync blocks.
const MAX_ENTRIES: u64 = 1 << 20;
/// Maximum number of nested waits of a thread.
const MAX_WAITS: usize = 64;

/// A monitor that has a sync block, as it has once a thread has waited for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Monitor {
    /// The address of its SyncBlock.
    pub address: Address,
    /// The address of its object.
    pub object: Address,
    /// The thread that holds it.
    pub owner: Option<Owner>,
    /// The number of threads that wait to enter it.
    pub waiters: u32,
}

/// The holder of a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// The address of the runtime's Thread.
    pub thread: Address,
    /// The number of times that it has entered.
    pub recursion: u32,
}

/// The monitor that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MonitorWait {
    /// The address of the SyncBlock.
    pub monitor: Address,
    /// The kind of wait.
    pub kind: WaitKind,
}

/// A kind of wait for a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a thread waits for a monitor or for its pulse")]
pub enum WaitKind {
    /// To enter it (`lock`, `Monitor.Enter`).
    Enter,
    /// For a pulse (`Monitor.Wait`).
    Pulse,
}

/// The sync table: the monitors, and whether memory of them was missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Monitors {
    /// The monitors that a thread holds or waits for.
    pub monitors: Vec<Monitor>,
    /// True if a part of the table or of a sync block is missing: core dumps without heaps lack it.
    pub is_incomplete: bool,
}

impl Monitors {
    /// The monitor with an address.
    pub fn at(&self, address: Address) -> Option<&Monitor> {
        self.monitors.iter().find(|monitor| monitor.address == address)
    }
}

view! {
    /// The monitors of a dump.
    Locks, locks
}

impl Locks<'_> {
    /// Reads the monitors that threads hold or wait for.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for monitor in &dump.locks().monitors().monitors {
    ///     println!("{:#x} is held by {:?}", monitor.object, monitor.owner);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn monitors(self) -> Monitors {
        let mut all = Monitors::default();
        all.is_incomplete = self.read_monitors(&mut all.monitors).is_err();
        all
    }

    fn read_monitors(self, monitors: &mut Vec<Monitor>) -> MemoryResult<()> {
        let (memory, runtime) = (self.memory(), self.runtime());
        let table = runtime.variable(memory, runtime.layout.slots.sync_table)?;
        // The rest of the table is not initialized, and zeros in most processes.
        let cache = runtime.variable(memory, runtime.layout.slots.sync_cache);
        let end = cache.and_then(|cache| memory.u32(offset(cache, runtime.layout.first_unused_entry)));
        let end = end.map_or(MAX_ENTRIES, |end| u64::from(end).min(MAX_ENTRIES));
        let threads = match runtime.layout.monitor_owner {
            MonitorOwner::Thread => Vec::new(),
            MonitorOwner::ManagedId => runtime.threads(memory)?,
        };
        for index in 1..end {
            let [block, object] = memory.words(offset(table, index.wrapping_mul(16)))?;
            if block == 0 && object == 0 {
                break;
            }
            // A free entry has an odd number in the place of the object.
            if object & 1 != 0 || block == 0 || object == 0 || !is_of(memory, object, index)? {
                continue;
            }
            let state = memory.u32(block)?;
            let recursion = memory.u32(offset(block, 4))?;
            let thread = match runtime.layout.monitor_owner {
                MonitorOwner::Thread => memory.pointer(offset(block, 8))?,
                MonitorOwner::ManagedId => {
                    let managed_id = memory.u32(offset(block, 8))?;
                    let of = |thread: &&Thread| managed_id != 0 && thread.managed_id == managed_id;
                    threads.iter().find(of).map_or_else(Address::default, |thread| thread.address)
                }
            };
            let is_held = state & 1 != 0 && !thread.is_null();
            let waiters = state >> 6;
            if is_held || waiters > 0 {
                let owner = is_held.then_some(Owner { thread, recursion });
                let (address, object) = (Address::new(block), Address::new(object));
                monitors.push(Monitor { address, object, owner, waiters });
            }
        }
        Ok(())
    }

    /// Returns the monitors that a thread waits for, the innermost first.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let monitors = dump.locks().monitors();
    /// for thread in dump.threads().list()? {
    ///     for wait in dump.locks().waits(&thread)? {
    ///         let object = monitors.at(wait.monitor).map(|monitor| monitor.object);
    ///         let name = object.and_then(|object| dump.heap().type_name(object));
    ///         println!("{} waits for {name:?}", thread.os_id);
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the thread's list.
    pub fn waits(self, thread: &Thread) -> MemoryResult<Vec<MonitorWait>> {
        let mut waits = Vec::new();
        let memory = self.memory();
        let Some(list) = self.runtime().layout.thread.blocking_item else { return Ok(waits) };
        let mut item = memory.u64(thread.address.at(list))?;
        let mut seen = HashSet::new();
        while item != 0 && waits.len() < MAX_WAITS && seen.insert(item) {
            let monitor = memory.pointer(item)?;
            let kind = match memory.u32(offset(item, 16))? {
                0 => WaitKind::Enter,
                1 => WaitKind::Pulse,
                _ => break,
            };
            waits.push(MonitorWait { monitor, kind });
            item = memory.u64(offset(item, 24))?;
        }
        Ok(waits)
    }
}

/// The word before an object: flags, and an index of the sync table or a thin lock.
const HAS_INDEX_OR_HASH: u32 = 0x0800_0000;
const HAS_HASH: u32 = 0x0400_0000;
const INDEX: u32 = 0x03ff_ffff;

/// Returns true if an object uses the sync block with this index.
fn is_of(memory: &dyn Memory, object: u64, index: u64) -> MemoryResult<bool> {
    let header = memory.u32(object.wrapping_sub(4))?;
    Ok(header & (HAS_INDEX_OR_HASH | HAS_HASH) == HAS_INDEX_OR_HASH && u64::from(header & INDEX) == index)
}

/// The managed id of the thread that holds an object's thin lock, and the number of further times that it has
/// entered; `None` if the word before the object is not a held thin lock. The id has `owner_bits`.
pub(crate) fn thin_lock(header: u32, owner_bits: u32) -> Option<(u32, u32)> {
    let id = header & !(u32::MAX << owner_bits);
    (header & HAS_INDEX_OR_HASH == 0 && id != 0).then_some((id, header >> owner_bits & 0x3f))
}

/// Finds the threads that wait for each other: each cycle of `waits_for`, once, as thread indexes.
///
/// ```
/// // Thread 0 waits for thread 2, which waits for thread 0; thread 1 waits for them.
/// let deadlocks = clr_dump::deadlocks(&[Some(2), Some(0), Some(0)]);
/// assert_eq!(deadlocks.len(), 1);
/// assert!(deadlocks[0].contains(&0) && deadlocks[0].contains(&2));
/// ```
pub fn deadlocks(waits_for: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut cycles = Vec::new();
    let mut state = vec![0_usize; waits_for.len()];
    for start in 0..waits_for.len() {
        let round = start.saturating_add(1);
        let mut path = Vec::new();
        let mut at = Some(start);
        while let Some(index) = at {
            match state.get_mut(index) {
                Some(visited) if *visited == 0 => *visited = round,
                Some(visited) if *visited == round => {
                    let from = path.iter().position(|other| *other == index).unwrap_or_default();
                    cycles.push(path.get(from..).unwrap_or_default().to_vec());
                    break;
                }
                _ => break,
            }
            path.push(index);
            at = waits_for.get(index).copied().flatten();
        }
    }
    cycles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Dump;
    use crate::runtime::Runtime;

    #[test]
    fn each_cycle_is_found_once() {
        // 0 and 1 wait for each other, 2 waits for 0, 3 for none, 4 for 5 for 6 for 4, 7 for itself.
        let waits = [Some(1), Some(0), Some(0), None, Some(5), Some(6), Some(4), Some(7)];
        assert_eq!(deadlocks(&waits), [vec![0, 1], vec![4, 5, 6], vec![7]]);
        assert_eq!(deadlocks(&[Some(9), None]), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn the_sync_table_ends_where_its_cache_says() {
        use crate::memory::tests::TestMemory;
        use crate::runtime::layout::NET_9;

        let slots = &NET_9.slots;
        let runtime = Runtime::of_slots(&NET_9, &[(slots.sync_table, 0x100), (slots.sync_cache, 0x108)]);
        let mut memory = TestMemory::default();
        memory.put_words(0x100, &[0x1000, 0x2000]);
        // A held monitor, a free entry, a held monitor, and an entry with stale data.
        memory.put_words(0x1000, &[0, 0, 0x3000, 0x4008, 0, 0x5, 0x3000, 0x5008, 0x3000, 0x6008]);
        memory.put_words(0x3000, &[1, 0x7000]);
        for (object, index) in [(0x4000, 1_u64), (0x5000, 3), (0x6000, 4)] {
            memory.put_words(object, &[(0x0800_0000 | index) << 32, 0]);
        }
        let mut cache = vec![0; 32];
        cache[22] = 4 << 32;
        memory.put_words(0x2000, &cache);
        let objects = |memory: &TestMemory| {
            let monitors = Dump::new(memory, &runtime).locks().monitors();
            assert!(!monitors.is_incomplete);
            monitors.monitors.iter().map(|monitor| monitor.object.get()).collect::<Vec<_>>()
        };
        assert_eq!(objects(&memory), [0x4008, 0x5008]);
    }

    #[test]
    fn a_thin_lock_has_the_id_of_its_thread() {
        assert_eq!(thin_lock(0x0002_0007, 16), Some((7, 2)));
        // .NET Core 3.1 has ten bits.
        assert_eq!(thin_lock(0x0001_0807, 10), Some((7, 2)));
        assert_eq!(thin_lock(0, 16), None);
        assert_eq!(thin_lock(HAS_INDEX_OR_HASH | 7, 16), None);
    }
}
