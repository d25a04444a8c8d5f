//! A loaded ELF image, read from memory: its build id and exported symbols.

use crate::memory::{Memory, MemoryResult, offset};

/// Maximum number of program headers of an image.
const MAX_HEADERS: u16 = 64;
/// Maximum number of bytes of the notes of an image.
const MAX_NOTE_BYTES: u64 = 4096;
/// Maximum number of entries of the dynamic section.
const MAX_DYNAMIC_ENTRIES: u64 = 256;
/// The flag of parts that can be written.
const WRITABLE: u32 = 2;
/// Maximum number of symbols of a hash chain.
const MAX_CHAIN_LENGTH: u32 = 4096;

/// A loaded image.
#[derive(Debug)]
pub(crate) struct ElfImage {
    /// The processor's architecture (`e_machine`); 0 if the memory lacks it, as stripped core dumps did.
    pub(crate) machine: u16,
    /// The address that the image's own addresses start from.
    pub(crate) bias: u64,
    pub(crate) build_id: Option<Vec<u8>>,
    /// The address of the search table of its unwind information (`.eh_frame_hdr`).
    pub(crate) unwind_table: Option<u64>,
    /// The address and the size of the last part that can be written, without the variables that the file
    /// does not have.
    pub(crate) data: Option<(u64, u64)>,
    /// The address past its last byte, with the variables that the file does not have.
    pub(crate) end: u64,
    pub(crate) dynamic: Option<u64>,
}

/// An exported variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) address: u64,
    pub(crate) size: u64,
}

impl ElfImage {
    /// Reads the headers of the image that starts at `base`; `None` if it is not a 64-bit ELF image.
    pub(crate) fn read(memory: &dyn Memory, base: u64) -> MemoryResult<Option<Self>> {
        if memory.array::<6>(base)? != *b"\x7fELF\x02\x01" {
            return Ok(None);
        }
        let headers = offset(base, memory.u64(offset(base, 32))?);
        let count = memory.u16(offset(base, 56))?.min(MAX_HEADERS);
        let machine = memory.u16(offset(base, 18)).unwrap_or_default();
        let mut image = Self {
            machine,
            bias: base,
            build_id: None,
            unwind_table: None,
            data: None,
            end: base,
            dynamic: None,
        };
        let (mut notes, mut dynamic, mut unwind_table, mut data) = (Vec::new(), None, None, None);
        let mut end = 0;
        for index in 0..u64::from(count) {
            let at = offset(headers, index.wrapping_mul(56));
            let (file_offset, address) = (memory.u64(offset(at, 8))?, memory.u64(offset(at, 16))?);
            let kind = memory.u32(at)?;
            if kind == 1 {
                end = offset(address, memory.u64(offset(at, 40))?).max(end);
            }
            match kind {
                1 if file_offset == 0 => image.bias = base.wrapping_sub(address),
                1 if memory.u32(offset(at, 4))? & WRITABLE != 0 => {
                    data = Some((address, memory.u64(offset(at, 32))?));
                }
                2 => dynamic = Some(address),
                4 => notes.push((address, memory.u64(offset(at, 32))?)),
                // PT_GNU_EH_FRAME
                0x6474_e550 => unwind_table = Some(address),
                _ => {}
            }
        }
        image.end = offset(image.bias, end);
        image.data = data.map(|(address, size)| (offset(image.bias, address), size));
        image.dynamic = dynamic.map(|address| offset(image.bias, address));
        image.unwind_table = unwind_table.map(|address| offset(image.bias, address));
        for (address, size) in notes {
            if let Ok(Some(id)) = build_id(memory, offset(image.bias, address), size.min(MAX_NOTE_BYTES)) {
                image.build_id = Some(id);
            }
        }
        Ok(Some(image))
    }

    /// Returns an exported symbol.
    pub(crate) fn symbol(&self, memory: &dyn Memory, name: &str) -> MemoryResult<Option<Symbol>> {
        let Some(dynamic) = self.dynamic else { return Ok(None) };
        let (mut hash, mut strings, mut symbols) = (None, None, None);
        for index in 0..MAX_DYNAMIC_ENTRIES {
            let [tag, value] = memory.words(offset(dynamic, index.wrapping_mul(16)))?;
            // The C library may or may not have replaced the image's own addresses.
            let address = if value < self.bias { offset(self.bias, value) } else { value };
            match tag {
                0 => break,
                5 => strings = Some(address),
                6 => symbols = Some(address),
                0x6fff_fef5 => hash = Some(address),
                _ => {}
            }
        }
        let (Some(hash), Some(strings), Some(symbols)) = (hash, strings, symbols) else { return Ok(None) };
        let [buckets, first, bloom] = [0, 4, 8].map(|field| memory.u32(offset(hash, field)));
        let (buckets, first, bloom) = (buckets?, first?, bloom?);
        let wanted =
            name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(byte.into()));
        let table = offset(hash, u64::from(bloom).wrapping_mul(8).wrapping_add(16));
        let Some(bucket) = wanted.checked_rem(buckets) else { return Ok(None) };
        let mut index = memory.u32(offset(table, u64::from(bucket).wrapping_mul(4)))?;
        let chain = offset(table, u64::from(buckets).wrapping_mul(4));
        for _ in 0..MAX_CHAIN_LENGTH {
            let Some(place) = index.checked_sub(first) else { break };
            let hash = memory.u32(offset(chain, u64::from(place).wrapping_mul(4)))?;
            if hash | 1 == wanted | 1 {
                let symbol = offset(symbols, u64::from(index).wrapping_mul(24));
                let at = offset(strings, memory.u32(symbol)?.into());
                if is_text(memory, at, name)? {
                    let [value, size] = memory.words(offset(symbol, 8))?;
                    return Ok(Some(Symbol { address: offset(self.bias, value), size }));
                }
            }
            if hash & 1 != 0 {
                break;
            }
            index = index.wrapping_add(1);
        }
        Ok(None)
    }
}

/// Returns true if `text`, terminated by NUL, is at an address.
fn is_text(memory: &dyn Memory, at: u64, text: &str) -> MemoryResult<bool> {
    let bytes = memory.bytes(at, text.len().saturating_add(1))?;
    Ok(bytes.split_last() == Some((&0, text.as_bytes())))
}

/// Finds the build id in notes.
fn build_id(memory: &dyn Memory, start: u64, size: u64) -> MemoryResult<Option<Vec<u8>>> {
    let mut at = 0_u64;
    while at.wrapping_add(12) <= size {
        let header = offset(start, at);
        let [name, length, kind] = [0, 4, 8].map(|field| memory.u32(offset(header, field)));
        let (name, length) = (u64::from(name?), u64::from(length?));
        let content = at.wrapping_add(12).wrapping_add(name.next_multiple_of(4));
        if kind? == 3 && name == 4 && length <= 64 && content.wrapping_add(length) <= size {
            let bytes = memory.bytes(offset(start, content), usize::try_from(length).unwrap_or_default());
            return bytes.map(Some);
        }
        at = content.wrapping_add(length.next_multiple_of(4));
    }
    Ok(None)
}
