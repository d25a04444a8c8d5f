//! A program for tests, and as a seed of the fuzz target `program`: a 64-bit ELF file that has only sections.

/// The size of a symbol.
const SYMBOL: usize = 24;
/// The size of the file's header, and of a section's.
const HEADER: usize = 64;

/// Returns a program that exports these symbols. Its symbol table is at the end, and continues for `missing`
/// bytes.
pub(crate) fn elf(names: &[&str], missing: usize) -> Vec<u8> {
    let (mut strings, mut symbols) = (vec![0], vec![0; SYMBOL]);
    for name in names {
        // Name; global, an object, defined in section 1; address and size.
        for (value, size) in [(strings.len(), 4), (0x11, 2), (1, 2), (0x1000, 8), (8, 8)] {
            put(&mut symbols, value, size);
        }
        strings.extend_from_slice(name.as_bytes());
        strings.push(0);
    }
    strings.resize(strings.len().next_multiple_of(8), 0);
    // Magic, 64 bits, little-endian, version 1.
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    // A shared object for x86-64, version 1, without an entry point and segments; the sections' headers
    // follow this one.
    for (value, size) in [(3, 2), (62, 2), (1, 4), (0, 8), (0, 8), (HEADER, 8), (0, 4)] {
        put(&mut elf, value, size);
    }
    // Sizes and numbers of headers: three sections, the second of which has names.
    for value in [HEADER, 56, 0, HEADER, 3, 1] {
        put(&mut elf, value, 2);
    }
    let start = 4 * HEADER;
    // Type, offset, size, the section that has its names, size of an entry.
    let sections = [
        [0, 0, 0, 0, 0],
        [3, start, strings.len(), 0, 0],
        [11, start + strings.len(), symbols.len() + missing, 1, SYMBOL],
    ];
    for [kind, offset, size, link, entry] in sections {
        for (value, size) in
            [(0, 4), (kind, 4), (0, 8), (0, 8), (offset, 8), (size, 8), (link, 4), (0, 4), (8, 8), (entry, 8)]
        {
            put(&mut elf, value, size);
        }
    }
    [elf, strings, symbols].concat()
}

/// Appends the lowest bytes of a value.
fn put(bytes: &mut Vec<u8>, value: usize, size: usize) {
    bytes.extend_from_slice(&(value as u64).to_le_bytes()[..size]);
}
