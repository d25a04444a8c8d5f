//! Names of the kernel's functions.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use crate::image::SymbolTable;

/// Reads the names of the kernel's functions from `/proc/kallsyms`. Empty if the kernel hides the addresses
/// (`kptr_restrict`, `perf_event_paranoid`).
///
/// # Errors
/// If the file cannot be read.
pub fn kernel_symbols() -> io::Result<SymbolTable> {
    parse(BufReader::with_capacity(1 << 16, File::open("/proc/kallsyms")?))
}

/// Reads `address kind name [module]` lines.
pub(crate) fn parse(mut text: impl BufRead) -> io::Result<SymbolTable> {
    let mut table = SymbolTable::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        if text.read_until(b'\n', &mut line)? == 0 {
            break;
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
        match address {
            None | Some(0) => {}
            Some(address) => {
                if !table.add(address, 0, name) {
                    break;
                }
            }
        }
    }
    table.sort();
    Ok(table)
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
}
