//! Bytes at an address: all that the readers of this crate need.

pub(crate) mod address;
pub(crate) mod copy_note;
pub(crate) mod core_file;
pub(crate) mod mapping;
#[cfg(target_os = "linux")]
pub(crate) mod page_map;
pub(crate) mod paged_file;
#[cfg(target_os = "linux")]
pub(crate) mod process;
pub(crate) mod read_stop;
pub(crate) mod resident;
pub(crate) mod touched;
pub(crate) mod unpack;

use crate::memory::address::{Address, TypeHandle};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// The error for memory that a source does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory at {address:#x}")]
#[allow(clippy::exhaustive_structs, reason = "made by those who have memory")]
pub struct Missing {
    /// The first address that could not be read, or the start of the read that failed.
    pub address: u64,
}

/// The result of reading memory.
pub type MemoryResult<T> = Result<T, Missing>;

/// The memory of a process: of a core dump, of a live process, or of both with additions. Several threads may
/// read it at the same time. It is read by number: [`Address::get`].
///
/// ```
/// use clr_dump::{Memory, MemoryResult, Missing};
///
/// /// Memory of a format of the caller's own.
/// struct Bytes(Vec<u8>);
///
/// impl Memory for Bytes {
///     fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
///         let from = usize::try_from(address).ok();
///         let bytes = from.and_then(|from| self.0.get(from..from.checked_add(buffer.len())?));
///         buffer.copy_from_slice(bytes.ok_or(Missing { address })?);
///         Ok(())
///     }
/// }
///
/// let memory: &dyn Memory = &Bytes(vec![1, 0, 0, 0, 7]);
/// assert_eq!((memory.u32(0), memory.u8(4)), (Ok(1), Ok(7)));
/// assert!(memory.u64(0).is_err());
/// ```
pub trait Memory: Send + Sync {
    /// Fills `buffer` with the bytes that begin at `address`.
    ///
    /// # Errors
    /// [`Missing`] if any of the bytes is not there. The buffer's content is then unspecified.
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()>;
}

/// Defines methods that read an integer of a fixed size.
macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// As [`Memory::read`].
        pub fn $name(&self, address: u64) -> MemoryResult<$name> {
            self.array(address).map($name::from_le_bytes)
        }
    )*};
}

impl dyn Memory + '_ {
    /// Reads a fixed number of bytes.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn array<const N: usize>(&self, address: u64) -> MemoryResult<[u8; N]> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    integers! {
        /// Reads a byte.
        u8
        /// Reads a little-endian integer of 16 bits.
        u16
        /// Reads a little-endian integer of 32 bits.
        u32
        /// Reads a little-endian integer of 64 bits: a pointer.
        u64
        /// Reads a signed little-endian integer of 32 bits.
        i32
        /// Reads a signed little-endian integer of 64 bits.
        i64
    }

    /// Reads consecutive pointers.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn words<const N: usize>(&self, address: u64) -> MemoryResult<[u64; N]> {
        let mut words = [0; N];
        for (index, word) in (0_u64..).zip(words.iter_mut()) {
            *word = self.u64(offset(address, index.wrapping_mul(8)))?;
        }
        Ok(words)
    }

    /// Reads a pointer.
    pub(crate) fn pointer(&self, address: u64) -> MemoryResult<Address> {
        self.u64(address).map(Address::new)
    }

    /// Reads a pointer to a type.
    pub(crate) fn type_handle(&self, address: u64) -> MemoryResult<TypeHandle> {
        self.u64(address).map(TypeHandle::new)
    }

    /// Reads the type of an object. The lowest bits of its first word are marks of a collection.
    pub(crate) fn object_type(&self, object: Address) -> MemoryResult<TypeHandle> {
        self.u64(object.get()).map(TypeHandle::of_word)
    }

    /// Reads `size` bytes, which the caller has limited.
    ///
    /// # Errors
    /// As [`Memory::read`]. Memory is taken in steps: a hostile size of bytes that are not there takes
    /// little.
    pub fn bytes(&self, address: u64, size: usize) -> MemoryResult<Vec<u8>> {
        const STEP: usize = 1 << 20;
        let mut bytes = Vec::new();
        while bytes.len() < size {
            let from = bytes.len();
            bytes.resize(size.min(from.saturating_add(STEP)), 0);
            let at = offset(address, u64::try_from(from).unwrap_or(u64::MAX));
            self.read(at, bytes.get_mut(from..).unwrap_or_default())?;
        }
        Ok(bytes)
    }
}

/// The address of a part of a structure. It wraps: the next read fails if the address is invalid.
pub(crate) const fn offset(address: u64, by: u64) -> u64 {
    address.wrapping_add(by)
}

/// Memory with copied bytes of one range before it: the stack of a thread that has run on since.
///
/// ```
/// use clr_dump::{Memory, MemoryResult, Missing, WithCopy};
///
/// /// Memory of zeros.
/// struct Zeros;
///
/// impl Memory for Zeros {
///     fn read(&self, _: u64, buffer: &mut [u8]) -> MemoryResult<()> {
///         buffer.fill(0);
///         Ok(())
///     }
/// }
///
/// // The bytes of a sampled stack, over memory that has changed since.
/// let stack = [1, 0, 0, 0];
/// let memory: &dyn Memory = &WithCopy::new(&Zeros, 0x7000, &stack);
/// assert_eq!((memory.u32(0x7000), memory.u32(0x7100)), (Ok(1), Ok(0)));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WithCopy<'a, M: ?Sized> {
    memory: &'a M,
    start: u64,
    bytes: &'a [u8],
}

impl<'a, M: Memory + ?Sized> WithCopy<'a, M> {
    /// Puts the bytes that were at `start` before `memory`.
    pub const fn new(memory: &'a M, start: u64, bytes: &'a [u8]) -> Self {
        Self { memory, start, bytes }
    }
}

impl<M: Memory + ?Sized> Memory for WithCopy<'_, M> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        let copied = address.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let copied = copied.and_then(|from| self.bytes.get(from..from.checked_add(buffer.len())?));
        match copied {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => self.memory.read(address, buffer),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Memory that a test composes.
    #[derive(Debug, Default)]
    pub(crate) struct TestMemory {
        parts: BTreeMap<u64, Vec<u8>>,
    }

    impl TestMemory {
        pub(crate) fn put(&mut self, address: u64, bytes: &[u8]) -> &mut Self {
            self.parts.insert(address, bytes.to_vec());
            self
        }

        pub(crate) fn put_words(&mut self, address: u64, words: &[u64]) -> &mut Self {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.put(address, &bytes)
        }
    }

    impl Memory for TestMemory {
        fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
            let missing = Missing { address };
            let (start, bytes) = self.parts.range(..=address).next_back().ok_or(missing)?;
            let from = usize::try_from(address - start).map_err(|_| missing)?;
            let end = from.checked_add(buffer.len()).ok_or(missing)?;
            buffer.copy_from_slice(bytes.get(from..end).ok_or(missing)?);
            Ok(())
        }
    }

    #[test]
    fn copied_bytes_come_before_the_memory() {
        let mut memory = TestMemory::default();
        memory.put_words(0x1000, &[1, 2, 3]);
        let copy = 7_u64.to_le_bytes();
        let both = WithCopy::new(&memory, 0x1008, &copy);
        let both: &dyn Memory = &both;
        assert_eq!(both.words::<3>(0x1000), Ok([1, 7, 3]));
        assert_eq!(both.u64(u64::MAX - 3), Err(Missing { address: u64::MAX - 3 }));
    }

    #[test]
    fn a_size_beyond_the_memory_takes_no_memory() {
        let mut memory = TestMemory::default();
        memory.put(0x1000, &[1, 2]);
        let memory: &dyn Memory = &memory;
        assert_eq!(memory.bytes(0x1000, 2), Ok(vec![1, 2]));
        assert!(memory.bytes(0x1000, usize::MAX).is_err());
    }
}
