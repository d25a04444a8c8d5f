//! Names of the kernel's functions.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use crate::image::SymbolTable;
use crate::nearest_symbols::NearestSymbols;

/// Reads the names of the kernel's functions from `/proc/kallsyms`. Empty if the kernel hides the addresses
/// (`kptr_restrict`, `perf_event_paranoid`).
///
/// ```
/// let symbols = linux_sampler::kernel_symbols()?;
/// if symbols.is_empty() {
///     eprintln!("the kernel hides its addresses");
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be read.
pub fn kernel_symbols() -> io::Result<SymbolTable> {
    parse(BufReader::with_capacity(1 << 16, File::open("/proc/kallsyms")?))
}

/// Reads the names at some addresses only: all of them together take megabytes.
///
/// # Errors
/// If the file cannot be read.
pub fn kernel_symbols_at(addresses: &BTreeSet<u64>) -> io::Result<SymbolTable> {
    parse_at(BufReader::with_capacity(1 << 16, File::open("/proc/kallsyms")?), addresses)
}

/// Reads `address kind name [module]` lines.
pub(crate) fn parse(text: impl BufRead) -> io::Result<SymbolTable> {
    let mut table = SymbolTable::default();
    each_function(text, |address, name| table.add(address, 0, name))?;
    table.sort();
    Ok(table)
}

fn parse_at(text: impl BufRead, addresses: &BTreeSet<u64>) -> io::Result<SymbolTable> {
    let mut nearest = NearestSymbols::new(addresses);
    each_function(text, |address, name| {
        nearest.add(address, 0, || name.to_vec());
        true
    })?;
    let mut table = SymbolTable::default();
    for symbol in nearest.into_symbols() {
        table.add(symbol.start, symbol.size, &symbol.name);
    }
    table.sort();
    Ok(table)
}

/// Passes the address and the name of each function to `add`, until that returns false.
pub(crate) fn each_function(
    mut text: impl BufRead,
    mut add: impl FnMut(u64, &[u8]) -> bool,
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if text.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let mut parts = line.trim_ascii_end().splitn(3, |&byte| byte == b' ');
        let (Some(address), Some(kind), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if !matches!(kind, b"t" | b"T" | b"w" | b"W") {
            continue;
        }
        let address = std::str::from_utf8(address).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
        let name = name.split(|&byte| byte == b'\t').next().unwrap_or_default();
        if let Some(address) = address.filter(|address| *address != 0)
            && !add(address, name)
        {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_read_and_hidden_addresses_left_out() {
        let text = "ffffffff81000000 T _text\nffffffff81000010 d data\nffffffff81000020 t other\t[module]\n0000000000000000 T hidden\n";
        let table = parse(text.as_bytes()).unwrap();
        assert_eq!(table.len(), 2);
        assert_eq!(table.at(0xffff_ffff_8100_0015).unwrap().name, b"_text");
        assert_eq!(table.at(0xffff_ffff_8100_0025).unwrap().name, b"other");
    }

    /// The whole table is the reference.
    #[test]
    fn names_at_some_addresses_match_the_whole_table() {
        let text = "50 t e\n10 T a\n10 t alias\n20 t b\n30 d data\n40 t d\n90 t z\n90 t zz\n60 W f\n";
        let whole = parse(text.as_bytes()).unwrap();
        let shape = |table: &SymbolTable, at| {
            table.at(at).map(|symbol| (symbol.start, symbol.end, symbol.name.to_vec()))
        };
        // Each address alone, and with each other one.
        for one in 0..0xa0 {
            for other in 0..0xa0 {
                let some = parse_at(text.as_bytes(), &BTreeSet::from([one, other])).unwrap();
                assert_eq!(shape(&some, one), shape(&whole, one), "{one:x} beside {other:x}");
            }
        }
        assert_eq!(shape(&whole, 0x95), Some((0x90, u64::MAX, b"z".to_vec())));
    }
}
