//! The changes of the number of workers, which hill climbing keeps.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Threading/PortableThreadPool.HillClimbing.cs`; for 3.1
//! dotnet/coreclr `src/vm/hillclimbing.h` (`HillClimbingLogEntry`), `src/inc/dacvars.h`.

use crate::heap::object::{ObjectContent, Value};
use crate::memory::{MemoryResult, offset};
use crate::pool::workers::low_bits;
use crate::pool::{ThreadPool, number, value_of};

const TYPE: &str = "System.Threading.PortableThreadPool+HillClimbing";
const INSTANCE: &str = "ThreadPoolHillClimber";
/// The number of changes that the pool keeps.
const CAPACITY: u32 = 200;
/// The variables of the pool of .NET Core 3.1, counted from its first one.
const NATIVE_LOG: usize = 11;
const NATIVE_START: usize = 12;
const NATIVE_SIZE: usize = 13;
/// The size of a change in native memory.
const NATIVE_ENTRY: u64 = 20;

/// A change of the number of workers that may work at the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PoolChange {
    /// The time: the lowest 32 bits of the milliseconds that `Environment.TickCount` counts.
    pub tick: u32,
    /// The cause, as the runtime numbers it in its event `ThreadPoolWorkerThreadAdjustment/Adjustment`: 6 is
    /// starvation.
    pub reason: u32,
    /// The number of workers from then on.
    pub workers: u64,
    /// The number of work items that ended per second before, as it was measured.
    pub throughput: f32,
}

impl ThreadPool<'_> {
    /// Reads the last changes of the number of workers, at most 200, the oldest first; empty if the memory
    /// lacks them.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let starved = dump.thread_pool().changes().iter().filter(|change| change.reason == 6).count();
    /// println!("the pool added a worker {starved} times because nothing moved");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn changes(self) -> Vec<PoolChange> {
        if self.native_variable(NATIVE_LOG).is_some() {
            return self.native_changes().unwrap_or_default();
        }
        self.managed_changes().unwrap_or_default()
    }

    fn managed_changes(self) -> Option<Vec<PoolChange>> {
        let heap = self.dump.heap();
        let (climber, _) = self.dump.statics().core_library_field(TYPE, INSTANCE)?;
        let count = |name: &str| usize::try_from(number(&heap.field_value(climber, name)?)?).ok();
        let (start, size) = (count("_logStart")?, count("_logSize")?);
        let Value::Reference { address, .. } = heap.field_value(climber, "_log")? else { return None };
        let ObjectContent::Array { elements, .. } = heap.content(&heap.object_at(address)?, CAPACITY).ok()?
        else {
            return None;
        };
        let change = |value: &Value| {
            let Value::Structure { fields, .. } = value else { return None };
            let field = |name: &str| value_of(fields, &[name]).and_then(number);
            let throughput = match value_of(fields, &["lastHistoryMean"])? {
                Value::Single(throughput) => *throughput,
                _ => return None,
            };
            Some(PoolChange {
                tick: low_bits(field("tickCount")?)?,
                reason: low_bits(field("stateOrTransition")?)?,
                workers: u64::try_from(field("newControlSetting")?).ok()?,
                throughput,
            })
        };
        let elements = elements.iter().cycle().skip(start.min(elements.len())).take(size.min(elements.len()));
        Some(elements.filter_map(change).collect())
    }

    fn native_changes(self) -> MemoryResult<Vec<PoolChange>> {
        let variables = [NATIVE_LOG, NATIVE_START, NATIVE_SIZE].map(|index| self.native_variable(index));
        let [Some(log), Some(start), Some(size)] = variables else { return Ok(Vec::new()) };
        let memory = self.memory();
        let (start, size) = (memory.u32(start)?, memory.u32(size)?.min(CAPACITY));
        let mut changes = Vec::new();
        for index in 0..size {
            let index = start.wrapping_add(index).checked_rem(CAPACITY).unwrap_or_default();
            let at = offset(log, u64::from(index).wrapping_mul(NATIVE_ENTRY));
            changes.push(PoolChange {
                tick: memory.u32(at)?,
                reason: memory.u32(offset(at, 4))?,
                workers: memory.u32(offset(at, 8))?.into(),
                throughput: f32::from_le_bytes(memory.array(offset(at, 16))?),
            });
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Dump;
    use crate::memory::tests::TestMemory;
    use crate::runtime::Runtime;
    use crate::runtime::layout::NET_3_1;

    #[test]
    fn the_log_of_the_native_pool_is_a_ring() {
        let first = NET_3_1.slots.thread_store + 1;
        let slots =
            [(first + NATIVE_LOG, 0x1000), (first + NATIVE_START, 0x3000), (first + NATIVE_SIZE, 0x4000)];
        let runtime = Runtime::of_slots(&NET_3_1, &slots);
        let entry = |tick: u32| {
            [tick, 6, 3, 0].iter().flat_map(|word| word.to_le_bytes()).chain(1.5_f32.to_le_bytes()).collect()
        };
        let log: Vec<Vec<u8>> = (0..CAPACITY).map(entry).collect();
        let mut memory = TestMemory::default();
        memory.put(0x1000, &log.concat()).put_words(0x3000, &[198]).put_words(0x4000, &[u64::from(u32::MAX)]);
        let changes = Dump::new(&memory, &runtime).thread_pool().changes();
        assert_eq!(changes.len(), 200);
        assert_eq!([0, 1, 2, 199].map(|index| changes[index].tick), [198, 199, 0, 197]);
        let expected = PoolChange { tick: 0, reason: 6, workers: 3, throughput: 1.5 };
        assert_eq!(changes[2], expected);
    }
}
