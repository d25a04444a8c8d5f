//! Handles: the references by which code outside the heap holds objects.
//!
//! # Source
//! dotnet/runtime `src/coreclr/gc/handletablepriv.h` (`_TableSegmentHeader`, packed), `gc/objecthandle.h`,
//! `gc/gcinterface.h` (`HandleType`).

use hashbrown::HashSet;

use crate::heap::Heap;
use crate::heap::regions::variables::handle_map;
use crate::memory::address::Address;
use crate::memory::{Memory, MemoryResult, Missing, offset};
use crate::runtime::layout::HandleTables;

/// Blocks of handles of a segment, and handles of a block.
const BLOCKS: u64 = 120;
const OF_BLOCK: u64 = 64;
/// Offsets in a segment.
const BLOCK_TYPES: u64 = 1560;
const DATA_BLOCKS: u64 = 1680;
const VALUES: u64 = 4096;
/// Marks a block that is free or lacks second values.
const NO_BLOCK: u8 = 0xff;
/// Maximum number of buckets of a map, of maps, and of tables of a bucket.
const MAX_BUCKETS: u32 = 1024;
const MAX_MAPS: usize = 1024;
const MAX_TABLES: u64 = 1024;
/// Maximum number of segments: 30 million handles.
const MAX_SEGMENTS: usize = 1 << 12;

/// A handle with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handle {
    /// The address of the handle.
    pub address: Address,
    /// The kind of the handle.
    pub kind: HandleKind,
    /// The address of the object.
    pub object: Address,
    /// The second object, which a dependent handle keeps alive with the first; null if missing.
    pub dependent: Address,
}

/// The kind of a handle, by the runtime's number.
///
/// ```
/// use clr_dump::HandleKind;
///
/// assert!(HandleKind::PINNED.is_strong() && !HandleKind::WEAK_SHORT.is_strong());
/// // The numbers of a newer runtime are kept.
/// assert_eq!(HandleKind(200).name(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HandleKind(pub u8);

impl HandleKind {
    /// A weak reference.
    pub const WEAK_SHORT: Self = Self(0);
    /// A weak reference that survives resurrection.
    pub const WEAK_LONG: Self = Self(1);
    /// A strong reference.
    pub const STRONG: Self = Self(2);
    /// A strong reference to an object that does not move.
    pub const PINNED: Self = Self(3);
    /// A strong reference of a COM object that is counted.
    pub const REF_COUNTED: Self = Self(5);
    /// A weak reference, and an object that lives as long as the first.
    pub const DEPENDENT: Self = Self(6);
    /// A strong reference to an object that does not move until its I/O is done.
    pub const ASYNC_PINNED: Self = Self(7);
    /// A strong reference; its objects are counted together.
    pub const SIZED_REF: Self = Self(8);

    /// The name; `None` for an unknown number.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "weak",
            1 => "weak, tracks resurrection",
            2 => "strong",
            3 => "pinned",
            4 => "variable",
            5 => "counted",
            6 => "dependent",
            7 => "pinned for I/O",
            8 => "sized",
            9 => "weak, of a native object",
            10 => "weak, to the inside",
            11 => "of another runtime",
            _ => return None,
        })
    }

    /// Returns true if it keeps its object alive by itself.
    pub const fn is_strong(self) -> bool {
        matches!(self, Self::STRONG | Self::PINNED | Self::REF_COUNTED | Self::ASYNC_PINNED | Self::SIZED_REF)
    }
}

/// The handles of a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Handles {
    /// The handles that refer to an object.
    pub handles: Vec<Handle>,
    /// True if memory of a table was missing, or there are more segments than are read.
    pub is_incomplete: bool,
}

impl Heap<'_> {
    /// Reads the handles.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for handle in dump.heap().handles()?.handles.iter().filter(|handle| handle.kind.is_strong()) {
    ///     println!("{:?} holds {:?}", handle.kind.name(), dump.heap().type_name(handle.object));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn handles(self) -> MemoryResult<Handles> {
        let mut handles = Vec::new();
        let is_incomplete = !self.each_handle(|handle| handles.push(handle))?;
        Ok(Handles { handles, is_incomplete })
    }

    /// Passes the handles to `visit`, so that they can be counted without being kept. Returns false if memory
    /// of a table was missing, or there are more segments than are read.
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn each_handle(self, mut visit: impl FnMut(Handle)) -> MemoryResult<bool> {
        let map = handle_map(self.memory(), self.runtime())?;
        let mut reader = Reader {
            memory: self.memory(),
            tables: self.runtime().layout.handle_tables,
            seen: HashSet::new(),
            visit: &mut visit,
        };
        Ok(reader.read_maps(map).is_ok())
    }
}

/// Bytes of a segment of handles.
pub(crate) const SEGMENT_SIZE: u64 = 1 << 16;

/// Returns the addresses of the segments of handles of a map; those before missing memory are listed.
pub(crate) fn segments(memory: &dyn Memory, tables: HandleTables, map: u64) -> HashSet<u64> {
    let mut reader = Reader { memory, tables, seen: HashSet::new(), visit: &mut |_| {} };
    let _ = reader.read_maps(map);
    reader.seen
}

struct Reader<'m> {
    memory: &'m dyn Memory,
    tables: HandleTables,
    seen: HashSet<u64>,
    visit: &'m mut dyn FnMut(Handle),
}

impl Reader<'_> {
    fn read_maps(&mut self, mut map: u64) -> MemoryResult<()> {
        for _ in 0..MAX_MAPS {
            if map == 0 {
                break;
            }
            let [buckets, next] = self.memory.words(map)?;
            let count = self.memory.u32(offset(map, 16))?.min(MAX_BUCKETS);
            for index in 0..u64::from(count) {
                match self.memory.u64(offset(buckets, index.wrapping_mul(8)))? {
                    0 => {}
                    bucket => self.read_bucket(bucket)?,
                }
            }
            map = next;
        }
        Ok(())
    }

    /// Reads the tables of a bucket, one for each processor of a server's heap. Their number is not known: a
    /// table is recognized because its first segment refers back to it.
    fn read_bucket(&mut self, bucket: u64) -> MemoryResult<()> {
        let tables = self.memory.u64(bucket)?;
        for index in 0..MAX_TABLES {
            let Ok(table) = self.memory.u64(offset(tables, index.wrapping_mul(8))) else { break };
            let first = self.memory.u64(offset(table, self.tables.segments));
            let Ok(first) = first.and_then(|first| self.is_of(first, table).map(|()| first)) else {
                // The first one has to be there.
                return if index == 0 { Err(Missing { address: table }) } else { Ok(()) };
            };
            self.read_segments(first)?;
        }
        Ok(())
    }

    /// Fails unless a segment is of a table.
    fn is_of(&self, segment: u64, table: u64) -> MemoryResult<()> {
        let of = self.memory.u64(offset(segment, self.tables.next.wrapping_add(8)))?;
        if of == table { Ok(()) } else { Err(Missing { address: segment }) }
    }

    fn read_segments(&mut self, mut segment: u64) -> MemoryResult<()> {
        while segment != 0 && self.seen.insert(segment) {
            if self.seen.len() > MAX_SEGMENTS {
                return Err(Missing { address: segment });
            }
            let types: [u8; 120] = self.memory.array(offset(segment, BLOCK_TYPES))?;
            let data: [u8; 120] = self.memory.array(offset(segment, DATA_BLOCKS))?;
            for ((block, kind), data) in (0..BLOCKS).zip(types).zip(data) {
                if kind != NO_BLOCK && kind != self.tables.data_block {
                    let data = (data != NO_BLOCK).then_some(u64::from(data));
                    self.read_block(segment, block, HandleKind(kind), data)?;
                }
            }
            segment = self.memory.u64(offset(segment, self.tables.next))?;
        }
        Ok(())
    }

    fn read_block(
        &mut self,
        segment: u64,
        block: u64,
        kind: HandleKind,
        data: Option<u64>,
    ) -> MemoryResult<()> {
        let place = |block: u64| offset(segment, block.wrapping_mul(OF_BLOCK * 8).wrapping_add(VALUES));
        let values: [u64; 64] = self.memory.words(place(block))?;
        for (index, object) in (0..OF_BLOCK).zip(values).filter(|(_, object)| *object != 0) {
            let at = |block: u64| offset(place(block), index.wrapping_mul(8));
            let dependent = match data {
                Some(data) if kind == HandleKind::DEPENDENT => self.memory.pointer(at(data))?,
                _ => Address::default(),
            };
            let (address, object) = (Address::new(at(block)), Address::new(object));
            (self.visit)(Handle { address, kind, object, dependent });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;
    use crate::runtime::layout::NET_9;

    #[test]
    fn segments_that_refer_to_themselves_are_read_once() {
        let mut memory = TestMemory::default();
        let mut segment = vec![0; 0x2000];
        segment[1560..1680].fill(NO_BLOCK);
        segment[1560] = 2;
        segment[1561] = 6;
        segment[1562] = 11;
        segment[1680..1800].fill(NO_BLOCK);
        segment[1681] = 2;
        let mut put = |at: usize, word: u64| segment[at..at + 8].copy_from_slice(&word.to_le_bytes());
        put(1992, 0x10_0000);
        put(2000, 0x4000);
        put(4096 + 8, 0x7000);
        put(4096 + 512, 0x7100);
        put(4096 + 1024, 0x7200);
        memory.put(0x10_0000, &segment);
        // A map that is its own next one, with a bucket that has the table three times.
        memory.put_words(0x1000, &[0x1100, 0x1000, 1]);
        memory.put_words(0x1100, &[0x2000]).put_words(0x2000, &[0x3000]);
        memory.put_words(0x3000, &[0x4000, 0x4000, 0x4000, 0x5000]);
        memory.put_words(0x4000, &[0, 0, 0, 0, 0, 0, 0x10_0000]);
        let mut handles = Vec::new();
        let mut visit = |handle| handles.push(handle);
        let mut reader =
            Reader { memory: &memory, tables: NET_9.handle_tables, seen: HashSet::new(), visit: &mut visit };
        assert_eq!(reader.read_maps(0x1000), Ok(()));
        assert!(reader.read_maps(0x9000).is_err());
        let handle = |address, kind, object, dependent| {
            let [address, object, dependent] = [address, object, dependent].map(Address::new);
            Handle { address, kind, object, dependent }
        };
        let expected = [
            handle(0x10_1008, HandleKind::STRONG, 0x7000, 0),
            handle(0x10_1200, HandleKind::DEPENDENT, 0x7100, 0x7200),
        ];
        assert_eq!(handles, expected);
    }
}
