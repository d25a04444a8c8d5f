//! The instances of generic types that were loaded: each module has a hash table of them.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/ceeload.h` (`Module::m_pAvailableParamTypes`), `vm/dacenumerablehash.h`,
//! `vm/typehash.h` (`EETypeHashEntry`); for 3.1 dotnet/coreclr `src/vm/ngenhash.h`.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::memory::address::{Address, TypeHandle};
use crate::memory::{Memory, MemoryResult, offset};
use crate::runtime::layout::InstanceTable;
use crate::statics::Statics;
use crate::types::names::{is_instance, is_value};

/// Maximum number of instances of generic structures to keep names of.
const MAX_STRUCTURES: usize = 1 << 18;
/// Maximum number of buckets of a table.
const MAX_BUCKETS: u64 = 1 << 20;
/// The offset of the first bucket in an array: before it are their number, the array that takes the place of
/// this one, and the ends of chains.
const FIRST_BUCKET: u64 = 24;
/// Maximum number of arrays of buckets of a table: while it grows, it has two.
const MAX_ARRAYS: usize = 4;

impl Statics<'_> {
    /// Returns the loaded instance of a generic structure with the given name.
    pub(crate) fn instance_named(self, name: &str) -> Option<TypeHandle> {
        self.dump.structures.get_or_init(|| self.read_structures()).get(name).copied()
    }

    fn read_structures(self) -> HashMap<Arc<str>, TypeHandle> {
        let mut structures = HashMap::new();
        for module in self.dump.types().modules() {
            for of in self.instances(module.address, MAX_STRUCTURES).unwrap_or_default() {
                let is_structure =
                    self.memory().u32(of.get()).is_ok_and(|flags| is_instance(flags) && is_value(flags));
                if is_structure
                    && structures.len() < MAX_STRUCTURES
                    && let Some(name) = self.dump.types().name(of)
                {
                    structures.insert(name, of);
                }
            }
        }
        structures
    }

    /// Returns the types in a module's table of constructed types: instances of generic types, and arrays. At
    /// most `most` entries are read.
    ///
    /// # Errors
    /// If the memory lacks the table.
    pub(crate) fn instances(self, module: Address, most: usize) -> MemoryResult<Vec<TypeHandle>> {
        let memory = self.memory();
        let Some(of) = self.runtime().layout.module.instances else { return Ok(Vec::new()) };
        let at = match of {
            InstanceTable::Buckets(at) | InstanceTable::WarmBuckets(at) => at,
        };
        let table = memory.u64(module.at(at))?;
        // The table's first field is the module.
        if table == 0 || memory.pointer(table)? != module {
            return Ok(Vec::new());
        }
        let mut types = Vec::new();
        let mut buckets = memory.u64(offset(table, 16))?;
        match of {
            InstanceTable::WarmBuckets(_) => {
                let [count, entries] = [24, 28].map(|at| memory.u32(offset(table, at)));
                let most = most.min(usize::try_from(entries?).unwrap_or_default());
                read_buckets(memory, buckets, count?.into(), most, &mut types)?;
            }
            InstanceTable::Buckets(_) => {
                let entries = memory.u32(offset(table, 24))?;
                let most = most.min(usize::try_from(entries).unwrap_or_default());
                for _ in 0..MAX_ARRAYS {
                    let [count, next] = memory.words(buckets)?;
                    read_buckets(memory, offset(buckets, FIRST_BUCKET), count, most, &mut types)?;
                    buckets = next;
                    if next == 0 {
                        break;
                    }
                }
            }
        }
        Ok(types)
    }
}

/// Adds the types in buckets, until there are `most`.
fn read_buckets(
    memory: &dyn Memory,
    buckets: u64,
    count: u64,
    most: usize,
    types: &mut Vec<TypeHandle>,
) -> MemoryResult<()> {
    const HOT: u64 = 1;
    let size = usize::try_from(count.min(MAX_BUCKETS).saturating_mul(8)).unwrap_or_default();
    for bucket in memory.bytes(buckets, size)?.as_chunks().0 {
        let mut entry = u64::from_le_bytes(*bucket);
        // The last link of a chain is zero, or an odd number that belongs to the bucket.
        while entry != 0 && entry & 1 == 0 {
            if types.len() >= most {
                return Ok(());
            }
            let [handle, next] = memory.words(entry)?;
            types.push(TypeHandle::new(handle & !HOT));
            entry = next;
        }
    }
    types.retain(|handle| handle.description().is_none());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Dump;
    use crate::memory::tests::TestMemory;
    use crate::runtime::Runtime;
    use crate::runtime::layout::{NET_3_1, NET_9, NET_10};

    const MODULE: u64 = 0x1000;
    const TABLE: u64 = 0x8000;

    /// A memory with a module; its table contains `words`.
    fn memory(layout: &crate::runtime::layout::Layout, words: &[u64]) -> TestMemory {
        let Some(InstanceTable::Buckets(at) | InstanceTable::WarmBuckets(at)) = layout.module.instances
        else {
            panic!()
        };
        let mut module = vec![0; usize::try_from(at / 8).unwrap() + 1];
        *module.last_mut().unwrap() = TABLE;
        let mut memory = TestMemory::default();
        memory.put_words(MODULE, &module);
        memory.put_words(TABLE, words);
        memory
    }

    fn instances(
        memory: &TestMemory,
        layout: &'static crate::runtime::layout::Layout,
        most: usize,
    ) -> Vec<u64> {
        let runtime = Runtime::of_slots(layout, &[]);
        Dump::new(memory, &runtime)
            .statics()
            .instances(Address::new(MODULE), most)
            .unwrap()
            .into_iter()
            .map(TypeHandle::get)
            .collect()
    }

    #[test]
    fn a_table_that_grows_has_two_arrays_of_buckets() {
        for layout in [&NET_9, &NET_10] {
            let mut memory = memory(layout, &[MODULE, 0, 0x9000, 4]);
            // An empty bucket, a chain of two in the last one, and the other array with one.
            memory.put_words(0x9000, &[2, 0xa000, 1, 0xc1, 0xb000]);
            memory.put_words(0xb000, &[0x10_0000, 0xb020, 7, 0, 0x20_0000, 0x81, 8]);
            memory.put_words(0xa000, &[1, 0, 1, 0xb100]);
            // The second is the description of a pointer.
            memory.put_words(0xb100, &[0x30_0000, 0xb120, 9, 0, 0x40_0002, 0x41, 10]);
            assert_eq!(instances(&memory, layout, 100), [0x10_0000, 0x20_0000, 0x30_0000]);
            assert_eq!(instances(&memory, layout, 1), [0x10_0000]);
        }
    }

    #[test]
    fn a_table_of_net_core_3_1_has_the_number_of_its_buckets() {
        let mut memory = memory(&NET_3_1, &[MODULE, 0, 0x9000, 2 | 2 << 32]);
        memory.put_words(0x9000, &[0, 0xb000]);
        memory.put_words(0xb000, &[0x10_0001, 0xb020, 7, 0, 0x20_0000, 0, 8]);
        assert_eq!(instances(&memory, &NET_3_1, 100), [0x10_0000, 0x20_0000]);
    }

    #[test]
    fn a_chain_that_repeats_ends_with_the_number_of_entries() {
        let mut memory = memory(&NET_9, &[MODULE, 0, 0x9000, 3]);
        memory.put_words(0x9000, &[1, 0x9000, 1, 0xb000]);
        memory.put_words(0xb000, &[0x10_0000, 0xb000, 7]);
        assert_eq!(instances(&memory, &NET_9, 100).len(), 3);
        // A table that names another module is rejected.
        memory.put_words(TABLE, &[MODULE + 8]);
        assert!(instances(&memory, &NET_9, 100).is_empty());
    }
}
