//! The bytes that each dependency adds to a program, by the symbols that its linker kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::Result;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind};

use super::Build;
use super::programs::{Platform, Program};
use crate::task::packages::{array, metadata, text};

/// Bytes of one crate.
#[derive(Default, Clone, Copy)]
struct Size {
    code: u64,
    data: u64,
}

impl Size {
    fn total(self) -> u64 {
        self.code.saturating_add(self.data)
    }
}

/// Returns a table of the program for each Linux platform. Windows programs have symbols without sizes.
pub(super) fn table(build: &Build<'_>, platforms: &[Platform], program: &Program) -> Result<String> {
    let versions = versions()?;
    let mut table = "\
Bytes that each crate adds to the program. A generic function counts for the crate that defines it, whoever uses it.
'without a symbol': constants, tables for unwinding, relocations and headers.
"
    .to_owned();
    for platform in platforms {
        let size = fs::metadata(platform.stripped(build, program))?.len();
        writeln!(table, "\n{} {} for {}: {size} bytes", program.name, build.release.version, platform.name)?;
        if platform.is_windows() {
            continue;
        }
        let sizes = sizes_by_crate(&fs::read(platform.linked(build, program))?)?;
        let mut rows: Vec<_> = sizes.iter().collect();
        rows.sort_by_key(|(name, size)| (std::cmp::Reverse(size.total()), *name));
        writeln!(table, "{:>10} {:>10} {:>10}  crate", "code", "data", "total")?;
        for (name, size) in rows {
            let version = versions.get(name.as_str()).map(String::as_str).unwrap_or_default();
            let Size { code, data } = size;
            writeln!(
                table,
                "{code:>10} {data:>10} {:>10}  {}",
                size.total(),
                format!("{name} {version}").trim()
            )?;
        }
        let known: u64 = sizes.values().map(|size| size.total()).sum();
        writeln!(table, "{:>10} {:>10} {:>10}  without a symbol", "", "", size.saturating_sub(known))?;
    }
    Ok(table)
}

/// Returns the version of each crate by the name that it has in symbols.
fn versions() -> Result<BTreeMap<String, String>> {
    let metadata = metadata(&["--locked"])?;
    let packages = array(&metadata["packages"]).iter();
    Ok(packages
        .map(|package| (text(&package["name"]).replace('-', "_"), text(&package["version"]).to_owned()))
        .collect())
}

fn sizes_by_crate(program: &[u8]) -> Result<BTreeMap<String, Size>> {
    let file = object::File::parse(program)?;
    let mut sizes: BTreeMap<String, Size> = BTreeMap::new();
    // Several symbols may name the same bytes.
    let mut counted = BTreeSet::new();
    for symbol in file.symbols().filter(|symbol| symbol.size() > 0) {
        let Some(section) = symbol.section_index().and_then(|index| file.section_by_index(index).ok()) else {
            continue;
        };
        if !counted.insert(symbol.address()) {
            continue;
        }
        let size = sizes.entry(crate_of(symbol.name().unwrap_or_default())).or_default();
        match section.kind() {
            SectionKind::Text => size.code = size.code.saturating_add(symbol.size()),
            SectionKind::Data | SectionKind::ReadOnlyData | SectionKind::ReadOnlyString => {
                size.data = size.data.saturating_add(symbol.size());
            }
            // Zeroed memory is not in the file.
            _ => {}
        }
    }
    Ok(sizes)
}

/// Returns the crate that defines a symbol's item.
fn crate_of(symbol: &str) -> String {
    let Ok(name) = rustc_demangle::try_demangle(symbol) else { return "(C library)".to_owned() };
    let name = format!("{name:#}");
    // `<[T] as a::Trait>::f` belongs to the crate of the trait, `<a::Type as b::Trait>::f` to the crate of
    // the type.
    let parts = name.split(" as ").chain(name.split(" for "));
    let found = parts.filter_map(|part| {
        let path = part.trim_start_matches(|c: char| !(c.is_ascii_alphabetic() || c == '_'));
        let path =
            ["impl ", "dyn ", "mut ", "const "].iter().fold(path, |path, word| path.trim_start_matches(word));
        let (name, _) = path.split_once("::")?;
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then(|| name.to_owned())
    });
    found.into_iter().next().unwrap_or_else(|| "core".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_belongs_to_the_crate_that_defines_it() {
        // Names as both manglings of rustc make them.
        for (symbol, expected) in [
            ("_ZN8nettrace6engine4step17h0123456789abcdefE", "nettrace"),
            ("_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE", "core"),
            (
                "_ZN56_$LT$serde_json..Error$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
                "serde_json",
            ),
            ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate"),
            ("_RNvXCs1234_7mycratehNtB2_5Trait1f", "mycrate"),
            ("malloc", "(C library)"),
        ] {
            assert_eq!(crate_of(symbol), expected, "{symbol}: {:#}", rustc_demangle::demangle(symbol));
        }
    }
}
