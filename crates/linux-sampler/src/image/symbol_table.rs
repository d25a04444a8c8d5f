//! A table of the names of functions.

/// Maximum number of symbols to keep from a file.
const MAX_SYMBOLS: usize = 2_000_000;

/// Maximum number of bytes of all names to keep from a file.
const MAX_NAME_BYTES: usize = 128 << 20;

/// Names of functions by address.
///
/// ```
/// use linux_sampler::Image;
///
/// let image = Image::read(std::fs::File::open(std::env::current_exe()?)?)?;
/// let symbols = image.symbols()?;
/// // The function at an offset of the file, as a mapping of it states.
/// let symbol = image.address_of(0x2000).and_then(|address| symbols.at(address));
/// println!("{:?}", symbol.map(|symbol| String::from_utf8_lossy(symbol.name).into_owned()));
/// assert!(symbols.at(0).is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct SymbolTable {
    pub(super) rows: Vec<Row>,
    names: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) start: u64,
    /// Zero if it is not known.
    pub(super) size: u64,
    name: u32,
    name_len: u32,
}

/// A named range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol<'a> {
    /// The first address.
    pub start: u64,
    /// The address past the last byte: that of the next symbol if the size is not known.
    pub end: u64,
    /// The name as the file has it, not demangled; it need not be UTF-8.
    pub name: &'a [u8],
}

impl SymbolTable {
    /// Adds a row; returns false if there are too many.
    pub(crate) fn add(&mut self, start: u64, size: u64, name: &[u8]) -> bool {
        let at = self.names.len();
        let end = at.saturating_add(name.len());
        if self.rows.len() >= MAX_SYMBOLS || end > MAX_NAME_BYTES {
            return false;
        }
        let (Ok(at), Ok(len)) = (u32::try_from(at), u32::try_from(name.len())) else { return false };
        self.names.extend_from_slice(name);
        self.rows.push(Row { start, size, name: at, name_len: len });
        true
    }

    /// Sorts the rows; the first row added for an address is kept.
    pub(crate) fn sort(&mut self) {
        self.rows.sort_by_key(|row| row.start);
        self.rows.dedup_by_key(|row| row.start);
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if the table is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The symbol at an address.
    pub fn at(&self, address: u64) -> Option<Symbol<'_>> {
        let next = self.rows.partition_point(|row| row.start <= address);
        let row = self.rows.get(next.checked_sub(1)?)?;
        let following = self.rows.get(next).map_or(u64::MAX, |row| row.start);
        let end = if row.size == 0 { following } else { row.start.saturating_add(row.size) };
        if address >= end {
            return None;
        }
        let (start, len) = (row.name as usize, row.name_len as usize);
        let name = self.names.get(start..start.checked_add(len)?)?;
        Some(Symbol { start: row.start, end, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_symbol_that_contains_it() {
        let mut table = SymbolTable::default();
        table.add(100, 10, b"a");
        table.add(200, 0, b"b");
        table.add(300, 10, b"c");
        table.sort();
        let at = |address| table.at(address).map(|symbol| (symbol.name, symbol.end));
        assert_eq!(at(99), None);
        assert_eq!(at(109), Some((&b"a"[..], 110)));
        assert_eq!(at(110), None);
        assert_eq!(at(299), Some((&b"b"[..], 300)));
        assert_eq!(at(310), None);
    }
}
