//! The methods of code that was compiled ahead of time, in the runtime's table of prepared methods.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/readytoruninfo.h`, `vm/hash.h`.

use crate::memory::address::{Address, MethodDesc};
use crate::memory::{Memory, MemoryResult, offset};
use crate::types::Types;

/// Maximum number of functions of a method of an image: its body and its funclets.
const MAX_FUNCTIONS: u32 = 64;
/// Maximum number of buckets of a hash table to search.
const MAX_BUCKETS: u64 = 1024;

impl Types<'_> {
    /// Finds the MethodDesc of a function of an image in the runtime's table of prepared methods, with the
    /// index of the method's first function.
    ///
    /// A function that is not in it is a funclet, and belongs to the last method before it.
    pub(crate) fn entry_point(
        self,
        module: Address,
        base: u64,
        index: u32,
    ) -> MemoryResult<Option<(MethodDesc, u32)>> {
        let Some(field) = self.runtime().layout.module.ready_to_run else { return Ok(None) };
        let info = self.memory().u64(module.at(field.info))?;
        let table = self.memory().u64(offset(info, field.entry_points))?;
        let image = self.runtime().code().image(self.memory(), base)?;
        for back in 0..MAX_FUNCTIONS {
            let Some(index) = index.checked_sub(back) else { break };
            let begin = image.begin(self.memory(), index)?;
            if let Some(method_desc) = look_up(self.memory(), table, begin)? {
                return Ok(Some((MethodDesc::new(method_desc), index)));
            }
        }
        Ok(None)
    }
}

/// Looks up a key in a hash table of the runtime: buckets of four keys and four values, the first of which
/// has the number of buckets.
fn look_up(memory: &dyn Memory, table: u64, key: u64) -> MemoryResult<Option<u64>> {
    const BUCKET: u64 = 64;
    let low = |value: u64| u32::from_le_bytes(value.to_le_bytes().first_chunk().copied().unwrap_or_default());
    let count = low(memory.u64(table)?);
    // The runtime computes in 32 bits.
    let mut place = low(key >> 2);
    let Some(step) = low(key >> 5).wrapping_add(1).checked_rem(count.wrapping_sub(1)) else {
        return Ok(None);
    };
    let step = step.wrapping_add(1);
    for _ in 0..u64::from(count).min(MAX_BUCKETS) {
        let Some(bucket) = place.checked_rem(count) else { break };
        let at = offset(table, u64::from(bucket).wrapping_add(1).wrapping_mul(BUCKET));
        let (keys, values) = (memory.words::<4>(at)?, memory.words::<4>(offset(at, 32))?);
        if let Some((_, value)) = keys.iter().zip(values).find(|(found, _)| **found == key) {
            // The highest bit is a flag of the bucket, and the value is halved.
            return Ok(Some(value << 1));
        }
        let has_collided = values.first().is_some_and(|value| value >> 63 != 0);
        if !has_collided {
            break;
        }
        place = place.wrapping_add(step);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    #[test]
    fn a_key_is_found_in_the_bucket_it_collided_into() {
        let mut memory = TestMemory::default();
        // Three buckets. Both keys belong in the second, which is full, so the last key is a step further.
        let key = |number: u64| (number * 3 + 1) << 2;
        let mut words = vec![0; 8 * 4];
        words[0] = 3;
        words[16..20].copy_from_slice(&[key(1), key(2), key(3), key(4)]);
        words[20..24].copy_from_slice(&[0x101 | 1 << 63, 0x102, 0x103, 0x104]);
        // The key's step is 1 or 2 buckets.
        let third = usize::try_from((2 + ((key(40) >> 5) + 1) % 2) % 3).unwrap();
        words[8 + third * 8] = key(40);
        words[8 + third * 8 + 4] = 0x140;
        memory.put_words(0x1000, &words);
        let found = [1, 4, 40, 41].map(|number| look_up(&memory, 0x1000, key(number)).unwrap());
        assert_eq!(found, [Some(0x202), Some(0x208), Some(0x280), None]);
        // A table without buckets, and a missing table.
        memory.put_words(0x1000, &[0; 8]);
        assert_eq!(look_up(&memory, 0x1000, key(1)), Ok(None));
        memory.put_words(0x1000, &[1; 8]);
        assert_eq!(look_up(&memory, 0x1000, key(1)), Ok(None));
        assert!(look_up(&memory, 0x9000, key(1)).is_err());
    }
}
