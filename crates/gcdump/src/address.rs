//! Addresses of objects in 32 bits.

use hashbrown::HashMap;

/// Bits of a code that hold the slot in a chunk.
const SLOT_BITS: u32 = 13;
/// The number of slots in a chunk, minus one.
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;
/// Maximum number of chunks. The next number marks [`AddressCode::NONE`].
const MAX_CHUNKS: u32 = (1 << (32 - SLOT_BITS)) - 1;

/// An address as the number of a chunk (64 KB in 64-bit processes) and the slot in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AddressCode(pub(crate) u32);

impl AddressCode {
    /// No address.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Returns true if both are in the same chunk.
    pub(crate) const fn shares_chunk(self, other: Self) -> bool {
        self.0 >> SLOT_BITS == other.0 >> SLOT_BITS
    }
}

/// The chunks that contain objects, with the mapping between addresses and codes.
///
/// Objects are aligned to 8 bytes, or to 4 in 32-bit processes. Unaligned addresses do not get a code, nor do
/// addresses beyond 524,287 different chunks. That number of chunks holds 32 GB of small objects; for objects
/// larger than a chunk only the first chunk counts.
#[derive(Debug, Clone)]
pub(crate) struct AddressTable {
    /// Bits below the slot.
    alignment_bits: u32,
    /// The chunks' addresses without slot and alignment.
    chunks: Vec<u64>,
    numbers: HashMap<u64, u32>,
    /// The chunk of the last look-up.
    last: Option<(u64, u32)>,
}

impl AddressTable {
    pub(crate) fn new(pointer_size: u8) -> Self {
        let alignment_bits = if pointer_size == 4 { 2 } else { 3 };
        Self { alignment_bits, chunks: Vec::new(), numbers: HashMap::new(), last: None }
    }

    /// Returns the code of an address, assigning one on the first call; `None` if it cannot have one.
    pub(crate) fn encode(&mut self, address: u64) -> Option<AddressCode> {
        let (key, slot) = self.split(address)?;
        if let Some((last, number)) = self.last
            && last == key
        {
            return Some(code(number, slot));
        }
        let number = if let Some(number) = self.numbers.get(&key) {
            *number
        } else {
            let number = u32::try_from(self.chunks.len()).ok().filter(|number| *number < MAX_CHUNKS)?;
            self.chunks.push(key);
            self.numbers.insert(key, number);
            number
        };
        self.last = Some((key, number));
        Some(code(number, slot))
    }

    /// Returns the code of an address, if one was assigned.
    pub(crate) fn find(&self, address: u64) -> Option<AddressCode> {
        let (key, slot) = self.split(address)?;
        self.numbers.get(&key).map(|number| code(*number, slot))
    }

    /// Returns the address of a code; 0 for [`AddressCode::NONE`].
    pub(crate) fn decode(&self, code: AddressCode) -> u64 {
        let chunk = self.chunks.get((code.0 >> SLOT_BITS) as usize);
        chunk.map_or(0, |key| {
            (key << SLOT_BITS | u64::from(code.0 & SLOT_MASK)).wrapping_shl(self.alignment_bits)
        })
    }

    #[allow(clippy::cast_possible_truncation, reason = "masked")]
    fn split(&self, address: u64) -> Option<(u64, u32)> {
        let unit = address.wrapping_shr(self.alignment_bits);
        let is_aligned = unit.wrapping_shl(self.alignment_bits) == address;
        is_aligned.then_some((unit >> SLOT_BITS, unit as u32 & SLOT_MASK))
    }
}

const fn code(chunk: u32, slot: u32) -> AddressCode {
    AddressCode(chunk << SLOT_BITS | slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_their_codes() {
        for (pointer_size, step) in [(8, 8), (4, 4)] {
            let mut table = AddressTable::new(pointer_size);
            let addresses =
                [0, step, 0xffff - 0xf, 0x10000, 0x7fff_1234_5678, 1 << 36, u64::MAX - (step - 1)];
            let codes = addresses.map(|address| table.encode(address).unwrap());
            assert_eq!(codes.map(|code| table.decode(code)), addresses);
            assert_eq!(addresses.map(|address| table.find(address).unwrap()), codes);
            assert_eq!((table.encode(step + 1), table.find(1 << 40)), (None, None));
        }
    }

    #[test]
    fn the_number_of_chunks_is_bounded() {
        let mut table = AddressTable::new(8);
        for chunk in 0..u64::from(MAX_CHUNKS) {
            assert!(table.encode(chunk << 16).is_some());
        }
        assert_eq!(table.encode(u64::from(MAX_CHUNKS) << 16), None);
        assert!(table.encode(8).is_some());
        assert_eq!(table.decode(AddressCode::NONE), 0);
    }
}
